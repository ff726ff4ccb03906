"""The load generator: keeps requests in flight, notes when bytes arrive, reads them once the clock has stopped."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httptools
import psutil

from benchmarks.gateway import reading
from benchmarks.gateway.processes import KEY
from benchmarks.gateway.reading import Dialect
from benchmarks.gateway.script import script

PATIENCE = 60.0


@dataclass
class Reply:
    """One reply as it came."""

    name: str
    began: int
    status: int = 0
    problem: str = ""
    arrivals: list[tuple[int, bytes]] = field(default_factory=list)
    """When each piece of the body came, by the monotonic clock's nanoseconds."""
    ended: int = 0


@dataclass
class Point:
    """What one load told."""

    seconds: float = 0.0
    replies: int = 0
    right: int = 0
    frames: int = 0
    reads: int = 0
    """In how many pieces they came: fewer than frames where something was late and had to carry several at once."""
    processor: float = 0.0
    """Seconds that the gateway's process worked."""
    waits: list[float] = field(default_factory=list)
    """Milliseconds from when the upstream sent a piece until its last character was here."""
    first: list[float] = field(default_factory=list)
    """Milliseconds until the first byte of a body."""
    complaints: list[str] = field(default_factory=list)
    got: list[Reply] = field(default_factory=list)
    """The replies, to be read once the clock has stopped."""

    @property
    def per_processor_second(self) -> float:
        """Frames that one second of the gateway's processor carries."""
        return self.frames / self.processor if self.processor else 0.0


class Client(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._transport: asyncio.Transport | None = None
        self._done: asyncio.Future[None] | None = None
        self._reply = Reply("", 0)

    @property
    def has_begun(self) -> bool:
        """Whether something of the reply has come."""
        return bool(self._reply.arrivals)

    async def connect(self) -> None:
        """Open the connection."""
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._port)

    def close(self) -> None:
        """Close it."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._finish(f"the connection was closed: {error}")

    def data_received(self, data: bytes) -> None:
        self._now = time.monotonic_ns()
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._reply.arrivals.append((self._now, body))

    def on_message_complete(self) -> None:
        self._reply.status = self._parser.get_status_code()
        self._finish("" if self._reply.status == 200 else f"status {self._reply.status}")

    def _finish(self, problem: str) -> None:
        if self._done is not None and not self._done.done():
            self._reply.problem = problem
            self._reply.ended = time.monotonic_ns()
            self._done.set_result(None)

    async def ask(self, path: str, body: bytes, name: str = "") -> Reply:
        """Send a request and wait for the end of its reply."""
        self._done = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._reply = Reply(name, time.monotonic_ns())
        if self._transport is None:
            await self.connect()
        assert self._transport is not None
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/json\r\n"
        head += f"Authorization: Bearer {KEY}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)
        try:
            async with asyncio.timeout(PATIENCE):
                await self._done
        except TimeoutError:
            self._reply.problem = f"no end after {PATIENCE:g} s"
            self.close()
        return self._reply


def processor_seconds(pid: int) -> float:
    """How long a process and its children have worked: by the scheduler where it counts nanoseconds."""
    root = psutil.Process(pid)
    family = (root, *root.children(recursive=True))
    try:
        tasks = [task for each in family for task in Path(f"/proc/{each.pid}/task").iterdir()]
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    except (OSError, IndexError):
        return sum(sum(each.cpu_times()[:2]) for each in family)


async def measure(port: int, pid: int, upstream: int, dialect: Dialect, model: str, streams: int, rounds: int) -> Point:
    """So many streams at once, each asking so many times; every reply is read and compared afterwards."""
    clients = [Client(port) for _ in range(streams)]
    for client in clients:
        await client.connect()  # one by one: many at once would wait for a place in the queue of the listener
    body, path = reading.request(dialect, model, "{name}"), reading.PATHS[dialect]
    replies: list[Reply] = []

    async def work(number: int, client: Client) -> None:
        for turn in range(rounds):
            name = f"{time.monotonic_ns()}-{number}-{turn}"
            replies.append(await client.ask(path, body.replace("{name}", name).encode(), name))

    gc.collect()
    gc.disable()
    before, began = processor_seconds(pid), time.monotonic_ns()
    await asyncio.gather(*(work(number, client) for number, client in enumerate(clients)))
    seconds = (max(reply.ended for reply in replies) - began) / 1e9
    point = Point(seconds, len(replies), processor=processor_seconds(pid) - before)
    gc.enable()
    for client in clients:
        client.close()
    sent: dict[str, list[int]] = {}
    if script(model).pace == "paced":
        times = await asked(upstream, "/sent", [reply.name for reply in replies])
        sent = dict(zip((reply.name for reply in replies), times, strict=True))
    for reply in replies:
        judge(point, reply, dialect, model, sent.get(reply.name, []))
    return point


async def asked(port: int, path: str, body: Any) -> Any:
    """A small question to the upstream."""
    client = Client(port)
    reply = await client.ask(path, json.dumps(body).encode())
    client.close()
    return json.loads(b"".join(data for _, data in reply.arrivals))


def judge(point: Point, reply: Reply, dialect: Dialect, model: str, sent: list[int]) -> None:
    """Add a reply to its point."""
    if reply.problem or not reply.arrivals:
        point.complaints.append(reply.problem or "no body")
        return
    point.first.append((reply.arrivals[0][0] - reply.began) / 1e6)
    plan = script(model)
    try:
        told = reading.read(dialect, reply.arrivals)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        point.complaints.append(f"unreadable: {error!r}")
        return
    # The upstream's frames are what is carried, however a dialect cuts them.
    point.frames += len(plan.pieces) + 1
    point.reads += len({when for when, _ in reply.arrivals})
    if (told.thinking, told.answer, told.whole) != (plan.thinking, plan.answer, True):
        point.complaints.append(f"wrong: {told.thinking[-40:]!r}, {told.answer[-40:]!r}, whole {told.whole}")
        return
    point.right += 1
    at = 0
    for landing, when in zip(plan.landings, sent, strict=False):
        if landing is None:
            continue
        while told.growth[at][1 if landing.thinking else 2] < landing.length:
            at += 1
        point.waits.append((told.growth[at][0] - when) / 1e6)


async def idle(port: int, pid: int, dialect: Dialect, streams: int) -> float:
    """Kilobytes that each of so many streams takes of the gateway's memory while nothing comes."""
    process = psutil.Process(pid)
    before = process.memory_info().rss
    clients = [Client(port) for _ in range(streams)]
    tasks = []
    for client in clients:
        await client.connect()
        body = reading.request(dialect, "idle-9", "wait").encode()
        tasks.append(asyncio.create_task(client.ask(reading.PATHS[dialect], body)))
    while not all(client.has_begun for client in clients):
        await asyncio.sleep(0.05)
    held: int = process.memory_info().rss - before
    for client in clients:
        client.close()
    await asyncio.gather(*tasks)
    return held / streams / 1000
