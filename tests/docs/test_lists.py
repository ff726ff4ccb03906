"""Lists of the pages: an item that GitHub shows must not be swallowed by the paragraph above it on the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^( *)(`{3,}).*?^\1\2`*$", re.M | re.S)
ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def swallowed(page: str) -> list[str]:
    """Items directly below a paragraph or table inside the item before: there the site needs a blank line."""
    found = []
    for block in re.split(r"\n\s*\n", FENCE.sub("", page)):
        first, *rest = block.strip("\n").split("\n")
        if first.startswith("  ") and not ITEM.match(first.lstrip()):
            found += [line for line in rest if ITEM.match(line)]
    return found


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.relative_to(DOCS).as_posix())
def test_every_item_begins_one(page: Path) -> None:
    assert not swallowed(page.read_text(encoding="utf-8"))


def test_a_swallowed_item_is_found() -> None:
    assert swallowed("- a\n\n    more of a\n- b\n") == ["- b"]
    assert swallowed("- a\n\n    more of a\n\n- b\n  c\n- d\n") == []
