"""Replies of plain completions, read: chat completions whose choices hold their text themselves."""

from __future__ import annotations

from typing import Any

from ...reply.items import Chunk, Ended
from ..fields import as_objects, as_reply
from ..openai_chat.errors import failed_of
from ..openai_chat.reader import ChatReader, ChoiceReader, read_begin, read_usage, unknown_fields
from ..openai_chat.request import REASONING
from ..openai_chat.writer import Delta
from .request import NAME


class CompletionsReader(ChatReader):
    """Reads a streamed reply from bytes cut anywhere."""

    _dialect = NAME

    def _read(self, reader: ChoiceReader, choice: dict[str, Any], pieces: list[Chunk]) -> None:
        _read_choice(reader, choice, pieces)

    def _path(self, field: str) -> tuple[str | int, ...]:
        return ("choices", 0, "text" if field == "content" else field)


def read_reply(body: Any) -> list[Chunk]:
    """A whole reply."""
    body = as_reply(body)
    choices = as_objects(body.get("choices"))
    if not choices:
        return [failed_of(body, 502)]
    pieces: list[Chunk] = [read_begin(body, unknown_fields(body), NAME)]
    for position, choice in enumerate(choices):
        number = choice.get("index")
        reader = ChoiceReader(number if type(number) is int else position)
        _read_choice(reader, choice, pieces)
        if not reader.ended:
            pieces.append(Ended(reader.number))
    if isinstance(body.get("usage"), dict):
        pieces.append(read_usage(body["usage"]))
    return pieces


def _read_choice(reader: ChoiceReader, choice: dict[str, Any], pieces: list[Chunk]) -> None:
    delta: Delta = {name: choice[name] for name in (*REASONING, "reasoning_details") if choice.get(name)}
    delta["content"] = choice.get("text")
    rest = {name: value for name, value in choice.items() if name not in delta}
    if rest.get("logprobs"):
        rest["logprobs"] = {"content": _read_tokens(rest["logprobs"])}
    reader.read(rest, delta, pieces)


def _read_tokens(logprobs: Any) -> list[dict[str, Any]]:
    """Four lists side by side become one of tokens."""
    if not isinstance(logprobs, dict) or not isinstance(logprobs.get("tokens"), list):
        return []
    tokens = logprobs["tokens"]
    columns = [logprobs.get(name) for name in ("token_logprobs", "top_logprobs")]
    logs, tops = (column if isinstance(column, list) and len(column) == len(tokens) else [None] * len(tokens)
                  for column in columns)  # fmt: skip
    return [
        {"token": token, "logprob": log, "top_logprobs": top}
        for token, log, top in zip(tokens, logs, tops, strict=True)
    ]
