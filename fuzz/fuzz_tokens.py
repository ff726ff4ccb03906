"""The same search for `TokenParser`: any ids give events, the same however many come at a time, with spans that rise.

The tokenizer is a toy: every character is a token, every marker of the format is one, and by the input's choice the
markers of its text are tokens or spelled out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from common import NAMES, Input, every_marker, fuzz, seeds_of_cases

import asides
from asides import TokenParser
from asides.events import Event
from tests.support import cut, joined, markers

FIRST = 0x110000
"""The id of the first marker: behind every character."""
UNKNOWN = FIRST + 100_000
"""An id that the tokenizer does not have."""


class Letters:
    """A tokenizer with nothing but `encode`, `decode` and special tokens."""

    def __init__(self, special: Sequence[str]) -> None:
        self.special_tokens = {marker: FIRST + number for number, marker in enumerate(special)}
        self._find = re.compile("|".join(map(re.escape, special)) or "(?!)").split

    def encode(self, text: str) -> list[int]:
        """Ids; markers in the text are their own tokens."""
        found, place = [], 0
        for words in self._find(text):
            found += map(ord, words)
            place += len(words)
            if place < len(text):
                marker = next(each for each in self.special_tokens if text.startswith(each, place))
                found.append(self.special_tokens[marker])
                place += len(marker)
        return found

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ordinary ids."""
        return "".join(chr(id) for id in ids if id < FIRST)


@cache
def tokenizer(name: str) -> Letters:
    """The toy for a format."""
    return Letters(markers(asides.get_format(name)))


def check(raw: bytes) -> None:
    """Hold one input to the laws."""
    given = Input(raw)
    words = tokenizer(given.format.name)
    ids = list(map(ord, given.text)) if given.policies.get("seed") == 1 else words.encode(given.text)
    if given.policies.get("seed") == 2:
        ids = [UNKNOWN if id == ord("?") else id for id in ids]
    policies = {key: value for key, value in given.policies.items() if key not in ("prompt", "collect", "strict")}
    batches = [[ids], [[id] for id in ids], cut(ids, given.places)]  # type: ignore[type-var]
    first = read(given.format, words, batches[0], policies)
    for way in batches[1:]:
        if read(given.format, words, way, policies) != first:
            raise AssertionError("law 1: how many ids come at a time changes the result")
    before = 0
    for part in first[1].parts:
        if part.tokens is None or not before <= part.tokens[0] <= part.tokens[1] <= len(ids):
            raise AssertionError(f"spans in ids do not rise: {part}")
        before = part.tokens[1]


def read(
    format: asides.Format, words: Letters, batches: Sequence[Sequence[int]], policies: dict[str, object]
) -> tuple[list[Event], asides.Message]:
    """Feed ids, so many at a time."""
    parser = TokenParser(words, format, **{"seed": 0, **policies})  # type: ignore[arg-type]
    events: list[Event] = []
    for ids in batches:
        events += parser.feed(ids)
    events += parser.finish()
    return joined(events), parser.message


def show(raw: bytes) -> str:
    """The input in words."""
    given = Input(raw)
    return f"format {given.format.name!r}, policies {given.policies!r}, cut at {given.places}\ninput {given.text!r}"


if __name__ == "__main__":
    assert NAMES
    fuzz(check, seeds_of_cases(), every_marker(), show)
