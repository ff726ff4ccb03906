"""Whether a place in a text stands inside a fenced code block. Knows Markdown's fences and nothing else."""

from __future__ import annotations

from enum import Enum


class _Mode(Enum):
    SEEK = "looking for a run of fence characters at the start of a line"
    RUN = "inside such a run"
    INFO = "behind an opening run of backticks, where another backtick says it was inline code"
    TAIL = "behind a run that closes the block if only whitespace follows"


class Fences:
    """Follows a text through its fenced blocks, a stretch at a time."""

    __slots__ = ("_character", "_count", "_mode", "_opening", "at", "opened_at")

    def __init__(self) -> None:
        self.at = 0
        """How far the text has been followed, as an offset of the raw text."""
        self.opened_at = -1
        """Where the block that is open now began."""
        self.reset(0)

    def reset(self, at: int) -> None:
        """A new text begins here, outside of any block."""
        self.at = at
        self.opened_at = -1
        self._mode = _Mode.SEEK
        self._character = ""
        self._count = 0
        self._opening: tuple[str, int] | None = None

    @property
    def settled(self) -> bool:
        """Whether text without fence characters cannot change the state."""
        return self._mode is _Mode.SEEK

    @property
    def inside(self) -> bool:
        """Whether the place that was reached stands in a block."""
        if self._mode is _Mode.RUN:
            return not self._closes() if self._opening else self._count >= 3
        return self._opening is not None and self._mode is not _Mode.TAIL

    def _closes(self) -> bool:
        return self._opening is not None and self._character == self._opening[0] and self._count >= self._opening[1]

    def advance(self, text: str, base: int, stop: int, floor: int) -> None:
        """Follow `text` up to the index `stop`. `text[0]` is at offset `base`; the text began at index `floor`."""
        at = start = max(self.at - base, 0)
        ticks = tildes = -2
        while at < stop:
            if self._mode is _Mode.SEEK:
                if ticks != -1 and ticks < at:
                    ticks = text.find("```", at, stop)
                if tildes != -1 and tildes < at:
                    tildes = text.find("~~~", at, stop)
                at = min((place for place in (ticks, tildes) if place >= at), default=-1)
                if at < 0:
                    # A run at the very end may go on in the next stretch.
                    if text[stop - 1] not in "`~":
                        break
                    at = stop - 2 if stop - 2 >= start and text[stop - 2] == text[stop - 1] else stop - 1
                self._character = text[at]
                if self._begins_line(text, at, floor):
                    self._mode, self._count, self.opened_at = (
                        _Mode.RUN,
                        0,
                        self.opened_at if self._opening else base + at,
                    )
                else:
                    at = _skip(text, self._character, at, stop)
            elif self._mode is _Mode.RUN:
                after = _skip(text, self._character, at, stop)
                self._count += after - at
                at = after
                if at < stop:
                    self._end_run()
            elif self._mode is _Mode.INFO:
                newline, tick = text.find("\n", at, stop), text.find("`", at, stop)
                if tick >= 0 and not 0 <= newline < tick:
                    self._opening, self._mode, at = None, _Mode.SEEK, _skip(text, "`", tick, stop)
                elif newline >= 0:
                    self._mode, at = _Mode.SEEK, newline
                else:
                    at = stop
            else:
                while at < stop and text[at] in " \t\r":
                    at += 1
                if at < stop:
                    if text[at] == "\n":
                        self._opening = None
                    self._mode = _Mode.SEEK
        self.at = base + stop

    def _end_run(self) -> None:
        if self._opening is None:
            if self._count >= 3:
                self._opening = (self._character, self._count)
            self._mode = _Mode.INFO if self._opening and self._character == "`" else _Mode.SEEK
        else:
            self._mode = _Mode.TAIL if self._closes() else _Mode.SEEK

    @staticmethod
    def _begins_line(text: str, at: int, floor: int) -> bool:
        start = at
        while start > floor and at - start < 3 and text[start - 1] == " ":
            start -= 1
        return start <= floor or text[start - 1] == "\n"


def _skip(text: str, character: str, at: int, stop: int) -> int:
    while at < stop and text[at] == character:
        at += 1
    return at
