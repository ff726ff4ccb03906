"""The whitespace that a family writes around its parts, removed from the events again. Knows no tokens and no markers.

The parser runs with `whitespace="exact"`, so that what a model sampled comes back to the letter. What the family's own
template writes around a part (a newline behind `<think>`, say) belongs to no part, and a part of whitespace alone is
none. Only what a renderer adds is removed, so reading what was rendered gives back any text.
"""

from __future__ import annotations

import msgspec

from ..events import Event, Notice, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta


class PartWhitespace(msgspec.Struct, frozen=True):
    """What a family writes around its parts. `close` and `before_call` are one character or none.

    (One character, so that it is known without looking ahead whether the end of a chunk is that whitespace.)
    """

    begin: str = ""
    """Before an answer that begins with text."""
    open: str = ""
    """At the start of thinking."""
    close: str = ""
    """At the end of thinking."""
    after: str = ""
    """Between thinking and text."""
    before_call: str = ""
    """Between text and a call."""


class WhitespaceRemover:
    """Removes a family's whitespace from a stream of events, and renumbers the parts where one is left out."""

    def __init__(self, whitespace: PartWhitespace) -> None:
        self._whitespace = whitespace
        self._count = 0
        self._start: PartStart | None = None
        self._started = False  # whether the start of the part has been emitted
        self._lead = ""
        self._tail = ""
        self._space: list[str] = []  # whitespace at the part's start
        self._held = ""
        self._cut = 0  # how much was taken off the part's start
        self._before = whitespace.begin  # what stands before a text: it depends on the part before
        self._waiting: list[Event] = []  # the end of a text, until it is known whether a call follows
        self._waiting_held = ""
        self._blank: list[tuple[str, PartEnd]] = []  # texts of whitespace alone

    def read(self, events: list[Event]) -> list[Event]:
        """The same events without that whitespace."""
        out: list[Event] = []
        for event in events:
            if isinstance(event, PartStart):
                self._resolve(out, event.kind == "tool_call")
                self._begin(event, out)
            elif isinstance(event, TextDelta | ThinkingDelta):
                self._grow(event.text, out)
            elif isinstance(event, ToolCallDelta):
                out.append(ToolCallDelta(self._count - 1, event.text))
            elif isinstance(event, PartEnd):
                self._end(event, out)
            elif self._waiting:
                self._waiting.append(event)
            else:
                out.append(event)
        return out

    def finish(self) -> list[Event]:
        """Release what was held back. Whitespace alone is a text when there is nothing else."""
        out: list[Event] = []
        self._resolve(out, False)
        if not self._count:
            for text, end in self._blank[:1]:
                out += (PartStart(0, "text"), TextDelta(0, text), msgspec.structs.replace(end, index=0))
        return out

    def _begin(self, event: PartStart, out: list[Event]) -> None:
        self._start, self._started, self._space, self._held, self._cut = event, False, [], "", 0
        if event.kind == "tool_call":
            self._emit_start(out)
        elif event.kind == "thinking":
            self._lead, self._tail = self._whitespace.open, self._whitespace.close
        else:
            self._lead, self._tail = self._before, self._whitespace.before_call
        self._before = self._whitespace.after if event.kind == "thinking" else ""

    def _emit_start(self, out: list[Event]) -> None:
        assert self._start is not None
        out.append(msgspec.structs.replace(self._start, index=self._count))
        self._count += 1
        self._started = True

    def _grow(self, text: str, out: list[Event]) -> None:
        assert self._start is not None
        text, self._held = self._held + text, ""
        if not self._started:
            if text.isspace():
                self._space.append(text)
                return
            text = "".join([*self._space, text])
            kept = _without_lead(text, self._lead)
            self._cut, text = len(text) - len(kept), kept
            self._emit_start(out)
        if self._tail and text.endswith(self._tail):
            text, self._held = text[: -len(self._tail)], self._tail
        if text:
            out.append((ThinkingDelta if self._start.kind == "thinking" else TextDelta)(self._count - 1, text))

    def _end(self, event: PartEnd, out: list[Event]) -> None:
        assert self._start is not None
        kind, start, stop = self._start.kind, event.span[0] + self._cut, event.span[1]
        if not self._started:
            if kind == "text":
                self._blank.append(("".join(self._space), event))
            return
        if kind == "thinking" and event.complete:
            stop -= len(self._held)
        elif kind == "thinking" and self._held:
            out.append(ThinkingDelta(self._count - 1, self._held))
        ended = PartEnd(self._count - 1, event.complete, event.error, (start, stop), event.error_message)
        if kind == "text":
            self._waiting, self._waiting_held = [ended], self._held
        else:
            out.append(ended)

    def _resolve(self, out: list[Event], calls: bool) -> None:
        """Emit the end of the last text, now that it is known whether a call follows it."""
        if not self._waiting:
            return
        ended, *notices = self._waiting
        assert isinstance(ended, PartEnd)
        if calls:
            start, stop = ended.span
            ended = msgspec.structs.replace(ended, span=(start, stop - len(self._waiting_held)))
        elif self._waiting_held:
            out.append(TextDelta(ended.index, self._waiting_held))
        out += (ended, *(notice for notice in notices if isinstance(notice, Notice)))
        self._waiting, self._waiting_held = [], ""


def _without_lead(text: str, lead: str) -> str:
    """Without the whitespace at its start, or as much of it as is there."""
    for length in range(len(lead), 0, -1):
        if text.startswith(lead[:length]):
            return text[length:]
    return text
