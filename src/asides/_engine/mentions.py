"""Mentions: whether a marker acts or is only quoted.

A marker is literal when a quote stands directly before it and the same quote directly after it, or after the marker
that closes it on the same line. The first quote must be an opening one.
"""

from __future__ import annotations

import re
from enum import Enum

from .markers import Found
from .members import members
from .tag_markers import LONGEST_TAG

PAIRS = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»"}
# What may stand before an opening quote besides whitespace. Behind a letter a quote is a closing one, so a marker
# between two quoted words acts.
BEFORE = frozenset("([{<（［｛「『【《〈")
LONGEST_REST = 1024
"""A tag that a marker begins is no longer than this behind the marker, in characters."""
_TAG_REST = re.compile(r"[^<>\n]*+")
REACH = 65_536
"""How far, in characters, the end of a line is waited for."""


class Verdict(Enum):
    """What a marker is."""

    ACTS = "it acts"
    LITERAL = "it is quoted"
    WAIT = "more must be seen"
    WAIT_FOR_WORDS = "more than whitespace must be seen"
    SPENT = "more would have to be seen than may be held back"


Verdicts = members(Verdict)


def quote_before(text: str, start: int, floor: int) -> str:
    """The closing quote that would make a marker at `start` a mention, or an empty string.

    `floor` is the index where the part's own text begins; what stands before it is no neighbour.
    """
    if start <= floor or start < 1:
        return ""
    opening = text[start - 1]
    if opening not in PAIRS:
        return ""
    at = start - 1
    closing = PAIRS[opening]
    # Two backticks quote code that holds one.
    if opening == "`" and at > floor and at > 0 and text[at - 1] == "`":
        at -= 1
        closing = "``"
    if at > floor and at > 0:
        before = text[at - 1]
        if not before.isspace() and before not in BEFORE:
            return ""
    return closing


class Lookahead:
    """Where a string stands next. Remembers what it searched, so that asking again and again stays linear."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str | re.Pattern[str], tuple[int, int, int, int]] = {}

    def find(self, needle: str | re.Pattern[str], text: str, base: int, at: int, end: int) -> tuple[int, int]:
        """Where `needle` stands in `text[at:end]`, or (-1, -1). `text[0]` stands at the offset `base`."""
        start = at
        known = self._known.get(needle)
        if known is not None and known[0] <= base + at:
            _, place, stop, until = known
            if place >= base + at:
                return (place - base, stop - base) if stop - base <= end else (-1, -1)
            if place < 0:
                longest = len(needle) if isinstance(needle, str) else LONGEST_TAG
                # Nothing was found up to `until`, but the needle may begin just before it.
                start = max(at, until - base - longest + 1)
        place, stop = _find(needle, text, start, end) if start < end else (-1, -1)
        found = (base + place, base + stop) if place >= 0 else (-1, -1)
        self._known[needle] = (base + at, *found, base + end)
        return place, stop


def _find(needle: str | re.Pattern[str], text: str, start: int, end: int) -> tuple[int, int]:
    if isinstance(needle, str):
        place = text.find(needle, start, end)
        return place, place + len(needle)
    match = needle.search(text, start, end)
    return match.span() if match is not None else (-1, -1)


def judge(
    text: str,
    base: int,
    found: Found,
    end: int,
    final: bool,
    *,
    floor: int,
    limit: int,
    lookahead: Lookahead,
) -> tuple[Verdict, int]:
    """Whether the marker that was found is a mention, and the index where the mention ends."""
    quote = quote_before(text, found.start, floor)
    if not quote:
        return Verdicts.ACTS, found.stop
    at = found.stop
    # The marker is only the beginning of a tag (`<invoke name=`): the closing quote stands behind the whole tag.
    if found.marker.unfinished:
        reach = at + min(limit, LONGEST_REST)
        tag = _TAG_REST.match(text, at, min(end, reach))
        rest = tag.end() if tag else at
        # Waiting ends at a distance from the marker, not at the end of a chunk, so that the chunking decides nothing.
        if rest == end < reach and not final:
            return Verdicts.WAIT, at
        if not text.startswith(">", rest, end):
            return Verdicts.ACTS, at
        at = rest + 1
    verdict = _follows(text, at, end, final, quote)
    closers = found.marker.closers
    if verdict is not Verdicts.ACTS:
        return verdict, at + len(quote)
    if not closers:
        return verdict, at

    reach = min(limit, REACH)
    newline, _ = lookahead.find("\n", text, base, at, end)
    line_end = newline if newline >= 0 else end
    # A quoted pair on one line. Of several spellings of the closer the first one counts.
    places = [span for closer in closers if (span := lookahead.find(closer, text, base, at, end))[0] >= 0]
    if places:
        _, stop = min(places)
        if stop <= min(line_end, at + reach):
            verdict = _follows(text, stop, end, final, quote)
            return verdict, found.stop if verdict is Verdicts.ACTS else stop + len(quote)
    if 0 <= newline - at <= reach:
        return Verdicts.ACTS, at
    if end - at > reach:
        return Verdicts.SPENT, at
    return (Verdicts.ACTS if final else Verdicts.WAIT), at


def _follows(text: str, at: int, end: int, final: bool, quote: str) -> Verdict:
    """Whether the quote stands at `at`."""
    if end - at >= len(quote):
        return Verdicts.LITERAL if text.startswith(quote, at) else Verdicts.ACTS
    if not final and quote.startswith(text[at:end]):
        return Verdicts.WAIT
    return Verdicts.ACTS
