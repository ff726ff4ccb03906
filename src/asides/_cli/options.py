"""The options that commands share: flags in, `Policies` and styles out. Reads no model output.

Every command that reads a model's output takes the same options on how to read (`add_reading`). The value of each is
stored under the name of its policy, and is None where the flag was not given, so that a configuration or a default can
stand in: `policies(options)` is the record for a parser, `given_policies(options)` only what the command line says.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn, cast, get_args

import msgspec

from .. import __version__
from ..errors import UnknownFormatError, UsageError
from ..policies import DEFAULTS, CallsInThinking, Mentions, Policies, PolicyOptions, Start
from .streams import STDOUT, OutputStream, complain

HELP_WIDTH = 79
"""Columns of a help, unless the terminal is narrower."""
_FOUND = ", by the first marker"
"""How the default format is found."""


class Arguments(argparse.ArgumentParser):
    """An argument parser whose errors look like those of the program, and whose help may go into a closed pipe."""

    def __init__(self, *, synonyms: Mapping[str, str] = MappingProxyType({}), **settings: Any) -> None:
        """`synonyms`: words that people type for one of the choices, and which."""
        super().__init__(formatter_class=_help_formatter, allow_abbrev=False, **settings)
        self._synonyms = synonyms

    def print_help(self, file: Any = None) -> None:
        """Write the help. A reader that has gone ends the program as it does elsewhere."""
        output = OutputStream(STDOUT, wrap="lines")
        output.write_line(self.format_help().rstrip("\n"))
        output.flush()

    def error(self, message: str) -> NoReturn:
        """Print what is wrong in one line and where to read more, and exit with code 2."""
        complain(message + self._meant(message))
        complain(f"see `{self.prog} --help`")
        self.exit(2)

    def _meant(self, message: str) -> str:
        """`; did you mean ...?` behind the message about a flag or a value that is not known."""
        if choice := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            if choice[1] in self._synonyms:
                return f"; did you mean {self.prog} {self._synonyms[choice[1]]}?"
            return did_you_mean(choice[1], re.findall(r"[\w-]+", choice[2]))
        unknown = message.removeprefix("unrecognized arguments: ").split("=")[0].split(" ")[0]
        known = self._option_string_actions
        return did_you_mean(unknown, known) if unknown.startswith("--") and unknown not in known else ""


def did_you_mean(name: str, known: Iterable[str], command: str = "") -> str:
    """`; did you mean ...?` where a known name is near, else nothing. `command` stands in front of it."""
    from .._config.values import near  # here, because only a mistake needs it

    # Without dashes: all flags begin with them, which makes them look alike.
    names = {other.lstrip("-"): other for other in known}
    meant = near(name.lstrip("-"), list(names))
    return f"; did you mean {command}{names[meant[0]]}?" if meant else ""


def _help_formatter(prog: str) -> argparse.HelpFormatter:
    # A width of our own, because argparse finds out that of the terminal with what the filter does not need.
    width = HELP_WIDTH
    if os.isatty(STDOUT):
        from ..terminal import Screen  # here, because a pipe needs none

        width = min(Screen(STDOUT).width() - 1, width)
    return argparse.RawDescriptionHelpFormatter(prog, width=width)


def write_out(text: str) -> None:
    """Write a text that is no model's to standard output."""
    output = OutputStream(STDOUT)
    output.write(text)
    output.flush()


class Version(argparse.Action):
    """`--version`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(nargs=0, help="print the version and exit", **settings)

    def __call__(self, parser: argparse.ArgumentParser, *others: Any) -> None:
        """Print the version and exit."""
        write_out(f"asides {__version__}\n")
        parser.exit()


def add_reading(
    parser: argparse.ArgumentParser,
    *,
    start: str,
    format: str = "auto",
    tags: bool = True,
    model: bool | str = False,
    tools: bool = True,
    limit: str = "--limit",
) -> argparse._ArgumentGroup:
    """The options that say how to read; one that is not given is None. `start` and `format` say what holds then.

    `tags`, `model`, `tools`: whether the command takes these; a text is what a model's name is for besides.
    `limit` is the flag of that policy, where it has another `--limit`.
    """
    reading = parser.add_argument_group("how to read")
    choosing = reading.add_mutually_exclusive_group()
    choosing.add_argument(
        "-f",
        "--format",
        default="auto" if format == "auto" else None,
        metavar="NAME",
        help=f"the model's format (default: {format}{_FOUND if format == 'auto' else ''}); `asides formats` lists them",
    )
    if tags:
        choosing.add_argument(
            "--tags",
            nargs=2,
            action="append",
            default=[],
            metavar=("OPEN", "CLOSE"),
            help="the markers around thoughts, in place of a format, such as '<plan>' '</plan>'; may be repeated",
        )
    if model:
        reading.add_argument(
            "--model",
            default="",
            metavar="NAME",
            help="the model that wrote it, such as Qwen/Qwen3-8B: sets the format, unless -f or --tags is given, and "
            f"where the output begins{model if isinstance(model, str) else ''}",
        )
    reading.add_argument(
        "--start",
        choices=get_args(Start),
        help=f"where the output begins (default: {start}); thinking, if the prompt ended with <think>",
    )
    reading.add_argument(
        "--exact",
        dest="whitespace",
        action="store_const",
        const="exact",
        help="leave whitespace beside markers in the text (default: remove it with the marker)",
    )
    reading.add_argument(
        "--calls-in-thinking",
        choices=get_args(CallsInThinking),
        help="how to read a tool call inside a thought. never: as part of the thought; always: as a call; resolve: as "
        "a call only if the output ends with it (default: the format's own, mostly resolve)",
    )
    reading.add_argument(
        "--mentions",
        choices=get_args(Mentions),
        help="how to read a marker in quotes or in a code block: as literal text, or as a marker "
        f"(default: {DEFAULTS.mentions})",
    )
    reading.add_argument(
        "--no-calls",
        dest="calls",
        action="store_const",
        const=False,
        help="leave tool calls in the text as they were written",
    )
    reading.add_argument(
        "--repair",
        action="store_const",
        const=True,
        help="add the closing brackets that a cut-off call lacks",
    )
    reading.add_argument(
        limit,
        dest="limit",
        type=int,
        metavar="N",
        help=f"how many characters may be held back until it is clear what they are (default: {DEFAULTS.limit})",
    )
    if tools:
        reading.add_argument(
            "--tools",
            metavar="FILE",
            help="a JSON file with the request's tool definitions, as OpenAI writes them: gives types to arguments",
        )
    return reading


def add_only(group: argparse._ActionsContainer, help: str) -> None:
    """The option that picks one kind of part."""
    group.add_argument("--only", type=_part_kind, choices=("thinking", "text", "answer", "calls"), help=help)


def _part_kind(word: str) -> str:
    """The kind that a word means: `answer` is what people call the text."""
    return "text" if word == "answer" else word


def add_raw(group: argparse._ActionsContainer) -> None:
    """The option that lets a model's escape sequences through."""
    group.add_argument(
        "--raw",
        action="store_true",
        help="on a terminal, write control characters unchanged; a model can then clear the screen, or worse",
    )


def add_wordwrap(group: argparse._ActionsContainer) -> None:
    """The option that leaves long lines to the terminal."""
    group.add_argument(
        "--nowordwrap",
        dest="wordwrap",
        action="store_false",
        help="on a terminal, do not wrap long lines at words (in pipes and files they are never wrapped)",
    )


def add_markdown(group: argparse._ActionsContainer) -> None:
    """The option that draws Markdown."""
    group.add_argument(
        "--markdown",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="on a terminal with colours, render the answer's Markdown: bold, code, lists; or leave it as written "
        "(default: render)",
    )


def add_store(group: argparse._ActionsContainer, when: str = "") -> None:
    """The option that names the store of saved replies. `when` says when it counts."""
    group.add_argument(
        "--store",
        default="",
        metavar="STORE",
        help=f"{when}the history, a file or a postgresql:// address (default: $ASIDES_HISTORY, history.store of the "
        "configuration, or ~/.local/share/asides/history.db)",
    )


def add_style(group: argparse._ActionsContainer) -> None:
    """The option for colours."""
    group.add_argument(
        "--style",
        metavar="STYLE",
        help="the colours of thoughts on a terminal, for heading and text, or one for both: dim, grey, bold+#8899aa, "
        "plain (default: $ASIDES_STYLE, or heading=bold,text=dim)",
    )


def add_options(parser: argparse.ArgumentParser, *, start: str) -> None:
    """The options of the filter and of `split`. `start` says in words where reading begins by default."""
    reading = add_reading(parser, start=start, model="; with --save, the name to find it by")
    parser.set_defaults(format=None)  # so that the configuration can say it
    reading.add_argument(
        "--strict", action="store_true", help="stop with exit code 1 at the first notice, that is, at anything odd"
    )

    showing = parser.add_argument_group("what to show")
    what = showing.add_mutually_exclusive_group()
    add_only(
        what,
        "write only these, to standard output; answer is the same as text; calls as lines of JSON with name, "
        "arguments, id, error",
    )
    what.add_argument("--json", action="store_true", help="write every event as a line of JSON")
    showing.add_argument(
        "-n",
        "--number",
        action="store_true",
        help="number the lines as `grep -n` does: `2:text` in the answer, `thinking 1:2:text` in the first thought",
    )
    asides = showing.add_mutually_exclusive_group()
    asides.add_argument(
        "--hide",
        action="store_true",
        help="show no thoughts and no calls; on a terminal a spinner turns while the model thinks",
    )
    asides.add_argument("--collapse", action="store_true", help="show each thought as one line with its length")
    add_style(showing)
    add_wordwrap(showing)
    add_markdown(showing)
    add_raw(showing)
    showing.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print to standard error what each marker did, and every notice",
    )
    keeping = parser.add_argument_group("what to save")
    keeping.add_argument(
        "--save", action="store_true", help="save the reply with its thoughts to the history; see `asides history`"
    )
    add_store(keeping, "with --save: ")
    keeping.add_argument(
        "--agent", default="", metavar="NAME", help="with --save: the name of the agent or program that asked"
    )
    parser.add_argument("--version", action=Version)


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse what does not go together."""
    if options.number and (options.json or options.only == "calls"):
        parser.error("-n numbers lines of text; it cannot be used with --json or --only calls")
    if options.markdown and options.number:
        parser.error("-n numbers lines as they were written; it cannot be used with --markdown")
    if options.markdown is None:  # what is no answer is not drawn as one
        options.markdown = not (options.number or options.json or options.only in ("calls", "thinking"))
    if options.collapse and (options.json or options.only):
        parser.error("--collapse shows thoughts beside the answer; it cannot be used with --json or --only")
    if options.agent and not options.save:
        parser.error("--agent names a saved reply; add --save")
    if options.store and not options.save:
        parser.error("--store names where a reply is saved; add --save")
    check_style(options)


def check_style(options: argparse.Namespace) -> None:
    """Take the style from the environment where none is given. Refuse one that cannot be read."""
    options.style = options.style or os.environ.get("ASIDES_STYLE")
    if not options.style:
        # The settings of the configuration, as far as the environment has them: no file is read, for a fast start.
        looks = {name: os.environ.get(f"ASIDES_TERMINAL_{name.upper()}") for name in ("heading", "text")}
        options.style = ",".join(f"{name}={look}" for name, look in looks.items() if look)
    if options.style:
        from ..terminal import Style  # here, because only the one who asks for a style needs it

        Style.parse(options.style)


_FLAGS = ("start", "calls_in_thinking", "mentions", "whitespace", "strict", "limit", "repair", "calls")
"""The policies that flags set as they are: each is where its option is stored."""


def given_policies(options: argparse.Namespace) -> PolicyOptions:
    """The policies that the command line names."""
    given = {name: value for name in _FLAGS if (value := getattr(options, name, None)) is not None}
    if options.tools:
        given["tools"] = read_tools(options.tools)
    return cast(PolicyOptions, given)


def policies(options: argparse.Namespace, *, collect: bool = True) -> Policies:
    """How to read, as the command line says it. `collect` is off where nobody reads `parser.message`."""
    return Policies(collect=collect).but(**given_policies(options))


def explain_unknown(error: UnknownFormatError) -> UsageError:
    """The error in the words of the command line."""
    hint = f"did you mean {', '.join(error.near)}?" if error.near else "`asides formats` lists them"
    return UsageError(f"there is no format {error.name!r}; {hint}")


def read_tools(path: str) -> list[dict[str, Any]]:
    """The tool definitions of a file."""
    with open(path, "rb") as file:
        content = file.read()
    try:
        return msgspec.json.decode(content, type=list[dict[str, Any]])
    except msgspec.DecodeError as error:
        form = '[{"type": "function", "function": {"name": ..., "parameters": ...}}, ...]'
        raise UsageError(f"{path}: not a JSON list of tool definitions, {form}: {error}") from error
