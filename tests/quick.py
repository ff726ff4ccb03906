"""`make test-quick`: what fails first when something is wrong, in less than a minute.

Structure, cards, the engine, one law for each format, and the cases of the cards that were changed: those that differ
from BASE (`main`, or what is named there), committed or not. Where the engine or what cards share was changed, that is
every case. `python -m tests.quick ARGUMENTS` gives its arguments to pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALWAYS = (
    "tests/test_structure.py",
    "tests/test_public_names.py",
    "tests/test_repository.py",
    "tests/test_policies.py",
    "tests/families",
    "tests/engine",
    "tests/laws/test_laws.py::test_chunking_does_not_matter",
    "tests/dialects/test_no_field_is_lost.py",
)
CASES = "tests/test_cases.py"
OF_ALL = ("src/asides/_engine/", "tests/test_cases.py", "tests/support.py")
"""What every case depends on, besides modules of `families` that are no card."""


def changed_files(base: str) -> list[str] | None:
    """The files that differ from a branch or a commit, as git names them, and those that it does not know; None where
    this is no clone. A base that is not there is the last commit."""
    since = _git("merge-base", base, "HEAD") or ["HEAD"]
    lists = [_git("diff", "--name-only", since[0]), _git("ls-files", "--others", "--exclude-standard")]
    return None if None in lists else [name for found in lists for name in found or ()]


def _git(*arguments: str) -> list[str] | None:
    """The lines that git prints; None where it fails."""
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return run.stdout.splitlines() if run.returncode == 0 else None


def cases_of(changed: Iterable[str] | None) -> list[str]:
    """The tests of cases that those files concern; all where nobody knows which."""
    from asides.families._registry import canonical_name
    from tests.test_cases import ALL
    from tools.families import card, modules

    if changed is None:
        return [CASES]
    paths = [Path(name) for name in changed]
    names = {path.as_posix() for path in paths}
    if any(name.startswith(OF_ALL) for name in names):
        return [CASES]
    cards = set(modules())
    touched = {path.stem for path in paths if path.parent.as_posix() == "src/asides/families"}
    made = {"_index", "_model_names"}  # by `make families`, from cards that were changed too
    if touched - cards - made:
        return [CASES]
    formats = {format.name for module in touched & cards for format in card(module).formats}
    files = {path.stem for path in paths if path.parent.as_posix() == "tests/cases"}
    found = dict.fromkeys(
        (case.file, case.format) for case in ALL if case.file in files or canonical_name(case.format) in formats
    )
    return [f"{CASES}::test_cases[{file}-{format}]" for file, format in found]


def main(arguments: list[str]) -> int:
    """Run them."""
    os.chdir(ROOT)
    cases = cases_of(changed_files(os.environ.get("BASE") or "main"))
    count = "every case" if cases == [CASES] else f"{len(cases)} files of cases"
    print(f"test-quick: structure, cards, engine, one law for each format, {count}; everything: make test", flush=True)
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments, *ALWAYS, *cases], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
