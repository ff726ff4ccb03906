"""iFlytek's Spark X2.5, which writes calls as GLM does."""

from __future__ import annotations

from msgspec.structs import replace

from .._engine.calls.keyed_calls import KeyedCalls
from .._engine.format import Format
from ._family import Family, Model, Switch
from ._shared import GLM_KEYED, with_siblings

SPARK_CALLS = replace(GLM_KEYED, nulls=True)
"""GLM's, but for the word null, which is nothing whatever the tool declares."""
SPARK_KEYED = KeyedCalls(open=("<|tool_call|>",), close=("<|/tool_call|>",), nulls=True)
"""The same between tokens, as some servers see it."""

SPARK25 = Format.tags(
    "<think>",
    "</think>",
    name="spark25",
    aliases=("spark_x2.5",),
    source="Spark-X2.5 as SGLang and tabbyAPI read it: calls as GLM's, between one of two pairs of markers; its stop "
    "token is not known",
    calls=with_siblings(SPARK_CALLS, SPARK_KEYED),
    assistant=("<|Bot|>",),
)
FAMILY = Family(
    name="Spark",
    formats=(SPARK25,),
    models=(Model(r"\bspark-?x?{}", "spark25", True, "2.5"),),
    switch=Switch(),
    plain_calls=(SPARK_CALLS,),  # GLM's
)
