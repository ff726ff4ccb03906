"""The charts of a summary, for the HTML report and for the page: each with its title, its drawing and its numbers.

What is charted and in which words is decided here, once; `charts` draws, and whoever shows a chart puts its numbers as
a table beside it. With `days`, the same figures follow over time: by day, by week or by month, whatever gives at most
`MOST_COLUMNS` columns.

    for chart in chart_figures(groups):
        chart.title, chart.lead, chart.svg, chart.heads, chart.rows
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta

import msgspec

from ..terminal._table import amount, clean, percent
from . import _charts as charts
from ._charts import UNKNOWN, Series
from ._figures import PARTS
from ._summary import NAMELESS, SHARE_EDGES, WORD_EDGES, Groups, Summary
from ._turns import KINDS

CHARTED = 12
"""Groups that are drawn, those of the most replies; tables have all."""
MOST_COLUMNS = 45
"""Columns of a chart over time."""
WORD_LABELS = ("0", "", "16", "", "64", "", "256", "", "1k", "", "4k", "", "16k+")
SHARE_LABELS = ("0%", "", "20%", "", "40%", "", "60%", "", "", "90%+")
ODDITIES = (
    ("loop", "looping"),
    ("unclosed", "never closed"),
    ("empty", "empty thought"),
    ("drafts", "drafted calls"),
    ("broken_calls", "broken calls"),
    ("beyond", "beyond the turn"),
)
DEFINITIONS = (
    ("thoughts", "stretches of thinking with anything in them."),
    ("steps", "paragraphs of the thoughts, and numbered lines."),
    ("words", "runs of letters and digits; of scripts without spaces, every letter."),
    ("share", "characters of thinking in those of thinking, answer and calls."),
    ("questions", "question marks that end something, in the thoughts."),
    (
        "backtracking",
        "phrases that stop, correct, check or try another way; several in a row in one sentence are one.",
    ),
    ("repetition", "of all runs of 8 words in the thoughts, the share that had occurred before."),
    ("looping", "a passage stands at least three times in a row and covers at least 60 words."),
    ("never closed", "the output ended, or was stopped, inside a thought."),
    ("beyond the turn", "the model went on as another: the output holds turns after its own, which are not read."),
    (
        "form",
        "a heuristic from 0 to 1 of how the thoughts look, made of the parts shown. Words drawn at random look well: "
        "it cannot tell whether a thought is right, or means anything.",
    ),
)

Named = Sequence[tuple[str, Summary]]


class ChartFigure(msgspec.Struct, frozen=True):
    """A chart, what it shows in a sentence or two, and its numbers as a table."""

    section: str
    """The heading that it stands under; several charts may share one."""
    title: str
    lead: str
    svg: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    """The name of a group and then a cell for each head."""


def named_groups(groups: Groups) -> list[tuple[str, Summary]]:
    """The groups with names that can be shown, those of the most replies first; a single nameless one is `all`."""
    largest = [(clean(name), summary) for name, summary in groups.largest_first()]
    return [("all", summary) for _, summary in largest] if [name for name, _ in largest] == [NAMELESS] else largest


def median(summary: Summary, measure: str, write: str = "{:,.0f}", share: float = 0.5) -> str:
    """A quantile of a measure, or a dash where no reply of the group has it."""
    return write.format(summary.quantile(measure, share)) if measure in summary.spreads else UNKNOWN


def chart_figures(groups: Groups, days: Mapping[str, Groups] | None = None) -> list[ChartFigure]:
    """Every chart. `days` are groups by the day of their replies, as `2026-11-16`."""
    shown = named_groups(groups)[:CHARTED]
    if not shown:
        return []
    return [
        _length(shown),
        _spread(
            shown,
            "How long it thinks",
            "thinking_words",
            WORD_EDGES,
            WORD_LABELS,
            "Words of thinking",
            "The share of the replies with so many words of thinking.",
        ),
        _spread(
            shown,
            "How much of it is thinking",
            "share",
            SHARE_EDGES,
            SHARE_LABELS,
            "Share of thinking",
            "How much of what a reply writes is thinking, in characters.",
        ),
        _turns(shown),
        _oddities(shown),
        *_over_time(days or {}, [name for name, _ in shown]),
        _form(shown),
    ]


def _figure(
    section: str,
    title: str,
    lead: str,
    svg: str,
    heads: Sequence[str],
    rows: Sequence[Series],
    write: Callable[[float], str],
) -> ChartFigure:
    cells = [[row.name, *(map(write, row.values) if row.values else [UNKNOWN] * len(heads))] for row in rows]
    return ChartFigure(section, title, lead, svg, heads, cells)


def _length(shown: Named) -> ChartFigure:
    shares = (0.1, 0.25, 0.5, 0.75, 0.9)
    rows = []
    for name, summary in shown:
        values = [summary.quantile("thinking_words", share) for share in shares] if summary.thinking else []
        rows.append(Series(name, values, f"{values[2]:,.0f}" if values else "does not think"))
    title = "Words of thinking, quantiles"
    lead = (
        "Words in the thinking of a reply. The line is the median, the broad bar the middle half, "
        "the thin bar all but the shortest and longest tenth."
    )
    heads = ["10% below", "25% below", "median", "75% below", "90% below"]
    return _figure("How long it thinks", title, lead, charts.ranges(title, rows), heads, rows, "{:,.0f}".format)


def _spread(
    shown: Named, section: str, measure: str, edges: Sequence[int], labels: Sequence[str], title: str, lead: str
) -> ChartFigure:
    rows = []
    for name, summary in shown:
        found = summary.spreads.get(measure)
        counts = found.bins(edges) if found else [0] * len(edges)
        total = sum(counts)
        note = amount(total, "reply", "replies")
        rows.append(Series(name, [count / total for count in counts] if total else [], note))
    scale, unit = (10, "%") if measure == "share" else (1, "")
    heads = [f"from {edge // scale:,}{unit}" for edge in edges]
    drawing = charts.histograms(f"{title}, share of the replies in each bin", labels, rows, names=heads)
    return _figure(section, title, lead, drawing, heads, rows, percent)


def _turns(shown: Named) -> ChartFigure:
    rows = [
        Series(name, [summary.per_thousand_words(kind) for kind in KINDS] if summary.thinking else [])
        for name, summary in shown
    ]
    title, heads = "Backtracking in 1,000 words", list(KINDS)
    lead = "In 1,000 words of thinking."
    return _figure("Backtracking", title, lead, charts.stacked(title, heads, rows), heads, rows, "{:.2f}".format)


def _oddities(shown: Named) -> ChartFigure:
    # The first two are shown even when there are none: that is what a person looks for.
    kinds = [
        kind for kind in ODDITIES if kind in ODDITIES[:2] or any(summary.having.get(kind[0]) for _, summary in shown)
    ]
    heads = [title for _, title in kinds]
    rows = [Series(name, [summary.fraction(kind) for kind, _ in kinds]) for name, summary in shown]
    most = max((value for row in rows for value in row.values), default=0.0)
    title = "Share of replies with something odd"
    lead = f"The share of replies with any. {f'A full bar is {percent(most)}.' if most else 'There were none.'}"
    drawing = charts.bars(title, heads, rows, [most] * len(heads))
    return _figure("What went wrong", title, lead, drawing, heads, rows, percent)


def _form(shown: Named) -> ChartFigure:
    heads = ["form", *PARTS]
    rows = [
        Series(name, [summary.mean("quality_score"), *summary.quality.values()] if summary.thinking else [])
        for name, summary in shown
    ]
    title, write = "Form of the thoughts and its parts, means", "{:.2f}".format
    lead = (
        "How the thoughts look, not whether they are right or mean anything: words drawn at random can get 1.00. It is "
        "the mean of substance, structure, checking and steadiness, times freshness, halved where nothing is closed."
    )
    drawing = charts.bars(title, heads, rows, [1.0] * len(heads), write)
    return _figure("Form of the thoughts", title, lead, drawing, heads, rows, write)


def _over_time(days: Mapping[str, Groups], names: Sequence[str]) -> list[ChartFigure]:
    """Words, share and oddities by day, by week or by month. Nothing where there is only one of them."""
    unit, columns = _columns(days)
    if len(columns) < 2:
        return []
    labels = [start if at in (0, len(columns) - 1) else "" for at, start in enumerate(columns)]
    measures: tuple[tuple[str, str, Callable[[Summary], float], Callable[[float], str]], ...] = (
        (
            "Words of thinking",
            "the median, each model on a scale of its own",
            lambda each: each.quantile("thinking_words", 0.5),
            "{:,.0f}".format,
        ),
        ("Share of thinking", "characters of thinking in all that was written", lambda each: each.share, percent),
        ("Looping", "the share of replies with a loop", lambda each: each.fraction("loop"), percent),
        (
            "Never closed",
            "the share of replies with a thought that never closed",
            lambda each: each.fraction("unclosed"),
            percent,
        ),
    )
    return [
        _measure_over_time(f"{title} by {unit}", f"{title} by {unit}: {lead}.", columns, labels, names, value, write)
        for title, lead, value, write in measures
    ]


def _measure_over_time(
    title: str,
    lead: str,
    columns: Mapping[str, Groups],
    labels: Sequence[str],
    names: Sequence[str],
    value: Callable[[Summary], float],
    write: Callable[[float], str],
) -> ChartFigure:
    found = {start: dict(named_groups(groups)) for start, groups in columns.items()}
    rows = []
    for name in names:
        values = [value(each[name]) if name in each else 0.0 for each in found.values()]
        rows.append(Series(name, values, f"at most {write(max(values))}" if any(values) else "none"))
    # Shares are compared at a glance; lengths of models that differ tenfold would leave one of them flat.
    drawing = charts.histograms(title, labels, rows, write, list(columns), own_scale=write is not percent)
    cells = [
        [name, *(write(value(each[name])) if name in each else UNKNOWN for each in found.values())] for name in names
    ]
    return ChartFigure("Over time", title, lead, drawing, list(columns), cells)


def _columns(days: Mapping[str, Groups]) -> tuple[str, dict[str, Groups]]:
    """What a column is, and the groups of each by its first day; columns without a reply are there too."""
    if not days:
        return "day", {}
    first, last = date.fromisoformat(min(days)), date.fromisoformat(max(days))
    length = (last - first).days + 1
    unit = "day" if length <= MOST_COLUMNS else "week" if length <= 7 * MOST_COLUMNS else "month"
    columns: dict[str, Groups] = {}
    day = _first_day(first, unit)
    while day <= last:
        columns[day.isoformat()] = Groups()
        step = {"day": 1, "week": 7, "month": 32}[unit]
        day = _first_day(day + timedelta(days=step), unit)
    for key, groups in sorted(days.items()):
        columns[_first_day(date.fromisoformat(key), unit).isoformat()].merge(groups)
    return unit, columns


def _first_day(day: date, unit: str) -> date:
    if unit == "month":
        return day.replace(day=1)
    return day - timedelta(days=day.weekday()) if unit == "week" else day
