"""A reply read in two stages, for hosts with a reader of thoughts and a reader of calls behind it, and text between.

`ThoughtHalf` takes thoughts out and hands on the rest, calls as the model wrote them: the host may read those itself.
`CallHalf` takes calls out and hands on the rest. Each is the whole engine, so that a marker in an argument ends no
thought, a call that was drafted in a thought stays there, and one behind a thought that nothing closed is a call.

    thoughts, calls = ThoughtHalf(QWEN3, DEFAULTS), CallHalf(QWEN3, DEFAULTS.but(start="text"))
    piece = thoughts.feed("<think>Weather?</think>I look. <tool_call>{…")    # piece.thinking is "Weather?"
    calls.feed(piece.rest)                                                   # .text is "I look.", .calls the call

What a part is handed on for, events say; where it stands in the raw text, its span. Between two parts stand markers and
whitespace. Beside a call they are handed on with it, because the brackets of a list and the markers of a section are
in no part; only the markers of thoughts are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from itertools import groupby
from typing import NamedTuple

from .._engine.cursor import Tape
from .._engine.format import Format
from .._engine.parser import Parser, format_of, open_span, read_prompt
from ..events import Event, Notice, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from ..parts import Kind
from ..policies import DEFAULTS, Policies, Start

MOST_PIECES = 64
"""How many more chunks are kept before it is decided again which are still needed."""


class ThoughtsTaken(NamedTuple):
    """What a chunk adds: to the thoughts, and to what goes on."""

    thinking: str
    rest: str


class CallDelta(NamedTuple):
    """A call grows. The first of a call has its name and its id."""

    number: int
    """Which call, from zero."""
    name: str
    arguments: str
    id: str = ""


class CallsTaken(NamedTuple):
    """What a chunk adds: to the text, and to calls."""

    text: str
    calls: list[CallDelta]


class RawReader:
    """A parser, and the raw text that it reads, as far back as it may be needed."""

    __slots__ = ("_events", "_is_open", "_tape", "_trim_at", "ended", "needed", "parser", "size")

    def __init__(self, format: Format, policies: Policies) -> None:
        self.parser = Parser(format, policies.but(collect=False))
        self._tape = Tape()
        self._trim_at = MOST_PIECES
        self._events: list[Event] = []
        self._is_open = False
        self.ended = 0
        """The offset behind the last part that ended."""
        self.needed = sys.maxsize
        """The offset from which on the text will be asked for again, where that is before the open part."""
        self.size = 0
        """How many characters were read."""

    def feed(self, chunk: str) -> list[Event]:
        """Read a chunk."""
        pieces = self._tape.pieces
        if len(pieces) > self._trim_at:
            self._trim()
        pieces.append(chunk)
        self.size += len(chunk)
        self._events = events = self.parser.feed(chunk)
        return events

    def finish(self) -> list[Event]:
        """Nothing more will come."""
        self._events = self.parser.finish()
        return self._events

    def read_whole(self, text: str) -> list[Event]:
        """Read a whole reply: all of its events."""
        self._events = self.feed(text) + self.parser.finish()
        return self._events

    @property
    def emitted(self) -> int:
        """The offset up to which events hold everything."""
        return open_span(self.parser)[1]

    def text(self, start: int, stop: int) -> str:
        """What the model wrote."""
        self._tape.sync()
        return self._tape.text(start, stop)

    def begin(self, start: PartStart) -> int:
        """Where a part begins, which has begun in the events that were last returned."""
        self._is_open = True
        end = self.end_of(start)
        # Of calls that share their markers the span is known only when it is seen that there are several.
        return max(self.ended, open_span(self.parser)[0] if end is None else end.span[0])

    def end(self, end: PartEnd, sent: int = 0) -> None:
        """A part ends, of which everything before `sent` was handed on."""
        self._is_open = False
        self.ended = max(sent, self.ended, end.span[1])

    def end_of(self, start: PartStart) -> PartEnd | None:
        """How a part ends, if it does so in the events that were last returned."""
        return next((each for each in self._events if type(each) is PartEnd and each.index == start.index), None)

    def _trim(self) -> None:
        """Let go of what stands before anything that may be asked for again."""
        self._tape.sync()
        self._tape.forget(min(self.needed, self.emitted if self._is_open else self.ended))
        # Not at every chunk: a long reply would cost more for each than a short one.
        self._trim_at = len(self._tape.pieces) + MOST_PIECES


class ThoughtHalf:
    """Takes thoughts out of a reply and hands on the rest, calls as the model wrote them.

    `answer_verbatim`: the answer was written under a grammar (JSON), so that nothing in it is a marker.
    """

    def __init__(self, format: Format, policies: Policies, *, answer_verbatim: bool = False) -> None:
        self._reader = RawReader(format, policies)
        self._opener = ""
        """What the prompt holds of a call that the reply goes on with: the second stage does not see the prompt."""
        if policies.prompt is not None and policies.start is None:
            self._opener = read_prompt(format, policies.prompt).call
        self._answer_verbatim = answer_verbatim
        self.verbatim = False
        """Whether such an answer has begun."""
        self._before: Kind | None = None
        """The kind of the part before."""
        self._sent = -1
        """The offset up to which an open call was handed on; negative while none is open."""
        self.notices: list[Notice] = []
        """What was odd."""

    @property
    def is_thinking(self) -> bool:
        """Whether a thought is open."""
        return not self.verbatim and self._reader.parser.state == "thinking"

    def feed(self, chunk: str) -> ThoughtsTaken:
        """Read a chunk."""
        if self.verbatim:
            return ThoughtsTaken("", chunk)
        events = self._reader.feed(chunk)
        if len(events) == 1:  # a chunk inside a part, as nearly all are: what `_route` would make of it, without asking
            event = events[0]
            if isinstance(event, ToolCallDelta):
                # The event is the whole chunk, so that nothing of it is held back, and nothing before it was.
                if event.text is chunk and self._sent == self._reader.size - len(chunk):
                    self._sent = self._reader.size
                    return ThoughtsTaken("", chunk)
            elif isinstance(event, TextDelta):
                return ThoughtsTaken("", event.text)
            elif isinstance(event, ThinkingDelta):
                return ThoughtsTaken(event.text, "")
        return self._route(events)

    def finish(self) -> ThoughtsTaken:
        """Nothing more will come: what was held back."""
        reader = self._reader
        piece = self._route(reader.finish()) if not self.verbatim else ThoughtsTaken("", "")
        if self._before != "tool_call":
            return piece
        # Here the markers of thoughts may stay: with nothing behind them, they are taken for the end of the call.
        return piece._replace(rest=piece.rest + reader.text(reader.ended, reader.size))

    def _route(self, events: list[Event]) -> ThoughtsTaken:
        reader = self._reader
        thinking: list[str] = []
        rest: list[str] = []
        for event in events:
            if isinstance(event, ThinkingDelta):
                thinking.append(event.text)
            elif isinstance(event, TextDelta):
                rest.append(event.text)
            elif isinstance(event, PartStart):
                if event.kind == "thinking":
                    thinking.append(event.gap)
                elif self._answer_verbatim:
                    self.verbatim = True
                    return ThoughtsTaken("".join(thinking), reader.text(reader.begin(event), reader.size))
                rest.append(self._begin(event))
            elif isinstance(event, PartEnd):
                reader.end(event, self._sent)
                if self._sent >= 0:
                    rest.append(reader.text(self._sent, reader.ended))
                    self._sent = -1
            elif isinstance(event, Notice):
                self.notices.append(event)
        if self._sent >= 0:
            emitted = max(reader.emitted, self._sent)
            rest.append(reader.text(self._sent, emitted))
            self._sent = emitted
        return ThoughtsTaken("".join(thinking), "".join(rest))

    def _begin(self, start: PartStart) -> str:
        """A part begins: what goes on before it."""
        before, self._before = self._before, start.kind
        begin = self._reader.begin(start)
        if start.kind == "tool_call":
            self._sent = begin
            if before is None and self._opener:
                return self._opener + self._reader.text(0, begin)
        elif before != "tool_call":
            return start.gap if start.kind == "text" else ""
        return self._between(self._reader.ended, begin, "thinking" if before == "thinking" else "text")

    def _between(self, start: int, stop: int, state: Start = "text") -> str:
        """What stands between a call and the part beside it, without the markers of thoughts."""
        raw = self._reader.text(start, stop)
        if not raw.strip():
            return raw
        format = format_of(self._reader.parser)
        if format.header is not None and self._before == "text":
            return raw  # the header of the message that the text stands in
        # Read by the engine, but for calls: to it the markers of thoughts are markers, and all else is left.
        own = DEFAULTS.but(start=state, calls=False, mentions="marker", whitespace="exact", collect=False)
        parser = Parser(format, own)
        events = parser.feed(raw) + parser.finish()
        return "".join(event.text for event in events if isinstance(event, TextDelta | ThinkingDelta))


class CallHalf:
    """Takes calls out of a reply and hands on every other character, thoughts and their markers too.

    `names`: what may be called. A call of anything else stays text, as does one whose name cannot be read. None: all.
    """

    def __init__(self, format: Format, policies: Policies, names: Collection[str] | None = None) -> None:
        self._reader = RawReader(format, policies)
        self._names = names
        self._taken: dict[int, int] = {}
        """For the index of a part, the number of its call."""
        self._after_call = False
        """Whether the part before is a call that was taken out."""
        self.unfinished: set[int] = set()
        """The numbers of the calls that are open, and of those that turned out broken: they may not be run."""
        self.left: list[str] = []
        """The names of the calls that stayed text."""
        self.notices: list[Notice] = []
        """What was odd."""

    def feed(self, chunk: str) -> CallsTaken:
        """Read a chunk."""
        if not chunk:  # the half before has kept it
            return CallsTaken("", [])
        events = self._reader.feed(chunk)
        if len(events) == 1:  # as in `ThoughtHalf`
            event = events[0]
            if isinstance(event, ToolCallDelta):
                if event.index in self._taken:
                    return CallsTaken("", [CallDelta(self._taken[event.index], "", event.text)])
            elif isinstance(event, TextDelta | ThinkingDelta):
                return CallsTaken(event.text, [])
        return self._route(events)

    def finish(self) -> CallsTaken:
        """Nothing more will come: what was held back."""
        return self._end(self._route(self._reader.finish()))

    def read_whole(self, text: str) -> CallsTaken:
        """Read a whole reply: every call is one item, and a broken one stays text, because nothing of it went out."""
        piece = self._end(self._route(self._reader.read_whole(text), whole=True))
        calls: dict[int, list[CallDelta]] = {}
        for call in piece.calls:
            calls.setdefault(call.number, []).append(call)
        return piece._replace(calls=[_join(deltas) for deltas in calls.values()])

    def _end(self, piece: CallsTaken) -> CallsTaken:
        if self._after_call:
            return piece
        return piece._replace(text=piece.text + self._reader.text(self._reader.ended, self._reader.size))

    def _route(self, events: list[Event], whole: bool = False) -> CallsTaken:
        reader = self._reader
        text: list[str] = []
        calls: list[CallDelta] = []
        for event in events:
            if isinstance(event, TextDelta | ThinkingDelta):
                text.append(event.text)
            elif isinstance(event, ToolCallDelta):
                if event.index in self._taken:
                    calls.append(CallDelta(self._taken[event.index], "", event.text))
            elif isinstance(event, PartStart):
                if self._takes(event, whole):
                    reader.begin(event)
                    number = self._taken[event.index] = len(self._taken)
                    self.unfinished.add(number)
                    self._after_call = True
                    calls.append(CallDelta(number, event.name, "", event.id))
                else:
                    text.append(self._begin_text(event))
            elif isinstance(event, PartEnd):
                if event.index in self._taken and event.error is None:
                    self.unfinished.discard(self._taken[event.index])
                elif reader.needed != sys.maxsize:
                    text.append(reader.text(reader.needed, event.span[1]))
                    reader.needed = sys.maxsize
                reader.end(event)
            else:
                self.notices.append(event)
        if len(calls) > 1:  # a name goes out alone, and the arguments behind it in one piece
            calls = [_join(list(deltas)) for _, deltas in groupby(calls, lambda call: (call.number, call.name))]
        return CallsTaken("".join(text), calls)

    def _takes(self, start: PartStart, whole: bool) -> bool:
        """Whether a part is a call that is taken out."""
        if start.kind != "tool_call":
            return False
        if start.name and (self._names is None or start.name in self._names):
            end = self._reader.end_of(start)
            return not whole or (end is not None and end.error is None)
        return False

    def _begin_text(self, start: PartStart) -> str:
        """A part begins that stays in the text: what goes on before it."""
        begin = self._reader.begin(start)
        if start.kind == "tool_call":
            self._reader.needed = begin  # where a call begins that stays text, while it is open
            self.left.append(start.name)
        if self._after_call:
            self._after_call = False
            return start.gap if start.kind == "text" else ""
        return self._reader.text(self._reader.ended, begin)


def _join(deltas: list[CallDelta]) -> CallDelta:
    """What several deltas of a call add to it."""
    return deltas[0]._replace(arguments="".join(delta.arguments for delta in deltas))
