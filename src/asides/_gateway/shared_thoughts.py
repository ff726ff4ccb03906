"""Replayed thoughts that several processes share: the replay cache of each, and behind it a table in the history store.

A worker that is sent a tool's result may not be the one that saw the thought before the call. What its own cache does
not have is looked up in the store, once, and goes into the cache. Nothing is looked up for requests that miss nothing.

    entry = cache.put(conversation, reply, seed)
    await shared.put(credential, entry)                     # before the client can ask again
    ...
    if await shared.fetch(credential, restored.missed):     # in another worker: now its cache has them
        ...                                                 # plan the request again
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

import msgspec

from .._config.schema import Config, ReplayCacheSettings
from .._history import HistoryError
from .._history.entries import StoredEntry
from .entry_store import DAY, Bounds, EntryStore, SharedEntries, StoreThread
from .replay_cache import ReplayCache, ReplayEntry

log = logging.getLogger("asides.gateway")

KIND = "thought"
"""That of the entries in the store."""
KEPT_FOR = 7 * DAY
"""Since its last use: no conversation waits so long for the result of a tool."""
KEYS = 4
"""Entries in the store for each thought: it has one for each of its keys, mostly two."""
BYTES = 4
"""Bytes that a character may take."""


class SharedThoughts:
    """The thoughts of a replay cache, for every process that has the same store."""

    def __init__(self, cache: ReplayCache, settings: ReplayCacheSettings, store: str) -> None:
        """`store`: the history store."""
        self.store = store
        self._cache = cache
        self.entries: EntryStore = SharedEntries(
            StoreThread(store, log.warning), KIND, _bounds(settings), partial(log.warning, "thoughts: %s")
        )

    @classmethod
    def of(cls, cache: ReplayCache, config: Config, before: SharedThoughts | None = None) -> SharedThoughts | None:
        """As the configuration has it: None where nothing is shared, `before` where it is the same store."""
        settings, store = config.replay_cache, config.history.store
        if settings.store != "history" or not settings.entries:
            return None
        if before is None or before.store != store:
            return cls(cache, settings, store)
        before.entries.resize(_bounds(settings))
        return before

    async def put(self, credential: str, model: str, entry: ReplayEntry) -> None:
        """Let the others find an entry. Never raises: a thought that cannot be shared costs nobody their reply."""
        if not self.entries.can_keep:
            return  # the store has been away for long; this process has the thought all the same
        data = msgspec.json.encode(entry)
        try:
            # At once, because the client waits for the commit. There is a key for each call, and two may be the same.
            ids = dict.fromkeys(key.hex() for key in entry.keys)
            await self.entries.put(*(StoredEntry(id=id, client=credential, data=data, model=model) for id in ids))
        except HistoryError as error:
            log.warning("a thought is not shared with other workers: %s", error)

    async def fetch(self, credential: str, missed: Sequence[bytes]) -> bool:
        """Look up what the cache does not have; whether anything of it was found."""
        try:
            found = await self.entries.find(credential, [key.hex() for key in missed])
        except HistoryError as error:
            log.warning("thoughts of other workers cannot be looked up: %s", error)
            return False
        for data in {entry.data for entry in found.values()}:  # one thought is found under several keys
            self._cache.add(credential, msgspec.json.decode(data, type=ReplayEntry))
        return bool(found)

    async def close(self) -> None:
        """Finish what waits to be written."""
        await self.entries.close()


def _bounds(settings: ReplayCacheSettings) -> Bounds:
    return Bounds(settings.entries * KEYS, settings.characters * BYTES, KEPT_FOR)
