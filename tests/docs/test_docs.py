"""The documentation says what is so: examples run, tables are current."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import asides
from asides._engine.call_region import MESSAGES
from asides.events import NOTICES
from tools.formats_table import PAGES, with_tables

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CALLS = (ROOT / "docs" / "calls.md").read_text(encoding="utf-8")
NOTICE_PAGE = (ROOT / "docs" / "notices.md").read_text(encoding="utf-8")

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


def test_the_readme_example_prints_what_the_readme_says() -> None:
    code, printed = re.findall(r"```(?:python)?\n(.*?)```", README, re.S)[:2]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == printed


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_what_is_made_from_the_cards_is_current(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert with_tables(text) == text, "run: make families"


def test_the_example_of_a_family_prints_what_the_page_says() -> None:
    page = (ROOT / "docs" / "families.md").read_text(encoding="utf-8")
    code, printed = re.findall(r"```(?:python|text)\n(.*?)```", page, re.S)[:2]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == printed


@pytest.mark.parametrize(("name", "table"), [("notices", NOTICES), ("errors", MESSAGES)])
def test_the_page_of_notices_is_current(name: str, table: dict[str, str]) -> None:
    section = re.search(rf"<!-- {name}:.*?-->\n(.*?)<!-- /{name} -->", NOTICE_PAGE, re.S)
    assert section is not None
    assert dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section.group(1), re.M)) == table
