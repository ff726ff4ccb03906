"""MiniMax M2 and M3."""

from __future__ import annotations

from .._engine.format import THINKING, Format
from .tagged_syntaxes import MINIMAX_M2 as M2_CALLS
from .tagged_syntaxes import MINIMAX_M3 as M3_CALLS

_STOPS = ("[e~[",)
_ASSISTANT = ("]~b]ai\n",)
_PLAIN = {"<invoke name=": "XML of many kinds"}

MINIMAX_M2 = Format.tags(
    "<think>",
    "</think>",
    name="minimax_m2",
    aliases=("minimax", "minimax_append_think", "minimax_m2_append_think"),
    source="chat template of MiniMax-M2: the generation prompt always ends with the opener; the append_think names "
    "of others only put the opener back, which is what their users need split",
    start=THINKING,
    stops=_STOPS,
    calls=(M2_CALLS,),
    plain=_PLAIN,
    assistant=_ASSISTANT,
)
MINIMAX_M3 = Format.tags(
    "<mm:think>",
    "</mm:think>",
    name="minimax_m3",
    source="chat template of MiniMax-M3: no opener in the generation prompt",
    stops=_STOPS,
    calls=(M3_CALLS,),
    assistant=_ASSISTANT,
)
FORMATS = (MINIMAX_M2, MINIMAX_M3)
