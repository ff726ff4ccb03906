"""The one table printer, and texts of others made fit for its cells: on one line, sanitized, in so many columns.

Columns are counted as a terminal shows them, so that names in wide scripts stay aligned. Colours are the caller's: a
cell holds no escape codes.

    aligned([("NAME", "COUNT"), ("qwen3", "12")], right={1})     ["NAME   COUNT", "qwen3     12"]
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from wcwidth import wcswidth

from ._sanitize import sanitize

LEAST = 24
"""Columns that the last column of a table has, if others can be left out for it."""
GAP = "  "
"""What stands between two columns."""
_SPACE = re.compile(r"\s+")


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """The rows as lines, every column as wide as its widest cell. Cells of the columns in `right` end together."""
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    return [
        GAP.join(
            pad(cell, width, right=place in right) for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def clean(text: str) -> str:
    """Text on one line, sanitized."""
    return sanitize(_SPACE.sub(" ", text).strip())


def columns(text: str) -> int:
    """How many columns a clean text takes."""
    return max(0, wcswidth(text))


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Text filled with spaces up to a width; with `right` they stand before it."""
    spaces = " " * (width - columns(text))
    return spaces + text if right else text + spaces


def percent(share: float) -> str:
    """A share in a hundred: `42%`, and `4.2%` where that says more."""
    return f"{share:.1%}" if 0 < share < 0.0995 else f"{share:.0%}"


def amount(count: int, one: str, many: str) -> str:
    """So many of something: `1 reply`, `1,200 replies`."""
    return f"{count:,} {one if count == 1 else many}"


def shorten(text: str, width: int) -> str:
    """Text that fits a width; most of its end stays, because names that begin alike end differently."""
    if columns(text) <= width:
        return text
    head = (width - 3) // 3
    tail = width - 3 - head
    while tail > 1 and columns(text[:head] + "..." + text[-tail:]) > width:
        head, tail = max(1, head - 1), tail - 1
    return text[:head] + "..." + text[-tail:]


def fitted(table: Sequence[Sequence[str]], width: int | None, spare: Sequence[str] = ()) -> list[str]:
    """Columns, each with its head first, as lines no wider than `width`; without a width all is there.

    The last column is cut to what the others leave it. Where that is too little, the `spare` ones are left out, by
    their heads and in that order.
    """
    *others, last = table
    for name in (*spare, None):
        lines = aligned(list(zip(*others, strict=True)))
        left = None if width is None else width - columns(lines[0]) - len(GAP)
        if left is None or left >= LEAST or name is None:
            break
        others = [column for column in others if column[0] != name]
    # Characters before columns: to count these of a whole long line takes long.
    cells = last if left is None else [cut(clean(cell[: 2 * max(left, 4)]), max(left, 4)) for cell in last]
    return [f"{line}{GAP}{cell}".rstrip() for line, cell in zip(lines, cells, strict=True)]


def cut(text: str, width: int) -> str:
    """Text that fits a width, its end left out."""
    if columns(text) <= width:
        return text
    end = width - 3
    while end > 1 and columns(text[:end]) > width - 3:
        end -= 1
    return text[:end] + "..."
