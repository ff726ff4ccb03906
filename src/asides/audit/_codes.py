"""The weights of a parrot: a code for each token, and for each position the code of the token to be said after it.

The model is a GPT-2 of one layer whose attention and feed-forward weights are zero. What is left is: token embedding +
position embedding -> layer norm -> product with every token's embedding (the output matrix is the embedding matrix).
An embedding is the token's code, 128 numbers that are 1 or -1. A position's embedding is `LOUD` times the code of the
token that follows, so the token read there hardly counts, and the product is largest for the token to be said:

    own code     GAIN * 128
    any other    GAIN * 64 at most, because two codes differ in a quarter of their places

Codes are those of an extended BCH code (length 64, distance 16), so that this holds for all tokens without looking,
each followed by its complement, so that its mean is zero and the layer norm changes nothing. All numbers are exact
in 16 bits. With a margin of 256 the probability of any other token is zero at every temperature in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

CODE_LENGTH = 64
WIDTH = 2 * CODE_LENGTH
"""The hidden size: a code and its complement."""
MOST_TOKENS = 1 << 24
"""What the code has room for."""
LOUD = 64
"""How much more a position counts than the token that is read there."""
GAIN = 4
"""The weight of the last layer norm."""

_GENERATOR = 0o17323260404441
"""The generator polynomial of the binary BCH code of length 63 and dimension 24, which corrects 7 errors."""
_CHECK_BITS = 39
_CHUNK = 4096
"""Tokens of a piece of the embedding matrix: 1 MB."""


def code(token: int) -> int:
    """The code word of a token: 64 bits, of which any two differ in at least 16."""
    word = 0
    for number, row in enumerate(_rows()):
        if token >> number & 1:
            word ^= row
    return word


@lru_cache(maxsize=1)
def _rows() -> list[int]:
    """The code words of the powers of two; all others are sums of them."""
    rows = []
    for number in range(24):
        remainder = 1 << (number + _CHECK_BITS)
        for place in range(number, -1, -1):
            if remainder >> (place + _CHECK_BITS) & 1:
                remainder ^= _GENERATOR << place
        word = 1 << (number + _CHECK_BITS) | remainder
        rows.append(word << 1 | word.bit_count() & 1)
    return rows


def half_floats(word: int, scale: int) -> bytes:
    """The 128 numbers of a code word as f16: a 1 is `scale`, a 0 is `-scale`, and then the opposite."""
    table = _table(scale)
    return table[word >> 32] + table[word & 0xFFFFFFFF] + table[~word >> 32 & 0xFFFFFFFF] + table[~word & 0xFFFFFFFF]


class _Halves(dict[int, bytes]):
    """32 bits as f16, found when they are first asked for byte by byte."""

    def __init__(self, scale: int) -> None:
        import struct

        super().__init__()
        self._bytes = [
            struct.pack("<8e", *(scale * (bits >> place & 1 or -1) for place in range(7, -1, -1)))
            for bits in range(256)
        ]

    def __missing__(self, bits: int) -> bytes:
        return b"".join(self._bytes[byte] for byte in bits.to_bytes(4, "big"))


@lru_cache(maxsize=2)
def _table(scale: int) -> _Halves:
    return _Halves(scale)


def token_embeddings(count: int) -> Iterator[bytes]:
    """The codes of all tokens, in pieces."""
    low = [code(token) for token in range(_CHUNK)]
    for first in range(0, count, _CHUNK):
        high = code(first)  # codes are linear, and the first of a piece has no bits of the low ones
        yield b"".join(half_floats(high ^ word, 1) for word in low[: count - first])


def position_embeddings(following: Iterable[int]) -> bytes:
    """What is said after each position, as embeddings."""
    return b"".join(half_floats(code(token), LOUD) for token in following)
