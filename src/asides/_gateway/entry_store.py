"""Where entries are kept that clients refer to by ids: in this process, or in the history store for several of them.

`EntryStore` is what both offer. An entry (`_history.entries.StoredEntry`) belongs to one client and may go on from an
earlier one; those used longest ago go first when there are too many, or too many bytes. Nothing here knows what is in
an entry: stored Responses are one kind, and another kind is another `EntryStore`.

    entries = SharedEntries(StoreThread("postgresql://…", log.warning), "response", Bounds(10_000, 1 << 26, 30 * DAY))
    await entries.put(StoredEntry(id="resp_2", client="5f…", data=b"{}", previous="resp_1"))
    await entries.chain("5f…", "resp_2", entries=100, size=1 << 20)

A `StoreThread` does the work of the database in a thread of its own, so that the event loop never waits for it. All
kinds of a process can share one.
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
from .._history.background_writer import StoreConnection
from .._history.entries import StoredEntry

T = TypeVar("T")
DAY = 24 * 3600.0
MICROSECONDS = 1_000_000
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
        self.size = 0
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._entries)

    async def put(self, *entries: StoredEntry) -> bool:
        """Keep entries."""
        for entry in entries:
            await self.delete(entry.client, entry.id)
        if any(entry.size > self._bounds.size for entry in entries):
            return False
        for entry in entries:
            self._entries[entry.client, entry.id] = (self._clock(), entry)
            self.size += entry.size
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
        _, entry = self._entries.pop((client, id), (0.0, None))
        if entry is not None:
            self.size -= entry.size
        return entry is not None

    def resize(self, bounds: Bounds) -> None:
        """Have other bounds, and evict what is past them."""
        self._bounds = bounds
        self._evict()

    async def close(self) -> None:
        """Let go of all of them."""
        self._entries.clear()
        self.size = 0

    def _use(self, client: str, id: str) -> StoredEntry | None:
        found = self._entries.get((client, id))
        if found is None:
            return None
        self._entries[client, id] = (self._clock(), found[1])
        self._entries.move_to_end((client, id))
        return found[1]

    def _evict(self) -> None:
        bounds, oldest = self._bounds, self._clock() - self._bounds.seconds
        while self._entries:
            key, (used, entry) = next(iter(self._entries.items()))
            if len(self._entries) <= bounds.entries and self.size <= bounds.size and used >= oldest:
                return
            del self._entries[key]
            self.size -= entry.size
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

    def __init__(self, thread: StoreThread, kind: str, bounds: Bounds) -> None:
        self._thread = thread
        self._kind = kind
        self._bounds = bounds
        self._added = 0
        """Entries since the last eviction."""
        self._added_size = 0
        self.evicted = 0

    async def put(self, *entries: StoredEntry) -> bool:
        """Keep entries: committed when this returns, in one transaction, so that every other process finds them."""
        bounds = self._bounds
        if any(entry.size > bounds.size for entry in entries):
            return False

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
        return True

    async def count(self) -> int:
        """How many there are, of all processes."""
        return await self._thread.run(lambda history: history.entries(self._kind).count())

    async def find(self, client: str, ids: Sequence[str]) -> dict[str, StoredEntry]:
        """The entries of these ids that the client has."""
        return await self._thread.run(lambda history: history.entries(self._kind).find(client, ids, _now()))

    async def chain(self, client: str, id: str, *, entries: int, size: int) -> list[StoredEntry]:
        """An entry with all that it goes on from."""
        return await self._thread.run(
            lambda history: history.entries(self._kind).chain(client, id, _now(), entries=entries, size=size)
        )

    async def delete(self, client: str, id: str) -> bool:
        """Delete an entry."""
        return await self._thread.run(lambda history: history.entries(self._kind).delete(client, id))

    def resize(self, bounds: Bounds) -> None:
        """Have other bounds; what is past them goes with the next entry."""
        self._bounds = bounds

    async def close(self) -> None:
        """Finish the work that waits, and close the store."""
        await self._thread.close()


def _now() -> int:
    return int(time.time() * MICROSECONDS)
