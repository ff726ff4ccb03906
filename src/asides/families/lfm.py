"""Liquid AI's LFM2."""

from __future__ import annotations

from .._engine.format import Format
from .chatml import ASSISTANT, STOPS
from .other_syntaxes import LFM2 as LFM2_CALLS

LFM2 = Format.tags(
    "<think>",
    "</think>",
    name="lfm2",
    aliases=("lfm2_thinking", "lfm2.5"),
    source="chat templates of LFM2-8B-A1B and LFM2.5-8B-A1B: the model opens thinking itself, when it wants to",
    stops=STOPS,
    calls=LFM2_CALLS,
    assistant=ASSISTANT,
    prompt_markers=("<|tool_list_start|>", "<|tool_list_end|>", "<|tool_response_start|>", "<|tool_response_end|>"),
)
FORMATS = (LFM2,)
