"""Words, steps and questions in prose of any script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.analysis import _words as module
from asides.analysis._words import count_questions, count_steps, count_words, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("It's 4, isn't it?", ["It's", "4", "isn't", "it"]),
        ("a-b c/d x_1", ["a", "b", "c", "d", "x_1"]),
        ("' '' '", []),
        ("don’t stop — “now”", ["don’t", "stop", "now"]),
        ("Über die Brücke", ["Über", "die", "Brücke"]),
        ("Это ответ.", ["Это", "ответ"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),
        ("等一下。OK", ["等", "一", "下", "OK"]),
        ("答えは４です", ["答", "え", "は", "４", "で", "す"]),
        ("확인해 보자", ["확인해", "보자"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    """A word is a run of letters and digits; of scripts without spaces every letter is one."""
    assert words(text) == expected


@given(st.text(st.characters(max_codepoint=127), max_size=200))
def test_the_fast_ways_find_as_many_words_as_the_careful_one(text: str) -> None:
    """Plain text is counted by a shortcut, and the count is the same."""
    careful = len(module._careful_word().findall(text))
    assert len(words(text)) == count_words(text) == careful == len(module._PLAIN_WORD.findall(text))


EASY = (
    "a",
    "B",
    "1",
    "_",
    " ",
    "\n",
    ".",
    "-",
    "'",
    "’",
    "é",
    "λ",
    "²",
    "—",
    "…",
    "🙂",
    "\xa0",
    "\x85",
    "\ud800",
    "가",
    "я",
)
HARD = (
    "等",
    "の",
    "ー",
    "・",
    "々",
    "〇",
    "ｱ",
    "ﾞ",
    "ก",
    "ั",
    "ह",
    "ि",
    "\u0301",
    "\u200d",
    "\u3000",
    "４",
    "\U00020000",
    "𐍈",
)


@given(st.lists(st.sampled_from((*EASY, *EASY, *HARD)), max_size=24).map("".join) | st.text(max_size=60))
def test_the_fast_ways_beyond_ascii_find_the_same_words(text: str) -> None:
    """Spaces in place of separators, and letters that are words each, give what the pattern gives."""
    text += "’"
    assert words(text) == module._careful_word().findall(text)
    assert words("é" + text) == module._careful_word().findall("é" + text)
    assert words("等" + text) == module._careful_word().findall("等" + text)
    assert count_words(text) == len(words(text))


def test_many_kinds_of_separators() -> None:
    """More than are replaced one by one."""
    signs = "".join(map(chr, range(0x2190, 0x2190 + 2 * module.MOST_SEPARATORS)))
    assert words(f"a{signs}b’s {signs}é") == ["a", "b’s", "é"]
    assert words(f"a{signs}等一{signs}é") == ["a", "等", "一", "é"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        (" \n\n---\n\n ", 0),
        ("One thought.", 1),
        ("One.\n\nTwo.\n \nThree.", 3),
        ("One.\nStill one.", 1),
        ("First:\n1. add\n2. subtract\n   - a detail", 3),
        ("**Step 1:** add\n**Step 2:** subtract", 2),
        ("Schritt 1: a\nSchritt 2: b", 2),
        ("第一步，加。\n第二步，减。", 2),
        ("It is\n3.5 metres", 1),
    ],
)
def test_steps(text: str, expected: int) -> None:
    """A step is a paragraph or a numbered line, if it says anything."""
    assert count_steps(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("Is it? Or not?", 2),
        ("What?! Really??? Yes.", 1),
        ("¿Qué es esto? No.", 1),
        ("https://a.example/b?c=d and a ? b : c", 1),
        ("x?.y and x ?? y", 1),
        ("是吗？不是吗？是。", 2),
        ("هل هذا صحيح؟", 1),
        ("a; b; c;", 0),
        ('"Is it?" he asked', 1),
    ],
)
def test_questions(text: str, expected: int) -> None:
    """A question mark counts where it ends something; several in a row are one."""
    assert count_questions(text) == expected


@given(st.text("a ?!.\"')_\n", max_size=30))
def test_plain_questions_are_counted_alike(text: str) -> None:
    """With another mark in the text, the pattern for all marks counts them."""
    assert count_questions(text) == count_questions("？" + text) - 1 or text.startswith("?")
