"""Swiss AI's Apertus, which calls tools in the midst of its thoughts."""

from __future__ import annotations

from .._engine.format import Format
from .other_syntaxes import APERTUS as APERTUS_CALLS

APERTUS = Format.tags(
    "<|inner_prefix|>",
    "<|inner_suffix|>",
    name="apertus",
    aliases=("apertus2509",),
    source="chat template of Apertus-8B; calls inside thinking are real and thinking goes on after them, as SGLang "
    "reads it",
    stops=("<|assistant_end|>",),
    calls=(APERTUS_CALLS,),
    calls_in_thinking="always",
    assistant=("<|assistant_start|>",),
)
FORMATS = (APERTUS,)
