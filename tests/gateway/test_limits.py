"""What the gateway bears at once, and the size of what it reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import openai
import pytest

from tests.gateway.clients import DIALECTS, PATHS, Dialect, ask, body_of, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.sockets import connected
from tests.gateway.upstream import Hang, Reply, Upstream, upstream
from tests.waiting import eventually

MOST = 3


class House(NamedTuple):
    """A gateway that bears little, before one upstream."""

    gateway: Gateway
    upstream: Upstream


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """One for all tests of this file."""
    with upstream() as server:
        limits = {"concurrency": MOST, "header": 8192, "held": 1000}
        config = {
            "upstreams": [{"url": server.url}],
            "models": {"waiting": {"format": "qwen3", "start": "undecided"}},
            "defaults": {"format": "qwen3"},
            "limits": limits,
        }
        with gateway(config) as running:
            yield House(running, server)


@pytest.fixture(autouse=True)
def _forget(house: House) -> None:
    house.upstream.forget()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_too_many_at_once(house: House, dialect: Dialect) -> None:
    """One request more than the limit is a 429 that says when to try again; when one has left there is room."""
    house.upstream.send(Reply(before=[Hang()]))
    with ExitStack() as stack:
        for _ in range(MOST):
            stack.enter_context(connected(house.gateway.url)).post(PATHS["chat"], body_of("chat", stream=True))
        eventually(lambda: len(house.upstream.questions) == MOST, "they were not all asked")
        reply = post(house.gateway.url, PATHS[dialect], body_of(dialect))
        assert reply.status_code == 429
        assert int(reply.headers["retry-after"]) >= 1
        assert reply.json()["error"]
        assert get(house.gateway.url, "/healthz").status_code == 200
    house.upstream.say("Room.")
    eventually(lambda: _has_room(house), "there was no room again")


def _has_room(house: House) -> bool:
    return post(house.gateway.url, PATHS["chat"], body_of("chat")).status_code == 200


def test_the_sdk_tries_again(house: House) -> None:
    """OpenAI's SDK waits as it is told and then succeeds, without the caller noticing."""
    house.upstream.send(Reply(before=[Hang()]))
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(house.gateway.url)) for _ in range(MOST)]
        for client in clients:
            client.post(PATHS["chat"], body_of("chat", stream=True))
        eventually(lambda: len(house.upstream.questions) == MOST, "they were not all asked")
        house.upstream.say("Room.")
        with openai.OpenAI(base_url=house.gateway.url + "/v1", api_key="x", max_retries=4) as sdk:
            assert post(house.gateway.url, PATHS["chat"], body_of("chat")).status_code == 429
            for client in clients:
                client.leave()
            reply = sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
    assert reply.choices[0].message.content == "Room."


def test_a_head_that_is_too_large(house: House) -> None:
    """Headers beyond the limit are refused, in one piece or in many, and the next request works."""
    eventually(lambda: _has_room(house), "there was no room")
    for pieces in (1, 50):
        with connected(house.gateway.url) as client:
            client.socket.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n")
            try:
                for number in range(pieces):
                    client.socket.sendall(f"X-Large-{number}: {'x' * (20_000 // pieces)}\r\n".encode())
                client.socket.sendall(b"Connection: close\r\nContent-Length: 2\r\n\r\n{}")
            except (BrokenPipeError, ConnectionResetError):
                pass  # it may hang up first
            read = client.read_rest()
            assert read == b"" or read.startswith(b"HTTP/1.1 431")
    assert ask("chat", house.gateway.url).text == "It is 4."


def test_what_is_held_is_bounded(house: House) -> None:
    """A stream that waits for its start gives up at the limit: what was held becomes text and goes on."""
    eventually(lambda: _has_room(house), "there was no room")
    words = "no marker here, " * 500
    house.upstream.say(words, size=50)
    seen = ask("chat", house.gateway.url, model="waiting", stream=True)
    assert (seen.thinking, seen.text) == ("", words)


def test_it_still_works(house: House) -> None:
    """After all that the gateway is as it was."""
    house.upstream.say("<think>A</think>B")
    eventually(lambda: _has_room(house), "there was no room")
    seen = ask("messages", house.gateway.url, stream=True)
    assert (seen.thinking, seen.text) == ("A", "B")
