"""A recording in two panes: what the model writes on the left, markers in colour; its parts on the right.

A `Panes` is fed pieces and gives the rows of both panes so far. The terminal draws them again and again at one place
(`draw`); `tools.demo_picture` makes a film of them. Knows no markers: what is in no part's span is one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..._api import Parser
from ...parts import Text, Thinking
from ...terminal._sanitize import sanitize
from ..streams import OutputStream

NARROWEST = 90
"""Columns of a terminal on which two panes can be read."""
GUTTER = " │ "
LOOKS = {"marker": "33", "thinking": "2", "text": "", "tool_call": "36", "label": "1", "held": "2"}
"""Escape codes of each kind of characters."""


class PaneText(NamedTuple):
    """Characters of one look, on one row."""

    text: str
    look: str


Row = tuple[PaneText, ...]


class Panes:
    """Both panes of one recording."""

    def __init__(self, parser: Parser, columns: int) -> None:
        self._parser = parser
        self._width = (columns - len(GUTTER) - 1) // 2
        self._raw = ""

    def feed(self, piece: str) -> None:
        """The model writes on."""
        self._raw += piece
        self._parser.feed(piece)

    def finish(self) -> None:
        """It has ended."""
        self._parser.finish()

    def rows(self) -> list[tuple[Row, Row]]:
        """What stands in both panes, row by row."""
        left, right = self._left(), self._right()
        longest = max(len(left), len(right))
        return [(left[at] if at < len(left) else (), right[at] if at < len(right) else ()) for at in range(longest)]

    def _left(self) -> list[Row]:
        looks = ["marker"] * len(self._raw)
        for part in self._parser.message.parts:
            start, end = part.span
            kind = "thinking" if isinstance(part, Thinking) else "text" if isinstance(part, Text) else "tool_call"
            looks[start:end] = [kind] * (end - start)
        return list(_wrapped(zip(self._raw, looks, strict=True), self._width))

    def _right(self) -> list[Row]:
        rows: list[Row] = []
        for part in self._parser.message.parts:
            if isinstance(part, Thinking):
                label, text, look = "thinking", part.text, "thinking"
            elif isinstance(part, Text):
                label, text, look = "answer", part.text, "text"
            else:
                label, text, look = "call", f"{part.name} {part.arguments}", "tool_call"
            rows += [(PaneText(label, "label"),), *_wrapped(((each, look) for each in text), self._width)]
        return rows


def _wrapped(characters: Iterable[tuple[str, str]], width: int) -> Iterator[Row]:
    """Characters with their looks as rows no longer than this."""
    row: list[PaneText] = []
    length = 0
    for character, look in characters:
        if character == "\n" or length == width:
            yield tuple(row)
            row, length = [], 0
            if character == "\n":
                continue
        if row and row[-1].look == look:
            row[-1] = PaneText(row[-1].text + character, look)
        else:
            row.append(PaneText(character, look))
        length += 1
    if row:
        yield tuple(row)


def written(row: Row, width: int = 0) -> str:
    """A row for a terminal, filled up to a width."""
    shown = "".join(f"\x1b[{LOOKS[look]}m{sanitize(text)}\x1b[0m" for text, look in row)
    return shown + " " * (width - sum(len(text) for text, _ in row))


def play_beside(panes: Panes, pieces: Iterable[str], out: OutputStream, columns: int, pause: float) -> None:
    """Draw both panes at one place of the terminal while the pieces come."""
    drawn = 0
    for piece in (*pieces, None):
        if piece is None:
            panes.finish()
        else:
            panes.feed(piece)
            time.sleep(pause)
        rows = panes.rows()
        width = (columns - len(GUTTER) - 1) // 2
        lines = "".join(f"{written(left, width)}{GUTTER}{written(right)}\x1b[K\n" for left, right in rows)
        out.draw((f"\x1b[{drawn}A" if drawn else "") + lines)
        out.flush()
        drawn = len(rows)
