"""Ai2's Olmo 3."""

from __future__ import annotations

from .._engine.calls.python_calls import PythonCalls
from .._engine.format import THINKING, Format
from ._family import Family, Model
from ._shared import ASSISTANT, STOPS, TURNS

OLMO3_CALLS = PythonCalls(open=("<function_calls>",), close=("</function_calls>",), lines=True)
"""`<function_calls>` and one call a line."""

OLMO3 = Format.tags(
    "<think>",
    "</think>",
    name="olmo3",
    source="Olmo 3 Instruct: no opener in the generation prompt. vLLM's parser of this name starts in thinking, "
    "for Olmo 3 Think: that is olmo3_think here, as in Ollama",
    stops=STOPS,
    other_turns=TURNS,
    calls=(OLMO3_CALLS,),
    assistant=ASSISTANT,
)
OLMO3_THINK = OLMO3.but(
    name="olmo3_think",
    source="Olmo 3 Think: the generation prompt ends with the opener",
    start=THINKING,
)
FAMILY = Family(
    name="Olmo",
    formats=(OLMO3, OLMO3_THINK),
    models=(
        Model(r"olmo-?{}.*think", "olmo3_think", True, "3 3.1", "Olmo 3 Think"),
        Model(r"olmo-?{}", "olmo3", False, "3 3.1", "Olmo 3 Instruct"),
    ),
)
