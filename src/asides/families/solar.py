"""Solar Open: a message for each part, typed by a token."""

from __future__ import annotations

from .._engine.calls.named_calls import NamedCalls
from .._engine.format import END, HEADER, OUTSIDE, TEXT, THINKING, Format, Header

CALLS = NamedCalls(open=("<|tool_call:name|>",), close=("<|tool_call:end|>",), separators=("<|tool_call:args|>",))
"""`<|tool_call:begin|>id<|tool_call:name|>f<|tool_call:args|>{}<|tool_call:end|>`; up to the name it is header."""

_MARKERS = {
    "<|begin|>": HEADER,
    "<|think|>": HEADER,
    "<|content|>": HEADER,
    "<|tool_calls|>": HEADER,
    "<|tool_call:begin|>": HEADER,
    "<|end|>": OUTSIDE,
    "<|flush|>": END,
    "<|calls|>": END,
}

SOLAR_OPEN = Format(
    name="solar_open",
    aliases=("solar",),
    source="chat template of Solar-Open-100B: the generation prompt ends inside the header. Ids that the model gives "
    "its calls are not kept",
    start=HEADER,
    states={TEXT: _MARKERS, THINKING: _MARKERS, HEADER: {"<|think|>": THINKING, "<|content|>": TEXT}},
    header=Header(),
    calls=(CALLS,),
    assistant=("<|begin|>assistant",),
)
FORMATS = (SOLAR_OPEN,)
