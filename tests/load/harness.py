"""Where a scene is played: the gateway, its upstream and its clients; and what is left behind afterwards."""

from __future__ import annotations

import asyncio
import resource
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import psutil

from tests.gateway.clients import PATHS, Dialect
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Upstream, upstream
from tests.load.replies import Manner, Model, is_right, kind_of, request
from tests.ports import held_port
from tests.waiting import PATIENCE

MEGABYTE = 1_000_000


@dataclass
class Outcome:
    """What came of one scene."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    """How many replies were right, cut off as they should be, or wrong."""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Harness:
    """The gateway, its upstream and its clients."""

    def __init__(self, running: Gateway, server: Upstream, model: Model, session: aiohttp.ClientSession) -> None:
        self.gateway = running
        self.upstream = server
        self.model = model
        self.session = session
        self.descriptors = 0
        """What the process holds when nobody asks."""

    @property
    def port(self) -> str:
        """Where it listens."""
        return self.gateway.url.rpartition(":")[2]

    async def ask(self, number: int, manner: Manner, kind: tuple[Dialect, bool] | None = None) -> tuple[int, bytes]:
        """Ask, and read the reply to its end: its status and its body."""
        dialect, stream = kind or kind_of(number)
        body = request(number, manner, dialect, stream)
        async with self.session.post(self.gateway.url + PATHS[dialect], json=body) as reply:
            return reply.status, await reply.read()


# What is left behind.


@dataclass(frozen=True)
class Held:
    """What the gateway's process holds."""

    descriptors: int
    clients: int
    upstreams: int
    megabytes: float
    threads: int


def held(harness: Harness) -> Held:
    """What it holds now."""
    process = psutil.Process(harness.gateway.process.pid)
    with process.oneshot():
        mine = process.net_connections("tcp")
        alive = [each for each in mine if each.status not in ("LISTEN", "NONE")]
        clients = sum(str(each.laddr[1]) == harness.port for each in alive)
        megabytes = process.memory_info().rss / MEGABYTE
        return Held(process.num_fds(), clients, len(alive) - clients, megabytes, process.num_threads())


async def rest(harness: Harness, outcome: Outcome, *, last: bool) -> None:
    """Wait until nothing of the scene is left; what stays is a problem.

    Connections to the upstream are kept some seconds for who comes next, so only the last scene waits for their end.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        now = held(harness)
        async with harness.session.get(harness.gateway.url + "/healthz") as reply:
            working = (await reply.json())["open"]
        kept = 0 if last else now.upstreams
        # One connection is our own, which asks for the health.
        at_rest = now.descriptors <= harness.descriptors + 1 + kept and now.clients <= 1 and now.upstreams == kept
        if at_rest and not working:
            break
        if time.monotonic() > deadline:
            outcome.problems.append(f"left behind: {now}, {working} requests; before {harness.descriptors} descriptors")
            break
        await asyncio.sleep(0.1)
    stuck = [asked for asked in harness.upstream.questions if not (asked.answered.is_set() or asked.left.is_set())]
    if stuck and harness.gateway.process.poll() is None:
        outcome.problems.append(f"{len(stuck)} questions are still open at the upstream")
    harness.upstream.asked.clear()
    if any("Traceback" in line for line in harness.gateway.lines):
        outcome.problems.append("the log holds a traceback")
    harness.gateway.lines.clear()


# What scenes have in common.


async def many(harness: Harness, outcome: Outcome, count: int, most: int, manner: Manner = "plain") -> None:
    """So many requests, so many at once."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            status, body = await harness.ask(number, manner)
            right = status == 200 and is_right(number, *kind_of(number), body)
            outcome.counts["right" if right else "wrong"] += 1
            if not right:
                outcome.problems.append(f"{kind_of(number)} {number}: {status} {body[-300:]!r}")

    await asyncio.gather(*(worker() for _ in range(most)))


async def until(holds: Callable[[], object]) -> bool:
    """Wait until something holds; whether it did."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


def flags(server: Upstream) -> tuple[str, ...]:
    """How the gateway is started."""
    return "--upstream", server.url, "--format", "qwen3"


@asynccontextmanager
async def opened() -> AsyncIterator[Harness]:
    """A gateway with its upstream and clients."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most[1], most[1]))
    model = Model()
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    timeout = aiohttp.ClientTimeout(total=PATIENCE * 2)
    # One scene starts the gateway again at the same port.
    with held_port() as port, upstream() as server, gateway(None, *flags(server), "--port", str(port)) as running:
        server.send(model.reply)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            harness = Harness(running, server, model, session)
            await warm_up(harness)
            yield harness


@asynccontextmanager
async def another(harness: Harness, *, unread: bool = False, **limits: float) -> AsyncIterator[Harness]:
    """A gateway with these limits beside the first one, for a scene whose marks the others shall not see."""
    config = {"upstreams": [{"url": harness.upstream.url}], "defaults": {"format": "qwen3"}, "limits": limits}
    with gateway(config, unread=unread) as running:
        beside = Harness(running, harness.upstream, harness.model, harness.session)
        await warm_up(beside)
        yield beside


async def warm_up(harness: Harness) -> None:
    """Let a gateway take what it needs once, so that it is not taken for a leak."""
    before = held(harness).descriptors
    await many(harness, Outcome("warm-up"), 60, 50)
    harness.upstream.asked.clear()
    harness.descriptors = before + 2  # its connection pool and resolver may keep something of their own
