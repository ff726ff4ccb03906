"""Keeping in the background: it never stands in the way, and says what becomes of what it was given."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from asides import _history as history
from asides._history import BackgroundWriter
from tests.history.samples import aged, reply
from tests.waiting import PATIENCE, eventually


def test_what_is_given_is_written(address: str) -> None:
    """Everything is in the store when `close` returns, in one place for the file and the server."""
    writer = BackgroundWriter(address)
    assert all(writer.put(reply(f"thought {number}", after=number)) for number in range(500))
    writer.close()
    assert (writer.written, writer.dropped, writer.waiting, writer.failure) == (500, 0, 0, "")
    with history.open(address, create=False) as store:
        assert store.count().replies == 500


def test_it_is_written_without_closing(tmp_path: Path) -> None:
    """A gateway runs for weeks: what it keeps can be read soon after."""
    writer = BackgroundWriter(str(tmp_path / "h.db"))
    writer.put(reply("now"))
    eventually(lambda: writer.written == 1, "it was never written")
    writer.put(reply("later", after=1))
    eventually(lambda: writer.written == 2, "it was never written")
    with history.open(str(tmp_path / "h.db"), create=False) as store:
        assert store.search("now").hits
    writer.close()


def test_a_program_that_ends_without_closing(tmp_path: Path) -> None:
    """The end of the program writes what waits."""
    program = (
        "import sys; from asides._history import BackgroundWriter; from tests.history.samples import reply\n"
        "writer = BackgroundWriter(sys.argv[1]); writer.put(reply('last words'))\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "h.db")], check=True, timeout=PATIENCE)
    with history.open(str(tmp_path / "h.db"), create=False) as store:
        assert store.search("last").hits


def test_a_store_that_fails_for_a_while(tmp_path: Path) -> None:
    """Replies wait, it is said once, and once more when it works again; nothing is lost."""
    said: list[str] = []
    (tmp_path / "folder").write_text("in the way")
    writer = BackgroundWriter(str(tmp_path / "folder" / "h.db"), warn=said.append)
    for number in range(5):
        assert writer.put(reply("patience", after=number))
    eventually(lambda: bool(writer.failure), "the failure was never noticed")
    assert writer.put(reply("patience", after=9))
    time.sleep(0.3)  # a second try fails too, and is not said again; too short a time would only see less
    assert len(said) == 1
    assert writer.waiting == 6
    (tmp_path / "folder").unlink()
    eventually(lambda: writer.written == 6, "it was never written")
    writer.close()
    assert (writer.dropped, writer.failure) == (0, "")
    assert len(said) == 2
    assert "works again" in said[1]


def test_a_full_queue(tmp_path: Path) -> None:
    """What does not fit is dropped, counted and said once; what fitted is written when the store is free."""
    path = tmp_path / "h.db"
    with history.open(str(path)):
        pass
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    said: list[str] = []
    writer = BackgroundWriter(str(path), capacity=3, warn=said.append)
    writer.put(reply("first"))
    eventually(lambda: not writer._queue, "it was never taken")  # the thread has taken it and waits for the lock
    taken = [writer.put(reply("more", after=number)) for number in range(1, 8)]
    assert taken == [True, True, True, False, False, False, False]
    assert writer.dropped == 4
    assert sum("full" in words for words in said) == 1
    other.execute("ROLLBACK")
    other.close()
    eventually(lambda: writer.written == 4, "it was never written")
    assert writer.put(reply("after", after=99))
    writer.close()
    assert (writer.written, writer.dropped) == (5, 4)


def test_a_queue_full_of_long_replies(tmp_path: Path) -> None:
    """Memory is bounded by characters too, but one reply always fits."""
    (tmp_path / "folder").write_text("in the way")
    writer = BackgroundWriter(str(tmp_path / "folder" / "h.db"), characters=1000)
    assert writer.put(reply("x" * 5000))
    eventually(lambda: bool(writer.failure), "the failure was never noticed")
    assert writer.put(reply("x" * 900))
    assert not writer.put(reply("x" * 900, after=1))
    writer.close(timeout=0)
    assert writer.dropped == 3


def test_closing_does_not_wait_for_ever(tmp_path: Path) -> None:
    """What the store will not take in time is dropped, and the reason is said."""
    said: list[str] = []
    (tmp_path / "folder").write_text("in the way")
    writer = BackgroundWriter(str(tmp_path / "folder" / "h.db"), warn=said.append)
    for number in range(3):
        writer.put(reply("lost", after=number))
    writer.close(timeout=0.3)
    assert (writer.written, writer.dropped, writer.waiting) == (0, 3, 0)
    assert "3 replies were not saved" in said[-1]
    assert not writer.put(reply("too late"))
    assert writer.dropped == 4
    writer.close()


def test_what_is_given_last(tmp_path: Path) -> None:
    """A reply that comes just before the end is written, every time."""
    for number in range(15):
        writer = BackgroundWriter(str(tmp_path / "h.db"))
        writer.put(reply("first", after=number))
        time.sleep(number * 0.008)  # to meet the thread in all that it may be doing
        writer.put(reply("last", after=number))
        writer.close()
        assert (writer.written, writer.dropped) == (2, 0)


def test_a_file_that_is_no_history(tmp_path: Path) -> None:
    """What is wrong with the store is told once, not for every reply; mended, everything is kept."""
    said: list[str] = []
    path = tmp_path / "h.db"
    path.write_text("these are notes of mine, and not a database " * 100)
    writer = BackgroundWriter(str(path), warn=said.append)
    for number in range(5):
        writer.put(reply("patience", after=number))
    eventually(lambda: bool(writer.failure), "the failure was never noticed")
    assert ["not a SQLite database" in words for words in said] == [True]
    path.unlink()
    eventually(lambda: writer.written == 5, "it was never written")
    writer.close()
    assert writer.dropped == 0


def test_nothing_happens_until_something_is_kept(tmp_path: Path) -> None:
    """A writer that is never used starts no thread and makes no file."""
    BackgroundWriter(str(tmp_path / "h.db")).close()
    assert not list(tmp_path.iterdir())


def test_a_reply_that_can_never_be_written(tmp_path: Path) -> None:
    """It is dropped and named; those beside it are kept."""
    said: list[str] = []
    writer = BackgroundWriter(str(tmp_path / "h.db"), warn=said.append)
    writer.put(reply("good"))
    writer.put(msgspec.structs.replace(reply("broken", after=1), source=object()))
    writer.put(reply("good too", after=2))
    writer.close()
    assert (writer.written, writer.dropped) == (2, 1)
    with history.open(str(tmp_path / "h.db"), create=False) as store:
        assert len(store.search("good").hits) == 2
    assert ["a reply was not saved" in words for words in said] == [True]


def test_replies_that_are_too_old(address: str) -> None:
    """They are deleted at the start, whoever kept them, and their words with them; what is younger stays."""
    ages = (400, 31, 29, 0)
    with history.open(address) as store:
        store.add([aged(days, f"aged{days}") for days in ages])
    writer = BackgroundWriter(address, keep_days=30)
    writer.put(aged(0, "new"))
    eventually(lambda: writer.purged == 2 and writer.written == 1, "they were never deleted")
    writer.close()
    with history.open(address, create=False) as store:
        assert [found.thoughts[0].text for found in store.replies()] == ["aged29", "aged0", "new"]
        assert not store.search("aged400").hits


def test_it_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once in a while, also while nothing is kept."""
    monkeypatch.setattr("asides._history.background_writer.PURGE_EVERY", 0.05)
    writer = BackgroundWriter(str(tmp_path / "h.db"), keep_days=1)
    with history.open(str(tmp_path / "h.db")) as store:
        store.add([aged(2, "old")])
        eventually(lambda: store.count().replies == 0, "it was never deleted")
    writer.close()
    assert writer.purged == 1


def test_a_store_that_cannot_be_purged(tmp_path: Path) -> None:
    """It is said, and what is kept waits for the store as ever."""
    said: list[str] = []
    (tmp_path / "folder").write_text("in the way")
    writer = BackgroundWriter(str(tmp_path / "folder" / "h.db"), keep_days=1, warn=said.append)
    eventually(lambda: bool(said), "it was never said")
    assert "were not all deleted" in said[0]
    writer.close(timeout=0)


def test_a_store_that_others_may_read(tmp_path: Path) -> None:
    """Whoever runs the gateway is told once, with what to do."""
    said: list[str] = []
    path = tmp_path / "h.db"
    with history.open(str(path)):
        path.chmod(0o640)
    writer = BackgroundWriter(str(path), warn=said.append)
    writer.put(reply("thought"))
    writer.close()
    assert writer.written == 1
    assert said == [f"history: others may read the file of kept thoughts (mode 0640); run: chmod 600 {path}"]
