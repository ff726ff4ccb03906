"""A proxy on the loopback, as companies have them: it passes on whole requests, and bytes after CONNECT. It knows one
host, `model.test`, which nobody else does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

HOST = "model.test"


@dataclass
class RunningProxy:
    """The proxy while it runs."""

    target: int
    """The port on the loopback that the host stands for."""
    url: str = ""
    refuses: bool = False
    heads: list[str] = field(default_factory=list)
    """The head of each request that it was sent."""

    def pass_on(self, client: socket.socket) -> None:
        """Serve one connection to its end."""
        with closing(client), suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(65536)
            head, _, rest = head.partition(b"\r\n\r\n")
            self.heads.append(head.decode())
            method, where, _ = head.decode().split("\r\n")[0].split(" ")
            if self.refuses or HOST not in where:
                client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
                return
            with socket.create_connection(("127.0.0.1", self.target)) as server:
                if method == "CONNECT":
                    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    path = "/" + where.split("/", 3)[3]
                    server.sendall(head.replace(where.encode(), path.encode(), 1) + b"\r\n\r\n" + rest)
                back = threading.Thread(target=_copy, args=(server, client))
                back.start()
                _copy(client, server)
                back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def proxy(target: int) -> Iterator[RunningProxy]:
    """A proxy by which `model.test` is a server on this port of the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        running = RunningProxy(target, f"http://127.0.0.1:{listening.getsockname()[1]}")

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    threading.Thread(target=running.pass_on, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield running
        listening.shutdown(socket.SHUT_RDWR)
