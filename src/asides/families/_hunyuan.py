"""Tencent Hunyuan: A13B with tags around thinking and answer, and Hy3 and Hy4 with suffixed tags."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .._engine.calls.keyed_calls import KeyedCalls
from .._engine.format import THINKING, Format
from ._family import Family, Model, Switch
from ._shared import TOOL_CALLS_LIST, with_siblings


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
    other_turns=("<|startoftext|>",),
    calls=(TOOL_CALLS_LIST,),
    assistant=("<|extra_0|>",),
)


def _tags(*suffixes: str) -> dict[str, Any]:
    """What carries a suffix, with each of these."""
    return {
        "open": tuple(f"<think{suffix}>" for suffix in suffixes),
        "close": tuple(f"</think{suffix}>" for suffix in suffixes),
        "stops": tuple(f"<｜hy_eos{suffix}｜>" for suffix in suffixes),
        "other_turns": tuple(f"<｜hy_{role}{suffix}｜>" for suffix in suffixes for role in ("User", "Assistant")),
        "calls": with_siblings(*map(hunyuan_keyed, suffixes)),
        "assistant": tuple(f"<｜hy_Assistant{suffix}｜>" for suffix in suffixes),
    }


@lru_cache(maxsize=64)
def hy_v3(suffix: str) -> Format:
    """Hy3 of a checkpoint with this suffix; without one it is read too."""
    return Format.tags(
        **_tags(suffix, ""),
        name="hy_v3",
        source="chat template of Hy3: thinking is closed in the generation prompt by default; its tags carry a suffix "
        "that differs from release to release, and that some leave out",
    )


@lru_cache(maxsize=64)
def hy_v4(suffix: str) -> Format:
    """Hy4, likewise."""
    return hy_v3(suffix).but(
        name="hy_v4",
        source="Hy4 as vLLM reads it: the generation prompt ends with the opener by default; calls as Hy3's, without a "
        "separator behind the name",
        start=THINKING,
    )


HY_V3 = hy_v3(":opensource").but(aliases=("hunyuan", "hy3"), suffixed=hy_v3)
HY_V4 = hy_v4(":6124c78e").but(aliases=("hy4",), suffixed=hy_v4)
FAMILY = Family(
    name="Hunyuan",
    formats=(HUNYUAN_A13B, HY_V3, HY_V4),
    models=(
        Model(r"\b(?:hy|hunyuan)-?v?{}", "hy_v3", True, "3", "Hy3"),
        Model(r"\b(?:hy|hunyuan)-?v?{}", "hy_v4", True, "4", "Hy4"),
        Model(r"hunyuan", "hunyuan_a13b", True),
    ),
    switch={
        "hunyuan_a13b": Switch(),
        **dict.fromkeys(
            ("hy_v3", "hy_v4"),
            Switch(keyword="reasoning_effort", on="high", off="no_think", efforts=("low", "high")),
        ),
    },
    plain=dict.fromkeys(("<answer>", "</answer>"), "a tag that graders ask for and read"),
)
