"""`asides completion`: a script with which bash, zsh or fish completes commands, flags and their values.

The script is written from the parsers that the commands themselves use, so it cannot fall behind them. All that it
needs stands in it: while a person types, no Python is started. What a flag takes is told by its parser: choices are
listed, `-f` has the names of the formats, a metavar FILE is a file.

    source <(asides completion bash)
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..families import families, formats
from ..families._registry import canonical_name, fold
from . import COMMANDS, OK, command_module
from .options import Arguments, write_out
from .run.command import THINK_VALUES

DESCRIPTION = """\
Prints a script with which your shell completes the commands, flags, formats
and files of `asides` when you press Tab.
"""
EXAMPLES = """\
Run the line of your shell for this session, or add it to the file beside it
for every session:
  source <(asides completion bash)                   ~/.bashrc
  source <(asides completion zsh)                    ~/.zshrc, after compinit
  asides completion fish | source                    ~/.config/fish/config.fish

exit codes:
  0    success
  2    wrong usage
"""
FILTER = "filter"
"""What stands for no command."""
FILES = ("FILE", "FOLDER", "OUT", "TARGET", "STORE", "DIR", "PATH", "TEMPLATE")
"""Metavars that are files."""
MOST_HELP = 60


class CompletedFlag(NamedTuple):
    """One option of a command."""

    names: tuple[str, ...]
    takes: int
    """How many values follow as words of their own."""
    joined: bool
    """Whether a value may stand only after `=`, so that the next word is never one."""
    values: tuple[str, ...]
    """What a value may be."""
    files: bool
    """Whether a value is a file."""
    about: str


class CompletedCommand(NamedTuple):
    """A command, `history list` too, with what may stand behind it."""

    name: str
    flags: list[CompletedFlag]
    words: tuple[str, ...]
    """What may stand as its first argument, besides files."""
    files: bool


def run(arguments: list[str]) -> int:
    """`asides completion`."""
    parser = Arguments(prog="asides completion", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="your shell")
    options = parser.parse_args(arguments)
    write_out(SCRIPTS[options.shell](list(completed_commands())))
    return OK


# What there is.


class _ParserFound(Exception):
    """Carries the parser of a command out of it, before it has parsed anything."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


@contextmanager
def _parsers_caught() -> Iterator[None]:
    """Within it a parser that is about to parse is raised instead."""

    def catch(self: argparse.ArgumentParser, *given: Any, **others: Any) -> Any:
        raise _ParserFound(self)

    names = ("parse_args", "parse_intermixed_args")
    try:
        for name in names:
            setattr(Arguments, name, catch)
        yield
    finally:
        for name in names:
            delattr(Arguments, name)


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser that a command makes for itself."""
    module = command_module(command)
    with _parsers_caught():
        try:
            module.run([])
        except _ParserFound as found:
            return found.parser
    raise AssertionError(f"{command} has parsed nothing")


def completed_commands() -> Iterator[CompletedCommand]:
    """Every command, the filter first."""
    for command in (FILTER, *COMMANDS):
        parser = parser_of(command)
        words = list(COMMANDS) if command == FILTER else []
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                words += action.choices
                for name, inner in action.choices.items():
                    yield _completed(f"{command} {name}", inner, [])
        yield _completed(command, parser, words)


def _completed(name: str, parser: argparse.ArgumentParser, words: list[str]) -> CompletedCommand:
    places = [action for action in parser._actions if not action.option_strings and action.help != argparse.SUPPRESS]
    for action in places:
        if not isinstance(action, argparse._SubParsersAction):
            words = [*words, *map(str, action.choices or ())]
    if name == "formats":
        named = (fold(family.name) for family in families() if not family.generic)
        words = [*formats(), *(family for family in named if canonical_name(family) is None)]
    files = any(action.metavar in FILES for action in places)
    flags = [_flag(action) for action in parser._actions if action.option_strings and action.help != argparse.SUPPRESS]
    return CompletedCommand(name, flags, tuple(words), files)


def _flag(action: argparse.Action) -> CompletedFlag:
    values = tuple(map(str, action.choices or ()))
    if "--format" in action.option_strings:
        values = tuple(formats())
    if "--think" in action.option_strings:
        values = THINK_VALUES
    joined = action.nargs == "?"
    takes = 0 if joined else action.nargs if isinstance(action.nargs, int) else 1
    about = (action.help or "").replace("%%", "%").partition(";")[0].partition(" (default")[0]
    if len(about) > MOST_HELP:
        about = about[: MOST_HELP - 3].rpartition(" ")[0] + "..."
    return CompletedFlag(tuple(action.option_strings), takes, joined, values, action.metavar in FILES, about)


# The scripts. Each finds out which command is typed (`command`), and looks up what may stand at the cursor.


def bash_script(commands: list[CompletedCommand]) -> str:
    """For bash. `=` parts words there, so that `--start=te` comes as three of them."""
    values, words = [], []
    for command in commands:
        for flag in command.flags:
            if flag.takes or flag.joined:
                ends = ("=",) if flag.joined else ("", "=")
                pattern = "|".join(_bash(f"{command.name} {name}{end}") for name in flag.names for end in ends)
                values.append(f"        {pattern}) {_bash_choice(flag.values, flag.files)}; return ;;")
        names = [name for flag in command.flags for name in flag.names]
        words.append(f"        {_bash(command.name)}) flags={_bash(' '.join(names))}")
        words.append(f"            words={_bash(' '.join(command.words))}; files={'yes' if command.files else ''} ;;")
    inner = [_bash(command.name) for command in commands if " " in command.name]
    return BASH.format(
        commands="|".join(COMMANDS), inner="|".join(inner), values="\n".join(values), words="\n".join(words)
    )


def _bash(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _bash_choice(values: tuple[str, ...], files: bool) -> str:
    if files:
        return 'COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames 2> /dev/null'
    return f'COMPREPLY=($(compgen -W {_bash(" ".join(values))} -- "$cur"))' if values else "COMPREPLY=()"


BASH = """\
_asides() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command=filter flags words files first
    if [[ $cur == = ]]; then cur= prev+==; elif [[ $prev == = ]]; then prev=${{COMP_WORDS[COMP_CWORD-2]}}=; fi
    if (( COMP_CWORD > 1 )); then
        case ${{COMP_WORDS[1]}} in {commands}) command=${{COMP_WORDS[1]}} ;; esac
    fi
    if (( COMP_CWORD > 2 )); then
        case "$command ${{COMP_WORDS[2]}}" in {inner}) command="$command ${{COMP_WORDS[2]}}" ;; esac
    fi
    case "$command $prev" in
{values}
    esac
    case $command in
{words}
    esac
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$cur"))
        return
    fi
    # A command, a subcommand or a name stands first; files may stand anywhere.
    first=1; [[ $command == filter ]] || first=2
    COMPREPLY=()
    if (( COMP_CWORD == first )); then COMPREPLY=($(compgen -W "$words" -- "$cur")); fi
    if [[ $files ]]; then
        COMPREPLY+=($(compgen -f -- "$cur"))
        compopt -o filenames 2> /dev/null
    fi
}}
complete -F _asides asides
"""


def zsh_script(commands: list[CompletedCommand]) -> str:
    """For zsh, whose `_arguments` shows what each flag is for."""
    cases = []
    for command in commands:
        specs = [spec for flag in command.flags for spec in _zsh_flags(flag)]
        if command.words:
            specs.append(f"1:name:{_zsh_choice(command.words, command.files)}")
        specs += ["*:file:_files"] if command.files else []
        lines = " \\\n            ".join(map(_bash, specs))
        cases.append(f"        {_bash(command.name)}) _arguments \\\n            {lines} ;;")
    inner = [_bash(command.name) for command in commands if " " in command.name]
    return ZSH.format(commands="|".join(COMMANDS), inner="|".join(inner), cases="\n".join(cases))


def _zsh_flags(flag: CompletedFlag) -> Iterator[str]:
    about = "".join(f"\\{character}" if character in "[]:\\" else character for character in flag.about)
    value = f":value:{_zsh_choice(flag.values, flag.files)}"
    for name in flag.names:
        joined = "=" if flag.takes == 1 and name.startswith("--") else "+" if flag.takes == 1 else ""
        # `=-`: after it and nowhere else; a second colon: or nothing at all.
        yield f"*{name}=-[{about}]:{value}" if flag.joined else f"*{name}{joined}[{about}]{value * flag.takes}"


def _zsh_choice(values: tuple[str, ...], files: bool) -> str:
    listed = f"({' '.join(values)})" if values else ""
    if files and listed:
        return f"{{_alternative 'names:name:{listed}' 'files:file:_files'}}"
    return "_files" if files else listed or " "


ZSH = """\
#compdef asides
_asides() {{
    local command=filter
    if (( CURRENT > 2 )); then
        case $words[2] in {commands}) command=$words[2] ;; esac
    fi
    if (( CURRENT > 3 )); then
        case "$command $words[3]" in {inner}) command="$command $words[3]" ;; esac
    fi
    # What follows sees only the words behind the command.
    if [[ $command != filter ]]; then
        local -a names=(${{=command}})
        words=("$words[1]" "${{(@)words[$#names+2,-1]}}")
        (( CURRENT -= $#names ))
    fi
    case $command in
{cases}
    esac
}}
if [[ $funcstack[1] == _asides ]]; then _asides "$@"; else compdef _asides asides; fi
"""


def fish_script(commands: list[CompletedCommand]) -> str:
    """For fish, a line for each flag."""
    first = "complete -c asides -n '__asides_first filter'"
    lines = [f"{first} -a {name} -d {_fish(what)}" for name, what in COMMANDS.items()]
    for command in commands:
        at = f"complete -c asides -n {_fish(f'__asides_at {command.name}')}"
        if command.words and command.name != FILTER:
            first = f"complete -c asides -n {_fish(f'__asides_first {command.name}')}"
            lines.append(f"{first} -a {_fish(' '.join(command.words))}")
        lines += [f"{at} -a '(__fish_complete_path (commandline -ct))'"] if command.files else []
        for flag in command.flags:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
            values = f" -a {_fish(' '.join(flag.values))}" if flag.values else ""
            takes = (" -r -F" if flag.files else " -x") if flag.takes else ""
            lines.append(f"{at} {names}{takes}{values} -d {_fish(flag.about)}")
    inner = " ".join(_fish(command.name) for command in commands if " " in command.name)
    return FISH.format(commands=" ".join(COMMANDS), inner=inner, lines="\n".join(lines))


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


FISH = """\
function __asides_command
    set -l typed (commandline -opc)
    set -l command filter
    if set -q typed[2]; and contains -- $typed[2] {commands}
        set command $typed[2]
    end
    set -l both "$command $typed[3]"
    switch $both
        case {inner}
            echo $both
            return
    end
    echo $command
end
function __asides_at
    test "$(__asides_command)" = "$argv"
end
function __asides_first
    set -l before 2
    test "$argv" = filter; and set before 1
    __asides_at $argv; and test (count (commandline -opc)) -eq $before
end
complete -c asides -f
{lines}
"""

SCRIPTS = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
