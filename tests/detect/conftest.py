"""Rendering without a process of its own, for tests that render many templates of ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asides.detect import _sandbox as sandbox
from asides.detect import _template_process as template_process


@pytest.fixture
def _rendered_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Render templates in this process: the same request, the same answer, without bounds and without a start-up.

    What the process is there for is in `test_hostile.py`; `test_template.py` renders in it too.
    """

    def run(script: Path, request: bytes, patience: float) -> tuple[int, bytes]:
        assert script.stem == template_process.__name__.rpartition(".")[2]
        return 0, json.dumps(template_process._answer(json.loads(request))).encode()

    monkeypatch.setattr(sandbox, "_run", run)
