"""Inkling: typed blocks, any number in any order."""

from __future__ import annotations

from ..engine.format import END, HEADER, OUTSIDE, TEXT, THINKING, Format, Header
from .other_syntaxes import INKLING as INKLING_CALLS

_MARKERS = {
    "<|message_model|>": HEADER,
    "<|content_thinking|>": HEADER,
    "<|content_text|>": HEADER,
    "<|end_message|>": OUTSIDE,
    "<|content_model_end_sampling|>": END,
}

INKLING = Format(
    name="inkling",
    source="Inkling as vLLM and SGLang read it: the generation prompt ends inside the header; each block's own "
    "marker says what it holds",
    start=HEADER,
    states={
        TEXT: _MARKERS,
        THINKING: _MARKERS,
        HEADER: {"<|content_thinking|>": THINKING, "<|content_text|>": TEXT},
    },
    header=Header(roles=()),
    calls=(INKLING_CALLS,),
    assistant=("<|message_model|>",),
)
FORMATS = (INKLING,)
