"""Calls with bare keys in braces: strings between markers, unquoted values, and what breaks them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides._engine.calls.brace_calls import BraceCalls
from asides.families._gemma import FUNCTIONGEMMA_CALLS as FUNCTIONGEMMA
from asides.families._gemma import GEMMA4_CALLS as GEMMA4
from tests.engine.calls.reading import TOOLS, call_of, check_linear, codes, deltas, format_of, read, shown
from tests.support import run

F = ("f", {"a": "v"})
Q = '<|"|>'


def gemma(body: str) -> str:
    """A body between the markers."""
    return f"<|tool_call>{body}<tool_call|>"


EXAMPLES: list[tuple[BraceCalls, str, list[object]]] = [
    (GEMMA4, gemma(f"call:f{{a:{Q}v{Q},n:42}}"), [("f", {"a": "v", "n": 42})]),
    (GEMMA4, "ok" + gemma(f"call:f{{a:{Q}v{Q}}}") + gemma("call:g{}") + "ok", ["ok", F, ("g", {}), "ok"]),
    (FUNCTIONGEMMA, "<start_function_call>call:f{a:<escape>v<escape>}<end_function_call>", [F]),
]


@pytest.mark.parametrize(("syntax", "text", "expected"), EXAMPLES)
def test_every_syntax_reads_its_example(syntax: BraceCalls, text: str, expected: list[object]) -> None:
    message = read(text, syntax)
    assert shown(message) == expected
    assert codes(message) == []


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (f"{Q}{Q}", ""),
        (f'{Q}"x" \\n\n{{}},[]<tool_call|> <| é{Q}', '"x" \\n\n{},[]<tool_call|> <| é'),
        ("42", 42),
        ("-1.5e3", -1500.0),
        ("true", True),
        ("null", None),
        ("True", True),
        ("007", "007"),
        ("nullable", "nullable"),
        ("two words", "two words"),
        (" padded ", "padded"),
        ("", ""),
        ("{}", {}),
        ("[]", []),
        (f"{{x:1,y:{{z:[1,{Q}b{Q},c d]}}}}", {"x": 1, "y": {"z": [1, "b", "c d"]}}),
        (f'{{ {Q}k:k{Q} : 1 , "q\\n": 2 }}', {"k:k": 1, "q\n": 2}),
        ('"as JSON, \\u00e9"', "as JSON, é"),
        ("[[1],[2,[3]]]", [[1], [2, [3]]]),
    ],
)
def test_values(written: str, value: object) -> None:
    assert shown(read(gemma(f"call:f{{a:{written},b:1}}"), GEMMA4)) == [("f", {"a": value, "b": 1})]


def test_a_schema_says_what_unquoted_values_are() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "n": {"type": "number"},
            "o": {"type": "object", "properties": {"x": {"type": "string"}}},
            "l": {"type": "array", "items": {"type": "string"}},
        },
    }
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    text = gemma(f"call:f{{a:1,n:1,o:{{x:2,y:2}},l:[3],{Q}b{Q}:4}}")
    assert shown(read(text, GEMMA4, tools=tools)) == [
        ("f", {"a": "1", "n": 1, "o": {"x": "2", "y": 2}, "l": ["3"], "b": 4}),
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8).filter(lambda text: "<" not in text),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.sampled_from("abc"), values, max_size=3),
    max_leaves=8,
)


def write(value: Any) -> str:
    """A value as Gemma writes it."""
    if isinstance(value, str):
        return f"{Q}{value}{Q}"
    if isinstance(value, list):
        return "[" + ",".join(map(write, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{write(member)}" for key, member in value.items()) + "}"
    return json.dumps(value)


@given(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), st.integers(1, 9))
def test_what_is_written_comes_back(arguments: dict[str, Any], size: int) -> None:
    text = gemma(f"call:f{write(arguments)}")
    format = format_of(GEMMA4)
    whole = run(format, (text,))
    assert whole.message is not None
    assert shown(whole.message) == [("f", arguments)]
    assert run(format, [text[place : place + size] for place in range(0, len(text), size)]) == whole


def test_strings_stream_as_they_come() -> None:
    told = deltas(f"<|tool_call>call:f{{a:{Q}some wor", GEMMA4)
    assert "".join(told) == '{"a": "some wor'
    assert len(told) > 5


def test_several_calls_between_one_pair_of_markers() -> None:
    message = read(gemma(f"call:f{{a:{Q}v{Q}}}, call:g{{}}"), GEMMA4)
    assert shown(message) == [F, ("g", {})]
    assert [call.raw for call in message.tool_calls] == [f"call:f{{a:{Q}v{Q}}}", "call:g{}"]


@pytest.mark.parametrize("name", ["f", "a.b-c", "ns:f", "größe"])
def test_names(name: str) -> None:
    assert call_of(gemma(f"call:{name}{{}}"), GEMMA4).name == name


# What is broken.


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("f(a=1)", ("", "", "unreadable")),
        ("call:f(a=1)", ("", "", "unreadable")),
        ("call:{}", ("", "", "no_name")),
        ("call:f{a}", ("f", "{", "unreadable")),
        ("call:f{a:1", ("f", '{"a": ', "unclosed")),
        ("call:f{a:words", ("f", '{"a": "words', "unclosed")),
        (f"call:f{{a:{Q}x{Q}y}}", ("f", '{"a": "x"', "unreadable")),
        (f"call:f{{a:{Q}x", ("f", '{"a": "x', "unclosed")),
        ('call:f{a:"x\ny"}', ("f", '{"a": "x', "unreadable")),
        ("call:f{a:[1}", ("f", '{"a": ["1}', "unclosed")),
    ],
)
def test_a_broken_call_stays_a_part(body: str, expected: tuple[str, str, str]) -> None:
    message = read(gemma(body) + " ok", GEMMA4)
    assert shown(message) == [expected, "ok"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<|tool_call>", ("", "", "incomplete")),
        ("<|tool_call>cal", ("", "", "incomplete")),
        ("<|tool_call>call:f", ("", "", "incomplete")),
        ("<|tool_call>call:f{a:", ("f", '{"a": ', "incomplete")),
        (f"<|tool_call>call:f{{a:{Q}x", ("f", '{"a": "x', "incomplete")),
    ],
)
def test_a_call_that_is_cut_off(text: str, expected: tuple[str, str, str]) -> None:
    assert shown(read(text, GEMMA4)) == [expected]


def test_a_second_call_that_is_cut_off() -> None:
    assert shown(read("<|tool_call>call:f{}call:g", GEMMA4)) == [("f", {}), ("", "", "incomplete")]


def test_a_whole_call_needs_no_closing_marker() -> None:
    message = read(f"<|tool_call>call:f{{a:{Q}v{Q}}} ok", GEMMA4)
    assert shown(message) == [F, "ok"]
    assert codes(message) == ["missing_close"]


def test_prose_about_the_marker_stays_prose() -> None:
    text = "write <|tool_call> and then call:f"
    message = read(text, GEMMA4)
    assert message.text == text
    assert codes(message) == ["not_a_call"]


@pytest.mark.parametrize(
    "make",
    [
        lambda size: gemma(f"call:f{{a:{Q}" + "word < " * (size // 7) + f"{Q}}}"),
        lambda size: gemma("call:f{a:" + "word < " * (size // 7) + "}"),
        lambda size: gemma("call:f{a:" + "[" * (size // 2) + "]" * (size // 2) + "}"),
        lambda size: gemma('call:f{a:"' + "word \\n" * (size // 7) + '"}'),
        lambda size: gemma("call:f{a:" + "7" * size + "}"),
        lambda size: gemma("call:f{}" * (size // 8)),
        lambda size: "<|tool_call>" + " " * size,
    ],
)
def test_cost_grows_with_the_text(make: Any) -> None:
    check_linear(make, GEMMA4)


@pytest.mark.parametrize("quote", [Q, '"'])
def test_a_key_that_is_too_long(quote: str) -> None:
    message = read(gemma(f"call:f{{{quote}{'k' * 1100}{quote}:1}}"), GEMMA4)
    assert shown(message) == [("f", "{", "unreadable")]
    assert message.tool_calls[0].error_message == "a key is too long"


def test_without_an_opener_a_call_stands_where_text_begins() -> None:
    """Behind prose too where a syntax says what its calls begin with; this one does not."""
    bare = BraceCalls(open=(), close=(), prefix="call:", quote=Q, bare=True)
    assert shown(read("call:f{a:1}", bare, tools=TOOLS)) == [("f", {"a": 1})]
    assert shown(read("So.\n\ncall:f{a:1}", bare, tools=TOOLS)) == ["So.\n\ncall:f{a:1}"]
