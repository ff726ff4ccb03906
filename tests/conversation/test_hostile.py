"""Templates that mean harm are given up: by counting what they do, and before they have taken much memory."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.conversation.hostile import TEMPLATES

ENDS = ("was given up: ", "calls itself too deeply", "is nested too deeply", "at most 131,072 are read")


GROUP = 4
"""Templates in one process: each takes up to seconds, and a busy machine has to come to an end with all of them."""


@cache
def ended(group: int) -> dict[str, str]:
    """How each of a group ended, in a process that may not take much memory: a `MemoryError` is not among the ends."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.conversation.hostile"],
        input="\n".join(list(TEMPLATES)[group * GROUP : (group + 1) * GROUP]),
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    return dict(map(json.loads, done.stdout.splitlines())) | {"error": done.stderr}


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is bounded in Linux's way")
@pytest.mark.parametrize("name", TEMPLATES)
def test_it_is_given_up(name: str) -> None:
    found = ended(list(TEMPLATES).index(name) // GROUP)
    how = found.get(name, f"the process ended: {found['error'][-500:]}")
    assert any(end in how for end in ENDS), how
