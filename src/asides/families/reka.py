"""Reka Edge."""

from __future__ import annotations

from .._engine.format import Format
from .other_syntaxes import HERMES
from .tool_call_tag import with_siblings

REKA = Format.tags(
    "<think>",
    "</think>",
    name="reka_edge",
    source="chat template of Reka-Edge: no opener in the generation prompt by default; calls as JSON in tags",
    stops=("<sep>",),
    calls=with_siblings(HERMES),
    assistant=("assistant:",),
    plain={"<sep>": "a word of everybody's who writes about language models", "assistant:": "a word"},
)
FORMATS = (REKA,)
