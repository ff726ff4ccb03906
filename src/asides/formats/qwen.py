"""Qwen: thinking in `<think>` tags, calls as JSON or XML in `<tool_call>` tags."""

from __future__ import annotations

from ..engine.calls.json_calls import JsonCalls
from ..engine.format import THINKING, Format

HERMES_CALL = JsonCalls(open=("<tool_call>",), close=("</tool_call>",))
CHAT_STOPS = ("<|im_end|>", "<|endoftext|>")

QWEN3 = Format.tags(
    "<think>",
    "</think>",
    name="qwen3",
    source="chat template of Qwen3-0.6B; added tokens 151657, 151658, 151667, 151668",
    stops=CHAT_STOPS,
    calls=(HERMES_CALL,),
    assistant=("<|im_start|>assistant\n",),
)
QWEN3_THINKING = QWEN3.but(name="qwen3_thinking", start=THINKING)
FORMATS = (QWEN3, QWEN3_THINKING)
