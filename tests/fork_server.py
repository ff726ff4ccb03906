"""A process that has imported the command and forks for each run of it, so that no run pays for a start of its own.

What a test asks for is a process that it knows nothing else of: arguments, environment, working folder, standard
streams, signals, exit code. A fork of an interpreter that has only imported things is that, and it is there in a few
milliseconds instead of the tenths of a second that starting Python and importing the package take. How the command
starts by itself is tested in `cli/test_startup.py` and `gateway/test_process.py`, by every worker that a gateway or a
job starts, and wherever a test starts it from a shell.

    started = start(["-f", "qwen3"], environment, [stdin, stdout, stderr])      as a `subprocess.Popen`
    python -m tests.fork_server 5 serve     serves requests for `asides serve` on the socket that is its descriptor 5
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "COVERAGE_")
"""How the variables begin that an interpreter reads once, when it starts."""

COMMAND = (sys.executable, "-m", "asides")
TAKE_TERMINAL = (
    "import fcntl, os, sys, termios\n"
    "fcntl.ioctl(2 if os.isatty(2) else 0, termios.TIOCSCTTY, 0)\nos.execv(sys.argv[1], sys.argv[1:])\n"
)
MODULES = {
    "": ("asides._cli.filter",),
    "run": ("asides.terminal._browser", "prompt_toolkit.shortcuts"),
    "serve": (
        "asides._gateway.server",
        "uvicorn.lifespan.on",
        "uvicorn.loops.uvloop",
        "uvicorn.protocols.http.httptools_impl",
    ),
}
"""Commands that have a server of their own, since they import much that would only weigh on forks of the others."""
NUMBER = struct.Struct("!i")
"""How a process id and an exit code are sent."""


class Request(NamedTuple):
    """What is to be run."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str
    session: bool
    terminal: bool


# In the process of the tests.


class Forked:
    """A run of the command, with what tests need of `subprocess.Popen`."""

    def __init__(self, status: socket.socket) -> None:
        self._status = status
        weakref.finalize(self, status.close)
        self._taking = threading.Lock()
        self.pid = self._number()
        self.returncode: int | None = None

    def _number(self) -> int:
        found: int = NUMBER.unpack(self._status.recv(NUMBER.size, socket.MSG_WAITALL))[0]
        return found

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended."""
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"run {self.pid}", timeout or 0)
        return code

    def _look(self, seconds: float | None) -> int | None:
        # Another thread may send a signal while this one waits.
        if self.returncode is None and select.select([self._status], [], [], seconds)[0]:
            with self._taking:
                self.returncode = self._number() if self.returncode is None else self.returncode
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended since
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def end(process: Forked | subprocess.Popen[bytes]) -> None:
    """End a run that no test needs any more: at once; under `make coverage` so that it can save what was measured."""
    if any(name.startswith("COVERAGE_") for name in os.environ):
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
    process.kill()
    process.wait()


_starting = threading.Lock()


@cache
def _server(command: str) -> tuple[socket.socket, dict[str, str]]:
    """The connection to a server of this process, started where the first test needs it; and what it read then."""
    ours, theirs = socket.socketpair()
    with theirs:
        # Pipes, so that its standard streams are as those of a run will be. Nobody reads or writes there.
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server", str(theirs.fileno()), command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            cwd=Path(__file__).parents[1],  # the first test that needs it may stand in a folder of its own
        )

    def end() -> None:
        ours.close()
        process.communicate()

    atexit.register(end)
    return ours, _read_at_start(os.environ)


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}


def start(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    descriptors: Sequence[int],
    *,
    folder: Path | str | None = None,
    session: bool = False,
    terminal: bool = False,
) -> Forked | subprocess.Popen[bytes]:
    """Run the command with these descriptors as its standard streams, in this folder or the current one.

    It may have a session of its own, and take the terminal on its standard error or input: Ctrl-C there reaches it.
    Where the environment holds what only a new interpreter reads, there is one.
    """
    with _starting:
        server, read = _server(arguments[0] if arguments and arguments[0] in MODULES else "")
        if _read_at_start(environment) != read:
            return _start_anew(arguments, environment, descriptors, folder, session, terminal)
        ours, theirs = socket.socketpair()
        request = Request(list(arguments), dict(environment), str(folder or os.getcwd()), session, terminal)
        line = json.dumps(request._asdict()).encode() + b"\n"
        with theirs:
            sent = socket.send_fds(server, [line], [*descriptors, theirs.fileno()])
            server.sendall(line[sent:])
            return Forked(ours)


def _start_anew(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    descriptors: Sequence[int],
    folder: Path | str | None,
    session: bool,
    terminal: bool,
) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = descriptors
    return subprocess.Popen(
        [*([sys.executable, "-c", TAKE_TERMINAL] if terminal else []), *COMMAND, *arguments],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=environment,
        cwd=folder,
        start_new_session=session or terminal,
    )


# In the server.


class Server:
    """Forks for every request, and sends the exit code of each fork to who asked for it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._ended, self._wake = os.pipe()
        for descriptor in (self._ended, self._wake):
            os.set_blocking(descriptor, False)
        self._runs: dict[int, int] = {}
        """Where the end of each process is to be reported."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Serve until nobody asks any more. A fork returns from here too: it ends as any program does."""
        while True:
            waiting: list[socket.socket | int] = [self._connection, self._ended]
            ready, _, _ = select.select(waiting, [], [])
            if self._ended in ready:
                os.read(self._ended, 4096)
                self._report()
            if self._connection in ready:
                request, descriptors, _, _ = socket.recv_fds(self._connection, 1 << 16, 4)
                while request and not request.endswith(b"\n"):
                    request += self._connection.recv(1 << 16)
                if not request:
                    return
                if self._fork(descriptors):
                    return _become(Request(**json.loads(request)), descriptors[:3])

    def _fork(self, descriptors: list[int]) -> bool:
        """Whether this is the fork."""
        *streams, status = descriptors
        if not (process := os.fork()):
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for descriptor in (self._ended, self._wake, *self._runs.values(), status):
                os.close(descriptor)
            self._connection.close()
            return True
        for descriptor in streams:
            os.close(descriptor)
        self._runs[process] = status
        os.write(status, NUMBER.pack(process))
        return False

    def _report(self) -> None:
        for process, status in list(self._runs.items()):
            ended, code = os.waitpid(process, os.WNOHANG)
            if ended:
                del self._runs[process]
                with suppress(BrokenPipeError):  # nobody waits for it any more
                    os.write(status, NUMBER.pack(os.waitstatus_to_exitcode(code)))
                os.close(status)


def _become(request: Request, descriptors: list[int]) -> None:
    """Be what was asked for, up to the exit code."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if request.session or request.terminal:
        os.setsid()
    if request.terminal:
        import fcntl
        import termios

        fcntl.ioctl(2 if os.isatty(2) else 0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    os.chdir(request.folder)
    _open_streams()
    sys.argv[1:] = request.arguments
    try:
        code = import_module("asides._cli").main()
    except SystemExit as usage:
        code = usage.code
    _codes.append(code)
    sys.exit(code)


def _open_streams() -> None:
    """Open the standard streams as a new interpreter does: what is a terminal is written line by line."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        before = getattr(sys, name)
        raw = os.fdopen(number, "wb" if number else "rb", closefd=False)
        lines = raw.isatty() or before.line_buffering
        stream = io.TextIOWrapper(raw, before.encoding, before.errors, before.newlines, line_buffering=lines)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


_codes: list[object] = []
"""The exit code of this run, once it is known."""


def _leave() -> None:
    """End here, when all is done that an interpreter does at its end except for freeing its memory bit by bit.

    That would make each fork copy what it shares. Where not all can be written, it ends as it would have.
    """
    if _codes and isinstance(_codes[0], int):
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_codes[0])


def _preload(command: str) -> None:
    from asides._cli import COMMANDS, command_module

    for name in COMMANDS:
        command_module(name)
    for name in MODULES[command]:
        import_module(name)
    import_module("asides").formats()  # the modules of all families


if __name__ == "__main__":
    atexit.register(_leave)  # the first is the last to be called
    _preload(sys.argv[2])
    gc.freeze()  # looking for garbage in what all forks share would make each copy it
    with socket.socket(fileno=int(sys.argv[1])) as listening:
        Server(listening).serve()
