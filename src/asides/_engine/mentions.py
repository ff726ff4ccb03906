"""Mentions: whether a marker acts or is only talked about. Text alone is judged, never ids.

Four things make a marker a mention, asked in this order. Each looks at the *line*: what stands before the marker, back
to a line's end or to where the content begins, at most `LINE` characters.

    quotes    “<think>”  "<think>a</think>"  «</think>»  <code></think></code>      an opening quote and its closing one
    spans     `re.sub(r"<think>.*?</think>", "", s)`                                a code span that closes on its line
    blocks    four spaces before it; in a fence of a thought an opener and as many closes
    place     The <think> tag opens.  The <|im_end|> token.                         inside a line, in no sentence's end

(Fences of a text are followed by `fences.py`.) Waiting ends at a distance from the marker, never at the end of a chunk,
so the chunking decides nothing. Only the place in a line gives a notice: it is the one that is a guess.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from enum import Enum

from .markers import Actions, Found, Marker, Table
from .members import members
from .tag_markers import LONGEST_TAG

LINE = 4096
"""How much of a line, or of a thought's block, is looked at before a marker, in characters."""
SPAN = 2048
"""A code span closes within so many characters behind a marker in it."""
LONGEST_REST = 1024
"""A tag that a marker begins is no longer than this behind the marker, in characters."""
REACH = 65_536
"""How far, in characters, the end of a line is waited for."""

_PAIRS = {
    "“": ("”",),
    "‘": ("’",),
    "«": ("»",),
    "„": ("“", "”"),
    "‚": ("‘", "’"),
    "「": ("」",),
    "『": ("』",),
    "《": ("》",),
    "〈": ("〉",),
    "【": ("】",),
    "‹": ("›",),
}
_ELEMENTS = tuple(f"<{name}>" for name in ("code", "pre", "kbd", "tt"))
_STRAIGHT = "\"'＂"
_SPACES = " \u00a0\u202f"
QUOTES = frozenset((*_PAIRS, *_STRAIGHT, "`", ">"))
"""Characters that a marker which is quoted may stand directly behind."""
_BRACKETS = "([{<（［｛「『【《〈"
_NOT_BEFORE_QUOTE = ".!?)]}%\"'`”’»＂"
"""Behind one of these a straight quote closes."""
_SPACELESS = "\u0e00\u0e80\u1100\u1200\u3040\u3100\u3400\u4dc0\u4e00\ua000\uac00\ud7b0\uf900\ufb00\uff66\uffa0"
"""The letters of scripts without spaces (Thai, Hangul, kana, Han), as the first of each range and the first behind it.
Not a pattern: to compile one with these ranges took a fifth of the package's import."""
LOOSE = frozenset(_BRACKETS + "|*_/=~#-–—→,;、，`" + _STRAIGHT + "".join(_PAIRS))
"""Behind one of these a marker is not joined to a word."""
_TAG_REST = re.compile(r"[^<>\n]*+")
_RUN = re.compile(r"`+|''")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})([^\n`]*)")
_FENCE_ALONE = re.compile(r"\s*(?:`{3,}|~{3,})\w*\s*")
_LIST_NUMBER = re.compile(r"\s*\d+[.)]\s*")
_SENTENCE_ENDS = ".!?…。！？"
_CLOSING = "\"'”’»“‘)]}*_）］｝」』】》〉＂`"
_PUNCTUATION = ",.;:!?)"
GRAMMAR = frozenset("{}[]()<>=｜")
"""Characters that only a call would have between its tags."""


class Verdict(Enum):
    """What a marker is."""

    ACTS = "it acts"
    LITERAL = "it is talked about"
    INLINE = "it is talked about, as its place in the line shows"
    WAIT = "more must be seen"
    WAIT_FOR_WORDS = "more than whitespace must be seen"
    SPENT = "more would have to be seen than may be held back"


Verdicts = members(Verdict)


# Quotes.


def quotes_before(before: str) -> tuple[str, ...]:
    """The closing quotes, any of which makes a marker behind this text of its content a mention; none where no opening
    quote stands directly before it."""
    last = before[-1:]
    if last in _PAIRS:
        return _PAIRS[last]
    if last == ">":
        element = next((each for each in _ELEMENTS if before.endswith(each)), "")
        return (f"</{element[1:]}",) if element else ()
    if last == "`":
        # Two backticks quote code that holds one.
        size = 2 if before.endswith("``") else 1
        behind = before[-size - 1 : -size]
        return ("`" * size,) if not behind or behind.isspace() or behind in _BRACKETS else ()
    if last and last in _SPACES and before[-2:-1] == "«":
        return tuple(f"{space}»" for space in _SPACES)
    return (last,) if last and last in _STRAIGHT and _opens(before, last) else ()


def _opens(before: str, quote: str) -> bool:
    """Whether the straight quote that ends this text opens."""
    behind = before[-2:-1]
    if not behind or behind.isspace():
        return True
    if _is_spaceless(behind):
        return before[before.rfind("\n") + 1 :].count(quote) % 2 == 1
    return not behind.isalnum() and behind not in _NOT_BEFORE_QUOTE


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


def judge_quotes(
    before: str,
    text: str,
    base: int,
    found: Found,
    end: int,
    final: bool,
    *,
    table: Table,
    limit: int,
    lookahead: Lookahead,
) -> tuple[Verdict, int]:
    """Whether the marker that was found is quoted, and the index where the mention ends.

    `before` is what stands before it in its content.
    """
    quotes = quotes_before(before)
    if not quotes:
        return Verdicts.ACTS, found.stop
    at = found.stop
    # The marker is only the beginning of a tag (`<invoke name=`): the closing quote stands behind the whole tag.
    if found.marker.unfinished:
        reach = at + min(limit, LONGEST_REST)
        tag = _TAG_REST.match(text, at, min(end, reach))
        rest = tag.end() if tag else at
        if rest == end < reach and not final:
            return Verdicts.WAIT, at
        if not text.startswith(">", rest, end):
            return Verdicts.ACTS, at
        at = rest + 1
    verdict, stop = _follows(text, at, end, final, quotes, table, limit)
    closers = found.marker.closers
    if verdict is not Verdicts.ACTS or not closers:
        return verdict, stop if verdict is Verdicts.LITERAL else at

    reach = min(limit, REACH)
    newline, _ = lookahead.find("\n", text, base, at, end)
    line_end = newline if newline >= 0 else end
    # A quoted pair on one line. Of several spellings of the closer the first one counts.
    places = [span for closer in closers if (span := lookahead.find(closer, text, base, at, end))[0] >= 0]
    if places:
        _, stop = min(places)
        if stop <= min(line_end, at + reach):
            verdict, behind = _follows(text, stop, end, final, quotes, table, limit)
            return verdict, found.stop if verdict is Verdicts.ACTS else behind
    if 0 <= newline - at <= reach:
        return Verdicts.ACTS, at
    if end - at > reach:
        return Verdicts.SPENT, at
    return (Verdicts.ACTS if final else Verdicts.WAIT), at


def _follows(
    text: str, at: int, end: int, final: bool, quotes: tuple[str, ...], table: Table, limit: int
) -> tuple[Verdict, int]:
    """Whether one of the quotes stands at `at`, or behind further markers that stand there one behind the other; and
    where it ends."""
    start = at
    # No further than may be held back, wherever the chunk ends.
    while at - start <= limit:
        for quote in quotes:
            if text.startswith(quote, at, end):
                return Verdicts.LITERAL, at + len(quote)
        rest = text[at : min(end, at + table.longest)]
        if not final and at + len(rest) == end:
            begins = any(quote.startswith(rest) for quote in quotes) or (rest and table.begins(text, at, end) == at)
            if begins:
                return Verdicts.WAIT, start
        marker = table.place_at(text, at, end)
        if marker is None:
            break
        at = marker
    return Verdicts.ACTS, start


def _is_spaceless(letter: str) -> bool:
    return bisect_right(_SPACELESS, letter) % 2 == 1


# Code spans.


_SPANS = re.compile(
    r"^\s*`{3,}"  # a fence
    r"|(?<!`)`+(?!`)(?=\s+\S)"  # a run before whitespace opens nothing, unless nothing else comes before the marker
    r"|(?<!`)(?:``(?!`).*?(?:(?<!`)``(?!`)|'')|(`+)(?!`).*?(?<!`)\1(?!`))"  # a span that is closed
)
"""What a line holds that is no open code span. One search, however many runs there are: it is made for each marker."""


def open_run(line: str) -> int:
    """How many backticks the run has that opens a code span which is open at the end of this line; 0 where none is."""
    left = _SPANS.sub("x", line)
    at = left.find("`")
    return len(left[at:]) - len(left[at:].lstrip("`")) if at >= 0 else 0


def judge_span(size: int, text: str, at: int, end: int, final: bool, limit: int) -> tuple[Verdict, int]:
    """Whether the code span that `size` backticks have opened closes behind the marker that ends at `at`, on its line;
    and the index of the run that closes it."""
    reach = at + min(limit, SPAN)
    stop = min(end, reach)
    newline = text.find("\n", at, stop)
    stop = newline if newline >= 0 else stop
    for match in _RUN.finditer(text, at, stop):
        run = match.group()
        # A run that ends where the chunk does may go on.
        if match.end() == end and not final:
            return Verdicts.WAIT, at
        goes_on = match.end() < end and text[match.end()] == run[0] == "`"
        if not goes_on and ((run[0] == "`" and len(run) == size) or (run == "''" and size == 2)):
            return Verdicts.LITERAL, match.start()
    waits = newline < 0 and end < reach and not final
    return (Verdicts.WAIT if waits else Verdicts.ACTS), at


def closing_of_shown(before: str) -> tuple[str, ...]:
    """What closes the code span or the quotes that a call behind this text would be shown in; none where none is open.

    Whitespace, also a line's end, may stand between the opening and the call.
    """
    words = before.rstrip()
    line = words[words.rfind("\n") + 1 :]
    size = open_run(line) if line.endswith("`") else 0
    if size:
        return ("`" * size,)
    return quotes_before(words) if not line.endswith("`") else ()


# Blocks.


def is_indented(before: str) -> bool:
    """Whether what follows this text of a part is indented as code: four columns or a tab, behind words."""
    line = before[before.rfind("\n") + 1 :]
    return not line.strip() and bool(before.strip()) and ("\t" in line or len(line) >= 4)


def open_fence(before: str) -> int:
    """Where the content of the fenced block begins that is open at the end of this text; -1 where none is."""
    at, opened, mark = 0, -1, ""
    while at <= len(before):
        stop = before.find("\n", at)
        line = before[at : stop if stop >= 0 else len(before)]
        match = _FENCE.match(line)
        if match is not None and stop >= 0:
            run, info = match.groups()
            if not mark:
                opened, mark = stop + 1, run
            elif run[0] == mark[0] and len(run) >= len(mark) and not info.strip():
                opened, mark = -1, ""
        if stop < 0:
            break
        at = stop + 1
    return opened


# The place in a line.


def judge_place(
    marker: Marker, before: str, text: str, at: int, end: int, final: bool, *, table: Table, closes: bool, limit: int
) -> Verdict:
    """Whether the place of a marker in its line shows that it is talked about.

    `before` is what stands before it in its content, `text[at:end]` what follows it. `closes`: it may end a thought
    here. In a text, a stray may not.
    """
    action = marker.action
    stops = action is Actions.STOP or action is Actions.LEAVE
    if stops:
        # Nearly every stop shows by its neighbours that it is one, so that nobody need look at the line.
        follows = text[at : min(end, at + 1)] or ("\n" if final else "")
        if not before[-1:].isspace() or (follows not in _PUNCTUATION and (follows == "\n" or not follows.isspace())):
            return Verdicts.ACTS
    line = before[before.rfind("\n") + 1 :]
    inside = bool(line.strip()) and _FENCE_ALONE.fullmatch(line) is None
    if not inside or marker.text[0].isalnum() or marker.text[0].isspace() or marker.weak:
        return Verdicts.ACTS
    last = line[-1]
    spaceless = _is_spaceless(last)
    loose = (last.isspace() or last in LOOSE or spaceless) and not ends_sentence(line)
    after = text[at : min(end, at + 2)]
    if action is Actions.OPEN:
        if not loose:
            return Verdicts.ACTS
        return _judge_opener(line, spaceless, text, at, end, final, limit)
    if stops:
        if not loose:
            return Verdicts.ACTS
        verdict = _before_lower(text, at, end, final, limit)
        return _before_punctuation(after, final) if verdict is Verdicts.ACTS else verdict
    if closes:
        if loose and last.isspace():
            verdict = _before_punctuation(after, final)
            if verdict is not Verdicts.ACTS:
                return verdict
        return _before_lower(text, at, end, final, limit) if _names_opener(line, table) else Verdicts.ACTS
    if action is Actions.STRAY and loose:
        return _judge_stray(table, text, at, end, final, limit)
    return Verdicts.ACTS


def is_inside_line(before: str) -> bool:
    """Whether what follows this text stands inside a line, not joined to a word, behind words that end no sentence."""
    line = before[before.rfind("\n") + 1 :]
    if not line.strip() or _FENCE_ALONE.fullmatch(line) is not None:
        return False
    last = line[-1]
    loose = last.isspace() or last in LOOSE or _is_spaceless(last)
    return loose and not ends_sentence(line)


def are_words(body: str, inside_line: bool) -> bool:
    """Whether what stands between the tags of a call is plain words, and the tags are talked about."""
    if any(character in GRAMMAR for character in body):
        return False
    if not body:
        return inside_line
    spaced = body[0] == " " and body[1:2] != " " and len(body.split()) > 1
    return spaced and (inside_line or "\n" not in body)


def ends_sentence(line: str) -> bool:
    """Whether the words of this line end a sentence."""
    words = line.rstrip().rstrip(_CLOSING)
    if words[-1:] not in _SENTENCE_ENDS or not words:
        return False
    return not words.endswith(("e.g.", "i.e.")) and _LIST_NUMBER.fullmatch(line) is None


def _words_from(text: str, at: int, end: int, limit: int) -> int:
    """The index behind spaces at `at`, of which no more than may be held back are passed over."""
    stop = min(end, at + limit)
    while at < stop and text[at] != "\n" and text[at].isspace():
        at += 1
    return at


def _judge_opener(line: str, spaceless: bool, text: str, at: int, end: int, final: bool, limit: int) -> Verdict:
    place = _words_from(text, at, end, limit)
    if place - at >= limit:
        return Verdicts.ACTS
    if place == end and not final:
        return Verdicts.WAIT
    # A thought begins where an opener ends its line; in a block quote it is shown.
    if place == end or text[place] == "\n":
        return Verdicts.INLINE if not line.strip().strip(">").strip() else Verdicts.ACTS
    joined = place == at and text[place].isalnum()
    return Verdicts.ACTS if joined and not spaceless else Verdicts.INLINE


def _judge_stray(table: Table, text: str, at: int, end: int, final: bool, limit: int) -> Verdict:
    """A stray close inside a line is talked about if words follow it there."""
    place = _words_from(text, at, end, limit)
    if place == end or place - at >= limit:
        return Verdicts.ACTS if final or place - at >= limit else Verdicts.WAIT
    if text[place] == "\n" or table.place_at(text, place, end) is not None:
        return Verdicts.ACTS
    if not final and table.begins(text, place, end) == place:
        return Verdicts.WAIT
    return Verdicts.INLINE


def _before_lower(text: str, at: int, end: int, final: bool, limit: int) -> Verdict:
    """Whether whitespace and a lower-case letter follow."""
    place = _words_from(text, at, end, limit)
    if place == end or place - at >= limit:
        return Verdicts.ACTS if final or place - at >= limit else Verdicts.WAIT
    return Verdicts.INLINE if place > at and text[place].islower() else Verdicts.ACTS


def _before_punctuation(after: str, final: bool) -> Verdict:
    """Whether punctuation follows directly, and then whitespace."""
    if after and after[0] not in _PUNCTUATION:
        return Verdicts.ACTS
    if len(after) < 2:
        return Verdicts.ACTS if final else Verdicts.WAIT
    return Verdicts.INLINE if after[1].isspace() else Verdicts.ACTS


def _names_opener(line: str, table: Table) -> bool:
    """Whether an opener of thinking is talked about on this line."""
    for marker in table.markers.values():
        if marker.action in (Actions.OPEN, Actions.NESTED):
            place = line.find(marker.text)
            if place > 0 and (line[place - 1].isspace() or line[place - 1] in LOOSE or _is_spaceless(line[place - 1])):
                return True
    return False
