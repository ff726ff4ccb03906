"""The pages on the interfaces and on trouble: every example runs and prints what the page says; every link leads on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import environment
from tests.waiting import PATIENCE

DOCS = Path(__file__).parents[2] / "docs" / "how-to"
PAGES = [*sorted((DOCS / "compat").glob("*.md")), DOCS / "troubleshooting.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.M | re.S)
BETWEEN = "\x1e"

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@every_page
def test_the_examples_print_what_the_page_says(page: Path) -> None:
    """The Python of a page, block by block in one process; a text block behind it is what it prints."""
    text = page.read_text(encoding="utf-8")
    if "import Tokenizer" in text:
        pytest.importorskip("splintr")
    blocks = BLOCK.findall(text)
    code = f"print({BETWEEN!r}, end='')\n".join(code for code, _ in blocks)
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=PATIENCE
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.split(BETWEEN) == [printed for _, printed in blocks] or not blocks


@every_page
def test_the_commands_print_what_the_page_says(page: Path) -> None:
    """Console blocks: each command after a dollar sign, run in a shell, prints the lines below it."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    for block in re.findall(r"^```console\n(.*?)^```\n", page.read_text(encoding="utf-8"), re.M | re.S):
        for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            run = subprocess.run(
                ["bash", "-c", command],
                env={**environment(), "PATH": path},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            assert run.stdout.rstrip("\n") == printed.rstrip("\n"), command
            assert not run.stderr or "2>" not in command


def test_the_four_pages_have_examples() -> None:
    """A page whose blocks are not found would be tested by nothing."""
    for name in ("nexrl", "selfai", "tinker", "thinking_parser"):
        text = (DOCS / "compat" / f"{name}.md").read_text(encoding="utf-8")
        assert len(BLOCK.findall(text)) == text.count("```python") >= 2


@every_page
def test_links_lead_on(page: Path) -> None:
    """A link to another page names a file that is there."""
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@every_page
def test_lines_are_not_too_long(page: Path) -> None:
    """Prose keeps to the project's width; tables and what commands print may be wider."""
    prose = re.sub(r"^```(?:text|console)\n.*?^```\n", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for line in prose.splitlines():
        assert len(line) <= 120 or line.startswith("|"), line
