"""One request of a client, as the web server hands it over. Knows ASGI; nothing of models."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any

from .._config.schema import Limits
from .refusals import Refusal

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_SAFE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class ClientGone(Exception):
    """The client left before its request was read."""


class HttpRequest:
    """A request, and the way to answer it."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        self.query: bytes = scope["query_string"]
        self.headers: Mapping[str, str] = joined(scope["headers"])
        """By lower-case name, each character a byte; of several with one name all, with commas between them."""
        given = self.headers.get("x-request-id", "")
        self.id = given if _SAFE_ID.fullmatch(given) else uuid.uuid4().hex
        self.started = time.monotonic()
        self.status = 0
        """The status of the answer; 0 until it has begun."""
        self.gone = False
        """Whether the client left before the answer was over."""
        self.extra_headers: Headers = []
        """Sent with every answer."""

    async def read(self, limits: Limits) -> bytes:
        """The body of the request: no larger than `limits.body`, and no slower than `limits.upload_rate`."""
        length = self.headers.get("content-length", "")
        if length.isdigit() and int(length) > limits.body:
            raise _too_large(limits.body)
        parts: list[bytes] = []
        size = 0
        deadline = asyncio.get_running_loop().time() + limits.upload
        try:
            async with asyncio.timeout_at(deadline) as patience:
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        self.gone = True
                        raise ClientGone
                    part = message.get("body", b"")
                    size += len(part)
                    if size > limits.body:
                        raise _too_large(limits.body)
                    parts.append(part)
                    if not message.get("more_body"):
                        return b"".join(parts)
                    patience.reschedule(deadline + size / limits.upload_rate)
        except TimeoutError:
            words = "the request's body comes too slowly (limits.upload, limits.upload_rate)"
            raise Refusal(408, words, code="upload_timeout", headers=((b"connection", b"close"),)) from None

    async def watch(self, work: asyncio.Task[Any]) -> None:
        """Cancel the work on this request when the client leaves."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        work.cancel()

    async def begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Begin the answer."""
        self.status = status
        sent = [*headers, (b"x-request-id", self.id.encode()), *self.extra_headers]
        await self._send({"type": "http.response.start", "status": status, "headers": sent})

    async def write(self, body: bytes) -> None:
        """More of the answer; waits while the client is slow."""
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self, body: bytes = b"") -> None:
        """The answer is over."""
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def answer(
        self, status: int, body: bytes, kind: str = "application/json", headers: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        """The whole answer at once."""
        own = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
        await self.begin(status, [*own, *headers])
        await self.end(b"" if self.method == "HEAD" else body)


def joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by their names."""
    found: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _too_large(limit: int) -> Refusal:
    return Refusal(413, f"the request is larger than {limit} bytes, the limit of this gateway (limits.body)")
