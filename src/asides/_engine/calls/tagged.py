"""What the readers of grammars that write arguments between tags have in common: their steps, and where a call ends.

Knows text, not tags by name: `xml_calls.py`, `nested_calls.py` and `keyed_calls.py` say which there are. Where a value
ends is in `tagged_value.py`, its type in `values.py`, the tags that it may hold in `value_tags.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from .reader import Sink, Status
from .steps import StepReader, marker_at, skip, wait
from .strings import StringBody
from .syntax import CallSyntax
from .tagged_value import CDATA, TaggedValue, ValueFrame, skip_gap
from .value_tags import CallMarkers, Piece, PlainReading, ReadWhole, ValueTags, spelling
from .values import Kind, Schema, ValueWriter, quote, write_value

LONGEST_TAG = 1024
"""A tag, with a name and attributes, is no longer than this, in characters."""


class TaggedCalls(CallSyntax, frozen=True, kw_only=True):
    """What the syntaxes have in common that write arguments between tags."""

    @cached_property
    def begins_call(self) -> tuple[str, ...]:
        """What a call in a section begins with."""
        raise NotImplementedError

    @cached_property
    def pieces(self) -> tuple[tuple[str, Piece], ...]:
        """How the tags are spelled that count in a value."""
        raise NotImplementedError

    @cached_property
    def whole_tags(self) -> Mapping[Piece, ReadWhole]:
        """How those are read of which this is only the beginning."""
        raise NotImplementedError

    @property
    def tags_anywhere(self) -> bool:
        """Whether an argument's tag counts in the middle of a line too."""
        raise NotImplementedError

    def frame(self, over: tuple[str, ...]) -> ValueFrame:
        """What stands around a value. `over`: what tells that the call is over though nothing closed it."""
        raise NotImplementedError

    def layout(self, stops: tuple[str, ...]) -> Layout:
        """What readers need to know, in a format where these markers end a turn."""
        layout = self._layouts.get(stops)
        if layout is None:
            layout = self._layouts[stops] = Layout(self, stops)
        return layout

    @cached_property
    def _layouts(self) -> dict[tuple[str, ...], Layout]:
        return {}


class Layout:
    """What follows from a syntax and the format that it stands in, for all regions alike."""

    __slots__ = ("_stops", "_syntax", "_tags", "frame", "goes_on")

    def __init__(self, syntax: TaggedCalls, stops: tuple[str, ...]) -> None:
        self._syntax = syntax
        self._stops = stops
        self.goes_on: tuple[str, ...] = tuple(dict.fromkeys((*syntax.openers, *syntax.begins_call, *stops)))
        """What tells that the call is over though nothing closed it: another call, or the end of the turn."""
        self.frame: ValueFrame = syntax.frame(self.goes_on)
        """What stands around a value."""
        self._tags: dict[tuple[str, ...], ValueTags] = {}

    def tags(self, last: tuple[str, ...]) -> ValueTags:
        """The tags that count inside a value. `last`: the markers without which the call is not over."""
        tags = self._tags.get(last)
        if tags is None:
            syntax = self._syntax
            markers = CallMarkers(syntax.closers, last, (*syntax.begins_call, *syntax.openers), self._stops)
            around = (*syntax.section, *syntax.begins_call, *syntax.closers)
            others = tuple((marker, Piece.OTHER) for marker in around)
            spelled = spelling((*syntax.pieces, *others))
            tags = self._tags[last] = ValueTags(spelled, syntax.whole_tags, markers, syntax.tags_anywhere)
        return tags


_NOT_SIMPLE = (-1, -1)


class TaggedReader(StepReader):
    """The steps that every tagged grammar takes. Subclasses say what stands between a call's opener and its end."""

    def __init__(self, syntax: TaggedCalls, sink: Sink, opener: str) -> None:
        super().__init__(sink)
        self._markers = syntax
        self._layout = syntax.layout(sink.stops)
        self._section = opener in syntax.section
        self._wrapped = False
        self._calls = 0
        self._ended_at = 0
        self._value: TaggedValue | None = None
        self._plain: PlainReading | None = None
        self._missed = False
        if self._section:
            self._step = self._item
        self._clear()

    def _clear(self) -> None:
        """Before another call."""
        self._name = ""
        self._headed = False
        self._members = 0
        self._schema: Schema | None = None
        self._given: set[str] = set()

    @property
    def string_ends(self) -> tuple[str, ...] | None:
        """Inside a value."""
        return self._value.string_ends if self._value is not None and self._step == self._in_value else None

    @property
    def string_body(self) -> StringBody | None:
        """Any text that holds no tag of the call."""
        return self._value.string_body if self._value is not None else None

    @property
    def quoting(self) -> bool:
        """Inside a call that a value quotes."""
        return self._inside_value and self._value is not None and self._value.quoting

    @property
    def _inside_value(self) -> bool:
        return self._step == self._in_value

    def recover(self, marker: str) -> None:
        """The closing marker of one call in a section does not end the section."""
        self.status = Status.DONE
        if self._section and marker in self._markers.close:
            self.status = Status.READING
            self._next_item()

    def _let_go(self) -> None:
        """The input has ended: what is held is part of a call that was cut off."""
        if self._inside_value and self._value is not None:
            self._value.let_go()

    def _item(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Where a call of a section, or the section's end, is expected."""
        at = skip(text, at, end)
        if at == end and not (final and self._calls):
            return wait(at)
        if at == end:
            self._miss_close(base + at)
            return self._done(at)
        begins_call, section_close = self._markers.begins_call, self._markers.section_close
        over = self._layout.goes_on if self._calls else ()
        found = marker_at(text, at, end, (*begins_call, *section_close, *over))
        if found is None and not final:
            return wait(at)
        if found is None and marker_at(text, at, end, begins_call) is None:
            self._sink.begin(base + at)
            return wait(at)
        if not found:
            return self._reject(at, "a call is expected")
        if found in section_close:
            return self._done(at + len(found))
        if found not in begins_call:
            self._miss_close(base + at)
            return self._done(at)
        self._missed = False
        self._sink.begin(base + at)
        return self._enter(found, at)

    def _enter(self, found: str, at: int) -> int:
        """A call of a section begins here with one of `calls`: choose the next step and return where it starts."""
        raise NotImplementedError

    # Values.

    def _tags(self) -> ValueTags:
        """The tags that count inside a value of the call that is being read."""
        syntax = self._markers
        return self._layout.tags(syntax.section_close if self._section else syntax.close if self._wrapped else ())

    def _argument(self, key: str, text: str, at: int, end: int, base: int, kind: Kind = "untyped") -> int:
        """A member of the arguments begins, with its value at `at`. Returns where reading goes on."""
        self._head()
        self._given.add(key)
        self._sink.member(key, base + at)
        opening = f"{', ' if self._members else '{'}{quote(key)}: "
        self._members += 1
        schema = self._schema.member(key) if self._schema is not None else None
        frame = self._layout.frame
        place, stop = self._find_simple(frame, text, at, end)
        if stop < 0:
            self._sink.arguments(opening)
            self._begin_value(ValueWriter(self._sink, schema, kind, key), frame, base + at)
            return at
        write_value(self._sink, schema, kind, key, opening, frame.inner(text, at, place))
        return self._end_simple(frame, place, stop, base)

    def _begin_value(self, writer: ValueWriter, frame: ValueFrame, start: int) -> None:
        """A value begins at this offset, which may not be there as a whole."""
        self._value = TaggedValue(
            writer, self._tags(), frame, start, self._sink.limit, self._may_be_given, self._pass_limit
        )
        self._step = self._in_value

    def _find_simple(self, frame: ValueFrame, text: str, at: int, end: int) -> tuple[int, int]:
        """Where a value ends that is there as a whole and quotes no tag, and where reading goes on.

        Most are such. The others, for which this is (-1, -1), take a `TaggedValue`, which reads such ones alike.
        """
        tags = self._tags()
        match = tags.search(text, at, end) if self._plain is None else None
        if match is None or not text.startswith(frame.close, match.start(), end):
            return _NOT_SIMPLE
        place = match.start()
        closed = place + len(frame.close)
        read = tags.read(text, place, match.group(), end)
        if read is None or read[0] is not Piece.CLOSE or read[1].stop != closed:
            return _NOT_SIMPLE
        stop = skip_gap(frame.gap, text, closed, end)
        if stop - at >= self._sink.limit or (frame.cdata and text.startswith(CDATA, skip(text, at, place))):
            return _NOT_SIMPLE
        # Behind the closing tag no more is looked at than may be held back.
        reach = place + self._sink.limit + 1
        follows = frame.follows(text, stop, min(end, reach))
        # Nobody reads beyond a closing marker before it is told what that closes, but it may be there to be seen.
        if follows or (follows is None and text.startswith(self._markers.closers, stop, reach)):
            return place, stop
        return _NOT_SIMPLE

    def _end_simple(self, frame: ValueFrame, place: int, stop: int, base: int) -> int:
        """A value that was there as a whole is written."""
        self._reach(base + stop)
        self._ended_at = base + place + len(frame.close)
        self._value_ended(base + place, base + stop)
        return stop

    def _may_be_given(self, name: str) -> bool:
        """Whether an argument of this name could follow."""
        return name not in self._given and (self._schema is None or self._schema.lists(name))

    def _pass_limit(self) -> None:
        self._sink.limited("what may be the end of a value is held for too long; taken as part of it")

    def _in_value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        value = self._value
        assert value is not None
        if self._plain is not None:
            return self._end_plainly(value, self._plain, at, base)
        at = value.read(text, at, end, final)
        self._reach(base + at)
        if value.call_ended:
            self._read_plainly(value, base + at, text[at : at + LONGEST_TAG])
            return at
        if not value.done:
            return wait(at)
        self._ended_at = base + at - value.space
        self._value_ended(self._ended_at - len(value.frame.close), base + at)
        return at

    def _value_ended(self, stop: int, read: int) -> None:
        """The value's text ends at `stop`; `read` is how far has been read."""
        self._sink.member_end(stop, read)
        self._step = self._behind_a_value

    def _reach(self, offset: int) -> None:
        """A value was read up to here."""

    def _behind_a_value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Where another value, or the end of the call, is expected."""
        raise NotImplementedError

    # A call whose count did not come out.

    def _read_plainly(self, value: TaggedValue, offset: int, close: str) -> None:
        """The call's end, which begins with `close`, is known: read what is held up to it by the plain rule."""
        held, before, quoted = value.held_text()
        base, size = offset - len(held), len(held)
        self._plain = PlainReading(self._tags(), held, before, quoted)
        text = held + close  # no step has to wait at the end of what is held
        at = 0
        while self.status is Status.READING and (at < size or self._step != self._behind_a_value):
            stop = self._step(text, at, len(text), base, False)
            if not 0 <= stop <= size:  # pragma: no cover (no text is known that leads here, but the loop must end)
                self._reject(at, "an argument does not end")
                break
            at = stop
        self._plain = None

    def _end_plainly(self, value: TaggedValue, plain: PlainReading, at: int, base: int) -> int:
        ending = value.read_plainly(plain, at)
        if not ending.closed:
            self._miss_close(base + ending.stop)
        elif not at:
            self._sink.notice("unbalanced_value", base + ending.stop)
        self._ended_at = base + ending.place
        self._value_ended(base + ending.stop, base + len(plain.text))
        return ending.place

    # The call.

    def _miss_close(self, offset: int) -> None:
        """A closing tag or marker is missing; said once for a call."""
        if not self._missed:
            self._missed = True
            self._sink.missing_close(offset)

    def _is_over(self, found: str) -> bool:
        """Whether what was found where an argument is expected tells that the call is over."""
        return found in self._layout.goes_on and self._members > 0

    def _end(self, at: int, alone: bool) -> int:
        """The call is over, and with it the region unless that is a section."""
        self._end_call(alone)
        return at if self._section else self._done(at)

    def _end_call(self, alone: bool) -> None:
        self._sink.end(self._ended_at, alone=alone)
        self._next_item()

    def _next_item(self) -> None:
        self._calls += 1
        self._clear()
        self._step = self._item

    def _head(self) -> None:
        """The arguments begin."""
        if not self._headed:
            self._headed = True
            self._sink.head(self._name)
            tools = self._sink.tools
            parameters = tools.parameters(self._name) if tools is not None else None
            self._schema = Schema(parameters) if parameters is not None else None

    def _close_arguments(self) -> None:
        self._head()
        self._sink.arguments("}" if self._members else "{}")
