"""The parts of the web server that the gateway uses beyond what it promises.

A release that no longer calls one of these would silently lift a limit, so it must fail here, loudly.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import Server

from asides._gateway.http_request import HttpRequest
from asides._gateway.protocol import (
    Connection,
    begin_chunks,
    cycle_of,
    end_chunks,
    limited,
    on_leave,
    pusher,
    respond,
    whole_body,
)
from tests.gateway.sockets import connected
from tests.waiting import PATIENCE, eventually

HOOKS = (
    *("connection_made", "connection_lost", "data_received", "on_message_begin", "on_url", "on_header"),
    *("on_headers_complete", "on_body", "on_message_complete"),
)


def test_every_method_that_is_replaced_is_there() -> None:
    """What `Connection` overrides, the server's own class still has, with the same arguments."""
    for name, own in vars(Connection).items():
        if inspect.isfunction(own) and not name.startswith("_"):
            theirs = getattr(HttpToolsProtocol, name, None)
            assert theirs is not None, f"uvicorn's connection has no {name} any more"
            assert list(inspect.signature(own).parameters) == list(inspect.signature(theirs).parameters), name
    for name in ("handle_exit", "startup"):
        assert callable(getattr(Server, name, None)), f"uvicorn's server has no {name} any more"


def test_every_hook_is_called() -> None:
    """A request with a body goes through each of them, and through the fields that they read."""
    called: Counter[str] = Counter()

    def counting(name: str) -> Any:
        real = getattr(Connection, name)

        def hook(self: Connection, *arguments: Any) -> Any:
            called[name] += 1
            return real(self, *arguments)

        return hook

    counted = type("Counted", (Connection,), {name: counting(name) for name in HOOKS})

    async def application(scope: Any, receive: Any, send: Any) -> None:
        assert (whole_body(cycle_of(send)) or (await receive())["body"]) == b"hello"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hi"})

    with serving(application, counted) as url:
        assert httpx.post(url, content=b"hello", verify=False).text == "hi"
        eventually(lambda: called["connection_lost"], "the end of the connection was not told")
    assert [name for name in HOOKS if not called[name]] == []
    assert "response_complete" in inspect.getsource(RequestResponseCycle)


@contextmanager
def serving(application: Any, protocol: type[HttpToolsProtocol] = Connection) -> Iterator[str]:
    """The address of a server with this application."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application, http=protocol, lifespan="off", log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def test_what_is_pushed_is_what_is_sent() -> None:
    """Pushed and sent pieces are the same chunks, in their order; before the head and in other answers nothing is."""
    pushed: list[bool] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        pushed.append(pusher(cycle_of(send))(b"too early"))
        length = [(b"content-length", b"6")] if scope["path"] == "/length" else []
        await send({"type": "http.response.start", "status": 200, "headers": length})
        push = pusher(cycle_of(send))
        for number, piece in enumerate((b"ab", b"c" * 20, b"def")[: 2 if length else 3]):
            pushed.append(push(piece) if not number or number == 2 else False)
            if not pushed[-1]:
                body = piece[:4] if length and number else piece
                await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        pushed.append(push(b"too late"))

    with serving(application) as url:
        with connected(url) as client:
            client.socket.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            body = client.read_rest().partition(b"\r\n\r\n")[2]
        assert body == b"2\r\nab\r\n14\r\n" + b"c" * 20 + b"\r\n3\r\ndef\r\n0\r\n\r\n"
        assert pushed == [False, True, False, True, False]
        pushed.clear()
        assert httpx.get(url + "length", verify=False).text == "abcccc"
        assert not any(pushed)


def test_a_whole_answer_is_one_write() -> None:
    """Head and body go out together, the same bytes as apart; and the connection is closed where it shall be."""
    written: list[bytes] = []

    class Counting(Connection):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            real = transport

            class Spy:
                def __getattr__(self, name: str) -> Any:
                    return getattr(real, name)

                def write(self, data: bytes) -> None:
                    written.append(data)
                    real.write(data)

                def writelines(self, parts: list[bytes]) -> None:
                    written.append(b"".join(parts))
                    real.writelines(parts)

            self.transport = Spy()  # type: ignore[assignment]

    async def application(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"2"), *([(b"connection", b"close")] if scope["query_string"] else [])]
        if scope["path"] == "/at_once":
            with pytest.raises(ValueError, match="no header may"):
                respond(cycle_of(send), 200, [(b"x-a", b"1\r\nx-b: 2")], b"hi")
            assert respond(cycle_of(send), 200, headers, b"hi")
        else:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"hi"})

    with serving(application, Counting) as url:
        found = {}
        for path in (b"/at_once", b"/apart"):
            for closing, target in ((b"Connection: close\r\n", b""), (b"", b""), (b"", b"?ours")):
                written.clear()
                with connected(url) as client:
                    request = b"GET " + path + target + b" HTTP/1.1\r\nHost: x\r\n"
                    client.socket.sendall(request + closing + b"\r\n")
                    if not closing and not target:  # the connection can be used again
                        client.read_until(b"\r\n\r\nhi")
                        client.socket.sendall(request + b"Connection: close\r\n\r\n")
                    whole = client.read_rest()
                date = re.compile(rb"date: [^\r]*")
                found[path, closing, target] = (date.sub(b"", whole), len(written))
    for path, closing, target in found:
        at_once, apart = found[b"/at_once", closing, target], found[b"/apart", closing, target]
        assert at_once[0] == apart[0]
        assert (at_once[1], apart[1]) == ((1, 2) if closing or target else (2, 4)), path


def test_a_stream_past_asgi_is_the_same_stream() -> None:
    """Head, chunks and end give the same bytes as by ASGI; the connection is used again, or closed, as there."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        cycle, last = cycle_of(send), scope["query_string"]
        headers = [(b"content-type", b"text/event-stream"), (b"x-request-id", b"1")]
        if scope["path"] == "/past":
            with pytest.raises(ValueError, match="no header may"):
                begin_chunks(cycle, 200, [(b"x-a", b"1\r\nx-b: 2")])
            assert begin_chunks(cycle, 200, headers)
            assert pusher(cycle)(b"ab")
            assert end_chunks(cycle, last)
            assert not end_chunks(cycle, b"too late")
        else:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"ab", "more_body": True})
            await send({"type": "http.response.body", "body": last})

    with serving(application) as url:
        found = {}
        for path in (b"/past", b"/asgi"):
            for version, last in ((b"1.1", b"?cd"), (b"1.1", b""), (b"1.0", b"?cd")):
                with connected(url) as client:
                    request = b"GET " + path + last + b" HTTP/" + version + b"\r\nHost: x\r\n"
                    if version == b"1.1":
                        client.socket.sendall(request + b"\r\n")
                        client.read_until(b"0\r\n\r\n")
                    client.socket.sendall(request + b"Connection: close\r\n\r\n")
                    found[path, version, last] = re.sub(rb"date: [^\r]*", b"", client.read_rest())
    for path, version, last in found:
        assert sorted(found[path, version, last].split(b"\r\n")) == sorted(
            found[b"/asgi", version, last].split(b"\r\n")
        )
        assert found[path, version, last].count(b"2\r\nab\r\n") == (2 if version == b"1.1" else 1)


def test_a_slow_client_is_not_pushed_to() -> None:
    """Once its buffer is full: then `send` waits until it has read."""
    sent = threading.Event()
    pushed: list[bool] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        push = pusher(cycle_of(send))
        while not pushed or pushed[-1]:
            pushed.append(push(b"x" * 100_000))
        sent.set()
        await send({"type": "http.response.body", "body": b"the end"})

    with serving(application) as url, connected(url, buffer=4096) as client:
        client.socket.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert sent.wait(PATIENCE)
        whole = client.read_rest()
    assert whole.count(b"x" * 100_000) == len(pushed) - 1 < 1000
    assert whole.endswith(b"the end\r\n0\r\n\r\n")


@pytest.mark.parametrize("size", [0, 10_000_000], ids=["no body", "a large body"])
def test_who_leaves_is_noticed(size: int) -> None:
    """At once, also behind a body at which the server had stopped reading; who stays to the end has not left."""
    asked, left = threading.Event(), threading.Event()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        stop = asyncio.Event()

        def leave() -> None:
            left.set()
            stop.set()

        on_leave(cycle_of(send), leave)
        asked.set()
        if scope["path"] == "/wait":
            await stop.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hi"})

    with serving(application) as url:
        assert httpx.post(url, content=b"x" * size, verify=False).text == "hi"
        asked.clear()
        with connected(url) as client:
            client.post("/wait", b"x" * size)
            assert asked.wait(PATIENCE)
            assert not left.is_set()
        assert left.wait(PATIENCE)


def test_who_has_left_already_is_noticed() -> None:
    """A client that left before anybody could be told: the call is made at once."""
    called: list[str] = []
    flow = SimpleNamespace(resume_reading=lambda: called.append("reads on"))
    on_leave(cast(Any, SimpleNamespace(flow=flow, disconnected=True)), lambda: called.append("left"))
    assert called == ["reads on", "left"]


@pytest.mark.parametrize("path", ["whole", "stream"])
def test_an_answer_to_a_client_that_reads_slowly(path: str) -> None:
    """Waits till more can be written, by ASGI, and is the same."""
    order: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        http, flow = HttpRequest(scope, receive, send), cycle_of(send).flow

        def client_reads_on() -> None:
            order.append("the client reads on")
            flow.resume_writing()

        flow.pause_writing()
        asyncio.get_running_loop().call_later(0.02, client_reads_on)
        if scope["path"] == "/whole":
            await http.answer(200, b"ab", "text/plain")
        else:
            await http.begin_stream([(b"content-type", b"text/plain")])
            await http.write(b"a")
            await http.end(b"b")
        order.append("all is written")

    with serving(application) as url:
        answer = httpx.get(url + path, verify=False)
    assert (answer.status_code, answer.text, answer.headers["content-type"]) == (200, "ab", "text/plain")
    assert "x-request-id" in answer.headers
    assert order == ["the client reads on", "all is written"]


def test_a_head_that_is_too_large_is_refused_once() -> None:
    """Whatever comes behind it is not read, with it or after it."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("nothing is to be served")

    request = b"GET / HTTP/1.1\r\nhost: x\r\nx: %b\r\n\r\n" % (b"y" * 300)
    with serving(application, limited(100)) as url, connected(url) as client:
        client.socket.sendall(request * 2)
        answer = client.read_rest()
    assert answer.count(b"HTTP/1.1") == 1
    assert answer.startswith(b"HTTP/1.1 431 ")
    refused = object.__new__(Connection)
    refused._refused = True
    refused.data_received(request)  # it has no parser that could read it
