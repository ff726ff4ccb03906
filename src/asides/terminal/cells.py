"""How many columns characters take, cluster by cluster, in a text that comes in pieces. Knows no lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

# Letters of one column each that never join with what stands before them; for these nothing is looked up.
_LETTERS = "!-~\u00a1-\u00ac\u00ae-\u02ff\u0391-\u0482\u048a-\u0556\u2010-\u2027\u2030-\u205e\u2200-\u22ff\u2500-\u257f"
SIMPLE = re.compile(f"[{_LETTERS}]+")
_REST = re.compile(f"[^{_LETTERS}]+")
JOINER = "\u200d"
LONGEST_CLUSTER = 32
"""Marks beyond this are taken as nothing wide, so that a heap of them costs no more than its length."""


class Cells:
    """Cuts words into pieces that are never torn apart, each with the columns that it adds."""

    def __init__(self) -> None:
        self._cluster = ""
        self._width = 0

    def follow(self, character: str) -> None:
        """What comes next stands behind this simple letter, or at the beginning where it is empty."""
        self._cluster, self._width = character, len(character)

    def pieces(self, word: str) -> Iterator[tuple[str, int, bool]]:
        """(text, columns, whether it goes on with the cluster before it). Simple letters come as long as they go."""
        at = 0
        while at < len(word):
            match = SIMPLE.match(word, at)
            if match is not None:
                at = match.end()
                text = match.group()
                self.follow(text[-1])
                yield text, len(text), False
                continue
            match = _REST.match(word, at)
            assert match is not None, "a character is simple or it is not"
            at = match.end()
            for character in match.group():
                yield self._add(character)

    def _add(self, character: str) -> tuple[str, int, bool]:
        alone = _width(character)
        joins = bool(self._cluster) and (
            alone == 0
            or self._cluster[-1] == JOINER
            or "\U0001f3fb" <= character <= "\U0001f3ff"
            or (_is_flag_letter(character) and _is_flag_letter(self._cluster))
        )
        if not joins:
            self._cluster, self._width = character, alone
            return character, alone, False
        if len(self._cluster) >= LONGEST_CLUSTER:
            return character, 0, True
        self._cluster += character
        before, self._width = self._width, max(_width(self._cluster), self._width)
        return character, self._width - before, True


@lru_cache(maxsize=4096)
def _width(cluster: str) -> int:
    from wcwidth import wcswidth  # here, because its tables cost milliseconds and few words need them

    return max(wcswidth(cluster), 0)


def _is_flag_letter(text: str) -> bool:
    return len(text) == 1 and "\U0001f1e6" <= text <= "\U0001f1ff"
