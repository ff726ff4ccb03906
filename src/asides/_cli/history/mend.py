"""`asides history verify`, `salvage` and `reindex`: what is wrong with a store, and what can be done about it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from ..._history import POSTGRES, CheckProgress, DamagedError, default_store, open
from ..._history.exports import JsonLines
from ...errors import UsageError
from .. import FAILED, INTERRUPTED, ODD, OK
from ..streams import STDOUT, Interrupt, Output, complain
from .common import Page, Progress, amount, find_store, open_store, replies

SALVAGE = "`asides history salvage -o FILE` writes all that can be read into a new file"


def verify(options: argparse.Namespace) -> int:
    """Check the store and every reply in it."""
    page = Page(Output(STDOUT))
    problems = done = 0
    with ExitStack() as opened, Interrupt() as interrupt:
        name, total, steps = _steps(options, opened)
        damaged = False
        progress = Progress("checked", total)
        for step in steps:
            done = step.replies
            problems += len(step.problems)
            damaged = damaged or step.damaged
            for problem in step.problems:
                progress.end()
                page.line(problem)
            page.flush()
            progress.show(done, replies(done))
            if interrupt.came:
                break
        progress.end()
        state = "sound" if not problems else amount(problems, "problem", "problems")
        complain(f"{name}: {replies(done)} checked, {state}{' so far' if interrupt.came else ''}")
        if damaged:
            complain(SALVAGE)
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
        from ..._history.sqlite_damage import examine  # here, because few files are damaged

        return str(_path(store)), 0, examine(_path(store))


def _path(store: str) -> Path:
    """The file of a store."""
    named = store or default_store()
    if named.startswith(POSTGRES):
        raise UsageError("salvage reads a damaged file; a server has its own tools for that, as pg_dump and backups")
    return Path(named).expanduser()


def salvage(options: argparse.Namespace) -> int:
    """All that can be read of a damaged file, as lines of JSON."""
    from ..._history.sqlite_salvage import Salvage  # here, because few files are damaged

    path, output = _path(find_store(options.store)), Path(options.output)
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    if output.exists() and any(output.samefile(part) for part in _files(path)):
        raise UsageError(f"{output} is the damaged store itself; nothing is written to it")
    whole = partly = lost = 0
    with Salvage(path) as damaged, Interrupt() as interrupt:
        progress = Progress("looked at", damaged.pages.count)
        for seen in damaged.scan():
            progress.show(seen, amount(seen, "page", "pages"))
            if interrupt.came:
                return INTERRUPTED
        progress.end()
        if not damaged.known:
            complain(f"{path}: nothing in it looks like a kept reply")
            return FAILED
        progress = Progress("read", damaged.known)
        try:
            with JsonLines(output) as lines:
                for done, found in enumerate(damaged.replies(), 1):
                    whole += not found.missing
                    partly += bool(found.missing) and found.reply is not None
                    lost += found.reply is None
                    if found.reply is not None:
                        lines.write(found.reply)
                    progress.show(done, replies(done))
                    if interrupt.came:
                        raise KeyboardInterrupt
        except KeyboardInterrupt:
            progress.end()
            complain("stopped; nothing was written, and the same command begins again")
            output.with_name(output.name + ".part").unlink(missing_ok=True)
            return INTERRUPTED
        progress.end()
        cut = damaged.pages.said > damaged.pages.count
    more = "; the file is cut off, so there may have been more" if cut else ""
    complain(f"{path}: {replies(whole)} read whole, {partly:,} in part, {lost:,} known to be lost{more}")
    complain(f"written to {output}; `asides history import --store NEW {output}` makes a new store of it")
    return ODD if partly or lost or cut else OK


def _files(path: Path) -> list[Path]:
    """The file of a store and what SQLite keeps beside it."""
    files = (path.with_name(path.name + ending) for ending in ("", "-wal", "-shm"))
    return [file for file in files if file.exists()]


def reindex(options: argparse.Namespace) -> int:
    """Build the index of words anew."""
    with open_store(options, write=True) as history, Interrupt() as interrupt:
        progress = Progress("indexed", history.count().thoughts)
        done = 0
        steps = history.reindex()
        try:
            for done in steps:
                progress.show(done, amount(done, "thought", "thoughts"))
                if interrupt.came:
                    steps.close()  # type: ignore[attr-defined]  # a generator
                    progress.end()
                    complain("stopped; the same command begins again")
                    return INTERRUPTED
        except DamagedError as error:
            progress.end()
            complain(f"{error}; the index alone cannot be mended, but {SALVAGE}")
            return FAILED
        progress.end()
    complain(f"{history.name}: {amount(done, 'thought', 'thoughts')} indexed")
    return OK
