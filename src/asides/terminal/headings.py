"""What stands above a thought, and its length in words. Knows no terminal."""

from __future__ import annotations

HEADING = "Thinking"


def heading(number: int, *, several: bool) -> str:
    """`Thinking`, or `Thinking 2` where there are several."""
    return f"{HEADING} {number}" if several else HEADING


def describe(characters: int, seconds: float = 0.0) -> str:
    """The length of a thought in words, and how long it took where that was a second or more."""
    length = f"{characters:,} character{'' if characters == 1 else 's'}"
    return f"{length}, {elapsed(seconds)}" if seconds >= 1 else length


def elapsed(seconds: float) -> str:
    """A time as a person says it: `7 s`, `2 min 05 s`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
