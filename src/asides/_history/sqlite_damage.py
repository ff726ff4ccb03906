"""What is wrong with a damaged file, in words: which page of which table, which replies. Changes nothing."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from .results import CheckProgress
from .sqlite_pages import INDEX_INTERIOR, INDEX_LEAF, TABLE_INTERIOR, TABLE_LEAF, Pages, Unreadable
from .sqlite_salvage import Salvage

MOST_LINES = 100
"""Problems that SQLite is asked for at most."""
PAGE = re.compile(r"(?:on )?(?:tree )?(?:\d+ )?page (\d+)(?: is|:)?", re.IGNORECASE)
MISSING_ROW = re.compile(r"row (\d+) missing from index (\w+)")
WRONG_INDEX = re.compile(r"wrong # of entries in index (\w+)")


def examine(path: Path) -> Iterator[CheckProgress]:
    """Check a file that SQLite may not be able to open, then every reply in it. Tells how far it is."""
    yield CheckProgress(0, tuple(check_structure(path)), damaged=True)
    yield from check_replies(path)


def check_structure(path: Path) -> list[str]:
    """What is wrong with the file's pages, trees and indexes; empty when nothing is."""
    with Pages(path) as pages:
        problems = _check_length(pages)
        lines = _ask_sqlite(path) if pages.has_header else []
        if not lines:
            return problems
        owners, further = _owners(pages)
        # SQLite may stop at the first of them without a word of where it is.
        problems += [
            f"page {number}, of {_called(name)}: what is in it is no page of it"
            for number, name in sorted(owners.items())
            if number not in further and not _fits(pages, number)
        ]
    return [*problems, *dict.fromkeys(_in_words(line, owners) for line in lines)]


def check_replies(path: Path) -> Iterator[CheckProgress]:
    """Every reply that is lost or not what was written, read without SQLite."""
    with Salvage(path) as salvage:
        for _ in salvage.scan():
            yield CheckProgress(0)
        if not salvage.known:
            yield CheckProgress(0, ("there is no reply in it that could be read",))
        for done, found in enumerate(salvage.replies(), 1):
            name = f"reply {found.id}" if found.id else f"the reply of number {found.number}"
            yield CheckProgress(done, (f"{name}: {found.missing}",) if found.missing else (), damaged=True)


def _check_length(pages: Pages) -> list[str]:
    if not pages.has_header:
        return ["page 1: the file does not begin as a SQLite database does, so SQLite cannot open it"]
    if pages.said > pages.count:
        return [f"the file ends too early: it has {pages.count:,} pages of {pages.said:,}; it may have been cut off"]
    return []


def _ask_sqlite(path: Path) -> list[str]:
    """What SQLite's own check says."""
    lines: list[str] = []
    for mode in ("ro", "ro&immutable=1"):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None)
        try:
            # Without this a file that was cut off is not read at all.
            connection.execute("PRAGMA writable_schema = ON")
            lines += (line for (line,) in connection.execute(f"PRAGMA integrity_check({MOST_LINES})"))
            lines += (
                f"a row of {table} belongs to nothing" for table, *_ in connection.execute("PRAGMA foreign_key_check")
            )
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) and mode == "ro":
                continue  # there is no log, and none can be made
            lines.append(str(error))
        finally:
            connection.close()
        break
    whole = [part.strip() for line in lines for part in line.split("\n")]
    return [line for line in whole if line and line != "ok" and not line.startswith("***")]


def _in_words(line: str, owners: dict[int, str]) -> str:
    if found := MISSING_ROW.fullmatch(line):
        return f"{_called(found[2])} does not know row {found[1]} of its table"
    if found := WRONG_INDEX.fullmatch(line):
        return f"{_called(found[1])} has more or fewer entries than its table has rows"
    if found := PAGE.search(line):
        number = int(found[1])
        of = f", of {_called(owners[number])}" if number in owners else ""
        return f"page {number}{of}: {line}"
    return f"SQLite: {line}"


def _called(name: str) -> str:
    """A table or an index of a history, for a person."""
    if name.startswith("words"):
        return "the index of words"
    return (
        f"the table {name}" if name in ("replies", "thoughts", "migrations", "sqlite_schema") else f"the index {name}"
    )


def _owners(pages: Pages) -> tuple[dict[int, str], set[int]]:
    """Which table or index each page belongs to, as far as the trees can be followed; which hold ends of rows."""
    owners: dict[int, str] = {}
    further: set[int] = set()
    _claim(pages, 1, "sqlite_schema", owners, further)
    for number in list(owners):
        try:
            rows = [pages.row(number, place)[1] for place in pages.cells(number) if pages.kind(number) == TABLE_LEAF]
        except Unreadable:
            continue
        for row in rows:
            if len(row) == 5 and isinstance(row[1], str) and isinstance(row[3], int) and row[3]:
                _claim(pages, row[3], row[1], owners, further)
    return owners, further


def _fits(pages: Pages, number: int) -> bool:
    """Whether a page can be one of a tree."""
    if number > pages.count:
        return True  # that the file ends too early is told once
    try:
        kind = pages.kind(number)
    except Unreadable:
        return False
    return kind in (INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF)


def _claim(pages: Pages, root: int, name: str, owners: dict[int, str], further: set[int]) -> None:
    waiting = [root]
    while waiting:
        number = waiting.pop()
        if number in owners or not 1 <= number <= max(pages.count, pages.said):
            continue
        owners[number] = name
        try:
            waiting += pages.children(number)
            if pages.kind(number) == TABLE_LEAF:
                for place in pages.cells(number):
                    for other in pages.chain(number, place):
                        if other not in owners:
                            owners[other] = name
                            further.add(other)
        except Unreadable:
            continue
