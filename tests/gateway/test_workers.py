"""Several workers on one port: they act as one gateway, whichever of them a connection reaches."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import httpx
import psutil
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from asides._config.schema import Config
from asides._gateway import siblings, workers
from asides._gateway.observe.summed import summed
from asides._gateway.siblings import Siblings
from tests.gateway.clients import PATHS, ask, body_of, get, post
from tests.gateway.running import COMMAND, Gateway, gateway
from tests.gateway.sockets import connected
from tests.gateway.upstream import Gate, Hang, Reply, Upstream, json_reply, upstream
from tests.waiting import PATIENCE, eventually

FIRST = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"<think>One"}}]}\n\n'
REST = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"</think>Two"},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
MANY = 24
"""Connections: that one of two workers gets none of them happens once in 8 million times."""


def settings(server: Upstream, folder: Path) -> dict[str, Any]:
    return {
        "listen": {"workers": 2},
        "upstreams": [{"url": server.url}],
        "defaults": {"format": "qwen3"},
        "responses": {"store": "history"},
        "replay_cache": {"store": "history"},
        "history": {"store": str(folder / "history.db")},
    }


class Served(NamedTuple):
    gateway: Gateway
    upstream: Upstream


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two workers before one upstream, for the tests that leave them as they are."""
    with upstream() as server, gateway(settings(server, tmp_path_factory.mktemp("workers"))) as running:
        yield Served(running, server)


def _workers(running: Gateway) -> list[psutil.Process]:
    return running.watched.children()


def _counts(running: Gateway) -> dict[str, float]:
    families = text_string_to_metric_families(get(running.url, "/metrics").text)
    found: dict[str, float] = {}
    for family in families:
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def test_both_answer_and_metrics_are_summed(servers: Served) -> None:
    """Whichever worker is asked for metrics, they are those of both."""
    assert len(_workers(servers.gateway)) == 2
    before = _counts(servers.gateway)["asides_request_seconds_count"]
    for _ in range(MANY):
        assert post(servers.gateway.url, PATHS["chat"], body_of("chat")).status_code == 200
    assert {get(servers.gateway.url, "/healthz").json()["worker"] for _ in range(MANY)} == {0, 1}
    for _ in range(6):
        assert _counts(servers.gateway)["asides_request_seconds_count"] == before + MANY


def test_a_stored_response_is_found_by_every_worker(servers: Served) -> None:
    """What one worker stored another hands out, and goes on from."""
    url = servers.gateway.url
    id = ask("responses", url, store=True).raw.id
    for _ in range(MANY):
        assert get(url, f"/v1/responses/{id}", authorization="Bearer sk-client").status_code == 200
    servers.upstream.say("And 5.")
    for _ in range(6):
        assert ask("responses", url, previous_response_id=id).text == "And 5."


def test_a_dropped_thought_is_put_back_by_every_worker(servers: Served) -> None:
    """The worker that gets a tool's result has not seen the thought before the call."""
    url = servers.gateway.url
    servers.upstream.say('<think>I look.</think><tool_call>{"name": "find", "arguments": {"query": "x"}}</tool_call>')
    call = ask("chat", url, tools=True).raw.choices[0].message.tool_calls[0]
    messages = [
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": "", "tool_calls": [call.model_dump()]},
        {"role": "tool", "tool_call_id": call.id, "content": "found"},
    ]
    servers.upstream.say("done")
    for _ in range(MANY):
        ask("chat", url, tools=True, messages=messages)
        assert "I look." in str(servers.upstream.question().body["messages"])


def test_the_control_request_reaches_a_reply_of_another_worker(servers: Served) -> None:
    """llama.cpp's request that ends a thought names a reply that any worker may be writing."""
    gate = Gate()
    servers.upstream.send(Reply([FIRST, gate, REST, DONE]))
    servers.upstream.replies["/v1/chat/completions/control"] = json_reply({"ended": True})
    with connected(servers.gateway.url) as client:
        client.post(PATHS["chat"], body_of("chat", stream=True))
        client.read_until(b"One")
        for _ in range(6):
            assert post(servers.gateway.url, "/v1/chat/completions/control", {"id": "1"}).json() == {"ended": True}
        assert post(servers.gateway.url, "/v1/chat/completions/control", {"id": "2"}).status_code == 404
        gate.open()
        client.read_until(b"[DONE]")


def test_a_worker_that_dies_is_started_again(tmp_path: Path) -> None:
    """The others go on meanwhile."""
    with upstream() as server, gateway(settings(server, tmp_path)) as running:
        first = _workers(running)
        first[0].kill()
        eventually(lambda: len(_workers(running)) == 2 and first[0] not in _workers(running), "it was not started")
        eventually(lambda: _answers(running.url), "it does not answer")
        running.wait_for_record(lambda line: line.get("event") == "worker_ended")


def _answers(url: str) -> bool:
    try:
        return all(get(url, "/healthz").status_code == 200 for _ in range(MANY))
    except httpx.TransportError:
        return False


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_stopping_finishes_open_streams(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """One signal to the supervisor, and every worker ends its streams first."""
    gate = Gate()
    with upstream() as server, gateway(settings(server, tmp_path)) as running:
        workers = _workers(running)
        server.send(Reply([FIRST, gate, REST, DONE]))
        with connected(running.url) as client:
            client.post(PATHS["chat"], body_of("chat", stream=True))
            client.read_until(b"One")
            running.signal(number)
            gate.open()
            client.read_until(b"[DONE]")
        assert running.wait() == code
        assert not any(worker.is_running() for worker in workers)
        assert "Traceback" not in running.log


def test_a_restart_without_a_gap(tmp_path: Path) -> None:
    """SIGUSR2: new processes take the place of all, a stream that was open ends whole, and no request fails."""
    gate = Gate()
    with upstream() as server, gateway(settings(server, tmp_path)) as running:
        old = {worker.pid for worker in _workers(running)}
        server.send(Reply([FIRST, gate, REST, DONE]))
        statuses: list[int] = []

        def restarted() -> bool:
            statuses.append(get(running.url, "/healthz").status_code)
            return any(line.get("event") == "restarted" for line in running.records)

        with connected(running.url) as client:
            client.post(PATHS["chat"], body_of("chat", stream=True))
            client.read_until(b"One")
            running.signal(signal.SIGUSR2)
            running.wait_for_record(lambda line: line.get("event") == "restarting")
            assert not restarted()
            gate.open()
            client.read_until(b"[DONE]")
        eventually(restarted, "the workers were not restarted")
        assert len(_workers(running)) == 2
        assert not old & {worker.pid for worker in _workers(running)}
        assert set(statuses) == {200}
        assert not any(line.get("event") == "worker_ended" for line in running.records)


def test_a_restart_with_a_mistake_leaves_the_others(tmp_path: Path) -> None:
    """The first new worker does not start, so the second is not stopped; once the file is right, it goes on."""
    path = tmp_path / "asides.yaml"
    with upstream() as server:
        path.write_text(yaml.safe_dump(settings(server, tmp_path)))
        _restart_with_a_mistake(path)


def _restart_with_a_mistake(path: Path) -> None:
    with gateway(None, "--config", str(path)) as running:
        second = _workers(running)[1]
        right = path.read_text()
        path.write_text("listen: {prot: 1}\n")
        running.signal(signal.SIGUSR2)
        running.wait_for_record(lambda line: line.get("event") == "worker_ended")
        assert all(get(running.url, "/healthz").status_code == 200 for _ in range(MANY))
        assert _runs(second)
        path.write_text(right)
        running.wait_for_record(lambda line: line.get("event") == "restarted")
        assert _answers(running.url)


def test_one_process_is_not_ended_by_it() -> None:
    """By default the signal would end it."""
    with gateway() as running:
        running.signal(signal.SIGUSR2)
        running.wait_for_record(lambda line: "several workers" in line.get("message", ""))
        assert get(running.url, "/healthz").status_code == 200


def test_a_killed_supervisor_leaves_nobody_behind(tmp_path: Path) -> None:
    """Workers that nobody watches over would hold the port."""
    with upstream() as server, gateway(settings(server, tmp_path)) as running:
        workers = _workers(running)
        running.signal(signal.SIGKILL)
        eventually(lambda: not any(_runs(worker) for worker in workers), "a worker still runs")


def _runs(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_a_reload_reaches_every_worker(tmp_path: Path) -> None:
    """SIGHUP to the supervisor is for all."""
    with upstream() as server, gateway(settings(server, tmp_path)) as running:
        running.signal(signal.SIGHUP)
        eventually(lambda: sum(line.get("event") == "reloaded" for line in running.records) == 2, "not both reloaded")


@pytest.mark.parametrize("missing", ["responses", "replay_cache"])
def test_refused_without_a_shared_store(tmp_path: Path, missing: str) -> None:
    """Workers that do not see each other's state would answer at random; the reason and the setting are named."""
    with upstream() as server:
        config = settings(server, tmp_path)
        del config[missing]
        path = tmp_path / "asides.yaml"
        path.write_text(yaml.safe_dump(config))
        found = subprocess.run(
            [*COMMAND, "--config", str(path), "--port", "0"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert found.returncode == 2
    assert f"{missing}: {{store: history}}" in found.stderr


def test_two_gateways_do_not_share_a_port(tmp_path: Path) -> None:
    """The second one would take half of the first one's connections."""
    with upstream() as server, gateway(settings(server, tmp_path)) as running:
        port = running.url.rpartition(":")[2]
        path = tmp_path / "second.yaml"
        path.write_text(yaml.safe_dump(settings(server, tmp_path)))
        found = subprocess.run(
            [*COMMAND, "--config", str(path), "--port", port],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert found.returncode == 2
        assert "another program uses this port" in found.stderr


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    """Also with several workers. The first would give the stream longer than is waited for here."""
    with upstream() as server, gateway({**settings(server, tmp_path), "limits": {"shutdown": 600}}) as running:
        server.send(Reply([FIRST, Hang()]))
        with connected(running.url) as client:
            client.post(PATHS["chat"], body_of("chat", stream=True))
            client.read_until(b"One")
            running.signal(signal.SIGTERM)
            # Two at once would be one: a signal that waits already is not counted again.
            eventually(lambda: not running.answers(), "it still takes new requests")
            running.signal(signal.SIGTERM)
            running.wait()


def test_sums() -> None:
    """Counters and histograms are added up, points in time and what is shared are not."""
    page = b"""# HELP a_total A.
# TYPE a_total counter
a_total{kind="x"} 2.0
# HELP asides_start_time_seconds When.
# TYPE asides_start_time_seconds gauge
asides_start_time_seconds 50.0
# HELP asides_responses_entries There.
# TYPE asides_responses_entries gauge
asides_responses_entries 7.0
"""
    other = page.replace(b"2.0", b"3.0").replace(b"50.0", b"40.0")
    text = summed([page, other, b'# HELP a_total A.\n# TYPE a_total counter\na_total{kind="y"} 1.0\n']).decode()
    assert 'a_total{kind="x"} 5.0' in text
    assert 'a_total{kind="y"} 1.0' in text
    assert "asides_start_time_seconds 40.0" in text
    assert "asides_responses_entries 7.0" in text
    assert text.count("# TYPE a_total counter") == 1


def test_a_system_that_cannot_share_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has one worker, and the reason is given."""
    monkeypatch.delattr(socket, "SO_REUSEPORT")
    assert "SO_REUSEPORT" in workers.refusal(Config())


def test_workers_that_cannot_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Are given up after a few attempts, and that is a failure."""
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    assert asyncio.run(workers._Supervisor(1, [], 0, "", tmp_path).run(lambda: None)) == 1
    assert caplog.text.count("it is started again") == workers.MOST_FAILURES
    assert "worker 0 cannot be started" in caplog.text


def test_a_worker_that_gives_no_answer(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """One that was killed, one that does not know the question, one that hangs: the others' answers count."""

    async def work(folder: Path) -> None:
        asking, knowing = Siblings(str(folder), 0, {}), Siblings(str(folder), 1, {"number": lambda: b"1"})
        for each in (asking, knowing):
            await each.open()
        (folder / "2.sock").touch()
        assert await asking.ask("number") == [b"1"]
        assert await asking.ask("what") == [b""]
        with socket.socket(socket.AF_UNIX) as hung:
            hung.bind(str(folder / "3.sock"))
            hung.listen()
            monkeypatch.setattr(siblings, "LONGEST_WAIT", 0.05)
            assert set(await asking.ask("number")) <= {b"1"}
        for each in (asking, knowing):
            await each.close()

    with TemporaryDirectory(prefix="asides-") as folder:  # the path of a socket must be short
        asyncio.run(work(Path(folder)))
    for line in ("the worker 2 does not answer", "the worker 3 does not answer", "question was not answered"):
        assert line in caplog.text
