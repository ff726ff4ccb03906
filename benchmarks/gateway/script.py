"""What the scripted model says, and where each piece of it must end up. Shared by the upstream and by who checks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

PIECES = (
    " and",
    " so",
    " x<y",
    ' "q"',
    " ñ→ß",
    " 中文",
    "\n\n*",
    " a\\b",
    " </thin",
    "k?",
    " is",
    " 7;",
    " 🙂",
    " the",
)
"""Pieces the size of tokens, among them what trips a careless splitter: quotes, halves of markers, wide characters."""
FRAGMENTS = ("First", "Then", " done.", " end.", "<thi", "nk>\n", "\n</th", "ink>", "\n", "\n\n")
"""What replies have besides."""
IDS = {piece: 300 + number for number, piece in enumerate((*PIECES, *FRAGMENTS, "<think>", "</think>"))}
"""The id of each, for the tokenizer that `write_tokenizer` writes."""
INTERVAL = 0.010
"""Seconds between two frames of a paced reply."""


@dataclass(frozen=True)
class Part:
    """Where a piece ends up: in the thinking or in the answer, which is then so long."""

    thinking: bool
    length: int


@dataclass(frozen=True)
class Script:
    """One reply."""

    thinking: str
    answer: str
    pieces: tuple[str, ...]
    """As the model writes them, markers among them."""
    landings: tuple[Part | None, ...]
    """For each piece. None for markers, and for a piece whose end may rightly be held back for a moment."""
    pace: str
    """`burst`, `paced`, `step`, or `idle`: the first piece and then nothing."""


@lru_cache
def script(name: str) -> Script:
    """The reply that a model's name stands for: `paced-100`, `burst-300`, `step-150` or `idle-9`, with the number of
    its pieces. Of a `step` no piece may wait at a splitter."""
    kind, _, number = name.partition("-")
    if kind not in ("paced", "burst", "step", "idle") or not number.isdigit():
        raise ValueError(f"no script is called {name!r}; try paced-100 or burst-300")
    count = max(int(number), 6)
    pieces = tuple(piece for piece in PIECES if kind != "step" or not _may_wait(piece))
    thinking = ("First", *(pieces[i % len(pieces)] for i in range(count * 2 // 3 - 2)), " done.")
    answer = ("Then", *(pieces[i % len(pieces)] for i in range(count - count * 2 // 3 - 2)), " end.")
    opening: tuple[str, ...] = ("<thi", "nk>\n")
    closing: tuple[str, ...] = ("\n</th", "ink>", "\n\n")
    if kind == "step":  # as models write them, whose markers are tokens of their own
        opening, closing = ("<think>", "\n"), ("\n", "</think>", "\n\n")
    landings: list[Part | None] = [None] * len(opening)
    landings += _landings(thinking, True) + [None] * len(closing) + _landings(answer, False)
    return Script("".join(thinking), "".join(answer), (*opening, *thinking, *closing, *answer), tuple(landings), kind)


def write_tokenizer(path: Path) -> None:
    """Write a tokenizer.json in which every piece is a token."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    fill = {f"unused{number}": number for number in range(len(letters), min(IDS.values()))}
    tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)} | fill, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in IDS])
    assert {piece: tokenizer.token_to_id(piece) for piece in IDS} == IDS
    tokenizer.save(str(path))


def _landings(pieces: tuple[str, ...], thinking: bool) -> list[Part | None]:
    length = 0
    found: list[Part | None] = []
    for piece in pieces:
        length += len(piece)
        found.append(None if _may_wait(piece) else Part(thinking, length))
    return found


def _may_wait(piece: str) -> bool:
    """Whether a splitter may rightly hold the end of a piece back for a moment."""
    return piece.endswith("</thin") or piece[-1].isspace()
