"""Ids of calls as those need them who answer calls: no two calls of a reply with the same.

Models repeat theirs within a reply (`functions.add:0`, twice); servers and hosts take two calls with one id for the
same call, or refuse both.
"""

from __future__ import annotations

from .._engine.calls.ids import make_id


class CallIds:
    """The ids of one reply's calls, each given once."""

    __slots__ = ("_given",)

    def __init__(self) -> None:
        self._given: set[str] = set()

    def give(self, id: str, index: int) -> str:
        """The id of the call that is part `index`: its own, with that number behind it if another call has it."""
        while id in self._given:
            id += f"_{index}"
        self._given.add(id)
        return id


class UniqueIds:
    """The ids of one choice's calls, whoever has made them: parser and upstream do not know of each other."""

    __slots__ = ("_seed", "_taken")

    def __init__(self, seed: int | None) -> None:
        self._seed = seed
        self._taken: set[str] = set()

    def add(self, id: str) -> None:
        """This id is taken."""
        self._taken.add(id)

    def take(self, id: str, index: int) -> str:
        """The id of a call; another one where it has none, or one that was given before."""
        seed = self._seed
        while not id or id in self._taken:
            id = make_id("call", seed, index, "", 0)
            seed = None if seed is None else seed + 1
        self._taken.add(id)
        return id
