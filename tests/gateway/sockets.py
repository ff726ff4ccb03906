"""A client that is no SDK: a bare socket, which can leave, read slowly, or send half a request."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from tests.waiting import PATIENCE


class Client:
    """One connection."""

    def __init__(self, url: str, *, buffer: int | None = None) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._host = parts.netloc
        self.socket = socket.socket()
        if buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect((parts.hostname, parts.port or 80))
        self.read = b""
        """All that has come."""

    def post(self, path: str, body: Any, **headers: str) -> None:
        """Send a request; underscores in the names of headers are hyphens."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"POST {path} HTTP/1.1", f"Host: {self._host}", "Content-Type: application/json"]
        lines += [f"Content-Length: {len(content)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode() + content)

    def get(self, path: str, **headers: str) -> None:
        """Send a request without a body."""
        lines = [f"GET {path} HTTP/1.1", f"Host: {self._host}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())

    def read_until(self, wanted: bytes) -> bytes:
        """Read until this has come."""
        while wanted not in self.read:
            assert self.read_some(), f"closed before {wanted!r} came: {self.read!r}"
        return self.read

    def read_some(self, size: int = 65536) -> bytes:
        """Read what is there; nothing once the other side has closed."""
        try:
            data = self.socket.recv(size)
        except ConnectionResetError:
            return b""
        self.read += data
        return data

    def read_rest(self) -> bytes:
        """Read until the other side closes."""
        while self.read_some():
            pass
        return self.read

    def leave(self) -> None:
        """Close the connection."""
        self.socket.close()


@contextmanager
def connected(url: str, *, buffer: int | None = None) -> Iterator[Client]:
    """A connection as long as the block."""
    client = Client(url, buffer=buffer)
    try:
        yield client
    finally:
        client.leave()


def send(url: str, head: str, *headers: bytes) -> bytes:
    """What a server says to a request of these very bytes, all of it."""
    lines = [f"{head} HTTP/1.1".encode("latin-1"), b"Host: localhost", b"Connection: close", *headers, b"", b""]
    with connected(url) as client:
        client.socket.sendall(b"\r\n".join(lines))
        return client.read_rest()
