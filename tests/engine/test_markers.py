"""The tables that markers are searched with."""

from __future__ import annotations

import pytest

import asides
from asides import Format
from asides._engine.calls.value_tags import Piece, spelling
from asides._engine.markers import compile_tables
from asides.families import get_format


@pytest.mark.parametrize("name", ["gemma4", "granite", "functionary_v3_2"])
def test_behind_words_nothing_is_looked_for_that_only_begins_a_text(name: str) -> None:
    format = get_format(name)
    text = compile_tables(format, "resolve", True).text
    assert format.leading & text.markers.keys()
    assert not format.leading & text.after_words.markers.keys()
    assert not any(first.isalpha() for first in text.after_words.firsts)


def test_the_longer_of_two_markers_is_preferred() -> None:
    format = Format.tags(("<a", "<a>", "<ab", "<abc>", "<"), "</a>")
    table = compile_tables(format, "never", False).text
    texts = {"<abc>": "<abc>", "<abd": "<ab", "<a>": "<a>", "<ac": "<a", "<x": "<"}
    for written, marker in texts.items():
        match = table.searches[0].search(written)
        assert match is not None
        assert table.marker(match.group()).text == marker


@pytest.mark.parametrize("opener", ["[A]", "ab:", "<B>", "<Thought>"])
def test_any_case_of_a_marker_is_found(opener: str) -> None:
    table = compile_tables(Format.tags(opener, "</a>", ignore_case=True, attributes=True), "never", False).text
    for written in (opener, opener.lower(), opener.upper()):
        assert table.unmarked(f"x {written} y") == -1
    if opener.startswith("<"):
        assert table.unmarked(f'x {opener[:-1]} a="b"> y') == -1


def test_a_marker_may_hold_any_character() -> None:
    format = Format.tags("<a>", "\0")
    message = asides.parse("<a>x\0y", format)
    assert (message.thinking, message.text) == ("x", "y")


def test_a_piece_that_a_syntax_does_not_have_is_not_searched_for() -> None:
    spelled = spelling((("", Piece.CLOSE), ("<a>", Piece.OPEN)))
    assert [match[0] for match in spelled.search.finditer("x<a>y")] == ["<a>"]
