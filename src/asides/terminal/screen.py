"""What stands behind a descriptor: a terminal or not, how wide, whether it knows colours. Writes nothing."""

from __future__ import annotations

import os

COLUMNS = 80
"""For a terminal whose width cannot be found out."""


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
        given = os.environ.get("COLUMNS", "")
        if given.isascii() and given.isdigit() and int(given):
            return int(given)
        try:
            return os.get_terminal_size(self._descriptor).columns or COLUMNS
        except OSError:
            return COLUMNS
