"""SelfAI's functions on text: `parse_think_tags`, `parse_think_tags_streaming` and figures of thoughts.

Calls are text here: they stay in the clean text as they were written. SelfAI's streaming loop passes a buffer from call
to call, and that is all it keeps; so the buffer is a `str` of the raw text that is not released yet, and carries the
stream (parser and all) that reads on from there. A caller that made a plain `str` of it loses only speed.

    buffer = ""
    for chunk in chunks:
        clean, buffer, thoughts = parse_think_tags_streaming(chunk, buffer)
    clean, thoughts = parse_think_tags(buffer)      # the rest
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..._engine.format import Format
from ...errors import UsageError
from ...events import Event, PartEnd, PartStart, ThinkingDelta
from ...policies import Policies, Start
from ...reading import Reading
from .._streaming import text_of_event, without_call_markers

if TYPE_CHECKING:
    from ...analysis import Quality

FORMAT = "think_tag"
"""`<think>`, `<thinking>`, `<reasoning>`, `<internal>` and their like, in any case."""
WORD = "x"
"""Fed before a plain buffer that begins with whitespace: text stood before it, so the whitespace is kept."""
SHORT = 16_384
"""Characters up to which a buffer holds its text itself: copying more with every chunk would take quadratic time."""
HEAD = 64
"""Characters of a longer buffer that it holds itself."""


def parse_think_tags(
    response: str, *, format: str | Format = FORMAT, start: Start | None = None
) -> tuple[str, list[str]]:
    """The clean text of a reply and its thoughts. Given the buffer of a stream, the rest of that stream."""
    stream = _stream_of(response)
    if stream is not None:
        return stream.finish()
    stream = _TagStream(format, start, whole=True)
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
        stream = _TagStream(format, start)
        chunk = stream.resume(str(buffer)) + chunk
    clean, thoughts = stream.feed(chunk)
    return clean, stream.buffer(), thoughts


def _stream_of(buffer: str) -> _TagStream | None:
    """The stream that a buffer carries; None for a plain `str`, and for a buffer from before the last chunk."""
    stream = buffer.stream if isinstance(buffer, ThinkBuffer) else None
    return stream if isinstance(stream, _TagStream) and stream.is_at(buffer) else None


class _TagStream:
    """One stream: its parser, and the raw text that is not yet released."""

    def __init__(self, format: str | Format, start: Start | None, *, whole: bool = False) -> None:
        policies = Policies(start=start, retype=False, collect=False)
        self._parser = Reading.of(format=without_call_markers(format), policies=policies).parser(whole=whole)
        self._length = 0
        self._mark = 0
        """Up to this offset everything was released."""
        self._tail: list[str] = []
        """The raw text from there on. A list only grows, because buffers share it; a moved mark gets a new one."""
        self._open = ""
        """The kind of the part that has not ended."""
        self._has_text = False
        self._around = ""
        """The whitespace before a thought that has ended, until the next text begins and decides about it."""
        self._thought: list[str] = []
        self._last: ThinkBuffer | None = None

    def resume(self, before: str) -> str:
        """Prepare for a plain buffer, which is fed next."""
        if before[:1].isspace() and self._parser.state == "text":
            self._parser.feed(WORD)
            self._length = self._mark = len(WORD)
            self._open, self._has_text = "text", True
        return before

    def is_at(self, buffer: str) -> bool:
        """Whether this is the buffer that was returned last."""
        return buffer is self._last

    def feed(self, chunk: str) -> tuple[str, list[str]]:
        """Clean text and ended thoughts of a chunk."""
        self._length += len(chunk)
        if self._length - self._mark <= SHORT:
            self._tail = ["".join(self._tail) + chunk]
        else:
            self._tail.append(chunk)
        return self._split(self._parser.feed(chunk))

    def finish(self) -> tuple[str, list[str]]:
        """The rest of both, at the end of the stream."""
        self._last = None
        return self._split(self._parser.finish())

    def _split(self, events: list[Event]) -> tuple[str, list[str]]:
        clean: list[str] = []
        thoughts: list[str] = []
        for event in events:
            if isinstance(event, PartStart):
                self._open = event.kind
            if self._open != "thinking":
                clean.append(text_of_event(event, self._open))
                self._has_text, self._around = self._has_text or bool(self._open), ""
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
        return raw[: len(raw) - len(raw.lstrip())] if self._has_text else ""

    def _release(self, mark: int) -> None:
        if mark > self._mark:
            self._tail = ["".join(self._tail)[mark - self._mark :]]
            self._mark = mark

    def buffer(self) -> ThinkBuffer:
        """The raw text that is not released yet, as a `str` that carries this stream."""
        if self._length - self._mark <= SHORT:
            self._last = ThinkBuffer("".join([self._around, *self._tail]))
        else:
            size = len(self._around) + self._length - self._mark
            self._last = LongThinkBuffer.of(self._around, self._tail, size)
        self._last.stream = self
        return self._last


class ThinkBuffer(str):
    """The raw text that is not released yet. As a plain `str` it gives the same, save whitespace at the cut."""

    stream: object = None
    """The `_TagStream` that reads on from here."""

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy or a pickle has the text alone, not the stream."""
        return str, (str(self),)


class LongThinkBuffer(ThinkBuffer):
    """The same for a long thought: the stream has its text, which is joined only when somebody looks at it.

    Every method of `str` sees the whole text. Functions in C that read a `str` directly (`re`, `json`, `"".join`) see
    only its beginning: give them `str(buffer)`.
    """

    _before: str
    _pieces: list[str]
    _count: int
    _size: int

    @classmethod
    def of(cls, before: str, pieces: list[str], size: int) -> LongThinkBuffer:
        """A buffer of `size` characters: the pieces that are in the list now."""
        buffer = cls(before + pieces[0][:HEAD])
        buffer._before, buffer._pieces, buffer._count, buffer._size = before, pieces, len(pieces), size
        return buffer

    def __str__(self) -> str:
        return "".join([self._before, *self._pieces[: self._count]])

    def __len__(self) -> int:
        return self._size


def _on_whole_text(name: str) -> Any:
    def method(self: LongThinkBuffer, *values: Any, **options: Any) -> Any:
        return getattr(str(self), name)(*values, **options)

    return method


for _name in set(vars(str)) - {"__new__", "__str__", "__len__", "__doc__", "__getattribute__", "__sizeof__"}:
    setattr(LongThinkBuffer, _name, _on_whole_text(_name))


def _add_before(self: LongThinkBuffer, other: str) -> str:
    return other + str(self)


LongThinkBuffer.__radd__ = _add_before  # type: ignore[attr-defined]  # `str` has none; without it `x + buffer` is short


def analyze_thinking(think_contents: Sequence[str]) -> dict[str, Any]:
    """SelfAI's four figures of thoughts, and the parts of its score (`asides.analysis`); zeros where there are none."""
    found = _quality(think_contents)
    count = len(think_contents)
    return {
        "num_steps": count,
        "avg_length": sum(map(len, think_contents)) / count if count else 0.0,
        "contains_questions": any("?" in thought for thought in think_contents),
        "quality_score": found.score,
        "quality_parts": found.parts,
    }


def calculate_thinking_quality(think_contents: Sequence[str]) -> float:
    """The `quality_score` of `analyze_thinking` alone: a heuristic between 0 and 1, 0 where there are no thoughts."""
    return _quality(think_contents).score


def _quality(think_contents: Sequence[str]) -> Quality:
    from ...analysis import quality

    if isinstance(think_contents, str):
        raise UsageError("a list of thoughts is needed, not one string: parse_think_tags(response)[1]")
    return quality(think_contents)
