"""What several families share: ChatML's turns, markers that are also common tags, and call syntaxes. Data only.

A call syntax that one family alone writes stands in that family's card. Many families open calls with `<tool_call>`,
and models slip into each other's syntax behind it. A format that opens calls with it lists its own syntax first and
reads the others too (`with_siblings`); the first characters decide.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from .._engine.calls.json_calls import JsonCalls
from .._engine.calls.keyed_calls import KeyedCalls
from .._engine.calls.syntax import CallSyntax
from .._engine.calls.xml_calls import Tag, XmlCalls

STOPS = ("<|im_end|>", "<|endoftext|>")
"""What ends a turn in ChatML."""
ASSISTANT = ("<|im_start|>assistant\n",)
TURNS = ("<|im_start|>",)
"""What ChatML writes before any message."""
"""What opens the assistant's turn in ChatML."""

PLAIN_STOPS = {"</s>": "the end of HTML's tag for text that is struck out"}
"""Stops that are also common tags, for `Family.plain`."""
PLAIN_RESPONSE = dict.fromkeys(("<response>", "</response>"), "a tag of many prompts and of XML answers")
"""Wrappers that are also common tags."""
PLAIN_INVOKE = {"<invoke name=": "XML of many kinds"}
"""An opener without a prefix of its own."""

OPENER = "<tool_call>"
"""The opener behind which many syntaxes stand."""
HERMES = JsonCalls(open=(OPENER,), close=("</tool_call>",))
"""`<tool_call>{"name": "f", "arguments": {}}</tool_call>`: Hermes, Qwen, ERNIE 4.5, Granite 4 and many more."""
QWEN_XML = XmlCalls(
    open=(OPENER, "<function="),
    close=("</tool_call>",),
    call=Tag("<function="),
    call_close="</function>",
    parameter=Tag("<parameter="),
    parameter_close="</parameter>",
    framed=True,
    json=True,
)
"""`<tool_call><function=f><parameter=a>v</parameter></function></tool_call>`, with newlines: Qwen3-Coder and others."""
FUNCTION_JSON = replace(QWEN_XML, open=("<function=",), close=("</function>",))
"""`<function=f>{"a": "v"}</function>`, with no markers around it: Functionary 3.1, Llama 3.1's own style."""
GLM_KEYED = KeyedCalls(open=(OPENER,), close=("</tool_call>",))
"""`<tool_call>f<arg_key>a</arg_key><arg_value>v</arg_value></tool_call>`, with or without newlines: GLM, Laguna."""
TOOL_CALLS_LIST = JsonCalls(open=("<tool_calls>",), close=("</tool_calls>",), listed=True)
"""`<tool_calls>[{"name": "f", "arguments": {}}]</tool_calls>`: Apriel, Hunyuan A13B, Jamba."""

SIBLINGS = (HERMES, QWEN_XML, GLM_KEYED)
"""The syntaxes behind the shared opener, the likeliest first."""
_SIBLINGS = tuple(replace(syntax, open=(OPENER,), sibling=True) for syntax in SIBLINGS)


def with_siblings(*own: CallSyntax) -> tuple[CallSyntax, ...]:
    """A format's own syntaxes, then those of the other families behind the same opener, one of each kind."""
    kinds = {type(syntax) for syntax in own if OPENER in syntax.openers}
    return (*own, *(syntax for syntax in _SIBLINGS if type(syntax) not in kinds))


def invokes(section: str, section_close: str, prefix: str = "", **more: Any) -> XmlCalls:
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
