"""Sber's GigaChat 3."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.format import Format
from .family import Family, Model
from .shared import PLAIN_STOPS

GIGACHAT_CALLS = JsonCalls(open=("function call<|role_sep|>", "<|function_call|>"))
"""`function call<|role_sep|>{"name": "f", "arguments": {}}`."""

GIGACHAT3 = Format.tags(
    "<think>",
    "</think>",
    name="gigachat3",
    aliases=("gigachat_v3", "gigachat_3.1"),
    source="chat templates of GigaChat 3 and 3.1; it does not think by itself",
    stops=("<|message_sep|>", "</s>"),
    calls=(GIGACHAT_CALLS,),
    assistant=("assistant<|role_sep|>\n",),
)
FAMILY = Family(
    name="GigaChat",
    formats=(GIGACHAT3,),
    models=(Model(r"gigachat-?{}", "gigachat3", False, "3 3.1"),),
    plain={**PLAIN_STOPS, "function call<|role_sep|>": "it begins with words"},
)
