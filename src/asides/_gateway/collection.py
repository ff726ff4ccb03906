"""When the garbage collector runs in a gateway: hardly ever, and at once where memory has grown.

However a request ends, nothing of it is left to the collector (`tests/gateway/test_cycles.py`), and a full run stops
every stream. What other packages leave behind, and what a law does not know of yet, is collected when it has become
much: `MemoryWatch.look` is called now and then.
"""

from __future__ import annotations

import gc
import sys

THRESHOLDS = (20_000, 20, 50)
"""How often it runs by itself: hardly anything here is a cycle."""
GROWTH = 64 * 1024 * 1024
"""Bytes by which memory may grow without a collection."""


class MemoryWatch:
    """Collects garbage where memory has grown."""

    def __init__(self) -> None:
        self._least = resident()
        """The least memory since the last collection."""

    def look(self) -> bool:
        """Collect if memory has grown by `GROWTH` since it was least; whether that was so."""
        now = resident()
        self._least = min(self._least, now)
        if now - self._least < GROWTH:
            return False
        gc.collect()
        self._least = resident()
        return True


def begin() -> MemoryWatch:
    """Set the collector up for a process that has started: what is there now stays, and need not be looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    return MemoryWatch()


def resident() -> int:
    """Bytes of memory that this process has now; elsewhere than on Linux the most that it has had."""
    if sys.platform == "win32":
        return 0  # nothing in the standard library tells it
    import resource

    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
