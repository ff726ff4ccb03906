"""Streams as a good proxy carries them: cancelled when a client leaves, slowed when it is slow, kept when quiet."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from tests.gateway.clients import DIALECTS, PATHS, WITH_TOOLS, Dialect, ask, body_of, chat_deltas, events, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.sockets import connected
from tests.gateway.upstream import Gate, Hang, Pause, Reply, Step, Upstream, upstream
from tests.waiting import PATIENCE, eventually

IDLE = 3.0
"""Seconds of silence that the hasty gateway bears: a busy machine may be late by less."""


class House(NamedTuple):
    """A gateway before one upstream."""

    gateway: Gateway
    upstream: Upstream


@contextmanager
def opened(**limits: float) -> Iterator[House]:
    """A gateway with these limits."""
    with upstream() as server:
        config = {
            "upstreams": [{"url": server.url}],
            "defaults": {"format": "qwen3"},
            "models": {"raw": {"format": "none"}},
            "limits": {"keep_alive": 0.1, **limits},
            "pass_on": ["/odd"],
        }
        with gateway(config) as running:
            yield House(running, server)


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """One that bears silence for long, so that whoever leaves is noticed for leaving."""
    with opened() as found:
        yield found


@pytest.fixture(scope="module")
def hasty() -> Iterator[House]:
    """One that soon gives up a silent upstream."""
    with opened(idle=IDLE) as found:
        yield found


@pytest.fixture(autouse=True)
def _forget(house: House) -> None:
    house.upstream.forget()


def frame(words: str, dialect: Dialect = "chat", reason: str | None = None) -> bytes:
    """A frame of an upstream's stream."""
    said: dict[str, Any] = {"text": words} if dialect == "completions" else {"delta": {"content": words}}
    body = {"id": "1", "model": "m", "choices": [{"index": 0, **said, "finish_reason": reason}]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def left(house: House) -> bool:
    """Whether the upstream has seen its client leave."""
    return house.upstream.question().left.wait(PATIENCE)


# The client leaves.


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_leaving_before_the_first_byte(house: House, dialect: Dialect, stream: bool) -> None:
    """A client that leaves while the upstream has not answered: the upstream's connection is closed too."""
    house.upstream.send(Reply(before=[Hang()]))
    with connected(house.gateway.url) as client:
        client.post(PATHS[dialect], body_of(dialect, stream=stream))
        assert not house.upstream.question().left.is_set()
    assert left(house)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_leaving_in_the_middle(house: House, dialect: Dialect) -> None:
    """A client that leaves in the middle of a stream: the upstream's connection is closed too."""
    house.upstream.send(Reply([frame("<think>A</think>Word", dialect), frame(" and", dialect), Hang()]))
    with connected(house.gateway.url) as client:
        client.post(PATHS[dialect], body_of(dialect, stream=True))
        client.read_until(b"Word")
        assert not house.upstream.question().left.is_set()
    assert left(house)


def test_leaving_while_a_whole_reply_comes(house: House) -> None:
    """A client that leaves while its whole reply is being collected: the upstream's connection is closed too."""
    house.upstream.send(Reply([b'{"choices": [', Hang()], headers={"Content-Type": "application/json"}))
    with connected(house.gateway.url) as client:
        client.post(PATHS["chat"], body_of("chat"))
        eventually(lambda: house.upstream.question().sent, "the upstream began")
    assert left(house)


def test_leaving_what_is_passed_on(house: House) -> None:
    """The same for bytes that are passed as they are, and for paths that nobody here knows."""
    house.upstream.send(Reply([b"data: x\n\n", Hang()]))
    with connected(house.gateway.url) as client:
        client.post(PATHS["chat"], body_of("chat", model="raw", stream=True))
        client.read_until(b"data: x")
    assert left(house)
    house.upstream.send(Reply([b"one", Hang()]), "/odd")
    with connected(house.gateway.url) as client:
        client.post("/odd", b"{}")
        client.read_until(b"one")
    assert house.upstream.asked[-1].left.wait(PATIENCE)
    house.upstream.send(Reply(before=[Hang()]), "/odd")
    with connected(house.gateway.url) as client:
        client.post("/odd", b'{"silent": true}')
        eventually(lambda: house.upstream.asked[-1].raw == b'{"silent": true}', "the upstream was asked")
    assert house.upstream.asked[-1].left.wait(PATIENCE)


def test_leaving_half_a_request(house: House) -> None:
    """A client that leaves before its request is whole: nobody is asked, and nothing is left open."""
    before = house.gateway.watched.num_fds()
    for _ in range(5):
        with connected(house.gateway.url) as client:
            client.socket.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n{"
            )
    eventually(lambda: house.gateway.watched.num_fds() <= before, "connections stayed open")
    assert not house.upstream.questions


def test_what_a_reply_holds_is_let_go(house: House) -> None:
    """After replies that ended in every way, no connection is left on either side."""
    house.upstream.say("<think>A</think>B")
    ask("chat", house.gateway.url, stream=True)
    eventually(lambda: _clients(house) == 0, "connections stayed open")
    endings: list[list[Step]] = [[Hang()], [frame("x"), Hang()]]
    for steps in endings:
        house.upstream.send(Reply(steps))
        for _ in range(5):
            with connected(house.gateway.url) as client:
                client.post(PATHS["chat"], body_of("chat", stream=True))
                client.read_until(b"200 OK")
    eventually(lambda: _clients(house) == 0, "connections of clients stayed open")
    eventually(lambda: not house.upstream.connections, "connections to the upstream stayed open")


def _clients(house: House) -> int:
    """How many clients are connected."""
    port = int(house.gateway.url.rpartition(":")[2])
    found = house.gateway.watched.net_connections("tcp")
    return sum(each.status == "ESTABLISHED" and each.laddr[1] == port for each in found)


# The client is slow.


@pytest.mark.parametrize("model", ["m", "raw"])
def test_a_slow_reader_slows_the_upstream(house: House, model: str) -> None:
    """A client that does not read: the upstream is held back, so that the gateway keeps little; then all arrives."""
    words = "x" * 40_000
    count = 700
    steps: list[Step] = [frame(words)] * count
    house.upstream.send(Reply([*steps, frame("end", reason="stop"), b"data: [DONE]\n\n"]))
    before = house.gateway.watched.memory_info().rss
    with connected(house.gateway.url, buffer=4096) as client:
        client.post(PATHS["chat"], body_of("chat", model=model, stream=True), connection="close")
        asked = house.upstream.question()
        eventually(lambda: _is_steady(asked), "the upstream never had to wait")
        # What stands in the buffers of four sockets and two programs; 28 MB would be all of it.
        assert asked.sent < 16_000_000
        assert house.gateway.watched.memory_info().rss - before < 16_000_000
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


# The upstream is quiet.


def test_quiet_streams_are_kept_open(house: House) -> None:
    """While nothing comes from the model, clients get what their dialect lets them pass over, and no SDK trips."""
    gate = Gate()
    marks: tuple[tuple[Dialect, bytes], ...] = (("chat", b":"), ("responses", b":"), ("messages", b"event: ping"))
    for dialect, mark in marks:
        house.upstream.send(Reply([frame("<think>A</think>B"), gate, frame("", reason="stop"), b"data: [DONE]\n\n"]))
        with connected(house.gateway.url) as client:
            client.post(PATHS[dialect], body_of(dialect, stream=True), connection="close")
            client.read_until(b"\n" + mark)
    end = [frame("", reason="stop"), b"data: [DONE]\n\n"]
    house.upstream.send(Reply([frame("<think>A"), Pause(0.4), frame("</think>B"), Pause(0.4), *end]))
    for each in WITH_TOOLS:
        seen = ask(each, house.gateway.url, stream=True)
        assert (seen.thinking, seen.text) == ("A", "B")


@pytest.mark.parametrize("choice", ["empty", "off"])
def test_keep_alive_as_chunks_or_not_at_all(house: House, choice: str) -> None:
    """`keep_alive` chooses chunks without words, or nothing."""
    gate, server = Gate(), house.upstream
    quiet: Step = gate if choice == "empty" else Pause(0.5)
    server.send(Reply([frame("A"), quiet, frame("B", reason="stop"), b"data: [DONE]\n\n"]))
    config = {"upstreams": [{"url": server.url}], "keep_alive": choice, "limits": {"keep_alive": 0.1}}
    with gateway(config) as running, connected(running.url) as client:
        client.post(PATHS["chat"], body_of("chat", stream=True), connection="close")
        if choice == "empty":
            client.read_until(b'"delta":{}')
            gate.open()
        read = client.read_rest()
    assert chat_deltas(events(read)) == "AB"
    assert not [line for line in read.splitlines() if line.startswith(b":")]
    empty = [e for e in events(read) if e != "[DONE]" and e["choices"][0]["delta"] == {}]
    assert (len(empty) > 1) is (choice == "empty")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_upstream_that_never_answers(hasty: House, stream: bool) -> None:
    """No byte for longer than the limit is a 504."""
    hasty.upstream.forget()
    hasty.upstream.send(Reply(before=[Hang()]))
    reply = post(hasty.gateway.url, PATHS["messages"], body_of("messages", stream=stream))
    assert reply.status_code == 504
    assert reply.json()["error"]["message"]
    assert left(hasty)


def test_an_upstream_that_goes_quiet(hasty: House) -> None:
    """A stream in which nothing comes for longer than the limit ends with an error, all words delivered."""
    hasty.upstream.forget()
    hasty.upstream.send(Reply([frame("<think>A</think>B <"), Hang()]))
    found = events(post(hasty.gateway.url, PATHS["chat"], body_of("chat", stream=True)).content)
    assert (chat_deltas(found, "reasoning_content"), chat_deltas(found)) == ("A", "B <")
    assert found[-1]["error"]["message"]
    assert left(hasty)


def test_there_is_no_limit_on_the_whole(hasty: House) -> None:
    """A stream may take longer than the idle limit as long as something comes."""
    steps: list[Step] = []
    for number in range(8):
        steps += [frame(f"{number}"), Pause(IDLE / 6)]
    hasty.upstream.send(Reply([*steps, frame("", reason="stop"), b"data: [DONE]\n\n"]))
    assert ask("chat", hasty.gateway.url, stream=True).text == "01234567"


# The wire itself.


def test_one_connection_for_many_requests(house: House) -> None:
    """A client may keep its connection, whatever the requests on it were."""
    house.upstream.say("<think>A</think>B")
    with connected(house.gateway.url) as client:
        for number in range(4):
            client.read = b""
            client.post(PATHS["chat"], body_of("chat", stream=bool(number % 2)))
            client.read_until(b"0\r\n\r\n" if number % 2 else b'"B"')
            client.post(PATHS["chat"], b"{")
            client.read_until(b"400 Bad Request")


@pytest.mark.parametrize("size", [70_000, 300_000, 5_000_000])
def test_large_requests(house: House, size: int) -> None:
    """Agents send bodies of many kilobytes; they arrive whole, also on a connection that was used before."""
    house.upstream.say("Read.")
    words = "ü" * (size // 2)
    with connected(house.gateway.url) as client:
        for dialect in ("messages", "chat"):
            client.read = b""
            client.post(PATHS[dialect], body_of(dialect, question=words))
            client.read_until(b"Read.")
            assert house.upstream.question().body["messages"][-1]["content"] == words


def test_never_an_id(house: House) -> None:
    """No event of ours has an `id:`, even if the upstream's have: a comment behind one breaks OpenAI's SDK."""
    house.upstream.send(Reply([b"id: 7\n" + frame("A"), b"id: 8\n" + frame("B", reason="stop"), b"data: [DONE]\n\n"]))
    reply = post(house.gateway.url, PATHS["chat"], body_of("chat", stream=True))
    assert not [line for line in reply.text.splitlines() if line.startswith("id:")]


def test_unknown_fields_pass(house: House) -> None:
    """Fields that only the upstream knows reach a client of the same dialect."""
    body = {"id": "1", "model": "m", "system_fingerprint": "fp", "timings": {"a": 1}}
    choice = {"index": 0, "delta": {"content": "A"}, "finish_reason": "stop"}
    data = b"data: " + json.dumps({**body, "choices": [choice]}).encode() + b"\n\ndata: [DONE]\n\n"
    house.upstream.send(Reply([data]))
    found = events(post(house.gateway.url, PATHS["chat"], body_of("chat", stream=True)).content)
    assert any(each != "[DONE]" and each.get("system_fingerprint") == "fp" for each in found)
