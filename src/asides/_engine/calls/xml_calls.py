"""Calls written as tags: `<function=f><parameter=a>v</parameter></function>` and `<invoke name="f">` and their like.

A syntax says how each tag is spelled; the reader is one. Where a value ends is in `tagged_value.py`, its type in
`values.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import msgspec

from .arguments import ArgumentsReader
from .reader import Reader, Sink
from .steps import LONGEST_SPACE, marker_at, skip, skip_some, wait
from .tagged import LONGEST_TAG, TaggedCalls, TaggedReader
from .tagged_value import ValueFrame
from .value_tags import NO_TAG, Piece, ReadWhole, WholeTag
from .values import Kind

_NAME = re.compile(r"(?:[^<>\s][^<>\n]*+)?")
_QUOTES = ('"', "'")
_NO_NAME = re.compile(r"[<>\r\n]")
_WITH_TOKEN = re.compile("([^<>\\s]+)<(?:\\|\\w+\\|>|[\ud800-\udfff])")
"""A name with a special token at its end, in text or as `tokens.py` writes it."""
_NO_QUOTED_NAME = re.compile(r"""[\s"']""")
"""What no name holds, where a tag is only quoted: `"<parameter=") and n > 3` is code."""
_ATTRIBUTE = re.compile(r"""\s++([^\s"'=<>]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_BEGUN = re.compile(r"""\s*+(?:[^\s"'=<>]++\s*+(?:=\s*+(?:"[^"]*+|'[^']*+)?)?)?""")


def _bare(name: str) -> str:
    """A name as it follows a tag's beginning, without whitespace and quotes around it: `<function="run">`."""
    name = name.strip()
    return name[1:-1].strip() if len(name) > 1 and name[0] == name[-1] and name[0] in _QUOTES else name


class ReadTag(NamedTuple):
    """A tag as it was found."""

    stop: int
    """Where it ends; -1 when it is no such tag."""
    name: str
    attributes: dict[str, str]
    """Those beside the name."""
    empty: bool = False
    """Whether it closes itself: `<invoke name="f"/>`."""


class Tag(msgspec.Struct, frozen=True, dict=True):
    """How an opening tag is spelled."""

    start: str
    """What it begins with: `<parameter=` or `<parameter`."""
    attribute: str = ""
    """The attribute that holds the name; without one the name follows directly."""
    stop: str = ">"
    """What it ends with."""
    escaped: bool = False
    """Whether attributes write `&` and quotes as `&amp;` and `&quot;`."""
    counted: str = ""
    """A further attribute in which the family counts its calls; read past, and allowed where calls are constrained."""

    @cached_property
    def _usual(self) -> re.Pattern[str]:
        """The tag as nearly all are written: its name, and perhaps one more attribute and what that holds."""
        name = f"({_NAME.pattern})()()"
        if self.attribute:
            name = rf"""\s++{re.escape(self.attribute)}="([^"&]*+)"(?:\s++([^\s"'=<>]++)="([^"&]*+)")?"""
        return re.compile(re.escape(self.start) + name + re.escape(self.stop))

    @cached_property
    def literal(self) -> str:
        """The literal by which the tag is recognised."""
        return self.start + " " if self.attribute else self.start

    def read(self, text: str) -> ReadTag | None:
        """Read the tag that `text` begins with; None when more must be seen."""
        usual = self._usual.match(text)
        if usual is not None:
            name, other, value = usual.groups()
            if not self.attribute:
                return ReadTag(usual.end(), _bare(name) if name[:1] in _QUOTES else name.strip(), {})
            # An attribute that is given twice takes the slow way below, which refuses it.
            if other != self.attribute:
                return ReadTag(usual.end(), name, {other: value} if other else {})
        end = len(text)
        place = len(self.start)
        attributes: dict[str, str] = {}
        begun = False
        if self.attribute:
            while match := _ATTRIBUTE.match(text, place):
                if match[1] in attributes:  # which of the two is meant is not for us to choose
                    return ReadTag(-1, "", attributes)
                value = match[2] if match[2] is not None else match[3]
                attributes[match[1]] = value.replace("&quot;", '"').replace("&amp;", "&") if self.escaped else value
                place = match.end()
            begun = _BEGUN.fullmatch(text, place) is not None
            name = attributes.pop(self.attribute, None)
            place = skip(text, place, end)
        else:
            match = _NAME.match(text, place)
            place, name = (match.end(), _bare(match[0])) if match else (place, None)
        itself = "/" + self.stop
        found = marker_at(text, place, end, (self.stop, itself) if self.attribute else (self.stop,))
        if found and name is not None:
            return ReadTag(place + len(found), name, attributes, found == itself)
        # Longer than that, it is no tag that could still be finished.
        if not found and (found is None or begun) and end < LONGEST_TAG:
            return None
        return ReadTag(-1, "", attributes)

    def read_quoted(self, text: str, place: int, end: int) -> WholeTag | None:
        """The tag that begins at `place` inside a value, and does not go on into the next line."""
        line = text.find("\n", place, min(end, place + LONGEST_TAG))
        tag = self.read(text[place : line if line >= 0 else min(end, place + LONGEST_TAG)])
        if tag is None:
            return None if line < 0 else NO_TAG
        if tag.stop < 0 or tag.empty or not tag.name or (not self.attribute and _NO_QUOTED_NAME.search(tag.name)):
            return NO_TAG
        return WholeTag(place + tag.stop, tag.name)


class XmlCalls(TaggedCalls, frozen=True, kw_only=True):
    """Calls as tags. `open` may name markers around one call, or the beginning of the call's own tag."""

    call: Tag
    """The tag that names the function."""
    call_close: str
    """The tag that ends the call."""
    parameter: Tag
    """The tag that names a parameter."""
    parameter_close: str
    """The tag that ends its value."""
    preface: str = ""
    """What may stand between the marker around a call and the call's tag."""
    framed: bool = False
    """Whether one newline behind a parameter's tag and one before its closing tag are framing."""
    paired: bool = False
    """Whether the second is framing only where the first is there."""
    anywhere: bool = False
    """Whether a parameter's tag in the middle of a line may end a value that was not closed."""
    cdata: bool = False
    """Whether a value may stand in `<![CDATA[` and `]]>`."""
    string: tuple[str, str] = ("", "")
    """The attribute that gives types, and what it holds for a string; with any other word the value is JSON."""
    namespaced: bool = False
    """Whether a namespace may stand before the name: `weather.f`. The given tools decide."""
    json: bool = False
    """Whether one JSON object may stand in place of the parameters."""
    json_tag: Tag | None = None
    """The tag before that object, where it has one."""
    json_close: str = ""
    """The tag behind it."""
    unwraps: tuple[str, ...] = ()
    """Names of a first parameter that holds all arguments as one JSON object, where the tool has none called so."""

    @cached_property
    def wrappers(self) -> tuple[str, ...]:
        """The markers that stand around one call."""
        return tuple(opener for opener in self.open if not opener.startswith(self.call.start))

    @cached_property
    def begins_call(self) -> tuple[str, ...]:
        """A marker around a call, or the call's own tag."""
        return (*self.wrappers, self.call.literal)

    @cached_property
    def closes(self) -> tuple[str, ...]:
        """What closes a call, or what it stands in."""
        return (self.call_close, *self.closers)

    @cached_property
    def pieces(self) -> tuple[tuple[str, Piece], ...]:
        """The tags of a call."""
        return (
            (self.parameter.literal, Piece.OPEN),
            (self.parameter_close, Piece.CLOSE),
            (self.call.literal, Piece.CALL),
            (self.call_close, Piece.END),
        )

    @cached_property
    def whole_tags(self) -> Mapping[Piece, ReadWhole]:
        """Those with a name."""
        return {Piece.OPEN: self.parameter.read_quoted, Piece.CALL: self.call.read_quoted}

    @property
    def tags_anywhere(self) -> bool:
        """As the syntax says."""
        return self.anywhere

    def frame(self, over: tuple[str, ...]) -> ValueFrame:
        """Another parameter or the end of the call follows."""
        return ValueFrame(
            self.parameter_close,
            (self.parameter.literal, *self.closes, *over),
            framed=self.framed,
            paired=self.paired,
            cdata=self.cdata,
        )

    def sniff(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """A call's tag, or what may stand before it; or the rest of a tag that the opener began."""
        place = skip_some(text, at, end)
        if place == end:
            return True if final else None
        expected = (*self.wrappers, self.call.literal, *self.section_close)
        found = marker_at(text, place, end, (*expected, self.preface) if self.preface else expected)
        # The opener may have been the beginning of the call's own tag: then the rest of the tag follows.
        if not found and text[place] not in "{[<":
            for opener in self.open:
                if opener not in self.wrappers:
                    tag = self.call.read(opener + text[place : min(end, place + LONGEST_TAG - len(opener))])
                    found = None if tag is None else "" if tag.stop < 0 else opener
        if found is None:
            return True if final else None
        return bool(found)

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for what follows the opener."""
        return XmlReader(self, sink, opener)


class XmlBody(XmlCalls, frozen=True, kw_only=True):
    """The body of a message to a tool: its parameters alone. `close` ends it and is not part of it."""

    keeps_close: bool = True

    @cached_property
    def pieces(self) -> tuple[tuple[str, Piece], ...]:
        """The tags of a parameter, and what ends the message."""
        ends = tuple((marker, Piece.END) for marker in self.close)
        return (self.parameter.literal, Piece.OPEN), (self.parameter_close, Piece.CLOSE), *ends

    def sniff(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """A parameter, or nothing at all."""
        place = skip_some(text, at, end)
        found = marker_at(text, place, end, (self.parameter.literal, *self.close), final)
        return None if found is None else bool(found) or place == end

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for the body; `opener` is the recipient that the header names."""
        return XmlBodyReader(self, sink, opener)


class XmlReader(TaggedReader):
    """Reads one call, the calls between two markers, or a section of calls."""

    def __init__(self, syntax: XmlCalls, sink: Sink, opener: str) -> None:
        self._syntax = syntax  # before what is cleared
        super().__init__(syntax, sink, opener)
        self._wrapped = opener in syntax.wrappers
        self._begun = "" if self._section or self._wrapped else opener
        self._behind_value = self._layout.frame.next
        if not self._section:
            self._step = self._lead if self._wrapped else self._call_tag

    def _clear(self) -> None:
        super()._clear()
        self._whole: ArgumentsReader | None = None
        self._whole_close = self._syntax.json_close
        self._prefaced = False

    def _enter(self, found: str, at: int) -> int:
        self._wrapped = found in self._syntax.wrappers
        self._step = self._lead if self._wrapped else self._call_tag
        return at + len(found) if self._wrapped else at

    def _lead(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Between the marker around a call and the call's tag."""
        at = skip(text, at, end)
        call, preface = self._syntax.call.literal, self._syntax.preface
        found = marker_at(text, at, end, (call, preface) if preface else (call,))
        if found is None:
            return wait(at)
        if not found:
            return self._reject(at, "a call is expected")
        if not self._section and not self._prefaced:
            self._sink.begin(base + at)
        if found == call:
            self._step = self._call_tag
            return at
        self._prefaced = True
        return at + len(found)

    def _call_tag(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """At the tag that names the function; the region's opener may have been its beginning."""
        begun = self._begun
        tag = self._syntax.call.read(begun + text[at : min(end, at + LONGEST_TAG - len(begun))])
        if tag is None:
            return wait(at)
        if begun:
            self._sink.begin(base + at - len(begun))
            self._begun = ""
        # Behind what begins the tag, which may be an opener and would otherwise be met again.
        behind = at if begun else at + len(self._syntax.call.literal)
        if tag.stop < 0 or not tag.name:
            return self._reject(behind, "the call names no function", "no_name")
        name = tag.name
        if led := _WITH_TOKEN.fullmatch(name):
            # Models that name the function in a header repeat the end of that header in the tag.
            name = led[1]
            self._sink.notice("stray_marker", base + at, "a marker stands in the name of the function; it is left out")
        if _NO_NAME.search(name):
            return self._reject(behind, "a marker or a line break stands in the name of the function")
        tools = self._sink.tools
        self._name = tools.resolve(name) if self._syntax.namespaced and tools is not None else name
        self._sink.named(self._name)
        self._step = self._inside_call if self._syntax.json else self._behind_a_value
        self._ended_at = base + at + tag.stop - len(begun)
        if tag.empty:
            self._close_arguments()
            self._step = self._behind_call
        return at + tag.stop - len(begun)

    def _inside_call(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Behind the call's tag, where one JSON object may stand in place of parameters."""
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        tag = self._syntax.json_tag
        found: str | None = "" if text[at] != "{" else "{"
        if tag is not None:
            found = marker_at(text, at, end, (tag.literal,))
        if not found:
            if found is None:
                return wait(at)
            self._step = self._behind_a_value
            return at
        if tag is not None:
            read = tag.read(text[at : min(end, at + LONGEST_TAG)])
            if read is None:
                return wait(at)
            if read.stop < 0:
                return self._reject(at, "a parameter or the end of the call is expected")
            at += read.stop
        return self._begin_json(at, base)

    def _begin_json(self, at: int, base: int) -> int:
        """At the object that holds all arguments."""
        self._head()
        offset = base + at
        sink = self._sink
        self._whole = ArgumentsReader(
            sink.arguments, lambda: sink.string_arguments(offset), sink.repeated, sink.accepts
        )
        self._step = self._in_json
        return at

    def _in_json(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        whole = self._whole
        assert whole is not None
        at = whole.read(text, at, end, final)
        if whole.error is not None:
            return self._reject(at, whole.message, whole.error)
        if not whole.done:
            return wait(at)
        self._ended_at = base + at
        self._step = self._behind_json
        return at

    def _behind_json(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = skip(text, at, end)
        found = marker_at(text, at, end, (self._whole_close,))
        if found is None:
            return wait(at)
        self._step = self._behind_a_value
        return at + len(found)

    def _close_arguments(self) -> None:
        if self._whole is None:
            super()._close_arguments()

    def _behind_a_value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Where a parameter or the end of the call is expected."""
        syntax = self._syntax
        at = skip(text, at, end)
        found = marker_at(text, at, end, self._behind_value)
        if found is None:
            return wait(at)
        if found == syntax.parameter.literal and self._whole is None:
            return self._parameter(text, at, end, base, final)
        if not found or found == syntax.parameter.literal or not (found in syntax.closes or self._is_over(found)):
            return self._reject(at, "a parameter or the end of the call is expected")
        self._close_arguments()
        self._step = self._behind_call
        if found == syntax.call_close:
            self._ended_at = base + at + len(found)
            return at + len(found)
        self._miss_close(self._ended_at)
        return at

    def _is_over(self, found: str) -> bool:
        return super()._is_over(found) or (found in self._layout.goes_on and self._whole is not None)

    def _parameter(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        syntax = self._syntax
        tag = syntax.parameter.read(text[at : min(end, at + LONGEST_TAG)])
        if tag is None:
            return wait(at)
        if tag.stop < 0 or tag.empty:
            return self._reject(at, "the tag of a parameter cannot be read")
        if tag.name in syntax.unwraps and not self._members and self._is_wrapper(tag.name):
            place = skip(text, at + tag.stop, end)
            if place == end and not final:
                return wait(at)
            if text.startswith("{", place, end):
                self._whole_close = syntax.parameter_close
                return self._begin_json(place, base)
        attribute, string = syntax.string
        kind: Kind = "untyped"
        if attribute in tag.attributes:
            kind = "string" if tag.attributes[attribute] == string else "json"
        return self._argument(tag.name, text, at + tag.stop, end, base, kind)

    def _is_wrapper(self, name: str) -> bool:
        """Whether the tool is known and has no parameter of this name."""
        self._head()
        return self._schema is not None and not self._schema.lists(name)

    def _behind_call(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Behind a call: the marker that closes it, another call between the same markers, or neither."""
        syntax = self._syntax
        if not self._wrapped:
            return self._end(at, alone=not self._section)
        place = skip_some(text, at, end)
        found = marker_at(text, place, end, (*syntax.close, syntax.call.literal)) if place < at + LONGEST_SPACE else ""
        if found is None and not final:
            return wait(at)
        alone = not self._section and not self._calls
        if found in syntax.close and found:
            if self._section or alone:
                self._ended_at = base + place + len(found)
            return self._end(place + len(found), alone)
        if found and not self._section:
            self._end_call(alone=False)
            self._missed = False
            self._sink.begin(base + place)
            self._step = self._call_tag
            return place
        self._miss_close(self._ended_at)
        return self._end(at, alone)


class XmlBodyReader(XmlReader):
    """Reads the parameters of a call whose name is known."""

    def __init__(self, syntax: XmlBody, sink: Sink, recipient: str) -> None:
        super().__init__(syntax, sink, "")
        self._name = recipient
        self._step = self._begin_body

    def _begin_body(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        self._sink.begin(base + at)
        self._head()
        self._ended_at = base + at
        self._step = self._behind_a_value
        return at

    def _behind_a_value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Where a parameter or the end of the message is expected; the input may end there too."""
        place = skip(text, at, end)
        over = final and place == end
        found = marker_at(text, place, end, self._markers.closers)
        if not over and not found:
            return super()._behind_a_value(text, place, end, base, final)
        if over:
            self._miss_close(self._ended_at)
        self._close_arguments()
        self._sink.end(self._ended_at, alone=True)
        return self._done(place)
