"""Words of others made fit to be shown: on one line, in so many columns, nothing in them that a terminal acts on."""

from __future__ import annotations

import re

from wcwidth import wcswidth

from ..terminal.sanitize import sanitize

_SPACE = re.compile(r"\s+")


def clean(text: str) -> str:
    """Text on one line, sanitized."""
    return sanitize(_SPACE.sub(" ", text).strip())


def columns(text: str) -> int:
    """How many columns a clean text takes."""
    return max(0, wcswidth(text))


def shorten(text: str, width: int) -> str:
    """Text that fits a width; most of its end stays, because names that begin alike end differently."""
    if columns(text) <= width:
        return text
    head = (width - 3) // 3
    tail = width - 3 - head
    while tail > 1 and columns(text[:head] + "..." + text[-tail:]) > width:
        head, tail = max(1, head - 1), tail - 1
    return text[:head] + "..." + text[-tail:]


def cut(text: str, width: int) -> str:
    """Text that fits a width, its end left out."""
    if columns(text) <= width:
        return text
    end = width - 3
    while end > 1 and columns(text[:end]) > width - 3:
        end -= 1
    return text[:end] + "..."
