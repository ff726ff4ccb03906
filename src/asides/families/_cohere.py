"""Cohere's Command models: every part between its own two tokens."""

from __future__ import annotations

from msgspec.structs import replace

from .._engine.calls.json_calls import JsonCalls
from .._engine.format import END, TEXT, THINKING, Format
from ._family import Family, Model, Switch

COHERE_CALLS = JsonCalls(
    open=("<|START_ACTION|>",),
    close=("<|END_ACTION|>",),
    names=("tool_name", "name"),
    arguments=("parameters", "arguments"),
    ids=("tool_call_id",),
    listed=True,
)
"""`<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {}}]<|END_ACTION|>`."""

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
    other_turns=("<|START_OF_TURN_TOKEN|>",),
    assistant=("<|CHATBOT_TOKEN|>",),
)
COHERE_COMMAND3 = COHERE.but(
    name="cohere_command3",
    aliases=("cohere_cmd", "command_r7b"),
    source="chat template of Command R7B: the generation prompt opens no thinking, or closes it again",
    start=TEXT,
)
ACTION = replace(COHERE_CALLS, open=("Action:",), close=(), fenced=True, open_at_line=True, pseudo=("directly_answer",))
"""`Action:`, and a code block with `[{"tool_name": "f", "parameters": {}}]`: before Command R7B."""
COMMAND_R = Format(
    name="command_r_plus",
    aliases=("command_r",),
    source="Command R and R+ as llama.cpp reads them: a plan may stand before the calls. They do not think",
    states={TEXT: {"<|END_OF_TURN_TOKEN|>": END}},
    calls=(ACTION,),
    ignored=("<|CHATBOT_TOKEN|>", *COHERE.ignored),
    other_turns=COHERE.other_turns,
    assistant=COHERE.assistant,
)
FAMILY = Family(
    name="Command",
    formats=(COHERE, COHERE_COMMAND3, COMMAND_R),
    models=(
        Model(r"command-?a-?(?:reasoning|plus)|cohere-?2-?moe", "cohere", True, who="a Command that thinks"),
        Model(r"command-?r7b", "cohere_command3", True, who="Command R7B, which thinks before it calls"),
        Model(r"command-?a\b", "cohere_command3", False, who="a Command that does not think"),
        Model(r"command-?r\b", "command_r_plus", False, who="Command R"),
    ),
    switch={
        "cohere": Switch(keyword="reasoning_effort", on=None, off="none"),
        "cohere_command3": Switch(),
    },
    plain={"Action:": "a word of many agents"},
    decisive=COHERE_COMMAND3,
)
