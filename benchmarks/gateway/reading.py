"""Requests and replies of each dialect, in the few fields that are measured. Written apart from the package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Dialect = Literal["raw", "chat", "responses", "messages", "ollama"]
"""`raw` is chat of a pass-through: the markers are still in the content."""

PATHS: dict[Dialect, str] = {
    "raw": "/v1/chat/completions",
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "ollama": "/api/chat",
}


@dataclass
class Told:
    """What a reply told."""

    thinking: str = ""
    answer: str = ""
    whole: bool = False
    """Whether it said that it is over."""
    growth: list[tuple[int, int, int]] = field(default_factory=list)
    """After each frame: when it came, how long the thinking and the answer were by then."""

    def add(self, when: int, thinking: str, answer: str) -> None:
        """A frame came."""
        self.thinking += thinking
        self.answer += answer
        self.growth.append((when, len(self.thinking), len(self.answer)))


def request(dialect: Dialect, model: str, words: str, *, stream: bool = True) -> str:
    """The body of a request."""
    said: dict[str, Any] = {"model": model, "stream": stream}
    if dialect == "responses":
        return json.dumps({**said, "input": words})
    limit = {"max_tokens": 4096} if dialect == "messages" else {}
    return json.dumps({**said, **limit, "messages": [{"role": "user", "content": words}]})


def read(dialect: Dialect, arrivals: list[tuple[int, bytes]]) -> Told:
    """Read a streamed reply."""
    told = Told()
    for when, line in _lines(arrivals):
        if dialect == "ollama":
            frame = json.loads(line)
            message = frame["message"]
            told.add(when, message.get("thinking") or "", message.get("content") or "")
            told.whole = frame["done"]
        elif line.startswith(b"data:"):
            data = line[5:].strip()
            if data == b"[DONE]":
                told.whole = True
            else:
                _take(dialect, told, when, json.loads(data))
    if dialect == "raw":
        _split(told)
    return told


def read_whole(dialect: Dialect, body: bytes) -> tuple[str, str]:
    """The thinking and the answer of a reply that came in one piece."""
    found = json.loads(body)
    if dialect == "ollama":
        return found["message"].get("thinking") or "", found["message"]["content"]
    if dialect in ("chat", "raw"):
        message = found["choices"][0]["message"]
        told = Told(message.get("reasoning_content") or "", message["content"])
        if dialect == "raw":
            _split(told)
        return told.thinking, told.answer
    if dialect == "messages":
        blocks = {block["type"]: block for block in found["content"]}
        return blocks["thinking"]["thinking"], blocks["text"]["text"]
    items = {item["type"]: item["content"][0]["text"] for item in found["output"]}
    return items["reasoning"], items["message"]


def _take(dialect: Dialect, told: Told, when: int, frame: dict[str, Any]) -> None:
    if dialect in ("chat", "raw"):
        for choice in frame["choices"]:
            told.add(when, choice["delta"].get("reasoning_content") or "", choice["delta"].get("content") or "")
        return
    kind = frame["type"]
    if dialect == "messages":
        delta = frame["delta"] if kind == "content_block_delta" else {}
        told.add(when, delta.get("thinking", ""), delta.get("text", ""))
        told.whole = kind == "message_stop"
    else:
        thinking = frame["delta"] if kind == "response.reasoning_text.delta" else ""
        told.add(when, thinking, frame["delta"] if kind == "response.output_text.delta" else "")
        told.whole = kind == "response.completed"


def _split(told: Told) -> None:
    """What a pass-through handed on: the same parts, at their places in the raw text."""
    before, _, answer = told.answer.partition("\n</think>\n\n")
    start = len("<think>\n")
    thinking = before[start:]
    behind = len(before) + len("\n</think>\n\n")
    told.growth = [(when, length - start, length - behind) for when, _, length in told.growth]
    told.thinking, told.answer = thinking, answer


def _lines(arrivals: list[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Each line with the time when its last byte came."""
    rest = b""
    for when, data in arrivals:
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line:
                yield when, line
    if rest:
        yield arrivals[-1][0], rest
