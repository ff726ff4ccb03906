"""Baidu ERNIE 4.5 Thinking."""

from __future__ import annotations

from .._engine.format import THINKING, Format
from .chatml import ASSISTANT, PLAIN_RESPONSE, PLAIN_STOPS
from .other_syntaxes import HERMES
from .tool_call_tag import with_siblings

ERNIE45 = Format.tags(
    "<think>",
    "</think>",
    name="ernie45",
    source="ERNIE-4.5 Thinking as vLLM reads it: output starts in thinking; the answer may stand in <response>",
    start=THINKING,
    wrappers=("<response>", "</response>"),
    stops=("<|im_end|>", "</s>"),
    calls=with_siblings(HERMES),
    assistant=ASSISTANT,
    plain={**PLAIN_STOPS, **PLAIN_RESPONSE},
)
FORMATS = (ERNIE45,)
