"""RWKV World."""

from __future__ import annotations

from .._engine.format import Format
from ._family import Family, Model, Switch

RWKV = Format.tags(
    "<think>",
    "</think>",
    name="rwkv_world",
    aliases=("rwkv",),
    source="chat template of RWKV-World: no opener in the generation prompt by default; it writes no calls",
    stops=("\n\nUser:",),
    other_turns=("\n\nUser:",),
    assistant=("Assistant:",),
)
FAMILY = Family(
    name="RWKV",
    formats=(RWKV,),
    models=(Model(r"rwkv", "rwkv_world", True, who="RWKV World"),),
    switch=Switch(),
    plain=dict.fromkeys(("\n\nUser:", "Assistant:"), "words of any transcript"),
)
