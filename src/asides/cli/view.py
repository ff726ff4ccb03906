"""`asides view`: a reply on the whole screen, each thought shown or hidden by a key or a click."""

from __future__ import annotations

import argparse
import codecs
import os
import sys
from typing import TYPE_CHECKING

from ..api import Parser
from ..engine.format import TEXT
from ..errors import UsageError
from ..terminal import Screen
from ..terminal.document import Document
from . import EXIT_CODES, INTERRUPTED, OK
from .filter import find_format
from .options import Arguments, add_reading, add_style, policies
from .show import read_style
from .streams import READ_SIZE, STDIN, STDOUT, Output

if TYPE_CHECKING:
    from ..terminal.viewer import Viewer

DESCRIPTION = """\
Shows a model's output on the whole screen: the answer, the calls, and each
thought as one line that opens with a key or a click. `-` is standard input,
which is shown as it comes; keys are then read from the terminal.
"""
EXAMPLES = """\
keys:
  Down Up j k  PageDown PageUp  Home End g G     move; so does the wheel
  Tab n, Shift-Tab p                             next, previous thought
  Enter Space, or a click on its heading         show or hide a thought
  a                                              show or hide all
  /                                              search, hidden thoughts too; an
                                                 empty pattern looks again
  q, Ctrl-C                                      quit

Where standard output is no terminal, the same is written as plain text, a line
for each thought; with --expand, all of it.

examples:
  asides view reply.txt
  asides view -f harmony gpt-oss.txt
  model | tee reply.txt | asides view -

"""


def run(arguments: list[str]) -> int:
    """`asides view`."""
    options = _parse(arguments)
    format = find_format(options.format)
    if options.start is None and format.start == TEXT:
        options.start = "undecided"
    source = Source(options.file, Parser(format, **policies(options)), Document(shown=options.expand))
    screen = Screen(STDOUT)
    if not screen.cursor:
        source.read_all()
        _write_plain(source.document, screen.width() if screen.terminal else None)
        return OK
    return _view(source, screen, options)
