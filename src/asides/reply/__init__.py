"""One reply: the records on its way from an upstream, the splitter that makes events of them, the fold to a `Reply`."""

from __future__ import annotations

from ._choice import MakeParser
from ._fold import Budget, Fold
from ._items import (
    Begin,
    CallChunk,
    Chunk,
    Ended,
    Failed,
    Foreign,
    RawText,
    Reason,
    ReplyEvent,
    ReplyItem,
    ThinkingChunk,
    Usage,
)
from ._reply import Reply, Times
from ._splitter import Splitter

__all__ = [
    "Begin",
    "Budget",
    "CallChunk",
    "Chunk",
    "Ended",
    "Failed",
    "Fold",
    "Foreign",
    "MakeParser",
    "RawText",
    "Reason",
    "Reply",
    "ReplyEvent",
    "ReplyItem",
    "Splitter",
    "ThinkingChunk",
    "Times",
    "Usage",
]
