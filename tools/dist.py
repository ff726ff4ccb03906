"""Builds the wheel and the sdist, and checks what a user would get. `make dist` runs it in an environment of its own.

    python -m tools.dist                    builds into dist/, and fails with the reason
    python -m tools.dist --tag v0.2.0       also fails unless that is the version, with a heading in the changelog

What is checked: two builds are equal, and the sdist builds the wheel that the repository builds; `twine check` finds
nothing; the wheel holds exactly the files of src/asides, with its license; installed in an empty environment without
extras, every public module that needs none is imported, and the command runs; tests run from the unpacked sdist.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
SDIST_TESTS = ("tests/test_cases.py", "tests/test_patterns.py", "tests/cli/test_everywhere.py", "tests/test_windows.py")
"""What is run from the sdist: quick, and in need of no extra."""
IMPORTS = """\
import asides, asides.analysis, asides.client, asides.dialects, asides.hf, asides.history, asides.render, asides.reply
assert asides.__version__ == VERSION, asides.__version__
message = asides.parse("<think>2 + 2</think>It is 4.", format="qwen3")
assert (message.thinking, message.text) == ("2 + 2", "It is 4.")
import importlib.util
extras = ("uvicorn", "pyarrow", "tokenizers", "prompt_toolkit", "yaml")
assert not any(map(importlib.util.find_spec, extras)), "this environment is not empty"
"""


def main() -> None:
    """Build and check; ends with the first thing that is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", default="", help="the tag that is to be released")
    tag = parser.parse_args().tag
    version = read_version()
    if tag:
        check_tag(tag, version)
    shutil.rmtree(DIST, ignore_errors=True)
    os.environ["SOURCE_DATE_EPOCH"] = _git("log", "-1", "--format=%ct").strip()
    with tempfile.TemporaryDirectory() as folder:
        again, direct = Path(folder, "again"), Path(folder, "direct")
        # The wheel of `build` is made from the sdist, that of `--wheel` from the repository.
        _build(DIST)
        _build(again)
        _build(direct, "--wheel")
        _same(_built(DIST), _built(again), "two builds")
        _same(_built(DIST, "*.whl"), _built(direct), "the wheels of the sdist and of the repository")
        wheel, sdist = next(DIST.glob("*.whl")), next(DIST.glob("*.tar.gz"))
        _run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
        check_wheel(wheel, version)
        check_sdist(sdist, version)
        check_installed(wheel, version, Path(folder, "empty"))
        check_tests(sdist, Path(folder, "unpacked"))
    print(*(f"{path.name}  {digest}" for path, digest in sorted(_built(DIST).items())), sep="\n")


def read_version() -> str:
    """The version of the package, from the one place where it stands."""
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "src/asides/__init__.py").read_text(encoding="utf-8"), re.M)
    assert found is not None
    return found[1]


def check_tag(tag: str, version: str) -> None:
    """Whether this version is meant to be released."""
    if tag != f"v{version}":
        sys.exit(f"dist: the tag is {tag}, but asides.__version__ is {version}")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.M):
        sys.exit(f"dist: CHANGELOG.md has no heading `## [{version}] - YYYY-MM-DD`")


def check_wheel(wheel: Path, version: str) -> None:
    """Whether the wheel holds the package, all of it and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    about = f"asides-{version}.dist-info/"
    package = {name for name in names if not name.startswith(about)}
    tracked = {name.removeprefix("src/") for name in _git("ls-files", "-z", "src/asides").split("\0") if name}
    _equal(package, tracked, "the wheel")
    for needed in (
        "asides/py.typed",
        "asides/_page/static/index.html",
        f"{about}licenses/LICENSE",
        f"{about}entry_points.txt",
    ):
        if needed not in names:
            sys.exit(f"dist: the wheel lacks {needed}")


def check_sdist(sdist: Path, version: str) -> None:
    """Whether the sdist holds what is in the repository, and only that."""
    with tarfile.open(sdist) as archive:
        names = {member.name.removeprefix(f"asides-{version}/") for member in archive if member.isfile()}
    _equal(names - {"PKG-INFO"}, set(_git("ls-files", "-z").split("\0")) - {""}, "the sdist")


def check_installed(wheel: Path, version: str, folder: Path) -> None:
    """Whether it works in an environment that has only what it asks for."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    _run(python, "-m", "pip", "check")
    # Away from the repository, so that what is imported is what was installed.
    _run(python, "-I", "-c", IMPORTS.replace("VERSION", repr(version)), cwd=folder)
    command = python.with_name("asides")
    shown = _run(command, "--version", cwd=folder)
    if shown != f"asides {version}\n":
        sys.exit(f"dist: `asides --version` writes {shown!r}")
    answer = _run(command, "--hide", cwd=folder, given="<think>2 + 2</think>It is 4.")
    if answer != "It is 4.":
        sys.exit(f"dist: the installed filter writes {answer!r}")


def check_tests(sdist: Path, folder: Path) -> None:
    """Whether tests run from the sdist alone, with the tools of this environment."""
    with tarfile.open(sdist) as archive:
        # Python before 3.11.4 has no filters. The archive is the one that was just built.
        options: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **options)
    (unpacked,) = folder.iterdir()
    environment = {**os.environ, "PYTHONPATH": str(unpacked / "src")}
    _run(
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *SDIST_TESTS,
        cwd=unpacked,
        environment=environment,
    )


def _build(folder: Path, *arguments: str) -> None:
    _run(sys.executable, "-m", "build", "--outdir", folder, *arguments, ROOT)


def _built(folder: Path, pattern: str = "*") -> dict[Path, str]:
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob(pattern)}


def _same(first: dict[Path, str], second: dict[Path, str], which: str) -> None:
    by_name = [{path.name: digest for path, digest in built.items()} for built in (first, second)]
    if by_name[0] != by_name[1]:
        sys.exit(f"dist: {which} differ: {by_name}")


def _equal(found: set[str], wanted: set[str], what: str) -> None:
    if found != wanted:
        sys.exit(f"dist: {what} has too much: {sorted(found - wanted)}; too little: {sorted(wanted - found)}")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"dist: what belongs into the package is known from a git checkout only: {done.stderr.strip()}")
    return done.stdout


def _run(
    *command: str | Path, cwd: Path = ROOT, given: str | None = None, environment: dict[str, str] | None = None
) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if given is None else None,
        env=environment,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"dist: {' '.join(map(str, command))[:200]} failed:\n{done.stdout[-4000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
