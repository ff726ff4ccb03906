"""MeetKai's Functionary 3.1 and 3.2."""

from __future__ import annotations

from msgspec.structs import replace

from .._engine.calls.named_calls import NamedCalls
from .._engine.format import END, TEXT, Format
from ._family import Family, Model
from ._llama import BUILT_IN_CALLS
from ._shared import FUNCTION_JSON

CALLS = NamedCalls(open=(">>>",), direct=True)
"""`>>>f` and the arguments on the next line."""

FUNCTIONARY = Format(
    name="functionary_v3_2",
    aliases=("functionary",),
    source="chat template of functionary-medium-v3.2: `>>>all` opens the answer and `>>>` a call. The generation "
    "prompt ends with `>>>`, so the first word of the output may be `all`; a first call without it is read where the "
    "prompt is given. It does not think",
    states={TEXT: {">>>all\n": TEXT, "all\n": TEXT, "<|eot_id|>": END, "<|end_of_text|>": END}},
    leading=frozenset({"all\n"}),
    calls=(CALLS,),
    other_turns=("<|start_header_id|>",),
    assistant=("<|start_header_id|>assistant<|end_header_id|>\n\n",),
)
_STOPS = ("<|eom_id|>", "<|eot_id|>", "<|end_of_text|>")
FUNCTIONARY_31 = Format(
    name="functionary_v3_1",
    source="functionary-medium-v3.1 as llama.cpp reads it: a tag that names the function, with JSON in it, or "
    "Llama 3.1's token before code. It does not think",
    states={TEXT: dict.fromkeys(_STOPS, END)},
    calls=(FUNCTION_JSON, replace(BUILT_IN_CALLS, sibling=True)),
    other_turns=FUNCTIONARY.other_turns,
    assistant=FUNCTIONARY.assistant,
)
FAMILY = Family(
    name="Functionary",
    formats=(FUNCTIONARY, FUNCTIONARY_31),
    models=(
        Model(r"functionary.*-v{}", "functionary_v3_1", False, "3.1"),
        Model(r"functionary.*-v{}", "functionary", False, "3.2"),
    ),
    plain_calls=(FUNCTION_JSON,),
    plain={
        **dict.fromkeys((">>>all\n", ">>>"), "the prompt of Python's console, and a quote in a quote"),
        "all\n": "a word",
    },
)
