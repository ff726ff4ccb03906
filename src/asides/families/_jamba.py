"""AI21's Jamba."""

from __future__ import annotations

from .._engine.format import Format
from ._family import Family, Model
from ._shared import TOOL_CALLS_LIST

JAMBA = Format.tags(
    "<think>",
    "</think>",
    name="jamba",
    source="Jamba 1.5 as vLLM and Dynamo read it; its reasoning variant thinks in <think>",
    stops=("<|eom|>", "<|endoftext|>"),
    other_turns=("<|bom|>",),
    calls=(TOOL_CALLS_LIST,),
    assistant=("<|bom|><|assistant|>",),
)
FAMILY = Family(
    name="Jamba",
    formats=(JAMBA,),
    models=(
        Model(r"jamba.*reasoning", "jamba", True, who="Jamba Reasoning"),
        Model(r"jamba-?{}", "jamba", False, "1.5 1.6 1.7"),
        Model(r"jamba", "jamba", False),
    ),
)
