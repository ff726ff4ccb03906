"""Calls written as JSON: an object with a name and arguments, a list of such, or objects in a row."""

from __future__ import annotations

import re

from .arguments import ArgumentsReader
from .json_scan import SPACE, STRING_BODY, JsonScanner
from .reader import Reader, Sink, Status
from .syntax import CallSyntax

LONGEST_NAME = 1024
"""A key or a name is no longer than this, in characters."""
_FENCE = re.compile(r"```(?:json)?[ \t]*\n?")


class JsonCalls(CallSyntax, frozen=True, kw_only=True):
    """`{"name": "f", "arguments": {...}}`, alone, in a row or in a list."""

    names: tuple[str, ...] = ("name",)
    """Keys that hold the function's name."""
    arguments: tuple[str, ...] = ("arguments", "parameters")
    """Keys that hold the arguments."""
    ids: tuple[str, ...] = ("id", "tool_call_id")
    """Keys that hold the call's id."""
    keyed: bool = False
    """Whether the object's one key is the name and its value the arguments: `{"f": {...}}`."""
    separators: str = ",;"
    """What may stand between objects in a row."""
    fenced: bool = False
    """Whether the JSON may stand in a fenced code block."""

    def sniff(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """A brace or a bracket."""
        match = SPACE.match(text, at, end)
        at = match.end() if match else at
        if at == end:
            return False if final and self.bare and not self.open else (None if not final else True)
        if text[at] == "{":
            return True
        if text[at] == "[":
            following = SPACE.match(text, at + 1, end)
            after = following.end() if following else at + 1
            if after == end:
                return None if not final else True
            return text[after] in "{]"
        return self.fenced and text.startswith("```"[: end - at], at) and (end - at >= 3 or (None if not final else False))

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for the objects."""
        return JsonReader(self, sink, bare=not opener)


class JsonReader:
    """Reads objects up to the closing marker, or to the end of the last one."""

    def __init__(self, syntax: JsonCalls, sink: Sink, bare: bool) -> None:
        self.status = Status.READING
        self.code = "unreadable"
        self.reason = ""
        self._syntax = syntax
        self._sink = sink
        self._bare = bare
        self._step = self._lead
        self._list = False
        self._fence = False
        self._several = False
        self._clear()

    def _clear(self) -> None:
        self._name: str | None = None
        self._id: str | None = None
        self._headed = False
        self._early: list[str] = []
        self._arguments: ArgumentsReader | None = None
        self._skipped: JsonScanner | None = None
        self._key = ""

    def read(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Take one step after another until one needs more."""
        while self.status is Status.READING:
            step = self._step
            stop = step(text, at, end, base, final)
            if stop < 0:
                return -stop - 1
            at = stop
        return at

    def recover(self, marker: str) -> None:
        """A closing marker ends the region, whatever came before."""
        self.status = Status.DONE

    # Steps. Each returns where it stopped, or -1 - position when it needs more.

    def _reject(self, at: int, reason: str, code: str = "unreadable") -> int:
        self.status, self.code, self.reason = Status.REJECTED, code, reason
        return at

    def _skip(self, text: str, at: int, end: int) -> int:
        match = SPACE.match(text, at, end)
        return match.end() if match else at

    def _lead(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Before the first object."""
        at = self._skip(text, at, end)
        if at == end:
            return -1 - at
        if self._syntax.fenced and text[at] == "`":
            if end - at < 4 and not final:
                return -1 - at
            match = _FENCE.match(text, at, end)
            if match is None:
                return self._reject(at, "a code block that is not JSON")
            if match.end() == end and not final:
                return -1 - at
            self._fence = True
            return match.end()
        if text[at] == "[":
            self._list = True
            self._step = self._item
            return at + 1
        self._step = self._item
        return at

    def _item(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Where an object is expected."""
        at = self._skip(text, at, end)
        if at == end:
            return -1 - at
        if text[at] == "{":
            self._clear()
            self._sink.begin(base + at)
            self._step = self._first_key
            return at + 1
        if self._list and text[at] == "]":
            self._step = self._close
            return at + 1
        return self._reject(at, "a JSON object is expected")

    def _first_key(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = self._skip(text, at, end)
        if at < end and text[at] == "}":
            return self._end_object(at + 1, base)
        return self._next_key(text, at, end, base, final)

    def _next_key(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = self._skip(text, at, end)
        if at == end:
            return -1 - at
        if text[at] != '"':
            return self._reject(at, "a key must be a string in double quotes", "invalid_json")
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
            return None, self._reject(at, "a name is too long")
        if stop == end or (text[stop] == "\\" and end - stop < 6):
            return None, -1 - at
        if text[stop] != '"':
            return None, self._reject(at, "a string holds what JSON does not allow", "invalid_json")
        raw = text[at + 1 : stop]
        return (raw if "\\" not in raw else _unescape(raw)), stop + 1

    def _colon(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = self._skip(text, at, end)
        if at == end:
            return -1 - at
        if text[at] != ":":
            return self._reject(at, "a colon is missing", "invalid_json")
        self._step = self._value
        return at + 1

    def _value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = self._skip(text, at, end)
        if at == end:
            return -1 - at
        syntax = self._syntax
        if syntax.keyed and self._name is None:
            self._name = self._key
            self._begin_arguments()
            return at
        if self._key in syntax.names and self._name is None and not syntax.keyed:
            if text[at] != '"':
                return self._reject(at, "the name is not a string", "no_name")
            value, stop = self._string(text, at, end)
            if value is None:
                return stop
            self._name = value
            if self._arguments is not None:
                self._head()
                self._sink.arguments("".join(self._early))
            self._step = self._comma
            return stop
        if self._key in syntax.arguments and self._arguments is None and not syntax.keyed:
            self._begin_arguments()
            return at
        if self._key in syntax.ids and text[at] == '"':
            value, stop = self._string(text, at, end)
            if value is None:
                return stop
            if self._headed:
                self._sink.late_id(base + at)
            else:
                self._id = value
            self._step = self._comma
            return stop
        self._skipped = JsonScanner()
        self._step = self._other
        return at

    def _begin_arguments(self) -> None:
        self._step = self._in_arguments
        if self._name is not None:
            self._head()
        self._arguments = ArgumentsReader(self._write)

    def _head(self) -> None:
        self._headed = True
        self._sink.head(self._name or "", self._id)

    def _write(self, text: str) -> None:
        if self._headed:
            self._sink.arguments(text)
        else:
            self._early.append(text)

    def _in_arguments(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        arguments = self._arguments
        assert arguments is not None
        was_string = arguments.was_string
        stop = arguments.read(text, at, end, final)
        if arguments.was_string and not was_string:
            self._sink.string_arguments(base + at)
        if not arguments.done:
            return -1 - stop
        self._step = self._comma
        return stop

    def _other(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        scanner = self._skipped
        assert scanner is not None
        at = scanner.scan(text, at, end)
        if scanner.error is not None:
            return self._reject(at, scanner.error, "invalid_json")
        if not scanner.done:
            return -1 - at
        self._step = self._comma
        return at

    def _comma(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = self._skip(text, at, end)
        if at == end:
            return -1 - at
        if text[at] == ",":
            self._step = self._next_key
            return at + 1
        if text[at] == "}":
            return self._end_object(at + 1, base)
        return self._reject(at, "a comma or a closing brace is missing", "invalid_json")

    def _end_object(self, at: int, base: int) -> int:
        if not self._name:
            return self._reject(at, "the call names no function", "no_name")
        if not self._headed:
            if self._bare:
                return self._reject(at, "a name without arguments is no call here")
            self._head()
            self._sink.arguments("{}")
        if self._list or self._bare:
            self._end_call(base + at)
            self._step = self._after_item
        else:
            self._ended_at = base + at
            self._step = self._after_object
        return at

    def _end_call(self, offset: int, alone: bool = False) -> None:
        arguments = self._arguments
        error = arguments.error if arguments else None
        self._sink.end(offset, alone=alone, error=error, message=arguments.message if arguments else "")

    def _after_item(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Behind an object of a list, or a bare one."""
        place = self._skip(text, at, end)
        if place == end:
            if final and not self._list:
                self.status = Status.DONE
                return at
            return -1 - (place if self._list else at)
        character = text[place]
        if self._list:
            if character == "]":
                self._step = self._close
                return place + 1
            if character in self._syntax.separators:
                self._step = self._item
                return place + 1
            if character == "{":
                self._step = self._item
                return place
            return self._reject(place, "a comma or a closing bracket is missing")
        if character in self._syntax.separators:
            following = self._skip(text, place + 1, end)
            if following == end and not final:
                return -1 - at
            if following < end and text[following] == "{":
                self._step = self._item
                return following
        if character == "{":
            self._step = self._item
            return place
        self.status = Status.DONE
        return at

    def _after_object(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Behind an object that may be the only one: a closing marker, another object, or neither."""
        place = self._skip(text, at, end)
        if self._fence and text.startswith("```"[: max(end - place, 0)], place) and place < end:
            if end - place < 3 and not final:
                return -1 - at
            place = self._skip(text, place + 3, end)
        for marker in self._syntax.close:
            if text.startswith(marker, place) and place + len(marker) <= end:
                stop = place + len(marker)
                self._end_call(base + stop if not self._several else self._ended_at, alone=not self._several)
                self.status = Status.DONE
                return stop
        if not final and (place == end or any(marker.startswith(text[place:end]) for marker in self._syntax.close)):
            return -1 - at
        separated = place < end and text[place] in self._syntax.separators
        following = self._skip(text, place + 1, end) if separated else place
        if separated and following == end and not final:
            return -1 - at
        if following < end and text[following] == "{":
            self._several = True
            self._end_call(self._ended_at)
            self._step = self._item
            return following
        if self._syntax.close:
            self._sink.missing_close(self._ended_at)
        self._end_call(self._ended_at, alone=not self._several)
        self.status = Status.DONE
        return at

    def _close(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Behind a list: the closing marker, if there is one."""
        place = self._skip(text, at, end)
        if self._fence and place < end and text.startswith("```"[: end - place], place):
            if end - place < 3 and not final:
                return -1 - at
            place = self._skip(text, place + 3, end)
        for marker in self._syntax.close:
            if text.startswith(marker, place) and place + len(marker) <= end:
                self.status = Status.DONE
                return place + len(marker)
        if self._syntax.close and not final:
            if place == end or any(marker.startswith(text[place:end]) for marker in self._syntax.close):
                return -1 - at
        if self._syntax.close:
            self._sink.missing_close(base + at)
        self.status = Status.DONE
        return at


def _unescape(raw: str) -> str:
    from json.decoder import scanstring  # here, because few names are escaped and importing json costs start-up

    return scanstring(raw + '"', 0, False)[0]
