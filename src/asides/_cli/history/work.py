"""`asides history export`, `import` and `purge`: long work, in whole steps between which Ctrl-C may come."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from ..._api import parse
from ..._history import History, HistoryError, PurgeProgress, Reply, ReplyFilter
from ..._history.exports import JsonLines, Parquet, PlainFiles, Writer
from ..._history.grep import compile_pattern
from ..._history.imports import read_line
from ..._history.records import encode_line
from ...errors import UsageError
from .. import FAILED, INTERRUPTED, ODD, OK
from ..filter import find_format
from ..streams import STDIN, STDOUT, Interrupt, Output, complain
from .common import Page, Progress, amount, open_store, replies, where

BATCH = 200
BATCH_CHARACTERS = 4 * 1024 * 1024
MOST_COMPLAINTS = 20
"""Lines of an import that are complained about one by one."""


def export(options: argparse.Namespace) -> int:
    """Kept replies as JSON lines, Parquet or plain files."""
    chosen = where(options)
    with open_store(options) as history, Interrupt() as interrupt:
        if options.form == "jsonl" and not options.output:
            return _export_to_output(history, chosen, interrupt)
        writer, after = _writer(options)
        progress = Progress("exported", history.count(chosen).replies)
        done = 0
        try:
            with writer:
                for done, reply in enumerate(history.replies(chosen, after=after), 1):
                    writer.write(reply)
                    progress.show(done, replies(done))
                    if interrupt.came:
                        raise KeyboardInterrupt
        except KeyboardInterrupt:
            progress.end()
            complain(f"stopped after {replies(done)}; {_how_to_go_on(options.form)}")
            return INTERRUPTED
        except OSError as error:
            progress.end()
            raise UsageError(f"{options.output}: {error.strerror or error}; {_how_to_go_on(options.form)}") from error
        progress.end()
    complain(f"exported {replies(done)}")
    return OK


def _writer(options: argparse.Namespace) -> tuple[Writer, str]:
    """What writes the chosen form, and the id of the reply after which it goes on."""
    if options.form == "files":
        return PlainFiles(Path(options.output or ".")), ""
    if not options.output:
        raise UsageError("Parquet is written to a file: -o FILE names it")
    if options.form == "parquet":
        return Parquet(Path(options.output)), ""
    lines = JsonLines(Path(options.output), resume=options.resume)
    return lines, lines.after


def _how_to_go_on(form: str) -> str:
    return {
        "jsonl": "the same command with --resume goes on there",
        "files": "the same command goes on there",
        "parquet": "nothing was written; Parquet files are written whole",
    }[form]


def _export_to_output(history: History, chosen: ReplyFilter, interrupt: Interrupt) -> int:
    page = Page(Output(STDOUT))
    progress = None if page.seen else Progress("exported", history.count(chosen).replies)
    for done, reply in enumerate(history.replies(chosen), 1):
        page.data(encode_line(reply) + b"\n")
        if progress is not None:
            progress.show(done, replies(done))
        if interrupt.came:
            break
    if progress is not None:
        progress.end()
    page.flush()
    return INTERRUPTED if interrupt.came else OK


def import_lines(options: argparse.Namespace) -> int:
    """Lines of JSON into the store."""
    find_format(options.format)  # so that a wrong name is one complaint, and not one for every line
    code = OK
    with open_store(options, create=True) as history, Interrupt() as interrupt:
        for path in options.files or ["-"]:
            try:
                work = _Import(history, path, options)
                problems = work.run(interrupt)
            except OSError as error:
                complain(f"{path}: {error.strerror}")
                code = FAILED
                continue
            if problems:
                code = FAILED
            if interrupt.came:
                complain("stopped; what was read is kept, and the same command goes on from there")
                return INTERRUPTED
    return code


class _Import:
    """One file into the store, a batch at a time."""

    def __init__(self, history: History, path: str, options: argparse.Namespace) -> None:
        self._history = history
        self._name = "standard input" if path == "-" else path
        self._descriptor = STDIN if path == "-" else os.open(path, os.O_RDONLY)
        about = os.fstat(self._descriptor)
        # The same for every run over the same file, so that a reply without a time of its own is kept only once.
        changed = datetime.fromtimestamp(about.st_mtime, UTC) if path != "-" else datetime.now(UTC)
        self._size = about.st_size if path != "-" else 0
        self._read = partial(
            read_line,
            parse=partial(parse, format=options.format, start=options.start),
            format=options.format,
            time=changed,
            field=options.field,
        )
        self._progress = Progress(f"{os.path.basename(self._name)}: imported", self._size)
        self._batch: list[Reply] = []
        self._characters = 0
        self._new = self._seen = self._problems = 0

    def run(self, interrupt: Interrupt) -> int:
        """Read the file to its end or to Ctrl-C; returns how many lines could not be read."""
        done = 0
        interrupt.failure = None
        for number, line in enumerate(self._lines(interrupt), 1):
            done += len(line)
            if line.strip():
                self._take(line, number)
            self._progress.show(done, replies(self._seen))
        self._flush()
        self._progress.end()
        if interrupt.failure is not None:
            raise interrupt.failure
        there = self._seen - self._new
        complain(
            f"{self._name}: {replies(self._new)} kept"
            + (f", {there:,} there already" if there else "")
            + (f", {amount(self._problems, 'line', 'lines')} not readable" if self._problems else "")
        )
        return self._problems

    def _lines(self, interrupt: Interrupt) -> Iterator[bytes]:
        """The lines, until Ctrl-C; what a pipe holds by then is read, because nobody could read it again."""
        try:
            pieces: list[bytes] = []
            for chunk in interrupt.read(self._descriptor):
                if interrupt.came and self._descriptor != STDIN:
                    return
                first, *others = chunk.split(b"\n")
                pieces.append(first)
                for other in others:
                    yield b"".join(pieces)
                    pieces = [other]
            if any(pieces) and not interrupt.came:
                yield b"".join(pieces)
        finally:
            if self._descriptor != STDIN:
                os.close(self._descriptor)

    def _take(self, line: bytes, number: int) -> None:
        try:
            reply = self._read(line)
        except UsageError as error:
            self._problems += 1
            if self._problems <= MOST_COMPLAINTS:
                self._progress.end()
                complain(f"{self._name}, line {number}: {error}")
            return
        self._seen += 1
        self._batch.append(reply)
        self._characters += reply.size
        if len(self._batch) >= BATCH or self._characters >= BATCH_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        if self._batch:
            self._new += self._history.add(self._batch)
        self._batch, self._characters = [], 0


def purge(options: argparse.Namespace) -> int:
    """Delete replies with their thoughts."""
    chosen = where(options)
    pattern = compile_pattern(options.match, ignore_case=options.ignore_case) if options.match else None
    if chosen == ReplyFilter() and pattern is None and not options.all:
        raise UsageError("purge deletes what you choose: --until, --match, --model and others; --all for everything")
    with open_store(options, write=not options.dry_run) as history:
        with Interrupt() as interrupt:
            total = history.count(chosen)
            found = PurgeProgress(total.replies, total.replies, total.thoughts)
            if pattern is not None:
                found = _last(history.purge(chosen, pattern, dry_run=True), total.replies, interrupt)
            if interrupt.came:
                return INTERRUPTED
        what = _what(found)
        if options.dry_run:
            complain(f"{what} would be deleted from {history.name}")
            return OK
        if found.replies and not options.yes and not _agrees(f"Delete {what} from {history.name} for good?"):
            return ODD
        with Interrupt() as interrupt:
            gone = _last(history.purge(chosen, pattern), total.replies, interrupt)
            complain(f"deleted {_what(gone)}")
            try:
                # Also when nothing was deleted: the last purge may have been stopped before this.
                history.compact()
            except HistoryError as error:
                complain(f"{error}; words of what was deleted may be in it until the same command has run again")
                return FAILED
            if interrupt.came:
                complain("stopped before the end; the same command deletes the rest")
                return INTERRUPTED
    return OK


def _last(steps: Iterator[PurgeProgress], total: int, interrupt: Interrupt) -> PurgeProgress:
    """Take one step after another until the end or Ctrl-C, and return how far it came."""
    progress = Progress("looked at", total)
    last = PurgeProgress()
    for last in steps:
        progress.show(last.seen, replies(last.seen))
        if interrupt.came:
            break
    progress.end()
    return last


def _what(purged: PurgeProgress) -> str:
    return f"{replies(purged.replies)} with {amount(purged.thoughts, 'thought', 'thoughts')}"


def _agrees(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("nobody is here to be asked; --yes agrees beforehand, --dry-run only counts")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
