"""Custom tools, which take free text, as functions of one string; and back. OpenAI's two APIs have them.

input_of('{"input": "*** Begin Patch"}')        # "*** Begin Patch"
arguments_of("*** Begin Patch")                 # '{"input":"*** Begin Patch"}'
"""

from __future__ import annotations

from typing import Any

from ._framing import to_json
from ._request import Tool, ToolOrigin
from ._whole_calls import to_object

INPUT = "input"
"""The one parameter of a custom tool as a function."""
FREE_TEXT: dict[str, Any] = {
    "type": "object",
    "properties": {INPUT: {"type": "string", "description": "The whole input of the tool, as one string."}},
    "required": [INPUT],
    "additionalProperties": False,
}


def custom_function(name: str, description: str, format: dict[str, Any], own_name: str, extra: dict[str, Any]) -> Tool:
    """The function that stands for a custom tool. `own_name`: what the client calls it."""
    described = "\n\n".join(filter(None, (description, describe_format(format))))
    return Tool(name, described, FREE_TEXT, extra=extra, origin=ToolOrigin(own_name, kind="custom"))


def describe_format(format: dict[str, Any]) -> str:
    """What a custom tool's input must look like, for a model that nothing holds to it."""
    if format.get("type") != "grammar":
        return ""
    inner = format.get("grammar")  # chat completions have it one level deeper than Responses
    grammar = inner if isinstance(inner, dict) else format
    return f"The input must match this {grammar.get('syntax', '')} grammar:\n\n{grammar.get('definition', '')}"


def input_of(arguments: str) -> str:
    """The free text in the arguments that a model wrote for a custom tool."""
    value = to_object(arguments)
    texts = list(value.values()) if value is not None else []
    # Under whatever name, as long as there is nothing besides. All else goes to the tool as it is: nothing the model
    # wrote is lost, and the tool's complaint is what makes it try again.
    return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else arguments


def arguments_of(text: str) -> str:
    """The arguments of a call whose free text comes back."""
    return to_json({INPUT: text}).decode()
