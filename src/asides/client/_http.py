"""One HTTP exchange at a time, on the standard library: addresses, sockets, errors for a person. Knows no dialect.

`HttpExchange` is one request and its response, read as it comes. It can be stopped from a signal handler or another
thread, which `http.client` cannot by itself: the socket is kept and shut down. Every failure is an `UpstreamError` that
names the address and says what to do; whether anything answered at all is in `reached`. Proxies are those of the
environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`); this machine itself is never asked through one.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, Self
from urllib.parse import unquote, urlsplit

import msgspec

from ..errors import Error

READ_SIZE = 65536
MOST_ERROR = 1_048_576
"""The most bytes of an error's body to read."""
MOST_SHOWN = 120
"""The most bytes of a body that is no reply to show."""
MOST_WHOLE = 64 * 1024 * 1024
"""The most bytes of a response that is read as a whole."""
_PORTS = {"http": 80, "https": 443}


class UpstreamError(Error):
    """A server could not be reached, refused the request, or failed. The message says what to do."""

    def __init__(self, message: str, *, status: int = 0, reached: bool = True) -> None:
        self.message = message
        """What happened and what to do about it, in one line; the same as `str(error)`."""
        self.status = status
        """The HTTP status, or the one that an error in the middle of a reply names; 0 where there was none."""
        self.reached = reached
        """Whether a server answered at all; False where there was no connection."""
        super().__init__(message)


class Stopped(UpstreamError):
    """The exchange was stopped before the server answered."""


class Address(msgspec.Struct, frozen=True):
    """The address of a server."""

    secure: bool
    host: str
    port: int
    path: str = ""
    """The prefix of every route, without a slash at its end."""

    def __str__(self) -> str:
        scheme = "https" if self.secure else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = _PORTS[scheme] == self.port
        return f"{scheme}://{host}{'' if usual else f':{self.port}'}{self.path}"


def read_address(url: str) -> Address:
    """Read the address that a person wrote; an `UpstreamError` says what is wrong. `http://` may be left out."""
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


class Proxy(msgspec.Struct, frozen=True):
    """Through whom a server is reached."""

    host: str
    port: int
    authorization: str = ""
    """The header `Proxy-Authorization`; empty for none."""

    def __str__(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def find_proxy(address: Address) -> Proxy | None:
    """The proxy that the environment names for an address; None where there is none, or it is not for this host."""
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib import request  # here, because it takes long to import

    proxies = request.getproxies_environment()
    url = proxies.get("https" if address.secure else "http") or proxies.get("all")
    if not url or _is_this_machine(address.host):
        return None
    if request.proxy_bypass_environment(f"{address.host}:{address.port}"):  # type: ignore[attr-defined] # not in typeshed
        return None
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port or _PORTS["http"]
    except ValueError:
        host = None
    if host is None or parts.scheme != "http":
        # Not shown, because it may hold a password.
        raise UpstreamError(
            "the proxy of the environment (HTTPS_PROXY, HTTP_PROXY or ALL_PROXY) must have an address as "
            "http://proxy.example:3128; NO_PROXY names hosts that are asked without it",
            reached=False,
        )
    user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return Proxy(host, port, f"Basic {b64encode(user.encode()).decode()}" if parts.username else "")


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class HttpExchange:
    """One request and its response. `stop` ends it at once, from a signal handler or another thread."""

    def __init__(
        self,
        address: Address,
        method: str,
        path: str,
        headers: dict[str, str],
        body: Any = None,
        *,
        among: set[HttpExchange],
        connect: float,
        idle: float,
    ) -> None:
        """`among` has it while it lasts. `connect` and `idle` are timeouts in seconds."""
        self._address = address
        self._method = method
        self._path = path
        self._headers = headers
        self._body = None if body is None else msgspec.json.encode(body)
        self._among = among
        self._idle = idle
        self._socket: socket.socket | None = None
        self._proxy = find_proxy(address)
        self._connection = _connection(address, self._proxy, connect)
        if self._proxy is not None and not address.secure:
            # Such a proxy is asked for the whole address; for a secure one it only passes bytes on.
            self._path = f"{msgspec.structs.replace(address, path='')}{path}"
            if self._proxy.authorization:
                self._headers = {**headers, "Proxy-Authorization": self._proxy.authorization}
        self._reply: http.client.HTTPResponse | None = None
        self._reply_headers = http.client.HTTPMessage()
        self.stopped: bool = False
        """Whether `stop` ended it."""
        self.status: int = 0
        self.kind: str = ""
        """The media type of the response, such as `text/event-stream`."""
        self.broken: str = ""
        """Why the body ended where it did, if the connection broke."""
        self.first: bytes = b""
        """How the body begins, for an error about it."""

    def __enter__(self) -> Self:
        self._among.add(self)
        try:
            self._connection.connect()
            # http.client forgets its socket once the headers are read; `stop` needs it.
            self._socket = self._connection.sock
            if self.stopped:
                # `stop` came while there was no socket yet that it could have shut down.
                raise ConnectionAbortedError
            # Up to here the timeout was that of connecting; silence of the server has its own.
            self._socket.settimeout(self._idle)
            self._connection.request(self._method, self._path, self._body, self._headers)
            reply = self._reply = self._connection.getresponse()
        except (OSError, http.client.HTTPException, UnicodeError, ValueError) as error:
            self.close()
            if self.stopped:
                raise Stopped(f"{self._address}: stopped before it had answered") from error
            raise self._failure(error) from error
        except BaseException:  # Ctrl-C among them: no socket stays open
            self.close()
            raise
        self.status, self._reply_headers = reply.status, reply.headers
        self.kind = reply.headers.get_content_type()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def stop(self) -> bool:
        """End it: a reader finds the end of the body. False while it connects; then the request is never sent."""
        self.stopped = True
        if self._socket is None:
            return False
        with suppress(OSError):  # it may have ended already
            # Of the plain socket: `SSLSocket.shutdown` drops the TLS state that a reader in another thread still uses.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        return True

    def close(self) -> None:
        """Close the socket."""
        self._among.discard(self)
        # The response has a file of its own on the socket, which would keep it open.
        if self._reply is not None:
            self._reply.close()
        self._connection.close()
        if self._socket is not None:
            self._socket.close()

    @property
    def request_id(self) -> str:
        """The header `X-Request-Id`, by which the gateway knows the request; empty where there is none."""
        return str(self._reply_headers.get("X-Request-Id", "")).strip()

    @property
    def server(self) -> str:
        """The header `Server`; empty where there is none."""
        return str(self._reply_headers.get("Server", "")).strip()

    @property
    def retry_after(self) -> str:
        """The header `Retry-After`: seconds, or a date; empty where there is none."""
        return str(self._reply_headers.get("Retry-After", "")).strip()

    @property
    def moved_to(self) -> str:
        """The target of a redirect; empty where there is none."""
        return self._reply_headers.get("Location", "") if 300 <= self.status < 400 else ""

    def read(self) -> Iterator[bytes]:
        """The body as it comes. It just ends where it was cut off: the dialect knows whether it was whole."""
        assert self._reply is not None  # inside `with` alone is there a body
        while not self.stopped:
            try:
                # `read1` returns what has come; `read` would wait until there are so many bytes.
                data = self._reply.read1(READ_SIZE)
            except TimeoutError as error:
                raise self._failure(error) from error
            except (OSError, http.client.HTTPException, ValueError) as error:
                # Also how a read ends that `stop` has cut off. A reply that is not whole is reported by its dialect,
                # behind all that had come.
                self.broken = error.strerror or "" if isinstance(error, OSError) else "it was closed too early"
                return
            if not data:
                return
            self.first = self.first or data[:MOST_SHOWN]
            yield data

    def read_whole(self, most: int) -> bytes:
        """The whole body, up to `most` bytes."""
        found = bytearray()
        for data in self.read():
            found += data
            if len(found) > most:
                break
        return bytes(found[:most])

    def _failure(self, error: Exception) -> UpstreamError:
        """The error for a person: what failed, and whether anything had answered."""
        where, reached = str(self._address), self._socket is not None
        if self._proxy is not None:
            where += f" (through the proxy {self._proxy})"
        # Narrow classes before wide ones: nearly all of these are OSErrors.
        match error:
            case TimeoutError() if reached:
                message = f"{where} has sent nothing for {_seconds(self._idle)}"
            case TimeoutError():
                message = f"{where} does not answer (tried for {_seconds(self._connection.timeout)})"
            case ConnectionRefusedError():
                message, reached = f"nothing listens at {self._proxy or where} (connection refused)", False
            case socket.gaierror():
                host = self._address.host if self._proxy is None else self._proxy.host
                message, reached = f"no host is called {host!r} ({error.strerror})", False
            case ssl.SSLCertVerificationError():
                message, reached = f"{where}: its certificate is not trusted: {error.verify_message}", False
            case ssl.SSLError():
                hint = "" if reached else "; does it speak plain http://?"
                message, reached = f"{where}: TLS failed: {error.reason or error}{hint}", False
            case http.client.BadStatusLine() | http.client.IncompleteRead() | ConnectionResetError():
                message, reached = f"{where} closed the connection without an answer", True
            case OSError():
                message = f"{where}: {error.strerror or error}"
            case _:
                message, reached = f"{where}: the request could not be sent: {error}", True
        return UpstreamError(message, reached=reached)


def _connection(address: Address, proxy: Proxy | None, timeout: float) -> http.client.HTTPConnection:
    to = address if proxy is None else proxy
    if not address.secure:
        return http.client.HTTPConnection(to.host, to.port, timeout=timeout)
    connection = http.client.HTTPSConnection(to.host, to.port, timeout=timeout, context=ssl.create_default_context())
    if proxy is not None:
        headers = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
        connection.set_tunnel(address.host, address.port, headers)
    return connection


def _seconds(time: Any) -> str:
    return f"{time:g} seconds"
