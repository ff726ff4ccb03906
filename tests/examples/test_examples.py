"""Every program in examples/ runs and prints what its docstring says behind "It prints:"."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
ELSEWHERE = {"torch", "trl"}
"""Who imports one of these trains: that takes long and prints other figures each time. It has a test of its own."""


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_an_example_prints_what_it_states(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = _imported(tree)
    if modules & ELSEWHERE:
        pytest.skip("it has a test of its own")
    missing = sorted(module for module in modules if find_spec(module) is None)
    if missing:
        pytest.skip(f"{', '.join(missing)} is not here")
    run = subprocess.run([sys.executable, path], capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == _stated(ast.get_docstring(tree) or "")


def _imported(tree: ast.Module) -> set[str]:
    """The packages that a program imports."""
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def _stated(docstring: str) -> str:
    """The indented lines behind the words "It prints:"."""
    lines = docstring.partition("It prints:\n\n")[2].splitlines()
    assert lines, 'its docstring has no "It prints:"'
    end = next((number for number, line in enumerate(lines) if not line.startswith("    ")), len(lines))
    return dedent("\n".join(lines[:end])) + "\n"
