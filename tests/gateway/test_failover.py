"""Failover: the next upstream that serves the same name is asked, but only where nothing was sent to the first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from socket import socket
from typing import Any

import pytest

from tests.gateway.clients import DIALECTS, PATHS, Dialect, ask, body_of, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Reply, Reset, Upstream, json_reply, upstream
from tests.waiting import eventually


@contextmanager
def nobody() -> Iterator[str]:
    """An address at which nobody listens; kept, so that nobody else takes it."""
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def behind(first: str, second: Upstream, kind: str = "auto", **settings: Any) -> Iterator[Gateway]:
    """A gateway before two upstreams that serve the same names."""
    known = {"models": ["m*"], "kind": kind}
    upstreams = [{"url": first, "name": "first", **known}, {"url": second.url, **known}]
    with gateway({"upstreams": upstreams, "defaults": {"format": "qwen3"}, **settings}) as running:
        yield running


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [False, True])
def test_the_next_one_is_asked(dialect: Dialect, stream: bool) -> None:
    """Where the first cannot be reached the client notices nothing; log and metrics do."""
    with nobody() as first, upstream() as second, behind(first, second) as running:
        second.say("<think>A.</think>B.")
        seen = ask(dialect, running.url, stream=stream)
        assert (seen.thinking, seen.text) == ("A.", "B.")
        line = running.wait_for_record(lambda line: line.get("failovers"))
        assert line["upstream"] != "first"
        assert "asides_failovers_total 1.0" in get(running.url, "/metrics").text


@pytest.mark.parametrize(
    ("dialect", "format", "fields", "header"),
    [
        ("messages", "qwen3", {"frobnicate": 1}, "x-asides-left-out"),
        ("chat", "none", {"thinking_budget": 100}, "x-asides-budget"),
        ("chat", "qwen3", {"thinking_budget": 100}, "x-asides-budget"),
    ],
)
def test_what_is_reported_of_a_request_is_reported_once(
    dialect: Dialect, format: str, fields: dict[str, Any], header: str
) -> None:
    """The request is planned for each upstream whose kind is known; the headers are of the one that answers."""
    settings = {"defaults": {"format": format}}
    with nobody() as first, upstream() as second, behind(first, second, "openai", **settings) as running:
        answer = post(running.url, PATHS[dialect], body_of(dialect, **fields))
        assert answer.status_code == 200
        running.wait_for_record(lambda line: line.get("failovers"))
        assert len(answer.headers.get_list(header)) == 1


def test_one_that_was_not_reached_is_asked_last_for_a_while() -> None:
    """Nobody waits again and again for a server that is gone."""
    with nobody() as first, upstream() as second, behind(first, second) as running:
        for _ in range(3):
            assert ask("chat", running.url).text == "It is 4."
        eventually(lambda: sum("route" in line for line in running.records) == 3, "three requests were made")
        assert sum(line.get("failovers", 0) for line in running.records) == 1


@pytest.mark.parametrize(
    "reply", [Reply(before=[Reset()]), json_reply({"error": {"message": "busy"}}, 503)], ids=["reset", "503"]
)
def test_what_was_sent_is_never_sent_again(reply: Reply) -> None:
    """A server that broke off or refused may have acted upon the request."""
    with upstream() as first, upstream() as second, behind(first.url, second) as running:
        first.send(reply)
        assert post(running.url, PATHS["chat"], body_of("chat")).status_code in (502, 503)
        assert not any(asked.method == "POST" for asked in second.asked)


def test_none_can_be_reached() -> None:
    """The error is that of the last; and a model that names its upstream goes nowhere else."""
    with nobody() as first, nobody() as other:
        upstreams = [{"url": first, "name": "first", "models": ["m"]}, {"url": other, "name": "other", "models": ["m"]}]
        with gateway({"upstreams": upstreams}) as running:
            answer = post(running.url, PATHS["chat"], body_of("chat"))
            assert answer.status_code == 502
            assert "other" in answer.json()["error"]["message"]
    mine = {"mine": {"upstream": "first"}}
    with nobody() as first, upstream() as second, behind(first, second, models=mine) as running:
        answer = post(running.url, PATHS["chat"], {**body_of("chat"), "model": "mine"})
        assert answer.status_code == 502
        assert not second.asked


def test_what_is_passed_on_too() -> None:
    """Embeddings go to the next one as well."""
    with nobody() as first, upstream() as second, behind(first, second) as running:
        second.replies["/v1/embeddings"] = json_reply({"data": []})
        assert post(running.url, "/v1/embeddings", {"model": "m", "input": "x"}).json() == {"data": []}
