"""StepFun: Step-3 and Step-3.5, which share their thinking but not their calls."""

from __future__ import annotations

from .._engine.format import THINKING, Format
from .chatml import ASSISTANT, STOPS
from .tagged_syntaxes import QWEN_XML, STEPTML
from .tool_call_tag import with_siblings

STEP3 = Format.tags(
    "<think>",
    "</think>",
    name="step3",
    source="Step-3 as vLLM, SGLang and Dynamo read it: output starts in thinking and holds only the closer",
    start=THINKING,
    stops=("<|EOT|>", "<｜end▁of▁sentence｜>"),
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
    calls=with_siblings(QWEN_XML),
    assistant=ASSISTANT,
)
FORMATS = (STEP3, STEP3P5)
