"""`asides history`: which of its commands was meant, and their options.

Commands that look are in `look`, those that take long or change the store in `work` and `import_files`; what they share
is in `common`. Each command is a function from its options to an exit code, bound to its parser by
`set_defaults(do=...)`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ...terminal import Screen
from ...terminal._answer import definitions
from ...terminal._viewer_keys import BROWSER_KEYS
from ..options import Arguments, add_only, add_raw, add_reading, add_store, add_style, add_wordwrap
from ..streams import STDOUT
from .browse import browse
from .common import add_where, number
from .import_files import import_files
from .look import grep, list_conversations, list_replies, search, show, stats
from .work import export, purge, reindex, salvage, verify

DESCRIPTION = """\
Works with saved replies and their thoughts. Nothing is saved until you ask for
it, with `asides --save`, `asides run --save` or `asides serve --save`.
"""
EXAMPLES = """\
examples:
  model | asides --save               save a reply with its thoughts
  asides history                      on a terminal: browse all of it
  asides history list --since 2d      what was saved in the last two days
  asides history search photosyn      thoughts with a word that begins so
  asides history grep -i -C2 'wait|actually' --model 'qwen*'
  asides history show 3fa9c1d2        one reply, by the beginning of its id
  asides history show --conversation 5ab1 --thoughts
  asides history export > replies.jsonl
  asides history import traces.jsonl -f qwen3
  asides history purge --older-than 30d --dry-run

Times are in your local time zone. Each command has its own --help.

exit codes:
  0    success; search and grep: something was found
  1    search and grep: nothing was found; show: an ID was not found;
       verify: there are problems; salvage: something was lost;
       purge: you answered no
  2    wrong usage, or something could not be read or written
  130  stopped by Ctrl-C; what was finished until then is saved or written
"""
_EXAMPLES = {
    "browse": ("", " --since today", " --model 'qwen*'"),
    "list": ("", " -n 100 --since 2d", " --model 'qwen*' --json"),
    "conversations": ("", " --since 3w --json"),
    "show": (
        "                       the newest reply",
        " 3fa9c1d2",
        " 3fa9c1d2 --only thinking",
        " --conversation 5ab1 --thoughts",
    ),
    "search": (" prime", " '\"square root\" sum'       words that stand together", " wait --model 'qwen*' -n 5"),
    "stats": ("", " --since 30d --json"),
    "grep": (" 'let me (check|verify)'", " -i -C2 wait --since 2d", " -F 'f(x)' --answers", " -c loop"),
    "export": (" > replies.jsonl", " --as parquet -o replies.parquet", " --as files -o thoughts --model 'qwen*'"),
    "import": (
        " replies.jsonl",
        " traces.jsonl --field response -f qwen3",
        " traces.parquet --model Qwen/Qwen3-8B",
    ),
    "purge": (" --older-than 30d --dry-run", " --older-than 30d", " --match 'secret' -i", " --all --yes"),
    "verify": ("", " --store old.db"),
    "salvage": (" -o replies.jsonl", " --store damaged.db -o replies.jsonl"),
    "reindex": ("", " --store old.db"),
}
"""What may stand behind each command: the first is what most want."""
SYNONYMS = {
    **dict.fromkeys(("delete", "remove", "rm", "del", "clear", "erase"), "purge"),
    **dict.fromkeys(("ls", "all", "log"), "list"),
    **dict.fromkeys(("find", "query"), "search"),
    **dict.fromkeys(("cat", "view", "open", "get"), "show"),
}
"""What people type for a command."""


def run(arguments: list[str]) -> int:
    """`asides history`."""
    parser = Arguments(prog="asides history", description=DESCRIPTION, epilog=EXAMPLES, synonyms=SYNONYMS)
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
    examples = "".join(f"  asides history {name}{example}\n" for example in _EXAMPLES[name])
    parser = commands.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.\n{more}",
        epilog=f"examples:\n{examples}",
    )
    parser.set_defaults(do=do)
    add_store(parser)
    return parser


def _add_browsing(commands: argparse._SubParsersAction[Arguments]) -> None:
    browsing = _command(
        commands,
        "browse",
        browse,
        "browse replies on the full screen",
        "On a terminal `asides history` alone does the same.\n\nkeys:\n"
        + "\n".join(definitions(BROWSER_KEYS, 79, "  ")),
    )
    add_style(browsing)
    add_where(browsing)


def _add_looking(commands: argparse._SubParsersAction[Arguments]) -> None:
    listing = _command(commands, "list", list_replies, "list replies, newest first")
    listing.add_argument("-n", "--number", type=number, default=20, metavar="N", help="how many (default: 20)")
    listing.add_argument("--json", action="store_true", help="write whole replies as lines of JSON")
    add_where(listing)

    conversations = _command(
        commands,
        "conversations",
        list_conversations,
        "list conversations, newest first",
        "`asides history show --conversation ID` shows one; the beginning of its id is\nenough.\n",
    )
    conversations.add_argument("-n", "--number", type=number, default=20, metavar="N", help="how many (default: 20)")
    conversations.add_argument("--json", action="store_true", help="write lines of JSON")
    add_where(conversations)

    showing = _command(
        commands,
        "show",
        show,
        "show replies, or a conversation",
        "An ID may be shortened to its beginning, or be a place that search or grep has\n"
        "printed (3fa9c1d2:1:7). Without an ID the newest reply is shown.\n",
    )
    showing.add_argument("ids", nargs="*", metavar="ID", help="the id of a reply, as `list` prints it")
    what = showing.add_mutually_exclusive_group()
    add_only(what, "show only this part; answer is the same as text")
    what.add_argument("--json", action="store_true", help="write lines of JSON")
    showing.add_argument(
        "--conversation",
        default="",
        metavar="ID",
        help="show a whole conversation, without thoughts, as it is sent back to the model",
    )
    showing.add_argument(
        "--thoughts",
        action="store_true",
        help="with --conversation: show the thoughts too; with --json: write whole replies",
    )
    add_style(showing)
    add_wordwrap(showing)
    add_raw(showing)

    searching = _command(
        commands,
        "search",
        search,
        "find thoughts by words, best first",
        "A thought must contain all words. The beginning of a word matches too, ranked\n"
        'behind whole words; "words in quotes" must stand together. Upper and lower case\n'
        "and accents make no difference. `grep` finds parts of words.\n",
    )
    searching.add_argument("words", nargs="+", metavar="WORD", help="a word, or the beginning of one")
    searching.add_argument("-n", "--number", type=number, default=20, metavar="N", help="how many (default: 20)")
    searching.add_argument("--json", action="store_true", help="write lines of JSON")
    add_wordwrap(searching)
    add_raw(searching)
    add_where(searching)

    counting = _command(commands, "stats", stats, "count replies and thoughts by model and source")
    counting.add_argument("--json", action="store_true", help="write JSON")
    add_where(counting)


def _add_grep(commands: argparse._SubParsersAction[Arguments]) -> None:
    parser = _command(
        commands,
        "grep",
        grep,
        "find lines of thoughts by a regular expression",
        "Prints id:thought:line:text, as `grep -n` does, with - in place of : for lines\n"
        "of context. Regular expressions are Python's. Exit codes are those of grep:\n"
        "0 found, 1 nothing found, 2 an error.\n",
    )
    parser.add_argument("pattern", metavar="PATTERN", help="a regular expression")
    parser.add_argument("-i", "--ignore-case", action="store_true", help="ignore upper and lower case")
    parser.add_argument("-F", "--fixed-strings", action="store_true", help="PATTERN is plain text")
    parser.add_argument("-w", "--word-regexp", action="store_true", help="match whole words only")
    parser.add_argument("-A", "--after-context", type=number, metavar="N", help="print N lines after each match")
    parser.add_argument("-B", "--before-context", type=number, metavar="N", help="print N lines before each match")
    parser.add_argument("-C", "--context", type=number, metavar="N", help="print N lines before and after each match")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-c", "--count", action="store_true", help="print how many lines of each reply match, if any")
    what.add_argument(
        "-l", "--files-with-matches", action="store_true", help="print only the ids of replies that match"
    )
    parser.add_argument("-m", "--max-count", type=number, metavar="N", help="stop after the reply with the Nth match")
    parser.add_argument("--answers", action="store_true", help="search answers too (printed as id:answer:line:text)")
    parser.add_argument("-n", "--line-number", action="store_true", help=argparse.SUPPRESS)  # as grep -n; always on
    add_raw(parser)
    add_where(parser)


def _add_working(commands: argparse._SubParsersAction[Arguments]) -> None:
    exporting = _command(
        commands,
        "export",
        export,
        "write replies as JSON Lines, Parquet or text files",
        "Without -o, JSON Lines go to standard output. `--as files` writes the thoughts\n"
        "of each reply to thinks/<agent>_<timestamp>_thinks.txt in the folder of -o.\n",
    )
    exporting.add_argument(
        "--as", dest="form", choices=("jsonl", "parquet", "files"), default="jsonl", help="the form (default: jsonl)"
    )
    exporting.add_argument("-o", "--output", default="", metavar="PATH", help="the file; for `--as files`, the folder")
    exporting.add_argument("--resume", action="store_true", help="jsonl: continue an export that was stopped")
    add_where(exporting)

    importing = _command(
        commands,
        "import",
        import_files,
        "save replies from files",
        "Reads what `asides history export` wrote, or records with a model's raw output:\n"
        "JSON Lines, a JSON array, CSV (these also .gz, .zst), Parquet, Arrow. FILE may\n"
        "also be a folder, a glob or an address such as s3://bucket/*.parquet. Without\n"
        "FILE, or with `-`, standard input is read.\n\n"
        "The field with the output is guessed, as by `asides stats`. The fields model,\n"
        "agent, time and conversation are used if present; a record without a time gets\n"
        "the time of the file. Each reply of a record with several turns is saved. A\n"
        "reply that is saved already is skipped, so an import that was stopped can\n"
        "simply be run again.\n",
    )
    importing.add_argument("files", nargs="*", metavar="FILE", help="a file, a folder, a glob, an address or -")
    importing.add_argument(
        "--field",
        default="",
        metavar="NAME",
        help="the field with the raw output (default: guessed); a.b is the field b inside a",
    )
    importing.add_argument(
        "--as",
        dest="reads",
        choices=("auto", "traces", "csv"),
        default="auto",
        help="what a FILE is: JSON (traces) or CSV (default: auto, by its name and its first bytes)",
    )
    add_reading(
        importing, start="as in `asides split`", model="; it is also the model of replies whose record names none"
    )

    purging = _command(
        commands,
        "purge",
        purge,
        "delete replies with their thoughts, for good",
        "Asks before it deletes. Deleted replies are overwritten in the file. Choose by\n"
        "at least one of the options, or name --all.\n",
    )
    purging.add_argument("--older-than", dest="until", metavar="TIME", help="the same as --until: 30d, or a date")
    purging.add_argument(
        "--match", metavar="PATTERN", help="replies with a text in which this regular expression matches"
    )
    purging.add_argument("-i", "--ignore-case", action="store_true", help="with --match: ignore upper and lower case")
    purging.add_argument("--all", action="store_true", help="delete everything")
    purging.add_argument("--dry-run", action="store_true", help="delete nothing, only count")
    purging.add_argument("--yes", action="store_true", help="do not ask")
    add_where(purging)

    _command(
        commands,
        "verify",
        verify,
        "check the history for damage",
        "Checks the file or database, and every reply against the hash in its id. Prints\n"
        "a line for each problem; exit code 1 if there is one. Changes nothing.\n",
    )
    salvaging = _command(
        commands,
        "salvage",
        salvage,
        "rescue what is readable of a damaged file",
        "Reads the file page by page, without SQLite, and does not change it. Writes\n"
        "JSON Lines, as `export` does; `asides history import` makes a new history of\n"
        "them. Exit code 1 if replies were lost or are incomplete.\n",
    )
    salvaging.add_argument("-o", "--output", required=True, metavar="FILE", help="the file to write")
    _command(
        commands,
        "reindex",
        reindex,
        "rebuild the index for `search`",
        "For a search that finds too little, or when `verify` asks for it. Other\n"
        "programs that write to the same file have to wait until it is done.\n",
    )
