"""Microsoft's Phi-4."""

from __future__ import annotations

from .._engine.format import Format
from .other_syntaxes import PHI4

PHI = Format.tags(
    "<think>",
    "</think>",
    name="phi4_mini_json",
    aliases=("phi4",),
    source="Phi-4-mini as vLLM reads it; its reasoning variants think in <think>",
    stops=("<|end|>", "<|endoftext|>"),
    calls=(PHI4,),
    assistant=("<|assistant|>",),
    plain={"functools[": "code"},
)
FORMATS = (PHI,)
