"""Meituan's LongCat."""

from __future__ import annotations

from .._engine.format import Format
from .other_syntaxes import LONGCAT

LONGCAT_FORMAT = Format.tags(
    ("<longcat_think>", "<think>"),
    ("</longcat_think>", "</think>"),
    name="longcat",
    source="LongCat-Flash as vLLM reads it; its Thinking variant has tags of its own",
    stops=("</longcat_s>",),
    calls=(LONGCAT,),
)
FORMATS = (LONGCAT_FORMAT,)
