"""ByteDance Seed-OSS."""

from __future__ import annotations

from msgspec.structs import replace

from .._engine.format import Format
from ._family import Family, Model, Switch
from ._shared import QWEN_XML

SEED_XML = replace(
    QWEN_XML,
    open=("<seed:tool_call>", "<function="),
    close=("</seed:tool_call>",),
    paired=True,
)
"""Qwen's tags between markers of its own."""

SEED_OSS = Format.tags(
    "<seed:think>",
    "</seed:think>",
    name="seed_oss",
    source="chat template of Seed-OSS: no opener in the generation prompt (vLLM starts in thinking)",
    stops=("<seed:eos>",),
    other_turns=("<seed:bos>",),
    calls=(SEED_XML,),
    assistant=("<seed:bos>assistant\n",),
)
FAMILY = Family(
    name="Seed-OSS",
    formats=(SEED_OSS,),
    models=(Model(r"seed-?oss", "seed_oss", True),),
    switch=Switch(keyword="thinking_budget", on=-1, off=0),  # a number of tokens; -1 is without bound
)
