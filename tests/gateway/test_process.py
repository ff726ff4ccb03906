"""The gateway as a process: how it starts, what it says of itself, how it stops."""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import signal
import socket
import subprocess
import sys
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from prometheus_client.parser import text_string_to_metric_families

from asides._config import UpstreamSettings
from asides._config.schema import Config
from asides._gateway import server as serving
from tests.gateway.clients import PATHS, ask, body_of, chat_deltas, events, get, post
from tests.gateway.running import COMMAND, gateway
from tests.gateway.sockets import connected
from tests.gateway.upstream import Gate, Hang, Reply, json_reply, upstream
from tests.ports import held_port
from tests.waiting import PATIENCE, eventually

FIRST = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"<think>One"}}]}\n\n'
REST = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"</think>Two"},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopping_finishes_open_streams(number: signal.Signals) -> None:
    """A gateway that is told to stop takes nobody new and ends when the streams that are open have ended."""
    gate = Gate()
    with upstream() as server, gateway(None, "--upstream", server.url, "--format", "qwen3") as running:
        server.send(Reply([FIRST, gate, REST, DONE]))
        with connected(running.url) as client:
            client.post(PATHS["chat"], body_of("chat", stream=True))
            client.read_until(b"One")
            running.signal(number)
            eventually(lambda: not running.answers(), "it still takes new requests")
            assert running.process.poll() is None
            gate.open()
            client.read_until(b"[DONE]")
            found = events(client.read)
            assert (chat_deltas(found, "reasoning_content"), chat_deltas(found)) == ("One", "Two")
        code = running.wait()
        assert code in (0, -number, 128 + number), running.log
        assert "Traceback" not in running.log


def test_a_second_signal_ends_at_once() -> None:
    """Whoever is in a hurry says it twice."""
    with upstream() as server, gateway(None, "--upstream", server.url) as running:
        server.send(Reply([FIRST, Hang()]))
        with connected(running.url) as client:
            client.post(PATHS["chat"], body_of("chat", stream=True))
            client.read_until(b"One")
            running.signal(signal.SIGTERM)
            eventually(lambda: not running.answers(), "it still takes new requests")
            assert running.process.poll() is None
            running.signal(signal.SIGTERM)
            running.wait()
            client.read_rest()
        assert server.question().left.wait(PATIENCE)
        assert "Traceback" not in running.log


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_the_exit_code_is_as_the_help_says(number: signal.Signals, code: int) -> None:
    """Being told to stop is no failure; Ctrl-C is told apart from it."""
    with gateway() as running:
        running.signal(number)
        assert running.wait() == code


def test_stopping_has_an_end() -> None:
    """Streams that do not end are cut off after `limits.shutdown`, with an error that says so where one can be said."""
    with upstream() as server:
        config = {"upstreams": [{"url": server.url}], "limits": {"shutdown": 0.5}}
        with gateway(config) as running:
            server.send(Reply([FIRST, Hang()]))
            with connected(running.url) as client:
                client.post(PATHS["chat"], body_of("chat", stream=True))
                client.read_until(b"One")
                running.signal(signal.SIGTERM)
                running.wait()
                assert b"[DONE]" not in client.read_rest()
            assert server.question().left.wait(PATIENCE)
            assert "Traceback" not in running.log


def test_killed_and_started_again() -> None:
    """After a kill nothing is left that keeps it from starting on the same port."""
    with held_port() as port, upstream() as server:
        server.say("<think>A</think>B")
        flags = ("--upstream", server.url, "--format", "qwen3", "--port", str(port))
        with gateway(None, *flags) as running:
            assert ask("chat", running.url).text == "B"
            running.signal(signal.SIGKILL)
            running.wait()
        with gateway(None, *flags) as again:
            assert again.url == running.url
            assert ask("chat", again.url).text == "B"


def test_health_and_home() -> None:
    """`/healthz` says that it runs, even if its upstream does not; HEAD and GET of `/` answer."""
    with gateway(None, "--upstream", "http://127.0.0.1:9") as running:
        assert get(running.url, "/healthz").json()["status"] == "ok"
        assert get(running.url, "/").status_code == 200
        assert httpx.head(running.url + "/", verify=False).status_code == 200
        assert post(running.url, PATHS["chat"], body_of("chat")).status_code == 502


def test_metrics_after_requests() -> None:
    """`/metrics` counts what was asked, thought, answered and noticed, in Prometheus' own text."""
    with upstream() as server, gateway(None, "--upstream", server.url, "--format", "qwen3") as running:
        server.say("<think>Half.</think>Half.")
        ask("chat", running.url)
        ask("messages", running.url, stream=True)
        server.say("<think>never closed")
        ask("chat", running.url, stream=True)
        server.send(json_reply({"error": {"message": "no"}}, 503))
        post(running.url, PATHS["chat"], body_of("chat"))
        text = get(running.url, "/metrics").text
    counted: Counter[str] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            counted[sample.name] += round(sample.value)
            counted[f"{sample.name} {' '.join(sample.labels.values())}"] += round(sample.value)
    assert counted["asides_requests_total"] == 4
    assert counted["asides_first_thought_seconds_count"] == 3
    assert counted["asides_first_answer_seconds_count"] == 2
    assert counted["asides_empty_answers_total"] == 1
    assert counted["asides_notices_total unclosed_thinking"] == 1
    assert counted["asides_tokens_total thinking"] == 11 + 11 + 22
    assert counted["asides_tokens_total answer"] == 11 + 11


def test_request_ids() -> None:
    """Every answer has an id, the client's own if it is harmless; the log knows it, the upstream if it is a UUID."""
    with upstream() as server, gateway({"upstreams": [{"url": server.url}], "log": {"form": "json"}}) as running:
        mine = str(uuid.uuid4())
        given = post(running.url, PATHS["chat"], body_of("chat"), headers={"X-Request-Id": mine})
        assert given.headers["x-request-id"] == mine
        assert server.question().headers["x-request-id"] == mine
        running.wait_for_record(lambda record: record.get("request_id") == mine)
        other = post(running.url, PATHS["chat"], body_of("chat"), headers={"X-Request-Id": "mine-1"})
        assert other.headers["x-request-id"] == "mine-1"
        assert "x-request-id" not in server.question().headers  # llama-cpp-python refuses what is no UUID
        made = post(running.url, PATHS["chat"], body_of("chat")).headers["x-request-id"]
        assert uuid.UUID(made).hex == made
        for odd in ("x" * 500, 'a"b', "a b"):
            reply = post(running.url, PATHS["chat"], body_of("chat"), headers={"X-Request-Id": odd})
            assert reply.headers["x-request-id"] not in ("", odd)
        for path in ("/healthz", "/v1/models", "/nothing"):
            assert get(running.url, path).headers["x-request-id"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=PATIENCE, cwd="/")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models:\n  m:\n    formt: qwen3\n", "formt"),
        ("defaults:\n  format: nosuchformat\n", "nosuchformat"),
    ],
)
def test_a_wrong_file(tmp_path: Path, text: str, said: str) -> None:
    """A mistake in the file is said with its place, and never as a traceback."""
    file = tmp_path / "asides.yaml"
    file.write_text(text)
    done = run("--config", str(file), "--port", "0")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken() -> None:
    """Another program on the port is said in words."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run("--upstream", "http://127.0.0.1:9", "--port", port)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert port in done.stderr


def test_a_hangup_while_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts once it listens: the file may have changed since it was read."""
    read: list[str] = []

    async def start(server: Any, sockets: Any) -> None:
        server._hang_up()
        assert not read
        server.started = True

    async def application(*arguments: Any) -> None:
        pass

    monkeypatch.setattr(uvicorn.Server, "startup", start)
    # What it sets for its whole process is not to be set for this one.
    for module, name in ((gc, "collect"), (gc, "freeze"), (gc, "set_threshold"), (sys, "setswitchinterval")):
        monkeypatch.setattr(module, name, lambda *arguments: None)
    server = serving._Server(uvicorn.Config(application))
    monkeypatch.setattr(server, "reload", lambda: read.append("again"))
    asyncio.run(server.startup())
    assert read == ["again"]


def test_on_a_terminal_each_upstream_is_asked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever starts it by hand sees at once whether it can work."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    async def work(config: Config) -> None:
        serving.announce(config, "http://127.0.0.1:1", "")
        await asyncio.gather(*serving._reporting)

    caplog.set_level(logging.INFO, "asides.gateway")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with upstream() as server:
        near = UpstreamSettings(url=server.url, name="near")
        asyncio.run(work(Config(upstreams=(near, UpstreamSettings(url="http://127.0.0.1:9", name="far")))))
    asked = {record.message: record.levelname for record in caplog.records if hasattr(record, "event")}
    assert asked["the upstream near answers"] == "INFO"
    assert [level for line, level in asked.items() if "far at http" in line] == ["WARNING"]


def test_the_box_of_the_address_is_never_wider_than_the_terminal() -> None:
    """Where it would be, rules stand in its place, so that an address can be copied whole."""
    lines = ("asides", "page  http://127.0.0.1:8777/?token=abc")
    wide, narrow = serving.boxed(lines, 80).split("\n"), serving.boxed(lines, 40).split("\n")
    assert wide[0] == f"╭{'─' * (len(lines[1]) + 2)}╮"
    assert wide[2] == f"│ {lines[1]} │"
    assert narrow == ["─" * 39, *lines, "─" * 39]
