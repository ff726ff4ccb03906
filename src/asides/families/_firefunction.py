"""Fireworks' Firefunction 2, which writes calls as Phi-4-mini does."""

from __future__ import annotations

from .._engine.format import END, TEXT, Format
from ._family import Family, Model
from ._phi import PHI4_CALLS

FIREFUNCTION = Format(
    name="firefunction_v2",
    aliases=("firefunction",),
    source="llama-3-firefunction-v2 as llama.cpp reads it. It does not think",
    states={TEXT: dict.fromkeys(("<|eot_id|>", "<|end_of_text|>"), END)},
    calls=(PHI4_CALLS,),
    other_turns=("<|start_header_id|>",),
    assistant=("<|start_header_id|>assistant<|end_header_id|>\n\n",),
)
FAMILY = Family(
    name="Firefunction",
    formats=(FIREFUNCTION,),
    models=(Model(r"firefunction-?v{}", "firefunction_v2", False, "2"),),
    plain=dict.fromkeys(PHI4_CALLS.open, "code"),
)
