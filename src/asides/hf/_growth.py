"""How the cost of an anchor grows, measured: what a look at the pattern misses, and what it claims without proof.

A reader of templates searches the text that it has so far for every anchor that may come next, at every chunk, from the
first place where one may still begin. Here one pattern is searched for in the same way in texts of doubling sizes that
hold no match, and the CPU time of each size is taken. Twice the text for twice the time is linear; more than
`STEEP` as the exponent is reported. Bounded: a size that took `ENOUGH_SECONDS` is the last, and one search is given up
after `SEARCH_SECONDS`, so that a pattern of exponential cost ends too.

Such texts never come as far as a quantifier after a literal. So every quantifier of a pattern is also reached by a text
that matches what stands before it, and is then pumped: what it repeats, and single characters, over and over.

    measured_growth(r"(?=[\\s\\S]*?</think>)")   # AnchorGrowth(exponent=2.7, ...)
    measured_growth(r"</think>\\s*")             # None
    pumped_growth(r"<call>(?:x|xx)*>")          # AnchorGrowth(exponent=inf, ...)
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, NamedTuple

from ._anchors import PARTIAL, compile_pattern

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
PUMP_SIZES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
MOST_QUANTIFIERS = 32
MOST_REPEATS = 16
"""Up to which number of times a quantifier is no danger."""
MOST_SPELLED = 16
PIECES = ("x", "0", " ", "\n", "<", '"', "=")
"""What quantifiers are pumped with, beside what they repeat and the characters of the pattern."""
NOTHING = "\x00"
"""What ends a pumped text: hardly a pattern goes on with it, so all ways are tried."""
_SAMPLES = "x0 <\n\"=_-,>'/"
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
_TEXTS = ("the map shows rain over Oslo, and 3 < 4.\n", "\n", "<" * 31 + " ")
"""What the texts are made of: prose, whitespace, and beginnings of markers."""


class AnchorGrowth(NamedTuple):
    """How the cost of one anchor grew."""

    exponent: float
    times: tuple[tuple[int, float], ...]
    """Sizes in characters, and the seconds of CPU time that each took."""
    pumped: tuple[str, str] | None = None
    """What the texts began with, and what was repeated after it, where a quantifier was pumped."""

    def __str__(self) -> str:
        sizes = ", ".join(f"{size:,}" for size, _ in self.times)
        spent = ", ".join(f"{seconds * 1000:.1f}" for _, seconds in self.times)
        grows = (
            f"the cost grows like n^{self.exponent:.1f}" if math.isfinite(self.exponent) else "a search does not end"
        )
        how = f"in chunks of {CHUNK}"
        if self.pumped is not None:
            how = f"of {self.pumped[1]!r} after {self.pumped[0]!r}"
        return f"measured: {sizes} characters {how} take {spent} ms, so {grows}"


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


@lru_cache(maxsize=256)
def pumped_growth(source: str) -> AnchorGrowth | None:
    """How the cost of one match grows where that is more than linear: the first quantifier that shows it."""
    if not PARTIAL:
        return None
    pattern = compile_pattern(source)
    for before, piece in dict.fromkeys(_pumps(source)):
        seconds = partial(_match_seconds, pattern, before, piece)
        with suppress(TimeoutError):
            if seconds(PUMP_SIZES[-1]) < LEAST_SECONDS:
                continue  # most are quick even so, and need no other look
        if (growth := _measured(seconds, PUMP_SIZES)) is not None:
            return growth._replace(pumped=(before, piece))
    return None


def _growth(pattern: Any, piece: str) -> AnchorGrowth | None:
    return _measured(lambda size: _seconds(pattern, (piece * (size // len(piece) + 1))[:size]), SIZES)


def _measured(seconds: Callable[[int], float], sizes: Sequence[int]) -> AnchorGrowth | None:
    """The growth of a cost, if it is more than linear, twice measured: a busy machine makes one size slow."""
    found = _measured_once(seconds, sizes)
    return found if found is None or math.isinf(found.exponent) else _measured_once(seconds, sizes)


def _measured_once(seconds: Callable[[int], float], sizes: Sequence[int]) -> AnchorGrowth | None:
    times: list[tuple[int, float]] = []
    for size in sizes:
        try:
            times.append((size, min(seconds(size) for _ in range(REPEATS))))
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


def _match_seconds(pattern: Any, before: str, piece: str, size: int) -> float:
    """The CPU time of one match that fails at its end, after a pumped quantifier."""
    text = before + (piece * (size // len(piece) + 1))[:size] + NOTHING
    started = time.thread_time()
    pattern.search(text, timeout=SEARCH_SECONDS)
    return time.thread_time() - started


def _seconds(pattern: Any, text: str) -> float:
    """The CPU time of looking for a pattern in a text that arrives in chunks."""
    started, at = time.thread_time(), 0
    for end in range(CHUNK, len(text) + 1, CHUNK):
        match = pattern.search(text[:end], at, partial=True, timeout=SEARCH_SECONDS)
        if match is not None and not match.partial and match.end() < end:
            break  # it stands here: the reader goes on with another
        at = match.start() if match is not None else end
    return time.thread_time() - started


# What reaches each quantifier.


def _pumps(source: str) -> Iterator[tuple[str, str]]:
    """For each quantifier of a pattern a text that leads up to it, each with what may be repeated there."""
    try:
        tree = import_module("re._parser").parse(source, re.DOTALL)
    except (ImportError, re.error, RecursionError, OverflowError):
        return  # a syntax that only `regex` has: what was searched for in texts is all that is known
    places: list[tuple[str, str]] = []
    _sample(tree, "", places)
    spelled = [chr(code) for code in dict.fromkeys(map(ord, source)) if not chr(code).isascii() or chr(code).isalnum()]
    for before, piece in places[:MOST_QUANTIFIERS]:
        for each in dict.fromkeys([piece, *PIECES, *spelled[:MOST_SPELLED]]):
            if each:
                yield before, each


def _sample(tree: Any, before: str, places: list[tuple[str, str]]) -> str:
    """A text that a pattern's syntax tree matches; `places` gets its quantifiers. `before` is what leads up to it."""
    text = ""
    for kind, value in tree:
        name = str(kind)
        if name.endswith("REPEAT"):
            least, most, body = value
            piece = _sample(body, before + text, places)
            if most > MOST_REPEATS:
                places.append((before + text, piece))
            text += piece * min(int(least), MOST_REPEATS)
        elif name == "SUBPATTERN":
            text += _sample(value[3], before + text, places)
        elif name == "ATOMIC_GROUP":
            text += _sample(value, before + text, places)
        elif name == "BRANCH":
            first, *_ = [_sample(branch, before + text, places) for branch in value[1]]
            text += first
        elif name == "LITERAL":
            text += chr(value)
        elif name in ("IN", "ANY", "NOT_LITERAL"):
            text += _character(name, value)
    return text


def _character(name: str, value: Any) -> str:
    """A character of a class."""
    if name == "ANY":
        return "x"
    taken = {chr(value)} if name == "NOT_LITERAL" else set()
    negated = name == "NOT_LITERAL"
    for kind, each in value if name == "IN" else ():
        if str(kind) == "NEGATE":
            negated = True
        elif str(kind) == "LITERAL":
            taken.add(chr(each))
        elif str(kind) == "RANGE":
            taken.update(chr(code) for code in range(each[0], min(each[1], each[0] + 128) + 1))
        elif str(kind) == "CATEGORY":
            taken.update(character for character in _SAMPLES if re.match(_CATEGORIES.get(str(each), "."), character))
    if not negated:
        return min(taken, default="x")
    return next((character for character in _SAMPLES if character not in taken), "x")
