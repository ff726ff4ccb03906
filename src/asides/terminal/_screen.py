"""What stands behind a descriptor: a terminal or not, how wide, whether it knows colours. Writes nothing."""

from __future__ import annotations

import os
import sys
from typing import Literal

COLUMNS, ROWS = 80, 24
"""For a terminal whose size cannot be found out."""


class Screen:
    """A descriptor as something to look at."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.terminal: bool = os.isatty(descriptor)
        """Whether the descriptor is a terminal."""
        self.cursor: bool = self.terminal and _obeys_escape_codes(descriptor)
        """Whether it obeys escape codes, so that the cursor can be moved and lines can be erased."""
        self.colour: bool = self.cursor and not os.environ.get("NO_COLOR")
        """Whether text may be coloured: it obeys escape codes, and `NO_COLOR` is not set."""

    def width(self) -> int:
        """Its columns at this moment; `COLUMNS` wins where it is set."""
        return self._size("columns", COLUMNS)

    def height(self) -> int:
        """Its rows at this moment; `LINES` wins where it is set."""
        return self._size("lines", ROWS)

    def _size(self, name: Literal["columns", "lines"], otherwise: int) -> int:
        given = os.environ.get(name.upper(), "")
        if given.isascii() and given.isdigit() and int(given):
            return int(given)
        try:
            return getattr(os.get_terminal_size(self._descriptor), name) or otherwise
        except OSError:
            return otherwise


def _obeys_escape_codes(descriptor: int) -> bool:
    kind = os.environ.get("TERM", "")
    if sys.platform == "win32" and not kind:  # consoles there have no name; the console itself is asked
        from .._windows import obeys_escape_codes

        return obeys_escape_codes(descriptor)
    return kind not in ("", "dumb")
