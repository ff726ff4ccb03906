"""Salesforce's xLAM."""

from __future__ import annotations

from .._engine.format import Format
from .chatml import ASSISTANT, STOPS
from .other_syntaxes import XLAM
from .tool_call_tag import with_siblings

XLAM_FORMAT = Format.tags(
    "<think>",
    "</think>",
    name="xlam",
    source="xLAM as vLLM reads it: JSON, bare or in one of several frames",
    stops=(*STOPS, "<|eot_id|>"),
    calls=with_siblings(*XLAM),
    assistant=ASSISTANT,
)
FORMATS = (XLAM_FORMAT,)
