"""The way of one reply: bytes of the upstream in, bytes for the client out, and what is noted on the way.

One path for every frame that is not passed on byte for byte. Knows no socket.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from .._config.schema import Limits
from ..dialects.base import StreamReader, StreamWriter
from ..events import Event, Notice, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from ..reply.items import Begin, Chunk, Ended, Failed, ReplyEvent, ReplyItem, Usage
from ..reply.splitter import Splitter

HEAD = 512
"""Bytes of an answer that are kept until something in it is understood."""
SHOWN = 200
"""Characters of its first line that an error shows."""
UNREADABLE = Failed(
    "the gateway could not read all of the upstream's reply; its log says why", 502, "api_error", "internal"
)


class BoundError(Exception):
    """An upstream's reply goes beyond what this gateway bears."""

    def __init__(self, message: str, out: bytes) -> None:
        super().__init__(message)
        self.out = out
        """What was written before."""


def too_large_frame(limits: Limits) -> str:
    """Why a reply ends within a frame."""
    return f"the upstream sent a frame of more than {limits.frame} bytes (limits.frame)"


def too_many_calls(limits: Limits) -> str:
    """Why a reply ends at the call behind the last that is taken."""
    return f"the upstream's reply holds more than {limits.calls} calls (limits.calls)"


class Noted:
    """What is noted of a reply while it passes: for metrics, logs, the replay cache and history."""

    def __init__(self, *, keep: bool, limit: int = sys.maxsize) -> None:
        """`limit`: how many characters are kept of a reply at most."""
        self.keep = keep
        """Whether words are kept: the replay cache needs thoughts and calls, history all of it."""
        self.truncated = False
        """Whether there was more than could be kept."""
        self._room = limit
        self.calls = 0
        """How many calls have begun."""
        self.first_thought: float | None = None
        """When it came, by the monotonic clock."""
        self.first_answer: float | None = None
        self.notices: dict[str, int] = {}
        self.choices: dict[int, Choice] = {}
        self.usage: Usage | None = None
        self.failed: Failed | None = None
        self.reason = ""
        self.reply_id = ""
        """The upstream's own id of the reply."""

    def see_delta(self, number: int, event: Event) -> None:
        """Note more of a text or of a thought, whose start was noted before."""
        choice = self.choices[number]
        if type(event) is TextDelta:
            choice.answered = True
            if self.keep and self._has_room(event.text):
                choice.texts.append(event.text)
            if self.first_answer is None:
                self.first_answer = time.monotonic()
        elif type(event) is ThinkingDelta:
            if self.keep and self._has_room(event.text):
                choice.thoughts[-1].append(event.text)
            if self.first_thought is None:
                self.first_thought = time.monotonic()

    def _has_room(self, text: str) -> bool:
        self._room -= len(text)
        if self._room < 0:
            self.keep, self.truncated = False, True
        return self.keep

    def see(self, item: ReplyItem) -> None:
        """Note an item."""
        if type(item) is ReplyEvent:
            kind = type(item.event)
            if kind is TextDelta or kind is ThinkingDelta:
                self.see_delta(item.choice, item.event)
            else:
                self._other(item)
        elif isinstance(item, Usage):
            self.usage = item
        elif isinstance(item, Failed):
            self.failed = item
        elif isinstance(item, Ended):
            self.reason = item.reason
        elif isinstance(item, Begin):
            self.reply_id = item.id

    def _other(self, item: ReplyEvent) -> None:
        event, choice = item.event, self._choice(item.choice)
        if isinstance(event, Notice):
            self.notices[event.code] = self.notices.get(event.code, 0) + 1
        elif isinstance(event, PartStart):
            choice.kinds[event.index] = event.kind
            if event.kind == "thinking":
                choice.thoughts.append([])
                choice.unclosed = False
            elif event.kind == "tool_call":
                if self.first_answer is None:
                    self.first_answer = time.monotonic()
                choice.answered = True
                self.calls += 1
                choice.calls[event.index] = (event.name or "", event.id or "", [])
            elif self.keep and event.gap:
                choice.texts.append(event.gap)
        elif isinstance(event, ToolCallDelta):
            if self.keep and event.index in choice.calls and self._has_room(event.text):
                choice.calls[event.index][2].append(event.text)
        elif isinstance(event, PartEnd):
            if choice.kinds.get(event.index) == "thinking":
                choice.unclosed = not event.complete
            elif event.error is not None:
                choice.calls.pop(event.index, None)  # it may not be run

    def _choice(self, number: int) -> Choice:
        choice = self.choices.get(number)
        if choice is None:
            choice = self.choices[number] = Choice()
        return choice

    def words(self) -> str:
        """What was thought and said, where words are kept."""
        told = (f"[thinking] {choice.thinking} [text] {''.join(choice.texts)}" for choice in self.choices.values())
        return " ".join(told)

    @property
    def empty_answers(self) -> int:
        """Choices that neither said nor called anything."""
        return sum(not choice.answered for choice in self.choices.values())


class Choice:
    """What is noted of one choice."""

    def __init__(self) -> None:
        self.thoughts: list[list[str]] = []
        self.texts: list[str] = []
        self.calls: dict[int, tuple[str, str, list[str]]] = {}
        self.kinds: dict[int, str] = {}
        self.answered = False
        self.unclosed = False

    @property
    def thinking(self) -> str:
        """All thoughts together."""
        return "\n\n".join("".join(thought) for thought in self.thoughts)


class Pipeline:
    """From the upstream's bytes to the client's."""

    def __init__(
        self,
        reader: StreamReader,
        splitter: Splitter,
        writer: StreamWriter,
        noted: Noted,
        *,
        model: str = "",
        empty_answer: Literal["leave", "thinking"] = "leave",
        limits: Limits = Limits(),  # noqa: B008  # frozen
        on_error: Callable[[Exception], object] = lambda error: None,
    ) -> None:
        """`on_error` is told of a reader or writer that failed, while the exception is being handled."""
        self._reader = reader
        self._splitter = splitter
        self._writer = writer
        self._noted = noted
        self._model = model
        """The name that the client knows the model by, where the upstream has another."""
        self._mend = empty_answer == "thinking"
        self._seen: type = type(None)
        """What was noted last: more of the same need not be."""
        self._limits = limits
        self._on_error = on_error
        self._head = b""
        """How the answer begins, until something in it was understood."""
        self._understood = False
        self.over = False
        """Whether reading or writing failed, so that no more is to be read."""
        self._text_frame = reader.text_frame
        self._delta = writer.delta

    def feed(self, chunk: bytes) -> bytes:
        """Read bytes of the upstream and return those for the client."""
        try:
            found = self._text_frame(chunk) if self._text_frame is not None else None
            if found is None:
                if not self._understood and len(self._head) < HEAD:
                    self._head += chunk[:HEAD]
                out = self._write(self._reader.feed(chunk))
                if self._reader.frames.pending > self._limits.frame:
                    raise BoundError(too_large_frame(self._limits), out)
                return out
            # One more frame of content, as most are: past the records between the rooms, through the same rooms.
            number, text = found
            told = self._splitter.delta(number, text)
            if isinstance(told, list):
                return self._give(told, []) if told else b""
            kind = type(told)
            if kind is not self._seen or number or self._noted.keep:
                self._seen = kind
                self._noted.see_delta(number, told)
            return self._delta(number, told) if self._delta is not None else self._writer.feed(ReplyEvent(number, told))
        except BoundError as error:
            return error.out + self._end_with(Failed(str(error), 502, "api_error", "malformed_frame"))
        except Exception as error:  # whatever it is, what was read so far is not lost
            return self._give_up(error)

    def finish(self) -> bytes:
        """The upstream's reply is over."""
        if self.over:
            return b""
        try:
            return self._write(self._reader.finish()) + self._writer.finish()
        except Exception as error:
            return self._give_up(error)

    def _give_up(self, error: Exception) -> bytes:
        """The last resort when the reader or the writer failed: what was held back, then the error."""
        self._on_error(error)
        return self._end_with(UNREADABLE)

    def _end_with(self, failed: Failed) -> bytes:
        """Read no further: what was held back, then this failure, each as far as it can be written."""
        self.over = True
        out: list[bytes] = []
        for item in (*self._splitter.finish(), failed):
            with contextlib.suppress(Exception):
                self._noted.see(item)
                out.append(self._writer.feed(item))
        with contextlib.suppress(Exception):
            out.append(self._writer.finish())
        return b"".join(out)

    def abandon(self) -> None:
        """The client has left: what was held back is noted and written to nobody."""
        for item in self._splitter.finish():
            self._noted.see(item)

    def lose(self, why: Failed) -> bytes:
        """No more will come: what was held back, then the error."""
        if self.over:
            return b""
        try:
            pieces = self._reader.finish()
            kept: list[Chunk] = [piece for piece in pieces if not isinstance(piece, Failed | Ended)]
            if len(kept) < len(pieces):  # it had not said that all of it was over
                kept.append(why)
            return self._write(kept) + self._writer.finish()
        except Exception as error:
            return self._give_up(error)

    def _write(self, pieces: Sequence[Chunk]) -> bytes:
        out: list[bytes] = []
        for piece in pieces:
            items = self._splitter.feed(piece)
            if items:
                self._give(items, out)
        return out[0] if len(out) == 1 else b"".join(out)

    def _give(self, items: list[ReplyItem], out: list[bytes]) -> bytes:
        writer, noted = self._writer, self._noted
        for item in items:
            if not self._understood:
                if isinstance(item, Failed):
                    item = explained(item, self._head)
                else:
                    self._understood, self._head = True, b""
            noted.see(item)
            if type(item) is ReplyEvent:
                out.append(writer.feed(item))
            else:
                out += [writer.feed(each) for each in changed(item, noted, self._model, self._mend)]
        if noted.calls > self._limits.calls:
            raise BoundError(too_many_calls(self._limits), b"".join(out))
        return b"".join(out)


def changed(item: ReplyItem, noted: Noted, model: str, mend: bool) -> list[ReplyItem]:
    """What goes on in an item's place: the model by the client's name, and an answer for a choice without one."""
    if isinstance(item, Begin) and model:
        return [Begin(item.id, model, item.created, item.dialect, item.extra)]
    if isinstance(item, Ended) and mend:
        return [*mended(item, noted), item]
    return [item]


def mended(ended: Ended, noted: Noted) -> list[ReplyEvent]:
    """The thought that never closed, as the answer of a choice that has none."""
    choice = noted.choices.get(ended.choice)
    if choice is None or choice.answered or not choice.unclosed or not choice.thoughts:
        return []
    index = max(choice.kinds, default=-1) + 1
    events: list[Event] = [
        PartStart(index, "text", ""),
        TextDelta(index, "".join(choice.thoughts[-1])),
        PartEnd(index, True),
    ]
    return [ReplyEvent(ended.choice, event) for event in events]


def explained(failed: Failed, head: bytes) -> Failed:
    """The failure of an answer of which nothing was understood, in words that show how it begins."""
    if failed.code not in ("upstream_ended", "malformed_frame") or not head.strip():
        return failed
    lines = head.decode("utf-8", "replace").strip().splitlines()
    what = "a web page" if lines[0].startswith("<") else "something that is no model's reply"
    return msgspec.structs.replace(failed, message=f"the upstream answered with {what}: {lines[0][:SHOWN]}")


def items_of(
    pieces: list[Chunk],
    splitter: Splitter,
    noted: Noted,
    *,
    model: str = "",
    empty_answer: Literal["leave", "thinking"] = "leave",
    limits: Limits = Limits(),  # noqa: B008  # frozen
    on_error: Callable[[Exception], object] = lambda error: None,
) -> list[ReplyItem]:
    """A whole reply, by the same way. A piece that cannot be read is left out."""
    items: list[ReplyItem] = []
    for piece in pieces:
        if noted.calls > limits.calls:
            failed = Failed(too_many_calls(limits), 502, "api_error", "malformed_frame")
            noted.see(failed)
            return [*items, failed]
        try:
            for item in splitter.feed(piece):
                noted.see(item)
                items += changed(item, noted, model, empty_answer == "thinking")
        except Exception as error:
            on_error(error)
    return items
