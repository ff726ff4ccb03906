"""Ids for calls to which the model gave none: random, or made from a seed, the call's index and the shape alone."""

from __future__ import annotations

import os
from functools import lru_cache

from .syntax import IdShape

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MASK = (1 << 64) - 1
_LETTER_OF_BYTE = bytes(ord(_ALPHABET[byte % 62]) for byte in range(256))


def make_id(shape: IdShape, seed: int | None, index: int, name: str, ordinal: int) -> str:
    """An id in the shape that the ecosystem of this format expects. Without a seed, another one every time."""
    if shape == "counted":
        return f"functions.{name}:{ordinal}"
    count, before = (9, "") if shape == "short" else (24, "call_")
    if seed is None:
        return before + os.urandom(count).translate(_LETTER_OF_BYTE).decode()
    return before + _letters(seed, index, count)


def seed_of(text: str, place: int = 0) -> int:
    """The seed of an output that is read again: it depends on the text alone, and on its place in what it stands in."""
    from hashlib import blake2b  # here, because most programs read nothing again

    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8, salt=place.to_bytes(blake2b.SALT_SIZE)).digest())


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
