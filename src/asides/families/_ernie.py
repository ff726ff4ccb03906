"""Baidu ERNIE 4.5 Thinking."""

from __future__ import annotations

from .._engine.format import THINKING, Format
from ._family import Family, Model, Switch
from ._shared import ASSISTANT, HERMES, PLAIN_RESPONSE, PLAIN_STOPS, with_siblings

ERNIE45 = Format.tags(
    "<think>",
    "</think>",
    name="ernie45",
    source="ERNIE-4.5 Thinking as vLLM reads it: output starts in thinking; the answer may stand in <response>",
    start=THINKING,
    wrappers=("<response>", "</response>"),
    stops=("<|im_end|>", "</s>"),
    other_turns=("<|im_start|>",),
    calls=with_siblings(HERMES),
    assistant=ASSISTANT,
)
FAMILY = Family(
    name="ERNIE",
    formats=(ERNIE45,),
    models=(
        Model(r"ernie-?{}.*thinking", "ernie45", True, "4.5", "ERNIE 4.5 Thinking"),
        Model(r"ernie-?{}", "ernie45", False, "4.5"),
    ),
    switch=Switch(),
    plain={**PLAIN_STOPS, **PLAIN_RESPONSE},
)
