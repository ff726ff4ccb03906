"""Thoughts on a terminal or in a file: while they come (`Thoughts`), or whole (`render`). Never touches the answer.

`Thoughts` takes the engine's events and writes what a person sees: a heading, the thought laid out below it, a line
with its length (`collapse`), or a spinner that vanishes without trace (`hide`). On a screen that the answer shares it
keeps track of where the answer's line stands, because a heading must not go on in it. Where thoughts can be folded
(`Folds`), whoever folds them is given the text of each, and where its first line stands.

    thoughts = Thoughts(sys.stderr.write, width=80)
    thoughts.show(PartStart(0, "thinking"))      writes "Thinking\\n"
    thoughts.show(ThinkingDelta(0, "2 + 2"))     writes "  2 + 2"

Knows no formats and no models.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from ..events import Event, PartEnd, PartStart, TextDelta, ThinkingDelta
from ._layout import CLOSED, HEADING, INDENT, Indented, LineLayout, describe, elapsed, fold_line, heading, summary
from ._screen import COLUMNS

# What a pipe does not need is imported when it is needed, because the filter must start fast.
if TYPE_CHECKING:
    from ._sanitize import Sanitizer
    from ._style import Style

Mode = Literal["show", "collapse", "hide"]
"""How a thought is shown: in full, as one line with its length, or not at all."""
CUT = "(cut off)"
WAITING = "Waiting"
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SECONDS_PER_FRAME = 0.1


class Folds(Protocol):
    """Who can fold and unfold thoughts after they were written."""

    action: str
    """What stands behind the line of a folded thought."""

    def begin(self) -> None:
        """The first line of a thought is written next, at the beginning of a row."""

    def end(self, text: str, summary: str, *, opened: bool) -> None:
        """The thought has been written: all of it, or its summary alone."""

    def add(self, text: str, summary: str) -> None:
        """A thought has no line of its own on the screen."""


class Thoughts:
    """Shows the thoughts of one reply after another.

    Give it every event of the reply, also those of the answer, each before you write its text: so it sees when
    a thought is over and where the answer's line stands.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        *,
        width: int | Callable[[], int] | None = None,
        style: Style | None = None,
        colour: bool = False,
        cursor: bool = False,
        mode: Mode = "show",
        shared: bool = False,
        sanitize: bool = True,
        folds: Folds | None = None,
        hint: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`width`: columns, or a function that is asked again and again so that a resize is respected; None does not
        wrap. `cursor`: the screen knows escape codes, so a word that comes in pieces shows at once and a hidden
        thought has a spinner. `shared`: the answer is written on the same screen. `sanitize`: write nothing
        of the model's that would act on a terminal. `folds`: who can unfold a thought later; one that is not shown is a
        line such as `▸ Thought for 9 s, 245 words` then. `hint`: what stands behind the spinner of a thought."""
        self._write = write
        self._width: Callable[[], int] | None = (lambda: width) if isinstance(width, int) else width
        self._heading_codes, self._text_codes = _codes(style, colour=colour)
        self._cursor = cursor
        self._mode = mode
        self._shared = shared
        self._sanitize = sanitize
        self._folds = folds
        self._hint = hint
        self._clock = clock
        self._before: Literal["", "thought", "answer", "other"] = ""  # what was written here last
        self.begin()

    def begin(self, label: str = "") -> None:
        """A new reply begins, on a new line; its thoughts are counted from one. `label` stands before each heading."""
        self._label = f"{self._safe(label)}: " if label else ""
        self._count = 0
        self._kind = ""
        self._index = -1  # of the part that is open
        self._begun = 0.0
        self._stood = (self._before, False)  # before the part that is open
        self._text: list[str] = []  # of the thought that is open, where it can be folded
        self._layout: LineLayout | None = None
        self._sanitizer: Sanitizer | None = None
        self._spinner: Spinner | None = None
        self._line_open = False  # of a thought
        self._answer_open = False  # a line of the answer, on the same screen

    def _safe(self, name: str) -> str:
        """A name that somebody else gave, as it may be shown here."""
        if not self._sanitize:
            return name
        from ._sanitize import sanitize

        return sanitize(name)

    @property
    def spinning(self) -> bool:
        """Whether `tick` should be called every tenth of a second now."""
        return self._spinner is not None

    @property
    def answer_open(self) -> bool:
        """Whether the cursor stands in a line of the answer."""
        return self._answer_open

    def wait(self) -> None:
        """Nothing has come yet: spin until the first event, where the screen allows it."""
        if self._cursor and self._spinner is None and self._kind == "":
            self._begun = self._clock()
            self._characters = 0
            self._start_spinner(WAITING)

    def feed(self, events: Iterable[Event]) -> None:
        """Show the thoughts that these events are part of."""
        for event in events:
            self.show(event)

    def show(self, event: Event) -> None:
        """As `feed`, for one event."""
        # The spinner of `wait`, which no part has started and no part will end.
        if self._spinner is not None and self._kind == "":
            self._stop_spinner()
        if isinstance(event, ThinkingDelta):
            # A server that has split the reply itself may go on with a thought after another part has begun.
            if self._index != event.index:
                self._start(PartStart(event.index, "thinking"))
            self._grow(event.text)
        elif isinstance(event, TextDelta):
            self._note_answer(event.text)
        elif isinstance(event, PartStart):
            self._start(event)
        elif isinstance(event, PartEnd) and event.index == self._index:
            self._close(complete=event.complete)

    def retype(self, text: str, take_back: Callable[[], bool]) -> bool:
        """The open part, which has ended, is of the other kind: its words are a thought, or the answer.

        `take_back` erases what was written of it and says whether it could. Words that are a thought are then shown as
        one, else they stay. True where nothing is left of how they stood first. The answer itself is not written here.
        """
        index, begun, was = self._index, self._begun, self._kind
        if was == "thinking":
            self._stop_spinner()
            taken = self._layout is None or take_back()
            if not taken:
                self._end_lines(complete=True)
                self._before = "thought"
            self._layout, self._line_open = None, False
            self._count -= 1
        else:
            taken = take_back()
            if not taken and self._folds is not None:
                self._folds.add(text, summary(text, self._clock() - begun, complete=True))
        if taken:
            self._before, self._answer_open = self._stood
        if taken or was == "thinking":
            self._kind = ""
            self._start(PartStart(index, "text" if was == "thinking" else "thinking"))
            self._begun = begun
            if was == "thinking":
                self._note_answer(text)
            else:
                self._grow(text)
        return taken

    def tick(self) -> None:
        """Time has passed: move the spinner."""
        if self._spinner is not None:
            self._send(self._draw(self._spinner))

    def unfold(self) -> bool:
        """Show the thought that is being hidden from now on, with what has come of it. False where there is none."""
        if self._kind != "thinking" or self._layout is not None:
            return False
        self._stop_spinner()
        self._head()
        text, self._text = "".join(self._text), []
        self._characters -= len(text)
        self._grow(text)
        return True

    def pause(self) -> None:
        """Someone else writes lines here now: end the line, take the spinner away. The thought then goes on."""
        if self._spinner is not None:
            self._clear(self._spinner)
        if self._line_open:
            self._send("\n")
            self._line_open = False
            if self._layout is not None:
                self._layout.interrupt()

    def wrote_line(self) -> None:
        """Someone else has written whole lines here, such as a call."""
        self._before = "other"
        self._answer_open = False

    def finish(self) -> None:
        """The reply is over, or was stopped: leave nothing half drawn."""
        self._close(complete=False)
        self._stop_spinner()

    def _stop_spinner(self) -> None:
        if self._spinner is not None:
            self._clear(self._spinner)
            self._spinner = None

    def _clear(self, spinner: Spinner) -> None:
        text, back = spinner.clear(self._columns())
        if not back:
            # The window was made narrower, and nobody knows where the answer's line has gone.
            self._answer_open = False
        self._send(text)

    def _close(self, *, complete: bool) -> None:
        if self._kind == "thinking":
            self._end(complete=complete)
        self._kind = ""
        self._index = -1

    def _start(self, event: PartStart) -> None:
        # A server that has split a reply itself may end a part after the next has begun.
        self._close(complete=True)
        self._kind, self._index = event.kind, event.index
        self._begun = self._clock()
        self._stood = (self._before, self._answer_open)
        if event.kind == "thinking":
            self._start_thought()
        elif event.kind == "tool_call":
            if self._before == "thought" and self._mode == "show":
                self._send("\n")
        elif self._shared:
            # A gap that begins with a line end makes the blank line itself.
            if self._before in ("thought", "other") and not event.gap.startswith("\n"):
                self._send("\n")
            self._note_answer(event.gap)

    def _start_thought(self) -> None:
        self._count += 1
        self._characters = 0
        self._text.clear()
        if self._mode == "show":
            self._head()
        elif self._cursor:
            self._start_spinner(HEADING, self._hint)

    def _head(self) -> None:
        """Write the heading of a thought whose text follows."""
        self._begin_fold()
        self._send(self._title() + "\n")
        self._layout = _new_layout(self._width, cursor=self._cursor)
        if self._sanitize:
            from ._sanitize import Sanitizer

            self._sanitizer = Sanitizer()

    def _begin_fold(self) -> None:
        """Go to where the first line of the thought stands."""
        self._send(self._separation())
        if self._folds is not None:
            self._folds.begin()

    def _start_spinner(self, label: str, hint: str = "") -> None:
        self._spinner = Spinner(label, hint, below=self._answer_open)
        self._send(self._draw(self._spinner))

    def _grow(self, text: str) -> None:
        self._characters += len(text)
        if self._folds is not None:
            self._text.append(text)
        if self._layout is not None:
            self._send_words(self._layout.feed(self._sanitizer.feed(text) if self._sanitizer is not None else text))
        elif self._spinner is not None:
            self._send(self._draw(self._spinner))

    def _end(self, *, complete: bool) -> None:
        self._stop_spinner()
        seconds = self._clock() - self._begun
        opened = self._layout is not None
        if opened:
            self._end_lines(complete=complete)
        elif self._folds is not None:
            self._begin_fold()
            length = summary("".join(self._text), seconds, complete=complete)
            line = fold_line(CLOSED, length, self._folds.action, self._columns())
            self._send(line.join(self._heading_codes) + "\n")
        elif self._mode == "collapse":
            # No time on a pipe: the same input has to give the same output.
            length = describe(self._characters, seconds if self._cursor else 0.0)
            self._send(f"{self._separation()}{self._title()} ({length}{'' if complete else ', cut off'})\n")
        else:
            return
        self._before = "thought"
        if self._folds is not None:
            text = "".join(self._text)
            self._folds.end(text, summary(text, seconds, complete=complete), opened=opened)

    def _end_lines(self, *, complete: bool) -> None:
        """Write what is left of a thought that is shown, to the end of its line."""
        if self._layout is None:
            return
        # The sanitizer may hold a carriage return, which could have been half of a line end.
        rest = self._layout.feed(self._sanitizer.finish()) if self._sanitizer is not None else ""
        self._send_words(rest + self._layout.finish())
        self._layout = None
        self._send(("\n" if self._line_open else "") + ("" if complete else f"{INDENT}{CUT}\n"))
        self._line_open = False

    def _separation(self) -> str:
        """What parts the heading from what stands before it."""
        line = "\n" if self._answer_open else ""
        self._answer_open = False
        blank = self._before == "answer" or (self._before != "" and self._mode == "show")
        return line + ("\n" if blank else "")

    def _title(self) -> str:
        # While they come nobody knows whether there will be several, so the first has no number.
        return (self._label + heading(self._count, several=self._count > 1)).join(self._heading_codes)

    def _note_answer(self, text: str) -> None:
        if self._shared and text:
            self._answer_open = not text.endswith("\n")
            self._before = "answer"

    def _draw(self, spinner: Spinner) -> str:
        return spinner.draw(self._clock() - self._begun, self._characters, self._columns())

    def _columns(self) -> int:
        return self._width() if self._width is not None else COLUMNS

    def _send_words(self, words: str) -> None:
        if words:
            self._line_open = True
            self._send(words.join(self._text_codes))

    def _send(self, text: str) -> None:
        if text:
            self._write(text)


def _codes(style: Style | None, *, colour: bool) -> tuple[tuple[str, str], tuple[str, str]]:
    """The escape codes around a heading and around a thought; empty without colour."""
    if not colour:
        return ("", ""), ("", "")
    from ._style import Style, codes

    style = style or Style()
    return codes(style.heading), codes(style.text)


def _new_layout(width: Callable[[], int] | None, *, cursor: bool) -> LineLayout:
    if width is None:
        return Indented()
    from ._wrap import Wrapped

    return Wrapped(width, cursor=cursor)


class Spinner:
    """What to write to draw the line, draw it again, and take it away.

    The cursor stands at the beginning of the line, and what is below it is erased: a window that is made narrower may
    lay the line out in two rows, and then nothing of it is left.
    """

    def __init__(self, label: str, hint: str = "", *, below: bool) -> None:
        self._label = label
        self._hint = hint
        self._below = below
        self._width = 0  # of the screen when the line was first drawn; 0: it is not drawn
        self._frame = 0
        # A thought that is over at once is not worth a flicker.
        self._next = SECONDS_PER_FRAME

    def draw(self, seconds: float, characters: int, width: int) -> str:
        """The line after so many seconds and characters; nothing if it was drawn just now."""
        if seconds < self._next:
            return ""
        self._next = seconds + SECONDS_PER_FRAME
        before = "\r\x1b[J"
        if not self._width:
            self._width = width
            if self._below:
                # Make room for a line, come back, keep the place in the line that the answer has begun, go down.
                before = "\x1bD\x1bM\x1b7\r\n"
        self._frame = (self._frame + 1) % len(FRAMES)
        line = f"{FRAMES[self._frame]} {self._label} {elapsed(seconds)}"
        if characters:
            line += f", {describe(characters)}"
        if self._hint and len(line) + len(self._hint) + 2 < width:
            line += f"  {self._hint}"
        # A line that the terminal would wrap could not be taken away.
        return before + line[: max(width - 1, 0)] + "\r"

    def clear(self, width: int) -> tuple[str, bool]:
        """Take the line away and go back to where the cursor stood; False where that place was lost."""
        drawn, self._width = self._width, 0
        if not drawn:
            return "", True
        if not self._below:
            return "\r\x1b[J", True
        return ("\r\x1b[J\x1b8", True) if width == drawn else ("\r\x1b[J", False)


def render(
    thoughts: Sequence[str],
    *,
    width: int | None = None,
    style: Style | None = None,
    colour: bool = False,
    collapse: bool = False,
) -> str:
    """All thoughts of a message as lines, a blank line between them. Numbered when there are several.

    With `collapse` each is one line with its length. Control characters in them are made visible.

    Examples:
        >>> from asides.terminal import render
        >>> print(render(["2+2 is 4."], width=40), end="")
        Thinking
          2+2 is 4.
    """
    from ._sanitize import sanitize as sanitized

    heading_codes, text_codes = _codes(style, colour=colour)
    blocks: list[str] = []
    for number, thought in enumerate(thoughts, 1):
        title = heading(number, several=len(thoughts) > 1).join(heading_codes)
        if collapse:
            blocks.append(f"{title} ({describe(len(thought))})\n")
            continue
        layout = _new_layout(None if width is None else lambda: width, cursor=False)
        lines = layout.feed(sanitized(thought)) + layout.finish()
        blocks.append(f"{title}\n{lines.join(text_codes)}\n" if lines else f"{title}\n")
    return ("" if collapse else "\n").join(blocks)
