"""Strings that know where each of their characters comes from, and what chat templates do to strings.

An `OriginText` is a `str` with runs: from where to where its characters come from one leaf (a string of a message, a
tool definition, a keyword of the template). Leaves are numbers, given out by whoever tags the values; what has no leaf
was written by the template. Whatever keeps or moves characters keeps or moves their runs; runs are ranges, so a
megabyte from one leaf costs no more than a letter.

    name = OriginText("ann", ((3, 7),))
    joined = "hello " + name            # OriginText, runs ((6, -1), (9, 7))

Values that are no text carry a leaf as well: a number writes itself with it, a dict or a list gives it to the brackets
and commas that JSON or Python's `repr` put around its items. None, true and false cannot carry one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any, SupportsIndex

Runs = tuple[tuple[int, int], ...]
"""Where each run ends, and its leaf."""
NOBODY = -1
"""The leaf of what the template itself writes."""


class OriginText(str):
    """A string with an origin for each character."""

    __slots__ = ("runs",)
    runs: Runs

    def __new__(cls, text: str = "", runs: Runs = ()) -> OriginText:
        made = super().__new__(cls, text)
        made.runs = runs or (((len(text), NOBODY),) if text else ())
        return made

    def cut(self, start: int, stop: int) -> str:
        """The characters from `start` to `stop`."""
        text = str.__getitem__(self, slice(start, stop))
        return OriginText(text, cut_runs(self.runs, start, start + len(text))) if text else ""

    def mapped(self, text: str, lengths: Iterable[int]) -> str:
        """Another text, made of this one character by character; `lengths`: how much each has become."""
        leaf = one_leaf(self)
        if leaf is not None:
            return tagged(text, leaf)
        if len(text) == len(self):
            return OriginText(text, self.runs)
        runs: list[tuple[int, int]] = []
        place = at = 0
        sizes = list(lengths)
        for end, each in self.runs:
            at += sum(sizes[place:end])
            place = end
            runs.append((at, each))
        return OriginText(text, tuple(runs))

    # What Python's operators do.

    def __str__(self) -> str:
        return self

    def __format__(self, spec: str) -> str:
        return self if not spec else spread(format(plain(self), spec), self)

    def __add__(self, other: str) -> str:
        return join((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> str:
        return join((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> str:
        return join([self] * times.__index__())

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> str:
        from ._writing import percent  # here, because it is made of these texts

        return percent(self, values)

    def __rmod__(self, template: str) -> str:
        from ._writing import percent

        return percent(template, self)

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        text = str.__getitem__(self, key)
        if not text:
            return ""
        if isinstance(key, slice):
            start, _, step = key.indices(len(self))
            if step != 1:
                leaf = one_leaf(self)
                if leaf is not None:
                    return tagged(text, leaf)
                return OriginText(text, _packed(self._leaves()[key]))
        else:
            start = key.__index__()
            start += len(self) if start < 0 else 0
        return OriginText(text, cut_runs(self.runs, start, start + len(text)))

    def __iter__(self) -> Iterator[str]:
        start = 0
        letters = str.__iter__(self)
        for end, leaf in self.runs:
            run = ((1, leaf),)
            for _ in range(end - start):
                yield OriginText(next(letters), run)
            start = end

    def _leaves(self) -> list[int]:
        """The leaf of each character."""
        found: list[int] = []
        for end, leaf in self.runs:
            found += [leaf] * (end - len(found))
        return found

    # What templates call.

    def join(self, parts: Iterable[str]) -> str:
        """As `str.join`."""
        return join_with(self, parts)

    def strip(self, characters: str | None = None) -> str:
        """As `str.strip`."""
        start = len(self) - len(str.lstrip(self, characters))
        return self.cut(start, max(start, len(str.rstrip(self, characters))))

    def lstrip(self, characters: str | None = None) -> str:
        """As `str.lstrip`."""
        return self.cut(len(self) - len(str.lstrip(self, characters)), len(self))

    def rstrip(self, characters: str | None = None) -> str:
        """As `str.rstrip`."""
        return self.cut(0, len(str.rstrip(self, characters)))

    def removeprefix(self, prefix: str) -> str:
        """As `str.removeprefix`."""
        return self.cut(len(prefix), len(self)) if self.startswith(prefix) else self

    def removesuffix(self, suffix: str) -> str:
        """As `str.removesuffix`."""
        return self.cut(0, len(self) - len(suffix)) if suffix and self.endswith(suffix) else self

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        """As `str.split`."""
        return self._pieces(str.split(self, sep, maxsplit), len(sep) if sep is not None else None)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        """As `str.rsplit`."""
        return self._pieces(str.rsplit(self, sep, maxsplit), len(sep) if sep is not None else None)

    def _pieces(self, pieces: list[str], between: int | None) -> list[str]:
        found: list[str] = []
        at = 0
        for piece in pieces:
            # Between words there is whitespace and nothing else, so the next word is where it is first found.
            start = at if between is not None else str.find(self, piece, at)
            found.append(self.cut(start, start + len(piece)))
            at = start + len(piece) + (between or 0)
        return found

    def splitlines(self, keepends: bool = False) -> list[str]:
        """As `str.splitlines`."""
        found: list[str] = []
        at = 0
        lines = str.splitlines(self, keepends)
        for line, whole in zip(lines, str.splitlines(self, True), strict=True):
            found.append(self.cut(at, at + len(line)))
            at += len(whole)
        return found

    def partition(self, sep: str) -> tuple[str, str, str]:
        """As `str.partition`."""
        return self._parted(str.find(self, sep) if sep else -1, str.partition(self, sep))

    def rpartition(self, sep: str) -> tuple[str, str, str]:
        """As `str.rpartition`."""
        return self._parted(str.rfind(self, sep) if sep else -1, str.rpartition(self, sep))

    def _parted(self, at: int, parts: tuple[str, str, str]) -> tuple[str, str, str]:
        if at < 0:
            return (self, "", "") if parts[0] else ("", "", self)
        end = at + len(parts[1])
        return self.cut(0, at), self.cut(at, end), self.cut(end, len(self))

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> str:
        """As `str.replace`."""
        return replace(self, old, new, count.__index__())

    def upper(self) -> str:
        """As `str.upper`."""
        return self._recased(str.upper)

    def lower(self) -> str:
        """As `str.lower`."""
        return self._recased(str.lower)

    def casefold(self) -> str:
        """As `str.casefold`."""
        return self._recased(str.casefold)

    def swapcase(self) -> str:
        """As `str.swapcase`."""
        return self._recased(str.swapcase)

    def title(self) -> str:
        """As `str.title`."""
        return self._recased(str.title)

    def capitalize(self) -> str:
        """As `str.capitalize`."""
        return self._recased(str.capitalize)

    def _recased(self, change: Callable[[str], str]) -> str:
        text = plain(self)
        changed = change(text)
        return self.mapped(changed, _recased_sizes(text, changed, change))

    def center(self, width: SupportsIndex, fill: str = " ") -> str:
        """As `str.center`."""
        return self._padded(str.center(self, width, fill), fill)

    def ljust(self, width: SupportsIndex, fill: str = " ") -> str:
        """As `str.ljust`."""
        return self._padded(str.ljust(self, width, fill), fill)

    def rjust(self, width: SupportsIndex, fill: str = " ") -> str:
        """As `str.rjust`."""
        return self._padded(str.rjust(self, width, fill), fill)

    def _padded(self, text: str, fill: str) -> str:
        if len(text) == len(self):
            return self
        # Padding is nobody's; were the text itself to begin with it, any place would show the same characters.
        at = text.rfind(plain(self)) if text.endswith(plain(self)) else text.find(plain(self))
        return join((text[:at], self, text[at + len(self) :]))

    def zfill(self, width: SupportsIndex) -> str:
        """As `str.zfill`."""
        return spread(str.zfill(self, width), self)

    def expandtabs(self, tabsize: SupportsIndex = 8) -> str:
        """As `str.expandtabs`."""
        return spread(str.expandtabs(self, tabsize), self)

    def translate(self, table: Any) -> str:
        """As `str.translate`."""
        text = plain(self)
        return self.mapped(text.translate(table), (len(letter.translate(table)) for letter in text))


def _recased_sizes(text: str, changed: str, change: Callable[[str], str]) -> Iterator[int]:
    """How many characters each has become. Inside a word it is written otherwise than alone."""
    at = 0
    for letter in text:
        ways = (change(letter), letter.lower(), letter.upper(), letter)
        size = next((len(way) for way in ways if changed.startswith(way, at)), 1)
        at += size
        yield size


class OriginInt(int):
    """A whole number that writes itself with its leaf."""

    leaf: int

    def __str__(self) -> str:
        return tagged(int.__repr__(self), self.leaf)


class OriginFloat(float):
    """A number that writes itself with its leaf."""

    leaf: int

    def __str__(self) -> str:
        return tagged(float.__repr__(self), self.leaf)


class OriginDict(dict[Any, Any]):
    """A dict that has a leaf for what is written around its items."""

    __slots__ = ("leaf", "message", "written")
    leaf: int
    message: int | None
    """Its place in the conversation, if it is a message."""
    written: dict[Any, str]
    """Its JSON, where it has been written."""


class OriginList(list[Any]):
    """A list that has a leaf for what is written around its items."""

    __slots__ = ("leaf", "written")
    leaf: int
    written: dict[Any, str]
    """Its JSON, where it has been written."""

    def __getitem__(self, key: Any) -> Any:
        found = list.__getitem__(self, key)
        return listed(found, self.leaf) if isinstance(key, slice) else found


def listed(items: Iterable[Any], leaf: int) -> OriginList:
    """A list with a leaf."""
    made = OriginList(items)
    made.leaf, made.written = leaf, {}
    return made


def plain(text: str) -> str:
    """The same string without origins."""
    return str.__str__(text) if type(text) is str else str.__getitem__(text, slice(None))


def tagged(text: str, leaf: int) -> str:
    """A string that comes from one leaf."""
    return OriginText(text, ((len(text), leaf),)) if text else ""


def runs_of(text: str) -> Runs:
    """The runs of any string."""
    if isinstance(text, OriginText):
        return text.runs
    return ((len(text), NOBODY),) if text else ()


def one_leaf(text: str) -> int | None:
    """The leaf of a string that has one only."""
    runs = runs_of(text)
    return runs[0][1] if len(runs) == 1 else None


def cut_runs(runs: Runs, start: int, stop: int) -> Runs:
    """The runs of the characters from `start` to `stop`."""
    if len(runs) == 1:
        return ((stop - start, runs[0][1]),)
    found: list[tuple[int, int]] = []
    for place in range(bisect_right(runs, start, key=_end), len(runs)):
        end, leaf = runs[place]
        found.append((min(end, stop) - start, leaf))
        if end >= stop:
            break
    return tuple(found)


def _packed(leaves: list[int]) -> Runs:
    """The runs of characters that have these leaves."""
    changes = (end for end in range(1, len(leaves)) if leaves[end] != leaves[end - 1])
    return tuple((end, leaves[end - 1]) for end in (*changes, len(leaves)))


def _end(run: tuple[int, int]) -> int:
    return run[0]


def join(pieces: Iterable[str]) -> str:
    """Strings one after another, with their origins."""
    found = list(pieces)
    joined = "".join(found)
    runs: list[tuple[int, int]] = []
    at, last, owned = 0, None, False
    for piece in found:
        if isinstance(piece, OriginText):
            for end, leaf in piece.runs:
                if leaf == last:
                    runs[-1] = (at + end, leaf)
                else:
                    runs.append((at + end, leaf))
                    last = leaf
            owned = True
            at += len(piece)
        elif piece:
            at += len(piece)
            if last == NOBODY:
                runs[-1] = (at, NOBODY)
            else:
                runs.append((at, NOBODY))
                last = NOBODY
    return OriginText(joined, tuple(runs)) if owned else joined


def join_with(separator: str, parts: Iterable[str]) -> str:
    """As `str.join`."""
    found = list(parts)
    for place, part in enumerate(found):
        if not isinstance(part, str):
            raise TypeError(f"sequence item {place}: expected str instance, {type(part).__name__} found")
    if not separator or len(found) < 2:
        return join(found)
    pieces = [separator] * (2 * len(found) - 1)
    pieces[::2] = found
    return join(pieces)


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    """As `str.replace`, whichever of the strings has origins."""
    replaced = str.replace(text, old, new, count)
    if not isinstance(text, OriginText) and not isinstance(new, OriginText):
        return replaced
    if not isinstance(text, OriginText):
        text = OriginText(text, runs_of(text))
    if not old:
        # Python puts the new string before every character and after the last.
        letters = list(text)
        many = len(letters) + 1 if count < 0 else min(count, len(letters) + 1)
        pieces = [
            piece for place, letter in enumerate([*letters, ""]) for piece in ((new,) * (place < many) + (letter,))
        ]
        return join(pieces)
    return join_with(new, text.split(old, count)) if old in text else text


def spread(text: str, source: str) -> str:
    """A text that is made of another as a whole: with its leaf, where that has only one."""
    leaf = one_leaf(source)
    return tagged(text, leaf) if leaf is not None and leaf != NOBODY else plain(text)


def has_origin(value: Any) -> bool:
    """Whether a value carries origins, as far as it can be seen from outside."""
    return isinstance(value, (OriginText, OriginInt, OriginFloat, OriginDict, OriginList))
