"""SelfAI's `parse_think_tags` and its streaming sister. Calls are words here: they stay in the clean text as written.

Knows the shape of SelfAI's loop; what a stream remembers between two chunks is in its buffer alone.
"""

from __future__ import annotations

from ..._api import Parser
from ..._engine.format import TEXT, Format
from ...events import Event, PartEnd, PartStart, ThinkingDelta
from ...families import get_format
from ...policies import Start
from ..streaming import without_call_markers, words_of
from .buffer import SHORT, LongThinkBuffer, ThinkBuffer

FORMAT = "think_tag"
"""`<think>`, `<thinking>`, `<reasoning>`, `<internal>` and their like, in any case."""
WORD = "x"
"""Stands for the words before a plain buffer that begins with whitespace, so that the whitespace stays between."""


def parse_think_tags(
    response: str, *, format: str | Format = FORMAT, start: Start | None = None
) -> tuple[str, list[str]]:
    """The clean text of a reply and its thoughts. Given the buffer of a stream, the rest of that stream."""
    stream = _stream_of(response)
    if stream is not None:
        return stream.finish()
    found = get_format(format)
    if start is None and found.start == TEXT:
        start = "undecided"  # a whole text shows whether the prompt had opened its first thought
    stream = _Stream(found, start)
    clean, thoughts = stream.feed(str(response))
    rest, more_thoughts = stream.finish()
    return clean + rest, thoughts + more_thoughts


def parse_think_tags_streaming(
    chunk: str, buffer: str = "", *, format: str | Format = FORMAT, start: Start | None = None
) -> tuple[str, str, list[str]]:
    """Read a chunk: clean text that is safe to show, the buffer for the next chunk, and thoughts that have ended.

    Begin with `""`. At the end, `parse_think_tags(buffer)` gives the rest. `format` and `start` count with the first
    chunk. A plain `str` as buffer is text that was not yet released; it is read once more.
    """
    stream = _stream_of(buffer)
    if stream is None:
        stream = _Stream(format, start)
        chunk = stream.resume(str(buffer)) + chunk
    clean, thoughts = stream.feed(chunk)
    return clean, stream.buffer(), thoughts


def _stream_of(buffer: str) -> _Stream | None:
    """The stream that a buffer carries; None for a plain `str`, and for a buffer that the stream has gone on from."""
    stream = buffer.stream if isinstance(buffer, ThinkBuffer) else None
    return stream if isinstance(stream, _Stream) and stream.is_at(buffer) else None


class _Stream:
    """One stream: its parser, and the raw text that is not yet released."""

    def __init__(self, format: str | Format, start: Start | None) -> None:
        self._parser = Parser(without_call_markers(format), start=start, collect=False)
        self._length = 0
        self._mark = 0
        """Up to this offset everything was released."""
        self._tail: list[str] = []
        """What stands behind it, in pieces. It only grows; when the mark moves there is a new list."""
        self._open = ""
        """The kind of the part that has not ended."""
        self._said = False
        self._around = ""
        """The whitespace between the last text and a thought that has ended, until the next text begins."""
        self._thought: list[str] = []
        self._last: ThinkBuffer | None = None

    def resume(self, before: str) -> str:
        """Go on from a plain buffer, which is to be fed next."""
        if before[:1].isspace() and self._parser.state == "text":
            self._parser.feed(WORD)
            self._length = self._mark = len(WORD)
            self._open, self._said = "text", True
        return before

    def is_at(self, buffer: str) -> bool:
        """Whether this is the buffer that was handed out last."""
        return buffer is self._last

    def feed(self, chunk: str) -> tuple[str, list[str]]:
        """Clean text and ended thoughts of a chunk."""
        self._length += len(chunk)
        if self._length - self._mark <= SHORT:
            self._tail = ["".join(self._tail) + chunk]
        else:
            self._tail.append(chunk)
        return self._tell(self._parser.feed(chunk))

    def finish(self) -> tuple[str, list[str]]:
        """The stream is over: the rest of both."""
        self._last = None
        return self._tell(self._parser.finish())

    def _tell(self, events: list[Event]) -> tuple[str, list[str]]:
        clean: list[str] = []
        thoughts: list[str] = []
        for event in events:
            if isinstance(event, PartStart):
                self._open = event.kind
            if self._open != "thinking":
                clean.append(words_of(event, self._open))
                self._said, self._around = self._said or bool(self._open), ""
            elif isinstance(event, ThinkingDelta):
                self._thought.append(event.text)
            elif isinstance(event, PartEnd):
                thoughts.append("".join(self._thought))
                self._thought = []
                self._around = self._around or self._whitespace_before()
            if isinstance(event, PartEnd):
                self._open = ""
                self._release(event.span[1])
        if self._open not in ("", "thinking"):
            self._release(self._length - self._parser.held)
        return "".join(clean), thoughts

    def _whitespace_before(self) -> str:
        raw = "".join(self._tail)
        return raw[: len(raw) - len(raw.lstrip())] if self._said else ""

    def _release(self, mark: int) -> None:
        if mark > self._mark:
            self._tail = ["".join(self._tail)[mark - self._mark :]]
            self._mark = mark

    def buffer(self) -> ThinkBuffer:
        """What is not yet released, as a `str` that knows this stream."""
        if self._length - self._mark <= SHORT:
            self._last = ThinkBuffer("".join([self._around, *self._tail]))
        else:
            size = len(self._around) + self._length - self._mark
            self._last = LongThinkBuffer.of(self._around, self._tail, size)
        self._last.stream = self
        return self._last
