"""Driving one client against `asides serve`: with a gateway and a model of its own, so that it finds no other's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.clients.catalogue import Client
from tests.clients.cells import Observed
from tests.clients.driving import CITY, FIND_PARAMETERS, KEY, Shown
from tests.clients.model import CASES, MODEL, found, model, question
from tests.gateway.running import gateway

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".clients"
"""Where the packages from npm are, each in a folder of its own."""
SECONDS = 900.0
"""For one client in one API, on a machine that is busy. It bounds only what hangs."""


class NotRun(Exception):
    """A client that cannot be run here, and why."""


Drive = Callable[[Client, str, Path], str]
"""Goes through every case with a client against the gateway at this address, and returns what its driver reports."""


def observed(client: Client, broken: bool, drive: Drive | None = None) -> Observed:
    """What a client shows; broken, behind a gateway that reads nothing, before a server whose errors are others.

    A client is driven in a process of its own, unless `drive` does it.
    """
    with ExitStack() as stack:
        served = stack.enter_context(model(broken))
        served.calls = client.calls
        config = {"upstreams": [{"url": served.server.url}], "defaults": {"format": "none" if broken else "qwen3"}}
        running = stack.enter_context(gateway(config))
        folder = Path(stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True)))
        shown = _shown((drive or _drive)(client, running.url, folder))
        asked = {case: served.asked(case) for case in CASES}
        return Observed(shown, asked, client.calls, client.errors, client.messages)


def _drive(client: Client, url: str, folder: Path) -> str:
    module, _, name = client.driver.partition(":")
    if module.endswith(".mjs"):
        # Beside the packages, since that is where Node looks for them.
        script = shutil.copy(Path(__file__).parent / module, FOLDER / client.npm)
        return call(["node", str(script), name, json.dumps(_job(url))], FOLDER / client.npm, own(folder))
    command = [sys.executable, "-m", "tests.clients.driving", client.driver, url]
    return call(command, ROOT, own(folder))


def _shown(output: str) -> dict[str, list[Shown]]:
    """What a driver reports: its last line."""
    seen: dict[str, list[dict[str, Any]]] = json.loads(output.splitlines()[-1])
    if "missing" in seen:
        raise NotRun(str(seen["missing"]))
    return {case: [Shown(**shown) for shown in each] for case, each in seen.items()}


def _job(url: str) -> dict[str, Any]:
    """What a driver that is not in Python has to know."""
    return {
        "url": url,
        "key": KEY,
        "model": MODEL,
        "questions": {case: question(case) for case in CASES},
        "parameters": FIND_PARAMETERS,
        "found": {city: found(city) for city in ("Rome", "Oslo")},
        "schema": CITY,
    }


def own(folder: Path) -> dict[str, str]:
    """An environment in which a program finds a home of its own, no account, and nothing of the user's."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "ASIDES_CLIENTS_LOG")
        if name in os.environ
    }
    return {**kept, "HOME": str(folder), "TMPDIR": str(folder), "NO_COLOR": "1", "ASIDES_CLIENTS": str(FOLDER)}


def call(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> str:
    """What a program prints; that it ran too long, or ended badly, is the reason why the client was not run."""
    try:
        # A session of its own, so that what it has started and left behind ends with it.
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise NotRun(str(error)) from None
    try:
        output, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise NotRun(f"it did not end within {SECONDS:.0f} s") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    if process.returncode:
        raise NotRun(f"it ended with {process.returncode}: {errors.decode(errors='replace')[-500:]}")
    return output.decode()
