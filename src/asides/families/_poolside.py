"""poolside's Laguna, which writes calls as GLM does, or almost."""

from __future__ import annotations

from .._engine.calls.named_calls import NamedCalls
from .._engine.format import TEXT, THINKING, Format
from ._family import Family, Model, Switch
from ._shared import GLM_KEYED, with_siblings

NAME_AND_JSON = NamedCalls(open=("<tool_call>",), close=("</tool_call>",), direct=True)
"""`<tool_call>f` and the arguments on the next line, where it does not write keys and values."""

POOLSIDE = Format.tags(
    "<think>",
    "</think>",
    name="poolside_v1",
    aliases=("laguna", "laguna_m1", "laguna_xs2", "laguna_xs2.1"),
    source="chat template of Laguna XS 2.1: the generation prompt ends with the closer by default; "
    "calls as GLM's, at times with JSON behind the name",
    start=TEXT,
    stops=("</assistant>", "〈|EOS|〉"),
    other_turns=("<user>", "<system>", "<assistant>"),
    calls=with_siblings(GLM_KEYED, NAME_AND_JSON),
    assistant=("<assistant>",),
)
LAGUNA_S21 = POOLSIDE.but(
    name="laguna_s2.1",
    source="prompts of Laguna S 2.1: the generation prompt ends with the opener by default",
    start=THINKING,
)
FAMILY = Family(
    name="Laguna",
    formats=(POOLSIDE, LAGUNA_S21),
    models=(
        Model(r"laguna-?s-?{}", "laguna_s2.1", True, "2.1", "Laguna S"),
        Model(r"laguna-?(?:xs|m)[.-]?{}", "poolside_v1", True, "1 2 2.1"),
        Model(r"laguna", "poolside_v1", True),
    ),
    switch=Switch(),
    plain=dict.fromkeys(("<assistant>", "</assistant>"), "a tag of many prompts and of conversations written as XML"),
    plain_calls=(NAME_AND_JSON,),
)
