"""One connection to a server: a request is written, its response is parsed by httptools and read as it comes.

Bytes of a body go one of two ways. Who calls `read_chunk` gets them from a queue, and a full queue pauses the socket.
Who calls `deliver` hands over a function, and bytes are passed to it right where they are received: no task is woken
for a frame, which is most of what a frame costs elsewhere. The function returns False when its caller has something to
await (a slow client, say); from then on bytes wait in the queue again.

What a server may make this hold is bounded: the queue by `FULL`, everything that is no body (heads, interim responses,
chunk extensions, trailers) by `LONGEST_HEAD`. A connection is used again only if its response ended where it said it
would, the whole request had been taken, and nothing came after it. Bytes that nobody asked for are reported to the
pool: a server that sends a second response on one connection would next time send it into the middle of a request.
"""

from __future__ import annotations

import asyncio
import select
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol, cast

import httptools

STEP = 16 * 1024
"""Bytes of a body that are delivered at once, however many came: then other streams have their turn."""
FULL = 128 * 1024
"""Bytes that wait to be read until the socket is paused."""
LONGEST_HEAD = 64 * 1024
"""Bytes in a row that are no body."""
TIMED_OUT = (b"HTTP/1.1 408 ", b"HTTP/1.0 408 ")
"""How a load balancer takes leave of a connection on which nothing is asked."""
CLOSED = "the connection was closed"
IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
"""Methods whose requests may be repeated."""
_SPACES = bytes(32 if (byte < 32 and byte != 9) or byte == 127 else byte for byte in range(256))
"""What no header may hold becomes a space (RFC 9110, 5.5): a server's answer is worth more than one odd character."""
Sink = Callable[[bytes], bool]
"""Takes bytes of a body; False when whoever delivers has something to await before more may come."""


class HttpClientError(Exception):
    """A request that got no whole response."""


class ConnectionBroken(HttpClientError):
    """The connection ended, or sent what is no HTTP, before the response was over."""


class SilentServer(HttpClientError):
    """Nothing came for too long while somebody waited for it."""


class Pool(Protocol):
    """Whose connection it is."""

    def put_back(self, connection: ClientConnection) -> None:
        """Take a connection that can be used again."""

    def forget(self, connection: ClientConnection) -> None:
        """The connection is closed."""

    def unasked(self) -> None:
        """The server sent on one of its connections what nobody had asked for."""


class ClientConnection(asyncio.Protocol):
    """A connection, used for one request at a time."""

    def __init__(self, pool: Pool, owner: str) -> None:
        self._pool = pool
        self.owner = owner
        """For whose requests it is used."""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._pieces: list[bytes] = []
        """The pieces of a body that one read held."""
        # A method of a list instead of one of ours: the parser calls it for every chunk of every stream.
        self.on_body = self._pieces.append
        self._parser = httptools.HttpResponseParser(self)
        # What clients and browsers put up with, so that no server that works with them fails here.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._waiter: asyncio.Future[None] | None = None
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._paused = False
        self._sink: Sink | None = None
        """Where bytes go while a call of `deliver` waits for them."""
        self._stopped = False
        """Whether the sink wants no more for now."""
        self._silent = 0
        """How often in a row the pool's timer found that nothing had come while somebody waited."""
        self._error: Exception | None = None
        """Why the connection is of no more use; its response ends with it."""
        self.idle_since = 0.0
        """When the pool got it back."""
        self.untouched = True
        """Whether nothing has come since the request was sent."""
        self._is_readable: Callable[[], object] | None = None
        """Asks the system; made when it is needed first."""
        self._begin("")

    def _begin(self, method: str) -> None:
        """Forget the last response: the next is to a request of this method."""
        self._method = method
        self.status = 0
        self.headers: dict[str, str] = {}
        self._has_head = False
        self._until_close = False
        self._complete = not method  # nothing is expected yet
        self._reusable = True
        self._bare = 0
        """Bytes since the last body's, or since the request."""

    # What the pool calls.

    async def send(self, method: str, head: bytes, body: bytes | None) -> ClientResponse:
        """Send a request and wait for the head of its response."""
        transport = self._transport
        if transport is None or self._error is not None:
            raise self._taken_error()
        self._begin(method)
        self.untouched = True
        if body is None:
            transport.write(head)
        elif len(body) < STEP:
            transport.write(head + body)
        else:
            transport.writelines((head, body))  # not joined: that would copy it
        try:
            while not self._has_head:
                await self._wait()
        except BaseException:
            self.abort()
            raise
        return ClientResponse(self, self.status, self.headers)

    def check(self, most: int) -> None:
        """Called by the pool's timer: close the connection once it found it silent more than `most` times in a row."""
        waits = self._waiter is not None and self._transport is not None
        # A request that is still being sent is no silence of the server's.
        if not waits or (self._transport is not None and self._transport.get_write_buffer_size()):
            self._silent = 0
            return
        self._silent += 1
        if self._silent > most:
            self._fail(SilentServer("nothing came for too long"))

    def abort(self) -> None:
        """Close the connection at once: that is what makes a server stop generating."""
        if self._transport is not None:
            self._transport.abort()
        self._error = self._error or ConnectionBroken(CLOSED)

    def is_fresh(self) -> bool:
        """Whether another request may be sent on it: the server has neither closed it nor written to it."""
        transport = self._transport
        if self._error is not None or transport is None or transport.is_closing():
            return False
        if self._is_readable is None:
            self._is_readable = _readable(transport)
        return not self._is_readable()

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        # Without helpers: this runs once for each frame of every stream.
        if self._complete:
            self._take_unasked(data)
            return
        self._silent, self.untouched = 0, False
        pieces = self._pieces
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(ConnectionBroken("the server switched to another protocol"))
        except httptools.HttpParserError as error:
            self._give_up(error)
        if pieces:
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces.clear()
            self._bare = 0
            # The last bytes wait for the task, which has to be woken anyway: then what comes of them and the end of the
            # client's answer are one write.
            if self._sink is not None and not self._queue and len(body) <= STEP and not self._complete:
                try:
                    more = self._sink(body)
                except Exception as error:  # raised to who called `deliver`, not to the loop
                    self._error, more = error, False
                if not more:
                    self._stopped, self._sink = True, None
                elif self._error is None:
                    return
            elif self._method != "HEAD":
                self._queue.append(body)
                self._queued += len(body)
                if self._queued > FULL and not self._paused and self._transport is not None:
                    self._paused = True
                    self._transport.pause_reading()
        elif not self._complete:
            self._bare += len(data)
            if self._bare > LONGEST_HEAD:
                self._fail(ConnectionBroken(f"it sent more than {LONGEST_HEAD} bytes that are no body"))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _give_up(self, error: httptools.HttpParserError) -> None:
        """What came is no HTTP, or another response right after this one."""
        self._fail(ConnectionBroken(f"what it sent is no HTTP: {error}"))
        if self._complete and self._method != "HEAD":  # the response was whole: this stood after it
            self._pool.unasked()

    def _take_unasked(self, data: bytes) -> None:
        """Bytes that nobody asked for: whatever they are, the next response on this connection could not be trusted."""
        # The body of a HEAD is no response of its own, and its connection is never used again.
        if data.strip(b"\r\n") and not data.startswith(TIMED_OUT) and self._method != "HEAD":
            self._pool.unasked()
        self.abort()

    def eof_received(self) -> None:
        """The server sends no more; returning nothing lets the transport close."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if not self._complete:
            if self._has_head and self._until_close and exc is None and self._error is None:
                self._complete = True
            else:
                self._fail(ConnectionBroken(str(exc) if exc is not None else CLOSED))
        self._reusable = False
        self._error = self._error or ConnectionBroken(CLOSED)
        # The parser holds what it calls, which is this, and the system's poller nothing that is open any more.
        del self._parser
        self._is_readable = None
        self._pool.forget(self)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self._complete:  # stops the parser, before it takes another body for a part of this one
            raise ConnectionBroken("it sent a second response that nobody asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._bare += len(name) + len(value)
        if self._bare > LONGEST_HEAD:
            self._fail(ConnectionBroken(f"it sent more than {LONGEST_HEAD} bytes that are no body"))
        elif not self._has_head:  # else a trailer, or of a response that nobody asked for
            found, key = self.headers, name.decode("latin-1").lower()
            text = value.translate(_SPACES).rstrip(b" \t").decode("utf-8", "surrogateescape")
            found[key] = f"{found[key]}, {text}" if key in found else text

    def on_headers_complete(self) -> None:
        if self._has_head or self._error is not None:
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            self.headers = {}  # an interim response: the real one follows
            return
        self.status, self._has_head = status, True
        if self._method == "HEAD":
            # The parser waits for the body that the head announces, so it can read no other response.
            self._complete, self._reusable = True, False
            return
        coding = self.headers.get("transfer-encoding", "identity").strip().lower()
        if coding not in ("chunked", "identity"):
            self._fail(ConnectionBroken(f"it sent a transfer encoding that nobody asked for: {coding[:40]!r}"))
        self._until_close = coding == "identity" and "content-length" not in self.headers and status not in (204, 304)

    def on_message_complete(self) -> None:
        if self._has_head and self._error is None:
            self._complete = True
            if not self._parser.should_keep_alive():
                self._reusable = False

    # What a response calls.

    async def read_chunk(self) -> bytes:
        """More of the body; empty at its end."""
        while not self._queue:
            if self._complete:
                return b""
            await self._wait()
        chunks = self._queue
        chunk = chunks.popleft() if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self._queued = 0
        return chunk

    async def read(self, limit: int) -> bytes:
        """The whole body; of one that is larger than `limit` bytes, its beginning and more than these."""
        while not self._complete and self._queued <= limit:
            await self._wait()
            if self._error is not None and not self._complete:
                raise self._taken_error()
        chunks = self._queue
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self._queued = 0
        return body

    async def deliver(self, sink: Sink) -> bool:
        """Pass the body to a sink as it comes: True where the sink returned False, False at the body's end."""
        while True:
            while self._queue:
                piece = self._take()
                if not sink(piece):
                    return True
                if self._queue:
                    await asyncio.sleep(0)
            if self._complete:
                return False
            self._sink, self._stopped = sink, False
            try:
                await self._wait()
            finally:
                self._sink = None
            if self._stopped:
                return True

    def _take(self) -> bytes:
        """The next bytes of the queue, at most `STEP`."""
        piece = self._queue[0]
        if len(piece) > STEP:
            self._queue[0], piece = piece[STEP:], piece[:STEP]
        else:
            self._queue.popleft()
        self._queued -= len(piece)
        return piece

    def end(self, *, whole: bool) -> None:
        """The response is not read any further: back to the pool if it was read to its end, else closed."""
        sent = self._transport is not None and not self._transport.get_write_buffer_size()
        if whole and self._complete and self._reusable and not self._queue and sent and self._error is None:
            if self._paused:
                self._resume()
            self._pool.put_back(self)
        else:
            self._queue.clear()
            self.abort()

    def _resume(self) -> None:
        assert self._transport is not None, "a connection that is lost has failed before"
        self._paused = False
        self._transport.resume_reading()

    async def _wait(self) -> None:
        """Wait until something came; raises why no more will."""
        if self._error is not None:
            raise self._taken_error()
        if self._paused:
            self._resume()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if self._error is not None and not (self._queue or self._complete):
            raise self._taken_error()

    def _taken_error(self) -> Exception:
        """Why no more will come, to be raised.

        It is held no longer: once raised it holds every frame that it passes, with this connection and all that the
        request brought along, and none of that would go before the garbage collector runs.
        """
        error, self._error = self._error, ConnectionBroken(CLOSED)
        return error or ConnectionBroken(CLOSED)

    def _fail(self, error: HttpClientError) -> None:
        if self._error is None:
            self._error = error
            if self._transport is not None:
                self._transport.abort()


class ClientResponse:
    """A response whose head has come; its body is read once. `release` or `close` must follow."""

    __slots__ = ("_connection", "deliver", "headers", "read", "read_chunk", "status")

    def __init__(self, connection: ClientConnection, status: int, headers: Mapping[str, str]) -> None:
        self._connection = connection
        self.status = status
        self.headers = headers
        """By lower-case name; of several with one name all, with commas between them."""
        # The connection's own methods: most responses are read by one call.
        self.read = connection.read
        self.read_chunk = connection.read_chunk
        self.deliver = connection.deliver

    def release(self) -> None:
        """Nothing more is wanted; the connection is used again if the body was read to its end."""
        self._connection.end(whole=True)

    def close(self) -> None:
        """Something went wrong: the connection is closed."""
        self._connection.end(whole=False)


def _readable(transport: asyncio.Transport) -> Callable[[], object]:
    """What asks whether something can be read: of a connection on which nothing was asked, that is its end, or no
    answer."""
    found = transport.get_extra_info("socket")
    if found is None:  # pragma: no cover  # a transport of another event loop; those that we start have a socket
        return lambda: True
    descriptor = int(found.fileno())
    if sys.platform == "win32":
        return lambda: select.select([descriptor], [], [], 0)[0]
    poller = select.poll()  # `select` takes no descriptor above 1023
    poller.register(descriptor, select.POLLIN)
    return partial(poller.poll, 0)


async def deliver_steps(read_chunk: Callable[[], Awaitable[bytes]], sink: Sink, left: deque[bytes]) -> bool:
    """`deliver` for what is read by chunks. What a sink that stopped has not been given yet stays in `left`."""
    while True:
        while left:
            if not sink(left.popleft()):
                return True
            if left:
                # A chunk may hold thousands of small frames that give the client nothing: no write lets others run.
                await asyncio.sleep(0)
        chunk = await read_chunk()
        if not chunk:
            return False
        left.extend(chunk[start : start + STEP] for start in range(0, len(chunk), STEP))
