"""MeetKai's Functionary 3.2."""

from __future__ import annotations

from .._engine.calls.named_calls import NamedCalls
from .._engine.format import END, TEXT, Format
from .family import Family, Model

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
    assistant=("<|start_header_id|>assistant<|end_header_id|>\n\n",),
)
FAMILY = Family(
    name="Functionary",
    formats=(FUNCTIONARY,),
    models=(Model(r"functionary.*-v{}", "functionary", False, "3.2"),),
    plain={
        **dict.fromkeys((">>>all\n", ">>>"), "the prompt of Python's console, and a quote in a quote"),
        "all\n": "a word",
    },
)
