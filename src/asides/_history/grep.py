"""Lines of a text that match a pattern, with lines of context around them, as grep chooses them. Knows no store."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ..errors import UsageError


class MatchedLine(msgspec.Struct, frozen=True):
    """A line to show."""

    number: int
    """Counted from 1."""
    text: str
    matches: bool
    """False for a line of context."""
    gap: bool
    """Whether lines were left out between this and the line shown before it."""


def compile_pattern(
    pattern: str, *, fixed: bool = False, ignore_case: bool = False, word: bool = False
) -> re.Pattern[str]:
    """Compile a pattern with grep's options. A `UsageError` says what is wrong with it."""
    source = re.escape(pattern) if fixed else pattern
    if word:
        source = rf"(?<!\w)(?:{source})(?!\w)"
    try:
        return re.compile(source, re.IGNORECASE if ignore_case else re.NOFLAG)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"{pattern!r} is not a regular expression: {error}; -F finds it as plain text") from None


def matching_lines(text: str, pattern: re.Pattern[str], before: int = 0, after: int = 0) -> Iterator[MatchedLine]:
    """The lines that match, with as many before and after each."""
    lines = text.removesuffix("\n").split("\n")
    hits = [number for number, line in enumerate(lines) if pattern.search(line)]
    matched = set(hits)
    shown = -1
    for hit in hits:
        for number in range(max(hit - before, shown + 1), min(hit + after + 1, len(lines))):
            yield MatchedLine(number + 1, lines[number], number in matched, gap=0 <= shown < number - 1)
            shown = number
