"""`asides demo`: recorded output, taken apart before your eyes. Plays recordings only; no model runs.

A `Scene` of recordings.toml is raw output with a title: it is shown as the model wrote it, then fed to a parser in
pieces of a few characters, and each part is written beside its label as it grows. On a wide terminal with colours both
come at once, side by side (`panes.py`). Then a real gateway is started and
asked by three kinds of client (`gateway.py`); it replies with the recordings of `asides serve`, which are of another
kind: thoughts and answers without markers, by the question that they answer.
"""

from __future__ import annotations

import re
import textwrap
import time
import tomllib
from collections.abc import Iterable, Iterator
from importlib.resources import files
from itertools import cycle

import msgspec

from ..._api import Parser
from ..._extras import own_command
from ...events import Event, Notice, PartEnd, PartStart, Retyped
from ...policies import Start
from ...terminal import Screen
from ...terminal._wrap import Wrapped
from .. import OK
from ..options import Arguments
from ..streams import BOLD, DIM, PLAIN, STDOUT, OutputStream
from .panes import GUTTER, NARROWEST, Panes, play_beside

EXIT_CODES = """\
exit codes:
  0    success
  2    wrong usage, or the gateway did not start
  130  stopped by Ctrl-C
  141  the reader of the output closed it, as in `asides demo | head -1`
"""
SECONDS_PER_CHUNK = 0.02
PAUSE_SECONDS = 0.4
CHUNK_SIZES = (3, 1, 4, 2, 5)
LABELS = {"thinking": "thinking", "text": "answer", "tool_call": "call"}
LABEL_WIDTH = 8


class Scene(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One recorded output and what it shows."""

    title: str
    about: str
    format: str
    output: str
    start: Start | None = None


def run(arguments: list[str]) -> int:
    """`asides demo`."""
    parser = Arguments(
        prog="asides demo",
        description="Plays recorded model outputs and shows how they are split: by the parser, and\nby a gateway, for "
        "three kinds of client. No model runs.",
        epilog=f"examples:\n  asides demo            at the pace of a model\n"
        f"  asides demo --fast     all at once\n\n{EXIT_CODES}",
    )
    parser.add_argument("--fast", action="store_true", help="show everything at once, as always in a pipe")
    options = parser.parse_args(arguments)
    out = OutputStream(STDOUT)
    wait = out.terminal and not options.fast
    try:
        play(scenes(), out, wait=wait)
        from .gateway import show_gateway  # here, because HTTP takes long to import

        show_gateway(out, number=len(scenes()) + 1, wait=wait)
    except KeyboardInterrupt:
        out.end_line()
        out.flush()
        raise
    return OK


def scenes() -> list[Scene]:
    """What there is to play."""
    text = files(__package__).joinpath("recordings.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text)["recording"], list[Scene])


def play(scenes: list[Scene], out: OutputStream, *, wait: bool) -> None:
    """Play recordings one after another, at a human pace or at once."""
    bold, dim = out.style(BOLD), out.style(DIM)
    asides = own_command()
    screen = Screen(STDOUT)
    columns = screen.width()
    tallest = max(len(scene.output) // max(columns // 3, 1) + scene.output.count("\n") + 6 for scene in scenes)
    beside = wait and screen.colour and columns >= NARROWEST and screen.height() > tallest
    out.write("This is a recording: outputs in the manner of real models. No model runs.\n")
    for number, scene in enumerate(scenes, 1):
        out.write(f"\n{number}. {scene.title}\n", bold)
        format = f" -f {scene.format}" if scene.format != "auto" else ""
        start = f" --start {scene.start}" if scene.start else ""
        out.write(f"{textwrap.fill(scene.about, 79)}\n\n  $ model | {asides}{format}{start}\n\n")
        parser = Parser(scene.format, start=scene.start, retype=False, collect=beside)
        if beside:
            width = (columns - len(GUTTER) - 1) // 2
            out.draw(f"{'The model writes':<{width}}{GUTTER}asides splits it\n")
            play_beside(Panes(parser, columns), chunks(scene.output), out, columns, SECONDS_PER_CHUNK)
            time.sleep(PAUSE_SECONDS)
            continue
        out.write("The model writes:\n")
        for line in scene.output.split("\n"):
            out.write(f"  {line}\n", dim)
        out.write("\nasides splits it:\n")
        out.flush()
        gutter = Gutter(out, dim)
        for chunk in chunks(scene.output):
            if wait:
                time.sleep(SECONDS_PER_CHUNK)
            gutter.show(parser.feed(chunk))
        gutter.show(parser.finish())
        gutter.end()
        if wait:
            time.sleep(PAUSE_SECONDS)
    out.flush()


def chunks(output: str) -> Iterator[str]:
    """The output in pieces of a few characters, cut without regard to markers."""
    at = 0
    for size in cycle(CHUNK_SIZES):
        if at >= len(output):
            return
        yield output[at : at + size]
        at += size


class LabelledText:
    """LabelledText beside a label, as they come. On a terminal they are wrapped beside it."""

    def __init__(self, out: OutputStream, label: str, width: int, style: tuple[str, str] = PLAIN) -> None:
        self._out = out
        self._style = style
        self._margin = f"  {'':<{width}} | "
        screen = Screen(STDOUT)
        self._layout = Wrapped(screen.width, cursor=False, indent=self._margin) if screen.terminal else None
        self._begun = False
        out.end_line()
        out.write(f"  {label:<{width}} | ")

    def write(self, text: str) -> None:
        """More of them."""
        if self._layout is None:
            self._out.write(text.replace("\n", f"\n{self._margin}"), self._style)
        else:
            self._write_wrapped(self._layout.feed(text))

    def end(self) -> None:
        """There are no more."""
        if self._layout is not None:
            self._write_wrapped(self._layout.finish())
        self._out.end_line()

    def _write_wrapped(self, lines: str) -> None:
        if lines and not self._begun:
            self._begun = True
            lines = lines.removeprefix(self._margin)  # there the label stands
        self._out.write(re.sub(r"\n(?=\n)", f"\n{self._margin.rstrip()}", lines), self._style)


class Gutter:
    """Writes parts as they grow, each beside its label."""

    _part: LabelledText
    """Those of the part that has begun."""

    def __init__(self, out: OutputStream, dim: tuple[str, str]) -> None:
        self._out = out
        self._dim = dim
        self._notices: list[Notice] = []

    def show(self, events: Iterable[Event]) -> None:
        """Write each part behind its label, and its notices after it."""
        for event in events:
            if isinstance(event, PartStart):
                style = self._dim if event.kind == "thinking" else PLAIN
                self._part = LabelledText(self._out, LABELS[event.kind], LABEL_WIDTH, style)
                self._part.write(f"{event.name} " if event.name else "")
            elif isinstance(event, Notice):
                self._notices.append(event)
            elif isinstance(event, PartEnd):
                self._part.end()
                self._write_notices()
            elif not isinstance(event, Retyped):
                self._part.write(event.text)
        self._out.flush()

    def end(self) -> None:
        """The output is over."""
        self._write_notices()
        self._out.flush()

    def _write_notices(self) -> None:
        """Notices wait for the end of their part, so that its words stay together."""
        for notice in self._notices:
            text = LabelledText(self._out, "notice", LABEL_WIDTH)
            text.write(f"{notice.code}: {notice.message}")
            text.end()
        self._notices.clear()
