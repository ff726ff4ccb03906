"""The site of the documentation, as far as it can be looked at without building it (`make docs`)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.api_docstrings import bare_members, definition, undocumented
from tools.api_pages import pages, with_list
from tools.site import in_navigation

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools are run from the top of the repository."""
    monkeypatch.chdir(ROOT)


def test_every_page_is_in_the_navigation_once() -> None:
    """The builder says nothing of a page that nobody finds, nor of a line without a page."""
    written = sorted(path.relative_to("docs").as_posix() for path in Path("docs").rglob("*.md"))
    assert sorted(in_navigation()) == written, "mkdocs.yml has the navigation"


def test_the_pages_of_the_api_list_every_public_name() -> None:
    wanted = pages()
    assert {page.name for page in wanted} == set(os.listdir("docs/reference/api"))
    for page, listed in wanted.items():
        assert with_list(page, listed) == page.read_text(encoding="utf-8"), "run: python -m tools.api_pages --write"


def test_the_api_is_that_of_the_packages() -> None:
    """The tool reads `__all__` from the source; this is what Python has."""
    import asides
    import asides.history

    listed = "".join(pages().values())
    for name in asides.__all__:
        assert f"        - {name}\n" in listed or f"::: asides.{name}\n" in listed, name
    of_history = pages()[Path("docs/reference/api/history.md")]
    assert [line[10:] for line in of_history.splitlines() if line.startswith("        - ")] == asides.history.__all__


def test_every_public_name_and_field_has_a_docstring() -> None:
    """The pages show each with its docstring: what it holds, its unit, when it is None."""
    assert not undocumented()


def test_fields_without_a_docstring_are_found(tmp_path: Path) -> None:
    """Own and inherited ones, those of `__init__`, and methods; not private ones, nor what a base class explains."""
    path = tmp_path / "module.py"
    path.write_text(
        "class _Base:\n"
        "    explained: int\n"
        '    """How many."""\n'
        "    bare: int = 0\n"
        "class Public(_Base, dict[str, int]):\n"
        "    def __init__(self) -> None:\n"
        "        self.set_here = 1\n"
        "        self.explained = 2\n"
        "        self._own = local = 3\n"
        "    def method(self) -> None: ...\n"
    )
    assert list(bare_members(definition(path, "Public"))) == ["set_here", "method", "bare"]
