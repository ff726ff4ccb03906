"""Writes replies to a history from a thread of its own, so that the gateway never waits for a store.

`BackgroundWriter.put` appends to a bounded queue and never blocks the caller; when the queue is full the new reply is
dropped and counted. The thread takes batches and writes each in one transaction. A store that fails (busy, disk full,
server away) is retried with growing pauses while the queue fills up; a reply that can never be written is refused alone
and does not hold up the rest. Between batches the thread deletes replies that are older than `keep_days`.

    writer = BackgroundWriter(store, warn=print)
    writer.put(reply)         # True, or False where it was dropped
    writer.close()            # writes what is in the queue, for 10 seconds at most
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from ..errors import Error
from .errors import HistoryError
from .records import KeptReply
from .reply_filter import ReplyFilter
from .store import History

BATCH = 200
"""The most replies in one transaction."""
GATHER = 0.5
"""Seconds to wait for more after the first reply: a transaction of many costs little more than one of one.

Of 64 replies in a second, each took 0.4 ms of the processor with 0.1 s, and 0.25 ms with 0.5 s.
"""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
"""Seconds between two tries of a store that fails: doubled each time."""
PURGE_EVERY = 3600.0
"""Seconds between two deletions of replies that are too old."""


class BackgroundWriter:
    """A bounded queue of replies and the thread that writes them to a store.

    `capacity` and `characters` bound the queue; `warn` gets each message for the operator, without a level. With
    `keep_days` the thread deletes older replies, at its start and every hour, in small steps between which it writes.
    The thread starts with the first reply, or at once with `keep_days`.
    """

    def __init__(
        self,
        store: str = "",
        *,
        capacity: int = 10_000,
        characters: int = 64 * 1024 * 1024,
        keep_days: int = 0,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.written: int = 0
        """Replies that are in the store, those included that had been there already."""
        self.dropped: int = 0
        """Replies that were not written: the queue was full, the store refuses them, or `close` ran out of time."""
        self.purged: int = 0
        """Replies that were deleted because they were too old."""
        self.failure: str = ""
        """The error of a store that fails at present; empty while it works."""
        self._store = store
        self._capacity = capacity
        self._most = characters
        self._warn = warn
        self._queue: deque[KeptReply] = deque()
        self._characters = 0
        self._writing = 0
        self._full = False
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._deadline = float("inf")
        self._thread: threading.Thread | None = None
        self._keep_days = keep_days
        self._to_compact = False
        self._next_purge = 0.0 if keep_days else float("inf")
        if keep_days:
            self._start()

    @property
    def waiting(self) -> int:
        """Replies in the queue or in the batch that is being written."""
        return len(self._queue) + self._writing

    def put(self, reply: KeptReply) -> bool:
        """Append a reply to the queue. Never blocks and never raises; False when it was dropped."""
        size = reply.size
        with self._lock:
            # A reply longer than the whole bound is taken when it is alone: it could never be written otherwise.
            fits = len(self._queue) < self._capacity and (not self._queue or self._characters + size <= self._most)
            taken = fits and not self._closing.is_set()
            if taken:
                self._queue.append(reply)
                self._characters += size
            else:
                self.dropped += 1
            first_dropped = not fits and not self._full
            self._full = not fits
            if taken and self._thread is None:
                self._start()
        if first_dropped:
            self._report("history: the queue is full, so new replies are not saved until the store has caught up")
        self._wake.set()
        return taken

    def close(self, timeout: float = 10.0) -> None:
        """Write the queue and stop the thread. What is not written within `timeout` seconds is dropped."""
        with self._lock:
            self._deadline = time.monotonic() + timeout
            self._closing.set()
        self._wake.set()
        if self._thread is not None:
            # A little more than the thread has, so that it ends by itself and its own counts are right.
            self._thread.join(timeout + 1)
            atexit.unregister(self.close)
            self._thread = None
            with self._lock:
                lost = self.waiting
                self._queue.clear()
                self._writing = 0
                self.dropped += lost
            if lost:
                self._report(
                    f"history: {lost} replies were not saved: {self.failure or 'there was no time left to write them'}"
                )

    def _start(self) -> None:
        # A daemon, so that a store that hangs cannot keep the process alive; `atexit` is for who forgets `close`.
        self._thread = threading.Thread(target=self._run, name="asides-history", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def _run(self) -> None:
        store = StoreConnection(self._store, self._report)
        try:
            while True:
                # Read before writing: a reply that was put before `close` must not stay in the queue.
                closing = self._closing.is_set()
                if not self._write_all(store) or closing:
                    return
                if time.monotonic() >= self._next_purge:
                    self._purge(store)
                    continue  # replies may have come meanwhile
                # More replies gather while it waits; on `_closing`, because the end of the process must not wait as
                # long.
                if self._wake.wait(self._until_purge()):
                    self._closing.wait(GATHER)
        finally:
            store.close()

    def _until_purge(self) -> float | None:
        """Seconds until the next deletion; None without `keep_days`."""
        return max(0.0, self._next_purge - time.monotonic()) if self._keep_days else None

    def _purge(self, store: StoreConnection) -> None:
        """Delete what is too old. Between any two steps the queue is written first."""
        self._next_purge = time.monotonic() + PURGE_EVERY
        try:
            deleted = 0
            for step in store.opened().purge(ReplyFilter(until=datetime.now(UTC) - timedelta(days=self._keep_days))):
                self.purged += step.replies - deleted
                deleted = step.replies
                self._to_compact = self._to_compact or deleted > 0
                if self._closing.is_set() or not self._write_all(store):
                    return
            if self._to_compact:
                store.opened().compact()
                self._to_compact = False
        except HistoryError as error:
            store.close()
            self._report(f"history: replies older than {self._keep_days} days were not all deleted: {error}")

    def _write_all(self, store: StoreConnection) -> bool:
        """Write the queue, batch by batch. False when the time that `close` gives is over."""
        # Before the queue is looked at: a reply that is put in between sets it again and is not forgotten.
        self._wake.clear()
        while batch := self._take():
            if not self._write(store, batch):
                return False
        return True

    def _take(self) -> list[KeptReply]:
        with self._lock:
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            self._characters -= sum(reply.size for reply in batch)
            self._writing = len(batch)
            return batch

    def _write(self, store: StoreConnection, batch: list[KeptReply]) -> bool:
        """Write a batch, retrying until the store takes it. False when the time that `close` gives is over."""
        pause = FIRST_PAUSE
        while True:
            try:
                refused = store.write(batch)
            except HistoryError as error:
                if not self.failure:
                    self._report(f"history: {error}; replies wait, and are dropped when the queue is full")
                self.failure = str(error)
            else:
                break
            self._pause(pause)
            if time.monotonic() >= self._deadline:
                return False
            pause = min(pause * 2, LONGEST_PAUSE)
        with self._lock:
            self._writing = 0
            self.written += len(batch) - len(refused)
            self.dropped += len(refused)
        for reason in refused:
            self._report(f"history: a reply was not saved: {reason}")
        if self.failure:
            self.failure = ""
            self._report("history: writing works again")
        return True

    def _pause(self, seconds: float) -> None:
        if self._closing.is_set():
            # `wait` would return at once now, and the loop would spin until the deadline.
            time.sleep(max(0.0, min(FIRST_PAUSE, self._deadline - time.monotonic())))
        else:
            self._closing.wait(seconds)

    def _report(self, message: str) -> None:
        if self._warn is not None:
            self._warn(message)


class StoreConnection:
    """The thread's store: opened when it is first needed, and again after a failure."""

    def __init__(self, store: str, warn: Callable[[str], None]) -> None:
        self._store = store
        self._warn = warn
        self._warned: set[str] = set()
        self._history: History | None = None

    def write(self, batch: list[KeptReply]) -> list[str]:
        """Write a batch. Returns the reasons of replies that can never be written; raises where a retry may help."""
        try:
            self._add(batch)
            return []
        except HistoryError as error:
            if error.retry:
                # Opened again for the next try: the file may have been replaced, the server restarted.
                self.close()
                raise
            if len(batch) == 1:
                return [str(error)]
        # One of them is at fault, so each is tried alone. What is in the store already is not written twice.
        return [reason for reply in batch for reason in self.write([reply])]

    def close(self) -> None:
        """Close the store, whatever state it is in."""
        history, self._history = self._history, None
        if history is not None:
            # What was committed is in the store, so an error here loses nothing.
            with suppress(HistoryError):
                history.close()

    def opened(self) -> History:
        """The store. A `HistoryError` where it cannot be opened, which a retry may help."""
        if self._history is None:
            from . import open

            try:
                self._history = open(self._store)
            except Error as error:
                # Not the reply's fault, and someone may fix it meanwhile: retry.
                raise HistoryError(str(error), retry=True) from error
            for warning in self._history.warnings:
                if warning not in self._warned:
                    self._warned.add(warning)
                    self._warn(f"history: {warning}")
        return self._history

    def _add(self, batch: list[KeptReply]) -> None:
        history = self.opened()
        try:
            history.add(batch)
        except HistoryError:
            raise
        except Exception as error:  # no reply, whatever is in it, may end the thread
            raise HistoryError(f"{type(error).__name__}: {error}") from error
