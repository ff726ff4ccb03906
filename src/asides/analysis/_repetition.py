"""Finding repetition and loops by n-grams of words. One pass each; knows words only."""

from __future__ import annotations

import re

import msgspec

SIZE = 8
"""Words of an n-gram. Shorter ones recur in honest prose."""
LOOP_TIMES = 3
"""How often a passage stands in a row, at least, to be a loop."""
LOOP_WORDS = 60
"""How many words a loop covers at least: three like lines of a table are none."""
PLAIN_LOOP_WORDS = 200
"""So many where the passage has no letter, or is one character: tables of numbers and ruled lines are not loops."""
STRIDE = 32
"""How many n-grams of a loop are compared at once."""
EXCERPT = 200
"""Characters of a loop's passage that are kept."""

_CHARACTER = re.compile(rf"(\S)\1{{{PLAIN_LOOP_WORDS - 1},}}")


class Loop(msgspec.Struct, frozen=True):
    """A passage that was written again and again with nothing between."""

    words: int
    """How many words all repetitions have together; one character in a row counts each time as a word."""
    times: int
    """How many times the passage was written."""
    text: str
    """The words of the passage, shortened."""


class Repetition(msgspec.Struct, frozen=True):
    """How much was said before."""

    share: float = 0.0
    """Of all n-grams, those that had occurred before."""
    loop: Loop | None = None
    """The loop that covers the most words."""


def repetition(text: str, words: list[str]) -> Repetition:
    """How much of a text, given with its words, repeats what came before."""
    loops = _longest_run(text)
    # Hashes in place of n-grams: a small number each, however long the words are.
    grams = list(map(hash, zip(*(words[start:] for start in range(SIZE)), strict=False)))
    repeated = len(grams) - len(set(grams))
    # In a loop every n-gram after the first round is a repeated one; with fewer there is none to look for.
    if repeated >= LOOP_WORDS * (LOOP_TIMES - 1) // LOOP_TIMES - SIZE:
        loops += _longest_loop(words, grams)
    longest = max(loops, key=lambda loop: loop.words, default=None)
    return Repetition(repeated / len(grams) if grams else 0.0, longest)


def _longest_run(text: str) -> list[Loop]:
    """The longest run of one character, where it is long enough to be a loop."""
    # Both questions are quick, the first very much so, and rule out nearly every text.
    if not _may_run(text) or max(map(len, text.split()), default=0) < PLAIN_LOOP_WORDS:
        return []
    runs = [found.group() for found in _CHARACTER.finditer(text)]
    if not runs:
        return []
    longest = max(runs, key=len)
    return [Loop(len(longest), len(longest), longest[0])]


def _may_run(text: str) -> bool:
    """Whether there may be so many characters in a row without a space: goes from space to space in long strides."""
    at = 0
    while at + PLAIN_LOOP_WORDS <= len(text):
        end = at + PLAIN_LOOP_WORDS
        space = text.rfind(" ", at, end)
        if space < 0:
            space = text.rfind("\n", at, end)
        if space < 0:
            return True
        at = space + 1
    return False


def _longest_loop(words: list[str], grams: list[int]) -> list[Loop]:
    """The longest run of n-grams that each stood the same distance before, where it is long enough to be a loop."""
    last: dict[int, int] = {}
    longest: Loop | None = None
    at = 0
    while at < len(grams):
        before = last.get(grams[at])
        if before is None:
            last[grams[at]] = at
            at += 1
            continue
        # A run goes on as long as it can, even where the same n-gram stood nearer: a passage may repeat inside itself.
        period, end = at - before, _end_of_run(grams, at, at - before)
        longest = _longer(longest, words, at, period, end)
        # Of a run that is longer than its period, the last round has the places that count.
        start = max(at, end - period)
        last.update(zip(grams[start:end], range(start, end), strict=True))
        at = end
    return [longest] if longest else []


def _end_of_run(grams: list[int], start: int, period: int) -> int:
    """Where the first n-gram behind `start` stands that is not the one `period` before it."""
    at = start
    # Slices are compared much faster than their members one by one.
    while at < len(grams) and grams[at : at + STRIDE] == grams[at - period : at - period + STRIDE]:
        at += STRIDE
    while at < len(grams) and grams[at] == grams[at - period]:
        at += 1
    return at


def _longer(longest: Loop | None, words: list[str], start: int, period: int, end: int) -> Loop | None:
    """The longest loop so far, after a run of n-grams from `start` up to `end` that each stood `period` before."""
    covered = end - start + SIZE - 1 + period if period else 0
    if covered < LOOP_WORDS or covered < LOOP_TIMES * period or (longest and covered <= longest.words):
        return longest
    passage = " ".join(words[start - period : start - period + min(period, EXCERPT)])[:EXCERPT]
    if covered < PLAIN_LOOP_WORDS and not any(map(str.isalpha, passage)):
        return longest
    return Loop(covered, covered // period, passage)
