"""Liquid AI's LFM2."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.calls.python_calls import PythonCalls
from .._engine.format import Format
from ._family import Family, Model
from ._shared import ASSISTANT, STOPS, TURNS

LFM2_CALLS = (
    PythonCalls(open=("<|tool_call_start|>",), close=("<|tool_call_end|>",), lines=True, unescaped=True),
    JsonCalls(open=("<|tool_call_start|>",), close=("<|tool_call_end|>",)),
)
"""`<|tool_call_start|>[f(a="v")]<|tool_call_end|>`, or a JSON list there. LFM2.5's template escapes nothing in a
string."""

LFM2 = Format.tags(
    "<think>",
    "</think>",
    name="lfm2",
    aliases=("lfm2_thinking", "lfm2.5"),
    source="chat templates of LFM2-8B-A1B and LFM2.5-8B-A1B: the model opens thinking itself, when it wants to",
    stops=STOPS,
    other_turns=TURNS,
    calls=LFM2_CALLS,
    assistant=ASSISTANT,
    prompt_markers=("<|tool_list_start|>", "<|tool_list_end|>", "<|tool_response_start|>", "<|tool_response_end|>"),
)
FAMILY = Family(
    name="LFM",
    formats=(LFM2,),
    models=(
        Model(r"lfm-?{}.*thinking", "lfm2", True, "2 2.5", "an LFM2 that thinks"),
        Model(r"lfm-?{}-8b", "lfm2", True, "2.5", "an LFM2 that thinks"),
        Model(r"lfm-?{}", "lfm2", False, "2 2.5"),
    ),
)
