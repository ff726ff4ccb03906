"""Ids as hosts need them: other ones in every reply, and no two calls of a reply with the same.

Without a seed of the caller's own, ids of a conversation would repeat from reply to reply. And models repeat theirs
within one (`functions.add:0`, twice); hosts take two calls with one id for the same call, or refuse both.
"""

from __future__ import annotations

import random

from .._engine.calls.ids import make_id
from ..policies import Policies, PolicyOptions


def new_seed(seed: int | None = None) -> int:
    """The seed of a reply's ids: a random one, unless one is given."""
    return random.getrandbits(63) if seed is None else seed


def with_seed(policies: Policies, options: PolicyOptions) -> Policies:
    """The caller's policies, with a random seed unless the caller gives one."""
    chosen = policies.but(**options)
    # Zero is what policies have where nobody chose a seed.
    return chosen if chosen.seed or "seed" in options else chosen.but(seed=new_seed())


def make_prefix(seed: int) -> str:
    """What the ids of a reply's messages begin with."""
    return "msg_" + make_id("call", seed, 0, "", 0).removeprefix("call_")


class CallIds:
    """The ids of one reply's calls, each given once."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def give(self, id: str, index: int) -> str:
        """The id of the call that is part `index`: its own, with that number behind it if another call has it."""
        while id in self._given:
            id += f"_{index}"
        self._given.add(id)
        return id
