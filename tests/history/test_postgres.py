"""The server: several writers, connections that break, databases that are shared, passwords that stay secret."""

from __future__ import annotations

import subprocess
import sys

import pytest

from asides import _history as history
from asides._cli import main
from asides._history import BackgroundWriter, DamagedError, HistoryError
from tests.history.samples import reply
from tests.waiting import PATIENCE, eventually

psycopg = pytest.importorskip("psycopg", reason="psycopg is not here: pip install 'asides[postgres]'")


def test_several_writers(postgres: str) -> None:
    """Processes that make and fill the same store at the same moment lose nothing, and write nothing twice."""
    command = (sys.executable, "-m", "tests.history.writing", postgres)
    # The second half of each is the first half of the next.
    writers = [
        subprocess.Popen([*command, str(start), "100", "20"], stdout=subprocess.DEVNULL) for start in (0, 50, 100)
    ]
    assert [writer.wait(PATIENCE) for writer in writers] == [0, 0, 0]
    with history.open(postgres) as store:
        assert store.count() == history.StoreCounts(200, 400)
        assert not [problem for step in store.verify() for problem in step.problems]


def test_a_connection_that_breaks(postgres: str) -> None:
    """An open history says so and may be tried again; a writer connects anew and loses nothing."""
    writer = BackgroundWriter(postgres)
    writer.put(reply("before"))
    eventually(lambda: writer.written, "it was never written")
    with psycopg.connect(postgres, autocommit=True) as other, history.open(postgres) as store:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        with pytest.raises(HistoryError) as caught:
            store.add([reply("lost", after=1)])
        assert caught.value.retry
    writer.put(reply("after", after=2))
    writer.close()
    assert (writer.written, writer.dropped) == (2, 0)
    with history.open(postgres) as store:
        assert len(store.search("after").hits) == 1


def test_a_database_that_is_shared(postgres: str) -> None:
    """Tables of the same names that belong to others are not touched."""
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute("CREATE TABLE public.replies (theirs int)")
        try:
            with history.open(postgres) as store:
                store.add([reply("ours")])
                assert list(store.purge())[-1].replies == 1
            assert other.execute("SELECT count(*) FROM public.replies").fetchone() == (0,)
        finally:
            other.execute("DROP TABLE public.replies")


def test_what_was_changed_is_found(postgres: str) -> None:
    """A reply that was altered behind our back is named."""
    kept = reply("as it was")
    with history.open(postgres) as store:
        store.add([kept])
        with psycopg.connect(postgres, autocommit=True) as tampering:
            tampering.execute("UPDATE asides.thoughts SET text = 'never thought'")
        problems = [problem for step in store.verify() for problem in step.problems]
    assert problems == [f"reply {kept.id} is not what was written"]


def test_a_newer_store_is_left_alone(postgres: str) -> None:
    """Migrations that are not known here mean that a newer program wrote it."""
    with history.open(postgres):
        pass
    with psycopg.connect(postgres, autocommit=True) as newer:
        newer.execute("INSERT INTO asides.migrations VALUES ('999_from_the_future', now())")
    with pytest.raises(HistoryError, match=r"newer asides.*999_from_the_future"):
        history.open(postgres)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://user:s3cret@/kept?host=/nowhere",
        "postgresql:///kept?host=/nowhere&password=s3cret&user=user",
        "postgresql://user:s3cret@[broken/kept",
        "postgresql://user:s3cret:s3cret@/kept?host=/nowhere",
        "postgresql://user:s3cret%2Fs3cret@/kept?host=/nowhere",
    ],
)
def test_a_server_that_is_not_there(address: str) -> None:
    """The error is in words, may pass, and shows no password."""
    with pytest.raises(HistoryError) as caught:
        history.open(address)
    assert "s3cret" not in str(caught.value)
    assert "***" in str(caught.value)


BROKEN = (
    "CREATE FUNCTION asides.broken() RETURNS boolean LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'invalid page in block 0 of relation' USING ERRCODE = 'data_corrupted'; END $$",
    "ALTER TABLE asides.{table} RENAME TO whole",
    "CREATE VIEW asides.{table} AS SELECT * FROM asides.whole WHERE asides.broken()",
)
"""How to make a server answer as it does where a page of a table is damaged."""


@pytest.mark.parametrize("table", ["replies", "thoughts"])
@pytest.mark.parametrize("command", ["verify", "reindex"])
def test_a_damaged_server_is_not_ours_to_salvage(
    postgres: str, table: str, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where the server's own data is damaged, the error says so and names the server's tools, never `salvage`."""
    with history.open(postgres) as store:
        store.add([reply("a thought")])
    with psycopg.connect(postgres, autocommit=True) as breaking:
        for statement in BROKEN:
            breaking.execute(statement.format(table=table).encode())
    with history.open(postgres, create=False) as store, pytest.raises(DamagedError, match="invalid page"):
        store.count()
    code = main(["history", command, "--store", postgres])
    told = "".join(capfd.readouterr())
    assert code == 2
    assert "invalid page" in told
    assert "pg_amcheck" in told
    assert "salvage" not in told
