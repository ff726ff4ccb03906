"""The command `asides`: which command was meant, and which exit code it ends with.

Each command is a module of its own and is imported only when it is run, so that the filter starts fast.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

from ..errors import Error

OK = 0
ODD = 1
FAILED = 2
INTERRUPTED = 130
CLOSED_PIPE = 141

EXIT_CODES = f"""\
exit codes:
  {OK}    all went well
  {ODD}    with --strict: something odd was met
  {FAILED}    wrong usage, or something could not be read or written
  {INTERRUPTED}  ended by Ctrl-C; what had been read is written before
  {CLOSED_PIPE}  the reader of the output has gone, as in `asides | head -1`
"""

COMMANDS = {
    "split": "take files apart, each as a whole",
    "formats": "list the formats, or show one",
    "probe": "tell which format a model speaks, and why",
    "lint-template": "test a Hugging Face response template",
    "view": "read a reply, each thought shown or hidden by a key",
    "run": "talk with a model",
    "serve": "the gateway: stand between clients and a model server",
    "history": "kept thoughts: list, search, export, purge",
    "stats": "how a model thinks, in figures",
    "batch": "files of raw outputs split into columns, by the million",
    "demo": "watch recorded output being taken apart",
    "completion": "let bash, zsh or fish complete all this",
}
"""The commands beside the filter, each with a function `run(arguments) -> exit code`: in a module of its name, or in
`command.py` of a folder of its name."""

FOLDERS = frozenset({"run", "history", "stats", "batch", "demo"})


def command_module(command: str) -> ModuleType:
    """The module that runs a command."""
    return import_module(f".{command}.command" if command in FOLDERS else f".{command.replace('-', '_')}", __name__)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    command = "filter"
    if arguments and arguments[0] in COMMANDS:
        command, *arguments = arguments
    from .streams import complain, keep_places

    keep_places()
    try:
        code: int = command_module(command).run(arguments)
    except BrokenPipeError:
        return CLOSED_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Error as error:
        complain(str(error))
        return FAILED
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
        return FAILED
    return code
