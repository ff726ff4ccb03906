"""`asides stats --jobs N`: lines of traces counted by several processes, with the same result as by one.

This process reads, splits into lines and hands out batches of them; workers count a batch each and send back what they
counted, which is merged in the order of the file. So it does not matter where the lines come from, a pipe can be shared
out as a file can, and nothing depends on which worker was faster. What few lines there are in all is counted here, and
no worker is started.

    parent                                   worker
      how to count, once           ->          makes its `Counting`
      a batch of lines             ->          counts it
                                   <-          what it counted
      end of input                 ->          ends

Workers are new interpreters, not forks: a tokenizer's threads do not survive a fork. They have a process group of their
own, so Ctrl-C reaches this process alone: batches that are being counted are waited for, and no more are handed out.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from ...errors import Error
from ...terminal.progress import Progress
from .read import Counted, Counting

BATCH = 1_000_000
"""Bytes of lines that a worker gets at once: some 40 ms of work, beside which starting and merging weigh nothing."""
AHEAD = 4
"""Batches for each worker that may be counted before an earlier one: what is kept while one worker is slow."""
START = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from asides._cli.stats.jobs import work; work(sys.stdin.buffer, sys.stdout.buffer)"
)


Line = tuple[bytes, str, int]
"""A line, its file and its number."""


class Worker:
    """One process, and the number of the batch that it counts; None while it waits for one."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self.batch: int | None = None
        self.place = ""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
        )
        self._send(sys.path)
        self._send(setup)

    def fileno(self) -> int:
        """What can be read when it has counted its batch."""
        return self._output.fileno()

    def give(self, number: int, lines: list[Line]) -> None:
        """Let it count a batch."""
        self.batch = number
        self.place = " to ".join(f"{path}:{line}" for _, path, line in (lines[0], lines[-1]))
        self._send(lines)

    def take(self) -> Counted:
        """What it counted."""
        try:
            counted = pickle.load(self._output)  # written by a process of our own
        except (EOFError, pickle.UnpicklingError, OSError):
            raise self._death() from None
        self.batch = None
        assert isinstance(counted, Counted)
        return counted

    def end(self) -> None:
        """Let it end, and wait until it did."""
        if self.batch is not None:
            self._process.kill()
        with suppress(OSError):  # It may be dead; what it did not read is of no use.
            self._input.close()
        self._output.close()
        self._process.wait()

    @property
    def _input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _send(self, value: object) -> None:
        try:
            pickle.dump(value, self._input, protocol=5)
            self._input.flush()
        except OSError:
            raise self._death() from None

    def _death(self) -> Error:
        code = self._process.wait()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        hint = "; out of memory? fewer --jobs need less" if code == -9 else ""
        return Error(f"a worker process {how} while it counted {self.place or 'nothing yet'}{hint}")


class Jobs:
    """Hands out lines to at most `count` workers, and merges what they counted in the order of the lines."""

    def __init__(self, count: int, setup: dict[str, Any], counting: Counting, progress: Progress) -> None:
        self._count = count
        self._setup = setup
        self._counting = counting
        self._progress = progress
        self._lines: list[Line] = []
        self._size = 0
        self._workers: list[Worker] = []
        self._counted: dict[int, Counted] = {}
        self._given = self._merged = 0

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers:
            worker.end()

    def add(self, line: bytes, path: str, number: int) -> None:
        """Have a line counted, after all before it."""
        if self._size >= BATCH:
            self._hand_out()
        self._lines.append((line, path, number))
        self._size += len(line)

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
        worker.give(self._given, self._lines)
        self._given += 1
        self._lines, self._size = [], 0

    def _free(self) -> Worker | None:
        if self._given - self._merged >= AHEAD * self._count:
            return None
        for worker in self._workers:
            if worker.batch is None:
                return worker
        if len(self._workers) == self._count:
            return None
        self._workers.append(Worker(self._setup))
        return self._workers[-1]

    def _wait(self) -> None:
        """Take what was counted, wait for it if need be, and merge what is next."""
        busy = {worker: worker.batch for worker in self._workers if worker.batch is not None}
        ready: list[Worker] = select.select(list(busy), [], [])[0]
        for worker in ready:
            self._counted[busy[worker]] = worker.take()
        while self._merged in self._counted:
            self._counting.merge(self._counted.pop(self._merged))
            self._merged += 1
        self._show()

    def _show(self) -> None:
        self._counting.show(self._progress)


def count_lines(counting: Counting, lines: list[Line], show: Callable[[], object] | None = None) -> None:
    """Count lines."""
    for line, path, number in lines:
        counting.count_line(line, path, f"{path}:{number}")
        if show is not None:
            show()


def work(given: IO[bytes], sent: IO[bytes]) -> None:
    """A worker's life."""
    try:
        counting = Counting(**pickle.load(given))
        while True:
            lines = pickle.load(given)
            counting.clear()
            count_lines(counting, lines)
            pickle.dump(counting.counted(), sent, protocol=5)
            sent.flush()
    except (EOFError, BrokenPipeError):
        os._exit(0)  # Whoever started this is done or gone; the end of an interpreter would only try to flush.
