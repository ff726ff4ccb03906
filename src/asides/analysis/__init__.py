"""How a model thinks, in figures: of one reply, and of any number together. Reads replies, keeps none."""

from __future__ import annotations

from ._figures import Figures, Quality, analyze, analyze_thoughts, quality
from ._outline import Outliner, Step, StepKind, outline
from ._repetition import Loop
from ._summary import Summary, summarize

__all__ = [
    "Figures",
    "Loop",
    "Outliner",
    "Quality",
    "Step",
    "StepKind",
    "Summary",
    "analyze",
    "analyze_thoughts",
    "outline",
    "quality",
    "summarize",
]
