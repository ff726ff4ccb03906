"""What holds for every test: how hard generated ones are tried, and how the processes that tests start begin.

Generated tests: enough in `make test`, long with ASIDES_LAWS=long (`make laws`). No deadlines.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import asides
from asides.families import _registry as registry
from tests.laws.effort import LONG
from tests.posix import POSIX

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

# The same examples every time, so that a change that breaks nothing never fails by bad luck.
settings.register_profile("test", derandomize=True, database=None, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("long", deadline=None, suppress_health_check=_SLOW, print_blob=True)
settings.load_profile("long" if LONG else "test")

# Tests start the command hundreds of times. Where nothing that is compiled is kept, each start compiles the package
# anew, which takes longer than all that it does; and each worker rewrites the assertions of every test.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Commands obey the user's own configuration file; tests must not depend on whether there is one here.
os.environ["XDG_CONFIG_HOME"] = os.devnull
os.environ["XDG_STATE_HOME"] = os.devnull

# Collecting makes half a million objects that live to the end, so it is no time to look for garbage, and later
# garbage is looked for among what tests have made.
gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage again, except in what collecting has made."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Let what collecting has made end while all that it needs is still there."""
    gc.unfreeze()


POSIX_MODULES = "fcntl|grp|posix|pty|pwd|resource|termios|tty"


class _Module(pytest.Module):
    """A file of tests that is skipped whole where it imports what only POSIX systems have."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        try:
            return super().collect()
        except self.CollectError as error:
            missing = re.search(rf"No module named '({POSIX_MODULES})'", str(error))
            if missing is None:
                raise
            pytest.skip(f"{POSIX}: {missing[1]}")


if sys.platform == "win32":

    def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
        """Collect a file of tests."""
        module: pytest.Module = _Module.from_parent(parent, path=module_path)
        return module


_PYTHONS_OWN = {getattr(signal, name, None) for name in ("SIGPIPE", "SIGXFSZ")}
"""Python ignores these itself, and `subprocess` gives children the default back."""


def _stop_ignoring() -> None:
    """Start children with no signal ignored, whatever `nohup` or a shell's `&` has us ignore.

    What a process ignores, its children ignore; what it handles, they meet with the default. So a handler that does
    nothing keeps us as deaf as we were told to be, and lets a test's Ctrl-C reach the process that it is meant for.
    """
    for number in signal.valid_signals() - _PYTHONS_OWN:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


_stop_ignoring()


@pytest.fixture
def _clean_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    asides.formats()  # what entry points bring is there before the copies are made
    for name in ("_formats", "_names", "_resolved", "_registered"):
        monkeypatch.setattr(registry, name, getattr(registry, name).copy())
