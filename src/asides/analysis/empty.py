"""Thoughts with nothing in them, which are no parts: found in the raw text between the parts. Knows formats as data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from .._engine.format import HEADER, TEXT, THINKING, Format
from ..families import get_format
from ..message import Message


def count_empty(message: Message, format: str | Format = "auto") -> int:
    """How many thoughts were opened and closed with nothing but whitespace between."""
    pattern = _pattern(get_format(format))
    return sum(1 for gap in _gaps(message) for _ in pattern.finditer(gap))


def _gaps(message: Message) -> Iterator[str]:
    """What stands in no part; the first as if on a line of its own, so that the very beginning can be told."""
    at = 0
    for part in message.parts:
        start, end = part.span
        if start > at:
            yield message.raw[at:start] if at else "\0" + message.raw[:start]
        at = max(at, end)
    if at < len(message.raw):
        yield message.raw[at:] if at else "\0" + message.raw


@lru_cache(maxsize=64)
def _pattern(format: Format) -> re.Pattern[str]:
    text, thinking = format.states.get(TEXT, {}), format.states.get(THINKING, {})
    opens = [_marker(marker, format) for marker, state in text.items() if state == THINKING]
    closes = [_marker(marker, format) for marker, state in thinking.items() if state == TEXT]
    shapes = []
    if opens and closes:
        # A close before any text ends a thought that the prompt had opened.
        shapes.append(rf"(?:\0|{'|'.join(opens)})\s*(?:{'|'.join(closes)})")
    header = format.header
    if header is not None and header.channel_marker and header.body:
        channels = "|".join(re.escape(name) for name, state in header.channels.items() if state == THINKING)
        ends = "|".join(re.escape(marker) for marker, state in thinking.items() if state not in (TEXT, HEADER))
        if channels and ends:
            opener = rf"{re.escape(header.channel_marker)}(?:{channels})\b[^<]{{0,64}}{re.escape(header.body)}"
            shapes.append(rf"{opener}\s*(?:{ends})")
    return re.compile("|".join(shapes) or r"(?!)", re.IGNORECASE if format.ignore_case else 0)


def _marker(marker: str, format: Format) -> str:
    if marker in format.tag_rules:
        return rf"(?ai:{re.escape(marker[:-1])})(?:\s[^<>]{{0,200}})?>"
    if format.attributes and marker.startswith("<") and marker.endswith(">"):
        return rf"{re.escape(marker[:-1])}(?:\s[^<>]{{0,256}})?>"
    return re.escape(marker)
