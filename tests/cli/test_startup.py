"""What the filter must not import: each of these costs milliseconds before the first word."""

from __future__ import annotations

import subprocess

from tests.cli.running import COMMAND, environment

HEAVY = (
    "asyncio",
    "dataclasses",
    "difflib",
    "email",
    "importlib.metadata",
    "json",
    "pathlib",
    "shutil",
    "tempfile",
    "tomllib",
)


def test_the_filter_imports_little() -> None:
    script = (
        "import sys\n"
        "from asides.cli import main\n"
        "main([])\n"
        f"print(*(name for name in {HEAVY!r} if name in sys.modules))\n"
    )
    done = subprocess.run([COMMAND[0], "-c", script], input=b"", capture_output=True, env=environment())
    assert done.stdout.split() == []
