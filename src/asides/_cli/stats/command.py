"""`asides stats`: how a model thinks, in figures: of a reply, of files of traces, or of the history.

Flags in, exit codes out. Reading and counting are in `read`, the tables for a terminal in `table`, the page that
`--html` writes in `asides.analysis._report`. What could not be read is reported on standard error, and reading goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from .. import FAILED, INTERRUPTED, OK
from ..filter import report_unknown_model
from ..options import Arguments, add_reading, policies
from ..streams import STDOUT, Interrupt, OutputStream, Streams
from .read import Counting, count_files, count_history

if TYPE_CHECKING:
    from ...terminal._progress import Progress
    from .jobs import Jobs

DESCRIPTION = """\
Measures how a model thinks: lengths, steps, questions, backtracking ("wait",
"let me check", in several languages), repetition, loops, and thoughts that
were never closed. FILE is a model's output as text, or a file of traces with a
raw output in one of the fields of each: JSON Lines, a JSON array, CSV (these
also .gz, .zst), Parquet, Arrow; also a folder, a glob or an address such as
s3://bucket/*.parquet. Without FILE, or with `-`, standard input is read.
"""
EXAMPLES = f"""\
The field with the output is guessed (output, response, completion, text...)
unless --field names it. Lines that are not JSON, or have no output, are
counted, reported and skipped. docs/reference/figures.md explains every figure.
The quality score is a heuristic: it does not judge whether a thought is right.

examples:
  asides stats reply.txt                   one reply
  asides stats traces.jsonl --by model     compare models
  asides stats replies.csv --model Qwen/Qwen3-8B
  asides stats --by-file a.jsonl b.jsonl   compare files
  asides stats traces/*.jsonl --by model --html report.html
  asides stats --jobs auto traces.jsonl    use every core
  asides stats --history --by model        the saved replies
  some-model | asides stats --json         write JSON, for another program

exit codes:
  {OK}    success
  {FAILED}    wrong usage, or something could not be read or written
  {INTERRUPTED}  stopped by Ctrl-C, after printing the figures so far
"""


def run(arguments: list[str]) -> int:
    """`asides stats`."""
    options = _parse(arguments)
    setup: dict[str, Any] = {
        # A worker makes the format itself: not every one can be sent.
        "format": options.format,
        "tags": options.tags,
        "model": options.model,
        "policies": policies(options),
        "field": options.field or "",
        "seconds_field": options.seconds_field or "",
        "by": options.by or "",
        "by_file": options.by_file,
        "tokenizer": options.tokenizer or "",
    }
    counting = Counting(**setup)
    report_unknown_model(counting.reading)
    streams = Streams()
    make_jobs = None
    if options.jobs > 1 and sys.platform == "win32":
        streams.message("several processes need a POSIX system (Linux, macOS, WSL); one counts, to the same figures")
    elif options.jobs > 1:
        make_jobs = _jobs(options.jobs, setup, counting)
    with Interrupt() as interrupt:
        if options.history is not None:
            count_history(options.history, options.since, options.until, counting, interrupt, streams)
        else:
            count_files(options.files or ["-"], options.reads, counting, interrupt, streams, make_jobs)
        interrupted = interrupt.came
    if not interrupted:
        counting.check_names()
    if interrupted:
        streams.message("interrupted; these are the figures so far")
    for note in counting.notes():
        streams.message(note)
    streams.flush()
    # A second Ctrl-C ends at once from here on: nothing is left to be saved.
    if options.html:
        _write_report(options.html, counting, streams, private=options.history is not None)
    _show(options, counting)
    if interrupted:
        return INTERRUPTED
    return FAILED if counting.failed else OK


def _jobs(count: int, setup: dict[str, Any], counting: Counting) -> Callable[[Progress], Jobs]:
    from .jobs import Jobs  # here, because one process needs none of it

    return lambda progress: Jobs(count, setup, counting, progress)


def job_count(written: str) -> int:
    """How many processes `--jobs` asks for."""
    if written in ("0", "auto"):
        allowed = getattr(os, "sched_getaffinity", None)
        return len(allowed(0)) if allowed else os.cpu_count() or 1
    if not written.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a number of processes or auto, not {written!r}")
    return int(written)


def _show(options: argparse.Namespace, counting: Counting) -> None:
    output = OutputStream(STDOUT)
    if options.json:
        # Not msgspec: names and excerpts may hold half a surrogate pair, which it refuses.
        output.write_bytes(json.dumps(counting.to_dict(), indent=2).encode() + b"\n")
    elif not options.html or (output.terminal and options.html != "-"):
        from .table import Look, tables

        width = max(60, get_terminal_size((100, 24)).columns)
        look = Look(width=width, ascii=options.ascii or not _speaks_unicode(), colour=output.colour)
        output.draw(tables(counting, look))
    output.flush()


def _write_report(path: str, counting: Counting, streams: Streams, *, private: bool) -> None:
    from ...analysis._report import report

    page = report(counting.groups, title=counting.title(), notes=counting.notes()).encode("utf-8", "replace")
    if path == "-":
        output = OutputStream(STDOUT)
        output.write_bytes(page)
        output.flush()
        return
    with open(path, "wb") as file:
        if private and sys.platform != "win32":  # where a file is as private as its folder
            # It quotes loops, and kept thoughts are for their owner alone.
            os.fchmod(file.fileno(), 0o600)
        file.write(page)
    streams.message(f"wrote {path}, a report of {counting.title()}")
    streams.flush()


def _speaks_unicode() -> bool:
    """Whether blocks can be drawn: not on a dumb terminal, nor where the locale is known not to be UTF-8."""
    locale = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), "utf-8")
    return os.environ.get("TERM") != "dumb" and "utf" in locale.lower()


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Arguments(
        prog="asides stats",
        usage="asides stats [options] [FILE ...]",
        description=DESCRIPTION,
        epilog=EXAMPLES,
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="a model's output as text, or a file of traces")
    reading = parser.add_argument_group("what to read")
    reading.add_argument(
        "--history",
        nargs="?",
        const="",
        metavar="STORE",
        help="read the saved replies in place of files; STORE is a file or a postgresql:// address "
        "(default: as in `asides history`)",
    )
    reading.add_argument(
        "--since", metavar="TIME", help="with --history: from this time on, such as 2d (ago) or 2026-11-01"
    )
    reading.add_argument("--until", metavar="TIME", help="with --history: before this time")
    reading.add_argument(
        "--field",
        metavar="NAME",
        help="the field of a trace with the raw output (default: guessed); a.b is the field b inside a",
    )
    reading.add_argument("--seconds-field", metavar="NAME", help="the field with the seconds spent thinking")
    reading.add_argument(
        "--as",
        dest="reads",
        choices=("auto", "text", "traces", "csv"),
        default="auto",
        help="what a FILE is: one reply (text), JSON (traces), CSV (default: auto, by its name and its first line)",
    )
    reading.add_argument(
        "--jobs",
        type=job_count,
        default=1,
        metavar="N",
        help="processes that count lines of traces (default: 1; 0 or auto: one for each core)",
    )
    reading.add_argument("--tokenizer", metavar="FILE", help="a tokenizer.json: count tokens too")
    add_reading(parser, start="as in `asides split`", model=True)
    grouping = parser.add_argument_group("what to compare")
    by = grouping.add_mutually_exclusive_group()
    by.add_argument("--by", metavar="FIELD", help="compare the traces by a field, such as model")
    by.add_argument("--by-file", action="store_true", help="compare the files")
    showing = parser.add_argument_group("what to show")
    showing.add_argument("--json", action="store_true", help="write every figure as JSON")
    showing.add_argument(
        "--html",
        metavar="FILE",
        help="write a report with charts to this file, one HTML page that loads nothing; - is standard output",
    )
    showing.add_argument("--ascii", action="store_true", help="draw bars with ASCII characters only")
    options = parser.parse_args(arguments)
    if options.history is not None and (options.files or options.field or options.by_file):
        parser.error("--history cannot be used with FILE, --field or --by-file; --history=STORE names the store")
    if options.history is not None and options.jobs != 1:
        parser.error("--jobs cannot be used with --history, which one process reads")
    if options.html == "-" and options.json:
        parser.error("--html - and --json would write to the same place; name a file for the report")
    if options.history is None and (options.since or options.until):
        parser.error("--since and --until need --history")
    return options
