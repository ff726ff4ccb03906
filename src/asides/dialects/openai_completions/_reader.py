"""Replies of plain completions, read: those of chat completions, with choices that hold their text themselves."""

from __future__ import annotations

from typing import Any

from ...reply._items import Chunk
from ..openai_chat._reader import ChatReader
from ..openai_chat._reader import read_reply as read_chat_reply
from ..openai_chat._request import REASONING
from ._request import NAME

_DELTA = (*REASONING, "reasoning_details")


class CompletionsReader(ChatReader):
    """Reads a streamed reply from bytes cut anywhere."""

    _dialect = NAME

    def _content(self, choice: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        return _as_chat(choice)

    def _path(self, field: str) -> tuple[str | int, ...]:
        return ("choices", 0, "text" if field == "content" else field)


def read_reply(body: Any) -> list[Chunk]:
    """A whole reply."""
    return read_chat_reply(body, NAME, _as_chat)


def _as_chat(choice: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """A choice, and its delta or message, as chat completions have them."""
    delta = {name: choice[name] for name in _DELTA if choice.get(name)} | {"content": choice.get("text")}
    rest = {name: value for name, value in choice.items() if name not in delta}
    if rest.get("logprobs"):
        rest["logprobs"] = {"content": _read_tokens(rest["logprobs"])}
    return rest, delta


def _read_tokens(logprobs: Any) -> list[dict[str, Any]]:
    """Four lists side by side become one of tokens."""
    if not isinstance(logprobs, dict) or not isinstance(logprobs.get("tokens"), list):
        return []
    tokens = logprobs["tokens"]
    columns = [logprobs.get(name) for name in ("token_logprobs", "top_logprobs")]
    sound = [each if isinstance(each, list) and len(each) == len(tokens) else [None] * len(tokens) for each in columns]
    return [
        {"token": token, "logprob": log, "top_logprobs": top} for token, log, top in zip(tokens, *sound, strict=True)
    ]
