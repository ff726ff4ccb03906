"""The parser as a caller meets it: what it returns, what it refuses, what can be asked of it while it reads."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import asides
from asides import (
    Format,
    Notice,
    Parser,
    PartEnd,
    PartStart,
    StrictError,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    UnknownFormatError,
    UsageError,
)
from asides._engine.calls.ids import seed_of
from asides._engine.markers import compile_tables
from asides.events import Event
from asides.policies import Start
from tests.support import joined, run

CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'


def codes(message: asides.Message) -> list[str]:
    """The codes of a message's notices."""
    return [notice.code for notice in message.notices]


# Feeding and finishing.


def test_the_events_of_a_stream() -> None:
    parser = Parser("qwen3")
    assert parser.feed("<think>a") == [PartStart(0, "thinking"), ThinkingDelta(0, "a")]
    assert parser.feed("b") == [ThinkingDelta(0, "b")]
    assert parser.feed("</think>\n\nc") == [
        PartEnd(0, True, None, (7, 9)),
        PartStart(1, "text"),
        TextDelta(1, "c"),
    ]
    assert parser.finish() == [PartEnd(1, True, None, (19, 20))]


def test_the_events_of_a_call() -> None:
    events = joined([*(parser := Parser("qwen3", start="text")).feed("a\n" + CALL), *parser.finish()])
    assert events == [
        PartStart(0, "text"),
        TextDelta(0, "a"),
        PartEnd(0, True, None, (0, 1)),
        PartStart(1, "tool_call", name="f", id=parser.message.tool_calls[0].id),
        ToolCallDelta(1, '{"a": 1}'),
        PartEnd(1, True, None, (2, 2 + len(CALL))),
    ]


def test_arguments_stream_before_the_call_ends() -> None:
    parser = Parser("qwen3", start="text")
    parser.feed('<tool_call>{"name": "f", "arguments": {"a": "')
    assert ToolCallDelta(0, "some words") in parser.feed("some words")


def test_an_empty_chunk_tells_nothing() -> None:
    parser = Parser("qwen3")
    assert parser.feed("") == []
    parser.feed("<think>a")
    assert parser.feed("") == []
    assert parser.finish() != []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"<think>a</think>b", "a model's output is text (str), not bytes; decode it first"),
        (b"", "a model's output is text (str), not bytes; decode it first"),
        (0, "a model's output is text (str), not int"),
        (
            {"choices": []},
            "a model's output is text (str), not dict; "
            "asides.openai, asides.anthropic and asides.ollama read what SDKs give",
        ),
    ],
)
def test_what_is_no_text_is_refused(given: Any, message: str) -> None:
    """In our own words; a kind of text of one's own is text."""
    for read in (asides.parse, asides.clean, asides.Parser().feed, lambda chunk: list(asides.split([chunk]))):
        with pytest.raises(asides.UsageError, match=f"^{re.escape(message)}$"):
            read(given)

    class Own(str):
        pass

    assert asides.parse(Own("<think>a</think>b")).text == "b"


@pytest.mark.parametrize("nothing", ["", None])
def test_a_chunk_without_text_changes_nothing(nothing: str | None) -> None:
    """At every place of a stream: servers send a delta without content at its end, and between a thought and a call."""
    chunks = [*"<think>a b</think> c\n", '<tool_call>{"name": "f", "arguments": {"a": "', "b", "c", '"}}</tool_call>']
    plain = list(asides.split(chunks, "qwen3", seed=0))
    assert list(asides.split([each for chunk in chunks for each in (nothing, chunk)], "qwen3", seed=0)) == plain

    async def stream() -> AsyncIterator[str | None]:
        for chunk in chunks:
            yield chunk
            yield nothing

    async def read() -> list[asides.Event]:
        return [event async for event in asides.asplit(stream(), "qwen3", seed=0)]

    assert asyncio.run(read()) == plain
    parser = Parser("qwen3")
    parser.finish()
    with pytest.raises(UsageError, match="finish"):
        parser.feed(nothing)


def test_none_as_a_whole_output_is_refused() -> None:
    """Nobody knows what was meant: the content of a reply that is calls alone, or a mistake."""
    with pytest.raises(UsageError, match=r"text \(str\), not NoneType"):
        asides.parse(None)  # type: ignore[arg-type]  # the mistake


def test_feed_after_finish_is_refused() -> None:
    parser = Parser("qwen3")
    parser.feed("a")
    parser.finish()
    with pytest.raises(UsageError, match="finish"):
        parser.feed("b")
    with pytest.raises(UsageError, match="finish"):
        parser.feed("")


def test_a_second_finish_returns_nothing() -> None:
    parser = Parser("qwen3")
    parser.feed("<think>a")
    assert parser.finish()
    assert parser.finish() == []
    assert codes(parser.message) == ["unclosed_thinking"]


def test_finish_without_feed() -> None:
    parser = Parser("qwen3")
    assert parser.finish() == []
    assert parser.message == asides.Message()


def test_events_come_as_soon_as_they_are_certain() -> None:
    parser = Parser("qwen3", start="text")
    assert parser.feed("Hello") == [PartStart(0, "text"), TextDelta(0, "Hello")]
    assert parser.feed(" wor") == [TextDelta(0, " wor")]
    assert parser.feed("ld <") == [TextDelta(0, "ld")]
    assert parser.feed("b") == [TextDelta(0, " <b")]


def test_returned_lists_belong_to_the_caller() -> None:
    parser = Parser("qwen3", start="text")
    first = parser.feed("a<think>b")
    copy = list(first)
    parser.feed("c</think>d")
    assert first == copy
    first.clear()
    parser.finish()
    assert parser.message.text == "ad"


def test_two_choices_interleaved() -> None:
    texts = ("<think>a</think>b" + CALL, "c<think>d</think>e</think>f")
    parsers = [Parser("qwen3", start="text", seed=0) for _ in texts]
    events: list[list[Event]] = [[], []]
    for place in range(max(map(len, texts))):
        for number, text in enumerate(texts):
            events[number] += parsers[number].feed(text[place : place + 1])
    for number, text in enumerate(texts):
        events[number] += parsers[number].finish()
        alone = run("qwen3", (text,), start="text")
        assert joined(events[number]) == alone.events
        assert parsers[number].message == alone.message


def test_a_format_may_be_given_as_such() -> None:
    format = Format.tags("<a>", "</a>")
    assert asides.parse("x<a>y</a>z", format).parts == (
        Text("x", (0, 1)),
        Thinking("y", True, (4, 5)),
        Text("z", (9, 10)),
    )


def test_a_format_that_nobody_knows() -> None:
    with pytest.raises(UnknownFormatError) as caught:
        Parser("qwen33")
    assert "qwen3" in caught.value.near
    assert "qwen3" in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, asides.Error)


# The whole text.


def test_a_lone_close_shows_where_the_output_began() -> None:
    assert asides.parse("a</think>b", "qwen3").thinking == "a"
    for retype, thinking in ((None, "a"), (False, "")):
        message = run("qwen3", ("a</think>b",), retype=retype).message
        assert message is not None
        assert message.thinking == thinking


def test_parse_and_parser_agree_with_the_same_start() -> None:
    for start in ("text", "thinking", "undecided"):
        assert asides.parse("a</think>b", "qwen3", start=start) == run("qwen3", ("a</think>b",), start=start).message


def test_clean_is_the_answer_alone() -> None:
    assert asides.clean("<think>2+2</think>\n\nIt is 4.", "qwen3") == "It is 4."


def test_split_yields_the_events() -> None:
    chunks = ["<think>a</th", "ink>b"]
    assert joined(asides.split(chunks, "qwen3")) == run("qwen3", chunks).events


def test_split_yields_as_it_reads() -> None:
    def chunks() -> Any:
        yield "<think>a"
        raise RuntimeError("nobody asked for more")

    events = asides.split(chunks(), "qwen3")
    assert next(events) == PartStart(0, "thinking")
    assert next(events) == ThinkingDelta(0, "a")


def test_asplit_yields_the_same() -> None:
    async def chunks() -> AsyncIterator[str]:
        for chunk in ("<think>a</th", "ink>b"):
            yield chunk

    async def gather() -> list[Event]:
        return [event async for event in asides.asplit(chunks(), "qwen3")]

    assert joined(asyncio.run(gather())) == run("qwen3", ("<think>a</think>b",)).events


def test_what_is_held_back_comes_before_the_error_of_a_stream() -> None:
    def chunks() -> Iterator[str]:
        yield "<think>a</think>b <thi"
        raise ConnectionError("gone")

    async def later() -> AsyncIterator[str]:
        for chunk in chunks():
            yield chunk

    async def read() -> None:
        async for event in asides.asplit(later(), "qwen3"):
            seen.append(event)

    expected = run("qwen3", ("<think>a</think>b <thi",)).events
    seen: list[Event] = []
    with pytest.raises(ConnectionError):
        seen.extend(asides.split(chunks(), "qwen3"))
    assert joined(seen) == expected
    seen.clear()
    with pytest.raises(ConnectionError):
        asyncio.run(read())
    assert joined(seen) == expected
    # Strictness is an error of its own: nothing follows it.
    with pytest.raises(StrictError):
        list(asides.split(["a</think>b"], "qwen3", strict=True))


# The message.


def test_a_message() -> None:
    message = asides.parse(f"<think>a</think>b\n{CALL}<|im_end|>", "qwen3")
    assert message.raw == f"<think>a</think>b\n{CALL}<|im_end|>"
    assert [type(part) for part in message.parts] == [Thinking, Text, ToolCall]
    assert (message.thinking, message.text) == ("a", "b")
    assert message.tool_calls == (message.parts[2],)
    assert message.complete
    assert message.termination == "stop"
    assert message.notices == ()


def test_spans_are_half_open_and_point_into_the_raw_text() -> None:
    message = asides.parse(f"<think> a </think> b {CALL} c", "qwen3")
    for part in message.parts:
        start, end = part.span
        assert message.raw[start:end] == (part.raw if isinstance(part, ToolCall) else part.text)
    assert [part.span for part in message.parts] == [
        (8, 9),
        (19, 20),
        (21, 21 + len(CALL)),
        (22 + len(CALL), 23 + len(CALL)),
    ]


@pytest.mark.parametrize(
    ("text", "complete", "termination"),
    [
        ("", True, "end"),
        ("a", True, "end"),
        ("a<|im_end|>", True, "stop"),
        ("<think>a", False, "cut"),
        ("<think>a<|im_end|>", False, "stop"),
        ("<think>a</think>", True, "end"),
        (CALL, True, "end"),
        (CALL[:-30], False, "cut"),
        (CALL[: -len("</tool_call>")], True, "end"),
        ("<think>a<|im_end|>b", True, "stop"),
    ],
)
def test_complete_and_termination(text: str, complete: bool, termination: str) -> None:
    message = asides.parse(text, "qwen3")
    assert (message.complete, message.termination) == (complete, termination)


def test_a_message_before_the_end_is_a_snapshot() -> None:
    parser = Parser("qwen3")
    parser.feed("<think>a b")
    first = parser.message
    assert first.parts == (Thinking("a b", False, (7, 10)),)
    assert first.raw == "<think>a b"
    assert first.termination == "cut"
    assert not first.complete
    parser.feed("c</think>d")
    assert first.parts == (Thinking("a b", False, (7, 10)),)
    second = parser.message
    assert second.thinking == "a bc"
    assert second.text == "d"
    assert second.termination == "end"
    parser.finish()
    assert parser.message.parts == (Thinking("a bc", True, (7, 11)), Text("d", (19, 20)))


def test_a_snapshot_holds_only_what_was_told() -> None:
    parser = Parser("qwen3", start="text")
    parser.feed("a <thi")
    assert parser.message.raw == "a <thi"
    assert parser.message.text == "a"


def test_a_snapshot_inside_a_call() -> None:
    parser = Parser("qwen3", start="text")
    parser.feed('a<tool_call>{"name": "f", "arguments": {"a": ')
    call = parser.message.tool_calls[0]
    assert (call.name, call.complete, call.error) == ("f", False, "incomplete")
    assert '{"a": '.startswith(call.arguments)
    assert call.arguments.startswith('{"a"')


def test_to_dict_without_thinking_is_a_plain_string() -> None:
    assert asides.parse("a", "qwen3").to_dict() == {"role": "assistant", "content": "a"}


def test_to_dict_with_thinking_is_a_list() -> None:
    assert asides.parse("<think>a</think>b", "qwen3").to_dict() == {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "a"}, {"type": "text", "text": "b"}],
    }


def test_to_dict_holds_only_calls_that_may_be_run() -> None:
    message = asides.parse(f"a{CALL}<tool_call>junk</tool_call>", "qwen3")
    good, bad = message.tool_calls
    assert message.to_dict() == {
        "role": "assistant",
        "content": "a",
        "tool_calls": [{"id": good.id, "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
        "unparsed_tool_calls": [{"raw": "<tool_call>junk</tool_call>", "error": bad.error}],
    }


def test_to_dict_of_nothing() -> None:
    assert asides.parse("", "qwen3").to_dict() == {"role": "assistant", "content": ""}


# Gaps.


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("a<think>b</think>c", "ac"),
        ("a <think>b</think>c", "a c"),
        ("a<think>b</think>\nc", "a\nc"),
        ("a\n\n<think>b</think>\nc", "a\n\nc"),
        ("a\t\t<think>b</think>  c", "a\t\tc"),
        ("a    <think>b</think>\nc", "a\nc"),
        ("a\n<think>b</think> <think>c</think>\n\nd", "a\n\nd"),
        (f"a\n{CALL}\n\n{CALL}\nb", "a\n\nb"),
    ],
)
def test_the_gap_is_the_widest_run_between_two_texts(text: str, whole: str) -> None:
    message = asides.parse(text, "qwen3")
    assert message.text == whole
    events = run("qwen3", (text,), start="undecided").events
    assert "".join(_with_gaps(events, "text")) == whole


def _with_gaps(events: list[Event], kind: str) -> list[str]:
    """What a stream that is written with gaps holds."""
    written = []
    indexes = set()
    for event in events:
        if isinstance(event, PartStart) and event.kind == kind:
            written.append(event.gap)
            indexes.add(event.index)
        elif isinstance(event, TextDelta | ThinkingDelta) and event.index in indexes:
            written.append(event.text)
    return written


def test_the_gap_of_thinking_is_an_empty_line() -> None:
    text = "<think>a</think><think>b</think>c<think>d</think>"
    message = asides.parse(text, "qwen3")
    assert message.thinking == "a\n\nb\n\nd"
    assert "".join(_with_gaps(run("qwen3", (text,)).events, "thinking")) == "a\n\nb\n\nd"


def test_with_exact_whitespace_every_gap_is_empty() -> None:
    events = run("qwen3", ("a\n<think>b</think>\n<think>c</think>d",), whitespace="exact").events
    assert all(event.gap == "" for event in events if isinstance(event, PartStart))


def test_separate_messages_have_an_empty_line_between_them() -> None:
    text = "<|channel|>commentary<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>"
    assert asides.parse(text, "harmony").text == "a\n\nb"


# Strictness.


def test_strict_raises_at_any_notice() -> None:
    parser = Parser("qwen3", strict=True, start="text")
    with pytest.raises(StrictError) as caught:
        parser.feed("a</think>b")
    assert caught.value.notice.code == "stray_close"
    assert caught.value.notice.offset == 1
    assert caught.value.events == (
        PartStart(0, "text"),
        TextDelta(0, "a"),
        PartEnd(0, True, None, (0, 1)),
        caught.value.notice,
    )
    assert "stray_close" in str(caught.value)


def test_strict_with_some_codes_raises_at_these_alone() -> None:
    parser = Parser("qwen3", strict={"unclosed_thinking"}, start="text")
    events = parser.feed("a</think>b<think>c")
    assert any(isinstance(event, Notice) and event.code == "stray_close" for event in events)
    with pytest.raises(StrictError) as caught:
        parser.finish()
    assert caught.value.notice.code == "unclosed_thinking"


def test_strict_without_codes_is_not_strict() -> None:
    lenient: list[Any] = [False, set(), ()]
    for strict in lenient:
        assert codes(asides.parse("a<|im_end|>b", "qwen3", strict=strict)) == ["after_stop"]


def test_a_parser_that_raised_is_finished() -> None:
    parser = Parser("qwen3", strict=True, start="text")
    with pytest.raises(StrictError):
        parser.feed("a</think>b")
    with pytest.raises(UsageError):
        parser.feed("c")
    assert parser.finish() == []


def test_strict_with_nothing_odd() -> None:
    assert asides.parse(f"<think>a</think>b{CALL}<|im_end|>", "qwen3", strict=True).text == "b"


def test_parse_raises_too() -> None:
    with pytest.raises(StrictError):
        asides.parse("<think>a", "qwen3", strict=True)


# What may not be asked for.


@pytest.mark.parametrize(
    "policies",
    [
        {"start": "middle"},
        {"start": "THINKING"},
        {"mentions": "quoted"},
        {"whitespace": "strip"},
        {"calls_in_thinking": "sometimes"},
        {"limit": 0},
        {"limit": -1},
        {"strict": {"no_such_code"}},
        {"strict": ["stray_close", "no_such_code"]},
    ],
    ids=str,
)
def test_a_policy_that_does_not_exist_is_refused(policies: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        Parser("qwen3", **policies)
    assert next(iter(policies)) in str(caught.value)


def test_a_code_in_place_of_a_set_of_codes_is_refused() -> None:
    with pytest.raises(UsageError):
        Parser("qwen3", strict="stray_close")


# The limit.


def test_the_limit_counts_from_where_holding_began() -> None:
    words = "0123456789abcdef"
    assert asides.parse("01234567</think>b", "qwen3", limit=16).thinking == "01234567"
    message = asides.parse(f"{words}{words}</think>b", "qwen3", limit=16)
    assert message.thinking == ""
    assert codes(message) == ["limit", "stray_close"]


def test_past_the_limit_text_flows() -> None:
    parser = Parser("qwen3", start="undecided", limit=16)
    assert parser.feed("0123456789") == []
    assert parser.held == 10
    told = joined(parser.feed("0123456789"))
    assert told[:2] == [told[0], PartStart(0, "text")]
    assert isinstance(told[0], Notice)
    assert told[0].code == "limit"
    assert parser.held < 10
    assert parser.feed("x") == [TextDelta(0, "x")]


def test_the_limit_does_not_touch_what_flows() -> None:
    long = "word " * 100
    assert codes(asides.parse(f"<think>{long}</think>{long}", "qwen3", limit=16)) == []


# Without collecting.


def test_without_collecting_there_is_no_message() -> None:
    parser = Parser("qwen3", collect=False)
    parser.feed("a")
    with pytest.raises(UsageError, match="collect"):
        _ = parser.message
    parser.finish()
    with pytest.raises(UsageError, match="collect"):
        _ = parser.message


@pytest.mark.parametrize(
    "text", ["<think>a </think> b", "a</think>b", f"x <think>{CALL} no</think>y {CALL}", "  <think>"]
)
@pytest.mark.parametrize("start", ["text", "thinking", "undecided"])
def test_without_collecting_the_events_are_the_same(text: str, start: Start) -> None:
    expected = run("qwen3", (text,), start=start).events
    for chunks in ([text], list(text)):
        parser = Parser("qwen3", start=start, collect=False, seed=0)
        events = [event for chunk in chunks for event in parser.feed(chunk)]
        assert joined([*events, *parser.finish()]) == expected


# What can be asked while it reads.


def test_held_counts_what_is_held_back() -> None:
    parser = Parser("qwen3", start="text")
    assert parser.held == 0
    parser.feed("Hello")
    assert parser.held == 0
    parser.feed("<thi")
    assert parser.held == 4
    parser.feed("s")
    assert parser.held == 0
    parser.feed(" \n ")
    assert parser.held == 3
    parser.finish()
    assert parser.held == 0


def test_held_counts_an_undecided_start() -> None:
    parser = Parser("qwen3", start="undecided")
    parser.feed("Hello")
    assert parser.held == 5
    parser.feed("<think>")
    assert parser.held == 0


def test_held_counts_a_possible_draft() -> None:
    parser = Parser("qwen3", start="thinking")
    parser.feed("a" + CALL)
    assert parser.held == len(CALL)
    parser.feed("b")
    assert parser.held == 0


def test_state_says_where_the_next_word_goes() -> None:
    parser = Parser("qwen3", start="undecided")
    states = [parser.state]
    chunks = ("a<think>", "b</think>", '<tool_call>{"name": "f", "arguments": {', "}}</tool_call>", "<|im_end|>", "c")
    for chunk in chunks:
        parser.feed(chunk)
        states.append(parser.state)
    assert states == ["undecided", "thinking", "text", "call", "text", "ended", "text"]


def test_state_at_the_start() -> None:
    assert Parser("qwen3").state == "text"
    assert Parser("qwen3", start="thinking").state == "thinking"
    assert Parser("qwen3_thinking").state == "thinking"


# Prompts.


@pytest.mark.parametrize(
    ("prompt", "state"),
    [("hi <a>", "thinking"), ("hi <a>\n", "thinking"), ("<a> hi", "text"), ("<a>x</a>", "text"), ("", "text")],
)
def test_without_an_assistant_header_only_the_end_of_a_prompt_counts(prompt: str, state: str) -> None:
    assert Parser(Format.tags("<a>", "</a>"), prompt=prompt).state == state


def test_the_state_is_read_off_what_follows_the_last_header() -> None:
    header = "<|im_start|>assistant\n"
    assert Parser("qwen3", prompt=f"{header}<think>a</think>b{header}<think>c").state == "thinking"
    assert Parser("qwen3", prompt=f"{header}<think>a{header}b").state == "text"


# Ids.


def test_ids_depend_on_the_seed_and_the_index_alone() -> None:
    first = [call.id for call in asides.parse(CALL + CALL, "qwen3", seed=0).tool_calls]
    again = [call.id for call in asides.parse(CALL + CALL, "qwen3", seed=0).tool_calls]
    other = [call.id for call in asides.parse(CALL + CALL, "qwen3", seed=1).tool_calls]
    assert first == again
    assert len({*first, *other}) == 4


@pytest.mark.parametrize("name", ["qwen3", "mistral"])
def test_without_a_seed_no_two_calls_share_an_id(name: str) -> None:
    """Two replies of a conversation must not: servers refuse the second, or take it for the first."""
    call = CALL if name == "qwen3" else '[TOOL_CALLS][{"name": "f", "arguments": {}}]'
    ids = [each.id for _ in range(20) for each in asides.parse(call, name).tool_calls]
    ids += [event.id for _ in range(20) for event in asides.split([call], name) if isinstance(event, PartStart)]
    assert len(set(ids)) == len(ids) == 40
    assert len(set(map(len, ids))) == 1, "they have the shape that the format wants"


def test_the_same_output_in_the_same_place_has_the_same_seed() -> None:
    assert seed_of(CALL) == seed_of(CALL, 0)
    assert len({seed_of(CALL), seed_of(CALL, 1), seed_of(CALL + " ")}) == 3
    assert seed_of("\ud800") != seed_of("?"), "half a surrogate pair is text too"


# Logging.


def test_each_transition_is_logged_with_its_offset(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="asides"):
        asides.parse("<think>a</think>b", "qwen3")
    lines = [record.getMessage() for record in caplog.records if record.name == "asides"]
    assert any("<think>" in line and "0" in line for line in lines)
    assert any("</think>" in line and "8" in line for line in lines)


def test_without_collecting_a_repeated_argument_is_compared() -> None:
    text = "[f(a=(1, 'x'), b=2, a=(1, 'x'))]"
    expected = joined(asides.split([text], "pythonic", seed=0))
    assert joined(asides.split(text, "pythonic", collect=False, seed=0)) == expected
    assert "duplicate_argument" in {event.code for event in expected if isinstance(event, asides.Notice)}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("harmony", "<|channel|>commentary to=functions.f<|message|>[1]" + " " * 40 + "<|call|>"),
        ("harmony", '<|channel|>commentary to=functions.f<|message|>{"a": 1, b}' + "\n" * 9 + "<|call|>"),
        ("qwen3", '<tool_call>{"name": "f", "arguments": {"a": 1}, 7' + " " * 30 + "<|im_end|>"),
        ("lfm2", '<|tool_call_start|>[f(a="x" 7' + " " * 30 + "<|im_end|>"),
    ],
)
def test_without_collecting_a_broken_call_stands_where_it_stood(name: str, text: str) -> None:
    whole = [event for event in asides.split([text], name) if isinstance(event, PartEnd)]
    kept = [event for event in asides.split(text, name, collect=False) if isinstance(event, PartEnd)]
    assert whole == kept


def test_without_collecting_a_draft_that_has_named_an_argument_is_given_back_whole() -> None:
    text = "<|channel><|tool_call>call:f{a:zebra7}<tool_call|>zebra7"
    assert joined(asides.split(list(text), "gemma4", collect=False)) == run("gemma4", (text,)).events


def test_in_a_string_of_a_call_only_what_may_begin_a_marker_is_held() -> None:
    """Its first character at the end of a chunk waits; with another character behind it, nothing does."""
    parser = Parser("mistral", collect=False)
    parser.feed('[TOOL_CALLS]f[ARGS]{"a": "x')
    told = [parser.feed(chunk) for chunk in ("a[", "[", "i] b", "<", "p>[/", "TOOL", '"}')]
    texts = ["".join(event.text for event in events if isinstance(event, ToolCallDelta)) for events in told]
    assert texts == ["a", "[", "[i] b", "", "<p>", "", '[/TOOL"}']


def test_a_leading_marker_behind_words_hides_no_marker_that_it_begins_with() -> None:
    format = asides.Format(
        name="custom",
        states={"text": {"b<": "thinking", "b": "text"}, "thinking": {"</b": "text"}},
        leading=frozenset({"b<"}),
    )
    for chunks in (["ab<c"], list("ab<c")):
        parser = Parser(format)
        for chunk in chunks:
            parser.feed(chunk)
        parser.finish()
        assert [part.text for part in parser.message.parts if isinstance(part, asides.Text)] == ["a", "<c"]


def test_a_thought_behind_a_broken_call_is_another_thought() -> None:
    """What was interrupted by a marker that means nothing does not go on behind a call, whatever became of the call."""
    text = "a</co> b<|START_ACTION|>7<|END_ACTION|>c"
    message = asides.parse(text, "cohere", start="thinking", calls_in_thinking="always")
    assert message.thinking == "a b\n\nc"


@pytest.mark.parametrize("name", ["qwen3", "qwen3.5", "auto", "harmony"])
def test_a_prompt_makes_no_table_anew(name: str) -> None:
    """Tables take milliseconds: every prompt of a format is read with the same ones."""
    asides.parse("a", name, prompt="<|im_start|>assistant\n<think>\n")
    before = compile_tables.cache_info().misses
    for number in range(3):
        asides.parse("a", name, prompt=f"{number}<|im_start|>assistant\n<think>\n")
    assert compile_tables.cache_info().misses == before


def test_events_and_parts_are_shown_without_what_is_usual() -> None:
    """A person reads them at a prompt."""
    assert repr(list(asides.split(["<think>a</think>b"], "qwen3"))) == (
        "[PartStart(index=0, kind='thinking'), ThinkingDelta(index=0, text='a'), PartEnd(index=0, span=(7, 8)), "
        "PartStart(index=1, kind='text'), TextDelta(index=1, text='b'), PartEnd(index=1, span=(16, 17))]"
    )
    assert repr(asides.parse("<think>a").parts[0]) == "Thinking(text='a', complete=False, span=(7, 8))"
