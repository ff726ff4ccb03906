"""Reka Edge."""

from __future__ import annotations

from ..engine.format import Format

REKA = Format.tags(
    "<think>",
    "</think>",
    name="reka_edge",
    source="chat template of Reka-Edge: no opener in the generation prompt by default; it writes no calls of its own",
    stops=("<sep>",),
    assistant=("assistant:",),
)
FORMATS = (REKA,)
