"""Plain completions (`/v1/completions`): a bare prompt in, text out; requests and replies, streamed and whole.

It has no place of its own for thinking, which stands beside `text` under the name that chat completions use. Errors and
most fields are those of chat completions (`openai_chat`). What it cannot say is in `CANNOT_SAY`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..framing import SSE, keep_alive_comment
from ..openai_chat import THINKING_FIELDS
from ..openai_chat.errors import read_error, write_error
from ..openai_chat.writer import ChatWriter
from ..request import Request
from .reader import CompletionsReader, read_reply
from .request import NAME, read_request, write_request
from .writer import CompletionsWriter, write_reply

__all__ = [
    "CANNOT_SAY",
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
