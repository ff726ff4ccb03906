"""Thoughts as lines: wrapped to any width, whatever pieces they come in, in any script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth, wcwidth

from asides.terminal._layout import Indented
from asides.terminal._sanitize import Sanitizer, sanitize
from asides.terminal._wrap import SIMPLE, Cells, Wrapped
from tests.terminal.emulator import Emulator

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
FLAG = "\U0001f1e9\U0001f1ea"
HEART = "\u2764\ufe0f"
PIECES = [*"abcdefgh  \n\t(),.", "ä", "e\u0301", "日", "本", "、", "「", FAMILY, FLAG, HEART, "👍🏽"]
WORDS = st.lists(st.sampled_from(PIECES), max_size=120).map("".join)


def columns(text: str) -> int:
    """The columns that a text takes, by the sum of its pieces."""
    return sum(width for _, width, _ in Cells().pieces(text))


def lines_of(text: str, width: int, *, sizes: int = 0, cursor: bool = False) -> list[str]:
    """The lines that stand on a terminal of this width."""
    layout = Wrapped(lambda: width, cursor=cursor)
    emulator = Emulator(width, 200)
    pieces = [text] if not sizes else [text[at : at + sizes] for at in range(0, len(text), sizes)]
    for piece in pieces:
        emulator.write(layout.feed(piece).replace("\n", "\r\n"))
    emulator.write(layout.finish().replace("\n", "\r\n"))
    return emulator.lines


def test_words_wrap_at_the_width() -> None:
    """No line is wider than the terminal, and none could have held the next word."""
    assert lines_of("The quick brown fox jumps over the lazy dog", 16) == [
        "  The quick",
        "  brown fox",
        "  jumps over",
        "  the lazy dog",
    ]


def test_long_words_are_cut() -> None:
    """A word that fits no line begins one and fills as many as it needs."""
    assert lines_of("so " + "x" * 30 + " end", 15) == ["  so", "  " + "x" * 12, "  " + "x" * 12, "  xxxxxx end"]


def test_indents_and_blank_lines_stay() -> None:
    """Code keeps its shape; lines at the beginning and at the end that hold nothing are left out."""
    assert lines_of("\n\ndef f():\n    return 1\n\n\tx\n\n", 40) == ["  def f():", "      return 1", "", "          x"]


def test_an_indent_gives_way_to_its_word() -> None:
    """A word behind an indent of the model's own is not set on a line of its own while it fits without it."""
    for cursor in (False, True):
        assert lines_of("a\n        abcdefgh b", 14, sizes=1, cursor=cursor) == ["  a", "     abcdefgh", "  b"]


def test_scripts_without_spaces_break_anywhere_but_before_a_stop() -> None:
    """Wide characters take two columns; a full stop does not begin a line and a bracket does not end one."""
    assert lines_of("日本語の文。次の「文」だ", 13) == ["  日本語の", "  文。次の", "  「文」だ"]


@pytest.mark.parametrize("cluster", [FAMILY, FLAG, HEART, "👍🏽", "日"])
def test_clusters_take_two_columns(cluster: str) -> None:
    """An emoji of several characters is as wide as one, and is never torn apart."""
    assert columns(cluster) == 2
    for sizes in (0, 1):
        for cursor in (False, True):
            assert lines_of(cluster * 6, 13, sizes=sizes, cursor=cursor) == ["  " + cluster * 5, "  " + cluster]


def test_marks_take_no_columns() -> None:
    """Combining marks stay with their letter; a heap of them costs no more than its length."""
    assert columns("e\u0301" * 5) == 5
    assert columns("a" + "\u0301" * 100_000) == 1


def test_simple_letters_are_one_column_each() -> None:
    """Where no width is looked up, the table would say one."""
    simple = [chr(code) for code in range(0x3000) if SIMPLE.fullmatch(chr(code))]
    assert len(simple) > 1000
    assert [character for character in simple if wcwidth(character) != 1] == []


@given(WORDS, st.integers(2, 40), st.integers(1, 7))
def test_chunks_do_not_matter(text: str, width: int, sizes: int) -> None:
    """Whole, in pieces, with and without a cursor that moves: the same lines."""
    whole = lines_of(text, width)
    assert lines_of(text, width, sizes=sizes) == whole
    assert lines_of(text, width, sizes=sizes, cursor=True) == whole


@given(WORDS, st.integers(14, 40))
def test_no_line_is_too_wide_and_no_word_is_lost(text: str, width: int) -> None:
    """Every character that is no whitespace is there, in order, and every line fits."""
    layout = Wrapped(lambda: width, cursor=False)
    written = layout.feed(text) + layout.finish()
    assert "".join(written.split()) == "".join(text.split())
    assert all(wcswidth(line) <= width for line in written.split("\n"))


def test_a_resize_is_respected() -> None:
    """Lines after it have the new width, and nothing that stands is torn."""
    width = 40
    layout = Wrapped(lambda: width, cursor=True)
    emulator = Emulator(40, 20)
    emulator.write(layout.feed("one two three four five six ").replace("\n", "\r\n"))
    width = 12
    emulator.write(layout.feed("seven eight nine ten").replace("\n", "\r\n"))
    assert emulator.lines == ["  one two three four five six", "  seven", "  eight", "  nine ten"]


@given(st.text(alphabet=st.sampled_from([*"ab \n", "\r"]), max_size=40), st.integers(1, 5))
def test_lines_on_a_pipe_do_not_depend_on_chunks(text: str, sizes: int) -> None:
    """Indented lines are the same in pieces and whole."""
    whole = Indented()
    pieces = Indented()
    cut = "".join(pieces.feed(text[at : at + sizes]) for at in range(0, len(text), sizes))
    assert cut == whole.feed(text)


def test_nothing_that_acts_is_left() -> None:
    """Escape sequences, carriage returns, C1 controls and stray bytes become pictures."""
    assert sanitize("a\x1b[31mb\x07\x9b\udc9b\x7f\tc\r\nd\re") == "a␛[31mb␇\ufffd\ufffd␡\tc\nd␍e"
    turning = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    assert sanitize(f"a{turning}b") == f"a{chr(0xFFFD) * 9}b"
    harmless = "\u200e\u200f\u061c\u200d\u200c \U0001f469\u200d\U0001f52c"
    assert sanitize(harmless) == harmless


@given(st.text(alphabet=st.sampled_from([*"ab\r\n\x1b"]), max_size=30), st.integers(1, 4))
def test_pictures_do_not_depend_on_chunks(text: str, sizes: int) -> None:
    """A line end of two characters may be cut in two."""
    cleaner = Sanitizer()
    pieces = [cleaner.feed(text[at : at + sizes]) for at in range(0, len(text), sizes)]
    assert "".join(pieces) + cleaner.finish() == sanitize(text)
