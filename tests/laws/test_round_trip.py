"""Law 6 for calls: generated calls, written in each syntax with words around, come back with equal values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import asides
from tests.laws.effort import examples
from tests.support import characters, run

Arguments = dict[str, Any]
Write = Callable[[str, Arguments], str]

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
WORDS = st.text(st.sampled_from("ab <>/{}[]\"'\\,:=()\n\té🤔&|.-`"), max_size=24)
SCALARS = st.one_of(
    WORDS, st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=5
)
CALLS = st.tuples(NAMES, st.dictionaries(NAMES, VALUES, max_size=4))


def schema_of(value: object) -> dict[str, Any]:
    """The JSON schema of a value, as a tool would declare it."""
    if isinstance(value, bool):
        return {"type": "boolean"}
    for kind, name in ((str, "string"), (int, "integer"), (float, "number"), (list, "array")):
        if isinstance(value, kind):
            return {"type": name}
    if isinstance(value, dict):
        return {"type": "object", "properties": {key: schema_of(item) for key, item in value.items()}}
    return {"type": "null"}


def tools_of(name: str, arguments: Arguments) -> list[dict[str, Any]]:
    """OpenAI's definition of the one tool that is called."""
    return [{"type": "function", "function": {"name": name, "parameters": schema_of(arguments)}}]


def plain(value: object) -> str:
    """A value as it stands in tags: strings as they are, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def python(value: object) -> str:
    """A value as a Python literal."""
    return repr(value)


def braces(quote: str) -> Callable[[object], str]:
    """Values with bare keys, and strings between two of the same marker."""

    def write(value: object) -> str:
        if isinstance(value, str):
            return f"{quote}{value}{quote}"
        if isinstance(value, list):
            return "[" + ",".join(map(write, value)) + "]"
        if isinstance(value, dict):
            return "{" + ",".join(f"{key}:{write(item)}" for key, item in value.items()) + "}"
        return json.dumps(value)

    return write


def as_json(opening: str, closing: str, name: str = "name", arguments: str = "arguments") -> Write:
    """A JSON object between two markers."""
    return lambda called, given: opening + json.dumps({name: called, arguments: given}) + closing


def named(before: str, between: str, after: str) -> Write:
    """A name, then JSON."""
    return lambda called, given: before + called + between + json.dumps(given, ensure_ascii=False) + after


def tagged(before: str, key: str, close: str, after: str, typed: Callable[[object], str] = lambda value: "") -> Write:
    """Values in tags. `key` says how a parameter's tag is written, with the name and what tells its type."""

    def write(called: str, given: Arguments) -> str:
        values = [key.format(name, typed(value)) + plain(value) + close for name, value in given.items()]
        return before.format(called) + "".join(values) + after

    return write


def pythonic(before: str, after: str) -> Write:
    """Python's own way of calling."""
    return lambda called, given: (
        before + called + "(" + ", ".join(f"{key}={python(value)}" for key, value in given.items()) + ")" + after
    )


def brace(before: str, after: str, quote: str) -> Write:
    """Bare keys in braces."""
    return lambda called, given: f"{before}call:{called}{braces(quote)(given)}{after}"


def dsml(value: object) -> str:
    """What DSML says of a value's type."""
    return "true" if isinstance(value, str) else "false"


D = "｜DSML｜"
WRITERS: dict[str, Write] = {
    "qwen3": as_json("<tool_call>\n", "\n</tool_call>"),
    "longcat": as_json("<longcat_tool_call>", "</longcat_tool_call>"),
    "jamba": as_json("<tool_calls>[", "]</tool_calls>"),
    "cohere_command3": as_json("<|START_ACTION|>[", "]<|END_ACTION|>", "tool_name", "parameters"),
    "granite": as_json("<|tool_call|>[", "]"),
    "granite_20b_fc": as_json("<function_call> ", ""),
    "internlm": as_json("<|action_start|><|plugin|>", "<|action_end|>", arguments="parameters"),
    "llama3_json": as_json("<|python_tag|>", "", arguments="parameters"),
    "phi4_mini_json": as_json("functools[", "]"),
    "gigachat3": as_json("<|function_call|>", ""),
    "nemotron_deci": as_json("<TOOLCALL>[", "]</TOOLCALL>"),
    "apertus": lambda called, given: f"<|tools_prefix|>[{json.dumps({called: given})}]<|tools_suffix|>",
    "kimi_k2": named(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.",
        ":0<|tool_call_argument_begin|>",
        "<|tool_call_end|><|tool_calls_section_end|>",
    ),
    "deepseek_v31": named(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "deepseek_v3": named(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        "\n```json\n",
        "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    "mistral": named("[TOOL_CALLS]", "[ARGS]", ""),
    "qwen3_coder": tagged(
        "<tool_call>\n<function={}>\n", "<parameter={}>\n", "\n</parameter>\n", "</function>\n</tool_call>"
    ),
    "seed_oss": tagged(
        "<seed:tool_call><function={}>", "<parameter={}>\n", "\n</parameter>", "</function></seed:tool_call>"
    ),
    "dots": tagged(
        '<dots_function_call><invoke name="{}">',
        '<parameter name="{}">',
        "</parameter>",
        "</invoke></dots_function_call>",
    ),
    "deepseek_v32": tagged(
        f'<{D}function_calls><{D}invoke name="{{}}">',
        f'<{D}parameter name="{{}}" string="{{}}">',
        f"</{D}parameter>",
        f"</{D}invoke></{D}function_calls>",
        dsml,
    ),
    "minicpm5": tagged('<function name="{}">', '<param name="{}">', "</param>", "</function>"),
    "glm45": tagged("<tool_call>{}", "<arg_key>{}</arg_key><arg_value>", "</arg_value>", "</tool_call>"),
    "hy_v3": tagged(
        "<tool_calls><tool_call>{}<tool_sep>",
        "<arg_key>{}</arg_key><arg_value>",
        "</arg_value>",
        "</tool_call></tool_calls>",
    ),
    "gemma4": brace("<|tool_call>", "<tool_call|>", '<|"|>'),
    "functiongemma": brace("<start_function_call>", "<end_function_call>", "<escape>"),
    "pythonic": pythonic("[", "]"),
    "llama4_pythonic": pythonic("<|python_start|>[", "]<|python_end|>"),
    "lfm2": pythonic("<|tool_call_start|>[", "]<|tool_call_end|>"),
    "olmo3": pythonic("<function_calls>\n", "\n</function_calls>"),
}
BARE = {"pythonic"}
"""Syntaxes without an opening marker: nothing may stand before them."""


@pytest.mark.parametrize("format", WRITERS)
@settings(max_examples=examples(25))
@given(
    call=CALLS, before=st.sampled_from(["", "Words before.\n", "Two\n\nlines "]), after=st.sampled_from(["", "\nOk."])
)
def test_a_call_comes_back(format: str, call: tuple[str, Arguments], before: str, after: str) -> None:
    """Names and values are equal, whole and character by character."""
    name, arguments = call
    written = WRITERS[format](name, arguments)
    values = "".join(value for value in _strings(arguments))
    assume(not any(marker in values for marker in ("`" * 3, "</", "<|", "<escape>")))
    assume(format != "minicpm5" or not values.lstrip().startswith("<![CDATA["))
    text = ("" if format in BARE else before) + written + ("" if format in BARE else after)
    policies: dict[str, Any] = {"start": "text", "tools": tools_of(name, arguments)}
    whole = run(format, [text], **policies)
    assert run(format, characters(text), **policies).message == whole.message
    assert whole.message is not None
    (read,) = whole.message.tool_calls
    assert (read.name, read.error) == (name, None), text
    assert json.loads(read.arguments) == arguments, text
    assert asides.parse(text, format, seed=0, tools=tools_of(name, arguments)).tool_calls == (read,)


def _strings(value: object) -> list[str]:
    """Every string in a value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return []
