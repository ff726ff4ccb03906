"""Swiss AI's Apertus, which calls tools in the midst of its thoughts."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.format import Format
from ._family import Family, Model, Switch

APERTUS_CALLS = JsonCalls(open=("<|tools_prefix|>",), close=("<|tools_suffix|>",), keyed=True, listed=True)
"""`<|tools_prefix|>[{"f": {}}]<|tools_suffix|>`."""

APERTUS = Format.tags(
    "<|inner_prefix|>",
    "<|inner_suffix|>",
    name="apertus",
    aliases=("apertus2509",),
    source="chat template of Apertus-8B; calls inside thinking are real and thinking goes on after them, as SGLang "
    "reads it",
    stops=("<|assistant_end|>",),
    other_turns=("<|user_start|>", "<|system_start|>", "<|developer_start|>", "<|assistant_start|>"),
    calls=(APERTUS_CALLS,),
    calls_in_thinking="always",
    assistant=("<|assistant_start|>",),
)
FAMILY = Family(
    name="Apertus",
    formats=(APERTUS,),
    models=(
        Model(
            r"apertus(?:-v{})?",
            "apertus",
            None,
            "1",
            "Apertus, whose format has thoughts that are off unless asked for",
        ),
    ),
    switch=Switch(),
)
