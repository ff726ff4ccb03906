"""What can still be read of a damaged SQLite file: every reply whose rows are whole. Writes nothing.

Rows are found page by page, not through the trees that lead to them, and recognised by their columns. A reply whose id
is the hash of what was read is whole. Lost ones leave traces: ids in the index, thoughts whose reply is gone. So every
reply comes out whole, in part (with the notice `salvaged` and an id of its own), or counted as lost.

    with Salvage(path) as salvage:
        for pages_seen in salvage.scan(): ...
        for salvaged in salvage.replies(): ...
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Self, cast

import msgspec

from ..events import Notice, NoticeCode
from .records import EPOCH, KeptReply, StoredRest, ThoughtRow, from_microseconds, identity, original_text
from .sqlite_pages import INDEX_INTERIOR, INDEX_LEAF, SIZES, TABLE_LEAF, Pages, Row, Unreadable
from .store import NOT_READABLE, make_reply

ID = 32
"""Characters of an id."""
STEP = 64
"""Pages between two reports of progress."""
MISSING = "salvaged"

Place = tuple[int, int]
"""A page, and the offset of a cell in it."""


class Salvaged(msgspec.Struct, frozen=True):
    """What is left of one reply."""

    number: int
    """Its number, which is the order of writing."""
    id: str
    """The id that it had; empty where it is lost too."""
    reply: KeptReply | None
    """None when it is lost."""
    missing: str = ""
    """What of it could not be read; empty when it is whole."""


class Salvage:
    """The replies of a damaged file: `scan` first, then `replies`."""

    def __init__(self, path: Path) -> None:
        self.pages = Pages(path)
        self._replies: dict[int, Place] = {}
        self._thoughts: dict[int, list[Place]] = {}
        self._ids: dict[int, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.pages.__exit__(*error)

    @property
    def known(self) -> set[int]:
        """The numbers of the replies that left any trace. After `scan`."""
        return self._replies.keys() | self._thoughts.keys() | self._ids.keys()

    def scan(self) -> Iterator[int]:
        """Look through all pages for rows. Yields now and then how many pages were read."""
        if not self.pages.has_size:
            # The size of a page is lost with the header: take the one with which most rows are found.
            self.pages.size = max(SIZES, key=self._rows_found)
        free = self.pages.free()
        for number in range(1, self.pages.count + 1):
            # Free pages may hold rows that were deleted: these must not come back.
            if number not in free:
                self._look(number)
            if number % STEP == 0:
                yield number

    def replies(self) -> Iterator[Salvaged]:
        """What is left of every reply, in the order of writing. After `scan`."""
        time = EPOCH
        for number in sorted(self.known):
            found = self._salvage(number)
            if found.reply is not None and number not in self._replies:
                # Only its thoughts are there, so its time is unknown: that of the reply before it.
                found = msgspec.structs.replace(found, reply=msgspec.structs.replace(found.reply, time=time).named())
            elif found.reply is not None:
                time = found.reply.time
            yield found

    def _rows_found(self, size: int) -> int:
        self.pages.size = size
        return sum(1 for number in range(1, self.pages.count + 1) for _ in self._table_rows(number))

    def _look(self, number: int) -> None:
        for place, rowid, row in self._table_rows(number):
            if _is_reply(row):
                self._replies.setdefault(rowid, place)
            else:
                self._thoughts.setdefault(row[1], []).append(place)
        try:
            if self.pages.kind(number) not in (INDEX_LEAF, INDEX_INTERIOR):
                return
            for cell in self.pages.cells(number):
                key = self.pages.key(number, cell)
                # The index of ids has all ids once more, so a reply whose own page is gone can still be named as lost.
                if len(key) == 2 and _is_id(key[0]) and isinstance(key[1], int):
                    self._ids[key[1]] = key[0]
        except Unreadable:
            pass

    def _table_rows(self, number: int) -> Iterator[tuple[Place, int, Row]]:
        """The replies and thoughts in a page."""
        try:
            cells = self.pages.cells(number) if self.pages.kind(number) == TABLE_LEAF else []
        except Unreadable:
            return
        for place in cells:
            try:
                rowid, row = self.pages.row(number, place)
            except Unreadable:
                continue
            if _is_reply(row) or _is_thought(row):
                yield (number, place), rowid, row

    def _salvage(self, number: int) -> Salvaged:
        id = self._ids.get(number, "")
        thoughts = sorted(self._read_thoughts(number), key=lambda thought: thought.index)
        if number not in self._replies:
            if not thoughts:
                return Salvaged(number, id, None, "nothing of it can be read")
            left = _left("only thoughts of this reply could be read", thoughts, termination="cut")
            return Salvaged(number, id, left, "only its thoughts can be read")
        _, row = self.pages.row(*self._replies[number])
        # A store from before the column `client` was added has rows without it.
        row = (number, *row[1:11], row[11] if len(row) > 11 else "")
        try:
            kept = make_reply(row, thoughts)
        except NOT_READABLE:
            return Salvaged(number, row[1], self._clean_text(row, thoughts), "not all that belongs to it can be read")
        if identity(kept) == kept.id:
            return Salvaged(number, kept.id, kept)
        notices = (*kept.reply.notices, _missing("this reply could not be read whole"))
        left = msgspec.structs.replace(kept, reply=msgspec.structs.replace(kept.reply, notices=notices)).named()
        return Salvaged(number, kept.id, left, "it is not what was written, or a thought of it is lost")

    def _clean_text(self, row: Row, thoughts: list[ThoughtRow]) -> KeptReply | None:
        """The answer and the thoughts of a row whose rest cannot be read."""
        try:
            text, time = original_text(row[8], row[9]), from_microseconds(row[2])
        except (ValueError, OverflowError):
            return None
        why = "of this reply only the answer and thoughts could be read"
        return _left(why, thoughts, time=time, model=row[3], text=text).named()

    def _read_thoughts(self, number: int) -> Iterator[ThoughtRow]:
        seen: set[int] = set()
        for place in self._thoughts.get(number, ()):
            _, row = self.pages.row(*place)
            try:
                text = original_text(row[6], row[7])
            except ValueError:
                text = row[6]
            seconds = None if row[5] is None else float(row[5])
            if row[2] not in seen:
                seen.add(row[2])
                yield ThoughtRow(row[2], text, bool(row[4]), seconds)


def _missing(why: str) -> Notice:
    return Notice(cast(NoticeCode, MISSING), why, 0)


def _left(
    why: str,
    thoughts: list[ThoughtRow],
    *,
    time: datetime = EPOCH,
    model: str = "",
    text: str = "",
    termination: str = "end",
) -> KeptReply:
    """What is left of a reply, with the notice that says why there is no more."""
    rest = StoredRest(notices=(msgspec.structs.asdict(_missing(why)),), termination=termination)
    return rest.restore(thoughts, id="", time=time, model=model, text=text, source="import")


def _is_id(value: object) -> bool:
    return isinstance(value, str) and len(value) == ID and all(character in "0123456789abcdef" for character in value)


def _is_reply(row: Row) -> bool:
    return (
        len(row) in (11, 12)
        and row[0] is None
        # SQLite stores NULL for a column that is the row's own number.
        and _is_id(row[1])
        and isinstance(row[2], int)
        and all(isinstance(value, str) for value in (*row[3:9], *row[10:]))
        and (row[9] is None or isinstance(row[9], bytes))
    )


def _is_thought(row: Row) -> bool:
    return (
        len(row) == 8
        and row[0] is None
        and all(isinstance(value, int) for value in row[1:5])
        and (row[5] is None or isinstance(row[5], int | float))
        and isinstance(row[6], str)
        and (row[7] is None or isinstance(row[7], bytes))
    )
