"""The scenes of `make test-load` at a tenth: nothing is lost, nothing is left behind."""

from __future__ import annotations

import asyncio

from tests.load.scenarios import SCENES, play


def test_a_tenth_of_the_load() -> None:
    """Every reply is right or honestly cut off; no request, connection or descriptor stays; memory does not grow."""
    outcomes = asyncio.run(play(0.1))
    assert [outcome.name for outcome in outcomes] == list(SCENES)
    assert [problem for outcome in outcomes for problem in outcome.problems] == []
