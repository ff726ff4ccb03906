"""A process that has imported the command and forks for each run of it, so that no run pays for a start of its own.

What a test asks for is a process that it knows nothing else of: arguments, environment, working folder, pipes, exit
code. A fork of an interpreter that has only imported things is that, and it is there in a few milliseconds instead of
the tenth of a second that starting Python and importing the package take. How the command starts by itself is tested
in `test_startup.py`, and wherever a test starts it with signals, a terminal or a shell.

    python -m tests.cli.fork_server 5       serves requests on the socket that is its descriptor 5
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import socket
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

# In the process of the tests.


@cache
def _server() -> socket.socket:
    """The connection to the server of this process, started where the first test needs it."""
    ours, theirs = socket.socketpair()
    with theirs:
        # Pipes, so that its standard streams are as those of a run will be. Nobody reads or writes there.
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.fork_server", str(theirs.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            cwd=Path(__file__).parents[2],  # the first test that needs it may stand in a folder of its own
        )

    def end() -> None:
        ours.close()
        process.communicate()

    atexit.register(end)
    return ours


def start(arguments: list[str], environment: dict[str, str], descriptors: list[int]) -> None:
    """Run the command with these descriptors as its standard streams; `wait` has to follow."""
    request = {"arguments": arguments, "environment": environment, "folder": os.getcwd()}
    line = json.dumps(request).encode() + b"\n"
    sent = socket.send_fds(_server(), [line], descriptors)
    _server().sendall(line[sent:])


def wait(seconds: float) -> int:
    """The exit code of the run."""
    _server().settimeout(seconds)
    return int(_server().recv(64))


# In the server.


def serve(connection: socket.socket) -> None:
    """Fork for every request. A fork returns from here: it ends as any program does."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 3)
        while request and not request.endswith(b"\n"):
            request += connection.recv(1 << 16)
        if not request:
            return
        if not (process := os.fork()):
            connection.close()
            return _become(json.loads(request), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        connection.send(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    """Be what was asked for, up to the exit code."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv[1:] = request["arguments"]
    sys.exit(import_module("asides._cli").main())


if __name__ == "__main__":
    from asides._cli import COMMANDS, FOLDERS

    for name in ("filter", *COMMANDS):
        import_module(f"asides._cli.{name.replace('-', '_')}{'.command' if name in FOLDERS else ''}")
    gc.freeze()  # looking for garbage in what all forks share would make each copy it
    with socket.socket(fileno=int(sys.argv[1])) as listening:
        serve(listening)
