"""Frames that are alike but for one string, as servers send them by the thousand: read without decoding them whole.

A frame that was decoded is remembered as the bytes before and behind its string. One that begins and ends with the same
bytes, and has a JSON string between them, says the same with another string. `IdFrameTemplates` knows such as differ in
a list of numbers behind the string too. Knows no dialect.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

# An atomic group, so that a long string without its end is not tried again from every place. Not a possessive repeat:
# CPython before 3.11.5 reads that wrongly for groups.
_STRING = re.compile(rb'"(?>(?:[^"\\]|\\.)*)"')
_NUMBERS = re.compile(rb"\[[0-9, ]*\]")
_INSIDE = rb'((?>[^"\\\n\r]*(?:\\.[^"\\\n\r]*)*))'
"""The inside of a string."""
_PROBE = "asides probe"
_CREDIT = 16
"""How many frames may be learnt before one was alike: servers that change every frame shall not pay for it."""
_KEPT = 4
"""As many as are alike at a time: thinking and text of two choices."""


_decode_string = msgspec.json.Decoder(str).decode


class FrameTemplates:
    """The frames that were learnt last."""

    __slots__ = ("_credit", "_known")

    def __init__(self) -> None:
        self._known: list[tuple[bytes, bytes, int, int, Any]] = []
        self._credit = _CREDIT

    def find(self, frame: bytes) -> tuple[Any, str] | None:
        """The meaning of the frame that this one is like, and its own string; None if it must be decoded."""
        for before, behind, start, stop, meaning in self._known:
            if frame.startswith(before) and frame.endswith(behind):
                try:
                    text = frame[start:stop].decode()
                    # A raw newline cannot stand in JSON: these are several frames. Nothing between the two ends may
                    # also mean that they overlap; a frame with an empty string is left to the reader, which does not
                    # pass empty deltas on.
                    if "\n" in text or "\r" in text or not text:
                        return None
                    # An unescaped quote means that other fields differ too; decoding then fails, and the reader takes
                    # the frame.
                    if "\\" in text or '"' in text:
                        text = _decode_string(b'"%b"' % frame[start:stop])
                except (UnicodeDecodeError, msgspec.MsgspecError):
                    return None
                self._credit = _CREDIT
                return meaning, text
        return None

    def learn(self, frame: bytes, json: bytes, path: tuple[str | int, ...], meaning: Any) -> None:
        """Remember a frame that carries this JSON, whose string stands at `path`."""
        around = self._around(frame, json, path)
        if around is not None:
            before, behind = around
            # The newest first: it is the one that the next frame is most likely like.
            self._known = [(before, behind, len(before), -len(behind), meaning), *self._known[: _KEPT - 1]]

    def _around(self, frame: bytes, json: bytes, path: tuple[str | int, ...]) -> tuple[bytes, bytes] | None:
        """What stands before and behind the string of a frame."""
        if not self._credit:
            return None
        # Learning costs a search and a second decoding, so a server that never repeats itself gets only so many.
        self._credit -= 1
        match = _name_pattern(path[-1]).search(json)
        string = _STRING.match(json, match.end()) if match else None
        if string is None:
            return None
        before, behind = json[: string.start() + 1], json[string.end() - 1 :]
        try:
            # The name may occur several times in the frame. That this string stands at `path` is shown by putting
            # another in its place and reading it back.
            probed = msgspec.json.decode(before + _PROBE.encode() + behind)
        except (msgspec.MsgspecError, UnicodeError):
            return None  # the decoder rejects what stands around the string
        if _at(probed, path) != _PROBE:
            return None  # it is another string of this name
        place = frame.find(json)
        if place < 0:
            return None
        return frame[:place] + before, behind + frame[place + len(json) :]


IdText = tuple[str, int | tuple[int, ...]]
_TAILS: dict[bytes, IdText] = {}
"""What the ends of frames say, from the string on, of those with one id: the same tokens come again and again, in every
reply. Of several tokens nothing is remembered: together they may be somebody's words."""
_MOST_TAILS = 16_384
_LONGEST_TAIL = 256
"""How many are remembered, and of how many bytes."""


def _read_tail(tail: bytes, rest: Callable[[bytes], re.Match[bytes] | None]) -> IdText | None:
    """The string and the ids of the end of a frame; None where it is not like the one that was learnt."""
    match = rest(tail)
    if match is None:
        return None
    string, id, more = match.groups()
    try:
        text = string.decode()
        if "\\" in text:
            text = _decode_string(b'"%b"' % string)
    except (UnicodeDecodeError, msgspec.MsgspecError):
        return None
    if not text:
        return None
    if more:
        return text, tuple(map(int, (id + more).split(b",")))
    found = text, int(id)
    if len(tail) <= _LONGEST_TAIL:
        if len(_TAILS) >= _MOST_TAILS:
            _TAILS.clear()
        _TAILS[tail] = found
    return found


class IdFrameTemplates(FrameTemplates):
    """The same for frames that may also have ids, a list of numbers behind the string."""

    __slots__ = ("_known_ids",)

    def __init__(self) -> None:
        super().__init__()
        self._known_ids: list[tuple[bytes, int, Callable[[bytes], re.Match[bytes] | None], Any]] = []

    def find(self, frame: bytes) -> tuple[Any, Any] | None:
        """As above; the string and its id, or ids, where the frame is like one that has such."""
        for before, start, rest, meaning in self._known_ids:
            if frame.startswith(before):
                tail = frame[start:]
                piece = _TAILS.get(tail) or _read_tail(tail, rest)
                if piece is not None:
                    self._credit = _CREDIT
                    return meaning, piece
        return super().find(frame)

    def learn_ids(
        self, frame: bytes, json: bytes, path: tuple[str | int, ...], list_path: tuple[str | int, ...], meaning: Any
    ) -> None:
        """Remember a frame whose string stands at `path`, and whose ids at `list_path`."""
        around = self._around(frame, json, path)
        if around is None:
            return
        before, rest = around
        match = _name_pattern(list_path[-1]).search(rest)
        numbers = _NUMBERS.match(rest, match.end()) if match else None
        if numbers is None:
            return
        middle, behind = rest[: numbers.start() + 1], rest[numbers.end() - 1 :]
        try:
            probed = msgspec.json.decode((before + middle + b"7" + behind)[frame.find(json) :].strip())
        except (msgspec.MsgspecError, UnicodeError):
            return
        if _at(probed, list_path) == [7]:
            # One search for all of it: several calls, each of a tenth of a microsecond, cost twice as much.
            rest_pattern = re.compile(
                _INSIDE + re.escape(middle) + rb"([0-9]{1,9})((?:,[0-9]{1,9})*)" + re.escape(behind) + rb"\Z"
            )
            self._known_ids = [(before, len(before), rest_pattern.match, meaning), *self._known_ids[: _KEPT - 1]]


@lru_cache(maxsize=64)
def _name_pattern(name: str | int) -> re.Pattern[bytes]:
    """What stands before the value of this name."""
    return re.compile(rb'"%b"\s*:\s*' % re.escape(str(name).encode()))


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    try:
        for step in path:
            value = value[step]
    except (KeyError, IndexError, TypeError):
        return None
    return value
