"""OpenAI Responses: requests and replies, read and written, streamed and whole.

Thinking, messages and calls are items of `output`, in the order of writing; a whole reply is what the last event of a
stream holds. What this API cannot say is in `CANNOT_SAY`.
"""

from __future__ import annotations

from typing import Literal, get_args

from .._framing import SSE, keep_alive_comment
from .._request import Request
from . import _state as state
from ._errors import read_error, write_error
from ._reader import ResponsesReader, read_reply
from ._request import NAME, read_request, seal, unseal, write_request
from ._writer import Reasoning, ResponsesWriter, write_reply

__all__ = [
    "CANNOT_SAY",
    "CARRIES",
    "FRAMING",
    "KEPT",
    "NAME",
    "PATHS",
    "STREAMS_BY_DEFAULT",
    "THINKING_FIELDS",
    "Reasoning",
    "ReplyReader",
    "ReplyWriter",
    "keep_alive",
    "read_error",
    "read_reply",
    "read_request",
    "seal",
    "unseal",
    "upstream_path",
    "write_count",
    "write_error",
    "write_reply",
    "write_request",
]

CARRIES: Literal["calls", "everything"] | None = "everything"
PATHS = {"/responses": "/v1/responses"}
FRAMING = SSE
STREAMS_BY_DEFAULT = False
KEPT = state
THINKING_FIELDS: tuple[str, ...] = get_args(Reasoning)
CANNOT_SAY: tuple[str, ...] = (
    "more than one choice",
    "where one of two neighbouring texts ends: they share a message, with the gap between them",
    "which text but the last was cut off",
    "which error a call has: its item is incomplete, its characters tell; a call without a name is text",
    "stop sequences and most of what tunes sampling",
    "a bare prompt",
)
ReplyReader = ResponsesReader
ReplyWriter = ResponsesWriter
keep_alive = keep_alive_comment
write_count = None


def upstream_path(request: Request) -> str:
    """Where an upstream is asked."""
    return PATHS["/responses"]
