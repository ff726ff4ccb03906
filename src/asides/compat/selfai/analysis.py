"""SelfAI's `analyze_thinking`: its four figures, and what the score is made of. The measures are `asides.analysis`'."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def analyze_thinking(think_contents: Sequence[str]) -> dict[str, Any]:
    """How many thoughts, how long, whether they ask, and how good they look; all zero where there are none."""
    from ...analysis import quality

    found = quality(think_contents)
    count = len(think_contents)
    return {
        "num_steps": count,
        "avg_length": sum(map(len, think_contents)) / count if count else 0.0,
        "contains_questions": any("?" in thought for thought in think_contents),
        "quality_score": found.score,
        "quality_parts": found.parts,
    }
