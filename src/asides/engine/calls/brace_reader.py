"""Reads calls written with bare keys in braces, and writes their arguments as JSON."""

from __future__ import annotations

import re

from .arguments import unescape
from .brace_calls import BraceCalls
from .json_scan import ESCAPE_START, STRING_BODY
from .reader import Sink
from .steps import (
    LONGEST_NAME,
    StepReader,
    begins,
    ends_inside,
    escape,
    find_marker,
    marker_at,
    skip,
    skip_some,
    starts,
    wait,
)
from .values import Schema, ValueWriter

_NAME = re.compile(r"[^\s{}<>]*+")
_KEY = re.compile(r"[^:{}\[\],\"]*+")
_CLOSING = {"[": "]", "{": "}"}
_PLAIN_ENDS = {"[": re.compile(r"[,\]]"), "{": re.compile(r"[,}]")}


class BraceReader(StepReader):
    """Reads one call, or several in a row."""

    def __init__(self, syntax: BraceCalls, sink: Sink) -> None:
        super().__init__(sink)
        self._syntax = syntax
        self._frames: list[tuple[str, Schema | None]] = []
        self._first = True
        self._plain: ValueWriter | None = None
        self._space: list[str] = []
        self._key_text = ""
        self._in_key = False
        self._several = False
        self._ended_at = 0

    def _lead(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """The word before the name."""
        at = skip(text, at, end)
        prefix = self._syntax.prefix
        led = starts(text, at, end, prefix, final)
        if led is None or (final and ends_inside(text, at, end, prefix)):
            return wait(at)
        if not led:
            return self._reject(at, f"{prefix!r} is expected")
        self._sink.begin(base + at)
        self._step = self._name
        return at + len(prefix)

    def _name(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """The name, up to the brace."""
        match = _NAME.match(text, at, min(end, at + LONGEST_NAME))
        stop = match.end() if match else at
        place = skip_some(text, stop, end)
        if place == end:
            return wait(at)
        name = text[at:stop]
        if text[place] != "{":
            return self._reject(place, "a brace is expected behind the name")
        if not name:
            return self._reject(place, "the call names no function", "no_name")
        self._sink.head(name)
        tools = self._sink.tools
        schema = tools.parameters(name) if tools is not None else None
        return self._open(place, "{", Schema(schema) if schema else None)

    # Keys and values.

    def _open(self, at: int, bracket: str, schema: Schema | None) -> int:
        self._frames.append((bracket, schema))
        self._sink.arguments(bracket)
        self._first = True
        self._step = self._key if bracket == "{" else self._element
        return at + 1

    def _shut(self, at: int, base: int) -> int:
        self._sink.arguments(_CLOSING[self._frames.pop()[0]])
        self._first = False
        self._step = self._after_value
        if not self._frames:
            self._ended_at = base + at + 1
            self._step = self._after
        return at + 1

    def _schema(self) -> Schema | None:
        """What is known of the value that comes."""
        bracket, schema = self._frames[-1]
        if schema is None:
            return None
        return schema.member(self._key_text) if bracket == "{" else schema.items

    def _separate(self) -> None:
        if not self._first:
            self._sink.arguments(", ")
        self._first = False

    def _key(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """A key, or the end of the object."""
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        if text[at] == "}":
            return self._shut(at, base)
        quote = marker_at(text, at, end, (self._syntax.quote, '"'), final)
        if quote is None:
            return wait(at)
        if quote:
            self._separate()
            return self._begin_string(at + len(quote), quote, key=True)
        match = _KEY.match(text, at, min(end, at + LONGEST_NAME))
        stop = match.end() if match else at
        if stop == end:
            return wait(at)
        if text[stop] != ":":
            return self._reject(stop, "a key and a colon are expected")
        self._separate()
        self._key_text = text[at:stop].rstrip()
        self._sink.arguments(f'"{escape(self._key_text)}"')
        self._step = self._colon
        return stop

    def _colon(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        if text[at] != ":":
            return self._reject(at, "a colon is missing")
        self._sink.arguments(": ")
        self._step = self._value
        return at + 1

    def _element(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """A value, or the end of the list."""
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        if text[at] == "]":
            return self._shut(at, base)
        self._separate()
        self._step = self._value
        return at

    def _value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        if text[at] in _CLOSING:
            return self._open(at, text[at], self._schema())
        quote = marker_at(text, at, end, (self._syntax.quote, '"'), final)
        if quote is None:
            return wait(at)
        if quote:
            return self._begin_string(at + len(quote), quote, key=False)
        self._plain = ValueWriter(self._sink, self._schema())
        self._space.clear()
        self._step = self._in_plain
        return at

    def _begin_string(self, at: int, quote: str, key: bool) -> int:
        self._sink.arguments('"')
        self._in_key = key
        if key:
            self._key_text = ""
        self._step = self._in_json_string if quote == '"' else self._in_string
        return at

    def _in_string(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Between two markers: any text at all."""
        quote = self._syntax.quote
        place = text.find(quote, at, end)
        stop = place if place >= 0 else begins(text, at, end, (quote,))
        if stop > at:
            self._sink.arguments(escape(text[at:stop]))
            self._note(text[at:stop])
        return self._end_string(stop + len(quote)) if place >= 0 else wait(stop)

    def _in_json_string(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """A string as JSON writes it."""
        match = STRING_BODY.match(text, at, end)
        stop = match.end() if match else at
        if stop > at:
            self._sink.arguments(text[at:stop])
            self._note(unescape(text[at:stop]))
        if stop == end or ESCAPE_START.match(text, stop, end):
            return wait(stop)
        if text[stop] != '"':
            return self._reject(stop, "a string holds what JSON does not allow")
        return self._end_string(stop + 1)

    @property
    def calm(self) -> str | None:
        """Inside a string value."""
        if self._in_key:
            return None
        if self._step == self._in_json_string:
            return ""
        return self._syntax.quote[0] if self._step == self._in_string else None

    def _note(self, text: str) -> None:
        """Remember a key, as far as one can be of use."""
        if self._in_key and len(self._key_text) <= LONGEST_NAME:
            self._key_text += text

    def _end_string(self, at: int) -> int:
        self._sink.arguments('"')
        self._step = self._colon if self._in_key else self._after_value
        return at

    def _in_plain(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Text without quotes, up to the next comma or the closing bracket."""
        plain = self._plain
        assert plain is not None
        limit, closes = find_marker(text, at, end, self._syntax.close, final)
        match = _PLAIN_ENDS[self._frames[-1][0]].search(text, at, limit)
        stop = match.start() if match else limit
        words = text[at:stop].rstrip()
        if words:
            plain.add("".join(self._space) + words)
            self._space.clear()
        if match is None:
            self._space.append(text[at + len(words) : stop])
            return self._reject(stop, "the call is not closed", "unclosed") if closes else wait(stop)
        plain.close()
        self._step = self._after_value
        return stop

    def _after_value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        bracket = self._frames[-1][0]
        if text[at] == ",":
            self._step = self._key if bracket == "{" else self._element
            return at + 1
        if text[at] == _CLOSING[bracket]:
            return self._shut(at, base)
        return self._reject(at, "a comma or a closing bracket is missing")

    def _after(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Behind the call: a closing marker, another call, or neither."""
        place = skip_some(text, at, end)
        marker = marker_at(text, place, end, self._syntax.close, final)
        if marker is None:
            return wait(at)
        if marker:
            self._sink.end(self._ended_at if self._several else base + place + len(marker), alone=not self._several)
            return self._done(place + len(marker))
        if place < end and text[place] in ",;":
            place = skip_some(text, place + 1, end)
        another = starts(text, place, end, self._syntax.prefix, final)
        if another is None:
            return wait(at)
        if another:
            self._several = True
            self._sink.end(self._ended_at)
            self._step = self._lead
            return place
        self._sink.missing_close(self._ended_at)
        self._sink.end(self._ended_at, alone=not self._several)
        return self._done(at)
