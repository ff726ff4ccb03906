"""Thinking that a client sends back between tags in the content of an earlier turn."""

from __future__ import annotations

from functools import cache
from typing import Any

from .._engine.format import Format
from .._engine.parser import Parser
from ..events import PartStart
from ..parts import Text, Thinking
from .request import TextPiece, ThinkingPiece


def untagged(text: str, extra: dict[str, Any] | None = None) -> list[TextPiece | ThinkingPiece]:
    """The words of an earlier turn of the assistant, and the thinking that stands between tags in them."""
    if "<think>" not in text and "</think>" not in text:
        return [TextPiece(text, extra or {})]
    parser = Parser(_tags(), start="undecided")
    events = parser.feed(text) + parser.finish()
    gaps = [event.gap for event in events if isinstance(event, PartStart)]
    return [
        ThinkingPiece(part.text) if isinstance(part, Thinking) else TextPiece(gap + part.text, extra or {})
        for part, gap in zip(parser.message.parts, gaps, strict=True)
        if isinstance(part, Thinking | Text)
    ]


@cache
def _tags() -> Format:
    return Format.tags("<think>", "</think>", name="tags")
