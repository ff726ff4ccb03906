"""DeepSeek: `<think>` tags; three generations of call syntax."""

from __future__ import annotations

from .._engine.format import THINKING, Format
from .other_syntaxes import DEEPSEEK_V3, DEEPSEEK_V31
from .tagged_syntaxes import DSML_V4, DSML_V32

_TOOL_OUTPUT = (
    "<｜tool▁outputs▁begin｜>",
    "<｜tool▁outputs▁end｜>",
    "<｜tool▁output▁begin｜>",
    "<｜tool▁output▁end｜>",
)
"""Tokens around what a tool answered, which a model may write when it invents the answer."""

DEEPSEEK_R1 = Format.tags(
    "<think>",
    "</think>",
    name="deepseek_r1",
    aliases=("cogito",),
    source="chat template of R1-Distill-Llama-8B: the generation prompt ends with the opener; Ollama reads Cogito "
    "the same way",
    start=THINKING,
    stops=("<｜end▁of▁sentence｜>",),
    calls=(DEEPSEEK_V3,),
    strays=(*_TOOL_OUTPUT, "<｜tool▁sep｜>"),
    assistant=("<｜Assistant｜>",),
)
DEEPSEEK_V3_FORMAT = DEEPSEEK_R1.but(
    name="deepseek_v3",
    aliases=("deepseekv3_disable_thinking",),
    source="chat template of DeepSeek-V3.1, whose generation prompt closes thinking by default (Dynamo starts in "
    "thinking); the name serves V3 and V3.1, so both call syntaxes",
    start="text",
    calls=(DEEPSEEK_V3, DEEPSEEK_V31),
)
DEEPSEEK_V3_THINKING = DEEPSEEK_V3_FORMAT.but(
    name="deepseek_v3_thinking",
    aliases=("deepseek3",),
    source="DeepSeek-V3.1 with thinking on: the generation prompt ends with the opener, as Ollama's deepseek3 and "
    "tinker's renderer have it",
    start=THINKING,
)
DEEPSEEK_V31_FORMAT = DEEPSEEK_V3_FORMAT.but(
    name="deepseek_v31",
    source="chat template of DeepSeek-V3.1: thinking is closed in the generation prompt by default (Dynamo starts "
    "in thinking)",
    calls=(DEEPSEEK_V31,),
)
DEEPSEEK_V32 = DEEPSEEK_V3_FORMAT.but(
    name="deepseek_v32",
    source="chat template of DeepSeek-V3.2: thinking is closed in the generation prompt by default (Dynamo starts "
    "in thinking); calls in DSML",
    calls=(DSML_V32,),
)
DEEPSEEK_V4 = DEEPSEEK_V3_FORMAT.but(
    name="deepseek_v4",
    source="chat template of DeepSeek-V4: the generation prompt ends with the closer by default (vLLM starts in "
    "thinking); calls in DSML",
    calls=(DSML_V4,),
)
FORMATS = (
    DEEPSEEK_R1,
    DEEPSEEK_V3_FORMAT,
    DEEPSEEK_V3_THINKING,
    DEEPSEEK_V31_FORMAT,
    DEEPSEEK_V32,
    DEEPSEEK_V4,
)
