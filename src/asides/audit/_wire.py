"""What an audit sends and what comes back: one request at a time, slowly, bounded in every direction. Judges nothing.

`Sender` keeps the promises that an audit makes to the server: so many requests at most, so many a second, an end after
several errors in a row, no redirects, no reply that is larger or longer than a reply can be. `Arrival` is what came,
as bytes; `read_answer` reads these with the dialect's own reader, and keeps the frames for checks of their shape.

    sender = Sender(read_address("http://127.0.0.1:8080"), key="")
    arrival = sender.post("/v1/chat/completions", body)
    answer = read_answer(openai_chat, body, arrival)
    answer.thinking, answer.text, answer.calls
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

import msgspec

from ..client._client import VERSIONED
from ..client._http import Address, HttpExchange, UpstreamError
from ..dialects import Dialect
from ..dialects._framing import SseFrame, read_odd_json, to_json
from ..errors import Error, UsageError
from ..reply._items import Begin, CallChunk, Chunk, Ended, Failed, RawText, ThinkingChunk, Usage

MOST_BYTES = 2 * 1024 * 1024
"""The most bytes of a reply that are read: far more than 256 tokens take in any API."""
KEY_VARIABLE = "OPENAI_API_KEY"
"""The variable that holds the key, here and in the commands that reproduce a request."""
DONE = b"[DONE]"


class AuditLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit may cost the server."""

    requests: int = 400
    """Requests in all."""
    per_second: float = 2.0
    """Requests in a second."""
    errors: int = 5
    """Errors in a row after which it ends."""
    idle: float = 60.0
    """Seconds without a byte after which a reply is given up."""
    seconds: float = 180.0
    """Seconds that one reply may take."""


class AuditStopped(Error):
    """The audit ends here; what was found until now counts."""


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """What came back for one request, before anything is read from it."""

    status: int = 0
    """The HTTP status; 0 where nothing answered."""
    media_type: str = ""
    data: bytes = b""
    """The body, at most `MOST_BYTES`."""
    error: str = ""
    """Why there is no whole body: no connection, a timeout, a redirect."""
    too_large: bool = False
    endless: bool = False
    """Whether it was still coming when its time was over."""


def needs_consent(address: Address) -> bool:
    """Whether the server is neither on this machine nor in a private network. A name counts by its addresses."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"no host is called {address.host!r}") from error
    addresses = {ip_address(str(each[4][0]).partition("%")[0]) for each in found}
    return not all((each.is_private or each.is_loopback) and not each.is_unspecified for each in addresses)


class Sender:
    """Sends the requests of one audit."""

    def __init__(
        self,
        address: Address,
        key: str = "",
        limits: AuditLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.address: Address = address
        self.keyed: bool = bool(key)
        """Whether a key is sent."""
        self.sent: int = 0
        """Requests so far."""
        self.limits: AuditLimits = limits or AuditLimits()
        self.stopping: bool = False
        """Set by Ctrl-C: nothing more is sent."""
        self._key = key
        self._clock = clock
        self._sleep = sleep
        self._next = 0.0
        self._errors = 0
        self._running: set[HttpExchange] = set()

    def stop(self) -> None:
        """Send nothing more, and end what is being read. May be called from a signal handler."""
        self.stopping = True
        for exchange in list(self._running):
            exchange.stop()

    def url(self, path: str) -> str:
        """The whole address of a path."""
        return f"{msgspec.structs.replace(self.address, path='')}{self._route(path)}"

    def curl(self, path: str, body: Any) -> str:
        """The command that sends the same request. The key is named by its variable, never shown."""
        from shlex import quote  # here, because it takes long to import

        key = f' -H "Authorization: Bearer ${KEY_VARIABLE}"' if self.keyed else ""
        written = to_json(body).decode()
        return f"curl -sN {quote(self.url(path))}{key} -H 'Content-Type: application/json' -d {quote(written)}"

    def get(self, path: str) -> Arrival:
        """Ask for something that is no reply of a model."""
        return self._send("GET", path, None, None)

    def post(self, path: str, body: Any, leave: Callable[[bytes], bool] | None = None) -> Arrival:
        """Send a request; `leave` says of what has come whether to close the connection in the middle."""
        return self._send("POST", path, body, leave)

    def _route(self, path: str) -> str:
        """The path below that of the address, which may have the version of the API already."""
        prefix = self.address.path.removesuffix("/chat/completions")
        if VERSIONED.search(prefix) is None:
            return prefix + path
        return prefix + path.removeprefix("/v1") if path.startswith("/v1/") else VERSIONED.sub("", prefix) + path

    def _send(self, method: str, path: str, body: Any, leave: Callable[[bytes], bool] | None) -> Arrival:
        if self.stopping:
            raise AuditStopped("it was interrupted")
        if self.sent >= self.limits.requests:
            raise AuditStopped(f"{self.sent} requests were sent, which is the limit (--requests)")
        wait = self._next - self._clock()
        if wait > 0:
            self._sleep(wait)
        self._next = self._clock() + 1 / self.limits.per_second
        self.sent += 1
        arrival = self._exchange(method, path, body, leave)
        if self.stopping:
            raise AuditStopped("it was interrupted")
        self._errors = self._errors + 1 if arrival.error or arrival.status >= 500 else 0
        if self._errors >= self.limits.errors:
            raise AuditStopped(
                f"{self._errors} requests in a row failed, the last: {arrival.error or f'status {arrival.status}'}"
            )
        return arrival

    def _exchange(self, method: str, path: str, body: Any, leave: Callable[[bytes], bool] | None) -> Arrival:
        headers = {"Accept": "text/event-stream, application/json", "User-Agent": "asides-audit"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        times = {"connect": min(10.0, self.limits.idle), "idle": self.limits.idle}
        data = bytearray()
        exchange = HttpExchange(self.address, method, self._route(path), headers, body, among=self._running, **times)
        status, kind, error, large, endless = 0, "", "", False, False
        end = self._clock() + self.limits.seconds
        try:
            with exchange:
                status, kind = exchange.status, exchange.kind
                for piece in exchange.read():
                    data += piece
                    large, endless = len(data) > MOST_BYTES, self._clock() > end
                    if large or endless or (leave is not None and leave(bytes(data))):
                        break
                if exchange.moved_to:
                    error = f"it redirects to {exchange.moved_to}, which is not followed"
                elif exchange.broken:
                    error = f"the connection broke: {exchange.broken}"
        except UpstreamError as failure:
            error = failure.message
        return Arrival(
            status=status, media_type=kind, data=bytes(data[:MOST_BYTES]), error=error, too_large=large, endless=endless
        )


class AnsweredCall(msgspec.Struct):
    """A call of a reply, as the server read it."""

    id: str
    name: str
    arguments: str

    @property
    def runnable(self) -> bool:
        """Whether a client would run it: it has a name, and its arguments are a JSON object."""
        return bool(self.name) and isinstance(decode(self.arguments), dict)


class Answer(msgspec.Struct, kw_only=True):
    """One reply, as a client of its API sees it: nothing is parsed that the server left in the text."""

    api: Dialect
    streamed: bool
    body: dict[str, Any]
    """What was sent."""
    arrival: Arrival
    documents: list[dict[str, Any]] = []
    """The whole reply, or the frames of a streamed one."""
    unreadable: int = 0
    """Frames that are no JSON objects."""
    done: bool = False
    """Whether a stream said `[DONE]`."""
    thinking: str = ""
    field: str = ""
    """The name of the field that thinking came in."""
    signature: str = ""
    details: tuple[dict[str, Any], ...] = ()
    text: str = ""
    calls: list[AnsweredCall] = []
    numbered: dict[int, AnsweredCall] = {}
    """The same calls, by the server's own numbers."""
    ends: list[Ended] = []
    usage: Usage | None = None
    failed: Failed | None = None
    """The error that the server reported, or that the stream has no end."""

    @property
    def fine(self) -> bool:
        """Whether it is a reply that ended as replies do."""
        return self.arrival.status == 200 and self.failed is None and not self.arrival.error


def decode(text: str | bytes) -> Any:
    """The value of a JSON text; None for what is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return read_odd_json(text.encode("utf-8", "replace") if isinstance(text, str) else text)


def read_answer(api: Dialect, body: dict[str, Any], arrival: Arrival, *, streamed: bool) -> Answer:
    """Read what came by the dialect's own reader."""
    answer = Answer(api=api, streamed=streamed, body=body, arrival=arrival)
    if arrival.status != 200:
        answer.failed = (
            api.read_error(arrival.status, arrival.data) if arrival.status else Failed(arrival.error, dialect=api.NAME)
        )
        return answer
    for chunk in _read_stream(answer) if streamed else _read_whole(answer):
        _add(answer, chunk)
    return answer


def _read_whole(answer: Answer) -> list[Chunk]:
    found = decode(answer.arrival.data)
    if not isinstance(found, dict):
        answer.unreadable = 1
        return [Failed(answer.arrival.error or "the reply is no JSON object")]
    answer.documents.append(found)
    return answer.api.read_reply(found)


def _read_stream(answer: Answer) -> list[Chunk]:
    reader = answer.api.ReplyReader()
    cutter: Any = type(reader.frames)()  # for the shapes; the reader has one of its own
    for frame in [*cutter.feed(answer.arrival.data), *cutter.finish()]:
        raw = frame.raw if isinstance(frame, SseFrame) else frame
        found = decode(raw) if raw.strip() != DONE else None
        if isinstance(found, dict):
            answer.documents.append(found)
        elif raw.strip() == DONE:
            answer.done = True
        else:
            answer.unreadable += 1
    return [*reader.feed(answer.arrival.data), *reader.finish()]


def _add(answer: Answer, chunk: Chunk) -> None:
    match chunk:
        case RawText(choice=0):
            answer.text += chunk.text
        case ThinkingChunk(choice=0):
            answer.thinking += ("\n\n" if chunk.begins and answer.thinking else "") + chunk.text
            answer.field = chunk.field or answer.field
            answer.signature = chunk.signature or answer.signature
            answer.details += chunk.details
        case CallChunk(choice=0):
            _add_call(answer, chunk)
        case Ended(choice=0):
            answer.ends.append(chunk)
        case Usage():
            answer.usage = chunk
        case Failed():
            answer.failed = chunk
        case Begin():
            pass
        case _:
            pass  # what only this API knows says nothing of a reply's content


def _add_call(answer: Answer, chunk: CallChunk) -> None:
    call = answer.numbered.get(chunk.index)
    if call is None:
        call = answer.numbered[chunk.index] = AnsweredCall("", "", "")
        answer.calls.append(call)
    call.id, call.name = call.id or chunk.id, call.name or chunk.name
    call.arguments += chunk.arguments
