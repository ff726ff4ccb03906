"""Traffic for the page: who watches, what each watcher is sent, and the last requests, held for a look inside.

A `Watcher` has a bounded queue of events that are bytes already. Whoever publishes appends and never waits: where a
watcher does not read fast enough its queue overflows, what does not fit is counted, and the watcher is sent the count
(`lost`) once it has caught up. So a reply that is watched is never slower than one that is not.

`RecentRequests` holds what is known of requests that are over, as JSON, under the credential of their client: two
clients may choose the same id. The oldest go first when there are too many, or too many bytes.

    traffic = Traffic()
    with traffic.watching(Watcher("5f…", everything=False)) as watcher:
        traffic.publish("5f…", "delta", {"id": "1", "text": "hm"})
        await watcher.take(15.0)            # b'event: delta\ndata: {"id":"1","text":"hm"}\n\n'
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec

MOST_WAITING = 1024 * 1024
"""Bytes of events that wait for one watcher."""
MOST_REQUESTS = 200
MOST_BYTES = 32 * 1024 * 1024
"""Of all requests that are kept."""
KEEP_ALIVE = b": keep-alive\n\n"


def event(name: str, data: Any) -> bytes:
    """A server-sent event."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode(data))


def encode(data: Any) -> bytes:
    """JSON, with U+FFFD for halves of surrogate pairs: a model may write one, and no browser reads it."""
    try:
        return msgspec.json.encode(data)
    except UnicodeEncodeError:
        return msgspec.json.encode(_mended(msgspec.to_builtins(data)))


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {name: _mended(held) for name, held in value.items()}
    return [_mended(held) for held in value] if isinstance(value, list) else value


class Watcher:
    """Somebody who watches."""

    def __init__(self, credential: str, *, everything: bool) -> None:
        """`everything`: whether the traffic of all credentials is seen, and not of this one alone."""
        self.credential = credential
        self.everything = everything
        self._events: deque[bytes] = deque()
        self._waiting = 0
        self._missed = 0
        self._ready = asyncio.Event()
        self._closed = False

    def sees(self, credential: str) -> bool:
        """Whether the requests of a credential are shown to it."""
        return self.everything or credential == self.credential

    def put(self, data: bytes) -> None:
        """Append an event; it is counted as missed where the queue is full, and while it has not caught up."""
        if self._missed or self._waiting + len(data) > MOST_WAITING:
            self._missed += 1
        else:
            self._events.append(data)
            self._waiting += len(data)
        self._ready.set()

    def close(self) -> None:
        """Nothing more will come."""
        self._closed = True
        self._ready.set()

    async def take(self, seconds: float) -> bytes:
        """What has come, or after so many seconds without anything a comment; empty when nothing more will come."""
        if not self._events and not self._missed and not self._closed:
            try:
                async with asyncio.timeout(seconds):
                    await self._ready.wait()
            except TimeoutError:
                return KEEP_ALIVE
        self._ready.clear()
        found = b"".join(self._events)
        if self._missed:
            found += event("lost", {"missed": self._missed})
        self._events.clear()
        self._waiting = self._missed = 0
        return found


class Traffic:
    """Everybody who watches."""

    def __init__(self) -> None:
        self.watchers: set[Watcher] = set()

    @contextlib.contextmanager
    def watching(self, watcher: Watcher) -> Iterator[Watcher]:
        """Let somebody watch as long as the block."""
        self.watchers.add(watcher)
        try:
            yield watcher
        finally:
            self.watchers.discard(watcher)

    def publish(self, credential: str, name: str, data: Any) -> None:
        """Send an event to all who may see requests of this credential."""
        seeing = [watcher for watcher in self.watchers if watcher.sees(credential)]
        if seeing:
            encoded = event(name, data)  # once for all
            for watcher in seeing:
                watcher.put(encoded)

    def close(self) -> None:
        """Let all streams end."""
        for watcher in self.watchers:
            watcher.close()


class RecentRequest(msgspec.Struct, frozen=True):
    """A request that is over."""

    credential: str
    summary: dict[str, Any]
    detail: bytes
    """All that is known of it, as JSON."""


class RecentRequests:
    """The last requests, by credential and id."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], RecentRequest] = {}
        self._bytes = 0

    def put(self, id: str, request: RecentRequest) -> None:
        """Keep a request; the oldest make room for it."""
        key = (request.credential, id)
        self._drop(key)
        self._held[key] = request
        self._bytes += len(request.detail)
        while len(self._held) > MOST_REQUESTS or self._bytes > MOST_BYTES:
            self._drop(next(iter(self._held)))

    def _drop(self, key: tuple[str, str]) -> None:
        old = self._held.pop(key, None)
        if old is not None:
            self._bytes -= len(old.detail)

    def find(self, id: str, watcher: Watcher) -> RecentRequest | None:
        """The latest request of this id that is shown to somebody."""
        return next((request for request in self.seen_by(watcher) if request.summary["id"] == id), None)

    def seen_by(self, watcher: Watcher) -> Iterator[RecentRequest]:
        """Those that are shown to somebody, the latest first."""
        return (request for request in reversed(self._held.values()) if watcher.sees(request.credential))
