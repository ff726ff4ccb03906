"""The processes of a job of `asides batch --jobs N`: started early, given a task as soon as they are done with one.

What the parent does alone is what does not scale, so nothing waits for it: a worker has its next task before the parent
looks at what the last one came to, and the processes are started before the job is planned, because both sides begin by
importing for a third of a second. Imports nothing of Arrow, for that reason.
"""

from __future__ import annotations

import select
from collections.abc import Callable

from ..worker_process import WorkerProcess

POLL = 0.2
"""Seconds after which a Ctrl-C is noticed at the latest."""
Task = tuple[int, object, str]
"""A task's number, the task, and what it is in words."""


class RangeWorkers:
    """At most `most` processes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._idle: list[WorkerProcess] = []
        """Started, and not yet told how to work."""
        self._workers: list[WorkerProcess] = []

    def start(self, count: int) -> None:
        """Start as many already: there will be work for so many."""
        self._idle += [self._new() for _ in range(min(count, self._most))]

    def run(
        self,
        setup: object,
        next_task: Callable[[], Task | None],
        done: Callable[[int, object], None],
        meanwhile: Callable[[], bool],
    ) -> None:
        """Have all tasks done. `meanwhile` does some of what this process has to do, and returns whether it did any."""
        while True:
            busy = [worker for worker in self._workers if worker.tasks]
            while len(busy) < self._most and (task := next_task()) is not None:
                worker = self._free(setup)
                worker.give(*task)
                busy.append(worker)
            if not busy:
                return
            wait = 0.0 if meanwhile() else POLL
            ready: list[WorkerProcess] = select.select(busy, [], [], wait)[0]
            for worker in ready:
                done(*worker.take())

    def _free(self, setup: object) -> WorkerProcess:
        for worker in self._workers:
            if not worker.tasks:
                return worker
        worker = self._idle.pop() if self._idle else self._new()
        worker.set_up(setup)
        self._workers.append(worker)
        return worker

    def _new(self) -> WorkerProcess:
        return WorkerProcess("asides._cli.batch.job", "split")

    def end(self) -> None:
        """Let all end, and wait until they did."""
        for worker in [*self._workers, *self._idle]:
            worker.end()
        self._workers, self._idle = [], []
