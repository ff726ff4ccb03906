"""The formats in which text is read that comes after something which the upstream has separated."""

from __future__ import annotations

from functools import lru_cache

from .._engine.format import TEXT, THINKING, Format, State


@lru_cache(maxsize=64)
def without_thinking(format: Format) -> Format:
    """The same format, read for calls only."""
    text: dict[str, State] = {
        marker: target for marker, target in format.states.get(TEXT, {}).items() if target != THINKING
    }
    # No header either: who splits thinking off has read the headers, and the rest has none.
    return format.but(states={TEXT: text}, header=None, start=TEXT, leading=frozenset(), settle=None)


@lru_cache(maxsize=64)
def in_the_middle(format: Format) -> Format:
    """The same format for text behind a call that the upstream has read itself: it does not begin in a thought."""
    return format.but(start=TEXT if format.start == THINKING else format.start)
