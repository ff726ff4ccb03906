"""Calls whose parameters are tags of their own name, nested where a value is an object or a list (MiniMax M3).

Every tag has a prefix that nothing else has, so a tag without it is part of a value. A tag that opens directly behind
another makes that other an object, or a list if the schema says so or if the tag is the one that elements have.
"""

from __future__ import annotations

import re

import msgspec

from .reader import Reader, Sink
from .steps import skip, wait
from .tagged import LONGEST_TAG, TaggedValue, literal_at
from .values import Schema, ValueWriter, quote
from .xml_calls import XmlCalls, XmlReader

_NAME = re.compile(r"[^<>\n]*+")


class NestedCalls(XmlCalls, frozen=True, kw_only=True):
    """Calls with nested parameters. Of `parameter`, only the beginning counts: the prefix and `<`."""

    element: str = "item"
    """The tag of a list's elements."""

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for what follows the opener."""
        return NestedReader(self, sink, opener)


class _Frame(msgspec.Struct, gc=False):
    """A tag that is open."""

    close: str
    schema: Schema | None
    is_list: bool = False
    members: int = 0


class _Leaf(TaggedValue):
    """A value in a nested tag: behind it the tag around it closes, or any other opens."""

    def _expected(self, text: str, at: int, end: int) -> str | None:
        *closing, start = self._next
        found = literal_at(tuple(closing), text, at, end)
        # A start that is cut off, or has nothing behind it, is the beginning of a closing tag as well.
        if found == "" and text.startswith(start, at, end) and text[at + len(start)] != "/":
            return start
        return found


class NestedReader(XmlReader):
    """Reads calls with nested parameters."""

    def __init__(self, syntax: NestedCalls, sink: Sink, opener: str) -> None:
        self._frames: list[_Frame] = []
        self._space: list[str] = []
        self._element = syntax.element
        self._argument = ""
        super().__init__(syntax, sink, opener)
        self._behind_value = (syntax.call_close, *syntax.closers)

    def _clear(self) -> None:
        super()._clear()
        self._frames.clear()
        self._forget_space()

    def _behind_a_value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Where a tag opens or the innermost one closes."""
        at = skip(text, at, end)
        if not self._frames:
            if literal_at(self._behind_value, text, at, end) == "":
                return self._open(text, at, end, base, final)
            return super()._behind_a_value(text, at, end, base, final)
        frame = self._frames[-1]
        found = literal_at((frame.close,), text, at, end)
        if found is None:
            return wait(at)
        if not found:
            return self._open(text, at, end, base, final)
        self._sink.arguments("]" if frame.is_list else "}")
        self._frames.pop()
        self._ended_at = base + at + len(found)
        return at + len(found)

    def _open(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """A tag opens."""
        name, stop = self._tag(text, at, end)
        if name is None:
            return wait(at)
        if stop < 0:
            return self._reject(at, "a parameter or the end of the call is expected")
        schema: Schema | None
        if not self._frames:
            self._argument = name
            self._key(name)
            schema = self._schema.member(name) if self._schema is not None else None
        else:
            schema = self._nested(self._frames[-1], name)
        close = self._syntax.parameter.start + "/" + name + ">"
        self._frames.append(_Frame(close, schema))
        if schema is not None and schema.only_string:
            return self._begin_leaf(stop)
        self._step = self._opened
        return stop

    def _tag(self, text: str, at: int, end: int) -> tuple[str | None, int]:
        """The name of the tag that opens here and where it ends; no name when more must be seen."""
        start = self._syntax.parameter.start
        found = literal_at((start,), text, at, end)
        if found is None:
            return None, at
        match = _NAME.match(text, at + len(start), min(end, at + LONGEST_TAG))
        stop = match.end() if match and found else at
        if found and stop == end and stop < at + LONGEST_TAG:
            return None, at
        if not found or text[stop : stop + 1] != ">" or stop == at + len(start) or text[at + len(start)] == "/":
            return "", -1
        return text[at + len(start) : stop].strip(), stop + 1

    def _nested(self, frame: _Frame, name: str) -> Schema | None:
        """Write what stands before a member or an element; return what the schema says of it."""
        separator = ", " if frame.members else ""
        frame.members += 1
        self._sink.arguments(separator if frame.is_list else f"{separator}{quote(name)}: ")
        if frame.schema is None:
            return None
        return frame.schema.items if frame.is_list else frame.schema.member(name)

    def _opened(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Directly behind a tag: does it hold text, or other tags?"""
        frame = self._frames[-1]
        place = skip(text, at, end)
        if place > at:
            self._space.append(text[at:place])
            self._spaces += place - at
            if self._spaces > self._sink.limit:
                return self._begin_leaf(place)
        found = literal_at((frame.close, self._syntax.parameter.start), text, place, end)
        if found is None:
            return wait(place)
        types = (frame.schema.types if frame.schema is not None else None) or frozenset()
        if found == frame.close and types and not types - {"array", "object", "null"}:
            self._forget_space()
            self._sink.arguments("[]" if "array" in types else "{}" if "object" in types else "null")
            self._frames.pop()
            self._step = self._behind_a_value
            self._ended_at = base + place + len(found)
            return place + len(found)
        if found == self._syntax.parameter.start:
            name, stop = self._tag(text, place, end)
            if name is None:
                return wait(place)
            if stop >= 0:
                self._forget_space()
                frame.is_list = "object" not in types and ("array" in types or name == self._element)
                if frame.schema is not None and not frame.schema.allows("array" if frame.is_list else "object"):
                    self._sink.invalid(self._argument)
                self._sink.arguments("[" if frame.is_list else "{")
                self._step = self._behind_a_value
                return place
        return self._begin_leaf(place)

    def _begin_leaf(self, at: int) -> int:
        """The innermost tag holds text."""
        frame = self._frames.pop()
        writer = ValueWriter(self._sink, frame.schema, key=self._argument)
        writer.add("".join(self._space))
        self._forget_space()
        around = (self._frames[-1].close,) if self._frames else self._behind_value
        self._value = _Leaf(writer, frame.close, (*around, self._syntax.parameter.start), self._sink.limit)
        self._step = self._in_value
        return at

    def _forget_space(self) -> None:
        self._space.clear()
        self._spaces = 0
