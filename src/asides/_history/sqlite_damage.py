"""What is wrong with a damaged SQLite file: which page of which table, and which replies. Changes nothing.

SQLite's own check names pages by number and stops early. This adds which table or index each page belongs to, by
following the trees as far as they are whole, and names every reply that is lost or changed (`sqlite_salvage`).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from .results import CheckProgress
from .sqlite_pages import INDEX_INTERIOR, INDEX_LEAF, TABLE_INTERIOR, TABLE_LEAF, Pages, Unreadable
from .sqlite_salvage import Salvage

MOST_LINES = 100
"""The most problems to ask SQLite for."""
PAGE = re.compile(r"(?:on )?(?:tree )?(?:\d+ )?page (\d+)(?: is|:)?", re.IGNORECASE)
MISSING_ROW = re.compile(r"row (\d+) missing from index (\w+)")
WRONG_INDEX = re.compile(r"wrong # of entries in index (\w+)")


def examine(path: Path) -> Iterator[CheckProgress]:
    """Check a file that SQLite may not be able to open, then every reply in it. Yields its progress."""
    yield CheckProgress(0, tuple(check_structure(path)), damaged=True)
    yield from check_replies(path)


def check_structure(path: Path) -> list[str]:
    """Problems of the file's pages, trees and indexes."""
    with Pages(path) as pages:
        problems = _check_length(pages)
        lines = _ask_sqlite(path) if pages.has_header else []
        if not lines:
            return problems
        owners, overflow = _owners(pages)
        # SQLite may stop at the first of these without naming it.
        problems += [
            f"page {number}, of {_describe(name)}: what is in it is no page of it"
            for number, name in sorted(owners.items())
            if number not in overflow and not _is_tree_page(pages, number)
        ]
    return [*problems, *dict.fromkeys(_translate(line, owners) for line in lines)]


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
    if pages.header_count > pages.count:
        return [
            f"the file ends too early: it has {pages.count:,} pages of {pages.header_count:,}; it may have been cut off"
        ]
    return []


def _ask_sqlite(path: Path) -> list[str]:
    """The problems that SQLite's own check finds."""
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
                continue  # there is no WAL, and none can be made
            lines.append(str(error))
        finally:
            connection.close()
        break
    whole = [part.strip() for line in lines for part in line.split("\n")]
    return [line for line in whole if line and line != "ok" and not line.startswith("***")]


def _translate(line: str, owners: dict[int, str]) -> str:
    """A line of SQLite's check, with the table or index that it is about."""
    if found := MISSING_ROW.fullmatch(line):
        return f"{_describe(found[2])} does not know row {found[1]} of its table"
    if found := WRONG_INDEX.fullmatch(line):
        return f"{_describe(found[1])} has more or fewer entries than its table has rows"
    if found := PAGE.search(line):
        number = int(found[1])
        of = f", of {_describe(owners[number])}" if number in owners else ""
        return f"page {number}{of}: {line}"
    return f"SQLite: {line}"


def _describe(name: str) -> str:
    """A table or an index of a history, for a person."""
    if name.startswith("words"):
        return "the index of words"
    kind = "table" if name in ("replies", "thoughts", "entries", "migrations", "sqlite_schema") else "index"
    return f"the {kind} {name}"


def _owners(pages: Pages) -> tuple[dict[int, str], set[int]]:
    """The table or index of each page, as far as the trees can be followed; and which pages are overflow pages."""
    owners: dict[int, str] = {}
    overflow: set[int] = set()
    _assign(pages, 1, "sqlite_schema", owners, overflow)
    for number in list(owners):
        try:
            rows = [pages.row(number, place)[1] for place in pages.cells(number) if pages.kind(number) == TABLE_LEAF]
        except Unreadable:
            continue
        for row in rows:
            if len(row) == 5 and isinstance(row[1], str) and isinstance(row[3], int) and row[3]:
                _assign(pages, row[3], row[1], owners, overflow)
    return owners, overflow


def _is_tree_page(pages: Pages, number: int) -> bool:
    """Whether a page can be one of a tree."""
    if number > pages.count:
        return True  # that the file ends too early is reported once
    try:
        kind = pages.kind(number)
    except Unreadable:
        return False
    return kind in (INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF)


def _assign(pages: Pages, root: int, name: str, owners: dict[int, str], overflow: set[int]) -> None:
    """Note `name` as the owner of every page of the tree under `root`."""
    waiting = [root]
    while waiting:
        number = waiting.pop()
        if number in owners or not 1 <= number <= max(pages.count, pages.header_count):
            continue
        owners[number] = name
        try:
            waiting += pages.children(number)
            if pages.kind(number) == TABLE_LEAF:
                for place in pages.cells(number):
                    for other in pages.overflow(number, place):
                        if other not in owners:
                            owners[other] = name
                            overflow.add(other)
        except Unreadable:
            continue
