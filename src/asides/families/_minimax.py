"""MiniMax M2 and M3."""

from __future__ import annotations

from .._engine.calls.nested_calls import NestedCalls
from .._engine.calls.xml_calls import Tag
from .._engine.format import THINKING, Format
from ._family import Family, Model, Switch
from ._shared import PLAIN_INVOKE, invokes

M2_CALLS = invokes("<minimax:tool_call>", "</minimax:tool_call>")
_M3 = "]<]minimax[>["
M3_CALLS = NestedCalls(
    section=(f"{_M3}<tool_call>",),
    section_close=(f"{_M3}</tool_call>",),
    call=Tag(f"{_M3}<invoke", "name"),
    call_close=f"{_M3}</invoke>",
    parameter=Tag(f"{_M3}<"),
    parameter_close="",
)
"""Every tag has a prefix; a parameter's tag is its name."""

_STOPS = ("[e~[",)
_ASSISTANT = ("]~b]ai\n",)

MINIMAX_M2 = Format.tags(
    "<think>",
    "</think>",
    name="minimax_m2",
    aliases=("minimax", "minimax_append_think", "minimax_m2_append_think"),
    source="chat template of MiniMax-M2: the generation prompt always ends with the opener; the append_think names "
    "of others only put the opener back, which is what their users need split",
    start=THINKING,
    stops=_STOPS,
    other_turns=("]~b]",),
    calls=(M2_CALLS,),
    assistant=_ASSISTANT,
)
MINIMAX_M3 = Format.tags(
    "<mm:think>",
    "</mm:think>",
    name="minimax_m3",
    source="chat template of MiniMax-M3: no opener in the generation prompt",
    stops=_STOPS,
    other_turns=("]~b]",),
    calls=(M3_CALLS,),
    assistant=_ASSISTANT,
)
FAMILY = Family(
    name="MiniMax",
    formats=(MINIMAX_M2, MINIMAX_M3),
    models=(
        Model(r"minimax-?m{}", "minimax_m3", True, "3"),
        Model(r"minimax-?m{}", "minimax_m2", True, "2 2.1 2.5"),
        Model(r"minimax-?m{}", "auto", True, "1", "MiniMax M1, which opens its thoughts itself"),
    ),
    switch={"minimax_m3": Switch(keyword="thinking_mode", on="enabled", off="disabled")},
    plain=PLAIN_INVOKE,
)
