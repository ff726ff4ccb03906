"""The one progress display: how far long work has come, in a line that is drawn over itself and then taken away.

    with Progress(output, "imported", total=size) as progress:
        progress.show(done, "1,234 replies")        imported 1,234 replies (62 %)

Nothing is written where nobody looks, nor before the work has taken a tenth of a second.
"""

from __future__ import annotations

import time
from typing import Protocol, Self

SECONDS_PER_DRAWING = 0.1
BAR_WIDTH = 24


class LineOutput(Protocol):
    """Where the line is drawn."""

    at_line_start: bool
    """Whether what is written next begins a line."""

    @property
    def terminal(self) -> bool:
        """Whether a person looks at it."""

    def draw(self, text: str) -> None:
        """Add text that may hold escape codes."""

    def flush(self) -> None:
        """Write what was added."""


class Progress:
    """Draws the line, at most ten times a second. As a context it takes the line away at the end, whatever happens."""

    def __init__(
        self, output: LineOutput, doing: str = "", *, total: int = 0, bar: bool = False, hidden: bool = False
    ) -> None:
        """`doing` stands before the amount; `total` is what `done` will reach, 0 where nobody can tell.

        `bar` draws the share as a bar; without a total it shows `done` as megabytes. `hidden` draws nothing, for work
        whose results come out on the same screen.
        """
        self._output = output
        self._doing = doing
        self._total = total
        self._bar = bar
        self._next = time.monotonic() + SECONDS_PER_DRAWING if output.terminal and not hidden else float("inf")
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()

    def show(self, done: int, amount: str) -> None:
        """Draw how far it is, if it is time to. `done` is counted as the total is; `amount` says it to the person."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + SECONDS_PER_DRAWING
        # Written over the old line and cleared behind, not before: a line that is cleared first flickers.
        self._output.draw(f"\r{self._line(done, amount)}\x1b[K")
        self._output.flush()
        self._drawn = True

    def clear(self) -> None:
        """Take the line away, because others write there now; the next `show` may draw it again."""
        if self._drawn:
            self._output.draw("\r\x1b[K")
            self._output.at_line_start = True
            self._output.flush()
            self._drawn = False

    def _line(self, done: int, amount: str) -> str:
        if not self._bar:
            share = f" ({min(100, 100 * done // self._total)} %)" if self._total else ""
            return f"{self._doing} {amount}{share}"
        if not self._total:
            return f"{done / 1e6:,.1f} MB  {amount} "
        filled = min(1.0, done / self._total)
        return f"[{'#' * int(BAR_WIDTH * filled):<{BAR_WIDTH}}] {filled:4.0%}  {amount} "
