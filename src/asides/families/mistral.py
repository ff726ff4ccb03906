"""Mistral: `[THINK]` tokens, or `<think>` in the first Magistral; calls behind `[TOOL_CALLS]`."""

from __future__ import annotations

from .._engine.format import Format
from .chatml import PLAIN_STOPS
from .other_syntaxes import MISTRAL_CLOSE, MISTRAL_LIST, MISTRAL_NAMED

MISTRAL = Format.tags(
    ("[THINK]", "<think>"),
    ("[/THINK]", "</think>"),
    name="mistral",
    aliases=("ministral", "ministral_3", "magistral"),
    source="chat templates of Ministral 3 Reasoning and Mistral Small 3.2: nothing opens thinking in the prompt "
    "(Dynamo starts in thinking); Magistral 2506 wrote <think>, later ones [THINK]",
    stops=("</s>",),
    wrappers=(MISTRAL_CLOSE,),
    calls=(MISTRAL_NAMED, MISTRAL_LIST),
    assistant=("[/INST]",),
    plain=PLAIN_STOPS,
)
FORMATS = (MISTRAL,)
