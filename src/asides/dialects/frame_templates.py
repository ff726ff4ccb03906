"""Frames that are alike but for one string, as servers send them by the thousand: read without decoding them whole.

A frame that was decoded is remembered as the bytes before and behind its string. One that begins and ends with the same
bytes, and has a JSON string between them, says the same with another string. Knows no dialect.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

# An atomic group, so that a long string without its end is not tried again from every place. Not a possessive repeat:
# CPython before 3.11.5 reads that wrongly for groups.
_STRING = re.compile(rb'"(?>(?:[^"\\]|\\.)*)"')
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
        if not self._credit:
            return
        # Learning costs a search and a second decoding, so a server that never repeats itself gets only so many.
        self._credit -= 1
        match = _name_pattern(path[-1]).search(json)
        string = _STRING.match(json, match.end()) if match else None
        if string is None:
            return
        before, behind = json[: string.start() + 1], json[string.end() - 1 :]
        try:
            # The name may occur several times in the frame. That this string stands at `path` is shown by putting
            # another in its place and reading it back.
            probed = msgspec.json.decode(before + _PROBE.encode() + behind)
        except (msgspec.MsgspecError, UnicodeError):
            return  # the decoder rejects what stands around the string
        if _at(probed, path) != _PROBE:
            return  # it is another string of this name
        place = frame.find(json)
        if place < 0:
            return
        before, behind = frame[:place] + before, behind + frame[place + len(json) :]
        # The newest first: it is the one that the next frame is most likely like.
        self._known = [(before, behind, len(before), -len(behind), meaning), *self._known[: _KEPT - 1]]


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
