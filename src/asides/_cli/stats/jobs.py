"""`asides stats --jobs N`: lines of traces counted by several processes, with the same result as by one.

This process reads, splits into lines and hands out batches of them; workers count a batch each and send back what they
counted (`worker_process`), which is merged in the order of the file. So it does not matter where the lines come from, a
pipe can be shared out as a file can, and nothing depends on which worker was faster. What few lines there are in all is
counted here, and no worker is started. At Ctrl-C, batches that are being counted are waited for, and no more are handed
out.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import IO, Any

from ...terminal._progress import Progress
from ..inputs.rows import InputRow
from ..worker_process import WorkerProcess, serve_tasks
from .read import Counted, Counting

BATCH = 1_000_000
"""Bytes of lines that a worker gets at once: some 40 ms of work, beside which starting and merging weigh nothing."""
ROW = 4_000
"""What a row of a table counts, which has no bytes of its own."""
AHEAD = 4
"""Batches for each worker that may be counted before an earlier one: what is kept while one worker is slow."""
Line = tuple[InputRow, str, str]
"""A row, its file and its place."""


class Jobs:
    """Hands out lines to at most `count` workers, and merges what they counted in the order of the lines."""

    def __init__(self, count: int, setup: dict[str, Any], counting: Counting, progress: Progress) -> None:
        self._count = count
        self._setup = setup
        self._counting = counting
        self._progress = progress
        self._lines: list[Line] = []
        self._size = 0
        self._workers: list[WorkerProcess] = []
        self._counted: dict[int, Counted] = {}
        self._given = self._merged = 0

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers:
            worker.end()

    def add(self, row: InputRow, path: str, place: str) -> None:
        """Have a row counted, after all before it."""
        if self._size >= BATCH:
            self._hand_out()
        self._lines.append((row, path, place))
        self._size += len(row.data) or row.size or ROW

    def finish(self) -> None:
        """Have everything counted and merged: what is counted here next comes after it."""
        if self._workers:
            self._hand_out()
            while self._merged < self._given:
                self._wait()
        else:
            count_lines(self._counting, self._lines, self._show)
            self._lines, self._size = [], 0

    def _hand_out(self) -> None:
        if not self._lines:
            return
        while (worker := self._free()) is None:
            self._wait()
        place = " to ".join(place for _, _, place in (self._lines[0], self._lines[-1]))
        worker.give(self._given, self._lines, place)
        self._given += 1
        self._lines, self._size = [], 0

    def _free(self) -> WorkerProcess | None:
        if self._given - self._merged >= AHEAD * self._count:
            return None
        for worker in self._workers:
            if not worker.tasks:
                return worker
        if len(self._workers) == self._count:
            return None
        worker = WorkerProcess("asides._cli.stats.jobs", "counted")
        worker.set_up(self._setup)
        self._workers.append(worker)
        return worker

    def _wait(self) -> None:
        """Take what was counted, wait for it if need be, and merge what is next."""
        ready: list[WorkerProcess] = select.select([worker for worker in self._workers if worker.tasks], [], [])[0]
        for worker in ready:
            number, counted = worker.take()
            assert isinstance(counted, Counted)
            self._counted[number] = counted
        while self._merged in self._counted:
            self._counting.merge(self._counted.pop(self._merged))
            self._merged += 1
        self._show()

    def _show(self) -> None:
        self._counting.show(self._progress)


def count_lines(counting: Counting, lines: list[Line], show: Callable[[], object] | None = None) -> None:
    """Count lines."""
    for row, path, place in lines:
        counting.count_row(row, path, place)
        if show is not None:
            show()


def work(given: IO[bytes], sent: IO[bytes]) -> None:
    """A worker's life."""
    serve_tasks(given, sent, _counter)


def _counter(setup: dict[str, Any]) -> Callable[[list[Line]], Counted]:
    counting = Counting(**setup)

    def count(lines: list[Line]) -> Counted:
        counting.clear()
        count_lines(counting, lines)
        return counting.counted()

    return count
