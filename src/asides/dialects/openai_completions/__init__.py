"""Plain completions (`/v1/completions`): a bare prompt in, text out; requests and replies, streamed and whole.

It has no place of its own for thinking, which stands beside `text` under the name that chat completions use. Errors and
most fields are those of chat completions (`openai_chat`). What it cannot say is in `CANNOT_SAY`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from .._framing import SSE, keep_alive_comment
from .._request import Request
from ..openai_chat import THINKING_FIELDS
from ..openai_chat._errors import read_error, write_error
from ..openai_chat._writer import ChatWriter
from ._reader import CompletionsReader, read_reply
from ._request import NAME, read_request, write_request
from ._writer import CompletionsWriter, write_reply

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
PATHS = {"/completions": "/v1/completions"}
FRAMING = SSE
STREAMS_BY_DEFAULT = False
KEPT = None
CANNOT_SAY: tuple[str, ...] = (
    "messages and images",
    "tools and calls: a call that was read is written as text",
    "the order of thinking and text, and where one of two neighbouring parts of a kind ends",
    "whether thinking was cut off",
)
ReplyReader = CompletionsReader
ReplyWriter: Callable[..., ChatWriter] = CompletionsWriter
keep_alive = keep_alive_comment
write_count = None


def upstream_path(request: Request) -> str:
    """Where an upstream is asked."""
    return PATHS["/completions"]
