"""Finding the next marker, and telling what may still become one.

A format's states are compiled here into tables: for each state, the markers that can act in it and what each does.
The rule for what a marker does when the format does not list it in a state is here too, and nowhere else:
an opener inside thinking is nested, a closer with nothing open is a stray, other markers are plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache
from itertools import groupby

import msgspec

from .calls.syntax import CallSyntax
from .format import END, HEADER, OUTSIDE, TEXT, THINKING, CallsInThinking, Format, State

ATTRIBUTES = r"\s[^<>\r\n]{0,256}"
"""What may stand in an opener after its name, where the format allows attributes."""


NEVER = r"(?!)"
"""A pattern that matches nothing."""


class Action(Enum):
    """What a marker does in the state it is met in."""

    OPEN = "opens thinking"
    CLOSE = "closes thinking"
    NESTED = "opens thinking inside thinking"
    STRAY = "closes something that is not open"
    BOUNDARY = "stands between two texts"
    STOP = "ends the turn"
    CALL = "opens a call"
    HEADER = "opens a message header"
    LEAVE = "ends a message"
    BODY = "ends a message header"


class Marker(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A marker as one state sees it."""

    text: str
    action: Action
    target: State = TEXT
    closers: tuple[str, ...] = ()
    """The markers that close it, for telling a quoted pair."""
    syntaxes: tuple[CallSyntax, ...] = ()
    """The call syntaxes that it may open."""
    closes_thinking: bool = False
    leading: bool = False
    """Whether it acts only before any text."""

    @property
    def ends_dead_region(self) -> bool:
        """Whether it tells that a call's opener with no call behind it was none."""
        return self.action not in (Action.BOUNDARY, Action.STRAY, Action.NESTED) or self.closes_thinking


class Found(msgspec.Struct, frozen=True, gc=False):
    """A marker found in a buffer."""

    start: int
    stop: int
    marker: Marker


class Table:
    """The markers of one state, ready to be searched for."""

    def __init__(self, state: State, markers: Iterable[Marker], *, ignore_case: bool, attributes: bool) -> None:
        self.state = state
        self.ignore_case = ignore_case
        self.markers = {marker.text: marker for marker in markers}
        # Longest first, so that a marker is preferred to another that it begins with.
        ordered = sorted(self.markers.values(), key=lambda marker: (marker.text[0].lower(), -len(marker.text)))
        flags = re.IGNORECASE | re.ASCII if ignore_case else re.NOFLAG
        self.searches: list[tuple[re.Pattern[str], tuple[Marker, ...]]] = []
        wholes: list[str] = []
        partials: list[str] = []
        # One pattern for each first character, with that character in front: a search for one literal character runs
        # at memory speed, the search for one of several is ten times slower.
        for first, group in groupby(ordered, key=lambda marker: marker.text[0].lower()):
            members = tuple(group)
            rests = "|".join(f"({_source(marker, attributes)})" for marker in members)
            self.searches.append((re.compile(f"{re.escape(first)}(?:{rests})", flags), members))
            wholes.append(f"{re.escape(first)}(?:{rests})")
            partials += [_partial(marker, attributes) for marker in members]
        partial = f"(?:{'|'.join(partials)})\\Z" if partials else NEVER
        self.partial = re.compile(partial, flags)
        # In a text, fence characters matter where a line begins, or may begin: at the start of a chunk.
        fences = [r"(?:\A|\n) {0,3}[`~]"] if state == TEXT else []
        self.alarm = re.compile("|".join([*wholes, partial, *fences]), flags).search
        """Finds what the machine must look at: a marker, a possible beginning of one, a fence."""
        characters = {name[0] for name in self.markers} | ({"`", "~"} if fences else set())
        characters |= {character.swapcase() for character in characters} if ignore_case else set()
        self.glance = re.compile(f"[{re.escape(''.join(characters))}]" if characters else NEVER).search
        """Finds a character that any of those begin with: cheaper, and nearly always enough."""
        names = [marker.text for marker in ordered]
        self.extendable = {name for name in names if any(len(n) > len(name) and n.startswith(name) for n in names)}
        self.longest = max((len(name) for name in names), default=0) + (300 if attributes else 0)

    def begins(self, text: str, start: int, end: int) -> int:
        """Where a possible beginning of a marker stands at the end of `text[start:end]`, or `end`."""
        match = self.partial.search(text, max(start, end - self.longest), end)
        return match.start() if match else end


def _source(marker: Marker, attributes: bool) -> str:
    """A pattern for what follows the marker's first character."""
    text = marker.text[1:]
    if attributes and _takes_attributes(marker):
        return f"{re.escape(text[:-1])}(?:{ATTRIBUTES})?>"
    return re.escape(text)


def _partial(marker: Marker, attributes: bool) -> str:
    """A pattern for every proper beginning of the marker."""
    text = marker.text
    nested = ""
    for character in reversed(text[:-1]):
        nested = f"{re.escape(character)}(?:{nested})?" if nested else re.escape(character)
    if attributes and _takes_attributes(marker):
        return f"{nested}|{re.escape(text[:-1])}{ATTRIBUTES}"
    return nested or NEVER


def _takes_attributes(marker: Marker) -> bool:
    return marker.action in (Action.OPEN, Action.NESTED) and marker.text.startswith("<") and marker.text.endswith(">")


_FROM_TEXT = {
    THINKING: Action.OPEN,
    TEXT: Action.BOUNDARY,
    HEADER: Action.HEADER,
    OUTSIDE: Action.LEAVE,
    END: Action.STOP,
}
_FROM_THINKING = {
    TEXT: Action.CLOSE,
    OUTSIDE: Action.CLOSE,
    THINKING: Action.NESTED,
    HEADER: Action.HEADER,
    END: Action.STOP,
}
_FROM_HEADER = {
    THINKING: Action.BODY,
    TEXT: Action.BODY,
    HEADER: Action.HEADER,
    OUTSIDE: Action.LEAVE,
    END: Action.STOP,
}


class Tables(msgspec.Struct, frozen=True, eq=False):
    """The tables of one format."""

    text: Table
    thinking: Table
    header: Table
    stops: Table
    """Only what may follow the calls of a turn that is over: stop markers, openers and closers of calls."""
    bare: tuple[CallSyntax, ...]
    """Call syntaxes without an opening marker."""
    _closers: dict[int, Table]

    def closers_of(self, syntax: CallSyntax) -> Table:
        """The closing markers of one call syntax."""
        table = self._closers.get(id(syntax))
        if table is None:
            markers = [Marker(text=text, action=Action.STRAY) for text in syntax.closers]
            table = Table(END, markers, ignore_case=False, attributes=False)
            self._closers[id(syntax)] = table
        return table


@lru_cache(maxsize=1024)
def compile_tables(format: Format, calls_in_thinking: CallsInThinking, calls: bool) -> Tables:
    """The tables of a format. Cached: formats are values."""
    in_text = dict(format.states.get(TEXT, {}))
    in_thinking = dict(format.states.get(THINKING, {}))
    in_header = dict(format.states.get(HEADER, {}))
    closers = tuple(text for text, target in in_thinking.items() if target in (TEXT, OUTSIDE))
    call_markers = _call_markers(format) if calls else {}
    call_closers = {text for syntax in format.calls for text in syntax.closers} if calls else set()

    text: dict[str, Marker] = {}
    for name, target in in_text.items():
        action = _FROM_TEXT[target]
        closed_by = closers if action is Action.OPEN else ()
        text[name] = Marker(
            text=name, action=action, target=target, closers=closed_by, leading=name in format.leading
        )
    thinking: dict[str, Marker] = {}
    for name, target in in_thinking.items():
        thinking[name] = Marker(text=name, action=_FROM_THINKING[target], target=target)
    for name, marker in text.items():
        if marker.action is Action.OPEN and name not in thinking:
            thinking[name] = Marker(text=name, action=Action.NESTED, closers=closers, leading=marker.leading)
    header: dict[str, Marker] = {}
    for name, target in (in_text | in_header).items():
        header[name] = Marker(text=name, action=_FROM_HEADER[target], target=target)
    if format.header and format.header.body:
        header[format.header.body] = Marker(text=format.header.body, action=Action.BODY, target=HEADER)

    text.update(call_markers)
    header.update(call_markers)
    if calls_in_thinking != "never":
        thinking.update(call_markers)
    for name in [*closers, *in_header, *call_closers]:
        if name not in text:
            text[name] = Marker(text=name, action=Action.STRAY, closes_thinking=name in closers)

    stops = [marker for marker in text.values() if marker.action in (Action.STOP, Action.CALL)]
    stops += [Marker(text=name, action=Action.STRAY) for name in call_closers]
    options = {"ignore_case": format.ignore_case, "attributes": format.attributes}
    return Tables(
        Table(TEXT, text.values(), **options),
        Table(THINKING, thinking.values(), **options),
        Table(HEADER, header.values(), **options),
        Table(END, stops, **options),
        tuple(syntax for syntax in format.calls if syntax.bare) if calls else (),
        {},
    )


def _call_markers(format: Format) -> dict[str, Marker]:
    """Every call opener, with all the syntaxes that it may open, in the format's order."""
    by_opener: dict[str, list[CallSyntax]] = {}
    for syntax in format.calls:
        for opener in syntax.openers:
            by_opener.setdefault(opener, []).append(syntax)
    return {
        opener: Marker(
            text=opener,
            action=Action.CALL,
            syntaxes=tuple(syntaxes),
            closers=tuple(dict.fromkeys(text for syntax in syntaxes for text in syntax.closers)),
        )
        for opener, syntaxes in by_opener.items()
    }
