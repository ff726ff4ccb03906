"""What a request leaves behind when it is over: nothing that only the garbage collector would find.

The collector hardly runs in a gateway (`collection.THRESHOLDS`), and a cycle that holds a request of some megabytes is
as bad as a leak. So however a request ends, all of it goes with its last reference.
"""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from asides._config.schema import Config, Limits, ModelSettings, UpstreamSettings
from asides._gateway.app import Gateway
from asides._gateway.http_client import pool
from asides._gateway.protocol import limited
from asides._gateway.server import bind
from tests.gateway.clients import FUNCTION, PATHS
from tests.gateway.sockets import Client, connected
from tests.gateway.upstream import (
    JSON,
    SSE,
    Close,
    Hang,
    Pause,
    Reply,
    Reset,
    Step,
    Upstream,
    frame,
    json_reply,
    upstream,
)
from tests.waiting import PATIENCE, eventually

WORDS = [frame("<think>so</think>"), frame("It is 4.")]
LAST = [frame("", reason="stop"), b"data: [DONE]\n\n"]
CALL = '<tool_call>\n{"name": "find", "arguments": {"query": "x"}}\n</tool_call>'


class Serving:
    """A gateway in this process, so that its garbage can be looked at."""

    def __init__(self, server: Upstream) -> None:
        self.upstream = server
        config = Config(
            upstreams=(UpstreamSettings(url=server.url, kind="openai"),),
            models={"untouched": ModelSettings(format="none")},
            defaults=ModelSettings(format="qwen3"),
            limits=Limits(body=3_000_000, idle=0.3, keep_alive=0.05),
        )
        self.gateway = Gateway(config)
        listening = bind("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                self.gateway, http=limited(65536), ws="none", lifespan="on", log_config=None, access_log=False
            )
        )
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._server.serve(sockets=[listening])), daemon=True
        )

    def open(self) -> None:
        """Begin to serve."""
        self._thread.start()
        eventually(lambda: self._server.started, "it did not start")

    def close(self) -> None:
        """End."""
        self._server.should_exit = True
        self._thread.join(PATIENCE)

    def rest(self) -> None:
        """Wait until nothing of a request is left."""
        state, requests = self.gateway._state, self.gateway._page.requests._registry
        eventually(lambda: not self.gateway._open and not self._server.server_state.tasks, "a request is still open")
        eventually(lambda: not self._server.server_state.connections, "a client's connection is still open")
        eventually(lambda: not requests.running and not requests.tasks, "a request is still being written down")
        clients = [each._client for each in state.upstreams if hasattr(each, "_client")]
        eventually(lambda: not any(client._open for client in clients), "a connection to the upstream is still open")


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    """One for all of these."""
    with pytest.MonkeyPatch.context() as patch, upstream(models=("m", "untouched")) as server:
        patch.setattr(pool, "KEEP_IDLE", 0.05)  # each test waits until no connection is left
        found = Serving(server)
        found.open()
        try:
            yield found
        finally:
            found.close()


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the collector, which looks only at what is made from now on: all that other tests left takes seconds."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def is_ours(thing: object) -> bool:
    """Whether something is made by the gateway, or a frame of it."""
    if isinstance(thing, types.FrameType):
        return "asides" in thing.f_code.co_filename and "tests" not in thing.f_code.co_filename
    if isinstance(thing, types.FunctionType):
        return thing.__module__.startswith("asides")
    return type(thing).__module__.startswith("asides")


def found_garbage() -> list[str]:
    """What of ours the collector finds, in words."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    found = sorted({_shown(thing) for thing in gc.garbage if is_ours(thing)})
    gc.garbage.clear()
    gc.collect()
    return found


def _shown(thing: object) -> str:
    if isinstance(thing, types.FrameType):
        return f"frame of {thing.f_code.co_qualname}" if hasattr(thing.f_code, "co_qualname") else str(thing.f_code)
    if isinstance(thing, types.FunctionType):
        return f"function {thing.__qualname__}"
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def body(stream: bool, **more: Any) -> dict[str, Any]:
    """A question."""
    return {"model": "m", "stream": stream, "messages": [{"role": "user", "content": "2+2?" * 100}], **more}


def told(serving: Serving, path: str, asked: Any, **headers: str) -> bytes:
    """All that a client is told."""
    with connected(serving.url) as client:
        client.post(path, asked, connection="close", **headers)
        return client.read_rest()


def replies(*steps: Step, status: int = 200, headers: dict[str, str] | None = None, **more: Any) -> Reply:
    return Reply(steps, status, headers or SSE, **more)


STREAMS: dict[str, Reply] = {
    "whole stream": replies(*WORDS, *LAST),
    "cut": replies(*WORDS, Close()),
    "reset": replies(*WORDS, Reset()),
    "ended early": replies(*WORDS),
    "silent": replies(*WORDS, Hang()),
    "no frame": replies(*WORDS, b"data: {broken\n\n", *LAST),
    "a frame that fails": replies(*WORDS, b'data: {"choices": [{"index": 0, "delta": {"content": 4}}]}\n\n', *LAST),
    "an error in the stream": replies(*WORDS, b'data: {"error": {"message": "no", "code": 500}}\n\n'),
    "a web page": replies(b"<html>login</html>", headers={"Content-Type": "text/html"}),
    "no answer": replies(before=[Close()]),
    "silent from the start": replies(before=[Hang()]),
    "400": json_reply({"error": {"message": "no"}}, 400),
    "500": json_reply({"error": {"message": "no"}}, 500),
    "500 cut": replies(b'{"error"', Close(), status=500, headers=JSON),
    "moved": json_reply({}, 307, Location="http://127.0.0.1:9/"),
    "whole reply": json_reply({"choices": [{"index": 0, "message": {"content": "hm"}, "finish_reason": "stop"}]}),
    "whole reply cut": replies(b'{"choices": [', Close(), headers=JSON),
    "whole reply that is none": json_reply([1]),
    "too large": replies(b"x" * 3_100_000, headers=JSON),
    "a call": replies(frame("<think>so</think>"), frame(CALL), *LAST),
    "compressed and cut": replies(b"\x1f\x8b\x08", headers={**SSE, "Content-Encoding": "gzip"}),
    "unasked": Reply([b'{"choices": []}'], headers={**JSON, "Content-Length": "2"}, whole=True),
}
"""How an upstream may end."""


@pytest.mark.parametrize("path", ["chat", "responses", "messages", "ollama_chat"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("inspected", [False, True], ids=["", "inspected"])
def test_nothing_is_left_for_the_collector(serving: Serving, path: Any, stream: bool, inspected: bool) -> None:
    """However the upstream ends its reply."""
    headers = {"x_asides_inspect": "1", "authorization": "Bearer mine"} if inspected else {}
    tools = {"tools": [{"type": "function", "function": FUNCTION}]} if path == "chat" else {}
    asked = body(stream, **tools)
    if path == "responses":
        asked["input"] = asked.pop("messages")
    if path == "messages":
        asked["max_tokens"] = 99
    found: dict[str, list[str]] = {}
    with uncollected():
        for name, reply in STREAMS.items():
            serving.upstream.send(reply)
            told(serving, PATHS[path], asked, **headers)
            serving.rest()
            if garbage := found_garbage():
                found[name] = garbage
    assert not found, json.dumps(found, indent=1)


def leave(serving: Serving, steps: list[Step], act: Callable[[Client], object], model: str = "m") -> None:
    serving.upstream.send(replies(*steps))
    with connected(serving.url) as client:
        client.post(PATHS["chat"], {**body(True), "model": model})
        act(client)


OTHER_ENDS: dict[str, Callable[[Serving], object]] = {
    "client gone in the stream": lambda serving: leave(serving, [*WORDS, Hang()], lambda c: c.read_until(b"It is")),
    "client gone before the reply": lambda serving: leave(
        serving, [Hang()], lambda client: eventually(lambda: serving.upstream.questions, "nothing was asked")
    ),
    "client gone in its body": lambda serving: _half(serving),
    "no JSON": lambda serving: told(serving, PATHS["chat"], b"{"),
    "no body": lambda serving: told(serving, PATHS["chat"], b""),
    "a body that is too large": lambda serving: told(serving, PATHS["chat"], b"x" * 3_000_001),
    "a field of the wrong type": lambda serving: told(serving, PATHS["chat"], body(True, temperature="x")),
    "no such path": lambda serving: told(serving, "/nothing", b"{}"),
    "passed": lambda serving: _passed(serving, [*WORDS, *LAST]),
    "passed and cut": lambda serving: _passed(serving, [*WORDS, Close()]),
    "passed and silent": lambda serving: _passed(serving, [*WORDS, Hang()]),
    "passed, client gone": lambda serving: leave(
        serving, [*WORDS, Hang()], lambda client: client.read_until(b"It is"), "untouched"
    ),
    "passed on": lambda serving: told(serving, "/v1/embeddings", {"model": "m", "input": "x"}),
    "a slow stream": lambda serving: leave(
        serving, [*WORDS, Pause(0.15), *LAST], lambda client: client.read_until(b"0\r\n\r\n")
    ),
    "a response that is not there": lambda serving: told(
        serving, PATHS["responses"], {"model": "m", "input": "x", "previous_response_id": "resp_x"}
    ),
    "a budget": lambda serving: _budget(serving),
}


def _half(serving: Serving) -> None:
    with connected(serving.url) as client:
        client.socket.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
        eventually(lambda: serving.gateway._open, "the request was not seen")


def _passed(serving: Serving, steps: list[Step]) -> None:
    serving.upstream.send(replies(*steps))
    told(serving, PATHS["chat"], {**body(True), "model": "untouched"})


def _budget(serving: Serving) -> None:
    serving.upstream.send(replies(frame("<think>"), *[frame("so and so ")] * 50, Hang()))
    told(serving, PATHS["chat"], body(True, thinking_budget=5))


@pytest.mark.parametrize("name", OTHER_ENDS)
def test_nothing_is_left_of_other_ends(serving: Serving, name: str) -> None:
    """However the client ends its request, or we do."""
    with uncollected():
        serving.upstream.asked.clear()
        OTHER_ENDS[name](serving)
        serving.rest()
        assert not found_garbage()
