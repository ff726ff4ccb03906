"""`asides split`: files, each taken apart as `asides.parse` reads a whole text."""

from __future__ import annotations

import argparse
import os
import sys

from .._descriptor import open_to_read
from . import EXIT_CODES, FAILED, INTERRUPTED, OK
from .filter import InputReader
from .options import Arguments, add_options, check_options
from .own_settings import obey_settings
from .streams import STDIN, Interrupt, Streams

DESCRIPTION = """\
Splits files into thinking, answer and tool calls. Each file is read as a
whole: where a closing marker such as </think> has no opening one, everything
before it is thinking. The answer goes to standard output, thoughts and calls
to standard error. Without FILE, or with `-`, standard input is read.
"""
EXAMPLES = """\
With several files, each begins on a new line; -n puts the file's name in front
of each line, and --json writes {"type":"file","path":...} before each file.

examples:
  asides split reply.txt                   show the answer and the thoughts
  asides split --hide *.txt > answers.txt  only the answers
  asides split -n --only thinking *.txt    thoughts, with file and line number
  asides split --only calls reply.txt      the tool calls, as lines of JSON

"""


def run(arguments: list[str]) -> int:
    """`asides split`: every file that can be read."""
    options = _parse(arguments)
    streams = Streams(raw=options.raw, wrap=options.wordwrap, markdown=options.markdown)
    reader = InputReader(options, streams, whole=True)
    several = len(options.files) > 1
    code = OK
    with Interrupt() as interrupt:
        for path in options.files:
            try:
                descriptor = STDIN if path == "-" else open_to_read(path)
            except OSError as error:
                interrupt.failure = error
            else:
                code = max(code, reader.read(interrupt, descriptor, path if several else ""))
                if descriptor != STDIN:
                    os.close(descriptor)
            if interrupt.failure is not None:
                streams.message(f"{path}: {interrupt.failure.strerror}")
                streams.flush()
                interrupt.failure = None
                code = FAILED
            if interrupt.came:
                return INTERRUPTED
    return code


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Arguments(
        prog="asides split",
        usage="asides split [options] [FILE ...]",
        description=DESCRIPTION,
        epilog=EXAMPLES + EXIT_CODES,
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="a file with a model's output")
    add_options(parser, start="the format's own, or undecided where that is text")
    options = parser.parse_args(arguments)
    options.files = options.files or ["-"]
    if sys.platform == "win32":
        from .._windows import expand

        options.files = expand(options.files)
    check_options(parser, options)
    obey_settings(options)
    return options
