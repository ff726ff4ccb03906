"""The streamer for `generate`. Neither torch nor transformers is needed."""

from __future__ import annotations

from typing import Any

import pytest

import asides
from asides.streamer import Streamer
from tests.render.real import encode, tokenizer

PROMPT = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n"


class Tensor:
    """What `generate` gives: the prompt with two dimensions, then ids with one."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def tolist(self) -> list[Any]:
        return self._values


def generate(streamer: Streamer, text: str) -> None:
    """What transformers does with a streamer."""
    streamer.put(Tensor([encode("qwen3", PROMPT)]))
    for id in encode("qwen3", text):
        streamer.put(Tensor([id]))
    streamer.end()


def test_the_prompt_sets_the_start() -> None:
    told: list[asides.events.Event] = []
    streamer = Streamer(tokenizer("qwen3"), "qwen3", told.append)
    generate(streamer, "a plan</think>\n\n4.<|im_end|>")
    assert (streamer.message.thinking, streamer.message.text) == ("a plan", "4.")
    assert [event.text for event in told if isinstance(event, asides.ThinkingDelta)] == ["a", " plan"]
    assert streamer.events == []


def test_it_serves_again() -> None:
    streamer = Streamer(tokenizer("qwen3"), "qwen3")
    assert streamer.message == asides.Message()
    generate(streamer, "a</think>b<|im_end|>")
    first = streamer.events
    generate(streamer, "c")
    assert first != streamer.events
    assert streamer.message.thinking == "c"
    assert streamer.message.termination == "cut"


def test_what_it_takes() -> None:
    streamer = Streamer(tokenizer("qwen3"), "qwen3", skip_prompt=False)
    ids = encode("qwen3", "<think>a</think>b")
    streamer.put(ids[0])
    streamer.put(ids[1:])
    streamer.end()
    streamer.end()
    assert (streamer.message.thinking, streamer.message.text) == ("a", "b")
    with pytest.raises(asides.UsageError):
        streamer.put([[1], [2]])
