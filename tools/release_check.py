"""`make release-check`: everything that can be run here before a release, one after the other, and then what was not.

Every step is run, also behind one that failed, and the table at the end has them all. What needs another system, an
account or a day is in the table too: "it was not run" must not look like a pass.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Step(NamedTuple):
    """Something to run."""

    what: str
    command: tuple[str, ...]


class StepResult(NamedTuple):
    """How a step went."""

    step: Step
    passed: bool
    seconds: float


STEPS = (
    Step("everything that continuous integration runs on Linux", (".ci/run",)),
    Step("types as they are on Windows", (sys.executable, "-m", "mypy", "--platform", "win32", "src")),
    Step(
        "every file of tests can be collected where POSIX is missing",
        (sys.executable, "-m", "tests.posix", "-m", "pytest", "--collect-only", "-q", "-n0"),
    ),
    Step("wheel and sdist", ("make", "dist")),
    Step("the workflows", ("make", "workflows")),
    Step("response templates against transformers", ("make", "test-hf")),
    Step("the gateway under load", ("make", "test-load")),
)

NOT_RUN = {
    "macOS and Windows": "only the workflows run there (.github/workflows/test.yml); look at them before tagging",
    "the laws, long": "hours: make laws",
    "fuzzing": "as long as you like: make fuzz",
    "a real model": "builds llama.cpp: make test-model",
    "real clients": "1.5 GB: make test-clients",
    "TRL, vLLM and SGLang reading our templates": "3 GB: make test-readers",
    "the plug-ins of large hosts": "gigabytes: make test-plugins",
    "Ray, Spark and Daft": "1.5 GB: make test-engines",
    "structural tags in xgrammar": "an hour: make test-xgrammar",
    "names of other projects' parsers": "their newest packages: make peer-names",
    "parsers of vLLM and SGLang": "3 GB, their newest packages: make test-peers",
    "training with TRL": "needs torch: make test-train",
    "the report in a browser": "needs Chromium: make test-browser",
    "coverage": "three times as long as the tests: make coverage",
    "figures in the docs": "an idle machine, ten minutes: make figures",
    "publishing itself": "needs the tag, and the trusted publisher at PyPI",
}


def main() -> int:
    """Run every step; returns 0 where all passed."""
    results = [_run(step) for step in STEPS]
    print("\nrelease-check: run here")
    for result in results:
        print(f"  {'passed' if result.passed else 'FAILED'}  {result.seconds:6.0f} s  {result.step.what}")
    print("release-check: NOT run here")
    for what, why in NOT_RUN.items():
        print(f"  {what}: {why}")
    return 0 if all(result.passed for result in results) else 1


def _run(step: Step) -> StepResult:
    print(f"\nrelease-check: {step.what}: {' '.join(step.command)}", flush=True)
    began = time.monotonic()
    # The environment of this Python comes first, as it does for those who activate it.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    try:
        code = subprocess.run(step.command, cwd=ROOT, env={**os.environ, "PATH": path}, check=False).returncode
    except OSError as error:
        print(f"release-check: {error}")
        code = 1
    return StepResult(step, code == 0, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
