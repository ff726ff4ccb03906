"""An audit's report for others: JUnit XML for a CI, one HTML page for people. What a server sent is text, never markup.

XML 1.0 has no place for most control characters, not even as references, so they become pictures, as on a terminal.
The page is made of the same pieces as that of `asides stats`: no script, nothing loaded.
"""

from __future__ import annotations

import re
from html import escape

from ..analysis._report import page, section, table
from ..dialects._framing import to_json
from ..terminal._sanitize import sanitize
from ._audit import AuditReport
from ._verdicts import CODES, GROUPS, RESULTS, CheckResult

_NOT_XML = re.compile("[\ufffe\uffff]")


def to_junit(report: AuditReport) -> str:
    """The report as JUnit XML: a failure is one, what differs passes with its reason, what is unsure was skipped."""
    cases = "".join(map(_case, report.results))
    counts = f'tests="{len(report.results)}" failures="{report.count("fail")}" skipped="{report.count("inconclusive")}"'
    name = _xml(f"asides audit {report.url} {report.model}")
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites {counts}>\n<testsuite name="{name}" {counts} errors="{int(bool(report.stopped))}">\n{cases}'
        f"<system-err>{_xml(report.stopped)}</system-err>\n</testsuite>\n</testsuites>\n"
    )


def _case(result: CheckResult) -> str:
    opening = f'<testcase classname="{_xml(result.api)}" name="{_xml(f"{result.check} {result.how}".strip())}"'
    if result.result == "pass":
        return f"{opening}/>\n"
    meaning = CODES[result.code]
    message = _xml(f"{result.code}: {meaning.why}")
    if result.result == "inconclusive":
        return f'{opening}><skipped message="{message}"/></testcase>\n'
    if result.result == "differs":
        return f"{opening}><system-out>{message}</system-out></testcase>\n"
    text = "\n".join((result.detail, f"hurts: {meaning.hurts}", result.curl, result.came))
    return f'{opening}><failure type="{meaning.group}" message="{message}">{_xml(text)}</failure></testcase>\n'


def _xml(text: str) -> str:
    return escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", sanitize(text)))


def to_html(report: AuditReport) -> str:
    """The report as a page."""
    counts = ", ".join(f"{report.count(kind)} {kind}" for kind in RESULTS)
    body = [
        "<header><h1>Audit of a model server</h1>",
        f"<p>{_html(report.url)}, {_html(report.model)}: {counts}; {report.requests} requests</p>",
        f'<p class="warning">It ended early: {_html(report.stopped)}</p>' if report.stopped else "",
        "</header>",
    ]
    for group in GROUPS:
        failed = [result for result in report.results if result.result == "fail" and result.group == group]
        if failed:
            body.append(section(group.capitalize(), "".join(map(_failure, failed))))
    rows = [
        [f"{each.check} {each.how}".strip(), each.api, each.result, each.code, sanitize(each.detail)]
        for each in report.results
    ]
    every = table("Every case in a row", ["case", "API", "result", "code", "what was seen"], rows, "numbers places")
    body.append(section("Every case", every))
    return page(body, "audit of a model server")


def _failure(result: CheckResult) -> str:
    meaning = CODES[result.code]
    sent = to_json(result.sent).decode() if result.sent is not None else ""
    also = f" Also: {', '.join(result.also)}." if result.also else ""
    return (
        f"<h3>{_html(result.check)} {result.how} ({result.api}): {result.code}</h3>"
        f"<p>{_html(meaning.why)}. {_html(result.detail)}{also}</p><p>Whom it hurts: {_html(meaning.hurts)}.</p>"
        f"<details><summary>Sent</summary><pre>{_html(sent)}</pre></details>"
        f"<details><summary>Came</summary><pre>{_html(result.came)}</pre></details>"
        f"<details><summary>Again</summary><pre>{_html(result.curl)}</pre></details>"
    )


def _html(text: str) -> str:
    return escape(sanitize(text))
