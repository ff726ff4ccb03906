"""The report: one HTML page of charts, tables and definitions. No script, no network; all texts of others escaped.

The page may be opened anywhere and passed on, so it holds nothing that could load or run something: a content security
policy allows its own style sheet, by its hash, and nothing else. Every chart has its numbers as a table beside it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from html import escape

from ..terminal.table import clean, cut, percent
from . import charts
from .charts import Series
from .figures import PARTS
from .report_style import STYLE
from .summary import NAMELESS, SHARE_EDGES, WORD_EDGES, Groups, Notable, Summary
from .turns import KINDS

CHARTED = 12
"""Groups that are drawn, those of the most replies; the table has all."""
WORD_LABELS = ("0", "", "16", "", "64", "", "256", "", "1k", "", "4k", "", "16k+")
SHARE_LABELS = ("0%", "", "20%", "", "40%", "", "60%", "", "80%", "90%+")
ODDITIES = (
    ("loop", "looping"),
    ("unclosed", "never closed"),
    ("empty", "empty thought"),
    ("drafts", "drafted calls"),
    ("broken_calls", "broken calls"),
)
DEFINITIONS = (
    ("thoughts", "stretches of thinking with anything in them."),
    ("steps", "paragraphs of the thoughts, and numbered lines."),
    ("words", "runs of letters and digits; of scripts without spaces, every letter."),
    ("share", "characters of thinking in those of thinking, answer and calls."),
    ("questions", "question marks that end something, in the thoughts."),
    (
        "turns of mind",
        "phrases that stop, correct, check or try another way; several in a row in one sentence are one.",
    ),
    ("repetition", "of all runs of 8 words in the thoughts, the share that had occurred before."),
    ("looping", "a passage stands at least three times in a row and covers at least 60 words."),
    ("never closed", "the output ended, or was stopped, inside a thought."),
    (
        "quality score",
        "a heuristic of form from 0 to 1, made of the parts shown here. It cannot tell whether a thought is right.",
    ),
)

Column = tuple[str, Callable[[Summary], str]]


def report(groups: Groups, *, title: str = "", notes: Sequence[str] = ()) -> str:
    """The page, whole. `title` says what was counted, `notes` what could not be."""
    whole = groups.all()
    largest = [(clean(name), summary) for name, summary in groups.largest_first()]
    if [name for name, _ in largest] == [NAMELESS]:
        largest = [("all", whole)]
    shown = largest[:CHARTED]
    body = [
        "<header><h1>How it thinks</h1>",
        f"<p>{escape(clean(title))}</p>",
        *(f'<p class="warning">{escape(clean(note))}</p>' for note in notes),
        "</header>",
    ]
    if not whole.replies:
        body.append("<p>There was nothing to count.</p>")
        return _page(body)
    body += [_cards(whole), _section("At a glance", _table(largest, whole))]
    if len(largest) > CHARTED:
        body.append(
            f'<p class="aside">The charts show the {CHARTED} groups of the most replies; the table has all.</p>'
        )
    body += [_length(shown), _share(shown), _turns(shown), _oddities(shown), _quality(shown), _notable(whole)]
    terms = "".join(f"<dt>{escape(name)}</dt><dd>{escape(meaning)}</dd>" for name, meaning in DEFINITIONS)
    body.append(_section("What the figures mean", f"<dl>{terms}</dl>"))
    return _page(body)


def _page(body: Sequence[str]) -> str:
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        '<link rel="icon" href="data:,">\n<title>asides: how it thinks</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<main>\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n"
    )


def _cards(whole: Summary) -> str:
    cards = [
        ("replies", f"{whole.replies:,}"),
        ("that think", percent(whole.fraction("thinking"))),
        ("words of thinking, median", f"{whole.quantile('thinking_words', 0.5):,.0f}"),
        ("thinking in all that was written", percent(whole.share)),
        ("turns of mind in 1,000 words", f"{whole.per_thousand_words('turns'):.1f}"),
        ("quality score, mean", f"{whole.mean('quality_score'):.2f}"),
    ]
    items = "".join(f"<li><strong>{value}</strong><span>{escape(name)}</span></li>" for name, value in cards)
    return f'<ul class="cards">{items}</ul>'


def _table(largest: Sequence[tuple[str, Summary]], whole: Summary) -> str:
    columns: list[Column] = [
        ("replies", lambda summary: f"{summary.replies:,}"),
        ("think", lambda summary: percent(summary.fraction("thinking"))),
        ("words, median", lambda summary: f"{summary.quantile('thinking_words', 0.5):,.0f}"),
        ("nine in ten at most", lambda summary: f"{summary.quantile('thinking_words', 0.9):,.0f}"),
        ("share", lambda summary: percent(summary.share)),
        ("steps, median", lambda summary: f"{summary.quantile('steps', 0.5):,.0f}"),
        ("questions in 1,000 words", lambda summary: f"{summary.per_thousand_words('questions'):.1f}"),
        ("turns in 1,000 words", lambda summary: f"{summary.per_thousand_words('turns'):.1f}"),
        ("repetition", lambda summary: percent(summary.mean("repetition"))),
        ("looping", lambda summary: percent(summary.fraction("loop"))),
        ("never closed", lambda summary: percent(summary.fraction("unclosed"))),
        ("calls", lambda summary: f"{summary.totals.get('calls', 0):,}"),
        ("quality", lambda summary: f"{summary.mean('quality_score'):.2f}"),
    ]
    if "thinking_tokens" in whole.spreads:
        columns.insert(4, ("tokens, median", lambda summary: f"{summary.quantile('thinking_tokens', 0.5):,.0f}"))
    if "seconds" in whole.spreads:
        columns.insert(4, ("seconds, median", lambda summary: f"{summary.quantile('seconds', 0.5):,.1f}"))
    rows = [*largest, ("all", whole)] if len(largest) > 1 else largest
    return _rows(
        "Every group in a row",
        ["", *(title for title, _ in columns)],
        [[name, *(write(summary) for _, write in columns)] for name, summary in rows],
    )


def _length(shown: Sequence[tuple[str, Summary]]) -> str:
    shares = (0.1, 0.25, 0.5, 0.75, 0.9)
    rows = []
    for name, summary in shown:
        values = [summary.quantile("thinking_words", share) for share in shares]
        rows.append(Series(name, values, f"{values[2]:,.0f}"))
    heads = ["10% below", "25% below", "median", "75% below", "90% below"]
    lead = (
        "Words in the thinking of a reply. The line is the median, the broad bar the middle half, "
        "the thin bar all but the shortest and longest tenth."
    )
    glance = _figure(charts.ranges("Words of thinking, quantiles", rows), heads, rows, "{:,.0f}".format)
    return _section(
        "How long it thinks",
        f"<p>{lead}</p>{glance}{_spread(shown, 'thinking_words', WORD_EDGES, WORD_LABELS, 'Words of thinking')}",
    )


def _share(shown: Sequence[tuple[str, Summary]]) -> str:
    lead = "<p>How much of what a reply writes is thinking, in characters.</p>"
    return _section(
        "How much of it is thinking", lead + _spread(shown, "share", SHARE_EDGES, SHARE_LABELS, "Share of thinking")
    )


def _spread(
    shown: Sequence[tuple[str, Summary]], measure: str, edges: Sequence[int], labels: Sequence[str], title: str
) -> str:
    rows = []
    for name, summary in shown:
        found = summary.spreads.get(measure)
        counts = found.bins(edges) if found else [0] * len(edges)
        total = sum(counts)
        rows.append(Series(name, [count / total if total else 0.0 for count in counts], f"{total:,} replies"))
    scale = 10 if measure == "share" else 1
    unit = "%" if measure == "share" else ""
    heads = [f"from {edge // scale:,}{unit}" for edge in edges]
    return _figure(charts.histograms(f"{title}, share of the replies in each bin", labels, rows), heads, rows, percent)


def _turns(shown: Sequence[tuple[str, Summary]]) -> str:
    rows = [Series(name, [summary.per_thousand_words(kind) for kind in KINDS]) for name, summary in shown]
    kinds = "".join(f"<dt>{escape(kind)}</dt><dd>{escape(meaning)}</dd>" for kind, meaning in KINDS.items())
    drawing = charts.stacked("Turns of mind in 1,000 words", list(KINDS), rows)
    figure = _figure(drawing, list(KINDS), rows, "{:.2f}".format)
    return _section("Turns of mind", f"<p>In 1,000 words of thinking.</p>{figure}<dl>{kinds}</dl>")


def _oddities(shown: Sequence[tuple[str, Summary]]) -> str:
    # The first two are shown even when there are none: that is what a person looks for.
    shown_kinds = [
        kind for kind in ODDITIES if kind in ODDITIES[:2] or any(summary.having.get(kind[0]) for _, summary in shown)
    ]
    heads = [title for _, title in shown_kinds]
    rows = [Series(name, [summary.fraction(kind) for kind, _ in shown_kinds]) for name, summary in shown]
    most = max((value for row in rows for value in row.values), default=0.0)
    drawing = charts.bars("Share of replies with something odd", heads, rows, [most] * len(heads))
    figure = _figure(drawing, heads, rows, percent)
    lead = f"<p>The share of replies with any. {f'A full bar is {percent(most)}.' if most else 'There were none.'}</p>"
    return _section("What went wrong", lead + figure)


def _quality(shown: Sequence[tuple[str, Summary]]) -> str:
    heads = ["score", *PARTS]
    rows = [Series(name, [summary.mean("quality_score"), *summary.quality.values()]) for name, summary in shown]
    drawing = charts.bars("Quality score and its parts, means", heads, rows, [1.0] * len(heads), "score")
    figure = _figure(drawing, heads, rows, "{:.2f}".format)
    lead = (
        "<p>A heuristic of form: the score is the mean of substance, structure, checking and steadiness, times "
        "freshness, times one half plus half of closed. It cannot tell whether a thought is right.</p>"
    )
    return _section("Quality score and its parts", lead + figure)


def _notable(whole: Summary) -> str:
    tables = []
    for title, notables in (("Longest loops", whole.loops), ("Longest thinking", whole.longest)):
        if notables:
            tables.append(
                f"<h3>{title}</h3>" + _rows(title, ["where", "words", "how it goes"], _places(notables), "places")
            )
    return _section("Replies that stand out", "".join(tables)) if tables else ""


def _places(notables: Sequence[Notable]) -> list[list[str]]:
    return [[clean(notable.place), f"{notable.words:,}", cut(clean(notable.excerpt), 160)] for notable in notables]


def _section(title: str, content: str) -> str:
    return f'<section id="{title.lower().replace(" ", "-")}"><h2>{escape(title)}</h2>{content}</section>'


def _figure(drawing: str, heads: Sequence[str], rows: Sequence[Series], write: Callable[[float], str]) -> str:
    """A chart with its numbers as a table, for those who cannot or would rather not read charts."""
    numbers = [[row.name, *map(write, row.values)] for row in rows]
    table = _rows("The figures of this chart", ["", *heads], numbers)
    return f"<figure>{drawing}<details><summary>As a table</summary>{table}</details></figure>"


def _rows(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "numbers") -> str:
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in heads)
    lines = []
    for name, *cells in rows:
        written = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{written}</tr>')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="{kind}">'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
