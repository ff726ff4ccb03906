"""Structural tags: what they say, what is refused and why; where xgrammar is installed, a few walks through each."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import asides
from asides import Format
from asides._engine.calls.json_calls import JsonCalls
from asides._engine.calls.python_calls import PythonCalls
from asides._engine.calls.syntax import CallSyntax
from tests.engine.constrained import TOOLS, fixed, tagged_formats
from tools.structural_tag_table import PAGE, with_tables

ROOT = Path(__file__).parents[2]


def tool(parameters: dict[str, Any], name: str = "f") -> list[dict[str, Any]]:
    """One tool."""
    return [{"type": "function", "function": {"name": name, "parameters": parameters}}]


ONE = tool({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
RECURSIVE = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/tree"}},
    "$defs": {
        "tree": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
    },
}


def test_a_tag_says_thoughts_and_calls() -> None:
    tag = asides.get_format("qwen3").structural_tag(ONE)
    content = tag["format"]
    assert tag["type"] == "structural_tag"
    assert content["triggers"] == ["<think>", "<tool_call>"]
    thought, call = content["tags"]
    assert (thought["begin"], thought["end"]) == ("<think>", ["</think>"])
    assert {"<tool_call>", "</think>", "<|im_end|>"} <= set(thought["content"]["excludes"])
    assert (call["begin"], call["end"]) == ("<tool_call>", "</tool_call>")
    assert "</think>" in content["excludes"], "a closing marker with nothing open"
    assert not set(content["triggers"]) & set(content["excludes"])


def test_the_start_decides_whether_a_thought_is_open() -> None:
    qwen = asides.get_format("qwen3")
    opened = qwen.structural_tag(ONE, start="thinking")["format"]["elements"][0]
    assert (opened["type"], opened["begin"], opened["end"]) == ("tag", "", ["</think>"])
    assert asides.get_format("qwen3_thinking").structural_tag(ONE) == qwen.structural_tag(ONE, start="thinking")
    assert asides.get_format("qwen3_thinking").structural_tag(ONE, start="text") == qwen.structural_tag(ONE)


def test_a_format_of_ones_own() -> None:
    """The markers are the format's, wherever it comes from."""
    calls = (JsonCalls(open=("[[",), close=("]]",), names=("fn",), arguments=("args",)),)
    tag = Format.tags("(hm", "mh)", name="mine", stops=("STOP",), calls=calls).structural_tag(ONE)
    assert tag["format"]["triggers"] == ["(hm", "[["]
    spelled = json.dumps(tag)
    assert all(part in spelled for part in ('\\"(fn)\\"', '\\"(args)\\"', "]]", "mh)"))
    assert "STOP" in tag["format"]["excludes"]


def test_both_shapes_of_definition_give_the_same() -> None:
    function = ONE[0]["function"]
    plain = [{"name": "f", "input_schema": function["parameters"]}]
    format = asides.get_format("glm45")
    assert format.structural_tag(ONE) == format.structural_tag([function]) == format.structural_tag(plain)


def test_a_tag_is_json_and_leaves_the_tools_alone() -> None:
    before = json.dumps(TOOLS)
    for name, format in tagged_formats().items():
        tag = format.structural_tag(TOOLS)
        assert json.loads(json.dumps(tag)) == tag, name
    assert json.dumps(TOOLS) == before


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("auto", "settled while reading"),
        ("passthrough", "no call syntax"),
        ("think_tag", "in any case"),
        ("hy_v4", "for_tokens"),
        ("json", "need no opening marker"),
        ("command_r_plus", "where a line begins"),
        ("functionary_v3_2", "also text"),
        ("muse", "headers"),
    ],
)
def test_what_cannot_be_said_is_refused_with_its_reason(name: str, reason: str) -> None:
    with pytest.raises(asides.UsageError, match=f"{name} has no structural tag .*{reason}"):
        asides.get_format(name).structural_tag(ONE)


def test_a_suffix_makes_it_possible() -> None:
    triggers = fixed("hy_v4").structural_tag(ONE)["format"]["elements"][1]["triggers"]
    assert "<tool_calls:6124c78e>" in triggers


@pytest.mark.parametrize(
    ("name", "tools", "reason"),
    [
        ("qwen3", [], "at least one tool"),
        ("qwen3", [{"type": "web_search"}], "at least one tool"),
        ("glm45", tool({}, "two words"), "'two words'"),
        ("harmony", tool({}, "<|end|>"), "end"),
        ("qwen3_coder", tool({"type": "object", "properties": {"a>b": {}}}), "'a>b'"),
        ("lfm2", tool({"type": "object", "properties": {"a-b": {}}}), "'a-b'"),
        ("lfm2", tool(RECURSIVE), "refer to themselves"),
        ("minimax_m3", tool(RECURSIVE), "refer to themselves"),
        ("gemma4", tool(RECURSIVE), "refer to themselves"),
        ("qwen3_coder", tool({"anyOf": [{"type": "object"}]}), "'anyOf'"),
        ("lfm2", tool({"type": "object", "properties": {"a": {"enum": [[1]]}}}), "'f' list a value that is nested"),
        ("qwen3_coder", tool({"type": "object", "properties": {"a": {"enum": ["</parameter>"]}}}), "no value"),
        ("lfm2", tool({"type": "object", "properties": {"a": {"enum": []}}}), "no value"),
    ],
)
def test_tools_that_cannot_be_constrained_are_refused(name: str, tools: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(asides.UsageError, match=reason):
        asides.get_format(name).structural_tag(tools)


def values_of(schema: dict[str, Any]) -> str:
    """What an argument `a` with this schema may be, in a syntax whose values are constrained piece by piece."""
    return json.dumps(asides.get_format("olmo3").structural_tag(tool({"type": "object", "properties": {"a": schema}})))


def test_a_list_without_elements() -> None:
    assert values_of({"type": "array", "maxItems": 0}) == values_of({"const": 0}).replace('"a=0"', '"a=[]"')


def test_what_may_be_null() -> None:
    nullable = values_of({"type": "boolean", "nullable": True})
    assert nullable == values_of({"anyOf": [{"type": "boolean"}, {"type": "null"}]})
    assert nullable == values_of({"type": ["boolean", "null"]})


def test_a_value_that_would_end_itself_is_left_out() -> None:
    def tag(values: list[Any]) -> dict[str, Any]:
        parameters = {"type": "object", "properties": {"a": {"enum": values}}}
        return asides.get_format("qwen3_coder").structural_tag(tool(parameters))

    assert tag(["x", "y</parameter>", 3]) == tag(["x", 3])


@pytest.mark.parametrize("lines", [False, True])
def test_calls_on_lines_where_the_syntax_has_them(lines: bool) -> None:
    syntax = PythonCalls(open=("<c>",), close=("</c>",), lines=lines)
    tag = Format.tags("(hm", "mh)", name="mine", calls=(syntax,)).structural_tag(ONE)
    assert ("\\nf(" in json.dumps(tag)) is lines


class Unconstrained(CallSyntax, frozen=True, kw_only=True):
    """Calls of a kind of their own."""


def test_a_syntax_of_ones_own_is_refused() -> None:
    format = Format.tags("(hm", "mh)", name="mine", calls=(Unconstrained(open=("[[",), close=("]]",)),))
    with pytest.raises(asides.UsageError, match="Unconstrained cannot be constrained"):
        format.structural_tag(ONE)


def test_json_says_what_tags_cannot() -> None:
    for parameters in (RECURSIVE, {"anyOf": [{"type": "object"}]}):
        assert asides.get_format("qwen3").structural_tag(tool(parameters))
    assert asides.get_format("glm45").structural_tag(tool(RECURSIVE)), "a value that is JSON may refer to itself"


@pytest.mark.parametrize("start", ["header", "undecided", "end"])
def test_an_output_starts_somewhere(start: Any) -> None:
    with pytest.raises(asides.UsageError, match="cannot start in"):
        asides.get_format("qwen3").structural_tag(ONE, start=start)
    with pytest.raises(asides.UsageError, match="cannot start in 'thinking'"):
        asides.get_format("functionary_v3_1").structural_tag(ONE, start="thinking")


def test_odd_definitions_give_a_tag_or_an_error_of_ours() -> None:
    """Whatever a schema holds, nothing else is raised."""
    odd: list[Any] = [
        {},
        {"type": "object", "properties": {"a": None}},
        {"type": "object", "properties": {"a": True, "b": {"type": "what"}, "c": {"type": []}}},
        {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}, "b": {"$ref": "http://x"}}},
        {"type": "object", "properties": {"a": {"enum": []}, "b": {"anyOf": []}}, "required": ["z"]},
        {"type": "object", "properties": {"a": {"minLength": "x", "maxLength": None}, "b": {"items": 3}}},
        {"type": "object", "properties": {"a": {"type": "array", "minItems": None}}, "required": None},
        {"properties": [], "required": [1, {}]},
    ]
    for parameters in odd:
        for format in tagged_formats().values():
            with suppress(asides.UsageError):
                assert json.dumps(format.structural_tag(tool(parameters)))


def test_the_page_is_up_to_date() -> None:
    """Else: `make families`."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert with_tables(text) == text


def test_the_example_prints_what_the_page_says() -> None:
    code, printed = re.findall(r"```(?:python|text)\n(.*?)```", (ROOT / PAGE).read_text(encoding="utf-8"), re.S)[:2]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == printed


def test_a_few_walks_through_each_grammar() -> None:
    """The same as `make test-xgrammar`, short."""
    pytest.importorskip("xgrammar", reason="xgrammar is not installed; make test-xgrammar installs it")
    pytest.importorskip("jsonschema")
    real = import_module("tests.engine.real_xgrammar")
    for tag in real.GROUPS:
        real.check_walks(tag, 50)
    for name in real.FORMATS:
        real.check_written(name, 20)
