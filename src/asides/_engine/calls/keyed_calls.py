"""Calls written as keys and values in tags: `f<arg_key>a</arg_key><arg_value>v</arg_value>` between two markers.

Here stand the syntax (`KeyedCalls`: its tags, where a call begins and how one is recognised from its first characters)
and its reader. Models are careless with the newlines between tags and sometimes leave out a tag, so every step looks
for whatever may follow, not for one thing. Where a value ends is in `tagged_value.py`, its type in `values.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

from .json_calls import JsonCalls
from .reader import Reader, Sink, Status
from .steps import LONGEST_SPACE, find_marker, marker_at, skip, skip_some, wait
from .tagged import LONGEST_TAG, TaggedCalls, TaggedReader
from .tagged_value import ValueFrame, skip_gap
from .value_tags import NO_TAG, Piece, ReadWhole, WholeTag
from .values import Kind

_NAME = re.compile(r"[^\s<>{}\[\]()\"'=\\]++")
_QUOTED_NAME = re.compile(r"[^<\n]*+")
_NEWLINE = "\\n"
"""Some models spell out the newline that their template writes between tags."""
_GAP = re.compile(r"(?>(?:\s++|\\n)*)")


class KeyedCalls(TaggedCalls, frozen=True, kw_only=True):
    """A name, then keys and values."""

    key: str = "<arg_key>"
    key_close: str = "</arg_key>"
    value: str = "<arg_value>"
    value_close: str = "</arg_value>"
    separator: str = ""
    """What may stand between the name and the first key."""
    type: str = ""
    """What may stand between a key and its value, before the name of the value's type."""
    type_close: str = ""
    nulls: bool = False
    """Whether the word null is nothing, also where the tool declares a string."""
    json: bool = False
    """Whether a call may be a JSON object with a name and arguments instead: its first character tells."""

    @property
    def begins_call(self) -> tuple[str, ...]:
        """Its marker."""
        return self.open

    @cached_property
    def pieces(self) -> tuple[tuple[str, Piece], ...]:
        """The tags of a call; of the two that are around a value's name, the first."""
        return (
            (self.key, Piece.OPEN),
            (self.value_close, Piece.CLOSE),
            *((marker, Piece.CALL) for marker in self.open),
            *((marker, Piece.END) for marker in self.close),
        )

    @cached_property
    def whole_tags(self) -> Mapping[Piece, ReadWhole]:
        """Those with a name."""
        return {Piece.OPEN: self.read_quoted_pair, Piece.CALL: self.read_quoted_call}

    @property
    def tags_anywhere(self) -> bool:
        """A key with its value's tag is too long a sequence to be written by chance, so it counts in any place."""
        return True

    def frame(self, over: tuple[str, ...]) -> ValueFrame:
        """Another key or the end of the call follows."""
        # A gap takes every newline that is spelled out, so that can only be found half there.
        return ValueFrame(self.value_close, (self.key, *self.closers, _NEWLINE, *over), gap=_GAP)

    def sniff(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """A name, and behind it a key or the end of the call; in a section, the marker of a call."""
        place = skip_some(text, at, end)
        if place == end:
            return True if final else None
        found = marker_at(text, place, end, (*self.open, *self.section_close)) if self.section else ""
        if found == "" and self.json and text[place] in "{[":
            return True
        if found == "":
            match = _NAME.match(text, place, end)
            if match is None or match.end() - place > LONGEST_TAG:
                return False
            found = self._behind_name(text, match.end(), end, final)
        if found is None:
            return True if final else None
        return bool(found)

    def _behind_name(self, text: str, at: int, end: int, final: bool) -> str | None:
        place = skip_gap(_GAP, text, at, min(end, at + LONGEST_SPACE))
        if self.sibling and final and place == end:
            return ""
        # Where others open calls so, a lone word between the markers is more likely talked about than called.
        closers = () if self.sibling else self.closers
        expected = (self.key, *closers, _NEWLINE, *((self.separator,) if self.separator else ()))
        return marker_at(text, place, end, expected) if place < at + LONGEST_SPACE else ""

    @cached_property
    def behind_key(self) -> tuple[str, ...]:
        """What may follow a key."""
        return (self.value, _NEWLINE, *((self.type,) if self.type else ()))

    @cached_property
    def json_calls(self) -> JsonCalls:
        """How a call is written that is JSON."""
        return JsonCalls(open=self.open, close=self.close, section=self.section)

    def read_key(self, text: str, at: int, end: int, close: str = "") -> WholeTag | None:
        """The key that begins at `at`, or the type that `close` closes, with that; None when more must be seen."""
        close = close or self.key_close
        reach = at + LONGEST_TAG + len(close)
        # A key may hold any character but a line's end, and none of the tags around it.
        ends = (close, "\n", self.key, self.value, self.value_close, *self.closers)
        stop, found = find_marker(text, at, min(end, reach), ends, final=True)
        if found:
            closed = text.startswith(close, stop)
            return WholeTag(stop + len(close), text[at:stop]) if closed else NO_TAG
        return None if end < reach else NO_TAG

    def read_quoted_pair(self, text: str, place: int, end: int) -> WholeTag | None:
        """A whole key, and the tag that opens its value."""
        key = self.read_key(text, place + len(self.key), end)
        if key is None or key.stop < 0:
            return key
        at = skip_gap(_GAP, text, key.stop, min(end, key.stop + LONGEST_SPACE))
        found = marker_at(text, at, end, self.behind_key) if at < key.stop + LONGEST_SPACE else ""
        if found is None:
            return None
        return WholeTag(at + len(found), key.name) if found else NO_TAG

    def read_quoted_call(self, text: str, place: int, end: int) -> WholeTag | None:
        """The marker of a call, a name, and what must follow that."""
        at = skip_some(text, place + len(marker_at(text, place, end, self.open) or ""), end)
        match = _QUOTED_NAME.match(text, at, min(end, at + LONGEST_TAG))
        stop = match.end() if match else at
        if stop == end:
            return None
        behind = skip_gap(_GAP, text, stop, min(end, stop + LONGEST_SPACE))
        if stop == at or stop == at + LONGEST_TAG or behind == stop + LONGEST_SPACE:
            return NO_TAG
        expected = (self.key, *self.close, _NEWLINE, *((self.separator,) if self.separator else ()))
        found = marker_at(text, behind, end, expected)
        if found is None:
            return None
        return WholeTag(stop, text[at:stop].strip()) if found else NO_TAG

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for what follows the opener."""
        return KeyedReader(self, sink, opener)


class KeyedReader(TaggedReader):
    """Reads one call, or a section of calls."""

    def __init__(self, syntax: KeyedCalls, sink: Sink, opener: str) -> None:
        super().__init__(syntax, sink, opener)
        self._syntax = syntax
        self._behind_value = self._layout.frame.next
        self._opener = opener
        self._json: Reader | None = None
        self._untyped: Kind = "nullable" if syntax.nulls else "untyped"
        self._kind: Kind = self._untyped
        if not self._section:
            self._step = self._call_name

    def _enter(self, found: str, at: int) -> int:
        self._step = self._call_name
        return at + len(found)

    def _call_name(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Between the opener and the first key."""
        at = skip(text, at, end)
        match = _NAME.match(text, at, end)
        stop = match.end() if match else at
        if at == end or (stop == end and not final and stop - at < LONGEST_TAG):
            return wait(at)
        if self._syntax.json and text[at] in "{[":
            self._json = self._syntax.json_calls.reader(self._sink, self._opener)
            self._step = self._in_json
            return at
        if match is None or stop - at >= LONGEST_TAG:
            return self._reject(at, "the call names no function", "no_name")
        self._name = match[0]
        # Words may follow a name that is only talked about; a key or the end of the line does not.
        self._sink.named(match[0], closed=text[stop : min(end, stop + 1)] in ("\n", "\r"))
        self._ended_at = base + stop
        self._step = self._behind_name
        return stop

    def _in_json(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """A call that is JSON: another reader's, up to what closes it."""
        json, calls = self._json, self._sink.calls
        assert json is not None
        at = json.read(text, at, end, base, final)
        if json.status is Status.REJECTED:
            return self._reject(at, json.reason, json.code)
        if json.status is Status.DONE:
            self._next_item()
            return at if self._section else self._done(at)
        return at if self._sink.calls > calls else wait(at)

    def _behind_name(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        separator = self._syntax.separator
        if separator:
            at = skip_gap(_GAP, text, at, end)
            found = marker_at(text, at, end, (*self._behind_value, separator))
            if found is None:
                return wait(at)
            if found == separator:
                self._sink.named(self._name)
                at += len(separator)
                self._ended_at = base + at
        self._step = self._behind_a_value
        return at

    def _behind_a_value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Where a key or the end of the call is expected."""
        syntax = self._syntax
        at = skip_gap(_GAP, text, at, end)
        found = marker_at(text, at, end, self._behind_value)
        if found is None:
            return wait(at)
        if found == syntax.key:
            self._head()
            self._step = self._in_key
            return at + len(found)
        if not found or not (found in syntax.closers or self._is_over(found)):
            return self._reject(at, "a key or the end of the call is expected")
        self._close_arguments()
        if found in syntax.close:
            self._ended_at = base + at + len(found)
            return self._end(at + len(found), alone=not self._section)
        self._miss_close(self._ended_at)
        return self._end(at, alone=not self._section)

    def _in_key(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        key = self._syntax.read_key(text, at, end)
        if key is None:
            return wait(at)
        if key.stop < 0:
            return self._reject(at, "a key does not end")
        self._key = key.name
        self._step = self._behind_key
        return key.stop

    def _behind_key(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        syntax = self._syntax
        at = skip_gap(_GAP, text, at, end)
        found = marker_at(text, at, end, syntax.behind_key)
        if found is None:
            return wait(at)
        if not found:
            return self._reject(at, "the value of a key is expected")
        if found == syntax.type:
            self._step = self._in_type
            return at + len(found)
        kind, self._kind = self._kind, self._untyped
        return self._argument(self._key, text, at + len(found), end, base, kind)

    def _in_type(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """The name of a value's type: `array[string]` is an array. What the tool's schema says of it counts more."""
        type = self._syntax.read_key(text, at, end, self._syntax.type_close)
        if type is None:
            return wait(at)
        if type.stop < 0:
            return self._reject(at, "the type of a value does not end")
        self._head()
        if self._schema is None or self._schema.member(self._key) is None:
            word = type.name.partition("[")[0].strip().lower()
            self._kind = "string" if word in ("string", "any") else "json"
        self._step = self._behind_key
        return type.stop
