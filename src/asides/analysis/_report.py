"""The report: one HTML page of charts, tables and definitions. No script, no network; all texts of others escaped.

The page may be opened anywhere and passed on, so it holds nothing that could load or run something: a content security
policy allows its own style sheet, by its hash, and nothing else. Every chart has its numbers as a table beside it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import groupby

from ..terminal._table import clean, cut, percent
from ._chart_figures import CHARTED, DEFINITIONS, ChartFigure, chart_figures, median, named_groups
from ._report_style import style
from ._summary import Groups, Notable, Summary
from ._turns import KINDS

Column = tuple[str, Callable[[Summary], str]]


def report(groups: Groups, *, title: str = "", notes: Sequence[str] = ()) -> str:
    """The page, whole. `title` says what was counted, `notes` what could not be."""
    whole = groups.all()
    largest = named_groups(groups)
    body = [
        "<header><h1>How it thinks</h1>",
        f"<p>{escape(clean(title))}</p>",
        *(f'<p class="warning">{escape(clean(note))}</p>' for note in notes),
        "</header>",
    ]
    if not whole.replies:
        body.append("<p>There was nothing to count.</p>")
        return page(body)
    body += [_tiles(whole), section("At a glance", _groups_table(largest, whole))]
    if len(largest) > CHARTED:
        body.append(
            f'<p class="aside muted">The charts show the {CHARTED} groups of the most replies; the table has all.</p>'
        )
    body += [section(title, "".join(map(_chart, drawn))) for title, drawn in groupby(chart_figures(groups), _heading)]
    body.append(_notable(whole))
    body.append(section("What the figures mean", _terms(DEFINITIONS)))
    return page(body)


def page(body: Sequence[str], title: str = "how it thinks") -> str:
    """A page that loads nothing. `body` is HTML in which all texts of others are escaped; `title` is our own."""
    sheet = style()
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        '<link rel="icon" href="data:,">\n<title>asides: ' + escape(title) + "</title>\n"
        f"<style>{sheet}</style>\n</head>\n<body>\n<main>\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n"
    )


def _tiles(whole: Summary) -> str:
    tiles = [
        ("reply" if whole.replies == 1 else "replies", f"{whole.replies:,}"),
        ("that think", percent(whole.fraction("thinking"))),
        ("words of thinking, median", median(whole, "thinking_words")),
        ("thinking in all that was written", percent(whole.share)),
        ("backtracking in 1,000 words", f"{whole.per_thousand_words('turns'):.1f}"),
        ("never closed", percent(whole.fraction("unclosed"))),
    ]
    items = "".join(f"<li><strong>{value}</strong><span>{escape(name)}</span></li>" for name, value in tiles)
    return f'<ul class="tiles">{items}</ul>'


def _groups_table(largest: Sequence[tuple[str, Summary]], whole: Summary) -> str:
    columns: list[Column] = [
        ("replies", lambda summary: f"{summary.replies:,}"),
        ("think", lambda summary: percent(summary.fraction("thinking"))),
        ("words, median", lambda summary: median(summary, "thinking_words")),
        ("words, p90", lambda summary: median(summary, "thinking_words", share=0.9)),
        ("share", lambda summary: percent(summary.share)),
        ("steps, median", lambda summary: median(summary, "steps")),
        ("questions in 1,000 words", lambda summary: f"{summary.per_thousand_words('questions'):.1f}"),
        ("backtracking in 1,000 words", lambda summary: f"{summary.per_thousand_words('turns'):.1f}"),
        ("repetition", lambda summary: percent(summary.mean("repetition"))),
        ("looping", lambda summary: percent(summary.fraction("loop"))),
        ("never closed", lambda summary: percent(summary.fraction("unclosed"))),
        ("calls", lambda summary: f"{summary.totals.get('calls', 0):,}"),
    ]
    if "thinking_tokens" in whole.spreads:
        columns.insert(4, ("tokens, median", lambda summary: median(summary, "thinking_tokens")))
    if "seconds" in whole.spreads:
        columns.insert(4, ("seconds, median", lambda summary: median(summary, "seconds", "{:,.1f}")))
    rows = [*largest, ("all", whole)] if len(largest) > 1 else largest
    return table(
        "Every group in a row",
        ["", *(title for title, _ in columns)],
        [[name, *(write(summary) for _, write in columns)] for name, summary in rows],
    )


def _notable(whole: Summary) -> str:
    tables = []
    for title, notables in (("Longest loops", whole.loops), ("Longest thinking", whole.longest)):
        if notables:
            tables.append(
                f"<h3>{title}</h3>"
                + table(title, ["where", "words", "how it goes"], _places(notables), "numbers places")
            )
    return section("Replies that stand out", "".join(tables)) if tables else ""


def _places(notables: Sequence[Notable]) -> list[list[str]]:
    return [[clean(notable.place), f"{notable.words:,}", cut(clean(notable.excerpt), 160)] for notable in notables]


def section(title: str, content: str) -> str:
    """A section; `content` is HTML."""
    return f'<section id="{title.lower().replace(" ", "-")}"><h2>{escape(title)}</h2>{content}</section>'


def _heading(chart: ChartFigure) -> str:
    return chart.section


def _chart(chart: ChartFigure) -> str:
    """A chart with its numbers as a table, for those who cannot or would rather not read charts."""
    figures = table("The figures of this chart", ["", *chart.heads], chart.rows)
    terms = _terms(KINDS.items()) if chart.section == "Backtracking" else ""
    return (
        f"<p>{escape(chart.lead)}</p><figure>{chart.svg}"
        f"<details><summary>As a table</summary>{figures}</details></figure>{terms}"
    )


def _terms(terms: Iterable[tuple[str, str]]) -> str:
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(meaning)}</dd>" for name, meaning in terms)
    return f'<dl class="terms">{items}</dl>'


def table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "numbers") -> str:
    """A table, each row with its name first; all cells are escaped."""
    # The corner above the names is no heading.
    head = "".join(f'<th scope="col">{escape(title)}</th>' if title else "<td></td>" for title in heads)
    lines = []
    for name, *cells in rows:
        written = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{written}</tr>')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="{kind}">'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
