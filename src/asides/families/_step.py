"""StepFun: Step-3, Step-3.5 and Step-5, which share their thinking but not their calls."""

from __future__ import annotations

from .._engine.calls.xml_calls import Tag, XmlCalls
from .._engine.format import THINKING, Format
from ._family import Family, Model, Switch
from ._qwen import MIMO_XML
from ._shared import ASSISTANT, QWEN_XML, STOPS, TURNS, with_siblings

STEPTML = XmlCalls(
    open=("<｜tool_call_begin｜>",),
    close=("<｜tool_call_end｜>",),
    section=("<｜tool_calls_begin｜>",),
    section_close=("<｜tool_calls_end｜>",),
    preface="function<｜tool_sep｜>",
    call=Tag("<steptml:invoke", "name"),
    call_close="</steptml:invoke>",
    parameter=Tag("<steptml:parameter", "name"),
    parameter_close="</steptml:parameter>",
)
"""Step-3."""

STEP3 = Format.tags(
    "<think>",
    "</think>",
    name="step3",
    source="Step-3 as vLLM, SGLang and Dynamo read it: output starts in thinking and holds only the closer",
    start=THINKING,
    stops=("<|EOT|>", "<｜end▁of▁sentence｜>"),
    other_turns=("<|BOT|>",),
    calls=(STEPTML,),
    assistant=("<|BOT|>assistant\n",),
)
STEP3P5 = Format.tags(
    "<think>",
    "</think>",
    name="step3p5",
    aliases=("step3.5", "step3.7"),
    source="chat template of Step-3.5-Flash: the generation prompt always ends with the opener",
    start=THINKING,
    stops=STOPS,
    other_turns=TURNS,
    calls=with_siblings(QWEN_XML),
    assistant=ASSISTANT,
)
STEP5 = STEP3P5.but(
    name="step5",
    source="Step-5 as vLLM reads it: DeepSeek R1's thinking, Qwen3-Coder's tags with values that are taken to the "
    "character",
    calls=with_siblings(MIMO_XML),
)
FAMILY = Family(
    name="Step",
    formats=(STEP3, STEP3P5, STEP5),
    models=(
        Model(r"\bstep-?{}-?vl", "qwen3_thinking", True, "3", "Step3-VL"),
        Model(r"\bstep-?{}", "step5", True, "5"),
        Model(r"\bstep-?{}", "step3p5", True, "3.5"),
        Model(r"\bstep-?{}", "step3", True, "3"),
    ),
    # Nothing turns thinking off: the prompt always opens it.
    plain_calls=(MIMO_XML,),
    switch={"step3p5": Switch(keyword="reasoning_effort", on=None, off=None, efforts=("low", "medium", "high"))},
)
