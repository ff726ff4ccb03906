"""IBM Granite: sentences around thinking in 3.2, tags in 3.3, none in 4.0, another family's format in 4.2."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.format import END, TEXT, THINKING, Format
from ._family import Family, Model, Switch
from ._shared import HERMES, PLAIN_RESPONSE, with_siblings

GRANITE_CALLS = JsonCalls(open=("<|tool_call|>", "<tool_call>"), listed=True)
"""`<|tool_call|>[{"name": "f", "arguments": {}}]`, with no closing marker: Granite 3."""
GRANITE_20B_CALLS = JsonCalls(open=("<function_call>",))
"""`<function_call> {"name": "f", "arguments": {}}`, with no closing marker: Granite 20B."""

_STOPS = ("<|end_of_text|>",)
_ASSISTANT = ("<|start_of_role|>assistant<|end_of_role|>",)
_THOUGHT = ("Here is my thought process:", "Here's my thought process:")
_RESPONSE = ("Here is my response:", "Here's my response:")

GRANITE = Format(
    name="granite",
    aliases=("granite_3.2",),
    source="Granite 3.2 as vLLM and Dynamo read it: two spellings of each sentence. A sentence counts only where "
    "text begins, and the second one also where a thought is open",
    states={
        TEXT: {
            **dict.fromkeys(_THOUGHT, THINKING),
            **dict.fromkeys(_RESPONSE, TEXT),
            **dict.fromkeys(_STOPS, END),
        },
        THINKING: {**dict.fromkeys(_RESPONSE, TEXT), **dict.fromkeys(_STOPS, END)},
    },
    leading=frozenset(_THOUGHT + _RESPONSE),
    other_turns=("<|start_of_role|>",),
    calls=with_siblings(GRANITE_CALLS),
    assistant=_ASSISTANT,
)
GRANITE_33 = Format.tags(
    "<think>",
    "</think>",
    name="granite_3.3",
    source="chat template of Granite 3.3: its system prompt asks for <think> and <response>",
    wrappers=("<response>", "</response>"),
    stops=_STOPS,
    other_turns=("<|start_of_role|>",),
    calls=with_siblings(GRANITE_CALLS),
    assistant=_ASSISTANT,
)
GRANITE_4 = Format.tags(
    "<think>",
    "</think>",
    name="granite4",
    aliases=("granite_4.1",),
    source="chat templates of Granite 4.0 and 4.1: JSON calls in tags; tuned variants think in <think>",
    stops=_STOPS,
    other_turns=("<|start_of_role|>",),
    calls=with_siblings(HERMES),
    assistant=_ASSISTANT,
)
GRANITE_20B = Format.tags(
    "<think>",
    "</think>",
    name="granite_20b_fc",
    source="Granite 20B function calling as vLLM reads it",
    stops=("<|endoftext|>",),
    other_turns=("USER:", "SYSTEM:", "ASSISTANT:"),
    calls=(GRANITE_20B_CALLS,),
)
FAMILY = Family(
    name="Granite",
    formats=(GRANITE, GRANITE_33, GRANITE_4, GRANITE_20B),
    models=(
        Model(r"granite.*20b.*func", "granite_20b_fc", False, who="Granite 20B for function calls"),
        Model(r"granite-?{}", "granite", False, "3 3.0 3.1"),
        Model(r"granite-?{}", "granite", True, "3.2"),
        Model(r"granite-?{}", "granite_3.3", True, "3.3"),
        Model(r"granite-?{}", "granite4", False, "4 4.0 4.1"),
        Model(r"granite-?{}|granite-thinking-parser", "granite_4.2", True, "4.2"),
    ),
    switch=dict.fromkeys(("granite", "granite_3.3"), Switch(keyword="thinking")),
    plain={**dict.fromkeys(_THOUGHT + _RESPONSE, "a sentence"), **PLAIN_RESPONSE},
)
