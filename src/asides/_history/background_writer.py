"""Keeping in the background: a queue that never blocks who puts into it, and a thread that writes. Knows no stream."""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from ..errors import Error
from .errors import HistoryError
from .records import Reply
from .reply_filter import ReplyFilter
from .results import PurgeProgress
from .store import History

BATCH = 200
"""Replies in one transaction at most."""
GATHER = 0.5
"""Seconds to wait for more after the first reply: one transaction for many costs little more than for one.

Of 64 replies in a second, each took 0.4 ms of the processor with 0.1 s, and 0.25 ms with 0.5 s.
"""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
PURGE_EVERY = 3600.0
"""Seconds between two looks for replies that are too old."""


class BackgroundWriter:
    """Writes replies to a history from a thread of its own.

    A store that fails is tried again, with pauses of up to 5 seconds, and nothing that waits is given up for it. But
    the queue is bounded: while it is full, new replies are dropped, and counted.

    With `keep_days` it deletes replies that are older, at once and every hour, in small steps between which it writes.
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
        self.written = 0
        """Replies that are in the store, those included that had been there already."""
        self.dropped = 0
        """Replies that were given up."""
        self.purged = 0
        """Replies that were deleted because they were too old."""
        self.failure = ""
        """What the store said while it fails; empty while it works."""
        self._store = store
        self._capacity = capacity
        self._most = characters
        self._warn = warn
        self._queue: deque[Reply] = deque()
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
        """Replies that are not written yet."""
        return len(self._queue) + self._writing

    def put(self, reply: Reply) -> bool:
        """Put a reply into the queue. Never waits and never fails; False when it was dropped."""
        size = reply.size
        with self._lock:
            room = len(self._queue) < self._capacity and (not self._queue or self._characters + size <= self._most)
            taken = room and not self._closing.is_set()
            if taken:
                self._queue.append(reply)
                self._characters += size
            else:
                self.dropped += 1
            first_dropped = not room and not self._full
            self._full = not room
            if taken and self._thread is None:
                self._start()
        if first_dropped:
            self._report("history: the queue is full, so replies are not kept until the store has caught up")
        self._wake.set()
        return taken

    def close(self, timeout: float = 10.0) -> None:
        """Write what waits. What is not written when the time is over is dropped."""
        with self._lock:
            self._deadline = time.monotonic() + timeout
            self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout + 1)
            atexit.unregister(self.close)
            self._thread = None
            with self._lock:
                lost = self.waiting
                self._queue.clear()
                self._writing = 0
                self.dropped += lost
            if lost:
                self._report(f"history: {lost} replies were not kept: {self.failure or 'there was no time left'}")

    def _start(self) -> None:
        # A daemon, so that a store that hangs cannot keep the program; without `close` the exit still writes.
        self._thread = threading.Thread(target=self._run, name="asides-history", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def _run(self) -> None:
        writer = _StoreConnection(self._store, self._report)
        try:
            while True:
                # Asked before writing: what was put into the queue before it closed must not be left there.
                last = self._closing.is_set()
                if not self._write_all(writer) or last:
                    return
                if time.monotonic() >= self._next_purge:
                    self._purge(writer)
                    continue  # something may have come meanwhile
                if self._wake.wait(self._until_purge()):
                    self._closing.wait(GATHER)
        finally:
            writer.close()

    def _until_purge(self) -> float | None:
        """Seconds until it is time to look for replies that are too old; None for never."""
        return max(0.0, self._next_purge - time.monotonic()) if self._keep_days else None

    def _purge(self, writer: _StoreConnection) -> None:
        """Delete what is too old. Whatever waits to be written goes first, between any two steps."""
        self._next_purge = time.monotonic() + PURGE_EVERY
        try:
            deleted = 0
            for step in writer.purge(ReplyFilter(until=datetime.now(UTC) - timedelta(days=self._keep_days))):
                self.purged += step.replies - deleted
                deleted = step.replies
                self._to_compact = self._to_compact or deleted > 0
                if self._closing.is_set() or not self._write_all(writer):
                    return
            if self._to_compact:
                writer.compact()
                self._to_compact = False
        except HistoryError as error:
            writer.close()
            self._report(f"history: replies older than {self._keep_days} days were not all deleted: {error}")

    def _write_all(self, writer: _StoreConnection) -> bool:
        """Write what waits. False when the time to do so is over."""
        self._wake.clear()
        while batch := self._take():
            if not self._write(writer, batch):
                return False
        return True

    def _take(self) -> list[Reply]:
        with self._lock:
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            self._characters -= sum(reply.size for reply in batch)
            self._writing = len(batch)
            return batch

    def _write(self, writer: _StoreConnection, batch: list[Reply]) -> bool:
        """Write a batch, however often it takes. False when the time to do so is over."""
        pause = FIRST_PAUSE
        while True:
            try:
                refused = writer.write(batch)
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
        for words in refused:
            self._report(f"history: a reply was not kept: {words}")
        if self.failure:
            self.failure = ""
            self._report("history: writing works again")
        return True

    def _pause(self, seconds: float) -> None:
        if self._closing.is_set():
            time.sleep(max(0.0, min(FIRST_PAUSE, self._deadline - time.monotonic())))
        else:
            self._closing.wait(seconds)

    def _report(self, words: str) -> None:
        if self._warn is not None:
            self._warn(words)


class _StoreConnection:
    """The store as the thread sees it: opened when first needed, and again after a failure."""

    def __init__(self, store: str, warn: Callable[[str], None]) -> None:
        self._store = store
        self._warn = warn
        self._warned: set[str] = set()
        self._history: History | None = None

    def write(self, batch: list[Reply]) -> list[str]:
        """Write a batch. Returns why each reply was refused that can never be written; raises what may pass."""
        try:
            self._add(batch)
            return []
        except HistoryError as error:
            if error.retry:
                self.close()
                raise
        refused = []
        for reply in batch:
            try:
                self._add([reply])
            except HistoryError as error:
                if error.retry:
                    self.close()
                    raise
                refused.append(str(error))
        return refused

    def purge(self, where: ReplyFilter) -> Iterator[PurgeProgress]:
        """Delete replies, step by step, where there is a store."""
        yield from self._opened().purge(where)

    def compact(self) -> None:
        """Make what was deleted unreadable."""
        self._opened().compact()

    def close(self) -> None:
        """Let go of the store, whatever state it is in."""
        history, self._history = self._history, None
        if history is not None:
            # What was committed is in the store; there is nothing left to lose.
            with suppress(HistoryError):
                history.close()

    def _opened(self) -> History:
        if self._history is None:
            from . import open

            try:
                self._history = open(self._store)
            except Error as error:
                # Whatever it is, it is not the reply's fault, and it can be mended while we wait.
                raise HistoryError(str(error), retry=True) from error
            for warning in self._history.warnings:
                if warning not in self._warned:
                    self._warned.add(warning)
                    self._warn(f"history: {warning}")
        return self._history

    def _add(self, batch: list[Reply]) -> None:
        history = self._opened()
        try:
            history.add(batch)
        except HistoryError:
            raise
        except Exception as error:  # The thread must outlive any reply.
            raise HistoryError(f"{type(error).__name__}: {error}") from error
