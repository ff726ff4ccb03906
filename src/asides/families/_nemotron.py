"""NVIDIA Nemotron."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.format import THINKING, Format
from ._family import Family, Model, Switch
from ._shared import ASSISTANT, QWEN_XML, STOPS, TURNS, with_siblings

TOOLCALL = JsonCalls(open=("<TOOLCALL>",), close=("</TOOLCALL>",), listed=True)
"""`<TOOLCALL>[{"name": "f", "arguments": {}}]</TOOLCALL>`."""

NEMOTRON_V3 = Format.tags(
    "<think>",
    "</think>",
    name="nemotron_v3",
    aliases=(
        "nemotron_3",
        "nemotron_3.5",
        "nemotron_3_nano",
        "nemotron_3.5_nano",
        "nemotron_3_ultra",
        "nemotron_nano",
        "nano_v3",
        "granite_4.2",
        "granite_thinking_parser",
    ),
    source="chat template of Nemotron-3-Nano: the generation prompt ends with the opener by default (NexRL and SMG "
    "start nano_v3 in text); Granite 4.2 writes the same, as vLLM and SGLang read it",
    start=THINKING,
    stops=STOPS,
    other_turns=TURNS,
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
    other_turns=("<SPECIAL_10>", "<SPECIAL_11>"),
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
    other_turns=("<|start_header_id|>",),
    calls=(TOOLCALL,),
    assistant=("<|start_header_id|>assistant<|end_header_id|>\n\n",),
)
FAMILY = Family(
    name="Nemotron",
    formats=(NEMOTRON_V3, NEMOTRON_NANO_V2, NEMOTRON_DECI),
    models=(
        Model(r"nemotron-?{}", "nemotron_v3", True, "3 3.5"),
        Model(r"nemotron-nano-?{}|nemotron-nano.*-v2", "nemotron_nano_v2", True, "2", "Nemotron Nano 2"),
        Model(r"llama.*nemotron|nemotron.*llama", "nemotron_deci", True, line="Llama Nemotron"),
        Model(r"nemotron.*-v{}", "nemotron_v3", True, "3"),
    ),
    # Older ones are switched by words in the system message.
    switch={"nemotron_v3": Switch()},
)
