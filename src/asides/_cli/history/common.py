"""What the commands of `asides history` share: which store, which replies, what is written and how far work has come.

A store is named by `--store`, `ASIDES_HISTORY`, the configuration, or is at its usual place (`open_store`). Replies are
chosen by the same options in every command (`add_where`, `where`). What models wrote leaves through a `Page`, which
sanitizes it on a terminal and passes it on as it is elsewhere.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from ..._extras import install_command
from ..._history import History, ReplyFilter, open, read_time
from ..._history.records import local
from ...errors import UsageError
from ...terminal import Screen
from ...terminal._answer import fit
from ...terminal._progress import Progress
from ...terminal._style import codes
from ...terminal._table import amount, clean, cut
from ..display import read_style
from ..options import Arguments
from ..streams import BOLD, DIM, PLAIN, STDERR, STDOUT, OutputStream, complain, sanitized

SHORT = 12
"""Characters of an id that are shown: enough to tell a million replies apart."""
_warned: set[str] = set()
"""Warnings that were given: a conversation opens its store for every reply."""


def add_where(parser: Arguments) -> None:
    """The options that say which replies are meant."""
    group = parser.add_argument_group("which replies")
    group.add_argument(
        "--since", metavar="TIME", help="from this time on: 90s, 30m, 12h, 2d or 3w ago, today, 2026-11-01"
    )
    group.add_argument("--until", metavar="TIME", help="before this time, written likewise")
    group.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME",
        help="of this model; * and ? match as in a shell; may be repeated",
    )
    group.add_argument(
        "--source",
        action="append",
        default=[],
        choices=("filter", "run", "gateway", "import"),
        help="saved by this command; may be repeated",
    )
    group.add_argument("--agent", default="", metavar="NAME", help="of this agent; * and ? match as in a shell")
    group.add_argument("--conversation", default="", metavar="ID", help="of this conversation, by its whole id")
    group.add_argument(
        "--client",
        default="",
        metavar="ID",
        help="to this client of the gateway, by the id that `show` prints; - reads the client's key from stdin",
    )


def where(options: argparse.Namespace) -> ReplyFilter:
    """The choice that the options make."""
    return ReplyFilter(
        since=read_time(options.since) if options.since else None,
        until=read_time(options.until) if options.until else None,
        models=tuple(options.model),
        sources=tuple(options.source),
        agent=options.agent,
        conversation=options.conversation,
        client=_client(options.client),
    )


def _client(named: str) -> str:
    """A client's fingerprint: as it was given, or of the key that is on standard input."""
    if named != "-":
        return named
    try:
        from ..._gateway.headers import fingerprint
    except ModuleNotFoundError as error:
        raise UsageError(f"--client - needs the gateway's packages: {install_command('gateway')} ({error})") from error
    key = sys.stdin.readline().strip()
    if not key:
        raise UsageError("--client - reads a key from standard input, which is empty")
    # The characters of a header are the bytes of what the client sent.
    return fingerprint({"authorization": f"Bearer {key.encode().decode('latin-1')}"})


def open_store(options: argparse.Namespace, *, create: bool = False, write: bool = False) -> History:
    """The store that was named, in the order in which the help says it. `write`: it is an error where it cannot be."""
    history = open(find_store(options.store), create=create)
    try:
        warn(history)
        if create or write:
            history.check_writable()
    except BaseException:
        history.close()
        raise
    return history


def warn(history: History) -> None:
    """Say what the owner of a store should know of it, once for each."""
    for warning in history.warnings:
        if warning not in _warned:
            _warned.add(warning)
            complain(warning)


def find_store(named: str) -> str:
    """The store's name; empty for the usual place."""
    if named or os.environ.get("ASIDES_HISTORY"):
        return named
    from ..._config import load  # here, because a store that is named needs no configuration

    return load(without=("upstreams", "models", "keys", "run")).history.store


def number(text: str) -> int:
    """A count that an option gives."""
    value = int(text)
    if value < 0:
        raise ValueError
    return value


def replies(count: int) -> str:
    """So many replies, in words."""
    return amount(count, "reply", "replies")


def moment(when: datetime) -> str:
    """A time for a person, in local time."""
    return f"{local(when):%Y-%m-%d %H:%M:%S}"


def first_line(text: str, width: int | None = None) -> str:
    """The first line that says something, cut to so many columns where they are given."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    # Characters before columns: to count these of a whole long line takes long.
    return line if width is None else cut(clean(line[: width + 1]), width)


def progress(doing: str, total: int, *, hidden: bool = False) -> Progress:
    """A line on the terminal of standard error that shows how far work has come; elsewhere, or `hidden`, nothing."""
    return Progress(OutputStream(STDERR, may_close=True), doing, total=total, hidden=hidden)


class Page:
    """Standard output for text that models wrote: on a terminal nothing in it can move the cursor."""

    def __init__(self, *, raw: bool = False, wrap: bool = False, style: str | None = None) -> None:
        """`raw`: what models wrote may act on the terminal (`--raw`). `wrap`: on a terminal, lines are broken at
        words. `style` is that of thoughts."""
        self._output = OutputStream(STDOUT, raw=raw)
        self._width = Screen(STDOUT).width() if wrap and self._output.sanitizes else None
        self._buffered = 0
        self.terminal = self._output.terminal
        """Whether a person looks at it."""
        self.width = Screen(STDOUT).width() if self.terminal else None
        """Its columns; None where lines may have any length."""
        self.bold = self._output.style(BOLD)
        self.dim = self._output.style(DIM)
        look = read_style(style)
        self.heading, self.thought = (self._output.style(codes(each)) for each in (look.heading, look.text))

    def line(self, text: str = "", style: tuple[str, str] = PLAIN) -> None:
        """One line."""
        self.lines(text.replace("\n", " "), style=style)

    def lines(self, text: str, indent: str = "", style: tuple[str, str] = PLAIN) -> None:
        """A text as it is, each line with an indent."""
        text = self.safe(text)
        if self._width is not None:
            text, indent = fit(text, self._width, indent), ""
        for line in text.split("\n"):
            self.draw(f"{indent}{line.join(style)}\n" if line else "\n")

    def draw(self, text: str) -> None:
        """Something that is sanitized already."""
        self._output.draw(text)
        self._count(len(text))

    def json(self, data: bytes) -> None:
        """A line of JSON. It leaves soon, if not at once."""
        self._output.write_bytes(data + b"\n")
        self._count(len(data))

    def _count(self, size: int) -> None:
        self._buffered += size
        if self._buffered > 65536:
            self.flush()

    def marked(self, text: str, marks: Iterable[tuple[int, int]], indent: str = "") -> str:
        """The text, sanitized, with the stretches at `marks` in bold; wrapped behind an indent."""
        shown, place = [], 0
        for start, end in marks:
            shown += [(self.safe(text[place:start]), PLAIN), (self.safe(text[start:end]), self.bold)]
            place = end
        shown.append((self.safe(text[place:]), PLAIN))
        if self._width is None:
            return indent + "".join(piece.join(style) for piece, style in shown)
        # Wrapping changes nothing but blanks, so every other character is found again, in its order.
        styles = (style for piece, style in shown for character in piece if not character.isspace())
        rows = fit("".join(piece for piece, _ in shown), self._width, indent)
        styled = [(PLAIN if character.isspace() else next(styles), character) for character in rows]
        return "".join("".join(each for _, each in run).join(style) for style, run in groupby(styled, itemgetter(0)))

    def safe(self, text: str) -> str:
        """The text, sanitized for a terminal; for other programs as it is."""
        return sanitized(text) if self._output.sanitizes else text

    def flush(self) -> None:
        """Write what is there."""
        self._output.flush()
        self._buffered = 0
