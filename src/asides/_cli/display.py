"""Events to the standard streams: the answer, the thoughts, the calls, or JSON lines. Knows no markers.

`choose` picks what the options of the filter and of `split` ask for; `run` uses `ReplyDisplay` for its replies too.

    TextDisplay        the answer on standard output, nothing else       --only text, --hide into a file
    ReplyDisplay       the same, thoughts and calls on standard error    the default, --hide, --collapse
    NumberedDisplay    the same, a label before each line                -n
    ThinkingDisplay    the thoughts on standard output                   --only thinking
    CallDisplay        each call as a line of JSON                       --only calls
    EventDisplay       every event as a line of JSON                     --json

Words that were shown as the answer may turn out to be a thought (`Retyped`), and the other way round. On a terminal
they are taken back and shown as what they are; elsewhere they stay, nothing is lost, and a line says what to do.

What lays thoughts out is imported with the first event, because the filter must start fast.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ..events import Event, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta
from ..message import OpenCalls
from ..parts import Kind, ToolCall
from .streams import PLAIN, STDERR, STDIN, STDOUT, OutputStream, Streams

if TYPE_CHECKING:
    from ..terminal import Mode, Style, Thoughts
    from ..terminal._thoughts import Folds
    from .screen_rows import ScreenRows

KEPT = 1_000_000
"""Characters of the open part that are kept, in case that they turn out to be of the other kind. Longer ones stay."""
LINE = re.compile(r"[^\n]*\n|[^\n]+")


class Display:
    """What becomes of the events of one input after another."""

    @property
    def idle(self) -> float | None:
        """Seconds after which `show` is to be called although nothing came; None for never."""
        return None

    def begin(self, label: str) -> None:
        """An input begins. `label` names it where there are several."""

    def show(self, events: Sequence[Event]) -> None:
        """Write what the events bring, in their order; without any, time has passed."""
        raise NotImplementedError

    def end(self) -> None:
        """The input is over."""


def choose(options: argparse.Namespace, streams: Streams) -> Display:
    """The display that the options ask for."""
    if options.json:
        return EventDisplay(streams.out)
    if options.only == "calls":
        return CallDisplay(streams.out)
    # What a person types stands on the screen too, and nobody counts its rows.
    rows = None if os.isatty(STDIN) else rows_of(streams)
    if options.only == "thinking":
        return ThinkingDisplay(streams, number=options.number, rows=rows)
    if options.only == "text" or (options.hide and not streams.err.terminal):
        return TextDisplay(streams, number=options.number, rows=rows)
    if options.number and not options.hide and not options.collapse:
        return NumberedDisplay(streams, options.style, rows=rows)
    mode: Mode = "hide" if options.hide else "collapse" if options.collapse else "show"
    return ReplyDisplay(
        streams,
        mode=mode,
        style=options.style,
        calls=not options.hide,
        number=options.number,
        wrap=options.wordwrap,
        rows=rows,
    )


def rows_of(streams: Streams) -> ScreenRows | None:
    """What takes words back from the screen; None where the answer goes elsewhere, or may move the cursor itself."""
    if not streams.out.sanitizes:
        return None
    from ..terminal import Screen  # here, because a pipe needs none
    from .screen_rows import ScreenRows

    return ScreenRows(streams) if Screen(STDOUT).cursor else None


def read_style(look: str | Style | None) -> Style:
    """The style that was asked for, by its name or as it is."""
    from ..terminal import Style  # here, because a pipe needs none

    return look if isinstance(look, Style) else Style.parse(look or "default")


class OpenWords:
    """The words of the part that is open, until it is known that they stay what they are."""

    def __init__(self) -> None:
        self.retyped = False
        """Whether they turned out to be of the other kind."""
        self.kind: Kind = "text"
        """What they were said to be."""
        self._pieces: list[str] = []
        self._length = 0

    def begin(self, kind: Kind) -> None:
        """A part begins."""
        self.retyped, self.kind = False, kind
        self._pieces, self._length = [], 0

    def add(self, text: str) -> None:
        """It grows."""
        if self._length <= KEPT:
            self._pieces.append(text)
            self._length += len(text)

    def moved(self, end: PartEnd) -> str | None:
        """All of them, as the part of the other kind has them; None where there are too many."""
        if self._length > KEPT:
            return None
        text = "".join(self._pieces)
        # Whitespace at the start of a text stays; at the start of a thought it belongs to the marker.
        return text[max(0, len(text) - (end.span[1] - end.span[0])) :]


class TextDisplay(Display):
    """The answer on standard output and nothing else, joined as `message.text` joins it."""

    def __init__(self, streams: Streams, *, number: bool, rows: ScreenRows | None = None) -> None:
        """`rows`: what takes words back from the screen; None where nothing can."""
        self._streams = streams
        self._number = number
        self._rows = rows
        self._words = OpenWords()
        self._parted = ""  # stands before the next text, where the words before it are none of the answer
        self._told = False
        self.begin("")

    def begin(self, label: str) -> None:
        """An input begins, on a line of its own."""
        if label:
            self._streams.answer().end_line()
        self._label = f"{label}:" if label else ""
        self._lines = LineNumbers(self._label if self._number else None)

    def show(self, events: Sequence[Event]) -> None:
        """Write the answer."""
        for event in events:
            if isinstance(event, TextDelta | ThinkingDelta):
                self._words.add(event.text)
            else:
                self._follow(event)
            self._show(event)

    def end(self) -> None:
        """On a terminal, leave the prompt of the shell a line of its own."""
        if self._streams.out.terminal:
            self._streams.answer().end_line()

    def _follow(self, event: Event) -> None:
        """Remember where a part begins, and move its words where they are of the other kind, before the event shows."""
        if isinstance(event, PartStart):
            self._words.begin(event.kind)
            if self._rows is not None and self._streams.out.at_line_start:
                self._rows.mark()
            elif self._rows is not None:
                self._rows.forget()
        elif isinstance(event, Retyped):
            self._words.retyped = True
        elif isinstance(event, PartEnd) and self._words.retyped:
            self._words.retyped = False
            text = self._words.moved(event)
            if text is None or not self._move(self._words.kind, text):
                self._report_words(self._words.kind, event.span[1] - event.span[0])

    def _move(self, was: Kind, text: str) -> bool:
        """Show the words of the open part as of the other kind; False where they still stand as what they were."""
        if was == "thinking":
            self._write_answer(text)
            return True
        return self._take_back()

    def _take_back(self) -> bool:
        """Erase what was written of the open part, where the screen allows it."""
        if self._rows is None or not self._rows.take_back():
            return False
        self._streams.out.begin_anew()
        self._lines = LineNumbers(self._label if self._number else None)
        return True

    def _report_words(self, was: Kind, length: int) -> None:
        """Say once that words stand where they do not belong, and what helps."""
        if was == "text" and not self._streams.one_screen:
            self._parted = "\n\n"
        if self._told:
            return
        self._told = True
        words = f"the first {length:,} characters were written as "
        if was == "text":
            words += (
                "the answer and are a thought: a marker closes it that was not opened here, so the prompt opened it"
            )
        else:
            words += "a thought and are the answer: nothing closed the thought"
        self._streams.message(f"{words}. Read such output with --start {'thinking' if was == 'text' else 'text'}")

    def _show(self, event: Event) -> None:
        if isinstance(event, TextDelta):
            self._write_answer(event.text)
        elif isinstance(event, PartStart) and event.kind == "text":
            self._write_answer(self._parted or event.gap)
            self._parted = ""

    def _write_answer(self, text: str) -> None:
        self._streams.answer().write(self._lines.number(text))


class NumberedDisplay(TextDisplay):
    """The answer, and on standard error the thoughts with a label before each line, and the calls."""

    def __init__(self, streams: Streams, style: str | None, *, rows: ScreenRows | None = None) -> None:
        self._style = PLAIN
        if streams.err.colour:
            from ..terminal._style import codes

            self._style = codes(read_style(style).text)
        super().__init__(streams, number=True, rows=rows)

    def begin(self, label: str) -> None:
        """An input begins, on a line of its own."""
        super().begin(label)
        self._calls = OpenCalls()
        self._thoughts = 0
        self._kind = ""

    def _show(self, event: Event) -> None:
        if isinstance(event, ThinkingDelta):
            self._streams.aside().write(self._thought.number(event.text), self._style)
        elif isinstance(event, PartStart):
            self._start_part(event)
        elif isinstance(event, PartEnd) and self._kind == "thinking":
            self._streams.aside().end_line()
        if not isinstance(event, TextDelta | ThinkingDelta) and (call := self._calls.add(event)):
            self._streams.line(call_line(call))
        super()._show(event)

    def _move(self, was: Kind, text: str) -> bool:
        if was == "thinking":
            self._streams.aside().end_line()
            self._start_part(PartStart(0, "text"))
        moved = super()._move(was, text)
        if moved and was == "text":
            self._start_part(PartStart(0, "thinking"))
            self._streams.aside().write(self._thought.number(text), self._style)
        return moved

    def _start_part(self, event: PartStart) -> None:
        if event.kind == "text" and self._kind == "thinking":
            self._streams.part_ways()
        elif event.kind == "thinking":
            self._thoughts += 1
            self._thought = LineNumbers(f"{self._label}thinking {self._thoughts}:")
        self._kind = event.kind


class ReplyDisplay(TextDisplay):
    """The answer on standard output; thoughts, laid out for reading, and calls on standard error."""

    def __init__(
        self,
        streams: Streams,
        *,
        mode: Mode,
        style: str | Style | None,
        calls: bool = True,
        number: bool = False,
        wrap: bool = True,
        folds: Folds | None = None,
        hint: str = "",
        rows: ScreenRows | None = None,
    ) -> None:
        """`calls`: whether they are shown. `wrap`: whether thoughts are wrapped to the terminal. `folds` and `hint`
        are those of `Thoughts`, `rows` is that of `TextDisplay`."""
        self._mode = mode
        self._style = style
        self._show_calls = calls
        self._wrap = wrap
        self._folds = folds
        self._hint = hint
        self._thoughts: Thoughts | None = None
        super().__init__(streams, number=number, rows=rows)

    @property
    def idle(self) -> float | None:
        """While the spinner turns, a tenth of a second."""
        return 0.1 if self._thoughts is not None and self._thoughts.spinning else None

    def begin(self, label: str) -> None:
        """An input begins, on a line of its own."""
        super().begin(label)
        self._calls = OpenCalls()
        self._name = label
        if self._thoughts is not None:
            self._thoughts.begin(label)

    def wait(self) -> None:
        """A server was asked and has not answered yet: turn the spinner until something comes."""
        self._laid_out().wait()

    def unfold(self) -> bool:
        """Show the thought that is hidden and still comes. False where there is none."""
        return self._thoughts is not None and self._thoughts.unfold()

    def show(self, events: Sequence[Event]) -> None:
        """Write all of it; without any events, turn the spinner."""
        if not events and self._thoughts is not None:
            self._thoughts.tick()
        super().show(events)

    def _show(self, event: Event) -> None:
        (self._thoughts or self._laid_out()).show(event)
        if self._show_calls and not isinstance(event, TextDelta | ThinkingDelta):
            call = self._calls.add(event)
            if call is not None:
                self._streams.line(call_line(call))
        if not isinstance(event, ThinkingDelta):
            super()._show(event)

    def _move(self, was: Kind, text: str) -> bool:
        moved = (self._thoughts or self._laid_out()).retype(text, self._take_back)
        if was == "thinking":
            self._write_answer(text)
        # A thought that stands above the same words as the answer misleads nobody.
        return moved or was == "thinking"

    def end(self) -> None:
        """Leave nothing half drawn."""
        if self._thoughts is not None:
            self._thoughts.finish()
        super().end()

    def _laid_out(self) -> Thoughts:
        from ..terminal import Screen, Thoughts  # here, because it costs start-up

        screen = Screen(STDERR)
        thoughts = self._thoughts = Thoughts(
            self._write_thought,
            width=screen.width if screen.terminal and self._wrap else None,
            style=read_style(self._style) if screen.colour else None,
            colour=screen.colour,
            cursor=screen.cursor,
            mode=self._mode,
            shared=self._streams.one_screen,
            # What goes into a file stays as the model wrote it.
            sanitize=self._streams.err.sanitizes,
            folds=self._folds,
            hint=self._hint,
        )
        thoughts.begin(self._name)
        self._streams.around_lines(thoughts.pause, thoughts.wrote_line)
        return thoughts

    def _write_thought(self, text: str) -> None:
        if self._streams.out.sanitizes:
            self._streams.out.release()
        self._streams.out.flush()
        self._streams.err.draw(text)
        # Whoever else writes there lets the thought end its line before, so no line is open for them.
        self._streams.err.at_line_start = True
        if self._streams.one_screen and self._thoughts is not None and not self._thoughts.answer_open:
            self._streams.out.at_line_start = True


class ThinkingDisplay(TextDisplay):
    """The thoughts on standard output and nothing else, joined as `message.thinking` joins them; numbered, each on
    lines of its own."""

    def begin(self, label: str) -> None:
        """An input begins, on a line of its own."""
        super().begin(label)
        self._lines = LineNumbers(None)
        self._thoughts = 0

    def _show(self, event: Event) -> None:
        out = self._streams.out  # nothing else is written, so nothing has to be flushed before
        if isinstance(event, ThinkingDelta):
            out.write(self._lines.number(event.text))
        elif isinstance(event, PartStart) and event.kind == "thinking":
            self._thoughts += 1
            if self._number:
                out.end_line()
                self._lines = LineNumbers(f"{self._label}thinking {self._thoughts}:")
            else:
                out.write(event.gap)

    def _move(self, was: Kind, text: str) -> bool:
        if was == "thinking":
            return self._take_back()
        self._show(PartStart(0, "thinking"))
        self._show(ThinkingDelta(0, text))
        return True


class CallDisplay(Display):
    """Each call as a line of JSON, when it has ended. Calls that were cut off have ended too."""

    def __init__(self, out: OutputStream) -> None:
        self._out = out

    def begin(self, label: str) -> None:
        """An input begins. Its calls follow those before."""
        self._calls = OpenCalls()

    def show(self, events: Sequence[Event]) -> None:
        """Write the calls that have ended."""
        for event in events:
            if not isinstance(event, TextDelta | ThinkingDelta) and (call := self._calls.add(event)):
                self._out.write_bytes(json_line(ShownCall(call.name, call.arguments, call.id, call.error)))


class FileHeader(msgspec.Struct, frozen=True, tag="file", tag_field="type"):
    """In front of each file's events, where there are several files."""

    path: str


class EventDisplay(Display):
    """Every event as a line of JSON."""

    def __init__(self, out: OutputStream) -> None:
        self._out = out

    def begin(self, label: str) -> None:
        """An input begins."""
        if label:
            self._out.write_bytes(json_line(FileHeader(label)))

    def show(self, events: Sequence[Event]) -> None:
        """Write the events."""
        for event in events:
            self._out.write_bytes(json_line(event))


class ShownCall(msgspec.Struct, frozen=True):
    """A call as `--only calls` writes it."""

    name: str
    arguments: str
    id: str
    error: str | None


def call_line(call: ToolCall) -> str:
    """A call as a person reads it."""
    words = f"call {call.name or '(no name)'} {call.arguments}".rstrip()
    return f"{words} [{call.error}: not to be run]" if call.error else words


class LineNumbers:
    """Puts a label and the number of the line before each line. Without a label it changes nothing."""

    def __init__(self, label: str | None) -> None:
        self._label = label
        self._count = 0
        self._open = False

    def number(self, text: str) -> str:
        """The text, numbered, whatever pieces it comes in."""
        if self._label is None:
            return text
        numbered: list[str] = []
        for line in LINE.findall(text):
            if not self._open:
                self._count += 1
                numbered.append(f"{self._label}{self._count}:")
            numbered.append(line)
            self._open = not line.endswith("\n")
        return "".join(numbered)


_ENCODER = msgspec.json.Encoder()


def json_line(value: msgspec.Struct) -> bytes:
    """A value as a line of JSON, also where it holds bytes that were not UTF-8."""
    try:
        return _ENCODER.encode(value) + b"\n"
    except UnicodeEncodeError:
        import json  # here, because it is hardly ever needed

        return json.dumps(msgspec.to_builtins(value)).encode() + b"\n"
