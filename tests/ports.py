"""A port of this machine that is a test's alone, whoever else asks the system for one meanwhile."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_port() -> Iterator[int]:
    """A port at which nobody listens, as long as the block: only a server that is told its number gets it.

    A socket that is bound and does not listen refuses connections, and lets servers in that may reuse an address.
    """
    with socket.socket() as held:
        if sys.platform != "win32":  # there it would let anybody in
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
