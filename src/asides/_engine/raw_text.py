"""The raw text as it came, in pieces: what is kept so that held text can be given back. Knows no markers."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate


class Tape:
    """Pieces of text, and any stretch of them by its offsets."""

    __slots__ = ("_starts", "_words_until", "pieces", "size")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        """The pieces. The parser's fast path appends to this list directly; `sync` catches up."""
        self._starts: list[int] = []
        self.size = 0
        """How many characters have been counted."""
        self._words_until = 0

    def sync(self) -> int:
        """Count the pieces that were appended since; return the number of characters in all."""
        known = len(self._starts)
        if known < len(self.pieces):
            starts = list(accumulate(map(len, self.pieces[known:]), initial=self.size))
            self.size = starts.pop()
            self._starts += starts
        return self.size

    def text(self, start: int, stop: int) -> str:
        """The characters from `start` up to `stop`, both offsets of the whole."""
        if start >= stop:
            return ""
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, stop - 1) - 1
        if first == last:
            origin = self._starts[first]
            return self.pieces[first][start - origin : stop - origin]
        head = self.pieces[first][start - self._starts[first] :]
        tail = self.pieces[last][: stop - self._starts[last]]
        return head + "".join(self.pieces[first + 1 : last]) + tail

    def words_until(self, stop: int) -> int:
        """The offset behind the last character before `stop` that is no whitespace."""
        self.sync()
        for number in range(bisect_right(self._starts, stop - 1) - 1, -1, -1):
            start = self._starts[number]
            words = self.pieces[number][: stop - start].rstrip()
            if words:
                return start + len(words)
        return self._words_until

    def forget(self, before: int) -> None:
        """Drop the pieces that end before this offset, once they are more than half of all: deleting moves the rest."""
        count = bisect_right(self._starts, before) - 1
        # So every piece is moved a bounded number of times, however often this is called.
        if count > 0 and count * 2 > len(self.pieces):
            self._words_until = self.words_until(self._starts[count])
            del self.pieces[:count], self._starts[:count]
