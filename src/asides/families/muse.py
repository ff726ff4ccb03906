"""Muse Glimmer: messages addressed to oneself, to the user or to a tool."""

from __future__ import annotations

from .._engine.format import END, HEADER, OUTSIDE, TEXT, THINKING, Format, Header
from .family import Family, Model
from .shared import invokes

ATEM = invokes("<atem:function_calls>", "</atem:function_calls>", "atem:", namespaced=True)

_MARKERS = {"<|eom|>": OUTSIDE, "<|eot|>": END, "<|start|>": HEADER}

MUSE = Format(
    name="muse",
    aliases=("muse_glimmer", "muse_spark", "glimmer"),
    source="chat template of muse-glimmer: the generation prompt ends inside the header; the recipient says what a "
    "message is",
    start=HEADER,
    states={TEXT: _MARKERS, THINKING: _MARKERS, HEADER: {}},
    header=Header(recipients={"self": THINKING, "user": TEXT, "commentary": TEXT}, body="<|message|>"),
    calls=(ATEM,),
    assistant=("<|start|>assistant",),
)
FAMILY = Family(
    name="Muse",
    formats=(MUSE,),
    models=(Model(r"\bmuse\b|glimmer", "muse", True),),
    decisive=MUSE,
)
