"""`make test-quick` runs the cases that a change concerns."""

from __future__ import annotations

import subprocess
import sys

from tests.quick import ALWAYS, CASES, ROOT, cases_of


def test_the_cases_of_a_changed_card_are_run() -> None:
    """By the names of its formats, in whichever file they stand."""
    found = cases_of(["src/asides/families/_glm.py", "docs/index.md"])
    assert f"{CASES}::test_cases[formats_glm-glm45]" in found
    assert not any("kimi" in name for name in found)


def test_a_changed_file_of_cases_is_run() -> None:
    """For all of its formats."""
    assert cases_of(["tests/cases/formats_seed.toml"]) == [f"{CASES}::test_cases[formats_seed-seed_oss]"]


def test_what_concerns_all_runs_all() -> None:
    """The engine, and what cards share; a page concerns none."""
    for name in ("src/asides/_engine/prose.py", "src/asides/families/_shared.py"):
        assert cases_of([name]) == [CASES]
    assert cases_of(["docs/index.md", "src/asides/families/_index.py"]) == []


def test_what_it_names_is_there() -> None:
    """Pytest finds each test that it would be given."""
    names = [*ALWAYS, *cases_of(["src/asides/families/_seed.py"])]
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "--no-header", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.returncode == 0, listed.stdout[-2000:]
