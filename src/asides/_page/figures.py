"""Figures of what history keeps, by model and by day, with the charts of `asides stats`. Counts; keeps no text."""

from __future__ import annotations

import time
from typing import Any

from .._history import History, ReplyFilter
from ..analysis._chart_figures import DEFINITIONS, chart_figures
from ..analysis._figures import analyze_reply
from ..analysis._summary import Groups, Summary

MOST_REPLIES = 20_000
"""The newest that are counted."""
MOST_SECONDS = 20.0
"""Seconds that counting may take: a person waits for it."""


def count_history(store: History, where: ReplyFilter) -> dict[str, Any]:
    """The figures of the newest replies, as many as can be counted in time."""
    groups, days = Groups(), dict[str, Groups]()
    counted, deadline = 0, time.monotonic() + MOST_SECONDS
    truncated = False
    for kept in store.latest(where):
        if counted == MOST_REPLIES or time.monotonic() > deadline:
            truncated = True
            break
        figures = analyze_reply(kept.reply)
        groups.add(kept.reply.model, figures)
        days.setdefault(f"{kept.time:%Y-%m-%d}", Groups()).add(kept.reply.model, figures)
        counted += 1
    return {
        "replies": counted,
        "truncated": truncated,
        "models": [{"model": name, **_write_model(summary)} for name, summary in groups.largest_first()],
        "by_day": [
            {"day": day, "model": name, **_write_day(summary)}
            for day, found in sorted(days.items())
            for name, summary in found.largest_first()
        ],
        "charts": [
            {
                "section": chart.section,
                "title": chart.title,
                "lead": chart.lead,
                "svg": chart.svg,
                "table": {"heads": chart.heads, "rows": chart.rows},
            }
            for chart in chart_figures(groups, days)
        ],
        "definitions": DEFINITIONS,
    }


def _write_day(summary: Summary) -> dict[str, Any]:
    return {
        "replies": summary.replies,
        "words_median": _quantile(summary, "thinking_words", 0.5),
        "share": summary.share,
        "loop": summary.fraction("loop"),
        "unclosed": summary.fraction("unclosed"),
    }


def _write_model(summary: Summary) -> dict[str, Any]:
    return {
        **_write_day(summary),
        "think": summary.fraction("thinking"),
        "words_p90": _quantile(summary, "thinking_words", 0.9),
        "turns_per_1000": summary.per_thousand_words("turns") if summary.thinking else None,
        "repetition": summary.mean("repetition") if summary.thinking else None,
        "seconds_median": _quantile(summary, "seconds", 0.5),
    }


def _quantile(summary: Summary, measure: str, share: float) -> float | None:
    """A quantile; None where no reply has the measure."""
    return summary.quantile(measure, share) if measure in summary.spreads else None
