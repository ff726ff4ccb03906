"""What the run of the clients reports when one cannot be run, hangs, or has an assertion that cannot fail."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.clients import __main__ as runner
from tests.clients import run
from tests.clients.catalogue import CLIENTS, SDKS, Client
from tests.clients.cells import COLUMNS, Observed
from tests.clients.model import CASES


def test_without_node_the_run_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients from npm are skipped with the reason, and have no version."""
    monkeypatch.setattr("shutil.which", lambda name: None)
    runner._node.cache_clear()
    try:
        outcome = runner.run(CLIENTS[0], broken=False)
    finally:
        runner._node.cache_clear()
    assert outcome.skipped == "Node.js 20 or newer and npm are not installed"
    assert (outcome.row.version, outcome.row.reasons, outcome.faults) == ("", None, [])


def test_a_package_that_is_missing_is_skipped() -> None:
    """A Python client that is not installed is skipped with the reason."""
    outcome = runner.run(replace(SDKS[0], packages=("no-such-package",)), broken=False)
    assert outcome.skipped == "no-such-package is not installed"


def test_a_client_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Past its time it is ended, with what it has started, and reported."""
    monkeypatch.setattr(run, "SECONDS", 1.0)
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(900)'])"
    with pytest.raises(run.NotRun, match="did not end within 1 s"):
        run.call([sys.executable, "-c", code], tmp_path, dict(os.environ))


def test_a_client_that_ends_badly_is_reported(tmp_path: Path) -> None:
    """With what it wrote."""
    with pytest.raises(run.NotRun, match="ended with 3: no account"):
        run.call([sys.executable, "-c", "import sys; sys.stderr.write('no account'); sys.exit(3)"], tmp_path, {})


def test_nothing_of_the_user_is_handed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A client finds a home of its own, and no key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    variables = run.own(tmp_path)
    assert variables["HOME"] == str(tmp_path)
    assert "sk-of-the-user" not in variables.values()


def _outcome(monkeypatch: pytest.MonkeyPatch, client: Client, normal: str, broken: str) -> list[str]:
    seen = Observed(dict.fromkeys(CASES, ()), dict.fromkeys(CASES, ()), (), ("", ""), ("", ""))
    monkeypatch.setattr(
        runner, "observed", lambda client, broken: replace(seen, messages=("broken" if broken else "", ""))
    )
    reasons = {"": normal, "broken": broken}
    monkeypatch.setattr(runner, "judge", lambda seen: dict.fromkeys(COLUMNS, reasons[seen.messages[0]]))
    return runner.run(client, broken=False).faults


def test_an_assertion_that_cannot_fail_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that holds although everything is broken says nothing."""
    faults = _outcome(monkeypatch, SDKS[0], "", "")
    assert faults == [f"{column}: still holds when everything is broken" for column in COLUMNS]


def test_what_fails_and_is_no_limit_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so is a limit that the client no longer has."""
    assert _outcome(monkeypatch, SDKS[0], "why", "why") == [f"{column}: why" for column in COLUMNS]
    client = replace(SDKS[0], limits=dict.fromkeys(COLUMNS, "a limit"))
    assert _outcome(monkeypatch, client, "why", "why") == []
    assert all("lists it as a limit" in fault for fault in _outcome(monkeypatch, client, "", "why"))
