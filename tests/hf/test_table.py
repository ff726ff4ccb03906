"""The tables in the documentation are what the code says."""

from __future__ import annotations

from pathlib import Path

from tools.template_table import PAGE, with_tables

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    """Else: `python -m tools.template_table --write`."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert with_tables(text) == text
