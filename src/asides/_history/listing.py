"""Lists of replies and conversations for a person to look through, page by page, and a search through answers.

Works on the tables that both stores have, by the function that runs their queries. A page is continued behind the last
row of the one before, by time and number, so that replies that come meanwhile shift nothing. No thought is read.

Answers have no index of words as thoughts have: they are read, the newest first, until enough of them match. That is a
few seconds for a hundred thousand replies, so a search has a deadline and says whether it came to its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from .records import StoredRest, from_microseconds, original_text, read_body
from .reply_filter import ReplyFilter
from .results import AnswerHit, AnswerSearch, ConversationSummary, ReplyLabels, ReplyOverview
from .text_search import Term, contains_terms, find_snippet

Rows = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
Cursor = tuple[int, int]
"""The time and the number of the last row of a page."""
OVERVIEW = (
    "r.number, r.id, r.time, r.model, r.source, r.client, r.conversation, r.text, r.exact, r.body, "
    # Counted by their index and not read: they are most of a store's bytes.
    "(SELECT count(*) FROM thoughts AS t WHERE t.reply = r.number)"
)
NEWEST_FIRST = "ORDER BY r.time DESC, r.number DESC LIMIT ?"
SEARCHED_AT_ONCE = 500
"""Answers that are read before the clock is looked at."""


def list_replies(rows: Rows, where: ReplyFilter, before: Cursor | None, limit: int) -> list[ReplyOverview]:
    """The replies of latest time, newest first, behind a row."""
    conditions, values = behind(where, before)
    found = rows(f"SELECT {OVERVIEW} FROM replies AS r WHERE 1 = 1{conditions} {NEWEST_FIRST}", [*values, limit])
    return [_overview(row) for row in found]


def list_by_id(rows: Rows, where: ReplyFilter, ids: Sequence[str]) -> list[ReplyOverview]:
    """The replies of these ids, in their order; one that is gone is left out."""
    found = {}
    for id in ids:
        for each in list_replies(rows, msgspec.structs.replace(where, id=id), None, 1):
            found[each.id] = each
    return [found[id] for id in ids if id in found]


def list_conversations(rows: Rows, where: ReplyFilter, before: Cursor | None, limit: int) -> list[ConversationSummary]:
    """The conversations whose last reply is the latest, behind one; with their first question and their last model."""
    conditions, values = where.conditions()
    having = "" if before is None else "HAVING max(r.time) < ? OR (max(r.time) = ? AND max(r.number) < ?)"
    more = [] if before is None else [before[0], *before]
    found = rows(
        "SELECT r.conversation, count(*), min(r.time), max(r.time), min(r.number), max(r.number) FROM replies AS r "
        f"WHERE r.conversation <> ''{conditions} GROUP BY r.conversation {having} ORDER BY 4 DESC, 6 DESC LIMIT ?",
        [*values, *more, limit],
    )
    listed = []
    for id, replies, first, last, lowest, highest in found:
        ((body, client),) = rows("SELECT r.body, r.client FROM replies AS r WHERE r.number = ?", (lowest,))
        ((model,),) = rows("SELECT r.model FROM replies AS r WHERE r.number = ?", (highest,))
        question = read_body(body).question
        times = from_microseconds(first), from_microseconds(last)
        listed.append(ConversationSummary(id, model, client, question, replies, *times, (last, highest)))
    return listed


def list_labels(rows: Rows, where: ReplyFilter) -> ReplyLabels:
    """What there is to choose from: models, sources and clients, and from when to when."""
    conditions, values = where.conditions()
    sql = f"SELECT DISTINCT r.{{}} FROM replies AS r WHERE 1 = 1{conditions} ORDER BY 1"
    models, sources, clients = (
        tuple(name for (name,) in rows(sql.format(column), values)) for column in ("model", "source", "client")
    )
    sql = f"SELECT count(*), min(r.time), max(r.time) FROM replies AS r WHERE 1 = 1{conditions}"
    ((count, first, last),) = rows(sql, values)
    since, until = (None if moment is None else from_microseconds(moment) for moment in (first, last))
    return ReplyLabels(models, sources, clients, count, since, until)


def search_answers(rows: Rows, terms: list[Term], where: ReplyFilter, limit: int, seconds: float) -> AnswerSearch:
    """Replies whose answer has all the terms, newest first; for so many seconds at most."""
    deadline = time.monotonic() + seconds
    hits: list[AnswerHit] = []
    before: Cursor | None = None
    while True:
        conditions, values = behind(where, before)
        found = rows(
            "SELECT r.time, r.number, r.id, r.text, r.exact FROM replies AS r "
            f"WHERE r.text <> ''{conditions} {NEWEST_FIRST}",
            [*values, SEARCHED_AT_ONCE],
        )
        for _, _, id, text, data in found:
            answer = original_text(text, data)
            if contains_terms(answer, terms):
                hits.append(AnswerHit(id, find_snippet(answer, terms)))
                if len(hits) >= limit:
                    return AnswerSearch(tuple(hits))
        if len(found) < SEARCHED_AT_ONCE:
            return AnswerSearch(tuple(hits))
        if time.monotonic() > deadline:
            return AnswerSearch(tuple(hits), whole=False)
        before = (found[-1][0], found[-1][1])


def behind(where: ReplyFilter, before: Cursor | None) -> tuple[str, list[str | int]]:
    """The conditions of a filter for rows behind another, newest first, and their values."""
    conditions, values = where.conditions()
    if before is None:
        return conditions, values
    return f"{conditions} AND (r.time < ? OR (r.time = ? AND r.number < ?))", [*values, before[0], *before]


def _overview(row: tuple[Any, ...]) -> ReplyOverview:
    number, id, moment, model, source, client, conversation, text, data, body, thoughts = row
    held: StoredRest = read_body(body)
    return ReplyOverview(
        id=id,
        time=from_microseconds(moment),
        model=model,
        source=source,
        client=client,
        conversation=conversation,
        question=held.question,
        text=original_text(text, data),
        thoughts=thoughts,
        seconds=held.seconds,
        place=(moment, number),
    )
