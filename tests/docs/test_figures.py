"""No measured figure of the documentation is typed: each stands in a block that names the command which printed it."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec

from benchmarks.__main__ import SECTIONS
from tools.figures import BLOCK, ROOT, pages, shown

FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
GENERATED = re.compile(r"<!-- (\w+):.*?<!-- /\1 -->", re.S)
FIGURE = re.compile(r"(?<![\w.])\d[\d.,]*(?:x\b| ?(?:ns|us|µs|MB/s|GB/s)\b| times (?:as|the time|faster|slower))")
AIM = re.compile(r"^Aims?:.*?(?=^Aims?:|\n\n|\Z)", re.M | re.S)
"""What we want is not measured."""
MEASURED = re.compile(r"Measured on \d{4}-\d\d-\d\d: .+\.\n\n.*\d", re.S)


def test_no_figure_is_typed() -> None:
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]:
        text = path.read_text(encoding="utf-8")
        for generated in (BLOCK, GENERATED, FENCE, AIM):
            text = generated.sub("", text)
        found += [f"{path.relative_to(ROOT)}: {match[0]}: {_line(text, match)}" for match in FIGURE.finditer(text)]
    assert not found, "\n".join(found)


def _line(text: str, match: re.Match[str]) -> str:
    return text[text.rfind("\n", 0, match.start()) + 1 : text.find("\n", match.end())][:160]


def test_every_block_was_printed_by_a_command_that_is_there() -> None:
    found = [block for path in pages() for block in BLOCK.finditer(path.read_text(encoding="utf-8"))]
    assert len(found) > 5
    for block in found:
        words = shlex.split(block["command"])
        if words[0] == "make":
            module = f"benchmarks.{words[1].removeprefix('bench-plugin-')}_plugin"
        else:
            assert words[:2] == ["python", "-m"]
            module = words[2]
        assert find_spec(module) is not None
        assert module != "benchmarks" or set(words[3:]) <= set(SECTIONS)
        assert MEASURED.match(block["text"]), f"run: make figures FIGURES={words[-1]}"


def test_what_a_command_prints_becomes_markdown() -> None:
    printed = "python:    CPython\nload:      3\n\nTitle\n\na  b\n-  -\n1  2\n\n(calls: 12 s)\n\n"
    assert shown("Measured.", printed) == "Measured.\n\n```text\nTitle\n\na  b\n-  -\n1  2\n```\n"
    assert shown("Measured.", "| a |\n|---|\n") == "Measured.\n\n| a |\n|---|\n"


def test_the_pattern_knows_a_figure() -> None:
    """Or the test above could not fail."""
    for typed in ("it is 3.5x faster", "takes 120 ns", "at 25 MB/s", "71 times as long"):
        assert FIGURE.search(typed)
    for other in ("16 characters", "0x1F", "17 times 23"):
        assert not FIGURE.search(other)
