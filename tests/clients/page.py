"""The table of docs/reference/clients.md: what a run measured, between two comments, and read back by a test."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.clients.catalogue import CLIENTS, Client
from tests.clients.cells import COLUMNS
from tools.blocks import blocks, with_blocks

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "clients.md"
HEADS = ("client", "API", *COLUMNS)
NOT_RUN = "-"
CELL = re.compile(r"yes|-|no|no \((\d+)\)")


@dataclass(frozen=True)
class Row:
    """What a run found of one client."""

    client: Client
    version: str = ""
    """Empty for a client that was not run."""
    reasons: Mapping[str, str] | None = None
    """By column, why its assertion failed; empty where it held, and seen to fail when broken."""


def table(rows: Sequence[Row]) -> str:
    """The table and its notes, in Markdown."""
    notes: list[str] = []
    lines = [HEADS, tuple("---" for _ in HEADS)]
    for row in rows:
        lines.append((_name(row), row.client.api, *(_cell(row, column, notes) for column in COLUMNS)))
    shown = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return shown + "".join(f"\n({number}) {note}\n" for number, note in enumerate(notes, 1))


def _name(row: Row) -> str:
    return f"{row.client.name} {row.version}".rstrip()


def _cell(row: Row, column: str, notes: list[str]) -> str:
    if row.reasons is None:
        return NOT_RUN
    if not row.reasons[column]:
        return "yes"
    note = row.client.limits.get(column)
    if note is None:
        return "no"
    if note not in notes:
        notes.append(note)
    return f"no ({notes.index(note) + 1})"


def write(rows: Sequence[Row]) -> None:
    """Put the table into its page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_blocks(text, {"clients": lambda: table(rows)}), encoding="utf-8")


def check(text: str) -> None:
    """That the page has a row for each client in each API, cells of the right kind, and a note for each limit."""
    block = blocks(text).get("clients")
    assert block is not None, "the page has no place for the table"
    lines = [line for line in block.splitlines() if line.startswith("|")]
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    assert cells[0] == HEADS, f"the columns are {cells[0]}"
    named = [(re.sub(r" [\d.]+( \(.*\))?$", "", row[0]), row[1]) for row in cells[2:]]
    assert named == [(client.name, client.api) for client in CLIENTS], f"the rows are {named}"
    numbers: set[str] = set()
    for row, client in zip(cells[2:], CLIENTS, strict=True):
        for column, cell in zip(COLUMNS, row[2:], strict=True):
            found = CELL.fullmatch(cell)
            assert found is not None, f"{row[0]}, {column}: {cell!r}"
            if cell != NOT_RUN:
                assert (cell != "yes") == (column in client.limits), f"{row[0]}, {column}: {cell!r}"
            numbers.update(filter(None, found.groups()))
        assert (row[0] == client.name) == (set(row[2:]) == {NOT_RUN}), f"{row[0]}: run, without a version or a cell"
    assert numbers == set(re.findall(r"^\((\d+)\) ", block, re.MULTILINE)), "notes and cells differ"
