"""OpenAI Chat Completions: requests and replies, read and written, streamed and whole.

What this API cannot say: in a whole reply, the order of thinking, text and calls (each kind is joined); in a stream,
where a part ends and another of its kind begins with nothing between them; whether thinking was cut off; which error
a call has (its characters tell). A call without a name is text.
"""

from __future__ import annotations

from .reader import ReplyReader, read_error, read_reply, write_error
from .request import NAME, read_request, write_request
from .writer import Reasoning, ReplyWriter, write_reply

__all__ = [
    "NAME",
    "Reasoning",
    "ReplyReader",
    "ReplyWriter",
    "read_error",
    "read_reply",
    "read_request",
    "write_error",
    "write_reply",
    "write_request",
]
