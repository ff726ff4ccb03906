"""The shapes of other people's APIs: requests and replies, read and written, without a socket.

Each API is a folder with `_request.py`, `_reader.py`, `_writer.py` and `_errors.py`;
its module is a `Dialect` (`_base.py`).
What they share lies beside them: framing, tables of fields, checks. A dialect sees parts and events, never markers.
"""

from __future__ import annotations

from . import anthropic, ollama, openai_chat, openai_completions, openai_responses
from ._base import Dialect

__all__ = [
    "ALL",
    "Dialect",
    "anthropic",
    "get",
    "ollama",
    "openai_chat",
    "openai_completions",
    "openai_responses",
]

ALL: tuple[Dialect, ...] = (openai_chat, openai_completions, openai_responses, anthropic, ollama)
"""Every dialect. Here the type checker compares each module with the protocol."""
_BY_NAME = {dialect.NAME: dialect for dialect in ALL}


def get(name: str) -> Dialect:
    """The dialect of this name; a `KeyError` where there is none.

    Examples:
        >>> from asides import dialects
        >>> request = {"model": "m", "messages": [{"role": "user", "content": "2+2?"}]}
        >>> dialects.get("ollama").read_request(request, "/api/chat").model
        'm'
    """
    return _BY_NAME[name]
