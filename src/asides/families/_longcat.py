"""Meituan's LongCat."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.format import Format
from ._family import Family, Model, Switch

LONGCAT_CALLS = JsonCalls(open=("<longcat_tool_call>",), close=("</longcat_tool_call>",))

LONGCAT = Format.tags(
    ("<longcat_think>", "<think>"),
    ("</longcat_think>", "</think>"),
    name="longcat",
    source="LongCat-Flash as vLLM reads it; its Thinking variant has tags of its own",
    stops=("</longcat_s>",),
    other_turns=("[Round ", "<longcat_user>", "<longcat_system>", "<longcat_assistant>"),
    calls=(LONGCAT_CALLS,),
)
FAMILY = Family(
    name="LongCat",
    formats=(LONGCAT,),
    models=(
        Model(r"longcat(?:-v?{})?.*thinking", "longcat", True, "1", "LongCat Thinking"),
        Model(r"longcat(?:-v?{})?", "longcat", False, "1"),
    ),
    switch=Switch(),
)
