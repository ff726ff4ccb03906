"""The servers that the gateway calls: addresses, keys, and what goes wrong with them.

`Upstream.ask` sends a request and yields the response, whose body is read as it comes. What goes wrong before the
response has begun is a `Refusal`; afterwards it is an `UpstreamLost`, because the client may have been sent a part of
it already. Connections are the business of `http_client`: silence counts only while somebody waits for bytes, so a
client that reads slowly is no fault of the upstream's. Compressed bodies are unpacked here in small steps, so that few
bytes cannot become very many at once. Without any configured upstream, recordings answer.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
import time
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

import msgspec

from .._config.schema import Limits, UpstreamSettings
from .._recordings.upstream import Recorded
from ..dialects._providers import is_near, provider_of
from ..dialects._servers import KINDS, OPENAI, VERSION_PATH, ServerKind, kind_of
from .http_client import (
    DISTRUST,
    CannotConnect,
    ClientResponse,
    ConnectTimeout,
    HttpClient,
    HttpClientError,
    SilentServer,
    Sink,
    deliver_steps,
)
from .refusals import NotConnected, Refusal

log = logging.getLogger("asides.gateway")

_VERSION = re.compile(r"/v\d+[a-z0-9]*(/|$)")
LONGEST_PIECE = 64 * 1024
"""Bytes that a compressed body may become in one step."""
GZIP = 16 + zlib.MAX_WBITS
"""What zlib wants to be told of gzip."""
MEMBER = b"\x1f"
"""How a member of a gzip body begins."""
LONGEST_VERSION = 64 * 1024
"""Bytes that are read of a server's version."""
ASK_AGAIN = 60.0
"""Seconds after which a server that could not be asked is asked again."""


class UpstreamResponse(Protocol):
    """The response of an upstream, whose body is read once: as it comes (`deliver`) or whole (`read`)."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name; of several with one name all, with commas between them."""

    async def read(self, limit: int) -> bytes:
        """The whole body; a `Refusal` if it is larger than `limit` bytes. Raises `UpstreamLost`."""

    async def deliver(self, sink: Sink) -> bool:
        """Pass the body to a sink as it comes, in small steps: True where the sink returned False and may be given
        more by another call, False at the body's end. Raises `UpstreamLost`."""


class UpstreamRequest(NamedTuple):
    """A request to an upstream."""

    method: str
    path: str
    body: bytes | None
    headers: Mapping[str, str]
    raw: bool
    """Whether a compressed body of the response is left as it is."""
    owner: str
    """The credential of the client for whom it is sent; empty where that is nobody in particular."""


class Upstream(Protocol):
    """A server that answers requests for models."""

    name: str
    url: str
    """Its address, without a user or password in it."""
    host: str
    """The name of its host; empty where it has none."""
    settings: UpstreamSettings
    kind: ServerKind | None
    """What kind of server it is; None until that is known."""
    own_headers: Mapping[str, str]
    """The headers of every request to it: its configured key, and its configured headers."""
    losses: int
    """How often it could not be reached or broke off: afterwards another server may run there."""

    async def find_kind(self) -> ServerKind:
        """What kind of server it is; asks it the first time."""

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        *,
        raw: bool = False,
        owner: str = "",
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Send a request and enter its response; the arguments are those of `UpstreamRequest`."""
        return self.open(UpstreamRequest(method, path, body, headers, raw, owner))

    def open(self, request: UpstreamRequest) -> AbstractAsyncContextManager[UpstreamResponse]:
        """The response to a request, which is sent when it is entered."""
        raise NotImplementedError

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


def own_headers(settings: UpstreamSettings, kind: ServerKind = OPENAI) -> dict[str, str]:
    """The headers of every request to an upstream: its configured key, and its configured headers."""
    sent = kind.credentials(settings.key)
    parts = urlsplit(settings.url)
    if parts.username is not None:  # a user in the address is an `Authorization` too, and there can be only one
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        sent["authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
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


class HttpUpstream(Upstream):
    """A server over HTTP."""

    def __init__(
        self, settings: UpstreamSettings, limits: Limits, on_unasked: Callable[[str], None] = lambda name: None
    ) -> None:
        """`on_unasked` is called with its name whenever it sends what nobody has asked for."""
        self.settings = settings
        self._report = on_unasked
        self._limits = limits
        root, self._api = split_address(settings.url)
        parts = urlsplit(root)
        self._prefix = parts.path
        """What every path begins with."""
        self.url = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
        self.name = settings.name or parts.netloc.rpartition("@")[2]
        self.host = parts.hostname or ""
        provider = provider_of(self.host)
        named = provider.kind if provider is not None and settings.kind == "auto" else settings.kind
        self.kind: ServerKind | None = KINDS.get(named)
        self.own_headers: Mapping[str, str] = own_headers(settings, self.kind or OPENAI)
        self.losses = 0
        self._ask_again = 0.0
        self._client = HttpClient(root, connect=limits.connect, idle=limits.idle, on_unasked=self._unasked)

    def _unasked(self, first: bool) -> None:
        self._report(self.name)
        if first:
            log.warning(
                "%s sent bytes that nobody had asked for: for %d minutes each request gets a connection of its own",
                self.name,
                DISTRUST // 60,
                extra={"event": "unasked"},
            )

    async def find_kind(self) -> ServerKind:
        """What kind of server it is: only Ollama answers `/api/version`. One in trouble is asked again later.

        The operator's key and headers go along only to a server on this machine or in a private network.
        """
        if self.kind is not None or time.monotonic() < self._ask_again:
            return self.kind or OPENAI
        found: Any = None
        try:
            async with (
                asyncio.timeout(2 * self._limits.connect),  # so long to connect, and so long to answer
                self.ask("GET", VERSION_PATH, None, self.own_headers if is_near(self.host) else {}) as answer,
            ):
                doubtful = answer.status >= 500
                if answer.status == 200:
                    found = msgspec.json.decode(await answer.read(LONGEST_VERSION))
        except (msgspec.MsgspecError, UnicodeError, RecursionError, UpstreamLost):
            doubtful = False  # a page for people, perhaps
        except Refusal as refusal:
            # A connection that cannot be made is a fact worth reporting; an answer that cannot be read is none of ours.
            doubtful = isinstance(refusal.__cause__, SilentServer)
            if not doubtful and isinstance(refusal.__cause__, HttpClientError | ValueError):
                raise
        except TimeoutError:
            doubtful = True  # it is there, and busy; Ollama would have answered
        # Not remembered: what is in trouble now may show later what it is.
        if doubtful:
            self._ask_again = time.monotonic() + ASK_AGAIN
            return OPENAI
        self.kind = kind_of(found)
        return self.kind

    def open(self, request: UpstreamRequest) -> AbstractAsyncContextManager[UpstreamResponse]:
        """What goes wrong before the answer begins is a `Refusal`."""
        path, shared = request.path, self.settings.reuse == "any"
        path = f"{self._prefix}{self._api}{path[3:]}" if path.startswith("/v1/") else self._prefix + path
        sent = (request.method, path, request.headers, request.body, "" if shared else request.owner)
        return _AskedHttp(self, self._client, sent, request.raw)

    async def close(self) -> None:
        """Let go of its connections."""
        self._client.close()

    def unreachable(self, error: Exception) -> Refusal:
        """Why a request was not answered, for the client."""
        if isinstance(error, SilentServer):
            silent = f"sent nothing for {self._limits.idle:g} s (limits.idle)"
            return Refusal(504, f"the upstream {self.name} {silent}", code="upstream_timeout")
        self.losses += 1
        if isinstance(error, ConnectTimeout):
            return NotConnected(504, f"the upstream {self.name} could not be reached in time", code="upstream_timeout")
        if isinstance(error, CannotConnect):
            return NotConnected(
                502, f"the upstream {self.name} at {self.url} cannot be reached: {error}", code="upstream_down"
            )
        why = str(error) or type(error).__name__
        return Refusal(502, f"the upstream {self.name} broke off before it answered: {why}", code="upstream_lost")


class _AskedHttp:
    """A request to a server over HTTP; entering it waits for the response."""

    __slots__ = ("_client", "_raw", "_request", "_response", "_upstream")

    def __init__(
        self,
        upstream: HttpUpstream,
        client: HttpClient,
        request: tuple[str, str, Mapping[str, str], bytes | None, str],
        raw: bool,
    ) -> None:
        self._upstream = upstream
        self._client = client
        self._request = request
        self._raw = raw

    async def __aenter__(self) -> _HttpResponse:
        try:
            self._response = await self._client.request(*self._request)
        except (HttpClientError, ValueError) as error:
            raise self._upstream.unreachable(error) from error
        try:
            return _HttpResponse(self._upstream, self._response, unpack=not self._raw)
        except BaseException:
            self._response.close()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._response.release()
        else:
            self._response.close()  # not back to the pool: closing is what makes a server stop generating


class _HttpResponse:
    """The response of a server over HTTP."""

    def __init__(self, upstream: HttpUpstream, response: ClientResponse, *, unpack: bool) -> None:
        self._upstream = upstream
        self._response = response
        self.status = response.status
        self.headers = response.headers
        coding = response.headers.get("content-encoding", "") if unpack else ""
        self._unpacker = _unpacker(coding) if coding else None
        """For an upstream that compresses though it was asked for plain bytes."""
        self._unpacked: deque[bytes] = deque()
        """What was unpacked and not delivered yet."""

    async def _unpack(self, unpacker: _Unpacker) -> bytes:
        """More of a compressed body; empty at its end."""
        try:
            while not (piece := unpacker.piece()):
                packed = await self._response.read_chunk()
                if not packed:
                    unpacker.check_end()
                    return b""
                unpacker.feed(packed)
            return piece
        except HttpClientError as error:
            raise self._lost(error) from error

    async def deliver(self, sink: Sink) -> bool:
        """Pass the body to a sink as it comes, unpacked."""
        if self._unpacker is not None:
            return await deliver_steps(partial(self._unpack, self._unpacker), sink, self._unpacked)
        try:
            return await self._response.deliver(sink)
        except HttpClientError as error:
            raise self._lost(error) from error

    async def read(self, limit: int) -> bytes:
        """The whole body, unpacked."""
        unpacker = self._unpacker
        try:
            body = await (self._response.read(limit) if unpacker is None else self._read_unpacked(unpacker, limit))
        except HttpClientError as error:
            raise self._lost(error) from error
        if len(body) > limit:
            raise Refusal(502, f"the upstream's answer is larger than {limit} bytes (limits.body)")
        return body

    def _lost(self, error: HttpClientError) -> UpstreamLost:
        if isinstance(error, SilentServer):
            return UpstreamLost("the upstream went quiet for longer than limits.idle allows", "idle")
        self._upstream.losses += 1
        return UpstreamLost("the upstream broke off in the middle of its answer", "lost")

    async def _read_unpacked(self, unpacker: _Unpacker, limit: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while size <= limit and (chunk := await self._unpack(unpacker)):
            size += len(chunk)
            parts.append(chunk)
        return b"".join(parts)


class _Unpacker:
    """Unpacks a compressed body in steps of at most `LONGEST_PIECE` bytes.

    A gzip body may have several members (RFC 1952), as servers write that compress each piece by itself. What stands
    after the last of them and is none (zeros that pad it, say) is ignored, as browsers do.
    """

    def __init__(self, bits: int) -> None:
        self._packed = b""
        self._bits = bits
        self._stream = zlib.decompressobj(bits)
        self._begun = False

    def feed(self, packed: bytes) -> None:
        """Add compressed bytes."""
        # Called only when `piece` has used up what was there, so this holds one read at most.
        self._packed += packed
        self._begun = True

    def check_end(self) -> None:
        """No more bytes will come: raises `UpstreamLost` where some are missing."""
        if self._begun and not self._stream.eof:
            raise UpstreamLost("the upstream's answer is compressed, and breaks off before its end", "lost")

    def piece(self) -> bytes:
        """The next step; empty where more bytes must come first."""
        while self._packed:
            if self._stream.eof:
                if self._bits != GZIP or not self._packed.startswith(MEMBER):
                    self._packed = b""
                    break
                self._stream = zlib.decompressobj(self._bits)
            try:
                piece = self._stream.decompress(self._packed, LONGEST_PIECE)
            except zlib.error as error:
                raise UpstreamLost(f"the upstream's answer cannot be unpacked: {error}", "lost") from error
            self._packed = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
            if piece:
                return piece
        return b""


def _unpacker(encoding: str) -> _Unpacker | None:
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding not in ("gzip", "x-gzip", "deflate"):
        message = f"the upstream's answer is compressed with {encoding[:40]!r}, which nobody asked for"
        raise Refusal(502, message, code="upstream_lost")
    return _Unpacker(GZIP if encoding.endswith("gzip") else zlib.MAX_WBITS)


class RecordedUpstream(Upstream):
    """The embedded recordings, for a machine with no model."""

    kind: ServerKind | None = OPENAI
    name = "recorded"
    url = "the embedded recordings"
    host = ""
    settings = UpstreamSettings(url="http://recorded.invalid", name="recorded")
    own_headers: Mapping[str, str] = {}
    losses = 0

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded

    async def find_kind(self) -> ServerKind:
        """That of an OpenAI-compatible server."""
        return OPENAI

    @asynccontextmanager
    async def open(self, request: UpstreamRequest) -> AsyncIterator[UpstreamResponse]:
        """Answer from the recordings."""
        try:
            asked = msgspec.json.decode(request.body or b"{}", type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeError):
            asked = {}  # what is passed on may be anything; the recordings answer with what there is
        answer = await self.recorded.answer(request.path, asked)
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
        self._left: deque[bytes] = deque()

    async def deliver(self, sink: Sink) -> bool:
        return await deliver_steps(lambda: anext(self._chunks, b""), sink, self._left)

    async def read(self, limit: int) -> bytes:
        return b"".join([chunk async for chunk in self._chunks])
