"""Framing: server-sent events and JSON lines, read from bytes cut anywhere, written so that every client reads them.

Readers hold what is not a whole frame yet and count it (`pending`), so that a caller can refuse one that never ends.
Writing escapes the three characters that some clients take for the end of a line, and what the fast JSON encoder
rejects (half a surrogate pair, great depth) is written by the slow one.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable
from typing import Any

import msgspec

_LINE_BREAKS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
"""Characters that some clients take for the end of a line; JSON lets us write them as escapes."""

_DEEPEST = 100
"""How deep a value is still written that is too deep to be written whole. Clients give up at 200 and sooner."""

encode: Callable[[object], bytes] = msgspec.json.Encoder().encode


def to_json(value: Any) -> bytes:
    """JSON in one line that no client can break in two."""
    try:
        data = encode(value)
    except (UnicodeEncodeError, RecursionError):
        return _odd_to_json(value)
    # The encoder leaves these characters as they are. Most JSON is ASCII, for which one look is enough.
    if not data.isascii() and (b"\xc2\x85" in data or b"\xe2\x80\xa8" in data or b"\xe2\x80\xa9" in data):
        data = data.decode().translate(_LINE_BREAKS).encode()
    return data


def _odd_to_json(value: Any) -> bytes:
    """JSON that the fast encoder rejects: half a surrogate pair, or what is nested as deep as the reader could go."""
    from json import dumps  # here, because hardly anyone sends such values

    try:
        return dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
    except RecursionError:
        return dumps(_without_depths(value, _DEEPEST), ensure_ascii=True, separators=(",", ":")).encode()


def _without_depths(value: Any, depth: int) -> Any:
    """The value with null for all that is nested deeper than this."""
    if isinstance(value, dict):
        return {name: _without_depths(each, depth - 1) for name, each in value.items()} if depth else None
    if isinstance(value, list | tuple):
        return [_without_depths(each, depth - 1) for each in value] if depth else None
    return value


def read_odd_json(data: bytes) -> Any:
    """JSON that the fast decoder rejects: half a surrogate pair, bytes that are no UTF-8. None for what is no JSON."""
    from json import loads  # here, because hardly any upstream sends such frames

    try:
        return loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def sse(data: bytes, event: str = "") -> bytes:
    """One server-sent event. Never an `id`: it makes some clients trip over keep-alive comments."""
    if not event:
        return b"data: %b\n\n" % data
    if not event.isprintable():  # an upstream's own name for it, which may not end the line
        event = "".join(filter(str.isprintable, event))
    return b"event: %b\ndata: %b\n\n" % (event.encode(), data)


DONE = b"data: [DONE]\n\n"
"""How a chat stream ends."""
KEEP_ALIVE = b": keep-alive\n"
"""A comment with a single newline: the only kind that every client passes over."""


def keep_alive_comment(request: object, style: str) -> bytes:
    """The keep-alive of dialects whose clients pass over comments and know nothing better."""
    return KEEP_ALIVE


class Framing(msgspec.Struct, frozen=True):
    """How a kind of stream is cut into frames."""

    media_type: str
    starts: tuple[bytes, ...]
    """How a body may begin that is such a stream, though a whole reply was asked for."""
    takes_json: bool = False
    """Whether a JSON body is such a stream too, of one frame."""


SSE = Framing("text/event-stream; charset=utf-8", (b"data:", b"event", b":", b"id:", b"retry:", BOM_UTF8))
JSON_LINES = Framing("application/x-ndjson", (*SSE.starts, b"{"), takes_json=True)


class SseFrame(msgspec.Struct, frozen=True, gc=False):
    """One server-sent event."""

    raw: bytes
    """Its data as it came."""
    event: str = ""

    @property
    def data(self) -> str:
        """Its data as text; what is no UTF-8 is replaced."""
        return self.raw.decode("utf-8", "replace")


class SseReader:
    """Reads server-sent events: any line ending, data over several lines, comments, bytes cut anywhere."""

    __slots__ = ("_begun", "_carriage", "_data", "_event", "_lines", "_rest", "pending")

    def __init__(self) -> None:
        self.pending: int = 0
        """Bytes of an event that is not whole yet: a caller may find that it is too large to wait for."""
        self._lines = 0
        self._begun = False
        # A list, joined once the line is whole: adding to one bytes object would copy a long line with every piece of
        # it.
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._event = ""
        self._carriage = False

    @property
    def idle(self) -> bool:
        """Whether the next byte begins an event."""
        return not (self._rest or self._data or self._event)

    def feed(self, chunk: bytes) -> list[SseFrame]:
        """Read bytes and return the events that are whole."""
        if not chunk:
            return []
        if self._carriage and chunk[:1] == b"\n":
            chunk = chunk[1:]  # the second half of a CRLF that was cut in two
            self._carriage = False
            if not chunk:
                return []
        # Only remembered, not waited for: a frame whose last byte is CR is over, and a stream may end there.
        if b"\r" in chunk:
            self._carriage = chunk[-1:] == b"\r"
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        else:
            self._carriage = False
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if not lines:
            self._rest.append(rest)
            self.pending += len(rest)
            return []
        if self._rest:
            lines[0] = b"".join(self._rest) + lines[0]
        if not self._begun:
            # A byte order mark is one only as the first thing of the stream; behind that it belongs to a line.
            self._begun = True
            lines[0] = lines[0].removeprefix(BOM_UTF8)
        self._rest = [rest] if rest else []
        frames: list[SseFrame] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
                self._lines += len(line)
            elif not line:
                if data:
                    frames.append(SseFrame(data[0] if len(data) == 1 else b"\n".join(data), self._event))
                    data.clear()
                    self._lines = 0
                self._event = ""
            # All other lines (comments, `id`, `retry`, unknown fields) say nothing that a reply needs.
            elif line.startswith(b"event:"):
                self._event = line[6:].removeprefix(b" ").decode("utf-8", "replace")
            elif line == b"data":
                data.append(b"")
                self._lines += 1
        self.pending = self._lines + len(rest)
        return frames

    def finish(self) -> list[SseFrame]:
        """The stream is over; an event that lacks only its blank line counts."""
        # By the standard an event without its blank line is discarded; servers do end like that, and it may hold the
        # answer.
        return self.feed(b"\n\n")


class JsonLinesReader:
    """Reads one JSON text per line, from bytes cut anywhere."""

    __slots__ = ("_rest", "pending")

    def __init__(self) -> None:
        self.pending: int = 0
        """Bytes of a line that is not whole yet."""
        self._rest: list[bytes] = []

    @property
    def idle(self) -> bool:
        """Whether the next byte begins a line."""
        return not self._rest

    def feed(self, chunk: bytes) -> list[bytes]:
        """Read bytes and return the lines that are whole and not blank."""
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if not lines:
            self._rest.append(rest)
            self.pending += len(rest)
            return []
        if self._rest:
            lines[0] = b"".join(self._rest) + lines[0]
        self._rest = [rest] if rest else []
        self.pending = len(rest)
        return [line for line in lines if line and not line.isspace()]

    def finish(self) -> list[bytes]:
        """The stream is over; a last line without its newline counts."""
        return self.feed(b"\n")
