"""OpenBMB's MiniCPM5, and MiniCPM-V, which writes as Qwen 3.5 does."""

from __future__ import annotations

from .._engine.calls.xml_calls import Tag, XmlCalls
from .._engine.format import Format
from ._family import Family, Model, Switch
from ._qwen import QWEN3_5
from ._shared import ASSISTANT, PLAIN_STOPS, STOPS, TURNS

MINICPM_CALLS = XmlCalls(
    open=('<function name="',),
    close=("</function>",),
    call=Tag("<function", "name"),
    call_close="</function>",
    parameter=Tag("<param", "name"),
    parameter_close="</param>",
    cdata=True,
)
"""`<function name="f"><param name="a">v</param></function>`, with no markers around it."""

MINICPM5 = Format.tags(
    "<think>",
    "</think>",
    name="minicpm5",
    source="chat template of MiniCPM5-1B: no opener in the generation prompt by default",
    stops=(*STOPS, "</s>"),
    other_turns=TURNS,
    calls=(MINICPM_CALLS,),
    assistant=ASSISTANT,
)
# A newline that the tokenizer decodes as a backslash and an n stays so: a part's text is what the model wrote, and
# where code, formulas and paths hold the same two characters nobody can tell them apart.
_RESERVED = tuple(token for number in range(12, 16) for token in (f"<reserved_{number}>", f"<|reserved_{number}|>"))
MINICPMV = QWEN3_5.but(
    name="minicpmv",
    source="MiniCPM-V 4.6 as vLLM reads it: Qwen3.5's grammar, and reserved tokens that no reader should see",
    ignored=_RESERVED,
)
FAMILY = Family(
    name="MiniCPM",
    formats=(MINICPM5, MINICPMV),
    models=(
        Model(r"minicpm-?{}", "minicpm5", True, "5"),
        Model(r"minicpm-?v-?{}", "minicpmv", True, "4.6 4.7"),
        Model(r"minicpm-?(?:[vo]-?)?{}", "qwen3", True, "4.1 4.5"),
    ),
    switch=Switch(),
    plain=PLAIN_STOPS,
)
