"""Silence of an upstream: streams are kept open, and one that lasts too long ends with an error."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.gateway.clients import PATHS, WITH_TOOLS, Dialect, ask, body_of, chat_deltas, events, post
from tests.gateway.running import gateway
from tests.gateway.servers import Servers, serving
from tests.gateway.sockets import connected
from tests.gateway.upstream import Gate, Hang, Pause, Reply, Step, frame, left

IDLE = 3.0
"""Seconds of silence that the hasty gateway bears: a busy machine may be late by less."""


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """A gateway that sends keep-alive bytes soon, and bears silence for long."""
    with serving(limits={"keep_alive": 0.1}) as found:
        yield found


@pytest.fixture(scope="module")
def hasty() -> Iterator[Servers]:
    """One that soon gives up a silent upstream."""
    with serving(limits={"idle": IDLE}) as found:
        yield found


@pytest.fixture(scope="module")
def curt() -> Iterator[Servers]:
    """One that gives it up sooner still: for tests that wait for that, and not for what comes before."""
    with serving(limits={"idle": 1.0}) as found:
        yield found


# The upstream is quiet.


def test_quiet_streams_are_kept_open(servers: Servers) -> None:
    """While nothing comes from the model, clients get what their dialect lets them pass over, and no SDK trips."""
    gate = Gate()
    marks: tuple[tuple[Dialect, bytes], ...] = (("chat", b":"), ("responses", b":"), ("messages", b"event: ping"))
    for dialect, mark in marks:
        servers.upstream.send(Reply([frame("<think>A</think>B"), gate, frame("", reason="stop"), b"data: [DONE]\n\n"]))
        with connected(servers.gateway.url) as client:
            client.post(PATHS[dialect], body_of(dialect, stream=True), connection="close")
            client.read_until(b"\n" + mark)
    end = [frame("", reason="stop"), b"data: [DONE]\n\n"]
    servers.upstream.send(Reply([frame("<think>A"), Pause(0.4), frame("</think>B"), Pause(0.4), *end]))
    for each in WITH_TOOLS:
        seen = ask(each, servers.gateway.url, stream=True)
        assert (seen.thinking, seen.text) == ("A", "B")


@pytest.mark.parametrize("choice", ["empty", "off"])
def test_keep_alive_as_chunks_or_not_at_all(servers: Servers, choice: str) -> None:
    """`keep_alive` chooses chunks without words, or nothing."""
    gate, server = Gate(), servers.upstream
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
def test_an_upstream_that_never_answers(curt: Servers, stream: bool) -> None:
    """No byte for longer than the limit is a 504."""
    curt.upstream.forget()
    curt.upstream.send(Reply(before=[Hang()]))
    reply = post(curt.gateway.url, PATHS["messages"], body_of("messages", stream=stream))
    assert reply.status_code == 504
    assert reply.json()["error"]["message"]
    assert left(curt.upstream)


def test_an_upstream_that_goes_quiet(curt: Servers) -> None:
    """A stream in which nothing comes for longer than the limit ends with an error, all words delivered."""
    curt.upstream.forget()
    curt.upstream.send(Reply([frame("<think>A</think>B <"), Hang()]))
    found = events(post(curt.gateway.url, PATHS["chat"], body_of("chat", stream=True)).content)
    assert (chat_deltas(found, "reasoning_content"), chat_deltas(found)) == ("A", "B <")
    assert found[-1]["error"]["message"]
    assert left(curt.upstream)


def test_there_is_no_limit_on_the_whole(hasty: Servers) -> None:
    """A stream may take longer than the idle limit as long as something comes."""
    steps: list[Step] = []
    for number in range(8):
        steps += [frame(f"{number}"), Pause(IDLE / 6)]
    hasty.upstream.send(Reply([*steps, frame("", reason="stop"), b"data: [DONE]\n\n"]))
    assert ask("chat", hasty.gateway.url, stream=True).text == "01234567"


def test_a_client_that_reads_slowly_is_no_silence(hasty: Servers) -> None:
    """While a client does not read, its upstream may not speak; that is not held against it."""
    hasty.upstream.send(Reply([*[frame("x" * 60_000)] * 200, frame("", reason="stop"), b"data: [DONE]\n\n"]))
    reply = bytearray()
    with connected(hasty.gateway.url, buffer=65_536) as client:
        client.post(PATHS["chat"], body_of("chat", stream=True), Connection="close")
        client.read_until(b"200 OK")
        time.sleep(IDLE * 1.5)
        while more := client.socket.recv(1_000_000):
            reply += more
    assert reply.count(b"x") >= 200 * 60_000 - len(client.read)
    assert b"[DONE]" in reply
    assert b'"error"' not in reply


@pytest.mark.parametrize("first", [b"", b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'])
def test_silence_is_called_silence(curt: Servers, first: bytes) -> None:
    """An upstream that goes quiet right behind its head, or soon after it, did not break off: it went quiet."""
    curt.upstream.send(Reply([first, Hang()] if first else [Hang()]))
    for dialect in ("chat", "messages"):
        reply = post(curt.gateway.url, PATHS[dialect], body_of(dialect, stream=True))
        assert "went quiet" in reply.text
