"""IBM Granite: sentences around thinking in 3.2, tags in 3.3, none in 4."""

from __future__ import annotations

from .._engine.format import END, TEXT, THINKING, Format
from .chatml import PLAIN_RESPONSE
from .other_syntaxes import GRANITE as GRANITE_CALLS
from .other_syntaxes import GRANITE_20B as GRANITE_20B_CALLS
from .other_syntaxes import HERMES
from .tool_call_tag import with_siblings

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
    plain=dict.fromkeys(_THOUGHT + _RESPONSE, "a sentence"),
    calls=with_siblings(GRANITE_CALLS),
    assistant=_ASSISTANT,
)
GRANITE_33 = Format.tags(
    "<think>",
    "</think>",
    name="granite_3.3",
    source="chat template of Granite 3.3: its system prompt asks for <think> and <response>",
    wrappers=("<response>", "</response>"),
    plain=PLAIN_RESPONSE,
    stops=_STOPS,
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
    calls=with_siblings(HERMES),
    assistant=_ASSISTANT,
)
GRANITE_20B = Format.tags(
    "<think>",
    "</think>",
    name="granite_20b_fc",
    source="Granite 20B function calling as vLLM reads it",
    stops=("<|endoftext|>",),
    calls=(GRANITE_20B_CALLS,),
)
FORMATS = (GRANITE, GRANITE_33, GRANITE_4, GRANITE_20B)
