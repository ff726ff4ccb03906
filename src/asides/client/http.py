"""One HTTP exchange at a time, on the standard library: addresses, sockets, failures in words. Knows no dialect."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from ..errors import Error

READ_SIZE = 65536
MOST_ERROR = 1_048_576
"""Bytes of an error's body that are read."""
MOST_WHOLE = 64 * 1024 * 1024
"""Bytes of an answer that comes as a whole."""
_PORTS = {"http": 80, "https": 443}


class UpstreamError(Error):
    """A server that could not be reached, refused, or failed; says what happened and what to do."""

    def __init__(self, message: str, *, status: int = 0, reached: bool = True) -> None:
        self.message = message
        self.status = status
        """The HTTP status it answered with, or told in the middle of a reply; 0 where there was none."""
        self.reached = reached
        """Whether anything answered at all."""
        super().__init__(message)


class Stopped(UpstreamError):
    """The exchange was stopped before the server had answered."""


class Address(msgspec.Struct, frozen=True):
    """Where a server is."""

    secure: bool
    host: str
    port: int
    path: str = ""
    """What stands before every route, without a slash at its end."""

    def __str__(self) -> str:
        scheme = "https" if self.secure else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = _PORTS[scheme] == self.port
        return f"{scheme}://{host}{'' if usual else f':{self.port}'}{self.path}"


def read_address(url: str) -> Address:
    """The address that a person wrote, or an error that says what is wrong with it. `http://` may be left out."""
    written = url.strip()
    if "://" not in written:
        written = f"http://{written}"
    try:
        parts = urlsplit(written)
        port = parts.port
    except ValueError as error:
        raise UpstreamError(f"{url!r} is no address: {error}", reached=False) from error
    if parts.scheme not in _PORTS:
        raise UpstreamError(f"{url!r}: an address begins with http:// or https://", reached=False)
    if parts.username is not None or parts.query or parts.fragment:
        # Not shown, because it may hold a password.
        raise UpstreamError("an address holds no user name, no query and no fragment here", reached=False)
    if not parts.hostname:
        raise UpstreamError(f"{url!r} names no host", reached=False)
    return Address(
        parts.scheme == "https",
        parts.hostname,
        _PORTS[parts.scheme] if port is None else port,
        parts.path.rstrip("/"),
    )


class Exchange:
    """One request and its reply. `stop` ends it at once, from a signal handler or another thread."""

    def __init__(
        self,
        address: Address,
        method: str,
        path: str,
        headers: dict[str, str],
        body: Any = None,
        *,
        among: set[Exchange],
        connect: float,
        idle: float,
    ) -> None:
        """`among` holds it while it lasts. `connect` and `idle` are seconds."""
        self._address = address
        self._method = method
        self._path = path
        self._headers = headers
        self._body = None if body is None else msgspec.json.encode(body)
        self._among = among
        self._idle = idle
        self._socket: socket.socket | None = None
        self._connection = _connection(address, connect)
        self.stopped: bool = False
        """Whether `stop` ended it."""
        self.status: int = 0
        self.kind: str = ""
        """The type of what it answers with, such as `text/event-stream`."""

    def __enter__(self) -> Self:
        self._among.add(self)
        try:
            self._connection.connect()
            # Kept aside, because http.client lets go of its socket once the reply's headers are read.
            self._socket = self._connection.sock
            if self.stopped:
                raise ConnectionAbortedError
            self._socket.settimeout(self._idle)
            self._connection.request(self._method, self._path, self._body, self._headers)
            self._reply = self._connection.getresponse()
        except (OSError, http.client.HTTPException, UnicodeError, ValueError) as error:
            self.close()
            if self.stopped:
                raise Stopped(f"{self._address}: stopped before it had answered") from error
            raise self._failure(error) from error
        except BaseException:  # Ctrl-C among them: no socket stays open
            self.close()
            raise
        self.status = self._reply.status
        self.kind = self._reply.headers.get_content_type()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def stop(self) -> bool:
        """End it: whoever reads it finds its end. False while it is still being connected; then it never is sent."""
        self.stopped = True
        if self._socket is None:
            return False
        with suppress(OSError):  # it may have ended already
            # The plain socket's own, because that of a TLS socket would change what a reader is using.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        return True

    def close(self) -> None:
        """Let go of the socket."""
        self._among.discard(self)
        reply = getattr(self, "_reply", None)
        if reply is not None:
            reply.close()
        self._connection.close()
        if self._socket is not None:
            self._socket.close()

    @property
    def retry_after(self) -> str:
        """When the server says that it may be asked again: seconds, or a date; empty where it says nothing."""
        return str(self._reply.headers.get("Retry-After", "")).strip()

    @property
    def moved_to(self) -> str:
        """Where a redirection points to; empty where there is none."""
        return self._reply.headers.get("Location", "") if 300 <= self.status < 400 else ""

    def read(self) -> Iterator[bytes]:
        """The body as it comes. Ends where it is cut off too: its dialect knows whether it was whole."""
        while not self.stopped:
            try:
                data = self._reply.read1(READ_SIZE)
            except TimeoutError as error:
                raise self._failure(error) from error
            except (OSError, http.client.HTTPException, ValueError):
                return
            if not data:
                return
            yield data

    def read_whole(self, most: int) -> bytes:
        """The body as a whole, up to so many bytes."""
        found = bytearray()
        for data in self.read():
            found += data
            if len(found) > most:
                break
        return bytes(found[:most])

    def _failure(self, error: Exception) -> UpstreamError:
        where = str(self._address)
        if isinstance(error, TimeoutError):
            if self._socket is None:
                return UpstreamError(
                    f"{where} does not answer (tried for {_seconds(self._connection.timeout)})", reached=False
                )
            return UpstreamError(f"{where} has sent nothing for {_seconds(self._idle)}")
        if isinstance(error, ConnectionRefusedError):
            return UpstreamError(f"nothing listens at {where} (connection refused)", reached=False)
        if isinstance(error, socket.gaierror):
            return UpstreamError(f"no host is called {self._address.host!r} ({error.strerror})", reached=False)
        if isinstance(error, ssl.SSLCertVerificationError):
            return UpstreamError(f"{where}: its certificate is not trusted: {error.verify_message}", reached=False)
        if isinstance(error, ssl.SSLError):
            hint = "; does it speak plain http://?" if self._socket is None else ""
            return UpstreamError(f"{where}: TLS failed: {error.reason or error}{hint}", reached=False)
        if isinstance(error, http.client.BadStatusLine | http.client.IncompleteRead | ConnectionResetError):
            return UpstreamError(f"{where} closed the connection without an answer")
        if isinstance(error, OSError):
            return UpstreamError(f"{where}: {error.strerror or error}", reached=self._socket is not None)
        return UpstreamError(f"{where}: the request could not be sent: {error}")


def _connection(address: Address, timeout: float) -> http.client.HTTPConnection:
    if address.secure:
        return http.client.HTTPSConnection(
            address.host, address.port, timeout=timeout, context=ssl.create_default_context()
        )
    return http.client.HTTPConnection(address.host, address.port, timeout=timeout)


def _seconds(time: Any) -> str:
    return f"{time:g} seconds"
