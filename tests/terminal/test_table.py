"""The table printer: columns that stay aligned, whatever script a cell is written in."""

from __future__ import annotations

from asides.terminal._table import aligned, clean, columns, cut, pad, shorten


def test_every_column_is_as_wide_as_its_widest_cell() -> None:
    """Numbers end together where the caller says so."""
    rows = [("NAME", "COUNT", "TIME"), ("a", "7", "now"), ("longer", "1,000,000", "")]
    assert aligned(rows, right={1}) == [
        "NAME        COUNT  TIME",
        "a               7  now ",
        "longer  1,000,000      ",
    ]


def test_wide_characters_take_two_columns() -> None:
    """So the next column begins at the same place."""
    first, second = aligned([("模型", "x"), ("qwen", "y")])
    assert columns(first) == columns(second)
    assert (first, second) == ("模型  x", "qwen  y")


def test_a_text_that_is_wider_stays_whole() -> None:
    """Padding never cuts."""
    assert pad("long", 2) == pad("long", 2, right=True) == "long"
    assert (pad("a", 3), pad("a", 3, right=True)) == ("a  ", "  a")


def test_labels_fit() -> None:
    """In columns, not characters; nothing that a terminal acts on."""
    assert clean("a\x1b[31m\n b\u202ec") == "a␛[31m b\ufffdc"
    assert shorten("short", 10) == "short"
    assert shorten("model-with-a-long-name-500", 15) == "mode...name-500"
    for text in ("模型" * 20, "a" * 50, "模a" * 30):
        assert columns(shorten(text, 16)) <= 16
        assert columns(cut(text, 16)) <= 16
    assert cut("abcdefgh", 6) == "abc..."
