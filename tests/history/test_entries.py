"""The table `entries`: found by their client alone, chained, bounded, purged with the replies."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest

from asides import _history as history
from asides._history import History, ReplyFilter, sqlite_schema
from asides._history.entries import FRESH, EntryTable, StoredEntry
from tests.history.samples import reply

NOW = 1_800_000_000_000_000


def entry(id: str, client: str = "ann", text: str = "", previous: str = "", **fields: str) -> StoredEntry:
    """An entry whose data is a document with this text."""
    data = json.dumps({"text": text or id}).encode()
    return StoredEntry(id=id, client=client, data=data, previous=previous, **fields)


@pytest.fixture
def table(store: History) -> EntryTable:
    """The entries of a kind, next to one of another kind that nobody here may see."""
    store.entries("other").put(entry("a", text="of another kind"), NOW)
    return store.entries("response")


def test_only_its_client_finds_it(table: EntryTable) -> None:
    """The same id may be there for two clients, and each has its own; what is put again replaces it."""
    table.put(entry("a", "ann", model="m", conversation="c"), NOW)
    table.put(entry("a", "bob", "his"), NOW)
    assert table.find("ann", ["a", "b"], NOW) == {"a": entry("a", "ann", model="m", conversation="c")}
    assert table.find("bob", ["a"], NOW)["a"].data == b'{"text": "his"}'
    assert table.find("", ["a"], NOW) == {}
    table.put(entry("a", "ann", "new", previous="z"), NOW)
    assert table.find("ann", ["a"], NOW) == {"a": entry("a", "ann", "new", previous="z")}
    assert not table.delete("eve", "a")
    assert table.delete("ann", "a")
    assert not table.delete("ann", "a")
    assert table.find("ann", ["a"], NOW) == {}
    assert table.find("bob", ["a"], NOW)


def test_any_bytes_and_ids(table: EntryTable) -> None:
    """Data is bytes; an id that no database takes as text is one that is not there."""
    odd = StoredEntry(id="a", client="ann", data=bytes(range(256)))
    table.put(odd, NOW)
    assert table.find("ann", ["a", "\0", "\ud800", "%s", "?"], NOW) == {"a": odd}
    assert table.find("ann", [f"id{number}" for number in range(2000)] + ["a"], NOW) == {"a": odd}


def test_a_chain(table: EntryTable) -> None:
    """From the first to the one that is named; those of other clients, or that are gone, end it."""
    for number in range(5):
        table.put(entry(f"r{number}", previous=f"r{number - 1}" if number else ""), NOW)
    table.put(entry("r1", "bob"), NOW)

    def ids(id: str, entries: int = 100, size: int = 1 << 20) -> list[str]:
        return [each.id for each in table.chain("ann", id, NOW, entries=entries, size=size)]

    assert ids("r4") == ["r0", "r1", "r2", "r3", "r4"]
    assert ids("r0") == ["r0"]
    assert ids("r9") == []
    # One more than allowed is read, so that the caller sees that there are more.
    assert ids("r4", entries=2) == ["r2", "r3", "r4"]
    assert ids("r4", size=1) == ["r4"]
    assert table.chain("bob", "r4", NOW, entries=9, size=99) == []
    table.delete("ann", "r1")
    assert ids("r4") == ["r2", "r3", "r4"]
    table.put(entry("r2", previous="r4"), NOW)
    assert len(ids("r4", entries=7)) == 8


def test_eviction(table: EntryTable, store: History) -> None:
    """What was used longest ago goes first, by number, by bytes, by age; other kinds have their own bounds."""
    for number in range(6):
        table.put(entry(f"r{number}"), NOW + number)
    table.find("ann", ["r0"], NOW + 2 * FRESH)
    size = entry("r0").size
    assert table.evict(entries=5, size=99 * size, before=0) == 1
    assert table.evict(entries=99, size=4 * size, before=0) == 1
    assert sorted(table.find("ann", [f"r{n}" for n in range(6)], NOW)) == ["r0", "r3", "r4", "r5"]
    assert table.evict(entries=99, size=99 * size, before=NOW + 5) == 2
    assert sorted(table.find("ann", [f"r{n}" for n in range(6)], NOW)) == ["r0", "r5"]
    assert table.evict(entries=99, size=99 * size, before=0) == 0
    assert store.entries("other").find("ann", ["a"], NOW)
    assert table.evict(entries=0, size=0, before=0) == 2


def test_purging(table: EntryTable, store: History) -> None:
    """The filters and patterns that purge replies purge entries too; a dry run only counts."""
    store.add([reply("hunter2")])
    table.put(entry("a", text='the "password"\nis hunter2', model="Qwen3", conversation="c"), NOW)
    table.put(entry("b", client="bob", model="glm"), NOW)
    quoted = re.compile('"password"\nis')
    assert list(store.purge(match=quoted, dry_run=True))[-1].entries == 1
    assert list(store.purge(ReplyFilter(models=("glm",)), match=quoted)) == [history.PurgeProgress()]
    assert list(store.purge(match=quoted))[-1] == history.PurgeProgress(1, 0, 0, 1)
    assert table.find("ann", ["a"], NOW) == {}
    assert store.count_entries() == 2
    assert store.count_entries(ReplyFilter(client="bob")) == 1
    for where in (ReplyFilter(agent="x"), ReplyFilter(sources=("pipe",)), ReplyFilter(conversation="other")):
        assert not [step for step in store.purge(where) if step.entries]
    assert list(store.purge(ReplyFilter(client="bob", sources=("gateway",))))[-1].entries == 1
    assert list(store.purge())[-1] == history.PurgeProgress(1, 1, 1, 1)
    assert store.count_entries() == 0
    assert not [problem for step in store.verify() for problem in step.problems]


def test_a_store_that_had_none(tmp_path: Path) -> None:
    """A file of the version before gets the table, and its replies stay; where it can only be read, it has none."""
    path = tmp_path / "h.db"
    path.touch(mode=0o600)
    older = sqlite3.connect(path, isolation_level=None)
    older.execute(f"PRAGMA application_id = {sqlite_schema.APPLICATION}")
    older.execute("CREATE TABLE migrations (name TEXT PRIMARY KEY, time TEXT NOT NULL)")
    for name, statements in list(sqlite_schema.MIGRATIONS.items())[:3]:
        for statement in (*statements, f"INSERT INTO migrations VALUES ('{name}', '')"):
            older.execute(statement)
    older.execute(
        "INSERT INTO replies (id, time, model, source, agent, conversation, format, text, body) "
        "VALUES ('00', 1, 'm', '', '', '', '', 'old', '{}')"
    )
    older.close()
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        with history.open(str(path), create=False) as store:
            if store.read_only:  # not for root, who may write everywhere
                assert store.count_entries() == 0
                assert list(store.purge(match=re.compile("x"), dry_run=True))[-1].entries == 0
    finally:
        tmp_path.chmod(0o700)
        path.chmod(0o600)
    with history.open(str(path), create=False) as store:
        assert store.listed()[0].text == "old"
        store.entries("response").put(entry("a"), NOW)
    with history.open(str(path), create=False) as store:
        assert store.entries("response").find("ann", ["a"], NOW) == {"a": entry("a")}
