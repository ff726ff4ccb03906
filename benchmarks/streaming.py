"""Section `streaming`: what a chunk of four characters costs in thinking and in text, for every format.

The reference is a bare method call that returns a list of one record. Owns its tables; knows how to enter a state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import asides
from asides._engine.format import THINKING
from asides.events import Event, TextDelta
from asides.families import get_format
from asides.policies import Start
from benchmarks import measure, samples

CHUNK = 4
AIM = 4.0
STATES: tuple[Start, ...] = ("thinking", "text")
SIZES = (2_000, 20_000, 200_000, 2_000_000)
ENTRIES: dict[str, dict[Start, str]] = {
    "qwen3": {"thinking": "<think>", "text": ""},
    "auto": {"thinking": "<think>", "text": ""},
    "harmony": {
        "thinking": "<|channel|>analysis<|message|>",
        "text": "<|channel|>final<|message|>",
    },
    "think_tag": {"thinking": "<think>", "text": ""},
}
"""What is written before the words of each state."""
AT_LEAST = 100_000
"""Characters in a run: short texts are read by several parsers, so that there is something to measure."""


class Bare:
    """What could not be faster: it takes a chunk and returns a list of one record."""

    def feed(self, chunk: str) -> list[Event]:
        return [TextDelta(0, chunk)]


Feed = Callable[[str], object]


def per_chunk(makers: Mapping[str, Callable[[], Feed]], chunks: Sequence[str], repeat: int) -> dict[str, float]:
    """Seconds per chunk for each way of feeding. Making a parser is not counted; keeping what it read is."""
    copies = max(1, AT_LEAST // (len(chunks) * CHUNK))

    def preparing(make: Callable[[], Feed]) -> Callable[[], Callable[[], None]]:
        def prepare() -> Callable[[], None]:
            feeds = [make() for _ in range(copies)]

            def run() -> None:
                for feed in feeds:
                    for chunk in chunks:
                        feed(chunk)

            return run

        return prepare

    prepared = {name: preparing(make) for name, make in makers.items()}
    times = measure.best_of_fresh(prepared, repeat=repeat)
    return {name: seconds / (len(chunks) * copies) for name, seconds in times.items()}


def entering(name: str, state: Start, before: str = "") -> Callable[[], Feed]:
    """Makes parsers that stand in a state, before its first word."""

    def make() -> Feed:
        parser = asides.Parser(name) if before else asides.Parser(name, start=state)
        parser.feed(before)
        return parser.feed

    return make


def run() -> None:
    """Print both tables."""
    by_size()
    by_format()


def by_size() -> None:
    rows: list[list[str]] = []
    for name, entries in ENTRIES.items():
        for state, before in entries.items():
            for kind, sample in samples.TEXTS.items():
                if (name, kind) == ("think_tag", "markdown") or (state, kind) == ("thinking", "markdown"):
                    continue
                rows.append([name, state, kind, *_growth(entering(name, state, before), sample)])
    headers = ["format", "in", "of", *map(samples.count, SIZES), "2M / 2k", "chunk", ""]
    measure.print_table(
        f"Streaming: one chunk of {CHUNK} characters, as a ratio to a bare method call that returns a list of one "
        f"record (aim: at most {AIM:.0f}x, and no growth with the length)",
        headers,
        rows,
    )


def _growth(make: Callable[[], Feed], sample: str) -> list[str]:
    ratios: list[float] = []
    seconds: list[float] = []
    for size in SIZES:
        chunks = samples.cut(samples.of_length(sample, size), CHUNK)
        times = per_chunk({"bare": lambda: Bare().feed, "ours": make}, chunks, repeat=2 if size > 200_000 else 3)
        ratios.append(times["ours"] / times["bare"])
        seconds.append(times["ours"])
    cells = [measure.ratio(found, 1.0) for found in ratios]
    grown = measure.ratio(seconds[-1], seconds[0])
    return [*cells, grown, measure.duration(seconds[-1]), measure.verdict(max(ratios), AIM)]


def by_format() -> None:
    """Every registered format, in prose, at two lengths."""
    short, long = (samples.cut(samples.of_length(samples.PROSE, size), CHUNK) for size in (20_000, 200_000))
    found: list[tuple[float, list[str]]] = []
    for name in asides.formats():
        states: tuple[Start, ...] = ("thinking", "text") if get_format(name).states.get(THINKING) else ("text",)
        makers: dict[str, Callable[[], Feed]] = {state: entering(name, state) for state in states}
        makers["bare"] = lambda: Bare().feed
        at_short = per_chunk(makers, short, repeat=3)
        at_long = per_chunk(makers, long, repeat=3)
        ratios = {state: at_long[state] / at_long["bare"] for state in states}
        growths = [at_long[state] / at_short[state] for state in states]
        worst = max(ratios.values())
        cells = [measure.ratio(ratios[state], 1.0) if state in ratios else "-" for state in STATES]
        note = measure.verdict(worst, AIM) or ("grows" if max(growths) > 1.5 else "")
        found.append((worst, [name, *cells, measure.ratio(max(growths), 1.0), note]))
    found.sort(key=lambda entry: -entry[0])
    measure.print_table(
        "Streaming: every format in prose at 200k characters, the slowest first",
        ["format", "thinking", "text", "200k / 20k", ""],
        [row for _, row in found],
    )
