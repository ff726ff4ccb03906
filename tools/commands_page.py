"""The page of commands, docs/reference/commands.md: what `--help` of each prints.

`python -m tools.commands_page` prints it; with `--write` it goes into the page. Run it from the top of the repository.
A test fails while the page is not what this writes. Python 3.13 lays a help out otherwise than 3.11, which the page
has; `plain` makes both the same.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from asides._cli import COMMANDS
from asides._cli.completion import FILTER, parser_of
from tools.blocks import main, with_blocks

PAGE = Path("docs", "reference", "commands.md")


def helps() -> Iterator[tuple[str, str]]:
    """Every command with its help, commands of commands behind theirs."""
    for command in (FILTER, *COMMANDS):
        parser = parser_of(command)
        yield parser.prog, parser.format_help()
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for inner in action.choices.values():
                    yield inner.prog, inner.format_help()


def markdown() -> str:
    """A section for each command."""
    sections = []
    for name, text in helps():
        marks = "#" * max(2, name.count(" ") + 1)
        sections.append(f"{marks} {name}\n\n```text\n{text.rstrip()}\n```\n")
    return "\n".join(sections)


def with_helps(text: str) -> str:
    """A page with the helps between its two comments brought up to date."""
    return with_blocks(text, BLOCKS)


def plain(text: str) -> str:
    """A help without its layout: `-f NAME, --format NAME` as `-f, --format NAME`, and every whitespace one space."""
    return re.sub(r"(-\w) (\S+), (--[\w-]+ \2)", r"\1, \3", " ".join(text.split()))


BLOCKS = {"commands": markdown}

if __name__ == "__main__":
    main(PAGE, BLOCKS)
