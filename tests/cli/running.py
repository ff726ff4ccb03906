"""The command as a real process, over real pipes and a pseudo-terminal. Shared by the tests of the command line."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

COMMAND = (sys.executable, "-m", "asides")
PATIENCE = 30.0
"""Seconds until a test gives up waiting. Long, because machines that test are busy."""


def environment(**changes: str) -> dict[str, str]:
    """The environment for a process: a terminal that knows colours, unless a test says otherwise."""
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return {**kept, "TERM": "xterm", **changes}


def run(*arguments: str | Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run the command to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], input=given, capture_output=True, timeout=PATIENCE, env=environment()
    )


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
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdin=theirs["stdin"],
            stdout=theirs["stdout"],
            stderr=theirs["stderr"],
            env=environment(**changes),
            start_new_session=True,
        )
        for descriptor in set(theirs.values()):
            os.close(descriptor)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
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
