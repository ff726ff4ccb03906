"""What stands behind a descriptor: a terminal or not, how wide, whether it knows colours. Writes nothing."""

from __future__ import annotations

import os
from typing import Literal

COLUMNS, ROWS = 80, 24
"""For a terminal whose size cannot be found out."""


class Screen:
    """A descriptor as something to look at."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.terminal: bool = os.isatty(descriptor)
        """Whether a person looks at it."""
        self.cursor: bool = self.terminal and os.environ.get("TERM", "") not in ("", "dumb")
        """Whether it knows escape codes, so that words may be moved and lines taken back."""
        self.colour: bool = self.cursor and not os.environ.get("NO_COLOR")
        """Whether words may be coloured."""

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
