"""Tencent Hunyuan: A13B with tags around thinking and answer, and Hy3 with suffixed tags."""

from __future__ import annotations

from .._engine.format import Format
from .other_syntaxes import TOOL_CALLS_LIST
from .tagged_syntaxes import hunyuan_keyed
from .tool_call_tag import with_siblings

HUNYUAN_A13B = Format.tags(
    "<think>",
    "</think>",
    name="hunyuan_a13b",
    source="Hunyuan-A13B as vLLM reads it: the answer stands in <answer>; output starts in text",
    wrappers=("<answer>", "</answer>"),
    plain=dict.fromkeys(("<answer>", "</answer>"), "a tag that graders ask for and read"),
    stops=("<|eos|>", "<|endoftext|>"),
    calls=(TOOL_CALLS_LIST,),
    assistant=("<|extra_0|>",),
)
HY_V3 = Format.tags(
    ("<think:opensource>", "<think>"),
    ("</think:opensource>", "</think>"),
    name="hy_v3",
    aliases=("hunyuan", "hy3"),
    source="chat template of Hy3: thinking is closed in the generation prompt by default; its tags carry a suffix "
    "that other releases leave out",
    stops=("<｜hy_eos:opensource｜>", "<｜hy_eos｜>"),
    calls=with_siblings(hunyuan_keyed(":opensource"), hunyuan_keyed("")),
    assistant=("<｜hy_Assistant:opensource｜>", "<｜hy_Assistant｜>"),
)
FORMATS = (HUNYUAN_A13B, HY_V3)
