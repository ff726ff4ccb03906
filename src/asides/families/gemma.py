"""Gemma 4, whose markers close where others open, and FunctionGemma."""

from __future__ import annotations

from .._engine.format import END, TEXT, Format
from .other_syntaxes import FUNCTIONGEMMA as FUNCTIONGEMMA_CALLS
from .other_syntaxes import GEMMA4 as GEMMA4_CALLS

_LABEL = "thought\n"
"""The word behind the opener, which is a token that servers may leave out. Alone it opens where the output begins."""

_PLAIN = {"<eos>": "a word of everybody's who writes about language models"}

GEMMA4 = Format.tags(
    ("<|channel>thought\n", "<|channel>thought", "<|channel>", _LABEL),
    "<channel|>",
    name="gemma4",
    aliases=("gemma4_no_thinking",),
    source="chat template of gemma-4-31B-it: the generation prompt opens no thinking, or closes it when thinking is "
    "off, which is its default; the word after the opener belongs to it",
    stops=("<turn|>", "<|tool_response>", "<eos>"),
    calls=(GEMMA4_CALLS,),
    leading=frozenset({_LABEL}),
    partial=frozenset({_LABEL}),
    assistant=("<|turn>model\n",),
    plain={**_PLAIN, _LABEL: "a word"},
)
FUNCTIONGEMMA = Format(
    name="functiongemma",
    source="FunctionGemma as vLLM and Ollama read it; it does not think",
    states={TEXT: dict.fromkeys(("<end_of_turn>", "<start_function_response>", "<eos>"), END)},
    calls=(FUNCTIONGEMMA_CALLS,),
    assistant=("<start_of_turn>model\n",),
    plain=_PLAIN,
)
FORMATS = (GEMMA4, FUNCTIONGEMMA)
