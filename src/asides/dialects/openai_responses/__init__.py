"""OpenAI Responses: requests and replies, read and written, streamed and whole.

What this API cannot say: more than one choice; where one of two neighbouring texts ends (they share a message); which
error a call has (its item is incomplete, its characters tell); stop sequences and most of what tunes sampling. A call
without a name is text. Whether a text was cut off is told of the last one only. A gap is written only between texts
that share a message.
"""

from __future__ import annotations

from .reader import ReplyReader, read_error, read_reply, write_error
from .request import NAME, read_request, seal, unseal, write_request
from .writer import Reasoning, ReplyWriter, write_reply

__all__ = [
    "NAME",
    "Reasoning",
    "ReplyReader",
    "ReplyWriter",
    "read_error",
    "read_reply",
    "read_request",
    "seal",
    "unseal",
    "write_error",
    "write_reply",
    "write_request",
]
