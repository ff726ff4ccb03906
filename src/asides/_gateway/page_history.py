"""History over HTTP for the page: lists, search, kept replies, exports, purging; each key its own, operators all.

Stores are for one thread and may be slow, so all of it is done by a few threads of its own: neither a stream nor the
reading of a large request ever waits for somebody's search. A store is opened for each question.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from .. import _history
from .._history import DamagedError, History, HistoryError, ReplyFilter
from .._history.records import encode_line
from .._page import kept
from .._page.figures import count_history
from ..errors import UsageError
from .http_request import HttpRequest, while_there
from .page_access import NO_STORE, PageAccess, check_query, names_of, read_object, read_query
from .refusals import Refusal
from .routes import Match
from .state import State

log = logging.getLogger("asides.gateway")
T = TypeVar("T")

THREADS = 2
"""Questions about history that are answered at once; others wait."""
LISTED = ("search", "before", "limit")
"""Parameters of lists, beside the filters."""
EXPORTS = {
    "jsonl": (kept.json_lines, b"application/x-ndjson", b"jsonl"),
    "markdown": (kept.markdown, b"text/markdown; charset=utf-8", b"md"),
}
EXPORTED_AT_ONCE = 64 * 1024
"""Bytes of an export that are written together."""
Read = Callable[[History, ReplyFilter, Mapping[str, str]], dict[str, Any]]
LISTS: dict[str, Read] = {"": kept.list_history, "conversations": kept.list_conversations}
"""What is listed, by what follows `/asides/history/`."""
SINGLE: dict[str, tuple[str, Callable[[History, ReplyFilter], dict[str, Any]]]] = {
    "conversations": ("conversation", kept.read_conversation),
    "replies": ("reply", kept.read_reply),
}
"""What is read by its id, and the filter that finds it."""


class PageHistory:
    """Answers the page's questions about history."""

    def __init__(self, access: PageAccess) -> None:
        self._access = access
        self._threads = ThreadPoolExecutor(THREADS, "asides-page")

    def close(self) -> None:
        """Take no more questions."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def read(self, http: HttpRequest, match: Match) -> None:
        """`GET /asides/history` and what is below it."""
        state, query = self._access.open(http), read_query(http)
        owner = self._access.owner(http, state, query.get("client", ""))
        what, _, id = match.rest.partition("/")
        if what == "export" and not id:
            await while_there(http, self._export(http, state, query, owner))
        elif what == "filters" and not id:
            check_query(query, ())
            names = names_of(state.config)
            await self._answer(http, state, lambda store: kept.list_labels(store, _filter({}, owner), names))
        elif what in SINGLE and id:
            check_query(query, ())
            name, read = SINGLE[what]
            await self._answer(http, state, lambda store: read(store, _filter({name: id}, owner)))
        elif what in LISTS and not id:
            check_query(query, (*kept.FILTERS, *LISTED))
            whose = {"owner": "all" if owner is None else "own"}
            await self._answer(http, state, lambda store: LISTS[what](store, _filter(query, owner), query) | whose)
        else:
            raise Refusal(404, f"history has nothing at {match.rest[:200]!r}", code="not_found")

    async def figures(self, http: HttpRequest, match: Match) -> None:
        """`GET /asides/figures`."""
        state, query = self._access.open(http), read_query(http)
        check_query(query, kept.FILTERS)
        owner = self._access.owner(http, state, query.get("client", ""))
        await self._answer(http, state, lambda store: count_history(store, _filter(query, owner)))

    async def purge(self, http: HttpRequest, match: Match) -> None:
        """`POST /asides/history/purge`."""
        state = self._access.open(http)
        asked = await read_object(http, state.config.limits)
        dry_run, everything = asked.pop("dry_run", False), asked.pop("all", False)
        filters = {name: value for name, value in asked.items() if value not in ("", None)}
        if not all(isinstance(value, str) for value in filters.values()):
            raise Refusal(400, "filters must be texts")
        if not isinstance(dry_run, bool) or not isinstance(everything, bool):
            raise Refusal(400, "`dry_run` and `all` must be true or false")
        check_query(filters, kept.FILTERS)
        if not filters and not everything:
            raise Refusal(400, f"purge deletes what you choose: {', '.join(kept.FILTERS)}; or `all`", param="all")
        owner = self._access.owner(http, state, filters.get("client", ""))
        work = partial(kept.purge, dry_run=dry_run)
        await self._answer(http, state, lambda store: work(store, _filter(filters, owner)))

    async def _answer(self, http: HttpRequest, state: State, work: Callable[[History], dict[str, Any]]) -> None:
        """Send what is found in history; a `Refusal` where there is none, or it fails."""

        def run() -> bytes:
            with _open_store(state) as store:
                return encode_line(_or_refuse(lambda: work(store)))  # here too: it may be megabytes

        found = await asyncio.get_running_loop().run_in_executor(self._threads, run)
        await http.answer(200, found, headers=NO_STORE)

    async def _export(self, http: HttpRequest, state: State, query: dict[str, str], owner: str | None) -> None:
        """A file, sent as it is read: its size is not known, and memory does not grow with it."""
        check_query(query, (*kept.FILTERS, "form", "thoughts"))
        form, thoughts = query.get("form", "jsonl"), query.get("thoughts", "1")
        if form not in EXPORTS or thoughts not in ("0", "1"):
            raise Refusal(400, f"form must be one of {', '.join(EXPORTS)}, and thoughts 1 or 0", param="form")
        write, media_type, ending = EXPORTS[form]
        where = _or_refuse(lambda: _filter(query, owner))
        with ThreadPoolExecutor(1, "asides-export") as thread:  # one of its own, because a store is for one thread

            def on_thread(work: Callable[[], T]) -> Awaitable[T]:
                return asyncio.get_running_loop().run_in_executor(thread, lambda: _or_refuse(work))

            store = await on_thread(lambda: _open_store(state))
            try:
                pieces = write(store.replies(where), thoughts=thoughts == "1")
                # Before the head is sent: what goes wrong here is still an error with a status.
                piece = await on_thread(lambda: _gather(pieces))
                name = (b"content-disposition", b'attachment; filename="asides.%b"' % ending)
                await http.begin(200, [(b"content-type", media_type), name, *NO_STORE])
                while piece:
                    await http.write(piece)
                    piece = await on_thread(lambda: _gather(pieces))
                await http.end()
            finally:
                await on_thread(store.close)


def _filter(query: Mapping[str, str], owner: str | None) -> ReplyFilter:
    return kept.read_filter(query, owner)


def _open_store(state: State) -> History:
    if not state.config.history.save:
        raise Refusal(404, "this gateway keeps no history; `history: {save: true}` lets it", code="history_off")
    return _or_refuse(lambda: _history.open(state.config.history.store))


def _or_refuse(work: Callable[[], T]) -> T:
    """What a store gives, its errors as refusals; what is wrong with the store itself is for the log."""
    try:
        return work()
    except UsageError as error:
        raise Refusal(400, str(error)) from error
    except HistoryError as error:
        if not error.retry and not isinstance(error, DamagedError):
            raise Refusal(404, str(error), code="not_found") from error
        log.warning("history cannot be read: %s", error)
        raise Refusal(503, "history cannot be read now; the gateway's log says why", code="history_failed") from error


def _gather(pieces: Iterator[bytes]) -> bytes:
    """The next of them, joined until they are worth a write; empty at the end."""
    found = bytearray()
    for piece in pieces:
        found += piece
        if len(found) >= EXPORTED_AT_ONCE:
            break
    return bytes(found)
