"""Anthropic's Messages API: `/v1/messages`, requests and replies, streamed and whole.

Parts are blocks, in the order of writing. What this API cannot say is in `CANNOT_SAY`.
"""

from __future__ import annotations

from typing import Literal

from .._framing import SSE
from .._request import Request
from ._errors import read_error, write_error
from ._reader import AnthropicReader, read_reply
from ._request import NAME, read_request, sign, write_request
from ._writer import PING, AnthropicWriter, write_count, write_reply

__all__ = [
    "CANNOT_SAY",
    "CARRIES",
    "FRAMING",
    "KEPT",
    "NAME",
    "PATHS",
    "PING",
    "STREAMS_BY_DEFAULT",
    "THINKING_FIELDS",
    "ReplyReader",
    "ReplyWriter",
    "keep_alive",
    "read_error",
    "read_reply",
    "read_request",
    "sign",
    "upstream_path",
    "write_count",
    "write_error",
    "write_reply",
    "write_request",
]

CARRIES: Literal["calls", "everything"] | None = "everything"
PATHS = {"/messages": "/v1/messages"}
FRAMING = SSE
STREAMS_BY_DEFAULT = False
KEPT = None
THINKING_FIELDS: tuple[str, ...] = ()
CANNOT_SAY: tuple[str, ...] = (
    "more than one choice",
    "log probabilities",
    "a call that is not whole: it becomes text",
    "where one of two neighbouring texts ends: they share a block",
    "whether thinking was cut off",
    "how the arguments of a call were spaced: in a whole reply they are an object",
    "`json_object` without a schema",
    "a seed or penalties",
    "a bare prompt",
)
ReplyReader = AnthropicReader
ReplyWriter = AnthropicWriter


def upstream_path(request: Request) -> str:
    """Where an upstream is asked."""
    return PATHS["/messages"]


def keep_alive(request: Request, style: str) -> bytes:
    """An event of its own: this API has one for the purpose."""
    return PING
