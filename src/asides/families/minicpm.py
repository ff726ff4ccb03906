"""OpenBMB's MiniCPM5."""

from __future__ import annotations

from .._engine.format import Format
from .chatml import ASSISTANT, PLAIN_STOPS, STOPS
from .tagged_syntaxes import MINICPM

MINICPM5 = Format.tags(
    "<think>",
    "</think>",
    name="minicpm5",
    source="chat template of MiniCPM5-1B: no opener in the generation prompt by default",
    stops=(*STOPS, "</s>"),
    calls=(MINICPM,),
    assistant=ASSISTANT,
    plain=PLAIN_STOPS,
)
FORMATS = (MINICPM5,)
