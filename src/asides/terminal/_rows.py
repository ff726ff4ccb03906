"""Where the cursor stands after something was written to a terminal: the row, counted from where counting began.

Understands what this package and the command line write, and no more: text, line ends, tabs, colours, the few moves of
`Wrapped` and of the spinner. A terminal knows the same, but to ask it takes time and an answer that may never come.
"""

from __future__ import annotations

import re

from ._wrap import TAB, Cells

_TOKEN = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b([78DM])|[\r\n\t]|[^\x1b\r\n\t]+|\x1b")


class RowCounter:
    """Follows the cursor."""

    def __init__(self) -> None:
        self.row: int = 0
        self.lowest: int = 0
        """The lowest row that the cursor has been in: the screen has scrolled for it."""
        self._column = 0
        self._saved = (0, 0)
        self._cells = Cells()

    def begin_line(self, row: int) -> None:
        """The cursor was put to the beginning of this row."""
        self.row, self._column = row, 0
        self._cells.follow("")

    def feed(self, text: str, width: int) -> None:
        """This was written, on a screen of so many columns."""
        for match in _TOKEN.finditer(text):
            token = match.group()
            if token == "\n":
                self.begin_line(self.row + 1)
            elif token == "\r":
                self.begin_line(self.row)
            elif token == "\t":
                self._column = min((self._column // TAB + 1) * TAB, width - 1)
            elif match[3]:
                self._move(match[3])
            elif match[2] == "D":
                # A cursor behind the last column stands in it when it moves.
                self._column = max(min(self._column, width - 1) - int(match[1] or 1), 0)
            elif token[0] != "\x1b":
                self._write(token, width)
            self.lowest = max(self.lowest, self.row)

    def _move(self, letter: str) -> None:
        if letter == "7":
            self._saved = (self.row, self._column)
        elif letter == "8":
            self.row, self._column = self._saved
        else:
            self.row += 1 if letter == "D" else -1

    def _write(self, text: str, width: int) -> None:
        for piece, columns, joins in self._cells.pieces(text):
            end = self._column + columns
            if columns == 0 or joins or end <= width:
                self._column = end
            elif columns == len(piece):
                # Letters of one column: each row is filled before the next begins.
                self.row += (end - 1) // width
                self._column = (end - 1) % width + 1
            else:
                self.row += 1
                self._column = columns
