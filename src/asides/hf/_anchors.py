r"""Anchors: the literals and patterns of a response template, found in a stream in one pass.

An anchor must be found at the same place however the stream is cut, and at a cost that grows with the stream alone. So
a pattern is taken apart first:

    </think>\s*, (?:<a>|<b>)\s*, \s*<tool_call>     literals with whitespace around them: searched for as literals
    <tool_call>\s*<function=(?P<name>[^>]+)>         begins with a literal: tried only where that literal stands
    (?=[\s\S]*?</think>)                             asks for a literal further on: the literal is searched for
    ...|$                                            the end of the output, where every region ends anyway

A pattern of the second kind is tried on windows of growing sizes behind its literal, until what stands in one can no
longer be the beginning of a match, or `WINDOW_LIMIT` characters: so how the stream was cut does not count, and the cost
of one try is bounded; its time is too (`_budget.py`). A pattern that begins with no literal would have to be tried
everywhere, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import msgspec

from .._extras import install_command
from ._budget import PatternBudget, PatternTimeout, needs_regex

_engine: Any = re
PARTIAL = find_spec("regex") is not None
"""Whether the package `regex` is there, as the standard has it. It knows before a window is full that nothing in it can
be a match, and it can be stopped. Without it patterns are checked, but only those run that are literals."""
if PARTIAL:
    _engine = import_module("regex")

WINDOW_LIMIT = 4096
"""How many characters a pattern may look at from where it begins."""
LONGEST_PATTERN = 4096
"""How many characters a pattern may have: looking at one costs the square of it."""
SPACE_LIMIT = 1024
"""How many characters of whitespace before an anchor belong to it."""
CONTEXT = 16
"""How many characters before the place of reading are kept, for patterns that look back."""


def _windows() -> Iterator[int]:
    size = 1
    while size < WINDOW_LIMIT:
        yield size
        size = max(size + 1, size * 5 // 4) if size >= 128 else size + 1
    yield WINDOW_LIMIT


WINDOWS = tuple(_windows())
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_LEADING_SPACE = re.compile(r"\\s(?:\*|\{0,(\d+)\})")
_AHEAD = re.compile(r"\(\?=(?:\[\\s\\S\]|\.)\*\??(?P<literal>(?:[^\\()\[\]{}?*+|^$.]|\\[^\w\s])+)\)")
_END = frozenset({"$", r"\Z", r"\z"})
_MOST_TEXTS = 64
_SPECIAL = frozenset(".^$*+?{}[]|()")


class PatternProblem(Exception):
    """Why a pattern cannot be read; the template's loader names the key."""


class AnchorMatch(NamedTuple):
    """Where an anchor stands."""

    start: int
    stop: int
    groups: dict[str, str]
    """The named groups that took part."""
    skip: bool
    """Whether whitespace behind it belongs to it."""


class Anchor(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One anchor, taken apart."""

    literals: tuple[str, ...] = ()
    """What it is, or for a pattern what it begins with; the longest first."""
    pattern: Any = None
    """The compiled pattern, where literals do not say it all."""
    before: int = 0
    """How much whitespace before it belongs to it."""
    skip: bool = False
    """Whether whitespace behind it belongs to it."""
    at_start: bool = False
    """Whether the pattern may also match where the output begins."""
    ahead: str = ""
    """A literal that must come later; the anchor itself is empty then."""
    names: tuple[str, ...] = ()
    """The names of its groups."""
    stands: tuple[str, ...] = ()
    """For a pattern of literals and of look-aheads at literals: those that it takes."""
    before_literals: tuple[str, ...] = ()
    """The same: those before which it stands."""

    @property
    def simple(self) -> bool:
        """Whether literals say all of it."""
        return self.pattern is None and not self.ahead


def compile_pattern(source: str) -> Any:
    """Compile a pattern as the standard has it."""
    if len(source) > LONGEST_PATTERN:
        raise PatternProblem(f"has {len(source):,} characters; {LONGEST_PATTERN:,} are allowed")
    try:
        return _engine.compile(source, _engine.DOTALL)
    except (_engine.error, RecursionError) as error:
        hint = "" if PARTIAL else f"; some patterns need the package regex: {install_command('hf')}"
        raise PatternProblem(f"is no regular expression: {error}{hint}") from error


def literal_anchor(literals: tuple[str, ...]) -> Anchor:
    """An anchor of one literal or several."""
    return Anchor(literals=_ordered(literals))


def _ordered(literals: Any) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(literals), key=len, reverse=True))


def pattern_anchor(source: str, compiled: Any) -> Anchor:
    """An anchor of a pattern, which is taken apart as far as it goes."""
    names = tuple(compiled.groupindex)
    if ahead := _AHEAD.fullmatch(source):
        return Anchor(ahead=re.sub(r"\\(.)", r"\1", ahead["literal"]), names=names)
    branches = [branch for branch in _branches(source) if branch not in _END]
    if not branches:
        return Anchor()  # the end alone: every region ends there by itself
    pieces = [_literals_of(branch) for branch in branches]
    if all(piece is not None for piece in pieces):
        befores, literals, skips = zip(*(piece for piece in pieces if piece is not None), strict=True)
        if len(set(befores)) == len(set(skips)) == 1:
            every = _ordered(literal for group in literals for literal in group)
            return Anchor(literals=every, before=befores[0], skip=skips[0])
    before, rest = _space_before("|".join(branches)) if len(branches) == 1 else (0, "|".join(branches))
    prefixes = _Prefixes(rest).read()
    ahead_of = [finite_literals(branch[3:-1]) for branch in branches if branch.startswith("(?=")]
    taken = [piece for branch, piece in zip(branches, pieces, strict=True) if not branch.startswith("(?=")]
    mixed = bool(ahead_of) and None not in ahead_of and None not in taken
    if any(not prefix.text and not prefix.start for prefix in prefixes):
        raise PatternProblem("begins with no literal, so it would have to be tried at every character")
    return Anchor(
        literals=_ordered(prefix.text for prefix in prefixes if not prefix.start),
        pattern=compile_pattern(rest),
        before=before,
        at_start=any(prefix.start for prefix in prefixes),
        names=names,
        stands=tuple(literal for piece in taken if piece and mixed for literal in piece[1]),
        before_literals=tuple(literal for group in ahead_of if group and mixed for literal in group),
    )


def _space_before(source: str) -> tuple[int, str]:
    match = _LEADING_SPACE.match(source)
    if match is None:
        return 0, source
    return min(int(match[1] or SPACE_LIMIT), SPACE_LIMIT), source[match.end() :]


def _literals_of(branch: str) -> tuple[int, tuple[str, ...], bool] | None:
    """The literals that a branch is, with the whitespace around them; None if it is more than that."""
    before, rest = _space_before(branch)
    skip = rest.endswith(r"\s*") and not rest.endswith(r"\\s*")
    rest = rest[:-3] if skip else rest
    literals = finite_literals(rest)
    return None if literals is None or not all(literals) else (before, literals, skip)


def finite_literals(source: str) -> tuple[str, ...] | None:
    """Every text that a pattern matches, where these are few; None where they are not."""
    try:
        found, stop = _texts(source, 0)
    except PatternProblem:
        return None
    return tuple(dict.fromkeys(found)) if stop == len(source) else None


def _texts(source: str, at: int) -> tuple[list[str], int]:
    """The texts of the alternatives that begin at `at`, and where they end."""
    found: list[str] = []
    ways = [""]
    while at < len(source) and source[at] != ")":
        if source[at] == "|":
            found, ways, at = found + ways, [""], at + 1
            continue
        pieces, at = _piece(source, at)
        if source[at : at + 1] == "?" and source[at + 1 : at + 2] not in ("?", "+"):
            pieces, at = [*pieces, ""], at + 1
        if source[at : at + 1] in ("*", "+", "{", "?") or len(ways) * len(pieces) > _MOST_TEXTS:
            raise PatternProblem("it matches too many texts")
        ways = [way + piece for way in ways for piece in pieces]
    return found + ways, at


def _piece(source: str, at: int) -> tuple[list[str], int]:
    """The texts of one character or one group, and where it ends."""
    character = source[at]
    if source.startswith("(?:", at):
        pieces, at = _texts(source, at + 3)
        return pieces, at + 1
    if character == "\\":
        at += 1
        escaped = source[at : at + 1]
        if not escaped or (escaped.isalnum() and escaped not in _ESCAPED):
            raise PatternProblem("it matches more than literals")
        return [_ESCAPED.get(escaped, escaped)], at + 1
    if character in _SPECIAL:
        raise PatternProblem("it matches more than literals")
    return [character], at + 1


def _branches(source: str) -> list[str]:
    """A pattern cut at the bars that are in no group."""
    found, depth, start, place = [], 0, 0, 0
    while place < len(source):
        character = source[place]
        if character == "\\":
            place += 1
        elif character == "[":
            place = _class_end(source, place)
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and depth == 0:
            found.append(source[start:place])
            start = place + 1
        place += 1
    return [*found, source[start:]]


def _class_end(source: str, place: int) -> int:
    """Where a character class ends."""
    place += 2 if source[place + 1 : place + 2] == "^" else 1
    while place < len(source) and (source[place] != "]" or source[place - 1] in "[^"):
        place += 2 if source[place] == "\\" else 1
    return place


class _Prefix(NamedTuple):
    """One way in which a match may begin."""

    text: str
    open: bool = True
    """Whether what follows still counts."""
    start: bool = False
    """Whether it must stand where the output begins."""

    def shut(self) -> _Prefix:
        return self._replace(open=False)


class _Prefixes:
    """Finds with which literals a match of a pattern begins."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0

    def read(self) -> list[_Prefix]:
        """Every way, as far as it is literal."""
        return self._alternatives([_Prefix("")])

    def _peek(self, text: str) -> bool:
        return self._source.startswith(text, self._at)

    def _alternatives(self, before: list[_Prefix], folded: bool = False) -> list[_Prefix]:
        found: list[_Prefix] = []
        while True:
            found += self._sequence(list(before), folded)
            if not self._peek("|"):
                return list(dict.fromkeys(found))
            self._at += 1

    def _sequence(self, ways: list[_Prefix], folded: bool) -> list[_Prefix]:
        source = self._source
        while self._at < len(source) and source[self._at] not in "|)":
            character = source[self._at]
            if character == "(":
                after = self._group(ways, folded)
            elif character == "[":
                self._at = _class_end(source, self._at) + 1
                after = [way.shut() for way in ways]
            else:
                after = self._character(ways, character, folded)
            ways = self._quantified(ways, after)
            if len(ways) > _MOST_TEXTS:  # each group and each `?` may double them: what they are by now will do
                ways = list(dict.fromkeys(way.shut() for way in ways))
        return ways

    def _character(self, ways: list[_Prefix], character: str, folded: bool) -> list[_Prefix]:
        self._at += 1
        if character == "\\":
            character = self._source[self._at : self._at + 1]
            self._at += 1
            if character == "A":
                return [way._replace(start=True) if way.open and not way.text else way.shut() for way in ways]
            if character.isalnum() and character not in _ESCAPED:
                return [way.shut() for way in ways]
            character = _ESCAPED.get(character, character)
        elif character in _SPECIAL:
            return [way.shut() for way in ways]
        if folded and character.isalpha():
            return [way.shut() for way in ways]
        return [way._replace(text=way.text + character) if way.open else way for way in ways]

    def _group(self, ways: list[_Prefix], folded: bool) -> list[_Prefix]:
        opening = re.compile(r"\((?:\?(?:P?<\w+>|[imsux-]*:|=|!|<=|<!|>|#))?").match(self._source, self._at)
        opened = opening[0] if opening else "("
        self._at += len(opened)
        look = opened in ("(?!", "(?<=", "(?<!")
        found = self._alternatives([] if look else ways, folded or "i" in opened.partition("?")[2].partition(":")[0])
        self._at += 1
        if look:
            return ways
        return [way.shut() for way in found] if opened == "(?=" else found

    def _quantified(self, before: list[_Prefix], after: list[_Prefix]) -> list[_Prefix]:
        match = re.compile(r"(?:[?*+]|\{\d*(?:,\d*)?\})[?+]?").match(self._source, self._at)
        if match is None:
            return after
        self._at = match.end()
        mark = match[0]
        if mark[0] == "?":
            return [*before, *after]
        after = [way.shut() for way in after]
        least = mark[1:].split(",")[0].rstrip("}?+") if mark[0] == "{" else ("1" if mark[0] == "+" else "0")
        return after if least.isdigit() and int(least) > 0 else [*before, *after]


class Search:
    """Looks for one anchor in one stream, and remembers what it need not look at again."""

    __slots__ = (
        "_ahead_from",
        "_budget",
        "_candidate",
        "_prefixes",
        "_refused",
        "_seen",
        "_window",
        "anchor",
        "limited",
        "stopped",
    )

    def __init__(self, anchor: Anchor, budget: PatternBudget | None = None) -> None:
        if isinstance(anchor.pattern, re.Pattern):
            raise needs_regex("response template")
        self.anchor: Anchor = anchor
        self.limited: bool = False
        """Whether a pattern was given up because its window was full."""
        self.stopped: bool = False
        """Whether a pattern was given up because it took too long."""
        self._budget = budget or PatternBudget()
        self._seen = 0
        self._refused = -1
        self._candidate = -1
        self._window = 0
        self._ahead_from = 0
        self._prefixes = frozenset(text[:size] for text in anchor.literals for size in range(1, len(text)))

    def scan(self, text: str, at: int, base: int, final: bool) -> tuple[AnchorMatch | None, int]:
        """The first place at or behind `at`, and from where on it may still come. `base` is the offset of `text[0]`."""
        anchor = self.anchor
        if anchor.ahead:
            return self._scan_ahead(text, at, base, final)
        if base + len(text) > self._seen:
            self._budget.grow(base + len(text) - self._seen)
            self._seen = base + len(text)
        place = max(at, self._refused + 1 - base)
        while True:
            start, literal = self._literal(text, place, base)
            if literal is None:
                return None, len(text) if final else self._hold(text, at)
            try:
                found = self._try(text, start, literal, base, final)
            except PatternTimeout:
                self.stopped, self._refused, found = True, base + start, _NOWHERE
            if found is None:
                return None, self._reach_back(text, at, start)
            if found.start >= 0:
                reached = found._replace(start=self._reach_back(text, at, found.start))
                return reached, self._hold_of(text, start, final)
            place = start + 1

    def _scan_ahead(self, text: str, at: int, base: int, final: bool) -> tuple[AnchorMatch | None, int]:
        literal = self.anchor.ahead
        start = max(at, self._ahead_from - base)
        if text.find(literal, start) >= 0:
            return AnchorMatch(at, at, {}, False), len(text)
        self._ahead_from = max(self._ahead_from, base + max(at, len(text) - len(literal) + 1))
        return None, len(text) if final else at

    def _literal(self, text: str, place: int, base: int) -> tuple[int, str | None]:
        """The next place where one of the literals stands, the longest of them; the start of the output is one too."""
        anchor = self.anchor
        if anchor.at_start and base == 0 and place == 0:
            return 0, ""
        best, which = -1, None
        for literal in anchor.literals:
            found = text.find(literal, place, len(text) if best < 0 else best + len(literal))
            if found >= 0 and (best < 0 or found < best):
                best, which = found, literal
        return best, which

    def _try(self, text: str, start: int, literal: str, base: int, final: bool) -> AnchorMatch | None:
        """Whether the anchor stands at `start`: where; a place before the text if not; None when more must be seen."""
        pattern = self.anchor.pattern
        if pattern is None:
            return AnchorMatch(start, start + len(literal), {}, self.anchor.skip)
        if self._candidate != base + start:
            self._candidate, self._window = base + start, 0
        rest = len(text) - start
        while WINDOWS[self._window] <= rest and WINDOWS[self._window] < WINDOW_LIMIT:
            stop = start + WINDOWS[self._window]
            if self._budget.run(pattern.fullmatch, text, start, stop, partial=True) is None:
                return _found(self._budget.run(pattern.match, text, start, stop))  # no match goes on beyond this window
            self._window += 1
        if not final and rest < WINDOW_LIMIT:
            return None
        self.limited = self.limited or rest > WINDOW_LIMIT
        return _found(self._budget.run(pattern.match, text, start, min(len(text), start + WINDOW_LIMIT)))

    def _reach_back(self, text: str, at: int, start: int) -> int:
        least = max(at, start - self.anchor.before)
        while start > least and text[start - 1].isspace():
            start -= 1
        return start

    def _hold(self, text: str, at: int) -> int:
        """From where on an anchor may still be coming."""
        longest = max(map(len, self.anchor.literals), default=1)
        start = len(text)
        for size in range(min(longest - 1, len(text) - at), 0, -1):
            if text[-size:] in self._prefixes:
                start = len(text) - size
                break
        return self._reach_back(text, at, start)

    def _hold_of(self, text: str, start: int, final: bool) -> int:
        """Whether a literal that was found may still become a longer one of the same anchor."""
        if final or self.anchor.pattern is not None or len(text) - start >= len(self.anchor.literals[0]):
            return len(text)
        return start if text[start:] in self._prefixes else len(text)


_NOWHERE = AnchorMatch(-1, -1, {}, False)


def _found(match: Any) -> AnchorMatch:
    if match is None:
        return _NOWHERE
    groups = {name: value for name, value in match.groupdict().items() if value is not None}
    return AnchorMatch(match.start(), match.end(), groups, False)
