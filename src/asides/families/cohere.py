"""Cohere's Command models: every part between its own two tokens."""

from __future__ import annotations

from .._engine.format import END, TEXT, THINKING, Format
from .other_syntaxes import COHERE as COHERE_CALLS

COHERE = Format(
    name="cohere",
    aliases=("cohere_command4", "cohere2moe"),
    source="chat template of Cohere2MoE: the generation prompt ends with the opener; the answer's own opener also "
    "ends thinking",
    start=THINKING,
    states={
        TEXT: {
            "<|START_THINKING|>": THINKING,
            "<|START_TEXT|>": TEXT,
            "<|END_TEXT|>": TEXT,
            "<|START_RESPONSE|>": TEXT,
            "<|END_RESPONSE|>": TEXT,
            "<|END_OF_TURN_TOKEN|>": END,
        },
        THINKING: {
            "<|END_THINKING|>": TEXT,
            "<|START_TEXT|>": TEXT,
            "<|START_RESPONSE|>": TEXT,
            "<|END_OF_TURN_TOKEN|>": END,
        },
    },
    calls=(COHERE_CALLS,),
    ignored=("<co>", "<co:>", "</co>", "</co:>"),  # citations: <co>words</co: 0:[1,2]>, <co: 1>words</co: 1>
    assistant=("<|CHATBOT_TOKEN|>",),
)
COHERE_COMMAND3 = COHERE.but(
    name="cohere_command3",
    aliases=("cohere_cmd", "command_r7b"),
    source="chat template of Command R7B: the generation prompt opens no thinking, or closes it again",
    start=TEXT,
)
FORMATS = (COHERE, COHERE_COMMAND3)
