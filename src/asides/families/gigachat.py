"""Sber's GigaChat 3."""

from __future__ import annotations

from .._engine.format import Format
from .chatml import PLAIN_STOPS
from .other_syntaxes import GIGACHAT

GIGACHAT3 = Format.tags(
    "<think>",
    "</think>",
    name="gigachat3",
    aliases=("gigachat_v3", "gigachat_3.1"),
    source="chat templates of GigaChat 3 and 3.1; it does not think by itself",
    stops=("<|message_sep|>", "</s>"),
    calls=(GIGACHAT,),
    assistant=("assistant<|role_sep|>\n",),
    plain={**PLAIN_STOPS, "function call<|role_sep|>": "it begins with words"},
)
FORMATS = (GIGACHAT3,)
