"""Streams as a good proxy carries them: cancelled when a client leaves, and slowed when it is slow."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.clients import DIALECTS, PATHS, Dialect, ask, body_of, events, post
from tests.gateway.servers import Servers, serving
from tests.gateway.sockets import connected
from tests.gateway.upstream import Hang, Reply, Step, frame, left
from tests.waiting import PATIENCE, eventually


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One pair for all tests of this file; it bears silence for long, so that whoever leaves is noticed for leaving."""
    settings = {"models": {"raw": {"format": "none"}}, "limits": {"keep_alive": 0.1}, "pass_on": ["/odd"]}
    with serving(**settings) as found:
        yield found


# The client leaves.


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_leaving_before_the_first_byte(servers: Servers, dialect: Dialect, stream: bool) -> None:
    """A client that leaves while the upstream has not answered: the upstream's connection is closed too."""
    servers.upstream.send(Reply(before=[Hang()]))
    with connected(servers.gateway.url) as client:
        client.post(PATHS[dialect], body_of(dialect, stream=stream))
        assert not servers.upstream.question().left.is_set()
    assert left(servers.upstream)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_leaving_in_the_middle(servers: Servers, dialect: Dialect) -> None:
    """A client that leaves in the middle of a stream: the upstream's connection is closed too."""
    servers.upstream.send(Reply([frame("<think>A</think>Word", dialect), frame(" and", dialect), Hang()]))
    with connected(servers.gateway.url) as client:
        client.post(PATHS[dialect], body_of(dialect, stream=True))
        client.read_until(b"Word")
        assert not servers.upstream.question().left.is_set()
    assert left(servers.upstream)


def test_leaving_while_a_whole_reply_comes(servers: Servers) -> None:
    """A client that leaves while its whole reply is being collected: the upstream's connection is closed too."""
    servers.upstream.send(Reply([b'{"choices": [', Hang()], headers={"Content-Type": "application/json"}))
    with connected(servers.gateway.url) as client:
        client.post(PATHS["chat"], body_of("chat"))
        eventually(lambda: servers.upstream.question().sent, "the upstream began")
    assert left(servers.upstream)


def test_leaving_what_is_passed_on(servers: Servers) -> None:
    """The same for bytes that are passed as they are, and for paths that nobody here knows."""
    servers.upstream.send(Reply([b"data: x\n\n", Hang()]))
    with connected(servers.gateway.url) as client:
        client.post(PATHS["chat"], body_of("chat", model="raw", stream=True))
        client.read_until(b"data: x")
    assert left(servers.upstream)
    servers.upstream.send(Reply([b"one", Hang()]), "/odd")
    with connected(servers.gateway.url) as client:
        client.post("/odd", b"{}")
        client.read_until(b"one")
    assert servers.upstream.asked[-1].left.wait(PATIENCE)
    servers.upstream.send(Reply(before=[Hang()]), "/odd")
    with connected(servers.gateway.url) as client:
        client.post("/odd", b'{"silent": true}')
        eventually(lambda: servers.upstream.asked[-1].raw == b'{"silent": true}', "the upstream was asked")
    assert servers.upstream.asked[-1].left.wait(PATIENCE)


def test_leaving_half_a_request(servers: Servers) -> None:
    """A client that leaves before its request is whole: nobody is asked, and nothing is left open."""
    before = servers.gateway.watched.num_fds()
    for _ in range(5):
        with connected(servers.gateway.url) as client:
            client.socket.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n{"
            )
    eventually(lambda: servers.gateway.watched.num_fds() <= before, "connections stayed open")
    assert not servers.upstream.questions


def test_what_a_reply_holds_is_let_go(servers: Servers) -> None:
    """After replies that ended in every way, no connection is left on either side."""
    servers.upstream.say("<think>A</think>B")
    ask("chat", servers.gateway.url, stream=True)
    eventually(lambda: _clients(servers) == 0, "connections stayed open")
    endings: list[list[Step]] = [[Hang()], [frame("x"), Hang()]]
    for steps in endings:
        servers.upstream.send(Reply(steps))
        for _ in range(5):
            with connected(servers.gateway.url) as client:
                client.post(PATHS["chat"], body_of("chat", stream=True))
                client.read_until(b"200 OK")
    eventually(lambda: _clients(servers) == 0, "connections of clients stayed open")
    eventually(lambda: not servers.upstream.connections, "connections to the upstream stayed open")


def _clients(servers: Servers) -> int:
    """How many clients are connected."""
    port = int(servers.gateway.url.rpartition(":")[2])
    found = servers.gateway.watched.net_connections("tcp")
    return sum(each.status == "ESTABLISHED" and each.laddr[1] == port for each in found)


# The client is slow.


@pytest.mark.parametrize("model", ["m", "raw"])
def test_a_slow_reader_slows_the_upstream(servers: Servers, model: str) -> None:
    """A client that does not read: the upstream is held back, so that the gateway keeps little; then all arrives."""
    words = "x" * 40_000
    count = 700
    steps: list[Step] = [frame(words)] * count
    servers.upstream.send(Reply([*steps, frame("end", reason="stop"), b"data: [DONE]\n\n"]))
    before = servers.gateway.watched.memory_info().rss
    with connected(servers.gateway.url, buffer=4096) as client:
        client.post(PATHS["chat"], body_of("chat", model=model, stream=True), connection="close")
        asked = servers.upstream.question()
        eventually(lambda: _is_steady(asked), "the upstream never had to wait")
        # What stands in the buffers of four sockets and two programs; 28 MB would be all of it.
        assert asked.sent < 16_000_000
        assert servers.gateway.watched.memory_info().rss - before < 16_000_000
        received, tail = 0, b""
        while data := client.socket.recv(1 << 20):
            received += data.count(b"x")
            tail = (tail + data)[-200:]
    assert received >= count * len(words)
    assert b"[DONE]" in tail


def _is_steady(asked: Any) -> bool:
    """Whether nothing more was sent for a moment."""
    sent = asked.sent
    time.sleep(0.3)
    return bool(sent) and asked.sent == sent


# The wire itself.


def test_one_connection_for_many_requests(servers: Servers) -> None:
    """A client may keep its connection, whatever the requests on it were."""
    servers.upstream.say("<think>A</think>B")
    with connected(servers.gateway.url) as client:
        for number in range(4):
            client.read = b""
            client.post(PATHS["chat"], body_of("chat", stream=bool(number % 2)))
            client.read_until(b"0\r\n\r\n" if number % 2 else b'"B"')
            client.post(PATHS["chat"], b"{")
            client.read_until(b"400 Bad Request")


@pytest.mark.parametrize("size", [70_000, 300_000, 5_000_000])
def test_large_requests(servers: Servers, size: int) -> None:
    """Agents send bodies of many kilobytes; they arrive whole, also on a connection that was used before."""
    servers.upstream.say("Read.")
    words = "ü" * (size // 2)
    with connected(servers.gateway.url) as client:
        for dialect in ("messages", "chat"):
            client.read = b""
            client.post(PATHS[dialect], body_of(dialect, question=words))
            client.read_until(b"Read.")
            assert servers.upstream.question().body["messages"][-1]["content"] == words


def test_never_an_id(servers: Servers) -> None:
    """No event of ours has an `id:`, even if the upstream's have: a comment behind one breaks OpenAI's SDK."""
    servers.upstream.send(Reply([b"id: 7\n" + frame("A"), b"id: 8\n" + frame("B", reason="stop"), b"data: [DONE]\n\n"]))
    reply = post(servers.gateway.url, PATHS["chat"], body_of("chat", stream=True))
    assert not [line for line in reply.text.splitlines() if line.startswith("id:")]


def test_unknown_fields_pass(servers: Servers) -> None:
    """Fields that only the upstream knows reach a client of the same dialect."""
    body = {"id": "1", "model": "m", "system_fingerprint": "fp", "timings": {"a": 1}}
    choice = {"index": 0, "delta": {"content": "A"}, "finish_reason": "stop"}
    data = b"data: " + json.dumps({**body, "choices": [choice]}).encode() + b"\n\ndata: [DONE]\n\n"
    servers.upstream.send(Reply([data]))
    found = events(post(servers.gateway.url, PATHS["chat"], body_of("chat", stream=True)).content)
    assert any(each != "[DONE]" and each.get("system_fingerprint") == "fp" for each in found)
