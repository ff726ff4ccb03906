"""`python -m tests.pythons [--others] [ARGUMENT...]`: the tests on every Python that asides supports and that is here.

It looks on PATH and among pyenv's versions, says which it found and which it left out, makes an environment for each
(`.venv-3.12.1`), runs pytest there with the arguments, and ends with a table. It fails if any of them failed, and if
the dependencies of one could not be installed: "it was not tested" is not a pass. Uses the standard library alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
OLDEST = (3, 11)
NAME = re.compile(r"python(?:3(?:\.\d+)?t?)?")
"""What an interpreter is called; `python3.12-config` and the like are none."""
PATIENCE = 60.0
"""Seconds for an interpreter to say what it is."""
ASK = """\
import json, platform, sys
try:
    import ensurepip, venv
    usable = True
except ImportError:
    usable = False
inside = sys.prefix != getattr(sys, "base_prefix", sys.prefix)
print(json.dumps([list(sys.version_info), platform.python_implementation(), inside, usable]))
"""
"""Asked of every interpreter, so written for any version of Python."""


class Python(NamedTuple):
    """An interpreter."""

    version: str
    """Its version, with the implementation before it where that is not CPython."""
    path: Path


class Result(NamedTuple):
    """What came of one interpreter."""

    python: Python
    verdict: str
    seconds: float
    said: str
    """The last line that pytest or pip wrote."""


# Finding.


def candidates() -> Iterator[Path]:
    """Everything that may be an interpreter: this one, then as a shell would find them, pyenv's versions last."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    # A shim starts one of the versions that are looked at anyway, or says that none is chosen.
    folders = [folder for folder in folders if folder.name != "shims"]
    yield Path(sys.executable)
    for folder in (*folders, *sorted(pyenv.glob("versions/*/bin"))):
        if folder.is_dir():
            yield from sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))


def look(path: Path) -> tuple[Python, str]:
    """The interpreter at a path, and why it is left out; empty when it is not."""
    try:
        done = subprocess.run([path, "-c", ASK], capture_output=True, timeout=PATIENCE, check=True)
        numbers, kind, is_environment, is_usable = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return Python("?", path), "it does not run"
    version = ".".join(map(str, numbers[:3])) + ("" if numbers[3] == "final" else f"{numbers[3]}{numbers[4]}")
    found = Python(version if kind == "CPython" else f"{kind}-{version}", path)
    if tuple(numbers[:2]) < OLDEST:
        return found, f"it is older than {'.'.join(map(str, OLDEST))}"
    if numbers[3] != "final":
        return found, "it is not released yet"
    if is_environment:
        return found, "it is an environment of another interpreter"
    if not is_usable:
        return found, "it cannot make environments: its modules venv and ensurepip are missing"
    return found, ""


def find() -> tuple[list[Python], list[tuple[Python, str]]]:
    """The interpreters to test on, the oldest first, and those that are left out with the reason."""
    found: dict[str, Python] = {}
    left_out: list[tuple[Python, str]] = []
    seen: set[Path] = set()
    for path in candidates():
        real = path.resolve()  # also from an environment to the interpreter that it was made with
        if real in seen:
            continue
        seen.add(real)
        python, reason = look(real)
        if not reason and python.version in found:
            reason = f"it is the same version as {found[python.version].path}"
        if reason:
            left_out.append((python, reason))
        else:
            found[python.version] = python
    return sorted(found.values(), key=lambda python: [*map(int, re.findall(r"\d+", python.version))]), left_out


# Testing.


def install(python: Python) -> tuple[Path, str]:
    """The interpreter of an environment with everything the tests need, and what went wrong; empty when nothing did."""
    environment = ROOT / f".venv-{python.version}"
    inside, stamp, project = environment / "bin" / "python", environment / ".test", ROOT / "pyproject.toml"
    if stamp.exists() and stamp.stat().st_mtime >= project.stat().st_mtime:
        return inside, ""
    pip: Sequence[str | Path] = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps: tuple[Sequence[str | Path], ...] = (
        [python.path, "-m", "venv", "--clear", environment],
        [*pip, "--editable", ".[dev]"],
    )
    for step in steps:
        done = subprocess.run(step, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
            return inside, (errors or done.stderr.splitlines() or ["pip failed without a word"])[-1].strip()
    stamp.touch()
    return inside, ""


def test(python: Python, arguments: list[str]) -> Result:
    """Run pytest on one interpreter."""
    began = time.monotonic()
    print(f"\n== {python.version}: installing", flush=True)
    inside, problem = install(python)
    if problem:
        return Result(python, "NOT INSTALLED", time.monotonic() - began, problem)
    print(f"== {python.version}: testing", flush=True)
    last = ""
    with subprocess.Popen([inside, "-m", "pytest", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return Result(python, "FAILED" if running.returncode else "passed", time.monotonic() - began, last.strip("= "))


def show(title: str, rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows in columns, the last one as wide as it is."""
    print(f"{title}{'' if rows else ' none'}")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    sys.stdout.flush()


def main() -> int:
    """Find, test, tell; the exit code."""
    arguments = sys.argv[1:]
    pythons, left_out = find()
    if arguments[:1] == ["--others"]:
        arguments = arguments[1:]
        mine = ".".join(map(str, sys.version_info[:3]))
        left_out += [(python, "`make test` runs on it") for python in pythons if python.version == mine]
        pythons = [python for python in pythons if python.version != mine]
    show("found:", [(python.version, str(python.path)) for python in pythons])
    show("left out:", [(python.version, str(python.path), reason) for python, reason in left_out])
    results = [test(python, arguments) for python in pythons]
    print()
    rows = [(r.python.version, r.verdict, f"{r.seconds:.0f} s", r.said) for r in results]
    show("results:", rows)
    return int(any(result.verdict != "passed" for result in results))


if __name__ == "__main__":
    sys.exit(main())
