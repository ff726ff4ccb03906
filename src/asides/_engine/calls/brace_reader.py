"""Reads calls written with bare keys in braces, and writes their arguments as JSON.

    call:get_weather{city: <|"|>Paris<|"|>, days: 3, tags: [a, b]}

Keys have no quotes; strings stand between two markers of the format, in JSON's quotes, or, from models that were not
taught so, in single ones; what has neither is plain text whose type the tool's schema gives. Brackets nest: `_frames`
holds the open ones with what is known of their values. Every step writes the JSON of what it read at once.
"""

from __future__ import annotations

import re

from ..literals import beginnings
from .brace_calls import BraceCalls
from .json_scan import read_body, unescape
from .reader import Sink
from .steps import (
    LONGEST_NAME,
    StepReader,
    ends_inside,
    escape,
    find_marker,
    marker_at,
    skip,
    skip_some,
    starts,
    wait,
)
from .strings import JSON_BODY, StringBody, up_to
from .values import Schema, StringWriter, ValueWriter

_NAME = re.compile(r"[^\s{}<>]*+")
_KEY = re.compile(r"[^:{}\[\],\"]*+")
_SINGLE = re.compile(r"'[ \t\n\r]{0,64}+(?=[,\]}])")
"""A single quote that ends a string: behind it stands what may follow a value."""
_SINGLE_BEGINS = re.compile(r"'[ \t\n\r]{0,64}+\Z")
_CLOSING = {"[": "]", "{": "}"}
_TYPES = {"[": "array", "{": "object"}
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
        self._key_size = 0
        self._argument = ""
        self._string: StringWriter | None = None
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
            return self._reject(at, f"{prefix!r} is expected")  # pragma: no cover - `sniff` and `_after` have seen it
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
            self._key_text = ""
            return self._begin_string(at + len(quote), quote, key=True)
        match = _KEY.match(text, at, min(end, at + LONGEST_NAME))
        stop = match.end() if match else at
        if stop == end:
            return wait(at)
        if text[stop] != ":":
            return self._reject(stop, "a key and a colon are expected")
        self._key_text = _unquoted(text[at:stop].rstrip())
        self._step = self._colon
        return stop

    def _colon(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        if text[at] != ":":
            return self._reject(at, "a colon is missing")
        if len(self._frames) == 1:
            self._argument = self._key_text
            self._sink.member(self._argument, base + at + 1)
        self._separate()
        self._sink.arguments(f'"{escape(self._key_text)}": ')
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
            schema = self._schema()
            if schema is not None and not schema.allows(_TYPES[text[at]]):
                self._sink.invalid(self._argument)
            return self._open(at, text[at], schema)
        quote = marker_at(text, at, end, (self._syntax.quote, '"'), final)
        if quote is None:
            return wait(at)
        if quote:
            return self._begin_string(at + len(quote), quote, key=False)
        if text[at] == "'":
            return self._begin_string(at + 1, "'", key=False)
        self._plain = ValueWriter(self._sink, self._schema(), "unquoted", self._argument)
        self._space.clear()
        self._step = self._in_plain
        return at

    def _begin_string(self, at: int, quote: str, key: bool) -> int:
        self._key_size = 0
        self._string = None if key else StringWriter(self._sink, self._schema(), self._argument)
        self._step = {'"': self._in_json_string, "'": self._in_single}.get(quote, self._in_string)
        return at

    def _in_string(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Between two markers: any text at all."""
        quote = self._syntax.quote
        place = text.find(quote, at, end)
        stop = place if place >= 0 else beginnings((quote,)).find_unmet(text, at, end)
        if self._string is not None:
            self._string.add(escape(text[at:stop]))
        elif (room := self._extend_key(text[at:stop], stop - at)) >= 0:
            return self._reject(at + room, "a key is too long")
        return self._end_string(stop + len(quote)) if place >= 0 else wait(stop)

    def _in_single(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Between single quotes, which are not as the model was taught: any text that does not end the call."""
        string = self._string
        assert string is not None
        match = _SINGLE.search(text, at, end)
        stop, closes = self._up_to_closer(text, at, end, match, final)
        if match is None and not closes and (begun := _SINGLE_BEGINS.search(text, at, stop)) is not None:
            stop = begun.start()
        string.add(escape(text[at:stop]))
        if closes:
            return self._reject(stop, "a string is not closed", "unclosed")
        return self._end_string(match.end()) if match is not None else wait(stop)

    def _up_to_closer(self, text: str, at: int, end: int, match: re.Match[str] | None, final: bool) -> tuple[int, bool]:
        """Up to where the value goes that `match` ends, and whether a closing marker stands before that.

        The marker is looked for no further, so that each character is searched only once.
        """
        if match is None:
            return find_marker(text, at, end, self._syntax.close, final)
        return find_marker(text, at, match.start(), self._syntax.close, True)

    def _in_json_string(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """A string as JSON writes it."""
        stop, cut = read_body(text, at, end, whole_pairs=self._string is None)
        if self._string is not None:
            self._string.add(text[at:stop])
        elif (room := self._extend_key(unescape(text[at:stop]), stop - at)) >= 0:
            return self._reject(at + room, "a key is too long")
        if cut:
            return wait(stop)
        if text[stop] != '"':
            return self._reject(stop, "a string holds what JSON does not allow")
        return self._end_string(stop + 1)

    @property
    def string_ends(self) -> tuple[str, ...] | None:
        """Inside a string value."""
        if self._string is None or not self._string.flows:
            return None
        if self._step == self._in_json_string:
            return ()
        return (self._syntax.quote[:2],) if self._step == self._in_string else None

    @property
    def string_body(self) -> StringBody | None:
        """JSON, or anything up to the closing quote."""
        return JSON_BODY if self._step == self._in_json_string else up_to(self._syntax.quote)

    def _extend_key(self, text: str, size: int) -> int:
        """More of a key, written in `size` characters; how many of them were allowed if it is too long, else -1."""
        room = LONGEST_NAME - self._key_size
        self._key_size += size
        self._key_text += text
        return room if size > room else -1

    def _end_string(self, at: int) -> int:
        string, self._string = self._string, None
        if string is not None:
            string.close()
        self._step = self._colon if string is None else self._after_value
        return at

    def _in_plain(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Text without quotes, up to the next comma or the closing bracket."""
        plain = self._plain
        assert plain is not None
        match = _PLAIN_ENDS[self._frames[-1][0]].search(text, at, end)
        stop, closes = self._up_to_closer(text, at, end, match, final)
        words = text[at:stop].rstrip()
        if words:
            plain.add("".join(self._space) + words)
            self._space.clear()
        if match is None or closes:
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
        if len(self._frames) == 1 and text[at] in ",}":
            self._sink.member_end(base + at)
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


def _unquoted(key: str) -> str:
    """A key without the single quotes around it."""
    return key[1:-1] if len(key) > 1 and key[0] == key[-1] == "'" else key
