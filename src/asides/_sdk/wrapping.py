"""`wrap`: a client of an SDK whose replies come with thinking, text and calls apart, and which is otherwise the SDK's.

What an SDK does with a reply, it does with the bytes that its HTTP client hands it. So that is where replies are taken
apart: the wrapped client has an HTTP client whose transport sends each request with the old one, and rewrites what
comes back by the dialect's own reader and writer, as the gateway does between two sockets. Everything above it is the
SDK's own code: its types, its stream helpers, its retries and errors, synchronous or not.

    request -> the old HTTP client -> bytes -> reader -> splitter -> writer -> bytes -> the SDK

Left as they are: replies of other routes, errors, what cannot be read as a reply, and whatever `with_raw_response`
and `with_streaming_response` ask for.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import AsyncIterator, Iterator
from functools import lru_cache
from typing import Any, TypeVar, Unpack

import msgspec

from .. import dialects
from .._engine.format import Format
from ..dialects._base import Dialect
from ..dialects._errors import UPSTREAM_ENDED
from ..dialects._request import CallPiece, Request, RequestError, piece_kinds
from ..dialects._sent_back import has_own_after_text
from ..errors import UsageError
from ..policies import DEFAULTS, Policies, PolicyOptions
from ..reading import Reading
from ..reply._items import Begin, Chunk, Failed
from ..reply._splitter import Splitter
from .streams import MOST_CHOICES, Options

ClientT = TypeVar("ClientT")

_RAW = "x-stainless-raw-response"
"""The header by which an SDK marks a request whose response it hands over as it came."""
_OF_THE_BYTES = ("content-length", "content-encoding", "transfer-encoding")
"""Headers that say something of the bytes as they came."""
_STREAMS = ("text/event-stream", "application/x-ndjson")
_PATHS = sorted(((path, dialect) for dialect in dialects.ALL for path in dialect.PATHS), key=lambda each: -len(each[0]))
"""Where replies come from, the longest path first: one may end with another."""


def wrap(
    client: ClientT,
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    reading: Reading | None = None,
    **options: Unpack[PolicyOptions],
) -> ClientT:
    """A client like this one whose replies have thinking, text and calls apart, whoever has separated them.

    They are where the API has them: `reasoning_content` of a message or delta and its `tool_calls`, blocks of Anthropic
    and items of Responses, `thinking` of Ollama. How a reply is read is chosen as in `split`; calls are read where the
    request offers tools. The client itself stays as it is; closing either closes the connections of both.

    Examples:
        >>> import openai
        >>> import asides.openai
        >>> with asides.openai.wrap(openai.OpenAI(base_url=f"{url}/v1", api_key="none")) as client:
        ...     messages = [{"role": "user", "content": "2+2?"}]
        ...     stream = client.chat.completions.create(model="qwen3", messages=messages, stream=True)
        ...     "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        'It is 4.'
    """
    chosen = Options(reading, model, format, policies, options)
    inner: Any = getattr(client, "_client", None)
    package = _package_of(inner)
    if package is None:
        raise UsageError(f"a client of OpenAI's, Anthropic's or Ollama's SDK is wanted, not {type(client).__name__}")
    make, transport = (
        (package.AsyncClient, _AsyncTransport) if hasattr(inner, "aclose") else (package.Client, _Transport)
    )
    outer = make(
        transport=transport(inner, package, chosen),
        base_url=inner.base_url,
        headers=inner.headers,
        timeout=inner.timeout,
        trust_env=False,  # proxies and the like are the old one's
    )
    wrapped: Any = client
    if hasattr(client, "with_options"):
        wrapped = wrapped.with_options(http_client=outer)
    else:
        wrapped = copy.copy(client)
        wrapped._client = outer
    found: ClientT = wrapped
    return found


def _package_of(inner: Any) -> Any:
    """The package that an HTTP client is of: the SDKs do not use the same one."""
    for cls in type(inner).__mro__:
        package = sys.modules.get(cls.__module__.partition(".")[0])
        if cls.__name__ in ("Client", "AsyncClient") and hasattr(package, "BaseTransport"):
            return package
    return None


class _Rewriter:
    """Rewrites the reply to one request."""

    def __init__(self, dialect: Dialect, request: Request, options: Options, calls: bool) -> None:
        """`calls`: whether the reply may call."""
        self._dialect = dialect
        self._calls = calls
        # Nobody else sees them: who does not want thoughts does not look at them.
        self._request = msgspec.structs.replace(request, thinking=msgspec.structs.replace(request.thinking, show=True))
        self._options = options
        self._reader = dialect.ReplyReader()
        self._writer = dialect.ReplyWriter(self._request)
        self._splitter: Splitter | None = None
        self._cut = False

    def feed(self, data: bytes) -> bytes:
        """The bytes that these become."""
        return self._rewrite(self._reader.feed(data))

    def finish(self) -> bytes:
        """The stream is over. One that has no end gets none from us: the SDK shall see what it would have seen."""
        last = self._rewrite(self._reader.finish())
        return last + (self.give_up() if self._cut else self._writer.finish())

    def give_up(self) -> bytes:
        """The stream broke off: what was held back."""
        return b"".join(map(self._writer.feed, self._splitter.finish("length"))) if self._splitter is not None else b""

    def whole(self, body: bytes) -> bytes:
        """A reply in one piece; as it was, where it is none."""
        chunks = self._dialect.read_reply(_decoded(body))
        if any(isinstance(chunk, Failed) for chunk in chunks):
            return body
        whole = not has_own_after_text(chunks)
        items = [item for chunk in chunks for item in self._split(chunk, whole=whole).feed(chunk)]
        return msgspec.json.encode(self._dialect.write_reply(items, self._request))

    def _rewrite(self, chunks: list[Chunk]) -> bytes:
        out: list[bytes] = []
        for chunk in chunks:
            if isinstance(chunk, Failed) and chunk.code == UPSTREAM_ENDED.code:
                self._cut = True
                continue
            out += map(self._writer.feed, self._split(chunk).feed(chunk))
        return b"".join(out)

    def _split(self, chunk: Chunk, whole: bool = False) -> Splitter:
        if self._splitter is None:
            request = self._request
            reading = self._options.reading(chunk.model if isinstance(chunk, Begin) else request.model)
            policies = reading.policies
            reading = reading.but(
                tools=policies.tools or [tool.definition for tool in request.tools] or None,
                calls=policies.calls and self._calls,
            )
            self._splitter = reading.splitter(whole=whole, choices=MOST_CHOICES)
        return self._splitter


class _AnyTransport:
    """What both kinds of transport share."""

    def __init__(self, inner: Any, package: Any, options: Options) -> None:
        self._inner = inner
        self._package = package
        self._options = options

    def _rewriter(self, request: Any, response: Any) -> _Rewriter | None:
        """What rewrites a response; None where it stays as it is."""
        if response.status_code != 200 or request.method != "POST" or _RAW in request.headers:
            return None
        path = request.url.path
        found = [dialect for end, dialect in _PATHS if path.endswith(end)]
        if not found or _kind(response) not in (*_STREAMS, "application/json"):
            return None
        dialect = found[0]
        body = _decoded(request.content)
        try:
            asked = dialect.read_request(body, path)
        except RequestError:
            # The server has understood it, we have not: its reply is taken apart all the same, and it may call.
            asked = Request(dialect=dialect.NAME, include_usage=True)
            return _Rewriter(dialect, asked, self._options, calls=True)
        calls = bool(asked.tools) or CallPiece in piece_kinds(asked)
        return _Rewriter(dialect, asked, self._options, calls)

    def _response(self, request: Any, response: Any, **content: Any) -> Any:
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_BYTES]
        return self._package.Response(200, headers=headers, request=request, extensions=response.extensions, **content)


class _Transport(_AnyTransport):
    """Sends requests with the old HTTP client."""

    def handle_request(self, request: Any) -> Any:
        """The response to a request, rewritten where it is a reply."""
        response = self._inner.send(request, stream=True)
        rewriter = self._rewriter(request, response)
        if rewriter is None:
            return response
        if _kind(response) not in _STREAMS:
            return self._response(request, response, content=rewriter.whole(response.read()))
        stream = _stream_classes(self._package)[0](_pieces(rewriter, response), response.close)
        return self._response(request, response, stream=stream)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()

    def __enter__(self) -> _Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _AsyncTransport(_AnyTransport):
    """The same, asynchronous."""

    async def handle_async_request(self, request: Any) -> Any:
        """The response to a request, rewritten where it is a reply."""
        response = await self._inner.send(request, stream=True)
        rewriter = self._rewriter(request, response)
        if rewriter is None:
            return response
        if _kind(response) not in _STREAMS:
            return self._response(request, response, content=rewriter.whole(await response.aread()))
        stream = _stream_classes(self._package)[1](_apieces(rewriter, response), response.aclose)
        return self._response(request, response, stream=stream)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    async def __aenter__(self) -> _AsyncTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _kind(response: Any) -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _pieces(rewriter: _Rewriter, response: Any) -> Iterator[bytes]:
    try:
        for data in response.iter_bytes():
            yield rewriter.feed(data)
    except Exception:
        yield rewriter.give_up()
        raise
    yield rewriter.finish()


async def _apieces(rewriter: _Rewriter, response: Any) -> AsyncIterator[bytes]:
    try:
        async for data in response.aiter_bytes():
            yield rewriter.feed(data)
    except Exception:
        yield rewriter.give_up()
        raise
    yield rewriter.finish()


@lru_cache
def _stream_classes(package: Any) -> tuple[Any, Any]:
    """The classes of streams, made here because HTTP clients want streams of their own package's classes."""

    def init(self: Any, pieces: Any, close: Any) -> None:
        self._pieces = pieces
        self._close = close

    def take(self: Any) -> Any:
        return self._pieces

    def close(self: Any) -> Any:
        return self._close()

    common = {"__init__": init}
    return (
        type("SplitBytes", (package.SyncByteStream,), {**common, "__iter__": take, "close": close}),
        type("AsyncSplitBytes", (package.AsyncByteStream,), {**common, "__aiter__": take, "aclose": close}),
    )
