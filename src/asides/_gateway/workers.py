"""Several processes that listen on one port, so that a gateway can use several cores.

`supervise` starts `asides serve` once for each worker, with the same flags, and takes no request itself. Each worker
has a listening socket of its own on the port (SO_REUSEPORT); the kernel shares connections out among them. What must be
the same whichever worker is asked is in the shared store (stored Responses, replayed thoughts); metrics are summed by
whoever is asked for them (`siblings`). A worker that dies is started again; if the supervisor dies, its workers stop.
SIGUSR2 restarts the workers one after another: the others take requests meanwhile, so there is no gap.

    supervise(config, ["--config", "asides.yaml"])      # returns the exit code
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from .._config.schema import Config
from .siblings import SUFFIX

log = logging.getLogger("asides.gateway")

VARIABLE = "_ASIDES_WORKER"
"""The variable in which a worker finds its `WorkerSpec`."""
TOO_SOON = 5.0
"""Seconds: a worker that ends sooner after its start than this has failed to start."""
MOST_FAILURES = 3
"""Failed starts in a row after which everything stops."""
READY_LOOKS = 0.05


class WorkerSpec(msgspec.Struct, frozen=True):
    """What a worker must know."""

    number: int
    port: int
    folder: str
    """Where the workers' sockets are."""
    token: str
    """The start token, the same for all of them."""


def own_spec() -> WorkerSpec | None:
    """What this process is as a worker; None where it is none."""
    given = os.environ.get(VARIABLE)
    return msgspec.json.decode(given, type=WorkerSpec) if given else None


def refusal(config: Config) -> str:
    """Why this configuration cannot have several workers; empty where it can."""
    if not hasattr(socket, "SO_REUSEPORT") or not hasattr(signal, "SIGHUP"):
        return "this system cannot share a port among processes (SO_REUSEPORT)"
    stores = {
        "responses": (config.responses.store, config.responses.entries),
        "replay_cache": (config.replay_cache.store, config.replay_cache.entries),
    }
    if config.page.show and config.page.watch != "off":
        return "a page would see the traffic of one of them only; leave out `page.watch`, or have one worker"
    alone = [name for name, (store, entries) in stores.items() if entries and store == "memory"]
    if not alone:
        return ""
    settings = " and ".join(f"`{name}: {{store: history}}`" for name in alone)
    return (
        "a client's next request may reach another of them, which would know nothing of its stored Responses or "
        f"thoughts; let them share `history.store` by {settings} (`entries: 0` does without)"
    )


def supervise(config: Config, flags: Sequence[str], port: int, token: str, announce: Callable[[], None]) -> int:
    """Run workers until a signal ends them; returns the exit code. `announce` is called once all of them listen.

    `token`: what the page is read with, whichever of them it asks.
    """
    with TemporaryDirectory(prefix="asides-") as folder:
        return asyncio.run(_Supervisor(config.listen.workers, flags, port, token, Path(folder)).run(announce))


class _Supervisor:
    def __init__(self, count: int, flags: Sequence[str], port: int, token: str, folder: Path) -> None:
        self._count = count
        self._flags = flags
        self._port = port
        self._token = token
        self._folder = folder
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = False
        self._rolling: asyncio.Task[None] | None = None
        self._code = 0

    async def run(self, announce: Callable[[], None]) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        if sys.platform == "win32":
            raise NotImplementedError  # see `refusal`
        loop.add_signal_handler(signal.SIGHUP, self._send, signal.SIGHUP)
        loop.add_signal_handler(signal.SIGUSR2, self._begin_restart)
        greeting = asyncio.create_task(self._announce(announce))
        await asyncio.gather(*(self._keep(number) for number in range(self._count)))
        for task in (greeting, self._rolling):
            if task is not None:
                task.cancel()
        return self._code

    def _begin_restart(self) -> None:
        if self._rolling is not None and not self._rolling.done():
            log.warning("the workers are being restarted already", extra={"event": "restarting"})
        elif not self._stopping:
            self._rolling = asyncio.create_task(self._restart())

    async def _restart(self) -> None:
        """Replace one worker after another, each only once the one before it is ready again."""
        log.info("restarting %d workers, one after another", self._count, extra={"event": "restarting"})
        for number in range(self._count):
            old = self._processes[number]
            with contextlib.suppress(ProcessLookupError):
                old.send_signal(signal.SIGTERM)
            while self._processes[number] is old or not self._socket(number).exists():
                await asyncio.sleep(READY_LOOKS)
        log.info("all workers were restarted", extra={"event": "restarted"})

    def _socket(self, number: int) -> Path:
        """Is there while the worker is ready."""
        return self._folder / f"{number}{SUFFIX}"

    async def _announce(self, announce: Callable[[], None]) -> None:
        while sum(path.suffix == SUFFIX for path in self._folder.iterdir()) < self._count:
            await asyncio.sleep(READY_LOOKS)
        announce()

    async def _keep(self, number: int) -> None:
        """Run a worker, and start it again whenever it dies."""
        failures = 0
        while not self._stopping:
            started = time.monotonic()
            spec = WorkerSpec(number, self._port, str(self._folder), self._token)
            process = self._processes[number] = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "asides", "serve", *self._flags),
                # Never written to: its end shows a worker that the supervisor is gone.
                stdin=asyncio.subprocess.PIPE,
                env={**os.environ, VARIABLE: msgspec.json.encode(spec).decode()},
                # Ctrl-C goes to every process of a terminal: a worker would take it, and ours, for two signals.
                start_new_session=True,
            )
            code = await process.wait()
            self._socket(number).unlink(missing_ok=True)  # it may have been killed
            if self._stopping:
                break
            restarting = self._rolling is not None and not self._rolling.done()
            if restarting and code == 0:
                failures = 0
                continue
            log.error("worker %d ended with %d; it is started again", number, code, extra={"event": "worker_ended"})
            failures = failures + 1 if time.monotonic() - started < TOO_SOON else 0
            if failures >= MOST_FAILURES and restarting:
                # The others still work; what is wrong, with the configuration for example, can be put right.
                await asyncio.sleep(TOO_SOON)
            elif failures >= MOST_FAILURES:
                log.error("worker %d cannot be started; stopping", number)
                self._code = 1
                self._send(signal.SIGTERM)
                self._stopping = True

    def _stop(self, number: signal.Signals) -> None:
        """The first signal lets the workers' open streams end, the second does not wait for them."""
        self._stopping = True
        self._code = 130 if number == signal.SIGINT else self._code
        self._send(signal.SIGTERM)

    def _send(self, number: signal.Signals) -> None:
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
