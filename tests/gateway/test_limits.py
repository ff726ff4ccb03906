"""What the gateway bears at once, and the size of what it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import openai
import pytest
import uvicorn
from uvicorn.server import ServerState

from asides._gateway import protocol
from tests.gateway.clients import DIALECTS, PATHS, Dialect, ask, body_of, get, post
from tests.gateway.servers import Servers, serving
from tests.gateway.sockets import connected
from tests.gateway.upstream import Hang, Reply
from tests.waiting import PATIENCE, eventually

MOST = 3


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """A gateway that bears little."""
    limits = {"concurrency": MOST, "header": 8192, "held": 1000}
    with serving(limits=limits, models={"waiting": {"format": "qwen3", "start": "undecided"}}) as found:
        yield found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_too_many_at_once(servers: Servers, dialect: Dialect) -> None:
    """One request more than the limit is a 429 that says when to try again; when one has left there is room."""
    servers.upstream.send(Reply(before=[Hang()]))
    with ExitStack() as stack:
        for _ in range(MOST):
            stack.enter_context(connected(servers.gateway.url)).post(PATHS["chat"], body_of("chat", stream=True))
        eventually(lambda: len(servers.upstream.questions) == MOST, "they were not all asked")
        reply = post(servers.gateway.url, PATHS[dialect], body_of(dialect))
        assert reply.status_code == 429
        assert int(reply.headers["retry-after"]) >= 1
        assert reply.json()["error"]
        assert get(servers.gateway.url, "/healthz").status_code == 200
    servers.upstream.say("Room.")
    eventually(lambda: _has_room(servers), "there was no room again")


def _has_room(servers: Servers) -> bool:
    """Whether all have left, and a request is taken."""
    nobody = get(servers.gateway.url, "/healthz").json()["open"] == 0
    return nobody and post(servers.gateway.url, PATHS["chat"], body_of("chat")).status_code == 200


def test_the_sdk_tries_again(servers: Servers) -> None:
    """OpenAI's SDK waits as it is told and then succeeds, without the caller noticing."""
    servers.upstream.send(Reply(before=[Hang()]))
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(servers.gateway.url)) for _ in range(MOST)]
        for client in clients:
            client.post(PATHS["chat"], body_of("chat", stream=True))
        eventually(lambda: len(servers.upstream.questions) == MOST, "they were not all asked")
        servers.upstream.say("Room.")
        with openai.OpenAI(base_url=servers.gateway.url + "/v1", api_key="x", max_retries=4) as sdk:
            assert post(servers.gateway.url, PATHS["chat"], body_of("chat")).status_code == 429
            for client in clients:
                client.leave()
            reply = sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
    assert reply.choices[0].message.content == "Room."


def test_a_head_that_is_too_large(servers: Servers) -> None:
    """Headers beyond the limit are refused, in one piece or in many, and the next request works."""
    eventually(lambda: _has_room(servers), "there was no room")
    for pieces in (1, 50):
        with connected(servers.gateway.url) as client:
            client.socket.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n")
            try:
                for number in range(pieces):
                    client.socket.sendall(f"X-Large-{number}: {'x' * (20_000 // pieces)}\r\n".encode())
                client.socket.sendall(b"Connection: close\r\nContent-Length: 2\r\n\r\n{}")
            except (BrokenPipeError, ConnectionResetError):
                pass  # it may hang up first
            read = client.read_rest()
            assert read == b"" or read.startswith(b"HTTP/1.1 431")
    assert ask("chat", servers.gateway.url).text == "It is 4."


def test_every_byte_of_a_head_counts(servers: Servers) -> None:
    """A thousand headers of one letter each are more than their letters."""
    eventually(lambda: _has_room(servers), "there was no room")
    with connected(servers.gateway.url) as client:
        client.socket.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"a:b\r\n" * 3000 + b"\r\n")
        assert client.read_rest().startswith(b"HTTP/1.1 431")


CHUNKED = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("what", ["a trailer", "many trailers", "a chunk's extension"])
def test_what_stands_around_a_body_is_bounded(servers: Servers, what: str) -> None:
    """Trailers and extensions without an end are refused as a head is, and not held until then."""
    eventually(lambda: _has_room(servers), "there was no room")
    begin, more = {
        "a trailer": (b"2\r\n{}\r\n0\r\nX-Long: ", b"x" * 1000),
        "many trailers": (b"2\r\n{}\r\n0\r\n", b"x-name: y\r\n" * 100),
        "a chunk's extension": (b"2;long=", b"x" * 1000),
    }[what]
    with connected(servers.gateway.url) as client:
        client.socket.sendall(CHUNKED + begin)
        try:
            for _ in range(200):
                client.socket.sendall(more)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it hangs up before all has come
        else:
            client.socket.settimeout(5)
        read = client.read_rest()
        assert read == b"" or read.startswith(b"HTTP/1.1 431")
    assert ask("chat", servers.gateway.url).text == "It is 4."


def test_what_is_held_is_bounded(servers: Servers) -> None:
    """A stream that waits for its start gives up at the limit: what was held becomes text and goes on."""
    eventually(lambda: _has_room(servers), "there was no room")
    words = "no marker here, " * 500
    servers.upstream.say(words, size=50)
    seen = ask("chat", servers.gateway.url, model="waiting", stream=True)
    assert (seen.thinking, seen.text) == ("", words)


def test_it_still_works(servers: Servers) -> None:
    """After all that the gateway is as it was."""
    servers.upstream.say("<think>A</think>B")
    eventually(lambda: _has_room(servers), "there was no room")
    seen = ask("messages", servers.gateway.url, stream=True)
    assert (seen.thinking, seen.text) == ("A", "B")


def test_every_head_is_bounded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that does not come to its end is not waited for, be it the first of its connection or a later one."""
    monkeypatch.setattr(protocol, "SECONDS_FOR_HEAD", 0.2)

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def talk() -> None:
        config = uvicorn.Config(answer, log_config=None)
        config.load()
        made = partial(protocol.limited(65_536), config=config, server_state=ServerState(), app_state={})
        server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
        for before in (0, 2):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            for _ in range(before):
                writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await reader.readuntil(b"ok")
            writer.write(b"GET / HTTP/1.1\r\nHost:")
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
            writer.close()
        server.close()
        await server.wait_closed()

    asyncio.run(talk())
