"""The connections to one server: made, reused for a while, timed by one timer for all of them.

A connection that has been idle is looked at before it is used again: one that can be read without having been asked
was closed by the server, or sent something that nobody asked for. A server may still close it in the very moment in
which a request is on its way. Such a request is repeated on a new connection, once, if nothing of a response had come
and its method is idempotent; any other may have been carried out, and fails.

A response that nobody asked for would be taken for the answer to the next request on its connection, and HTTP/1.1 has
nothing to tell them apart by. So the first unasked byte ends the reuse of all connections for `DISTRUST` seconds; and
until one is seen, a connection is used for the requests of one owner only: a wrong answer is never another owner's.

A server may also close every connection on which it has sent a stream, without saying so (llama.cpp's does, although it
writes `Keep-Alive: timeout=5`). One that was seen to do that gets no request on such a connection any more: in the
moment between the end of the stream and that of the connection it would be lost.

How many connections there are at once is not bounded here: whoever calls bounds the requests.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from aiohappyeyeballs import AddrInfoType, start_connection

from .connection import IDEMPOTENT, ClientConnection, ClientResponse, ConnectionBroken, HttpClientError

CHECKS = 8
"""How often the timer looks within the time for which a server may be silent."""
KEEP_IDLE = 4.0
"""Seconds for which an idle connection is reused: less than the 5 of uvicorn, so that none is used while the server is
closing it."""
AT_ONCE = 1.0
"""Seconds within which the end of an idle connection belongs to the response before it."""
DISTRUST = 600.0
"""Seconds for which no connection is reused after one on which the server sent what nobody had asked for."""
RESOLVED = 10.0
"""Seconds for which the addresses of a host are not looked up again."""
STAGGER = 0.25
"""Seconds after which the next address of a host is tried beside the one that has not answered (RFC 8305)."""
_NO_TARGET = re.compile(r"[\x00-\x20\x7f]")
_NO_FIELD = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class CannotConnect(HttpClientError):
    """The server is not there, or does not let us in."""


class ConnectTimeout(HttpClientError):
    """No connection was made in time."""


class HttpClient:
    """Requests to one server. Belongs to the event loop in which it is used first."""

    def __init__(
        self, origin: str, *, connect: float, idle: float, on_unasked: Callable[[bool], None] = lambda first: None
    ) -> None:
        """`origin`: scheme, host and port; `connect`, `idle`: seconds to connect, and without a byte while waiting.

        `on_unasked` is called where the server sent what nobody had asked for: True where that ended reuse, False where
        it had ended before.
        """
        parts = urlsplit(origin)
        self._host = (parts.hostname or "").encode("idna" if not origin.isascii() else "ascii").decode()
        self._secure = parts.scheme == "https"
        self._port = parts.port or (443 if self._secure else 80)
        shown = f"[{self._host}]" if ":" in self._host else self._host
        self._authority = f"{shown}:{parts.port}" if parts.port not in (None, 443 if self._secure else 80) else shown
        self._connect_limit = connect
        self._interval = idle / CHECKS
        self._tls: ssl.SSLContext | None = None
        self._addresses: Sequence[AddrInfoType] = ()
        self._resolved = float("-inf")
        self._idle: dict[str, list[ClientConnection]] = {}
        """By owner: connections that wait to be used again, the one that was used last at the end."""
        self._on_unasked = on_unasked
        self._distrusted = float("-inf")
        """Until when no connection is reused."""
        self._closes_after_streams = False
        """Whether the server was seen to close a connection after a stream."""
        self._open: set[ClientConnection] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None, owner: str = ""
    ) -> ClientResponse:
        """Send a request and wait for the head of its response, on a connection that nobody but its owner has used.

        Raises `HttpClientError`; `ValueError` for what no request may hold.
        """
        head = self._head(method, target, headers, body)
        connection = self._take(owner)
        if connection is not None:
            try:
                return await connection.send(method, head, body)
            except ConnectionBroken:
                if not connection.untouched or method not in IDEMPOTENT:
                    raise
        connection = await self._connect(owner)
        return await connection.send(method, head, body)

    def close(self) -> None:
        """Close every connection."""
        for timer in (self._timer, self._sweeper):
            if timer is not None:
                timer.cancel()
        self._timer = self._sweeper = None
        for connection in list(self._open):
            connection.abort()
        self._idle.clear()

    # What connections call.

    def put_back(self, connection: ClientConnection) -> None:
        """Take a connection that can be used again."""
        connection.idle_since = time.monotonic()
        if connection.idle_since < self._distrusted or (self._closes_after_streams and _has_streamed(connection)):
            connection.abort()
            return
        self._idle.setdefault(connection.owner, []).append(connection)
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(KEEP_IDLE, self._sweep)

    def forget(self, connection: ClientConnection) -> None:
        """The connection is closed."""
        self._open.discard(connection)
        own = self._idle.get(connection.owner, [])
        if connection in own:
            own.remove(connection)
            self._tidy(connection.owner)
            if _has_streamed(connection) and time.monotonic() - connection.idle_since < AT_ONCE:
                self._closes_after_streams = True

    def unasked(self) -> None:
        """The server sent what nobody had asked for: no connection is used again for a while."""
        now = time.monotonic()
        first, self._distrusted = now >= self._distrusted, now + DISTRUST
        for connections in self._idle.values():
            for connection in connections:
                connection.abort()
        self._idle.clear()
        self._on_unasked(first)

    # The rest.

    def _head(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
        if _NO_TARGET.search(target):
            raise ValueError("the address holds what no address may")
        lines = [f"{method} {target} HTTP/1.1"]
        if "host" not in headers:
            lines.append(f"host: {self._authority}")
        for name, value in headers.items():
            lines.append(f"{name}: {value}")
        if body is not None or method in ("POST", "PUT", "PATCH"):
            lines.append(f"content-length: {len(body or b'')}")
        # One search for all of them: a line break in a value would begin another header.
        if _NO_FIELD.search("".join(lines)):
            raise ValueError("a header holds what no header may")
        lines += ("", "")
        return "\r\n".join(lines).encode()

    def _take(self, owner: str) -> ClientConnection | None:
        """An idle connection of this owner that the server has neither closed nor written to."""
        oldest = time.monotonic() - KEEP_IDLE
        own = self._idle.get(owner, [])
        for place in range(len(own) - 1, -1, -1):
            # One that can be read stays where it is: the loop is about to see whether that is its end, or bytes that
            # nobody asked for. If it is neither, it is swept.
            if own[place].idle_since > oldest and own[place].is_fresh():
                found = own.pop(place)
                self._tidy(owner)
                if self._timer is None:
                    self._watch()
                return found
        return None

    def _tidy(self, owner: str) -> None:
        """Keep nothing of an owner without connections: there may be very many of them."""
        if not self._idle[owner]:
            del self._idle[owner]

    async def _connect(self, owner: str) -> ClientConnection:
        connection = ClientConnection(self, owner)
        try:
            async with asyncio.timeout(self._connect_limit):
                await self._open_transport(connection)
        except TimeoutError as error:
            self._resolved = float("-inf")
            raise ConnectTimeout(f"no connection after {self._connect_limit:g} s") from error
        except (OSError, UnicodeError) as error:  # `ssl.SSLError` is an `OSError`
            self._resolved = float("-inf")
            if isinstance(error, ConnectionRefusedError):  # asyncio's own text shows its arguments
                raise CannotConnect("connection refused, nothing listens there") from error
            raise CannotConnect(getattr(error, "strerror", None) or str(error) or type(error).__name__) from error
        self._open.add(connection)
        if self._timer is None:
            self._watch()
        return connection

    async def _open_transport(self, connection: ClientConnection) -> None:
        loop = asyncio.get_running_loop()
        if self._secure and self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        name = self._host if self._secure else None
        addresses = await self._find_addresses()
        if len(addresses) == 1:  # nothing to choose: the loop's own way is a third of the work
            host, port = addresses[0][4][:2]
            await loop.create_connection(lambda: connection, host, port, ssl=self._tls, server_hostname=name)
            return
        found = await start_connection(addresses, happy_eyeballs_delay=STAGGER, loop=loop)
        try:
            await loop.create_connection(lambda: connection, sock=found, ssl=self._tls, server_hostname=name)
        except BaseException:
            found.close()
            raise

    async def _find_addresses(self) -> Sequence[AddrInfoType]:
        if time.monotonic() - self._resolved > RESOLVED:
            self._addresses = await asyncio.get_running_loop().getaddrinfo(
                self._host, self._port, type=socket.SOCK_STREAM
            )
            self._resolved = time.monotonic()
        return self._addresses

    def _watch(self) -> None:
        """A connection is in use: look after a while."""
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._check)

    def _check(self) -> None:
        """Look whether servers are silent. One timer for all: one for each response would be set with every request."""
        for connection in list(self._open):
            connection.check(CHECKS)
        self._timer = None
        if len(self._open) > sum(map(len, self._idle.values())):
            self._watch()

    def _sweep(self) -> None:
        """Close what has been idle for too long."""
        now = time.monotonic()
        self._sweeper = None
        for owner, connections in list(self._idle.items()):
            self._idle[owner] = [each for each in connections if now - each.idle_since < KEEP_IDLE]
            self._tidy(owner)
            for each in connections:
                if now - each.idle_since >= KEEP_IDLE:
                    each.abort()
        if self._idle:
            oldest = min(connections[0].idle_since for connections in self._idle.values())
            wait = KEEP_IDLE - (now - oldest)
            self._sweeper = asyncio.get_running_loop().call_later(wait, self._sweep)


def _has_streamed(connection: ClientConnection) -> bool:
    """Whether the last response on it was a stream: its length was not known before."""
    return "transfer-encoding" in connection.headers
