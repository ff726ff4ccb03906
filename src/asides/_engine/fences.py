"""Whether a place in a text stands inside a fenced code block. Knows Markdown's fences and nothing else.

A run of three or more backticks or tildes where a line begins opens a block; a run of the same character that is at
least as long, with nothing but whitespace behind it, closes it. `Fences` follows a text a stretch at a time, so its
state says what a run that was cut in two has been so far. Only runs are looked at, each character once.
"""

from __future__ import annotations

from enum import Enum


class _FenceState(Enum):
    SEEK = "looking for a run of fence characters at the start of a line"
    RUN = "inside such a run"
    INFO = "behind an opening run of backticks, where another backtick says it was inline code"
    TAIL = "behind a run that closes the block if only whitespace follows"


_SEEK, _RUN, _INFO, _TAIL = _FenceState


class Fences:
    """Follows a text through its fenced blocks, a stretch at a time."""

    __slots__ = ("_character", "_count", "_mode", "_next", "_opening", "at")

    def __init__(self) -> None:
        self.at = 0
        """How far the text has been followed, as an offset of the raw text."""
        self._next: dict[str, int] = {}
        self.reset(0)

    def reset(self, at: int) -> None:
        """A new text begins here, outside of any block."""
        self.at = at
        self._mode = _SEEK
        self._character = ""
        self._count = 0
        self._opening: tuple[str, int] | None = None

    @property
    def inside(self) -> bool:
        """Whether the place that was reached stands in a block."""
        if self._mode is _RUN:
            # Directly behind a run, where a marker may stand on the same line: a run that may close counts as closing.
            return not self._closes() if self._opening else self._count >= 3
        return self._opening is not None and self._mode is not _TAIL

    def _closes(self) -> bool:
        return self._opening is not None and self._character == self._opening[0] and self._count >= self._opening[1]

    def advance(self, text: str, base: int, stop: int, content_from: int) -> None:
        """Follow `text` up to the index `stop`. `text[0]` is at the offset `base`; the content began at `content_from`.

        Where that is behind all that was followed, it is another content, which begins outside of any block.
        """
        if content_from > self.at:
            self.reset(content_from)
        floor = max(content_from - base, 0)
        at = max(self.at - base, 0)
        # Places are indices of this buffer and mean nothing in the next one.
        self._next = {"`": -2, "~": -2}
        while 0 <= at < stop:
            if self._mode is _SEEK:
                at = self._seek(text, at, stop, floor)
            elif self._mode is _RUN:
                after = _skip(text, self._character, at, stop)
                self._count += after - at
                at = after
                if at < stop:
                    self._end_run()
            elif self._mode is _INFO:
                at = self._read_info(text, at, stop)
            else:
                at = self._read_tail(text, at, stop)
        self.at = base + stop

    def _seek(self, text: str, at: int, stop: int, floor: int) -> int:
        """Find a run where a line begins; -1 when there is none."""
        start = at
        while (place := min(self._run_after(text, "`", at, stop), self._run_after(text, "~", at, stop))) < stop:
            if begins_line(text, place, floor):
                return self._begin_run(text, place)
            at = _skip(text, text[place], place, stop)
        # A shorter run at the very end may go on in the next stretch.
        at = stop - 1
        if text[at] in "`~":
            while at > start and at > stop - 2 and text[at - 1] == text[at]:
                at -= 1
            if begins_line(text, at, floor):
                return self._begin_run(text, at)
        return -1

    def _run_after(self, text: str, character: str, at: int, stop: int) -> int:
        """Where the next long enough run stands, or `stop`. Remembered, so that each character is searched once."""
        place = self._next[character]
        if place < at:
            place = text.find(character * 3, at, stop)
            self._next[character] = place = stop if place < 0 else place
        return place

    def _begin_run(self, text: str, at: int) -> int:
        self._mode, self._character, self._count = _RUN, text[at], 0
        return at

    def _read_info(self, text: str, at: int, stop: int) -> int:
        newline, tick = text.find("\n", at, stop), text.find("`", at, stop)
        # Markdown: with a backtick in the line that opens it, it is inline code and no block.
        if tick >= 0 and not 0 <= newline < tick:
            self._opening, self._mode = None, _SEEK
            return _skip(text, "`", tick, stop)
        if newline < 0:
            return stop
        self._mode = _SEEK
        return newline

    def _read_tail(self, text: str, at: int, stop: int) -> int:
        while at < stop and text[at] in " \t\r":
            at += 1
        if at < stop:
            if text[at] == "\n":
                self._opening = None
            self._mode = _SEEK
        return at

    def _end_run(self) -> None:
        if self._opening is None:
            if self._count >= 3:
                self._opening = (self._character, self._count)
            # The rule of the line behind it is of backticks alone.
            self._mode = _INFO if self._opening and self._character == "`" else _SEEK
        else:
            self._mode = _TAIL if self._closes() else _SEEK


def begins_line(text: str, at: int, floor: int) -> bool:
    """Whether a line begins at `at`, indented by no more than three spaces. The text began at the index `floor`."""
    start = at
    # Markdown: four spaces make it indented code.
    while start > floor and at - start < 3 and text[start - 1] == " ":
        start -= 1
    return start <= floor or text[start - 1] == "\n"


def _skip(text: str, character: str, at: int, stop: int) -> int:
    while at < stop and text[at] == character:
        at += 1
    return at
