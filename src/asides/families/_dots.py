"""rednote's dots."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.format import Format
from ._family import Family, Switch
from ._shared import PLAIN_INVOKE, invokes

DOTS_XML = invokes("<dots_function_call>", "</dots_function_call>")
DOTS_JSON = JsonCalls(open=DOTS_XML.section, close=DOTS_XML.section_close)
"""Where it writes JSON."""

DOTS = Format.tags(
    "<think>",
    "</think>",
    name="dots",
    source="dots as SGLang reads it: output starts in text; calls as tags or as JSON",
    stops=("<|endofresponse|>", "<|endoftext|>"),
    other_turns=("<|userprompt|>", "<|system|>", "<|observation|>", "<|response|>"),
    calls=(DOTS_XML, DOTS_JSON),
    assistant=("<|response|>",),
)
FAMILY = Family(name="dots", formats=(DOTS,), switch=Switch(), plain=PLAIN_INVOKE)
