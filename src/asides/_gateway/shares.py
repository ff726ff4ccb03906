"""Whose turn it is to let something go: that of whoever holds most, with what was used longest ago.

A bounded store that lets the oldest go can be emptied by one client that puts much into it. Here a client may use all
that others leave, and never drives out one who holds less than itself.

    shares = Shares()
    shares.put("ann", "resp_1", 700)
    shares.use("ann", "resp_1")
    shares.next_to_go(by_size=True)         # ("ann", "resp_1")
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Shares(Generic[Key]):
    """What each client holds: keys with their sizes."""

    def __init__(self) -> None:
        self._held: dict[str, OrderedDict[Key, int]] = {}
        """By client: the size of each key, the one used longest ago first."""
        self._sizes: dict[str, int] = {}
        self.count = 0
        self.size = 0

    def put(self, client: str, key: Key, size: int) -> None:
        """The client holds this too."""
        self.drop(client, key)
        self._held.setdefault(client, OrderedDict())[key] = size
        self._sizes[client] = self._sizes.get(client, 0) + size
        self.count += 1
        self.size += size

    def use(self, client: str, key: Key) -> None:
        """It was used just now."""
        self._held[client].move_to_end(key)

    def drop(self, client: str, key: Key) -> None:
        """It is held no more."""
        held = self._held.get(client)
        if held is None or key not in held:
            return
        size = held.pop(key)
        self._sizes[client] -= size
        self.count -= 1
        self.size -= size
        if not held:
            del self._held[client], self._sizes[client]

    def next_to_go(self, *, by_size: bool) -> tuple[str, Key]:
        """Whose is to go, and what: of the client that holds most, by size or by number."""
        client = max(self._sizes, key=self._sizes.__getitem__) if by_size else max(self._held, key=self._count_of)
        return client, next(iter(self._held[client]))

    def _count_of(self, client: str) -> int:
        return len(self._held[client])
