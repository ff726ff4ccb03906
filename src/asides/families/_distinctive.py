"""What `auto` takes from the cards: every marker that tells something, and nothing that a card calls plain.

`gather` works it out for any families. For those of this package that is done once, by `python -m tools.families
--write`, which puts the result into `_auto_markers.py`: importing every card would cost the filter's start ten times as
much as reading that file. For families that a user registers it is done when `auto` is next asked for.

A format takes part in one of two ways. A decisive one brings all its markers, and the first of them settles everything.
Of the others the pairs of markers around thinking, the stops, the wrappers and the call syntaxes take part one by one,
because tunes of one family write the thoughts or calls of another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from .._engine.calls.syntax import CallSyntax
from .._engine.format import END, HEADER, OUTSIDE, TEXT, THINKING, Format, Header, State, States
from .._engine.tag_markers import TagRule
from ._family import Family
from ._shared import SIBLINGS

Pair = tuple[str, str]
_TOKEN = re.compile(r"<\S+>")


class Distinctive(msgspec.Struct, frozen=True, kw_only=True):
    """The markers and call syntaxes that take part in `auto`."""

    pairs: tuple[Pair, ...] = ()
    """What stands around thinking, of families that no other marker tells."""
    weak: tuple[Pair, ...] = ()
    """Pairs that count only where output begins."""
    tags: Mapping[str, TagRule] = {}
    """Which of these are tags with other spellings."""
    stops: tuple[str, ...] = ()
    """What ends a turn, of any family."""
    last_stops: tuple[str, ...] = ()
    """Stops of any family that act only as the last thing of an output: they are plain, or end a message elsewhere."""
    goes_on: frozenset[str] = frozenset()
    """Those of them that end no turn, in any family."""
    other_turns: Mapping[str, tuple[str, ...]] = {}
    """For each of them, what its families write before a message of another turn."""
    wrappers: tuple[str, ...] = ()
    """What stands around answers and means nothing."""
    strays: tuple[str, ...] = ()
    """Tokens with no business in a text."""
    assistant: tuple[str, ...] = ()
    """What opens a turn in prompts."""
    syntaxes: tuple[CallSyntax, ...] = ()
    """Every call syntax with openers of its own. Where several share one, the body's first characters decide."""
    states: States = {}
    """The markers of the decisive formats."""
    partial: frozenset[str] = frozenset()
    """Those of them that lack a part which the server or the model has left out."""
    decisive: Mapping[str, str] = {}
    """For each marker that settles the whole format, its name."""
    header: Header | None = None
    """How headers are read while it is not settled whose they are: that of the first, with the recipients of all."""
    messages: tuple[str, ...] = ()
    """The decisive formats whose messages have headers and bodies. They share markers; a channel tells them apart."""


def gather(families: Sequence[Family], known: Distinctive | None = None) -> Distinctive:
    """What these families bring, added to what is known already. A marker that is known stays what it is."""
    known = known or Distinctive()
    taken = _acting(known)
    families = [family for family in families if all(format.settle is None for format in family.formats)]
    formats = [(family, format) for family in families for format in family.formats]
    decisive = sorted(
        ((family, family.decisive) for family in families if family.decisive is not None),
        key=lambda item: not _has_body(item[1]),  # where two have a marker, the one with a header says more of it
    )
    states = merge_states(known.states, *(_distinctive_states(*item) for item in decisive))
    taken_states = taken.union(*states.values())
    pairs = [(family, pair) for family, format in formats for pair in _pairs(format) if taken_states.isdisjoint(pair)]
    messages = [format for _, format in decisive if _has_body(format)]
    return Distinctive(
        pairs=_joined(known.pairs, (pair for family, pair in pairs if family.plain.keys().isdisjoint(pair))),
        weak=_joined(known.weak, (pair for family, pair in pairs if _is_weak(family, pair))),
        tags={**{marker: rule for family in families for marker, rule in family.tags.items()}, **known.tags},
        stops=_joined(known.stops, _markers(formats, END) - taken),
        last_stops=_joined(known.last_stops, _last_stops(formats, known.stops)),
        goes_on=known.goes_on.union(*(format.goes_on for _, format in formats)) - _turn_ends(formats),
        other_turns=_other_turns(formats, known.other_turns),
        wrappers=_joined(known.wrappers, _markers(formats, TEXT) - taken),
        strays=_joined(known.strays, _not_plain((family, format.strays) for family, format in formats) - taken),
        assistant=_joined(known.assistant, _not_plain((family, format.assistant) for family, format in formats)),
        syntaxes=_syntaxes(
            formats, known.syntaxes, taken - {opener for each in known.syntaxes for opener in each.openers}
        ),
        states=states,
        partial=known.partial.union(*(format.partial - family.plain.keys() for family, format in decisive)),
        decisive={**_settled_by(decisive), **known.decisive},
        header=_header(
            [known.header, *(format.header for format in messages)], [format.header for _, format in decisive]
        ),
        messages=known.messages + tuple(format.name for format in messages),
    )


def _acting(known: Distinctive) -> set[str]:
    """Every marker that acts in an output."""
    found = {marker for pair in known.pairs + known.weak for marker in pair}
    found.update(known.stops, known.wrappers, known.strays, *known.states.values())
    return found.union(*(syntax.openers + syntax.closers for syntax in known.syntaxes))


def merge_states(*several: States) -> dict[State, dict[str, State]]:
    """The markers of several formats together; the first to have one says where it leads."""
    merged: dict[State, dict[str, State]] = {TEXT: {}, THINKING: {}, HEADER: {}}
    for states in several:
        for state, markers in states.items():
            for marker, target in markers.items():
                merged[state].setdefault(marker, target)
    return merged


def _distinctive_states(family: Family, format: Format) -> States:
    return {
        state: {marker: target for marker, target in markers.items() if marker not in family.plain}
        for state, markers in format.states.items()
    }


def _has_body(format: Format) -> bool:
    return format.header is not None and bool(format.header.body)


def _joined(known: tuple[Any, ...], more: Iterable[Any]) -> tuple[Any, ...]:
    return (*known, *sorted(set(more) - set(known)))


def _pairs(format: Format) -> list[Pair]:
    """The pairs of markers around thinking, where each opener has its closer."""
    text, thinking = format.states.get(TEXT, {}), format.states.get(THINKING, {})
    opens = [marker for marker, target in text.items() if target == THINKING]
    closes = [marker for marker, target in thinking.items() if target == TEXT and marker not in text]
    return list(zip(opens, closes, strict=True)) if format.header is None and len(opens) == len(closes) else []


def _is_weak(family: Family, pair: Pair) -> bool:
    rule = family.tags.get(pair[0])
    return rule is not None and rule.weak


def _markers(formats: list[tuple[Family, Format]], target: State) -> set[str]:
    """The markers that lead from a text to this state."""
    return _not_plain(
        (family, [marker for marker, to in format.states.get(TEXT, {}).items() if to == target])
        for family, format in formats
    )


def _stops(format: Format) -> list[str]:
    return [marker for marker, target in format.states.get(TEXT, {}).items() if target == END]


def _last_stops(formats: list[tuple[Family, Format]], known: tuple[str, ...]) -> set[str]:
    """The stops that do not act everywhere: those that are plain. Tokens alone, no words such as `User:`."""
    plain = {stop for family, format in formats for stop in _stops(format) if stop in family.plain}
    return {stop for stop in plain - set(known) if _TOKEN.fullmatch(stop)}


def _turn_ends(formats: list[tuple[Family, Format]]) -> set[str]:
    """The markers that end a turn in one of the formats."""
    return {stop for _, format in formats for stop in _stops(format) if stop not in format.goes_on}


def _other_turns(
    formats: list[tuple[Family, Format]], known: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """For each stop marker, the headers of other turns in the formats that have it."""
    found = dict(known)
    for family, format in formats:
        for stop in _stops(format):
            if stop not in family.plain and format.other_turns:
                found[stop] = _joined(found.get(stop, ()), format.other_turns)
    return {stop: found[stop] for stop in sorted(found)}


def _not_plain(found: Iterable[tuple[Family, Iterable[str]]]) -> set[str]:
    return {marker for family, markers in found for marker in markers if marker not in family.plain}


def _syntaxes(
    formats: list[tuple[Family, Format]], known: tuple[CallSyntax, ...], taken: set[str]
) -> tuple[CallSyntax, ...]:
    """The families' own syntaxes as far as their openers are distinctive, those behind the shared opener first."""
    found: dict[CallSyntax, None] = dict.fromkeys(known)
    for family, format in formats:
        for syntax in format.calls:
            own = None if syntax.sibling or syntax in family.plain_calls else _distinctive_syntax(syntax, family)
            if own is None or own in found or not taken.isdisjoint(own.openers):
                continue
            twin = next((other for other in found if _differ_in_section(own, other)), None)
            if twin is None:
                found[own] = None
            else:  # an opener without its section does not tell which of the two it is
                del found[twin]
                sections = {name: getattr(twin, name) + getattr(own, name) for name in ("section", "section_close")}
                found[replace(own, **sections)] = None
    shared = [syntax for syntax in SIBLINGS if syntax in found]
    return (*shared, *(syntax for syntax in found if syntax not in shared))


def _distinctive_syntax(syntax: CallSyntax, family: Family) -> CallSyntax | None:
    """A syntax without what is plain in it: bare calls, and openers with what closes them."""
    opens = tuple(marker for marker in syntax.open if marker not in family.plain)
    own = replace(syntax, open=opens, close=syntax.close if opens else (), bare=False)
    return own if own.openers else None


def _differ_in_section(one: CallSyntax, other: CallSyntax) -> bool:
    if not one.open or one.open != other.open or type(one) is not type(other):
        return False
    return replace(one, section=(), section_close=()) == replace(other, section=(), section_close=())


def _settled_by(decisive: list[tuple[Family, Format]]) -> dict[str, str]:
    """For each marker that nobody else writes, the format that it settles."""
    found: dict[str, str] = {}
    for family, format in decisive:
        if format.header is not None and format.header.body:
            if format.header.channel_marker:
                found[format.header.channel_marker] = format.name
            continue
        for markers in _distinctive_states(family, format).values():
            for marker, target in markers.items():
                if target not in (END, OUTSIDE):
                    found.setdefault(marker, format.name)
    return found


def _header(headers: list[Header | None], every: list[Header | None]) -> Header | None:
    """The first header with the recipients of all, and what says of any header that its message is for a tool."""
    found = [header for header in headers if header is not None]
    recipients = {name: state for header in found for name, state in header.recipients.items()}
    tools = {marker: syntax for header in (*headers, *every) if header for marker, syntax in header.tools.items()}
    return replace(found[0], recipients=recipients, tools=tools) if found else None
