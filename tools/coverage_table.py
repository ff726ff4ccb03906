"""The table of docs/explanation/coverage.md: how much of each package the tests run, in lines and in branches.

    python -m tools.coverage_table              prints it, from the data that `coverage combine` has left here
    python -m tools.coverage_table --write      also puts it into the page; `make coverage` measures, and then does this

A branch is a way out of a line: an `if` has two. A package's share counts both, as `coverage report` does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import Any

from tools.blocks import with_blocks

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "coverage.md"
TOTALS = ("num_statements", "missing_lines", "num_branches", "missing_branches")
HEAD = "| package | lines | not run | branches | not taken | covered |\n| --- | --: | --: | --: | --: | --: |\n"
VALUES = "values (`parts`, `events`, …)"
"""The row of the modules that are in no package."""


def read_files() -> dict[str, dict[str, Any]]:
    """What coverage.py counted, by file."""
    command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", "-"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"coverage: {done.stdout.decode()}{done.stderr.decode()}")
    files: dict[str, dict[str, Any]] = json.loads(done.stdout)["files"]
    return files


def coverage_table(files: dict[str, dict[str, Any]]) -> str:
    """A row for each package, and one for all."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * len(TOTALS))
    for path, counted in files.items():
        for row in (_package(path), "all"):
            for place, name in enumerate(TOTALS):
                counts[row][place] += counted["summary"][name]
    rows = [*sorted(name for name in counts if name not in ("all", VALUES)), VALUES, "all"]
    lines = [_row(name, *counts[name]) for name in rows if name in counts]
    return HEAD + "".join(lines)


def _package(path: str) -> str:
    parts = PurePosixPath(path.replace("\\", "/")).parts
    inside = parts[parts.index("asides") + 1 :]
    return f"`{inside[0]}`" if len(inside) > 1 else VALUES


def _row(name: str, lines: int, missing: int, branches: int, untaken: int) -> str:
    # Rounded down, so that one line of ten thousand shows.
    share = 1000 * (lines + branches - missing - untaken) // max(1, lines + branches)
    return f"| {name} | {lines:,} | {missing:,} | {branches:,} | {untaken:,} | {share // 10}.{share % 10} % |\n"


if __name__ == "__main__":
    table = coverage_table(read_files())
    print(table, end="")
    if "--write" in sys.argv[1:]:
        PAGE.write_text(with_blocks(PAGE.read_text(encoding="utf-8"), {"coverage": lambda: table}), encoding="utf-8")
