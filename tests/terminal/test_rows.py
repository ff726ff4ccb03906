"""Rows are counted as a terminal counts them."""

from __future__ import annotations

import random

import pytest

from asides.terminal._rows import RowCounter
from tests.terminal.emulator import Emulator

PIECES = (
    "a",
    "some words ",
    "x" * 37,
    "日本",
    "é\u0301",
    "👩\u200d👧",
    "\n",
    "\n\n",
    "\r",
    "\x1b[1mb\x1b[0m",
    "\x1b[3D\x1b[K",
)
SPINNER = "\x1bD\x1bM\x1b7\r\nspins\r\x1b[J\x1b8"


@pytest.mark.parametrize("columns", [9, 20, 40])
def test_as_a_terminal_does(columns: int) -> None:
    """Text, wide characters, line ends, colours and the moves that are written, in any order."""
    chosen = random.Random(columns)
    for _ in range(60):
        emulator, counter = Emulator(columns, 400), RowCounter()
        for piece in chosen.choices([*PIECES, SPINNER], k=40):
            emulator.write(piece.replace("\n", "\r\n"))
            counter.feed(piece, columns)
            assert counter.row == len(emulator.gone) + emulator.cursor[1], emulator.raw
