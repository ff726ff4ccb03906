"""The measured tables of docs/how-to/response_templates.md, each counted by tests that need other people's packages.

`make test-hf` and `make test-readers` compare the page with what they counted; with `ASIDES_WRITE_PAGES=1` they write
it. Each table begins with the versions that it was counted with and the day, which is not compared.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from tools.blocks import blocks, with_blocks

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "response_templates.md"
KINDS = ("thoughts", "texts", "calls")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def check(name: str, packages: Iterable[str], rows: Sequence[Sequence[str | int]], path: Path = PAGE) -> None:
    """That a table of a page is what was counted; the first row is its head."""
    counted_with = ", ".join(f"{package} {version(package).partition('+')[0]}" for package in packages)
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    table = "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)
    text = f"Counted on {time.strftime('%Y-%m-%d')} with {counted_with}.\n\n{table}"
    page = path.read_text(encoding="utf-8")
    before = blocks(page)[name]
    if os.environ.get("ASIDES_WRITE_PAGES"):
        path.write_text(with_blocks(page, {name: lambda: text}), encoding="utf-8")
    else:
        assert _DAY.sub("", before) == _DAY.sub("", text), "to write it: ASIDES_WRITE_PAGES=1"


def parts(counted: Counter[str]) -> str:
    """Counts of thoughts, texts and calls as a cell."""
    return ", ".join(_cell(counted[kind]) for kind in KINDS)


def _cell(value: str | int) -> str:
    return value if isinstance(value, str) else f"{value:,}"
