"""The interface of kept thoughts, and all of it that needs no more than tables and SQL that both stores understand.

Knows neither SQLite nor PostgreSQL: a store says how to connect, to write and to find words.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import msgspec

from ..message import Message
from .errors import DamagedError, HistoryError
from .records import (
    Reply,
    Thought,
    Turn,
    body,
    exact,
    from_microseconds,
    identity,
    label,
    microseconds,
    read_body,
    readable,
)
from .reply_filter import ReplyFilter
from .results import CheckProgress, ModelShare, PurgeProgress, ReplySummary, SearchHit, SearchResult, StoreCounts
from .text_search import Term, find_snippet, read_query

PAGE = 200
"""Replies read, checked or deleted at once: constant memory, and no lock for long."""
MOST_RANKED = 5000
"""With more hits than this a word says little about a thought: then the newest come first, at once."""
REPLY = (
    "r.number, r.id, r.time, r.model, r.source, r.agent, r.conversation, r.format, r.text, r.exact, r.body, r.client"
)
ALL = ReplyFilter()


class History(ABC):
    """Kept replies and thoughts. For one thread; open another in each."""

    name: str
    """The store in words: its path or address, without a password."""
    warnings: tuple[str, ...] = ()
    """What its owner should know, as that others may read it."""
    read_only: str = ""
    """Why it can only be read; empty where it can be written."""

    # What each store does in its own way.

    @abstractmethod
    def add(self, replies: Iterable[Reply]) -> int:
        """Write replies, all or none, and say how many were new. What is there already is not written again."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the store."""

    @abstractmethod
    def compact(self) -> None:
        """Make what was purged unreadable and give its room back."""

    @abstractmethod
    def size(self) -> int:
        """Bytes that the store takes."""

    @abstractmethod
    def reindex(self) -> Iterator[int]:
        """Build the index of words anew, from the thoughts. Tells after each step how many are done."""

    @abstractmethod
    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query, its values written as `?`."""

    @abstractmethod
    def _find(self, terms: list[Term], where: ReplyFilter, limit: int) -> tuple[list[int], bool]:
        """The numbers of thoughts that hold the terms as whole words, best first; whether they are ranked."""

    @abstractmethod
    def _delete(self, numbers: list[int]) -> None:
        """Delete the replies of these numbers in one transaction, their thoughts and words with them."""

    @abstractmethod
    def _check_store(self) -> list[str]:
        """What is wrong with the store itself."""

    # What follows from it.

    def check_writable(self) -> None:
        """Raise an error that says why, where the store can only be read."""
        if self.read_only:
            raise HistoryError(f"{self.name} can only be read: {self.read_only}", retry=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def keep(
        self,
        message: Message,
        *,
        model: str = "",
        source: str = "run",
        agent: str = "",
        conversation: str = "",
        client: str = "",
        format: str = "",
        time: datetime | None = None,
        asked: Sequence[Turn] = (),
        seconds: float | None = None,
        thought_seconds: Iterable[float | None] = (),
    ) -> str:
        """Write one message and return its id. The fields are those of `Reply.of`."""
        reply = Reply.of(
            message,
            model=model,
            source=source,
            agent=agent,
            conversation=conversation,
            client=client,
            format=format,
            time=time,
            asked=asked,
            seconds=seconds,
            thought_seconds=thought_seconds,
        ).named()
        self.add([reply])
        return reply.id

    def reply(self, id: str) -> Reply:
        """The reply of this id, or of the only id that begins so."""
        wanted = id.strip().lower()
        if not re.fullmatch("[0-9a-f]{1,32}", wanted):
            raise HistoryError(f"{id!r} is no id; `asides history list` shows them")
        rows = self._rows(
            f"SELECT {REPLY} FROM replies AS r WHERE r.id >= ? AND r.id < ? ORDER BY r.id LIMIT 2",
            (wanted, wanted + "g"),
        )
        if not rows:
            raise HistoryError(f"there is no reply {wanted} in {self.name}")
        if len(rows) > 1:
            raise HistoryError(f"several replies begin with {wanted}; write more of the id")
        return self._replies(rows)[0]

    def replies(self, where: ReplyFilter = ALL, *, after: str = "") -> Iterator[Reply]:
        """Every reply, in the order of writing; those after the reply of id `after` where one is named."""
        number = self._number(after) if after else 0
        for page in self._pages(where, number):
            yield from (reply for _, reply in page)

    def newest(self, where: ReplyFilter = ALL, *, limit: int = 20) -> list[Reply]:
        """The replies of latest time, newest first."""
        conditions, values = where.conditions()
        return self._replies(
            self._rows(
                f"SELECT {REPLY} FROM replies AS r WHERE 1 = 1{conditions} ORDER BY r.time DESC, r.number DESC LIMIT ?",
                [*values, limit],
            )
        )

    def listed(self, where: ReplyFilter = ALL, *, limit: int = 20) -> list[ReplySummary]:
        """What a list shows of the replies of latest time, newest first. Reads no thought."""
        conditions, values = where.conditions()
        rows = self._rows(
            "SELECT r.id, r.time, r.model, r.source, r.client, r.text, r.exact, "
            "(SELECT count(*) FROM thoughts AS t WHERE t.reply = r.number) "
            f"FROM replies AS r WHERE 1 = 1{conditions} ORDER BY r.time DESC, r.number DESC LIMIT ?",
            [*values, limit],
        )
        return [
            ReplySummary(id, from_microseconds(time), model, source, client, original_text(text, data), thoughts)
            for id, time, model, source, client, text, data, thoughts in rows
        ]

    def count(self, where: ReplyFilter = ALL) -> StoreCounts:
        """How many replies and thoughts there are."""
        conditions, values = where.conditions()
        replies = self._rows(f"SELECT count(*) FROM replies AS r WHERE 1 = 1{conditions}", values)
        thoughts = self._rows(
            f"SELECT count(*) FROM thoughts AS t JOIN replies AS r ON r.number = t.reply WHERE 1 = 1{conditions}",
            values,
        )
        return StoreCounts(replies[0][0], thoughts[0][0])

    def conversation(self, id: str) -> list[Turn]:
        """A conversation's memory, in order: what goes back to a model. Clean text, and calls that may be run."""
        rows = self._rows(
            "SELECT r.text, r.exact, r.body FROM replies AS r WHERE r.conversation = ? ORDER BY r.time, r.number",
            (label(id),),
        )
        turns: list[Turn] = []
        for text, data, rest in rows:
            held = read_body(rest)
            calls = tuple(call for call in held.calls if call.error is None)
            turns += (*held.asked, Turn("assistant", original_text(text, data), calls))
        return turns

    def search(self, query: str, where: ReplyFilter = ALL, *, limit: int = 20) -> SearchResult:
        """Thoughts that hold all words of the query; after them those in which a word only begins so.

        Words in double quotes must stand together. Nothing else has a meaning, and nothing is an error.
        """
        terms = read_query(query)
        if not terms or limit < 1:
            return SearchResult()
        whole = [Term(term.words, False) for term in terms]
        numbers, ranked = self._find(whole, where, limit)
        if len(numbers) < limit and any(term.begins for term in terms):
            more, more_ranked = self._find(terms, where, limit)
            seen = set(numbers)
            numbers += [number for number in more if number not in seen]
            ranked = ranked and more_ranked
        return SearchResult(tuple(self._hits(numbers[:limit], terms)), ranked)

    def stats(self, where: ReplyFilter = ALL) -> list[ModelShare]:
        """How much there is of each model and source, most replies first."""
        conditions, values = where.conditions()
        thoughts = {
            (model, source): (count, characters)
            for model, source, count, characters in self._rows(
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
        shares = []
        for model, source, replies, first, last in rows:
            count, characters = thoughts.get((model, source), (0, 0))
            shares.append(
                ModelShare(
                    model=model,
                    source=source,
                    replies=replies,
                    thoughts=int(count),
                    characters=int(characters),
                    first=from_microseconds(first),
                    last=from_microseconds(last),
                )
            )
        return shares

    def purge(
        self, where: ReplyFilter = ALL, match: re.Pattern[str] | None = None, *, dry_run: bool = False
    ) -> Iterator[PurgeProgress]:
        """Delete replies, or those of them in which something matches. Tells after each step how far it is.

        Every step is whole: one may stop between two. `compact` afterwards makes it final on the disk.
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

    def verify(self) -> Iterator[CheckProgress]:
        """Check the store itself, then that every reply is what its id says. Tells after each step how far it is."""
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
                return [f"reply {rows[0][1]} cannot be read"]
            return [problem for row in rows for problem in self._check_rows([row])]
        return [f"reply {reply.id} is not what was written" for reply in replies if identity(reply) != reply.id]

    # Rows to records.

    def _number(self, id: str) -> int:
        rows = self._rows("SELECT r.number FROM replies AS r WHERE r.id = ?", (id,))
        if not rows:
            raise HistoryError(f"there is no reply {id} in {self.name}")
        return int(rows[0][0])

    def _pages(self, where: ReplyFilter, after: int) -> Iterator[list[tuple[int, Reply]]]:
        for rows in self._row_pages(where, after):
            yield list(zip((row[0] for row in rows), self._replies(rows), strict=True))

    def _row_pages(self, where: ReplyFilter, after: int) -> Iterator[list[tuple[Any, ...]]]:
        conditions, values = where.conditions()
        sql = f"SELECT {REPLY} FROM replies AS r WHERE r.number > ?{conditions} ORDER BY r.number LIMIT {PAGE}"
        while rows := self._rows(sql, [after, *values]):
            after = rows[-1][0]
            yield rows

    def _replies(self, rows: list[tuple[Any, ...]]) -> list[Reply]:
        thoughts: dict[int, list[Thought]] = {row[0]: [] for row in rows}
        if rows:
            marks = ", ".join("?" for _ in rows)
            for number, index, text, data, complete, seconds in self._rows(
                "SELECT t.reply, t.place, t.text, t.exact, t.complete, t.seconds FROM thoughts AS t "
                f"WHERE t.reply IN ({marks}) ORDER BY t.reply, t.place",
                list(thoughts),
            ):
                thoughts[number].append(Thought(index, original_text(text, data), bool(complete), seconds))
        return [self._reply(row, thoughts[row[0]]) for row in rows]

    def _reply(self, row: tuple[Any, ...], thoughts: list[Thought]) -> Reply:
        try:
            return make_reply(row, thoughts)
        except (ValueError, TypeError, OverflowError, msgspec.MsgspecError) as error:
            said = f"{self.name}: reply {row[1]} cannot be read ({error}); `asides history verify` tells more"
            raise DamagedError(said) from error

    def _hits(self, numbers: list[int], terms: list[Term]) -> list[SearchHit]:
        if not numbers:
            return []
        rows = self._rows(
            "SELECT t.number, t.text, t.exact, r.id, r.time, r.model, r.source, r.agent, "
            "(SELECT count(*) FROM thoughts AS o WHERE o.reply = t.reply AND o.place <= t.place) "
            "FROM thoughts AS t JOIN replies AS r ON r.number = t.reply "
            f"WHERE t.number IN ({', '.join('?' for _ in numbers)})",
            numbers,
        )
        hits = {
            number: SearchHit(
                id, place, from_microseconds(time), model, source, agent, find_snippet(original_text(text, data), terms)
            )
            for number, text, data, id, time, model, source, agent, place in rows
        }
        # One may have been purged since it was found.
        return [hits[number] for number in numbers if number in hits]


def reply_row(reply: Reply) -> tuple[Any, ...]:
    """A reply as the columns `id` to `body`, and `client`."""
    return (
        reply.id,
        microseconds(reply.time),
        reply.model,
        reply.source,
        reply.agent,
        reply.conversation,
        reply.format,
        *text_columns(reply.text),
        body(reply),
        reply.client,
    )


def thought_row(thought: Thought) -> tuple[Any, ...]:
    """A thought as the columns `place` to `seconds`."""
    return (
        thought.index,
        *text_columns(thought.text),
        len(thought.text),
        int(thought.complete),
        thought.seconds,
    )


def text_columns(text: str) -> tuple[str, bytes | None]:
    """A text as the columns `text` and `exact`; the second only where the first cannot say all."""
    data = exact(text)
    return (text, None) if data is None else (readable(text), data)


def original_text(text: str, data: bytes | None) -> str:
    """The reverse of `text_columns`."""
    return text if data is None else bytes(data).decode("utf-8", "surrogatepass")


def make_reply(row: tuple[Any, ...], thoughts: list[Thought]) -> Reply:
    """The reverse of `reply_row`, with the row's number before it."""
    _, id, time, model, source, agent, conversation, format, text, data, rest, client = row
    held = read_body(rest)
    return Reply(
        id=id,
        time=from_microseconds(time),
        model=model,
        source=source,
        agent=agent,
        conversation=conversation,
        client=client,
        format=format,
        text=original_text(text, data),
        thoughts=tuple(thoughts),
        calls=held.calls,
        notices=held.notices,
        termination=held.termination,
        asked=held.asked,
        seconds=held.seconds,
    )


def _matches(reply: Reply, pattern: re.Pattern[str]) -> bool:
    """Whether the pattern is in the answer, a thought, a call, or what was asked: who purges a secret means all."""
    calls = [*reply.calls, *(call for turn in reply.asked for call in turn.calls)]
    texts = (
        reply.text,
        *(thought.text for thought in reply.thoughts),
        *(turn.text for turn in reply.asked),
        *(text for call in calls for text in (call.name, call.arguments)),
    )
    return any(map(pattern.search, texts))
