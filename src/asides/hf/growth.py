"""How the cost of an anchor grows, measured: what a look at the pattern misses, and what it claims without proof.

A reader of templates searches the text that it has so far for every anchor that may come next, at every chunk, from the
first place where one may still begin. Here one pattern is searched for in the same way in texts of doubling sizes that
hold no match, and the CPU time of each size is taken. Twice the text for twice the time is linear; more than
`STEEP` as the exponent is reported. Bounded: a size that took `ENOUGH_SECONDS` is the last, and one search is given up
after `SEARCH_SECONDS`, so that a pattern of exponential cost ends too.

    measured_growth(r"(?=[\\s\\S]*?</think>)")   # AnchorGrowth(exponent=2.7, ...)
    measured_growth(r"</think>\\s*")             # None
"""

from __future__ import annotations

import math
import time
from functools import lru_cache
from typing import Any, NamedTuple

from .anchors import PARTIAL, compile_pattern

SIZES = (256, 512, 1024, 2048, 4096, 8192)
"""Sizes of the texts, in characters."""
CHUNK = 8
"""How many characters arrive at a time."""
STEEP = 1.5
"""The exponent from which on a cost counts as more than linear."""
LEAST_SECONDS = 0.003
"""What the largest size must take; below it a clock shows nothing."""
ENOUGH_SECONDS = 0.05
SEARCH_SECONDS = 0.5
REPEATS = 3
"""How often each size is measured; the least time counts."""
_TEXTS = ("the map shows rain over Oslo, and 3 < 4.\n", "\n", "<" * 31 + " ")
"""What the texts are made of: prose, whitespace, and beginnings of markers."""


class AnchorGrowth(NamedTuple):
    """How the cost of one anchor grew."""

    exponent: float
    times: tuple[tuple[int, float], ...]
    """Sizes in characters, and the seconds of CPU time that each took."""

    def __str__(self) -> str:
        sizes = ", ".join(f"{size:,}" for size, _ in self.times)
        spent = ", ".join(f"{seconds * 1000:.1f}" for _, seconds in self.times)
        grows = (
            f"the cost grows like n^{self.exponent:.1f}" if math.isfinite(self.exponent) else "a search does not end"
        )
        return f"measured: {sizes} characters in chunks of {CHUNK} take {spent} ms, so {grows}"


@lru_cache(maxsize=256)
def measured_growth(source: str) -> AnchorGrowth | None:
    """How the cost of a pattern grows where that is more than linear; the steepest of several kinds of text.

    None also where the package `regex` is missing: the standard library has no search for the beginning of a match.
    """
    if not PARTIAL:
        return None
    pattern = compile_pattern(source)
    found = [growth for text in _TEXTS if (growth := _growth(pattern, text)) is not None]
    return max(found, key=lambda growth: growth.exponent, default=None)


def _growth(pattern: Any, piece: str) -> AnchorGrowth | None:
    times: list[tuple[int, float]] = []
    for size in SIZES:
        text = (piece * (size // len(piece) + 1))[:size]
        try:
            times.append((size, min(_seconds(pattern, text) for _ in range(REPEATS))))
        except TimeoutError:
            return AnchorGrowth(math.inf, ((size, SEARCH_SECONDS),))
        if times[-1][1] >= ENOUGH_SECONDS:
            break
    # The small sizes are mostly the cost of a call, so only the last ones say how it grows.
    (first, before), (last, after) = times[max(0, len(times) - 3)], times[-1]
    if after < LEAST_SECONDS or first == last:
        return None
    exponent = math.log(after / before) / math.log(last / first)
    return AnchorGrowth(exponent, tuple(times)) if exponent >= STEEP else None


def _seconds(pattern: Any, text: str) -> float:
    """The CPU time of looking for a pattern in a text that arrives in chunks."""
    started, at = time.thread_time(), 0
    for end in range(CHUNK, len(text) + 1, CHUNK):
        match = pattern.search(text[:end], at, partial=True, timeout=SEARCH_SECONDS)
        if match is not None and not match.partial and match.end() < end:
            break  # it stands here: the reader goes on with another
        at = match.start() if match is not None else end
    return time.thread_time() - started
