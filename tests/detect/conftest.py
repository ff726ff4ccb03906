"""What the tests of detection share."""

from __future__ import annotations

import pytest

import asides
from asides.families import registry


@pytest.fixture
def _clean_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    asides.formats()  # everything is loaded before the copies are made
    monkeypatch.setattr(registry, "_formats", dict(registry._formats))
    monkeypatch.setattr(registry, "_names", dict(registry._names))
