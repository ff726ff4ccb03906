"""Where reading stands: the raw text as it came, the buffer, its place in that text, and the next marker in it.

`Tape` holds the raw text in pieces, so that what was held can be given back, and knows no markers; `Cursor` reads it.

`buffer` holds what has not been decided yet (with a few characters before it, for looking back), `buffer[at]` is the
first character that no event holds, and `base` is the offset of `buffer[0]` in the raw text. So `base + at` is an
offset of the raw text. Indexes live as long as one call to `feed`; everything that outlives it is an offset.

    raw     H i _ < t h i n k > L e t _ m e        (offsets)
    buffer        < t h i n k > L e t              (indexes)
                  ^base         ^at
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from itertools import accumulate

from .markers import Found, Marker, Table

LOOKBACK = 4
"""How many characters before the undecided text are kept: a fence's indent or a quote and what stands before it."""
NOWHERE = sys.maxsize
"""An offset that no text reaches."""
NON_SPACE = re.compile(r"\S")

_Known = tuple[int, int, int, Marker | None]
"""What a search from one offset has found: that offset, the start and the end of the marker, the marker."""
_UNKNOWN: _Known = (NOWHERE, -1, -1, None)
_NONE: _Known = (0, NOWHERE, NOWHERE, None)


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


class Cursor:
    """A place in the raw text, and what can be seen from it."""

    __slots__ = ("_known", "at", "base", "buffer", "scan", "tape")

    def __init__(self) -> None:
        self.tape = Tape()
        """Everything that was fed, as far as it may be needed again."""
        self.buffer = ""
        self.at = 0
        self.base = 0
        self.scan = 0
        """The offset from which markers are looked for: before it stands what is known to be none."""
        self._known: dict[Table, list[_Known]] = {}

    def start(self, text: str) -> None:
        """Read on with `text`, the end of the raw text, of which no event holds anything."""
        tape = self.tape
        offset = tape.sync() - len(text)
        # Quotes and the beginnings of lines are judged by what stands before them, which may have come in an earlier
        # chunk.
        before = tape.text(max(0, offset - LOOKBACK), offset)
        self.buffer = before + text
        self.at = len(before)
        self.base = offset - self.at
        self._known.clear()

    def stop(self) -> str:
        """Reading has come as far as it can: what is left to be held back."""
        rest = self.buffer[self.at :]
        self.buffer = ""
        return rest

    def move(self, index: int) -> None:
        """Pass over everything before this index."""
        self.at = index

    def pass_over(self, index: int) -> None:
        """Reading and looking for markers go on at this index."""
        self.at = index
        self.scan = self.base + index

    def scan_from(self, offset: int) -> None:
        """No marker before this offset acts."""
        self.scan = offset

    def rewind(self, offset: int, scan: int) -> None:
        """Read again from `offset`; no marker before `scan` acts."""
        self._load(offset)
        self.scan = scan

    def reach_back(self, offset: int) -> None:
        """Have the buffer hold the text from `offset` on as well, without reading it again."""
        if offset - LOOKBACK < self.base:
            at = self.base + self.at
            self._load(offset)
            self.at = at - self.base

    def _load(self, offset: int) -> None:
        before = max(0, offset - LOOKBACK)
        self.buffer = self.tape.text(before, self.tape.sync())
        self.base = before
        self.at = offset - before

    def blank_before(self, place: int) -> bool:
        """Whether only whitespace stands between here and this index."""
        return NON_SPACE.search(self.buffer, self.at, place) is None

    def find(self, table: Table, scan: int, end: int) -> Found | None:
        """The first marker of the table in `buffer[scan:end]`. Remembers, so that each character is searched once."""
        entries = self._known.get(table)
        if entries is None:
            entries = self._known[table] = [_UNKNOWN] * len(table.searches)
        base = self.base
        offset = base + scan
        nearest = NOWHERE
        first = _NONE
        for number, entry in enumerate(entries):
            # One entry for each pattern: the place that it found holds for every search from before it, so each pattern
            # passes each character once, however often the others find something.
            if not entry[0] <= offset <= entry[1]:
                match = table.searches[number].search(self.buffer, scan)
                if match is None:
                    entry = (offset, NOWHERE, NOWHERE, None)
                else:
                    text = match.group()
                    marker = table.by_text.get(text) or table.marker(text)
                    entry = (offset, base + match.start(), base + match.end(), marker)
                entries[number] = entry
            if entry[1] < nearest:
                first, nearest = entry, entry[1]
        # Searched to the end of the buffer, not to `end`: where `limit` moves that, what was found stays good.
        if first[3] is None or first[2] - base > end:
            return None
        return Found(first[1] - base, first[2] - base, first[3])
