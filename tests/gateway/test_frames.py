"""However a server writes its frames, and whatever a model says in them, a client reads what the parser reads."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

import asides
from tests.gateway.clients import PATHS, body_of, chat_deltas, events, post
from tests.gateway.servers import Servers, serving
from tests.gateway.upstream import Reply, cut
from tests.plugins.stages import sent

PIECES: dict[str, tuple[str, ...]] = {
    "qwen3": ("<think>", "</think>", "<thi", "</th", "`<think>`", "'</think>'", "<|im_end|>", "```\n"),
    "harmony": (
        "<|channel|>analysis<|message|>",
        "<|channel|>final<|message|>",
        "<|end|>",
        "<|start|>assistant",
        "<|return|>",
        "<|",
    ),
    "deepseek_r1": ("</think>", "<think>", "</", "<", "<｜end▁of▁sentence｜>"),
}
ANY = ("a", "word ", " ", "\n", "\n\n", "\r\n", "é", "🙂", "日本", "\u2028", "\x85", "\\", '"', "{", "}")
STYLES = ("plain", "escaped", "spaced", "extra", "roles", "nulls")


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """A gateway with a model for each format."""
    with serving(models={name: {"format": name} for name in PIECES}) as found:
        yield found


def stream(raw: str, style: str, dice: random.Random) -> bytes:
    """A chat stream that says this, in one of the ways in which servers write."""
    frames: list[dict[str, Any]] = []

    def add(delta: dict[str, Any], reason: str | None = None) -> None:
        choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": reason}
        if style == "extra":
            choice["logprobs"] = None
        frame = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        frames.append({**frame, "system_fingerprint": "fp", "usage": None} if style == "extra" else frame)

    add({"role": "assistant", "content": None if style == "nulls" else ""})
    at = 0
    while at < len(raw):
        size = dice.choice((1, 2, 3, 5, 20, 200))
        add({"content": raw[at : at + size], **({"role": "assistant"} if style == "roles" else {})})
        if dice.random() < 0.1:
            add({"content": None} if style == "nulls" else {})
        at += size
    if dice.random() < 0.5:
        frames[-1]["choices"][0]["finish_reason"] = "stop"
    else:
        add({}, "stop")
    gaps = (" , ", " : ") if style == "spaced" else (",", ":")
    line = dice.choice(("\n", "\r\n"))
    lines = [json.dumps(frame, ensure_ascii=style == "escaped", separators=gaps) for frame in frames]
    return "".join(f"data:{' ' * dice.randrange(2)}{each}{line * 2}" for each in (*lines, "[DONE]")).encode()


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("format", PIECES)
def test_what_the_parser_reads(servers: Servers, format: str, style: str) -> None:
    """Random words, frames and cuts: thinking and answer are those of the parser, however the frames are written."""
    dice = random.Random(f"{format} {style}")
    for _ in range(8):
        raw = "".join(dice.choice(PIECES[format] + ANY) for _ in range(dice.randrange(1, 25)))
        parser = asides.Parser(format)
        parser.feed(raw)
        parser.finish()
        data = stream(raw, style, dice)
        servers.upstream.send(Reply(cut(data, seed=dice.randrange(1000)) if dice.random() < 0.7 else [data]))
        found = events(post(servers.gateway.url, PATHS["chat"], body_of("chat", model=format, stream=True)).content)
        told = chat_deltas(found, "reasoning_content"), chat_deltas(found)
        assert told == sent(parser.message), (raw, data)
        assert found[-1] == "[DONE]"
