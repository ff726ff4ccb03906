"""What the model says under load, a different reply to every question, and whether a client was told exactly that."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Literal

import asides
from tests.gateway import speech
from tests.gateway.clients import Dialect, body_of, chat_deltas, events
from tests.gateway.speech import Speech
from tests.gateway.upstream import JSON, SSE, Asked, Close, Gate, Hang, Pause, Reply, Reset, Step

Manner = Literal["plain", "slow", "held", "dies", "silent", "endless", "ticks", "line", "packed", "choices", "thought"]
LARGE = 100_000
"""Bytes of a question from which on it is not read before it is answered: that would take the clients' time."""
TICK = 0.05
"""Seconds between two words of a running stream."""
WORDS = ("the sum", "of a<b", "é→ü", "日本 🙂", "</thin", "x = 1;", "\n\n- so", '"ok"', "<", "and")
KINDS: tuple[tuple[Dialect, bool], ...] = (
    ("chat", True),
    ("chat", False),
    ("messages", True),
    ("responses", True),
    ("ollama_chat", True),
)
"""The ways in which clients ask, in turn: dialect, streamed or not."""


def thought(number: int) -> str:
    """What the model thinks about a question."""
    return f"Thought {number}: " + " ".join(WORDS[(number + i) % len(WORDS)] for i in range(3 + number % 9)) + "."


def answer(number: int) -> str:
    """What it answers."""
    return f"Answer {number}: " + " ".join(WORDS[(number * 3 + i) % len(WORDS)] for i in range(3 + number % 5)) + "."


def kind_of(number: int) -> tuple[Dialect, bool]:
    """In which way a client of this number asks."""
    return KINDS[number % len(KINDS)]


def request(number: int, manner: Manner, dialect: Dialect, stream: bool) -> dict[str, Any]:
    """What the client of this number sends."""
    return body_of(dialect, question=f"{manner} {number}", stream=stream)


class Model:
    """Answers as the question says."""

    def __init__(self) -> None:
        self.gate = Gate()
        """What `held` replies wait for."""
        self.cuts = False
        """Whether the replies to large questions break off."""

    def reply(self, asked: Asked) -> Reply:
        """The reply to a question."""
        if len(asked.raw) > LARGE:
            whole = speech.chat_stream(spoken(0), {"model": "m"})
            return Reply([whole[: len(whole) // 2], Close()] if self.cuts else [whole])
        body = asked.body
        manner, number = body["messages"][-1]["content"].split()
        said = spoken(int(number))
        if manner == "ticks":
            return Reply(ticking(int(number), self.gate))
        if manner in HOSTILE:
            packed = {"Content-Encoding": "gzip"} if manner == "packed" else {}
            return Reply(HOSTILE[manner](int(number)), headers={**SSE, **packed})
        if manner == "silent":
            return Reply(before=[Hang()])
        if not body.get("stream"):
            first: dict[str, list[Step]] = {"dies": [Close()], "slow": [Pause(0.2)], "held": [self.gate]}
            return Reply([speech.chat_whole(said, body)], headers=JSON, before=first.get(manner, []), whole=True)
        data = speech.chat_stream(said, body)
        at = place(int(number), data)
        steps: dict[str, list[Step]] = {
            "plain": [data[:at], data[at:]],
            "slow": [data[:at], Pause(0.1 + at % 5 * 0.1), data[at : at + 30], Pause(0.1), data[at + 30 :]],
            "held": [data[:at], self.gate, data[at:]],
            "endless": [data[:at], Hang()],
            # A reset throws away what is still on its way, so it comes a little later.
            "dies": [data[:at], *([Close()] if number[-1] in "02468" else [Pause(0.1), Reset()])],
        }
        return Reply(steps[manner])


def spoken(number: int) -> Speech:
    """The model's raw words."""
    return Speech(f"<think>\n{thought(number)}\n</think>\n\n{answer(number)}", size=4)


def place(number: int, data: bytes) -> int:
    """Where a stream pauses or breaks off: somewhere in it, even inside a frame."""
    return random.Random(number).randrange(len(data) // 4, len(data) // 2)


def frame(words: str, choice: int = 0) -> bytes:
    """One frame of a stream."""
    return b"data: %b\n\n" % json.dumps({"choices": [{"index": choice, "delta": {"content": words}}]}).encode()


def ticking(number: int, gate: Gate) -> Iterator[Step]:
    """A thought that goes on, a word at a time, until the gate is opened; then the answer."""
    yield frame("<think>\n")
    while not gate.opened.is_set():
        yield frame("tick ")
        yield Pause(TICK)
    yield frame(f"over\n</think>\n\n{answer(number)}") + b"data: [DONE]\n\n"


def has_ticked(number: int, body: bytes) -> bool:
    """Whether such a reply was told whole."""
    thinking, text, over = told("chat", True, body)
    return over and text == answer(number) and set(thinking.split()) <= {"tick", "over"}


# What no upstream should send, `millions` of bytes of it. Bounded, should nobody stop it.


def endless_line(millions: int) -> Iterator[Step]:
    """A frame without an end."""
    yield frame("<think>hm</think>Hi")
    yield b'data: {"choices": [{"index": 0, "delta": {"content": "'
    for _ in range(millions * 20):
        yield b"x" * 50_000


def packed_line(millions: int) -> Iterator[Step]:
    """The same, compressed to a thousandth."""
    packer = zlib.compressobj(9, wbits=31)
    yield packer.compress(frame("<think>hm</think>Hi") + b'data: {"choices": [{"index": 0, "delta": {"content": "')
    for _ in range(millions):
        yield packer.compress(b"x" * 1_000_000) or Pause(0)
    yield packer.flush()


def invented_choices(millions: int) -> Iterator[Step]:
    """Ever new choices that nobody asked for."""
    yield frame("<think>hm</think>Hi")
    words = b'data: {"choices": [{"index": %d, "delta": {"content": "spam"}}]}\n\n'
    for start in range(1, millions * 14_000, 500):
        yield b"".join(words % choice for choice in range(start, start + 500))


def endless_thought(millions: int) -> Iterator[Step]:
    """A thought without an end."""
    yield frame("<think>hm</think>Hi<think>")
    yield from [frame("x" * 50_000)] * (millions * 20)


HOSTILE: dict[str, Callable[[int], Iterator[Step]]] = {
    "line": endless_line,
    "packed": packed_line,
    "choices": invented_choices,
    "thought": endless_thought,
}


def told(dialect: Dialect, stream: bool, body: bytes) -> tuple[str, str, bool]:
    """The thinking, the answer, and whether the reply says that it is whole."""
    if dialect == "chat" and not stream:
        whole = json.loads(body)
        if "error" in whole:
            return "", "", False
        message = whole["choices"][0]["message"]
        return message["reasoning_content"], message["content"], True
    if dialect == "ollama_chat":
        lines = [json.loads(line) for line in body.decode().split("\n") if line]
        said = [line["message"] for line in lines if "message" in line]
        thinking = "".join(each.get("thinking") or "" for each in said)
        return thinking, "".join(each["content"] for each in said), bool(lines) and lines[-1].get("done") is True
    found = events(body)
    if dialect == "chat":
        return chat_deltas(found, "reasoning_content"), chat_deltas(found), found[-1] == "[DONE]"
    if dialect == "messages":
        deltas = [event["delta"] for event in found if event["type"] == "content_block_delta"]
        thinking = "".join(delta.get("thinking", "") for delta in deltas)
        return thinking, "".join(delta.get("text", "") for delta in deltas), found[-1]["type"] == "message_stop"
    parts = ["", ""]
    for event in found:
        for index, name in enumerate(("response.reasoning_summary_text.delta", "response.output_text.delta")):
            if event["type"] == name:
                parts[index] += event["delta"]
    return parts[0], parts[1], found[-1]["type"] == "response.completed"


def is_right(number: int, dialect: Dialect, stream: bool, body: bytes) -> bool:
    """Whether a reply is whole and says exactly what the model said."""
    return told(dialect, stream, body) == (thought(number), answer(number), True)


def is_honest(number: int, dialect: Dialect, stream: bool, body: bytes) -> bool:
    """Whether a reply that broke off tells all that came before, and does not say that it is whole."""
    if not stream:
        return told(dialect, stream, body) == ("", "", False)
    # As the gateway asks for it, so that it breaks off at the same place.
    data = speech.chat_stream(spoken(number), {"model": "m", "stream_options": {"include_usage": True}})
    *frames, last = data[: place(number, data)].split(b"\n\n")
    if last.rstrip(b"\n").endswith(b"}]}"):
        frames.append(last)  # only the blank line behind it is missing
    raw = "".join(json.loads(frame[6:])["choices"][0]["delta"]["content"] for frame in frames)
    message = asides.parse(raw, "qwen3", start="text")
    return told(dialect, stream, body) == (message.thinking, message.text, False)
