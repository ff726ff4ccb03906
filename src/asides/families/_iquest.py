"""IQuest Q1, which writes calls as GLM does, between markers of its own."""

from __future__ import annotations

from .._engine.calls.keyed_calls import KeyedCalls
from .._engine.format import THINKING, Format
from ._family import Family, Model, Switch

IQUEST_KEYED = KeyedCalls(open=("<iquest_tool_call>",), close=("</iquest_tool_call>",))
"""`<iquest_tool_call>f<arg_key>a</arg_key><arg_value>v</arg_value></iquest_tool_call>`."""

IQUEST_Q1 = Format.tags(
    "<think>",
    "</think>",
    name="iquest_q1",
    source="IQuest-Q1 as SGLang reads it: output starts in thinking; its stop token is not known",
    start=THINKING,
    calls=(IQUEST_KEYED,),
    assistant=("<|iquest_assistant|>",),
)
FAMILY = Family(
    name="IQuest",
    formats=(IQUEST_Q1,),
    models=(
        Model(r"iquest-q{}", "iquest_q1", True, "1", "IQuest Q1"),
        Model(r"iquest-coder.*thinking", "qwen3_thinking", True, who="IQuest Coder Thinking"),
    ),
    switch=Switch(),
)
