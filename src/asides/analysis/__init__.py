"""How a model thinks, in figures: of one reply, and of any number together. Reads replies, keeps none."""

from __future__ import annotations

from .figures import Figures, Quality, analyze, analyze_thoughts, quality
from .repetition import Loop
from .summary import Summary, summarize

__all__ = ["Figures", "Loop", "Quality", "Summary", "analyze", "analyze_thoughts", "quality", "summarize"]
