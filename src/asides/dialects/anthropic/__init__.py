"""Anthropic's Messages API: `/v1/messages`, requests and replies, streamed and whole.

Owns the shape of that API; knows no socket and no marker. What it cannot say: more than one choice, log probabilities,
a call that is not whole (it becomes text), where one of two neighbouring texts ends (they share a block), whether
thinking was cut off, how the arguments of a call were spaced (in a whole reply they are an object), `json_object`
without a schema, a seed or penalties.
"""

from __future__ import annotations

from .reader import ReplyReader, read_error, read_reply, write_error
from .request import NAME, read_request, sign, write_request
from .writer import PING, ReplyWriter, write_count, write_reply

__all__ = [
    "NAME",
    "PING",
    "ReplyReader",
    "ReplyWriter",
    "read_error",
    "read_reply",
    "read_request",
    "sign",
    "write_count",
    "write_error",
    "write_reply",
    "write_request",
]
