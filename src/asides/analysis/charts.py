"""Charts as inline SVG: bars, ranges, histograms. Knows numbers and names, nothing of what they measure.

Every chart has a title for those who do not see it, takes its colours from the page's classes, and escapes every word.
A chart is a list of SVG elements and a height; its width is the same for all, and the page scales it.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10

import msgspec

from ..terminal.table import clean, percent, shorten

WIDTH = 860
NAME = 250
"""Room for the name of a row, in the units of the drawing."""
NAME_COLUMNS = 30
"""Columns of text that fit into that room in a broad typeface."""
HISTOGRAM_NAME = 38
ROW = 34
COLUMN_COLOURS = 4


class Series(msgspec.Struct, frozen=True):
    """A name and its numbers."""

    name: str
    values: Sequence[float]
    note: str = ""
    """Written behind the last mark."""


def bars(
    title: str, heads: Sequence[str], rows: Sequence[Series], full: Sequence[float], write: str = "percent"
) -> str:
    """A bar for every number, in columns with a head each. `full` is what a full bar is in each column."""
    column = (WIDTH - NAME) / max(1, len(heads))
    room = column - 48  # the rest is for the number and some air
    drawn = [_text(NAME + column * at, 18, head, "head") for at, head in enumerate(heads)]
    for number, row in enumerate(rows):
        top = 30 + number * ROW
        drawn.append(_name(row.name, top + 17))
        for at, (value, most) in enumerate(zip(row.values, full, strict=True)):
            left = NAME + column * at
            length = room * min(1.0, value / most) if most else 0.0
            label = _written(value, write)
            drawn += [
                _rectangle(left, top + 4, room, 18, "rail"),
                _rectangle(left, top + 4, length, 18, "c0", f"{row.name}, {heads[at]}: {label}"),
                _text(left + room + 6, top + 18, label, "value"),
            ]
    return _drawing(title, drawn, 36 + len(rows) * ROW)


def stacked(title: str, kinds: Sequence[str], rows: Sequence[Series]) -> str:
    """A bar for every row, made of one stretch for each kind."""
    most = max((sum(row.values) for row in rows), default=0.0)
    room = WIDTH - NAME - 60
    drawn = []
    at = float(NAME)
    for number, kind in enumerate(kinds):
        drawn += [_rectangle(at, 6, 14, 14, f"c{number % COLUMN_COLOURS}"), _text(at + 20, 18, kind, "head")]
        at += 40 + 8 * len(kind)
    for number, row in enumerate(rows):
        top = 30 + number * ROW
        drawn.append(_name(row.name, top + 17))
        left = float(NAME)
        for which, value in enumerate(row.values):
            length = room * value / most if most else 0.0
            tooltip = f"{row.name}, {kinds[which]}: {value:.1f}"
            drawn.append(_rectangle(left, top + 4, length, 18, f"c{which % COLUMN_COLOURS}", tooltip))
            left += length
        drawn.append(_text(left + 6, top + 18, f"{sum(row.values):.1f}", "value"))
    return _drawing(title, drawn, 36 + len(rows) * ROW)


def ranges(title: str, rows: Sequence[Series]) -> str:
    """For every row five quantiles (10, 25, 50, 75, 90 in a hundred) on one axis of powers of ten."""
    numbers = [max(1.0, value) for row in rows for value in row.values]
    low = floor(log10(min(numbers, default=1.0)))
    high = max(low + 1, ceil(log10(max(numbers, default=10.0))))
    room = WIDTH - NAME - 90

    def place(value: float) -> float:
        return NAME + room * (log10(max(1.0, value)) - low) / (high - low)

    bottom = 12 + len(rows) * ROW
    drawn = []
    for power in range(low, high + 1):
        x = place(10**power)
        drawn += [_line(x, x, 6, bottom, "grid"), _text(x, bottom + 16, f"{10**power:,}", "tick")]
    for number, row in enumerate(rows):
        top = 10 + number * ROW
        p10, p25, p50, p75, p90 = row.values
        tooltip = f"{row.name}: median {p50:,.0f}, half of all from {p25:,.0f} to {p75:,.0f}"
        drawn += [
            _name(row.name, top + 17),
            _rectangle(place(p10), top + 10, max(1.0, place(p90) - place(p10)), 4, "c0 thin", tooltip),
            _rectangle(place(p25), top + 4, max(2.0, place(p75) - place(p25)), 16, "c0 soft", tooltip),
            _rectangle(place(p50) - 1.5, top + 2, 3, 20, "c0", tooltip),
            _text(WIDTH - 80, top + 17, row.note, "value"),
        ]
    return _drawing(title, drawn, bottom + 24)


def histograms(title: str, labels: Sequence[str], rows: Sequence[Series]) -> str:
    """A small histogram for every row, all on the same axes. `labels` name the bins; an empty one is not written."""
    across = 2
    width, height = (WIDTH - 40) / across, 150
    most = max((max(row.values, default=0.0) for row in rows), default=0.0)
    drawn = []
    for number, row in enumerate(rows):
        left, top = (width + 40) * (number % across), height * (number // across)
        base = top + height - 34
        each = width / len(labels)
        drawn += [_name(row.name, top + 16, left, HISTOGRAM_NAME), _line(left, left + width, base, base, "axis")]
        for at, value in enumerate(row.values):
            # What occurs at all can be seen.
            tall = max(1.5, 80 * value / most) if value else 0.0
            tooltip = f"{row.name}, {labels[at] or 'the bin between'}: {value:.1%}"
            drawn.append(_rectangle(left + at * each + 1, base - tall, each - 2, tall, "c0", tooltip))
        ticks = [(left + (at + 0.5) * each, label) for at, label in enumerate(labels) if label]
        drawn += [_text(x, base + 15, label, "tick") for x, label in ticks]
        drawn.append(_text(left + width, top + 16, row.note, "note"))
    return _drawing(title, drawn, ceil(len(rows) / across) * height)


def _written(value: float, write: str) -> str:
    return percent(value) if write == "percent" else f"{value:.2f}"


def _drawing(title: str, drawn: Sequence[str], height: float) -> str:
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH} {height:.0f}" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(drawn)}</svg>"
    )


def _name(name: str, y: float, x: float = 0.0, room: int = NAME_COLUMNS) -> str:
    whole = clean(name)
    shown = escape(shorten(whole, room))
    return f'<text class="name" x="{x:.1f}" y="{y:.1f}"><title>{escape(whole)}</title>{shown}</text>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _line(left: float, right: float, top: float, bottom: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{left:.1f}" x2="{right:.1f}" y1="{top:g}" y2="{bottom:g}"/>'


def _rectangle(x: float, y: float, width: float, height: float, kind: str, tooltip: str = "") -> str:
    shape = f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}" height="{height:.1f}"'
    return f"{shape}><title>{escape(clean(tooltip))}</title></rect>" if tooltip else f"{shape}/>"
