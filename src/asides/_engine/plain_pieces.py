"""Tokens in which nothing can matter in one state of the parser, so that each is emitted as it is.

What a token says is the same every time, so whether it may be a marker, or the beginning of one, is decided once.
"""

from __future__ import annotations

from typing import NamedTuple

from .markers import Table
from .token_text import TOKEN
from .vocabulary import Pieces


class Cut(NamedTuple):
    """An ordinary text, cut by what may be told of it."""

    words: str
    """What can be told at once."""
    space: str
    """Whitespace that may stand beside a marker."""
    tail: str
    """What is a marker's beginning if the next token is the rest of it."""


class PlainPieces(dict[int, str | None]):
    """The text of each token in which nothing can matter in one state, so that it is told as it is; None for others."""

    def __init__(self, pieces: Pieces, table: Table, tidy: bool) -> None:
        super().__init__()
        self._pieces = pieces
        self._tidy = tidy
        self._cuts: dict[str, Cut | None] = {}
        spelled = [marker.text for marker in table.markers.values() if not marker.certain]
        # Only markers that are spelled out can be mere mentions.
        self._table = table
        self._spelled = {name[:length] for name in spelled for length in range(1, len(name) + 1)}
        self._whole = spelled
        # A token comes whole, so the character before its surrogate alone is no beginning.
        heads = [TOKEN.split(name, maxsplit=1)[0] for name in table.markers]
        self._heads = {head[:length] for head in heads for length in range(1, len(head) + 1)} - set(spelled)
        self._longest = max(map(len, (*self._spelled, *self._heads)), default=0)

    def __missing__(self, id: int) -> str | None:
        found = self._pieces[id]
        if found == "":
            return None
        cut = self.cut(found) if found else None
        self[id] = found = found if cut is not None and cut.words == found else None
        return found

    def cut(self, text: str) -> Cut | None:
        """Cut a text; None if something in it may matter to the machine."""
        if text not in self._cuts:
            self._cuts[text] = self._cut(text)
        return self._cuts[text]

    def _may_be_spelled(self, text: str) -> bool:
        """Whether a marker, or the beginning of one, stands in the text in another spelling."""
        return self._table.unmarked(text) < len(text)

    def _cut(self, text: str) -> Cut | None:
        if any(name in text for name in self._whole):
            return None
        if self._table.has_spellings and self._may_be_spelled(text):
            return None
        tail = ""
        for length in range(1, min(len(text), self._longest) + 1):
            if text[-length:] in self._spelled:
                return None
            tail = text[-length:] if text[-length:] in self._heads else tail
        rest = text[: len(text) - len(tail)]
        words = rest.rstrip() if self._tidy else rest
        return Cut(words, rest[len(words) :], tail)
