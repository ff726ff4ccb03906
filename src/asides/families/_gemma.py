"""Gemma 4, whose markers close where others open, and FunctionGemma."""

from __future__ import annotations

from .._engine.calls.brace_calls import BraceCalls
from .._engine.format import END, TEXT, Format
from ._family import Family, Model, Switch

GEMMA4_CALLS = BraceCalls(open=("<|tool_call>",), close=("<tool_call|>",), quote='<|"|>')
"""`<|tool_call>call:f{a:<|"|>v<|"|>,n:42}<tool_call|>`."""
FUNCTIONGEMMA_CALLS = BraceCalls(open=("<start_function_call>",), close=("<end_function_call>",), quote="<escape>")
"""`<start_function_call>call:f{a:<escape>v<escape>}<end_function_call>`."""

_LABEL = "thought\n"
"""The word behind the opener, which is a token that servers may leave out. Alone it opens where the output begins."""

GEMMA4 = Format.tags(
    ("<|channel>thought\n", "<|channel>thought", "<|channel>", _LABEL),
    "<channel|>",
    name="gemma4",
    aliases=("gemma4_no_thinking",),
    source="chat template of gemma-4-31B-it: the generation prompt opens no thinking, or closes it when thinking is "
    "off, which is its default; the word after the opener belongs to it",
    stops=("<turn|>", "<|tool_response>", "<eos>"),
    other_turns=("<|turn>", "<|tool_response>"),
    calls=(GEMMA4_CALLS,),
    leading=frozenset({_LABEL}),
    partial=frozenset({_LABEL}),
    assistant=("<|turn>model\n",),
)
FUNCTIONGEMMA = Format(
    name="functiongemma",
    source="FunctionGemma as vLLM and Ollama read it; it does not think",
    states={TEXT: dict.fromkeys(("<end_of_turn>", "<start_function_response>", "<eos>"), END)},
    calls=(FUNCTIONGEMMA_CALLS,),
    other_turns=("<start_of_turn>", "<start_function_response>"),
    assistant=("<start_of_turn>model\n",),
)
FAMILY = Family(
    name="Gemma",
    formats=(GEMMA4, FUNCTIONGEMMA),
    models=(
        Model(r"functiongemma", "functiongemma", False, who="FunctionGemma"),
        Model(r"gemma-?{}", "gemma4", True, "4"),
        Model(r"gemma-?{}", "auto", False, "1 1.1 2 3"),
        Model(r"gemma", "auto", False, who="a Gemma before the fourth"),
    ),
    base=True,
    switch={"gemma4": Switch()},
    plain={_LABEL: "a word", "<eos>": "a word of everybody's who writes about language models"},
    decisive=GEMMA4,
)
