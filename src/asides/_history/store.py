"""`History`, the interface of both stores, and everything that plain SQL on their common tables can do.

The table `replies` has one row per reply, `thoughts` one per thought, numbered in the order of writing. Names and the
answer are columns; what no query asks for (calls, notices, what was asked) is JSON in `body`. A text that a database
cannot hold as text (NUL, half a surrogate pair) is stored readable in `text` and as bytes in `exact`.

A reply's id is the hash of its content: the same reply is stored once, and `verify` can tell whether a row is what was
written. Long work (`replies`, `purge`, `verify`, `reindex`) goes page by page and yields its progress, so
memory stays constant, no lock is held for long, and a caller may stop between two steps.

SQLite and PostgreSQL are subclasses: they connect, migrate, write, and search words.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import msgspec

from ..dialects._request import RequestTurn
from ..message import Message
from ..reply._reply import Reply
from .entries import EntryTable, purge_entries
from .errors import DamagedError, HistoryError, UnknownIdError
from .listing import (
    NEWEST_FIRST,
    Cursor,
    behind,
    list_by_id,
    list_conversations,
    list_labels,
    list_replies,
    search_answers,
)
from .records import (
    KeptReply,
    ThoughtRow,
    body,
    calls_of,
    exact,
    from_microseconds,
    identity,
    label,
    microseconds,
    original_text,
    read_body,
    readable,
    text_turn,
)
from .reply_filter import ReplyFilter, placeholders
from .results import (
    AnswerSearch,
    CheckProgress,
    ConversationSummary,
    ModelShare,
    PurgeProgress,
    ReplyLabels,
    ReplyOverview,
    ReplySummary,
    SearchHit,
    SearchResult,
    StoreCounts,
)
from .text_search import Term, find_snippet, read_query

PAGE = 200
"""Replies read, checked or deleted at once: constant memory, and no lock for long."""
MOST_RANKED = 5000
"""With more hits than this, ranking would read too much for too little: then the newest come first."""
REPLY_COLUMNS = ("id", "time", "model", "source", "agent", "conversation", "format", "text", "exact", "body", "client")
"""The columns of `reply_row`, in its order."""
THOUGHT_COLUMNS = ("place", "text", "exact", "characters", "complete", "seconds")
"""The columns of `thought_row`, in its order."""
REPLY = ", ".join(f"r.{column}" for column in ("number", *REPLY_COLUMNS))
NOT_READABLE = (ValueError, TypeError, LookupError, OverflowError, msgspec.MsgspecError)
"""What reading a row raises that no reply could have written."""
ALL = ReplyFilter()


class History(ABC):
    """A store of replies and their thoughts. For one thread; open another in each.

    Errors are `HistoryError`s: `retry` says whether the same may work later. `DamagedError` means that the store's own
    data is damaged.
    """

    name: str
    """Its path or address, without a password."""
    warnings: tuple[str, ...] = ()
    """Sentences for the operator, for example that other users can read the file."""
    read_only: str = ""
    """Why it can only be read; empty where it can be written."""
    repair: ClassVar[str]
    """What to do where the store is damaged, as a sentence."""
    migrations: ClassVar[Mapping[str, Sequence[str]]]
    """The statements that make the tables, by name, in order. A name's statements never change."""

    # What each store does in its own way.

    @abstractmethod
    def add(self, replies: Iterable[KeptReply]) -> int:
        """Write replies, all or none, and return how many were new. What is there already is not written again."""

    @abstractmethod
    def close(self) -> None:
        """Close the store."""

    @abstractmethod
    def compact(self) -> None:
        """Make what was purged unreadable, and free its space."""

    @abstractmethod
    def size(self) -> int:
        """Bytes that the store takes."""

    @abstractmethod
    def reindex(self) -> Iterator[int]:
        """Rebuild the index of words from the thoughts. Yields after each step how many are done."""

    @abstractmethod
    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query, its values written as `?`."""

    @abstractmethod
    def _find(self, terms: list[Term], where: ReplyFilter, limit: int) -> tuple[list[int], bool]:
        """The numbers of thoughts with all the terms, best first; and whether they are ranked."""

    @abstractmethod
    def _delete(self, numbers: list[int]) -> None:
        """Delete the replies of these numbers in one transaction, their thoughts and words with them."""

    @abstractmethod
    def _check_store(self) -> list[str]:
        """What is wrong with the store itself."""

    @abstractmethod
    def _migrations(self) -> list[str]:
        """The names of the migrations that were run here."""

    # What follows from that.

    def _known_migrations(self) -> list[str]:
        """The migrations that were run here. An error where one of them is not known: a newer version ran it."""
        done = self._migrations()
        if unknown := set(done) - self.migrations.keys():
            raise HistoryError(
                f"{self.name} was written by a newer asides (it has {', '.join(sorted(unknown))}); update"
            )
        return done

    def _run_migrations(self, execute: Callable[[str], object], now: str) -> None:
        """Run the migrations that are missing, in the transaction that is open. `now` is the present time in SQL."""
        # Read in the transaction, because another process may have run them while this one waited for the lock.
        done = self._migrations()
        for name, statements in self.migrations.items():
            if name not in done:
                for statement in (*statements, f"INSERT INTO migrations VALUES ('{name}', {now})"):
                    execute(statement)

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Report a row that cannot be read as damage of the store."""
        try:
            yield
        except NOT_READABLE as error:
            raise DamagedError(
                f"{self.name}: {what} cannot be read ({error}); `asides history verify` names all such replies"
            ) from error

    def check_writable(self) -> None:
        """Raise a `HistoryError` where the store can only be read."""
        if self.read_only:
            raise HistoryError(f"{self.name} can only be read: {self.read_only}", retry=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def entries(self, kind: str) -> EntryTable:
        """What gateways keep for clients under ids, of one kind."""
        return EntryTable(self._rows, kind)

    def count_entries(self, where: ReplyFilter = ALL) -> int:
        """How many entries there are, of every kind."""
        conditions, values = where.conditions()
        return int(self._rows(f"SELECT count(*) FROM entries AS r WHERE 1 = 1{conditions}", values)[0][0])

    def keep(self, reply: Reply | Message, **fields: Any) -> str:
        """Write one reply, or a parser's message, and return its id. The fields are those of `KeptReply.of`."""
        kept = KeptReply.of(reply, **fields).named()
        self.add([kept])
        return kept.id

    def reply(self, id: str) -> KeptReply:
        """The reply of this id, or of the only id that begins so."""
        wanted = id.strip().lower()
        if not re.fullmatch("[0-9a-f]{1,32}", wanted):
            raise HistoryError(f"{id!r} is no id; `asides history list` shows them")
        rows = self._rows(
            f"SELECT {REPLY} FROM replies AS r WHERE r.id >= ? AND r.id < ? ORDER BY r.id LIMIT 2",
            # Ids are hexadecimal, so "g" is behind every id that begins with `wanted`; a range uses the index, LIKE may
            # not.
            (wanted, wanted + "g"),
        )
        if not rows:
            raise UnknownIdError(f"there is no reply {wanted} in {self.name}")
        if len(rows) > 1:
            raise HistoryError(f"several replies begin with {wanted}; write more of the id")
        return self._replies(rows)[0]

    def replies(self, where: ReplyFilter = ALL, *, after: str = "") -> Iterator[KeptReply]:
        """Every reply, in the order of writing; those after the reply of id `after` where one is named."""
        number = self._number(after) if after else 0
        for page in self._pages(where, number):
            yield from (reply for _, reply in page)

    def newest(self, where: ReplyFilter = ALL, *, limit: int = 20) -> list[KeptReply]:
        """The replies of latest time, newest first."""
        conditions, values = where.conditions()
        return self._replies(
            self._rows(
                f"SELECT {REPLY} FROM replies AS r WHERE 1 = 1{conditions} ORDER BY r.time DESC, r.number DESC LIMIT ?",
                [*values, limit],
            )
        )

    def latest(self, where: ReplyFilter = ALL) -> Iterator[KeptReply]:
        """Every reply, those of latest time first, read page by page."""
        before: Cursor | None = None
        while True:
            conditions, values = behind(where, before)
            sql = f"SELECT {REPLY} FROM replies AS r WHERE 1 = 1{conditions} {NEWEST_FIRST}"
            rows = self._rows(sql, [*values, PAGE])
            yield from self._replies(rows)
            if len(rows) < PAGE:
                return
            before = (rows[-1][2], rows[-1][0])

    def listed(self, where: ReplyFilter = ALL, *, limit: int = 20) -> list[ReplySummary]:
        """What a list shows of the replies of latest time, newest first. Reads no thought."""
        conditions, values = where.conditions()
        rows = self._rows(
            # Thoughts are counted by their index and not read: they are most of a store's bytes.
            "SELECT r.id, r.time, r.model, r.source, r.client, r.text, r.exact, "
            "(SELECT count(*) FROM thoughts AS t WHERE t.reply = r.number) "
            f"FROM replies AS r WHERE 1 = 1{conditions} ORDER BY r.time DESC, r.number DESC LIMIT ?",
            [*values, limit],
        )
        with self._reading("a reply"):
            return [
                ReplySummary(id, from_microseconds(time), model, source, client, original_text(text, data), thoughts)
                for id, time, model, source, client, text, data, thoughts in rows
            ]

    def overview(
        self, where: ReplyFilter = ALL, *, before: Cursor | None = None, limit: int = 20
    ) -> list[ReplyOverview]:
        """What a page shows of the replies of latest time, newest first, behind one of them. Reads no thought."""
        with self._reading("a reply"):
            return list_replies(self._rows, where, before, limit)

    def overview_of(self, ids: Sequence[str], where: ReplyFilter = ALL) -> list[ReplyOverview]:
        """The same of the replies of these ids, in their order."""
        with self._reading("a reply"):
            return list_by_id(self._rows, where, ids)

    def conversations(
        self, where: ReplyFilter = ALL, *, before: Cursor | None = None, limit: int = 20
    ) -> list[ConversationSummary]:
        """The conversations of latest time, newest first, behind one of them."""
        with self._reading("a reply"):
            return list_conversations(self._rows, where, before, limit)

    def thought_lengths(self, numbers: Sequence[int]) -> dict[int, int]:
        """How many characters the thoughts of replies have, by the numbers of the replies (`place[1]` of a list)."""
        if not numbers:
            return {}
        rows = self._rows(
            "SELECT t.reply, sum(t.characters) FROM thoughts AS t "
            f"WHERE t.reply IN ({placeholders(len(numbers))}) GROUP BY t.reply",
            numbers,
        )
        return {number: int(characters) for number, characters in rows}

    def labels(self, where: ReplyFilter = ALL) -> ReplyLabels:
        """Which models, sources and clients there are replies of."""
        return list_labels(self._rows, where)

    def search_answers(
        self, query: str, where: ReplyFilter = ALL, *, limit: int = 20, seconds: float = 10.0
    ) -> AnswerSearch:
        """Replies with all words of the query, or words that begin like them, in the answer; newest first.

        Answers are read one by one, for so many seconds at most.
        """
        terms = read_query(query)
        with self._reading("a reply"):
            return search_answers(self._rows, terms, where, limit, seconds) if terms and limit > 0 else AnswerSearch()

    def count(self, where: ReplyFilter = ALL) -> StoreCounts:
        """How many replies and thoughts there are."""
        conditions, values = where.conditions()
        replies = self._rows(f"SELECT count(*) FROM replies AS r WHERE 1 = 1{conditions}", values)
        thoughts = self._rows(
            f"SELECT count(*) FROM thoughts AS t JOIN replies AS r ON r.number = t.reply WHERE 1 = 1{conditions}",
            values,
        )
        return StoreCounts(replies[0][0], thoughts[0][0])

    def find_conversation(self, id: str) -> str:
        """The id of a conversation, or the only one that begins so."""
        found = self._rows(
            "SELECT DISTINCT r.conversation FROM replies AS r "
            "WHERE r.conversation <> '' AND substr(r.conversation, 1, ?) = ? ORDER BY 1 LIMIT 2",
            (len(label(id)), label(id)),
        )
        if not found or not id:
            raise UnknownIdError(
                f"there is no conversation {id} in {self.name}; `asides history conversations` lists them"
            )
        # In this order: the id itself comes before those that begin with it.
        if len(found) > 1 and found[0][0] != label(id):
            raise HistoryError(f"several conversations begin with {id}; write more of the id")
        return str(found[0][0])

    def conversation(self, id: str) -> list[RequestTurn]:
        """The turns of a conversation to send back to a model: what was asked, clean answers, calls that may be run."""
        rows = self._rows(
            "SELECT r.text, r.exact, r.body FROM replies AS r WHERE r.conversation = ? ORDER BY r.time, r.number",
            (label(id),),
        )
        turns: list[RequestTurn] = []
        with self._reading("a reply"):
            for text, data, rest in rows:
                held = read_body(rest)
                turns += (*held.turns(), text_turn("assistant", original_text(text, data), held.calls))
        return turns

    def search(self, query: str, where: ReplyFilter = ALL, *, limit: int = 20) -> SearchResult:
        """Thoughts with all words of the query; after them those with words that begin like them.

        Words in double quotes must stand together. No other character has a meaning, and no query is an error.
        """
        terms = read_query(query)
        if not terms or limit < 1:
            return SearchResult()
        whole = [Term(term.words, False) for term in terms]
        # Whole words first: without a prefix index, prefixes cost a walk over all words that begin so.
        numbers, ranked = self._find(whole, where, limit)
        if len(numbers) < limit and any(term.prefix for term in terms):
            more, more_ranked = self._find(terms, where, limit)
            seen = set(numbers)
            numbers += [number for number in more if number not in seen]
            ranked = ranked and more_ranked
        return SearchResult(tuple(self._hits(numbers[:limit], terms)), ranked)

    def stats(self, where: ReplyFilter = ALL) -> list[ModelShare]:
        """Figures by model and source, most replies first."""
        conditions, values = where.conditions()
        thoughts = {
            (model, source): (count, characters)
            for model, source, count, characters in self._rows(
                # Summed for each reply before the join, which then has one row for a reply instead of one for a
                # thought.
                "SELECT r.model, r.source, sum(t.many), sum(t.characters) FROM "
                "(SELECT reply, count(*) AS many, sum(characters) AS characters FROM thoughts GROUP BY reply) AS t "
                f"JOIN replies AS r ON r.number = t.reply WHERE 1 = 1{conditions} GROUP BY r.model, r.source",
                values,
            )
        }
        rows = self._rows(
            "SELECT r.model, r.source, count(*), min(r.time), max(r.time) FROM replies AS r "
            f"WHERE 1 = 1{conditions} GROUP BY r.model, r.source ORDER BY 3 DESC, 1, 2",
            values,
        )
        with self._reading("a reply"):
            return [
                ModelShare(
                    model=model,
                    source=source,
                    replies=replies,
                    thoughts=int(thoughts.get((model, source), (0, 0))[0]),
                    characters=int(thoughts.get((model, source), (0, 0))[1]),
                    first=from_microseconds(first),
                    last=from_microseconds(last),
                )
                for model, source, replies, first, last in rows
            ]

    def purge(
        self, where: ReplyFilter = ALL, match: re.Pattern[str] | None = None, *, dry_run: bool = False
    ) -> Iterator[PurgeProgress]:
        """Delete replies, or those of them in which `match` is found, and what a gateway keeps (`entries`) likewise.
        Yields its progress after each step.

        Each step is one transaction, so a caller may stop between two. `compact` afterwards removes it from the disk.
        """
        seen = replies = thoughts = 0
        for page in self._pages(where, 0):
            seen += len(page)
            chosen = [(number, reply) for number, reply in page if match is None or _matches(reply, match)]
            if chosen and not dry_run:
                self._delete([number for number, _ in chosen])
            replies += len(chosen)
            thoughts += sum(len(reply.thoughts) for _, reply in chosen)
            yield PurgeProgress(seen, replies, thoughts)
        kept = 0
        for deleted in purge_entries(self._rows, where, match, dry_run=dry_run):
            kept += deleted
            yield PurgeProgress(seen, replies, thoughts, kept)

    def verify(self) -> Iterator[CheckProgress]:
        """Check the store itself, then that every reply has the hash that is its id. Yields its progress."""
        yield CheckProgress(0, tuple(self._check_store()))
        yield from self._check_replies()

    def _check_replies(self) -> Iterator[CheckProgress]:
        done = 0
        for rows in self._row_pages(ALL, 0):
            done += len(rows)
            yield CheckProgress(done, tuple(self._check_rows(rows)))

    def _check_rows(self, rows: list[tuple[Any, ...]]) -> list[str]:
        try:
            replies = self._replies(rows)
        except DamagedError:
            if len(rows) == 1:
                # One damaged row fails the page that it is read with, so the page is read again row by row.
                return [f"reply {rows[0][1]} cannot be read"]
            return [problem for row in rows for problem in self._check_rows([row])]
        return [f"reply {reply.id} is not what was written" for reply in replies if identity(reply) != reply.id]

    # Rows to records.

    def _number(self, id: str) -> int:
        rows = self._rows("SELECT r.number FROM replies AS r WHERE r.id = ?", (id,))
        if not rows:
            raise HistoryError(f"there is no reply {id} in {self.name}")
        return int(rows[0][0])

    def _pages(self, where: ReplyFilter, after: int) -> Iterator[list[tuple[int, KeptReply]]]:
        for rows in self._row_pages(where, after):
            yield list(zip((row[0] for row in rows), self._replies(rows), strict=True))

    def _row_pages(self, where: ReplyFilter, after: int) -> Iterator[list[tuple[Any, ...]]]:
        conditions, values = where.conditions()
        sql = f"SELECT {REPLY} FROM replies AS r WHERE r.number > ?{conditions} ORDER BY r.number LIMIT {PAGE}"
        # By the last number and not by OFFSET: what is deleted or added meanwhile shifts nothing, and no page is read
        # twice.
        while rows := self._rows(sql, [after, *values]):
            after = rows[-1][0]
            yield rows

    def _replies(self, rows: list[tuple[Any, ...]]) -> list[KeptReply]:
        thoughts: dict[int, list[ThoughtRow]] = {row[0]: [] for row in rows}
        if rows:
            for number, index, text, data, complete, seconds in self._rows(
                "SELECT t.reply, t.place, t.text, t.exact, t.complete, t.seconds FROM thoughts AS t "
                f"WHERE t.reply IN ({placeholders(len(rows))}) ORDER BY t.reply, t.place",
                list(thoughts),
            ):
                thoughts[number].append(ThoughtRow(index, original_text(text, data), bool(complete), seconds))
        return [self._reply(row, thoughts[row[0]]) for row in rows]

    def _reply(self, row: tuple[Any, ...], thoughts: list[ThoughtRow]) -> KeptReply:
        with self._reading(f"reply {row[1]}"):
            return make_reply(row, thoughts)

    def _hits(self, numbers: list[int], terms: list[Term]) -> list[SearchHit]:
        if not numbers:
            return []
        rows = self._rows(
            "SELECT t.number, t.text, t.exact, r.id, r.time, r.model, r.source, r.agent, "
            "(SELECT count(*) FROM thoughts AS o WHERE o.reply = t.reply AND o.place <= t.place) "
            "FROM thoughts AS t JOIN replies AS r ON r.number = t.reply "
            f"WHERE t.number IN ({placeholders(len(numbers))})",
            numbers,
        )
        with self._reading("a reply"):
            hits = {
                number: SearchHit(
                    *(id, place, from_microseconds(time), model, source, agent),
                    find_snippet(original_text(text, data), terms),
                )
                for number, text, data, id, time, model, source, agent, place in rows
            }
        # One may have been purged since it was found.
        return [hits[number] for number in numbers if number in hits]


def reply_row(kept: KeptReply) -> tuple[Any, ...]:
    """A reply as `REPLY_COLUMNS`."""
    return (
        kept.id,
        microseconds(kept.time),
        kept.reply.model,
        kept.source,
        kept.agent,
        kept.conversation,
        kept.format,
        *text_columns(kept.reply.text),
        body(kept),
        kept.client,
    )


def thought_row(thought: ThoughtRow) -> tuple[Any, ...]:
    """A thought as `THOUGHT_COLUMNS`."""
    return (
        thought.index,
        *text_columns(thought.text),
        len(thought.text),
        int(thought.complete),
        thought.seconds,
    )


def text_columns(text: str) -> tuple[str, bytes | None]:
    """A text as the columns `text` and `exact`; the second is NULL where the first holds all of it."""
    data = exact(text)
    return (text, None) if data is None else (readable(text), data)


def insert_into(table: str, columns: Sequence[str], mark: str, **expressions: str) -> str:
    """The statement that inserts a row. `mark` is the driver's placeholder, or an expression with it for a column."""
    values = (expressions.get(column, mark) for column in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(values)})"


def make_reply(row: tuple[Any, ...], thoughts: list[ThoughtRow]) -> KeptReply:
    """The reverse of `reply_row`, with the row's number before it."""
    _, id, time, model, source, agent, conversation, format, text, data, rest, client = row
    return read_body(rest).restore(
        thoughts,
        id=id,
        time=from_microseconds(time),
        model=model,
        text=original_text(text, data),
        source=source,
        agent=agent,
        conversation=conversation,
        client=client,
        format=format,
    )


def _matches(kept: KeptReply, pattern: re.Pattern[str]) -> bool:
    """Whether the pattern is in any text of a reply, or in what was asked: a secret may be in any of them."""
    calls = [*kept.reply.tool_calls, *(call for turn in kept.asked for call in calls_of(turn))]
    texts = (
        kept.reply.text,
        *(thought.text for thought in kept.thoughts),
        *(turn.text for turn in kept.asked),
        *(text for call in calls for text in (call.name, call.arguments, call.raw, call.error_message)),
        *(notice.message for notice in kept.reply.notices),
    )
    return any(map(pattern.search, texts))
