"""Finding the next marker, and telling what may still become one.

A format's states are compiled here into tables: for each state, the markers that can act in it and what each does.
The rule for what a marker does when the format does not list it in a state is here too, and nowhere else:
an opener inside thinking is nested, a closer with nothing open is a stray, other markers are plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cached_property, lru_cache, partial
from itertools import groupby, product

import msgspec

from ..events import NoticeCode
from ..policies import CallsInThinking
from .calls.syntax import CallSyntax
from .foreign import LONGEST_TOKEN, TOKEN, TOKEN_BEGINNING, strings
from .foreign_tags import TAGS
from .format import END, HEADER, OUTSIDE, TEXT, THINKING, TO, Format, State
from .literals import GLANCE, Beginnings, any_of, beginning_of, one_of
from .members import members
from .suffixes import BEGUN_SUFFIX, SUFFIX, split_suffix, split_tag, with_suffix
from .tag_markers import LONGEST_TAG, TagRule, at_a_glance, closing_tags, is_tag, tag_beginning, tag_source

ATTRIBUTES = r"\s[^<>\r\n]{0,256}"
"""What may stand in an opener after its name, where the format allows attributes."""
DETAILS = r"\s[^<>\r\n]{0,256}"
"""What may stand in an ignored marker after its name."""


class Action(Enum):
    """What a marker does in the state it is met in."""

    OPEN = "opens thinking"
    CLOSE = "closes thinking"
    NESTED = "opens thinking inside thinking"
    STRAY = "closes something that is not open"
    BOUNDARY = "stands between two texts"
    IGNORED = "means nothing"
    FOREIGN = "is another family's"
    STOP = "ends the turn"
    CALL = "opens a call"
    BARE = "may begin a call that has no opening marker"
    HEADER = "opens a message header"
    LEAVE = "ends a message"
    BODY = "ends a message header"


Actions = members(Action)
_HARMLESS = (Action.BARE, Action.BOUNDARY, Action.FOREIGN, Action.IGNORED, Action.STRAY, Action.NESTED)


class Marker(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A marker as one state sees it."""

    text: str
    action: Action
    target: State = TEXT
    closers: tuple[str | re.Pattern[str], ...] = ()
    """What closes it, for telling a quoted pair; a pattern where that has several spellings."""
    syntaxes: tuple[CallSyntax, ...] = ()
    """The call syntaxes that it may open."""
    closes_thinking: bool = False
    leading: bool = False
    """Whether it acts only before any text."""
    weak: bool = False
    """Whether it acts only as the first thing of the output (see `TagRule`)."""
    joined: bool = False
    """Whether it is words that act only where they are joined to what stands before (see `bare_headers.py`)."""
    notice: NoticeCode | None = None
    """What is said of it when it acts, where it is odd in itself."""
    at_line: bool = False
    """Whether it acts only where a line begins."""
    last: bool = False
    """Whether it acts only as the last thing of the output."""
    unfinished: bool = False
    """Whether it is only the beginning of a tag, so that a quote may stand behind the rest of it."""

    certain: bool = False
    """Whether it is a token of its own (see `tokens.py`), which nobody writes when talking about it."""

    place_matters: bool = False
    """Whether it is plain words in some places, or a notice says where it stands; told by the fields above."""

    def __post_init__(self) -> None:
        told = self.action in (Action.FOREIGN, Action.NESTED)
        matters = told or self.leading or self.weak or self.joined or self.at_line
        msgspec.structs.force_setattr(self, "place_matters", matters)
        if any("\ud800" <= character <= "\udbff" for character in self.text):
            msgspec.structs.force_setattr(self, "certain", True)

    @property
    def ends_dead_region(self) -> bool:
        """Whether it tells that a call's opener with no call behind it was none."""
        ends = self.action not in _HARMLESS or self.closes_thinking
        return ends and not self.at_line


_NO_RULES: Mapping[str, TagRule] = {}
FOREIGN = Marker(text="", action=Action.FOREIGN)
"""A special token that is none of the format's own markers, whatever its text."""


class Found(msgspec.Struct, frozen=True, gc=False):
    """A marker found in a buffer."""

    start: int
    stop: int
    marker: Marker


class Table:
    """The markers of one state, ready to be searched for."""

    def __init__(
        self,
        state: State,
        markers: Iterable[Marker],
        *,
        ignore_case: bool = False,
        attributes: bool = False,
        tag_rules: Mapping[str, TagRule] = _NO_RULES,
        foreign: bool = False,
        suffixed: Callable[[str], Format] | None = None,
    ) -> None:
        self.state = state
        self.after_words = self
        """What can still act behind words: the table without the markers that act only before any."""
        self._foreign = FOREIGN if foreign else None
        self.markers = {marker.text: marker for marker in markers}
        self._ignore_case = ignore_case
        self._suffixed = suffixed
        # Longest first, so that a marker is preferred to another that it begins with.
        fold = str.lower if ignore_case else str
        self.by_text = {fold(name): marker for name, marker in self.markers.items()}
        """The markers by their text, in lower case where case does not matter."""
        self._names = sorted(self.by_text, key=lambda name: (name[0], -len(name)))
        # How markers may be written otherwise than their text: with something behind the name, with a suffix that is
        # not known yet, as tags (see `tag_markers.py`).
        self._taking = {name: met for name, marker in self.by_text.items() if (met := _after_name(marker, attributes))}
        self._open_ended = [
            name for name in self._names if suffixed is not None and is_tag(name) and not split_suffix(name)[1]
        ]
        self._tags = {name: tag_rules[name] for name in self._names if name in tag_rules and is_tag(name)}
        self.has_spellings = ignore_case or bool(self._taking or self._tags or self._open_ended)
        """Whether a marker may be written otherwise than its text."""
        self._varied = self.has_spellings or foreign
        self._compile_searches()
        self._compile_beginnings()
        self._compile_glances()

    def _compile_searches(self) -> None:
        """How markers are found: one pattern for each first character, with that character in front. A search for one
        literal character runs at memory speed, the search for one of several is ten times slower."""
        names, flags = self._names, re.IGNORECASE | re.ASCII if self._ignore_case else re.NOFLAG
        self.searches: list[re.Pattern[str]] = []
        self._match_at: dict[str, Callable[[str, int], re.Match[str] | None]] = {}
        shared_searches = []
        for first, group in groupby(names, key=lambda name: name[0]):
            same = list(group)
            pattern = re.compile(re.escape(first) + "(?:" + "|".join(self._sources(first, same)) + ")", flags)
            self.searches.append(pattern)
            firsts = (first, first.swapcase()) if self._ignore_case else first
            self._match_at |= dict.fromkeys(firsts, pattern.match)
            shared_searches.append((_shared_beginning(same, self._ignore_case), pattern.search))
        self.shared: str = shared_searches[0][0] if names else ""
        """What every marker of the first pattern begins with. It is empty where case is ignored."""
        self.later_searches = shared_searches[1:]
        """For each pattern behind the first, what all of its markers begin with and its search: looking for the former
        is far cheaper than a search that finds nothing."""

    def _sources(self, first: str, names: list[str]) -> list[str]:
        """Patterns for what follows the first character of these markers, which they share."""
        plain, sources = [], []
        for name in names:
            if name in self._open_ended:
                head, tail = split_tag(name)
                sources.append(f"{re.escape(head[1:])}(?:{SUFFIX})?{re.escape(tail)}")
            elif name in self._taking:
                sources.append(f"{re.escape(name[1:-1])}(?:{self._taking[name]})?>")
            elif name not in self._tags:
                plain.append(name[1:])
        if plain:
            sources.append(any_of(plain))
        if self._ignore_case:
            sources = [at_a_glance(names) + "(?:" + "|".join(sources) + ")"]
        if first == "<":
            sources += [tag_source(self._tags)] if self._tags else []
            sources += [TOKEN] if self._foreign is not None else []
        return sources

    def _compile_beginnings(self) -> None:
        """What may still become a marker."""
        names, taking, tags, foreign = self._names, self._taking, self._tags, self._foreign is not None
        flags = re.IGNORECASE | re.ASCII if self._ignore_case else re.NOFLAG
        heads = [(re.escape(head), re.escape(tail[:-1])) for head, tail in map(split_tag, self._open_ended)]
        unfinished = [re.escape(name[:-1]) + found for name, found in sorted(taking.items())]
        unfinished += [f"{head}{BEGUN_SUFFIX}(?:{tail})?" for head, tail in heads]
        self._attributed = re.compile("|".join(unfinished), flags) if unfinished else None
        self._tag_heads = {name[:length] for name in tags for length in range(2, len(name))}
        # What follows the first character of markers that have several spellings.
        seconds = {name[1] for name in (*tags, *taking, *self._open_ended)} | set("/|｜" if foreign else "")
        self.longest = max(map(len, names), default=0)
        self.longest += 300 if taking else LONGEST_TAG if tags or self._open_ended else 0
        if foreign:
            self.longest = max(self.longest, LONGEST_TOKEN)
        self._beginnings = Beginnings(
            names,
            ignore_case=self._ignore_case,
            reach=self.longest,
            seconds=frozenset(seconds | {character.upper() for character in seconds}),
            may_become=self._may_become,
        )
        self.begins = self._beginnings.find
        """Where a possible beginning of a marker stands at the end of `text[start:end]`, or `end`."""
        self.extendable = {self.by_text[name].text for name in self._beginnings.prefixes & self.by_text.keys()}
        """The markers that others begin with."""
        if foreign:
            self.extendable.add(FOREIGN.text)

    def _compile_glances(self) -> None:
        """What tells that a chunk holds no marker, at little cost."""
        names = self._names
        self.firsts = self._beginnings.firsts
        """The characters that markers begin with."""
        self.beginnings = tuple(sorted({name[:2] for name in names}))
        """The first two characters of each marker."""
        self.glance = re.compile(one_of(self.firsts)).search
        """Finds a character that a marker begins with: cheap, and nearly always enough."""
        self.few = _few(sorted(self.firsts))
        """The same characters, where they are at most four: `in` is cheaper than a search."""
        varied = {name: name[:-1] for name in (*self._taking, *self._tags)}
        varied |= {name: split_tag(name)[0] for name in self._open_ended}
        ignore = self._ignore_case
        glanced = {
            spelled
            for name in names
            for spelled in _spelled(varied.get(name, name)[:GLANCE], ignore, ignore or name in self._tags)
        }
        glanced |= {"<|", "<｜", "</｜"} if self._foreign is not None else set()
        self.suspect = re.compile(beginning_of(glanced)).search
        """Finds the first characters of a marker, or the beginning of these at the end: what it does not find anything
        in holds no marker and nothing that may become one."""

    @cached_property
    def ordinary(self) -> dict[str, Marker]:
        """The markers that are decided by their text alone where no quote or fence is near: nothing in what stands
        before or behind makes them another, and nothing is said of them."""
        return {
            text: marker
            for text, marker in self.markers.items()
            if not (marker.leading or marker.weak or marker.joined or marker.notice or marker.last)
            and text not in self.extendable
            and not (self.has_spellings and text[0] != "<")
        }

    def marker(self, text: str) -> Marker:
        """The marker that a search has found as `text`."""
        if self._ignore_case:
            text = text.lower()
        found = self.by_text.get(text)
        if found is None and self._suffixed is not None:
            found = self._with_suffix(text, self._suffixed)
        if found is None:
            name = text[:-1].split(None, 1)[0] + ">"
            folded = name.lower()
            found = self.by_text.get(folded if folded in self._tags else name) or self._foreign
            assert found is not None
        return found

    def _with_suffix(self, text: str, suffixed: Callable[[str], Format]) -> Marker | None:
        """The marker with a suffix that was found as `text`."""
        plain, suffix = split_suffix(text)
        marker = self.by_text.get(plain)
        if marker is None or not suffix:
            return None
        calls = suffixed(suffix).calls if marker.syntaxes else ()
        return msgspec.structs.replace(
            marker,
            text=text,
            closers=tuple(with_suffix(each, suffix) for each in marker.closers if isinstance(each, str)),
            syntaxes=tuple(syntax for syntax in calls if text in syntax.openers),
        )

    def marker_at(self, text: str, place: int, end: int) -> Marker | None:
        """The marker that stands at `place`."""
        for pattern in self.searches:
            match = pattern.match(text, place)
            if match is not None:
                return self.marker(match.group()) if match.end() <= end else None
        return None

    def place_at(self, text: str, place: int, end: int) -> int | None:
        """The index behind the marker that stands at `place`; None where none does."""
        match_at = self._match_at.get(text[place : place + 1])
        match = match_at(text, place) if match_at is not None else None
        return match.end() if match is not None and match.end() <= end else None

    def _may_become(self, text: str) -> bool:
        """Whether a text may become a marker in one of its spellings."""
        if self._attributed is not None and self._attributed.fullmatch(text) is not None:
            return True
        if self._foreign is not None and TOKEN_BEGINNING.fullmatch(text) is not None:
            return True
        if not self._tags or len(text) >= LONGEST_TAG:
            return False
        return text.lower() in self._tag_heads or self._tag.fullmatch(text) is not None

    @cached_property
    def _tag(self) -> re.Pattern[str]:
        return tag_beginning(self._tags)

    def may_extend(self, text: str, found: Found, end: int) -> bool:
        """Whether what was found may still turn out to be a longer marker."""
        return found.marker.text in self.extendable and self._beginnings.holds(text[found.start : end])

    def may_enclose(self, text: str, found: Found, start: int, end: int) -> bool:
        """Whether a tag that is not at its end yet begins before what was found, and may hold it in an attribute."""
        if not self.has_spellings or text[found.start] == "<" or end - found.start >= self.longest:
            return False  # no attribute holds a `<`
        return self.begins(text, start, end) < found.start

    def at_end(self, text: str) -> list[Marker]:
        """The markers that a text ends with."""
        found = [marker for name, marker in self.markers.items() if text.endswith(name)]
        if self._tags or self._suffixed is not None:
            start = max(0, len(text) - LONGEST_TAG)
            matches = [match for pattern in self.searches for match in pattern.finditer(text, start)]
            names = [match.group() for match in matches if match.end() == len(text)]
            found += [self.marker(name) for name in names if name not in self.markers]
        return found

    def unmarked(self, text: str) -> int:
        """How far a short text cannot be, or become, part of a marker: up to its end, or to a possible beginning there.
        -1 if a marker stands in it."""
        beginnings, at = self._beginnings, 0
        while (met := self.suspect(text, at)) is not None:
            at = met.start()
            if self._match_at[text[at]](text, at) is not None:
                return -1
            tail = text[at:]
            # The first question is the second one's, where one look tells.
            if tail in beginnings.prefixes or (self._varied and beginnings.holds(tail)):
                return at
            at += 1
        return len(text)


Few = tuple[str, str | None, str, str]
"""One character, or two to four, some perhaps twice."""


def _few(characters: list[str]) -> Few | None:
    """The characters, where they are so few; the second is None where there is one."""
    if len(characters) > 4:
        return None
    # Where no character matters, one that hardly any text holds: still cheaper than a search that never finds.
    one, *more = characters or ["\0"]
    two, three, four = (more * 3)[:3] if more else (None, "", "")
    return one, two, three or "", four or ""


def _shared_beginning(names: list[str], ignore_case: bool) -> str:
    """What every one of these markers begins with, however it is spelled."""
    first = names[0][0]
    if ignore_case:
        return "" if first != first.swapcase() else first
    if first == "<":  # what begins with it may have several spellings
        return first
    low, high = min(names), max(names)
    same = (place for place, (one, other) in enumerate(zip(low, high, strict=False)) if one != other)
    return low[: next(same, len(low))]


def _spelled(head: str, first: bool, rest: bool) -> set[str]:
    """The first characters of a marker in any case, if the first or the rest may be written so."""
    choices = [
        {each, each.upper(), each.lower()} if (rest if place else first) else {each} for place, each in enumerate(head)
    ]
    return {"".join(found) for found in product(*choices)}


def _after_name(marker: Marker, attributes: bool) -> str | None:
    """A pattern for what may stand between the marker's name and its `>`."""
    if not (marker.text.startswith("<") and marker.text.endswith(">")):
        return None
    if marker.action is Action.IGNORED and marker.notice is None:  # a stray is that token and nothing else
        return DETAILS
    return ATTRIBUTES if attributes and marker.action in (Action.OPEN, Action.NESTED) else None


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


class Tables:
    """The tables of one format, each made when it is first needed."""

    def __init__(self, format: Format, calls_in_thinking: CallsInThinking, calls: bool, bare_lines: bool) -> None:
        self._format = format
        self._calls_in_thinking = calls_in_thinking
        self._calls = format.calls if calls else ()
        self._closers_of: dict[int, Table] = {}
        in_thinking = format.states.get(THINKING, {})
        self._closers = tuple(text for text, target in in_thinking.items() if target in (TEXT, OUTSIDE))
        self._call_markers = _call_markers(self._calls)
        self._call_closers = {text for syntax in self._calls for text in syntax.strays}
        self.bare = tuple(syntax for syntax in self._calls if syntax.bare)
        """Call syntaxes without an opening marker."""
        self._joined = frozenset(format.header.joined) if format.header is not None else frozenset()
        self.bare_headers = not self._joined.isdisjoint(format.states.get(TEXT, {}))
        """Whether headers without markers are read."""
        starts = {text for syntax in self.bare for text in syntax.bare_starts} if bare_lines else set()
        self._bare_lines = {text: Marker(text=text, action=Action.BARE) for text in sorted(starts)}

    def _table(self, state: State, markers: Iterable[Marker], foreign: bool = False) -> Table:
        format = self._format
        make = partial(
            Table,
            state,
            ignore_case=format.ignore_case,
            attributes=format.attributes,
            tag_rules=format.tag_rules,
            foreign=foreign,
            suffixed=format.suffixed,
        )
        table = make(markers)
        if any(marker.leading for marker in table.markers.values()):
            table.after_words = make(marker for marker in table.markers.values() if not marker.leading)
        return table

    def _given(self, state: State, actions: Mapping[State, Action]) -> dict[str, Marker]:
        """The markers that the format itself lists in a state."""
        markers: dict[str, Marker] = {}
        for name, target in self._format.states.get(state, {}).items():
            action = actions[target]
            opens = action is Action.OPEN
            markers[name] = Marker(
                text=name,
                action=action,
                target=target,
                closers=self._any_closer if opens else self._header_end if action is Action.HEADER else (),
                leading=state == TEXT and name in self._format.leading,
                weak=opens and self._is_weak(name),
                joined=name in self._joined,
                notice="partial_marker" if name in self._format.partial else None,
            )
        return markers

    def _is_weak(self, name: str) -> bool:
        rule = self._format.tag_rules.get(name)
        return rule is not None and rule.weak

    @cached_property
    def weak_opener(self) -> str:
        """The weak opener whose closer acts, which is so where it has acted itself; empty elsewhere."""
        if not any(map(self._is_weak, self._closers)):
            return ""
        return next(name for name, marker in self._given(TEXT, _FROM_TEXT).items() if marker.weak)

    @property
    def _header_end(self) -> tuple[str, ...]:
        """What ends a header, so that one which is quoted as a whole is no header."""
        header = self._format.header
        return (header.body,) if header is not None and header.body else ()

    @cached_property
    def _any_closer(self) -> tuple[str | re.Pattern[str], ...]:
        """What closes thinking, in every spelling that the format allows."""
        if self._format.ignore_case:
            return tuple(re.compile(re.escape(text), re.IGNORECASE | re.ASCII) for text in self._closers)
        tags = [text for text in self._closers if text in self._format.tag_rules and is_tag(text)]
        others = tuple(text for text in self._closers if text not in tags)
        return (*others, closing_tags(tags)) if tags else others

    @cached_property
    def text(self) -> Table:
        """What acts in a text."""
        return self._text(calls=True)

    @cached_property
    def text_without_calls(self) -> Table:
        """What acts in a message to somebody who runs no calls."""
        return self._text(calls=False)

    def _text(self, *, calls: bool) -> Table:
        markers = self._given(TEXT, _FROM_TEXT) | (self._call_markers if calls else {})
        closers = self._call_closers if calls else ()
        for name in [*self._closers, *self._format.states.get(HEADER, {}), *closers]:
            if name not in markers and not self._is_weak(name):
                markers[name] = Marker(text=name, action=Action.STRAY, closes_thinking=name in self._closers)
        markers |= self._ignored(TEXT)
        markers = self._last_stops | markers
        if calls:
            markers = self._bare_lines | markers
        for name in self._format.strays:
            markers[name] = Marker(text=name, action=Action.IGNORED, notice="stray_marker")
        # Only where every `<` is looked at anyway: a search for one more character would cost all prose.
        foreign = self._format.foreign and any(name.startswith("<") for name in markers)
        # A format that writes nothing but special tokens passes over the tags in code at no cost, and shall go on so.
        if foreign and any(name.startswith("<") and name[1:2] not in "|｜" for name in markers):
            own = markers if self._format.suffixed is not None else ()
            markers = {name: _foreign_tag(name) for name in TAGS if split_suffix(name)[0] not in own} | markers
        return self._table(TEXT, markers.values(), foreign)

    def names_marker(self, name: str) -> bool:
        """Whether a tag of this name, however it is spelled, is a marker of a text."""
        return f"<{name.lower()}>" in self.text.markers

    def is_foreign(self, text: str) -> bool:
        """Whether a marker that does not act is another family's, and no piece of this one's own."""
        return text not in self._own

    @cached_property
    def _own(self) -> str:
        format = self._format
        return "\0".join(strings((format.states, format.calls, format.header, format.strays, format.ignored)))

    @cached_property
    def _last_stops(self) -> dict[str, Marker]:
        stops = self._format.last_stops
        return {name: Marker(text=name, action=Action.STOP, target=END, last=True) for name in stops}

    def _ignored(self, state: State) -> dict[str, Marker]:
        return {name: Marker(text=name, action=Action.IGNORED, target=state) for name in self._format.ignored}

    @cached_property
    def thinking(self) -> Table:
        """What acts in thinking."""
        return self._thinking(calls=self._calls_in_thinking != "never")

    @cached_property
    def thinking_without_calls(self) -> Table:
        """What acts in a thought that its header has addressed."""
        return self._thinking(calls=False)

    def _thinking(self, *, calls: bool) -> Table:
        markers = self._given(THINKING, _FROM_THINKING)
        for name, marker in self._given(TEXT, _FROM_TEXT).items():
            if marker.action is Action.OPEN and name not in markers:
                # Where its closer acts, a weak opener has acted before, and is an opener like any other.
                weak = marker.weak and not any(map(self._is_weak, self._closers))
                markers[name] = msgspec.structs.replace(marker, action=Action.NESTED, weak=weak)
        if calls:
            markers |= self._call_markers
        markers |= self._ignored(THINKING)
        return self._table(THINKING, (self._last_stops | markers).values())

    @cached_property
    def watching(self) -> Table:
        """What acts in a text that a joined header may show to be no text at all."""
        joined = [Marker(text=name, action=Action.HEADER, target=HEADER, joined=True) for name in self._joined]
        return self._table(TEXT, [*self.text.markers.values(), *joined]) if joined else self.text

    @cached_property
    def bare_firsts(self) -> str:
        """The characters that an output can begin with if it begins with a header without markers."""
        header = self._format.header
        if header is None or header.bare is None:
            return ""
        return "".join({text[0] for text in (*header.roles, *header.channels, TO)})

    @cached_property
    def header_openers(self) -> tuple[str, ...]:
        """The markers that open a header."""
        markers = self.text.markers.values()
        found = (marker for marker in markers if marker.action is Action.HEADER and not marker.joined)
        return tuple(marker.text for marker in found if marker.text != TO)

    @cached_property
    def lost_channels(self) -> tuple[str, ...]:
        """What a header begins with whose channel has lost its marker, where such are read."""
        header = self._format.header
        if header is None or header.bare is None:
            return ()
        heads = [opener + role for opener in ("", *self.header_openers) for role in header.roles]
        return tuple(head + channel for head in heads for channel in header.channels)

    @cached_property
    def header(self) -> Table:
        """What acts in a message header."""
        markers = self._given(TEXT, _FROM_HEADER) | self._given(HEADER, _FROM_HEADER) | self._call_markers
        markers.pop(TO, None)  # there it is one of the header's own words
        header = self._format.header
        if header is not None and header.body:
            markers[header.body] = Marker(text=header.body, action=Action.BODY, target=HEADER)
        return self._table(HEADER, markers.values())

    @cached_property
    def stops(self) -> Table:
        """What may follow the calls of a turn that is over: stop markers, openers and closers of calls."""
        markers = self._given(TEXT, _FROM_TEXT) | self._call_markers
        wanted = [marker for marker in markers.values() if marker.action in (Action.STOP, Action.CALL)]
        wanted += [Marker(text=name, action=Action.STRAY) for name in self._call_closers]
        closing = self._given(THINKING, _FROM_THINKING)
        for name in self._format.behind_calls:
            # What also means something in a text is left to it.
            wanted.append(markers[name] if name in markers else closing[name])
        wanted += self._bare_lines.values()
        return self._table(END, wanted)

    @cached_property
    def thought_ends(self) -> Table:
        """What ends thinking: its closing markers, the header of the next message, stop markers."""
        ends = (Action.CLOSE, Action.HEADER, Action.STOP)
        return self._table(THINKING, (marker for marker in self.thinking.markers.values() if marker.action in ends))

    @cached_property
    def turn_ends(self) -> tuple[str, ...]:
        """The markers that end a turn, or a message in it."""
        markers = self._given(TEXT, _FROM_TEXT).values()
        return tuple(marker.text for marker in markers if marker.action in (Action.STOP, Action.LEAVE))

    @cached_property
    def turn_stops(self) -> Table:
        """The stop markers alone."""
        markers = self._given(TEXT, _FROM_TEXT).values()
        return self._table(END, (marker for marker in markers if marker.action is Action.STOP))

    def other_turns(self, stop: str) -> tuple[str, ...]:
        """The headers of other turns that may follow this stop marker."""
        format = self._format
        return format.other_turns_after.get(stop, ()) if format.other_turns_after else format.other_turns

    def closers_of(self, syntax: CallSyntax) -> Table:
        """What may end a call of one syntax: its closing markers, and those that end the turn."""
        table = self._closers_of.get(id(syntax))
        if table is None:
            markers = [marker for marker in self._given(TEXT, _FROM_TEXT).values() if marker.action is Action.STOP]
            markers += [Marker(text=text, action=Action.STRAY) for text in syntax.closers]
            table = self._closers_of[id(syntax)] = Table(END, markers, suffixed=self._format.suffixed)
        return table


def _foreign_tag(name: str) -> Marker:
    return Marker(text=name, action=Action.FOREIGN, closers=(f"</{name[1:]}",))


@lru_cache(maxsize=1024)
def compile_tables(format: Format, calls_in_thinking: CallsInThinking, calls: bool, bare_lines: bool = False) -> Tables:
    """The tables of a format. Cached by the format's identity. `bare_lines`: bare calls may stand behind prose."""
    return Tables(format, calls_in_thinking, calls, bare_lines)


def _call_markers(calls: tuple[CallSyntax, ...]) -> dict[str, Marker]:
    """Every call opener, with all the syntaxes that it may open, in the format's order."""
    by_opener: dict[str, list[CallSyntax]] = {}
    for syntax in calls:
        for opener in syntax.openers:
            by_opener.setdefault(opener, []).append(syntax)
    return {
        opener: Marker(
            text=opener,
            action=Action.CALL,
            syntaxes=tuple(syntaxes),
            closers=tuple(dict.fromkeys(text for syntax in syntaxes for text in syntax.closers_of(opener))),
            at_line=all(syntax.open_at_line and opener in syntax.open for syntax in syntaxes),
            unfinished=opener.startswith("<") and ">" not in opener,
        )
        for opener, syntaxes in by_opener.items()
    }
