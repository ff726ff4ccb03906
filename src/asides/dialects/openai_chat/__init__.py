"""OpenAI Chat Completions: requests and replies, read and written, streamed and whole.

What this API cannot say is in `CANNOT_SAY`. Servers added much to it; where they disagree (the field for thinking, the
index of a call, where usage stands), all of it is read. Plain completions and Responses share fields
and errors with it, and use them from here.
"""

from __future__ import annotations

from typing import Literal

from .._framing import KEEP_ALIVE, SSE, sse, to_json
from .._request import Request
from ._errors import read_error, write_error
from ._reader import ChatReader, read_reply
from ._request import NAME, read_request, write_request
from ._writer import PLACES, ChatWriter, Reasoning, write_reply

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
    "upstream_path",
    "write_count",
    "write_error",
    "write_reply",
    "write_request",
]

CARRIES: Literal["calls", "everything"] | None = "calls"
PATHS = {"/chat/completions": "/v1/chat/completions"}
FRAMING = SSE
STREAMS_BY_DEFAULT = False
KEPT = None
THINKING_FIELDS: tuple[str, ...] = PLACES
CANNOT_SAY: tuple[str, ...] = (
    "in a whole reply, the order of thinking, text and calls: each kind is joined",
    "in a stream, where a part ends and another of its kind begins with nothing between them",
    "whether thinking was cut off",
    "which error a call has: its characters tell; a call without a name is text",
    "a bare prompt",
)
ReplyReader = ChatReader
ReplyWriter = ChatWriter
write_count = None


def upstream_path(request: Request) -> str:
    """Where an upstream is asked."""
    return PATHS["/chat/completions"]


def keep_alive(request: Request, style: str) -> bytes:
    """A comment, or for clients that count frames a chunk with an empty delta."""
    if style != "empty":
        return KEEP_ALIVE
    choice = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": None}
    frame = {"id": "", "object": "chat.completion.chunk", "created": 0, "model": request.model, "choices": [choice]}
    return sse(to_json(frame))
