"""Repetition and loops, found by n-grams."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from asides.analysis._repetition import LOOP_WORDS, SIZE, Loop, Repetition, _longest_loop, repetition
from asides.analysis._words import words

LINE = "We apply the second rule again and it does not fit so we skip it. "


def of(text: str) -> Repetition:
    return repetition(text, words(text))


def test_nothing_repeats_in_what_is_short_or_new() -> None:
    """No n-gram, no repetition."""
    assert of("") == of("one two three") == Repetition()
    assert of(" ".join(map(str, range(500)))) == Repetition()


def test_a_passage_said_again_later_is_repetition_and_no_loop() -> None:
    """Its share is that of the n-grams that came before."""
    new = " ".join(f"word{number}" for number in range(40))
    found = of(f"{new} and then {new}")
    grams = 2 * 40 + 2 - SIZE + 1
    assert found.loop is None
    assert found.share == (40 - SIZE + 1) / grams


def test_a_loop_is_measured() -> None:
    """The passage, how often it stands there, and how many words all of it has."""
    count = len(words(LINE))
    found = of("It begins here. " + LINE * 10 + "And ends.")
    assert found.loop == Loop(words=10 * count, times=10, text=" ".join(words(LINE)))
    assert found.share > 0.8


def test_the_longest_of_several_loops_is_told() -> None:
    """Not the first."""
    found = of(LINE * 5 + "something else in between " + "then B then A " * 100)
    assert found.loop is not None
    assert found.loop.times == 100


def test_a_loop_without_spaces_is_found() -> None:
    """Of a script without spaces every letter is a word."""
    found = of("我们再试一次这个办法，" * 20)
    assert found.loop is not None
    assert (found.loop.times, found.loop.words) == (20, 200)


def test_a_character_again_and_again_is_a_loop() -> None:
    """Also where there is no word at all."""
    assert of("Well! " + "!" * 500).loop == Loop(words=500, times=500, text="!")
    assert of("a" * 1000).loop == Loop(words=1000, times=1000, text="a")


def test_tables_and_rules_are_no_loops() -> None:
    """A few like lines, a grid of noughts, a ruled line."""
    assert of("| a | b |\n" * 3).loop is None
    assert of("0 0 0 0 0 0 0 0 0 0\n" * 10).loop is None
    assert of("-" * 80 + "\n" + "=" * 120).loop is None


def runs(words: list[str]) -> list[tuple[int, int, int]]:
    """Start, period and end of every run of n-grams that each stood the same distance before, member by member."""
    grams = list(zip(*(words[start:] for start in range(SIZE)), strict=False))
    last: dict[tuple[str, ...], int] = {}
    found, period, start = [], 0, 0
    for at, gram in enumerate(grams):
        if not period:
            if gram in last:
                period, start = at - last[gram], at
        elif grams[at - period] != gram:
            found.append((start, period, at))
            period, start = at - last.get(gram, at), at
        last[gram] = at
    return [*found, (start, period, len(grams))] if period else found


PASSAGES = st.tuples(st.lists(st.sampled_from("abc"), min_size=1, max_size=30), st.integers(1, 20))


@given(st.lists(PASSAGES, max_size=6))
def test_runs_are_those_of_the_plain_way(passages: list[tuple[list[str], int]]) -> None:
    """They are followed many words at once, and are the same as word by word."""
    said = [word for passage, times in passages for word in passage * times]
    found = []

    def note(longest: Loop | None, words: list[str], start: int, period: int, end: int) -> None:
        found.append((start, period, end))

    with patch("asides.analysis._repetition._longer", note):
        _longest_loop(said, [hash(gram) for gram in zip(*(said[at:] for at in range(SIZE)), strict=False)])
    assert found == runs(said)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=12), st.integers(1, 40), st.text("xyz ", max_size=60))
def test_a_loop_is_found_exactly_where_one_was_put(passage: list[str], times: int, before: str) -> None:
    """Also of a passage that repeats inside itself, which may hide the first round."""
    said = words(before) + passage * times
    found = repetition(" ".join(said), said).loop
    covered = len(passage) * times
    if times > 3 and covered - len(passage) >= LOOP_WORDS:
        assert found is not None
        assert found.words >= covered - len(passage)
    elif len(said) < LOOP_WORDS:
        assert found is None
