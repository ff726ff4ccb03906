"""The gateway under load, scene by scene: every reply is compared, and what is left behind is counted afterwards."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable

import aiohttp

from tests.gateway.clients import PATHS
from tests.gateway.running import gateway
from tests.load.harness import Harness, Outcome, flags, held, many, opened, rest, until
from tests.load.hostile import hostile_upstream, large_bodies, large_faults, slow_clients, unread_log
from tests.load.replies import Manner, is_honest, is_right, kind_of, request


async def throughput(harness: Harness, outcome: Outcome, scale: float) -> None:
    """10,000 requests, 200 at once; in two halves, so that memory which grows with requests shows.

    In 500 requests, 20 KB that each would leave behind are seen.
    """
    half, most = max(int(5000 * scale), 500), max(int(200 * scale), 20)
    await many(harness, outcome, half, most)
    middle = held(harness).megabytes
    await many(harness, outcome, half, most)
    grown = held(harness).megabytes - middle
    outcome.notes.append(f"{grown:+.1f} MB in the second half")
    if grown > 10:
        outcome.problems.append(f"{grown:.1f} MB more after {half} further requests")


async def at_once(harness: Harness, outcome: Outcome, scale: float) -> None:
    """500 streams that are all open at the same time; twice, since the first time takes memory for good."""
    count = int(500 * scale)
    await open_streams(harness, outcome, count)
    middle = held(harness).megabytes
    await open_streams(harness, outcome, count)
    grown = held(harness).megabytes - middle
    if grown > 10:
        outcome.problems.append(f"{grown:.1f} MB more after the same again")


async def open_streams(harness: Harness, outcome: Outcome, count: int) -> None:
    """Open so many streams, and end them once all are open."""
    harness.upstream.asked.clear()
    harness.model.gate.opened.clear()
    tasks = [asyncio.create_task(harness.ask(number, "held", ("chat", True))) for number in range(count)]
    open_at_once = await until(lambda: len(harness.upstream.questions) == count)
    outcome.notes.append(f"{len(harness.upstream.questions)} open at once, {held(harness).megabytes:.0f} MB")
    if not open_at_once:
        outcome.problems.append(f"only {len(harness.upstream.questions)} of {count} were open at once")
    harness.model.gate.open()
    for number, (status, body) in enumerate(await asyncio.gather(*tasks)):
        outcome.counts["right" if status == 200 and is_right(number, "chat", True, body) else "wrong"] += 1


async def client_gone(harness: Harness, outcome: Outcome, scale: float) -> None:
    """Clients that leave before the first byte, in the middle, and while a whole reply is made."""
    count = int(1000 * scale)
    limit = asyncio.Semaphore(100)

    async def leave(number: int) -> None:
        dialect, stream = kind_of(number)
        manner: Manner = "endless" if stream and number % 2 else "silent"
        url, body = harness.gateway.url + PATHS[dialect], request(number, manner, dialect, stream)
        async with limit:
            if manner == "silent":
                task = asyncio.ensure_future(harness.session.post(url, json=body))
                await until(lambda: any(f"silent {number}" in each.raw.decode() for each in harness.upstream.questions))
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            else:
                async with harness.session.post(url, json=body) as reply:
                    await reply.content.readany()
                    reply.close()

    await asyncio.gather(*map(leave, range(count)))
    asked = harness.upstream.questions
    seen = await until(lambda: all(each.left.is_set() for each in asked))
    outcome.counts["cut off"] = sum(each.left.is_set() for each in asked)
    if not seen or len(asked) != count:
        outcome.problems.append(f"of {count}, {len(asked)} were asked and {outcome.counts['cut off']} seen to leave")


async def upstream_gone(harness: Harness, outcome: Outcome, scale: float) -> None:
    """An upstream that dies: whole replies are a 502, streams deliver what came and then say so."""
    count = int(1000 * scale)
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            dialect, stream = kind_of(number)
            status, body = await harness.ask(number, "dies")
            fine = status == (200 if stream else 502) and is_honest(number, dialect, stream, body)
            outcome.counts["cut off" if fine else "wrong"] += 1
            if not fine:
                outcome.problems.append(f"{dialect} {number}: {status} {body[-300:]!r}")

    await asyncio.gather(*(worker() for _ in range(50)))


async def upstream_slow(harness: Harness, outcome: Outcome, scale: float) -> None:
    """An upstream that pauses in the middle of its words."""
    await many(harness, outcome, int(1000 * scale), 200, "slow")


async def killed(harness: Harness, outcome: Outcome, scale: float) -> None:
    """Killed with streams open: clients and upstream notice, and the same port serves again."""
    count = int(200 * scale)
    harness.model.gate.opened.clear()
    tasks = [asyncio.create_task(harness.ask(number, "held", ("chat", True))) for number in range(count)]
    await until(lambda: len(harness.upstream.questions) == count)
    harness.gateway.signal(signal.SIGKILL)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    outcome.counts["cut off"] = sum(isinstance(result, aiohttp.ClientError) for result in results)
    if outcome.counts["cut off"] != count:
        outcome.problems.append(f"{count - outcome.counts['cut off']} clients were told that their reply was whole")
    if not await until(lambda: all(asked.left.is_set() for asked in harness.upstream.questions)):
        outcome.problems.append("the upstream still sends")
    harness.model.gate.open()
    harness.upstream.asked.clear()
    port = harness.port
    began = time.monotonic()
    await asyncio.to_thread(harness.gateway.close)
    with gateway(None, *flags(harness.upstream), "--port", port) as again:
        outcome.notes.append(f"serves again after {time.monotonic() - began:.1f} s")
        harness.gateway = again
        await many(harness, outcome, int(100 * scale), 20)


Scene = Callable[[Harness, Outcome, float], Awaitable[None]]
SCENES: dict[str, Scene] = {
    "client gone": client_gone,
    "upstream gone": upstream_gone,
    "upstream slow": upstream_slow,
    "many requests": throughput,
    "large bodies": large_bodies,
    "large faults": large_faults,
    "hostile upstream": hostile_upstream,
    "slow clients": slow_clients,
    "unread log": unread_log,
    "streams at once": at_once,
    "kill and restart": killed,
}
"""In this order; the last one ends the gateway."""
LAST = "streams at once"
"""After which nothing at all may be left."""


async def play(scale: float, tell: Callable[[Outcome], None] = lambda outcome: None) -> list[Outcome]:
    """Play every scene at this scale."""
    outcomes = []
    async with opened() as harness:
        for name, scene in SCENES.items():
            outcome = Outcome(name)
            outcomes.append(outcome)
            began, before = time.monotonic(), held(harness).megabytes
            try:
                await scene(harness, outcome, scale)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                outcome.problems.append(f"{type(error).__name__}: {error}")
            outcome.seconds = time.monotonic() - began
            if scene is not killed:
                await rest(harness, outcome, last=name == LAST)
                outcome.notes.append(f"{held(harness).megabytes - before:+.1f} MB at rest")
            if outcome.counts["wrong"]:
                outcome.problems.insert(0, f"{outcome.counts['wrong']} replies were wrong")
            tell(outcome)
    return outcomes
