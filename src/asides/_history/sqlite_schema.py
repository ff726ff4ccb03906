"""The tables of the SQLite store: named migrations, append-only. What has a name here is never changed again."""

from __future__ import annotations

APPLICATION = 0x41534944
"""SQLite's `application_id` of a history: ASID."""

MIGRATIONS: dict[str, tuple[str, ...]] = {
    "001_replies_and_thoughts": (
        """CREATE TABLE replies (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            time INTEGER NOT NULL,
            model TEXT NOT NULL,
            source TEXT NOT NULL,
            agent TEXT NOT NULL,
            conversation TEXT NOT NULL,
            format TEXT NOT NULL,
            text TEXT NOT NULL,
            exact BLOB,
            body TEXT NOT NULL
        )""",
        "CREATE INDEX replies_by_time ON replies (time, number)",
        "CREATE INDEX replies_by_model ON replies (model, source, time)",
        "CREATE INDEX replies_by_conversation ON replies (conversation, time)",
        """CREATE TABLE thoughts (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            reply INTEGER NOT NULL REFERENCES replies (number),
            place INTEGER NOT NULL,
            characters INTEGER NOT NULL,
            complete INTEGER NOT NULL,
            seconds REAL,
            text TEXT NOT NULL,
            exact BLOB
        )""",
        # With the lengths, so that counting does not read the texts.
        "CREATE INDEX thoughts_of_reply ON thoughts (reply, place, characters)",
    ),
    "002_words": (
        # Without a copy of the texts, which the thoughts hold. Without indexes of prefixes too: they make writing twice
        # as slow, and a search asks for beginnings of words only where whole words find little.
        "CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'unicode61 remove_diacritics 2')",
    ),
    "003_client": (
        "ALTER TABLE replies ADD COLUMN client TEXT NOT NULL DEFAULT ''",
        "CREATE INDEX replies_by_client ON replies (client, time)",
    ),
    "004_entries": (
        # The data last: what stands behind a large value is slow to reach.
        """CREATE TABLE entries (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            kind TEXT NOT NULL,
            client TEXT NOT NULL,
            id TEXT NOT NULL,
            previous TEXT NOT NULL,
            time INTEGER NOT NULL,
            used INTEGER NOT NULL,
            size INTEGER NOT NULL,
            model TEXT NOT NULL,
            source TEXT NOT NULL DEFAULT 'gateway',
            agent TEXT NOT NULL DEFAULT '',
            conversation TEXT NOT NULL,
            data BLOB NOT NULL,
            UNIQUE (kind, client, id)
        )""",
        # With the sizes, so that finding what to evict does not read the entries.
        "CREATE INDEX entries_by_use ON entries (kind, used, number, size)",
    ),
}
