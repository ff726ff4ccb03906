"""Call syntaxes that write arguments between tags. Data only; formats name them, `engine/calls` reads them."""

from __future__ import annotations

from typing import Any

from .._engine.calls.keyed_calls import KeyedCalls
from .._engine.calls.nested_calls import NestedCalls
from .._engine.calls.xml_calls import Tag, XmlCalls

QWEN_XML = XmlCalls(
    open=("<tool_call>", "<function="),
    close=("</tool_call>",),
    call=Tag("<function="),
    call_close="</function>",
    parameter=Tag("<parameter="),
    parameter_close="</parameter>",
    framed=True,
)
"""`<tool_call><function=f><parameter=a>v</parameter></function></tool_call>`, with newlines: Qwen3-Coder."""

SEED_XML = XmlCalls(
    open=("<seed:tool_call>", "<function="),
    close=("</seed:tool_call>",),
    call=QWEN_XML.call,
    call_close=QWEN_XML.call_close,
    parameter=QWEN_XML.parameter,
    parameter_close=QWEN_XML.parameter_close,
    framed=True,
    paired=True,
)
"""The same between Seed's own markers."""


def _invokes(section: str, section_close: str, prefix: str = "", **more: Any) -> XmlCalls:
    """`<invoke name="f"><parameter name="a">v</parameter></invoke>` in a section; `prefix` stands before tag names.

    Models forget the section's markers, so an invoke also opens a call by itself; a tag without a prefix of the
    family's own only where a line begins.
    """
    return XmlCalls(
        section=(section,),
        section_close=(section_close,),
        open=(f"<{prefix}invoke name=",),
        close=(f"</{prefix}invoke>",),
        open_at_line=not prefix,
        call=Tag(f"<{prefix}invoke", "name"),
        call_close=f"</{prefix}invoke>",
        parameter=Tag(f"<{prefix}parameter", "name"),
        parameter_close=f"</{prefix}parameter>",
        **more,
    )


MINIMAX_M2 = _invokes("<minimax:tool_call>", "</minimax:tool_call>")
DOTS_XML = _invokes("<dots_function_call>", "</dots_function_call>")
ATEM = _invokes("<atem:function_calls>", "</atem:function_calls>", "atem:", namespaced=True)
_DSML: dict[str, Any] = {"string": ("string", "true"), "json": True, "anywhere": True}
DSML_V32 = _invokes("<｜DSML｜function_calls>", "</｜DSML｜function_calls>", "｜DSML｜", **_DSML)
"""DeepSeek V3.2. Its parameters say whether they are strings; one JSON object may stand in their place."""
DSML_V4 = _invokes("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>", "｜DSML｜", **_DSML)

MINICPM = XmlCalls(
    open=('<function name="',),
    close=("</function>",),
    call=Tag("<function", "name"),
    call_close="</function>",
    parameter=Tag("<param", "name"),
    parameter_close="</param>",
    cdata=True,
)
"""`<function name="f"><param name="a">v</param></function>`, with no markers around it."""

STEPTML = XmlCalls(
    open=("<｜tool_call_begin｜>",),
    close=("<｜tool_call_end｜>",),
    section=("<｜tool_calls_begin｜>",),
    section_close=("<｜tool_calls_end｜>",),
    preface="function<｜tool_sep｜>",
    call=Tag("<steptml:invoke", "name"),
    call_close="</steptml:invoke>",
    parameter=Tag("<steptml:parameter", "name"),
    parameter_close="</steptml:parameter>",
)
"""Step3."""

KIMI_K3 = XmlCalls(
    section=("<|open|>tools<|sep|>",),
    section_close=("<|close|>tools<|sep|>",),
    call=Tag("<|open|>call", "tool", "<|sep|>", escaped=True),
    call_close="<|close|>call<|sep|>",
    parameter=Tag("<|open|>argument", "key", "<|sep|>", escaped=True),
    parameter_close="<|close|>argument<|sep|>",
    anywhere=True,
    string=("type", "string"),
    json=True,
    json_tag=Tag("<|open|>json", "type", "<|sep|>"),
    json_close="<|close|>json<|sep|>",
)

_M3 = "]<]minimax[>["
MINIMAX_M3 = NestedCalls(
    section=(f"{_M3}<tool_call>",),
    section_close=(f"{_M3}</tool_call>",),
    call=Tag(f"{_M3}<invoke", "name"),
    call_close=f"{_M3}</invoke>",
    parameter=Tag(f"{_M3}<"),
    parameter_close="",
)
"""Every tag has a prefix; a parameter's tag is its name."""

GLM = KeyedCalls(open=("<tool_call>",), close=("</tool_call>",))
"""`<tool_call>f<arg_key>a</arg_key><arg_value>v</arg_value></tool_call>`, with or without newlines between."""


def hunyuan_keyed(suffix: str = "") -> KeyedCalls:
    """Hunyuan's keys and values. Some of its models put a suffix to the name of every tag: `<tool_call:opensource>`."""
    return KeyedCalls(
        section=(f"<tool_calls{suffix}>",),
        section_close=(f"</tool_calls{suffix}>",),
        open=(f"<tool_call{suffix}>",),
        close=(f"</tool_call{suffix}>",),
        separator=f"<tool_sep{suffix}>",
        key=f"<arg_key{suffix}>",
        key_close=f"</arg_key{suffix}>",
        value=f"<arg_value{suffix}>",
        value_close=f"</arg_value{suffix}>",
    )


HUNYUAN_KEYED = hunyuan_keyed()
