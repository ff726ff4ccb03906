"""Ids for calls to which the model gave none. They depend on the seed, the call's index and the shape alone."""

from __future__ import annotations

from functools import lru_cache

from .syntax import IdShape

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MASK = (1 << 64) - 1


def make_id(shape: IdShape, seed: int, index: int, name: str, ordinal: int) -> str:
    """An id in the shape that the ecosystem of this format expects."""
    if shape == "counted":
        return f"functions.{name}:{ordinal}"
    if shape == "short":
        return _letters(seed, index, 9)
    return "call_" + _letters(seed, index, 24)


@lru_cache(maxsize=256)
def _letters(seed: int, index: int, count: int) -> str:
    # splitmix64: a few lines instead of importing `random`, whose import alone costs milliseconds.
    state = (seed * 0x9E3779B97F4A7C15 + index * 0xD1B54A32D192ED03 + 0x8CB92BA72F3D8DD7) & _MASK
    letters = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        letters.append(_ALPHABET[(mixed ^ (mixed >> 31)) % 62])
    return "".join(letters)
