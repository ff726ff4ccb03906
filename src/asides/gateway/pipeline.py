"""The way of one reply: bytes of the upstream in, bytes for the client out, and what is noted on the way.

One path for every frame that is not passed on byte for byte. Knows no socket.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from ..dialects.reply import Begin, Ended, Failed, Item, Piece, Said, Usage
from ..dialects.splitter import Splitter
from ..events import Event, Notice, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta


class Reader(Protocol):
    """Reads the bytes of a streamed reply."""

    def feed(self, chunk: bytes) -> list[Piece]:
        """Read bytes and return what they tell."""

    def finish(self) -> list[Piece]:
        """The stream is over."""


class Writer(Protocol):
    """Writes a streamed reply."""

    def feed(self, item: Item) -> bytes:
        """The bytes that an item adds."""

    def finish(self) -> bytes:
        """The reply is over."""


class Noted:
    """What is noted of a reply while it passes: for metrics, logs, the replay cache and history."""

    def __init__(self, *, keep: bool) -> None:
        self.keep = keep
        """Whether words are kept: the replay cache needs thoughts and calls, history all of it."""
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
        """Note more of a text or of a thought."""
        if type(event) is TextDelta:
            choice = self._choice(number)
            choice.answered = True
            if self.keep:
                choice.texts.append(event.text)
            if self.first_answer is None:
                self.first_answer = time.monotonic()
        elif type(event) is ThinkingDelta:
            if self.keep:
                self._choice(number).thoughts[-1].append(event.text)
            if self.first_thought is None:
                self.first_thought = time.monotonic()

    def see(self, item: Item) -> None:
        """Note an item."""
        if type(item) is Said:
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

    def _other(self, item: Said) -> None:
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
                choice.calls[event.index] = (event.name or "", event.id or "", [])
            elif self.keep and event.gap:
                choice.texts.append(event.gap)
        elif isinstance(event, ToolCallDelta):
            if self.keep and event.index in choice.calls:
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
        reader: Reader,
        splitter: Splitter,
        writer: Writer,
        noted: Noted,
        *,
        model: str = "",
        empty_answer: Literal["leave", "thinking"] = "leave",
    ) -> None:
        self._reader = reader
        self._splitter = splitter
        self._writer = writer
        self._noted = noted
        self._model = model
        """The name that the client knows the model by, where the upstream has another."""
        self._mend = empty_answer == "thinking"
        self._seen: type = type(None)
        """What was noted last: more of the same need not be."""
        self._words: Callable[[bytes], tuple[int, str] | None] | None = getattr(reader, "words", None)
        self._delta: Callable[[int, Event], bytes] | None = getattr(writer, "delta", None)

    def feed(self, chunk: bytes) -> bytes:
        """Read bytes of the upstream and return those for the client."""
        found = self._words(chunk) if self._words is not None else None
        if found is None:
            return self._write(self._reader.feed(chunk))
        # One more frame of content, as most are: past the records between the rooms, through the same rooms.
        number, text = found
        told = self._splitter.delta(number, text)
        if isinstance(told, list):
            return self._give(told, []) if told else b""
        kind = type(told)
        if kind is not self._seen or number or self._noted.keep:
            self._seen = kind
            self._noted.see_delta(number, told)
        return self._delta(number, told) if self._delta is not None else self._writer.feed(Said(number, told))

    def finish(self) -> bytes:
        """The upstream's reply is over."""
        return self._write(self._reader.finish()) + self._writer.finish()

    def abandon(self) -> None:
        """The client has left: what was held back is noted and written to nobody."""
        for item in self._splitter.finish():
            self._noted.see(item)

    def lose(self, why: Failed) -> bytes:
        """No more will come: what was held back, then the error."""
        pieces = self._reader.finish()
        kept: list[Piece] = [piece for piece in pieces if not isinstance(piece, Failed | Ended)]
        if len(kept) < len(pieces):  # it had not said that all of it was over
            kept.append(why)
        return self._write(kept) + self._writer.finish()

    def _write(self, pieces: Sequence[Piece]) -> bytes:
        out: list[bytes] = []
        for piece in pieces:
            items = self._splitter.feed(piece)
            if items:
                self._give(items, out)
        return out[0] if len(out) == 1 else b"".join(out)

    def _give(self, items: list[Item], out: list[bytes]) -> bytes:
        writer, noted = self._writer, self._noted
        for item in items:
            noted.see(item)
            if type(item) is Said:
                out.append(writer.feed(item))
            else:
                out += [writer.feed(each) for each in changed(item, noted, self._model, self._mend)]
        return b"".join(out)


def changed(item: Item, noted: Noted, model: str, mend: bool) -> list[Item]:
    """What goes on in an item's place: the model by the client's name, and an answer for a choice without one."""
    if isinstance(item, Begin) and model:
        return [Begin(item.id, model, item.created, item.dialect, item.extra)]
    if isinstance(item, Ended) and mend:
        return [*mended(item, noted), item]
    return [item]


def mended(ended: Ended, noted: Noted) -> list[Said]:
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
    return [Said(ended.choice, event) for event in events]


def items_of(
    pieces: list[Piece],
    splitter: Splitter,
    noted: Noted,
    *,
    model: str = "",
    empty_answer: Literal["leave", "thinking"] = "leave",
) -> list[Item]:
    """A whole reply, by the same way."""
    items: list[Item] = []
    for piece in pieces:
        for item in splitter.feed(piece):
            noted.see(item)
            items += changed(item, noted, model, empty_answer == "thinking")
    return items
