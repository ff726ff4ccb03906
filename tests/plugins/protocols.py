"""What the tests of the event protocols share: recorded cases as streams, and ways to give them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, TypeVar

import pytest

import asides
from asides import Message
from asides.policies import DEFAULTS, Policies
from tests.support import characters, check_each, count_calls, cut, run
from tests.test_cases import ALL, Case

Item = TypeVar("Item")
Split = Callable[..., Iterator[Any]]

SEED = 7
MIXED = (
    "<think>First\n\nthought.</think>One.<think>Second.</think>"
    'Two.\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": [2, "</tool_call>"]}}\n</tool_call>\n'
    '<tool_call>\n{"name": "add", "arguments": [1]}\n</tool_call>\n<think>Third, cut'
)
"""Several thoughts, texts, a call that may be run, one that may not, and a thought that is cut off; read as qwen3."""
BROKEN = '<tool_call>\n{"name": "add", "arguments": [1]}\n</tool_call>'
"""The call of it that may not be run, as the model wrote it."""
ONE_ID_TWICE = (
    "<|tool_calls_section_begin|>"
    '<|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>'
    '<|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{"a": 2}<|tool_call_end|>'
    "<|tool_calls_section_end|>"
)
"""Two calls to which the model gave one id; read as kimi_k2."""
IDS = ["functions.add:0", "functions.add:0_1"]
"""The ids that they have in a host."""


def options(case: Case) -> dict[str, Any]:
    """The policies of a case, with the seed of these tests unless it has its own.

    Words that went out cannot be taken back; how they are corrected has tests of its own.
    """
    return {**case.options, "seed": SEED, "retype": False}


def message_of(case: Case) -> Message | None:
    """What a parser makes of a case; None for one that is strict."""
    return run(case.format, case.chunks, **options(case)).message


def check_cases(check: Callable[[Case, Message], object]) -> None:
    """Check every recorded case that a parser reads to its end, one test for each file of them."""
    # A stream of text has no word of a server about its end.
    told = [case for case in ALL if "finish_reason" not in case.options]
    held = [(case, message) for case in told if (message := message_of(case)) is not None]
    assert len(held) > 1000
    check_each(
        lambda pair: check(*pair), held, lambda pair: f"{pair[0].file}: {pair[0].said['name']} ({pair[0].format})"
    )


def ways_to_cut(text: str) -> Iterator[Iterable[str]]:
    """A text in one piece, in characters, and in random pieces."""
    yield (text,)
    yield characters(text)
    rng = random.Random(5)
    for _ in range(20):
        yield cut(text, sorted(rng.sample(range(1, len(text)), rng.randint(1, 30))))


async def _later(chunks: Iterable[str]) -> AsyncIterator[str]:
    for chunk in chunks:
        await asyncio.sleep(0)
        yield chunk


def collect(
    stream: Callable[..., AsyncIterator[Item]], chunks: Iterable[str], *args: Any, **keywords: Any
) -> list[Item]:
    """What an asynchronous stream gives."""

    async def gather() -> list[Item]:
        return [item async for item in stream(_later(chunks), *args, **keywords)]

    return asyncio.run(gather())


def check_closes(split: Split, asplit: Callable[..., AsyncIterator[Any]], **keywords: Any) -> None:
    """A stream that is given up closes the one it reads."""
    closed: list[str] = []

    def chunks() -> Iterator[str]:
        try:
            yield from characters(MIXED)
        finally:
            closed.append("sync")

    stream = split(chunks(), "qwen3", **keywords)
    next(stream)
    assert not closed
    stream.close()  # type: ignore[attr-defined]

    async def later() -> AsyncIterator[str]:
        try:
            for chunk in characters(MIXED):
                yield chunk
        finally:
            closed.append("async")

    async def give_up() -> None:
        stream = asplit(later(), "qwen3", **keywords)
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        assert closed == ["sync", "async"]  # here, because the end of the loop would close it too

    asyncio.run(give_up())


def check_fails(split: Split, asplit: Callable[..., AsyncIterator[Any]], **keywords: Any) -> None:
    """Where the stream that is read fails, what was held back goes out before the error, and nothing stays open."""
    pieces = ["<think>Hm.</think>Yes", ", 2 <thi"]
    expected = list(split(pieces, "qwen3", seed=SEED, **keywords))
    seen: list[Any] = []

    def chunks() -> Iterator[str]:
        yield from pieces
        raise ConnectionError("gone")

    async def read() -> None:
        async for item in asplit(_later(chunks()), "qwen3", seed=SEED, **keywords):
            seen.append(item)

    with pytest.raises(ConnectionError):
        seen.extend(split(chunks(), "qwen3", seed=SEED, **keywords))
    with pytest.raises(ConnectionError):
        asyncio.run(read())
    assert seen == expected * 2


def check_refuses(split: Split, **keywords: Any) -> None:
    """An unknown format and an unknown choice are our own errors; strictness raises as it does elsewhere."""
    with pytest.raises(asides.UnknownFormatError, match="qwen3"):
        list(split(["a"], "qwen33", **keywords))
    with pytest.raises(asides.UsageError, match="mentions"):
        list(split(["a"], "qwen3", mentions="no", **keywords))
    with pytest.raises(asides.StrictError):
        list(split(["<think>a"], "qwen3", strict=True, **keywords))
    # A record of policies counts too, and keywords change it.
    assert list(split(["a</think>b"], "qwen3", Policies(start="thinking"), **keywords))
    assert list(split(["a"], policies=DEFAULTS, **keywords))


def check_linear(do: Callable[[Iterable[str]], object]) -> None:
    """Ten times the input is about ten times the work, in pieces of three characters."""

    def work(size: int) -> int:
        call = f'{{"name": "f", "arguments": {{"x": "{"e" * size}"}}}}'
        text = f"<think>{'ab ' * size}</think>{'cd ' * size}<tool_call>\n{call}\n"
        return count_calls(lambda: do([text[at : at + 3] for at in range(0, len(text), 3)]))

    work(10)  # caches of the format are filled
    assert work(3000) < 11 * work(300)


def grouped(items: Iterable[Item], key: Callable[[Item], object]) -> Iterator[list[Item]]:
    """Neighbours of one key."""
    return (list(group) for _, group in groupby(items, key))
