"""docs/reference/clients.md has the shape that `make test-clients` writes; no client is run."""

from __future__ import annotations

import pytest

from tests.clients.catalogue import CLIENTS, NPM
from tests.clients.cells import COLUMNS
from tests.clients.page import PAGE, Row, check, table

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_has_the_shape_of_the_table() -> None:
    """A row for each client in each API, with cells that the catalogue allows and a note for each limit."""
    check(TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [("| yes |", "| maybe |"), ("| yes |", "| no |"), ("answer clean", "answer"), ("\n(1) ", "\n(99) ")],
    ids=["cell", "unexplained", "column", "note"],
)
def test_another_shape_is_noticed(old: str, new: str) -> None:
    """A page that was changed by hand is none that a run wrote."""
    assert old in TEXT
    with pytest.raises(AssertionError):
        check(TEXT.replace(old, new, 1))


def test_a_row_that_is_missing_is_noticed() -> None:
    """Every client of the catalogue has its row."""
    rows = [line for line in TEXT.splitlines() if line.startswith(f"| {CLIENTS[-1].name}")]
    with pytest.raises(AssertionError, match="the rows are"):
        check(TEXT.replace(rows[-1] + "\n", ""))


def test_a_client_that_was_not_run_has_no_cells() -> None:
    """It has a dash in every column, and no version."""
    (*_, row) = table([Row(CLIENTS[0])]).splitlines()
    assert row == f"| {CLIENTS[0].name} | {CLIENTS[0].api} |" + " - |" * len(COLUMNS)


def test_versions_are_pinned() -> None:
    """Every package from npm is of one version, and limits are those of columns."""
    assert all(version[0].isdigit() for packages in NPM.values() for version in packages.values())
    assert all(set(client.limits) <= set(COLUMNS) for client in CLIENTS)
