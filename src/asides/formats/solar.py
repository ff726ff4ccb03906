"""Solar Open: a message for each part, typed by a token."""

from __future__ import annotations

from ..engine.format import END, HEADER, OUTSIDE, TEXT, THINKING, Format, Header

_MARKERS = {
    "<|begin|>": HEADER,
    "<|think|>": HEADER,
    "<|content|>": HEADER,
    "<|end|>": OUTSIDE,
    "<|flush|>": END,
    "<|calls|>": END,
}

SOLAR_OPEN = Format(
    name="solar_open",
    aliases=("solar",),
    source="chat template of Solar-Open-100B: the generation prompt ends inside the header",
    start=HEADER,
    states={TEXT: _MARKERS, THINKING: _MARKERS, HEADER: {"<|think|>": THINKING, "<|content|>": TEXT}},
    header=Header(),
    assistant=("<|begin|>assistant",),
)
FORMATS = (SOLAR_OPEN,)
