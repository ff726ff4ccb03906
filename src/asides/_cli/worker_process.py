"""A worker: another interpreter that works off tasks, for commands with `--jobs`. Knows nothing of the work itself.

    parent                                   worker: MODULE.work(given, sent)
      how to work, once            ->          sets up, then `serve_tasks`
      a task                       ->          does it
                                   <-          its result
      end of input                 ->          ends

Workers are new interpreters, not forks: a tokenizer's threads do not survive a fork, nor do Arrow's. They have a
process group of their own, so Ctrl-C reaches the parent alone: what is being worked on can be waited for. A worker
may be given a task while it works on another; results come in the order of the tasks.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, NoReturn

from ..errors import Error

START = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from importlib import import_module; "
    "import_module(sys.argv[1]).work(sys.stdin.buffer, sys.stdout.buffer)"
)


class WorkerProcess:
    """One process, and the tasks that it has been given and not finished."""

    def __init__(self, module: str, did: str) -> None:
        """`module` has a function `work`. `did`: its work in words, as in `it counted`. `set_up` must come next."""
        self._did = did
        self.tasks: deque[tuple[int, str]] = deque()
        """The number of each task, and what it is in words."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", START, module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
        )
        self._send(sys.path)
        self._is_set_up = False

    def set_up(self, setup: object) -> None:
        """Tell it how to work. It has imported its module by then, or is doing so."""
        self._is_set_up = True
        self._send(setup)

    def fileno(self) -> int:
        """What can be read when it has finished a task."""
        return self._output.fileno()

    def give(self, number: int, task: object, place: str) -> None:
        """Let it do a task. `place` says to a person where it stands."""
        self.tasks.append((number, place))
        self._send(task)

    def take(self) -> tuple[int, Any]:
        """The number of the task that it finished, and the result."""
        try:
            result = pickle.load(self._output)  # written by a process of our own
        except (EOFError, pickle.UnpicklingError, OSError):
            raise self._death() from None
        return self.tasks.popleft()[0], result

    def end(self) -> None:
        """Let it end, and wait until it did."""
        if self.tasks or not self._is_set_up:
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
        place = self.tasks[0][1] if self.tasks else "nothing yet"
        return Error(f"a worker process {how} while it {self._did} {place}{hint}")


def serve_tasks(given: IO[bytes], sent: IO[bytes], make: Callable[[Any], Callable[[Any], object]]) -> NoReturn:
    """A worker's life: `make` takes the setup and gives what does a task. Ends when its parent is done or gone."""
    with suppress(EOFError, BrokenPipeError):
        do = make(pickle.load(given))
        while True:
            pickle.dump(do(pickle.load(given)), sent, protocol=5)
            sent.flush()
    os._exit(0)  # The end of an interpreter would only try to flush.
