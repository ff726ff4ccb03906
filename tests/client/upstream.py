"""A model server on the loopback that follows a script, in OpenAI's or Ollama's shape. Keeps what it was asked."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from tests.waiting import PATIENCE


@dataclass(frozen=True)
class Script:
    """What one request for a reply gets."""

    pieces: Sequence[bytes]
    status: int = 200
    type: str = ""
    """The content type; empty for the usual one."""
    hangs: bool = False
    """Whether nothing follows the pieces, not even an end, until the client goes away."""
    location: str = ""
    headers: Sequence[tuple[str, str]] = ()
    breaks: bool = False
    """Whether the connection is reset behind the pieces."""

    def all_headers(self, usual: str) -> list[tuple[str, str]]:
        """The headers, with the usual content type unless another is named."""
        moved = [("Location", self.location)] if self.location else []
        return [("Content-Type", self.type or usual), *moved, *self.headers]


@dataclass
class Upstream:
    """The server while it runs."""

    kind: Literal["openai", "ollama"]
    models: list[str]
    scripts: deque[Script]
    """What comes next; the last is used again and again."""
    url: str = ""
    key: str = ""
    """The key that it wants; empty for none."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of the requests for replies, in order."""
    paths: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    owner: str = ""
    """Whose its models are, as OpenAI-compatible servers say it; `llamacpp` takes orders for a running reply."""
    orders: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Where each order was sent to, and what it was."""
    ordered: threading.Event = field(default_factory=threading.Event)
    """Set when an order has come."""
    left: threading.Event = field(default_factory=threading.Event)
    """Set when a client has gone away in the middle of a reply."""

    def take_order(self, path: str, order: bytes) -> bool:
        """An order for a running reply; False where such a server takes none there."""
        if not path.endswith(("/control", "/answer-now")):
            return False
        self.orders.append((path, json.loads(order)))
        if {"llamacpp": "/control", "gateway": "/answer-now"}.get(self.owner, "?") not in path:
            return False
        self.ordered.set()
        return True

    def next(self) -> Script:
        """What the next request gets."""
        return self.scripts.popleft() if len(self.scripts) > 1 else self.scripts[0]


def chat(*deltas: dict[str, Any] | str, end: str | None = "stop") -> list[bytes]:
    """Frames of a chat completion: a string is content, a dictionary a delta. `end` None: it dies."""
    said = [{"content": delta} if isinstance(delta, str) else delta for delta in deltas]
    frames = [_frame({"choices": [{"index": 0, "delta": delta}]}) for delta in said]
    if end is not None:
        frames.append(_frame({"choices": [{"index": 0, "delta": {}, "finish_reason": end}]}))
        frames.append(_frame({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 5}}))
        frames.append(b"data: [DONE]\n\n")
    return frames


def _frame(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps({"id": "c1", "model": "m", **body}).encode() + b"\n\n"


def think(text: str) -> dict[str, Any]:
    """A delta of thinking that is already split off."""
    return {"reasoning_content": text}


def lines(*messages: dict[str, Any] | str, end: bool = True) -> list[bytes]:
    """Lines of Ollama's chat: a string is content, a dictionary the fields of the message."""
    said = [{"content": each} if isinstance(each, str) else {"content": "", **each} for each in messages]
    found = [_line({"message": {"role": "assistant", **each}, "done": False}) for each in said]
    if end:
        found.append(_line({"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}))
    return found


def _line(body: dict[str, Any]) -> bytes:
    return json.dumps({"model": "m", "created_at": "2026-01-01T00:00:00Z", **body}).encode() + b"\n"


def fails(status: int, body: dict[str, Any] | bytes, type: str = "application/json") -> Script:
    """A refusal."""
    return Script([body if isinstance(body, bytes) else json.dumps(body).encode()], status, type)


@contextmanager
def serve(
    *scripts: Script | list[bytes],
    kind: Literal["openai", "ollama"] = "openai",
    models: Sequence[str] = ("m",),
    key: str = "",
    owner: str = "",
    tls: ssl.SSLContext | None = None,
) -> Iterator[Upstream]:
    """A server that gives each request the next script."""
    found = deque(script if isinstance(script, Script) else Script(script) for script in scripts)
    upstream = Upstream(kind, list(models), found, key=key, owner=owner)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(upstream))
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    upstream.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield upstream
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


_OWN_ROUTES: dict[str, Callable[[Upstream], dict[str, Any]]] = {
    "openai": lambda upstream: {
        "/v1/models": {"data": [{"id": name, "owned_by": upstream.owner} for name in upstream.models]}
    },
    "ollama": lambda upstream: {
        "/api/version": {"version": "0.12.0"},
        "/api/tags": {"models": [{"name": name} for name in upstream.models]},
    },
}


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _handler(upstream: Upstream) -> type[BaseHTTPRequestHandler]:
    usual = "text/event-stream" if upstream.kind == "openai" else "application/x-ndjson"
    replies = "/v1/chat/completions" if upstream.kind == "openai" else "/api/chat"
    known = _OWN_ROUTES[upstream.kind](upstream)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            upstream.paths.append(self.path)
            if self.path in known:
                self.whole(known[self.path])
            else:
                self.whole({"error": {"message": "no such route"}}, 404)

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            upstream.paths.append(self.path)
            upstream.keys.append(self.headers.get("Authorization", ""))
            if upstream.key and upstream.keys[-1] != f"Bearer {upstream.key}":
                self.whole({"error": {"message": "no good key"}}, 401)
                return
            if self.path != replies:
                taken = upstream.take_order(self.path, sent)
                self.whole({} if taken else {"error": {"message": "no such route"}}, 200 if taken else 404)
                return
            upstream.asked.append(json.loads(sent))
            self.follow(upstream.next())

        def whole(self, body: dict[str, Any], status: int = 200) -> None:
            self.follow(Script([json.dumps(body).encode()], status, "application/json"))

        def follow(self, script: Script) -> None:
            self.send_response(script.status)
            for name, value in script.all_headers(usual):
                self.send_header(name, value)
            self.end_headers()
            try:
                for piece in script.pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()
                if script.breaks:
                    return _reset(self.connection)
                self.connection.settimeout(PATIENCE)
                if script.hangs and not self.connection.recv(1):
                    upstream.left.set()
            except ConnectionError:
                upstream.left.set()

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
