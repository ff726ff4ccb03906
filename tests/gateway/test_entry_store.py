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
                await away.put(entry("a"))
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


def test_a_store_that_fails_costs_nobody_a_reply(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A thought that cannot be shared or looked up is a line in the log."""
    shared = SharedThoughts(ReplayCache(ReplayCacheSettings()), ReplayCacheSettings(), str(tmp_path / "no" / "h.db"))
    (tmp_path / "no").write_text("a file, no folder")

    async def work() -> None:
        kept = ReplayEntry("Why.", "", (), (b"k",))
        await shared.put("ann", "m", kept)
        assert not await shared.fetch("ann", [b"k"])
        await shared.close()

    run(work())
    assert "a thought is not shared with other workers" in caplog.text
    assert "thoughts of other workers cannot be looked up" in caplog.text
