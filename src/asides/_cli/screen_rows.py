"""What stands on the screen since a mark, so that it can be taken back: the cursor's row, counted from what is written.

A terminal can be asked where its cursor is, but its answer takes time and may never come. Every `OutputStream` of a
terminal reports what it writes, so rows are counted here. Words can be taken back as long as their first row is on the
screen and the window has the size in which they were written.
"""

from __future__ import annotations

from ..terminal._rows import RowCounter
from ..terminal._screen import Screen
from .streams import STDOUT, OutputStream, Streams

ERASE = "\r\x1b[J"


class ScreenRows:
    """Follows what is written to the screen."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._screen = Screen(STDOUT)
        self._width, self._height = self._screen.width(), self._screen.height()
        self._counter = RowCounter()
        self._marked: int | None = None
        self._drawing = False
        OutputStream.watch = self._follow

    def mark(self) -> None:
        """What is written from here on may be taken back; the cursor stands at the beginning of a row."""
        self._streams.flush()
        self._respect_resize()
        self._marked = self._counter.row

    def take_back(self) -> bool:
        """Erase what was written since the mark. False where it cannot be: all stays as it is then."""
        self._streams.flush()
        self._respect_resize()
        # With `--raw` what models write may move the cursor, and nobody knows what stands where.
        counted = self._screen.cursor and self._streams.out.sanitizes
        if not counted or self._marked is None or self._marked < self._top:
            return False
        self._erase_from(self._marked)
        return True

    def forget(self) -> None:
        """Nobody knows what stands where."""
        self._marked = None

    @property
    def _top(self) -> int:
        """The first row that is on the screen. What was taken back since does not come back from above."""
        return self._counter.lowest - self._height + 1

    def _follow(self, text: str) -> None:
        if not self._drawing:
            self._add(text)

    def _add(self, text: str) -> None:
        self._respect_resize()
        self._counter.feed(text, self._width)

    def _respect_resize(self) -> None:
        size = (self._screen.width(), self._screen.height())
        if size != (self._width, self._height):
            # What stood there may be laid out anew by the terminal, or may have left the screen.
            self.forget()
            self._width, self._height = size

    def _erase_from(self, row: int) -> None:
        up = self._counter.row - row
        self._counter.begin_line(row)
        self._draw([f"\x1b[{up}A{ERASE}" if up else ERASE])

    def _draw(self, lines: list[str]) -> None:
        """Write without reporting it: it is counted here."""
        self._drawing = True
        output = self._streams.err if self._streams.one_screen else self._streams.out
        for line in lines:
            self._counter.feed(line, self._width)
            output.draw(line)
        output.flush()
        self._drawing = False
        self._streams.err.at_line_start = self._streams.out.at_line_start = True
