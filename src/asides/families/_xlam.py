"""Salesforce's xLAM."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.format import Format
from ._family import Family, Model
from ._shared import ASSISTANT, HERMES, STOPS, TURNS, with_siblings

XLAM_CALLS = (
    JsonCalls(bare=True, fenced=True, fenced_behind_prose=True),
    JsonCalls(open=("[TOOL_CALLS]",), listed=True),
    HERMES,
)
"""A bare list, perhaps in a code block, or behind a marker of others."""

XLAM = Format.tags(
    "<think>",
    "</think>",
    name="xlam",
    source="xLAM as vLLM reads it: JSON, bare or in one of several frames",
    stops=(*STOPS, "<|eot_id|>"),
    other_turns=(*TURNS, "<|start_header_id|>"),
    calls=with_siblings(*XLAM_CALLS),
    assistant=ASSISTANT,
)
FAMILY = Family(
    name="xLAM",
    formats=(XLAM,),
    models=(Model(r"xlam", "xlam", False),),
    plain={"[TOOL_CALLS]": "Mistral's"},
)
