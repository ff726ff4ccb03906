"""The web server's connection with two limits that it lacks, and short cuts past ASGI.

uvicorn reads a head of any size and waits for its end for ever, and takes what follows a body for headers. `Connection`
overrides the callbacks of its parser to count, to time and to leave such trailers out.

By ASGI, a whole answer is two messages and two writes, a frame of a stream is a message and a coroutine, and a client's
leaving is learned only by a task that waits for it: `respond` writes an answer at once, `begin_chunks`, `pusher` and
`end_chunks` one that is streamed, and `on_leave` calls a function. These use what uvicorn does not promise;
`tests/gateway/test_hooks.py` holds them to it.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

SECONDS_FOR_HEAD = 30.0
LEAVING = "asides_on_leave"
"""The attribute of a request's cycle that holds what to call when its client leaves."""
CLOSE = b"connection: close"
AROUND_FIELD = len(b": \r\n")
SANDBOX = (
    (b"content-security-policy", b"sandbox; default-src 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Sent with every answer that is no file of the page: what models and upstreams write has the page's origin, and a
browser that opens it must not run it there."""
_SANDBOX_LINES = b"".join(b"%b: %b\r\n" % header for header in SANDBOX)
_NO_FIELD = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""What no line of a head may hold."""


class Connection(HttpToolsProtocol):
    """Counts the bytes of a head while it comes, and closes a connection whose head does not end."""

    most = 64 * 1024
    """Bytes that a head may have."""
    _read = 0
    """Bytes of the read that is being parsed."""
    _began_in = 0
    """Bytes of the read in which the head began, which may hold the end of a body too."""
    _waiting = 0
    """Bytes that came since then, while the head was not at its end."""
    _in_head = False
    _in_body = False
    _bare = 0
    """Bytes since the last of a body, or since its head: sizes and extensions of chunks, trailers."""
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
        went_on, self._read = self._in_head, len(data)
        self._bare += len(data)
        super().data_received(data)
        if self._in_body and self._bare > self.most:
            self._refuse()
        elif self._in_head:
            self._start()  # most heads come in one read, and have no timer
            if went_on:
                # The parser passes on whole fields only: one field that never ends is counted here alone.
                self._waiting += self._read
                if self._waiting > self.most:
                    self._refuse()

    def on_message_begin(self) -> None:
        # A connection carries many requests; each head is counted and timed by itself.
        self._began_in, self._waiting, self._in_head = self._read, 0, True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._timer is not None:
            self._stop()
        # Its fields are counted only where all that came with it is too much.
        came = self._began_in + self._waiting + self._read
        if self._refused or (came > self.most and self._head_size() > self.most):
            self._refuse()
        else:
            self._in_body, self._bare = True, 0
            super().on_headers_complete()

    def on_header(self, name: bytes, value: bytes) -> None:
        # Behind the body it is a trailer: nobody has looked at those yet who trusts or removes headers, and a request
        # may be on its way to its handler already.
        if self._in_head:
            super().on_header(name, value)

    def _head_size(self) -> int:
        """The bytes of the head, each field with what stands around it."""
        return len(self.url) + sum(len(name) + len(value) + AROUND_FIELD for name, value in self.headers)

    def on_body(self, body: bytes) -> None:
        self._bare = 0
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        if not self._refused:
            super().on_message_complete()

    def _refuse(self) -> None:
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        if self._in_body and self.cycle.response_started:  # a second answer would be taken for a part of the first
            self.transport.close()
            return
        what = b"what stands around the body" if self._in_body else b"the head"
        message = what + b" of this request is too large (limits.header)"
        self._respond(b"431 Request Header Fields Too Large", message)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP with a request id too, as everything else."""
        self._refused = True
        self._respond(b"400 Bad Request", msg.encode())

    def _respond(self, status: bytes, message: bytes) -> None:
        self.transport.write(
            b"HTTP/1.1 %b\r\ncontent-type: text/plain\r\nx-request-id: %b\r\nconnection: close\r\n%b"
            b"content-length: %d\r\n\r\n%b\n"
            % (status, uuid.uuid4().hex.encode(), _SANDBOX_LINES, len(message) + 1, message)
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


def cycle_of(send: Callable[..., Any]) -> RequestResponseCycle:
    """uvicorn's record of a request and its answer, by the function that sends the answer by ASGI."""
    cycle = getattr(send, "__self__", None)
    assert isinstance(cycle, RequestResponseCycle), "the application runs on uvicorn with httptools"
    return cycle


def whole_body(cycle: RequestResponseCycle) -> bytes | None:
    """The body of a request, if all of it has come and nobody has left: most come with their head."""
    if cycle.more_body or cycle.disconnected:
        return None
    body, cycle.body = bytes(cycle.body), bytearray()
    return body


def pusher(cycle: RequestResponseCycle) -> Callable[[bytes], bool]:
    """A function that writes a piece of an answer at once, or returns False where it cannot: where the client reads too
    slowly, or the answer is not sent in chunks. Then it must be sent by ASGI."""
    if not cycle.chunked_encoding:
        return lambda body: False
    flow, write = cycle.flow, cycle.transport.write

    def push(body: bytes) -> bool:
        if flow.write_paused or cycle.disconnected or cycle.response_complete:
            return False
        write(b"%x\r\n%b\r\n" % (len(body), body))
        return True

    return push


def begin_chunks(cycle: RequestResponseCycle, status: int, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Write the head of an answer that is sent in chunks, or return False where the client reads too slowly: then it
    must be sent by ASGI."""
    if cycle.flow.write_paused:
        return False
    if not cycle.disconnected:
        cycle.transport.write(_head(cycle, status, (*headers, (b"transfer-encoding", b"chunked"))))
        cycle.chunked_encoding = True
    return True


def end_chunks(cycle: RequestResponseCycle, body: bytes) -> bool:
    """Write the last of such an answer, or return False: see `pusher`."""
    if cycle.flow.write_paused or cycle.disconnected or cycle.response_complete or not cycle.chunked_encoding:
        return False
    cycle.transport.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n")
    _complete(cycle)
    return True


def respond(cycle: RequestResponseCycle, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
    """Write a whole answer at once, head and body in one piece, or return False where the client reads too slowly: then
    it must be sent by ASGI. `headers` have the body's length; a body that HEAD leaves out is empty."""
    if cycle.flow.write_paused:
        return False
    if not cycle.disconnected:
        cycle.transport.write(_head(cycle, status, headers) + body)
        _complete(cycle)
    return True


def _head(cycle: RequestResponseCycle, status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The head of an answer, which begins with it."""
    lines = [b"%b: %b" % header for header in (*cycle.default_headers, *headers)]
    # One search for all of them: a line break in a value would begin another header.
    if _NO_FIELD.search(b"".join(lines)):
        raise ValueError("a header of the answer holds what no header may")
    if CLOSE in lines:
        cycle.keep_alive = False
    elif not cycle.keep_alive:
        lines.append(CLOSE)
    cycle.response_started = True
    cycle.waiting_for_100_continue = False
    return b"%b%b\r\n\r\n" % (STATUS_LINE[status], b"\r\n".join(lines))


def _complete(cycle: RequestResponseCycle) -> None:
    """The answer is written, as uvicorn notes it."""
    cycle.response_complete = True
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()


def on_leave(cycle: RequestResponseCycle, call: Callable[[], object]) -> None:
    """Let a function be called if the client of a request leaves before the answer's end."""
    setattr(cycle, LEAVING, call)
    # It stands still behind a large body, and then no end of the connection is noticed.
    cycle.flow.resume_reading()
    if cycle.disconnected:  # it was gone already
        call()


def ignore_leaving(cycle: RequestResponseCycle) -> None:
    """Let nothing be called any more."""
    setattr(cycle, LEAVING, _nothing)


def limited(most: int) -> type[Connection]:
    """A connection whose requests have heads of at most so many bytes."""
    # uvicorn takes a class and makes the connections itself.
    return type("Limited", (Connection,), {"most": most})
