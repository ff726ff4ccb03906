"""Preferred Networks' PLaMo 3: markers that are made of several tokens each.

A server that leaves out special tokens leaves only the words of these markers: `think`, `tool_requests`,
`tool_requesttool_name`. Each begins another or is a word of ordinary text, so none of them can act: such an output
stays thinking, with the notice that nothing closed it. Ask the server for the tokens (`skip_special_tokens: false`).
"""

from __future__ import annotations

from .._engine.calls.named_calls import NamedCalls
from .._engine.format import THINKING, Format
from ._family import Family, Model, Switch


def _begin(name: str) -> str:
    return f"<|plamo:begin_{name}:plamo|>"


def _end(name: str) -> str:
    return f"<|plamo:end_{name}:plamo|>"


PLAMO_CALLS = NamedCalls(
    section=(_begin("tool_requests"),),
    section_close=(_end("tool_requests"),),
    open=(_begin("tool_request"), _begin("tool_name")),
    close=(_end("tool_request"),),
    before_name=_begin("tool_name"),
    separators=(_end("tool_name") + _begin("tool_arguments"),),
    before_arguments="<|plamo:constrain|>json<|plamo:msg|>",
    behind_arguments=_end("tool_arguments"),
)
"""A request in a section, its name and its arguments each between markers. The request's own may be missing."""

PLAMO3 = Format.tags(
    _begin("think"),
    _end("think"),
    name="plamo3",
    source="PLaMo 3 as vLLM reads it: output starts in thinking, with or without the opener; chat template of the base "
    "models: role, <|plamo:msg|>, words, <|plamo:tag|>",
    start=THINKING,
    stops=("<|plamo:tag|>",),
    other_turns=("user<|plamo:msg|>", "system<|plamo:msg|>", "assistant<|plamo:msg|>"),
    calls=(PLAMO_CALLS,),
    strays=("<|plamo:bos|>",),
)
FAMILY = Family(
    name="PLaMo",
    formats=(PLAMO3,),
    models=(Model(r"plamo-?{}", "plamo3", None, "3"),),
    switch=Switch(),
)
