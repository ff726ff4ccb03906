"""Thoughts as plain lines: the heading, the length in words, and the indent, for a text that comes in pieces.

What every way of showing a thought shares, and no more, because the filter loads it for the first thought that goes
into a pipe. Wrapping is in `wrap`, colours are in `style`.
"""

from __future__ import annotations

import re
from typing import Protocol

HEADING = "Thinking"
INDENT = "  "
_NEXT_LINE = re.compile(r"\n(?!\n)")


def heading(number: int, *, several: bool) -> str:
    """`Thinking`, or `Thinking 2` where there are several."""
    return f"{HEADING} {number}" if several else HEADING


def describe(characters: int, seconds: float = 0.0) -> str:
    """The length of a thought in words, and how long it took where that was a second or more."""
    length = f"{characters:,} character{'' if characters == 1 else 's'}"
    return f"{length}, {elapsed(seconds)}" if seconds >= 1 else length


def elapsed(seconds: float) -> str:
    """A time as a person says it: `7 s`, `2 min 05 s`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


class LineLayout(Protocol):
    """Text in, lines out, whatever pieces it comes in. Empty lines at the beginning and at the end are left out."""

    def feed(self, text: str) -> str:
        """What to write for the next piece."""

    def finish(self) -> str:
        """What to write at the end; the last line stays open."""

    def interrupt(self) -> None:
        """Someone else has ended the line; what follows begins a new one."""


class Indented:
    """Lines as they were written, each behind the indent."""

    def __init__(self) -> None:
        self._breaks = ""
        self._open = False

    def feed(self, text: str) -> str:
        """The text; line ends wait until something follows them."""
        before = ""
        if not self._open:
            text, before = text.lstrip("\n"), INDENT
            if not text:
                return ""
        self._open = True
        body = text.rstrip("\n")
        breaks = text[len(body) :]
        if not body:
            self._breaks += breaks
            return ""
        words = _NEXT_LINE.sub("\n" + INDENT, self._breaks + body)
        self._breaks = breaks
        return before + words

    def finish(self) -> str:
        """Nothing: what was held were line ends."""
        return ""

    def interrupt(self) -> None:
        """Go on with an indent."""
        self._open = False
        self._breaks = ""
