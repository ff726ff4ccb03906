"""Tencent Hunyuan: A13B with tags around thinking and answer, and Hy3 with suffixed tags."""

from __future__ import annotations

from .._engine.calls.keyed_calls import KeyedCalls
from .._engine.format import Format
from .family import Family, Model, Switch
from .shared import TOOL_CALLS_LIST, with_siblings


def hunyuan_keyed(suffix: str = "") -> KeyedCalls:
    """Keys and values. Some models put a suffix to the name of every tag: `<tool_call:opensource>`."""
    return KeyedCalls(
        section=(f"<tool_calls{suffix}>",),
        section_close=(f"</tool_calls{suffix}>",),
        open=(f"<tool_call{suffix}>",),
        close=(f"</tool_call{suffix}>",),
        separator=f"<tool_sep{suffix}>",
        key=f"<arg_key{suffix}>",
        key_close=f"</arg_key{suffix}>",
        value=f"<arg_value{suffix}>",
        value_close=f"</arg_value{suffix}>",
    )


HUNYUAN_A13B = Format.tags(
    "<think>",
    "</think>",
    name="hunyuan_a13b",
    source="Hunyuan-A13B as vLLM reads it: the answer stands in <answer>; output starts in text",
    wrappers=("<answer>", "</answer>"),
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
FAMILY = Family(
    name="Hunyuan",
    formats=(HUNYUAN_A13B, HY_V3),
    models=(
        Model(r"\b(?:hy|hunyuan)-?v?{}", "hy_v3", True, "3", "Hy3"),
        Model(r"hunyuan", "hunyuan_a13b", True),
    ),
    switch={
        "hunyuan_a13b": Switch(),
        "hy_v3": Switch(keyword="reasoning_effort", on="high", off="no_think", efforts=("low", "high")),
    },
    plain=dict.fromkeys(("<answer>", "</answer>"), "a tag that graders ask for and read"),
)
