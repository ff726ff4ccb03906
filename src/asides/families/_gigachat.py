"""Sber's GigaChat 3, and 3.5, which thinks and writes calls as tags."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.format import THINKING, Format
from ._family import Family, Model
from ._shared import PLAIN_STOPS, invokes

GIGACHAT_CALLS = JsonCalls(open=("function call<|role_sep|>", "<|function_call|>"))
"""`function call<|role_sep|>{"name": "f", "arguments": {}}`."""
GCML = invokes(
    "<｜GCML｜tool_calls>", "</｜GCML｜tool_calls>", "｜GCML｜", string=("string", "true"), json=True, anywhere=True
)
"""GigaChat 3.5: tags as DeepSeek's, with a prefix of its own."""

GIGACHAT3 = Format.tags(
    "<think>",
    "</think>",
    name="gigachat3",
    aliases=("gigachat_v3", "gigachat_3.1"),
    source="chat templates of GigaChat 3 and 3.1; it does not think by itself",
    stops=("<|message_sep|>", "</s>"),
    goes_on=frozenset({"<|message_sep|>"}),
    other_turns=("user<|role_sep|>", "system<|role_sep|>", "function result<|role_sep|>", "assistant<|role_sep|>"),
    calls=(GIGACHAT_CALLS,),
    assistant=("assistant<|role_sep|>\n",),
)
GIGACHAT35 = GIGACHAT3.but(
    name="gigachat35",
    source="GigaChat 3.5 as SGLang reads it: output starts in thinking",
    start=THINKING,
    calls=(GCML,),
)
FAMILY = Family(
    name="GigaChat",
    formats=(GIGACHAT3, GIGACHAT35),
    models=(
        Model(r"gigachat-?{}", "gigachat35", True, "3.5"),
        Model(r"gigachat-?{}", "gigachat3", False, "3 3.1"),
    ),
    plain={**PLAIN_STOPS, "function call<|role_sep|>": "it begins with words"},
)
