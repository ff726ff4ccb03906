"""inclusionAI's Ling and Ring, which write calls as GLM does."""

from __future__ import annotations

from .._engine.format import THINKING, Format
from ._family import Family, Model, Switch
from ._shared import GLM_KEYED, with_siblings

LING3 = Format.tags(
    "<think>",
    "</think>",
    name="ling3",
    aliases=("bailing_v3",),
    source="generation prompt of Ling 3 as Ollama renders it: ends with the opener; calls as GLM's",
    start=THINKING,
    stops=("<|role_end|>", "<|endoftext|>"),
    other_turns=("<role>",),
    calls=with_siblings(GLM_KEYED),
    assistant=("<role>ASSISTANT</role>",),
)
FAMILY = Family(
    name="Ling",
    formats=(LING3,),
    models=(
        Model(r"\bring-?{}", "ling3", True, "2.5 2.6", line="Ring"),
        Model(r"\bring-(?:lite|mini|flash|1t)", "think_tag", True, who="a Ring before 2.5", line="Ring"),
        Model(r"\bling-?{}", "qwen3", False, "2.5"),
        Model(r"\bling-?{}", "qwen3", True, "2.6"),
        Model(r"\bling-?{}", "ling3", True, "3 3.0"),
    ),
    switch=Switch(),
)
