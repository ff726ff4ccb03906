"""The table `entries`: what a gateway keeps for a while so that clients can refer to it, shared by several processes.

A store of replies has room for state too: small documents by kind, client and id, each perhaps with the id of the one
before it. A gateway keeps stored Responses here (kind `response`); any other kind has its own ids and its own bounds.
Unlike replies, entries are bounded: `evict` deletes those used longest ago, of the clients that have most. The columns
that say whose an entry is have the names that they have in `replies`, so that one `ReplyFilter` purges both.

    table = store.entries("response")
    table.put(StoredEntry(id="resp_2", client="5f…", data=b"{}", previous="resp_1"), now)
    table.chain("5f…", "resp_2", now, entries=100, size=1 << 20)   # [resp_1, resp_2]
    table.evict(entries=10_000, size=64 << 20, before=now - MONTH)

Every method is one statement that commits by itself: nothing here waits for another, and no lock is held between two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from .records import label
from .reply_filter import ReplyFilter, placeholders

COLUMNS = ("id", "client", "data", "previous", "model", "conversation")
"""The columns that are an `StoredEntry`, in its order."""
ENTRY = ", ".join(f"r.{column}" for column in COLUMNS)
FRESH = 60_000_000
"""Microseconds for which a use is not written down again: otherwise every look would be a write."""
PAGE = 50
"""Entries whose data is searched at once."""
MOST_IDS = 500
"""Ids of one query: databases bound their parameters."""
Rows = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]


class StoredEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Something kept for a client under an id."""

    id: str
    client: str
    """The fingerprint of the client's key; nobody else finds it."""
    data: bytes
    """A JSON document."""
    previous: str = ""
    """The entry that it goes on from."""
    model: str = ""
    conversation: str = ""

    @property
    def size(self) -> int:
        """The bytes that count against the bound."""
        return len(self.data)


class EntryTable:
    """The entries of one kind. Times are microseconds since 1970; errors are those of the store."""

    def __init__(self, rows: Rows, kind: str) -> None:
        """`rows` runs a statement, its values written as `?`, and returns its rows."""
        self._rows = rows
        self._kind = kind

    def put(self, entry: StoredEntry, now: int) -> None:
        """Write an entry; one of the same id is replaced."""
        self.put_all([entry], now)

    def put_all(self, entries: Sequence[StoredEntry], now: int) -> None:
        """Write several entries, each with an id of its own, at once: all of them or none."""
        marks = f"({placeholders(4 + len(COLUMNS))})"
        values: list[Any] = []
        for entry in entries:
            values += (self._kind, now, now, entry.size, label(entry.id), label(entry.client), entry.data)
            values += map(label, (entry.previous, entry.model, entry.conversation))
        self._rows(
            f"INSERT INTO entries (kind, time, used, size, {', '.join(COLUMNS)}) "
            f"VALUES {', '.join([marks] * len(entries))} ON CONFLICT (kind, client, id) DO UPDATE SET "
            "data = excluded.data, previous = excluded.previous, model = excluded.model, time = excluded.time, "
            "used = excluded.used, size = excluded.size, conversation = excluded.conversation RETURNING number",
            values,
        )

    def count(self) -> int:
        """How many there are."""
        return int(self._rows("SELECT count(*) FROM entries WHERE kind = ?", (self._kind,))[0][0])

    def find(self, client: str, ids: Sequence[str], now: int) -> dict[str, StoredEntry]:
        """The entries of these ids that the client has; they count as used."""
        found: dict[str, StoredEntry] = {}
        for start in range(0, len(ids), MOST_IDS):
            some = [label(id) for id in ids[start : start + MOST_IDS]]
            rows = self._rows(
                f"SELECT r.number, r.used, {ENTRY} FROM entries AS r "
                f"WHERE r.kind = ? AND r.client = ? AND r.id IN ({placeholders(len(some))})",
                (self._kind, label(client), *some),
            )
            found |= {entry.id: entry for entry in self._used(rows, now)}
        return found

    def chain(self, client: str, id: str, now: int, *, entries: int, size: int) -> list[StoredEntry]:
        """An entry with all those that it goes on from, the first of them first; they count as used.

        Reads no further once there are more entries, or more bytes, than asked for. Where one of them is gone, the
        first in the list has a `previous` all the same.
        """
        mine = (self._kind, label(client))
        rows = self._rows(
            "WITH RECURSIVE chain (number, previous, place, total) AS ("
            "SELECT r.number, r.previous, 1, r.size FROM entries AS r WHERE r.kind = ? AND r.client = ? AND r.id = ? "
            "UNION ALL SELECT r.number, r.previous, c.place + 1, c.total + r.size FROM chain AS c "
            "JOIN entries AS r ON r.kind = ? AND r.client = ? AND r.id = c.previous "
            # An entry that names itself would go on for ever without the bound.
            "WHERE c.previous <> '' AND c.place <= ? AND c.total <= ?) "
            f"SELECT r.number, r.used, {ENTRY} FROM chain AS c JOIN entries AS r ON r.number = c.number "
            "ORDER BY c.place DESC",
            (*mine, label(id), *mine, entries, size),
        )
        return self._used(rows, now)

    def delete(self, client: str, id: str) -> bool:
        """Delete an entry of a client; False where there is none."""
        sql = "DELETE FROM entries WHERE kind = ? AND client = ? AND id = ? RETURNING number"
        return bool(self._rows(sql, (self._kind, label(client), label(id))))

    def evict(self, *, entries: int, size: int, before: int) -> int:
        """Delete until at most so many entries and bytes are left, and all not used since.

        A client that has most loses those that it used longest ago: each entry stands where its client's own are
        counted up to it, the latest first, so that nobody loses one to who has more.
        """
        mine = "(PARTITION BY client ORDER BY used DESC, number DESC)"
        sql = (
            "DELETE FROM entries WHERE number IN (SELECT number FROM ("
            "SELECT number, used, row_number() OVER (ORDER BY own_place, used DESC, number DESC) AS place, "
            "sum(size) OVER (ORDER BY own_total, used DESC, number DESC) AS total FROM ("
            f"SELECT number, used, size, row_number() OVER {mine} AS own_place, sum(size) OVER {mine} AS own_total "
            "FROM entries WHERE kind = ?) AS own) AS ranked "
            "WHERE place > ? OR total > ? OR used < ?) RETURNING number"
        )
        return len(self._rows(sql, (self._kind, entries, size, before)))

    def _used(self, rows: list[tuple[Any, ...]], now: int) -> list[StoredEntry]:
        stale = [number for number, used, *_ in rows if used < now - FRESH]
        if stale:
            marks = placeholders(len(stale))
            self._rows(f"UPDATE entries SET used = ? WHERE number IN ({marks}) RETURNING number", (now, *stale))
        return [
            StoredEntry(
                id=id, client=client, data=bytes(data), previous=previous, model=model, conversation=conversation
            )
            for _, _, id, client, data, previous, model, conversation in rows
        ]


def purge_entries(
    rows: Rows, where: ReplyFilter, match: re.Pattern[str] | None, *, dry_run: bool = False
) -> Iterator[int]:
    """Delete the entries of every kind that a filter means, or those in which `match` is found. Yields how many."""
    conditions, values = where.conditions()
    sql = f"SELECT r.number, r.data FROM entries AS r WHERE r.number > ?{conditions} ORDER BY r.number LIMIT {PAGE}"
    last = 0
    while page := rows(sql, (last, *values)):
        last = page[-1][0]
        chosen = [number for number, data in page if match is None or _holds(bytes(data), match)]
        if chosen and not dry_run:
            rows(f"DELETE FROM entries WHERE number IN ({placeholders(len(chosen))}) RETURNING number", chosen)
        yield len(chosen)


def _holds(data: bytes, match: re.Pattern[str]) -> bool:
    try:
        document = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return bool(match.search(data.decode("utf-8", "replace")))
    # Text by text, as replies are searched: in the document itself, quotes and line breaks are escaped.
    pending = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, str) and match.search(value):
            return True
        pending += value if isinstance(value, list) else [*value.values(), *value] if isinstance(value, dict) else ()
    return False
