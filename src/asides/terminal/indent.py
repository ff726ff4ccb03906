"""One thought as lines, indented, while it comes. Knows no widths, no colours and no events."""

from __future__ import annotations

import re
from typing import Protocol

INDENT = "  "
_NEXT_LINE = re.compile(r"\n(?!\n)")


class Layout(Protocol):
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
        if not self._open:
            text = text.lstrip("\n")
            if not text:
                return ""
            before = INDENT
        else:
            before = ""
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
