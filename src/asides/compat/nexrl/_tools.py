"""NexRL's tool parser: the calls in content whose reasoning was split off. Knows no call syntax; the engine does."""

from __future__ import annotations

from typing import Any

import msgspec

from ..._api import parse
from ..._engine.format import Format
from ...errors import UnknownFormatError
from ...families import get_format
from ._reasoning import UnknownParserError

_NAMES = {"deepseek": "deepseek_v31"}
"""NexRL's names that are no format's."""


class ToolCallItem(msgspec.Struct, frozen=True):
    """One call, in OpenAI's shape."""

    id: str
    """The id of the call: the model's own, or a random one where it wrote none."""
    type: str
    """Always `function`."""
    function: dict[str, str]
    """`name` and `arguments`, a JSON object as text."""


class ParseResult(msgspec.Struct, frozen=True):
    """Content, split into text and calls."""

    tool_calls: list[ToolCallItem] | None
    """The calls that may be run, in order; None where there are none."""
    is_valid: bool = True
    """False when a call could not be read or was cut off."""
    cleaned_content: str = ""
    """The content without its calls."""
    unparsed: tuple[dict[str, str], ...] = ()
    """Calls that may not be run: `raw`, `error` and `reason`."""
    reasoning_content: str | None = None
    """Thinking that was still in the content."""


class BaseToolParser:
    """Subclass it, or name a format."""

    def parse(self, tool_string: str) -> ParseResult:
        """Split content into text and calls."""
        raise NotImplementedError


class ToolParser(BaseToolParser):
    """Reads calls as a format writes them."""

    def __init__(self, format: str | Format = "auto", *, tools: list[dict[str, Any]] | None = None) -> None:
        self.format: Format = get_format(format)
        """The format whose call syntax is read."""
        self.tools = tools
        """Tool definitions in OpenAI's shape: they give types to untyped arguments."""

    def parse(self, tool_string: str) -> ParseResult:
        """Split content into text and calls."""
        message = parse(tool_string, self.format, start="text", tools=self.tools)
        runnable = [call.to_dict() for call in message.tool_calls if call.error is None]
        broken = [call for call in message.tool_calls if call.error is not None]
        return ParseResult(
            [ToolCallItem(**call) for call in runnable] or None,
            not broken,
            message.text,
            tuple({"raw": call.raw, "error": str(call.error), "reason": call.error_message} for call in broken),
            message.thinking or None,
        )


def create_tool_parser(parser_type: str = "auto", *, tools: list[dict[str, Any]] | None = None) -> ToolParser:
    """A parser by name: NexRL's, or that of any format."""
    name = parser_type.lower().replace("-", "_")
    try:
        return ToolParser(_NAMES.get(name, name), tools=tools)
    except UnknownFormatError as error:
        near = f"did you mean {', '.join(error.near)}?" if error.near else "`asides formats` lists the names"
        raise UnknownParserError(f"unknown tool parser {parser_type!r}; {near}") from error
