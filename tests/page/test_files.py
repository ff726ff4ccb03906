"""The page's files: small, all there, none from elsewhere, the vendored ones as they were pinned."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import asides
from asides._page.files import static_files
from tests.gateway.running import Gateway
from tests.page.conftest import Visitor
from tools.page_vendor import PACKAGES

STATIC = Path(asides.__file__).parent / "_page/static"
SOURCES = [path for path in sorted(STATIC.rglob("*")) if path.suffix in (".js", ".css", ".html", ".svg")]
OURS = [path for path in SOURCES if path.parent.name != "vendor"]


MOST_BYTES = 300_000
"""Of what a first visit loads, compressed: a page that opens at once, also over a slow line."""
HEAVY = ("vendor/temml.js", "vendor/highlight.js")
"""What is loaded only with the first formula, or the first block of code."""


def test_a_first_visit_loads_little_and_nothing_heavy(visit: Visitor, recorded: Gateway) -> None:
    page = visit(recorded.url)
    page.get_by_role("button", name="What is 17 times 23?").wait_for()
    asked = page.evaluate("performance.getEntriesByType('resource').map(({name}) => new URL(name).pathname)")
    loaded = {path.removeprefix("/asides/page/") for path in asked if path.startswith("/asides/page/")} | {"index.html"}
    files = static_files()
    size = sum(len(gzip.compress(files[name].body)) for name in loaded)
    print(f"a first visit loads {len(loaded)} files of {size:,} bytes, compressed")
    assert not loaded & set(HEAVY)
    assert size < MOST_BYTES


def test_nothing_is_named_that_is_not_there_and_nothing_is_there_that_is_not_named() -> None:
    named = {"index.html"}
    for path in OURS:
        text = path.read_text("utf-8")
        named |= {
            Path(path.parent, name).resolve().relative_to(STATIC).as_posix()
            for name in re.findall(r'(?:from |import\(|import )"(\./[^"]+)"', text)
        }
        named |= set(re.findall(r'"asides/page/([^"]+)"', text))
    missing = sorted(name for name in named if not (STATIC / name).is_file())
    assert missing == []
    vendored = {f"vendor/{ours}" for package in PACKAGES for _, ours in package.files}
    assert {path.relative_to(STATIC).as_posix() for path in SOURCES} <= named | vendored


def test_our_sources_have_no_inline_script_no_parsed_markup_and_no_other_server() -> None:
    for path in OURS:
        text = path.read_text("utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\(|new Function", text
        ), path.name
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=\"", text), path.name
        elsewhere = set(re.findall(r"https?://[^\s\"'`)<]+", text))
        assert elsewhere <= {"http://127.0.0.1:8000/v1", "http://www.w3.org/2000/svg"}, path.name


def test_the_vendored_files_are_the_ones_that_the_readme_names() -> None:
    """`make page-vendor` compares them with npm; this needs no network."""
    readme = (STATIC / "vendor/README.md").read_text("utf-8")
    for package in PACKAGES:
        assert f"| {package.name} | {package.version} | {package.license} |" in readme
        assert package.sha256 in readme
        for _, ours in package.files:
            digest = hashlib.sha256((STATIC / "vendor" / ours).read_bytes()).hexdigest()
            assert f"| {ours} | `{digest}` |" in readme
        assert any(ours.endswith(".LICENSE") for _, ours in package.files)


def test_every_view_opens(visit: Visitor, recorded: Gateway) -> None:
    page = visit(recorded.url)
    names = page.get_by_role("navigation").get_by_role("link")
    for number in range(names.count()):
        names.nth(number).click()
        name = names.nth(number).inner_text().strip()
        page.locator(f"main.view-{name.lower()} > :not(.loading):not(.message.error)").first.wait_for()
        assert page.title() == f"{name} · asides"
