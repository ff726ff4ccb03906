"""The laws over what was recorded: the cases, read with every format; and real outputs, where they are there."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import asides
from tests.laws.effort import LONG
from tests.support import characters, check_chunking, check_held, check_kept, check_one_path, cut
from tests.test_cases import ALL

TRACES = Path(__file__).parents[3] / "shared" / "data" / "traces"
"""Real outputs. They stand beside the repository and are not part of it."""
SOME = 12
"""How many recorded texts an ordinary run takes for each format, and from each file of traces."""
NEAR = ("auto", "qwen3", "think_tag", "deepseek_v32", "harmony")
"""Formats that read such outputs."""
CHOICES: tuple[dict[str, Any], ...] = ({}, {"start": "undecided"}, {"whitespace": "exact", "limit": 16})
"""Policies to read them with."""


@cache
def inputs() -> tuple[str, ...]:
    """The input of every case, once."""
    return tuple(sorted({"".join(case.chunks) for case in ALL}))


@pytest.mark.parametrize("name", asides.formats())
def test_laws_over_cases_of_other_formats(name: str) -> None:
    """What is a marker to one format is text to another, and must come back whole."""
    texts = inputs() if LONG else random.Random(name).sample(inputs(), min(SOME, len(inputs())))
    for text in texts:
        outcome = check_chunking(name, text, [characters(text)], {})
        check_kept(name, text, outcome, {})
        check_one_path(name, text, {})
        check_held(name, text, characters(text), {"limit": 16})


def traces(path: Path) -> Iterator[tuple[int, str]]:
    """A sample of a file of traces, the same every time."""
    lines = path.read_text(encoding="utf-8").splitlines()
    numbers = range(len(lines)) if LONG else sorted(random.Random(path.stem).sample(range(len(lines)), SOME))
    for number in numbers:
        yield number, json.loads(lines[number])["text"]


@pytest.mark.skipif(not TRACES.is_dir(), reason="no recorded outputs stand beside this repository")
@pytest.mark.parametrize("name", NEAR)
@pytest.mark.parametrize("path", sorted(TRACES.glob("*.jsonl")) or [TRACES], ids=lambda path: path.stem)
def test_laws_over_real_outputs(path: Path, name: str) -> None:
    """Real outputs, in pieces of the size of tokens, with the formats that come near them."""
    for number, text in traces(path):
        generator = random.Random(f"{path.stem} {number}")
        places = generator.sample(range(len(text)), len(text) // 4)
        for policies in CHOICES:
            ways = [cut(text, places), cut(text, generator.sample(range(len(text)), min(3, len(text))))]
            if LONG or len(text) < 2000:
                ways.append(characters(text))
            check_kept(name, text, check_chunking(name, text, ways, policies), policies)


@pytest.mark.skipif(not TRACES.is_dir(), reason="no recorded outputs stand beside this repository")
@pytest.mark.parametrize("path", sorted(TRACES.glob("*.jsonl")) or [TRACES], ids=lambda path: path.stem)
def test_mentions_change_no_real_output(path: Path) -> None:
    """A model that only thinks, answers and calls is read alike with the rules for mentions and without."""
    name = "deepseek_v32" if path.stem.startswith("deepseek_v32") else "qwen3"
    for line in path.read_text(encoding="utf-8").splitlines():
        text = json.loads(line)["text"]
        assert asides.parse(text, name, seed=0).parts == asides.parse(text, name, seed=0, mentions="marker").parts
