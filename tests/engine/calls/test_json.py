"""Calls written as JSON: what is read, what is refused, and that nothing depends on how the text is cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asides
from asides import ToolCall
from asides._engine.calls.json_calls import JsonCalls
from asides._engine.calls.json_scan import JsonScanner
from asides._engine.calls.steps import escape
from asides._engine.literals import beginnings
from asides.families._apertus import APERTUS_CALLS as APERTUS
from asides.families._cohere import COHERE_CALLS as COHERE
from asides.families._dots import DOTS_JSON
from asides.families._generic import JSON_BARE
from asides.families._gigachat import GIGACHAT_CALLS as GIGACHAT
from asides.families._granite import GRANITE_20B_CALLS as GRANITE_20B
from asides.families._granite import GRANITE_CALLS as GRANITE
from asides.families._inkling import INKLING_CALLS as INKLING
from asides.families._internlm import INTERNLM_CALLS as INTERNLM
from asides.families._llama import LLAMA3_JSON
from asides.families._longcat import LONGCAT_CALLS as LONGCAT
from asides.families._mistral import MISTRAL_LIST
from asides.families._nemotron import TOOLCALL as NEMOTRON
from asides.families._phi import PHI4_CALLS as PHI4
from asides.families._shared import HERMES, TOOL_CALLS_LIST
from asides.families._xlam import XLAM_CALLS as XLAM
from tests.engine.calls.reading import TOOLS, call_of, check_linear, codes, deltas, format_of, read, shown
from tests.support import characters, check_chunking, every_place, is_object, run

F = ("f", {"a": 1})
G: tuple[str, dict[str, object]] = ("g", {})


def hermes(body: str) -> str:
    """A body between the markers."""
    return f"<tool_call>{body}</tool_call>"


EXAMPLES: list[tuple[JsonCalls, str, list[object]]] = [
    (HERMES, '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>', [F]),
    (HERMES, '<tool_call> {"name":"f","arguments":{"a":1}} </tool_call>\n<tool_call>{"name":"g"}</tool_call>', [F, G]),
    (LONGCAT, '<longcat_tool_call>{"name":"f","arguments":{"a":1}}</longcat_tool_call>', [F]),
    (DOTS_JSON, '<dots_function_call>{"name":"f","arguments":{"a":1}}</dots_function_call>', [F]),
    (
        TOOL_CALLS_LIST,
        '<tool_calls>[\n{"name":"f","arguments":{"a":1}},\n{"name":"g","arguments":{}}\n]</tool_calls>',
        [F, G],
    ),
    (APERTUS, 'a<|tools_prefix|>[{"f": {"a": 1}}, {"g": {}}]<|tools_suffix|>b', ["a", F, G, "b"]),
    (COHERE, '<|START_ACTION|>[{"tool_call_id":"0","tool_name":"f","parameters":{"a":1}}]<|END_ACTION|>', [F]),
    (GRANITE, '<|tool_call|>[{"name":"f","arguments":{"a":1}}, {"name":"g","arguments":{}}] ok', [F, G, "ok"]),
    (GRANITE, '<tool_call>[{"name":"f","arguments":{"a":1}}]', [F]),
    (GRANITE_20B, '<function_call> {"name":"f","arguments":{"a":1}}', [F]),
    (
        GRANITE_20B,
        '<function_call> {"name":"f","arguments":{"a":1}} <function_call> {"name":"g","arguments":{}}',
        [F, G],
    ),
    (INTERNLM, '<|action_start|><|plugin|>{"name":"f","parameters":{"a":1}}<|action_end|>', [F]),
    (INTERNLM, '<|action_start|> <|plugin|>\n{"name":"f","parameters":{"a":1}}\n<|action_end|>', [F]),
    (LLAMA3_JSON, '<|python_tag|>{"name":"f","parameters":{"a":1}}; {"name":"g","parameters":{}}', [F, G]),
    (LLAMA3_JSON, '{"name":"f","parameters":{"a":1}};{"name":"g","parameters":{}} ok', [F, G, "ok"]),
    (PHI4, 'ok functools[{"name":"f","arguments":{"a":1}}, {"name":"g"}]', ["ok", F, G]),
    (GIGACHAT, 'function call<|role_sep|>\n{"name":"f","arguments":{"a":1}}', [F]),
    (GIGACHAT, '<|function_call|>{"name":"f","arguments":{"a":1}}', [F]),
    (INKLING, '<|content_invoke_tool_json|>{"name":"f","args":{"a":1}}<|end_message|>', [F]),
    (NEMOTRON, '<TOOLCALL>[{"name":"f","arguments":{"a":1}}]</TOOLCALL>', [F]),
    (MISTRAL_LIST, '[TOOL_CALLS] [{"name":"f","arguments":{"a":1}}]', [F]),
    (JSON_BARE, '\n{"name":"f","arguments":{"a":1}}', [F]),
    (JSON_BARE, '[{"name":"f","arguments":{"a":1}}] ok', [F, "ok"]),
    (JSON_BARE, '```json\n{"name":"f","arguments":{"a":1}}\n```\nok', [F, "ok"]),
]


@pytest.mark.parametrize(("syntax", "text", "expected"), EXAMPLES)
def test_every_syntax_reads_its_example(syntax: JsonCalls, text: str, expected: list[object]) -> None:
    message = read(text, syntax)
    assert shown(message) == expected
    assert codes(message) == []


@pytest.mark.parametrize(
    "text",
    [
        '[{"name":"f","arguments":{"a":1}}]',
        '<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>',
        '<tool_call>[{"name":"f","arguments":{"a":1}}]</tool_call>',
        '[TOOL_CALLS][{"name":"f","arguments":{"a":1}}]',
        '<think>hm</think>[{"name":"f","arguments":{"a":1}}]',
    ],
)
def test_xlam_reads_what_others_write(text: str) -> None:
    message = read(text, *XLAM)
    assert shown(message)[-1] == F
    assert codes(message) == []


def test_a_list_in_a_code_block() -> None:
    text = '```json\n[{"name":"f","arguments":{"a":1}}, {"name":"g","arguments":{}}]\n```\nok'
    outcome = check_chunking(format_of(*XLAM), text, [*every_place(text), characters(text)], {})
    assert outcome.message is not None
    assert shown(outcome.message) == [F, G, "ok"]


# The model's own characters.


@pytest.mark.parametrize(
    "arguments",
    [
        "{}",
        "{ }",
        '{"a" : 1 ,\n\t"b":[ ]}',
        '{"a": {"b": 1, "b": 2}}',
        '{"n": 123456789012345678901234567890.5e-400}',
        '{"s": "\\u00e9\\ud83d\\ude00\\ud83d \\/ \\" é 😀"}',
        '{"code": "</tool_call><tool_call>{}<|im_end|></think>"}',
        '{"a": {"b": [[], {}, [{"c": null}]]}, "d": [true, false, -0.0]}',
    ],
)
def test_arguments_are_kept_as_written(arguments: str) -> None:
    call = call_of(hermes(f'{{"name": "f", "arguments": {arguments}}}'), HERMES)
    assert call.error is None
    assert call.arguments == arguments


def test_deep_nesting() -> None:
    arguments = '{"a":' * 1000 + "1" + "}" * 1000
    text = hermes(f'{{"name":"f","arguments":{arguments}}}')
    for chunks in ((text,), characters(text)):
        outcome = run(format_of(HERMES), chunks)
        assert outcome.message is not None
        assert outcome.message.tool_calls[0].error is None
        assert outcome.message.tool_calls[0].arguments == arguments


def test_arguments_stream_as_they_come() -> None:
    told = deltas('<tool_call>{"name": "f", "arguments": {"a": "some wor', HERMES)
    assert "".join(told) == '{"a": "some wor'
    assert len(told) > 10


def test_arguments_before_the_name_wait_for_it() -> None:
    text = '<tool_call>{"arguments": {"a": 1}, "id": "x", "na'
    assert deltas(text, HERMES) == []
    call = call_of(text + 'me": "f"}</tool_call>', HERMES)
    assert (call.name, call.arguments, call.id) == ("f", '{"a": 1}', "x")


def test_absent_null_and_empty_arguments_are_an_empty_object() -> None:
    for body in ('{"name":"f"}', '{"name":"f","arguments":null}', '{"name":"f","arguments":""}'):
        call = call_of(hermes(body), HERMES)
        assert (call.arguments, call.error) == ("{}", None)


# Arguments written as a string.


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=6),
        lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=3), values, max_size=3),
        max_leaves=6,
    ),
    st.booleans(),
    st.booleans(),
    st.integers(1, 7),
)
def test_a_string_that_holds_an_object_is_that_object(value: Any, inner: bool, outer: bool, size: int) -> None:
    written = json.dumps({"v": value}, ensure_ascii=inner)
    text = hermes(json.dumps({"name": "f", "arguments": written}, ensure_ascii=outer))
    format = format_of(HERMES)
    whole = run(format, (text,))
    assert whole.message is not None
    call = whole.message.tool_calls[0]
    assert call.error is None
    assert json.loads(call.arguments) == {"v": value}
    assert codes(whole.message) == ["string_arguments"]
    cut = [text[place : place + size] for place in range(0, len(text), size)]
    assert run(format, cut) == whole


@pytest.mark.parametrize(
    ("string", "arguments", "error"),
    [
        (r'"{\"a\": \"x\\ny\\ud83d\\ude00\"}"', r'{"a": "x\ny\ud83d\ude00"}', None),
        (r'"{\"a\": \"\ud83d\ude00 \\\\\"}"', r'{"a": "😀 \\"}', None),
        (r'" {} "', "{}", None),
        (r'"null"', "{}", None),
        (r'"{\"a\": \"\ud83d\"}"', r'{"a": "\ud83d"}', None),
        (r'"{\"a\": 1"', '{"a": 1', "invalid_json"),
        (r'"{\"a\": 1} x"', '{"a": 1}', "invalid_json"),
        (r'"{\"a\": \"x\ny\"}"', '{"a": "x\ny"}', "invalid_json"),
        (r'"[1]"', "", "not_object"),
        (r'"hello"', "", "invalid_json"),
        (r'"7"', "", "not_object"),
        ('"{\\"a\\": \\"x\ny\\"}"', '{"a": "x', "invalid_json"),
        (r'"{\"a\": \q}"', '{"a": ', "invalid_json"),
    ],
)
def test_string_arguments(string: str, arguments: str, error: str | None) -> None:
    call = call_of(hermes(f'{{"name": "f", "arguments": {string}}}'), HERMES)
    assert (call.name, call.arguments, call.error) == ("f", arguments, error)


# Ids.


def test_an_id_counts_only_before_the_arguments() -> None:
    early = read(hermes('{"id": "x1", "name": "f", "arguments": {}}'), HERMES)
    assert early.tool_calls[0].id == "x1"
    assert codes(early) == []
    late = read(hermes('{"name": "f", "arguments": {}, "id": "x1"}'), HERMES)
    assert late.tool_calls[0].id.startswith("call_")
    assert codes(late) == ["late_id"]


def test_an_id_that_is_no_string_is_passed_over() -> None:
    assert call_of(hermes('{"id": 7, "name": "f", "arguments": {}}'), HERMES).id.startswith("call_")


def test_made_ids_have_the_shape_of_their_ecosystem() -> None:
    call = read('[TOOL_CALLS][{"name":"f","arguments":{}}]', MISTRAL_LIST).tool_calls[0]
    assert len(call.id) == 9
    assert call.id.isalnum()


# What is broken.


@pytest.mark.parametrize(
    ("body", "name", "arguments", "error"),
    [
        ('{"name":"f","arguments":{"a":1,}}', "f", '{"a":1,}', "invalid_json"),
        ('{"name":"f","arguments":{"a":1},}', "f", '{"a":1}', "invalid_json"),
        ('{"name":"f","arguments":{\'a\':1}}', "f", "{'a':1}", "invalid_json"),
        ("{'name':'f','arguments':{}}", "", "", "invalid_json"),
        ('{"name":"f",\'arguments\':{}}', "f", "", "invalid_json"),
        ('{"name":"f","arguments":{"a":"x\ny"}}', "f", '{"a":"x\ny"}', "invalid_json"),
        ('{"name":"f","arguments":{"a":tru}}', "f", '{"a":tru}', "invalid_json"),
        ('{"name":"f","arguments":{"a":NaN}}', "f", '{"a":NaN}', "invalid_json"),
        ('{"name":"f","arguments":{"a":01}}', "f", '{"a":01}', "invalid_json"),
        ('{"name":"f","arguments":{"a" 1}}', "f", '{"a" 1}', "invalid_json"),
        ('{"name":"f","arguments":{"a":[1 2]}}', "f", '{"a":[1 2]}', "invalid_json"),
        ('{"name":"f","arguments":{"a":1', "f", '{"a":1', "invalid_json"),
        ('{"name":"f","arguments":{"a":[1,}', "f", '{"a":[1,}', "invalid_json"),
        ('{"name":"f","arguments":{"a":1}', "f", '{"a":1}', "invalid_json"),
        ('{"name":"f","arguments":[1]}', "f", "", "not_object"),
        ('{"name":"f","arguments":7}', "f", "", "not_object"),
        ('{"name":"f","arguments":true}', "f", "", "not_object"),
        ('{"name":"f","arguments":}', "f", "", "invalid_json"),
        ('{"name":7,"arguments":{}}', "", "", "no_name"),
        ('{"name":null,"arguments":{}}', "", "", "no_name"),
        ('{"name":"","arguments":{}}', "", "{}", "no_name"),
        ('{"arguments":{}}', "", "", "no_name"),
        ("{}", "", "", "no_name"),
        ("f(a=1)", "", "", "unreadable"),
        ("[7]", "", "", "unreadable"),
        ('{"' + "n" * 2000 + '":1}', "", "", "invalid_json"),
    ],
)
def test_a_broken_call_stays_a_part(body: str, name: str, arguments: str, error: str) -> None:
    message = read(hermes(body) + " ok", HERMES)
    call = message.parts[0]
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments, call.error) == (name, arguments, error)
    assert call.error_message
    assert call.complete
    assert call.raw == hermes(body)
    assert message.text == "ok"
    assert codes(message) == ["unreadable_call"]


def test_the_next_call_is_read_behind_a_broken_one() -> None:
    text = hermes('{"name":"f","arguments":{"a":{"b":1}') + hermes('{"name":"g","arguments":{}}')
    assert shown(read(text, HERMES)) == [("f", '{"a":{"b":1}', "invalid_json"), G]


def test_a_broken_object_of_a_list_does_not_hide_the_others() -> None:
    text = '<tool_calls>[{"name":"f","arguments":{"a":1,}}, {"name":"g","arguments":{}}]</tool_calls>'
    assert shown(read(text, TOOL_CALLS_LIST)) == [("f", '{"a":1,}', "invalid_json"), G]
    text = '<tool_call>[{"name":"f","arguments":{"a":1},}, {"name":"g","arguments":{}}] ok'
    assert shown(read(text, GRANITE)) == [("f", '{"a":1}', "invalid_json"), G, "ok"]


def test_what_follows_a_whole_call_is_text() -> None:
    message = read(hermes('{"name":"f","arguments":{"a":1}}.'), HERMES)
    assert shown(message) == [F, "."]
    assert codes(message) == ["missing_close", "stray_close"]


def test_a_bracket_too_many_is_left_out() -> None:
    message = read(hermes('{"name":"f","arguments":{"a":1}}}'), HERMES)
    assert shown(message) == [F]
    assert codes(message) == ["stray_close"]


@pytest.mark.parametrize("cut", range(12, len('<tool_call>{"name": "f", "arguments": {"a": "x\\n", "b": [1, 2]}}')))
def test_a_call_that_is_cut_off(cut: int) -> None:
    text = '<tool_call>{"name": "f", "arguments": {"a": "x\\n", "b": [1, 2]}}'[:cut]
    message = read(text, HERMES)
    call = message.tool_calls[0]
    assert (call.error, call.complete, call.raw) == ("incomplete", False, text)
    assert '{"a": "x\\n", "b": [1, 2]}'.startswith(call.arguments)
    assert message.termination == "cut"


def test_a_whole_call_without_its_closing_marker_is_a_call() -> None:
    message = read('<tool_call>{"name": "f", "arguments": {"a": 1}}', HERMES)
    assert shown(message) == [F]
    assert codes(message) == ["missing_close"]


def test_prose_about_the_marker_stays_prose() -> None:
    text = "write <tool_call> and then JSON"
    message = read(text, HERMES)
    assert message.text == text
    assert codes(message) == ["not_a_call"]


def test_a_string_that_never_ends_is_cut_at_the_closing_marker() -> None:
    text = hermes('{"name":"f","arguments":{"a":"x}}') + " ok"
    message = read(text, HERMES)
    assert shown(message) == [("f", '{"a":"x}}', "unclosed"), "ok"]


def test_far_behind_a_call_no_closing_marker_is_looked_for() -> None:
    text = '<tool_call>{"name":"f","arguments":{"a":1}}' + " " * 2000 + "</tool_call>"
    outcome = run(format_of(HERMES), characters(text))
    assert outcome == run(format_of(HERMES), (text,))
    assert outcome.message is not None
    assert shown(outcome.message) == [F]
    assert codes(outcome.message) == ["missing_close", "stray_close"]


# Rows and lists.


def test_several_objects_between_one_pair_of_markers() -> None:
    one, two = '{"name":"f","arguments":{"a":1}}', '{"name":"g","arguments":{}}'
    for between in ("", "\n", ",", "; ", " , "):
        message = read(hermes(one + between + two), HERMES)
        assert shown(message) == [F, G]
        assert [call.raw for call in message.tool_calls] == [one, two]


def test_a_list_between_markers_that_expect_an_object() -> None:
    message = read(hermes('[{"name":"f","arguments":{"a":1}},\n{"name":"g"},]'), HERMES)
    assert shown(message) == [F, G]


def test_an_empty_list_is_no_call() -> None:
    message = read("a <tool_calls>[]</tool_calls> b", TOOL_CALLS_LIST)
    assert shown(message) == ["a", "b"]


def test_raw_is_the_call_alone() -> None:
    one, two = '{"name":"f","arguments":{"a":1}}', '{"name":"g","arguments":{}}'
    message = read(f"<tool_calls>[{one}, {two}]</tool_calls>", TOOL_CALLS_LIST)
    assert [call.raw for call in message.tool_calls] == [one, two]
    assert call_of(hermes(one), HERMES).raw == hermes(one)


def test_one_name_for_each_keyed_object() -> None:
    text = '<|tools_prefix|>[{"f": {"a": 1}, "g": {}}]<|tools_suffix|>'
    assert shown(read(text, APERTUS)) == [("f", '{"a": 1}', "unreadable")]


# Without a marker.


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Bob", "age": 7}',
        '{"name": "f"}',
        '{"parameters": {}, "name": "f"}',
        '{"a": {"name": "f", "parameters": {}}}',
        '{"name": 7, "parameters": {}}',
        '{"name": "f"',
        '[{"x": 1}]',
        "[1, 2]",
        "[]",
        "{ what",
        "{",
        'see {"name": "f", "parameters": {}}',
        "```python\nprint()\n```",
    ],
)
def test_json_that_is_no_call_is_text(text: str) -> None:
    for syntax in (LLAMA3_JSON, JSON_BARE):
        message = read(text, syntax)
        assert shown(message) == [text]
        assert codes(message) == []


def test_a_bare_call_counts_only_where_text_begins() -> None:
    call = '{"type": "function", "name": "f", "parameters": {"a": 1}}'
    assert shown(read(f"\n {call}", LLAMA3_JSON)) == [F]
    assert shown(read(f"<think>hm</think>\n{call}", LLAMA3_JSON)) == ["hm", F]
    assert shown(read(f"ok\n{call}", LLAMA3_JSON)) == [f"ok\n{call}"]


def test_with_tools_a_bare_call_must_name_one_of_them() -> None:
    assert shown(read('{"name": "f", "parameters": {"a": 1}}', LLAMA3_JSON, tools=TOOLS)) == [F]
    other = '{"name": "Bob", "parameters": {"a": 1}}'
    assert shown(read(other, LLAMA3_JSON, tools=TOOLS)) == [other]
    both = '{"name": "f", "parameters": {"a": 1}}; ' + other
    assert shown(read(both, LLAMA3_JSON, tools=TOOLS)) == [F, other]


def test_a_bare_call_is_held_until_it_shows_itself() -> None:
    parser = asides.Parser(format_of(LLAMA3_JSON))
    assert parser.feed('{"name": "f", "id": "7", "para') == []
    assert [type(event).__name__ for event in parser.feed('meters": {"a"')] == ["PartStart", "ToolCallDelta"]


def test_a_bare_call_that_is_cut_off() -> None:
    assert shown(read('{"name": "f", "parameters": {"a', LLAMA3_JSON)) == [("f", '{"a', "incomplete")]


# The scanner.

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=4), values, max_size=4),
    max_leaves=20,
)


@given(
    st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=4),
    st.sampled_from([None, 0, 1]),
    st.booleans(),
    st.none() | st.tuples(st.floats(0, 1), st.integers(0, 2), st.sampled_from(["", *',:{}[]" \n\\x1-'])),
    st.integers(1, 9),
)
def test_the_scanner_is_as_strict_as_json(
    value: Any, indent: int | None, ascii: bool, change: tuple[float, int, str] | None, size: int
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    if change is not None:
        place = int(change[0] * len(text))
        text = text[:place] + change[2] + text[place + change[1] :]
    if not text.startswith("{"):
        return
    whole, cut = _scan(text, len(text)), _scan(text, size)
    assert whole == cut
    done, error, stop = whole
    assert (done and error is None and not text[stop:].strip(" \t\n\r")) == is_object(text)


def _scan(text: str, size: int) -> tuple[bool, str | None, int]:
    scanner = JsonScanner()
    at = 0
    for end in [*range(size, len(text), size), len(text)]:
        at = scanner.scan(text, at, end)
        if scanner.error is not None:
            at = scanner.scan(text, at, end)
        if scanner.done:
            break
    return scanner.done, scanner.error, at


@given(st.text(st.characters(exclude_categories=())))
def test_escaped_text_is_json(text: str) -> None:
    assert json.loads(f'"{escape(text)}"') == text
    escape(text).encode()


def test_where_a_marker_may_begin() -> None:
    assert beginnings(("<x>",)).find("abc<", 0, 4) == 3
    assert beginnings(("<x>",)).find("abc<x>", 0, 6) == 6
    assert beginnings(("<<<a", "<x>")).find("<<", 0, 2) == 0
    assert beginnings(("<x>",)).find("", 0, 0) == 0


# What it costs.


@pytest.mark.parametrize(
    "make",
    [
        lambda size: hermes('{"name":"f","arguments":{"a":"' + "word < " * (size // 7) + '"}}'),
        lambda size: hermes('{"arguments":{"a":"' + "word < " * (size // 7) + '"},"name":"f"}'),
        lambda size: hermes('{"name":"f","arguments":"{\\"a\\":\\"' + "wo\\\\nrd " * (size // 8) + '\\"}"}'),
        lambda size: hermes('{"name":"f","arguments":{"a":"' + "</tool_call>" * (size // 12) + '"}}'),
        lambda size: hermes('{"name":"f","arguments":{\'a\':"' + "</tool_call>" * (size // 12) + '"}}'),
        lambda size: hermes('{"name":"f","arguments":{"a":' + "[" * (size // 2) + "]" * (size // 2) + "}}"),
        lambda size: hermes('{"name":"f","arguments":{"a":[' + '{"b":1},' * (size // 8) + "1]}}"),
        lambda size: hermes('{"name":"f","arguments":{}}' + " " * size),
        lambda size: hermes('{"name":"f","arguments":{"n":' + "7" * size + "}}"),
    ],
)
def test_cost_grows_with_the_text(make: Any) -> None:
    check_linear(make, HERMES)
