"""The gateway under load, scene by scene: every reply is compared, and what is left behind is counted afterwards."""

from __future__ import annotations

import asyncio
import resource
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import psutil

from tests.gateway.clients import PATHS, Dialect
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Upstream, upstream
from tests.load.replies import Manner, Model, is_honest, is_right, kind_of, request
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


class House:
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


def held(house: House) -> Held:
    """What it holds now."""
    process = psutil.Process(house.gateway.process.pid)
    with process.oneshot():
        mine = process.net_connections("tcp")
        alive = [each for each in mine if each.status not in ("LISTEN", "NONE")]
        clients = sum(str(each.laddr[1]) == house.port for each in alive)
        megabytes = process.memory_info().rss / MEGABYTE
        return Held(process.num_fds(), clients, len(alive) - clients, megabytes, process.num_threads())


async def rest(house: House, outcome: Outcome, *, last: bool) -> None:
    """Wait until nothing of the scene is left; what stays is a problem.

    Connections to the upstream are kept some seconds for who comes next, so only the last scene waits for their end.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        now = held(house)
        async with house.session.get(house.gateway.url + "/healthz") as reply:
            working = (await reply.json())["open"]
        kept = 0 if last else now.upstreams
        # One connection is our own, which asks for the health.
        at_rest = now.descriptors <= house.descriptors + 1 + kept and now.clients <= 1 and now.upstreams == kept
        if at_rest and not working:
            break
        if time.monotonic() > deadline:
            outcome.problems.append(f"left behind: {now}, {working} requests; at rest {house.descriptors} descriptors")
            break
        await asyncio.sleep(0.1)
    stuck = [asked for asked in house.upstream.questions if not (asked.answered.is_set() or asked.left.is_set())]
    if stuck and house.gateway.process.poll() is None:
        outcome.problems.append(f"{len(stuck)} questions are still open at the upstream")
    house.upstream.asked.clear()
    if any("Traceback" in line for line in house.gateway.lines):
        outcome.problems.append("the log holds a traceback")
    house.gateway.lines.clear()


# The scenes.


async def many(house: House, outcome: Outcome, count: int, most: int, manner: Manner = "plain") -> None:
    """So many requests, so many at once."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            status, body = await house.ask(number, manner)
            right = status == 200 and is_right(number, *kind_of(number), body)
            outcome.counts["right" if right else "wrong"] += 1
            if not right:
                outcome.problems.append(f"{kind_of(number)} {number}: {status} {body[-300:]!r}")

    await asyncio.gather(*(worker() for _ in range(most)))


async def throughput(house: House, outcome: Outcome, scale: float) -> None:
    """10,000 requests, 200 at once; in two halves, so that memory which grows with requests shows."""
    half, most = max(int(5000 * scale), 100), max(int(200 * scale), 20)
    await many(house, outcome, half, most)
    middle = held(house).megabytes
    await many(house, outcome, half, most)
    grown = held(house).megabytes - middle
    outcome.notes.append(f"{grown:+.1f} MB in the second half")
    if grown > 10:
        outcome.problems.append(f"{grown:.1f} MB more after {half} further requests")


async def at_once(house: House, outcome: Outcome, scale: float) -> None:
    """500 streams that are all open at the same time; twice, since the first time takes memory for good."""
    count = int(500 * scale)
    await open_streams(house, outcome, count)
    middle = held(house).megabytes
    await open_streams(house, outcome, count)
    grown = held(house).megabytes - middle
    if grown > 10:
        outcome.problems.append(f"{grown:.1f} MB more after the same again")


async def open_streams(house: House, outcome: Outcome, count: int) -> None:
    """Open so many streams, and end them once all are open."""
    house.upstream.asked.clear()
    house.model.gate.opened.clear()
    tasks = [asyncio.create_task(house.ask(number, "held", ("chat", True))) for number in range(count)]
    open_at_once = await until(lambda: len(house.upstream.questions) == count)
    outcome.notes.append(f"{len(house.upstream.questions)} open at once, {held(house).megabytes:.0f} MB")
    if not open_at_once:
        outcome.problems.append(f"only {len(house.upstream.questions)} of {count} were open at once")
    house.model.gate.open()
    for number, (status, body) in enumerate(await asyncio.gather(*tasks)):
        outcome.counts["right" if status == 200 and is_right(number, "chat", True, body) else "wrong"] += 1


async def client_gone(house: House, outcome: Outcome, scale: float) -> None:
    """Clients that leave before the first byte, in the middle, and while a whole reply is made."""
    count = int(1000 * scale)
    limit = asyncio.Semaphore(100)

    async def leave(number: int) -> None:
        dialect, stream = kind_of(number)
        manner: Manner = "endless" if stream and number % 2 else "silent"
        url, body = house.gateway.url + PATHS[dialect], request(number, manner, dialect, stream)
        async with limit:
            if manner == "silent":
                task = asyncio.ensure_future(house.session.post(url, json=body))
                await until(lambda: any(f"silent {number}" in asked.raw.decode() for asked in house.upstream.questions))
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            else:
                async with house.session.post(url, json=body) as reply:
                    await reply.content.readany()
                    reply.close()

    await asyncio.gather(*map(leave, range(count)))
    asked = house.upstream.questions
    seen = await until(lambda: all(each.left.is_set() for each in asked))
    outcome.counts["cut off"] = sum(each.left.is_set() for each in asked)
    if not seen or len(asked) != count:
        outcome.problems.append(f"of {count}, {len(asked)} were asked and {outcome.counts['cut off']} seen to leave")


async def upstream_gone(house: House, outcome: Outcome, scale: float) -> None:
    """An upstream that dies: whole replies are a 502, streams deliver what came and then say so."""
    count = int(1000 * scale)
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            dialect, stream = kind_of(number)
            status, body = await house.ask(number, "dies")
            fine = status == (200 if stream else 502) and is_honest(number, dialect, stream, body)
            outcome.counts["cut off" if fine else "wrong"] += 1
            if not fine:
                outcome.problems.append(f"{dialect} {number}: {status} {body[-300:]!r}")

    await asyncio.gather(*(worker() for _ in range(50)))


async def upstream_slow(house: House, outcome: Outcome, scale: float) -> None:
    """An upstream that pauses in the middle of its words."""
    await many(house, outcome, int(1000 * scale), 200, "slow")


async def killed(house: House, outcome: Outcome, scale: float) -> None:
    """Killed with streams open: clients and upstream notice, and the same port serves again."""
    count = int(200 * scale)
    house.model.gate.opened.clear()
    tasks = [asyncio.create_task(house.ask(number, "held", ("chat", True))) for number in range(count)]
    await until(lambda: len(house.upstream.questions) == count)
    house.gateway.signal(signal.SIGKILL)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    outcome.counts["cut off"] = sum(isinstance(result, aiohttp.ClientError) for result in results)
    if outcome.counts["cut off"] != count:
        outcome.problems.append(f"{count - outcome.counts['cut off']} clients were told that their reply was whole")
    if not await until(lambda: all(asked.left.is_set() for asked in house.upstream.questions)):
        outcome.problems.append("the upstream still sends")
    house.model.gate.open()
    house.upstream.asked.clear()
    port = house.port
    began = time.monotonic()
    await asyncio.to_thread(house.gateway.close)
    with gateway(None, *flags(house.upstream), "--port", port) as again:
        outcome.notes.append(f"serves again after {time.monotonic() - began:.1f} s")
        house.gateway = again
        await many(house, outcome, int(100 * scale), 20)


async def until(holds: Callable[[], object]) -> bool:
    """Wait until something holds; whether it did."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


Scene = Callable[[House, Outcome, float], Awaitable[None]]
SCENES: dict[str, Scene] = {
    "client gone": client_gone,
    "upstream gone": upstream_gone,
    "upstream slow": upstream_slow,
    "many requests": throughput,
    "streams at once": at_once,
    "kill and restart": killed,
}
"""In this order; the last one ends the gateway."""
LAST = "streams at once"
"""After which nothing at all may be left."""


def flags(server: Upstream) -> tuple[str, ...]:
    """How the gateway is started."""
    return "--upstream", server.url, "--format", "qwen3"


@asynccontextmanager
async def opened() -> AsyncIterator[House]:
    """A gateway that has been warmed up, so that what it needs once is not taken for a leak."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most[1], most[1]))
    model = Model()
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    timeout = aiohttp.ClientTimeout(total=PATIENCE * 2)
    with upstream() as server, gateway(None, *flags(server)) as running:
        server.send(model.reply)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            house = House(running, server, model, session)
            before = held(house).descriptors
            await many(house, Outcome("warm-up"), 200, 50)
            server.asked.clear()
            house.descriptors = before + 2  # its connection pool and resolver may keep something of their own
            yield house


async def play(scale: float, tell: Callable[[Outcome], None] = lambda outcome: None) -> list[Outcome]:
    """Play every scene at this scale."""
    outcomes = []
    async with opened() as house:
        for name, scene in SCENES.items():
            outcome = Outcome(name)
            outcomes.append(outcome)
            began, before = time.monotonic(), held(house).megabytes
            try:
                await scene(house, outcome, scale)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                outcome.problems.append(f"{type(error).__name__}: {error}")
            outcome.seconds = time.monotonic() - began
            if scene is not killed:
                await rest(house, outcome, last=name == LAST)
                outcome.notes.append(f"{held(house).megabytes - before:+.1f} MB at rest")
            if outcome.counts["wrong"]:
                outcome.problems.insert(0, f"{outcome.counts['wrong']} replies were wrong")
            tell(outcome)
    return outcomes
