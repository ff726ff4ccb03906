"""The scripted model server: the frames of a reply are made once and sent again and again, each in a write of its own.

`python -m benchmarks.gateway.upstream PORT`. A paced reply remembers when each of its pieces was sent, under the id of
the user's message; `POST /sent` with a list of ids gives these times (the monotonic clock's nanoseconds) and forgets.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import lru_cache
from typing import Any, cast

import httptools
import uvloop

from benchmarks.gateway.script import IDS, INTERVAL, script

SENT: dict[str, list[int]] = {}
GOLDEN = 0.618034
"""Streams that begin together are spread over an interval, as those of a real server are."""


def chunked(payload: str) -> bytes:
    """An event as a chunk of HTTP."""
    event = f"data: {payload}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(event), event)


@lru_cache
def frames(model: str, ids: bool = False) -> tuple[list[bytes], bytes]:
    """The frame of each piece, with the opening one before the first; and what ends the stream. `ids`: each has its id
    besides."""

    def frame(delta: dict[str, str], reason: str | None, *tokens: int) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        head = {"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": model}
        return chunked(json.dumps({**head, "choices": [{**choice, "token_ids": tokens} if tokens else choice]}))

    pieces = script(model).pieces
    each = [frame({"content": piece}, None, *((IDS[piece],) if ids else ())) for piece in pieces]
    each[0] = frame({"role": "assistant", "content": ""}, None) + each[0]
    return each, frame({}, "stop") + chunked("[DONE]") + b"0\r\n\r\n"


@lru_cache
def whole(model: str) -> bytes:
    """The same as one body."""
    message = {"role": "assistant", "content": "".join(script(model).pieces)}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 300, "total_tokens": 303}
    head = {"id": "chatcmpl-0", "object": "chat.completion", "created": 1_700_000_000, "model": model}
    return json.dumps({**head, "choices": [choice], "usage": usage}).encode()


class Connection(asyncio.Protocol):
    """One client's connection."""

    count = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)
        self._free = asyncio.Event()
        self._free.set()
        self._work: asyncio.Task[None] | None = None

    def connection_lost(self, error: Exception | None) -> None:
        if self._work is not None:
            self._work.cancel()

    def pause_writing(self) -> None:
        self._free.clear()

    def resume_writing(self) -> None:
        self._free.set()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._path, self._body = b"", b""

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._work = asyncio.ensure_future(self._answer(self._path.decode(), self._body))

    def _json(self, body: bytes, status: str = "200 OK") -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)

    async def _answer(self, path: str, body: bytes) -> None:
        if path == "/sent":
            return self._json(json.dumps([SENT.pop(name, []) for name in json.loads(body)]).encode())
        if path != "/v1/chat/completions":
            return self._json(b'{"error": {"message": "no such path"}}', "404 Not Found")
        request: dict[str, Any] = json.loads(body)
        model = request["model"]
        if not request.get("stream"):
            return self._json(whole(model))
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        each, end = frames(model)
        said = request["messages"][-1]["content"]
        if script(model).pace == "idle":
            self._transport.write(b"".join(each[:6]))
            await asyncio.Event().wait()
        elif script(model).pace == "paced":
            await self._paced(each, SENT.setdefault(str(said), []))
        else:
            for frame in each:
                await asyncio.sleep(0)  # a turn of the loop for each, or uvloop would join them into one write
                await self._free.wait()
                self._transport.write(frame)
        self._transport.write(end)

    async def _paced(self, each: list[bytes], times: list[int]) -> None:
        Connection.count += 1
        due = time.monotonic() + INTERVAL * (1 + Connection.count * GOLDEN % 1)
        for frame in each:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due += INTERVAL
            times.append(time.monotonic_ns())
            self._transport.write(frame)


async def serve(port: int) -> None:
    """Listen until the process ends."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
