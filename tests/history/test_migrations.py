"""Migrations are named and append-only: what was once written into a store is never changed afterwards."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest

from asides import _history as history
from asides._history import postgres_schema, sqlite_schema
from tests.history.samples import reply

WRITTEN = {
    "sqlite": [
        ("001_replies_and_thoughts", "97dbc23935029483"),
        ("002_words", "d59abc1ac854b017"),
        ("003_client", "ce79411b2aeed107"),
        ("004_entries", "109a73e0f2d66d4e"),
    ],
    "postgres": [
        ("001_replies_and_thoughts", "dbc10c593d71be94"),
        ("002_client", "c97c0418ac8d6ccf"),
        ("003_entries", "ba1f1610cea16c41"),
    ],
}
"""The migrations that stores out there have, with a hash of each. Lines are added here, and none is changed."""


@pytest.mark.parametrize("store", WRITTEN)
def test_what_has_a_name_is_never_changed(store: str) -> None:
    """A store that was made with a migration must be like one that is made with it today; a change needs a new one."""
    schema = {"sqlite": sqlite_schema, "postgres": postgres_schema}[store]
    found = [
        (name, hashlib.blake2b("\n".join(statements).encode(), digest_size=8).hexdigest())
        for name, statements in schema.MIGRATIONS.items()
    ]
    assert found == WRITTEN[store]
    assert [name for name, _ in found] == sorted(name for name, _ in found)


def test_an_older_store_is_brought_up_to_date(tmp_path: Path) -> None:
    """A file that stopped at the first migration gets the others when it is opened, each once."""
    path = tmp_path / "h.db"
    path.touch(mode=0o600)
    first = next(iter(sqlite_schema.MIGRATIONS))
    older = sqlite3.connect(path, isolation_level=None)
    older.execute(f"PRAGMA application_id = {sqlite_schema.APPLICATION}")
    for statement in (
        "CREATE TABLE migrations (name TEXT PRIMARY KEY, time TEXT NOT NULL)",
        f"INSERT INTO migrations VALUES ('{first}', '')",
        *sqlite_schema.MIGRATIONS[first],
    ):
        older.execute(statement)
    older.close()
    for kept in (1, 0):
        with history.open(str(path), create=False) as store:
            assert store.add([reply("brought along")]) == kept
            assert len(store.search("brought").hits) == 1
            assert not [problem for step in store.verify() for problem in step.problems]
    newer = sqlite3.connect(path)
    assert newer.execute("SELECT name FROM migrations ORDER BY name").fetchall() == [
        (name,) for name in sqlite_schema.MIGRATIONS
    ]
    newer.close()
