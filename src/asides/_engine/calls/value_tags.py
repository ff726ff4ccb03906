"""The tags that a value may quote: finding them, and what they say about where the value and its call end.

A value may be code or a document that holds the very tags of the call around it. `ValueTags` finds them and reads each
whole; a syntax says how its own are spelled. `TaggedValue` counts them as they come. `PlainReading` is for a call
whose count did not come out: it knows the call up to its end, and says once for all which tags may end a value there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

import msgspec

from ..literals import Beginnings, any_of
from .steps import LONGEST_SPACE, marker_at, skip_some
from .strings import EncodedBody

MARKERS = 3
"""How many markers are looked at behind a call: two that close what it stands in, and what follows them."""
_PLAIN_NAME = re.compile(r"[\w.\-]+")
_OPENING = frozenset("\"'`([{“‘«„‚「『《〈【‹（［｛")
_CLOSING = frozenset("\"'`)]}”’»“」』》〉】›）］｝")
_LOOSE = frozenset("|*_/=~#-–—→,;:、，")
"""Behind one of these, as behind whitespace, a tag is not joined to a word."""
_PUNCTUATION = frozenset("|*_~,.;:!?、，。")


class Piece(Enum):
    """What a tag in a value is."""

    OPEN = "opens an argument"
    CLOSE = "closes an argument"
    CALL = "opens a call"
    END = "closes a call"
    OTHER = "stands around calls"


class WholeTag(NamedTuple):
    """A tag as it was read."""

    stop: int
    """Where it ends; -1 when what stands there is no such tag."""
    name: str = ""


NO_TAG = WholeTag(-1)
ReadWhole = Callable[[str, int, int], WholeTag | None]
"""Reads the tag that begins at a place; None when more must be seen. Looks at a bounded stretch."""


class Spelling(msgspec.Struct, frozen=True):
    """What each tag begins with. Where one string begins several, the longest counts."""

    search: re.Pattern[str]
    pieces: Mapping[str, Piece]
    unfinished: Beginnings
    """What may still become one."""
    longest: int
    beginnings: tuple[str, ...]
    """The first two characters of each."""


@lru_cache(maxsize=256)
def spelling(pieces: tuple[tuple[str, Piece], ...]) -> Spelling:
    """Ready to be searched for. What comes first in `pieces` wins where one string is two things."""
    known: dict[str, Piece] = {}
    for literal, piece in pieces:
        if literal:
            known.setdefault(literal, piece)
    beginnings = tuple(sorted({literal[:2] for literal in known}))
    return Spelling(re.compile(any_of(known)), known, Beginnings(tuple(known)), max(map(len, known)), beginnings)


class CallMarkers(NamedTuple):
    """The markers around the call that is being read."""

    closers: tuple[str, ...]
    """What ends the regions around it."""
    last: tuple[str, ...]
    """Those of them without which a call at the end of input is not over; none where `close` is all there is."""
    openers: tuple[str, ...]
    """What begins another call, in this region or a new one."""
    stops: tuple[str, ...]
    """What ends the turn."""


class ValueTags:
    """The tags of one region."""

    __slots__ = ("_all", "_markers", "_prefixes", "_read", "anywhere", "begins", "body", "search", "spelling")

    def __init__(
        self,
        spelling: Spelling,
        read: Mapping[Piece, ReadWhole],
        markers: CallMarkers,
        anywhere: bool,
    ) -> None:
        self.spelling: Spelling = spelling
        self.search: Callable[..., re.Match[str] | None] = spelling.search.search
        """Finds where a tag begins."""
        self._read = read
        self._markers = markers
        self._all = tuple(dict.fromkeys((*markers.stops, *markers.closers, *markers.openers)))
        self.anywhere: bool = anywhere
        """Whether an argument's tag counts in the middle of a line too."""
        self.begins: Callable[[str, int, int], int] = spelling.unfinished.find_unmet
        """Where a possible beginning of a tag stands at the end of `text[at:end]`, or `end`."""
        self._prefixes = spelling.unfinished.prefixes
        self.body: EncodedBody = EncodedBody(self.search, self.begins, spelling.pieces, framed=True)
        """What may be passed on of a value without looking at it tag by tag."""

    def read(self, text: str, place: int, found: str, end: int) -> tuple[Piece, WholeTag] | None:
        """The tag at `place`, which begins with `found`; None when more must be seen."""
        if end - place < self.spelling.longest and text[place:end] in self._prefixes:
            return None  # it may become a longer one
        piece = self.spelling.pieces[found]
        reader = self._read.get(piece)
        if reader is None:
            return piece, WholeTag(place + len(found))
        tag = reader(text, place, end)
        return None if tag is None else (piece, tag)

    def closes(self, text: str, place: int, found: str, end: int) -> bool:
        """Whether what is cut off at `place` may become a closing tag."""
        return text[place:end] in self._prefixes or self.spelling.pieces[found] in (Piece.CLOSE, Piece.END)

    def opens(self, text: str, place: int, end: int) -> bool:
        """Whether a whole tag that begins an argument stands at `place`."""
        match = self.spelling.search.match(text, place, end)
        read = self.read(text, place, match.group(), end) if match else None
        return read is not None and read[0] is Piece.OPEN and read[1].stop >= 0

    def ends_call(self, text: str, at: int, end: int, final: bool, quoted: bool) -> bool | None:
        """Whether the call ends with the closing tag that ends at `at`; None when more must be seen.

        It does where another call or the end of the turn follows, perhaps behind closing markers, or where those are
        all there and then the input ends. Inside a quoted call, only where the turn ends.
        """
        markers = self._markers
        closed = not markers.last
        for _ in range(MARKERS):
            place = skip_some(text, at, end)
            if place >= at + LONGEST_SPACE:
                return False
            if place == end:
                return closed and not quoted if final else None
            found = marker_at(text, place, end, self._all)
            if found is None:
                return False if final else None
            if not found or found in markers.stops:
                return bool(found)
            if found not in markers.closers:
                return not quoted
            closed = closed or found in markers.last
            at = place + len(found)
        return False

    def may_begin(self, name: str, before: str, after: str) -> bool:
        """Whether an argument's tag with this name, between these characters, could be one that the model gave."""
        if not (self.anywhere or before in LINE_START) and _is_talked_about(before, after):
            return False
        return _PLAIN_NAME.fullmatch(name) is not None


def _is_talked_about(before: str, after: str) -> bool:
    """Whether a tag between these characters is one that a sentence or code speaks of: quoted, or a word by itself."""
    if before in _OPENING or after in _CLOSING:
        return True
    return (before.isspace() or before in _LOOSE) and (after.isspace() or after in _PUNCTUATION)


MARK = ""
"""What stands before a tag that directly follows another."""
LINE_START = ("\n", MARK)


class Place(NamedTuple):
    """A tag that may end a value."""

    start: int
    stop: int
    name: str | None
    """The name of an argument that begins here; None for a closing tag."""


class PlainReading:
    """What is known of a call, from where its count did not come out to its end."""

    __slots__ = ("_next", "places", "text")

    def __init__(self, tags: ValueTags, text: str, before: str, quoted: bool) -> None:
        self.text = text
        self.places = [] if not text else _places(tags, text, before, quoted)
        """Every tag that may end a value, in order. Of several that begin an argument of one name, only the last."""
        self._next = 0

    def places_from(self, at: int) -> Iterator[Place]:
        """The places from `at` on; those before it are never asked for again."""
        while self._next < len(self.places) and self.places[self._next].start < at:
            self._next += 1
        for number in range(self._next, len(self.places)):
            yield self.places[number]


def _places(tags: ValueTags, text: str, before: str, quoted: bool) -> list[Place]:
    found: list[Place] = []
    last: dict[str, int] = {}
    open_calls: list[int] = []
    at, end = 0, len(text)
    while match := tags.search(text, at):
        place = match.start()
        before = text[place - 1] if place > at else before
        at = match.end()
        read = tags.read(text, place, match.group(), end)
        if read is None or read[1].stop < 0:
            before = text[at - 1]
            continue
        piece, tag = read
        after = text[tag.stop : tag.stop + 1]
        if piece is Piece.OPEN and not quoted and not open_calls and tags.may_begin(tag.name, before, after):
            last[tag.name] = len(found)
            found.append(Place(place, tag.stop, tag.name))
        elif piece is Piece.CLOSE:
            found.append(Place(place, tag.stop, None))
        elif piece is Piece.CALL:
            open_calls.append(len(found))
        elif piece is Piece.END and open_calls:
            # A quoted call that closes is skipped, whatever is in it.
            del found[open_calls.pop() :]
        at, before = tag.stop, MARK
    return [place for number, place in enumerate(found) if place.name is None or last[place.name] == number]
