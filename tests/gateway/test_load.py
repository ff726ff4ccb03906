"""The scenes of `make test-load` at a twentieth: nothing is lost, nothing is left behind.

Each scene keeps to the least volume that shows what it is about: a pipe that is full, memory that grows.
"""

from __future__ import annotations

import asyncio

from tests.load.scenarios import SCENES, play


def test_a_twentieth_of_the_load() -> None:
    """Every reply is right or honestly cut off; no request, connection or descriptor stays; memory does not grow."""
    outcomes = asyncio.run(play(0.05))
    assert [outcome.name for outcome in outcomes] == list(SCENES)
    assert [problem for outcome in outcomes for problem in outcome.problems] == []
