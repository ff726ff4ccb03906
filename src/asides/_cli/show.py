"""Events to the standard streams: the answer, the thoughts, the calls, or JSON lines. Knows no markers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from ..events import Event, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from .streams import PLAIN, STDERR, Output, Streams

if TYPE_CHECKING:
    from ..terminal import Mode, Style, Thoughts

LINE = re.compile(r"[^\n]*\n|[^\n]+")


class Show(Protocol):
    """What becomes of the events of one input after another."""

    @property
    def idle(self) -> float | None:
        """Seconds after which `show` is to be called although nothing came; None for never."""

    def begin(self, label: str) -> None:
        """An input begins. `label` names it where there are several."""

    def show(self, events: Sequence[Event]) -> None:
        """Write what the events tell."""

    def end(self) -> None:
        """The input is over."""


def choose(options: argparse.Namespace, streams: Streams) -> Show:
    """The way of showing that the options ask for."""
    if options.json:
        return JsonLines(streams.out)
    if options.only == "calls":
        return CallLines(streams.out)
    if options.only == "thinking":
        return ThinkingOnly(streams.out, number=options.number)
    if options.only == "text" or (options.hide and not streams.err.terminal):
        return TextOnly(streams, number=options.number)
    if options.number and not options.hide and not options.collapse:
        return NumberedWords(streams, options.style)
    mode: Mode = "hide" if options.hide else "collapse" if options.collapse else "show"
    return Words(streams, mode=mode, number=options.number, style=options.style)


def read_style(words: str | None) -> Style:
    """The style that was asked for."""
    from ..terminal import Style  # here, because a pipe needs none

    return Style.parse(words or "default")


class TextOnly:
    """The answer on standard output and nothing else."""

    def __init__(self, streams: Streams, *, number: bool) -> None:
        self._streams = streams
        self._number = number
        self.begin("")

    @property
    def idle(self) -> float | None:
        """Never."""
        return None

    def begin(self, label: str) -> None:
        """An input begins, on a line of its own."""
        if label:
            self._streams.answer().end_line()
        self._label = f"{label}:" if label else ""
        self._answer = Lines(self._label if self._number else None)

    def show(self, events: Sequence[Event]) -> None:
        """Write the answer, joined as `message.text` joins it."""
        for event in events:
            self._show_text(event)

    def end(self) -> None:
        """On a terminal, leave the prompt of the shell a line of its own."""
        if self._streams.out.terminal:
            self._streams.answer().end_line()

    def _show_text(self, event: Event) -> None:
        if isinstance(event, TextDelta):
            self._streams.answer().write(self._answer.number(event.text))
        elif isinstance(event, PartStart) and event.kind == "text":
            self._streams.answer().write(self._answer.number(event.gap))


class NumberedWords(TextOnly):
    """The same, and on standard error the thoughts with a label before each line, and the calls."""

    def __init__(self, streams: Streams, style: str | None) -> None:
        self._style = PLAIN
        if streams.err.colour:
            from ..terminal.style import codes

            self._style = codes(read_style(style).text)
        self._calls = Calls()
        super().__init__(streams, number=True)

    def begin(self, label: str) -> None:
        """An input begins, on a line of its own."""
        super().begin(label)
        self._thoughts = 0
        self._kind = ""

    def show(self, events: Sequence[Event]) -> None:
        """Write what the events tell, in their order."""
        for event in events:
            if isinstance(event, ThinkingDelta):
                self._streams.aside().write(self._thought.number(event.text), self._style)
            elif isinstance(event, ToolCallDelta):
                self._calls.grow(event)
            elif isinstance(event, PartStart):
                self._start_part(event)
            elif isinstance(event, PartEnd):
                self._end_part(event)
            self._show_text(event)

    def _start_part(self, event: PartStart) -> None:
        if event.kind == "text" and self._kind == "thinking":
            self._streams.part_ways()
        elif event.kind == "thinking":
            self._thoughts += 1
            self._thought = Lines(f"{self._label}thinking {self._thoughts}:")
        elif event.kind == "tool_call":
            self._calls.start(event)
        self._kind = event.kind

    def _end_part(self, event: PartEnd) -> None:
        if self._kind == "thinking":
            self._streams.aside().end_line()
        elif self._kind == "tool_call":
            self._streams.line(self._calls.end(event).in_words())


class Words(TextOnly):
    """The answer on standard output; thoughts, laid out for reading, and calls on standard error."""

    def __init__(self, streams: Streams, *, mode: Mode, number: bool, style: str | None) -> None:
        self._mode = mode
        self._style = style
        self._calls = Calls()
        self._kind = ""
        self._thoughts: Thoughts | None = None
        super().__init__(streams, number=number)

    @property
    def idle(self) -> float | None:
        """While the spinner turns, a tenth of a second."""
        return 0.1 if self._thoughts is not None and self._thoughts.spinning else None

    def begin(self, label: str) -> None:
        """An input begins, on a line of its own."""
        super().begin(label)
        self._name = label
        if self._thoughts is not None:
            self._thoughts.begin(label)

    def show(self, events: Sequence[Event]) -> None:
        """Write what the events tell, in their order; without any, tell that time has passed."""
        if not events and self._thoughts is not None:
            self._thoughts.tick()
        for event in events:
            # Made when the first part begins, because the filter must start fast.
            self._thoughts = self._thoughts or self._new_thoughts()
            self._thoughts.show(event)
            if isinstance(event, PartStart):
                self._kind = event.kind
                if event.kind == "tool_call":
                    self._calls.start(event)
            elif isinstance(event, ToolCallDelta):
                self._calls.grow(event)
            elif isinstance(event, PartEnd) and self._kind == "tool_call" and self._mode != "hide":
                self._streams.line(self._calls.end(event).in_words())
            self._show_text(event)

    def end(self) -> None:
        """Leave nothing half drawn."""
        if self._thoughts is not None:
            self._thoughts.finish()
        super().end()

    def _new_thoughts(self) -> Thoughts:
        from ..terminal import Screen, Thoughts  # here, because it costs start-up

        screen = Screen(STDERR)
        thoughts = Thoughts(
            self._write_thought,
            width=screen.width if screen.terminal else None,
            style=read_style(self._style) if screen.colour else None,
            colour=screen.colour,
            cursor=screen.cursor,
            mode=self._mode,
            shared=self._streams.one_screen,
            # What goes into a file stays as the model wrote it.
            sanitize=self._streams.err.sanitizes,
        )
        thoughts.begin(self._name)
        self._streams.around_lines(thoughts.pause, thoughts.wrote_line)
        return thoughts

    def _write_thought(self, text: str) -> None:
        self._streams.out.flush()
        self._streams.err.draw(text)
        # Whoever else writes there lets the thought end its line before, so no line is open for them.
        self._streams.err.at_line_start = True
        if self._streams.one_screen and self._thoughts is not None and not self._thoughts.answer_open:
            self._streams.out.at_line_start = True


class ThinkingOnly:
    """The thoughts on standard output and nothing else."""

    def __init__(self, out: Output, *, number: bool) -> None:
        self._out = out
        self._number = number
        self.begin("")

    @property
    def idle(self) -> float | None:
        """Never."""
        return None

    def begin(self, label: str) -> None:
        """An input begins, on a line of its own."""
        if label:
            self._out.end_line()
        self._label = f"{label}:" if label else ""
        self._lines = Lines(None)
        self._thoughts = 0

    def show(self, events: Sequence[Event]) -> None:
        """Write the thoughts, joined as `message.thinking` joins them; numbered, each on lines of its own."""
        for event in events:
            if isinstance(event, ThinkingDelta):
                self._out.write(self._lines.number(event.text))
            elif isinstance(event, PartStart) and event.kind == "thinking":
                self._thoughts += 1
                if self._number:
                    self._out.end_line()
                    self._lines = Lines(f"{self._label}thinking {self._thoughts}:")
                else:
                    self._out.write(event.gap)

    def end(self) -> None:
        """On a terminal, leave the prompt of the shell a line of its own."""
        if self._out.terminal:
            self._out.end_line()


class CallLines:
    """Each call as a line of JSON."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._calls = Calls()
        self._calling = False

    @property
    def idle(self) -> float | None:
        """Never."""
        return None

    def begin(self, label: str) -> None:
        """An input begins. Its calls follow those before."""

    def show(self, events: Sequence[Event]) -> None:
        """Write the calls that have ended."""
        for event in events:
            if isinstance(event, ToolCallDelta):
                self._calls.grow(event)
            elif isinstance(event, PartStart):
                self._calling = event.kind == "tool_call"
                if self._calling:
                    self._calls.start(event)
            elif isinstance(event, PartEnd) and self._calling:
                self._out.write_bytes(json_line(self._calls.end(event)))

    def end(self) -> None:
        """The input is over. Calls that were cut off have ended too."""


class File(msgspec.Struct, frozen=True, tag="file", tag_field="type"):
    """In front of each file's events, where there are several files."""

    path: str


class JsonLines:
    """Every event as a line of JSON."""

    def __init__(self, out: Output) -> None:
        self._out = out

    @property
    def idle(self) -> float | None:
        """Never."""
        return None

    def begin(self, label: str) -> None:
        """An input begins."""
        if label:
            self._out.write_bytes(json_line(File(label)))

    def show(self, events: Sequence[Event]) -> None:
        """Write the events."""
        for event in events:
            self._out.write_bytes(json_line(event))

    def end(self) -> None:
        """The input is over."""


class Call(msgspec.Struct, frozen=True):
    """A call as `--only calls` writes it."""

    name: str
    arguments: str
    id: str
    error: str | None

    def in_words(self) -> str:
        """The call as a person reads it."""
        words = f"call {self.name or '(no name)'} {self.arguments}".rstrip()
        return f"{words} [{self.error}: not to be run]" if self.error else words


class Calls:
    """The call that is being read. Parts do not overlap, so there is only one."""

    def start(self, event: PartStart) -> None:
        """A call begins."""
        self._head = event
        self._arguments: list[str] = []

    def grow(self, event: ToolCallDelta) -> None:
        """Its arguments grow."""
        self._arguments.append(event.text)

    def end(self, event: PartEnd) -> Call:
        """It is over."""
        return Call(self._head.name, "".join(self._arguments), self._head.id, event.error)


class Lines:
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
