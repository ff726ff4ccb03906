"""Calls whose parameters are tags of their own name, nested where a value is an object or a list (MiniMax M3).

Every tag has a prefix that nothing else has, so a tag without it is part of a value. A tag that opens directly behind
another makes that other an object, or a list if the schema says so or if the tag is the one that elements have.

A list may also be written as one tag for each element, one behind the other. Where the schema says that a member is a
list, or that it is none, this is known at once. Where it does not, what was written of the member waits for the next
tag (`_HeldOutput`), because the list's bracket stands before its first element.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cached_property, partial
from itertools import groupby
from typing import Any, cast

import msgspec

from ...events import NoticeCode
from .reader import Reader, Sink
from .steps import marker_at, skip, wait
from .tagged import LONGEST_TAG
from .tagged_value import ValueFrame
from .value_tags import NO_TAG, Piece, ReadWhole, WholeTag
from .values import Schema, ValueWriter, quote, write_value
from .xml_calls import XmlCalls, XmlReader

_NAME = re.compile(r"[^<>\n]*+")
_OBJECT = frozenset({"object"})
_AROUND = 8
"""How many of the tags around a value may end it, if its own closing tag is missing."""


class NestedCalls(XmlCalls, frozen=True, kw_only=True):
    """Calls with nested parameters. Of `parameter`, only the beginning counts: the prefix and `<`."""

    element: str = "item"
    """The tag of a list's elements."""

    @property
    def tags_anywhere(self) -> bool:
        """The prefix is written by nothing else."""
        return True

    @cached_property
    def pieces(self) -> tuple[tuple[str, Piece], ...]:
        """The tags of a call."""
        start = self.parameter.start
        return (
            (start, Piece.OPEN),
            (start + "/", Piece.CLOSE),
            (self.call.literal, Piece.CALL),
            (self.call_close, Piece.END),
        )

    @cached_property
    def whole_tags(self) -> Mapping[Piece, ReadWhole]:
        """Those with a name."""
        return {
            Piece.OPEN: self._read_opening,
            Piece.CLOSE: self._read_closing,
            Piece.CALL: self.call.read_quoted,
        }

    def frame(self, over: tuple[str, ...]) -> ValueFrame:
        """Around all parameters; what stands around one depends on its name."""
        return ValueFrame(self.call_close, (*self.closes, *over))

    def read_tag(self, text: str, at: int, end: int) -> tuple[str | None, int]:
        """The name of the tag that opens here and where it ends; no name when more must be seen."""
        start = self.parameter.start
        found = marker_at(text, at, end, (start,))
        if found is None:
            return None, at
        match = _NAME.match(text, at + len(start), min(end, at + LONGEST_TAG))
        stop = match.end() if match and found else at
        if found and stop == end and stop < at + LONGEST_TAG:
            return None, at
        if not found or text[stop : stop + 1] != ">" or stop == at + len(start) or text[at + len(start)] == "/":
            return "", -1
        return text[at + len(start) : stop].strip(), stop + 1

    def _read_opening(self, text: str, place: int, end: int) -> WholeTag | None:
        name, stop = self.read_tag(text, place, end)
        if name is None:
            return None
        return NO_TAG if stop < 0 or name.endswith("/") else WholeTag(stop, name)

    def _read_closing(self, text: str, place: int, end: int) -> WholeTag | None:
        at = place + len(self.parameter.start) + 1
        match = _NAME.match(text, at, min(end, at + LONGEST_TAG))
        stop = match.end() if match else at
        if stop == end and stop < at + LONGEST_TAG:
            return None
        return WholeTag(stop + 1) if text[stop : stop + 1] == ">" else NO_TAG

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for what follows the opener."""
        return NestedReader(self, sink, opener)


class _Mark(msgspec.Struct, eq=False, gc=False):
    """Where a list's bracket is written if a member turns out to be one."""

    index: int
    start: int
    """Offset of the member's value; it waits no further than the limit allows."""
    open: bool = True


class _HeldOutput:
    """The sink, but for arguments that wait for what follows them."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._first = 0
        self._marks: deque[_Mark] = deque()
        self.pieces: list[str | Callable[[], None]] = []
        """What waits: text, and notices between."""
        self.offset = 0
        """How far has been read."""
        # What is asked for with every call; `__getattr__` finds the rest, but slowly.
        self.begin, self.named, self.head, self.end = sink.begin, sink.named, sink.head, sink.end
        self.member, self.member_end = sink.member, sink.member_end
        self.limit, self.stops, self.tools = sink.limit, sink.stops, sink.tools

    @property
    def calls(self) -> int:
        """As the sink says; here because it is asked for with every stretch."""
        return self._sink.calls

    @property
    def remaining(self) -> int:
        """How many characters may still be read before something must be decided."""
        return self._sink.limit - (self.offset - self._marks[0].start) if self._marks else 0

    @property
    def waits(self) -> bool:
        """Whether anything waits."""
        return bool(self._marks)

    def arguments(self, text: str) -> None:
        if self._marks:
            self.pieces.append(text)
        else:
            self._sink.arguments(text)

    def limited(self, message: str = "") -> None:
        # What was held too long stands behind every mark, so these have waited too long as well.
        while self._marks:
            self._expire()
        self._sink.limited(message)

    def mark(self, start: int) -> _Mark:
        """From here on everything waits until the mark is settled."""
        mark = _Mark(self._first + len(self.pieces), start)
        self.pieces.append("")
        self._marks.append(mark)
        return mark

    def settle(self, mark: _Mark, bracket: str = "") -> None:
        """The last mark is settled: what stands in its place is known."""
        self.pieces[mark.index - self._first] = bracket
        mark.open = False
        self._marks.pop()
        if not self._marks:
            self._write(len(self.pieces))

    def reach(self, offset: int) -> None:
        """Reading has come this far."""
        self.offset = offset
        while self._marks and offset - self._marks[0].start > self._sink.limit:
            self._expire()

    def _expire(self) -> None:
        self._marks.popleft().open = False
        self._sink.limited("what may be an element of a list is held for too long; taken as a value of its own")
        self._write(self._marks[0].index - self._first if self._marks else len(self.pieces))

    def _write(self, count: int) -> None:
        for texts, pieces in groupby(self.pieces[:count], key=lambda piece: isinstance(piece, str)):
            if texts:
                self._sink.arguments("".join(cast("Iterator[str]", pieces)))
            else:
                for tell in cast("Iterator[Callable[[], None]]", pieces):
                    tell()
        del self.pieces[:count]
        self._first += count

    # Notices keep their place among the arguments, so that it does not depend on when these are written.

    def invalid(self, key: str) -> None:
        self._report(partial(self._sink.invalid, key))

    def missing_close(self, offset: int) -> None:
        self._report(partial(self._sink.missing_close, offset))

    def notice(self, code: NoticeCode, offset: int, message: str = "") -> None:
        self._report(partial(self._sink.notice, code, offset, message))

    def _report(self, report: Callable[[], None]) -> None:
        if self._marks:
            self.pieces.append(report)
        else:
            report()

    def let_go(self) -> None:
        """Nothing waits any longer."""
        self._marks.clear()
        self._write(len(self.pieces))

    def forget(self) -> None:
        """The call is over."""
        self._marks.clear()
        self.pieces.clear()

    def __getattr__(self, name: str) -> object:
        return getattr(self._sink, name)


class _Repeats(Enum):
    """Whether a member may be given again, directly behind itself."""

    HELD = "as a list, if it is"
    ARRAY = "as a list, unless its first tag holds it whole"
    LIST = "it is a list"
    NO = "no"


class _Member(msgspec.Struct, eq=False):
    """The last member of an object."""

    name: str
    repeats: _Repeats
    schema: Schema | None = None
    mark: _Mark | None = None


class _Container(msgspec.Struct, eq=False):
    """A tag that is open, or the arguments."""

    close: str
    schema: Schema | None
    is_list: bool = False
    members: int = 0
    member: _Member | None = None
    names: set[str] = msgspec.field(default_factory=set)


class NestedReader(XmlReader):
    """Reads calls with nested parameters."""

    def __init__(self, syntax: NestedCalls, sink: Sink, opener: str) -> None:
        self._out = _HeldOutput(sink)
        self._open_tags: list[_Container] = []
        self._space: list[str] = []
        self._element = syntax.element
        self._start = syntax.parameter.start
        self._member_name = ""
        self._member_stop = 0
        self._read_tag = syntax.read_tag
        super().__init__(syntax, cast(Sink, self._out), opener)

    def _clear(self) -> None:
        super()._clear()
        self._out.forget()
        self._open_tags = [_Container("", None)]
        self._forget_space()

    @property
    def string_into(self) -> tuple[list[Any], int] | None:
        """Where text goes that waits."""
        return (self._out.pieces, self._out.remaining) if self._out.waits else None

    def _reach(self, offset: int) -> None:
        self._out.reach(offset)

    def _let_go(self) -> None:
        super()._let_go()
        self._out.let_go()

    def _head(self) -> None:
        super()._head()
        self._open_tags[0].schema = self._schema

    def _behind_a_value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Where a tag opens or the innermost one closes."""
        at = skip(text, at, end)
        self._reach(base + at)
        if len(self._open_tags) == 1:
            if self._plain is not None and not self._tags().opens(text, at, end):
                return self._reject(at, "a parameter or the end of the call is expected")
            if marker_at(text, at, end, self._behind_value) == "":
                return self._open(text, at, end, base)
            return super()._behind_a_value(text, at, end, base, final)
        container = self._open_tags[-1]
        found = marker_at(text, at, end, (container.close,))
        if found is None:
            return wait(at)
        if not found:
            return self._open(text, at, end, base)
        self._settle(container)
        self._sink.arguments("]" if container.is_list else "}")
        self._open_tags.pop()
        self._tag_closed(at, at + len(found), base)
        return at + len(found)

    def _close_arguments(self) -> None:
        self._settle(self._open_tags[0])
        super()._close_arguments()

    def _open(self, text: str, at: int, end: int, base: int) -> int:
        """A tag opens."""
        name, stop = self._read_tag(text, at, end)
        if name is None:
            return wait(at)
        if stop < 0:
            return self._reject(at, "a parameter or the end of the call is expected")
        container = self._open_tags[-1]
        if container.is_list:
            self._sink.arguments(", " if container.members else "")
            container.members += 1
            schema = container.schema.items if container.schema is not None else None
        else:
            schema = self._begin_member(container, name, base + stop)
        self._open_tags.append(_Container(self._start + "/" + name + ">", schema))
        if schema is not None and schema.only_string:
            return self._begin_leaf(text, stop, end, base)
        self._step = self._opened
        return stop

    # Members that may repeat.

    def _begin_member(self, container: _Container, name: str, start: int) -> Schema | None:
        """Write what stands before a member or an element; return what the schema says of it."""
        member = container.member
        # Only directly behind itself: given again later, an argument is a repetition and not an element.
        if member is not None and member.name == name and self._goes_on_as_list(member):
            self._sink.arguments(", ")
            return member.schema.items if member.schema is not None else None
        self._settle(container)
        arguments = container is self._open_tags[0]
        if arguments:
            self._head()
        schema = container.schema.member(name) if container.schema is not None else None
        again = arguments and name in self._given
        if arguments:
            self._member_name = name
            self._sink.member(name, start)
        opening = "{" if arguments else ""
        self._sink.arguments(f"{', ' if container.members else opening}{quote(name)}: ")
        container.members += 1
        container.names.add(name)
        if arguments:
            self._members += 1
            self._given.add(name)
        # For one that was given before, no list may begin: it is compared with the first.
        repeats = _Repeats.NO if again else _repeats(schema)
        mark = self._out.mark(start) if repeats is _Repeats.HELD else None
        container.member = _Member(name, repeats, schema, mark)
        return schema

    def _goes_on_as_list(self, member: _Member) -> bool:
        """A member is given again, directly behind itself."""
        if member.mark is not None and member.mark.open:
            self._out.settle(member.mark, "[")
            member.repeats = _Repeats.LIST
        return member.repeats is _Repeats.LIST

    def _settle(self, container: _Container) -> None:
        """The last member is not given again."""
        member = container.member
        if member is None:
            return
        if member.mark is not None and member.mark.open:
            self._out.settle(member.mark)
        elif member.repeats is _Repeats.LIST:
            self._sink.arguments("]")
        container.member = None
        if container is self._open_tags[0]:
            self._sink.member_end(self._member_stop, self._out.offset)

    def _tag_closed(self, at: int, stop: int, base: int) -> None:
        """A tag that held others closes at `at`."""
        self._ended_at = base + stop
        self._member_stop = base + at

    def _value_ended(self, stop: int, read: int) -> None:
        self._member_stop = stop
        self._step = self._behind_a_value

    def _may_be_given(self, name: str) -> bool:
        container = self._open_tags[-1]
        if container.is_list:
            return True
        return name not in container.names and (container.schema is None or container.schema.lists(name))

    # What a tag holds.

    def _opened(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Directly behind a tag: does it hold text, or other tags?"""
        container = self._open_tags[-1]
        place = skip(text, at, end)
        self._reach(base + place)
        if place > at:
            self._space.append(text[at:place])
            self._spaces += place - at
            # Held to see whether a tag follows; past the limit it is text.
            if self._spaces > self._sink.limit:
                return self._begin_leaf(text, place, end, base)
        found = marker_at(text, place, end, (container.close, self._start))
        if found is None:
            return wait(place)
        types = (container.schema.types if container.schema is not None else None) or frozenset()
        # An empty tag is an empty string, unless the schema says that it can be none.
        if found == container.close and types and not types - {"array", "object", "null"}:
            self._forget_space()
            self._sink.arguments("[]" if "array" in types else "{}" if "object" in types else "null")
            self._open_tags.pop()
            self._forbid_repeat()
            self._step = self._behind_a_value
            self._tag_closed(place, place + len(found), base)
            return place + len(found)
        if found == self._start:
            name, stop = self._read_tag(text, place, end)
            if name is None:
                return wait(place)
            if stop >= 0:
                self._forget_space()
                self._begin_container(container, name, types)
                self._step = self._behind_a_value
                return place
        self._begin_element(text[place])
        return self._begin_leaf(text, place, end, base)

    def _begin_container(self, container: _Container, name: str, types: frozenset[str]) -> None:
        """The innermost tag holds others, of which the first has this name."""
        member = self._open_tags[-2].member
        items = container.schema.items if container.schema is not None else None
        if (
            member is not None
            and member.repeats is _Repeats.ARRAY
            and name != self._element
            and items is not None
            and items.types == _OBJECT
            and items.lists(name)
        ):
            # An element that is an object, not the list of them.
            member.repeats = _Repeats.LIST
            container.schema = items
            self._sink.arguments("[{")
            return
        if {"array", "object"} <= types:
            container.is_list = name == self._element and not (container.schema and container.schema.names(name))
        else:
            container.is_list = "object" not in types and ("array" in types or name == self._element)
        if container.schema is not None and not container.schema.allows("array" if container.is_list else "object"):
            self._sink.invalid(self._member_name)
        self._sink.arguments("[" if container.is_list else "{")
        self._forbid_repeat(around=self._open_tags[-2])

    def _begin_element(self, first: str) -> None:
        """The innermost tag holds text that begins with this character: is that a list, or an element of one?"""
        member = self._open_tags[-2].member
        if member is None or member.repeats is not _Repeats.ARRAY:
            return
        types = (member.schema.types if member.schema is not None else None) or frozenset()
        if first == "[" or (first == "n" and "null" in types):
            member.repeats = _Repeats.NO
            return
        member.repeats = _Repeats.LIST
        self._sink.arguments("[")
        self._open_tags[-1].schema = member.schema.items if member.schema is not None else None

    def _forbid_repeat(self, around: _Container | None = None) -> None:
        """A list by its schema was written whole."""
        member = (around or self._open_tags[-1]).member
        if member is not None and member.repeats is _Repeats.ARRAY:
            member.repeats = _Repeats.NO

    def _begin_leaf(self, text: str, at: int, end: int, base: int) -> int:
        """The innermost tag holds text, which begins at `at` but for whitespace. Returns where reading goes on."""
        container = self._open_tags.pop()
        around = tuple(tag.close for tag in self._open_tags[: -_AROUND - 1 : -1] if tag.close)
        frame = ValueFrame(container.close, around[:1] or self._behind_value, self._start, around)
        if not self._space:
            place, stop = self._find_simple(frame, text, at, end)
            if stop >= 0:
                write_value(self._sink, container.schema, "untyped", self._member_name, "", text[at:place])
                return self._end_simple(frame, place, stop, base)
        writer = ValueWriter(self._sink, container.schema, key=self._member_name)
        writer.add("".join(self._space))
        self._forget_space()
        self._begin_value(writer, frame, base + at)
        return at

    def _forget_space(self) -> None:
        self._space.clear()
        self._spaces = 0


def _repeats(schema: Schema | None) -> _Repeats:
    """What the schema says of a member that is given for the first time."""
    types = schema.types if schema is not None else None
    if types is None or {"array", "string"} <= types:
        return _Repeats.HELD
    return _Repeats.ARRAY if "array" in types and not types - {"array", "null"} else _Repeats.NO
