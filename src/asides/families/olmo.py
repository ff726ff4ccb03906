"""Ai2's Olmo 3."""

from __future__ import annotations

from .._engine.format import THINKING, Format
from .chatml import ASSISTANT, STOPS
from .other_syntaxes import OLMO3 as OLMO3_CALLS

OLMO3 = Format.tags(
    "<think>",
    "</think>",
    name="olmo3",
    source="Olmo 3 Instruct: no opener in the generation prompt. vLLM's parser of this name starts in thinking, "
    "for Olmo 3 Think: that is olmo3_think here, as in Ollama",
    stops=STOPS,
    calls=(OLMO3_CALLS,),
    assistant=ASSISTANT,
)
OLMO3_THINK = OLMO3.but(
    name="olmo3_think",
    source="Olmo 3 Think: the generation prompt ends with the opener",
    start=THINKING,
)
FORMATS = (OLMO3, OLMO3_THINK)
