"""`asides history`: which of its commands was meant, and their options.

Commands that look are in `look`, those that take long or change the store in `work`; what both use is in `common`. Each
command is a function from its options to an exit code, bound to its parser by `set_defaults(do=...)`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ...terminal import Screen
from ...terminal.answer import definitions
from ...terminal.viewer_keys import BROWSER_KEYS
from ..options import Arguments, add_raw, add_reading, add_store, add_style, add_wordwrap
from ..streams import STDOUT
from .browse import browse
from .common import add_where, number
from .look import grep, list_conversations, list_replies, search, show, stats
from .work import export, import_lines, purge, reindex, salvage, verify

DESCRIPTION = """\
Thoughts that were kept, apart from the answers they led to. Nothing is kept
until you ask for it: `asides --save`, `asides run --save`, or the gateway's
setting `history.save`.
"""
EXAMPLES = """\
examples:
  model | asides --save               keep a reply and its thoughts
  asides history                      look through it, on a terminal
  asides history list --since 2d      what was kept in the last two days
  asides history search photosyn      a half-remembered word
  asides history grep -i -C2 'wait|actually' --model 'qwen*'
  asides history show 3fa9c1d2        one reply, by the beginning of its id
  asides history show --conversation 5ab1 --thoughts
  asides history export > replies.jsonl
  asides history import traces.jsonl -f qwen3
  asides history purge --older-than 30d --dry-run

Times are local. Each command has its own --help.

exit codes:
  0    all went well; search and grep: something was found
  1    search and grep: nothing was found; verify: something is wrong;
       salvage: something was lost; purge: you said no
  2    wrong usage, or something could not be read or written
  130  ended by Ctrl-C, between two whole steps
"""


def run(arguments: list[str]) -> int:
    """`asides history`."""
    parser = Arguments(prog="asides history", description=DESCRIPTION, epilog=EXAMPLES)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_browsing(commands)
    _add_looking(commands)
    _add_grep(commands)
    _add_working(commands)
    # Alone before a person it shows what there is; elsewhere a command has to be named.
    options = parser.parse_args(arguments or (["browse"] if Screen(STDOUT).cursor else []))
    code: int = options.do(options)
    return code


def _command(
    commands: argparse._SubParsersAction[Arguments],
    name: str,
    do: Callable[[argparse.Namespace], int],
    what: str,
    more: str = "",
) -> Arguments:
    parser = commands.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.\n{more}")
    parser.set_defaults(do=do)
    add_store(parser)
    return parser


def _add_browsing(commands: argparse._SubParsersAction[Arguments]) -> None:
    browsing = _command(
        commands,
        "browse",
        browse,
        "look through all of it on the whole screen",
        "`asides history` alone is the same.\n\nkeys:\n" + "\n".join(definitions(BROWSER_KEYS, 79, "  ")),
    )
    add_style(browsing)
    add_where(browsing)


def _add_looking(commands: argparse._SubParsersAction[Arguments]) -> None:
    listing = _command(commands, "list", list_replies, "list replies, the newest first")
    listing.add_argument("-n", "--number", type=number, default=20, metavar="N", help="how many (default 20)")
    listing.add_argument("--json", action="store_true", help="whole replies as lines of JSON")
    add_where(listing)

    conversations = _command(
        commands,
        "conversations",
        list_conversations,
        "list conversations, the newest first",
        "`asides history show --conversation ID` shows one; the beginning of an id is\nenough.\n",
    )
    conversations.add_argument("-n", "--number", type=number, default=20, metavar="N", help="how many (default 20)")
    conversations.add_argument("--json", action="store_true", help="as lines of JSON")
    add_where(conversations)

    showing = _command(
        commands,
        "show",
        show,
        "show replies, or a conversation",
        "The beginning of an id is enough, or a place as search and grep write it\n"
        "(3fa9c1d2:1:7); without one it is the newest.\n",
    )
    showing.add_argument("ids", nargs="*", metavar="ID", help="a reply's id")
    what = showing.add_mutually_exclusive_group()
    what.add_argument("--only", choices=("thinking", "text", "calls"), help="nothing else of it")
    what.add_argument("--json", action="store_true", help="as lines of JSON")
    showing.add_argument(
        "--conversation", default="", metavar="ID", help="the memory of a conversation: clean text, no thoughts"
    )
    showing.add_argument(
        "--thoughts",
        action="store_true",
        help="with --conversation: with the thoughts, each in its place; with --json, whole replies",
    )
    add_style(showing)
    add_wordwrap(showing)
    add_raw(showing)

    searching = _command(
        commands,
        "search",
        search,
        "find thoughts by words, the best first",
        "All words must be there; beginnings of words count after whole words, and\n"
        '"words in quotes" must stand together. No character is an error.\n',
    )
    searching.add_argument("words", nargs="+", metavar="WORD", help="what to look for, without case and accents")
    searching.add_argument("-n", "--number", type=number, default=20, metavar="N", help="how many (default 20)")
    searching.add_argument("--json", action="store_true", help="as lines of JSON")
    add_wordwrap(searching)
    add_raw(searching)
    add_where(searching)

    counting = _command(commands, "stats", stats, "say how much is kept, by model and source")
    counting.add_argument("--json", action="store_true", help="as JSON")
    add_where(counting)


def _add_grep(commands: argparse._SubParsersAction[Arguments]) -> None:
    parser = _command(
        commands,
        "grep",
        grep,
        "find lines of thoughts by a regular expression",
        "Written as `grep -n` does: id:thought:line:words, with - for lines of context.\n"
        "The expressions are Python's. Exit codes as grep's: 0 found, 1 nothing, 2 error.\n",
    )
    parser.add_argument("pattern", metavar="PATTERN", help="a regular expression")
    parser.add_argument("-i", "--ignore-case", action="store_true", help="without case")
    parser.add_argument("-F", "--fixed-strings", action="store_true", help="PATTERN is plain text")
    parser.add_argument("-w", "--word-regexp", action="store_true", help="whole words only")
    parser.add_argument("-A", "--after-context", type=number, metavar="N", help="N lines after each")
    parser.add_argument("-B", "--before-context", type=number, metavar="N", help="N lines before each")
    parser.add_argument("-C", "--context", type=number, metavar="N", help="N lines before and after each")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "-c", "--count", action="store_true", help="how many lines of each reply match; those with none are left out"
    )
    what.add_argument("-l", "--files-with-matches", action="store_true", help="only the ids of replies that match")
    parser.add_argument(
        "-m", "--max-count", type=number, metavar="N", help="end after the reply in which the Nth was found"
    )
    parser.add_argument("--answers", action="store_true", help="look into the answers too (id:answer:line:words)")
    parser.add_argument("-n", "--line-number", action="store_true", help=argparse.SUPPRESS)  # as grep -n; always on
    add_raw(parser)
    add_where(parser)


def _add_working(commands: argparse._SubParsersAction[Arguments]) -> None:
    exporting = _command(
        commands,
        "export",
        export,
        "write replies as JSON lines, Parquet or plain files",
        "Without -o, JSON lines go to standard output. `files` writes the thoughts of\n"
        "each reply to thinks/<agent>_<timestamp>_thinks.txt in the folder -o.\n",
    )
    exporting.add_argument(
        "--as", dest="form", choices=("jsonl", "parquet", "files"), default="jsonl", help="default jsonl"
    )
    exporting.add_argument("-o", "--output", default="", metavar="PATH", help="the file, or the folder of the files")
    exporting.add_argument("--resume", action="store_true", help="jsonl: go on where the last try was stopped")
    add_where(exporting)

    importing = _command(
        commands,
        "import",
        import_lines,
        "read replies from lines of JSON",
        "Own exports, or records with a model's raw output in `text` (or raw, output,\n"
        "completion, response, content); model, agent, time and conversation are taken\n"
        "where they are there. What is kept already is not kept twice, so an import\n"
        "that was stopped is simply run again. A record without a time gets the file's.\n",
    )
    importing.add_argument("files", nargs="*", metavar="FILE", help="a file; - or none is standard input")
    importing.add_argument("--field", default="", metavar="NAME", help="the field that holds the raw output")
    add_reading(importing, start="as in `asides split`")

    purging = _command(
        commands,
        "purge",
        purge,
        "delete replies with their thoughts, for good",
        "Asks before it deletes. What is deleted is overwritten in the file.\n",
    )
    purging.add_argument("--older-than", dest="until", metavar="TIME", help="the same as --until: 30d, a date")
    purging.add_argument("--match", metavar="PATTERN", help="only where this expression matches something in it")
    purging.add_argument("-i", "--ignore-case", action="store_true", help="without case")
    purging.add_argument("--all", action="store_true", help="everything")
    purging.add_argument("--dry-run", action="store_true", help="only say how much it would be")
    purging.add_argument("--yes", action="store_true", help="do not ask")
    add_where(purging)

    _command(
        commands,
        "verify",
        verify,
        "check the store, and that every reply is what its id says",
        "Writes a line for each problem; exit code 1 when there is one. A damaged file\n"
        "is read page by page, and changed in nothing.\n",
    )
    salvaging = _command(
        commands,
        "salvage",
        salvage,
        "write all that can be read of a damaged file to another",
        "Reads the file page by page, without SQLite, and changes nothing in it. The\n"
        "result is lines of JSON, as `export` writes them: `asides history import` makes\n"
        "a new store of it. Exit code 1 when replies were lost or are not whole.\n",
    )
    salvaging.add_argument("-o", "--output", required=True, metavar="FILE", help="where to write it")
    _command(
        commands,
        "reindex",
        reindex,
        "build the index of words anew, from the thoughts",
        "For a search that finds too little, or when verify says so. In a file, other\n"
        "programs that write have to wait meanwhile.\n",
    )
