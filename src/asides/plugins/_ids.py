"""Ids of the messages that a reply becomes in protocols that have several for one."""

from __future__ import annotations

from .._engine.calls.ids import make_id


def make_prefix(seed: int | None) -> str:
    """What the ids of a reply's messages begin with: at random, unless a seed is given."""
    return "msg_" + make_id("call", seed, 0, "", 0).removeprefix("call_")
