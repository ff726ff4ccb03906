"""NVIDIA Nemotron."""

from __future__ import annotations

from .._engine.format import THINKING, Format
from .chatml import ASSISTANT, STOPS
from .other_syntaxes import NEMOTRON as TOOLCALL
from .tagged_syntaxes import QWEN_XML
from .tool_call_tag import with_siblings

NEMOTRON_V3 = Format.tags(
    "<think>",
    "</think>",
    name="nemotron_v3",
    aliases=("nemotron_3", "nemotron_3_nano", "nemotron_3.5_nano", "nemotron_nano", "nano_v3"),
    source="chat template of Nemotron-3-Nano: the generation prompt ends with the opener by default (NexRL and SMG "
    "start nano_v3 in text)",
    start=THINKING,
    stops=STOPS,
    calls=with_siblings(QWEN_XML),
    assistant=ASSISTANT,
)
NEMOTRON_NANO_V2 = Format.tags(
    "<think>",
    "</think>",
    name="nemotron_nano_v2",
    source="chat template of Nemotron Nano v2: the generation prompt ends with the opener; calls in <TOOLCALL>",
    start=THINKING,
    stops=("<SPECIAL_12>",),
    calls=(TOOLCALL,),
    assistant=("<SPECIAL_11>Assistant\n",),
)
NEMOTRON_DECI = Format.tags(
    "<think>",
    "</think>",
    name="nemotron_deci",
    aliases=("llama_nemotron",),
    source="Llama Nemotron as Dynamo reads it: output starts in text; calls in <TOOLCALL>",
    stops=("<|eot_id|>", "<|end_of_text|>"),
    calls=(TOOLCALL,),
    assistant=("<|start_header_id|>assistant<|end_header_id|>\n\n",),
)
FORMATS = (NEMOTRON_V3, NEMOTRON_NANO_V2, NEMOTRON_DECI)
