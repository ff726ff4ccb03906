"""The quality score: a heuristic of how thinking looks, never of whether it is right. Its parts, and how they combine.

docs/analysis.md says what each part measures, in words; the two must change together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

ENOUGH_WORDS = 20
"""Words of a thought from which on it has full substance."""
STEP_WORDS = 120
"""Words of a step up to which thinking is fully structured."""
CHECK_WORDS = 200
"""One question or turn of mind in so many words is full checking."""
CALM_TURNS = 3.0
"""Turns in a hundred words up to which thinking is fully steady."""
RESTLESS_TURNS = 10.0
"""Turns in a hundred words from which on it is not steady at all."""

PARTS = ("substance", "structure", "checking", "steadiness", "freshness", "closed")
"""Each from 0 to 1."""


class Quality(msgspec.Struct, frozen=True):
    """A score and what it is made of. It unpacks: `score, parts = quality(thoughts)`."""

    score: float
    """From 0 to 1."""
    parts: dict[str, float]
    """By name, each from 0 to 1."""

    def __iter__(self) -> Iterator[Any]:
        return iter((self.score, self.parts))


def grade(
    *, thoughts: int, words: int, steps: int, questions: int, turns: int, repetition: float, unclosed: int
) -> Quality:
    """The quality of thinking with these figures. `thoughts` counts the empty ones too."""
    if not words:
        return Quality(0.0, dict.fromkeys(PARTS, 0.0))
    restless = 100 * turns / max(words, 100)
    parts = {
        "substance": min(1.0, words / (ENOUGH_WORDS * max(thoughts, 1))),
        "structure": min(1.0, STEP_WORDS * max(steps, 1) / words),
        "checking": min(1.0, CHECK_WORDS * (questions + turns) / max(words, CHECK_WORDS)),
        "steadiness": min(1.0, max(0.0, (RESTLESS_TURNS - restless) / (RESTLESS_TURNS - CALM_TURNS))),
        "freshness": 1.0 - repetition,
        "closed": 1.0 - min(1.0, unclosed / max(thoughts, 1)),
    }
    manner = sum(parts[name] for name in ("substance", "structure", "checking", "steadiness")) / 4
    # These multiply: a thought that loops or was cut off is spoiled as a whole, however it began.
    score = manner * parts["freshness"] * (0.5 + 0.5 * parts["closed"])
    return Quality(round(score, 4), {name: round(part, 4) for name, part in parts.items()})
