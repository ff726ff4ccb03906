"""A server on the loopback that answers every request with the same recorded reply, its bytes cut anywhere.

Standard library only, so that what an SDK reads is what a writer wrote and nothing else. It keeps what it was asked.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

SSE = {"Content-Type": "text/event-stream"}
JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}


@dataclass(frozen=True)
class Recorded:
    """One request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: Any
    """The JSON that was sent; None where there was none."""


@dataclass
class Replay:
    """The server while it runs."""

    base_url: str
    """`http://127.0.0.1:PORT`, without a slash at its end."""
    requests: list[Recorded] = field(default_factory=list)
    """What it was asked, in order."""


def cut(body: bytes, cuts: int | Sequence[int] | None) -> list[bytes]:
    """The body in pieces: every so many bytes, at these offsets, or whole."""
    if cuts is None:
        return [body] if body else []
    places = range(cuts, len(body), cuts) if isinstance(cuts, int) else sorted(set(cuts))
    edges = [0, *(place for place in places if 0 < place < len(body)), len(body)]
    return [body[start:stop] for start, stop in pairwise(edges) if start < stop]


@contextmanager
def serve(
    body: bytes,
    *,
    status: int = 200,
    headers: Mapping[str, str] = SSE,
    cuts: int | Sequence[int] | None = None,
) -> Iterator[Replay]:
    """Answer every request with `body`, sent in the pieces that `cuts` makes of it."""
    pieces = cut(body, cuts)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            sent = self.rfile.read(length)
            names = {name.lower(): value for name, value in self.headers.items()}
            replay.requests.append(Recorded(self.command, self.path, names, json.loads(sent) if sent else None))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            # Chunked, because a client sees exactly these pieces then, however TCP packs them.
            self.send_header("Transfer-Encoding", "chunked")
            self.send_header("Connection", "close")
            self.end_headers()
            for piece in pieces:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
            self.close_connection = True

        do_GET = do_POST = answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    replay = Replay(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield replay
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
