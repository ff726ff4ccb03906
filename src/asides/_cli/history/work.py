"""The long work of `asides history`: export and purge; verify, salvage and reindex where a store is damaged.

All of it goes in whole steps, with progress on a terminal. Ctrl-C is looked at between two steps, so that the store is
whole whenever a command ends, and the message says how the same command goes on. `verify` and `salvage` also work on a
file that SQLite cannot open any more; that code is imported only then.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from ..._history import (
    POSTGRES,
    CheckProgress,
    DamagedError,
    History,
    HistoryError,
    PurgeProgress,
    ReplyFilter,
    default_store,
    open,
)
from ..._history.exports import FOLDER, Export, JsonLinesExport, ParquetExport, PlainFilesExport
from ..._history.grep import compile_pattern
from ..._history.records import encode_line
from ...errors import UsageError
from ...terminal._table import amount
from .. import FAILED, INTERRUPTED, ODD, OK
from ..streams import STDERR, Interrupt, complain
from .common import Page, find_store, open_store, progress, replies, where

_HOW_TO_GO_ON = {
    "jsonl": "the same command with --resume continues it",
    "files": "the same command continues it",
    "parquet": "nothing was written; run the same command again",
}


def export(options: argparse.Namespace) -> int:
    """Kept replies as JSON lines, Parquet or plain files."""
    chosen = where(options)
    with open_store(options) as history, Interrupt() as interrupt:
        if options.form == "jsonl" and not options.output:
            return _export_to_output(history, chosen, interrupt)
        writer, after = _writer(options)
        done = 0
        try:
            with progress("exported", history.count(chosen).replies) as shown, writer:
                for done, reply in enumerate(history.replies(chosen, after=after), 1):
                    writer.write(reply)
                    shown.show(done, replies(done))
                    if interrupt.came:
                        raise KeyboardInterrupt
        except KeyboardInterrupt:
            complain(f"stopped after {replies(done)}; {_HOW_TO_GO_ON[options.form]}")
            return INTERRUPTED
        except OSError as error:
            raise UsageError(f"{options.output}: {error.strerror or error}; {_HOW_TO_GO_ON[options.form]}") from error
    complain(f"exported {_written(options, writer, done)}")
    return OK


def _written(options: argparse.Namespace, writer: Export, done: int) -> str:
    """What an export has written, and where."""
    if isinstance(writer, PlainFilesExport):
        files = amount(writer.written, "new file", "new files")
        return f"{replies(done)}: {files} in {Path(options.output or '.') / FOLDER}"
    return f"{replies(done)} to {options.output} ({Path(options.output).stat().st_size / 1000:,.1f} kB)"


def _writer(options: argparse.Namespace) -> tuple[Export, str]:
    """What writes the chosen form, and the id of the reply after which it goes on."""
    if options.form == "files":
        return PlainFilesExport(Path(options.output or ".")), ""
    if not options.output:
        raise UsageError("Parquet cannot be written to standard output; name a file with -o")
    if options.form == "parquet":
        return ParquetExport(Path(options.output)), ""
    lines = JsonLinesExport(Path(options.output), resume=options.resume)
    return lines, lines.after


def _export_to_output(history: History, chosen: ReplyFilter, interrupt: Interrupt) -> int:
    page = Page()
    done = 0
    total = 0 if page.terminal else history.count(chosen).replies
    with progress("exported", total, hidden=page.terminal) as shown:
        for done, reply in enumerate(history.replies(chosen), 1):
            page.json(encode_line(reply.to_record()))
            shown.show(done, replies(done))
            if interrupt.came:
                break
    page.flush()
    if not page.terminal and os.isatty(STDERR):
        # Only for a person: a pipeline has a reader that counts for itself.
        complain(f"{'stopped after' if interrupt.came else 'exported'} {replies(done)} to standard output")
    return INTERRUPTED if interrupt.came else OK


def purge(options: argparse.Namespace) -> int:
    """Delete replies with their thoughts."""
    chosen = where(options)
    pattern = compile_pattern(options.match, ignore_case=options.ignore_case) if options.match else None
    if chosen == ReplyFilter() and pattern is None and not options.all:
        raise UsageError("choose what to delete: by --older-than, --match, --model or others, or --all for everything")
    with open_store(options, write=not options.dry_run) as history:
        with Interrupt() as interrupt:
            total = history.count(chosen)
            found = PurgeProgress(total.replies, total.replies, total.thoughts, history.count_entries(chosen))
            if pattern is not None:
                found = _last(history.purge(chosen, pattern, dry_run=True), total.replies, interrupt)
            if interrupt.came:
                return INTERRUPTED
        what = _what(found)
        if options.dry_run:
            complain(f"{what} would be deleted from {history.name}")
            return OK
        any_found = found.replies or found.entries
        if any_found and not options.yes and not _agrees(f"Delete {what} from {history.name} for good?"):
            return ODD
        with Interrupt() as interrupt:
            gone = _last(history.purge(chosen, pattern), total.replies, interrupt)
            complain(f"deleted {_what(gone)}")
            try:
                # Also when nothing was deleted: the last purge may have been stopped before this.
                history.compact()
            except HistoryError as error:
                complain(f"{error}; the file may contain parts of deleted texts until the same command has run again")
                return FAILED
            if interrupt.came:
                complain("stopped before the end; the same command deletes the rest")
                return INTERRUPTED
    return OK


def _last(steps: Iterator[PurgeProgress], total: int, interrupt: Interrupt) -> PurgeProgress:
    """Take one step after another until the end or Ctrl-C, and return how far it came."""
    last = PurgeProgress()
    with progress("looked at", total) as shown:
        for last in steps:
            shown.show(last.seen, replies(last.seen))
            if interrupt.came:
                break
    return last


def _what(purged: PurgeProgress) -> str:
    what = f"{replies(purged.replies)} with {amount(purged.thoughts, 'thought', 'thoughts')}"
    return f"{what} and {amount(purged.entries, 'stored response', 'stored responses')}" if purged.entries else what


def _agrees(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError(
            "purge asks before it deletes, and there is no terminal to ask on; add --yes, or --dry-run to count"
        )
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def verify(options: argparse.Namespace) -> int:
    """Check the store and every reply in it."""
    page = Page()
    problems = done = 0
    damaged = False
    with ExitStack() as opened, Interrupt() as interrupt:
        name, total, steps = _steps(options, opened)
        with progress("checked", total) as shown:
            for step in steps:
                done = step.replies
                problems += len(step.problems)
                damaged = damaged or step.damaged
                for problem in step.problems:
                    shown.clear()
                    page.line(problem)
                page.flush()
                shown.show(done, replies(done))
                if interrupt.came:
                    break
        state = "no problem found" if not problems else amount(problems, "problem", "problems")
        complain(f"{name}: {replies(done)} checked, {state}{' so far' if interrupt.came else ''}")
        if damaged:
            from ..._history.sqlite import SqliteHistory  # here, because few files are damaged

            complain(SqliteHistory.repair)
        if interrupt.came:
            return INTERRUPTED
    return ODD if problems else OK


def _steps(options: argparse.Namespace, opened: ExitStack) -> tuple[str, int, Iterator[CheckProgress]]:
    """The store's name, how many replies it may hold, and the steps of checking it."""
    store = find_store(options.store)
    try:
        # Not `open_store`: that others may read it is one of the problems that are listed.
        history = opened.enter_context(open(store, create=False))
        return history.name, history.count().replies, history.verify()
    except DamagedError:
        path = _path(store)
        if path is None:
            raise
        from ..._history.sqlite_damage import examine  # here, because few files are damaged

        return str(path), 0, examine(path)


def _path(store: str) -> Path | None:
    """The file of a store; None for one on a server."""
    named = store or default_store()
    return None if named.startswith(POSTGRES) else Path(named).expanduser()


def salvage(options: argparse.Namespace) -> int:
    """All that can be read of a damaged file, as lines of JSON."""
    from ..._history.sqlite_salvage import Salvage  # here, because few files are damaged

    path, output = _path(find_store(options.store)), Path(options.output)
    if path is None:
        raise UsageError(
            "salvage reads a damaged file; for a database server use its own tools, such as pg_dump and backups"
        )
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    if output.exists() and any(output.samefile(part) for part in _files(path)):
        raise UsageError(f"{output} is the damaged file itself; name another file with -o")
    whole = partly = lost = 0
    with Salvage(path) as damaged, Interrupt() as interrupt:
        with progress("looked at", damaged.pages.count) as shown:
            for seen in damaged.scan():
                shown.show(seen, amount(seen, "page", "pages"))
                if interrupt.came:
                    return INTERRUPTED
        if not damaged.known:
            complain(f"{path}: no saved reply was found in this file")
            return FAILED
        try:
            with progress("read", len(damaged.known)) as shown, JsonLinesExport(output) as lines:
                for done, found in enumerate(damaged.replies(), 1):
                    whole += not found.missing
                    partly += bool(found.missing) and found.reply is not None
                    lost += found.reply is None
                    if found.reply is not None:
                        lines.write(found.reply)
                    shown.show(done, replies(done))
                    if interrupt.came:
                        raise KeyboardInterrupt
        except KeyboardInterrupt:
            complain("stopped; nothing was written; run the same command again")
            output.with_name(output.name + ".part").unlink(missing_ok=True)
            return INTERRUPTED
        cut = damaged.pages.header_count > damaged.pages.count
    more = "; the file is cut off, so there may have been more" if cut else ""
    complain(f"{path}: {replies(whole)} read whole, {partly:,} in part, {lost:,} known to be lost{more}")
    complain(f"written to {output}; `asides history import --store NEW {output}` makes a new history of it")
    return ODD if partly or lost or cut else OK


def _files(path: Path) -> list[Path]:
    """The file of a store and what SQLite keeps beside it."""
    files = (path.with_name(path.name + ending) for ending in ("", "-wal", "-shm"))
    return [file for file in files if file.exists()]


def reindex(options: argparse.Namespace) -> int:
    """Build the index of words anew."""
    done = 0
    with open_store(options, write=True) as history, Interrupt() as interrupt:
        steps: Generator[int, None, None] = history.reindex()  # type: ignore[assignment]  # every store's is a generator
        try:
            with progress("indexed", history.count().thoughts) as shown, closing(steps):
                for done in steps:
                    shown.show(done, amount(done, "thought", "thoughts"))
                    if interrupt.came:
                        break
        except DamagedError as error:
            if _path(history.name) is None:
                raise
            complain(f"{error}; reindex cannot repair that, but {history.repair}")
            return FAILED
        if interrupt.came:
            complain("stopped; nothing has changed; run the same command again")
            return INTERRUPTED
    complain(f"{history.name}: {amount(done, 'thought', 'thoughts')} indexed")
    return OK
