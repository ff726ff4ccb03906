"""Frames in lockstep: the next one of a stream is sent only when the last has reached the client.

The model server and the clients are in this process. So every frame is a read and a write of its own for the gateway,
however busy the machine is, and its processor time per frame can be compared on one that others use too. Requests that
are answered whole are measured beside them, a few at a time.

    lockstep = Lockstep(runner)                                    # listens at `lockstep.port`
    point = lockstep.frames(target, "chat", "step-150", streams=64, rounds=1)
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Callable
from functools import lru_cache
from typing import cast

import httptools

from benchmarks.gateway import reading
from benchmarks.gateway.load import Client, Point, Reply, judge, processor_seconds
from benchmarks.gateway.processes import Running
from benchmarks.gateway.reading import Dialect
from benchmarks.gateway.script import script
from benchmarks.gateway.upstream import frames, whole

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@lru_cache
def steps(model: str, ids: bool) -> tuple[bytes, ...]:
    """The writes of a reply: each ends with a piece that reaches the client at once."""
    each, end = frames(model, ids)
    found, step = [], b""
    for frame, landing in zip(each, script(model).landings, strict=True):
        step += frame
        if landing is not None:
            found.append(step)
            step = b""
    return (*found, step + end)


class ModelServer(asyncio.Protocol):
    """The server's side of one connection."""

    streaming: dict[str, ModelServer]
    """By the id in the user's message: who streams the reply."""

    def __init__(self, streaming: dict[str, ModelServer]) -> None:
        self.streaming = streaming
        self.sent = 0
        self.waits = False
        """Whether the last step has not reached the client yet."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)
        self._path, self._body = b"", b""

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        path, body = self._path, self._body
        self._path, self._body = b"", b""
        if not path.endswith(b"/chat/completions"):
            self._answer(b'{"error": {"message": "no such path"}}', b"404 Not Found")
            return
        request = json.loads(body)
        if not request.get("stream"):
            self._answer(whole(request["model"]))
            return
        self._steps, self._at = steps(request["model"], bool(request.get("return_token_ids"))), 0
        self.streaming[request["messages"][-1]["content"]] = self
        self._transport.write(HEAD)
        self.send_next()

    def _answer(self, body: bytes, status: bytes = b"200 OK") -> None:
        head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self._transport.write(head % (status, len(body)) + body)

    def send_next(self) -> None:
        """Send the next step, if there is one."""
        if self._at < len(self._steps):
            self.sent, self.waits = time.monotonic_ns(), True
            self._transport.write(self._steps[self._at])
            self._at += 1


class StepClient(Client):
    """A client that lets the server go on with each piece that comes."""

    def __init__(self, port: int, streaming: dict[str, ModelServer], waits: list[int]) -> None:
        super().__init__(port)
        self._streaming = streaming
        self._waits = waits

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        server = self._streaming.get(self._reply.name)
        if server is not None and server.waits:  # one read may hold several chunks
            server.waits = False
            self._waits.append(self._now - server.sent)
            asyncio.get_running_loop().call_soon(server.send_next)


class Lockstep:
    """The model server, and the loads that are put on a gateway before it."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self._streaming: dict[str, ModelServer] = {}
        loop = runner.get_loop()
        self._server = runner.run(
            loop.create_server(lambda: ModelServer(self._streaming), "127.0.0.1", 0, backlog=4096)
        )
        self.port: int = self._server.sockets[0].getsockname()[1]

    def frames(self, target: Running, dialect: Dialect, model: str, streams: int, rounds: int) -> Point:
        """So many streams at once, each for so many replies."""
        waits: list[int] = []
        body = reading.request(dialect, model, "{name}")
        clients: list[Client] = [StepClient(target.port, self._streaming, waits) for _ in range(streams)]
        point = self._runner.run(self._load(target, clients, reading.PATHS[dialect], body, rounds, waits.clear))
        for reply in point.got:
            judge(point, reply, dialect, model, [])
        point.waits = [wait / 1e6 for wait in waits]
        return point

    def requests(self, target: Running, dialect: Dialect, model: str, at_once: int, rounds: int) -> Point:
        """Small requests that are answered whole."""
        body = reading.request(dialect, model, "{name}", stream=False)
        clients = [Client(target.port) for _ in range(at_once)]
        point = self._runner.run(self._load(target, clients, reading.PATHS[dialect], body, rounds, lambda: None))
        for reply in point.got:
            if not reply.problem:
                told = reading.read_whole(dialect, b"".join(data for _, data in reply.arrivals))
                right = told == (script(model).thinking, script(model).answer)
                reply.problem = "" if right else f"wrong: {told}"
            point.right += not reply.problem
            point.complaints += [reply.problem] * bool(reply.problem)
        return point

    async def _load(
        self, target: Running, clients: list[Client], path: str, body: str, rounds: int, begin: Callable[[], None]
    ) -> Point:
        for client in clients:
            await client.connect()
        got: list[Reply] = []

        async def work(number: int, client: Client, rounds: int) -> None:
            for turn in range(rounds):
                name = f"{time.monotonic_ns()}-{number}-{turn}"
                got.append(await client.ask(path, body.replace("{name}", name).encode(), name))
                self._streaming.pop(name, None)

        # What is done only once, and connecting, is not measured.
        await asyncio.gather(*(work(number, client, 1) for number, client in enumerate(clients)))
        got.clear()
        begin()
        gc.collect()
        gc.disable()
        before, began = processor_seconds(target.pid), time.monotonic()
        await asyncio.gather(*(work(number, client, rounds) for number, client in enumerate(clients)))
        point = Point(time.monotonic() - began, len(got), processor=processor_seconds(target.pid) - before)
        gc.enable()
        for client in clients:
            client.close()
        point.got = got
        return point

    def close(self) -> None:
        """Stop listening."""
        self._server.close()
