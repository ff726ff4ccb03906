"""The splitter: pieces of any upstream become the events of the engine, counted and gapped as one message."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asides
from asides import Format, Notice, Parser, PartEnd, PartStart, TextDelta, Thinking, ThinkingDelta, ToolCall, dialects
from asides.dialects._framing import to_json
from asides.dialects._request import Request, ThinkingOptions
from asides.events import Event
from asides.families import get_format
from asides.reply._fold import Fold
from asides.reply._items import (
    Begin,
    CallChunk,
    Chunk,
    Ended,
    Failed,
    RawText,
    ReplyEvent,
    ReplyItem,
    ThinkingChunk,
    Usage,
)
from asides.reply._separated_calls import find_fault, without_markers
from asides.reply._splitter import Splitter
from tests.dialects.shapes import make_parser, told
from tests.support import count_calls

OPEN = '<tool_call>\n{"name": "open", "arguments": {"a": 1}}\n</tool_call>'


def split(*pieces: Chunk, format: str = "qwen3", **policies: Any) -> list[ReplyItem]:
    splitter = Splitter(get_format(format), make_parser(**policies))
    return [item for piece in pieces for item in splitter.feed(piece)]


def events(found: list[ReplyItem], choice: int = 0) -> list[Event]:
    return [item.event for item in found if isinstance(item, ReplyEvent) and item.choice == choice]


def starts(found: list[ReplyItem]) -> list[PartStart]:
    return [event for event in events(found) if isinstance(event, PartStart)]


def ends(found: list[ReplyItem]) -> list[PartEnd]:
    return [event for event in events(found) if isinstance(event, PartEnd)]


RAW = st.sampled_from(["<think>", "</think>", "a", " ", "\n", "b", OPEN, "<tool_call>", "`", "<|im_end|>"])


@given(st.lists(RAW, max_size=12), st.integers(1, 9))
def test_words_alone_are_what_the_parser_says(pieces: list[str], size: int) -> None:
    """Nothing is added to its events, nothing lost, wherever the words are cut."""
    raw = "".join(pieces)
    parser = asides.Parser("qwen3")
    parser.feed(raw)
    parser.finish()
    message = parser.message
    found = split(*(RawText(0, raw[at : at + size]) for at in range(0, len(raw), size)), Ended(0))
    parts: list[tuple[str, ...]] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            parts.append(("call", part.name, part.arguments))
        else:
            parts.append(("thinking" if isinstance(part, Thinking) else "text", part.text))
    assert told(found).parts == tuple(parts)
    assert [event.span for event in ends(found)] == [part.span for part in message.parts]
    assert [event for event in events(found) if isinstance(event, Notice)] == list(message.notices)


@given(st.lists(st.sampled_from(["w", "W", "t", "c", "C", "k"]), max_size=10))
def test_parts_are_counted_and_told_one_after_the_other(kinds: list[str]) -> None:
    """Whatever mixture an upstream sends: indices rise, ids differ, every part that starts ends."""
    pieces: list[Chunk] = []
    for number, kind in enumerate(kinds):
        some: dict[str, list[Chunk]] = {
            "w": [RawText(0, f"word {number} ")],
            "W": [RawText(0, f"{OPEN} word")],
            "t": [ThinkingChunk(0, f"thought {number}", "reasoning")],
            "c": [CallChunk(0, number, "", "f", '{"a":'), CallChunk(0, number, "", "", "1}")],
            "C": [CallChunk(0, number, f"id{number}", "f", "{}")],
            "k": [RawText(0, "<think>x</think>y")],
        }
        pieces += some[kind]
    found = split(*pieces, Ended(0))
    assert [start.index for start in starts(found)] == list(range(len(starts(found))))
    assert sorted(end.index for end in ends(found)) == list(range(len(starts(found))))
    ids = [start.id for start in starts(found) if start.kind == "tool_call"]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    calls = sum(kind in "cCW" for kind in kinds)
    assert len(ids) == calls
    assert all(end.error is None for end in ends(found))


def test_thinking_that_is_split_off_is_not_looked_for_again() -> None:
    """Words behind it are read for calls only."""
    found = split(ThinkingChunk(0, "hm", "reasoning"), RawText(0, "so <think> is a tag\n"), RawText(0, OPEN), Ended(0))
    assert told(found).parts == (("thinking", "hm"), ("text", "so <think> is a tag"), ("call", "open", '{"a": 1}'))


def test_whitespace_around_what_is_split_off_is_framing() -> None:
    """But a reply that is nothing else is kept."""
    found = split(
        RawText(0, "\n"),
        RawText(0, "\n"),
        ThinkingChunk(0, "hm"),
        RawText(0, "\n\n"),
        CallChunk(0, 0, "i", "f", "{}"),
        Ended(0),
    )
    assert told(found).parts == (("thinking", "hm"), ("call", "f", "{}"))
    assert told(split(RawText(0, "\n"), RawText(0, " "), Ended(0))).parts == (("text", "\n "),)


@pytest.mark.parametrize("behind", [ThinkingChunk(0, "b"), ThinkingChunk(0, ""), CallChunk(0, 0, "c", "f", "{}")])
@pytest.mark.parametrize("text", ["<", " <thi", "<think>"])
def test_text_that_could_repeat_a_thought_is_not_lost(text: str, behind: Chunk) -> None:
    """It waits for more, and something else comes."""
    found = split(ThinkingChunk(0, "a"), RawText(0, text), behind, RawText(0, "c"), Ended(0))
    written = "".join(event.text for event in events(found) if isinstance(event, TextDelta | ThinkingDelta))
    assert written.replace("b", "") == "a" + text.removeprefix("<think>") + "c"


def test_a_second_thought_has_a_gap() -> None:
    """As the engine has it."""
    found = split(ThinkingChunk(0, "one"), CallChunk(0, 0, "i", "f", "{}"), ThinkingChunk(0, "two"), Ended(0))
    assert [start.gap for start in starts(found)] == ["", "", "\n\n"]


def test_thinking_and_text_that_take_turns_keep_their_order() -> None:
    """Two choices at once, each by itself."""
    found = split(
        *(piece for choice in (0, 1) for piece in (ThinkingChunk(choice, "a"), RawText(choice, "b"))),
        *(piece for choice in (0, 1) for piece in (ThinkingChunk(choice, "c"), RawText(choice, "d"), Ended(choice))),
    )
    for choice in (0, 1):
        assert told(found, choice).parts == (("thinking", "a"), ("text", "b"), ("thinking", "c"), ("text", "d"))


def test_a_choice_says_nothing_after_its_end() -> None:
    """Late pieces are passed over."""
    found = split(RawText(0, "a"), Ended(0), RawText(0, "b"), ThinkingChunk(0, "c"), CallChunk(0, 0, "", "f"), Ended(0))
    assert told(found).parts == (("text", "a"),)


def test_what_is_held_comes_before_a_failure() -> None:
    """Nothing is lost when an upstream dies."""
    found = split(RawText(0, "a <thi"), Failed("gone"))
    assert told(found).parts == (("text", "a <thi"),)
    assert isinstance(found[-1], Failed)


def test_a_part_that_was_cut_off_says_so() -> None:
    """By the limit or by a death; a stop is an end."""
    for piece, complete in ((Ended(0, "length"), False), (Failed("gone"), False), (Ended(0), True)):
        assert [end.complete for end in ends(split(ThinkingChunk(0, "hm"), piece))] == [complete]
    cut = split(CallChunk(0, 0, "i", "f", '{"a'), Ended(0, "length"))
    assert [(end.complete, end.error) for end in ends(cut)] == [(False, "incomplete")]


@pytest.mark.parametrize(
    ("raw", "written"),
    [
        ('<tool_call>\n{"arguments": {}}\n</tool_call>', '{"arguments": {}}'),
        ('<tool_call>\n{"name": "f", "arguments": {"a": x}}\n</tool_call>', '{"name": "f", "arguments": {"a": x}}'),
        ('<tool_call>\n{"name": "f", "arguments": {"a', '{"name": "f", "arguments": {"a'),
    ],
)
def test_a_call_that_may_not_be_run_tells_what_was_written(raw: str, written: str) -> None:
    """Without its outer markers, wherever it was cut."""
    for size in (1, 4, 100):
        found = split(*(RawText(0, raw[at : at + size]) for at in range(0, len(raw), size)), Ended(0))
        assert [item.written for item in found if isinstance(item, ReplyEvent) and item.written] == [written]
    assert without_markers(raw, get_format("qwen3")) == written


def test_a_call_that_an_upstream_read_badly_tells_what_there_is() -> None:
    """Without a name, its arguments."""
    found = split(CallChunk(0, 0, "i", "", '{"a": 1}'), Ended(0))
    assert [
        (item.written, item.event.error)
        for item in found
        if isinstance(item, ReplyEvent) and isinstance(item.event, PartEnd)
    ] == [('{"a": 1}', "no_name")]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("{}", None),
        (' {"a": [1, "}"]} ', None),
        ("", "incomplete"),
        ('{"a', "incomplete"),
        ("[1]", "not_object"),
        ("3", "not_object"),
        ("{a: 1}", "invalid_json"),
        ('{"a": 1}}', "invalid_json"),
        ("{} {}", "invalid_json"),
        ("{a: [", "incomplete"),
        ('{"a": 1, "a": 1}', "duplicate_argument"),
        ('{"a": 1, "\\u0061": 2}', "duplicate_argument"),
        ('{"a": {"b": 1, "b": 2}}', None),
    ],
)
def test_arguments_that_may_not_be_used_are_told_apart(arguments: str, error: str | None) -> None:
    """Cut off, broken, no object, or with a key that is there twice; in words too."""
    found, message = find_fault(arguments)
    assert (found, bool(message)) == (error, error is not None)


def test_tokens_of_thinking_are_shared_out_where_nobody_counted() -> None:
    """By characters, and marked; zero beside thinking is no count."""
    for counted in (None, 0):
        usage = split(ThinkingChunk(0, "x" * 30), RawText(0, "y" * 10), Ended(0), Usage(1, 8, counted))[-1]
        assert usage == Usage(1, 8, 6, True)
    assert split(ThinkingChunk(0, "x"), Ended(0), Usage(1, 8, 3))[-1] == Usage(1, 8, 3)
    assert split(RawText(0, "x"), Ended(0), Usage(1, 8))[-1] == Usage(1, 8)


@pytest.mark.parametrize("dialect", dialects.ALL, ids=lambda dialect: dialect.NAME)
def test_hidden_thinking_is_counted_and_not_written(dialect: dialects.Dialect) -> None:
    """Split off by the upstream or by us. The items have it, for the record of the reply; no writer writes it."""
    request = Request(dialect=dialect.NAME, thinking=ThinkingOptions(show=False))
    for pieces in ((ThinkingChunk(0, "secret"), RawText(0, "so")), (RawText(0, "<think>secret</think>so"),)):
        found = split(Begin(), *pieces, Ended(0), Usage(1, 8))
        assert told(found).parts == (("thinking", "secret"), ("text", "so"))
        assert isinstance(found[-1], Usage)
        assert found[-1].reasoning_tokens == 6
        writer = dialect.ReplyWriter(request)
        streamed = b"".join(map(writer.feed, found)) + writer.finish()
        for written in (streamed, to_json(dialect.write_reply(found, request))):
            assert b"secret" not in written
            assert b'"so"' in written
        reader = dialect.ReplyReader()
        back = split(*reader.feed(streamed), *reader.finish())
        assert told(back).parts == (("text", "so"),)
        assert told(split(*dialect.read_reply(dialect.write_reply(found, request)))).parts == (("text", "so"),)


def test_details_and_signatures_come_along() -> None:
    """With the delta they came with, be it an empty one."""
    detail = {"type": "reasoning.text", "text": "hm"}
    found = split(
        ThinkingChunk(0, "hm", details=(detail,)), ThinkingChunk(0, "", signature="s"), RawText(0, "so"), Ended(0)
    )
    said = [item for item in found if isinstance(item, ReplyEvent)]
    assert [item.details for item in said if item.details] == [(detail,)]
    assert [item.signature for item in said if item.signature] == ["s"]
    assert told(found).parts == (("thinking", "hm"), ("text", "so"))


def test_every_format_can_be_read_behind_split_off_thinking() -> None:
    """Formats with headers too."""
    for name in asides.formats():
        found = split(ThinkingChunk(0, "hm"), RawText(0, "It is 4."), Ended(0), format=name)
        assert told(found).parts == (("thinking", "hm"), ("text", "It is 4.")), name


def test_a_long_reply_costs_no_more_for_each_piece_than_a_short_one() -> None:
    """It is asked now and then which text is still needed, not at every piece."""

    def calls_for_each(before: list[Chunk], pieces: int) -> float:
        splitter = Splitter(get_format("qwen3"), make_parser(collect=False))
        for piece in [*before, *[RawText(0, "word ")] * 10]:
            splitter.feed(piece)
        return count_calls(lambda: [splitter.feed(RawText(0, "word ")) for _ in range(pieces)]) / pieces

    befores: tuple[list[Chunk], ...] = ([], [RawText(0, "<think>")], [ThinkingChunk(0, "hm")])
    for before in befores:
        assert calls_for_each(before, 2_000) < 1.2 * calls_for_each(before, 40)


@pytest.mark.parametrize("before", [(), (ThinkingChunk(0, "hm"),)])
def test_text_before_a_call_is_let_go_and_a_broken_call_is_told(before: tuple[Chunk, ...]) -> None:
    """However long the reply: what the model wrote of the call is there, what nobody needs is not."""
    splitter = Splitter(get_format("qwen3"), make_parser(collect=False))
    for piece in (*before, RawText(0, "So.")):
        splitter.feed(piece)

    def grown() -> int:
        start = tracemalloc.get_traced_memory()[0]
        for number in range(4_000):
            splitter.feed(RawText(0, f"{number:100}"))
        return tracemalloc.get_traced_memory()[0] - start

    tracemalloc.start()
    try:
        grown()
        assert grown() < 50_000
    finally:
        tracemalloc.stop()
    written = '{"name": "f", "arguments": {"a": ' + "1" * 500
    found = splitter.feed(RawText(0, "\n<tool_call>\n"))
    found += [item for at in range(0, len(written), 3) for item in splitter.feed(RawText(0, written[at : at + 3]))]
    found += splitter.feed(Ended(0, "length"))
    assert [item.written for item in found if isinstance(item, ReplyEvent) and item.written] == [written]


def test_a_token_whose_text_comes_in_two_chunks_belongs_to_the_text() -> None:
    """A server may cut a token's text; it came out among those of no text, as if it had never been written."""
    token = {"token": "aé", "bytes": list("aé".encode()), "logprob": -1.0}
    found = split(RawText(0, "a", (token,)), RawText(0, "é b", ()), Ended(0), format="passthrough")
    said = [item for item in found if isinstance(item, ReplyEvent)]
    assert [token for item in said for token in item.logprobs] == [token]
    assert not [token for item in said for token in item.other_logprobs]


@given(st.text("aé🙂 ", min_size=1, max_size=12), st.data())
def test_every_token_of_a_text_is_given_out_with_it(text: str, data: st.DataObject) -> None:
    """Wherever the bytes are cut into tokens and the characters into chunks."""
    raw = text.encode()
    cuts = sorted(data.draw(st.sets(st.integers(1, len(raw)))) | {len(raw)})
    tokens = [
        {"token": raw[start:stop].decode("utf-8", "replace"), "bytes": list(raw[start:stop])}
        for start, stop in zip([0, *cuts], cuts, strict=False)
    ]
    places = sorted(data.draw(st.sets(st.integers(1, len(text)))) | {len(text)})
    begins = [0, *cuts[:-1]]
    pieces: list[Chunk] = []
    for start, stop in zip([0, *places], places, strict=False):
        first, last = len(text[:start].encode()), len(text[:stop].encode())
        own = tuple(token for token, at in zip(tokens, begins, strict=True) if first <= at < last)
        pieces.append(RawText(0, text[start:stop], own))
    said = [item for item in split(*pieces, Ended(0), format="passthrough") if isinstance(item, ReplyEvent)]
    assert [token["bytes"] for item in said for token in item.logprobs] == [token["bytes"] for token in tokens]
    assert not [token for item in said for token in item.other_logprobs]


@pytest.mark.parametrize("behind", [(), (RawText(0, "So."),)])
def test_a_broken_call_of_the_upstream_has_its_raw_text(behind: tuple[Chunk, ...]) -> None:
    """Whether the reply ends behind it or text follows."""
    found = split(CallChunk(0, 0, "c1", "open", '{"a": '), *behind, Ended(0))
    broken = next(item for item in found if isinstance(item, ReplyEvent) and isinstance(item.event, PartEnd))
    assert isinstance(broken.event, PartEnd)
    assert (broken.event.error, broken.event.error_message) == ("incomplete", "the output ended before the call did")
    assert broken.written == broken.raw
    assert '{"a": ' in broken.raw


@pytest.mark.parametrize(
    ("format", "policies"),
    [
        ("qwen3_thinking", {}),
        ("qwen3", {"start": "thinking"}),
        ("qwen3", {"prompt": "<|im_start|>assistant\n<think>\n"}),
        ("qwen3", {"start": "undecided"}),
    ],
)
def test_text_behind_a_call_of_the_upstream_is_the_answer(format: str, policies: dict[str, Any]) -> None:
    """Where the output begins in a thought, the text behind such a call does not begin in one again."""
    own = get_format(format)

    def make(found: Format) -> Parser:
        return Parser(found, **(policies if found is own else {}))

    behind: list[Chunk] = [CallChunk(0, 0, "c1", "open", "{}"), RawText(0, "c <think>d</think>"), Ended(0)]
    before: list[Chunk] = [RawText(0, "a</think>b")]
    for first in (before, []):
        splitter, fold = Splitter(own, make), Fold()
        for item in [item for chunk in first + behind for item in splitter.feed(chunk)]:
            fold.add(item)
        kinds = [type(part).__name__ for part in fold.reply.parts]
        assert kinds == [*(["Thinking", "Text"] if first else []), "ToolCall", "Text", "Thinking"]
        assert fold.reply.text.endswith("c")
