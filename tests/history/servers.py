"""A PostgreSQL server of its own, from the machine's binaries, in a folder that goes away with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pwd

HOW = "PostgreSQL's initdb and pg_ctl are not here; on Debian: apt-get install postgresql"
USER = "asides"


def binaries() -> Path | None:
    """The folder with `initdb` and `pg_ctl`."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A running server; yields the address of its database."""
    with restartable(folder) as (address, _, _):
        yield address


@contextmanager
def restartable(folder: Path) -> Iterator[tuple[str, Callable[[], None], Callable[[], None]]]:
    """The same with two functions: one that stops it, as a crash does, and one that starts it again."""
    # A short path, because the name of a socket may have about a hundred characters.
    place = Path(tempfile.mkdtemp(prefix="asides-"))
    account = _account()
    if account is not None:
        os.chown(place, account.pw_uid, account.pw_gid)
    data, log = place / "data", place / "log"

    def run(command: str, *arguments: str | Path) -> None:
        settings = {} if account is None else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        done = subprocess.run(
            [folder / command, *arguments],
            cwd=place,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(place)},
            **settings,  # type: ignore[call-overload]  # one dict for three settings of different types
        )
        assert done.returncode == 0, done.stdout + done.stderr + (log.read_text() if log.exists() else "")

    try:
        run("initdb", "-D", data, "-A", "trust", "-U", USER, "-E", "UTF8", "--no-sync")
        options = f"-k {place} -c listen_addresses= -c fsync=off -c max_connections=20"
        # The log takes the server's output: a pipe that it held open would never end.
        start = partial(run, "pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "start")
        stop = partial(run, "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        start()
        try:
            yield f"postgresql:///postgres?host={place}&user={USER}", stop, start
        finally:
            stop()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _account() -> pwd.struct_passwd | None:
    """Whom to be when we are root, as whom the server refuses to run."""
    import pwd  # here, because Windows has none, and all tests of history would need it

    if os.getuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]
