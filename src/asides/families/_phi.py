"""Microsoft's Phi-4."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.format import Format
from ._family import Family, Model

PHI4_CALLS = JsonCalls(open=("functools[", "functools ["), listed=True)
"""`functools[{"name": "f", "arguments": {}}]`."""

PHI = Format.tags(
    "<think>",
    "</think>",
    name="phi4_mini_json",
    aliases=("phi4",),
    source="Phi-4-mini as vLLM reads it; its reasoning variants think in <think>",
    stops=("<|end|>", "<|endoftext|>"),
    other_turns=("<|user|>", "<|system|>", "<|tool|>", "<|assistant|>"),
    calls=(PHI4_CALLS,),
    assistant=("<|assistant|>",),
)
FAMILY = Family(
    name="Phi",
    formats=(PHI,),
    models=(
        Model(r"\bphi-?{}-mini.*reasoning", "phi4", True, "4", "Phi-4 mini reasoning"),
        Model(r"\bphi-?{}.*reasoning", "think_tag", True, "4", "Phi-4 reasoning"),
        Model(r"\bphi-?{}", "phi4", False, "3 3.5 4"),
    ),
    plain=dict.fromkeys(PHI4_CALLS.open, "code"),
)
