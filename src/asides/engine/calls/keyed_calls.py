"""Calls written as keys and values in tags: `f<arg_key>a</arg_key><arg_value>v</arg_value>` between two markers.

Where a value ends is in `tagged.py`, its type in `values.py`.
"""

from __future__ import annotations

import re

from .reader import Reader, Sink
from .steps import LONGEST_SPACE, skip, skip_some, wait
from .syntax import CallSyntax
from .tagged import LONGEST_TAG, TaggedReader, TaggedValue, literal_at, skip_gap

_NAME = re.compile(r"[^\s<>{}\[\]()\"'=\\]++")
_KEY = re.compile(r"[^<\n]*+")
_NEWLINE = "\\n"
"""Some models spell out the newline that their template writes between tags."""
_GAP = re.compile(r"(?>(?:\s++|\\n)*)")


class KeyedCalls(CallSyntax, frozen=True, kw_only=True):
    """A name, then keys and values."""

    key: str = "<arg_key>"
    key_close: str = "</arg_key>"
    value: str = "<arg_value>"
    value_close: str = "</arg_value>"
    separator: str = ""
    """What may stand between the name and the first key."""

    def sniff(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """A name, and behind it a key or the end of the call; in a section, the marker of a call."""
        place = skip_some(text, at, end)
        if place == end:
            return True if final else None
        found = literal_at((*self.open, *self.section_close), text, place, end) if self.section else ""
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
        return literal_at(expected, text, place, end) if place < at + LONGEST_SPACE else ""

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for what follows the opener."""
        return KeyedReader(self, sink, opener)


class KeyedReader(TaggedReader):
    """Reads one call, or a section of calls."""

    def __init__(self, syntax: KeyedCalls, sink: Sink, opener: str) -> None:
        super().__init__(syntax, sink, opener, syntax.open)
        self._syntax = syntax
        # A gap takes every newline that is spelled out, so this last one can only be found half there.
        self._behind_value = (syntax.key, *syntax.closers, _NEWLINE)
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
        if match is None or stop - at >= LONGEST_TAG:
            return self._reject(at, "the call names no function", "no_name")
        self._name = match[0]
        # Words may follow a name that is only talked about; a key or the end of the line does not.
        self._sink.named(match[0], closed=text[stop : min(end, stop + 1)] in ("\n", "\r"))
        self._ended_at = base + stop
        self._step = self._behind_name
        return stop

    def _behind_name(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        separator = self._syntax.separator
        if separator:
            at = skip_gap(_GAP, text, at, end)
            found = literal_at((*self._behind_value, separator), text, at, end)
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
        found = literal_at(self._behind_value, text, at, end)
        if found is None:
            return wait(at)
        if found == syntax.key:
            self._head()
            self._step = self._in_key
            return at + len(found)
        if not found:
            return self._reject(at, "a key or the end of the call is expected")
        self._close_arguments()
        if found in syntax.close:
            self._ended_at = base + at + len(found)
            return self._end(at + len(found), alone=not self._section)
        self._sink.missing_close(self._ended_at)
        return self._end(at, alone=not self._section)

    def _in_key(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        syntax = self._syntax
        match = _KEY.match(text, at, min(end, at + LONGEST_TAG))
        place = match.end() if match else at
        found = literal_at((syntax.key_close,), text, place, end)
        if found is None:
            return wait(at)
        if not found:
            return self._reject(at, "a key does not end")
        self._argument = text[at:place]
        self._step = self._behind_key
        return place + len(syntax.key_close)

    def _behind_key(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        syntax = self._syntax
        at = skip_gap(_GAP, text, at, end)
        found = literal_at((syntax.value, _NEWLINE), text, at, end)
        if found is None:
            return wait(at)
        if not found:
            return self._reject(at, "the value of a key is expected")
        self._key(self._argument)
        writer = self._writer(self._argument, "untyped")
        self._value = TaggedValue(writer, syntax.value_close, self._behind_value, self._sink.limit, gap=_GAP)
        self._step = self._in_value
        return at + len(found)
