"""A reply read in two stages, for hosts with a reader of thoughts and a reader of calls behind it, and text between.

`ThoughtHalf` takes thoughts out and hands on the rest, calls as the model wrote them: the host may read those itself.
`CallHalf` takes calls out and hands on the rest. Each is the whole engine, so that a marker in an argument ends no
thought, a call that was drafted in a thought stays there, and one behind a thought that nothing closed is a call.

    thoughts, calls = ThoughtHalf(Reading.of(format="qwen3")), CallHalf(Reading.of(format="qwen3"))
    piece = thoughts.feed("<think>Weather?</think>I look. <tool_call>{…")    # piece.thinking is "Weather?"
    calls.feed(piece.rest)                                                   # .text is "I look.", .calls the call

What a part is handed on for, events say; where it stands in the raw text, its span. Between two parts stand markers and
whitespace. Beside a call they are handed on with it, because the brackets of a list and the markers of a section are
in no part; only the markers of thoughts are left out.

A stop marker is not handed on, so whoever reads calls next, perhaps the host's own reader, cannot see that the turn has
ended. A call after that is handed on with the thoughts, where nobody runs it, and so is a text that is more than words.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from itertools import groupby
from typing import NamedTuple

from .._engine.cursor import Tape
from .._engine.mentions import GRAMMAR
from .._engine.parser import beyond_of, format_of, keep_kinds, may_become_text, open_span, read_prompt, turn_end_of
from ..dialects._whole_calls import behind_arguments
from ..events import Event, Notice, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from ..parts import Kind
from ..policies import DEFAULTS, Start
from ..reading import Reading
from ..reply._choice import MOST_COMPARED

NOT_WORDS = GRAMMAR | {"`"}
"""What is not in plain words: every call has one of these, and with a backtick a code span around one may end."""
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

    def __init__(self, reading: Reading) -> None:
        self.parser = reading.but(collect=False).parser()
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

    @property
    def turn_end(self) -> int:
        """The offset at which a stop marker ended the turn; one beyond everything while none has."""
        return turn_end_of(self.parser)

    @property
    def beyond(self) -> int:
        """The offset at which another turn begins; the end of what was read where none does."""
        beyond = beyond_of(self.parser)
        return self.size if beyond is None else beyond[0]

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

    def end_of(self, start: PartStart | Retyped) -> PartEnd | None:
        """How a part ends, if it does so in the events that were last returned."""
        return next((each for each in self._events if type(each) is PartEnd and each.index == start.index), None)

    def _trim(self) -> None:
        """Let go of what stands before anything that may be asked for again."""
        size = self._tape.sync()
        if may_become_text(self.parser):  # its words would be handed on once more; a bound, as in `Splitter`
            if size > MOST_COMPARED:
                keep_kinds(self.parser)
        else:
            self._tape.forget(min(self.needed, self.emitted if self._is_open else self.ended))
        # Not at every chunk: a long reply would cost more for each than a short one.
        self._trim_at = len(self._tape.pieces) + MOST_PIECES


class ThoughtHalf:
    """Takes thoughts out of a reply and hands on the rest, calls as the model wrote them.

    `answer_verbatim`: the answer was written under a grammar (JSON), so that nothing in it is a marker.
    """

    def __init__(self, reading: Reading, *, answer_verbatim: bool = False) -> None:
        self._reader = RawReader(reading)
        self._opener = ""
        """What the prompt holds of a call that the reply goes on with: the second stage does not see the prompt."""
        policies = reading.policies
        if policies.prompt is not None and policies.start is None:
            self._opener = read_prompt(reading.format, policies.prompt).call
        self._answer_verbatim = answer_verbatim
        self.verbatim = False
        """Whether such an answer has begun."""
        self._before: Kind | None = None
        """The kind of the part before."""
        self._sent = -1
        """The offset up to which an open call was handed on; negative while none is open."""
        self.notices: list[Notice] = []
        """What was odd."""
        self._apart = False
        """Whether text that turned out to be a thought was handed on last."""
        self._late: list[str] | None = None
        """What has come of the open part and did not go on yet, where that is after the end of the turn."""
        self._late_thought = False
        """Whether what is late goes on with the thoughts, whatever it is: a call could be read in it."""
        self._late_gap = ""
        """What sets it apart from the thought before."""
        self._broken = False
        """Whether a call was handed on that is not whole, so that whatever follows could be its rest."""
        self._thought = False
        """Whether any thought was taken out."""

    @property
    def is_thinking(self) -> bool:
        """Whether a thought is open."""
        return not self.verbatim and self._reader.parser.state == "thinking"

    def feed(self, chunk: str) -> ThoughtsTaken:
        """Read a chunk."""
        if self.verbatim:
            return ThoughtsTaken("", chunk)
        events = self._reader.feed(chunk)
        # A chunk inside a part, as nearly all are: what `_route` would make of it, without asking.
        if len(events) == 1 and self._late is None:
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
        return piece._replace(rest=piece.rest + reader.text(reader.ended, reader.beyond))

    def _route(self, events: list[Event]) -> ThoughtsTaken:
        reader = self._reader
        thinking: list[str] = []
        rest: list[str] = []
        for event in events:
            if isinstance(event, ThinkingDelta):
                thinking.append(event.text)
            elif isinstance(event, TextDelta):
                (rest if self._late is None else self._late).append(event.text)
            elif isinstance(event, PartStart):
                if event.kind == "thinking":
                    thinking.append(event.gap)
                    self._thought = True
                elif self._answer_verbatim:
                    self.verbatim = True
                    return ThoughtsTaken("".join(thinking), reader.text(reader.begin(event), reader.size))
                rest.append(self._begin(event))
            elif isinstance(event, PartEnd):
                self._end(event, thinking, rest)
            elif isinstance(event, Retyped):
                rest.append(self._retype(event))
            elif isinstance(event, Notice):
                self.notices.append(event)
        if self._sent >= 0:
            emitted = max(reader.emitted, self._sent)
            (rest if self._late is None else self._late).append(reader.text(self._sent, emitted))
            self._sent = emitted
        if self._late is not None and (self._late_thought or sum(map(len, self._late)) > MOST_COMPARED):
            self._late_thought = True
            self._hand_on_late(thinking, rest)
        return ThoughtsTaken("".join(thinking), "".join(rest))

    def _end(self, event: PartEnd, thinking: list[str], rest: list[str]) -> None:
        """A part ends: what was not handed on of it is."""
        self._reader.end(event, self._sent)
        self._broken = self._broken or event.error is not None
        if self._sent >= 0:
            (rest if self._late is None else self._late).append(self._reader.text(self._sent, self._reader.ended))
            self._sent = -1
        if self._late is not None:
            self._hand_on_late(thinking, rest)
            self._late = None

    def _retype(self, event: Retyped) -> str:
        """The first part is of the other kind: what goes on once more. Words that went on cannot be taken back."""
        self._before = event.kind
        self._apart = event.kind == "thinking"
        end = self._reader.end_of(event)
        return "" if self._apart or end is None else self._reader.text(*end.span)

    def _begin(self, start: PartStart) -> str:
        """A part begins: what goes on before it."""
        before, self._before = self._before, start.kind
        begin = self._reader.begin(start)
        late = begin >= self._reader.turn_end and start.kind != "thinking"
        if start.kind == "tool_call":
            self._sent = begin
        if late:
            return self._begin_late(start, before)
        if start.kind == "tool_call":
            if before is None and self._opener:
                return self._opener + self._reader.text(0, begin)
        elif before != "tool_call":
            apart, self._apart = self._apart, False
            return (start.gap or "\n\n" * apart) if start.kind == "text" else ""
        return self._between(self._reader.ended, begin, "thinking" if before == "thinking" else "text")

    def _begin_late(self, start: PartStart, before: Kind | None) -> str:
        """A part begins after the end of the turn: what goes on before it, which ends a call that may be run."""
        self._late, self._before = [start.gap], "text"
        self._late_thought = start.kind == "tool_call" or self._broken
        self._late_gap = "\n\n" * self._thought
        return self._between(self._reader.ended, self._reader.turn_end) if before == "tool_call" else ""

    def _hand_on_late(self, thinking: list[str], rest: list[str]) -> None:
        """What came after the end of the turn goes on as text, if it is no more than words.

        Then it neither holds a call nor ends one that stands in the text before it.
        """
        text, self._late = "".join(self._late or ()), []
        if self._late_thought or not NOT_WORDS.isdisjoint(text):
            thinking += [self._late_gap, text]
            self._thought, self._late_gap = True, ""
        else:
            rest.append(text)

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
        parser = Reading.of(format=format, policies=own).parser()
        events = parser.feed(raw) + parser.finish()
        return "".join(event.text for event in events if isinstance(event, TextDelta | ThinkingDelta))


class CallHalf:
    """Takes calls out of a reply and hands on every other character, thoughts and their markers too.

    `names`: what may be called. A call of anything else stays text, as does one whose name cannot be read. None: all.
    """

    def __init__(self, reading: Reading, names: Collection[str] | None = None) -> None:
        self._reader = RawReader(reading.but(retype=False))  # to it thoughts are text
        self._names = names
        self._taken: dict[int, int] = {}
        """For the index of a part, the number of its call."""
        self._after_call = False
        """Whether the part before is a call that was taken out."""
        self._arguments: list[str] = []
        """What went out of the arguments of the open call."""
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
                    self._arguments.append(event.text)
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
                    self._arguments.append(event.text)
                    calls.append(CallDelta(self._taken[event.index], "", event.text))
            elif isinstance(event, PartStart):
                if self._takes(event, whole):
                    reader.begin(event)
                    number = self._taken[event.index] = len(self._taken)
                    self.unfinished.add(number)
                    self._arguments.clear()
                    self._after_call = True
                    calls.append(CallDelta(number, event.name, "", event.id))
                else:
                    text.append(self._begin_text(event))
            elif isinstance(event, PartEnd):
                number = self._taken.get(event.index, -1)
                if number >= 0 and event.error is None:
                    self.unfinished.discard(number)
                elif number >= 0:
                    # Nothing else tells a client of these hosts that a call is broken.
                    why = behind_arguments("".join(self._arguments), f" ({event.error_message})")
                    calls += [CallDelta(number, "", why)] if why else []
                elif reader.needed != sys.maxsize:
                    text.append(reader.text(reader.needed, event.span[1]))
                    reader.needed = sys.maxsize
                reader.end(event)
            elif isinstance(event, Notice):
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
