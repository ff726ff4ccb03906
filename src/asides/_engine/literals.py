"""Strings that are looked for in a text: one pattern for several, and what may still become one. Knows no format.

A stream is cut anywhere, so every search for a marker has two answers: where it stands, and where the text ends inside
what may be one (`Beginnings`). `</thi` is a beginning of `</think>` and must wait; `</the` is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import groupby

GLANCE = 5
"""So many characters of a literal are looked at first: enough to tell `</li>` from most markers."""
NEVER = r"(?!)"
"""A pattern that matches nothing."""


def any_of(texts: Iterable[str]) -> str:
    """A pattern for any of the texts; the longer is preferred to one that it begins with.

    Beginnings that several share are written once, so that a search leaves at the first character that none has.
    """
    return _any_of(sorted(set(texts), reverse=True))


def _any_of(texts: list[str]) -> str:
    found = []
    for _, group in groupby(texts, key=lambda text: text[:1]):
        same = list(group)
        shared = _shared(same[0], same[-1])
        rest = f"(?:{_any_of([text[shared:] for text in same])})" if len(same) > 1 else ""
        found.append(re.escape(same[0][:shared]) + rest)
    return "|".join(found)


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def one_of(characters: Iterable[str]) -> str:
    """A pattern for one of the characters."""
    found = "".join(sorted(set(characters)))
    return f"[{re.escape(found)}]" if found else NEVER


def beginning_of(names: Iterable[str]) -> str:
    """A pattern for the first few characters of any of the names, or fewer of them where the text ends."""
    return _beginning_of(sorted({name[:GLANCE] for name in names}), GLANCE) or NEVER


def _beginning_of(names: list[str], length: int) -> str:
    if length == 1:
        return one_of(names)
    sources = []
    for first, group in groupby(names, key=lambda name: name[0]):
        rest = [name[1:] for name in group]
        # A name that ends here has been found, whatever follows it.
        sources.append(re.escape(first) + (rf"(?:\Z|{_beginning_of(rest, length - 1)})" if all(rest) else ""))
    return "|".join(sources)


class Beginnings:
    """What may still become one of some literals, or a spelling of one.

    `may_become` is asked about texts whose second character is in `seconds`, up to `reach` characters long: literals
    that have other spellings. All of these begin with `<` and hold no other.
    """

    __slots__ = (
        "_first",
        "_fold",
        "_literals",
        "_longest",
        "_may_become",
        "_only",
        "_reach",
        "_seconds",
        "firsts",
        "prefixes",
    )

    def __init__(
        self,
        literals: Sequence[str],
        *,
        ignore_case: bool = False,
        reach: int = 0,
        seconds: frozenset[str] = frozenset(),
        may_become: Callable[[str], bool] | None = None,
    ) -> None:
        self.prefixes: frozenset[str] = frozenset(name[:length] for name in literals for length in range(1, len(name)))
        """Every text that is a beginning as it stands."""
        self._literals = tuple(literals)
        firsts = {name[0] for name in literals}
        firsts |= {character.swapcase() for character in firsts} if ignore_case else set()
        self.firsts: str = "".join(sorted(firsts))
        """The characters that literals begin with."""
        self._first = re.compile(one_of(firsts)).search
        self._fold = ignore_case
        self._longest = max(map(len, literals), default=0)
        self._reach = max(reach, self._longest)
        self._seconds = seconds
        self._may_become = may_become
        flat = len(firsts) == 1 and not any(self.firsts in name[1:] for name in literals)
        # The one character whose last place alone can begin a literal: all begin with it, and none holds it again.
        self._only: str = self.firsts if flat else ""

    def find(self, text: str, start: int, end: int) -> int:
        """Where a beginning stands at the end of `text[start:end]`, or `end`."""
        if self._only:
            low = end - self._reach
            at = text.rfind(self._only, low if low > start else start, end)
            return at if at >= 0 and self.holds(text[at:end]) else end
        at = end - self._longest
        if at <= start:
            at = start
        elif self._reach > self._longest:
            last = text.rfind("<", max(start, end - self._reach), end)
            if 0 <= last < at and self.holds(text[last:end]):
                return last
        while match := self._first(text, at, end):
            at = match.start()
            if self.holds(text[at:end]):
                return at
            at += 1
        return end

    def find_unmet(self, text: str, start: int, end: int) -> int:
        """The same for one who may read no further than `end`, though more is known: what stands there may show that it
        is no beginning. Else what is known to be words would wait, or not, as the text was cut."""
        at = self.find(text, start, end)
        while at < end < len(text) and not self._goes_on(text[at : at + self._longest]):
            at = self.find(text, at + 1, end)
        return at

    def _goes_on(self, text: str) -> bool:
        return text in self.prefixes or text.startswith(self._literals)

    def holds(self, text: str) -> bool:
        """Whether a text is a beginning."""
        if self._fold:
            text = text.lower()
        if text in self.prefixes:
            return True
        return text[1:2] in self._seconds and self._may_become is not None and self._may_become(text)


@lru_cache(maxsize=512)
def beginnings(literals: tuple[str, ...]) -> Beginnings:
    """What may still become one of these."""
    return Beginnings(literals)


@lru_cache(maxsize=512)
def suspect(literals: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    """A search that finds something wherever one of these stands or may come to stand; sometimes elsewhere too."""
    return re.compile(beginning_of(literals)).search
