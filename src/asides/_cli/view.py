"""`asides view`: a reply on the whole screen, each thought shown or hidden by a key or a click.

A file is read whole before the screen is drawn; a pipe is read as it comes, by the event loop of the viewer, while keys
are read from the terminal itself. Where standard output is no terminal the same rows are written as plain text.
"""

from __future__ import annotations

import argparse
import asyncio
import codecs
import os
import stat
import sys
from contextlib import nullcontext
from types import ModuleType
from typing import TYPE_CHECKING, TextIO

from .._descriptor import open_to_read
from .._extras import install_command
from ..errors import UsageError
from ..reading import Reading
from ..terminal import Screen
from ..terminal._answer import definitions
from ..terminal._document import Document
from ..terminal._viewer_keys import KEYS
from . import INTERRUPTED, OK
from .display import read_style
from .filter import chosen_reading
from .options import Arguments, add_reading, add_style, check_style
from .own_settings import obey_settings
from .streams import END_KEYS, READ_SIZE, STDIN, STDOUT, OutputStream, complain

if TYPE_CHECKING:
    from ..terminal import Style

DESCRIPTION = """\
Shows a model's output on the full screen: the answer, the tool calls, and each
thought as one line that a key or a click opens. With `-`, standard input is
shown as it arrives, and keys are read from the terminal.
"""
EXAMPLES = """\
keys:
{keys}

If standard output is not a terminal, the same is written as plain text: one
line for each thought, or with --expand the whole thought.

examples:
  asides view reply.txt               open a file
  asides view -f harmony gpt-oss.txt  name the format
  model | asides view - --keep        from a pipe; leave it on the screen

exit codes:
  0    success
  2    wrong usage, or something could not be read
  130  stopped by Ctrl-C
  141  the reader of the output closed it, as in `asides view FILE | head -1`
"""


def run(arguments: list[str]) -> int:
    """`asides view`."""
    options = _parse(arguments)
    reading = chosen_reading(options, collect=False)
    screen = Screen(STDOUT)
    if screen.cursor:
        return _view(ViewedInput(options.file, reading, Document(shown=options.expand)), screen, options)
    # Nothing is laid out ahead here, so no line needs to be cut.
    source = ViewedInput(options.file, reading, Document(shown=options.expand, longest=sys.maxsize))
    while source.read():
        pass
    _write_plain(source.document, screen.width() if screen.terminal else None)
    return OK


class ViewedInput:
    """One input, taken apart into a document as it is read."""

    def __init__(self, path: str, reading: Reading, document: Document) -> None:
        self.descriptor = STDIN if path == "-" else open_to_read(path)
        self.document = document
        self._path = path
        # What comes from a pipe is shown as it comes, and moves where it turns out to be a thought.
        self._parser = reading.parser(whole=not self.live)
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._raw: list[bytes] = []

    def save(self, name: str) -> None:
        """Write what was read, byte for byte, to a new file."""
        with open(name, "xb") as file:
            file.writelines(self._raw)

    @property
    def live(self) -> bool:
        """Whether it is a pipe, which may take its time."""
        mode = os.fstat(self.descriptor).st_mode
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)

    def read(self) -> bool:
        """Read the next piece; False at the end."""
        try:
            data = os.read(self.descriptor, READ_SIZE)
        except OSError as error:
            error.filename = "standard input" if self._path == "-" else self._path
            raise
        self._raw.append(data)
        self.document.feed(self._parser.feed(self._decoder.decode(data, final=not data)))
        if not data:
            self.document.feed(self._parser.finish())
        return bool(data)


def _view(source: ViewedInput, screen: Screen, options: argparse.Namespace) -> int:
    viewing = viewer_library()
    viewer = viewing.Viewer(
        source.document,
        name="standard input" if options.file == "-" else os.path.basename(options.file),
        save=source.save,
    )
    viewer.reading = source.live
    if not viewer.reading:
        if os.isatty(source.descriptor):
            complain(f"waiting for input on the terminal; {END_KEYS}")
        while source.read():
            pass
    with open_keyboard() as keyboard:
        application = viewing.application(
            viewer, keyboard=keyboard, style=read_style(options.style), colour=screen.colour
        )

        def read() -> None:
            viewer.reading = source.read()
            if not viewer.reading:
                asyncio.get_running_loop().remove_reader(source.descriptor)
            application.invalidate()

        def watch() -> None:
            if viewer.reading:
                asyncio.get_running_loop().add_reader(source.descriptor, read)

        interrupted = application.run(pre_run=watch)
    if options.keep:
        _write_plain(source.document, screen.width())
    return INTERRUPTED if interrupted else OK


def view_document(
    document: Document, name: str, style: Style, *, find: str = "", keyboard: TextIO | None = None
) -> bool:
    """Show a document that is whole, until the person leaves it. Returns whether that was by Ctrl-C.

    `find`: what to go to and to mark. `keyboard`: where keys come from, if it is open already.
    """
    viewing = viewer_library()
    viewer = viewing.Viewer(document, name=name)
    if find:
        viewer.typed = find
        viewer.search()
    with open_keyboard() if keyboard is None else nullcontext(keyboard) as keys:
        shown = viewing.application(viewer, keyboard=keys, style=style, colour=Screen(STDOUT).colour)
        interrupted: bool = shown.run()
    return interrupted


def viewer_library() -> ModuleType:
    """The viewer; a `UsageError` that names what is missing where it cannot be imported."""
    try:
        from ..terminal import _viewer as viewer
    except ModuleNotFoundError as error:
        raise UsageError(f"view needs prompt_toolkit: {install_command('prompt-toolkit')}") from error
    return viewer


def open_keyboard() -> TextIO:
    """The terminal that keys come from, also where standard input is something else."""
    try:
        return open("/dev/tty", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"view needs a terminal to read keys from: {error.strerror}") from error


def _write_plain(document: Document, width: int | None) -> None:
    out = OutputStream(STDOUT)
    for line in document.plain(width):
        out.write(f"{line}\n")
    out.flush()


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Arguments(
        prog="asides view",
        usage="asides view [options] FILE",
        description=DESCRIPTION,
        epilog=EXAMPLES.format(keys="\n".join(definitions(KEYS, 79, "  "))),
    )
    parser.add_argument("file", metavar="FILE", help="a file with a model's output, or - for standard input")
    add_reading(parser, start="the format's own, or undecided where that is text", model=True)
    parser.set_defaults(format=None)  # so that the configuration can say it
    showing = parser.add_argument_group("what to show")
    showing.add_argument("--expand", action="store_true", help="open every thought at the start")
    showing.add_argument(
        "--keep",
        action="store_true",
        help="after quitting, leave what was shown on the terminal",
    )
    add_style(showing)
    options = parser.parse_args(arguments)
    check_style(options)
    obey_settings(options)
    return options
