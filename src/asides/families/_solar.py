"""Solar Open: a message for each part, typed by a token."""

from __future__ import annotations

from .._engine.calls.named_calls import NamedCalls
from .._engine.format import END, HEADER, OUTSIDE, TEXT, THINKING, Format, Header
from ._family import Family, Model, Switch

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
    goes_on=frozenset({"<|calls|>"}),
    other_turns=("<|begin|>",),
    assistant=("<|begin|>assistant",),
)
FAMILY = Family(
    name="Solar Open",
    formats=(SOLAR_OPEN,),
    models=(Model(r"solar-?open(?:-?v?{})?", "solar_open", True, "1"),),
    # At low effort its template closes thinking in the prompt.
    switch=Switch(keyword="reasoning_effort", on="high", off="minimal", efforts=("medium", "high")),
    plain={"<|tool_call:name|>": "it stands behind a header, which has settled the format before"},
    decisive=SOLAR_OPEN,
)
