"""`--help` of every command, and of the commands of `history`: it teaches, in plain words, in lines that fit."""

from __future__ import annotations

import re

import pytest

from tools.commands_page import helps

HELPS = dict(helps())
WIDER = {"asides serve": 88}
"""Columns of a help whose examples hold addresses; of all others 79."""
PRIVATE_WORDS = r"\b(?:told|tells?|says?|said|wish(?:es)?|quiet|kept|calm|speaks?|anew|whoever)\b"
"""What has to be decoded by who does not know this project; `keep` itself is in the names of flags."""


@pytest.mark.parametrize("command", HELPS)
def test_help_teaches(command: str) -> None:
    """What the command does, how it is called, and what to type first."""
    text = HELPS[command]
    usage, what = text.split("\n\n")[:2]
    assert usage.startswith(f"usage: {command}")
    assert re.match(r"[A-Z].*[.:]$", what.replace("\n", " ")), "the second paragraph says what it does"
    examples = re.findall(r"^ +(?:.* \| )?(?:\w+=\S* )*(?:.*<\()?asides\b.*$", text.partition("\noptions:\n")[2], re.M)
    assert len(examples) >= 2
    assert max(map(len, text.splitlines())) <= WIDER.get(command, 79)


@pytest.mark.parametrize("command", HELPS)
def test_help_is_in_plain_words(command: str) -> None:
    """Defaults are written one way, and no word of ours stands there."""
    text = " ".join(HELPS[command].split())
    assert not re.findall(PRIVATE_WORDS, text)
    assert not re.findall(r"\(default [^)]*\)", text), "write: (default: ...)"
