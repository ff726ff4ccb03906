"""Words of others made fit to be shown: on one line, in so many columns, nothing in them that a screen would act on."""

from __future__ import annotations

import re

from wcwidth import wcswidth

_SPACE = re.compile(r"\s+")


def clean(text: str) -> str:
    """Text on one line, with a mark in place of every character that cannot be seen or that turns the line around."""
    return "".join(each if each.isprintable() else "\ufffd" for each in _SPACE.sub(" ", text).strip())


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
