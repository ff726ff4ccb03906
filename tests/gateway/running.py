"""`asides serve` as a real process: started on a free port, its log kept, stopped or killed by a test."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import httpx
import psutil
import yaml

from tests.fork_server import Forked, start
from tests.waiting import PATIENCE, eventually

COMMAND = (sys.executable, "-m", "asides", "serve")
FORKS = sys.platform == "linux"
"""Elsewhere what a system's own libraries have begun may not be gone on with in a fork."""
PAGE_LINE = re.compile(r"open http://[^ ?]+(?:\?token=(\S+))? in a browser")
BY_ADDRESS: dict[str, Gateway] = {}
"""The gateways that were started, for who knows no more than an address: a browser has to be let in by the token."""
TEXT_LINE = re.compile(r"listening on (http://\S+)")


class Gateway:
    """The gateway while it runs."""

    def __init__(
        self,
        *flags: str,
        config: Path | None = None,
        variables: Mapping[str, str] | None = None,
        command: Sequence[str] = COMMAND,
        unread: bool = False,
    ) -> None:
        self._unread = unread
        self.lines: list[str] = []
        """What it has logged."""
        self.url = ""
        place = () if config is None else ("--config", str(config))
        ours = ("ASIDES_", "OPENAI_", "ANTHROPIC_", "OLLAMA_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        # Only the file that a test names counts, none that lies about.
        folder = config.parent if config is not None else "/"
        self.process, self._pipes = _start([*command, *place, *flags], {**kept, **(variables or {})}, folder)
        self._ready = threading.Event()
        self._threads = [threading.Thread(target=self._read, args=(pipe,)) for pipe in self._pipes]
        for thread in self._threads:
            thread.start()

    def _read(self, pipe: IO[bytes]) -> None:
        for raw in pipe:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            self.lines.append(line)
            if not self.url and (url := _address(line)):
                self.url = url
                BY_ADDRESS[url] = self
                self._ready.set()
                if self._unread:
                    return
        self._ready.set()

    def wait_until_ready(self) -> None:
        """Wait until it says where it listens."""
        assert self._ready.wait(PATIENCE), "the gateway did not say where it listens: " + self.log
        assert self.url, f"the gateway ended with {self.process.wait()}: {self.log}"

    @property
    def token(self) -> str:
        """The start token, which is in the page's address; empty where keys are what the page is read with."""
        eventually(lambda: PAGE_LINE.search(self.log), "the address of the page was not logged")
        found: list[str] = PAGE_LINE.findall(self.log)
        return found[-1]

    @property
    def log(self) -> str:
        """All that it has written."""
        return "\n".join(self.lines)

    @property
    def records(self) -> list[dict[str, Any]]:
        """The JSON lines of its log."""
        return [json.loads(line) for line in list(self.lines) if line.startswith("{")]

    def wait_for_record(self, matches: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The first line of the log that matches, as soon as it is there."""
        found: list[dict[str, Any]] = []

        def look() -> bool:
            found[:] = [record for record in self.records if matches(record)]
            return bool(found)

        eventually(look, "no such line was logged")
        return found[0]

    @property
    def watched(self) -> psutil.Process:
        """The process, for what it holds."""
        return psutil.Process(self.process.pid)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def answers(self) -> bool:
        """Whether it takes new requests."""
        try:
            return httpx.get(self.url + "/healthz", verify=False, timeout=PATIENCE).status_code == 200
        except httpx.TransportError:
            return False

    def wait(self) -> int:
        """Its exit code."""
        code = self.process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        return code

    def close(self) -> None:
        """End it, if it still runs."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.wait()
        for pipe in self._pipes:
            pipe.close()


def _start(
    command: list[str], environment: dict[str, str], folder: Path | str
) -> tuple[Forked | subprocess.Popen[bytes], list[IO[bytes]]]:
    """The process, and what it writes on its standard error and output. The usual command is forked (`fork_server`)."""
    pipes = [os.pipe() for _ in ("stderr", "stdout")]
    (_, stderr), (_, stdout) = pipes
    with open(os.devnull, "rb") as nothing:
        streams = [nothing.fileno(), stdout, stderr]
        if FORKS and command[: len(COMMAND)] == list(COMMAND):
            process = start(["serve", *command[len(COMMAND) :]], environment, streams, folder=folder)
        else:
            process = subprocess.Popen(
                command, stdin=nothing, stdout=stdout, stderr=stderr, env=environment, cwd=folder
            )
    for _, writing in pipes:
        os.close(writing)
    return process, [open(reading, "rb") for reading, _ in pipes]


def _address(line: str) -> str:
    if line.startswith("{"):
        record = json.loads(line)
        return str(record["url"]) if record.get("event") == "listening" else ""
    found = TEXT_LINE.search(line)
    return found[1] if found else ""


@contextmanager
def gateway(
    config: Mapping[str, Any] | None = None,
    *flags: str,
    variables: Mapping[str, str] | None = None,
    command: Sequence[str] = COMMAND,
    unread: bool = False,
) -> Iterator[Gateway]:
    """A gateway that runs as long as the block, on a free port unless a flag says otherwise.

    Nobody reads the log of an `unread` one once it has said where it listens.
    """
    with TemporaryDirectory() as folder:
        path = None
        if config is not None:
            path = Path(folder, "asides.yaml")
            path.write_text(yaml.safe_dump(dict(config), allow_unicode=True), encoding="utf-8")
        port = () if "--port" in flags else ("--port", "0")
        running = Gateway(*port, *flags, config=path, variables=variables, command=command, unread=unread)
        try:
            running.wait_until_ready()
            yield running
        finally:
            running.close()
