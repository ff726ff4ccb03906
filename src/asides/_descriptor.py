"""Writing to a file descriptor, past Python's own buffers. For the filter's output and for the gateway's log."""

from __future__ import annotations

import os
import select


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it, however often it takes; waits while nobody reads the other end."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            # Another program that shares the terminal has made it non-blocking.
            select.select([], [descriptor], [])
