"""A store in a process that really may not write to it: everything that reads works, the rest says why."""

from __future__ import annotations

import ctypes
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from asides import _history as history
from asides._history import sqlite_schema
from tests.cli.running import COMMAND, environment
from tests.history.samples import reply
from tests.waiting import PATIENCE

READING = (
    ["list"],
    ["show"],
    ["search", "prime"],
    ["grep", "prime"],
    ["export"],
    ["stats"],
    ["verify"],
    ["purge", "--all", "--dry-run"],
)
WRITING = (["purge", "--all", "--yes"], ["reindex"], ["import", os.devnull])
DROP_BOUND = 24
OVERRIDES = (1, 2)
"""The rights by which root reads and writes whatever its mode says."""


def bound_by_modes() -> None:
    """Give up root's right to write where the mode forbids it; for the process that is started next."""
    library = ctypes.CDLL(None)
    if os.getuid() == 0:
        for right in OVERRIDES:
            if library.prctl(DROP_BOUND, right, 0, 0, 0) != 0:
                os._exit(99)


def run(*arguments: str | Path, given: bytes = b"", history_command: bool = True) -> subprocess.CompletedProcess[bytes]:
    """The command, without root's rights."""
    command = ("history", *arguments) if history_command else arguments
    done = subprocess.run(
        [*COMMAND, *command],
        input=given,
        capture_output=True,
        timeout=PATIENCE,
        env=environment(),
        preexec_fn=bound_by_modes,
    )
    if done.returncode == 99:
        pytest.skip("root cannot give up its rights here, so nothing can be made unwritable")
    return done


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """A store whose file and folder may not be written."""
    path = tmp_path / "mount" / "h.db"
    with history.open(str(path)) as opened:
        opened.add([reply("Is 7 a prime?", after=1), reply("Is 9 a prime?", "No.", after=2)])
    forbid(path)
    yield path
    path.parent.chmod(0o700)


def forbid(path: Path) -> None:
    """Take the right to write."""
    for file in path.parent.iterdir():
        file.chmod(0o400)
    path.parent.chmod(0o500)


@pytest.mark.parametrize("arguments", READING, ids=lambda arguments: arguments[0])
def test_what_reads_works(store: Path, arguments: list[str]) -> None:
    """There is no log, none can be made, and none is needed."""
    done = run(*arguments, "--store", store)
    assert (done.returncode, b"only be read" in done.stderr) == (0, False), done.stderr
    assert [file.name for file in store.parent.iterdir()] == ["h.db"]


@pytest.mark.parametrize("arguments", WRITING, ids=lambda arguments: arguments[0])
def test_what_writes_says_why_not(store: Path, arguments: list[str]) -> None:
    """In one line, before anybody is asked anything."""
    done = run(*arguments, "--store", store)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"can only be read: you may not write to the file" in done.stderr


def test_a_reply_that_is_to_be_kept_there(store: Path) -> None:
    """The answer is out, and the line says why it was not kept."""
    done = run("-f", "qwen3", "--hide", "--save", "--store", store, given=b"<think>a</think>b", history_command=False)
    assert (done.returncode, done.stdout) == (2, b"b")
    assert b"not saved" in done.stderr
    assert b"can only be read" in done.stderr


def test_only_the_folder(store: Path) -> None:
    """The log stands beside the file, so its folder counts too."""
    store.chmod(0o600)
    assert run("search", "prime", "--store", store).returncode == 0
    assert b"you may not write to its folder" in run("reindex", "--store", store).stderr


def test_a_log_that_was_left(tmp_path: Path) -> None:
    """What it holds is read where that can be done; where not, it is said that something may be missing."""
    source = tmp_path / "source" / "h.db"
    for name, endings in (("both", ("", "-wal", "-shm")), ("log", ("", "-wal"))):
        folder = tmp_path / name
        folder.mkdir()
        with history.open(str(source)) as opened:
            opened.add([reply(f"logged{name}")])
            for ending in endings:
                shutil.copy(f"{source}{ending}", f"{folder}/h.db{ending}")
        forbid(folder / "h.db")
        done = run("search", f"logged{name}", "--store", folder / "h.db")
        said = b"the newest replies may be missing" in done.stderr
        assert (done.returncode, said) == ((0, False) if name == "both" else (1, True)), done.stderr
        folder.chmod(0o700)


def test_an_older_store(tmp_path: Path) -> None:
    """One that cannot be brought up to date is read as if it were."""
    path = tmp_path / "mount" / "h.db"
    with history.open(str(path)) as opened:
        kept = reply("Is 7 a prime?")
        opened.add([kept])
    with sqlite3.connect(path) as older:
        older.execute("DROP INDEX replies_by_client")
        older.execute("ALTER TABLE replies DROP COLUMN client")
        older.execute("DELETE FROM migrations WHERE name = '003_client'")
    older.close()
    assert "003_client" in sqlite_schema.MIGRATIONS
    forbid(path)
    for arguments in READING:
        assert run(*arguments, "--store", path).returncode == 0
    assert run("search", "prime", "--client", "x", "--store", path).returncode == 1
    path.parent.chmod(0o700)
    path.chmod(0o600)
    with history.open(str(path)) as opened:
        assert list(opened.replies()) == [kept]
