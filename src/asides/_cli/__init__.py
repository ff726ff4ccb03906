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
  {OK}    success
  {ODD}    with --strict: there was a notice
  {FAILED}    wrong usage, or something could not be read or written
  {INTERRUPTED}  stopped by Ctrl-C, after writing what was read so far
  {CLOSED_PIPE}  the reader of the output closed it, as in `asides | head -1`
"""

COMMANDS = {
    "split": "split files, each read as a whole",
    "formats": "list the formats, or show one in detail",
    "probe": "find out which format a model writes",
    "lint-template": "the former name of probe --lint",
    "view": "read a reply on the full screen, thoughts folded",
    "run": "chat with a model",
    "serve": "run the gateway between clients and a model server",
    "history": "saved replies: list, search, export, delete",
    "stats": "measure how a model thinks",
    "batch": "split datasets of raw outputs into columns",
    "audit": "find out what a server makes of what its model writes",
    "demo": "watch recorded outputs being split",
    "completion": "print a completion script for bash, zsh or fish",
}
"""The commands beside the filter, each with a function `run(arguments) -> exit code`: in a module of its name, or in
`command.py` of a folder of its name."""

POSIX_MODULES = frozenset({"fcntl", "termios"})
"""What Python has on POSIX systems alone, and `batch` and the conversation of `run` cannot do without."""

FOLDERS = frozenset({"run", "history", "stats", "batch", "audit", "demo"})


def command_module(command: str) -> ModuleType:
    """The module that runs a command."""
    return import_module(f".{command}.command" if command in FOLDERS else f".{command.replace('-', '_')}", __name__)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    command = "filter"
    if arguments and arguments[0] in COMMANDS:
        command, *arguments = arguments
    from .streams import OutputStream, complain, keep_places

    keep_places()
    OutputStream.lost = False
    try:
        code: int = command_module(command).run(arguments)
    except BrokenPipeError:
        return CLOSED_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Error as error:
        complain(str(error))
        return FAILED
    except ModuleNotFoundError as error:
        if error.name not in POSIX_MODULES:
            raise
        complain(f"this needs a POSIX system (Linux, macOS, WSL): Python has no {error.name} here")
        return FAILED
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
        return FAILED
    return FAILED if OutputStream.lost and code in (OK, ODD) else code
