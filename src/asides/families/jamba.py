"""AI21's Jamba."""

from __future__ import annotations

from .._engine.format import Format
from .other_syntaxes import TOOL_CALLS_LIST

JAMBA = Format.tags(
    "<think>",
    "</think>",
    name="jamba",
    source="Jamba 1.5 as vLLM and Dynamo read it; its reasoning variant thinks in <think>",
    stops=("<|eom|>", "<|endoftext|>"),
    calls=(TOOL_CALLS_LIST,),
    assistant=("<|bom|><|assistant|>",),
)
FORMATS = (JAMBA,)
