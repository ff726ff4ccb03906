"""Which headers go on, in either direction, before a server that sends any bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.gateway.running import Gateway, gateway
from tests.gateway.sockets import connected, send


class Wire:
    """A server that says the same bytes to everyone, and keeps the heads of what it was asked."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.answer = b""
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.asked: list[bytes] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    more = connection.recv(65536)
                    if not more:
                        break
                    head += more
                if head.startswith(b"STOP"):
                    return
                self.asked.append(head)
                connection.sendall(self.answer)

    def close(self) -> None:
        """End it."""
        with connected(self.url) as client:
            client.socket.sendall(b"STOP\r\n\r\n")
            client.read_rest()
        self._thread.join()
        self._socket.close()


class Odd(NamedTuple):
    """A gateway before a server that says any bytes."""

    gateway: Gateway
    wire: Wire


@pytest.fixture(scope="module")
def odd() -> Iterator[Odd]:
    """One for all tests that need it."""
    wire = Wire()
    try:
        settings = {"pass_on": "all", "forward_headers": ["x-a", "X-Name", "x-mine"]}
        with gateway({"upstreams": [{"url": wire.url, "kind": "openai"}], **settings}) as running:
            yield Odd(running, wire)
    finally:
        wire.close()


def test_headers_that_are_for_the_next_hop_alone(odd: Odd) -> None:
    """What `Connection` names goes no further, in either direction; several of one name all pass."""
    odd.wire.answer = b"HTTP/1.1 200 OK\r\nVary: a\r\nVary: b\r\nConnection: close, X-Theirs\r\nX-Theirs: 1\r\n\r\nbody"
    with connected(odd.gateway.url) as client:
        lines = [
            b"GET /odd HTTP/1.1",
            b"Host: localhost",
            b"Connection: close, X-Mine",
            b"X-Mine: 1",
            b"X-A: 1",
            b"X-A: 2",
        ]
        client.socket.sendall(b"\r\n".join([*lines, b"", b""]))
        reply = client.read_rest().lower()
    assert b"\r\nvary: a, b\r\n" in reply
    assert b"x-theirs" not in reply
    asked = odd.wire.asked[-1].lower()
    assert b"\r\nx-a: 1, 2\r\n" in asked
    assert b"x-mine" not in asked
    assert b"content-type" not in asked  # nobody sent a body


def test_headers_keep_their_bytes(odd: Odd) -> None:
    """Characters beyond ASCII pass as the bytes that they are."""
    odd.wire.answer = "HTTP/1.1 200 OK\r\nX-Name: café\r\nConnection: close\r\n\r\n".encode()
    reply = send(odd.gateway.url, "GET /odd", "X-Name: thé".encode(), "Authorization: Bearer clé".encode())
    assert "\r\nx-name: café\r\n".encode() in reply
    assert "\r\nx-name: thé\r\n".encode() in odd.wire.asked[-1]
    assert "\r\nauthorization: Bearer clé\r\n".encode() in odd.wire.asked[-1]


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_a_length_without_a_body(odd: Odd, status: str) -> None:
    """An answer that has no body by its nature may speak of a length; it is no failure."""
    odd.wire.answer = f"HTTP/1.1 {status}\r\nContent-Length: 5\r\nETag: x\r\nConnection: close\r\n\r\n".encode()
    reply = send(odd.gateway.url, "GET /odd")
    assert reply.startswith(f"HTTP/1.1 {status}".encode())
    assert b"\r\netag: x\r\n" in reply
    assert not [record for record in odd.gateway.records if "trace" in record]
