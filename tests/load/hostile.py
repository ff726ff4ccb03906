"""Scenes with peers that take more than their share: the others must not notice, and memory must stay.

Each has a gateway of its own, so that its marks are not taken for those of another scene.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.gateway.clients import FUNCTION, PATHS, body_of
from tests.gateway.sockets import connected
from tests.load.harness import MEGABYTE, Harness, Outcome, another, many, rest, until
from tests.load.replies import LARGE, TICK, Manner, has_ticked, is_right, request
from tests.waiting import PATIENCE

STALLED = 10.0
"""Seconds of silence that no busy machine explains."""
LARGE_AT_ONCE, LEAST_LARGE = 4, 20
"""Large requests that are sent at the same time, and at least, so that what they left would be seen."""
MOST_LEFT = 60
"""Megabytes that may stay of them: less than the bodies of twenty."""
TOOLS = [{"type": "function", "function": FUNCTION}]


@dataclass
class Watch:
    """What was seen of a gateway while something else went on."""

    health: float = 0.0
    """The longest time in which `/healthz` answered, in seconds."""
    gap: float = 0.0
    """The longest silence of a running stream."""
    peak: float = 0.0
    """The most memory, in megabytes."""

    def tell(self, outcome: Outcome, name: str) -> None:
        """Note it, and what was far too long."""
        outcome.notes.append(f"{name}: /healthz {self.health * 1000:.0f} ms, gap {self.gap * 1000:.0f} ms")
        if max(self.health, self.gap) > STALLED:
            outcome.problems.append(f"{name}: stalled for {max(self.health, self.gap):.1f} s")


@asynccontextmanager
async def watched(harness: Harness) -> AsyncIterator[Watch]:
    """Ask for the health and look at the memory, again and again, as long as the block."""
    watch = Watch()
    process = harness.gateway.watched

    async def look() -> None:
        while True:
            began = time.monotonic()
            async with harness.session.get(harness.gateway.url + "/healthz") as reply:
                assert reply.status == 200
                await reply.read()
            watch.health = max(watch.health, time.monotonic() - began)
            watch.peak = max(watch.peak, process.memory_info().rss / MEGABYTE)
            await asyncio.sleep(TICK)

    task = asyncio.create_task(look())
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


# Large bodies.


async def large_bodies(harness: Harness, outcome: Outcome, scale: float) -> None:
    """While 64 MB are taken, `/healthz` answers and 64 running streams go on."""
    size, streams = int(64_000_000 * scale), max(int(64 * scale), 8)
    bodies = {
        "a long text": [{"role": "user", "content": "word " * (size // 5)}],
        "10,000 messages": tool_turns(int(5000 * scale), size),
        "4,000 tool turns": tool_turns(int(4000 * scale), max(int(900_000 * scale), LARGE)),
    }
    async with another(harness) as beside:
        for name, messages in bodies.items():
            body = json.dumps(body_of("chat", stream=True) | {"messages": messages, "tools": TOOLS}).encode()
            async with running_streams(beside, outcome, streams) as watch:
                began = time.monotonic()
                reply = await asyncio.to_thread(send, beside.gateway.url, body)
                seconds = time.monotonic() - began
            watch.tell(outcome, f"{name} in {seconds:.1f} s")
            right = b" 200 " in reply.split(b"\r\n")[0] and is_right(0, "chat", True, reply)
            asked = max((asked.raw for asked in harness.upstream.questions), key=len)
            if not right or [gist(each) for each in json.loads(asked)["messages"]] != [gist(each) for each in messages]:
                outcome.counts["wrong"] += 1
                outcome.problems.append(f"{name}: {reply[-300:]!r}")
            outcome.counts["right"] += right
            await rest(beside, outcome, last=False)


def gist(message: dict[str, Any]) -> tuple[Any, ...]:
    """What a message says, however it is written."""
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
    return message["role"], message.get("content") or "", calls


def tool_turns(count: int, size: int) -> list[dict[str, Any]]:
    """A conversation of so many calls and results, of so many bytes in all."""
    words = "result " * (size // count // 7)
    messages: list[dict[str, Any]] = []
    for number in range(count):
        function = {"name": "find", "arguments": json.dumps({"query": f"question {number}"})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"{number}: {words}"})
    return messages


def send(url: str, body: bytes, **headers: str) -> bytes:
    """Send a body over a bare socket, which takes none of the loop's time; all that comes back."""
    with connected(url) as client:
        client.post(PATHS["chat"], body, connection="close", **headers)
        return client.read_rest()


@asynccontextmanager
async def running_streams(harness: Harness, outcome: Outcome, count: int) -> AsyncIterator[Watch]:
    """So many streams that run as long as the block, a word every few milliseconds, and then end."""
    harness.model.gate.opened.clear()
    harness.upstream.asked.clear()
    async with watched(harness) as watch:

        async def listen(number: int) -> None:
            body = request(number, "ticks", "chat", True)
            told = b""
            async with harness.session.post(harness.gateway.url + PATHS["chat"], json=body) as reply:
                last = None
                async for chunk in reply.content.iter_any():
                    now = time.monotonic()
                    watch.gap = max(watch.gap, now - (last or now))
                    last, told = now, told + chunk
            outcome.counts["right" if has_ticked(number, told) else "wrong"] += 1

        tasks = [asyncio.create_task(listen(number)) for number in range(count)]
        await until(lambda: len(harness.upstream.questions) == count)
        await asyncio.sleep(0.5)
        watch.gap = watch.health = 0.0  # from here on: all have begun
        yield watch
        seen = Watch(watch.health, watch.gap)
        harness.model.gate.open()
        await asyncio.gather(*tasks)
        watch.health, watch.gap = seen.health, seen.gap


def megabytes(harness: Harness) -> float:
    """The gateway's memory."""
    return harness.gateway.watched.memory_info().rss / MEGABYTE


async def large_faults(harness: Harness, outcome: Outcome, scale: float) -> None:
    """200 requests of 4 MB whose stream breaks off, and 60 that are looked into: of none is anything left."""
    body = json.dumps(body_of("chat", stream=True) | {"messages": [{"role": "user", "content": "word " * 800_000}]})
    rounds = {"cut": (int(200 * scale), {}), "inspected": (int(60 * scale), {"X-Asides-Inspect": "1"})}
    async with another(harness) as beside:

        async def ask(count: int, headers: dict[str, str]) -> None:
            for start in range(0, count, LARGE_AT_ONCE):
                asked = [
                    asyncio.to_thread(send, beside.gateway.url, body.encode(), **headers, Authorization="Bearer own")
                    for _ in range(min(LARGE_AT_ONCE, count - start))
                ]
                for reply in await asyncio.gather(*asked):
                    whole = is_right(0, "chat", True, reply)
                    honest = b"upstream_lost" in reply if harness.model.cuts else whole
                    outcome.counts["wrong" if not honest else "right" if whole else "cut off"] += 1
                harness.upstream.asked.clear()

        for name, (count, headers) in rounds.items():
            harness.model.cuts = name == "cut"
            try:
                await ask(LEAST_LARGE, headers)  # what threads and allocators keep for the next time
                before = megabytes(beside)
                await ask(max(count, LEAST_LARGE), headers)
            finally:
                harness.model.cuts = False
            bound = before + MOST_LEFT
            if not await until(lambda bound=bound: megabytes(beside) < bound):  # type: ignore[misc]  # a default binds
                outcome.problems.append(f"{name}: more than {MOST_LEFT} MB stay")
            outcome.notes.append(f"{name}: {megabytes(beside) - before:+.0f} MB")
        await rest(beside, outcome, last=False)


# An upstream that sends what none should.


async def hostile_upstream(harness: Harness, outcome: Outcome, scale: float) -> None:
    """An endless line, little that unpacks to much, invented choices, an endless thought with tools.

    Memory stays, other replies are right, and a signal ends the gateway while all of it goes on.
    """
    millions: dict[Manner, tuple[int, int]] = {
        "line": (400, 40),
        "packed": (400, 40),
        "choices": (15, 1),
        "thought": (400, 40),
    }
    async with another(harness, shutdown=2) as beside:
        for manner, (number, least) in millions.items():
            before = beside.gateway.watched.memory_info().rss / MEGABYTE
            async with watched(beside) as watch:
                began = time.monotonic()
                asked = drain(beside, manner, max(int(number * scale), least))
                words, _ = await asyncio.gather(asked, many(beside, outcome, max(int(100 * scale), 30), 10))
                seconds = time.monotonic() - began
            grown = watch.peak - before
            outcome.notes.append(f"{manner}: {grown:+.0f} MB in {seconds:.1f} s, /healthz {watch.health * 1000:.0f} ms")
            if grown > 150 or watch.health > STALLED:
                outcome.problems.append(f"{manner}: {grown:.0f} MB more, /healthz took {watch.health:.1f} s")
            if b'"content":"Hi"' not in words or b"spam" in words:
                outcome.problems.append(f"{manner}: the words before it are missing: {words[:300]!r}")
            outcome.counts["cut off"] += 1
        tasks = [asyncio.create_task(drain(beside, manner, 100_000)) for manner in millions]
        await until(lambda: len(harness.upstream.questions) >= len(tasks))
        began = time.monotonic()
        beside.gateway.signal(signal.SIGTERM)
        await asyncio.to_thread(beside.gateway.process.wait, PATIENCE)
        seconds = time.monotonic() - began
        outcome.notes.append(f"ended {seconds:.1f} s after SIGTERM")
        if seconds > 2 + STALLED:
            outcome.problems.append(f"ended only {seconds:.1f} s after SIGTERM")
        await asyncio.gather(*tasks, return_exceptions=True)


async def drain(harness: Harness, manner: Manner, number: int) -> bytes:
    """Ask, and read to the end what comes; how it begins."""
    body = request(number, manner, "chat", True) | {"tools": TOOLS}
    head = b""
    async with harness.session.post(harness.gateway.url + PATHS["chat"], json=body) as reply:
        async for chunk in reply.content.iter_any():
            head = head if len(head) > 10_000 else head + chunk
    return head


# Clients that do not send, and nobody who reads the log.


async def slow_clients(harness: Harness, outcome: Outcome, scale: float) -> None:
    """60 uploads of a byte a second at a gateway that takes 40 requests: they are let go, and others are served."""
    count = max(int(60 * scale), 12)
    most = count * 2 // 3
    async with another(harness, upload=3, concurrency=most) as beside:
        began = time.monotonic()
        async with watched(beside) as watch:
            statuses = await asyncio.gather(*(upload_slowly(beside) for _ in range(count)))
        seconds = time.monotonic() - began
        await many(beside, outcome, max(int(100 * scale), 30), min(most, 10))
    let_go, refused = statuses.count(408), statuses.count(429)
    outcome.counts["cut off"] += let_go + refused
    outcome.notes.append(f"{let_go} let go with 408, {refused} refused, in {seconds:.1f} s")
    if let_go + refused != count or not let_go:
        outcome.problems.append(f"slow uploads ended with {sorted(set(statuses))}")
    if watch.health > STALLED:
        outcome.problems.append(f"/healthz took {watch.health:.1f} s")


async def upload_slowly(harness: Harness) -> int:
    """Send a byte a second, and wait for the status."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(harness.port))
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\n"
    writer.write(head.encode())

    async def trickle() -> None:
        for _ in range(100):
            writer.write(b" ")
            await asyncio.sleep(1)

    task = asyncio.create_task(trickle())
    try:
        line = await asyncio.wait_for(reader.readline(), PATIENCE)
        return int(line.split()[1])
    finally:
        task.cancel()
        writer.close()


async def unread_log(harness: Harness, outcome: Outcome, scale: float) -> None:
    """A full pipe on standard error, and more lines than wait for a reader: requests go on.

    600 lines fill any pipe; 12,000 fill the queue before it too.
    """
    count = max(int(12_000 * scale), 600)
    numbers = iter(range(count))

    async def worker(url: str) -> None:
        for _ in numbers:
            async with harness.session.get(f"{url}/v1/{'x' * 200}") as reply:
                outcome.counts["cut off" if reply.status == 404 else "wrong"] += 1

    async with another(harness, unread=True) as beside:
        async with watched(beside) as watch:
            await asyncio.gather(*(worker(beside.gateway.url) for _ in range(20)))
        await many(beside, outcome, max(int(100 * scale), 30), 10)
        async with harness.session.get(beside.gateway.url + "/metrics") as reply:
            found = re.search(r"^asides_log_lines_dropped(?:_total)? (\S+)", await reply.text(), re.M)
        outcome.notes.append(
            f"{float(found[1]) if found else 0:,.0f} lines dropped, /healthz {watch.health * 1000:.0f} ms"
        )
        began = time.monotonic()
        beside.gateway.signal(signal.SIGTERM)
        await asyncio.to_thread(beside.gateway.process.wait, PATIENCE)
        outcome.notes.append(f"ended {time.monotonic() - began:.1f} s after SIGTERM")
    if watch.health > STALLED:
        outcome.problems.append(f"/healthz took {watch.health:.1f} s")
