"""rednote's dots."""

from __future__ import annotations

from .._engine.format import Format
from .other_syntaxes import DOTS_JSON
from .tagged_syntaxes import DOTS_XML

DOTS = Format.tags(
    "<think>",
    "</think>",
    name="dots",
    source="dots as SGLang reads it: output starts in text; calls as tags or as JSON",
    stops=("<|endofresponse|>", "<|endoftext|>"),
    calls=(DOTS_XML, DOTS_JSON),
    assistant=("<|response|>",),
    plain={"<invoke name=": "XML of many kinds"},
)
FORMATS = (DOTS,)
