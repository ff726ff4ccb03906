"""Ollama's own API: `/api/chat` and `/api/generate`, requests and replies, streamed and whole.

Owns the shape of that API; knows no socket and no marker. What it cannot say: more than one choice, the order of parts
in a whole reply (thinking, text and calls stand beside each other, each joined), where one of two neighbouring parts of
a kind ends, whether thinking was cut off, a call that is not whole (it becomes text), how its arguments were spaced,
why a filter stopped the reply, tokens of thinking, which tool must be called, an image by its address.
"""

from __future__ import annotations

from .reader import ReplyReader, read_error, read_reply, write_error
from .request import NAME, endpoint, read_request, write_request
from .writer import ReplyWriter, write_reply

__all__ = [
    "NAME",
    "ReplyReader",
    "ReplyWriter",
    "endpoint",
    "read_error",
    "read_reply",
    "read_request",
    "write_error",
    "write_reply",
    "write_request",
]
