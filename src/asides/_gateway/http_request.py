"""One request of a client and its answer, over ASGI. Knows nothing of models; its record goes along with it.

An answer is sent whole (`answer`), as a stream of unknown length (`begin_stream`, `write`..., `end`), or as another
server sent it (`begin`). Each is written past ASGI where the client takes it at once (`protocol.py`), else by ASGI,
which waits.

    http = HttpRequest(scope, receive, send)
    body = await http.read(limits)
    await http.answer(200, b"{}")
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any

from .._config.schema import Limits
from .protocol import SANDBOX, begin_chunks, cycle_of, end_chunks, ignore_leaving, on_leave, pusher, respond, whole_body
from .randomness import new_uuid
from .record import RequestRecord
from .refusals import Refusal

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_SAFE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class ClientGone(Exception):
    """The client left before its whole request had come."""


class HttpRequest:
    """A request as it came, and the methods that send its answer: `answer`, or `begin`, `write`... and `end`."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._cycle = cycle_of(send)
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        self.query: bytes = scope["query_string"]
        self.headers: Mapping[str, str] = joined(scope["headers"])
        """By lower-case name, each character a byte; of several with one name all, with commas between them."""
        given = self.headers.get("x-request-id", "")
        id = given if given and _SAFE_ID.fullmatch(given) else new_uuid()
        self.record = RequestRecord(id, self.method, self.path)
        """What is found out about this request; its id, too."""
        self.extra_headers: Headers = []
        """Sent with every answer."""
        self.isolation: Iterable[tuple[bytes, bytes]] = SANDBOX
        """What a browser may do with the answer; the page's files have headers of their own in place of these."""

    async def read(self, limits: Limits) -> bytes:
        """The body of the request; a `Refusal` where it is larger than `limits.body` or comes too slowly."""
        length = self.headers.get("content-length", "")
        if length.isdigit() and int(length) > limits.body:
            raise _too_large(limits.body)
        body = whole_body(self._cycle)
        if body is not None:
            if len(body) > limits.body:
                raise _too_large(limits.body)
            return body
        parts: list[bytes] = []
        size = 0
        deadline = asyncio.get_running_loop().time() + limits.upload
        try:
            async with asyncio.timeout_at(deadline) as timeout:
                while True:
                    event = await self._receive()
                    if event["type"] == "http.disconnect":
                        self.record.cancelled = True
                        raise ClientGone
                    part = event.get("body", b"")
                    size += len(part)
                    if size > limits.body:
                        raise _too_large(limits.body)
                    parts.append(part)
                    if not event.get("more_body"):
                        return b"".join(parts)
                    # Every byte that came buys time: a large body is not cut off, one that trickles in to hold a place
                    # is.
                    timeout.reschedule(deadline + size / limits.upload_rate)
        except TimeoutError:
            message = "the request's body comes too slowly (limits.upload, limits.upload_rate)"
            raise Refusal(408, message, code="upload_timeout", headers=((b"connection", b"close"),)) from None

    def cancel_when_left(self, work: asyncio.Task[Any]) -> None:
        """Cancel the work on this request once its client leaves. To be called when the body was read."""

        def leave() -> None:
            self.record.cancelled = True
            work.cancel()

        on_leave(self._cycle, leave)

    def ignore_leaving(self) -> None:
        """The work that could be cancelled is over."""
        ignore_leaving(self._cycle)

    def pusher(self) -> Callable[[bytes], bool]:
        """A quick `write` for an answer that has begun: False where it could not, and `write` must be awaited."""
        return pusher(self._cycle)

    def set_header(self, name: bytes, value: str) -> None:
        """Send this with the answer. A later value replaces an earlier one: a second upstream may have been asked."""
        self.extra_headers = [*(each for each in self.extra_headers if each[0] != name), (name, value.encode())]

    async def begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Send the head of the answer. From here on the status cannot be changed: a failure can only break off."""
        await self._send({"type": "http.response.start", "status": status, "headers": self._head(status, headers)})

    def _head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
        """All headers of the answer, which begins with this status."""
        self.record.status = status
        sent = [*headers, (b"x-request-id", self.record.id.encode()), *self.isolation, *self.extra_headers]
        if self.record.left_out:
            sent.append((b"x-asides-left-out", self.record.left_out.encode()))
        if thoughts := self.record.thoughts:
            sent.append((b"x-asides-thoughts", thoughts.encode()))
        return sent

    async def begin_stream(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Send the head of an answer of unknown length, with the status 200."""
        sent = self._head(200, headers)
        if not begin_chunks(self._cycle, 200, sent):
            await self._send({"type": "http.response.start", "status": 200, "headers": sent})

    async def write(self, body: bytes) -> None:
        """Send more of the body; waits while the client reads slowly, so that the upstream is slowed down too."""
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self, body: bytes = b"") -> None:
        """Send the last of the body."""
        if not end_chunks(self._cycle, body):
            await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def answer(
        self, status: int, body: bytes, kind: str = "application/json", headers: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        """Send a whole answer."""
        own = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body))]
        body = b"" if self.method == "HEAD" else body
        sent = self._head(status, (*own, *headers))
        if not respond(self._cycle, status, sent, body):
            await self._send({"type": "http.response.start", "status": status, "headers": sent})
            await self.end(body)


async def while_there(http: HttpRequest, work: Awaitable[None]) -> None:
    """Await something that is cancelled the moment the client leaves."""
    task = asyncio.current_task()
    assert task is not None
    http.cancel_when_left(task)
    try:
        await work
    finally:
        http.ignore_leaving()


def joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by their names; values of the same name are joined by commas, as HTTP allows."""
    found: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _too_large(limit: int) -> Refusal:
    return Refusal(413, f"the request is larger than {limit} bytes, the limit of this gateway (limits.body)")
