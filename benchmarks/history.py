"""Section `history`: writing thoughts, finding them again by size of the store, and what keeping costs a stream.

`python -m benchmarks.history 1000000` measures a store of that many thoughts, which takes minutes to fill.
"""

from __future__ import annotations

import itertools
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asides
from asides import history
from asides.history import History, Keeper, Reply, Thought, Where
from benchmarks import measure, samples

SIZES = (10_000, 100_000)
THOUGHTS = 2
"""Of each reply."""
BATCH = 200
START = datetime(2026, 1, 1, tzinfo=UTC)
LETTERS = "etaoinshrdlcumwfgypbvk"
VOCABULARY = 60_000
COMMON, USUAL, RARE = 0, 100, 30_000
"""Ranks of words to search for: of the first, nearly every second thought has one."""
CHUNK = 4
REPLIES = 100
SIZE = 4_000


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

    def replies(self, thoughts: int) -> Iterator[Reply]:
        """As many replies as hold these thoughts, three to a minute."""
        for number in range(thoughts // THOUGHTS):
            yield Reply(
                time=START + number * timedelta(seconds=20),
                model=("one", "two", "three")[number % 3],
                source="gateway",
                text=self.text(),
                thoughts=tuple(Thought(index, self.text()) for index in range(THOUGHTS)),
            )


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
    off, on, kept = _stream()
    measure.print_table(
        f"History: {REPLIES} replies of {SIZE:,} characters in pieces of {CHUNK}, parsed; processor time, the "
        "background thread included",
        ["history", "time", "ratio to off"],
        [["off", measure.duration(off), "1.00x"], [f"on ({kept} kept)", measure.duration(on), measure.ratio(on, off)]],
    )


def _length() -> int:
    corpus = Corpus()
    return sum(len(corpus.text()) for _ in range(1000)) // 1000


def _searches(corpus: Corpus, end: datetime) -> dict[str, tuple[str, Where]]:
    common, usual, rare = (corpus.words[rank] for rank in (COMMON, USUAL, RARE))
    everywhere = Where()
    return {
        "common": (common, everywhere),
        "usual": (usual, everywhere),
        "rare": (rare, everywhere),
        "two words": (f"{usual} {corpus.words[USUAL + 1]}", everywhere),
        "phrase": (f'"{common} {corpus.words[COMMON + 1]}"', everywhere),
        "half a word": (rare[:-1], everywhere),
        "absent": ("zzzz", everywhere),
        "last tenth": (usual, Where(since=end)),
        "one model": (usual, Where(models=("two",))),
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


def _stream() -> tuple[float, float, int]:
    """Processor time for a stream without history and with it, and how many replies the latter kept."""
    prose = samples.of_length(samples.PROSE, SIZE // 2)
    chunks = samples.cut(f"<think>{prose}</think>\n\n{prose}", CHUNK)
    kept = 0

    def off() -> None:
        for _ in range(REPLIES):
            _parse(chunks, collect=False)

    def on() -> None:
        nonlocal kept
        with tempfile.TemporaryDirectory() as folder:
            keeper = Keeper(str(Path(folder) / "history.db"))
            for number in range(REPLIES):
                message = _parse(chunks, collect=True).message
                keeper.keep(Reply.of(message, source="gateway", time=START + timedelta(seconds=number)))
            keeper.close()
            kept = keeper.kept

    times = measure.best_of_each({"off": off, "on": on}, repeat=5)
    return times["off"], times["on"], kept


def _parse(chunks: list[str], *, collect: bool) -> asides.Parser:
    parser = asides.Parser("qwen3", collect=collect)
    for chunk in chunks:
        parser.feed(chunk)
    parser.finish()
    return parser


if __name__ == "__main__":
    run(tuple(map(int, sys.argv[1:])) or SIZES)
