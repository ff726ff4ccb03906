"""IFM's K2 Horizon: a pair of markers for each effort; calls as keys and values, with types or without, or as JSON."""

from __future__ import annotations

from .._engine.calls.keyed_calls import KeyedCalls
from .._engine.format import THINKING, Format
from ._family import Family, Model, Switch

IFM_CALLS = KeyedCalls(
    section=("<ifm|tool_calls>",),
    section_close=("</ifm|tool_calls>",),
    open=("<ifm|tool_call>",),
    close=("</ifm|tool_call>",),
    key="<ifm|arg_key>",
    key_close="</ifm|arg_key>",
    value="<ifm|arg_value>",
    value_close="</ifm|arg_value>",
    type="<ifm|arg_type>",
    type_close="</ifm|arg_type>",
    json=True,
)
"""`<ifm|tool_call>f<ifm|arg_key>a</ifm|arg_key><ifm|arg_value>v</ifm|arg_value></ifm|tool_call>` in a section."""

# The pair of each effort, the strongest first. Reading takes any closer; no renderer writes this family's prompts, of
# which no chat template is known, so nothing has to choose a pair by its effort.
K2_HORIZON = Format.tags(
    ("<ifm|think>", "<ifm|think_fast>", "<ifm|think_faster>"),
    ("</ifm|think>", "</ifm|think_fast>", "</ifm|think_faster>"),
    name="k2_horizon",
    source="K2-Horizon as vLLM and SGLang read it: the generation prompt ends with the opener of the effort, high by "
    "default; any closer closes; its stop token is not known",
    start=THINKING,
    calls=(IFM_CALLS,),
)
FAMILY = Family(
    name="K2 Horizon",
    formats=(K2_HORIZON,),
    models=(Model(r"k2-?horizon", "k2_horizon", True),),
    # Nothing turns thinking off: the prompt always opens it.
    switch=Switch(keyword="reasoning_effort", on=None, off=None, efforts=("low", "medium", "high")),
)
