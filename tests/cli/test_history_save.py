"""Keeping a reply after it was shown: a store that fails costs one line, never the reply."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from asides import _history as history
from asides._cli.history.save import save
from tests.history.samples import parsed


def test_what_was_shown_is_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is said when all goes well."""
    store = str(tmp_path / "h.db")
    assert save(parsed(), store, source="filter", model="qwen3")
    assert capfd.readouterr() == ("", "")
    with history.open(store, create=False) as opened:
        (kept,) = opened.replies()
        assert (kept.source, kept.reply.model, kept.reply.text) == ("filter", "qwen3", "It is 7.")


def test_a_store_that_cannot_be(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One line on standard error says why."""
    (tmp_path / "file").touch()
    assert not save(parsed(), str(tmp_path / "file" / "h.db"), source="filter")
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("asides: this reply was not saved: ")
    assert err.count("\n") == 1


def test_a_store_that_is_busy(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer that does not end is waited for, then told."""
    monkeypatch.setattr("asides._history.sqlite.PATIENCE", 0.05)
    store = tmp_path / "h.db"
    assert save(parsed(), str(store))
    other = sqlite3.connect(store, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert not save(parsed(), str(store))
    other.close()
    assert "another program is writing" in capfd.readouterr().err
