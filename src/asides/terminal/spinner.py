"""One line that moves while a thought is hidden, and vanishes without trace. Knows no events."""

from __future__ import annotations

from .headings import describe, elapsed

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SECONDS_PER_FRAME = 0.1


class Spinner:
    """What to write to draw the line, draw it again, and take it away."""

    def __init__(self, label: str, *, below: bool) -> None:
        self._label = label
        self._below = below
        self._drawn = False
        self._frame = 0
        # A thought that is over at once is not worth a flicker.
        self._next = SECONDS_PER_FRAME

    def draw(self, seconds: float, characters: int, width: int) -> str:
        """The line after so many seconds and characters; nothing if it was drawn just now."""
        if seconds < self._next:
            return ""
        self._next = seconds + SECONDS_PER_FRAME
        before = "\r\x1b[K"
        if not self._drawn and self._below:
            # Make room for a line, come back, keep the place in the line that the answer has begun, go down.
            before = "\x1bD\x1bM\x1b7\r\n"
        self._drawn = True
        self._frame = (self._frame + 1) % len(FRAMES)
        line = f"{FRAMES[self._frame]} {self._label} {elapsed(seconds)}"
        if characters:
            line += f", {describe(characters)}"
        # A line that the terminal would wrap could not be taken away.
        return before + line[: max(width - 1, 0)]

    def clear(self) -> str:
        """Take the line away and go back to where the cursor stood."""
        if not self._drawn:
            return ""
        self._drawn = False
        return "\r\x1b[K\x1b8" if self._below else "\r\x1b[K"
