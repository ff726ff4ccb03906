"""Charts as inline SVG: bars, ranges, histograms. Knows numbers and names, nothing of what they measure.

A chart is a `<div class="chart">` of small drawings, which flow into as many columns as fit (`theme.css`). Inside a
drawing widths are in percent and heights in pixels, so it fills whatever place it gets, a telephone or a wide screen,
and its text keeps its size. No drawing has a style of its own: colours come from classes, and a content security policy
may forbid inline styles. Every chart has a title for those who do not see it, and every text is escaped.

    bars("Odd replies", ["looping"], [Series("qwen3", [0.02])], full=[0.1])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import ceil, floor, log10

import msgspec

from ..terminal._table import clean, percent, shorten

NAME_COLUMNS = 28
"""Columns of text that fit beside a value into the narrowest drawing."""
LINE_COLUMNS = 36
"""Columns of text that fill the narrowest drawing."""
ROW = 40
"""Pixels for a name, the bar below it and the space to the next."""
BAR_TOP, BAR = 18, 12
"""Where in its row a bar begins, and how high it is."""
PLOT = 80
"""Pixels of a histogram's highest column."""
SHORT_LABEL = 4
"""Characters of a label that may stand in the middle of the first and last column."""
COLOURS = 4
UNKNOWN = "–"
"""What is written for a figure that is not known."""


class Series(msgspec.Struct, frozen=True):
    """A name and its numbers; none where they are not known."""

    name: str
    values: Sequence[float]
    note: str = ""
    """Written beside the name."""


def bars(
    title: str,
    heads: Sequence[str],
    rows: Sequence[Series],
    full: Sequence[float],
    write: Callable[[float], str] = percent,
) -> str:
    """A drawing for each head, in it a bar for every row. `full` is what a full bar is under each head."""
    drawings = []
    for at, (head, most) in enumerate(zip(heads, full, strict=True)):
        drawn = [_text(0, 14, head, "head")]
        for number, row in enumerate(rows):
            top = 22 + number * ROW
            written = write(row.values[at]) if row.values else UNKNOWN
            drawn += _labels(row.name, written, top)
            drawn.append(_rectangle(0, top + BAR_TOP, 100, BAR, "rail"))
            if row.values:
                tooltip = f"{row.name}, {head}: {written}"
                drawn.append(_rectangle(0, top + BAR_TOP, _share(row.values[at], most), BAR, "c0", tooltip))
        drawings.append(_drawing(f"{title}: {head}", drawn, 22 + len(rows) * ROW))
    return _chart(title, drawings)


def stacked(title: str, kinds: Sequence[str], rows: Sequence[Series]) -> str:
    """A bar for every row, made of one stretch for each kind."""
    most = max((sum(row.values) for row in rows), default=0.0)
    drawn = _legend(kinds)
    for number, row in enumerate(rows):
        top, left = 30 + number * ROW, 0.0
        drawn += _labels(row.name, f"{sum(row.values):.1f}" if row.values else UNKNOWN, top)
        drawn.append(_rectangle(0, top + BAR_TOP, 100, BAR, "rail"))
        for which, value in enumerate(row.values):
            length = _share(value, most)
            tooltip = f"{row.name}, {kinds[which]}: {value:.1f}"
            drawn.append(_rectangle(left, top + BAR_TOP, length, BAR, f"c{which % COLOURS}", tooltip))
            left += length
    return _chart(title, [_drawing(title, drawn, 30 + len(rows) * ROW)], whole=True)


def ranges(title: str, rows: Sequence[Series]) -> str:
    """For every row five quantiles (10, 25, 50, 75, 90 in a hundred) on one axis of powers of ten."""
    numbers = [max(1.0, value) for row in rows for value in row.values]
    low = floor(log10(min(numbers, default=1.0)))
    high = max(low + 1, ceil(log10(max(numbers, default=10.0))))

    def place(value: float) -> float:
        return 100 * (log10(max(1.0, value)) - low) / (high - low)

    drawn = []
    for number, row in enumerate(rows):
        top = number * (ROW + 6)
        drawn += _labels(row.name, row.note, top)
        # Below the names only: a line through a name makes it hard to read.
        drawn += [_line(place(10**power), top + BAR_TOP, top + BAR_TOP + 20) for power in range(low, high + 1)]
        if row.values:
            p10, p25, p50, p75, p90 = row.values
            tooltip = f"{row.name}: median {p50:,.0f}, half of all from {p25:,.0f} to {p75:,.0f}"
            drawn += [
                _rectangle(place(p10), top + 26, max(0.2, place(p90) - place(p10)), 4, "c0 thin", tooltip),
                _rectangle(place(p25), top + 20, max(0.4, place(p75) - place(p25)), 16, "c0 soft", tooltip),
                _rectangle(min(99.4, max(0.0, place(p50) - 0.3)), top + 18, 0.6, 20, "c0", tooltip),
            ]
    bottom = len(rows) * (ROW + 6)
    for power in range(low, high + 1):
        anchor = "" if power == low else "end" if power == high else "middle"
        drawn.append(_text(place(10**power), bottom + 6, f"{10**power:,}", f"tick {anchor}".strip()))
    return _chart(title, [_drawing(title, drawn, bottom + 12)], whole=True)


def histograms(
    title: str,
    labels: Sequence[str],
    rows: Sequence[Series],
    write: Callable[[float], str] = "{:.1%}".format,
    names: Sequence[str] = (),
    own_scale: bool = False,
) -> str:
    """A small histogram for every row that has numbers, all on the same axes, or each on a scale of its own.

    `labels` stand below the columns, where they are not empty; `names` are what tooltips call them.
    """
    highest = max((max(row.values, default=0.0) for row in rows), default=0.0)
    each = 100 / max(1, len(labels))
    base = 36 + PLOT
    drawings = []
    for row in filter(lambda each: each.values, rows):
        most = max(row.values) if own_scale else highest
        drawn = [_name(row.name, 14, LINE_COLUMNS), _text(0, 30, row.note, "note"), _axis(base)]
        for at, value in enumerate(row.values):
            # What occurs at all can be seen.
            tall = max(1.5, PLOT * value / most) if value and most else 0.0
            tooltip = f"{row.name}, {names[at] if names else labels[at] or 'the bin between'}: {write(value)}"
            drawn.append(_rectangle((at + 0.06) * each, base - tall, each * 0.88, tall, "c0", tooltip))
        drawn += [_tick(at, len(labels), label, base + 15) for at, label in enumerate(labels) if label]
        drawings.append(_drawing(f"{title}: {clean(row.name)}", drawn, base + 20))
    return _chart(title, drawings)


def _tick(at: int, columns: int, label: str, y: float) -> str:
    """A label below its column; a long one at either end stays inside the drawing."""
    if len(label) > SHORT_LABEL and at in (0, columns - 1):
        return _text(100.0 if at else 0.0, y, label, "tick end" if at else "tick")
    return _text(100 * (at + 0.5) / columns, y, label, "tick middle")


def _share(value: float, most: float) -> float:
    return 100 * min(1.0, value / most) if most else 0.0


def _chart(title: str, drawings: Sequence[str], *, whole: bool = False) -> str:
    """Drawings that are one picture to who does not see them. `whole`: one drawing as wide as the page."""
    kind = "chart whole" if whole else "chart"
    return f'<div class="{kind}" role="img" aria-label="{escape(title)}">{"".join(drawings)}</div>'


def _drawing(title: str, drawn: Sequence[str], height: float) -> str:
    return f'<svg height="{height:.0f}"><title>{escape(title)}</title>{"".join(drawn)}</svg>'


def _legend(kinds: Sequence[str]) -> list[str]:
    """The kinds with their colours on one line, each with place for its own length."""
    lengths = [len(kind) + 3.5 for kind in kinds]
    drawn = []
    for number, kind in enumerate(kinds):
        left = 100 * sum(lengths[:number]) / sum(lengths)
        # A drawing inside the drawing begins at a percentage and goes on in pixels.
        swatch = f'<rect class="c{number % COLOURS}" width="12" height="12" y="2"/>'
        drawn.append(f'<svg x="{left:.2f}%">{swatch}<text class="note" x="18" y="13">{escape(kind)}</text></svg>')
    return drawn


def _labels(name: str, value: str, top: float) -> list[str]:
    """The name of a row and its value, at both ends of a line."""
    return [_name(name, top + 13, NAME_COLUMNS), _text(100, top + 13, value, "value")]


def _name(name: str, y: float, room: int) -> str:
    whole = clean(name)
    return f'<text class="name" y="{y:g}"><title>{escape(whole)}</title>{escape(shorten(whole, room))}</text>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.2f}%" y="{y:g}">{escape(text)}</text>'


def _line(x: float, top: float, bottom: float) -> str:
    return f'<line class="grid" x1="{x:.2f}%" x2="{x:.2f}%" y1="{top:g}" y2="{bottom:g}"/>'


def _axis(y: float) -> str:
    return f'<line class="axis" x1="0" x2="100%" y1="{y:g}" y2="{y:g}"/>'


def _rectangle(x: float, y: float, width: float, height: float, kind: str, tooltip: str = "") -> str:
    shape = f'<rect class="{kind}" x="{x:.2f}%" y="{y:g}" width="{max(0.0, width):.2f}%" height="{height:.1f}"'
    return f"{shape}><title>{escape(clean(tooltip))}</title></rect>" if tooltip else f"{shape}/>"
