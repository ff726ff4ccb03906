"""The site of the documentation: `make docs` builds it from docs/ into site/, and fails on any warning.

    python -m tools.site            build, and look at what was built
    python -m tools.site serve      build again whenever a page changes, and show it on a local port

The builder (Zensical, configured by mkdocs.yml) finds dead links between pages, also to headings. It does not fail on
what it prints in passing, on pages outside the navigation, on pictures that are missing, nor on what a built page loads
from elsewhere; here and in tests/docs that is looked at. The navigation is mkdocs.yml's, with `folder/*.md` filled in.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from tools.api_docstrings import listed_names, undocumented
from tools.api_pages import FOLDER

DOCS = Path("docs")
SITE = Path("site")
CONFIG = Path("mkdocs.yml")
GENERATED = Path("mkdocs.generated.yml")
_ENTRY = re.compile(r"^(\s*- (?:[^:]+: )?)(\S+\.md)$")
_EXPECTED = re.compile(r"Build started|No issues found|Build finished in .*")
_LOADED = re.compile(r"<(?:script|img|iframe|source|video)\b[^>]*\ssrc=\"?(https?:[^\s\">]+)|<link\b([^>]*)>")
_ESCAPED = re.compile(r"<td[^>]*>(?:(?!</td>).)*<code>([^<]*\\\|[^<]*)</code>", re.DOTALL)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def navigation() -> str:
    """The navigation of mkdocs.yml, `folder/*.md` replaced by the folder's pages that have no line of their own."""
    text = CONFIG.read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = set(_paths(text))
    lines: list[str] = []
    for line in text.splitlines():
        match = _ENTRY.match(line)
        if match and match[2].endswith("/*.md"):
            found = sorted(path.relative_to(DOCS).as_posix() for path in (DOCS / match[2]).parent.glob("*.md"))
            lines += [match[1] + path for path in found if path not in listed]
        else:
            lines.append(line)
    return "\n".join(["nav:", *lines, ""])


def _paths(nav: str) -> Iterator[str]:
    for line in nav.splitlines():
        if match := _ENTRY.match(line):
            yield match[2]


def in_navigation() -> list[str]:
    """The pages in the navigation, in its order."""
    return list(_paths(navigation()))


def _builder(*arguments: str) -> list[str]:
    settings = CONFIG.read_text(encoding="utf-8").partition("\nnav:\n")[0]
    GENERATED.write_text(f"{settings}\n{navigation()}", encoding="utf-8")
    return [sys.executable, "-m", "zensical", *arguments, "--config-file", str(GENERATED)]


def build() -> list[str]:
    """Build the site; what is wrong with it."""
    run = subprocess.run(
        _builder("build", "--clean", "--strict"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    printed = _COLOUR.sub("", run.stdout)
    sys.stdout.write(printed)
    odd = [line for line in printed.splitlines() if line.strip() and not _EXPECTED.fullmatch(line.strip())]
    if run.returncode or odd:
        return [f"the builder was to print nothing but that it is done (exit code {run.returncode})"]
    return [*_unbuilt(), *_undocumented(), *_in_pages()]


def _unbuilt() -> Iterator[str]:
    """Pages that the builder has left out."""
    for path in in_navigation():
        html = SITE / re.sub(r"(?:README)?\.md$", lambda match: "index.html" if len(match[0]) > 3 else ".html", path)
        if not html.exists():
            yield f"{path} has become no page ({html})"


def _undocumented() -> Iterator[str]:
    """Public names that no built page shows (the inventory lists what the pages have), and what has no docstring."""
    inventory = (SITE / "objects.inv").read_bytes().split(b"\n", 4)[4]
    shown = {line.split(b" ", 1)[0].decode() for line in zlib.decompress(inventory).splitlines()}
    names = [f"{module}.{name}" for module, name in listed_names()]
    yield from (f"{name} is on no page of {FOLDER}" for name in names if name not in shown)
    yield from (f"{name} has no docstring" for name in undocumented())


def _in_pages() -> Iterator[str]:
    """What a page would load from another server, and bars in code that still have the backslash of a table's row."""
    for path in sorted(SITE.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        if escaped := _ESCAPED.search(text):
            yield f"{path} shows {escaped[1]}"
        for source, link in _LOADED.findall(text):
            if source or ("://" in link and re.search(r"rel=\"?(?:stylesheet|preload|preconnect)", link)):
                yield f"{path} loads {source or link}"


def main(arguments: list[str]) -> int:
    """Build, or serve."""
    try:
        if arguments == ["serve"]:
            return subprocess.call(_builder("serve"))
        wrong = build()
    finally:
        GENERATED.unlink(missing_ok=True)
    for reason in wrong:
        print(f"docs: {reason}", file=sys.stderr)
    print(f"docs: {'NOT ' if wrong else ''}built in {SITE}/ ({len(in_navigation())} pages)")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
