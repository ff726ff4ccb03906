"""A report on a chat template in sentences, the same on a terminal and on the page."""

from __future__ import annotations

from ._report_subject import NextPrompt, TemplateReport, TwinReport

MOST_DIFFERENCES = 6
"""Of a training template that are listed."""


def title_of(report: TemplateReport) -> str:
    """What the conversation is that a report shows."""
    given = "with a tool" if report.tools else "without tools"
    return f"a conversation {given}, by whose words these are"


def sections(report: TemplateReport) -> list[tuple[str, list[str]]]:
    """Everything but the conversation: titles, each with its sentences."""
    lossy = [finding.says for finding in report.findings if finding.lossy]
    kept = [finding.says for finding in report.findings if not finding.lossy]
    following = [_next(each, report) for each in report.next_prompts]
    return [
        ("what is dropped or changed", lossy or ["nothing that was tried"]),
        *([("what else to know", kept)] if kept else []),
        (f"does the next prompt begin with all {report.unit}s so far?", following or ["could not be tried"]),
        ("what the model samples", _sampled(report)),
        ("what a training template would train by mistake", _twin(report)),
    ]


def _quoted(text: str, most: int = 70) -> str:
    text = text.replace("\n", "↵")
    return f"“{text}”" if len(text) <= most else f"“{text[: most // 2]} … {text[-(most // 2) :]}”"


def _next(each: NextPrompt, report: TemplateReport) -> str:
    if each.extends:
        return f"{each.case}: yes"
    whose = f" ({each.whose})" if each.whose else ""
    total = each.offset + each.lost
    return (
        f"{each.case}: no, {each.reason}{whose}; the first {each.offset} of {total} {report.unit}s are the same, "
        f"{each.lost} are lost"
    )


def _sampled(report: TemplateReport) -> list[str]:
    asks = f"the prompt supplies {_quoted(report.asks)}" if report.asks else "the prompt supplies no header"
    lines = [f"{asks}; the model writes what is marked *, {report.sampled} of the {report.total} {report.unit}s above"]
    if not report.stops:
        after = f"; after an answer the template writes {_quoted(report.after_stop)}" if report.after_stop else ""
        return [*lines, f"no token is known at which it stops{after}"]
    lines.append(f"it stops at {' or '.join(report.stops)}")
    if report.after_stop:
        lines.append(f"after an answer the template writes {_quoted(report.after_stop)}, which no model samples")
    return lines


def _twin(report: TemplateReport) -> list[str]:
    twin = report.twin
    if twin is None:
        return [report.twin_note]
    if twin.error:
        return [f"{twin.name}: could not be compared: {twin.error}"]
    lines = [_mistakes(twin, report.unit)]
    for each in twin.differences[:MOST_DIFFERENCES]:
        verb = "trained" if each.trained else "not trained"
        times = f", {each.times} times" if each.times > 1 else ""
        lines.append(f"{verb}: {_quoted(each.text)}{times}: {each.why}")
    if len(twin.differences) > MOST_DIFFERENCES:
        lines.append(f"and {len(twin.differences) - MOST_DIFFERENCES} more (--json)")
    if twin.otherwise:
        lines.append(
            f"it writes the conversation otherwise than the template itself, first at {_quoted(twin.otherwise)}"
        )
    return lines


def _mistakes(twin: TwinReport, unit: str) -> str:
    if not twin.mistaken and not twin.missing:
        return f"{twin.name}: nothing; it trains what the model samples, {twin.trained} {unit}s"
    missing = f"; it leaves out {twin.missing} that the model does write" if twin.missing else ""
    return f"{twin.name}: {twin.mistaken} of the {twin.trained} {unit}s that it trains no model writes{missing}"
