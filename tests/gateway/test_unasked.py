"""A faulty upstream that sends an answer twice, late: nobody may be given the answer to another's question."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.gateway.clients import PATHS
from tests.gateway.running import gateway
from tests.waiting import PATIENCE, eventually

LATE = 0.01
"""Seconds after which the second response comes: about when the connection is used again."""
WORKERS = 8


class Repeats:
    """A server that echoes what it is asked, in a whole chat reply, and sends each reply again a little later."""

    def __init__(self) -> None:
        self.url = ""
        self.repeats = True
        self.served: list[set[str]] = []
        """Of each connection: the keys whose questions came on it."""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self) -> Repeats:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(PATIENCE)

    async def _run(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stopping.wait()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        keys: set[str] = set()
        self.served.append(keys)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                found = re.search(rb"content-length: (\d+)", head)
                asked = (
                    json.loads(await reader.readexactly(int(found[1]))) if found else {"messages": [{"content": ""}]}
                )
                words = asked["messages"][-1]["content"]
                keys |= {words[:5]} if words else set()
                message = {"role": "assistant", "content": words}
                body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
                answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
                writer.write(answer + body)
                if self.repeats:
                    self._loop.call_later(LATE, writer.write, answer + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@contextmanager
def before(server: Repeats, **more: Any) -> Iterator[Any]:
    """A gateway before it, with two keys."""
    upstream = {"url": server.url, "name": "faulty", "kind": "openai", **more}
    with gateway({"upstreams": [upstream], "defaults": {"format": "qwen3"}, "keys": ["key-a", "key-b"]}) as running:
        yield running


def ask(url: str, asked: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """What each question, of a key, was answered with."""

    def each(question: tuple[str, str]) -> tuple[str, str]:
        key, words = question
        body = {"model": "m", "messages": [{"role": "user", "content": words}]}
        reply = httpx.post(
            url + PATHS["chat"], json=body, headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE, verify=False
        )
        return words, reply.json()["choices"][0]["message"]["content"] if reply.status_code == 200 else ""

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(each, asked))


def questions(count: int) -> list[tuple[str, str]]:
    """So many, of both keys in turn."""
    keys = ("key-a", "key-b")
    return [(key, f"{key} asks {number}") for number in range(count) for key in keys]


def test_an_answer_that_comes_twice() -> None:
    """It never reaches another key; once it was noticed it reaches nobody, and the operator is told."""
    with Repeats() as server, before(server) as running:
        while not any(record.get("event") == "unasked" for record in running.records):
            for asked, told in ask(running.url, questions(5)):
                assert asked[:5] in told or not told  # of the same key, or an error
        answers = ask(running.url, questions(100))
        assert [answer for _, answer in answers] == [asked for asked, _ in answers]
        assert sum(record.get("event") == "unasked" for record in running.records) == 1
        metrics = httpx.get(running.url + "/metrics", headers={"Authorization": "Bearer key-a"}, verify=False).text
        assert 'asides_upstream_errors_total{reason="unasked",upstream="faulty"}' in metrics


@pytest.mark.parametrize("reuse", ["same_key", "any"])
def test_whose_requests_share_a_connection(reuse: str) -> None:
    """One after the other, by two keys: each has its own unless the configuration lets them share."""
    with Repeats() as server, before(server, reuse=reuse) as running:
        server.repeats = False

        def both_on_one() -> bool:
            for question in questions(3):
                assert ask(running.url, [question]) == [(question[1], question[1])]
            return any(len(keys) == 2 for keys in server.served)

        if reuse == "any":
            eventually(both_on_one, "no connection is shared")
        else:
            assert not both_on_one()
