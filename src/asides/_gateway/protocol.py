"""The web server's connection with two limits that it lacks, and short cuts past ASGI.

uvicorn reads a head of any size and waits for its end for ever. `Connection` overrides the callbacks of its parser to
count and to time. By ASGI, a frame of a stream is a message and a coroutine, and a client's leaving is learned only by
a task that waits for it: `pusher` writes a frame at once, and `on_leave` calls a function. These use what uvicorn does
not promise; `tests/gateway/test_hooks.py` holds them to it.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

SECONDS_FOR_HEAD = 30.0
LEAVING = "asides_on_leave"
"""The attribute of a request's cycle that holds what to call when its client leaves."""


class Connection(HttpToolsProtocol):
    """Counts the bytes of a head while it comes, and closes a connection whose head does not end."""

    most = 64 * 1024
    """Bytes that a head may have."""
    _head = 0
    _waiting = 0
    """Bytes that came while the head was not at its end."""
    _in_head = False
    _refused = False
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # A connection that never sends a byte has to end too.
        self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)
        if self.cycle is not None and self.cycle.disconnected:
            getattr(self.cycle, LEAVING, _nothing)()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        went_on = self._in_head
        super().data_received(data)
        if went_on and self._in_head:  # not the read in which a head began: it may hold the end of a body
            # `on_header` is called for whole fields only: one field that never ends is counted here alone.
            self._waiting += len(data)
            if self._waiting > self.most:
                self._refuse()

    def on_message_begin(self) -> None:
        # A connection carries many requests; each head is counted and timed by itself.
        self._head, self._waiting, self._in_head = 0, 0, True
        self._start()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._head += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head += len(name) + len(value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop()
        if self._refused or self._head > self.most:
            self._refuse()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._refused:
            super().on_message_complete()

    def _refuse(self) -> None:
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._respond(b"431 Request Header Fields Too Large", b"the head of this request is too large (limits.header)")

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP with a request id too, as everything else."""
        self._refused = True
        self._respond(b"400 Bad Request", msg.encode())

    def _respond(self, status: bytes, message: bytes) -> None:
        self.transport.write(
            b"HTTP/1.1 %b\r\ncontent-type: text/plain\r\nx-request-id: %b\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n%b\n" % (status, uuid.uuid4().hex.encode(), len(message) + 1, message)
        )
        self.transport.close()

    def _late(self) -> None:
        """Close a connection whose head has not ended in time."""
        self._timer = None
        # A client may begin its next request while the answer to the last is still on its way: closing would cut that
        # off.
        answering = self.cycle is not None and not self.cycle.response_complete
        if not answering and not self.transport.is_closing():
            self.transport.close()

    def _start(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(SECONDS_FOR_HEAD, self._late)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _nothing() -> None:
    pass


def pusher(send: Callable[..., Any]) -> Callable[[bytes], bool]:
    """A function that writes a piece of the answer that `send` belongs to at once, or returns False where it cannot:
    where the client reads too slowly, or the answer is not sent in chunks. Then `send` must be awaited."""
    cycle = getattr(send, "__self__", None)
    if not isinstance(cycle, RequestResponseCycle) or not cycle.chunked_encoding:
        return lambda body: False
    flow, write = cycle.flow, cycle.transport.write

    def push(body: bytes) -> bool:
        if flow.write_paused or cycle.disconnected or cycle.response_complete:
            return False
        write(b"%x\r\n%b\r\n" % (len(body), body))
        return True

    return push


class Gathered:
    """While the block lasts, what is written of the answer that `send` belongs to is gathered, and then written at
    once: uvicorn writes a head and its body apart, each a call of the system and a packet."""

    __slots__ = ("_closes", "_cycle", "_parts", "_transport")

    def __init__(self, send: Callable[..., Any]) -> None:
        cycle = getattr(send, "__self__", None)
        assert isinstance(cycle, RequestResponseCycle), "the application runs on uvicorn with httptools"
        self._cycle: Any = cycle
        self._transport = cycle.transport
        self._parts: list[bytes] = []
        self._closes = False

    def __enter__(self) -> None:
        self._cycle.transport = self

    def __exit__(self, *_: object) -> None:
        self._cycle.transport = self._transport
        if self._parts:
            self._transport.writelines(self._parts)
        if self._closes:
            self._transport.close()

    def write(self, data: bytes) -> None:
        """Gather it."""
        self._parts.append(data)

    def close(self) -> None:
        """Close the connection behind it."""
        self._closes = True

    def is_closing(self) -> bool:
        """Whether the connection is."""
        return self._transport.is_closing()


def has_whole_body(send: Callable[..., Any]) -> bool:
    """Whether all of the body has come of the request whose answer `send` belongs to, and nobody has left."""
    cycle = getattr(send, "__self__", None)
    return isinstance(cycle, RequestResponseCycle) and not cycle.more_body and not cycle.disconnected


def on_leave(send: Callable[..., Any], call: Callable[[], object]) -> None:
    """Let a function be called if the client of the answer that `send` belongs to leaves before its end."""
    cycle = getattr(send, "__self__", None)
    assert isinstance(cycle, RequestResponseCycle), "the application runs on uvicorn with httptools"
    setattr(cycle, LEAVING, call)
    # It stands still behind a large body, and then no end of the connection is noticed.
    cycle.flow.resume_reading()
    if cycle.disconnected:  # it was gone already
        call()


def limited(most: int) -> type[Connection]:
    """A connection whose requests have heads of at most so many bytes."""
    # uvicorn takes a class and makes the connections itself.
    return type("Limited", (Connection,), {"most": most})
