"""Stores of entries: in memory and in a database's thread, each held to the same; and what a store may never hold."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from asides._config.schema import ReplayCacheSettings
from asides._gateway import entry_store
from asides._gateway.entry_store import Bounds, EntryStore, MemoryEntries, SharedEntries, StoreThread
from asides._gateway.replay_cache import ReplayCache, ReplayEntry
from asides._gateway.shared_thoughts import SharedThoughts
from asides._history import History, HistoryError
from asides._history.entries import EntryTable, StoredEntry
from tests.waiting import PATIENCE

Opener = Callable[[Bounds], Any]
WIDE = Bounds(100, 10_000, 1000.0)


def entry(id: str, client: str = "ann", size: int = 10, previous: str = "") -> StoredEntry:
    """An entry of so many bytes."""
    return StoredEntry(id=id, client=client, data=b"x" * size, previous=previous)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of databases, in seconds: a little later whenever it is looked at, or what a test makes of it."""
    found = [0.0]
    monkeypatch.setattr(entry_store, "_now", lambda: int(_tick(found) * entry_store.MICROSECONDS))
    return found


def _tick(now: list[float]) -> float:
    now[0] += 0.001
    return now[0]


@pytest.fixture(params=["memory", "history"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, now: list[float]) -> Opener:
    """Makes a store with these bounds."""

    @asynccontextmanager
    async def open(bounds: Bounds) -> AsyncIterator[EntryStore]:
        in_memory, thread = request.param == "memory", StoreThread(str(tmp_path / "h.db"), print)
        store: EntryStore = (
            MemoryEntries(bounds, lambda: _tick(now)) if in_memory else SharedEntries(thread, "r", bounds)
        )
        yield store
        await store.close()

    return open


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run it in a loop of its own."""
    asyncio.run(work)


def test_what_is_put_is_found_by_its_client(opened: Opener) -> None:
    """And by nobody else; deleted, it is gone."""

    async def work() -> None:
        async with opened(WIDE) as store:
            assert await store.put(entry("a"))
            assert await store.put(entry("a", "bob", size=20))
            assert await store.find("ann", ["a", "b"]) == {"a": entry("a")}
            assert await store.find("eve", ["a"]) == {}
            assert not await store.delete("eve", "a")
            assert await store.delete("ann", "a")
            assert not await store.delete("ann", "a")
            assert await store.find("bob", ["a"]) == {"a": entry("a", "bob", size=20)}

    run(work())


def test_chains(opened: Opener) -> None:
    """From the first on; a bound ends it one behind what was asked for, and one that is gone ends it too."""

    async def work() -> None:
        async with opened(WIDE) as store:
            for number in range(4):
                await store.put(entry(f"r{number}", previous=f"r{number - 1}" if number else ""))
            for limits, found in (((9, 999), 4), ((2, 999), 3), ((9, 15), 2)):
                chain = await store.chain("ann", "r3", entries=limits[0], size=limits[1])
                assert [each.id for each in chain] == ["r0", "r1", "r2", "r3"][-found:]
            await store.delete("ann", "r1")
            assert [each.id for each in await store.chain("ann", "r3", entries=9, size=999)] == ["r2", "r3"]
            assert await store.chain("bob", "r3", entries=9, size=999) == []

    run(work())


def test_bounds(opened: Opener, now: list[float]) -> None:
    """By number and by bytes; what is larger than all of it is not kept and drives nobody out."""

    async def work() -> None:
        async with opened(Bounds(3, 100, 1000.0)) as store:
            for number in range(4):
                assert await store.put(entry(f"r{number}"))
            names = [f"r{number}" for number in range(9)]
            assert sorted(await store.find("ann", names)) == ["r1", "r2", "r3"]
            assert not await store.put(entry("r4", size=101))
            assert sorted(await store.find("ann", names)) == ["r1", "r2", "r3"]
            assert await store.put(entry("r5", size=85))
            assert sorted(await store.find("ann", names)) == ["r3", "r5"]
            store.resize(Bounds(2, 20, 1000.0))
            assert await store.put(entry("r6"))
            assert sorted(await store.find("ann", names)) == ["r6"]
        async with opened(Bounds(3, 100, 50.0)) as store:
            await store.put(entry("old"))
            now[0] += 100
            await store.put(entry("new"))
            assert sorted(await store.find("ann", ["old", "new"])) == ["new"]

    run(work())


def test_use_keeps_an_entry() -> None:
    """In memory by the clock: what was looked at last goes last, and grows old from then on."""
    now = [0.0]

    async def work() -> None:
        store = MemoryEntries(Bounds(2, 100, 10.0), lambda: now[0])
        await store.put(entry("a"))
        await store.put(entry("b", previous="a"))
        now[0] = 8.0
        await store.find("ann", ["a"])
        await store.put(entry("c"))
        assert sorted(await store.find("ann", ["a", "b", "c"])) == ["a", "c"]
        now[0] = 18.5
        assert await store.chain("ann", "a", entries=9, size=99) == []
        assert (len(store), store.size) == (0, 0)

    run(work())


def test_the_loop_never_waits_for_the_store(tmp_path: Path) -> None:
    """The work is done in a thread; who leaves does not stop it; what fails is raised where it was asked for."""

    async def work() -> None:
        thread, gate = StoreThread(str(tmp_path / "h.db"), print), threading.Event()
        threads: list[str] = []

        def wait(history: History) -> None:
            threads.append(threading.current_thread().name)
            gate.wait(10)

        first = asyncio.create_task(thread.run(wait))
        store = SharedEntries(thread, "r", WIDE)
        leaving = asyncio.create_task(store.put(entry("a")))
        await asyncio.sleep(0.05)
        assert not first.done()
        leaving.cancel()
        gate.set()
        await first
        assert threads == ["asides-entries"]
        assert await store.find("ann", ["a"]) == {"a": entry("a")}
        with pytest.raises(ZeroDivisionError):
            await thread.run(lambda history: 1 // 0)
        await store.close()

    run(work())


def test_a_store_that_comes_back(tmp_path: Path) -> None:
    """A connection that was lost is opened again, at once; a store that is away is an error each time."""

    async def work() -> None:
        thread = StoreThread(str(tmp_path / "h.db"), print)
        store = SharedEntries(thread, "r", WIDE)
        await store.put(entry("a"))
        await thread.run(lambda history: setattr(history, "_rows", _lost))
        assert await store.find("ann", ["a"]) == {"a": entry("a")}
        await store.close()
        (tmp_path / "file").write_text("in the way")
        away = SharedEntries(StoreThread(str(tmp_path / "file" / "h.db"), print), "r", WIDE)
        for _ in range(2):
            with pytest.raises(HistoryError):
                await away.find("ann", ["a"])
        await away.close()

    run(work())


def _lost(*_: Any) -> Any:
    raise HistoryError("the server closed the connection", retry=True)


def test_several_at_once(opened: Opener) -> None:
    """All of them are found; what went because of the bounds is counted, and so is what is there."""

    async def work() -> None:
        async with opened(Bounds(3, 100, 1000.0)) as store:
            assert await store.put(entry("a"), entry("b"), entry("a", "bob"))
            assert sorted(await store.find("ann", ["a", "b"])) == ["a", "b"]
            assert (await store.count(), store.evicted) == (3, 0)
            assert not await store.put(entry("c"), entry("d", size=101))
            assert await store.find("ann", ["c", "d"]) == {}
            assert await store.put(entry("c"), entry("d"))
            assert (await store.count(), store.evicted) == (3, 2)

    run(work())


def test_a_thought_is_shared_in_one_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a key for each of its calls it costs one turn of the thread and one statement; every key finds it."""
    runs: list[None] = []
    statements: list[str] = []
    ordinary_run, ordinary_table = StoreThread.run, EntryTable.__init__

    async def counted(self: StoreThread, work: Callable[[History], Any]) -> Any:
        runs.append(None)
        return await ordinary_run(self, work)

    def watched(self: EntryTable, rows: Any, kind: str) -> None:
        def run(sql: str, values: Any) -> Any:
            statements.append(sql.split()[0])
            return rows(sql, values)

        ordinary_table(self, run, kind)

    monkeypatch.setattr(StoreThread, "run", counted)
    monkeypatch.setattr(EntryTable, "__init__", watched)
    keys = tuple(bytes([number]) * 32 for number in (*range(30), 0))

    async def work() -> None:
        cache = ReplayCache(ReplayCacheSettings())
        shared = SharedThoughts(cache, ReplayCacheSettings(), str(tmp_path / "h.db"))
        await shared.put("ann", "m", ReplayEntry("thought", "", (), keys))
        assert (len(runs), statements) == (1, ["INSERT"])
        for key in keys:
            assert await shared.fetch("ann", [key])
        await shared.close()

    run(work())


def test_what_cannot_work_later_is_not_tried_again(tmp_path: Path) -> None:
    """Only a store that was busy or away is asked a second time."""
    tries: list[bool] = []

    async def work() -> None:
        thread = StoreThread(str(tmp_path / "h.db"), print)
        for retry, count in ((False, 1), (True, 2)):
            tries.clear()

            def fail(history: History, retry: bool = retry) -> None:
                tries.append(retry)
                raise HistoryError("no", retry=retry)

            with pytest.raises(HistoryError, match="no"):
                await thread.run(fail)
            assert len(tries) == count
        await thread.close()

    run(work())


def test_a_store_that_fails_costs_nobody_a_reply(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thought that cannot be shared or looked up is a line in the log."""
    monkeypatch.setattr(entry_store, "LAST_TRIES", 0.1)
    shared = SharedThoughts(ReplayCache(ReplayCacheSettings()), ReplayCacheSettings(), str(tmp_path / "no" / "h.db"))
    (tmp_path / "no").write_text("a file, no folder")

    async def work() -> None:
        kept = ReplayEntry("Why.", "", (), (b"k",))
        await shared.put("ann", "m", kept)
        assert await shared.fetch("ann", [b"k"])  # it waits in memory
        assert not await shared.fetch("ann", [b"of another process"])
        await shared.close()

    run(work())
    assert "new ones wait in memory" in caplog.text
    assert "thoughts of other workers cannot be looked up" in caplog.text


def test_nobody_drives_out_who_has_less(opened: Opener) -> None:
    """One client puts as much as it likes, by number or by bytes: only its own go."""

    async def work() -> None:
        for bounds in (Bounds(10, 10_000, 1000.0), Bounds(100, 100, 1000.0)):
            async with opened(bounds) as store:
                for number in range(3):
                    await store.put(entry(f"b{number}", "bob"))
                for number in range(50):
                    await store.put(entry(f"a{number}"))
                assert len(await store.find("bob", ["b0", "b1", "b2"])) == 3
                kept = await store.find("ann", [f"a{number}" for number in range(50)])
                assert sorted(kept) == [f"a{number}" for number in range(43, 50)]
                for number in range(3):
                    assert await store.delete("bob", f"b{number}")
                for number in range(7):
                    assert await store.delete("ann", f"a{number + 43}")

    run(work())


def test_what_waits_for_a_store_that_is_away(tmp_path: Path) -> None:
    """It is found, continued and deleted as if it were there, and there once the store is back."""
    place = tmp_path / "away"
    place.write_text("no folder")  # so that the store below it cannot be opened
    told: list[str] = []

    async def until(holds: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                await asyncio.sleep(0.01)

    async def work() -> None:
        store = SharedEntries(StoreThread(str(place / "h.db"), print), "r", Bounds(4, 1000, 1000.0), told.append)
        assert await store.put(entry("r0"))
        assert await store.put(entry("r1", previous="r0"), entry("r2", previous="r1"))
        assert (store.waiting, store.can_keep, len(told)) == (3, True, 1)
        assert await store.find("ann", ["r0", "r2"]) == {"r0": entry("r0"), "r2": entry("r2", previous="r1")}
        assert [each.id for each in await store.chain("ann", "r2", entries=9, size=999)] == ["r0", "r1", "r2"]
        assert [each.id for each in await store.chain("ann", "r2", entries=1, size=999)] == ["r1", "r2"]
        assert [each.id for each in await store.chain("ann", "r2", entries=9, size=5)] == ["r2"]
        with pytest.raises(HistoryError):
            await store.find("ann", ["r0", "elsewhere"])
        with pytest.raises(HistoryError):
            await store.find("bob", ["r0"])
        await store.put(entry("r3"))
        assert not store.can_keep
        await store.put(entry("r4"))  # promised before
        assert await store.delete("ann", "r3")
        place.unlink()
        place.mkdir()
        await until(lambda: not store.waiting)
        await until(lambda: len(told) == 2)
        assert store.can_keep
        assert [each.id for each in await store.chain("ann", "r2", entries=9, size=999)] == ["r0", "r1", "r2"]
        assert await store.find("ann", ["r3", "r4"]) == {"r4": entry("r4")}
        await store.close()

    run(work())
    assert "away" in told[0]
    assert "4 that waited" in told[1]


def test_what_is_deleted_while_it_is_being_written(tmp_path: Path) -> None:
    """Where the writing fails, it never was in the store, and who deletes it hears nothing of that."""
    (tmp_path / "away").write_text("no folder")

    async def work() -> None:
        store = SharedEntries(StoreThread(str(tmp_path / "away" / "h.db"), print), "r", WIDE)
        await store.put(entry("r0"))
        async with asyncio.timeout(PATIENCE):
            while not store._writing:
                await asyncio.sleep(0)
        assert await store.delete("ann", "r0")
        assert not store.waiting
        await store.close()

    run(work())


def test_a_store_that_stays_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end what waits is lost, and that is said."""
    monkeypatch.setattr(entry_store, "LAST_TRIES", 0.2)
    told: list[str] = []
    (tmp_path / "away").write_text("no folder")

    async def work() -> None:
        store = SharedEntries(StoreThread(str(tmp_path / "away" / "h.db"), print), "r", WIDE, told.append)
        await store.put(entry("r0"))
        await store.close()

    run(work())
    assert told[-1] == "1 that waited for the store are lost"
