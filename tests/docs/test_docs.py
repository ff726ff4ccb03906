"""The documentation says what is so: examples run, tables are current."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import asides
from asides._engine.modes import Mode
from asides.events import NOTICES, NoticeCode
from tools import call_steps, commands_page, coverage_table, notices_page
from tools.blocks import with_blocks
from tools.formats_table import PAGE, with_tables

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CALLS = (ROOT / "docs" / "reference" / "calls.md").read_text(encoding="utf-8")

EXAMPLES = re.findall(r"^### (.+?) \(`(.+?)`\)\n.*?^````text\n(.*?)\n````\n\n((?:- [^\n]*\n)+)", CALLS, re.M | re.S)


def test_every_section_of_the_page_on_calls_is_an_example() -> None:
    assert len(EXAMPLES) == CALLS.count("\n### ")


@pytest.mark.parametrize(("title", "format", "text", "listed"), EXAMPLES, ids=[example[0] for example in EXAMPLES])
def test_an_example_of_a_call_is_read_as_the_page_says(title: str, format: str, text: str, listed: str) -> None:
    expected = re.findall(r"^- `(.+?)` `(.*)`$", listed, re.M)
    message = asides.parse(text, format)
    assert [(call.name, call.arguments) for call in message.tool_calls] == expected
    assert all(call.error is None for call in message.tool_calls)
    parser = asides.Parser(format)
    for character in text:
        parser.feed(character)
    parser.finish()
    assert [(call.name, call.arguments) for call in parser.message.tool_calls] == expected


@pytest.mark.skipif(sys.platform == "win32", reason="its terminal is a POSIX one")
def test_the_picture_of_the_terminal_is_current() -> None:
    from tools.terminal_picture import PICTURE, make

    assert make() == PICTURE.read_text(encoding="utf-8"), "run: python -m tools.terminal_picture --write"


def test_the_film_of_the_demo_is_current_and_runs_by_itself() -> None:
    from tools.demo_picture import PICTURE, make

    film = PICTURE.read_text(encoding="utf-8")
    assert make() == film, "run: python -m tools.demo_picture --write"
    assert "<script" not in film
    assert len(film) < 100_000


def test_the_readme_example_prints_what_the_readme_says() -> None:
    ((code, printed),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.S)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == printed


def test_what_is_made_from_the_cards_is_current() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert with_tables(text) == text, "run: make families"


@pytest.mark.parametrize(
    "path",
    [
        "index.md",
        "how-to/cases.md",
        "how-to/conversations.md",
        "how-to/families.md",
        "how-to/prefix.md",
        "reference/glossary.md",
        "explanation/laws.md",
        "explanation/markers.md",
    ],
)
def test_the_examples_print_what_their_page_says(path: str) -> None:
    """Each block of Python is followed by what it prints; all blocks of a page are one program."""
    page = (ROOT / "docs" / path).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", page, re.M | re.S)
    assert len(blocks) == page.count("```python") > 0
    code = "print(chr(30), end='')\n".join(code for code, _ in blocks)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split(chr(30)) == [printed for _, printed in blocks]


def test_the_laws_name_tests_that_are_there() -> None:
    page = (ROOT / "docs" / "explanation" / "laws.md").read_text(encoding="utf-8")
    sections = page.split("\n## ")[1:]
    assert [section.partition(".")[0] for section in sections] == [str(number) for number in range(1, 11)]
    for section in sections:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", section)
        assert named, section
        for path, test in named:
            assert f"\ndef {test}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path}::{test}"


def test_the_page_of_steps_is_what_the_parser_does() -> None:
    """And every mode has a letter of its own there."""
    text = (ROOT / call_steps.PAGE).read_text(encoding="utf-8")
    assert with_blocks(text, call_steps.BLOCKS) == text, "run: make families"
    assert {*call_steps.LETTERS, Mode.PROSE} == set(Mode)
    assert len({"t", "k", *call_steps.LETTERS.values()}) == len(Mode) + 1


def test_the_page_of_commands_is_current() -> None:
    text = (ROOT / commands_page.PAGE).read_text(encoding="utf-8")
    assert commands_page.plain(commands_page.with_helps(text)) == commands_page.plain(text), (
        "run: python -m tools.commands_page --write"
    )


def test_a_help_is_the_same_on_every_python() -> None:
    assert commands_page.plain("  -f NAME, --format NAME\n      what") == commands_page.plain("-f, --format NAME what")


def test_the_page_of_notices_is_current() -> None:
    """And every code has a meaning."""
    text = (ROOT / notices_page.PAGE).read_text(encoding="utf-8")
    assert with_blocks(text, notices_page.BLOCKS) == text, "run: make families"
    assert list(NOTICES) == list(get_args(NoticeCode))


def test_the_table_of_coverage_has_every_package() -> None:
    """Else: `make coverage`."""
    packages = sorted(path.parent.name for path in (ROOT / "src" / "asides").glob("*/__init__.py"))
    assert re.findall(r"^\| `(\w+)` \|", coverage_table.PAGE.read_text(encoding="utf-8"), re.M) == packages


def test_the_table_of_coverage_adds_up() -> None:
    def counted(lines: int, missing: int, branches: int, untaken: int) -> dict[str, dict[str, int]]:
        return {"summary": dict(zip(coverage_table.TOTALS, (lines, missing, branches, untaken), strict=True))}

    files = {
        "src/asides/parts.py": counted(10, 0, 0, 0),
        "src/asides/reply/_fold.py": counted(1500, 1, 300, 0),
        "src\\asides\\reply\\items.py": counted(500, 0, 0, 0),
    }
    table = coverage_table.coverage_table(files)
    assert table.splitlines()[2:] == [
        "| `reply` | 2,000 | 1 | 300 | 0 | 99.9 % |",
        f"| {coverage_table.VALUES} | 10 | 0 | 0 | 0 | 100.0 % |",
        "| all | 2,010 | 1 | 300 | 0 | 99.9 % |",
    ]
