"""Reading and writing file descriptors, past Python's own buffers. For the commands and for the gateway's log."""

from __future__ import annotations

import os
import select
import sys

if sys.platform == "win32":
    from ._windows import write_all as write_all
else:

    def write_all(descriptor: int, data: bytes) -> None:
        """Write all of it, however often it takes; waits while nobody reads the other end."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(descriptor, rest) :]
            except BlockingIOError:
                # Another program that shares the terminal has made it non-blocking.
                select.select([], [descriptor], [])


def open_to_read(path: str) -> int:
    """A descriptor of a file's bytes as they are: Windows translates line ends unless it is asked not to."""
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
