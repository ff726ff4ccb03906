"""Thoughts as plain lines: the heading, the length in words, and the indent, for a text that comes in pieces.

What every way of showing a thought shares, and no more, because the filter loads it for the first thought that goes
into a pipe. Wrapping is in `wrap`, colours are in `style`.
"""

from __future__ import annotations

import re
from typing import Protocol

HEADING = "Thinking"
INDENT = "  "
PROMPT = ">>> "
"""Before what a person asks."""
CLOSED, OPEN = "▸ ", "▾ "
"""Before the heading of a thought that can be folded."""
LONG_WORD = 10
"""Where words are longer than this on average, the script has no spaces and characters are counted instead."""
_NEXT_LINE = re.compile(r"\n(?!\n)")


def heading(number: int, *, several: bool) -> str:
    """`Thinking`, or `Thinking 2` where there are several."""
    return f"{HEADING} {number}" if several else HEADING


def describe(characters: int, seconds: float = 0.0) -> str:
    """The length of a thought in words, and how long it took where that was a second or more.

    Examples:
        >>> from asides.terminal import describe
        >>> describe(600, 12.4)
        '600 characters, 12 s'
    """
    length = f"{characters:,} character{'' if characters == 1 else 's'}"
    return f"{length}, {elapsed(seconds)}" if seconds >= 1 else length


def elapsed(seconds: float) -> str:
    """A time as a person says it: `7 s`, `2 min 05 s`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def summary(text: str, seconds: float | None, *, complete: bool = True) -> str:
    """A folded thought in a line: `Thought for 9 s, 245 words`; without a time where that is not known."""
    words = len(text.split())
    length = describe(len(text)) if len(text) > LONG_WORD * words else f"{words:,} word{'' if words == 1 else 's'}"
    took = "" if seconds is None else f" for {elapsed(seconds) if seconds >= 1 else f'{seconds:.1f} s'}"
    return f"Thought{took}, {length}{'' if complete else ', cut off'}"


def fold_line(mark: str, summary: str, action: str, width: int) -> str:
    """The line of a thought that can be folded, cut to one row; what a click does stands there where there is space."""
    line = f"{mark}{summary}{action}"
    return line if len(line) < width else f"{mark}{summary}"[: max(width - 1, 1)]


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
