"""Words: what a query means, and which piece of a text is shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from asides._history.text_search import Term, find_snippet, plain_words, read_query
from tests.history.generated import STEADY

ANY = st.text(st.characters(exclude_categories=()), max_size=200)


def test_a_query_is_words_and_phrases() -> None:
    """Each word may go on, but not in quotes, not a single letter, and not where there are no spaces."""
    assert read_query('half remem "two words" a don\'t 质数') == [
        Term(("half",), True),
        Term(("remem",), True),
        Term(("two", "words"), False),
        Term(("a",), False),
        Term(("don", "t"), False),
        Term(("质", "数"), False),
    ]
    assert read_query('*** "" ( "open') == [Term(("open",), False)]


def test_plain_words() -> None:
    """Case and accents go, and what is not a word."""
    assert plain_words("Café_ÉTÉ, STRASSE straße 3.14") == ["cafe", "ete", "strasse", "strasse", "3", "14"]


def test_a_snippet_shows_most_of_what_was_asked() -> None:
    """The piece with both words wins over an earlier one with one."""
    text = "alpha " + "filler " * 100 + "here alpha meets\nbeta again " + "filler " * 100
    found = find_snippet(text, read_query("alpha beta"))
    assert "alpha meets beta" in found.text
    assert found.text.startswith("…")
    assert found.text.endswith("…")
    assert [found.text[start:end] for start, end in found.marks] == ["alpha", "beta"]
    assert found.line == 1


def test_a_snippet_of_words_whose_accents_differ() -> None:
    """They are found without accents, so they are shown without: in the query, in the text, or in both."""
    text = "filler\n" * 100 + "Wir PRÜFEN das im Cafe\u0301 ﬁnal."
    for query, shown in (("prufen", "PRÜFEN"), ("prüf", "PRÜFEN"), ("pru\u0308fen", "PRÜFEN"), ("cafe", "Cafe")):
        found = find_snippet(text, read_query(query))
        assert [found.text[start:end] for start, end in found.marks] == [shown]
        assert found.line == 101


def test_a_snippet_of_what_cannot_be_shown_in_place() -> None:
    """A letter that stands for several is found by them, but not marked; the beginning is shown."""
    assert find_snippet("straße", read_query("strasse")).text == "straße"


@STEADY
@given(ANY, ANY)
def test_any_query_and_any_text(query: str, text: str) -> None:
    """Nothing is an error, and marks are places in the snippet."""
    found = find_snippet(text, read_query(query))
    places = [place for mark in found.marks for place in mark]
    assert places == sorted(places)
    assert all(0 <= place <= len(found.text) for place in places)
    assert "\n" not in found.text
    plain_words(text)
