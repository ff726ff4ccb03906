"""Muse Glimmer and Muse Spark: messages addressed to oneself, to the user or to a tool."""

from __future__ import annotations

from msgspec.structs import replace

from .._engine.format import END, HEADER, OUTSIDE, TEXT, THINKING, TO, Format, Header
from ._family import Family, Model
from ._shared import invokes

ATEM = invokes("<atem:function_calls>", "</atem:function_calls>", "atem:", namespaced=True)

_MARKERS = {"<|eom|>": OUTSIDE, "<|eot|>": END, "<|start|>": HEADER}

_HEADER = Header(recipients={"self": THINKING, "user": TEXT, "commentary": TEXT}, body="<|message|>")
MUSE = Format(
    name="muse",
    aliases=("muse_glimmer", "glimmer"),
    source="chat template of muse-glimmer: the generation prompt ends inside the header; the recipient says what a "
    "message is",
    start=HEADER,
    states={TEXT: _MARKERS, THINKING: _MARKERS, HEADER: {}},
    header=_HEADER,
    calls=(ATEM,),
    other_turns=("<|start|>",),
    assistant=("<|start|>assistant",),
)
MUSE_SPARK = MUSE.but(
    name="muse_spark",
    aliases=("musespark1x",),
    source="Muse Spark as vLLM reads it: a message without a recipient is a thought, one to the developer is not "
    "shown, and the end of a header may stand alone: after the end of a message, and before a call in a thought",
    states={TEXT: {**_MARKERS, TO: HEADER}, THINKING: {**_MARKERS, TO: HEADER}, HEADER: {}},
    header=replace(_HEADER, recipients={**_HEADER.recipients, "developer": THINKING}, default=THINKING),
)
FAMILY = Family(
    name="Muse",
    formats=(MUSE, MUSE_SPARK),
    models=(
        Model(r"\bmuse-?spark", "muse_spark", True, who="Muse Spark"),
        Model(r"\bmuse\b|glimmer", "muse", True),
    ),
    plain={TO: "it acts only where the end of a header follows, in a message's place"},
    decisive=MUSE,
)
