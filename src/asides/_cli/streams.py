"""The standard streams as bytes: reading as it comes, writing at once, Ctrl-C between chunks. Knows no events.

Bytes that are not UTF-8 pass through unchanged: they are read and written with `surrogateescape`. On a terminal what
models wrote is sanitized; a pipe or a file gets it byte for byte. Standard output and standard error are often the same
screen, and then a line of one must not go on in a line of the other: `Streams` keeps track of that, so write to them
through `answer()`, `aside()`, `line()` and `message()`.

    with Interrupt() as interrupt:
        for chunk in interrupt.read(STDIN): ...       ends at the end of input, at Ctrl-C, or at a failure
        interrupt.came, interrupt.failure             which of them it was
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from .._descriptor import write_all

if TYPE_CHECKING:
    from ..terminal._answer import AnswerLines
    from ..terminal._markdown import MarkdownLines
    from ..terminal._sanitize import Sanitizer
    from ..terminal._style import Codes

READ_SIZE = 65536
DRAIN_READS = 16
"""How often is read after Ctrl-C at most: a writer that never stops must not keep us."""
NOBODY_READS = (errno.EPIPE, errno.EBADF)
"""How writing fails where the reader has left, or the stream was closed from the start (see `keep_places`)."""
UNBOUNDED = 1_000_000_000
"""Columns of a screen whose lines are left to the terminal."""
STDIN, STDOUT, STDERR = 0, 1, 2
END_KEYS = "Ctrl-Z and Enter end it" if sys.platform == "win32" else "Ctrl-D ends it"
"""How a person ends what is typed."""
PLAIN: Codes = ("", "")
BOLD: Codes = ("\x1b[1m", "\x1b[22m")
DIM: Codes = ("\x1b[2m", "\x1b[22m")


class OutputStream:
    """One standard stream. What is written leaves with `flush`, whole."""

    watch: ClassVar[Callable[[str], object] | None] = None
    """Is called with all that is written to a terminal, where someone has to know what stands on it."""
    lost: ClassVar[bool] = False
    """Whether something that a reader still waits for could not be written to standard error: its disk is full, for
    example. No message can be written there, so `main` makes it the exit code."""

    def __init__(
        self,
        descriptor: int,
        *,
        may_close: bool = False,
        raw: bool = False,
        wrap: Literal["", "lines", "all"] = "",
        markdown: bool = False,
    ) -> None:
        """`may_close`: whoever reads it may leave. `raw`: what a model wrote may act on the terminal (`--raw`).

        `wrap`: what is broken at words where it is a terminal, lines of our own or also what a model wrote. Not with
        `raw`, because nobody knows how wide a text is that moves the cursor. `markdown`: what a model wrote is drawn
        as Markdown, where the terminal has colours.
        """
        self.terminal = os.isatty(descriptor)
        """Whether a person looks at it."""
        self.sanitizes = self.terminal and not raw
        """Whether what others wrote is made safe. A pipe or a file gets it byte for byte."""
        self.at_line_start = True
        """Whether the last character written ended a line."""
        self._descriptor = descriptor
        self._may_close = may_close
        self._wrap = wrap if self.sanitizes else ""
        self._markdown = markdown and self.sanitizes and self.colour
        self._pending: list[bytes] = []
        self._sanitizer: Sanitizer | None = None
        self._layout: AnswerLines | MarkdownLines | None = None

    @property
    def colour(self) -> bool:
        """Whether escape codes may be written: to a terminal that knows them, unless `NO_COLOR` is set."""
        if not self.terminal:
            return False
        from ..terminal import Screen  # here, because a pipe needs none

        return Screen(self._descriptor).colour

    def style(self, codes: Codes) -> Codes:
        """The codes where escape codes may be written, else none."""
        return codes if self.colour else PLAIN

    def write(self, text: str, style: Codes = PLAIN) -> None:
        """Add text as the model wrote it, between the escape codes of a style."""
        if text and self.sanitizes:
            text = self._laid_out(text)
        if text:
            before, after = style
            self.draw(f"{before}{text}{after}")
            self.at_line_start = text.endswith("\n")

    def _laid_out(self, text: str) -> str:
        """What a terminal gets for the next piece of a model's text."""
        if self._sanitizer is None:
            from ..terminal._sanitize import Sanitizer  # here, because a pipe needs none

            self._sanitizer = Sanitizer()
            self._layout = self._new_layout()
        text = self._sanitizer.feed(text)
        if self._layout is None:
            return text
        if self.at_line_start:
            # Someone else has written here and ended the line; where the layout has done it, this changes nothing.
            self._layout.interrupt()
        return self._layout.feed(text)

    def _new_layout(self) -> AnswerLines | MarkdownLines | None:
        from ..terminal import Screen

        screen = Screen(self._descriptor)
        if self._markdown:
            from ..terminal._markdown import MarkdownLines

            return MarkdownLines(screen.width if self._wrap else lambda: UNBOUNDED, cursor=screen.cursor)
        if self._wrap != "all":
            return None
        from ..terminal._answer import AnswerLines

        return AnswerLines(screen.width, cursor=screen.cursor)

    def draw(self, text: str) -> None:
        """Add a text of our own that may hold escape codes, and nothing of others that was not sanitized."""
        if text:
            self._pending.append(_encode(text))
            self.at_line_start = text.endswith("\n")

    def write_bytes(self, data: bytes) -> None:
        """Add bytes that hold what others wrote: whole lines, such as JSON."""
        if self.sanitizes:
            data = _encode(sanitized(data.decode("utf-8", "surrogateescape")))
        self._pending.append(data)
        self.at_line_start = data.endswith(b"\n")

    def write_line(self, text: str) -> None:
        """Add a line of our own, on a line of its own. Whatever is in it can be written."""
        self.end_line()
        text = sanitized(text) if self.sanitizes else text
        if self._wrap:
            text = self._fitted(text)
        self._pending.append(text.encode("utf-8", "backslashreplace") + b"\n")

    def end_line(self) -> None:
        """Begin a new line unless one has just begun."""
        self.release()
        if not self.at_line_start:
            self.draw("\n")

    def release(self) -> None:
        """Add what waited for the rest of a word, on a terminal: someone else writes on this screen now."""
        if self._sanitizer is not None:
            rest = self._sanitizer.finish()
            self.draw(rest if self._layout is None else self._layout.feed(rest) + self._layout.finish())

    def begin_anew(self) -> None:
        """What a model wrote was taken off the screen: what it writes next begins a line and goes on from nothing."""
        self._sanitizer = self._layout = None
        self.at_line_start = True

    def _fitted(self, text: str) -> str:
        from ..terminal import Screen  # here, because a pipe needs none

        width = Screen(self._descriptor).width()
        if len(text) < width and text.isascii():
            return text
        from ..terminal._answer import fit

        return fit(text, width)

    def flush(self) -> None:
        """Write what was added."""
        if not self._pending:
            return
        data = b"".join(self._pending)
        self._pending.clear()
        if self.terminal and OutputStream.watch is not None:
            OutputStream.watch(data.decode("utf-8", "surrogateescape"))
        try:
            write_all(self._descriptor, data)
        except OSError as error:
            if not self._may_close:
                error.filename = error.filename or "standard output"
                raise
            # A terminal that has hung up has no reader either.
            if not self.terminal and error.errno not in NOBODY_READS:
                OutputStream.lost = True


def _encode(text: str) -> bytes:
    # Bytes that were no UTF-8 come out as they went in; other halves of surrogate pairs have no bytes of their own.
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def sanitized(text: str) -> str:
    """What others wrote, made safe for a terminal."""
    from ..terminal._sanitize import sanitize  # here, because a pipe needs none

    return sanitize(text)


class Streams:
    """Standard output and standard error together. On one screen they appear in the order of writing."""

    def __init__(self, *, raw: bool = False, wrap: bool = True, markdown: bool = False) -> None:
        """`wrap`: on a terminal, the answer and lines of our own are broken at words. `markdown`: the answer is drawn
        as Markdown there."""
        self.out = OutputStream(STDOUT, raw=raw, wrap="all" if wrap else "", markdown=markdown)
        """Where the answer goes."""
        # Whoever reads the thoughts may leave; the answer goes on.
        self.err = OutputStream(STDERR, may_close=True, raw=raw, wrap="lines" if wrap else "")
        """Where thoughts and messages go."""
        self.one_screen = (self.out.terminal and self.err.terminal) or _same_place()
        """Whether a person sees both, mixed: on a terminal, or in one pipe or file, as with `2>&1 | less`."""
        self._before_line: Callable[[], object] | None = None
        self._after_line: Callable[[], object] | None = None

    def answer(self) -> OutputStream:
        """Standard output, to write to it next."""
        self.err.flush()
        return self.out

    def aside(self) -> OutputStream:
        """Standard error, to write to it next. On one screen it does not go on in the answer's line."""
        if self.out.sanitizes:
            self.out.release()
        self.out.flush()
        if self.one_screen and not self.out.at_line_start:
            self.err.write("\n")
            self.out.at_line_start = True
        return self.err

    def part_ways(self) -> None:
        """On one screen, leave a blank line between a thought and the answer."""
        if self.one_screen:
            self.err.write("\n")

    def around_lines(self, before: Callable[[], object], after: Callable[[], object]) -> None:
        """What to call before and after a line comes between the thoughts: `Thoughts.pause` and `wrote_line`."""
        self._before_line, self._after_line = before, after

    def line(self, text: str) -> None:
        """A line between the thoughts."""
        if self._before_line is not None:
            self._before_line()
        self.aside().write_line(text)
        if self._after_line is not None:
            self._after_line()

    def message(self, text: str) -> None:
        """A line of our own to the person."""
        self.line(f"asides: {text}")

    def flush(self) -> None:
        """Write what was added to either."""
        self.out.flush()
        self.err.flush()


def _same_place() -> bool:
    """Whether standard output and standard error are one pipe or file."""
    out, err = os.fstat(STDOUT), os.fstat(STDERR)
    # Where a system numbers no pipes (Windows), all of them have the number 0.
    return out.st_ino != 0 and os.path.samestat(out, err)


def complain(message: str) -> None:
    """Write a message to standard error where no streams are open."""
    streams = Streams()
    streams.message(message)
    streams.flush()


def _never() -> None:
    """Wait as long as it takes."""


class Interrupt:
    """Ctrl-C as a flag that is looked at between chunks, so that no chunk is torn. A second one ends at once."""

    def __init__(self) -> None:
        self.came = False
        """Whether Ctrl-C was pressed."""
        self.failure: OSError | None = None
        """What ended the last reading before its end, if anything did."""

    def __enter__(self) -> Self:
        self._previous = signal.getsignal(signal.SIGINT)
        # A shell starts background work with SIGINT ignored. That stays so.
        if self._previous is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._handle)
        if sys.platform != "win32":
            self._wake, self._ring = os.pipe()
            os.set_blocking(self._ring, False)
            signal.set_wakeup_fd(self._ring, warn_on_full_buffer=False)
        return self

    def __exit__(self, *error: object) -> None:
        signal.signal(signal.SIGINT, self._previous)
        if sys.platform != "win32":
            signal.set_wakeup_fd(-1)
            os.close(self._wake)
            os.close(self._ring)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def read(self, descriptor: int, idle: Callable[[], float | None] = _never) -> Iterator[bytes]:
        """What arrives at a descriptor, as it arrives, until its end, Ctrl-C or a failure.

        When nothing arrives for as long as `idle` says, that is nothing: an empty chunk.
        """
        try:
            if sys.platform == "win32":
                from .._windows import read_chunks

                yield from read_chunks(descriptor, READ_SIZE, idle, lambda: self.came)
                return
            while not self.came:
                ready, _, _ = select.select([descriptor, self._wake], [], [], idle())
                if not ready:
                    yield b""
                if descriptor in ready and not self.came:
                    data = os.read(descriptor, READ_SIZE)
                    if not data:
                        return
                    yield data
            # What the writer had put into the pipe before Ctrl-C is its last words.
            for _ in range(DRAIN_READS):
                ready, _, _ = select.select([descriptor], [], [], 0)
                data = os.read(descriptor, READ_SIZE) if ready else b""
                if not data:
                    return
                yield data
        except OSError as error:
            self.failure = error


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without their ends; only the line that is being read is held."""
    rest: list[bytes] = []
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        rest.append(first)
        if others:
            yield b"".join(rest)
            yield from others[:-1]
            rest = others[-1:]
    if any(rest):
        yield b"".join(rest)


def keep_places() -> None:
    """Fill the places of standard streams that were closed, so that nothing else is opened there by chance.

    Each is filled with something that fails when it is used.
    """
    for descriptor, wrong_way in ((STDIN, os.O_WRONLY), (STDOUT, os.O_RDONLY), (STDERR, os.O_RDONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, wrong_way)
