"""Stored Responses: replies kept by id and credential, so that a client can go on from one, fetch it or delete it.

The dialect says what a request wants of kept replies and what an answer looks like (`Dialect.KEPT`); an `EntryStore`
keeps them. Here they meet:

    recalled = await responses.recall(api, credential, body)    # the body with its whole conversation
    ...                                                         # the request is planned, sent, answered
    await responses.keep(api, credential, recalled, reply, ...) # before the client can refer to the reply

A reply has its own input and output alone; what it goes on from is another entry, so a conversation takes memory once.
An id that is not there and one of another credential are the same 404. What the client does not want stored
(`store: false`) never comes here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import msgspec

from .._config.schema import Limits, ResponsesSettings
from .._history import HistoryError
from .._history.entries import StoredEntry
from ..dialects._base import KeptReplies
from ..dialects._request import RequestError
from .bodies import check_count, holds_more, off_loop
from .entry_store import DAY, Bounds, EntryStore, MemoryEntries, SharedEntries, StoreThread
from .refusals import Refusal

log = logging.getLogger("asides.gateway")

KIND = "response"
"""That of the entries in a shared store."""
COUNT_PATIENCE = 2.0
"""Seconds for a store to count its entries: Prometheus waits."""
T = TypeVar("T")
Query = Mapping[str, Sequence[str]]


class Recalled(NamedTuple):
    """A request with all that it refers to."""

    body: dict[str, Any]
    """For the dialect's `read_request`: the input is the whole conversation."""
    size: int
    """Bytes that it had, and of what was put into it."""
    own: list[Any]
    """The items of its own input."""
    previous: str
    private: bool
    """Whether the client does not want it stored."""
    keep: bool
    """Whether the reply is to be kept."""
    echo: dict[str, Any]
    """What the reply says of this."""


class ResponseCounts(msgspec.Struct):
    """What became of stored Responses since the start, for the metrics."""

    hits: int = 0
    """Those that a request referred to: by its id, or by an item's."""
    misses: int = 0
    """Those that a request referred to and that are not there."""
    evictions: int = 0
    """Those that have gone because of the bounds."""
    entries: int = 0
    """Those that are there, when they were last counted."""
    waiting: int = 0
    """Those that wait in memory for a store that is away."""


class StoredResponses:
    """Replies by id and credential."""

    def __init__(self, settings: ResponsesSettings, history_store: str, limits: Limits) -> None:
        """`history_store`: where they are kept with `store: history`."""
        bounds = _bounds(settings)
        self._limits = limits
        self._counts = ResponseCounts()
        self._keeps = settings.entries > 0
        self._place = (settings.store, history_store if settings.store == "history" else "")
        self.entries: EntryStore = (
            SharedEntries(StoreThread(history_store, log.warning), KIND, bounds, _warn)
            if settings.store == "history"
            else MemoryEntries(bounds)
        )

    @property
    def counts(self) -> ResponseCounts:
        """What became of them; how many there are, as `count` has found last."""
        self._counts.evictions, self._counts.waiting = self.entries.evicted, self.entries.waiting
        return self._counts

    async def count(self) -> None:
        """Find out how many there are."""
        # A store that cannot be reached, or has much to do, leaves the number that was last known.
        with suppress(HistoryError, TimeoutError):
            self._counts.entries = await asyncio.wait_for(self.entries.count(), COUNT_PATIENCE)

    def _look_up(self, found: bool) -> bool:
        """Count whether something that a request refers to is there."""
        self._counts.hits += found
        self._counts.misses += not found
        return found

    def renewed(self, settings: ResponsesSettings, history_store: str, limits: Limits) -> StoredResponses:
        """The same replies for another configuration, unless it keeps them elsewhere."""
        later = StoredResponses(settings, history_store, limits)
        later._counts = self._counts
        later.entries.evicted = self.entries.evicted
        if later._place == self._place:
            later.entries = self.entries
            later.entries.resize(_bounds(settings))
        return later

    async def close(self) -> None:
        """Finish what waits to be written."""
        await self.entries.close()

    # Requests for a reply.

    async def recall(self, api: KeptReplies, credential: str, body: dict[str, Any], size: int) -> Recalled:
        """Put what a request of `size` bytes refers to into its input. A `Refusal` where it is not there."""
        check_count(body, self._limits.messages)
        before: list[dict[str, Any]] = []
        items: dict[str, dict[str, Any]] = {}
        try:
            asked = api.read_recall(body)
            if asked.previous:
                chain = await self._chain(credential, asked.previous, "previous_response_id")
                before, more = await self._read(api, chain)
                size += more
            if asked.references:
                items, more = await self._find_items(api, credential, asked.references)
                size += more
            expanded, own = await off_loop(size, api.expand, body, before, items)
        except RequestError as error:
            raise Refusal(error.status, error.message, param=error.param) from error
        # Said before the reply is there, so it holds for that one, whatever the store does meanwhile.
        keep = asked.store and self._keeps and self.entries.can_keep
        if asked.store and self._keeps and not keep:
            log.warning("a response is not stored: as many wait for the store as may (responses.entries, size)")
        echo = {"store": keep, "previous_response_id": asked.previous or None, "instructions": body.get("instructions")}
        return Recalled(expanded, size, own, asked.previous, not asked.store, keep, echo)

    async def keep(
        self, api: KeptReplies, credential: str, recalled: Recalled, response: dict[str, Any], **labels: str
    ) -> None:
        """Keep a reply that has ended well. Never raises: a reply that cannot be kept is a reply all the same."""
        data = await off_loop(recalled.size, api.write_document, response, recalled.own)
        entry = StoredEntry(id=response["id"], client=credential, data=data, previous=recalled.previous, **labels)
        try:
            if not await self.entries.put(entry):
                log.warning(
                    "response %s is not stored: its %d bytes are more than responses.size", entry.id, entry.size
                )
        except HistoryError as error:
            log.warning("response %s is not stored: %s", entry.id, error)

    # Requests about one.

    async def show(self, api: KeptReplies, credential: str, id: str, query: Query) -> Any:
        """A kept reply, as it was sent."""
        found = await self._ask(self.entries.find(credential, [id]))
        if not self._look_up(id in found):
            raise _not_found(id)
        documents, _ = await self._read(api, [found[id]])
        return api.write_response(documents[0], query)

    async def delete(self, api: KeptReplies, credential: str, id: str) -> dict[str, Any]:
        """Delete a kept reply. Those that go on from it can be fetched, and be continued no more."""
        if not self._look_up(await self._ask(self.entries.delete(credential, id))):
            raise _not_found(id)
        return api.write_deleted(id)

    async def list_input(self, api: KeptReplies, credential: str, id: str, query: Query) -> dict[str, Any]:
        """What a kept reply was given: its own input behind all that it goes on from."""
        documents, size = await self._read(api, await self._chain(credential, id))
        return await off_loop(size, api.list_items, documents, query)

    # Looking up.

    async def _ask(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except HistoryError as error:
            log.warning("responses: %s", error)
            message = "the store of responses cannot be reached; the gateway's log says why"
            raise Refusal(503, message, code="store_unavailable", headers=((b"retry-after", b"1"),)) from error

    async def _chain(self, credential: str, id: str, param: str | None = None) -> list[StoredEntry]:
        limits = self._limits
        found = self.entries.chain(credential, id, entries=limits.messages, size=limits.body)
        chain = await self._ask(found)
        if len(chain) > limits.messages or sum(entry.size for entry in chain) > limits.body:
            raise _too_long(id)
        if not self._look_up(bool(chain) and not chain[0].previous):
            if not chain:
                raise _not_found(id, param)
            raise _not_found(chain[0].previous, "previous_response_id", f", from which {id[:100]!r} goes on")
        return chain

    async def _read(self, api: KeptReplies, entries: Sequence[StoredEntry]) -> tuple[list[dict[str, Any]], int]:
        """The documents of entries, and how many bytes they are."""
        size = sum(entry.size for entry in entries)
        # Each was within the limit when it came, all of them together may not be.
        most = self._limits.values
        if size > most and len(entries) > 1 and holds_more(b"".join(entry.data for entry in entries), most):
            raise _too_long(entries[-1].id)
        return await off_loop(size, lambda: [api.read_document(entry.data) for entry in entries]), size

    async def _find_items(
        self, api: KeptReplies, credential: str, references: Sequence[str]
    ) -> tuple[dict[str, dict[str, Any]], int]:
        """The items of these ids, and how many bytes were read to find them."""
        owners = {id: api.response_of(id) for id in references}
        found = await self._ask(self.entries.find(credential, sorted({*owners.values()} - {""})))
        if sum(entry.size for entry in found.values()) > self._limits.body:
            raise _too_long(references[0])
        documents, size = await self._read(api, list(found.values()))
        by_id = dict(zip(found, documents, strict=True))
        items: dict[str, dict[str, Any]] = {}
        for id, owner in owners.items():
            item = api.find_item(by_id[owner], id) if owner in by_id else None
            self._look_up(item is not None)
            if item is None:
                message = (
                    f"there is no item {id[:100]!r} for you here: it was not stored, or it was deleted; send it whole"
                )
                raise Refusal(404, message, param="input", code="item_not_found")
            items[id] = item
        return items, size


def _warn(message: str) -> None:
    log.warning("responses: %s", message)


def _bounds(settings: ResponsesSettings) -> Bounds:
    return Bounds(settings.entries, settings.size, settings.keep_days * DAY)


def _not_found(id: str, param: str | None = None, why: str = "") -> Refusal:
    message = f"there is no response {id[:100]!r} for you here{why}: it was not stored, or it was deleted"
    return Refusal(404, message, param=param, code="previous_response_not_found" if param else "not_found")


def _too_long(id: str) -> Refusal:
    message = f"the conversation up to {id[:100]!r} is longer than this gateway takes (limits.body, messages, values)"
    return Refusal(400, message)
