"""Calls whose name stands in a header: sections, ids, and bodies that a message header has named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides import Format, Message, ToolCall
from asides._engine.calls.named_calls import NamedCalls
from asides._engine.format import END, HEADER, OUTSIDE, TEXT, THINKING, Header
from asides.families._deepseek import V3_CALLS as DEEPSEEK_V3
from asides.families._deepseek import V31_CALLS as DEEPSEEK_V31
from asides.families._harmony import HARMONY_BODY
from asides.families._kimi import K2_CALLS as KIMI_K2
from asides.families._mistral import MISTRAL_LIST, MISTRAL_NAMED
from tests.engine.calls.reading import TOOLS, call_of, check_linear, codes, deltas, read, shown
from tests.support import characters, check_chunking, check_kept, every_place, run

F = ("f", {"a": 1})
G: tuple[str, dict[str, object]] = ("g", {})


def kimi(*calls: tuple[str, str]) -> str:
    """Calls as Kimi writes them, in a section."""
    inner = "".join(
        f"<|tool_call_begin|>{header}<|tool_call_argument_begin|>{body}<|tool_call_end|>" for header, body in calls
    )
    return f"<|tool_calls_section_begin|>{inner}<|tool_calls_section_end|>"


def deepseek(*calls: tuple[str, str]) -> str:
    """Calls as DeepSeek V3.1 writes them."""
    inner = "".join(f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{body}<｜tool▁call▁end｜>" for name, body in calls)
    return f"<｜tool▁calls▁begin｜>{inner}<｜tool▁calls▁end｜>"


def fenced(*calls: tuple[str, str]) -> str:
    """Calls as DeepSeek V3 writes them."""
    inner = "\n".join(
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{body}\n```<｜tool▁call▁end｜>"
        for name, body in calls
    )
    return f"<｜tool▁calls▁begin｜>{inner}<｜tool▁calls▁end｜>"


EXAMPLES: list[tuple[NamedCalls, str, list[object]]] = [
    (KIMI_K2, "hi " + kimi(("functions.f:0", '{"a":1}'), ("functions.g:1", "{}")) + " ok", ["hi", F, G, "ok"]),
    (KIMI_K2, kimi(("functions.f:0", ' {"a": 1}\n')).replace("tool_calls_", "tool_call_"), [F]),
    (KIMI_K2, '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a":1}<|tool_call_end|>', [F]),
    (DEEPSEEK_V31, deepseek(("f", '{"a":1}'), ("g", "{}")), [F, G]),
    (DEEPSEEK_V3, fenced(("f", '{"a":1}'), ("g", "{}")), [F, G]),
    (MISTRAL_NAMED, '[TOOL_CALLS]f[ARGS]{"a":1}[TOOL_CALLS]g[ARGS]{}', [F, G]),
    (MISTRAL_NAMED, 'ok[TOOL_CALLS]f{"a":1}', ["ok", F]),
]


@pytest.mark.parametrize(("syntax", "text", "expected"), EXAMPLES)
def test_every_syntax_reads_its_example(syntax: NamedCalls, text: str, expected: list[object]) -> None:
    message = read(text, syntax)
    assert shown(message) == expected
    assert codes(message) == []


def test_syntaxes_that_share_an_opener_tell_themselves_apart() -> None:
    mistral = (MISTRAL_NAMED, MISTRAL_LIST)
    for text in ('[TOOL_CALLS]f[ARGS]{"a":1}', '[TOOL_CALLS] [{"name":"f","arguments":{"a":1}}]'):
        assert shown(read(text, *mistral)) == [F]
    deepseeks = (DEEPSEEK_V3, DEEPSEEK_V31)
    for text in (fenced(("f", '{"a":1}')), deepseek(("f", '{"a":1}'))):
        assert shown(read(text, *deepseeks)) == [F]
    assert shown(read(deepseek(("function", '{"a":1}')), *deepseeks)) == [("function", {"a": 1})]


def test_raw_leaves_the_section_out() -> None:
    one = '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a":1}<|tool_call_end|>'
    text = f"<|tool_calls_section_begin|>\n{one}\n<|tool_calls_section_end|>"
    assert call_of(text, KIMI_K2).raw == one
    assert call_of('[TOOL_CALLS]f[ARGS]{"a":1}', MISTRAL_NAMED).raw == '[TOOL_CALLS]f[ARGS]{"a":1}'


# Names and ids.


@pytest.mark.parametrize(
    ("header", "name", "id"),
    [
        ("functions.f:0", "f", "functions.f:0"),
        (" functions.f:12 ", "f", "functions.f:12"),
        ("f:3", "f", "f:3"),
        ("f", "f", "functions.f:0"),
        ("functions.a.b-c:d:0", "a.b-c:d", "functions.a.b-c:d:0"),
        ("functions.größe:0", "größe", "functions.größe:0"),
    ],
)
def test_kimi_ids_hold_the_name(header: str, name: str, id: str) -> None:
    call = call_of(kimi((header, "{}")), KIMI_K2)
    assert (call.name, call.id, call.error) == (name, id, None)


def test_an_id_without_a_name_means_the_only_tool() -> None:
    for counter in ("3", "call00003"):
        text = kimi((counter, '{"a":1}'))
        call = call_of(text, KIMI_K2)
        assert (call.name, call.id, call.arguments, call.error) == ("", counter, '{"a":1}', "no_name")
        assert call_of(text, KIMI_K2, tools=TOOLS).error == "no_name"
        assert shown(read(text, KIMI_K2, tools=TOOLS[:1])) == [F]


def test_mistral_ids() -> None:
    call = call_of('[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"a":1}', MISTRAL_NAMED)
    assert (call.name, call.id) == ("f", "abcdefghi")
    made = call_of('[TOOL_CALLS]f[ARGS]{"a":1}', MISTRAL_NAMED)
    assert len(made.id) == 9
    assert made.id.isalnum()


# Arguments.


def test_arguments_are_kept_and_stream() -> None:
    arguments = '{"a": "<|tool_call_end|> \\ud83d\\ude00", "b": [1, {"c": null}]}'
    assert call_of(kimi(("f:0", arguments)), KIMI_K2).arguments == arguments
    told = deltas('<|tool_call_begin|>f:0<|tool_call_argument_begin|>{"a": "some wor', KIMI_K2)
    assert "".join(told) == '{"a": "some wor'


@pytest.mark.parametrize(
    ("body", "arguments", "error"),
    [
        ("", "{}", None),
        (" \n", "{}", None),
        ("null", "{}", None),
        (r'"{\"a\": 1}"', '{"a": 1}', None),
        ('{"a": 1,}', '{"a": 1,}', "invalid_json"),
        ("{'a': 1}", "{'a': 1}", "invalid_json"),
        ('{"a": 1', '{"a": 1', "invalid_json"),
        ("[1]", "", "not_object"),
        ("hello world", "", "invalid_json"),
    ],
)
def test_odd_arguments(body: str, arguments: str, error: str | None) -> None:
    text = kimi(("functions.f:0", body), ("functions.g:1", "{}"))
    message = read(text, KIMI_K2)
    call = message.tool_calls[0]
    assert (call.name, call.arguments, call.error) == ("f", arguments, error)
    assert shown(message)[1:] == [G]
    body_calls = read(deepseek(("f", body), ("g", "{}")), DEEPSEEK_V31).tool_calls
    assert [call.error for call in body_calls] == [error, None]


def test_a_fence_inside_a_string_is_no_end() -> None:
    assert shown(read(fenced(("f", '{"a": "```"}')), DEEPSEEK_V3)) == [("f", {"a": "```"})]


def test_a_fence_may_be_missing() -> None:
    text = '<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n{"a":1}<｜tool▁call▁end｜>'
    assert shown(read(text, DEEPSEEK_V3)) == [F]


# What is broken.


def test_a_whole_call_needs_no_end() -> None:
    text = '<|tool_call_begin|>f:0<|tool_call_argument_begin|>{"a":1}'
    message = read(text, KIMI_K2)
    assert shown(message) == [F]
    assert codes(message) == ["missing_close"]
    message = read(f"<|tool_calls_section_begin|>{text}<|tool_calls_section_end|> ok", KIMI_K2)
    assert shown(message) == [F, "ok"]
    assert codes(message) == ["missing_close"]


def test_a_section_that_never_ends() -> None:
    text = kimi(("f:0", '{"a":1}')).removesuffix("<|tool_calls_section_end|>")
    assert shown(read(text, KIMI_K2)) == [F]
    assert shown(read(text + " and on", KIMI_K2)) == [F, "and on"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<|tool_call_begin|>f and more<|tool_call_end|> ok", [("", "", "unreadable"), "ok"]),
        ("<|tool_call_begin|>f and more", ["<|tool_call_begin|>f and more"]),
        ("<|tool_calls_section_begin|>words", ["<|tool_calls_section_begin|>words"]),
        ("<|tool_call_begin|>functions.f", [("", "", "incomplete")]),
        ("<|tool_call_begin|>f:0<|tool_call_argument_begin|>", [("f", "", "incomplete")]),
        ('<|tool_call_begin|>f:0<|tool_call_argument_begin|>{"a', [("f", '{"a', "incomplete")]),
        ("<|tool_call_begin|>" + "n" * 1500 + "<|tool_call_end|>", [("", "", "unreadable")]),
        (
            kimi(("f x", "{}"), ("g:1", "{}")),
            [("", "", "unreadable"), G],
        ),
    ],
)
def test_broken_calls(text: str, expected: list[object]) -> None:
    assert shown(read(text, KIMI_K2)) == expected


def test_prose_about_the_marker_stays_prose() -> None:
    for text in ("write [TOOL_CALLS] and then a name", "[TOOL_CALLS]", "[TOOL_CALLS] f, g"):
        message = read(text + "<|im_end|>", MISTRAL_NAMED, MISTRAL_LIST)
        assert message.text == text


# Bodies of messages to a tool.

HARMONY = Format(
    name="messages",
    start=HEADER,
    states={
        TEXT: {"<|end|>": OUTSIDE, "<|return|>": END, "<|call|>": END, "<|start|>": HEADER, "<|channel|>": HEADER},
        THINKING: {"<|end|>": OUTSIDE, "<|return|>": END, "<|call|>": END, "<|start|>": HEADER, "<|channel|>": HEADER},
        HEADER: {"<|constrain|>": HEADER},
    },
    header=Header(
        channels={"analysis": THINKING, "commentary": TEXT, "final": TEXT},
        channel_marker="<|channel|>",
        type_marker="<|constrain|>",
        body="<|message|>",
        calls=(HARMONY_BODY,),
    ),
)


def harmony(text: str) -> Message:
    """What a message to a tool means, however it is cut."""
    outcome = check_chunking(HARMONY, text, [*every_place(text), characters(text)], {})
    check_kept(HARMONY, text, outcome, {})
    assert outcome.message is not None
    return outcome.message


def body(text: str, name: str = "functions.f") -> str:
    """A message to a tool, without its end."""
    return f"<|channel|>commentary to={name} <|constrain|>json<|message|>{text}"


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ('{"a": 1}', '{"a": 1}'),
        (' {"a": "<|call|> <|end|>"} ', '{"a": "<|call|> <|end|>"}'),
        ("{}", "{}"),
        ("", "{}"),
        ("print(1)\n", '{"input": "print(1)"}'),
        ('x = {"a": 1}\n\ny = "\\n"', None),
        ("{x for x in y}", '{"input": "{x for x in y}"}'),
        ("<b> <|", '{"input": "<b> <|"}'),
    ],
)
def test_a_body_is_json_or_words(written: str, arguments: str | None) -> None:
    message = harmony(body(written, "python") + "<|call|>")
    assert codes(message) == []
    (call,) = message.parts
    assert isinstance(call, ToolCall)
    assert (call.name, call.error) == ("python", None)
    assert call.arguments == (arguments or json.dumps({"input": written.strip()}))
    assert call.raw == body(written.rstrip() if written.strip() else "", "python")
    assert message.termination == "stop"


def test_messages_follow_a_call() -> None:
    text = body('{"a": 1}') + "<|end|><|start|>assistant<|channel|>final<|message|>ok<|return|>"
    assert shown(harmony(text)) == [F, "ok"]
    text = body('{"a": 1}') + "<|start|>assistant" + body("{}", "functions.g") + "<|call|>"
    assert shown(harmony(text)) == [F, G]


def test_a_body_without_its_end() -> None:
    whole = harmony(body('{"a": 1}'))
    assert shown(whole) == [F]
    assert codes(whole) == ["missing_close"]
    assert shown(harmony(body('{"a'))) == [("f", '{"a', "incomplete")]
    assert shown(harmony(body("print(1) ", "python"))) == [("python", '{"input": "print(1)', "incomplete")]


def test_a_function_reads_json_and_nothing_else() -> None:
    assert shown(harmony(body("print(1)") + "<|call|>")) == [("f", "", "invalid_json")]
    (call,) = harmony(body("{x for x in y}") + "<|call|>").tool_calls
    assert call.error == "invalid_json"


def test_a_body_that_is_not_the_json_it_seemed() -> None:
    assert shown(harmony(body('{"a": 1,}') + "<|call|>")) == [("f", '{"a": 1,}', "invalid_json")]
    assert shown(harmony(body('{"a": {"b": 1}') + "<|call|>")) == [("f", '{"a": {"b": 1}', "invalid_json")]


# What it costs.


@pytest.mark.parametrize(
    "make",
    [
        lambda size: kimi(("functions.f:0", '{"a":"' + "word < " * (size // 7) + '"}')),
        lambda size: kimi(("functions.f:0", '{"a":"' + "<|tool_call_end|>" * (size // 17) + '"}')),
        lambda size: kimi(*[("functions.f:0", "{}")] * (size // 80)),
        lambda size: "<|tool_calls_section_begin|>" + " " * size,
        lambda size: "<|tool_call_begin|>" + "n" * size,
    ],
)
def test_cost_grows_with_the_text(make: Any) -> None:
    check_linear(make, KIMI_K2)


@pytest.mark.parametrize("words", ["word < ", " \n", "<|"])
def test_cost_of_a_long_body(words: str) -> None:
    outcome = run(HARMONY, characters(body("x" + words * 4_000, "python") + "<|call|>"))
    assert outcome.message is not None
    assert outcome.message.tool_calls[0].error is None
