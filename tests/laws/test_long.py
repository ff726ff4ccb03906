"""A stream of any length in constant memory, and work that grows with the input and no faster (laws 4 and 5)."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

import asides
from tests.laws.calls import BODIES
from tests.laws.effort import LONG
from tests.support import characters, count_calls, markers

SIZE = 100_000_000 if LONG else 2_000_000
"""How many characters of plain words are streamed."""
ODD_SIZE = 4_000_000 if LONG else 120_000
"""How many of everything else."""
KEPT = 4_000_000
"""How many bytes there may be at any time, with what waits to be collected, however many pass."""
GROWTH = 10_000
"""How many bytes more it may hold at the end than in the middle."""
PLAIN = {"thinking", "text"}
FEW = 3
"""How many pairs of markers an ordinary run takes for each format."""


def repeat(unit: str, size: int = 1000) -> Iterator[str]:
    """The unit again and again, in chunks that do not fall together with it."""
    block = unit * (size // len(unit) + 2)
    place = 0
    while True:
        yield block[place : place + size]
        place = (place + size) % len(unit)


STREAMS: dict[str, tuple[str, str, dict[str, Any]]] = {
    # A head, what is repeated behind it, and the policies.
    "thinking": ("<think>", "so many words, and more of them\n\n", {}),
    "text": ("", "so many words, and more of them\n\n", {"start": "text"}),
    "undecided": ("", "so many words, and more of them\n\n", {"start": "undecided", "limit": 4096}),
    "blocks": ("", "<think>one thought</think>one word\n", {}),
    "whitespace": ("a", " \n", {"limit": 4096}),
    "whitespace in thinking": ("<think>", "\n", {"limit": 4096}),
    "near misses": ("", "<think </thin <|im_", {"start": "text"}),
    "mentions": ("", "the tag `<think>` and ", {"start": "text"}),
    "an open mention": ("", "a `<think>", {"limit": 4096}),
    "fences": ("", "```\n<think>\n```\n", {"start": "text"}),
    "an open fence": ("```\n", "<think></think>\n", {"start": "text"}),
    "strays": ("a", "</tool_call> b ", {"start": "text"}),
    "stops": ("", "a<|im_end|>\n", {}),
    "calls": ("", '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>\n', {}),
    "one long argument": ('<tool_call>{"name": "f", "arguments": {"a": "', "word \\n ", {}),
    "one long list": ('<tool_call>{"name": "f", "arguments": {"a": [', '{"b": 1}, ', {}),
    "one long list of calls": ("<tool_call>[", '{"name": "f", "arguments": {}}, ', {}),
    "closers in an argument": ('<tool_call>{"name": "f", "arguments": {"a": "', "</tool_call> ", {"limit": 4096}),
    "drafts": ("<think>", '<tool_call>{"name": "f", "arguments": {}}</tool_call> no ', {"limit": 4096}),
    "calls in thinking": ("<think>", '<tool_call>{"name": "f", "arguments": {}}</tool_call>', {"limit": 4096}),
    "broken calls": ("", "<tool_call>junk</tool_call>", {}),
    "no calls": ("", "<tool_call> junk ", {"start": "text", "limit": 4096}),
}


@pytest.fixture(scope="module")
def _others_are_left_alone() -> None:
    """What other tests have left is not looked through again whenever garbage is collected here."""
    gc.collect()
    gc.freeze()


@pytest.mark.usefixtures("_others_are_left_alone")
@pytest.mark.parametrize("stream", STREAMS)
def test_a_long_stream_in_constant_memory(stream: str) -> None:
    """Without collecting, memory does not grow with the stream."""
    head, unit, policies = STREAMS[stream]
    parser = asides.Parser("qwen3", collect=False, **policies)
    parser.feed(head)
    chunks = repeat(unit)
    # What holds nothing back up to a limit ends as it began, so half as much shows what grows.
    share = 1 if LONG or stream in PLAIN or "limit" in policies else 2
    count = (SIZE if stream in PLAIN else ODD_SIZE) // share // 1000 // 2
    tracemalloc.start()
    try:
        held = [_held_after(parser, chunks, count) for _ in range(2)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < KEPT, f"{peak} bytes at the peak"
    assert held[1] - held[0] < GROWTH // share, f"{held[0]} bytes half-way, {held[1]} at the end"
    parser.finish()


def _held_after(parser: asides.Parser, chunks: Iterator[str], count: int) -> int:
    for chunk in islice(chunks, count):
        parser.feed(chunk)
    gc.collect()  # what waits to be collected is not held
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("cut", ["whole", "by 7", "by character"])
@pytest.mark.parametrize("stream", STREAMS)
def test_work_grows_with_the_input(stream: str, cut: str) -> None:
    """Four times the input is four times the calls: whatever is read again and again shows here, on any machine."""
    head, unit, policies = STREAMS[stream]
    policies = {**policies, "limit": 1_048_576}
    _compare_work("qwen3", head, unit, policies, CUTS[cut])


@pytest.mark.parametrize("name", asides.formats())
def test_work_grows_with_the_input_for_every_format(name: str) -> None:
    """The same for every marker of every format, behind every opener."""
    format = asides.get_format(name)
    own = markers(format)
    units = [f"{marker} a " for marker in own] + [f"`{marker} " for marker in own[:4]]
    units += [opener + body for syntax in format.calls for opener in syntax.openers for body in BODIES[:2]]
    heads = ["", *own]
    pairs = [(head, unit) for head in heads for unit in units]
    for head, unit in pairs if LONG else random.Random(name).sample(pairs, min(FEW, len(pairs))):
        _compare_work(name, head, unit, {}, CUTS["by 7"], repeats=max(12, 800 // len(unit)))


def _by_seven(text: str) -> list[str]:
    return [text[place : place + 7] for place in range(0, len(text), 7)]


CUTS: dict[str, Callable[[str], Any]] = {
    "whole": lambda text: [text],
    "by 7": _by_seven,
    "by character": characters,
}


def _compare_work(
    name: str,
    head: str,
    unit: str,
    policies: dict[str, Any],
    chunks: Callable[[str], Any],
    repeats: int = 40,
) -> None:
    few = _work(name, chunks(head + unit * repeats), policies)
    many = _work(name, chunks(head + unit * repeats * 4), policies)
    assert many <= few * 4 * 1.4 + 400, (
        f"{name!r}, {policies}: {few} calls for {head!r} and {repeats} times {unit!r}, {many} for four times as much"
    )


def _work(name: str, chunks: Any, policies: dict[str, Any]) -> int:
    """How many functions are called to read these chunks."""
    parser = asides.Parser(name, **policies)

    def read() -> None:
        for chunk in chunks:
            parser.feed(chunk)
        parser.finish()

    return count_calls(read)


def test_the_beginning_of_no_marker_is_held() -> None:
    """Law 5 where nothing can be a marker: every chunk is told at once."""
    for name in asides.formats():
        parser = asides.Parser(name, start="text")
        parser.feed("Zebras are ")
        for word in ("here", " and", " there", ".", " 7"):
            parser.feed(word)
            assert parser.held == 0, f"{name}: {parser.held} characters are held after {word!r}"
