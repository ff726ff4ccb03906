"""Calls whose arguments stand between tags: where values end, what type they have, and what they cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asides
from asides import Message, ToolCall
from asides._engine.calls.nested_calls import NestedCalls
from asides._engine.calls.reader import Sink
from asides._engine.calls.syntax import CallSyntax
from asides._engine.calls.tagged import TaggedCalls
from asides._engine.calls.tools import Tools
from asides._engine.calls.values import Schema, ValueWriter
from asides._engine.calls.xml_calls import Tag
from asides.families import families
from asides.families._deepseek import DSML_V4, DSML_V32, DSML_V41
from asides.families._dots import DOTS_XML
from asides.families._gigachat import GCML
from asides.families._hunyuan import hunyuan_keyed
from asides.families._iquest import IQUEST_KEYED
from asides.families._k2_horizon import IFM_CALLS
from asides.families._kimi import K3_CALLS as KIMI_K3
from asides.families._minicpm import MINICPM_CALLS as MINICPM
from asides.families._minimax import M2_CALLS as MINIMAX_M2
from asides.families._minimax import M3_CALLS as MINIMAX_M3
from asides.families._muse import ATEM
from asides.families._qwen import MIMO_XML
from asides.families._seed import SEED_XML
from asides.families._shared import FUNCTION_JSON, QWEN_XML
from asides.families._shared import GLM_KEYED as GLM
from asides.families._spark import SPARK_CALLS, SPARK_KEYED
from asides.families._step import STEPTML
from tests.engine.calls.reading import format_of
from tests.engine.calls.reading import read as read_text
from tests.support import characters, check_chunking, every_place, run

M3 = "]<]minimax[>["


def read(syntax: CallSyntax, text: str, **policies: Any) -> Message:
    """What a text means, whole, wherever it is cut, and by characters."""
    return read_text(text, syntax, **policies)


def call_of(syntax: CallSyntax, text: str, **policies: Any) -> ToolCall:
    """The one call of a text, which has no error."""
    message = read(syntax, text, **policies)
    assert [type(part) for part in message.parts] == [ToolCall], message.parts
    call = message.tool_calls[0]
    assert call.error is None, call
    return call


def tools(**properties: Any) -> list[dict[str, Any]]:
    """One tool `f` with these parameters."""
    schema = {"type": "object", "properties": properties, "$defs": {"Size": {"enum": [1, 2]}}}
    return [{"type": "function", "function": {"name": "f", "parameters": schema}}]


# Every syntax.


class Writing(NamedTuple):
    """How one syntax writes a call: a head, a pattern for each parameter, and an end."""

    start: str
    item: str
    close: str

    def __call__(self, name: str, values: dict[str, str]) -> str:
        return self.start.format(name) + "".join(self.item.format(*pair) for pair in values.items()) + self.close


Case = tuple[CallSyntax, Writing, str, str]
ONE: dict[str, Case] = {
    "qwen": (
        QWEN_XML,
        Writing("<tool_call>\n<function={}>\n", "<parameter={}>\n{}\n</parameter>\n", "</function>\n</tool_call>"),
        "",
        "",
    ),
    "qwen, bare": (QWEN_XML, Writing("<function={}>", "<parameter={}>\n{}\n</parameter>", "</function>"), "", ""),
    "seed": (
        SEED_XML,
        Writing(
            "<seed:tool_call>\n<function={}>\n", "<parameter={}>\n{}\n</parameter>\n", "</function>\n</seed:tool_call>"
        ),
        "",
        "",
    ),
    "minimax_m2": (
        MINIMAX_M2,
        Writing('<invoke name="{}">\n', '<parameter name="{}">{}</parameter>\n', "</invoke>"),
        "<minimax:tool_call>\n",
        "\n</minimax:tool_call>",
    ),
    "dots": (
        DOTS_XML,
        Writing('<invoke name="{}">', '<parameter name="{}">{}</parameter>', "</invoke>"),
        "<dots_function_call>",
        "</dots_function_call>",
    ),
    "atem": (
        ATEM,
        Writing('<atem:invoke name="{}">\n', '<atem:parameter name="{}">{}</atem:parameter>\n', "</atem:invoke>"),
        "<atem:function_calls>\n",
        "\n</atem:function_calls>",
    ),
    "dsml": (
        DSML_V32,
        Writing(
            '<｜DSML｜invoke name="{}">\n', '<｜DSML｜parameter name="{}">{}</｜DSML｜parameter>\n', "</｜DSML｜invoke>"
        ),
        "<｜DSML｜function_calls>\n",
        "\n</｜DSML｜function_calls>",
    ),
    "dsml 4": (
        DSML_V4,
        Writing(
            '<｜DSML｜invoke name="{}">', '<｜DSML｜parameter name="{}">{}</｜DSML｜parameter>', "</｜DSML｜invoke>"
        ),
        "<｜DSML｜tool_calls>",
        "</｜DSML｜tool_calls>",
    ),
    "steptml": (
        STEPTML,
        Writing(
            '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{}">',
            '<steptml:parameter name="{}">{}</steptml:parameter>',
            "</steptml:invoke><｜tool_call_end｜>",
        ),
        "<｜tool_calls_begin｜>",
        "<｜tool_calls_end｜>",
    ),
    "minicpm": (MINICPM, Writing('<function name="{}">', '<param name="{}">{}</param>', "</function>"), "", ""),
    "minicpm, cdata": (
        MINICPM,
        Writing('<function name="{}">', '<param name="{}"><![CDATA[{}]]></param>', "</function>"),
        "",
        "",
    ),
    "kimi_k3": (
        KIMI_K3,
        Writing(
            '<|open|>call tool="{}" index="1"<|sep|>',
            '<|open|>argument key="{}"<|sep|>{}<|close|>argument<|sep|>',
            "<|close|>call<|sep|>",
        ),
        "<|open|>tools<|sep|>",
        "<|close|>tools<|sep|>",
    ),
    "minimax_m3": (
        MINIMAX_M3,
        Writing(M3 + '<invoke name="{}">', M3 + "<{0}>{1}" + M3 + "</{0}>", M3 + "</invoke>"),
        M3 + "<tool_call>\n",
        "\n" + M3 + "</tool_call>",
    ),
    "glm": (
        GLM,
        Writing("<tool_call>{}\n", "<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n", "</tool_call>"),
        "",
        "",
    ),
    "spark, as glm": (
        SPARK_CALLS,
        Writing("<tool_call>{}\n", "<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n", "</tool_call>"),
        "",
        "",
    ),
    "hunyuan": (
        hunyuan_keyed(),
        Writing("<tool_call>{}<tool_sep>", "<arg_key>{}</arg_key><arg_value>{}</arg_value>", "</tool_call>"),
        "<tool_calls>",
        "</tool_calls>",
    ),
    "hunyuan, suffixed": (
        hunyuan_keyed(":opensource"),
        Writing(
            "<tool_call:opensource>{}<tool_sep:opensource>\n",
            "<arg_key:opensource>{}</arg_key:opensource>\n<arg_value:opensource>{}</arg_value:opensource>\n",
            "</tool_call:opensource>",
        ),
        "<tool_calls:opensource>\n",
        "\n</tool_calls:opensource>",
    ),
    "hunyuan 4": (
        hunyuan_keyed(":6124c78e"),
        Writing(
            "<tool_call:6124c78e>{}",
            "<arg_key:6124c78e>{}</arg_key:6124c78e><arg_value:6124c78e>{}</arg_value:6124c78e>",
            "</tool_call:6124c78e>",
        ),
        "<tool_calls:6124c78e>",
        "</tool_calls:6124c78e>",
    ),
    "dsml 4.1": (
        DSML_V41,
        Writing(
            '<｜DSML｜ invoke name="{}">\n',
            '<｜DSML｜ parameter name="{}">{}</｜DSML｜ parameter>\n',
            "</｜DSML｜ invoke>",
        ),
        "<｜DSML｜ calls>\n",
        "\n</｜DSML｜ calls>",
    ),
    "gcml": (
        GCML,
        Writing(
            '<｜GCML｜invoke name="{}">\n', '<｜GCML｜parameter name="{}">{}</｜GCML｜parameter>\n', "</｜GCML｜invoke>"
        ),
        "<｜GCML｜tool_calls>\n",
        "\n</｜GCML｜tool_calls>",
    ),
    "mimo": (
        MIMO_XML,
        Writing("<tool_call>\n<function={}>\n", "<parameter={}>{}</parameter>\n", "</function>\n</tool_call>"),
        "",
        "",
    ),
    "functionary 3.1": (
        FUNCTION_JSON,
        Writing("<function={}>", "<parameter={}>\n{}\n</parameter>", "</function>"),
        "",
        "",
    ),
    "iquest": (
        IQUEST_KEYED,
        Writing("<iquest_tool_call>{}", "<arg_key>{}</arg_key><arg_value>{}</arg_value>", "</iquest_tool_call>"),
        "",
        "",
    ),
    "spark": (
        SPARK_KEYED,
        Writing("<|tool_call|>{}\n", "<arg_key>{}</arg_key><arg_value>{}</arg_value>", "<|/tool_call|>"),
        "",
        "",
    ),
    "k2 horizon": (
        IFM_CALLS,
        Writing(
            "<ifm|tool_call>{}",
            "<ifm|arg_key>{}</ifm|arg_key><ifm|arg_value>{}</ifm|arg_value>",
            "</ifm|tool_call>",
        ),
        "<ifm|tool_calls>",
        "</ifm|tool_calls>",
    ),
}
"""For every syntax, how it writes a call, and what stands around a section."""

every_syntax = pytest.mark.parametrize("case", ONE.values(), ids=ONE.keys())


def test_every_syntax_is_tried() -> None:
    """Every syntax of any card whose arguments stand between tags."""
    formats = [format for family in families() for format in family.formats if format.settle is None]
    syntaxes = {syntax for format in formats for syntax in format.calls if not syntax.sibling}
    assert {syntax for syntax in syntaxes if isinstance(syntax, TaggedCalls)} <= {syntax for syntax, *_ in ONE.values()}


@every_syntax
def test_a_call(case: Case) -> None:
    syntax, write, before, after = case
    text = write("f", {"a": "Paris", "b": "7"})
    message = read(syntax, f"Hi {before}{text}{after} bye")
    assert [getattr(part, "text", "call") for part in message.parts] == ["Hi", "call", "bye"]
    call = message.tool_calls[0]
    assert (call.name, call.arguments, call.raw, call.error) == ("f", '{"a": "Paris", "b": 7}', text, None)
    assert not message.notices


@every_syntax
def test_two_calls(case: Case) -> None:
    syntax, write, before, after = case
    first, second = write("f", {"a": "x"}), write("g", {})
    message = read(syntax, f"{before}{first}\n{second}{after}")
    assert [(call.name, call.arguments, call.raw) for call in message.tool_calls] == [
        ("f", '{"a": "x"}', first),
        ("g", "{}", second),
    ]
    assert not message.notices


@every_syntax
def test_names(case: Case) -> None:
    syntax, write, before, after = case
    for name in ("a-b.c:d", "größe", "工具"):
        call = call_of(syntax, before + write(name, {name: "x"}) + after)
        assert (call.name, json.loads(call.arguments)) == (name, {name: "x"})


@every_syntax
def test_values(case: Case) -> None:
    syntax, write, before, after = case
    values = {"a": "", "b": ' "\\\t\x00</ &amp; ]] x', "c": "two\nlines", "d": "{1}", "e": "-", "f": "nul"}
    call = call_of(syntax, before + write("f", values) + after)
    assert json.loads(call.arguments) == values


@every_syntax
def test_an_argument_given_twice(case: Case) -> None:
    """It is an error, but for the same value, which is written once. MiniMax M3 writes lists so."""
    syntax, write, before, after = case
    for second, expected in (
        ("2", ('{"a": 1, "a": 2}', "duplicate_argument", ["unreadable_call"])),
        ("1", ('{"a": 1}', None, ["duplicate_argument"])),
    ):
        text = before + write("f", {"a": "1", "b": second}) + after
        for old, new in (('"b"', '"a"'), ("=b>", "=a>"), (">b<", ">a<"), ("<b>", "<a>"), ("/b>", "/a>")):
            text = text.replace(old, new)
        message = read(syntax, text)
        call = message.tool_calls[0]
        found = call.arguments, call.error, [notice.code for notice in message.notices]
        if isinstance(syntax, NestedCalls):
            assert found == (f'{{"a": [1, {second}]}}', None, [])
        else:
            assert found == expected


@every_syntax
def test_it_streams(case: Case) -> None:
    """Every prefix gives the beginning of the arguments, and a string value is told as it comes."""
    syntax, write, before, after = case
    text = before + write("f", {"a": "x" * 50, "b": "1"}) + after
    whole = call_of(syntax, text).arguments
    parser = asides.Parser(format_of(syntax))
    told = ""
    for count, character in enumerate(text, 1):
        told += "".join(event.text for event in parser.feed(character) if isinstance(event, asides.ToolCallDelta))
        assert whole.startswith(told)
        if text[:count].endswith("x" * 40) and not isinstance(syntax, NestedCalls):
            assert told.endswith("x" * 10)
    assert told == whole


@every_syntax
def test_cut_off(case: Case) -> None:
    """A call that is cut off keeps what was told of it."""
    syntax, write, before, after = case
    text = before + write("f", {"a": "Paris", "b": "x y"}) + after
    whole = call_of(syntax, text).arguments
    for count in range(len(before) + len(write("f", {})) // 2, len(text) - len(after) - 1):
        message = run(format_of(syntax), (text[:count],)).message
        assert message is not None
        for call in message.tool_calls:
            assert whole.startswith(call.arguments)
            assert call.error in ("incomplete", None)
            assert call.error is None or not call.complete
    last = run(format_of(syntax), (text[: text.index("x y") + 2],)).message
    assert last is not None
    assert last.tool_calls[-1].arguments == '{"a": "Paris", "b": "x '
    assert (last.tool_calls[-1].name, last.tool_calls[-1].error) == ("f", "incomplete")


# Where a value ends.

CLOSERS = {
    "qwen": "</parameter>",
    "qwen, bare": "</parameter>",
    "seed": "</parameter>",
    "minimax_m2": "</parameter>",
    "dots": "</parameter>",
    "atem": "</atem:parameter>",
    "dsml": "</｜DSML｜parameter>",
    "dsml 4": "</｜DSML｜parameter>",
    "steptml": "</steptml:parameter>",
    "minicpm": "</param>",
    "minicpm, cdata": "]]>",
    "kimi_k3": "<|close|>argument<|sep|>",
    "minimax_m3": M3 + "</a>",
    "glm": "</arg_value>",
    "hunyuan": "</arg_value>",
    "hunyuan, suffixed": "</arg_value:opensource>",
    "hunyuan 4": "</arg_value:6124c78e>",
    "dsml 4.1": "</｜DSML｜ parameter>",
    "gcml": "</｜GCML｜parameter>",
    "mimo": "</parameter>",
    "functionary 3.1": "</parameter>",
    "iquest": "</arg_value>",
    "spark": "</arg_value>",
    "spark, as glm": "</arg_value>",
    "k2 horizon": "</ifm|arg_value>",
}


@pytest.mark.parametrize("name", ONE)
def test_a_closing_tag_inside_a_value(name: str) -> None:
    """It ends the value only before what the grammar expects there, so code may hold it."""
    syntax, write, before, after = ONE[name]
    close = CLOSERS[name]
    for value in (
        f"x{close} y",
        f"{close}{close}",
        f"{close}\n{close} \n\n{close}!",
        f"if{close}\n\n  else",
        close[:-1] + close,
        f"{close}<{close}</{close}",
    ):
        call = call_of(syntax, before + write("f", {"a": value, "b": "1"}) + after)
        assert json.loads(call.arguments) == {"a": value, "b": 1}


def test_a_closing_tag_that_another_parameter_follows_is_the_end() -> None:
    text = "<function=f><parameter=a>x</parameter>\n<parameter=b>y</parameter></function>"
    assert call_of(QWEN_XML, text).arguments == '{"a": "x", "b": "y"}'


def test_markers_of_the_region_inside_a_value() -> None:
    for syntax, value, text in (
        (
            QWEN_XML,
            "</tool_call>x</function>",
            "<tool_call><function=f><parameter=a>{}</parameter></function></tool_call>",
        ),
        (GLM, "</tool_call><arg_key>", "<tool_call>f<arg_key>a</arg_key><arg_value>{}</arg_value></tool_call>"),
    ):
        assert json.loads(call_of(syntax, text.format(value)).arguments) == {"a": value}


def test_framing_newlines() -> None:
    """One newline on each side is framing; more are the value's."""
    for value, expected in (
        ("\nv\n", "v"),
        ("v", "v"),
        ("\n\nv\n\n", "\nv\n"),
        ("\n", ""),
        ("\n\n", ""),
        ("\n\n\n", "\n"),
        ("", ""),
    ):
        text = f"<function=f><parameter=a>{value}</parameter></function>"
        assert json.loads(call_of(QWEN_XML, text).arguments) == {"a": expected}
    text = "<function=f><parameter=a>\n</parameter>\n</parameter></function>"
    assert json.loads(call_of(QWEN_XML, text).arguments) == {"a": "</parameter>"}
    text = "<tool_call>f<arg_key>a</arg_key><arg_value>\nv\n</arg_value></tool_call>"
    assert json.loads(call_of(GLM, text).arguments) == {"a": "\nv\n"}


def test_cdata() -> None:
    value = "<b>1</param></function>"
    first = f'<param name="a">\n<![CDATA[{value}]]>\n</param>'
    text = f'<function name="f">{first}<param name="b"><![CD</param></function>'
    assert json.loads(call_of(MINICPM, text).arguments) == {"a": value, "b": "<![CD"}


def test_a_newline_spelled_out_between_keys() -> None:
    text = "<tool_call>f\\n<arg_key>a</arg_key>\\n<arg_value>x\\n</arg_value>\\n</tool_call>"
    assert json.loads(call_of(GLM, text).arguments) == {"a": "x\\n"}


# Attributes.


def test_attributes_in_any_order_and_quotes() -> None:
    text = """<｜DSML｜function_calls><｜DSML｜invoke name='f "g"'>
<｜DSML｜parameter string="true" name="a>b">1</｜DSML｜parameter>
<｜DSML｜parameter  name = "c"  string = "false" >"x\\u00e9"</｜DSML｜parameter>
</｜DSML｜invoke></｜DSML｜function_calls>"""
    call = call_of(DSML_V32, text)
    assert (call.name, call.arguments) == ('f "g"', '{"a>b": "1", "c": "x\\u00e9"}')


def test_types_that_the_model_writes() -> None:
    argument = '<|open|>argument key="{}" type="{}"<|sep|>{}<|close|>argument<|sep|>'
    items = [
        ("a", "string", "1"),
        ("b", "number", "1e5"),
        ("c", "object", ' {"x":1} '),
        ("d", "null", "null"),
        ("e", "number", "x"),
    ]
    body = "".join(argument.format(*item) for item in items)
    text = f'<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>{body}<|close|>call<|sep|><|close|>tools<|sep|>'
    assert call_of(KIMI_K3, text).arguments == '{"a": "1", "b": 1e5, "c": {"x":1}, "d": null, "e": "x"}'


def test_one_json_object_in_place_of_parameters() -> None:
    body = '{"a": "</｜DSML｜invoke>", "b":1}'
    text = f'<｜DSML｜tool_calls><｜DSML｜invoke name="f">\n{body}\n</｜DSML｜invoke></｜DSML｜tool_calls>'
    assert call_of(DSML_V4, text).arguments == body
    inner = f'<|open|>json type="object"<|sep|>{body}<|close|>json<|sep|>'
    text = f'<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>{inner}<|close|>call<|sep|><|close|>tools<|sep|>'
    assert call_of(KIMI_K3, text).arguments == body


# Nesting.


def nested(name: str, *inner: str) -> str:
    """A nested tag."""
    return f"{M3}<{name}>{''.join(inner)}{M3}</{name}>"


def nested_call(*inner: str) -> str:
    """A call with nested parameters."""
    return f'{M3}<tool_call>{M3}<invoke name="f">{"".join(inner)}{M3}</invoke>{M3}</tool_call>'


def test_nested_parameters() -> None:
    address = nested("to", "\n", nested("city", "X"), nested("zip", "018"))
    items = nested("list", nested("item", "1"), nested("item", nested("k", "<b>v</b>")))
    call = call_of(MINIMAX_M3, nested_call("\n", nested("user", "42"), "\n", address, items))
    assert call.arguments == '{"user": 42, "to": {"city": "X", "zip": "018"}, "list": [1, {"k": "<b>v</b>"}]}'


def test_nested_parameters_by_schema() -> None:
    given = tools(
        a={"type": "array", "items": {"type": "string"}},
        b={"type": "object", "properties": {"item": {"type": "string"}}},
        c={"type": "array"},
        d={"anyOf": [{"type": "object"}, {"type": "null"}]},
    )
    inner = (nested("a", nested("x", "1")), nested("b", nested("item", "1")), nested("c"), nested("d", " "))
    text = nested_call(*inner)
    assert call_of(MINIMAX_M3, text, tools=given).arguments == '{"a": ["1"], "b": {"item": "1"}, "c": [], "d": {}}'


def test_deep_nesting() -> None:
    deep = f"{M3}<a>" * 1000 + "1" + f"{M3}</a>" * 1000
    message = asides.parse(nested_call(deep), format_of(MINIMAX_M3))
    assert message.tool_calls[0].arguments == '{"a": ' * 1000 + "1" + "}" * 1000
    value = "[" * 1000 + "]" * 1000
    message = asides.parse(f"<function=f><parameter=a>{value}</parameter></function>", format_of(QWEN_XML))
    assert message.tool_calls[0].arguments == f'{{"a": {value}}}'


# Types.

UNTYPED = {
    "5": 5,
    "-0.5e3": -500.0,
    "true": True,
    "null": None,
    '{"a": [1]}': {"a": [1]},
    " [1]\n": [1],
    "5 ": "5 ",
    "05": "05",
    "+5": "+5",
    ".5": ".5",
    "1.": "1.",
    "True": "True",
    "nul": "nul",
    "NaN": "NaN",
    "Infinity": "Infinity",
    '"x"': '"x"',
    "{'a': 1}": "{'a': 1}",
    "[1,]": "[1,]",
    "{} {}": "{} {}",
    "[": "[",
    "2024-01-01": "2024-01-01",
    "  ": "  ",
    "": "",
}


@pytest.mark.parametrize(("text", "expected"), UNTYPED.items())
def test_untyped_values(text: str, expected: object) -> None:
    arguments = call_of(GLM, f"<tool_call>f<arg_key>a</arg_key><arg_value>{text}</arg_value></tool_call>").arguments
    assert json.loads(arguments) == {"a": expected}


TYPED: list[tuple[Any, str, str]] = [
    ({"type": "string"}, "5", '"5"'),
    ({"type": "string"}, "null", '"null"'),
    ({"type": "string"}, '{"a": 1}', '"{\\"a\\": 1}"'),
    ({"type": "integer"}, " 5\n", "5"),
    ({"type": "integer"}, "12345678901234567890123", "12345678901234567890123"),
    ({"type": "integer"}, "five", '"five"'),
    ({"type": "number"}, "5.0", "5.0"),
    ({"type": "boolean"}, "True", "true"),
    ({"type": "boolean"}, "yes", '"yes"'),
    ({"type": "null"}, "None", "null"),
    ({"type": "object"}, ' {"a" : 1} ', '{"a" : 1}'),
    ({"type": "object"}, "{1}", '"{1}"'),
    ({"type": "array"}, "[1, 2]", "[1, 2]"),
    ({"type": ["string", "null"]}, "null", "null"),
    ({"type": ["string", "null"]}, "None", '"None"'),
    ({"type": ["string", "null"]}, "5", '"5"'),
    ({"type": ["string", "integer"]}, "5", "5"),
    ({"type": ["string", "integer"]}, "[5]", '"[5]"'),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "5x", '"5x"'),
    ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, "null", "null"),
    ({"allOf": [{"type": "string"}, {"minLength": 1}]}, "5", '"5"'),
    ({"type": "string", "nullable": True}, "null", "null"),
    ({"enum": ["1", "2"]}, "1", '"1"'),
    ({"enum": [1, "2"]}, "1", "1"),
    ({"enum": [1, "2"]}, "2", '"2"'),
    ({"const": "7"}, "7", '"7"'),
    ({"type": "float"}, "1.5", "1.5"),
    ({"type": "float"}, ".5", "0.5"),
    ({"type": "STRING"}, "1", '"1"'),
    ({"type": ["int", "None"]}, "007", "7"),
    ({"type": "dict"}, "{'a': 1}", '{"a": 1}'),
    ({"type": "any"}, "1", "1"),
    ({"type": "any"}, "007", '"007"'),
    ({"type": ["number", "any"]}, "x", '"x"'),
    ({"$ref": "#/$defs/Size"}, "1", "1"),
    ({"$ref": "#/$defs/Size"}, "x", '"x"'),
    ({"$ref": "#/nowhere"}, "1", "1"),
    ({"$ref": "other.json"}, "1", "1"),
    ({"properties": {}}, "{}", "{}"),
    ({}, "1", "1"),
    (True, "1", "1"),
    ("nonsense", "1", "1"),
    ({"type": 7, "anyOf": 5, "enum": 3}, "1", "1"),
]


@pytest.mark.parametrize(("schema", "text", "expected"), TYPED)
def test_typed_values(schema: Any, text: str, expected: str) -> None:
    body = f"<tool_call>f<arg_key>a</arg_key><arg_value>{text}</arg_value></tool_call>"
    assert call_of(GLM, body, tools=tools(a=schema)).arguments == f'{{"a": {expected}}}'


def test_schemas_that_refer_to_themselves() -> None:
    node: dict[str, Any] = {"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "integer"}]}
    assert Schema(node).types == frozenset({"number"})
    assert Schema({"$ref": "#"}).types is None


def test_references_that_lead_nowhere() -> None:
    """A number of so many digits is one that Python refuses to read."""
    for place in ("1", "x", "9" * 5000):
        assert Schema({"$ref": f"#/anyOf/{place}"}, {"anyOf": [{"type": "integer"}]}).types is None
    assert Schema({"$ref": "#/anyOf/0"}, {"anyOf": [{"type": "integer"}]}).types == frozenset({"number"})
    assert Schema({"enum": [None, True]}).types == frozenset({"null", "boolean"})


def test_tags_that_are_too_long() -> None:
    """What is looked through for one has an end, so that cost stays linear."""
    calls = f'<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>json {"x" * 1100}<|sep|>{{}}'
    message = read(KIMI_K3, calls + "<|close|>json<|sep|><|close|>call<|sep|><|close|>tools<|sep|>")
    assert [call.error for call in message.tool_calls] == ["unreadable"]
    value = f"x</function>{' ' * 1100}y"
    message = read(QWEN_XML, f"<function=f><parameter=a>{value}</parameter></function>")
    assert json.loads(message.tool_calls[0].arguments) == {"a": value}


def test_nested_parameters_whose_tags_are_like_no_other() -> None:
    syntax = NestedCalls(
        section=("[calls]",),
        section_close=("[/calls]",),
        call=Tag(start="[call", attribute="name", stop="]"),
        call_close="[/call]",
        parameter=Tag(start="<p:", stop=">"),
        parameter_close="",
    )
    message = read(syntax, '[calls][call name="f"]<p:a>1<p:/a><p:b><p:c>x<p:/c><p:/b>[/call][/calls]')
    assert message.tool_calls[0].arguments == '{"a": 1, "b": {"c": "x"}}'
    assert not message.notices


def test_json_in_place_of_nested_parameters() -> None:
    body = f'{M3}<tool_call>{M3}<invoke name="f">{{"a": 1}}{M3}</invoke>{M3}</tool_call>'
    assert read(msgspec.structs.replace(MINIMAX_M3, json=True), body).tool_calls[0].arguments == '{"a": 1}'


def test_half_a_surrogate_pair_in_a_key() -> None:
    message = read(GLM, "<tool_call>f<arg_key>\ud800</arg_key><arg_value>1</arg_value></tool_call>")
    assert message.tool_calls[0].arguments == '{"\\ud800": 1}'


def test_other_members() -> None:
    schema = Schema({"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "boolean"}})
    other = schema.member("b")
    assert other is not None
    assert other.types == frozenset({"boolean"})


def test_a_string_by_schema_flows_at_once() -> None:
    parser = asides.Parser(format_of(QWEN_XML), tools=tools(a={"type": "string"}))
    events = parser.feed("<function=f><parameter=a>[1, 2")
    assert "".join(event.text for event in events if isinstance(event, asides.ToolCallDelta)) == '{"a": "[1, 2'


def test_a_value_held_past_the_limit_is_a_string() -> None:
    whole = "[" + "1," * 48 + "1]"
    for value, expected in ((whole + " ", whole), (whole + "  ", json.dumps(whole + "  "))):
        assert len(whole) == 99
        text = f"<function=f><parameter=a>{value}</parameter></function>"
        call = call_of(QWEN_XML, text, limit=100)
        assert call.arguments == f'{{"a": {expected}}}'


class Heard:
    """A sink that keeps the arguments it is told of."""

    limit = 1000

    def __init__(self) -> None:
        self.told: list[str] = []

    def arguments(self, text: str) -> None:
        """More of the arguments."""
        self.told.append(text)


def test_a_writer_holds_no_more_than_it_must() -> None:
    heard = Heard()
    told = heard.told
    writer = ValueWriter(cast(Sink, heard), None)
    for piece in (" ", "{", '"a', "\\", "n", '": 1', "}", " "):
        writer.add(piece)
        assert not told
    writer.add("x")
    assert "".join(told) == '" {\\"a\\\\n\\": 1} x'


# Sections, and what is wrong.


def test_one_function_between_markers_owns_them() -> None:
    one = "<function=f><parameter=a>1</parameter></function>"
    assert call_of(QWEN_XML, f"<tool_call>\n{one}\n</tool_call>").raw == f"<tool_call>\n{one}\n</tool_call>"
    message = read(QWEN_XML, f"<tool_call>\n{one}\n{one}\n</tool_call>")
    assert [call.raw for call in message.tool_calls] == [one, one]


def codes(message: Message) -> list[str]:
    """The codes of a message's notices."""
    return [notice.code for notice in message.notices]


def test_missing_closing_marker() -> None:
    one = "<function=f><parameter=a>1</parameter></function>"
    message = read(QWEN_XML, f"<tool_call>{one} and so on")
    assert (message.tool_calls[0].arguments, message.tool_calls[0].error, message.text) == (
        '{"a": 1}',
        None,
        "and so on",
    )
    assert codes(message) == ["missing_close"]
    message = read(MINIMAX_M2, '<minimax:tool_call><invoke name="f"></invoke>')
    assert (message.tool_calls[0].error, codes(message)) == (None, ["missing_close"])


def test_missing_end_of_the_call() -> None:
    message = read(QWEN_XML, "<tool_call><function=f><parameter=a>1</parameter></tool_call>")
    assert (message.tool_calls[0].arguments, message.tool_calls[0].error) == ('{"a": 1}', None)
    assert codes(message) == ["missing_close"]


def test_words_between_the_calls_of_a_section() -> None:
    one = '<invoke name="f"></invoke>'
    message = read(MINIMAX_M2, f"<minimax:tool_call>{one} and {one}</minimax:tool_call>")
    assert message.tool_calls[0].error is None
    assert message.tool_calls[1].error == "unreadable"
    message = read(
        STEPTML,
        "<｜tool_calls_begin｜><｜tool_call_begin｜>x<｜tool_call_end｜><｜tool_call_begin｜>"
        '<steptml:invoke name="f"></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>',
    )
    assert [(call.name, call.error) for call in message.tool_calls] == [("", "unreadable"), ("f", None)]


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        (QWEN_XML, "Write <tool_call> and then a function."),
        (QWEN_XML, "Write <function= and a name."),
        (QWEN_XML, "Write <function=f> and then a parameter."),
        (GLM, "Write <tool_call> and then a name."),
        (GLM, "Write <tool_call>f and then a key."),
        (MINIMAX_M2, "Write <minimax:tool_call> and then <invoke>."),
        (MINICPM, 'Write <function name="f"> and then a parameter.'),
    ],
)
def test_prose_is_no_call(syntax: CallSyntax, text: str) -> None:
    message = read(syntax, text)
    assert (message.text, message.tool_calls) == (text, ())
    assert codes(message) == ["not_a_call"]


def test_calls_without_a_name() -> None:
    for syntax, text in (
        (QWEN_XML, "<tool_call><function=></function></tool_call>"),
        (MINIMAX_M2, '<minimax:tool_call><invoke name=""></invoke></minimax:tool_call>'),
        (MINIMAX_M2, '<minimax:tool_call><invoke tool="f"></invoke></minimax:tool_call>'),
    ):
        message = read(syntax, text)
        assert [call.error for call in message.tool_calls] == ["no_name"]


def test_a_shared_opener_is_told_by_what_follows() -> None:
    from asides._engine.calls.json_calls import JsonCalls

    hermes = JsonCalls(open=("<tool_call>",), close=("</tool_call>",))
    for syntaxes in ((QWEN_XML, GLM, hermes), (hermes, GLM, QWEN_XML), (GLM, QWEN_XML, hermes)):
        format = format_of(*syntaxes)
        for body in (
            '{"name": "f", "arguments": {"a": "x>y"}}',
            "<function=f><parameter=a>x>y</parameter></function>",
            "f<arg_key>a</arg_key><arg_value>x>y</arg_value>",
        ):
            text = f"<tool_call>\n{body}\n</tool_call>"
            outcome = check_chunking(format, text, [*every_place(text), characters(text)], {})
            assert outcome.message is not None
            call = outcome.message.tool_calls[0]
            assert (call.name, json.loads(call.arguments), call.error) == ("f", {"a": "x>y"}, None)


# Round trips.

values = st.one_of(
    st.text(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.lists(st.integers() | st.text()),
    st.dictionaries(st.text(), st.integers() | st.text()),
)


def schema_of(value: object) -> dict[str, str]:
    """The schema of a value."""
    for kinds, name in (
        ((str,), "string"),
        ((bool,), "boolean"),
        ((int, float), "number"),
        ((list,), "array"),
        ((dict,), "object"),
    ):
        if isinstance(value, kinds):
            return {"type": name}
    return {"type": "null"}


@given(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_.-]{0,8}", fullmatch=True), values, max_size=4), st.data())
def test_round_trip(arguments: dict[str, Any], data: st.DataObject) -> None:
    syntax, write, before, after = data.draw(st.sampled_from(list(ONE.values())))
    given = tools(**{key: schema_of(value) for key, value in arguments.items()})
    written = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    text = before + write("f", written) + after
    places = data.draw(st.lists(st.integers(0, len(text)), max_size=4))
    chunks = [text[start:stop] for start, stop in zip([0, *sorted(places)], [*sorted(places), len(text)], strict=True)]
    message = run(format_of(syntax), chunks, tools=given).message
    assert message is not None
    call = message.tool_calls[0]
    assert (call.name, call.error, json.loads(call.arguments)) == ("f", None, arguments)


# Cost.


TAIL = 100
"""What a reader may leave unread at most."""
FLOOD = 6 * TAIL


class Silent:
    """A sink that listens to nothing."""

    calls = 0
    tools: Tools | None = None
    limit = 1 << 20
    stops = ("<|im_end|>",)
    tentative = False

    def __init__(self) -> None:
        self.written = 0

    def accepts(self, key: str) -> bool:
        """Take any argument."""
        return True

    def arguments(self, text: str) -> None:
        """Count what is written."""
        self.written += len(text)

    def raw(self, start: int, stop: int) -> str:
        """Nothing is kept."""
        return ""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


def floods(write: Writing, name: str) -> Iterator[str]:
    """Values that are hard to read in linear time: long beside the tail that may be left unread."""
    close = CLOSERS[name]
    for unit in (
        "x",
        "\n",
        " ",
        "1",
        "[",
        "<",
        "</",
        close,
        close + " " * 50,
        close[:-1],
        f"{close}\n",
        write("f", {"b": "1"}),
        write.start.format("f"),
        write.item.format("b", "1"),
        write.item.format("b", "1")[:-4],
        write.item.format("b", close),
        write.close,
        '{"a": ',
        "\\",
        "]",
    ):
        yield unit * (FLOOD // len(unit))
        yield "\n" + f"{unit}\n" * (FLOOD // len(unit))


@pytest.mark.parametrize("name", ONE)
def test_little_is_read_again(name: str) -> None:
    """Given a character at a time, a reader leaves only a short tail unread, so the work grows with the input."""
    syntax, write, before, after = ONE[name]
    opener = next(opener for opener in syntax.openers if (before + write("f", {})).startswith(opener))
    for value in floods(write, name):
        text = (before + write("f", {"a": value, "b": "1"}) + after)[len(opener) :]
        reader = syntax.reader(Silent(), opener)
        at, work = 0, 0
        for end in range(1, len(text) + 1):
            stop = reader.read(text, at, end, 0, False)
            assert at <= stop <= end
            assert end - stop < TAIL, (value[:40], text[stop:end])
            work += end - at
            at = stop
            if reader.status.value != "reading":
                break
        assert work < TAIL * len(text)
