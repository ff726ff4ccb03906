"""The PostgreSQL store, for gateways on several machines: the tables of the file, in a schema of their own.

Words are searched with `tsvector` and a GIN index: every server has them, and they know prefixes, phrases and rank.
Trigrams would need an extension and would match the middle of words, which the file does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from .._extras import install_command
from ..errors import UsageError
from .errors import DamagedError, HistoryError
from .postgres_schema import LOCK, MIGRATIONS
from .records import KeptReply, ThoughtRow, original_text
from .reply_filter import ReplyFilter
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
from .text_search import Term, plain_words

PASSWORD = re.compile(r"(?<=://)([^:/@]*:)[^/@]+(?=@)|(password=)[^&]+")
TABLES = ("replies", "thoughts", "entries")
CONNECT_SECONDS = 10
MOST_INDEXED = 100_000
"""Characters of a thought whose words are indexed: a `tsvector` may not be larger than 1 MiB."""

INSERT_REPLY = f"{insert_into('replies', REPLY_COLUMNS, '%s')} ON CONFLICT (id) DO NOTHING RETURNING number"
INDEX_WORDS = "to_tsvector('simple', %s)"
INSERT_THOUGHT = insert_into("thoughts", ("reply", *THOUGHT_COLUMNS, "words"), "%s", words=INDEX_WORDS)
DAMAGED = ("XX001", "XX002")
"""The server's codes for a damaged table and a damaged index."""


class PostgresHistory(History):
    """Replies in the schema `asides` of a database: `replies`, `thoughts` (with their words), `migrations`.

    `add` is one transaction, so a crash of client or server leaves each batch whole or absent. Several processes may
    write; migrations run under an advisory lock. `name` is the address without its password.
    """

    repair = "restore a backup, or use the server's own tools, such as pg_amcheck and pg_dump"
    migrations = MIGRATIONS

    def __init__(self, address: str, *, create: bool = True) -> None:
        self.name = PASSWORD.sub(r"\1\2***", address)
        try:
            self._driver: Any = import_module("psycopg")
        except ImportError:
            raise UsageError(f"a postgresql:// history needs psycopg: {install_command('postgres')}") from None
        self._address = address
        with self._errors():
            # Never a prepared statement: psycopg prepares a query after several uses, and a pooler breaks that.
            self._connection: Any = self._driver.connect(
                address, autocommit=True, connect_timeout=CONNECT_SECONDS, prepare_threshold=None
            )
            try:
                # A schema of our own: the database may be shared with other programs.
                self._connection.execute("SET search_path TO asides")
                self._migrate(create=create)
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        """Close the connection."""
        with self._errors():
            self._connection.close()

    def add(self, replies: Iterable[KeptReply]) -> int:
        """Write replies, all or none, and return how many were new."""
        # In one order everywhere, so that two writers of the same replies cannot wait for each other.
        named = sorted(
            (reply if reply.id else reply.named() for reply in replies), key=lambda reply: (reply.time, reply.id)
        )
        if not named:
            return 0
        with self._errors(), self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(INSERT_REPLY, [reply_row(reply) for reply in named], returning=True)
            new: list[tuple[int, KeptReply]] = []
            for reply in named:
                if (row := cursor.fetchone()) is not None:
                    new.append((row[0], reply))
                cursor.nextset()
            thoughts = [
                (number, *thought_row(thought), _indexed(thought))
                for number, reply in new
                for thought in reply.thoughts
            ]
            if thoughts:
                cursor.executemany(INSERT_THOUGHT, thoughts)
            return len(new)

    def compact(self) -> None:
        """Free the space of what was purged, for the same tables."""
        with self._errors():
            for table in TABLES:
                self._connection.execute(f"VACUUM {table}")

    def reindex(self) -> Iterator[int]:
        """Compute the words of every thought again, then rebuild their index. Yields how many are done."""
        done = last = 0
        sql = f"SELECT number, place, text, exact FROM thoughts WHERE number > ? ORDER BY number LIMIT {PAGE}"
        while rows := self._rows(sql, (last,)):
            last = rows[-1][0]
            words = [
                (_indexed(ThoughtRow(place, original_text(text, data))), number) for number, place, text, data in rows
            ]
            with self._errors(), self._connection.transaction(), self._connection.cursor() as cursor:
                # A transaction for each page: rows stay locked for a moment only, and who stops it keeps what is done.
                cursor.executemany(f"UPDATE thoughts SET words = {INDEX_WORDS} WHERE number = %s", words)
            done += len(rows)
            yield done
        with self._errors():
            self._connection.execute("REINDEX INDEX thoughts_by_words")

    def size(self) -> int:
        """Bytes of the tables and their indexes."""
        sizes = " + ".join(f"pg_total_relation_size('{table}')" for table in TABLES)
        return int(self._rows(f"SELECT {sizes}")[0][0])

    def _migrate(self, *, create: bool) -> None:
        done = self._known_migrations()
        if len(done) == len(MIGRATIONS):
            return
        if not done and not create:
            raise HistoryError(f"there is no history at {self.name} yet; `asides --save` makes it with the first reply")
        with self._connection.transaction():
            # Two processes may make the store at the same moment, and `CREATE ... IF NOT EXISTS` fails where both pass
            # its check.
            self._connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
            self._connection.execute("CREATE SCHEMA IF NOT EXISTS asides")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY, time timestamptz NOT NULL)"
            )
            self._run_migrations(self._connection.execute, "now()")

    def _migrations(self) -> list[str]:
        ((there,),) = self._rows("SELECT to_regclass('asides.migrations') IS NOT NULL")
        return [name for (name,) in self._rows("SELECT name FROM migrations")] if there else []

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._errors():
            found: list[tuple[Any, ...]] = self._connection.execute(sql.replace("?", "%s"), values).fetchall()
            return found

    def _find(self, terms: list[Term], where: ReplyFilter, limit: int) -> tuple[list[int], bool]:
        query = " & ".join(filter(None, (_match(term) for term in terms)))
        if not query:
            return [], True
        conditions, values = where.conditions()
        joined = "JOIN replies AS r ON r.number = t.reply" if conditions else ""
        # Ranking reads the words of every hit, so it is done for MOST_RANKED at most.
        rows = self._rows(
            "WITH asked AS (SELECT to_tsquery('simple', ?) AS query), "
            f"hits AS (SELECT t.number, t.words FROM thoughts AS t {joined}, asked "
            f"WHERE t.words @@ asked.query{conditions} LIMIT {MOST_RANKED + 1}) "
            "SELECT number, ts_rank(words, asked.query) AS score FROM hits, asked ORDER BY score DESC, number DESC",
            [query, *values],
        )
        if len(rows) <= MOST_RANKED:
            return [number for number, _ in rows[:limit]], True
        rows = self._rows(
            f"SELECT t.number FROM thoughts AS t {joined} "
            f"WHERE t.words @@ to_tsquery('simple', ?){conditions} ORDER BY t.number DESC LIMIT ?",
            [query, *values, limit],
        )
        return [number for (number,) in rows], False

    def _delete(self, numbers: list[int]) -> None:
        with self._errors(), self._connection.transaction():
            self._connection.execute("DELETE FROM thoughts WHERE reply = ANY(%s)", (numbers,))
            self._connection.execute("DELETE FROM replies WHERE number = ANY(%s)", (numbers,))

    def _check_store(self) -> list[str]:
        ((lost,),) = self._rows(
            "SELECT count(*) FROM thoughts AS t LEFT JOIN replies AS r ON r.number = t.reply WHERE r.number IS NULL"
        )
        return [f"{lost} thoughts belong to no reply"] if lost else []

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise the driver's errors as ours."""
        try:
            yield
        except self._driver.Error as error:
            # The first line has the reason; the address in it may hold a password.
            reason = str(error).strip().partition("\n")[0].replace(self._address, self.name) or type(error).__name__
            if getattr(error, "sqlstate", None) in DAMAGED:
                raise DamagedError(f"{self.name}: {reason}; {self.repair}") from error
            away = isinstance(error, self._driver.OperationalError | self._driver.InterfaceError)
            raise HistoryError(f"{self.name}: {reason}", retry=away) from error


def _indexed(thought: ThoughtRow) -> str:
    return " ".join(plain_words(thought.text[:MOST_INDEXED]))


def _match(term: Term) -> str:
    words = [f"'{word}'" for word in plain_words(" ".join(term.words))]
    if words and term.prefix:
        words[-1] += ":*"
    return " <-> ".join(words)
