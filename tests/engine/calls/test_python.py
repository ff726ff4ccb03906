"""Calls written as Python: literals become JSON, nothing is evaluated, and what is no call stays text."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asides
from asides.families._lfm import LFM2_CALLS as LFM2
from asides.families._llama import PYTHONIC_CALLS as PYTHONIC
from asides.families._olmo import OLMO3_CALLS as OLMO3
from tests.engine.calls.reading import TOOLS, call_of, check_linear, codes, deltas, format_of, read, shown
from tests.support import run

F = ("f", {"a": "v"})
G = ("g", {"b": 1})

EXAMPLES: list[tuple[tuple[Any, ...], str, list[object]]] = [
    ((PYTHONIC,), '[f(a="v"), g(b=1)]', [F, G]),
    ((PYTHONIC,), '\n[ f ( a = "v" , ) ,\n g(b=1) ] ok', [F, G, "ok"]),
    ((PYTHONIC,), '<|python_start|>[f(a="v"), g(b=1)]<|python_end|>', [F, G]),
    ((PYTHONIC,), '[f(a="v")]', [F]),
    (LFM2, '<|tool_call_start|>[f(a="v")]<|tool_call_end|>ok', [F, "ok"]),
    (LFM2, '<|tool_call_start|>[{"name": "f", "arguments": {"a": "v"}}]<|tool_call_end|>', [F]),
    (LFM2, '<|tool_call_start|>f(a="v")<|tool_call_end|>', [F]),
    ((OLMO3,), '<function_calls>\nf(a="v")\ng(b=1)\n</function_calls>', [F, G]),
    ((OLMO3,), "<function_calls>f()</function_calls>", [("f", {})]),
]


@pytest.mark.parametrize(("syntaxes", "text", "expected"), EXAMPLES)
def test_every_syntax_reads_its_example(syntaxes: tuple[Any, ...], text: str, expected: list[object]) -> None:
    message = read(text, *syntaxes)
    assert shown(message) == expected
    assert codes(message) == []


def test_raw_is_the_call_alone() -> None:
    message = read('[f(a="v"), g(b=1)]', PYTHONIC)
    assert [call.raw for call in message.tool_calls] == ['f(a="v")', "g(b=1)"]


# Literals.


@pytest.mark.parametrize(
    "literal",
    [
        "''",
        '""',
        '"""x"""',
        "'''it's \"x\" '' ok'''",
        '"""a "" b \\""""',
        r'"\n\t\r\\\'\"\a\b\f\v\0\07\123\x41\u00e9\U0001F600\N{EM DASH}\
"',
        r'r"\d\"x"',
        "u'x'",
        "'é\U0001f600\\ud83d'",
        "0",
        "-0",
        "00",
        "+7",
        "1_000",
        "0x1F",
        "-0b101",
        "0o17",
        "1.",
        ".5",
        "-1.5e-3",
        "1e+5",
        "1E5",
        "01.5",
        "123456789012345678901234567890",
        "True",
        "False",
        "None",
        "[]",
        "[1, [2, []],]",
        "()",
        "(1,)",
        "(1)",
        "((1, 2), ('x'), (), ((3,)))",
        "(('a'))",
        "{}",
        "{'k': 1, \"l\": {'m': [(1, 2)]},}",
        "{1: 2, None: 3, 1.5: 5}",
    ],
)
def test_literals_become_json(literal: str) -> None:
    call = call_of(f"[f(a={literal})]", PYTHONIC)
    assert call.error is None
    assert json.loads(call.arguments) == json.loads(json.dumps({"a": ast.literal_eval(literal)}))


@pytest.mark.parametrize(("word", "value"), [("true", True), ("false", False), ("null", None)])
def test_json_constants_are_understood(word: str, value: object) -> None:
    assert shown(read(f"[f(a={word}, b=[{word}])]", PYTHONIC)) == [("f", {"a": value, "b": [value]})]


def test_an_escape_that_means_nothing_is_kept() -> None:
    assert shown(read(r'[f(a="\q\d")]', PYTHONIC)) == [("f", {"a": "\\q\\d"})]


def test_a_string_may_hold_a_line_end() -> None:
    assert shown(read('[f(a="x\ny")]', PYTHONIC)) == [("f", {"a": "x\ny"})]


@pytest.mark.parametrize(
    "written",
    [
        "x",
        "1 + 2",
        "1__0",
        "--1",
        "1e",
        "0x",
        "'a' 'b'",
        "b'x'",
        "f'x'",
        "[1 2]",
        "(1",
        "print(1)",
        "__import__('os')",
        "lambda: 1",
        r"'\x4'",
        r"'\u12'",
        r"'\U00110000'",
        r"'\N{NO SUCH NAME}'",
        r"'\Users'",
        "=1",
        "",
        "1" * 2000,
    ],
)
def test_what_is_no_literal_is_refused(written: str) -> None:
    text = f"<|python_start|>[f(a={written})]<|python_end|> ok"
    message = read(text, PYTHONIC)
    call = message.tool_calls[0]
    assert (call.name, call.error) == ("f", "unreadable")
    assert call.error_message
    assert message.text == "ok"


def test_arguments_must_be_named() -> None:
    for arguments in ('"v"', "a, b=1", "b=1, 2", "*a", "**{'a': 1}"):
        message = read(f"<|python_start|>[f({arguments})]<|python_end|>", PYTHONIC)
        assert [(call.name, call.error) for call in message.tool_calls] == [("f", "unreadable")]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=3), values, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["a", "b_c", "größe"]), VALUES, max_size=3), st.integers(1, 9))
def test_what_python_writes_comes_back(arguments: dict[str, Any], size: int) -> None:
    text = "[f(" + ", ".join(f"{name}={value!r}" for name, value in arguments.items()) + ")]"
    format = format_of(PYTHONIC)
    whole = run(format, (text,))
    assert whole.message is not None
    assert shown(whole.message) == [("f", arguments)]
    assert run(format, [text[place : place + size] for place in range(0, len(text), size)]) == whole


@given(st.text(max_size=12), st.sampled_from(["'", '"', "'''", '"""']), st.booleans(), st.integers(1, 5))
def test_strings_mean_what_python_means(body: str, quote: str, raw: bool, size: int) -> None:
    literal = ("r" if raw else "") + quote + body + quote
    try:
        expected = ast.literal_eval(literal)
    except (SyntaxError, ValueError):
        return
    if not isinstance(expected, str) or literal.count(quote[0]) != 2 * len(quote) or "\r" in body:
        return
    text = f"[f(a={literal})]"
    format = format_of(PYTHONIC)
    whole = run(format, (text,))
    assert whole.message is not None
    assert shown(whole.message) == [("f", {"a": expected})]
    assert run(format, [text[place : place + size] for place in range(0, len(text), size)]) == whole


# Streaming.


def test_strings_stream_as_valid_json() -> None:
    told = deltas('[f(a="some w\\x6frds', PYTHONIC)
    assert "".join(told) == '{"a": "some words'
    assert len(told) > 5


def test_a_parenthesis_waits_for_its_comma() -> None:
    assert "".join(deltas("[f(a=('x'", PYTHONIC)) == '{"a": '
    assert "".join(deltas("[f(a=('x',", PYTHONIC)) == '{"a": ["x"'
    assert "".join(deltas("[f(a=('x')", PYTHONIC)) == '{"a": "x"'


# Names.


@pytest.mark.parametrize("name", ["f", "a.b.c", "a-b", "größe", "_x1", "ns:f"])
def test_names(name: str) -> None:
    assert call_of(f"[{name}(a=1)]", PYTHONIC).name == name


# Without a marker.


@pytest.mark.parametrize(
    "text",
    [
        "[f](http://example.org)",
        "[see (1)] for more",
        "[f(x)](link)",
        "[1, 2, 3]",
        "[f, g]",
        "[]",
        "[f(",
        "[f(a",
        "[",
        "f(a=1)",
        "ok [f(a=1)]",
        "[" + "n" * 400 + "(a=1)]",
    ],
)
def test_brackets_that_are_no_call_are_text(text: str) -> None:
    message = read(text, PYTHONIC)
    assert shown(message) == [text]
    assert codes(message) == []


def test_with_tools_a_bare_call_must_name_one_of_them() -> None:
    assert shown(read('[f(a="v")]', PYTHONIC, tools=TOOLS)) == [F]
    assert shown(read('[sum(a="v")] ok', PYTHONIC, tools=TOOLS)) == ['[sum(a="v")] ok']
    assert shown(read("[sum()] ok", PYTHONIC, tools=TOOLS)) == ["[sum()] ok"]


def test_a_bare_call_is_held_until_it_shows_itself() -> None:
    parser = asides.Parser(format_of(PYTHONIC))
    assert parser.feed("[f(a") == []
    assert type(parser.feed("=")[0]) is asides.PartStart


def test_calls_that_are_cut_off() -> None:
    assert shown(read('[f(a="v', PYTHONIC)) == [("f", '{"a": "v', "incomplete")]
    assert shown(read('[f(a="v"), g(b=', PYTHONIC)) == [F, ("g", '{"b": ', "incomplete")]
    assert shown(read('<|python_start|>[f(a="v")', PYTHONIC)) == [F]
    assert shown(read("<|python_start|>[", PYTHONIC)) == [("", "", "incomplete")]
    assert shown(read('<function_calls>\nf(a="v")\ng', OLMO3)) == [F, ("", "", "incomplete")]


def test_a_list_that_goes_wrong_behind_a_call() -> None:
    message = read('<|python_start|>[f(a="v") g(b=1)]<|python_end|>', PYTHONIC)
    assert shown(message) == [F, ("", "", "unreadable")]
    assert shown(read('[f(a="v"), 7] ok', PYTHONIC))[0] == F


def test_missing_closing_markers() -> None:
    message = read('<|python_start|>[f(a="v")] ok', PYTHONIC)
    assert shown(message) == [F, "ok"]
    assert codes(message) == ["missing_close"]
    message = read('<function_calls>f(a="v")', OLMO3)
    assert shown(message) == [F]
    assert codes(message) == ["missing_close"]


def test_an_empty_list_is_no_call() -> None:
    message = read("a <|python_start|>[]<|python_end|> b", PYTHONIC)
    assert shown(message) == ["a", "b"]


def test_prose_about_the_marker_stays_prose() -> None:
    text = "write <function_calls> and then calls"
    assert read(text, OLMO3).text == text


# What it costs.


@pytest.mark.parametrize(
    "make",
    [
        lambda size: '[f(a="' + "word \\n" * (size // 7) + '")]',
        lambda size: '[f(a="""' + 'word " ' * (size // 7) + '""")]',
        lambda size: '[f(a=("' + "word < " * (size // 7) + '"))]',
        lambda size: '[f(a="' + "\\x41" * (size // 4) + '")]',
        lambda size: "[f(a=" + "(" * (size // 2) + ")" * (size // 2) + ")]",
        lambda size: "[f(a=[" + "1, " * (size // 3) + "])]",
        lambda size: "[" + " " * size + "f(a=1)]",
    ],
)
def test_cost_grows_with_the_text(make: Any) -> None:
    check_linear(make, PYTHONIC)
