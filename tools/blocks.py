"""What programs write into the pages of the documentation: a block, between two comments that name it.

    <!-- losses: written by `python -m tools.template_table --write` -->

    ...

    <!-- /losses -->

The first comment says which command writes the block. A test compares each with what its command would write; a page
that lacks a block is an error, so that such a test fails as well.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from pathlib import Path

BLOCK = re.compile(r"(?P<opens><!-- (?P<name>\w+): [^\n]*-->\n)(?P<text>.*?)(?P<closes><!-- /(?P=name) -->)", re.DOTALL)


def blocks(page: str) -> dict[str, str]:
    """The text of every block of a page, by its name."""
    return {block["name"]: block["text"].strip("\n") + "\n" for block in BLOCK.finditer(page)}


Make = Mapping[str, Callable[[], str]]
"""By the name of a block: what makes its text, which ends with a line break."""


def with_blocks(page: str, make: Make) -> str:
    """A page with these of its blocks brought up to date."""
    lacking = make.keys() - blocks(page).keys()
    if lacking:
        raise ValueError(
            f"the page has no block {', '.join(sorted(lacking))}, between `<!-- NAME: … -->` and `<!-- /NAME -->`"
        )

    def replace(block: re.Match[str]) -> str:
        made = make.get(block["name"])
        return block[0] if made is None else f"{block['opens']}\n{made()}\n{block['closes']}"

    return BLOCK.sub(replace, page)


def main(page: Path, make: Make) -> None:
    """The command of a program that makes blocks of a page: print them, or with `--write` write them into it."""
    parser = argparse.ArgumentParser(description=f"Makes what stands in {page} between comments that name it.")
    parser.add_argument("--write", action="store_true", help="write it into the page")
    if parser.parse_args().write:
        page.write_text(with_blocks(page.read_text(encoding="utf-8"), make), encoding="utf-8")
    else:
        print(*(made() for made in make.values()), sep="\n", end="")
