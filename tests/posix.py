"""Tests that need a POSIX system: terminals, signals, forks. On Windows they are skipped, and say why.

`needs_posix` marks a test. A file that imports what only POSIX systems have (`fcntl`, `pty`, ...) needs no mark: where
that cannot be imported, `conftest.py` skips the file.

    python -m tests.posix -m asides --hide       asides, or any module, as on a system that is none

The command runs a module with what Windows lacks taken away: modules, functions, signals, `select` for anything but
sockets; and `sys.platform` is "win32". It shows that nothing of that is needed. It does not show what Windows does of
its own: consoles, code pages, line ends, how its pipes fail, paths. Only Windows shows that.
"""

from __future__ import annotations

import io
import os
import runpy
import select
import signal
import socket
import ssl
import sys
import sysconfig
from collections.abc import Iterable
from importlib import import_module
from importlib.abc import MetaPathFinder
from typing import Any

import pytest

POSIX = "needs a POSIX system"
needs_posix = pytest.mark.skipif(sys.platform == "win32", reason=POSIX)

MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty", "uvloop")
FUNCTIONS = (
    (os, "chown fchmod fork forkpty getgid getuid geteuid killpg mkfifo openpty set_blocking setsid sched_getaffinity"),
    (os, "O_NOCTTY O_NONBLOCK O_CLOEXEC"),
    (signal, "SIGHUP SIGKILL SIGPIPE SIGXFSZ SIGSTOP SIGCONT SIGTSTP SIGUSR1 SIGUSR2 SIGWINCH SIGALRM SIGCHLD"),
    (signal, "pause pthread_kill pthread_sigmask SIG_BLOCK set_wakeup_fd"),
    (select, "poll epoll"),
    (socket, "AF_UNIX SO_REUSEPORT send_fds recv_fds"),
)
IMPORTED = [
    "asyncio",
    "concurrent.futures.thread",
    "email.message",
    "http.client",
    "importlib.metadata",
    "json",
    "logging.handlers",
    "multiprocessing.connection",
    "pathlib",
    "runpy",
    "selectors",
    "shutil",
    "ssl",
    "subprocess",
    "tempfile",
    "unittest.mock",
    "uuid",
    "_pytest.capture",
    "click",
    "msgspec",
    "psutil",
]
"""What looks at the system while it is imported. It is not ours, so it is imported as on this one."""


class _Missing(MetaPathFinder):
    """Makes importing a module fail as where there is none."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def leave_posix() -> None:
    """Take away what Windows lacks, from this process and for good."""
    for name in IMPORTED:
        try:
            import_module(name)
        except ImportError:
            continue
    sysconfig.get_config_vars()  # is read when it is first asked for, from a file that is named after the system
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Missing())
    for module, names in FUNCTIONS:
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    whole = select.select

    def sockets_alone(
        reading: Iterable[Any], writing: Iterable[Any], other: Iterable[Any], timeout: float | None = None, /
    ) -> tuple[list[Any], list[Any], list[Any]]:
        for one in (*reading, *writing, *other):
            if not isinstance(one, socket.socket):
                raise OSError(10038, "an operation was attempted on something that is not a socket")
        return whole(reading, writing, other, timeout)

    select.select = sockets_alone
    ssl.enum_certificates = lambda store: []  # type: ignore[attr-defined]  # clients of HTTP look for it
    signal.SIGBREAK = signal.SIGTERM  # type: ignore[attr-defined]  # so does uvicorn for this
    io._WindowsConsoleIO = type("_WindowsConsoleIO", (), {})  # type: ignore[attr-defined]  # pytest looks for it
    sys.platform = "win32"


if __name__ == "__main__":
    leave_posix()
    sys.argv[:] = sys.argv[sys.argv.index("-m") + 1 :]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
