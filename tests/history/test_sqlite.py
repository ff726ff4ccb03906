"""The file: who may read it, several writers, crashes, full disks, files that are something else."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from asides import _history as history
from asides._history import HistoryError
from asides._history.sqlite import SqliteHistory
from asides.errors import UsageError
from tests.history.samples import reply
from tests.waiting import PATIENCE

WRITER = (sys.executable, "-m", "tests.history.writing")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a history will be."""
    return tmp_path / "folder" / "history.db"


def problems(store: history.History) -> list[str]:
    """What is wrong with a store."""
    return [problem for step in store.verify() for problem in step.problems]


def test_only_the_owner_may_read(path: Path) -> None:
    """The file, its log and the folder made for it, whatever the umask says."""
    before = os.umask(0)
    try:
        with history.open(str(path)) as store:
            store.add([reply("secret")])
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"history.db": 0o600, "history.db-wal": 0o600, "history.db-shm": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_others_may_read_is_told(path: Path) -> None:
    """It is the owner's to change, so it is only said."""
    with history.open(str(path)) as store:
        path.chmod(0o644)
        assert any("others may read" in problem for problem in problems(store))


def test_killed_while_writing(path: Path) -> None:
    """kill -9 in the middle of writes loses nothing that was committed and leaves the store sound."""
    for kill in range(3):
        with subprocess.Popen(
            [*WRITER, str(path), str(kill * 100_000), "100000", "7"], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            told = [int(writer.stdout.readline()) for _ in range(5 + kill)]
            writer.send_signal(signal.SIGKILL)
            # What it had said before it died is committed too.
            told += [int(line) for line in writer.stdout.read().splitlines() if line]
        with history.open(str(path)) as store:
            texts = {found.thoughts[0].text for found in store.replies()}
            assert {f"thought number {number}" for number in range(kill * 100_000, told[-1] + 1)} <= texts
            assert problems(store) == []
            assert store.search(f'"number {told[0]}"').hits
            # A batch is there as a whole or not at all.
            mine = [text for text in texts if kill * 100_000 <= int(text.split()[-1]) < (kill + 1) * 100_000]
            assert len(mine) % 7 == 0


def test_several_writers(path: Path) -> None:
    """Processes that make and fill the same store at the same moment lose nothing, and write nothing twice."""
    # The second half of each is the first half of the next.
    starts = [0, 50, 100, 150]
    writers = [
        subprocess.Popen([*WRITER, str(path), str(start), "100", "5"], stdout=subprocess.DEVNULL) for start in starts
    ]
    assert [writer.wait(PATIENCE) for writer in writers] == [0, 0, 0, 0]
    with history.open(str(path)) as store:
        assert store.count() == history.StoreCounts(250, 500)
        assert problems(store) == []


def test_a_busy_store(path: Path) -> None:
    """Another writer that does not end is told in words, and may be waited for."""
    with history.open(str(path)):
        pass
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with SqliteHistory(path, patience=0.05) as store:
        with pytest.raises(HistoryError, match="another program is writing") as caught:
            store.add([reply("x")])
        assert caught.value.retry
        assert store.count().replies == 0
        other.execute("ROLLBACK")
        assert store.add([reply("x")]) == 1
    other.close()


def test_a_full_disk(path: Path) -> None:
    """When there is no room the error says so, and what was written before is sound."""
    with history.open(str(path)) as store:
        store.add([reply("before")])
    program = (
        "import sys; from asides import _history as history; from tests.history.samples import reply\n"
        "with history.open(sys.argv[1]) as store:\n"
        "    store.add([reply('word ' * 2_000_000, after=1)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000)),
    )
    assert "HistoryError" in done.stderr
    assert "the disk may be full" in done.stderr
    with history.open(str(path)) as store:
        assert [found.thoughts[0].text for found in store.replies()] == ["before"]
        assert problems(store) == []


def test_no_room_in_the_file(path: Path) -> None:
    """SQLite's own word for it is told in ours."""
    with SqliteHistory(path) as store:
        store._rows("PRAGMA max_page_count = 30")
        with pytest.raises(HistoryError, match="the disk is full") as caught:
            store.add([reply("words " * 100_000)])
        assert caught.value.retry
        assert store.count().replies == 0


def test_what_was_changed_is_found(path: Path) -> None:
    """A reply that was altered behind our back, a thought that is gone, an index that lost something."""
    first, second, third = (reply(f"thought {number}", after=number) for number in range(3))
    with history.open(str(path)) as store:
        store.add([first, second, third])
    with sqlite3.connect(path) as tampering:
        tampering.execute("UPDATE thoughts SET text = 'never thought' WHERE number = 1")
        tampering.execute("UPDATE replies SET model = 'other' WHERE id = ?", (second.id,))
        tampering.execute("INSERT INTO words(words, rowid, text) VALUES('delete', 3, 'thought 2')")
    tampering.close()
    with history.open(str(path)) as store:
        found = problems(store)
    assert any(first.id in problem for problem in found)
    assert any(second.id in problem for problem in found)
    assert not any(third.id in problem for problem in found)
    assert any("2 thoughts of 3" in problem for problem in found)


def test_purged_words_are_not_on_the_disk(path: Path) -> None:
    """After a purge the file and its log hold nothing of what was purged."""
    with history.open(str(path)) as store:
        store.add([reply("ordinary words")])
        store.add([reply(f"hunter2secret number {number}", after=number + 1) for number in range(300)])
        assert list(store.purge(history.ReplyFilter(since=reply("", after=1).time)))[-1].replies == 300
        store.compact()
        for file in path.parent.iterdir():
            assert b"hunter2secret" not in file.read_bytes(), file
        assert store.count().replies == 1


def test_a_purge_while_another_reads(path: Path) -> None:
    """What was purged is still in the log then, and it is said; afterwards it is gone for good."""
    with SqliteHistory(path, patience=0.05) as store:
        store.add([reply("hunter2secret")])
        reading = sqlite3.connect(path, isolation_level=None)
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM replies").fetchall()
        assert list(store.purge())[-1].replies == 1
        with pytest.raises(HistoryError, match=r"cannot be emptied|another program"):
            store.compact()
        reading.close()
        store.compact()
        assert all(b"hunter2secret" not in file.read_bytes() for file in path.parent.iterdir())


def test_a_store_without_room_to_give_back(path: Path) -> None:
    """A file that SQLite cannot shrink is compacted all the same, and that ends."""
    path.parent.mkdir()
    with sqlite3.connect(path) as plain:
        plain.execute("PRAGMA journal_mode = WAL")
        plain.execute("PRAGMA user_version = 1")
    plain.close()
    path.chmod(0o600)
    with history.open(str(path)) as store:
        store.add([reply("words " * 10_000)])
        assert list(store.purge())[-1].replies == 1
        store.compact()
        assert problems(store) == []


def test_a_file_that_is_something_else(path: Path) -> None:
    """Neither a text nor another program's database is written to."""
    path.parent.mkdir()
    path.write_bytes(b"just some text, which is long enough to be looked at by SQLite" * 100)
    with pytest.raises(HistoryError, match="not a SQLite database"):
        history.open(str(path))
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(HistoryError, match="something else"):
        history.open(str(path))
    assert path.read_bytes() == before


def test_a_newer_store_is_left_alone(path: Path) -> None:
    """Migrations that are not known here mean that a newer program wrote it."""
    with history.open(str(path)):
        pass
    with sqlite3.connect(path) as newer:
        newer.execute("INSERT INTO migrations VALUES ('999_from_the_future', '')")
    newer.close()
    with pytest.raises(HistoryError, match=r"newer asides.*999_from_the_future"):
        history.open(str(path))


def test_where_it_cannot_be(tmp_path: Path) -> None:
    """A place that is no folder, and a folder that is no file."""
    (tmp_path / "file").touch()
    for place in ("file/history.db", "file/deeper/history.db"):
        with pytest.raises(HistoryError, match=f"^{tmp_path}/file is no folder$"):
            history.open(str(tmp_path / place))
    with pytest.raises(HistoryError, match="cannot be opened"):
        history.open(str(tmp_path))


def test_an_address_of_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that is not known here is no file: nothing is made, and the error says what there is."""
    monkeypatch.chdir(tmp_path)
    for address in ("mysql://me@host/kept", "sqlite:///kept.db", "POSTGRES+psycopg://host/kept"):
        with pytest.raises(UsageError, match="a file or a postgresql:// address"):
            history.open(address)
    assert not list(tmp_path.iterdir())


def test_the_usual_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable of our own, else the data directory, else the one under home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ASIDES_HISTORY", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert history.default_store() == f"{tmp_path}/.local/share/asides/history.db"
    monkeypatch.setenv("XDG_DATA_HOME", f"{tmp_path}/data")
    with history.open() as store:
        assert store.name == f"{tmp_path}/data/asides/history.db"
    monkeypatch.setenv("ASIDES_HISTORY", "~/own.db")
    with history.open() as store:
        assert store.name == f"{tmp_path}/own.db"
