"""Waiting for something to happen: on a condition, with one bound for all tests, and never for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 120.0
"""Seconds until a test gives up waiting. It bounds only what fails, so it is long: machines that test are busy."""


def eventually(look: Callable[[], object], why: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < deadline, why
        time.sleep(0.01)
