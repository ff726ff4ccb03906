"""From pieces to items: what an upstream sent becomes one sequence of events for each choice.

Words go through a `Parser` of their own choice. Thoughts and calls that the upstream has already split off become the
same events without passing it; from then on the words of that choice are read for calls only, not for thinking again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import msgspec

from ..engine.calls.json_scan import JsonScanner
from ..engine.format import TEXT, THINKING, Format, State
from ..engine.parser import Parser
from ..engine.tape import Tape
from ..events import Event, Notice, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from .reply import Begin, CallPiece, Ended, Failed, Foreign, Item, Piece, Said, Thought, Usage, Words

MakeParser = Callable[[Format], Parser]
"""Makes the parser of a choice: the format with the caller's policies."""


class Splitter:
    """Turns the pieces of a reply into items."""

    def __init__(self, format: Format, make_parser: MakeParser, *, show: bool = True) -> None:
        self._format = format
        self._make_parser = make_parser
        self._show = show
        self._choices: dict[int, _Choice] = {}
        self.fields: set[str] = set()
        """The names under which the upstream has sent thinking."""

    def feed(self, piece: Piece) -> list[Item]:
        """Read a piece and return what it tells."""
        match piece:
            case Words(choice=number):
                return self._choice(number).words(piece)
            case Thought(choice=number):
                if piece.field:
                    self.fields.add(piece.field)
                return self._choice(number).thought(piece)
            case CallPiece(choice=number):
                return self._choice(number).call(piece)
            case Ended(choice=number):
                choice = self._choice(number)
                return [*choice.finish(cut=piece.reason == "length"), piece]
            case Usage():
                return [self._usage(piece)]
            case Failed():
                return [*self.finish(), piece]
            case Begin() | Foreign():
                return [piece]

    def finish(self) -> list[Item]:
        """Nothing more will come: release what is held back."""
        return [item for choice in self._choices.values() for item in choice.finish(cut=True)]

    def _choice(self, number: int) -> _Choice:
        if number not in self._choices:
            self._choices[number] = _Choice(number, self._format, self._make_parser, self._show)
        return self._choices[number]

    def _usage(self, usage: Usage) -> Usage:
        """Where the upstream does not count thinking, share the tokens out by characters."""
        thought = sum(choice.thought_characters for choice in self._choices.values())
        said = sum(choice.said_characters for choice in self._choices.values())
        if usage.reasoning_tokens is not None or not thought:
            return usage
        share = round(usage.output_tokens * thought / (thought + said))
        return msgspec.structs.replace(usage, reasoning_tokens=share, estimated=True)


class _Choice:
    """One choice of a reply."""

    def __init__(self, number: int, format: Format, make_parser: MakeParser, show: bool) -> None:
        self._number = number
        self._format = format
        self._make_parser = make_parser
        self._show = show
        self._parser: Parser | None = None
        self._blank: list[str] = []
        self._count = 0
        self._first = 0
        self._open: tuple[int, str] | None = None
        self._calls: dict[int, _Call] = {}
        self._thoughts: list[str] = []
        self._repeat: list[Event] | None = None
        self._ended = False
        self._hidden: set[int] = set()
        self._tape = Tape()
        self.thought_characters = 0
        self.said_characters = 0

    def words(self, piece: Words) -> list[Item]:
        """Content, which may hold markers."""
        if not piece.text or self._ended:
            return []
        if self._parser is None:
            if not self._blank and not piece.text.strip():
                # Whitespace before thinking that comes in a field of its own is framing.
                self._blank.append(piece.text)
                return []
            events = self._close_split()
            return self._tell(events + self._begin_words(piece))
        self._tape.pieces.append(piece.text)
        return self._tell(self._shift(self._parser.feed(piece.text)))

    def _begin_words(self, piece: Words) -> list[Event]:
        text = "".join(self._blank) + piece.text
        self._blank.clear()
        format = self._format
        if self._thoughts:
            opens = [marker for marker, target in format.states.get(TEXT, {}).items() if target == THINKING]
            if text.lstrip().startswith(tuple(opens)):
                self._repeat = []
            else:
                format = without_thinking(format)
        self._parser = self._make_parser(format)
        self._first = self._count
        self._tape = Tape()
        self._tape.pieces.append(text)
        return self._shift(self._parser.feed(text))

    def thought(self, piece: Thought) -> list[Item]:
        """Thinking that is already split off."""
        if not piece.text or self._ended:
            return []
        events = self._close_words()
        if self._open is None or self._open[1] != "thinking":
            events += self._close_split()
            gap = "\n\n" if self._thoughts else ""
            events.append(PartStart(self._count, "thinking", gap))
            self._open = (self._count, "thinking")
            self._count += 1
        self._thoughts.append(piece.text)
        events.append(ThinkingDelta(self._open[0], piece.text))
        return self._tell(events)

    def call(self, piece: CallPiece) -> list[Item]:
        """A call that is already read."""
        if self._ended:
            return []
        events = self._close_words()
        if self._open is not None:
            events += self._close_thinking()
        call = self._calls.get(piece.index)
        if call is None:
            call = self._calls[piece.index] = _Call(self._count)
            self._count += 1
        return self._tell(events + call.feed(piece))

    def finish(self, *, cut: bool) -> list[Item]:
        """The choice has ended."""
        if self._ended:
            return []
        items = self._tell(self._close_words() + self._close_split(cut))
        self._ended = True
        return items

    def _close_words(self) -> list[Event]:
        parser, self._parser = self._parser, None
        if parser is None:
            return []
        events = self._shift(parser.finish())
        if self._repeat:
            events, self._repeat = self._repeat + events, None
        return events

    def _close_split(self, cut: bool = False) -> list[Event]:
        events = self._close_thinking() if self._open is not None else []
        for call in self._calls.values():
            events += call.finish(cut)
        self._calls.clear()
        return events

    def _close_thinking(self) -> list[Event]:
        assert self._open is not None
        index, self._open = self._open[0], None
        return [PartEnd(index)]

    def _shift(self, events: list[Event]) -> list[Event]:
        """The parser counts its parts from zero; the choice counts all."""
        shifted: list[Event] = []
        for event in events:
            if isinstance(event, Notice):
                shifted.append(event)
                continue
            index = event.index + self._first
            self._count = max(self._count, index + 1)
            moved = event if index == event.index else msgspec.structs.replace(event, index=index)
            shifted.append(moved)
        return self._without_repeat(shifted) if self._repeat is not None else shifted

    def _without_repeat(self, events: list[Event]) -> list[Event]:
        """Leave out a thinking block that only repeats what came in a field of its own."""
        assert self._repeat is not None
        for number, event in enumerate(events):
            self._repeat.append(event)
            if isinstance(event, PartEnd):
                held, self._repeat = self._repeat, None
                told = "".join(each.text for each in held if isinstance(each, ThinkingDelta))
                same = told.strip() == "".join(self._thoughts).strip()
                return ([] if same else held) + events[number + 1 :]
        return []

    def _tell(self, events: list[Event]) -> list[Item]:
        items: list[Item] = []
        for event in events:
            if isinstance(event, ThinkingDelta):
                self.thought_characters += len(event.text)
            elif isinstance(event, TextDelta | ToolCallDelta):
                self.said_characters += len(event.text)
            if not self._show and self._is_hidden(event):
                continue
            written = ""
            if isinstance(event, PartEnd) and event.error is not None and event.span[1]:
                self._tape.sync()
                written = without_markers(self._tape.text(*event.span), self._format)
            items.append(Said(self._number, event, written=written))
        return items

    def _is_hidden(self, event: Event) -> bool:
        if isinstance(event, PartStart) and event.kind == "thinking":
            self._hidden.add(event.index)
        return not isinstance(event, Notice) and event.index in self._hidden


class _Call:
    """A call that the upstream has already read, piece by piece."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._begun = False
        self._id = ""
        self._name = ""
        self._early: list[str] = []
        self._scanner = JsonScanner()
        self._object = False
        self._rest = ""

    def feed(self, piece: CallPiece) -> list[Event]:
        self._id = self._id or piece.id
        self._name = self._name or piece.name
        events: list[Event] = []
        if not self._begun:
            self._early.append(piece.arguments)
            if self._name:
                self._begun = True
                events.append(PartStart(self._index, "tool_call", "", self._name, self._id))
                events += self._arguments("".join(self._early))
            return events
        return self._arguments(piece.arguments)

    def _arguments(self, text: str) -> list[Event]:
        if not text:
            return []
        rest = self._rest + text
        self._object = self._object or rest.lstrip().startswith("{")
        stop = self._scanner.scan(rest, 0, len(rest)) if not self._scanner.done else 0
        self._rest = rest[stop:] if not self._scanner.done else ""
        return [ToolCallDelta(self._index, text)]

    def finish(self, cut: bool) -> list[Event]:
        events: list[Event] = []
        if not self._begun:
            events.append(PartStart(self._index, "tool_call", "", "", self._id))
            events += self._arguments("".join(self._early))
        elif not self._object and not self._scanner.done and not self._rest and not cut:
            events.append(ToolCallDelta(self._index, "{}"))  # no arguments at all
            self._object = True
            self._scanner.scan("{}", 0, 2)
        error: str | None = None
        if not self._scanner.done:
            error = "incomplete"
        elif self._scanner.error is not None:
            error = "invalid_json"
        elif not self._object:
            error = "not_object"
        elif not self._name:
            error = "no_name"
        events.append(PartEnd(self._index, error != "incomplete", error))
        return events


@lru_cache(maxsize=64)
def without_thinking(format: Format) -> Format:
    """The same format, read for calls only."""
    text: dict[str, State] = {
        marker: target for marker, target in format.states.get(TEXT, {}).items() if target != THINKING
    }
    return format.but(states={TEXT: text}, header=None, start=TEXT, leading=frozenset(), settle=None)


def without_markers(raw: str, format: Format) -> str:
    """What the model wrote of a call, without the markers around it."""
    if format.header is not None and format.header.body:
        raw = raw.partition(format.header.body)[2] or raw
    for syntax in (*format.calls, *(format.header.calls if format.header is not None else ())):
        for marker in syntax.openers:
            raw = raw.removeprefix(marker)
        for marker in syntax.closers:
            raw = raw.rstrip().removesuffix(marker)
    return raw.strip()
