"""Where entries are kept that clients refer to by ids: in this process, or in the history store for several of them.

`EntryStore` is what both offer. An entry (`_history.entries.StoredEntry`) belongs to one client and may go on from an
earlier one. When there are too many, or too many bytes, the client that has most lets go of those that it used longest
ago: nobody drives out who has less. Nothing here knows what is in an entry: stored Responses are one kind, and another
kind is another `EntryStore`.

    entries = SharedEntries(StoreThread("postgresql://…", log.warning), "response", Bounds(10_000, 1 << 26, 30 * DAY))
    await entries.put(StoredEntry(id="resp_2", client="5f…", data=b"{}", previous="resp_1"))
    await entries.chain("5f…", "resp_2", entries=100, size=1 << 20)

A `StoreThread` does the work of the database in a thread of its own, so that the event loop never waits for it. All
kinds of a process can share one. While the database is away entries wait in memory, within the same bounds, and are
found there; they are written as soon as it is back. An entry is committed before `put` returns unless it has to wait.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar

from .._history import History, HistoryError
from .._history.background_writer import FIRST_PAUSE, StoreConnection
from .._history.entries import StoredEntry
from .shares import Shares

T = TypeVar("T")
DAY = 24 * 3600.0
MICROSECONDS = 1_000_000
LONGEST_PAUSE = 1.0
"""Seconds between two tries of a store that is away: less than history waits, because others look for these."""
BATCH = 100
"""Entries that waited and are written at once."""
LAST_TRIES = 10.0
"""Seconds for which what waits is tried to be written when nothing more will be asked."""
SHARE = 100
"""What is added between two evictions is at most this part of the bounds."""


class Bounds(NamedTuple):
    """How much is kept."""

    entries: int
    size: int
    """Bytes of all data together."""
    seconds: float
    """Since the last use."""


class EntryStore(Protocol):
    """A bounded store of entries. A `HistoryError` says that it cannot be reached."""

    evicted: int
    """How many have gone because of the bounds."""

    @property
    def waiting(self) -> int:
        """How many wait for a store that is away."""

    @property
    def can_keep(self) -> bool:
        """Whether another entry is sure to be kept: not where the store is away and as much waits as may."""

    async def put(self, *entries: StoredEntry) -> bool:
        """Keep entries, each with an id of its own, at once. False where one alone is larger than the bound."""

    async def count(self) -> int:
        """How many there are."""

    async def find(self, client: str, ids: Sequence[str]) -> dict[str, StoredEntry]:
        """The entries of these ids that the client has; they count as used."""

    async def chain(self, client: str, id: str, *, entries: int, size: int) -> list[StoredEntry]:
        """An entry with all that it goes on from, the first of them first; they count as used.

        Goes no further once there are more entries, or more bytes, than asked for. Empty where there is no such entry;
        where an earlier one is gone, the first in the list has a `previous` all the same.
        """

    async def delete(self, client: str, id: str) -> bool:
        """Delete an entry; False where the client has none of this id."""

    def resize(self, bounds: Bounds) -> None:
        """Have other bounds from now on."""

    async def close(self) -> None:
        """Nothing more will be asked."""


class MemoryEntries:
    """Entries of this process alone, for its one event loop. They are gone when it ends."""

    def __init__(self, bounds: Bounds, clock: Callable[[], float] = time.monotonic) -> None:
        self._bounds = bounds
        self._clock = clock
        self._entries: OrderedDict[tuple[str, str], tuple[float, StoredEntry]] = OrderedDict()
        """When each was used, by client and id, the one used longest ago first."""
        self._shares: Shares[str] = Shares()
        self.evicted = 0
        self.waiting = 0
        self.can_keep = True

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """Bytes of all of them."""
        return self._shares.size

    async def put(self, *entries: StoredEntry) -> bool:
        """Keep entries."""
        for entry in entries:
            await self.delete(entry.client, entry.id)
        if any(entry.size > self._bounds.size for entry in entries):
            return False
        for entry in entries:
            self._entries[entry.client, entry.id] = (self._clock(), entry)
            self._shares.put(entry.client, entry.id, entry.size)
        self._evict()
        return True

    async def count(self) -> int:
        """How many there are."""
        self._evict()
        return len(self._entries)

    async def find(self, client: str, ids: Sequence[str]) -> dict[str, StoredEntry]:
        """The entries of these ids that the client has."""
        self._evict()
        return {id: entry for id in ids if (entry := self._use(client, id)) is not None}

    async def chain(self, client: str, id: str, *, entries: int, size: int) -> list[StoredEntry]:
        """An entry with all that it goes on from."""
        self._evict()
        found: list[StoredEntry] = []
        while id and len(found) <= entries and size >= 0 and (entry := self._use(client, id)) is not None:
            found.append(entry)
            id = entry.previous
            size -= entry.size
        return found[::-1]

    async def delete(self, client: str, id: str) -> bool:
        """Delete an entry."""
        self._shares.drop(client, id)
        return self._entries.pop((client, id), None) is not None

    def resize(self, bounds: Bounds) -> None:
        """Have other bounds, and evict what is past them."""
        self._bounds = bounds
        self._evict()

    async def close(self) -> None:
        """Let go of all of them."""
        self._entries.clear()
        self._shares = Shares()

    def _use(self, client: str, id: str) -> StoredEntry | None:
        found = self._entries.get((client, id))
        if found is None:
            return None
        self._entries[client, id] = (self._clock(), found[1])
        self._entries.move_to_end((client, id))
        self._shares.use(client, id)
        return found[1]

    def _evict(self) -> None:
        bounds, oldest = self._bounds, self._clock() - self._bounds.seconds
        while self._entries:
            (client, id), (used, _) = next(iter(self._entries.items()))
            if used >= oldest:
                if self._shares.count <= bounds.entries and self._shares.size <= bounds.size:
                    return
                client, id = self._shares.next_to_go(by_size=self._shares.size > bounds.size)
            del self._entries[client, id]
            self._shares.drop(client, id)
            self.evicted += 1


class StoreThread:
    """A thread with a connection of its own to a history store. It starts with the first work."""

    def __init__(self, store: str, warn: Callable[[str], None]) -> None:
        self._connection = StoreConnection(store, warn)
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def run(self, work: Callable[[History], T]) -> T:
        """Do something with the store, in the thread. Once begun it is done, also when nobody waits for it any more."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def task() -> None:
            try:
                result = self._try_twice(work)
            except BaseException as error:  # whatever it is, it belongs to who waits
                _report(loop, done, done.set_exception, error)
            else:
                _report(loop, done, done.set_result, result)

        if self._thread is None:
            # A daemon, so that a store that hangs cannot keep the process alive.
            self._thread = threading.Thread(target=self._run, name="asides-entries", daemon=True)
            self._thread.start()
        self._work.put(task)
        return await done

    async def close(self, timeout: float = 10.0) -> None:
        """Finish the work that waits, and close the store."""
        if self._thread is not None:
            self._work.put(None)
            await asyncio.to_thread(self._thread.join, timeout)
            self._thread = None

    def _run(self) -> None:
        while (task := self._work.get()) is not None:
            task()
        self._connection.close()

    def _try_twice(self, work: Callable[[History], T]) -> T:
        try:
            return work(self._connection.opened())
        except HistoryError as error:
            # The server may have been restarted, the file replaced: what is open is of no use then.
            self._connection.close()
            if not error.retry:
                raise
        try:
            return work(self._connection.opened())
        except HistoryError:
            self._connection.close()
            raise


def _nobody(message: str) -> None:
    """Nobody is told."""


def _report(
    loop: asyncio.AbstractEventLoop, done: asyncio.Future[T], settle: Callable[[Any], None], result: Any
) -> None:
    """Settle a future of the loop from another thread, unless whoever waited for it has left."""

    def settle_once() -> None:
        if not done.done():
            settle(result)

    with suppress(RuntimeError):  # the loop is closed, at any moment: then nobody waits
        loop.call_soon_threadsafe(settle_once)


class SharedEntries:
    """Entries of one kind in a history store, for every process that has it open."""

    def __init__(self, thread: StoreThread, kind: str, bounds: Bounds, warn: Callable[[str], None] = _nobody) -> None:
        """`warn` is told when the store is away, when it is back, and what was lost with it."""
        self._thread = thread
        self._kind = kind
        self._bounds = bounds
        self._warn = warn
        self._added = 0
        """Entries since the last eviction."""
        self._added_size = 0
        self.evicted = 0
        self._waiting: dict[tuple[str, str], StoredEntry] = {}
        """Those that the store has not got yet, by client and id, the first first."""
        self._waiting_size = 0
        self._writing: frozenset[tuple[str, str]] = frozenset()
        """Those of them that are just being written."""
        self._wrote = False
        """Whether the last try to write them succeeded."""
        self._writer: asyncio.Task[None] | None = None
        """Writes them once the store is back."""

    @property
    def waiting(self) -> int:
        """How many wait for the store."""
        return len(self._waiting)

    @property
    def can_keep(self) -> bool:
        """Whether another entry is sure to be kept."""
        return len(self._waiting) < self._bounds.entries and self._waiting_size < self._bounds.size

    async def put(self, *entries: StoredEntry) -> bool:
        """Keep entries: committed when this returns, in one transaction, so that every other process finds them.

        Where the store is away they wait, and are found by this process alone until it is back. They do so also where
        as many wait as may: who asked before has been promised it.
        """
        if any(entry.size > self._bounds.size for entry in entries):
            return False
        if not self._waiting:  # else it is away, and asking it once more would take time
            try:
                await self._write(entries)
            except HistoryError as error:
                if not error.retry:
                    raise
                if self._writer is None:  # the first of those that were asked at once
                    self._warn(f"{error}; new ones wait in memory until the store is back")
            else:
                return True
        for entry in entries:
            self._forget(entry.client, entry.id)
            self._waiting[entry.client, entry.id] = entry
            self._waiting_size += entry.size
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_waiting())
        return True

    async def _write(self, entries: Sequence[StoredEntry]) -> None:
        bounds = self._bounds

        def work(history: History) -> None:
            table, now = history.entries(self._kind), _now()
            table.put_all(entries, now)
            self._added += len(entries)
            self._added_size += sum(entry.size for entry in entries)
            # Finding the oldest looks at every entry, so it is done once for a hundredth of what may be kept. By so
            # much the bounds may be exceeded.
            if self._added * SHARE >= bounds.entries or self._added_size * SHARE >= bounds.size:
                self._added = self._added_size = 0
                before = now - int(bounds.seconds * MICROSECONDS)
                self.evicted += table.evict(entries=bounds.entries, size=bounds.size, before=before)

        await self._thread.run(work)

    async def _write_waiting(self) -> None:
        """Try again and again until nothing waits."""
        pause, written = FIRST_PAUSE, 0
        while self._waiting:
            await asyncio.sleep(pause)
            batch = list(self._waiting.values())[:BATCH]
            self._writing = frozenset((entry.client, entry.id) for entry in batch)
            try:
                await self._write(batch)
            except HistoryError as error:
                self._wrote, pause = False, min(pause * 2, LONGEST_PAUSE)
                if error.retry:
                    continue
                self._warn(f"{len(batch)} that waited are lost: {error}")
            else:
                self._wrote, pause, written = True, 0.0, written + len(batch)
            finally:
                self._writing = frozenset()
            for entry in batch:
                if self._waiting.get((entry.client, entry.id)) is entry:  # else it was put or deleted meanwhile
                    self._forget(entry.client, entry.id)
        self._writer = None
        self._warn(f"the store is back; {written} that waited are in it")

    def _forget(self, client: str, id: str) -> StoredEntry | None:
        entry = self._waiting.pop((client, id), None)
        self._waiting_size -= entry.size if entry is not None else 0
        return entry

    async def count(self) -> int:
        """How many there are, of all processes."""
        stored = await self._thread.run(lambda history: history.entries(self._kind).count())
        return stored + len(self._waiting)

    async def find(self, client: str, ids: Sequence[str]) -> dict[str, StoredEntry]:
        """The entries of these ids that the client has."""
        found = {id: self._waiting[client, id] for id in ids if (client, id) in self._waiting}
        others = [id for id in ids if id not in found]
        if not others:
            return found
        return found | await self._thread.run(lambda history: history.entries(self._kind).find(client, others, _now()))

    async def chain(self, client: str, id: str, *, entries: int, size: int) -> list[StoredEntry]:
        """An entry with all that it goes on from."""
        last: list[StoredEntry] = []
        while len(last) <= entries and size >= 0 and (entry := self._waiting.get((client, id))) is not None:
            last.append(entry)
            id, size = entry.previous, size - entry.size
        if not id or len(last) > entries or size < 0:
            return last[::-1]
        left = entries - len(last)
        earlier = await self._thread.run(
            lambda history: history.entries(self._kind).chain(client, id, _now(), entries=left, size=size)
        )
        return [*earlier, *reversed(last)]

    async def delete(self, client: str, id: str) -> bool:
        """Delete an entry."""
        being_written = (client, id) in self._writing
        if self._forget(client, id) is not None and not being_written:
            return True
        # The thread does one thing after another: one that is being written is there when this is done, or never was.
        try:
            deleted = await self._thread.run(lambda history: history.entries(self._kind).delete(client, id))
        except HistoryError:
            if being_written and not self._wrote:
                return True
            raise
        return deleted or being_written

    def resize(self, bounds: Bounds) -> None:
        """Have other bounds; what is past them goes with the next entry."""
        self._bounds = bounds

    async def close(self) -> None:
        """Finish the work that waits, and close the store."""
        if self._writer is not None:
            await asyncio.wait([self._writer], timeout=LAST_TRIES)
            self._writer.cancel()
            if self._waiting:
                self._warn(f"{len(self._waiting)} that waited for the store are lost")
        await self._thread.close()


def _now() -> int:
    return int(time.time() * MICROSECONDS)
