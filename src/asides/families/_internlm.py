"""InternLM and Intern-S1."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.format import Format
from ._family import Family, Model, Switch
from ._shared import ASSISTANT, STOPS, TURNS

INTERNLM_CALLS = JsonCalls(open=("<|action_start|>",), close=("<|action_end|>",), lead="<|plugin|>")
"""`<|action_start|><|plugin|>{"name": "f", "parameters": {}}<|action_end|>`."""

INTERN_S1 = Format.tags(
    "<think>",
    "</think>",
    name="interns1",
    aliases=("internlm", "internlm2", "intern_s1_mini"),
    source="Intern-S1 and InternLM 2.5 as SGLang and vLLM read them: a system prompt asks for <think>, the model "
    "opens it (LMDeploy starts in thinking)",
    stops=STOPS,
    other_turns=TURNS,
    calls=(INTERNLM_CALLS,),
    assistant=ASSISTANT,
)
FAMILY = Family(
    name="InternLM",
    formats=(INTERN_S1,),
    models=(
        Model(r"intern-?s{}", "interns1", True, "1", "Intern-S1", line="Intern"),
        Model(r"intern-?s{}", "qwen3.5", True, "2", "Intern-S2", line="Intern"),
        Model(r"internlm-?{}", "internlm", False, "2 2.5"),
    ),
    switch=Switch(),
)
