"""Links between pages: each leads to a file of the repository, and to a heading in it, on GitHub as on the site.

The site's builder looks at links between pages of `docs` too (`make docs`); it does not see those that lead out of the
folder, nor those of the pages outside it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OUTSIDE = ("*.md", "benchmarks/*.md", "deploy/**/*.md", "examples/*.md", "tests/cases/*.md", ".github/**/*.md")
PAGES = sorted([*DOCS.rglob("*.md"), *(path for pattern in OUTSIDE for path in ROOT.glob(pattern))])

_FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2`* *$", re.M | re.S)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_LINK = re.compile(r"\]\(([^)\s]+)\)|\b(?:src|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.M)
_MARKUP = re.compile(r"\[([^\]]*)\]\([^)]*\)|[`*]")


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@cache
def _anchors(page: Path) -> frozenset[str]:
    """The anchors that GitHub, and the site by its setting, give to the headings of a page."""
    found: dict[str, int] = {}
    for heading in _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        plain = _MARKUP.sub(lambda match: match[1] or "", heading)
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        found[anchor] = found.get(anchor, -1) + 1
    return frozenset(f"{name}-{count}" if count else name for name, last in found.items() for count in range(last + 1))


def _links(page: Path) -> list[str]:
    text = _CODE.sub("", _FENCE.sub("", page.read_text(encoding="utf-8")))
    return [link or source for link, source in _LINK.findall(text)]


def _dead(page: Path, link: str) -> str | None:
    """What is wrong with a link, or None."""
    if re.match(r"[a-z]+:", link):
        return None
    target, _, anchor = link.partition("#")
    path = (page.parent / target).resolve() if target else page
    if target.startswith("/") or not path.exists():
        return f"{link}: no such file"
    if page.is_relative_to(DOCS) and not path.is_relative_to(DOCS):
        return f"{link}: leads out of docs, where the site has no page; name the file instead"
    if path.is_dir():
        return f"{link}: a folder; name its README.md"
    if anchor and path.suffix == ".md" and anchor not in _anchors(path):
        return f"{link}: no such heading"
    return None


def test_there_are_links() -> None:
    """The patterns find what they are for."""
    assert sum(len(_links(page)) for page in PAGES) > 100


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    assert not [reason for link in _links(page) if (reason := _dead(page, link))]


MENTION = re.compile(r"(?<![\w/.-])docs/[\w/-]*\w+\.md\b")
SOURCES = [
    path
    for folder in ("src", "tests", "tools", "benchmarks", "deploy", "examples")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".js", ".md", ".toml", ".txt", ".yaml", ".yml", ".sh"}
]


def test_pages_that_code_names_are_there() -> None:
    """Docstrings, messages and comments name pages by their path."""
    files = [*SOURCES, *(ROOT / name for name in ("Makefile", "pyproject.toml", ".ci/run")), *PAGES]
    named = {(_name(path), page) for path in files for page in MENTION.findall(path.read_text(encoding="utf-8"))}
    assert len(named) > 20
    assert not sorted(pair for pair in named if not (ROOT / pair[1]).exists() and pair[0] != "CHANGELOG.md")
