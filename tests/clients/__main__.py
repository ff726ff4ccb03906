"""`make test-clients`: drives every real client through `asides serve`, twice, and writes docs/reference/clients.md.

The second time the gateway reads nothing (`format: none`) and the server's errors are others: an assertion that still
holds then says nothing, and is reported. `--broken` is that time alone, and prints why each assertion failed. With
names behind it only those clients are run, and the page stays as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.clients.catalogue import CLIENTS, NPM, Client
from tests.clients.cells import judge
from tests.clients.page import PAGE, Row, write
from tests.clients.run import FOLDER, NotRun, observed

STILL = "still holds when everything is broken"
NODE = 20
"""The oldest Node that is tried."""
INSTALL_SECONDS = 900.0


@dataclass
class Outcome:
    """What a run found of one client, and what of it is a failure."""

    row: Row
    skipped: str = ""
    faults: list[str] = field(default_factory=list)


def run(client: Client, broken: bool) -> Outcome:
    """Drive one client: once as it should be and once broken, or only broken."""
    try:
        shown = _version(client)
        reasons = {} if broken else judge(observed(client, broken=False))
        failures = judge(observed(client, broken=True))
    except NotRun as error:
        return Outcome(Row(client), skipped=str(error))
    # Such a cell is no `yes`.
    proofless = {column: STILL for column in failures if not failures[column] and column not in client.limits}
    reasons = {column: reason or proofless.get(column, "") for column, reason in reasons.items()}
    faults = [f"{column}: {reason}" for column, reason in proofless.items()] if broken else []
    for column, reason in reasons.items():
        if reason and column not in client.limits:
            faults.append(f"{column}: {reason}")
        elif not reason and column in client.limits:
            faults.append(f"{column}: holds, though the catalogue lists it as a limit of the client")
    if broken:
        for column, reason in failures.items():
            print(f"    {client.name}, {client.api}, {column}: {reason or 'HOLDS'}"[:240], flush=True)
    return Outcome(Row(client, shown, reasons or failures), faults=faults)


def _version(client: Client) -> str:
    if client.npm:
        _install(client.npm)
        versions = [NPM[client.npm][package] for package in client.packages]
    else:
        try:
            versions = [version(package) for package in client.packages]
        except PackageNotFoundError as error:
            raise NotRun(f"{error.name} is not installed") from None
    more = [f"{name} {each}" for name, each in zip(client.packages[1:], versions[1:], strict=True)]
    return versions[0] + (f" ({', '.join(more)})" if more else "")


@cache
def _node() -> str:
    """Why there is no Node to run anything with; empty if there is."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return f"Node.js {NODE} or newer and npm are not installed"
    found = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
    return "" if int(found.strip("v").split(".")[0]) >= NODE else f"Node.js {NODE} or newer is needed, {found} is here"


def _install(name: str) -> None:
    """Install the packages of a folder, unless just these are there."""
    if _node():
        raise NotRun(_node())
    folder, packages = FOLDER / name, NPM[name]
    done = folder / "installed.json"
    if done.exists() and json.loads(done.read_text(encoding="utf-8")) == packages:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.joinpath("package.json").write_text('{"private": true}', encoding="utf-8")
    command = [
        "npm",
        "install",
        "--no-package-lock",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--loglevel=error",
    ]
    pinned = [f"{package}@{each}" for package, each in packages.items()]
    try:
        subprocess.run([*command, *pinned], cwd=folder, check=True, capture_output=True, timeout=INSTALL_SECONDS)
    except subprocess.CalledProcessError as error:
        raise NotRun(f"npm could not install it: {error.stderr.decode(errors='replace')[-300:]}") from None
    except subprocess.TimeoutExpired as error:
        raise NotRun(f"npm could not install it: {error}") from None
    done.write_text(json.dumps(packages), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Run the clients, print what was found, write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description=__doc__)
    parser.add_argument("names", nargs="*", help="only clients whose name begins with one of these")
    parser.add_argument("--broken", action="store_true", help="only show that every assertion can fail")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="clients at once")
    options = parser.parse_args(arguments)
    chosen = [
        c for c in CLIENTS if not options.names or c.name.lower().startswith(tuple(map(str.lower, options.names)))
    ]
    if not chosen:
        parser.error(f"no client of that name; there are {', '.join(sorted({client.name for client in CLIENTS}))}")
    # Before any is run at the same time as another: two installs of one folder would fight.
    for name in sorted({client.npm for client in chosen if client.npm}):
        print(f"test-clients: {name}: looking for its packages", flush=True)
        _try_install(name)
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = []
        for outcome in pool.map(lambda client: run(client, options.broken), chosen):
            _report(outcome)
            outcomes.append(outcome)
    if all(outcome.skipped for outcome in outcomes):
        print("test-clients: no client could be run, so nothing was tested", file=sys.stderr)
        return 1
    if not options.names and not options.broken:
        write([outcome.row for outcome in outcomes])
        print(f"test-clients: wrote {PAGE.relative_to(Path.cwd())}")
    return int(any(outcome.faults for outcome in outcomes))


def _try_install(name: str) -> None:
    try:
        _install(name)
    except NotRun:
        # Reported for each of its clients.
        return


def _report(outcome: Outcome) -> None:
    client = outcome.row.client
    name = f"{client.name} {outcome.row.version}".rstrip()
    state = f"not run: {outcome.skipped}" if outcome.skipped else "FAILED" if outcome.faults else "as expected"
    print(f"{name}, {client.api}: {state}", flush=True)
    for fault in outcome.faults:
        print(f"    {fault}"[:600], flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
