"""Reka Edge."""

from __future__ import annotations

from .._engine.format import Format
from ._family import Family, Model, Switch
from ._shared import HERMES, with_siblings

REKA = Format.tags(
    "<think>",
    "</think>",
    name="reka_edge",
    source="chat template of Reka-Edge: no opener in the generation prompt by default; calls as JSON in tags",
    stops=("<sep>",),
    other_turns=("human:", "system:", "assistant:"),
    calls=with_siblings(HERMES),
    assistant=("assistant:",),
)
FAMILY = Family(
    name="Reka",
    formats=(REKA,),
    models=(
        Model(r"reka-flash-?{}", "think_tag", True, "3 3.1", "Reka Flash 3"),
        Model(r"reka-?edge", "reka_edge", True, who="Reka Edge"),
    ),
    switch=Switch(),
    plain={"<sep>": "a word of everybody's who writes about language models", "assistant:": "a word"},
)
