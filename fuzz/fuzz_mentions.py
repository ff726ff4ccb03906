"""The same search for texts that talk about markers: an input's bytes choose marks, quotes, code spans, fences, indents
and turn headers of a format, one byte each. What is looked for: a cut that matters, lost characters, too much held, and
a stream without a given start that does not end with the parts of `parse`.

The other target makes texts of single characters, and rarely puts a quote on both sides of a marker.
"""

from __future__ import annotations

import random
from functools import cache

from common import NAMES, Input, fuzz, head_of

from asides._engine.format import TEXT
from tests.laws.seeded import check_streams
from tests.laws.texts import BETWEEN, FENCES, PAIRS, QUOTES, SPACES, WORDS, pieces, shown
from tests.support import characters, check_chunking, check_held, check_kept, check_one_path, cut

FEW = ("strict", "collect")
"""Policies with laws of their own."""
SEEDS = 4
"""How many texts of each format the search begins with."""


@cache
def words(name: str) -> tuple[str, ...]:
    """What a byte may stand for: at most 256 pieces, markers and what may stand around them first."""
    own = dict.fromkeys(shown(name).first[:60])
    around = dict.fromkeys(side for pair in PAIRS for side in pair)
    some = dict.fromkeys((*own, *around, *QUOTES, *FENCES, *BETWEEN, *SPACES[:6], *WORDS[:8], *pieces(name)[::9]))
    return tuple(piece for piece in some if piece)[:256]


def text_of(given: Input) -> str:
    """The text that the bytes behind the head stand for."""
    known = words(given.format.name)
    return "".join(known[byte % len(known)] for byte in given.data[:60])


def check(raw: bytes) -> None:
    """Hold one input to the laws."""
    given = Input(raw)
    name, text = given.format.name, text_of(given)
    policies = {key: value for key, value in given.policies.items() if key not in FEW}
    chunks = cut(text, given.places)
    check_kept(name, text, check_chunking(name, text, [characters(text), chunks], policies), policies)
    check_one_path(name, text, policies)
    check_held(name, text, chunks, policies)
    if given.format.start == TEXT:
        check_streams(name, text, {}, random.Random(0))


def show(raw: bytes) -> str:
    """The input in words."""
    given = Input(raw)
    return f"format {given.format.name!r}, policies {given.policies!r}, cut at {given.places}\ninput {text_of(given)!r}"


def seeds() -> list[bytes]:
    """A few rows of pieces for each format."""
    chance = random.Random(1)
    return [
        head_of(number) + chance.randbytes(chance.randint(1, 12)) for number in range(len(NAMES)) for _ in range(SEEDS)
    ]


if __name__ == "__main__":
    fuzz(check, seeds(), (), show)
