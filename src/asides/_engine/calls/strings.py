"""More of a string in a call's arguments: how much of a chunk is that and nothing else, and what it is as JSON.

The fast path asks this instead of the reader, while the reader stands inside a string that is written as it comes. Two
kinds of strings are known: those that the model writes as JSON or nearly so, which pass as they are with whole escapes
in them (`WrittenBody`), and those whose encoding is ours, which are escaped here as the reader would (`EncodedBody`).
What is left at the end may be half an escape, the beginning of a tag or a line's end that frames one, and waits.
Whatever else there is, is the reader's: the answer is None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Protocol

from ..literals import any_of, beginnings, suspect
from .steps import escape

_SPACES = " \t\n\r"
_LINE_END = re.compile(r"[\r\n]")
_HALVES = "\ud800-\udfff"
_SURROGATE = re.compile(f"[{_HALVES}]")
_CUT = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
"""An escape that is cut off."""


class StringBody(Protocol):
    """How the rest of a string is written."""

    def split(self, text: str, stop: int) -> tuple[str, int] | None:
        """What `text[:stop]` is as JSON, as far as it is certain, and how far that is; None if it may be another thing.

        Behind `stop` stands what may be a marker.
        """


class WrittenBody:
    """A string that is JSON already: these characters, and these escapes."""

    __slots__ = ("_match",)

    def __init__(self, other: str, escapes: str) -> None:
        plain = rf'[^"\\\x00-\x1f{_HALVES}{other}]*+'
        self._match = re.compile(rf"{plain}(?>(?:\\(?:{escapes}){plain})*)").match

    def split(self, text: str, stop: int) -> tuple[str, int] | None:
        """As the protocol says."""
        match = self._match(text, 0, stop)
        end = match.end() if match is not None else 0
        if end < stop and (stop < len(text) or _CUT.match(text, end) is None):
            return None
        return text[:end], end


JSON_BODY = WrittenBody("", r'["\\/bfnrt]|u[0-9a-fA-F]{4}')
"""A string of JSON."""
PYTHON_BODIES = {'"': WrittenBody("", r'[nrt"\\]'), "'": WrittenBody("'", r'[nrt"\\]')}
"""A string of Python, by its quote: escapes that mean the same in JSON."""


class EncodedBody:
    """A string of any characters, up to what `search` finds. `framed`: a line's end before that is not part of it."""

    __slots__ = ("_begins", "_framed", "_search", "_suspect")

    def __init__(
        self,
        search: Callable[[str], re.Match[str] | None],
        begins: Callable[[str, int, int], int],
        literals: Iterable[str],
        framed: bool,
    ) -> None:
        self._suspect = suspect(tuple(literals))
        self._search = search
        self._begins = begins
        self._framed = framed

    def split(self, text: str, stop: int) -> tuple[str, int] | None:
        """As the protocol says."""
        if not text.isascii() and _SURROGATE.search(text) is not None:
            return None
        if self._suspect(text) is not None or stop < len(text):
            if self._search(text) is not None:
                return None
            stop = self._begins(text, 0, stop)
        if self._framed and text[stop - 1 : stop] in _SPACES:
            match = _LINE_END.search(text, len(text[:stop].rstrip(_SPACES)), stop)
            stop = match.start() if match is not None else stop
        return escape(text[:stop]), stop


@lru_cache(maxsize=128)
def up_to(*ends: str) -> EncodedBody:
    """A string that any of these ends."""
    return EncodedBody(re.compile(any_of(ends)).search, beginnings(ends).find_unmet, ends, framed=False)
