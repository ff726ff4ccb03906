"""Every program in examples/ runs and prints what its docstring says behind "It prints:".

Those that ask a server have `test_programs.py`.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.example_blocks import printed

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"openai", "torch", "trl"}
"""Who imports one of these asks a server, or trains, which takes long and prints other figures each time: those have
tests of their own."""


def _imported(path: Path) -> set[str]:
    """The packages that a program imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


PROGRAMS = [path for path in sorted((ROOT / "examples").glob("*.py")) if not _imported(path) & ELSEWHERE]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_an_example_prints_what_it_states(path: Path) -> None:
    missing = sorted(module for module in _imported(path) if find_spec(module) is None)
    if missing:
        pytest.skip(f"{', '.join(missing)} is not here")
    run = subprocess.run([sys.executable, path], capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == printed(path)
