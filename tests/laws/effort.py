"""How many examples a law is tried on."""

from __future__ import annotations

import os

LONG = os.environ.get("ASIDES_LAWS") == "long"
"""Whether time does not matter."""

TIMES = int(os.environ.get("ASIDES_LAWS_TIMES") or "100")
"""How many times more examples than a law names a long run tries."""

SHARE = 0.35
"""The share of the examples that a law names which an ordinary run tries: there are over eighty formats, and all tests
together shall take minutes."""


def examples(count: int) -> int:
    """So many examples for each format in an ordinary run; many more in a long one."""
    return count * TIMES if LONG else max(1, round(count * SHARE))
