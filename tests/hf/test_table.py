"""The tables in the documentation are what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.hf.figures import PAGE as MEASURED
from tools.blocks import blocks
from tools.template_table import PAGE, with_tables

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    """Else: `python -m tools.template_table --write`."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert with_tables(text) == text


def _rows(name: str) -> list[list[list[int]]]:
    """The numbers in the cells of a measured table, without its head and the first column."""
    text = blocks(MEASURED.read_text(encoding="utf-8"))[name]
    assert re.match(r"Counted on \d{4}-\d\d-\d\d with \w+ \d+\.\d+.*\.\n\n\| ", text)
    rows = [line.split("|")[2:-1] for line in text.splitlines() if line.startswith("|")][2:]
    return [[[int(number.replace(",", "")) for number in cell.split(", ")] for cell in row] for row in rows]


def test_what_was_counted_with_transformers_adds_up() -> None:
    """Nothing but the cases of this table is left out of it; `make test-hf` compares the counts themselves."""
    rows = _rows("drop_in")
    assert len(rows) == 2
    for _, (cases,), *outcomes in rows:
        assert cases == sum(number for (number,) in outcomes) > 0
    _, _, _, _, cut, overwritten, newline = rows[0]
    assert cut == overwritten == newline == [0]


@pytest.mark.parametrize(("name", "length"), [("trl", 4), ("servers", 2)])
def test_what_was_counted_in_other_readers_is_all_there_was(name: str, length: int) -> None:
    """By our templates; `make test-readers` compares the counts themselves."""
    rows = _rows(name)
    assert len(rows) == length
    for row in rows:
        there, ours, last = row[-3:]
        assert there == ours
        assert all(found <= number for found, number in zip(last, there, strict=True))
        assert name == "trl" or last == there
