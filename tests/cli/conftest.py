"""The command in the process of the tests."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from asides._cli import main


@pytest.fixture
def here(capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """The command in this process, which is far sooner done: for what does not depend on a process of its own."""

    def done(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
        code = main([*map(str, arguments)])
        written = capfdbinary.readouterr()
        return subprocess.CompletedProcess(arguments, code, written.out, written.err)

    return done
