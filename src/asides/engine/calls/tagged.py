"""What the readers of grammars that write arguments between tags have in common: their steps, and where a call ends.

Knows text, not tags by name: `xml_calls.py`, `nested_calls.py` and `keyed_calls.py` say which there are. Where a value
ends is in `tagged_value.py`, its type in `values.py`, the tags that it may hold in `value_tags.py`.
"""

from __future__ import annotations

from .reader import Sink, Status
from .steps import StepReader, skip, wait
from .syntax import CallSyntax
from .tagged_value import Frame, TaggedValue
from .value_tags import CallMarkers, Piece, PlainReading, ReadWhole, ValueTags, literal_at, spelling
from .values import Kind, Schema, ValueWriter, quote

LONGEST_TAG = 1024
"""A tag, with a name and attributes, is no longer than this, in characters."""


class TaggedReader(StepReader):
    """The steps that every tagged grammar takes. Subclasses say what stands between a call's opener and its end."""

    _value_type: type[TaggedValue] = TaggedValue

    def __init__(self, syntax: CallSyntax, sink: Sink, opener: str, calls: tuple[str, ...]) -> None:
        super().__init__(sink)
        self._markers = syntax
        self._begins_call = calls
        self._section = opener in syntax.section
        self._wrapped = False
        self._calls = 0
        self._ended_at = 0
        self._value: TaggedValue | None = None
        self._plain: PlainReading | None = None
        self._missed = False
        self._value_tags: dict[bool, ValueTags] = {}
        self._goes_on = tuple(dict.fromkeys((*syntax.openers, *calls, *sink.stops)))
        """What tells that the call is over though nothing closed it: another call, or the end of the turn."""
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
    def calm(self) -> str | None:
        """Inside a value."""
        return self._value.calm if self._inside_value and self._value is not None else None

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
        section_close = self._markers.section_close
        over = self._goes_on if self._calls else ()
        found = literal_at((*self._begins_call, *section_close, *over), text, at, end)
        if found is None and not final:
            return wait(at)
        if found is None and literal_at(self._begins_call, text, at, end) is None:
            self._sink.begin(base + at)
            return wait(at)
        if not found:
            return self._reject(at, "a call is expected")
        if found in section_close:
            return self._done(at + len(found))
        if found not in self._begins_call:
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
        tags = self._value_tags.get(self._wrapped)
        if tags is None:
            syntax = self._markers
            last = syntax.section_close if self._section else syntax.close if self._wrapped else ()
            markers = CallMarkers(syntax.closers, last, (*self._begins_call, *syntax.openers), self._sink.stops)
            pieces, read, anywhere = self._pieces()
            around = (*syntax.section, *self._begins_call, *syntax.closers)
            others = tuple((marker, Piece.OTHER) for marker in around)
            tags = ValueTags(spelling((*pieces, *others)), read, markers, anywhere)
            self._value_tags[self._wrapped] = tags
        return tags

    def _pieces(self) -> tuple[tuple[tuple[str, Piece], ...], dict[Piece, ReadWhole], bool]:
        """How this syntax spells its tags, how they are read whole, and whether they count in the middle of a line."""
        raise NotImplementedError

    def _begin_value(self, writer: ValueWriter, frame: Frame, start: int) -> None:
        """A value begins at this offset."""
        self._value = self._value_type(
            writer, self._tags(), frame, start, self._sink.limit, self._may_be_given, self._pass_limit
        )
        self._step = self._in_value

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
            if not 0 <= stop <= size:
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
        return found in self._goes_on and self._members > 0

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

    def _write_key(self, key: str, offset: int, kind: Kind = "untyped") -> ValueWriter:
        """A member of the arguments begins; its value, which begins at `offset`, goes to what is returned."""
        self._head()
        self._given.add(key)
        self._sink.member(key, offset)
        self._sink.arguments(f"{', ' if self._members else '{'}{quote(key)}: ")
        self._members += 1
        schema = self._schema.member(key) if self._schema is not None else None
        return ValueWriter(self._sink, schema, kind, key)

    def _close_arguments(self) -> None:
        self._head()
        self._sink.arguments("}" if self._members else "{}")
