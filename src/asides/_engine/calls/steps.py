"""What readers made of steps share: the loop, rejecting, closing markers, and writing JSON. Knows no grammar.

A step reads one thing and returns where it stopped, or `wait(position)` when it must see more. What a step leaves
unread is short, so that reading again costs little; only whitespace between a call and what may still belong to it is
looked through, and no more than `LONGEST_SPACE` of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from ..literals import any_of, beginnings
from .reader import Sink, Status, Statuses

if TYPE_CHECKING:
    from .strings import StringBody

LONGEST_NAME = 1024
"""A key or a name is no longer than this, in characters."""
LONGEST_SPACE = 1024
"""Behind more whitespace than this, no closing marker and no further call is looked for."""

SPACE = re.compile(r"[ \t\n\r]*+")
"""Whitespace as grammars mean it."""
_UNENCODABLE = re.compile("[\ud800-\udfff]")

Step = Callable[[str, int, int, int, bool], int]


def wait(at: int) -> int:
    """What a step returns when it has read up to `at` and must see more."""
    return -1 - at


def skip(text: str, at: int, end: int) -> int:
    """Behind the whitespace at `at`."""
    match = SPACE.match(text, at, end)
    return match.end() if match else at


def skip_some(text: str, at: int, end: int) -> int:
    """Behind the whitespace at `at`, of which no more than `LONGEST_SPACE` is passed over."""
    return skip(text, at, min(end, at + LONGEST_SPACE))


def starts(text: str, at: int, end: int, word: str, final: bool) -> bool | None:
    """Whether `word` stands at `at`; None when the text ends inside it."""
    if text.startswith(word, at, end):
        return True
    return None if not final and ends_inside(text, at, end, word) else False


def ends_inside(text: str, at: int, end: int, word: str) -> bool:
    """Whether the text ends while `word` may still be coming. Looks at no more than the word's length."""
    return end - at < len(word) and word.startswith(text[at:end])


def marker_at(text: str, at: int, end: int, markers: tuple[str, ...], final: bool = False) -> str | None:
    """The marker at `at`; empty when there is none, None when the text ends inside one."""
    if text.startswith(markers, at, end):
        for marker in markers:  # pragma: no branch (one of them is there)
            if text.startswith(marker, at, end):
                return marker
    if not final:
        for marker in markers:
            if end - at < len(marker) and marker.startswith(text[at:end]):
                return None
    return ""


def find_marker(text: str, at: int, end: int, markers: tuple[str, ...], final: bool) -> tuple[int, bool]:
    """Where the first of the markers stands, and True; else up to where none can stand, and False."""
    if not markers:
        return end, False
    match = _pattern(markers).search(text, at, end)
    if match is not None:
        return match.start(), True
    return (end if final else beginnings(markers).find_unmet(text, at, end)), False


@lru_cache(maxsize=256)
def _pattern(markers: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(any_of(markers))


def escape(text: str) -> str:
    """Text as it stands inside a JSON string."""
    try:
        return msgspec.json.encode(text)[1:-1].decode()
    except UnicodeEncodeError:
        # Half of a pair: it has no UTF-8, but JSON can write it.
        pieces = _UNENCODABLE.split(text)
        halves = _UNENCODABLE.findall(text)
        written = [escape(pieces[0])]
        for half, piece in zip(halves, pieces[1:], strict=True):
            written += (f"\\u{ord(half):04x}", escape(piece))
        return "".join(written)


class StepReader:
    """Takes one step after another until one needs more."""

    def __init__(self, sink: Sink) -> None:
        self.status: Status = Statuses.READING
        self.code: str = "unreadable"
        self.reason: str = ""
        self._sink = sink
        self._step: Step = self._lead

    @property
    def string_ends(self) -> tuple[str, ...] | None:
        """Not known to be inside a string."""
        return None  # pragma: no cover - a reader that announces its call when it is whole is never asked

    @property
    def string_body(self) -> StringBody | None:
        """Not known either."""
        return None  # pragma: no cover - asked for only where `string_ends` are known

    @property
    def string_into(self) -> tuple[list[Any], int] | None:
        """Nothing waits."""
        return None

    @property
    def quoting(self) -> bool:
        """Nothing is quoted."""
        return False

    def read(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Consume what can be understood, at most to the end of one call: behind it `limit` counts anew."""
        calls = self._sink.calls
        while self.status is Statuses.READING and self._sink.calls == calls:
            stop = self._step(text, at, end, base, final)
            if stop < 0:
                if final:
                    self._let_go()
                return -1 - stop
            at = stop
        return at

    def _let_go(self) -> None:
        """The input has ended before the region: what is held is part of a call that was cut off."""

    def release(self) -> None:
        """Nothing more will be asked: let go of everything that is held."""
        self.__dict__.clear()  # the step among it, a method of its own

    def recover(self, marker: str) -> None:
        """A closing marker ends the region, whatever came before."""
        self.status = Statuses.DONE

    def _lead(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """The first step."""
        raise NotImplementedError

    def _done(self, at: int) -> int:
        self.status = Statuses.DONE
        return at

    def _reject(self, at: int, reason: str, code: str = "unreadable") -> int:
        self.status, self.code, self.reason = Statuses.REJECTED, code, reason
        return at

    def _unknown(self, name: str) -> bool:
        """Whether the caller's tools do not hold this name: a call without a marker must be to one of them."""
        tools = self._sink.tools
        return tools is not None and name not in tools.names
