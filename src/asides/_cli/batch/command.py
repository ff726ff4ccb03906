"""`asides batch`: files of raw outputs in, one file of columns out, with as many processes as there are cores.

Flags in, exit codes out. `plan` decides beforehand what will be done and refuses what cannot be, `job` does it,
`manifest` remembers what is finished so that `--resume` can go on. Imports nothing of Arrow until it is known
what is asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec

from ..._extras import install_command
from ...errors import Error, UsageError
from .. import FAILED, INTERRUPTED, ODD, OK
from ..filter import reading_of, report_unknown_model
from ..inputs.addresses import check_target, is_remote, local_path
from ..inputs.files import STANDARD_INPUT, STANDARD_OUTPUT, copy_standard_input, find_inputs
from ..inputs.kinds import InputKind
from ..options import Arguments, add_reading, policies
from ..stats.command import job_count
from ..stats.read import open_tokenizer
from ..streams import STDERR, STDOUT, Interrupt, OutputStream, Streams, complain
from .workers import RangeWorkers

if TYPE_CHECKING:
    from .job import BatchJob
    from .manifest import PartialFolder
    from .plan import BatchPlan
    from .summary import BatchSummary

MEGABYTE = 1_000_000
RANGE_MEGABYTES = 32.0
ROW_MEGABYTES = 64.0

DESCRIPTION = """\
Splits datasets of raw model outputs: thinking, text and calls become columns
of their own. IN is a file of Parquet, Arrow, JSON Lines, a JSON array or CSV
(these also .gz, .zst), a folder, a glob, an address such as
s3://bucket/*.parquet, or - for standard input. OUT is one file or address; its
ending (.parquet, .jsonl, .jsonl.zst, .arrow...) decides its form. - is
standard output: JSON Lines.
"""
EXAMPLES = f"""\
Each row keeps its other columns. The column with the raw text is replaced by
the columns thinking, text, calls, termination, notices, format (the format
that was used) and beyond (characters after the turn's end that are another
turn's). Records with several replies (messages, conversations, choices)
get one column turns instead, with a struct for each reply of the model. A row
that cannot be read gets the column row_error, is counted, and does not stop
the job.

While the job runs, finished ranges of rows are in the folder OUT.partial; OUT
is written at the end. After Ctrl-C, a crash or a full disk, run the same
command with --resume to continue.

examples:
  asides batch traces.parquet -o split.parquet
  asides batch big.parquet -o - --sample 100 | less         try 100 rows first
  asides batch replies.csv -o split.parquet --model Qwen/Qwen3-8B
  asides batch big.parquet -o split.parquet --jobs auto     use every core
  asides batch big.parquet -o split.parquet --resume        continue a job
  asides batch outputs/ -o split.parquet --field response --format qwen3
  asides batch 'day-*.jsonl.gz' -o split.jsonl.zst --errors bad.jsonl
  asides batch chats.jsonl -o turns.jsonl          every turn of the assistant
  asides batch mixed.parquet -o split.parquet --format-field format
  asides batch big.parquet -o split.parquet --by model --html report.html
  asides batch 's3://bucket/traces/*.parquet' -o s3://bucket/split.parquet

exit codes:
  {OK}    success
  {ODD}    more rows could not be read than --fail-above allows, or part of a file
       is damaged; OUT is written
  {FAILED}    wrong usage, or something could not be read or written
  {INTERRUPTED}  stopped by Ctrl-C; --resume continues
"""


def run(arguments: list[str]) -> int:
    """`asides batch`."""
    options = _parse(arguments)
    options.output = local_path(options.output)
    report_unknown_model(reading_of(options.format, options.tags, options.model, policies(options)))
    try:
        import pyarrow  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as error:
        raise UsageError(f"asides batch needs pyarrow, which is not installed: {install_command('pyarrow')}") from error
    workers = RangeWorkers(options.jobs) if options.jobs > 1 else None
    try:
        if workers is not None:
            workers.start(_work_for(options))
        if not _passes_through(options):
            return _plan_and_run(options, arguments, workers)
        # Nobody can go on with it later, so nothing of it stays.
        with TemporaryDirectory(prefix="asides-batch-", dir=options.work) as folder:
            options.work = folder
            return _plan_and_run(options, arguments, workers)
    finally:
        if workers is not None:
            workers.end()


def _passes_through(options: argparse.Namespace) -> bool:
    """Whether standard input is read or standard output written, which cannot be done again."""
    return STANDARD_INPUT in options.files or options.output == STANDARD_OUTPUT


def _work_for(options: argparse.Namespace) -> int:
    """For how many processes there will surely be work: ranges of the named files that are here."""
    sizes = [os.path.getsize(path) for path in options.files if os.path.isfile(path)]
    return int(sum(sizes) / (options.range_size * MEGABYTE)) if not (options.rows or options.sample) else 0


def _plan_and_run(options: argparse.Namespace, arguments: list[str], workers: RangeWorkers | None) -> int:
    plan = _plan(options)
    from .manifest import PartialFolder, header_of

    folder = PartialFolder(_partial_folder(options))
    try:
        header = header_of(plan.inputs, _job_options(plan, options), len(plan.ranges))
        folder.begin(header, resume=options.resume, force=options.force)
        return _run(options, arguments, plan, folder, workers)
    finally:
        folder.close()


def _partial_folder(options: argparse.Namespace) -> str:
    """Where finished ranges are kept: beside the output, or where `--work` says; for an address here."""
    name = f"{os.path.basename(options.output)}.partial"
    if options.work:
        return os.path.join(options.work, name)
    return name if is_remote(options.output) else f"{options.output}.partial"


def _run(
    options: argparse.Namespace,
    arguments: list[str],
    plan: BatchPlan,
    folder: PartialFolder,
    workers: RangeWorkers | None,
) -> int:
    from .job import BatchJob

    streams = Streams()
    before = len(folder.finished)
    if before:
        streams.message(f"{before:,} of {len(plan.ranges):,} ranges were finished before")
        streams.flush()
    _warn_of_one_range(options, plan, folder, streams)
    job = BatchJob(plan, options.output, folder)
    try:
        with Interrupt() as interrupt:
            job.run(workers, interrupt, streams)
        if not job.complete:
            complain(f"interrupted; {_how_to_go_on(options, plan, folder, arguments)}")
            return INTERRUPTED
        # A second Ctrl-C ends at once from here on: every range is finished, and --resume only has to join them.
        _write_beside(options, plan, job, streams)
        if is_remote(options.output):
            streams.message(f"all ranges are finished; joining them and uploading to {options.output}")
            streams.flush()
        summary = job.finish()
    except (Error, OSError) as error:
        reason = str(error)
        if isinstance(error, OSError):
            reason = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
        complain(reason)
        complain(_how_to_go_on(options, plan, folder, arguments))
        return FAILED
    finally:
        job.close()
    if not options.keep:
        folder.remove()
    return _report(options, plan, summary, job.damage)


def _warn_of_one_range(options: argparse.Namespace, plan: BatchPlan, folder: PartialFolder, streams: Streams) -> None:
    """Name the largest compressed file that is left to do, if it is more than a range should be."""
    left = [each for number, each in enumerate(plan.ranges) if number not in folder.finished]
    large = [each for each in left if plan.inputs[each.input].compression and each.size > options.range_size * MEGABYTE]
    if not large:
        return
    first = max(large, key=lambda each: each.size)
    others = f", and {len(large) - 1:,} more like it" if len(large) > 1 else ""
    about = f"{plan.inputs[first.input].path}{others}: {first.size / MEGABYTE:,.0f} MB, compressed, and so one range"
    streams.message(
        f"{about}: one process splits it, progress shows only when it is done, and after a crash it starts again"
    )
    streams.flush()


def _how_to_go_on(options: argparse.Namespace, plan: BatchPlan, folder: PartialFolder, arguments: list[str]) -> str:
    again = [argument for argument in arguments if argument not in ("--resume", "--force")]
    if "--force" in arguments and (is_remote(options.output) or os.path.exists(options.output)):
        again.append("--force")
    if _passes_through(options):
        return "nothing was written; what passes through standard input or output has to be run again"
    finished = f"{len(folder.finished):,} of {len(plan.ranges):,} ranges are finished in {folder.path}"
    return f"{finished}; continue with: {shlex.join(['asides', 'batch', *again, '--resume'])}"


def _write_beside(options: argparse.Namespace, plan: BatchPlan, job: BatchJob, streams: Streams) -> None:
    """The errors and the report."""
    from .output import finished_file

    if options.errors:
        with finished_file(options.errors) as file:
            for problem in job.problems():
                file.write(msgspec.json.encode(problem) + b"\n")
    if options.html:
        from ...analysis._report import report
        from ...terminal._table import amount

        groups = job.groups()
        replies = sum(summary.replies for summary in groups.summaries.values())
        title = f"{amount(replies, 'reply', 'replies')} in {amount(len(plan.inputs), 'file', 'files')}"
        bad = job.summary().errors
        notes = [f"{amount(count, 'row', 'rows')} could not be read: {code}" for code, count in sorted(bad.items())]
        with finished_file(options.html) as file:
            file.write(report(groups, title=title, notes=notes).encode("utf-8", "replace"))
        streams.message(f"wrote {options.html}, a report of {title}")
        streams.flush()


def _report(options: argparse.Namespace, plan: BatchPlan, summary: BatchSummary, damage: list[str]) -> int:
    from .summary import describe

    output = OutputStream(STDERR if options.output == STANDARD_OUTPUT else STDOUT)
    if options.json:
        about = {"output": options.output, "inputs": len(plan.inputs), **summary.to_dict()}
        output.write_bytes(json.dumps(about, indent=2).encode() + b"\n")
    else:
        output.draw(describe(summary, options.by))
    output.flush()
    if "too_long" in summary.errors:
        complain(f"texts of more than {options.row_limit:g} MB were not split; --row-limit MB allows longer ones")
    if summary.bad and not options.errors:
        complain("to list the rows that could not be read, add --errors FILE")
    for each in damage:
        complain(each)
    if "damaged" in summary.errors:
        complain(f"{summary.errors['damaged']:,} rows are lost because their file is damaged; all others are written")
        return ODD
    if options.fail_above is not None and summary.bad > _allowed(options.fail_above, summary.rows):
        complain(f"{summary.bad:,} of {summary.rows:,} rows could not be read, more than --fail-above allows")
        return ODD
    return OK


def _allowed(written: str, rows: int) -> float:
    return float(written[:-1]) / 100 * rows if written.endswith("%") else float(written)


def _plan(options: argparse.Namespace) -> BatchPlan:
    from .output import output_kind
    from .plan import PlanSizes, make_plan
    from .splitting import SplitSettings

    output_kind(options.output)
    for path in (options.errors, options.html):
        if path and is_remote(path):
            raise UsageError(f"{path}: only OUT may be an address; --errors and --html must be local files")
    folders = {path: os.path.dirname(path) for path in (options.output, options.errors, options.html) if path}
    for path, folder in {**folders, options.work: options.work}.items():
        if folder and not is_remote(path) and not os.path.isdir(folder):
            raise UsageError(f"{path}: there is no folder {folder}")
    if is_remote(options.output):
        check_target(options.output, force=options.force)
    elif options.output == STANDARD_OUTPUT:
        pass
    elif os.path.isdir(options.output):
        raise UsageError(f"{options.output}: is a folder; name a file")
    elif os.path.exists(options.output) and not options.force:
        raise UsageError(f"{options.output}: exists already; --force replaces it when the job is done")
    if options.tokenizer:
        open_tokenizer(options.tokenizer)
    settings = SplitSettings(
        field=options.field or "",
        format=options.format,
        tags=tuple((opener, closer) for opener, closer in options.tags),
        model=options.model,
        format_field=options.format_field or "",
        prompt_field=options.prompt_field or "",
        policies=policies(options),
        row_limit=int(options.row_limit * MEGABYTE),
        turns=options.turns,
        raw=options.raw,
        parts=options.parts or bool(options.tokenizer),
        tokenizer=options.tokenizer or "",
        figures=options.figures,
        report=bool(options.html),
        by=options.by or "",
        prefix=options.prefix,
    )
    sizes = PlanSizes(int(options.range_size * MEGABYTE), options.rows, options.sample)
    came = copy_standard_input(options.work) if STANDARD_INPUT in options.files else ""
    reads: InputKind | None = {"traces": "jsonl", "csv": "csv"}.get(options.reads)  # type: ignore[assignment]
    inputs = find_inputs(options.files, options.output, reads, came)
    return make_plan(inputs, options.output, settings, sizes)


def _job_options(plan: BatchPlan, options: argparse.Namespace) -> dict[str, Any]:
    """All that the rows depend on, by the names of the flags."""
    found = msgspec.to_builtins(plan.settings)
    how = {name: value for name, value in found.pop("policies").items() if name not in ("collect", "seed")}
    # Where the folder does not stand beside the output, that of another output may have its name.
    elsewhere = {"output": options.output} if options.work or is_remote(options.output) else {}
    amount = {"range_size": options.range_size, "limit_rows": options.rows, "sample": options.sample}
    return {**found, **how, **amount, **elsewhere}


def _positive(written: str) -> int:
    if not written.isdecimal() or not int(written):
        raise argparse.ArgumentTypeError(f"must be a number of rows above 0, not {written!r}")
    return int(written)


def _size(written: str) -> float:
    try:
        size = float(written)
    except ValueError:
        size = 0.0
    if not 0 < size < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of megabytes above 0, not {written!r}")
    return size


def _threshold(written: str) -> str:
    try:
        allowed = _allowed(written, 1)
    except ValueError:
        allowed = -1.0
    if not 0 <= allowed < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a share such as 0.1% or a number of rows, not {written!r}")
    return written


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Arguments(
        prog="asides batch",
        usage="asides batch [options] IN [IN ...] -o OUT",
        description=DESCRIPTION,
        epilog=EXAMPLES,
    )
    parser.add_argument("files", nargs="+", metavar="IN", help="a file, a folder, a glob, an address or -")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the file or address to write, or -")
    reading = parser.add_argument_group("what to read")
    reading.add_argument(
        "--field", metavar="NAME", help="the column with the raw output (default: guessed); a.b is the field b inside a"
    )
    reading.add_argument(
        "--as",
        dest="reads",
        choices=("auto", "traces", "csv"),
        default="auto",
        help="what an IN is if its name does not show it: JSON Lines (traces) or CSV (default: auto, by first bytes)",
    )
    reading.add_argument("--format-field", metavar="NAME", help="a column with the format of each row")
    reading.add_argument(
        "--prompt-field", metavar="NAME", help="a column with the prompt of each row: it shows where the output begins"
    )
    amount = reading.add_mutually_exclusive_group()
    amount.add_argument(
        "--limit", dest="rows", type=_positive, metavar="N", help="only the first N rows (default: all)"
    )
    amount.add_argument("--sample", type=_positive, metavar="N", help="only N random rows, the same each time")
    reading.add_argument(
        "--row-limit",
        type=_size,
        default=ROW_MEGABYTES,
        metavar="MB",
        help=f"do not split texts longer than this, in megabytes (default: {ROW_MEGABYTES:.0f})",
    )
    add_reading(parser, start="as in `asides split`", model=True, limit="--held-limit")
    writing = parser.add_argument_group("what to write")
    writing.add_argument("--raw", action="store_true", help="add a column raw with the raw text")
    writing.add_argument("--turns", action="store_true", help="write the column turns even for one reply each")
    writing.add_argument(
        "--parts", action="store_true", help="add a column parts: the parts in order, with their spans"
    )
    writing.add_argument("--tokenizer", metavar="FILE", help="a tokenizer.json: add counts and spans of tokens")
    writing.add_argument("--figures", action="store_true", help="add the figures of `asides stats`")
    writing.add_argument("--prefix", default="", metavar="TEXT", help="put this before the names of the new columns")
    writing.add_argument("--force", action="store_true", help="replace OUT, and restart a job that was stopped")
    working = parser.add_argument_group("how to work")
    working.add_argument(
        "--jobs",
        type=job_count,
        default=1,
        metavar="N",
        help="processes that split (default: 1; 0 or auto: one for each core)",
    )
    working.add_argument("--resume", action="store_true", help="continue a job that was stopped")
    working.add_argument(
        "--range-size",
        type=_size,
        default=RANGE_MEGABYTES,
        metavar="MB",
        help="the size of a range, in megabytes: the most that a process reads before it saves its result "
        f"(default: {RANGE_MEGABYTES:.0f})",
    )
    working.add_argument(
        "--work",
        metavar="FOLDER",
        help="the folder for OUT.partial (default: that of OUT; for an address, the current folder)",
    )
    working.add_argument("--keep", action="store_true", help="do not delete OUT.partial at the end")
    showing = parser.add_argument_group("what to show")
    showing.add_argument("--by", metavar="FIELD", help="count by the values of a column, such as model")
    showing.add_argument("--errors", metavar="FILE", help="write the rows that could not be read, as JSON Lines")
    showing.add_argument(
        "--fail-above",
        type=_threshold,
        metavar="SHARE",
        help=f"exit code {ODD} if more rows than this could not be read: a share such as 0.1%%, or a number",
    )
    showing.add_argument("--html", metavar="FILE", help="write the report of `asides stats --html` too")
    showing.add_argument("--json", action="store_true", help="write the summary as JSON")
    options = parser.parse_intermixed_args(arguments)
    if _passes_through(options) and (options.resume or options.keep):
        parser.error("--resume and --keep need files: standard input and output cannot be read or written again")
    if options.output == STANDARD_OUTPUT and options.json:
        parser.error("-o - and --json would write to the same place; name a file for the rows")
    return options
