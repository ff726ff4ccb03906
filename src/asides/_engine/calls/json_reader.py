"""Reads calls written as JSON objects, alone, in a row or in a list.

    {"name": "f", "arguments": {...}}        {...}{...}        [{...}, {...}]        ```json ... ```

The object around the arguments is read key by key, because which key comes first is the model's business: the call
is announced when both the name and the beginning of the arguments are known, and from there the arguments stream.
What is not JSON is rejected before that; afterwards the call has an error and only its end is looked for. An object
without a marker around it (`bare`) must look like a call to a known tool in every respect.
"""

from __future__ import annotations

import re

from .arguments import CallReader
from .json_calls import JsonCalls
from .json_scan import STRING_BODY, JsonScanner, unescape
from .reader import Sink
from .steps import LONGEST_NAME, find_marker, marker_at, skip, skip_some, starts, wait

_TYPE = "type"
_FENCE = "```"
_STRAY_BRACKET = "a closing bracket that nothing has opened follows a call; it is left out"
_BRACKETS = re.compile(r"[}\]](?:\s{0,16}[}\]]){0,15}")
"""Closing brackets that nothing has opened."""


class JsonReader(CallReader):
    """Reads objects up to the closing marker, or to the end of the last one."""

    def __init__(self, syntax: JsonCalls, sink: Sink, opener: str) -> None:
        super().__init__(sink, syntax.close if opener else ())
        self._syntax = syntax
        self._bare = not opener
        self._list = False
        self._several = opener in syntax.section
        self._calls = 0
        if opener.endswith("["):
            self._list = True
            self._step = self._item

    def _clear(self) -> None:
        super()._clear()
        self._skipped: JsonScanner | None = None
        self._key = ""
        self._ended_at = 0

    # Up to an object.

    def _lead(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Before the first object."""
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        # `sniff` has seen what stands behind it, so it is whole or not there.
        if self._syntax.lead and text.startswith(self._syntax.lead, at, end):
            at += len(self._syntax.lead)
        self._step = self._body
        return at

    def _body(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """A fence, a list or an object."""
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        if self._syntax.may_be_fenced and text[at] == "`" and not self._fence:
            return self._open_fence(text, at, end, final)
        self._step = self._item
        if text[at] == "[":
            self._list = True
            return at + 1
        return at

    def _item(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Where an object is expected."""
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        if text[at] == "{":
            self._clear()
            self._calls += 1
            self._sink.begin(base + at)
            self._step = self._first_key
            return at + 1
        # Without a marker an empty list is an ordinary text.
        if self._list and text[at] == "]" and (self._calls or not self._bare):
            self._step = self._close
            return at + 1
        return self._reject(at, "a JSON object is expected")

    # Inside an object.

    def _first_key(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = skip(text, at, end)
        if at < end and text[at] == "}":
            return self._end_object(at + 1, base)
        return self._next_key(text, at, end, base, final)

    def _next_key(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        if text[at] != '"':
            return self._break(at, "a key must be a string in double quotes")
        value, stop = self._string(text, at, end)
        if value is None:
            return stop
        self._key = value
        self._step = self._colon
        return stop

    def _string(self, text: str, at: int, end: int) -> tuple[str | None, int]:
        """A whole short string, or None and what to return."""
        match = STRING_BODY.match(text, at + 1, end)
        stop = match.end() if match else at + 1
        if stop - at > LONGEST_NAME:
            return None, self._break(at, "a name is too long")
        # From the beginning again next time, which `LONGEST_NAME` bounds. Six characters are the longest escape.
        if stop == end or (text[stop] == "\\" and end - stop < 6):
            return None, wait(at)
        if text[stop] != '"':
            return None, self._break(at, "a string holds what JSON does not allow")
        return unescape(text[at + 1 : stop]), stop + 1

    def _colon(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        if text[at] != ":":
            return self._break(at, "a colon is missing")
        self._step = self._value
        return at + 1

    def _value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """The value of a key, whatever the key is."""
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        syntax = self._syntax
        key = self._key
        if syntax.keyed:
            if self._headed:
                return self._break(at, "more than one key where the only key is the name", "unreadable")
            self._name = key
            return self._meet_arguments(at, base)
        if key in syntax.names and self._name is None:
            return self._read_name(text, at, end)
        if key in syntax.arguments and self._arguments is None:
            return self._meet_arguments(at, base)
        if key in syntax.arguments:
            self._error = self._error or ("unreadable", "the call has its arguments twice")
        if key in syntax.ids and text[at] == '"':
            return self._read_id(text, at, end, base)
        # Any object of an answer could come here: without a marker every key up to the arguments must be one of a
        # call's.
        if self._bare and not self._headed and key not in syntax.ids and key != _TYPE:
            return self._reject(at, f"{key!r} stands where a call has its arguments")
        self._skipped = JsonScanner()
        self._step = self._other
        return at

    def _read_name(self, text: str, at: int, end: int) -> int:
        if text[at] != '"':
            return self._reject(at, "the name is not a string", "no_name")
        value, stop = self._string(text, at, end)
        if value is None:
            return stop
        self._name = value
        self._sink.named(value)
        if value in self._syntax.pseudo and ((tools := self._sink.tools) is None or value not in tools.names):
            self._error = ("no_name", f"{value} names no function: the model answers without one")
        if self._arguments is not None:
            self._head()
        self._step = self._comma
        return stop

    def _read_id(self, text: str, at: int, end: int, base: int) -> int:
        value, stop = self._string(text, at, end)
        if value is None:
            return stop
        if self._headed:
            self._sink.late_id(base + at)
        else:
            self._id = value
        self._step = self._comma
        return stop

    def _meet_arguments(self, at: int, base: int) -> int:
        # In a list a first call to a tool that was given shows what the others are.
        first = not self._list or self._calls == 1
        if self._bare and (self._name is None or (first and self._unknown(self._name))):
            return self._reject(at, "the arguments come before the name, or no such tool was given")
        self._begin_arguments(base + at, self._comma)
        if self._name is not None:
            self._head()
        return at

    def _other(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """A value that means nothing here."""
        scanner = self._skipped
        assert scanner is not None
        at = scanner.scan(text, at, end)
        if scanner.error is not None:
            return self._break(at, scanner.error)
        if not scanner.done:
            return wait(at)
        self._step = self._comma
        return at

    def _comma(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        if text[at] == ",":
            self._step = self._next_key
            return at + 1
        if text[at] == "}":
            return self._end_object(at + 1, base)
        return self._break(at, "a comma or a closing brace is missing")

    def _break(self, at: int, reason: str, code: str = "invalid_json") -> int:
        """The object is not JSON. Once it has shown itself to be a call, only its end is still looked for."""
        # Before the head nothing has been emitted, so it can still be text; behind prose it always can, as all is held.
        if not self._headed or self._sink.tentative:
            return self._reject(at, reason, code)
        self._error = self._error or (code, reason)
        self._skipped = JsonScanner.inside_object(reason)
        self._step = self._in_broken
        return at

    def _in_broken(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        scanner = self._skipped
        assert scanner is not None
        place, closes = find_marker(text, max(at, self._passed - base), end, self._closers, final)
        stop = scanner.scan(text, at, place)
        self._left_out = self._left_out or bool(text[at:stop].strip())
        if scanner.done:
            return self._end_object(stop, base)
        if closes and stop == place:
            return self._meet_closer(stop, base, scanner.in_string)
        return wait(stop)

    # Behind an object.

    def _end_object(self, at: int, base: int) -> int:
        if not self._headed:
            if not self._name:
                return self._reject(at, "the call names no function", "no_name")
            if self._bare:
                return self._reject(at, "a name without arguments is no call here")
            self._head()
            # Models leave the arguments out where a function takes none.
            self._sink.arguments("{}")
        self._ended_at = base + at
        if self._list:
            self._end_call(self._ended_at)
            self._step = self._after_item
        else:
            self._step = self._after_object
        return at

    def _end_broken(self, at: int, base: int) -> int:
        self._ended_at = base + at
        if self._list:
            self._end_call(self._ended_at)
            self._step = self._close
        else:
            self._step = self._after_object
        return at

    def _after_item(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Behind an object of a list."""
        at = skip(text, at, end)
        marker = marker_at(text, at, end, (*self._closers, _FENCE) if self._fence else self._closers, final)
        if marker is None or (at == end and not final):
            return wait(at)
        if marker or at == end:
            # The list has lost its bracket.
            self._sink.missing_close(self._ended_at)
            self._step = self._close
            return at if marker == _FENCE else self._done(at + len(marker))
        if text[at] == "]":
            self._step = self._close
            return at + 1
        if text[at] == "}" and not self._bare:
            self._sink.notice("stray_close", base + at, _STRAY_BRACKET)
            return at + 1
        self._step = self._item
        if text[at] in self._syntax.separators:
            return at + 1
        return at if text[at] == "{" else self._reject(at, "a comma or a closing bracket is missing")

    def _another(self, text: str, place: int, end: int) -> int | None:
        """Where another object stands in the row; None when more must be seen, -1 when there is none."""
        if text[place] in self._syntax.separators:
            place = skip_some(text, place + 1, end)
            if place == end:
                return None
        return place if text[place] == "{" else -1

    def _after_object(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Behind an object that may be the only one: a closing marker, another object, or neither."""
        place = skip_some(text, at, end)
        if self._fence:
            fence = self._fence_end(text, place, end, final)
            if fence is None:
                return wait(at)
            if fence > place:
                self._fence = False
                self._ended_at = base + fence
                return fence
        marker = marker_at(text, place, end, self._closers, final) if place < end else ("" if final else None)
        if marker is None:
            return wait(at)
        if marker:
            self._end_call(self._ended_at if self._several else base + place + len(marker), alone=not self._several)
            return self._done(place + len(marker))
        stray = self._behind_brackets(text, place, end, final)
        if stray is None:
            return wait(at)
        if stray > place:
            self._sink.notice("stray_close", base + place, _STRAY_BRACKET)
            self._ended_at = base + stray
            return stray
        following = self._another(text, place, end) if place < end else -1
        if following is None and not final:
            return wait(at)
        if following is not None and following >= 0:
            self._several = True
            self._end_call(self._ended_at)
            self._step = self._item
            return following
        if self._closers or self._fence:
            self._sink.missing_close(self._ended_at)
        self._end_call(self._ended_at, alone=not self._several)
        return self._done(at)

    def _close(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Behind a list: the closing marker, if there is one."""
        place = skip_some(text, at, end)
        if self._fence:
            fence = self._fence_end(text, place, end, final)
            if fence is None:
                return wait(at)
            if fence > place:
                self._fence = False
                return fence
        stray = self._behind_brackets(text, place, end, final)
        if stray is None:
            return wait(at)
        if stray > place:
            self._sink.notice("stray_close", base + place, _STRAY_BRACKET)
            return stray
        if not self._closers and not self._fence:
            return self._done(at)
        marker = marker_at(text, place, end, self._closers, final) if place < end else ("" if final else None)
        if marker is None:
            return wait(at)
        if marker:
            return self._done(place + len(marker))
        self._sink.missing_close(base + at)
        return self._done(at)

    def _behind_brackets(self, text: str, place: int, end: int, final: bool) -> int | None:
        """Behind brackets that nothing has opened; `place` if there are none, None when more must be seen.

        Models count them wrong. They are brackets and no words if nothing but the end of the calls follows them.
        """
        match = _BRACKETS.match(text, place, end) if not self._sink.tentative else None
        if match is None:
            return place
        stop = skip_some(text, match.end(), end)
        markers = (*self._closers, *self._syntax.openers, *self._sink.stops, *((_FENCE,) if self._fence else ()))
        follows = marker_at(text, stop, end, markers, final) if stop < end else "" if final else None
        if follows is None:
            return None
        return match.end() if follows or stop == end else place

    def _fence_end(self, text: str, place: int, end: int, final: bool) -> int | None:
        """Behind the line that closes the code block; `place` if it is not there, None when more must be seen."""
        if place == end:
            return place if final else None
        closed = starts(text, place, end, _FENCE, final)
        return None if closed is None else place + 3 if closed else place
