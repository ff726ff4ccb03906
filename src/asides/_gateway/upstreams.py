"""The servers that the gateway calls: addresses, keys, connections, and what goes wrong with them.

`Upstream.ask` sends a request and yields the response, whose body is read as it comes. What goes wrong before the
response has begun is a `Refusal`; afterwards it is an `UpstreamLost`, because the client may have been sent a part of
it already. Silence is measured by one timer per response that looks a few times per limit, and only while somebody
waits for bytes: a client that reads slowly is no fault of the upstream's. Compressed bodies are unpacked in small
steps, so that few bytes cannot become very many at once. Without any configured upstream, recordings answer.
"""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp
import msgspec
from yarl import URL

from .._config.schema import Limits, UpstreamSettings
from .._recordings.upstream import Recorded
from ..dialects.servers import KINDS, OPENAI, VERSION_PATH, ServerKind, kind_of
from .refusals import NotConnected, Refusal

_VERSION = re.compile(r"/v\d+[a-z0-9]*(/|$)")
LONGEST_PIECE = 64 * 1024
"""Bytes that a compressed body may become in one step."""
LONGEST_VERSION = 64 * 1024
"""Bytes that are read of a server's version."""
CHECKS = 8
"""How often the timer looks within the time for which an upstream may be silent."""
ASK_AGAIN = 60.0
"""Seconds after which a server that could not be asked is asked again."""
KEEP_IDLE = 4.0
"""Seconds for which an idle connection is reused: less than the 5 of uvicorn, so that none is used while the server is
closing it."""


class UpstreamResponse(Protocol):
    """The response of an upstream, whose body is read once: by chunks or whole."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name; of several with one name all, with commas between them."""

    async def read_chunk(self) -> bytes:
        """More of the body, as it comes; empty at its end. Raises `UpstreamLost`."""

    async def read(self, limit: int) -> bytes:
        """The whole body; a `Refusal` if it is larger than `limit` bytes."""


class Upstream(Protocol):
    """A server that answers requests for models."""

    name: str
    url: str
    """Its address, without a user or password in it."""
    settings: UpstreamSettings
    kind: ServerKind | None
    """What kind of server it is; None until that is known."""

    async def find_kind(self) -> ServerKind:
        """What kind of server it is; asks it the first time."""

    def ask(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], *, raw: bool = False
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Send a request and enter its response. `raw` leaves a compressed body as it is."""

    async def close(self) -> None:
        """Close its connections."""


class UpstreamLost(Exception):
    """An upstream broke off, or sent nothing for too long, after its response had begun."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason
        """`idle` or `lost`, as the metrics name it."""

    @property
    def refusal(self) -> Refusal:
        """The same for a client that has been sent nothing yet."""
        idle = self.reason == "idle"
        return Refusal(504 if idle else 502, str(self), code="upstream_timeout" if idle else "upstream_lost")


def own_headers(settings: UpstreamSettings, key: str = "") -> dict[str, str]:
    """The headers of every request to an upstream: its configured key, else `key`, and its configured headers."""
    key = settings.key or key
    # A user in the address is sent as an `Authorization` of its own, and there can be only one.
    sent = {"authorization": f"Bearer {key}"} if key and urlsplit(settings.url).username is None else {}
    return sent | {name.lower(): value for name, value in settings.headers.items()}


def split_address(url: str) -> tuple[str, str]:
    """The root of a server, and where its OpenAI-compatible API begins below it."""
    url = url.rstrip("/")
    path = urlsplit(url).path
    if path.endswith("/v1"):
        return url[:-3], "/v1"
    if _VERSION.search(path):  # a provider with a version scheme of its own
        return url, ""
    return url, "/v1"


class HttpUpstream:
    """A server over HTTP."""

    def __init__(self, settings: UpstreamSettings, limits: Limits, connector: aiohttp.BaseConnector) -> None:
        self.settings = settings
        self._limits = limits
        self._root, self._api = split_address(settings.url)
        parts = urlsplit(self._root)
        self.url = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
        self.name = settings.name or parts.netloc.rpartition("@")[2]
        self.kind: ServerKind | None = KINDS.get(settings.kind)
        self._ask_again = 0.0
        self._session = aiohttp.ClientSession(
            connector=connector,
            # One pool for all upstreams, closed by its owner.
            connector_owner=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.connect, sock_read=limits.idle),
            # A cookie set for one client would be sent with the next one's request.
            cookie_jar=aiohttp.DummyCookieJar(),
            # What a client did not send is not made up; and `Accept-Encoding` would invite compression.
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            auto_decompress=False,  # aiohttp would unpack any amount at once
        )

    async def find_kind(self) -> ServerKind:
        """What kind of server it is: only Ollama answers `/api/version`. One in trouble is asked again later."""
        if self.kind is not None or time.monotonic() < self._ask_again:
            return self.kind or OPENAI
        quick = aiohttp.ClientTimeout(total=self._limits.connect)
        address, sent = self._root + VERSION_PATH, own_headers(self.settings)
        found: Any = None
        try:
            # No redirects here either: the request may carry the configured key.
            async with self._session.get(address, headers=sent, timeout=quick, allow_redirects=False) as reply:
                doubtful = reply.status >= 500
                if reply.status == 200:
                    answer = _HttpResponse(reply, self._limits.connect, unpack=True)
                    try:
                        found = msgspec.json.decode(await answer.read(LONGEST_VERSION))
                    finally:
                        answer.stop_watching()
        except (msgspec.MsgspecError, UnicodeError, RecursionError, Refusal, UpstreamLost):
            doubtful = False  # a page for people, perhaps
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # A connection that cannot be made is a fact worth reporting; a server that is slow to answer is not down.
            if not isinstance(error, TimeoutError) or isinstance(error, aiohttp.ConnectionTimeoutError):
                raise self._unreachable(error) from error
            doubtful = True  # it is there, and busy; Ollama would have answered
        # Not remembered: what is in trouble now may show later what it is.
        if doubtful:
            self._ask_again = time.monotonic() + ASK_AGAIN
            return OPENAI
        self.kind = kind_of(found)
        return self.kind

    @asynccontextmanager
    async def ask(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], *, raw: bool = False
    ) -> AsyncIterator[UpstreamResponse]:
        """Send a request; what goes wrong before the answer begins is a `Refusal`."""
        path = self._api + path[3:] if path.startswith("/v1/") else path
        try:
            # `encoded`: a name of a model in the path may hold escaped slashes, which yarl would write in its own way.
            reply = await self._session.request(
                method, URL(self._root + path, encoded=True), data=body, headers=headers, allow_redirects=False
            )
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise self._unreachable(error) from error
        try:
            answer = _HttpResponse(reply, self._limits.idle, unpack=not raw)
            try:
                yield answer
            finally:
                answer.stop_watching()
        except BaseException:
            # Not back to the pool: closing the connection is what makes a server stop generating.
            reply.close()
            raise
        else:
            reply.release()

    async def close(self) -> None:
        """Let go of its connections."""
        await self._session.close()

    def _unreachable(self, error: Exception) -> Refusal:
        if isinstance(error, TimeoutError):
            reached = not isinstance(error, aiohttp.ConnectionTimeoutError)
            silent = f"sent nothing for {self._limits.idle:g} s (limits.idle)"
            what = silent if reached else "could not be reached in time"
            refusal = Refusal if reached else NotConnected
            return refusal(504, f"the upstream {self.name} {what}", code="upstream_timeout")
        if isinstance(error, aiohttp.ClientConnectorError):
            why = error.strerror or str(error.os_error)
            return NotConnected(
                502, f"the upstream {self.name} at {self.url} cannot be reached: {why}", code="upstream_down"
            )
        why = str(error) or type(error).__name__
        return Refusal(502, f"the upstream {self.name} broke off before it answered: {why}", code="upstream_lost")


class _HttpResponse:
    """The response of a server over HTTP."""

    def __init__(self, reply: aiohttp.ClientResponse, idle: float, *, unpack: bool) -> None:
        self._reply = reply
        self._unpacker = _unpacker(reply.headers.get("content-encoding", "")) if unpack else None
        """For an upstream that compresses though it was asked for plain bytes."""
        self._idle = idle
        self._waiting = False
        """Whether somebody waits for bytes: else silence is not the upstream's."""
        self._silent_checks = 0
        """How often in a row the timer found that nothing had come since somebody began to wait."""
        self._timer: asyncio.TimerHandle | None = None
        if reply.connection is not None and reply.connection.protocol is not None:
            # From here on silence is timed by `_watch`: aiohttp would set a timer anew with every read.
            reply.connection.protocol.read_timeout = None
        self._watch()
        self.status = reply.status
        found: dict[str, str] = {}
        for key, value in reply.headers.items():
            name = key.lower()
            found[name] = f"{found[name]}, {value}" if name in found else value
        self.headers: Mapping[str, str] = found

    async def read_chunk(self) -> bytes:
        """More of the body, unpacked."""
        if self._unpacker is None:
            return await self._receive()
        while not (piece := self._unpacker.piece()):
            packed = await self._receive()
            if not packed:
                return b""
            self._unpacker.feed(packed)
        return piece

    async def _receive(self) -> bytes:
        self._waiting = True
        try:
            return await self._reply.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            # aiohttp's own timer, which runs until the response begins, may be the first to notice.
            if self._silent_checks > CHECKS or isinstance(error, TimeoutError):
                raise UpstreamLost("the upstream went quiet for longer than limits.idle allows", "idle") from error
            raise UpstreamLost("the upstream broke off in the middle of its answer", "lost") from error
        finally:
            self._waiting = False
            self._silent_checks = 0

    def stop_watching(self) -> None:
        """Stop the timer: the response is over, or nobody wants it."""
        if self._timer is not None:
            self._timer.cancel()

    def _watch(self) -> None:
        """Look whether anything came, and again in a while; close the connection after too long a silence."""
        # Counted in looks instead of compared with a clock that every read would have to set; so the limit may be
        # exceeded by one interval.
        self._silent_checks = self._silent_checks + 1 if self._waiting else 0
        if self._silent_checks > CHECKS:
            self._reply.close()
            return
        self._timer = asyncio.get_running_loop().call_later(self._idle / CHECKS, self._watch)

    async def read(self, limit: int) -> bytes:
        """The whole body, unpacked."""
        parts: list[bytes] = []
        size = 0
        while chunk := await self.read_chunk():
            size += len(chunk)
            if size > limit:
                raise Refusal(502, f"the upstream's answer is larger than {limit} bytes (limits.body)")
            parts.append(chunk)
        return b"".join(parts)


class _Unpacker:
    """Unpacks a compressed body in steps of at most `LONGEST_PIECE` bytes."""

    def __init__(self, bits: int) -> None:
        self._packed = b""
        self._stream = zlib.decompressobj(bits)

    def feed(self, packed: bytes) -> None:
        """Add compressed bytes."""
        # Called only when `piece` has used up what was there, so this holds one read at most.
        self._packed += packed

    def piece(self) -> bytes:
        """The next step; empty where more bytes must come first."""
        if not self._packed:
            return b""
        try:
            piece = self._stream.decompress(self._packed, LONGEST_PIECE)
        except zlib.error as error:
            raise UpstreamLost(f"the upstream's answer cannot be unpacked: {error}", "lost") from error
        self._packed = self._stream.unconsumed_tail
        return piece


def _unpacker(encoding: str) -> _Unpacker | None:
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding not in ("gzip", "x-gzip", "deflate"):
        message = f"the upstream's answer is compressed with {encoding[:40]!r}, which nobody asked for"
        raise Refusal(502, message, code="upstream_lost")
    return _Unpacker(16 + zlib.MAX_WBITS if encoding.endswith("gzip") else zlib.MAX_WBITS)


class RecordedUpstream:
    """The embedded recordings, for a machine with no model."""

    kind: ServerKind | None = OPENAI
    name = "recorded"
    url = "the embedded recordings"
    settings = UpstreamSettings(url="http://recorded.invalid", name="recorded")

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded

    async def find_kind(self) -> ServerKind:
        """That of an OpenAI-compatible server."""
        return OPENAI

    @asynccontextmanager
    async def ask(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], *, raw: bool = False
    ) -> AsyncIterator[UpstreamResponse]:
        """Answer from the recordings."""
        try:
            asked = msgspec.json.decode(body or b"{}", type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeError):
            asked = {}  # what is passed on may be anything; the recordings answer with what there is
        answer = await self.recorded.answer(path, asked)
        try:
            yield _RecordedResponse(answer.status, {"content-type": answer.content_type}, answer.chunks)
        finally:
            await answer.chunks.aclose()

    async def close(self) -> None:
        """Nothing is open."""


class _RecordedResponse:
    def __init__(self, status: int, headers: Mapping[str, str], chunks: AsyncIterator[bytes]) -> None:
        self.status = status
        self.headers = headers
        self._chunks = chunks

    async def read_chunk(self) -> bytes:
        return await anext(self._chunks, b"")

    async def read(self, limit: int) -> bytes:
        return b"".join([chunk async for chunk in self._chunks])
