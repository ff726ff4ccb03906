"""Thinking that a client sends back between tags in the content of an earlier turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from .._engine.format import Format
from .._engine.parser import Parser
from ..events import PartStart
from ..parts import Text, Thinking
from ._request import RequestPiece, TextPiece, ThinkingPiece


def without_tags(pieces: Iterable[RequestPiece], extra: dict[str, Any] | None = None) -> Iterator[RequestPiece]:
    """The pieces of an earlier turn of the assistant, with thinking that stands between tags in its texts apart.

    Texts get `extra` beside their own fields.
    """
    for piece in pieces:
        if not isinstance(piece, TextPiece):
            yield piece
            continue
        fields = {**piece.extra, **(extra or {})}
        # Every text of every earlier turn comes here with each request: most hold no tag.
        if "<think>" not in piece.text and "</think>" not in piece.text:
            yield TextPiece(piece.text, fields)
            continue
        # A lone closing tag too: the template had put the opener into the prompt.
        parser = Parser(_tags(), start="undecided")
        events = parser.feed(piece.text) + parser.finish()
        gaps = [event.gap for event in events if isinstance(event, PartStart)]
        for part, gap in zip(parser.message.parts, gaps, strict=True):
            if isinstance(part, Thinking | Text):
                yield ThinkingPiece(part.text) if isinstance(part, Thinking) else TextPiece(gap + part.text, fields)


@cache
def _tags() -> Format:
    return Format.tags("<think>", "</think>", name="tags")
