"""`python -m tests.history.writing STORE FIRST COUNT BATCH` writes replies; tells when each batch is safe."""

from __future__ import annotations

import sys

from asides import _history as history
from asides._history import sqlite
from tests.history.samples import reply
from tests.waiting import PATIENCE


def main() -> None:
    """Write, and tell the numbers that are safe."""
    sqlite.PATIENCE = PATIENCE  # several of these write at once, on a machine that may be busy
    store, first, count, batch = sys.argv[1], *map(int, sys.argv[2:])
    with history.open(store) as opened:
        for start in range(first, first + count, batch):
            numbers = range(start, min(start + batch, first + count))
            opened.add([reply(f"thought number {number}", "and " * 200, after=number) for number in numbers])
            print(numbers[-1], flush=True)


if __name__ == "__main__":
    main()
