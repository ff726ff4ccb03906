"""What a hostile or broken peer can make the gateway hold, and for how long."""

from __future__ import annotations

import gzip
import json
import logging
import os
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from asides._gateway.bodies import holds_more
from asides._gateway.observe.logs import BackgroundHandler
from tests.gateway.clients import PATHS, body_of, get, post
from tests.gateway.running import gateway
from tests.gateway.servers import Servers, serving
from tests.gateway.sockets import connected
from tests.gateway.upstream import JSON, SSE, Reply, upstream
from tests.waiting import PATIENCE, eventually


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """A gateway with small bounds."""
    with serving(limits={"frame": 100_000, "calls": 20}) as found:
        yield found


@pytest.fixture(scope="module")
def impatient() -> Iterator[Servers]:
    """One that soon lets go of who sends nothing: for tests that wait for that, and send nothing else."""
    with serving(limits={"upload": 0.5, "upload_rate": 1_000_000}) as found:
        yield found


# Clients.


@pytest.mark.parametrize("begin", [b"", b"{", b'{"model": "m"'])
def test_a_body_that_comes_too_slowly(impatient: Servers, begin: bytes) -> None:
    """It is told so, and its place is free again."""
    with connected(impatient.gateway.url) as client:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n"
        client.socket.sendall(head + begin)
        reply = client.read_rest()
    assert b" 408 " in reply.splitlines()[0]
    assert b"limits.upload" in reply
    assert get(impatient.gateway.url, "/healthz").json()["open"] == 0


def test_a_large_body_has_its_time() -> None:
    """The time that a body may take grows with what has come of it."""
    with upstream() as server:
        limits = {"upload": 0.2, "upload_rate": 1000}
        with gateway({"upstreams": [{"url": server.url}], "limits": limits}) as running:
            server.say("Hi")
            body = json.dumps(body_of("chat") | {"user": "x" * 100_000}).encode()
            with connected(running.url) as client:
                head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
                client.socket.sendall(head.encode() + b"Connection: close\r\n\r\n" + body[:90_000])
                time.sleep(0.5)  # longer than `upload` alone would allow
                client.socket.sendall(body[90_000:])
                assert b" 200 " in client.read_rest().splitlines()[0]


@pytest.mark.parametrize(
    ("body", "more"),
    [
        (b"[" + b"[]," * 1000 + b"[]]", True),
        (b"[" + b'"",' * 1000 + b'""]', True),
        (b'{"a":' * 500 + b'"' + b"," * 999 + b'"' + b"}" * 500, False),
        (b'["' + b"[{," * 1000 + b'"]', False),
        (rb'["' + rb"\",\\," * 1000 + rb'"]', False),
        (rb'["\\",' + b"1," * 1000 + b"1]", True),
    ],
)
def test_values_are_counted_outside_of_strings(body: bytes, more: bool) -> None:
    """By their marks, without decoding them."""
    assert holds_more(body, 1000) is more


def test_more_values_than_are_taken(servers: Servers) -> None:
    """Ever so many empty lists are refused before they are decoded: that would stop every stream, and take gigabytes.

    These would take half a gigabyte.
    """
    lists = b'{"model": "m", "messages": [' + b"[]," * 8_000_000 + b"[]]}"
    before = servers.gateway.watched.memory_info().rss
    reply = post(servers.gateway.url, PATHS["chat"], lists)
    assert reply.status_code == 400
    assert "limits.values" in reply.text
    assert servers.gateway.watched.memory_info().rss - before < 200_000_000
    assert servers.upstream.questions == []


def test_more_values_than_a_whole_reply_may_hold(servers: Servers) -> None:
    """The same for an upstream."""
    lists = b'{"choices": [' + b"[]," * 2_000_000 + b"[]]}"
    servers.upstream.send(Reply([lists], headers=JSON, whole=True))
    reply = post(servers.gateway.url, PATHS["chat"], body_of("chat"))
    assert reply.status_code == 502
    assert "limits.values" in reply.text


# The log.


def test_a_log_that_nobody_reads() -> None:
    """A full pipe on standard error stops no request, and the end of the process does not wait for it for long."""
    with upstream() as server:
        server.say("Hi")
        with gateway(None, "--upstream", server.url, "--log-json", unread=True) as running:
            with httpx.Client(verify=False, timeout=PATIENCE) as client:
                for _ in range(200):  # of which each logs half a kilobyte; a pipe holds 64
                    reply = client.post(running.url + PATHS["chat"], json=body_of("chat", model="m" * 250))
                    assert reply.status_code == 200
                assert client.get(f"{running.url}/healthz").status_code == 200
                assert "asides_log_lines_dropped 0.0" in client.get(f"{running.url}/metrics").text
            running.process.terminate()
            assert running.wait() == 0


def test_lines_beyond_the_queue_are_dropped_and_counted() -> None:
    """What waits is written once somebody reads again."""
    reading, writing = os.pipe()
    with open(writing, "w", encoding="utf-8") as stream:
        handler = BackgroundHandler(stream, size=10)
        handler.setFormatter(logging.Formatter("%(message)s"))
        logger = logging.Logger("test")
        logger.addHandler(handler)
        logger.warning("x" * 2_000_000)  # more than a pipe holds
        eventually(lambda: handler.waiting == 0, "the thread does not write")
        for number in range(30):
            logger.warning("line %d", number)
        assert handler.dropped == 20
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.extend(iter(lambda: os.read(reading, 65536), b"")))
        reader.start()
        eventually(lambda: handler.waiting == 0, "the rest was not written")
        handler.flush()
    reader.join(PATIENCE)
    os.close(reading)
    lines = b"".join(read).splitlines()
    assert lines[1:] == [b"line %d" % number for number in range(10)]


# Upstreams.

WORDS = b'data: {"id": "x", "choices": [{"index": 0, "delta": {"content": "<think>hm</think>Hi"}}]}\n\n'


def streamed(servers: Servers, *pieces: bytes, **headers: str) -> bytes:
    """The stream that a client gets when the upstream sends these bytes."""
    servers.upstream.send(Reply(list(pieces), headers={**SSE, **headers}))
    return post(servers.gateway.url, PATHS["chat"], body_of("chat", stream=True)).content


def test_a_frame_that_never_ends(servers: Servers) -> None:
    """All text before it is delivered, then the error; the connection is let go, and memory stays."""
    endless = [b'data: {"choices": [{"index": 0, "delta": {"content": "', *[b"x" * 50_000] * 2000]
    before = servers.gateway.watched.memory_info().rss
    reply = streamed(servers, WORDS, *endless)
    assert b'"content":"Hi"' in reply
    assert b"limits.frame" in reply
    assert b"malformed_frame" in reply
    assert servers.gateway.watched.memory_info().rss - before < 30_000_000


def test_lines_of_data_that_never_end_an_event(servers: Servers) -> None:
    """The same for an event of ever more lines."""
    reply = streamed(servers, WORDS, *[b"data: " + b"x" * 1000 + b"\n"] * 500)
    assert b'"content":"Hi"' in reply
    assert b"limits.frame" in reply


def test_little_that_unpacks_to_much(servers: Servers) -> None:
    """What is compressed is unpacked a piece at a time, so that the bound counts what comes out."""
    packed = gzip.compress(WORDS + b"data: " + b"x" * 100_000_000, 9)  # far more than memory may grow by
    before = servers.gateway.watched.memory_info().rss
    reply = streamed(servers, packed, **{"Content-Encoding": "gzip"})
    assert b'"content":"Hi"' in reply
    assert b"limits.frame" in reply
    assert servers.gateway.watched.memory_info().rss - before < 30_000_000


def test_much_that_comes_at_once_stops_nobody(servers: Servers) -> None:
    """It is worked on in steps: others are answered before it is over, though it gives the client nothing."""
    invented = b'data: {"choices": [{"index": 7, "delta": {"content": "spam"}}]}\n\n' * 20_000
    packer = zlib.compressobj(wbits=31)
    # So much that it lasts, however long this process has to wait for its turn.
    packed = b"".join([packer.compress(WORDS), *(packer.compress(invented) for _ in range(150)), packer.flush()])
    servers.upstream.send(Reply([packed], headers={**SSE, "Content-Encoding": "gzip"}))
    with connected(servers.gateway.url) as client:
        client.post(PATHS["chat"], body_of("chat", stream=True))
        client.read_until(b'"content":"Hi"')
        assert get(servers.gateway.url, "/healthz").json()["open"] == 1


def test_compression_that_nobody_asked_for(servers: Servers) -> None:
    """What cannot be unpacked is told, not shown as words."""
    servers.upstream.send(Reply([b"zzzz"], headers={**JSON, "Content-Encoding": "br"}))
    reply = post(servers.gateway.url, PATHS["chat"], body_of("chat"))
    assert reply.status_code == 502
    assert "compressed with 'br'" in reply.json()["error"]["message"]


def test_choices_that_nobody_asked_for(servers: Servers) -> None:
    """Left out, and told in the log; those that were asked for are whole."""
    invented = [
        b'data: {"choices": [{"index": %d, "delta": {"content": "spam"}}]}\n\n' % number for number in range(1, 3000)
    ]
    reply = streamed(servers, WORDS, *invented, b"data: [DONE]\n\n")
    assert b"spam" not in reply
    assert b'"content":"Hi"' in reply
    servers.gateway.wait_for_record(lambda record: "choices that nobody asked for" in record.get("message", ""))


def test_choices_that_were_asked_for(servers: Servers) -> None:
    """`n` of them are all carried."""
    frames = [
        b'data: {"choices": [{"index": %d, "delta": {"content": "choice %d"}}]}\n\n' % (number, number)
        for number in range(4)
    ]
    servers.upstream.send(Reply([*frames, b"data: [DONE]\n\n"], headers=SSE))
    reply = post(servers.gateway.url, PATHS["chat"], body_of("chat", stream=True, n=3)).content
    assert [f"choice {number}".encode() in reply for number in range(4)] == [True, True, True, False]


@pytest.mark.parametrize("stream", [True, False])
def test_more_calls_than_a_reply_may_hold(servers: Servers, stream: bool) -> None:
    """The reply ends there, with the calls before it."""
    calls = '<tool_call>{"name": "find", "arguments": {}}</tool_call>' * 100
    servers.upstream.say(f"<think>hm</think>{calls}")
    tool = {"type": "function", "function": {"name": "find", "parameters": {}}}
    reply = post(servers.gateway.url, PATHS["chat"], body_of("chat", stream=stream) | {"tools": [tool]})
    assert "limits.calls" in reply.text


def test_a_thought_that_never_ends_is_not_collected() -> None:
    """What the replay cache could not store is not kept while it comes."""
    with upstream() as server:
        config: dict[str, Any] = {"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}}
        with gateway({**config, "replay_cache": {"characters": 100_000}}) as running:
            frame = b'data: {"choices": [{"index": 0, "delta": {"content": "%b"}}]}\n\n'
            server.send(Reply([frame % b"<think>", *[frame % (b"x" * 40_000)] * 1200], headers=SSE))
            tool = {"type": "function", "function": {"name": "find", "parameters": {}}}
            body = body_of("chat", stream=True) | {"tools": [tool]}
            before = running.watched.memory_info().rss
            with httpx.stream("POST", running.url + PATHS["chat"], json=body, timeout=PATIENCE, verify=False) as reply:
                size = sum(len(chunk) for chunk in reply.iter_raw())
            assert size > 48_000_000
            assert running.watched.memory_info().rss - before < 30_000_000


# What is no model's reply.


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("text/html", b"<!doctype html>\n<html><body>Sign in", "a web page: <!doctype html>"),
        ("application/json", b"<html>\n<body>Sign in", "a web page: <html>"),
        ("text/plain", b"Bad gateway: try later\nmore", "something that is no model's reply: Bad gateway: try later"),
        ("text/event-stream", b"oops\n\nmore", "something that is no model's reply: oops"),
    ],
)
def test_what_is_no_models_reply(servers: Servers, kind: str, body: bytes, words: str, stream: bool) -> None:
    """It is said in words what came, with its first line."""
    servers.upstream.send(Reply([body], headers={"Content-Type": kind}, whole=True))
    reply = post(servers.gateway.url, PATHS["chat"], body_of("chat", stream=stream))
    assert words in reply.text


def test_a_redirect_is_told_and_not_followed(servers: Servers) -> None:
    """Neither by the gateway nor by its client: the request holds a key."""
    servers.upstream.send(Reply([b""], 302, {"Location": "https://login.example/?token=hunter2"}, whole=True))
    reply = post(servers.gateway.url, PATHS["chat"], body_of("chat"))
    assert reply.status_code == 502
    assert "a redirect to https://login.example/" in reply.json()["error"]["message"]
    assert "hunter2" not in reply.text
    assert "location" not in reply.headers


# Failures of our own.


def test_a_writer_that_fails(servers: Servers, tmp_path: Path) -> None:
    """What was read is written, then the error in the client's shape; the log has the traceback and the id."""
    script = tmp_path / "broken.py"
    script.write_text(
        "import sys\n"
        "from asides.dialects import openai_chat\n"
        "real = openai_chat.ReplyWriter.feed\n"
        "def feed(self, item):\n"
        "    if type(item).__name__ == 'Usage': raise KeyError('deliberate')\n"
        "    return real(self, item)\n"
        "openai_chat.ReplyWriter.feed = feed\n"
        "from asides._cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    usage = b'data: {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}\n\n'
    servers.upstream.send(Reply([WORDS, usage, b"data: [DONE]\n\n"], headers=SSE))
    with gateway(None, "--upstream", servers.upstream.url, command=(sys.executable, str(script), "serve")) as running:
        reply = post(running.url, PATHS["chat"], body_of("chat", stream=True), headers={"X-Request-Id": "req-7"})
        assert b'"content":"Hi"' in reply.content
        assert b"could not read all" in reply.content
        found = running.wait_for_record(lambda record: "trace" in record)
    assert "req-7" in found["message"]
    assert "deliberate" in found["trace"]


def test_a_whole_reply_goes_out_without_what_failed(servers: Servers) -> None:
    """Odd usage costs the usage, not the finished reply."""
    message = {"role": "assistant", "content": "<think>hm</think>Hi"}
    reply = {
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "completion_tokens_details": 5},
    }
    servers.upstream.send(Reply([json.dumps(reply).encode()], headers=JSON, whole=True))
    got = post(servers.gateway.url, PATHS["chat"], body_of("chat"))
    assert got.status_code == 200
    assert got.json()["choices"][0]["message"]["content"] == "Hi"
