"""The filter: standard input, taken apart as it comes. Also what `split` shares: reading one input.

`InputReader` decodes chunks of bytes, feeds a parser and hands its events to a display. Bytes that are no UTF-8 pass
through. It also reports on standard error what a person should know: notices with `--verbose`, the first oddity with
`--strict`, how much stands beyond the turn, and once each the hints that a lone closing marker means `--start
thinking`, and that a thought which `auto` left in the answer means `-f think_tag`. A reply is saved after its answer
has been written, so that a store that fails costs nobody the answer.
"""

from __future__ import annotations

import argparse
import codecs
import logging
import os
import stat
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from .._engine.format import TEXT, THINKING, Format
from ..errors import StrictError, UnknownFormatError
from ..events import Event, Notice, PartStart, Retyped, TextDelta
from ..families import get_format
from ..message import Message
from ..policies import Policies
from ..reading import Reading
from . import COMMANDS, EXIT_CODES, FAILED, INTERRUPTED, ODD, OK
from .display import choose
from .leftover_tags import LeftoverTags
from .options import Arguments, add_options, check_options, did_you_mean, explain_unknown, policies
from .own_settings import obey_settings
from .streams import END_KEYS, STDIN, Interrupt, Streams, complain

if TYPE_CHECKING:
    from .history.save import StreamTimes

DESCRIPTION = """\
Splits a model's output into thinking, answer and tool calls.

Reads standard input, or files. The answer goes to standard output as it
arrives, and nothing else goes there. Thoughts and calls go to standard error:
a thought indented below a heading, a call as one line. On a terminal they are
wrapped and coloured (unless NO_COLOR is set).
"""
EXAMPLES = """\
examples:
  model | asides                      show the answer and the thoughts
  asides reply.txt                    the same, from a file
  model | asides --hide > answer.txt  only the answer
  plan=$(model | asides --collapse)   the answer in a variable; one line on
                                      the terminal for each thought
  model | asides 2> thoughts.txt      the thoughts in a file of their own
  model | asides --start thinking     the prompt ended with <think>, so the
                                      output begins inside a thought
  model | asides -f harmony           name the format, here that of gpt-oss
  model | asides --tags '<plan>' '</plan>'      your own markers
  model | asides --only calls | jq -r .name     the names of the tools called
  model | asides --json               every event, for another program
  asides split -n --only thinking *.txt         thoughts, with line numbers
  asides view reply.txt               a key or a click opens each thought
  asides run qwen3 "Why is the sky blue?"       ask a model

"""


def run(arguments: list[str]) -> int:
    """`asides`: standard input to its end, or files as `asides split` reads them."""
    options = _parse(arguments)
    if options.files:  # all options are the same, and a file is read as a whole
        from .split import run as split

        return split(arguments)
    streams = Streams(raw=options.raw, wrap=options.wordwrap, markdown=options.markdown)
    reader = InputReader(options, streams)
    if os.isatty(STDIN) and streams.err.terminal:
        streams.message(f"waiting for input on the terminal; {END_KEYS}; see `asides --help`")
        streams.flush()
    with Interrupt() as interrupt:
        # A file is read as fast as the disk is, which says nothing about the model.
        live = not stat.S_ISREG(os.fstat(STDIN).st_mode)
        code = reader.read(interrupt, STDIN, live=live)
        if interrupt.failure is not None:
            streams.message(f"standard input: {interrupt.failure.strerror}")
            streams.flush()
            code = FAILED
        return INTERRUPTED if interrupt.came else code


def find_format(name: str) -> Format:
    """The format of this name, or an error in the words of the command line."""
    try:
        return get_format(name)
    except UnknownFormatError as error:
        raise explain_unknown(error) from error


def format_of(name: str, tags: Sequence[tuple[str, str]]) -> Format:
    """The format of this name, or of these tags where there are any."""
    if not tags:
        return find_format(name)
    from ..families._own_tags import own_tags  # here, because most have a format

    return own_tags(tags)


def chosen_reading(options: argparse.Namespace, *, collect: bool) -> Reading:
    """How the options say to read."""
    reading = reading_of(options.format, options.tags, options.model, policies(options, collect=collect))
    report_unknown_model(reading)
    return reading


def reading_of(format: str, tags: Sequence[tuple[str, str]], model: str, policies: Policies) -> Reading:
    """How a format of this name, or these tags, or else this model, is read. The model also says where it begins."""
    return Reading.of(model or None, format=format_of(format, tags), policies=policies)


def report_unknown_model(reading: Reading) -> None:
    """Say on standard error where the name of a model, if one was given, does not say how it writes."""
    if not reading.model or reading.format_evidence == "name":
        return
    why = f"nothing is known of {reading.model!r}"
    if reading.format_evidence == "option":  # then the name only says where it begins
        if reading.evidence != "format" or reading.thinks is not None:
            return
    elif reading.evidence in ("name", "near"):
        why = reading.reason
    complain(f"--model: {why}; it is read as {reading.format.name}")


def _saver(options: argparse.Namespace, format: Format) -> Callable[[Message, StreamTimes | None], bool] | None:
    """What writes a reply that has been shown to the history, where `--save` asks for it; None where nothing does."""
    if not options.save:
        return None
    from .history.save import save_message  # here, because most who filter keep nothing

    fields = {name: getattr(options, name) for name in ("store", "model", "agent")}
    return partial(save_message, source="filter", format=format.name, **fields)


class InputReader:
    """Takes one input after another apart and shows what is in it."""

    def __init__(self, options: argparse.Namespace, streams: Streams, *, whole: bool = False) -> None:
        """`whole`: each input is read as `asides.parse` reads a whole text."""
        self._reading = chosen_reading(options, collect=options.save)
        self._whole = whole
        self._streams = streams
        self._display = choose(options, streams)
        self._verbose = options.verbose
        self._save = _saver(options, self._reading.format)
        self._hinted = False
        self._leftover = LeftoverTags() if self._reading.format.settle is not None else None
        states = self._reading.format.states.get(THINKING, {})
        self._closers = tuple(marker.casefold() for marker, leads_to in states.items() if leads_to == TEXT)
        if self._verbose:
            logger = logging.getLogger("asides")
            logger.setLevel(logging.DEBUG)
            logger.addHandler(_LogLines(streams))

    def read(self, interrupt: Interrupt, descriptor: int, label: str = "", *, live: bool = False) -> int:
        """Read one input to its end and return its exit code. `label` names it where there are several.

        `live`: it comes from the model as it is written, so that a reply that is kept is kept with its times.
        """
        self._thought = False
        self._beyond: int | None = None
        length = 0
        self._times = self._start_times() if live and self._save is not None else None
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        parser = self._reading.parser(whole=self._whole)
        self._display.begin(label)
        code = OK
        try:
            # While nothing comes, empty chunks turn the spinner.
            for chunk in chain(interrupt.read(descriptor, lambda: self._display.idle), (None,)):
                text = decoder.decode(chunk or b"", final=chunk is None)
                length += len(text)
                self._show_events(parser.feed(text))
            # What Ctrl-C or a failure ended was cut: a call that was held back is then no call.
            self._show_events(parser.finish("length" if interrupt.came or interrupt.failure is not None else None))
        except StrictError as error:
            self._show_events(error.events)
            self._display.end()
            self._streams.message(f"{label}: {error}" if label else str(error))
            code = ODD
        else:
            self._display.end()
        self._report_leftover(label)
        if self._beyond is not None:
            place = f"{label}: " if label else ""
            self._streams.message(
                f"{place}{length - self._beyond:,} characters stand beyond the turn, from character {self._beyond:,} "
                "on: another turn's header follows its end, so nothing of them is read or run"
            )
        self._streams.flush()
        # After the answer is out: whatever becomes of the store, the reader has it.
        if self._save is not None and parser.message.parts and not self._save(parser.message, self._times):
            code = FAILED
        return code

    def _start_times(self) -> StreamTimes:
        from .history.save import StreamTimes

        return StreamTimes()

    def _show_events(self, events: Sequence[Event]) -> None:
        if self._times is not None:
            self._times.add(events)
        self._display.show(events)
        for event in events:
            if isinstance(event, TextDelta):
                if self._leftover is not None:
                    self._leftover.add(event.text)
            elif isinstance(event, Notice):
                self._report_notice(event)
            elif isinstance(event, PartStart | Retyped) and event.kind == "thinking":
                self._thought = True
        self._streams.flush()

    def _report_notice(self, notice: Notice) -> None:
        if self._verbose:
            self._streams.message(f"{notice.code} at character {notice.offset}: {notice.message}")
        if notice.code == "after_turn":
            self._beyond = notice.offset
        if notice.code != "stray_close" or self._thought or self._hinted:
            return
        # The notice names the marker first; the closing marker of a call says nothing about thinking.
        folded = notice.message.casefold()
        lone = next((marker for marker in self._closers if folded.startswith(marker)), "")
        if lone:
            self._hinted = True
            self._streams.message(
                f"{notice.message[: len(lone)]} closes a thought that was not opened here: the prompt opened it, and "
                "everything before this marker is thinking. Read such output with --start thinking"
            )

    def _report_leftover(self, label: str) -> None:
        """Name a thought that was left in the answer, once and after it: in its middle it would tear a sentence."""
        if self._leftover is None:
            return
        if tag := self._leftover.found:
            place = f"{label}: " if label else ""
            self._streams.message(
                f"{place}{tag} was left in the answer: auto takes one kind of tag for thoughts, and <internal> or "
                "<scratchpad> only where the output begins. Read such output with -f think_tag"
            )
        # Of each input anew, but one hint is enough.
        self._leftover = None if tag else LeftoverTags()


class _LogLines(logging.Handler):
    """The engine's debug log as lines between thoughts and answer."""

    def __init__(self, streams: Streams) -> None:
        super().__init__()
        self._streams = streams

    def emit(self, record: logging.LogRecord) -> None:
        self._streams.message(record.getMessage())


def _parse(arguments: list[str]) -> argparse.Namespace:
    commands = "".join(f"  asides {name:<13}  {what}\n" for name, what in COMMANDS.items())
    parser = Arguments(
        prog="asides",
        usage="asides [options] < output\n       asides [options] FILE ...\n       asides COMMAND [options]",
        description=DESCRIPTION,
        epilog=f"commands (each has its own --help):\n{commands}\n{EXAMPLES}{EXIT_CODES}",
    )
    add_options(parser, start="the format's own, which is text for auto")
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="a file with a model's output; read as `asides split` reads it"
    )
    options = parser.parse_args(arguments)
    if options.files:
        first = options.files[0]
        if first in COMMANDS:
            parser.error(f"the command comes first: asides {first} [options]")
        if first != "-" and not os.path.exists(first):
            meant = did_you_mean(first, COMMANDS, "asides ")
            parser.error(f"{first!r} is neither a command nor a file that exists{meant}")
    check_options(parser, options)
    if not options.files:  # else `split` does
        obey_settings(options)
    return options
