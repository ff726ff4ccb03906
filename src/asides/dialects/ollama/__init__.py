"""Ollama's own API: `/api/chat` and `/api/generate`, requests and replies, streamed and whole.

A request without messages, or posted to `/api/generate`, is one for that path. What this API cannot say is in
`CANNOT_SAY`.
"""

from __future__ import annotations

from typing import Literal

from .._framing import JSON_LINES
from .._request import Request
from ._errors import read_error, write_error
from ._reader import OllamaReader, read_reply
from ._request import NAME, read_request, upstream_path, write_request
from ._writer import OllamaWriter, write_reply

__all__ = [
    "CANNOT_SAY",
    "CARRIES",
    "FRAMING",
    "KEPT",
    "NAME",
    "PATHS",
    "STREAMS_BY_DEFAULT",
    "THINKING_FIELDS",
    "ReplyReader",
    "ReplyWriter",
    "keep_alive",
    "read_error",
    "read_reply",
    "read_request",
    "upstream_path",
    "write_count",
    "write_error",
    "write_reply",
    "write_request",
]

CARRIES: Literal["calls", "everything"] | None = None
PATHS = {"/api/chat": "/api/chat", "/api/generate": "/api/generate"}
FRAMING = JSON_LINES
STREAMS_BY_DEFAULT = True
KEPT = None
THINKING_FIELDS: tuple[str, ...] = ()
CANNOT_SAY: tuple[str, ...] = (
    "more than one choice",
    "the order of parts in a whole reply: thinking, text and calls stand beside each other, each joined",
    "where one of two neighbouring parts of a kind ends",
    "whether thinking was cut off",
    "a call that is not whole: it becomes text; how its arguments were spaced",
    "why a filter stopped the reply",
    "tokens of thinking",
    "which tool must be called",
    "an image by its address",
    "a thinking budget",
)
ReplyReader = OllamaReader
ReplyWriter = OllamaWriter
write_count = None


def keep_alive(request: Request, style: str) -> bytes:
    """None: a line is always part of the reply."""
    return b""
