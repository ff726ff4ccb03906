"""Answers wrapped at words: nothing left out, code blocks as they are, the same rows whatever pieces they come in."""

from __future__ import annotations

from functools import partial

import pytest
from wcwidth import wcswidth

from asides.terminal._answer import AnswerLines, definitions, fit
from tests.terminal.emulator import in_pieces

CODE = "    return one_name + another_name + a_third_name  # not broken"
ANSWER = f"""
A paragraph with some words that do not fit into one row.

- an item of a list that is longer than a row of this screen
  1. a numbered one in it, which is as long as the first is
        indented, and it stays so in the rows that follow

```python
def f():
{CODE}
```
A_word_that_is_far_longer_than_a_row_of_the_screen, then 日本語のテキストは文字の間で折り返す。

The end.

"""


shown = partial(in_pieces, AnswerLines)


@pytest.mark.parametrize("columns", [30, 40, 80, 120])
def test_pieces_do_not_matter(columns: int) -> None:
    """One character at a time gives the rows of the whole, and the whole loses nothing but blanks."""
    whole = shown(ANSWER, columns, len(ANSWER))
    for size in (1, 3, 7):
        assert shown(ANSWER, columns, size).lines == whole.lines
    assert shown(ANSWER, columns, 1, cursor=False).lines == whole.lines
    assert "".join(whole.text.split()) == "".join(ANSWER.split())
    assert CODE in whole.raw
    inside = False
    for row in whole.lines:
        inside ^= row.startswith("```")
        assert inside or wcswidth(row) < columns


def test_rows_are_indented_as_their_line_is() -> None:
    """Behind the mark of a list item too; blank lines stay where they are."""
    lines = shown(ANSWER, 30, 1).lines
    assert lines[:11] == [
        "",
        "A paragraph with some words",
        "that do not fit into one row.",
        "",
        "- an item of a list that is",
        "  longer than a row of this",
        "  screen",
        "  1. a numbered one in it,",
        "     which is as long as the",
        "     first is",
        "        indented, and it",
    ]
    assert lines[11] == "        stays so in the rows"


def test_line_ends_come_at_once() -> None:
    """Nobody waits for the next word to see that a line has ended."""
    layout = AnswerLines(lambda: 40, cursor=True)
    assert layout.feed("\n\na") == "\n\na"
    assert layout.feed("b\n") == "b\n"
    assert layout.feed(" \n") == "\n"
    assert layout.feed("    indented") == "    indented"


def test_a_line_that_others_have_ended_begins_anew() -> None:
    """Its rows do not count what stood before; an indent that has come is kept."""
    layout = AnswerLines(lambda: 20, cursor=True)
    layout.feed("some words here")
    layout.interrupt()
    assert layout.feed(" and more") == "and more"  # no indent
    assert layout.feed(" of it") == " of it"
    layout.feed("\n  ")
    layout.interrupt()
    assert layout.feed("x") == "  x"


def test_fences() -> None:
    """A longer fence holds a shorter one; text with code in a line opens none; an indent is put before code too."""
    text = "````\n```\na b c d e f g h i j\n````\nwords after the block\n``` x ``` is code in a line"
    rows = fit(text, 12, "  ").split("\n")
    assert rows[:4] == ["  ````", "  ```", "  a b c d e f g h i j", "  ````"]
    assert rows[4:] == ["  words", "  after the", "  block", "  ``` x ```", "  is code", "  in a line"]


def test_definitions() -> None:
    """The meaning stands beside its name, or below it where lines are short; no line is wider than it may be."""
    pairs = [("name", "a meaning of some words that need more than one line"), ("x", "short")]
    assert definitions(pairs, 40, "  ") == [
        "  name  a meaning of some words that",
        "        need more than one line",
        "  x     short",
    ]
    below = ["name", "    a meaning of some", "    words that need more", "    than one line", "x", "    short"]
    assert definitions(pairs, 24) == below
