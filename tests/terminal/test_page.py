"""The page on the terminal says what is so: its examples print what it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import OnScreen

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "terminal.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.S)
SCREENS = re.findall(r"```text\n(.*?)```", PAGE, re.S)


def test_the_first_screen(tmp_path: Path) -> None:
    """The reply in the text above it looks so."""
    match = re.search(r"^From `(.*?)`, `asides -f qwen3` makes this on a terminal", PAGE, re.M)
    assert match is not None
    reply = tmp_path / "reply.txt"
    reply.write_text(match.group(1).replace("\\n", "\n"))
    with OnScreen("split", "-f", "qwen3", reply) as asides:
        assert asides.end() == 0
        assert asides.emulator.text + "\n" == SCREENS[0]


def test_the_programs() -> None:
    """They run as they stand."""
    live, whole = PROGRAMS
    done = subprocess.run([sys.executable, "-c", live], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("It is 4.\n", "Thinking\n  Let me add.\n")
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True)
    assert done.stdout == SCREENS[-1]


@pytest.mark.parametrize("style", re.findall(r"^--style (\S+)", PAGE, re.M))
def test_the_styles(style: str) -> None:
    """Each can be read."""
    from asides.terminal import Style

    Style.parse(style)
