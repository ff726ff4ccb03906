"""A small terminal: what a person sees after bytes were written to it. Knows what our programs write, no more."""

from __future__ import annotations

import re

from wcwidth import wcswidth, wcwidth

from asides.terminal._answer import AnswerLines
from asides.terminal._markdown import MarkdownLines

SEQUENCE = re.compile(r"\x1b\[([?>=]?)([0-9;]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b([78DM=>c])")
JOINER = "\u200d"


class Emulator:
    """A screen of cells with a cursor. Lines that leave it at the top are kept."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self.columns, self.rows = columns, rows
        self.gone: list[str] = []
        """Lines that were scrolled away."""
        self.raw = ""
        """Everything that was written."""
        self._held = ""
        self._other: list[list[str]] | None = None
        self._cells = [[" "] * columns for _ in range(rows)]
        self._looks = [[""] * columns for _ in range(rows)]
        self._x = self._y = 0
        self._saved = (0, 0)
        self._look = ""

    def write(self, text: str) -> None:
        """Show this. A sequence that is not whole waits."""
        self.raw += text
        text = self._held + text
        self._held = ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                match = SEQUENCE.match(text, at)
                if match is None:
                    assert len(text) - at < 40, f"an unknown sequence: {text[at : at + 20]!r}"
                    self._held = text[at:]
                    return
                self._obey(match)
                at = match.end()
            else:
                self._put(text[at])
                at += 1

    @property
    def lines(self) -> list[str]:
        """The rows that are on the screen, without blanks at their ends and without empty rows at the bottom."""
        lines = ["".join(row).rstrip() for row in self._cells]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def cursor(self) -> tuple[int, int]:
        """The column and the row of the cursor."""
        return min(self._x, self.columns - 1), self._y

    def narrow(self, columns: int) -> None:
        """The window is made narrower: rows that are too long go on in the next, as most terminals lay them out."""
        rows: list[list[str]] = []
        for number, cells in enumerate(self._cells):
            text = "".join(cells).rstrip()
            if number == self._y:
                self._x, place = self._x % columns, len(rows) + self._x // columns
            rows += [list(text[at : at + columns].ljust(columns)) for at in range(0, max(len(text), 1), columns)]
        self.columns, self._y = columns, place
        self._cells = (rows + [[" "] * columns for _ in range(self.rows)])[: self.rows]
        self._looks = [[""] * columns for _ in range(self.rows)]

    @property
    def text(self) -> str:
        """All lines, also those that have left at the top."""
        return "\n".join([*self.gone, *self.lines])

    def look_of(self, words: str) -> str:
        """The parameters of the last colour sequence where these words stand; empty for plain."""
        for row, line in enumerate(self._cells):
            at = "".join(line).find(words)
            if at >= 0:
                return self._looks[row][at]
        raise AssertionError(f"{words!r} is not on the screen: {self.lines}")

    def row_of(self, words: str) -> int:
        """The row in which these words stand."""
        return next(row for row, line in enumerate(self.lines) if words in line)

    def _put(self, character: str) -> None:
        if character == "\n":
            self._down()
        elif character == "\r":
            self._x = 0
        elif character == "\b":
            self._x = max(self._x - 1, 0)
        elif character == "\x07":
            pass
        else:
            assert character >= " ", f"a control character: {character!r}"
            self._put_letter(character)

    def _put_letter(self, character: str) -> None:
        before = min(self._x, self.columns) - 1
        while before > 0 and self._cells[self._y][before] == "":
            before -= 1
        if before >= 0:
            joined = self._cells[self._y][before] + character
            if (
                wcwidth(character) == 0
                or JOINER in joined[-2:]
                or wcswidth(joined) < wcswidth(joined[:-1]) + wcwidth(character)
            ):
                wider = wcswidth(joined) - wcswidth(joined[:-1])
                self._cells[self._y][before] = joined
                for _ in range(wider):
                    self._take("")
                return
        width = max(wcwidth(character), 0)
        if self._x + width > self.columns:
            self._x = 0
            self._down()
        self._take(character)
        for _ in range(width - 1):
            self._take("")

    def _take(self, cell: str) -> None:
        self._cells[self._y][self._x] = cell
        self._looks[self._y][self._x] = self._look
        self._x += 1

    def _down(self) -> None:
        if self._y + 1 < self.rows:
            self._y += 1
            return
        line = "".join(self._cells.pop(0)).rstrip()
        if self._other is None:
            self.gone.append(line)
        self._looks.pop(0)
        self._cells.append([" "] * self.columns)
        self._looks.append([""] * self.columns)

    def _obey(self, match: re.Match[str]) -> None:
        private, numbers, letter, short = match.groups()
        if short:
            self._obey_short(short)
        elif private:
            if numbers == "1049":
                self._switch(enter=letter == "h")
        elif letter == "m":
            self._look = "" if numbers in ("", "0") else numbers
        elif letter:
            self._move(letter, [int(number) for number in numbers.split(";") if number])

    def _obey_short(self, letter: str) -> None:
        if letter == "7":
            self._saved = (self._x, self._y)
        elif letter == "8":
            self._x, self._y = self._saved
        elif letter == "D":
            self._down()
        elif letter == "M":
            self._y = max(self._y - 1, 0)

    def _switch(self, *, enter: bool) -> None:
        if enter:
            self._other, self._cells = self._cells, [[" "] * self.columns for _ in range(self.rows)]
            self._before = (self._x, self._y)
        elif self._other is not None:
            self._cells, self._other = self._other, None
            self._x, self._y = self._before

    def _move(self, letter: str, numbers: list[int]) -> None:
        count = numbers[0] if numbers else 1
        # A cursor behind the last column stands in it when it moves.
        self._x = min(self._x, self.columns - 1)
        if letter == "A":
            self._y = max(self._y - count, 0)
        elif letter == "B":
            self._y = min(self._y + count, self.rows - 1)
        elif letter == "C":
            self._x = min(self._x + count, self.columns - 1)
        elif letter == "D":
            self._x = max(self._x - count, 0)
        elif letter == "G":
            self._x = count - 1
        elif letter == "H":
            row, column = (*numbers, 1, 1)[:2] if numbers else (1, 1)
            self._y, self._x = row - 1, column - 1
        elif letter in "JK":
            self._erase(letter, numbers[0] if numbers else 0)

    def _erase(self, letter: str, how: int) -> None:
        whole = how == 2
        self._cells[self._y][0 if whole else self._x :] = [" "] * (self.columns - (0 if whole else self._x))
        if letter == "J":
            for row in range(0 if whole else self._y + 1, self.rows):
                self._cells[row] = [" "] * self.columns


def in_pieces(
    kind: type[AnswerLines] | type[MarkdownLines], text: str, columns: int, size: int, *, cursor: bool = True
) -> Emulator:
    """A screen after a text has come in pieces of this size."""
    emulator = Emulator(columns, 60)
    layout = kind(lambda: columns, cursor=cursor)
    for at in range(0, len(text), size):
        emulator.write(layout.feed(text[at : at + size]).replace("\n", "\r\n"))
    emulator.write(layout.finish().replace("\n", "\r\n"))
    return emulator
