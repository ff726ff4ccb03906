"""The drop-in: the same however a stream is cut, nothing raised, nothing overwritten, at a cost that grows evenly."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides.hf import ResponseParser, parse_response, template_for
from asides.hf._template import Template
from tests.hf.support import Reading, read, readings
from tests.support import characters, count_calls, every_place

QWEN: dict[str, Any] = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "reasoning_content": {"open": "<think>", "close_pattern": r"</think>\s*"},
        "tool_calls": {
            "open": "<tool_call>",
            "close_pattern": r"</tool_call>\s*",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"<\|im_end\|>\s*"},
    },
}
AHEAD: dict[str, Any] = {
    "start_anchor": "<|A|><think>\n",
    "fields": {
        "reasoning_content": {"open_pattern": r"(?=[\s\S]*?</think>)", "close_pattern": r"</think>\s*"},
        "content": {"close_pattern": r"<\|end\|>\s*|$"},
    },
}


@pytest.mark.parametrize("name", [name for name in asides.formats() if asides.get_format(name).settle is None], ids=str)
def test_chunks_do_not_matter(name: str) -> None:
    """Every case of a format, by the template that we write for it, cut in several places and into characters."""
    template = Template.load(template_for(name).template)  # checking it takes longer than reading a reply with it
    for reading in readings([name]):
        _check_chunking(template, reading)


def _check_chunking(template: Template, reading: Reading) -> None:
    text = reading.text
    whole = read(template, [text], reading.prefix, reading.tools)
    step = 1 + len(text) // 12
    for chunks in [characters(text), *list(every_place(text))[::step]]:
        assert read(template, chunks, reading.prefix, reading.tools) == whole, (text, chunks)


@cache
def _loaded() -> tuple[Template, ...]:
    return tuple(map(Template.load, (QWEN, AHEAD, template_for("qwen3").template)))


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.sampled_from(
            ["<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>", '{"a":1}', "[1,", "{", " ", "\n", "x"]
        )
        | st.text(max_size=4)
    )
)
def test_nothing_raises_and_nothing_is_lost(pieces: list[str]) -> None:
    """Whatever a model writes, there is a message, and each word of it is in an event."""
    text = "".join(pieces)
    for template in _loaded():
        message, events = read(template, [text], "")
        assert read(template, pieces, "") == (message, events)
        assert sum(event["type"] == "region_open" for event in events) == sum(
            event["type"] == "region_close" for event in events
        )


def test_a_second_thought_is_joined_to_the_first() -> None:
    """The reference would keep only the last."""
    message = parse_response("<think>a</think>b<think>c</think>d<|im_end|>", QWEN, prefix="")
    assert message == {"role": "assistant", "reasoning_content": "a\n\nc", "content": "b\n\nd"}


def test_a_broken_call_is_kept_beside_the_message() -> None:
    """The reference would raise, and the answer would be gone."""
    text = '<think>a</think>ok<tool_call>{"name": </tool_call><tool_call>{"name": "f", "arguments": {}}</tool_call>'
    message, events = read(QWEN, [text], "")
    assert message["content"] == "ok"
    assert message["tool_calls"] == [{"type": "function", "function": {"name": "f", "arguments": {}}}]
    assert [broken["raw"] for broken in message["unparsed_tool_calls"]] == ['{"name": ']
    assert [event["value"] for event in events if "error" in event] == [None]


def test_the_prompt_opens_thinking() -> None:
    """What follows the last assistant header belongs to the answer."""
    prompt = "<|im_start|>assistant\n<think>old</think>x<|im_end|>\n<|im_start|>assistant\n<think>\n"
    parser = ResponseParser(QWEN, prompt)
    assert [event["type"] for event in parser.initial_events] == ["region_open", "region_chunk"]
    parser.feed("a plan</think>\n\nyes")
    assert parser.finalize()[0] == {"role": "assistant", "reasoning_content": "a plan", "content": "yes"}


def test_arguments_are_cast_by_the_tools() -> None:
    """Types in the order in which the schema names them; what does not fit stays a string."""
    template = template_for("qwen3_coder")
    text = "<tool_call>\n<function=f>\n" + "".join(
        f"<parameter={key}>\n{value}\n</parameter>\n"
        for key, value in {"n": "3.0", "s": "75001", "b": "True", "o": '{"x": 1}', "e": "abc", "z": "null"}.items()
    )
    properties = {
        "n": {"type": "integer"},
        "s": {"type": "string"},
        "b": {"type": "boolean"},
        "o": {"anyOf": [{"type": "object"}, {"type": "null"}]},
        "e": {"type": "number"},
        "z": {"type": "string", "nullable": True},
    }
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}}]
    message = parse_response(text + "</function>\n</tool_call>", template, prefix="", tools=tools)
    arguments = message["tool_calls"][0]["function"]["arguments"]
    assert arguments == {"n": 3, "s": "75001", "b": True, "o": {"x": 1}, "e": "abc", "z": None}
    assert json.dumps(arguments["n"]) == "3"


def test_it_is_used_as_the_reference_is() -> None:
    """The prefix is a must, and nothing goes on behind the end."""
    with pytest.raises(ValueError, match="prefix"):
        ResponseParser(QWEN)
    parser = ResponseParser(QWEN, "")
    parser.finalize()
    with pytest.raises(RuntimeError):
        parser.feed("a")
    with pytest.raises(RuntimeError):
        parser.finalize()


def test_content_parsers() -> None:
    """Each parser of the standard."""
    fields: dict[str, Any] = {
        "i": {"open": "<i>", "close": "</i>", "content": "int"},
        "f": {"open": "<f>", "close": "</f>", "content": "float"},
        "b": {"open": "<b>", "close": "</b>", "content": "bool"},
        "j": {
            "open": "<j>",
            "close": "</j>",
            "content": "json",
            "content_args": {"unquoted_keys": True, "string_delims": [["<q>", "<q>"]]},
        },
        "k": {"open": "<k>", "close": "</k>", "content": "kv-lines"},
        "x": {
            "open": "<x>",
            "close": "</x>",
            "content": "xml-inline",
            "content_args": {
                "tag_pattern": r"<(?P<key>\w)>(?P<value>.*?)</\w>",
                "merge_duplicates": True,
                "value_parser": {"name": "json", "args": {"allow_non_json": True}},
            },
        },
        "r": {"open": "<r>", "close": "</r>", "repeats": True},
    }
    text = '<i> 7 </i><f>1.5</f><b>TRUE</b><j>{a:<q>x, b:"<q>,n:1}</j><k>a: 1\nb\nc: d: e</k>'
    text += "<x><a>1</a><a>z</a></x><r>1</r><r>2</r>"
    assert parse_response(text, {"start_anchor": "A", "fields": fields}, prefix="") == {
        "i": 7,
        "f": 1.5,
        "b": True,
        "j": {"a": 'x, b:"', "n": 1},
        "k": {"a": "1", "c": "d: e"},
        "x": {"a": [1, "z"]},
        "r": ["1", "2"],
    }


@pytest.mark.parametrize("template", [QWEN, AHEAD, template_for("qwen3.5").template])
@pytest.mark.parametrize("unit", ["word ", "<tool_call>", "</think", " ", "<think>a</think>b "])
def test_the_cost_grows_with_the_text(template: dict[str, Any], unit: str) -> None:
    """Four times the text takes no more than about four times the calls."""

    def cost(times: int) -> int:
        parser = ResponseParser(template, "")

        def run() -> None:
            for _ in range(times):
                parser.feed(unit)
            parser.finalize()

        return count_calls(run)

    assert cost(800) < 4.6 * cost(200)
