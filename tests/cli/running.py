"""The command as a real process, over real pipes and pseudo-terminals. Shared by the tests of the command line."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from tests.fork_server import COMMAND as COMMAND
from tests.fork_server import end, start
from tests.terminal.emulator import Emulator
from tests.waiting import PATIENCE


def environment(**changes: str) -> dict[str, str]:
    """The environment for a process: a terminal that knows colours, unless a test says otherwise."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    return {**kept, "TERM": "xterm", **changes}


def unmeasured(**changes: str) -> dict[str, str]:
    """The same, without what makes a process measure itself under `make coverage`.

    To measure, a process imports what the command does not, takes the first free descriptor, and writes a file at its
    end. So a test of what is imported, of a closed stream or of a full disk would see that instead of the command.
    """
    return {name: value for name, value in environment(**changes).items() if not name.startswith("COVERAGE_")}


def run(*arguments: str | Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run the command to its end, in a process that was forked for it."""
    stdin, stdout, stderr = (os.pipe() for _ in range(3))
    words = [str(argument) for argument in arguments]
    process = start(words, environment(), [stdin[0], stdout[1], stderr[1]])
    for descriptor in (stdin[0], stdout[1], stderr[1]):
        os.close(descriptor)
    with ThreadPoolExecutor(3) as threads:
        threads.submit(_write_all, stdin[1], given)
        output, errors = threads.map(_read_all, (stdout[0], stderr[0]))
    return subprocess.CompletedProcess(words, process.wait(PATIENCE), output, errors)


def _write_all(descriptor: int, data: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(descriptor, "wb", buffering=0) as pipe:
        pipe.write(data)


def _read_all(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as pipe:
        return pipe.read()


class OnScreen:
    """The command on a terminal of its own, as a shell would start it, and what a person sees there.

    Standard input is the terminal too, unless something is given to read from.
    """

    def __init__(
        self, *arguments: str | Path, columns: int = 80, rows: int = 24, stdin: int | None = None, **changes: str
    ) -> None:
        self.emulator = Emulator(columns, rows)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._ours, theirs = pty.openpty()
        self.resize(columns, rows)
        streams = [theirs if stdin is None else stdin, theirs, theirs]
        self.process = start([*map(str, arguments)], environment(**changes), streams, terminal=True)
        os.close(theirs)

    def __enter__(self) -> OnScreen:
        return self

    def __exit__(self, *error: object) -> None:
        end(self.process)
        os.close(self._ours)

    def resize(self, columns: int, rows: int = 24) -> None:
        """Make the window another size; what it shows is laid out anew by the program."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: str) -> None:
        """Keys, or what a terminal sends for a click."""
        os.write(self._ours, keys.encode())

    def click(self, column: int, row: int) -> None:
        """Press and release the left button on a cell, counted from 0, as terminals tell it."""
        self.press(f"\x1b[<0;{column + 1};{row + 1}M\x1b[<0;{column + 1};{row + 1}m")

    def until(self, seen: Callable[[Emulator], bool]) -> Emulator:
        """The screen, as soon as it is as wanted."""
        deadline = time.monotonic() + PATIENCE
        while not seen(self.emulator):
            assert self._take(deadline), f"ended with {self.emulator.lines}"
        return self.emulator

    def until_shows(self, words: str) -> Emulator:
        """The screen, as soon as these words are on it."""
        return self.until(lambda screen: any(words in line for line in screen.lines))

    def until_glimpsed(self, words: str) -> list[str]:
        """The lines of the screen when these words were first on it, though they may have left it since."""
        deadline = time.monotonic() + PATIENCE
        glimpsed: list[list[str]] = []

        def look() -> None:
            if not glimpsed and any(words in line for line in self.emulator.lines):
                glimpsed.append(list(self.emulator.lines))

        while not glimpsed:
            assert self._take(deadline, look), f"ended with {self.emulator.lines}"
        return glimpsed[0]

    def until_not(self, words: str) -> Emulator:
        """The screen, as soon as these words have left it."""
        return self.until(lambda screen: not any(words in line for line in screen.lines))

    def end(self) -> int:
        """Watch to the end; the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._take(deadline):
            pass
        return self.process.wait(PATIENCE)

    def _take(self, deadline: float, look: Callable[[], None] | None = None) -> bool:
        """Show what is written next, and `look` behind each of its lines; whether there was anything."""
        ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"nothing more was written in time; the screen is {self.emulator.lines}"
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # how a terminal says that its other end is closed
            return False
        written = self._decoder.decode(data)
        for piece in re.split(r"(?<=[\r\n])", written) if look else [written]:
            self.emulator.write(piece)
            if look:
                look()
        if b"\x1b[6n" in data:  # where is the cursor?
            column, row = self.emulator.cursor
            self.press(f"\x1b[{row + 1};{column + 1}R")
        return bool(data)


class Running:
    """The command while it runs. Each standard stream is a pipe, or a terminal where asked for."""

    def __init__(self, *arguments: str | Path, terminals: str = "", **changes: str) -> None:
        self._opened: list[int] = []
        ours: dict[str, int] = {}
        theirs: dict[str, int] = {}
        shared = pty.openpty() if terminals else None
        for name in ("stdin", "stdout", "stderr"):
            if shared is not None and name in terminals.split():
                ours[name], theirs[name] = shared
            else:
                reading, writing = os.pipe()
                ours[name], theirs[name] = (writing, reading) if name == "stdin" else (reading, writing)
        self.stdin, self.stdout, self.stderr = ours["stdin"], ours["stdout"], ours["stderr"]
        self._opened = list(ours.values())
        streams = [theirs[name] for name in ("stdin", "stdout", "stderr")]
        self.process = start([*map(str, arguments)], environment(**changes), streams, session=True)
        for descriptor in set(theirs.values()):
            os.close(descriptor)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *error: object) -> None:
        end(self.process)
        for descriptor in set(self._opened):
            os.close(descriptor)

    def write(self, data: bytes) -> None:
        """Give the process something to read."""
        os.write(self.stdin, data)

    def close(self, descriptor: int) -> None:
        """Close our end of a pipe."""
        self._opened.remove(descriptor)
        os.close(descriptor)

    def read_until(self, descriptor: int, wanted: bytes) -> bytes:
        """What the process writes, up to when it has written this."""
        read = b""
        deadline = time.monotonic() + PATIENCE
        while wanted not in read:
            piece = self._read(descriptor, deadline)
            assert piece, f"ended with {read!r} before {wanted!r} came"
            read += piece
        return read

    def read_rest(self, descriptor: int) -> bytes:
        """What the process writes until it closes its end."""
        read = b""
        deadline = time.monotonic() + PATIENCE
        while piece := self._read(descriptor, deadline):
            read += piece
        return read

    def wait(self) -> int:
        """The exit code."""
        return self.process.wait(PATIENCE)

    def _read(self, descriptor: int, deadline: float) -> bytes:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, "nothing more was written in time"
        try:
            return os.read(descriptor, 65536)
        except OSError:  # how a terminal says that its other end is closed
            return b""
