"""The tables of `asides stats`: groups side by side while they fit, else one to a line. Counts nothing itself.

A `Row` is a figure: its name, how it is read off a `Summary`, how it is written, what a full bar is. Figures that no
reply has are left out; of a single reply there are no medians and no shares of replies. Bars and small histograms are
drawn with blocks of eighths, or in ASCII.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from math import nan

import msgspec

from ...analysis._figures import PARTS
from ...analysis._summary import SHARE_EDGES, WORD_EDGES, Summary
from ...analysis._turns import KINDS
from ...terminal._table import clean, columns, cut, pad, percent, shorten
from .read import Counting

LABEL = 33
"""Columns for the name of a figure."""
VALUE = 8
BAR = 9
CELL = VALUE + 1 + BAR
GAP = 3
NAME_LINES = 3
"""Lines that a group's name may take above its column."""
BOLD, DIM, CYAN, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[0m"
BLOCKS, LEVELS = " ▏▎▍▌▋▊▉█", " ▁▂▃▄▅▆▇█"
ASCII_LEVELS = " .:-=+*%#"
NAME, SHORT_BAR = 16, 8
"""Columns for a name, at least, and for a bar where each group has one line."""
WIDE = 100
"""Columns below which a line for each group leaves some figures out."""
LEGEND = "words, steps: medians. turns: in 1,000 words. loop, open: replies that loop, that never close a thought."


class Look(msgspec.Struct, frozen=True):
    """What can be drawn where the tables go."""

    width: int
    ascii: bool = False
    colour: bool = False


UNKNOWN = nan
"""The value of a figure that is not known for a group; it equals nothing, itself not either."""


class Row(msgspec.Struct, frozen=True):
    """A figure: its name, its value for a group, how it is written, and what a full bar is."""

    title: str
    value: Callable[[Summary], float]
    write: Callable[[float], str]
    full: float | None = None
    """None: the greatest value among the groups."""
    bar: bool = True


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def _yes(value: float) -> str:
    return "yes" if value else "no"


def _score(value: float) -> str:
    return f"{value:.2f}"


def rows(whole: Summary) -> list[Row]:
    """The figures that are shown: those that occur."""
    one = whole.replies == 1
    median, per = ("", "") if one else (" (median)", " per reply")

    def spread(name: str, title: str) -> Row:
        return Row(
            title + median, lambda summary: summary.quantile(name, 0.5) if name in summary.spreads else UNKNOWN, _number
        )

    def having(name: str, title: str) -> Row:
        if one:
            return Row(title, lambda summary: summary.fraction(name), _yes, bar=False)
        return Row(title, lambda summary: summary.fraction(name), percent, 1.0)

    def average(name: str, title: str) -> Row:
        return Row(title, lambda summary: summary.totals.get(name, 0) / max(1, summary.replies), _number)

    def rate(name: str, title: str) -> Row:
        if one:
            return Row(title, lambda summary: summary.turn_kinds.get(name, summary.totals.get(name, 0)), _number)
        suffix = "" if name in KINDS else " in 1,000 words"
        return Row(title + suffix, lambda summary: summary.per_thousand_words(name), _number)

    def part(name: str) -> Row:
        return Row(f"  {name}", lambda summary: summary.quality[name], _score, 1.0)

    most = Row("  p90", lambda summary: summary.quantile("thinking_words", 0.9), _number)
    mean = "" if one else " (mean)"
    measured = (("thinking_tokens", "tokens of thinking"), ("seconds", "seconds of thinking"))
    calls = (("drafts", "calls drafted in thinking"), ("calls", "calls"), ("broken_calls", "broken calls"))
    return [
        Row("replies", lambda summary: summary.replies, _number, bar=False),
        *([] if one else [having("thinking", "that think")]),
        spread("thinking_words", "words of thinking"),
        *([] if one else [most]),
        spread("thinking_characters", "characters of thinking"),
        *(spread(name, title) for name, title in measured if name in whole.spreads),
        spread("text_words", "words of the answer"),
        Row("thinking in all that was written", lambda summary: summary.share, percent, 1.0),
        average("blocks", f"thoughts{per}"),
        spread("steps", "steps"),
        rate("questions", "questions"),
        rate("turns", "backtracking"),
        *(rate(kind, f"  {kind}") for kind in KINDS),
        Row("repetition" + mean, lambda summary: summary.mean("repetition"), percent, 1.0),
        having("loop", "looping"),
        having("unclosed", "never closed"),
        having("empty", "with an empty thought"),
        *([having("beyond", "going on beyond the turn")] if whole.totals.get("beyond") else []),
        *(average(name, f"{title}{per}") for name, title in calls if whole.totals.get(name)),
        Row("form of the thoughts" + mean, lambda summary: summary.mean("quality_score"), _score, 1.0),
        *map(part, PARTS),
    ]


def tables(counting: Counting, look: Look) -> str:
    """Everything that is shown on a terminal."""
    groups = counting.groups.largest_first()
    if not groups:
        return "no replies to count\n"
    whole = counting.groups.all()
    lines = [_bold(counting.title(), look), ""]
    if not counting.by:
        lines += _side_by_side([("", whole)], whole, look)
    elif LABEL + len(groups) * (CELL + GAP) <= look.width:
        lines += _side_by_side(groups, whole, look)
    else:
        lines += _one_to_a_line(groups, look)
    lines += _notable(whole, look)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _side_by_side(groups: Sequence[tuple[str, Summary]], whole: Summary, look: Look) -> list[str]:
    lines = []
    if len(groups) > 1 or groups[0][0]:
        names = [_wrapped(name) for name, _ in groups]
        height = max(map(len, names))
        for at in range(height):
            cells = [pad(name[at] if at < len(name) else "", CELL) for name in names]
            lines.append(" " * LABEL + "".join(" " * GAP + _bold(cell, look) for cell in cells))
        lines.append("")
    for row in rows(whole):
        values = [row.value(summary) for _, summary in groups]
        full = row.full if row.full is not None else max((value for value in values if value == value), default=0.0)
        # Alone, a figure without a natural whole has nothing to be compared with.
        drawn = row.bar and (row.full is not None or len(groups) > 1)
        cells = [
            f"{row.write(value):>{VALUE}} " + (bar(value / full if full else 0.0, BAR, look) if drawn else " " * BAR)
            if value == value
            else f"{'-':>{VALUE}} " + " " * BAR
            for value in values
        ]
        lines.append(f"{row.title:<{LABEL}}" + "".join(" " * GAP + cell for cell in cells))
    if whole.replies > 1:
        lines += ["", *_spreads(groups, look)]
    return lines


def _spreads(groups: Sequence[tuple[str, Summary]], look: Look) -> list[str]:
    """How the figures are spread, drawn small."""
    lines = []
    for name, edges, title in (
        ("thinking_words", WORD_EDGES, "spread of words: 0 to 16,384+"),
        ("share", SHARE_EDGES, "spread of share: 0% to 100%"),
    ):
        spreads = [summary.spreads.get(name) for _, summary in groups]
        drawn = [pad(spark(found.bins(edges) if found else [], look), CELL) for found in spreads]
        lines.append(f"{title:<{LABEL}}" + "".join(" " * GAP + cell for cell in drawn))
    return lines


def _one_to_a_line(groups: Sequence[tuple[str, Summary]], look: Look) -> list[str]:
    shown: tuple[Row, ...] = (
        Row("replies", lambda summary: summary.replies, _number, bar=False),
        Row("think", lambda summary: summary.fraction("thinking"), percent, bar=False),
        Row("words", lambda summary: summary.quantile("thinking_words", 0.5), _number),
        Row("share", lambda summary: summary.share, percent, bar=False),
        Row("steps", lambda summary: summary.quantile("steps", 0.5), _number, bar=False),
        Row("turns", lambda summary: summary.per_thousand_words("turns"), _number, bar=False),
        Row("loop", lambda summary: summary.fraction("loop"), percent, bar=False),
        Row("open", lambda summary: summary.fraction("unclosed"), percent, bar=False),
    )
    if look.width < WIDE:
        shown = tuple(row for row in shown if row.title not in ("share", "steps", "open"))
    widths = [max(len(row.title), *(len(row.write(row.value(summary))) for _, summary in groups)) for row in shown]
    taken = sum(2 + width + (1 + SHORT_BAR if row.bar else 0) for row, width in zip(shown, widths, strict=True))
    name_width = max(NAME, min(look.width - taken, max(columns(clean(name)) for name, _ in groups)))
    header = "".join(
        f"  {row.title:>{width}}" + (" " * (1 + SHORT_BAR) if row.bar else "")
        for row, width in zip(shown, widths, strict=True)
    )
    lines = [_bold(" " * name_width + header, look)]
    most = [row.full or max(row.value(summary) for _, summary in groups) for row in shown]
    for name, summary in groups:
        line = pad(shorten(clean(name), name_width), name_width)
        for row, width, full in zip(shown, widths, most, strict=True):
            value = row.value(summary)
            line += f"  {row.write(value):>{width}}"
            if row.bar:
                line += " " + bar(value / full if full else 0.0, SHORT_BAR, look)
        lines.append(line)
    return [*lines, "", LEGEND]


def _notable(whole: Summary, look: Look) -> list[str]:
    """Where to look first: the loops."""
    if not whole.loops:
        return []
    lines = ["", _bold("longest loops", look)]
    for notable in whole.loops:
        words = f"{notable.words:>8,} words  "
        place = clean(notable.place)
        lines.append(f"{words}{place}")
        lines.append(" " * len(words) + cut(clean(notable.excerpt), look.width - len(words)))
    return lines


def bar(share: float, width: int, look: Look) -> str:
    """A bar of this share of a width, in eighths of a column."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    if look.ascii:
        drawn = "#" * round(eighths / 8)
    else:
        drawn = BLOCKS[8] * (eighths // 8) + (BLOCKS[eighths % 8] if eighths % 8 else "")
    drawn = f"{drawn:<{width}}"
    return f"{CYAN}{drawn}{PLAIN}" if look.colour else drawn


def spark(counts: Sequence[int], look: Look) -> str:
    """Counts as a row of columns. One that is not zero can be seen."""
    levels = ASCII_LEVELS if look.ascii else LEVELS
    most = max(counts, default=0)
    return "".join(levels[max(1, round(8 * count / most))] if count else levels[0] for count in counts)


def _wrapped(name: str) -> list[str]:
    lines = textwrap.wrap(clean(name), CELL, break_long_words=True) or [""]
    if len(lines) > NAME_LINES:
        lines = [*lines[: NAME_LINES - 1], shorten(" ".join(lines[NAME_LINES - 1 :]), CELL)]
    return lines


def _bold(text: str, look: Look) -> str:
    return f"{BOLD}{text}{PLAIN}" if look.colour and text.strip() else text
