"""Thoughts that can be folded and unfolded on the screen of a conversation, after they were written.

A terminal forgets nothing that it was sent and shows nothing again, so what stands below a thought is remembered here:
to unfold one, the cursor goes up to its line, all from there on is erased, and the thought and what stood below it are
written anew. That can be done as long as the line is on the screen and the window has the width in which it was
written; else the thought is written below.

    folds = ScreenFolds(streams, style)        is given to the display of each reply, and follows what is written
    folds.toggle_last()                        Ctrl-T at the prompt

`ScreenRows` counts the rows.
"""

from __future__ import annotations

import msgspec

from ...terminal import Style
from ...terminal._layout import CLOSED, INDENT, OPEN, fold_line
from ...terminal._sanitize import sanitize
from ...terminal._style import codes
from ...terminal._wrap import Wrapped
from ..screen_rows import ERASE, ScreenRows
from ..streams import PLAIN, Streams


class FoldedThought(msgspec.Struct, eq=False):
    """One thought on the screen."""

    text: str
    summary: str
    opened: bool
    row: int
    """Of its first line."""


class ScreenFolds(ScreenRows):
    """The thoughts on the screen, and what stands between them. Implements `terminal.thoughts.Folds`."""

    def __init__(self, streams: Streams, style: Style, *, mouse: bool = False) -> None:
        self.thoughts: list[FoldedThought] = []
        """Every thought of the conversation, in order."""
        self.action: str = " [show]" if mouse else ""
        """What stands behind the line of a folded thought."""
        super().__init__(streams)
        self._mouse = mouse
        self._heading, self._look = (codes(style.heading), codes(style.text)) if self._screen.colour else (PLAIN, PLAIN)
        self._written: list[str | FoldedThought] = []
        self._begun: int | None = None  # where in `_written` the thought begins that is being written
        self._marked_at = 0  # where in `_written` the mark is

    # What is written by others.

    def _add(self, text: str) -> None:
        super()._add(text)
        last = self._written[-1] if self._written else None
        if isinstance(last, str) and last.startswith(ERASE) and text.startswith(ERASE):
            self._written.pop()  # a spinner, of which only the last drawing counts
        self._written.append(text)

    def mark(self) -> None:
        """What is written from here on may be taken back."""
        super().mark()
        self._marked_at = len(self._written)

    def take_back(self) -> bool:
        """Erase what was written since the mark. False where it cannot be."""
        taken = super().take_back()
        if taken:
            del self._written[self._marked_at :]
            self._begun = None
        return taken

    def begin(self) -> None:
        """The first line of a thought is written next."""
        self._streams.flush()
        self._forget_what_is_gone()
        self._begun = len(self._written)
        self._row = self._counter.row

    def end(self, text: str, summary: str, *, opened: bool) -> None:
        """The thought has been written."""
        self._streams.flush()
        fold = FoldedThought(text, summary, opened, self._row)
        self.thoughts.append(fold)
        # Where it was not written to the screen, the window was resized meanwhile, or what models write may move the
        # cursor (`--raw`), it has no place there.
        if self._begun is not None and self._streams.one_screen and self._streams.err.sanitizes:
            self._written[self._begun :] = [fold]
        self._begun = None

    def add(self, text: str, summary: str) -> None:
        """A thought of before, which is not on the screen."""
        self.thoughts.append(FoldedThought(text, summary, False, 0))

    def typed(self, echo: str | None) -> None:
        """The person has typed something that stands on the screen as this; None where nobody knows."""
        self._forget_what_is_gone()
        if echo is None:
            self.forget()
        else:
            self._add(echo)

    def forget(self) -> None:
        """Nobody knows what stands where: thoughts will be written below."""
        super().forget()
        self._written.clear()
        self._begun = None

    def _forget_what_is_gone(self) -> None:
        """Only what follows the first thought on the screen is ever written again."""
        gone = 0
        for place, item in enumerate(self._written):
            if isinstance(item, FoldedThought):
                if item.row >= self._top:
                    break
                gone = place + 1
        if not any(isinstance(item, FoldedThought) for item in self._written[gone:]):
            gone = len(self._written)
        del self._written[:gone]
        self._marked_at = max(0, self._marked_at - gone)

    def prompt_drawn(self, rows: int) -> None:
        """A prompt of so many rows stands where the cursor is; the screen may have scrolled for it."""
        self._counter.lowest = max(self._counter.lowest, self._counter.row + rows - 1)

    # What the person asks for.

    def toggle_last(self) -> None:
        """Fold or unfold the last thought; the cursor stands at the beginning of the prompt."""
        if not self.thoughts:
            self._streams.aside().write_line("there is no thought yet")
        elif not self._toggle(self.thoughts[-1]):
            if self.thoughts[-1].opened:
                self._streams.aside().write_line("the thought stands above; /view folds and unfolds all of them")
            else:
                self.write_below(self.thoughts[-1])
        self._streams.flush()

    def toggle_at(self, distance: int) -> bool:
        """Fold or unfold the thought whose line is so many rows above the prompt. False where there is none."""
        row = self._counter.row - distance
        fold = next((item for item in self._written if isinstance(item, FoldedThought) and item.row == row), None)
        return fold is not None and self._toggle(fold)

    def write_below(self, fold: FoldedThought) -> None:
        """Write a thought where the cursor stands; from then on its line is this one."""
        self._streams.aside().end_line()
        self._streams.flush()
        self._respect_resize()
        # A line of it that stands further up stays as it is, and acts no more.
        self._written = ["".join(self._lines(item)) if item is fold else item for item in self._written]
        self._written.append(fold)
        fold.opened, fold.row = True, self._counter.row
        self._draw(self._lines(fold))
        self._streams.aside().write_line("")
        self._streams.flush()

    def _toggle(self, fold: FoldedThought) -> bool:
        self._respect_resize()
        if fold not in self._written or fold.row < self._top:
            return False
        fold.opened = not fold.opened
        below = self._written[self._written.index(fold) :]
        self._streams.flush()
        self._erase_from(fold.row)
        for item in below:
            if isinstance(item, FoldedThought):
                item.row = self._counter.row
            self._draw(self._lines(item))
        return True

    def _lines(self, item: str | FoldedThought) -> list[str]:
        if isinstance(item, str):
            return [item]
        mark, action = (OPEN, " [hide]" if self._mouse else "") if item.opened else (CLOSED, self.action)
        lines = [fold_line(mark, item.summary, action, self._screen.width()).join(self._heading) + "\n"]
        if item.opened:
            layout = Wrapped(self._screen.width, cursor=False, indent=INDENT)
            text = layout.feed(sanitize(item.text)) + layout.finish()
            lines.append(text.join(self._look) + "\n" if text else "")
        return lines
