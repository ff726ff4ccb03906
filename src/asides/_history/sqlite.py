"""The SQLite store: one file, several writers, a write-ahead log (WAL), words in an FTS5 index.

Every batch is one transaction with `synchronous=FULL`, so what was committed survives a crash and a power cut. Deleting
overwrites (`secure_delete`), and `compact` rewrites the index, so that nothing of a purged reply stays in the file.

A file that cannot be written, or whose folder cannot, is opened read-only: with another program's WAL where that can be
read, else the file alone. Whatever writes then fails, and the error says why.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import DamagedError, HistoryError
from .records import KeptReply, original_text
from .reply_filter import ReplyFilter, placeholders
from .results import CheckProgress
from .sqlite_damage import check_replies, check_structure
from .sqlite_schema import APPLICATION, MIGRATIONS
from .store import (
    MOST_RANKED,
    PAGE,
    REPLY_COLUMNS,
    THOUGHT_COLUMNS,
    History,
    insert_into,
    reply_row,
    thought_row,
)
from .text_search import Term, indexable

PATIENCE = 5.0
"""Seconds to wait for another writer's lock."""
INSERT_REPLY = f"{insert_into('replies', REPLY_COLUMNS, '?')} ON CONFLICT (id) DO NOTHING"
INSERT_THOUGHT = insert_into("thoughts", ("reply", *THOUGHT_COLUMNS), "?")
BEGIN_PAUSE = 0.02
LAST = 2**63 - 1
STEP = 1000
"""Pages of the file that `compact` rewrites at once, so that no writer waits for long."""

SETTINGS = (
    "foreign_keys = ON",
    "secure_delete = ON",  # deleted rows are overwritten with zeros
    "cache_size = -65536",  # up to 64 MiB: ids are hashes, so writing touches pages all over their index
    "synchronous = FULL",
)
REASONS = {
    sqlite3.SQLITE_BUSY: ("another program is writing to it; try again", True),
    sqlite3.SQLITE_LOCKED: ("another program is writing to it; try again", True),
    sqlite3.SQLITE_FULL: ("the disk is full", True),
    sqlite3.SQLITE_IOERR: ("it could not be read or written; the disk may be full or gone", True),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", True),
    sqlite3.SQLITE_READONLY: ("it may only be read", True),
    sqlite3.SQLITE_PERM: ("you may not open it", True),
    sqlite3.SQLITE_NOTADB: ("this file is not a history: it is not a SQLite database", True),
    sqlite3.SQLITE_CORRUPT: ("it is damaged; `asides history verify` names the damage", True),
    sqlite3.SQLITE_TOOBIG: ("a reply is too long to be kept", False),
}
"""By the low byte of SQLite's code: the reason for a person, and whether the same may work later."""
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
UNWRITABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
"""SQLite's codes for a file that exists and cannot be written, or its WAL cannot."""


class SqliteHistory(History):
    """Replies in a file, made with mode 0600.

    Tables: `replies` and `thoughts`, `words` (FTS5 over the thoughts, without a copy of their texts), `migrations`.
    A crash leaves the file as after the last committed batch, perhaps with a WAL beside it (`-wal`, `-shm`) that the
    next opening reads; it never leaves half a reply. Several processes may write: each waits up to `patience` seconds
    for the lock.
    """

    repair = "`asides history salvage -o FILE` writes all that can be read into a new file"
    migrations = MIGRATIONS

    def __init__(self, path: Path, *, create: bool = True, patience: float | None = None) -> None:
        self.name = str(path)
        self._path = path
        self._damaged = False
        self._patience = PATIENCE if patience is None else patience
        if create:
            _make_file(path)
        elif not path.exists():
            raise HistoryError(f"there is no history at {path} yet; `asides --save` makes it with the first reply")
        with self._errors():
            self._open()
        if readable := _others_may_read(path):
            self.warnings += (f"{readable}; run: chmod 600 {shlex.quote(self.name)}",)

    def _open(self) -> None:
        """Connect: to write, else to read, else to read the file alone, without its WAL."""
        self.read_only = _why_read_only(self._path)
        if not self.read_only:
            try:
                self._connect("rw")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in UNWRITABLE or not self._path.is_file():
                    raise
                # By their modes file and folder can be written, but SQLite cannot make its WAL there.
                self.read_only = "it cannot be written here"
        try:
            # Where another program writes, its WAL is read too.
            self._connect("ro")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in UNWRITABLE:
                raise
            # Last, because it ignores the WAL and every lock: right only where nobody can be writing.
            self._connect("ro&immutable=1")
            log = self._path.with_name(self._path.name + "-wal")
            if log.exists() and log.stat().st_size:
                self.warnings += (f"{log} cannot be read here, so the newest replies may be missing",)

    def _connect(self, mode: str) -> None:
        address = f"{self._path.absolute().as_uri()}?mode={mode}"
        self._connection = sqlite3.connect(address, timeout=self._patience, isolation_level=None, uri=True)
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file."""
        with self._errors():
            self._connection.close()

    def add(self, replies: Iterable[KeptReply]) -> int:
        """Write replies, all or none, and return how many were new."""
        # Hash and encode before the lock is taken.
        rows = [
            # A list, not a generator: all of it is to be done by then.
            (reply_row(reply), [(thought_row(thought), indexable(thought.text)) for thought in reply.thoughts])
            for reply in (reply if reply.id else reply.named() for reply in replies)
        ]
        with self._transaction() as connection:
            return sum(_insert(connection, row, thoughts) for row, thoughts in rows)

    def compact(self) -> None:
        """Rewrite the index without the words of what was purged, shrink the file, and empty the WAL."""
        # FTS5 only marks words as deleted until its segments are merged. A negative number of pages starts a merge of
        # all of them, positive ones go on with it, and a step that changes fewer than two rows was the last.
        pages, changed = -STEP, 2
        while changed >= 2:
            before = self._connection.total_changes
            with self._transaction() as connection:
                connection.execute("INSERT INTO words(words, rank) VALUES('merge', ?)", (pages,))
            pages, changed = STEP, self._connection.total_changes - before
        free, left = LAST, self._free_pages()
        while 0 < left < free:
            self._rows(f"PRAGMA incremental_vacuum({STEP})")
            free, left = left, self._free_pages()
        ((held, _, _),) = self._rows("PRAGMA wal_checkpoint(TRUNCATE)")
        if held:
            raise HistoryError(f"{self.name}: another program reads it, so its log cannot be emptied", retry=True)

    def _free_pages(self) -> int:
        return int(self._rows("PRAGMA freelist_count")[0][0])

    def reindex(self) -> Iterator[int]:
        """Rebuild all indexes, words included, in one transaction: if it is stopped, nothing has changed."""
        with self._transaction() as connection:
            # Made anew: FTS5's `rebuild` reads the texts from the index's own content, and this one has none.
            connection.execute("DROP TABLE IF EXISTS words")
            for statement in MIGRATIONS["002_words"]:
                connection.execute(statement)
            done = last = 0
            sql = f"SELECT number, text, exact FROM thoughts WHERE number > ? ORDER BY number LIMIT {PAGE}"
            while rows := connection.execute(sql, (last,)).fetchall():
                last = rows[-1][0]
                words = [(number, indexable(original_text(text, data))) for number, text, data in rows]
                connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", words)
                done += len(rows)
                yield done
            connection.execute("REINDEX")

    def size(self) -> int:
        """Bytes of the file and its WAL."""
        files = (Path(self.name + ending) for ending in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def _prepare(self) -> None:
        connection = self._connection
        for setting in SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        # In this order: another process may be making the store, and commits both at once.
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        # A file that holds tables without our mark belongs to another program and is not touched.
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if tables and application != APPLICATION:
            raise HistoryError(f"{self.name}: this file is a SQLite database of something else")
        if self.read_only:
            self._prepare_to_read()
            return
        if not tables:
            self._wait_for(lambda: connection.execute("PRAGMA auto_vacuum = INCREMENTAL"))
            # This needs an exclusive lock for a moment, for which SQLite does not wait by itself.
            self._wait_for(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchall())
        self._migrate()

    def _prepare_to_read(self) -> None:
        """Give an older store the tables and columns of today, for this connection alone."""
        done = self._known_migrations()
        if "002_words" not in done:
            raise HistoryError(f"there is no history at {self.name}, and none can be made: {self.read_only}")
        # What is temporary needs a temporary database, and there may be no folder for one that can be written.
        self._connection.execute("PRAGMA temp_store = MEMORY")
        if "003_client" not in done:
            self._connection.execute("CREATE TEMP VIEW replies AS SELECT *, '' AS client FROM main.replies")
        if "004_entries" not in done:
            self._connection.execute(MIGRATIONS["004_entries"][0].replace("CREATE", "CREATE TEMP", 1))

    def _wait_for(self, action: Callable[[], object]) -> None:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                action()
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(BEGIN_PAUSE)

    def _migrations(self) -> list[str]:
        there = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone()
        return [name for (name,) in self._connection.execute("SELECT name FROM migrations")] if there else []

    def _migrate(self) -> None:
        if len(self._known_migrations()) == len(MIGRATIONS):
            return
        with self._transaction() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, time TEXT NOT NULL)")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            self._run_migrations(connection.execute, "datetime('now')")

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._errors():
            return self._connection.execute(sql, values).fetchall()

    def _find(self, terms: list[Term], where: ReplyFilter, limit: int) -> tuple[list[int], bool]:
        query = " AND ".join(_match(term) for term in terms)
        conditions, values = where.conditions()
        # Counted only up to the bound: the count itself must not read every hit.
        hits = self._rows(
            f"SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT {MOST_RANKED + 1})", (query,)
        )
        ranked = hits[0][0] <= MOST_RANKED
        order = "bm25(words), words.rowid DESC" if ranked else "words.rowid DESC"
        joined = (
            "JOIN thoughts AS t ON t.number = words.rowid JOIN replies AS r ON r.number = t.reply" if conditions else ""
        )
        first, last = self._bounds(where)
        rows = self._rows(
            f"SELECT words.rowid FROM words {joined} WHERE words MATCH ? AND words.rowid BETWEEN ? AND ?{conditions} "
            f"ORDER BY {order} LIMIT ?",
            [query, first, last, *values, limit],
        )
        return [number for (number,) in rows], ranked

    def _bounds(self, where: ReplyFilter) -> tuple[int, int]:
        """The numbers of the first and the last thought within the filter's time.

        Replies are mostly written in the order of time, so this saves FTS5 from reading the hits of all other times.
        """
        if where.since is None and where.until is None:
            return 0, LAST
        conditions, values = ReplyFilter(since=where.since, until=where.until).conditions()
        ((lowest, highest),) = self._rows(
            f"SELECT min(r.number), max(r.number) FROM replies AS r WHERE 1 = 1{conditions}", values
        )
        # Thoughts have rising numbers in the order of their replies.
        sql = "SELECT number FROM thoughts WHERE reply {} ? ORDER BY reply {}, place {} LIMIT 1"
        first = self._rows(sql.format(">=", "ASC", "ASC"), (lowest,))
        last = self._rows(sql.format("<=", "DESC", "DESC"), (highest,))
        return (first[0][0], last[0][0]) if first and last else (0, -1)

    def _delete(self, numbers: list[int]) -> None:
        marks = placeholders(len(numbers))
        with self._transaction() as connection:
            thoughts = connection.execute(
                f"SELECT number, text, exact FROM thoughts WHERE reply IN ({marks})", numbers
            ).fetchall()
            connection.executemany(
                # The index has no copy of the texts, so deleting needs them.
                "INSERT INTO words(words, rowid, text) VALUES('delete', ?, ?)",
                [(number, indexable(original_text(text, data))) for number, text, data in thoughts],
            )
            connection.execute(f"DELETE FROM thoughts WHERE reply IN ({marks})", numbers)
            connection.execute(f"DELETE FROM replies WHERE number IN ({marks})", numbers)

    def _check_store(self) -> list[str]:
        problems = check_structure(self._path)
        self._damaged = bool(problems)
        problems += self._check_words()
        if readable := _others_may_read(self._path):
            problems.append(f"{readable}; chmod 600 {shlex.quote(self.name)}")
        return problems

    def _check_words(self) -> list[str]:
        """Problems of the index of words."""
        try:
            if self.read_only:
                # FTS5's own check counts as writing. This reads every word with all its positions.
                self._rows("CREATE VIRTUAL TABLE IF NOT EXISTS temp.every_word USING fts5vocab(main, 'words', 'row')")
                self._rows("SELECT count(*), sum(cnt) FROM temp.every_word")
            else:
                self._rows("INSERT INTO words(words) VALUES('integrity-check')")
            ((indexed,),) = self._rows("SELECT count(*) FROM words_docsize")
            ((thoughts,),) = self._rows("SELECT count(*) FROM thoughts")
        except DamagedError:
            return ["the index of words is damaged; `asides history reindex` rebuilds it"]
        except HistoryError as error:
            return [f"the index of words cannot be checked: {error}"]
        if indexed != thoughts:
            return [f"the index of words has {indexed} thoughts of {thoughts}; `asides history reindex` rebuilds it"]
        return []

    def _check_replies(self) -> Iterator[CheckProgress]:
        if self._damaged:
            # SQLite finds rows through its trees, and these are damaged.
            return check_replies(self._path)
        # Bytes that are no UTF-8 must not end the check: they come back as text whose hash is wrong.
        self._connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        return super()._check_replies()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self.check_writable()
        with self._errors():
            # IMMEDIATE: a transaction that begins with reading gets no lock later on, and SQLite does not wait for it.
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise SQLite's errors as ours, with a reason for a person."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None) or 0
            reason, retry = REASONS.get(code & 0xFF, (str(error), False))
            kind = DamagedError if code & 0xFF in DAMAGED else HistoryError
            raise kind(f"{self.name}: {reason}", retry=retry) from error


def _why_read_only(path: Path) -> str:
    """Why a file that is there cannot be written; empty where it can."""
    if not os.access(path, os.W_OK):
        return "you may not write to the file, or it is on a disk that is mounted for reading"
    # The WAL is written there.
    if not os.access(path.parent, os.W_OK):
        return f"you may not write to its folder {path.parent}, or that is mounted for reading"
    return ""


def _others_may_read(path: Path) -> str:
    """The complaint about a file that is not for its owner alone. On Windows its mode says nothing of that."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if sys.platform == "win32" or not mode & 0o077:
        return ""
    return f"others may read the file of kept thoughts (mode {mode:04o})"


def _make_file(path: Path) -> None:
    """Make an empty file that only its owner may read, unless there is one. SQLite gives the WAL the same mode."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        in_the_way = next((folder for folder in path.parents if os.path.exists(folder) and not folder.is_dir()), None)
        reason = f"{in_the_way} is no folder" if in_the_way else f"{path}: {error.strerror}"
        raise HistoryError(reason, retry=True) from error


def _insert(connection: sqlite3.Connection, row: tuple[Any, ...], thoughts: list[tuple[tuple[Any, ...], str]]) -> int:
    added = connection.execute(INSERT_REPLY, row)
    # The reply is there already, and its thoughts and words with it: both are written in one transaction.
    if not added.rowcount:
        return 0
    number = added.lastrowid
    for columns, words in thoughts:
        thought = connection.execute(INSERT_THOUGHT, (number, *columns)).lastrowid
        connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (thought, words))
    return 1


def _match(term: Term) -> str:
    # Words hold letters and digits only, so there is no quote to double.
    return f'"{" ".join(term.words)}"' + ("*" if term.prefix else "")
