"""What many ids say, in one go: their texts joined, and where each of them stands in it.

A token of a byte-level vocabulary may be a piece of a character. Each byte that is no character by itself is written as
a lone surrogate (Python's `surrogateescape`), so that the texts of any ids can be joined as strings. Where such
bytes stand together, they are decoded: to the characters that they make, or to U+FFFD as `bytes.decode` has it. This is
what decoding all bytes at once gives, because every whole character in UTF-8 begins with a byte that continues none.

    ids       5          6         7
    bytes     48 C3      A9 21     C3
    texts     "H\\udcc3"  "\\udca9!" "\\udcc3"
    joined    "Hé!", and "\\udcc3" waits for its rest

Nothing here runs for each id but C code: 7,000 ids take well below a millisecond.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import NamedTuple

from ..parts import Span

FIRST, LAST = 0xD8C0, 0xDB3F
"""The surrogates that stand for marker tokens: of planes that Unicode has left empty, so that JSON escapes none."""
TOKEN = re.compile(f".[{chr(FIRST)}-{chr(LAST)}]", re.DOTALL)
"""What stands for a marker token: its first character and a surrogate."""
_PIECES = re.compile("[\udc80-\udcff]+")
"""Bytes that are no characters by themselves."""
_LAST_PIECES = re.compile("[\udc80-\udcff]{1,3}\\Z")
_SURROGATE = re.compile(f"[{chr(FIRST)}-\udcff]")
"""What stands for a token, or for a byte: one range, because that is searched for fastest."""
_CONTINUES = "[\udc80-\udcbf]"
_CUT_CHARACTER = re.compile(
    f"[\udcc2-\udcdf]{_CONTINUES}"
    f"|[\udce1-\udcec\udcee\udcef]{_CONTINUES}{{1,2}}"
    f"|\udce0[\udca0-\udcbf]{_CONTINUES}?|\udced[\udc80-\udc9f]{_CONTINUES}?"
    f"|[\udcf1-\udcf3]{_CONTINUES}{{1,3}}"
    f"|\udcf0[\udc90-\udcbf]{_CONTINUES}{{0,2}}|\udcf4[\udc80-\udc8f]{_CONTINUES}{{0,2}}"
)
"""Two bytes or more that become one character: a whole one, or the longest beginning of one, which becomes U+FFFD."""


class TokenTexts(dict[int, str]):
    """The text of each token, found when it is first asked for; bytes that are no characters as lone surrogates."""

    def __init__(self, text_of: Callable[[int], str]) -> None:
        super().__init__()
        self._text_of = text_of

    def __missing__(self, id: int) -> str:
        found = self._text_of(id)
        if found:  # else no token: there are as many such ids as a server cares to send
            self[id] = found
        return found

    def join(self, ids: Iterable[int]) -> str:
        """The texts of several tokens, with pieces of characters in it as they are."""
        return "".join(map(self.__getitem__, ids))

    def places(self, ids: Iterable[int], size: int = -1) -> TokenPlaces:
        """Where each token stands in the text of all of them, which has `size` characters where that is known."""
        texts = list(map(self.__getitem__, ids))
        ends = list(accumulate(map(len, texts)))
        # Decoding only ever makes a text shorter: where it has not, no token cuts a character.
        if not ends or ends[-1] == size:
            return TokenPlaces([0, *ends[:-1]] if ends else [], ends)
        return _places(ends, "".join(texts))


def text_of_bytes(data: bytes) -> str:
    """The text of one token's bytes, as it is joined."""
    return data.decode("utf-8", "surrogateescape")


def surrogates_in(text: str) -> list[int]:
    """Where something stands in a joined text for a marker token, or for a byte."""
    return [] if text.isascii() else [match.start() for match in _SURROGATE.finditer(text)]


def whole_characters(text: str) -> str:
    """A joined text whose pieces of characters are decoded; what never becomes a character is U+FFFD."""
    return text if text.isascii() else _PIECES.sub(_decoded, text)


def split_last(text: str) -> tuple[str, str]:
    """The same, without the beginning of a character at its end; and that beginning."""
    last = _LAST_PIECES.search(text, max(0, len(text) - 3))
    if last is None:
        return whole_characters(text), ""
    data = last[0].encode("utf-8", "surrogateescape")
    rest = len(data) - codecs.utf_8_decode(data, "replace", False)[1]
    size = len(text) - rest
    return whole_characters(text[:size]), text[size:]


def _decoded(match: re.Match[str]) -> str:
    return match[0].encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class TokenPlaces(NamedTuple):
    """Where each token's bytes stand in a text: the first character that they are part of, and after the last."""

    firsts: list[int]
    stops: list[int]

    def of(self, span: Span) -> Span:
        """The tokens that hold any of a span's characters, or a piece of one."""
        first = bisect_right(self.stops, span[0])
        return first, max(first, bisect_left(self.firsts, span[1]))


def _places(ends: list[int], text: str) -> TokenPlaces:
    """Places in the decoded text, of tokens that end so in the joined one."""
    cut = [] if text.isascii() else [match.span() for match in _CUT_CHARACTER.finditer(text)]
    if not cut:
        return TokenPlaces([0, *ends[:-1]] if ends else [], ends)
    moved: list[int] = []
    halves: list[range] = []
    shorter = 0
    for start, stop in cut:
        # Tokens up to this character, then those that end inside it: what they hold last is a piece of it.
        until = bisect_right(ends, start, len(moved))
        moved += [end - shorter for end in ends[len(moved) : until]]
        inside = bisect_left(ends, stop, until)
        moved += [start - shorter] * (inside - until)
        halves.append(range(until, inside))
        shorter += stop - start - 1
    moved += [end - shorter for end in ends[len(moved) :]]
    firsts = [0, *moved[:-1]]
    for numbers in halves:
        for number in numbers:
            moved[number] += 1
    return TokenPlaces(firsts, moved)
