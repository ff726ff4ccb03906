"""`asides audit URL`: asks a server, and prints what it does wrong. Flags in, exit codes out.

The checks are in `asides.audit`; here is what a person sees of them: what will be sent before anything is, progress
while it runs, a table, and the failures with the command that shows each again. Ctrl-C ends the reply that is being
read, and what was found until then is printed and written as if the audit had ended there.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from shutil import get_terminal_size
from types import FrameType

from ...audit._apis import APIS
from ...audit._audit import MOST_TOKENS, AuditReport, first_model, fitting, planned, run_audit
from ...audit._manifest import Manifest, read_manifest
from ...audit._verdicts import CODES, GROUPS, RESULTS, CheckResult
from ...audit._wire import KEY_VARIABLE, AuditLimits, Sender, needs_consent
from ...client._http import read_address
from ...errors import UsageError
from ...terminal._progress import Progress
from ...terminal._table import clean, fitted
from .. import FAILED, INTERRUPTED, ODD, OK
from ..options import Arguments
from ..streams import BOLD, STDOUT, OutputStream, Streams

DESCRIPTION = f"""\
Audits the model server at URL: asks it in each API, whole and streamed, and
lists which thoughts it leaks, which calls it loses, which text it drops and
which shapes are wrong. With --manifest the server has loaded a parrot (`asides
audit parrot`), so what the model writes is known; without, whatever the model
writes is judged by its shape. One request at a time, at most 2 a second, at
most {MOST_TOKENS} tokens each. {KEY_VARIABLE} is sent if it is set, and never shown.
"""
EXAMPLES = f"""\
examples:
  asides audit http://127.0.0.1:8080
  asides audit http://127.0.0.1:8080 --manifest parrots/qwen3
  asides audit 127.0.0.1:8000 --api chat --junit audit.xml --html audit.html
  asides audit parrot --help            make a checkpoint that writes scripts

exit codes:
  {OK}    nothing is wrong
  {ODD}    something is wrong
  {FAILED}    wrong usage, no server, or nothing could be judged
  {INTERRUPTED}  stopped by Ctrl-C, after printing what was found
"""


def audit(options: argparse.Namespace) -> int:
    """`asides audit URL`."""
    if options.script == "parrot" and not options.manifest:
        raise UsageError("--script parrot needs --manifest, the folder that `asides audit parrot` wrote")
    if options.script == "none":
        options.manifest = None
    address = read_address(options.url)
    if not options.remote and needs_consent(address):
        raise UsageError(
            f"{address} is neither on this machine nor in a private network; --remote audits it all the same"
        )
    manifest = read_manifest(options.manifest) if options.manifest else None
    limits = AuditLimits(requests=options.requests, idle=options.timeout, seconds=3 * options.timeout)
    sender = Sender(address, os.environ.get(KEY_VARIABLE, "").strip(), limits)
    streams = Streams()
    if manifest is not None:
        every, manifest = len(manifest.scripts), fitting(manifest, options.api, options.requests)
        if len(manifest.scripts) < every:
            streams.message(f"{len(manifest.scripts)} of {every} scripts: --requests and --api leave room for more")
    model = options.model or first_model(sender)
    most = min(planned(options.api, manifest, sender, model) + sender.sent, options.requests)
    seconds = math.ceil(most / limits.per_second)
    streams.message(f"at most {most} requests to {address}, {limits.per_second:g} a second: {seconds} seconds or more")
    streams.flush()
    report = _audit(sender, model, options.api, manifest, streams, most)
    if report.stopped:
        streams.message(f"ended early: {clean(report.stopped)}")
        streams.flush()
    _write(options, report, streams)
    if sender.stopping:
        return INTERRUPTED
    if report.count("fail"):
        return ODD
    return FAILED if report.stopped or not report.count("pass") else OK


def _audit(
    sender: Sender, model: str, apis: Sequence[str], manifest: Manifest | None, streams: Streams, most: int
) -> AuditReport:
    def stop(number: int, frame: FrameType | None) -> None:
        sender.stop()
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second one ends at once

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, stop)
    try:
        with Progress(streams.err, "asked", total=most) as progress:
            return run_audit(
                sender,
                model,
                apis,
                manifest,
                lambda requests, label: progress.show(requests, f"{requests} of {most} requests, {clean(label)}"),
            )
    finally:
        signal.signal(signal.SIGINT, before)


def _write(options: argparse.Namespace, report: AuditReport, streams: Streams) -> None:
    from ...audit._reports import to_html, to_junit  # here, because most audits write neither

    for path, make in ((options.junit, to_junit), (options.html, to_html)):
        if path:
            Path(path).write_text(make(report), encoding="utf-8", errors="replace")
            streams.message(f"wrote {path}")
    streams.flush()
    output = OutputStream(STDOUT)
    if options.json:
        # Not msgspec: what a server sent may hold half a surrogate pair, which it refuses.
        output.write_bytes(json.dumps(report.to_dict(), indent=2).encode() + b"\n")
    else:
        width = get_terminal_size((100, 24)).columns if output.terminal else None
        for line in _lines(report, width):
            output.write_line(line) if not line.isupper() else output.draw(_headed(output, line))
    output.flush()


def _headed(output: OutputStream, line: str) -> str:
    before, after = output.style(BOLD)
    return f"{before}{line}{after}\n"


def _lines(report: AuditReport, width: int | None) -> list[str]:
    columns: list[list[str]] = [["CASE"], ["API"], ["HOW"], ["RESULT"], ["CODE"], ["SEEN"]]
    for each in report.results:
        cells = (each.check, each.api, each.how, each.result, each.code, each.detail)
        for column, cell in zip(columns, cells, strict=True):
            column.append(clean(cell[:400]))
    lines = fitted(columns, width, spare=("HOW", "CODE"))
    for group in GROUPS:
        failed = [each for each in report.results if each.result == "fail" and each.group == group]
        if failed:
            lines += ["", group.upper()]
            for each in failed:
                lines += _described(each)
    counts = ", ".join(f"{report.count(kind)} {kind}" for kind in RESULTS)
    return [*lines, "", f"{clean(report.model)}: {counts}; {report.requests} requests"]


def _described(result: CheckResult) -> list[str]:
    meaning = CODES[result.code]
    also = f" (also {', '.join(result.also)})" if result.also else ""
    return [
        f"{clean(result.check)}, {result.api} {result.how}: {meaning.why}{also}",
        f"  seen   {clean(result.detail)}",
        f"  hurts  {meaning.hurts}",
        f"  again  {clean(result.curl)}",
    ]


def _apis(written: str) -> list[str]:
    names = [name.strip() for name in written.split(",") if name.strip()]
    unknown = [name for name in names if name not in APIS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"must be some of {', '.join(APIS)}, not {written!r}")
    return list(dict.fromkeys(names))


def _count(written: str) -> int:
    if not written.isdecimal() or not 1 <= int(written[:9]) <= 100_000:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to 100000, not {written!r}")
    return int(written)


def _seconds(written: str) -> float:
    try:
        value = float(written)
    except ValueError:
        value = 0.0
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"must be seconds, up to 3600, not {written!r}")
    return value


def make_parser() -> Arguments:
    """The parser of `asides audit`, without the address."""
    parser = Arguments(
        prog="asides audit",
        usage="asides audit [options] URL\n       asides audit parrot [options]",
        description=DESCRIPTION,
        epilog=EXAMPLES,
    )
    parser.add_argument("--model", metavar="NAME", help="the model to ask (default: the first that is listed)")
    parser.add_argument(
        "--api", type=_apis, default=list(APIS), metavar="LIST", help=f"the APIs to ask in (default: {','.join(APIS)})"
    )
    parser.add_argument(
        "--script",
        choices=("parrot", "none"),
        help="what the model writes: the scripts of a parrot, or anything (default: parrot with --manifest)",
    )
    parser.add_argument("--manifest", metavar="DIR", help="the folder of the parrot that the server has loaded")
    parser.add_argument("--requests", type=_count, default=400, metavar="N", help="requests at most (default: 400)")
    parser.add_argument(
        "--timeout", type=_seconds, default=60.0, metavar="SECONDS", help="silence to wait for (default: 60)"
    )
    parser.add_argument("--remote", action="store_true", help="audit an address outside private networks")
    showing = parser.add_argument_group("what to show")
    showing.add_argument("--json", action="store_true", help="write the report as JSON")
    showing.add_argument("--junit", metavar="FILE", help="write JUnit XML to this file")
    showing.add_argument("--html", metavar="FILE", help="write one HTML page that loads nothing to this file")
    return parser
