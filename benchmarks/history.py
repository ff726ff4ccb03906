"""Section `history`: writing thoughts, finding them again by size of the store, and what keeping costs the gateway.

`python -m benchmarks.history 1000000` measures a store of that many thoughts, which takes minutes to fill.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from statistics import median

from asides import _history as history
from asides._history import History, KeptReply, ReplyFilter
from asides.parts import Text, Thinking
from asides.reply._reply import Reply
from benchmarks import measure

SIZES = (10_000, 100_000)
THOUGHTS = 2
"""Of each reply."""
BATCH = 200
START = datetime(2026, 1, 1, tzinfo=UTC)
LETTERS = "etaoinshrdlcumwfgypbvk"
VOCABULARY = 60_000
COMMON, USUAL, RARE = 0, 100, 30_000
"""Ranks of words to search for: of the first, nearly every second thought has one."""
STREAMS, ROUNDS, MODEL = 32, 5, "paced-100"
"""Streams at once through a gateway, replies on each, and the scripted model: a frame every 10 ms, 100 of them."""
TURNS = 10
"""Times that each gateway is measured."""
WRITTEN = 1.0
"""Seconds after which the last reply is written, which counts too."""


class Corpus:
    """Thoughts of made-up words, as often as words are in real text: the tenth a tenth as often as the first."""

    def __init__(self) -> None:
        self._random = random.Random(1)
        weights = range(len(LETTERS), 0, -1)
        made: dict[str, None] = {}
        while len(made) < VOCABULARY:
            made["".join(self._random.choices(LETTERS, weights, k=self._random.randint(4, 10)))] = None
        self.words = list(made)
        self._weights = list(itertools.accumulate(1 / (rank + 2) for rank in range(VOCABULARY)))

    def text(self) -> str:
        """20 to 100 words."""
        return " ".join(self._random.choices(self.words, cum_weights=self._weights, k=self._random.randint(20, 100)))

    def replies(self, thoughts: int) -> Iterator[KeptReply]:
        """As many replies as hold these thoughts, three to a minute."""
        for number in range(thoughts // THOUGHTS):
            text = self.text()
            made = [Thinking(self.text()) for _ in range(THOUGHTS)]
            reply = Reply(
                parts=(*made, Text(text)),
                thinking="\n\n".join(thought.text for thought in made),
                text=text,
                model=("one", "two", "three")[number % 3],
            )
            yield KeptReply.of(reply, time=START + number * timedelta(seconds=20), source="gateway")


def run(sizes: tuple[int, ...] = SIZES) -> None:
    """Print the tables."""
    rows = [_measure(size) for size in sizes]
    measure.print_table(
        f"History: a file with thoughts of about {_length():,} characters. Written: thoughts per second of time on the "
        "clock, in batches; the others: the best time of a search for the 20 best, on the clock",
        ["thoughts", "written", "file", *_searches(Corpus(), START), "scanned"],
        rows,
    )
    print("`scanned`: one pass with a regular expression over every thought, as `asides history grep` makes it.\n")
    try:
        rates, kept = _gateway()
    except ImportError as error:
        print(f"What keeping costs the gateway is not measured: {error}; pip install 'asides[gateway]' psutil\n")
        return
    # Both at the same time, so that a slow moment of the machine falls on both.
    ratios = sorted(on / off for off, on in zip(rates["off"], rates["on"], strict=True))
    measure.print_table(
        f"History: frames for each second that the gateway's process works, its thread that writes included; {STREAMS} "
        f"paced streams through each, replies of about 100 frames; both at the same time, {TURNS} times",
        ["history", "per cpu s", "ratio to off", "lowest and highest"],
        [
            ["off", f"{median(rates['off']):,.0f}", "1.00x", ""],
            [
                f"on ({kept:,} kept)",
                f"{median(rates['on']):,.0f}",
                f"{median(ratios):.2f}x",
                f"{ratios[0]:.2f}x, {ratios[-1]:.2f}x",
            ],
        ],
    )


def _length() -> int:
    corpus = Corpus()
    return sum(len(corpus.text()) for _ in range(1000)) // 1000


def _searches(corpus: Corpus, end: datetime) -> dict[str, tuple[str, ReplyFilter]]:
    common, usual, rare = (corpus.words[rank] for rank in (COMMON, USUAL, RARE))
    everywhere = ReplyFilter()
    return {
        "common": (common, everywhere),
        "usual": (usual, everywhere),
        "rare": (rare, everywhere),
        "two words": (f"{usual} {corpus.words[USUAL + 1]}", everywhere),
        "phrase": (f'"{common} {corpus.words[COMMON + 1]}"', everywhere),
        "half a word": (rare[:-1], everywhere),
        "absent": ("zzzz", everywhere),
        "last tenth": (usual, ReplyFilter(since=end)),
        "one model": (usual, ReplyFilter(models=("two",))),
    }


def _measure(size: int) -> list[str]:
    corpus = Corpus()
    with tempfile.TemporaryDirectory() as folder, history.open(f"{folder}/history.db") as store:
        seconds = _fill(store, corpus, size)
        end = START + (size // THOUGHTS) * timedelta(seconds=20) * 0.9
        functions: dict[str, Callable[[], object]] = {
            name: lambda query=query, where=where: store.search(query, where)  # type: ignore[misc]  # bound, not given
            for name, (query, where) in _searches(corpus, end).items()
        }
        times = measure.best_of_each(functions, repeat=5, clock=time.perf_counter)
        room = store.size()
        times["scanned"] = _scan(store, corpus.words[RARE])
    found = map(measure.duration, times.values())
    return [f"{size:,}", measure.rate(size, seconds, ""), f"{room / 1e6:,.0f} MB", *found]


def _fill(store: History, corpus: Corpus, size: int) -> float:
    """Write a corpus, and return how long the writing took."""
    seconds = 0.0
    replies = corpus.replies(size)
    while batch := list(itertools.islice(replies, BATCH)):
        start = time.perf_counter()
        store.add(batch)
        seconds += time.perf_counter() - start
    return seconds


def _scan(store: History, word: str) -> float:
    pattern = re.compile(re.escape(word))
    start = time.perf_counter()
    for reply in store.replies():
        for thought in reply.thoughts:
            pattern.search(thought.text)
    return time.perf_counter() - start


def _gateway() -> tuple[dict[str, list[float]], int]:
    """Frames per processor second of a gateway without history and of one with it, and how many replies that kept."""
    # Here, because the rest is measured where the gateway's packages are not installed too.
    import uvloop

    from benchmarks.gateway import processes
    from benchmarks.gateway.load import measure as load
    from benchmarks.gateway.load import processor_seconds

    rates: dict[str, list[float]] = {"off": [], "on": []}
    with ExitStack() as stack:
        store = f"{stack.enter_context(tempfile.TemporaryDirectory())}/history.db"
        port = processes.free_port()
        upstream = stack.enter_context(processes.running(processes.upstream(port), port))
        targets = {}
        for name in rates:
            port = processes.free_port()
            command = processes.asides(port, upstream.port)
            if name == "on":
                command = ["env", f"ASIDES_HISTORY={store}", *command, "--save"]
            targets[name] = stack.enter_context(processes.running(command, port))

        async def both() -> None:
            before = [processor_seconds(target.pid) for target in targets.values()]
            points = await asyncio.gather(
                *(
                    load(target.port, target.pid, upstream.port, "chat", MODEL, STREAMS, ROUNDS)
                    for target in targets.values()
                )
            )
            await asyncio.sleep(WRITTEN)
            for (name, target), point, start in zip(targets.items(), points, before, strict=True):
                if point.right != point.replies:
                    raise SystemExit(f"history {name}: {point.replies - point.right} wrong: {point.complaints[:3]}")
                rates[name].append(point.frames / (processor_seconds(target.pid) - start))

        for _ in range(TURNS):
            uvloop.run(both())
        with history.open(store) as kept:
            return rates, kept.count().replies


if __name__ == "__main__":
    run(tuple(map(int, sys.argv[1:])) or SIZES)
