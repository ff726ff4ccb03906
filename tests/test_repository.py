"""What stands around the package: the issue form, the workflows, the changelog, the versions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.posix import needs_posix
from tests.test_cases import check_case, load

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ALLOWED = {"contents": "read", "id-token": "write", "security-events": "write"}
HEADINGS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def _yaml(path: Path) -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read


def _fields(form: str) -> dict[str, dict[str, Any]]:
    body = _yaml(GITHUB / "ISSUE_TEMPLATE" / form)["body"]
    return {field["id"]: field["attributes"] for field in body if "id" in field}


def test_the_form_for_a_wrong_split_makes_a_case(tmp_path: Path) -> None:
    """Its example, put together as the form itself says, is a case that passes."""
    explained = _yaml(GITHUB / "ISSUE_TEMPLATE" / "wrong_split.yml")["body"][0]["attributes"]["value"]
    (recipe,) = re.findall(r"```toml\n(.+?)```", explained, re.DOTALL)
    fields = _fields("wrong_split.yml")
    for words, field in {"the format": "format", "the raw output": "output", "the expected parts": "parts"}.items():
        assert words in recipe
        recipe = recipe.replace(words, fields[field]["placeholder"])
    path = tmp_path / "reported.toml"
    path.write_text(recipe, encoding="utf-8")
    (case,) = load(path)
    assert case.said["input"] == fields["output"]["placeholder"]
    check_case(case)


def test_a_reported_case_that_is_wrong_fails(tmp_path: Path) -> None:
    """Otherwise the test above would show nothing."""
    path = tmp_path / "reported.toml"
    path.write_text(
        '[[case]]\nname="a"\nformat="qwen3"\ninput="<think>a</think>b"\nparts=[{text="b"}]\n', encoding="utf-8"
    )
    (case,) = load(path)
    with pytest.raises(AssertionError, match="1 parts expected, 2 found"):
        check_case(case)


@pytest.mark.parametrize("path", sorted((GITHUB / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.stem)
def test_an_issue_form_is_complete(path: Path) -> None:
    """GitHub drops a form that lacks one of these, and says so to nobody but its author."""
    form = _yaml(path)
    assert {"name", "description", "body"} <= form.keys()
    for field in form["body"]:
        assert field["type"] in ("markdown", "input", "textarea", "dropdown", "checkboxes")
        assert "value" in field["attributes"] if field["type"] == "markdown" else "label" in field["attributes"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_do_little_and_runs_what_was_looked_at(path: Path) -> None:
    """No permission unless a job asks for it; every action by its commit; every job ends."""
    workflow = _yaml(path)
    assert workflow["permissions"] == {}
    assert "concurrency" in workflow
    for job in workflow["jobs"].values():
        assert "timeout-minutes" in job
        assert job["permissions"].items() <= ALLOWED.items()
    for line in path.read_text(encoding="utf-8").splitlines():
        if "uses:" in line:
            assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v[\d.]+$", line), line


def test_only_the_job_that_uploads_may_ask_for_a_token() -> None:
    """And it runs nothing of the repository."""
    jobs = _yaml(GITHUB / "workflows" / "release.yml")["jobs"]
    asking = [name for name, job in jobs.items() if "id-token" in job["permissions"]]
    assert asking == ["publish"]
    assert jobs["publish"]["environment"] == "pypi"
    assert all("run" not in step for step in jobs["publish"]["steps"])


def test_every_python_that_is_named_is_tested() -> None:
    """What the classifiers promise, the workflows run, on every system."""
    promised = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    jobs = _yaml(GITHUB / "workflows" / "test.yml")["jobs"]
    for name in ("posix", "windows"):
        tested = jobs[name]["strategy"]["matrix"]["python"]
        assert set(promised) <= set(tested)
        assert PROJECT["requires-python"] == f">={tested[0]}"


def test_the_workflows_run_what_there_is() -> None:
    """A target or a file that was renamed is noticed here, not after a push."""
    text = (GITHUB / "workflows" / "test.yml").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = _yaml(GITHUB / "workflows" / "test.yml")["jobs"]["parts"]["strategy"]["matrix"]["target"]
    assert {*named, *re.findall(r"make ([\w-]+) PYTHON", text)} <= targets
    for path in re.findall(r"tests/[\w/]+(?:\.py)?", text):
        assert (ROOT / path).exists(), path


def test_the_changelog_has_the_usual_headings() -> None:
    """For each version at most one of each, in their order."""
    versions = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert versions[0].startswith("[Unreleased]\n")
    for version in versions:
        found = re.findall(r"^### (.+)$", version, re.MULTILINE)
        assert found == [heading for heading in HEADINGS if heading in found]


def test_no_line_of_the_changelog_stands_twice() -> None:
    """Its lines are merged by union (.gitattributes), which may repeat one that was moved."""
    lines = [line for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines() if line.startswith("- ")]
    assert len(lines) == len(set(lines)), {line for line in lines if lines.count(line) > 1}


def test_the_version_stands_in_one_place() -> None:
    """Everything else reads it from there."""
    assert "version" not in PROJECT
    assert PROJECT["dynamic"] == ["version"]


def test_there_is_no_lock_file() -> None:
    """Bounds are in pyproject.toml; the newest that fit are tested."""
    assert not [
        path.name for path in ROOT.iterdir() if path.name in ("uv.lock", "poetry.lock", "Pipfile.lock", "pdm.lock")
    ]


@needs_posix
@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_continuous_integration_insists_on_node(ci: str, code: int, tmp_path: Path) -> None:
    """Elsewhere a machine without Node.js is told that the public types were not checked."""
    environment = {**os.environ, "PATH": str(tmp_path), "CI": ci}
    command = [sys.executable, "-m", "tools.public_types"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert (done.returncode, "NOT CHECKED, because" in done.stdout) == (code, True)
