"""`/readyz`: whether an upstream answers, without a key, and without asking upstreams more than is needed."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest

from asides._gateway import readiness
from asides._gateway.readiness import FRESH, try_upstream
from asides._gateway.upstreams import UpstreamLost
from tests.gateway.clients import get
from tests.gateway.running import gateway
from tests.gateway.upstream import json_reply, upstream
from tests.waiting import eventually

GONE = "http://127.0.0.1:9"


def test_ready_while_one_upstream_answers() -> None:
    """One is enough: the others may come back. Addresses are in the log, not in the answer."""
    with upstream() as server:
        config = {"upstreams": [{"url": server.url}, {"url": GONE, "name": "far"}], "keys": ["k-1"]}
        with gateway(config) as running:
            answer = get(running.url, "/readyz")
            assert answer.status_code == 200
            assert answer.json() == {"status": "ready", "upstreams": 2, "reachable": 1}
            eventually(lambda: "the upstream far does not answer" in running.log, "nothing is logged")


def test_not_ready_without_any() -> None:
    """A balancer is to look elsewhere; the gateway itself is well."""
    with gateway(None, "--upstream", GONE) as running:
        answer = get(running.url, "/readyz")
        assert answer.status_code == 503
        assert answer.json()["reachable"] == 0
        assert answer.headers["retry-after"] == "2"
        assert get(running.url, "/healthz").status_code == 200


@pytest.mark.parametrize("kind", ["openai", "auto"])
def test_a_server_that_fails_or_wants_a_key(kind: str) -> None:
    """A server that answers 5xx cannot serve; one that wants a key is there."""
    with upstream() as server, gateway(None, "--upstream", server.url, "--kind", kind) as running:
        server.replies["/v1/models"] = json_reply({}, 503)
        assert get(running.url, "/readyz").status_code == 503
        server.replies["/v1/models"] = json_reply({}, 401)
        eventually(lambda: get(running.url, "/readyz").status_code == 200, "it is not ready again")
        eventually(lambda: "answers again" in running.log, "nothing is logged")


def test_upstreams_are_asked_seldom() -> None:
    """Whoever asks, and however often: without a key this must not become a load on the upstream."""
    with upstream() as server, gateway(None, "--upstream", server.url, "--kind", "openai") as running:
        began = time.monotonic()
        for _ in range(20):
            assert get(running.url, "/readyz").status_code == 200
        assert len(server.asked) <= 2 + (time.monotonic() - began) // FRESH


def test_the_recordings_are_ready() -> None:
    """Without an upstream the recordings answer."""
    with gateway() as running:
        assert get(running.url, "/readyz").json() == {"status": "ready", "upstreams": 1, "reachable": 1}


class Failing:
    """An upstream that breaks off, or says nothing at all."""

    name = "far"

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def find_kind(self) -> Any:
        """Never returns."""
        if self._error is not None:
            raise self._error
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("error", "why"), [(UpstreamLost("it broke off", "lost"), "it broke off"), (None, "within 0.01 s")]
)
def test_why_an_upstream_does_not_answer(error: Exception | None, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that breaks off, and one that is too slow: neither is ready, and each says why."""
    monkeypatch.setattr(readiness, "LONGEST", 0.01)
    answers, words = asyncio.run(try_upstream(cast(Any, Failing(error))))
    assert not answers
    assert words.startswith("the upstream far does not answer")
    assert why in words


@pytest.mark.parametrize(("status", "told"), [(503, 503), (500, 502), (401, 401)])
def test_a_list_of_models_that_cannot_be_had(status: int, told: int) -> None:
    """Is an error that names the upstream, in the shape of each API, and no empty list."""
    with upstream() as server, gateway(None, "--upstream", server.url) as running:
        for path in ("/v1/models", "/models", "/api/tags", "/v1/models/m"):
            assert get(running.url, path).status_code == 200
        server.replies["/v1/models"] = json_reply({"error": {"message": "starting"}}, status)
    with upstream() as server, gateway(None, "--upstream", server.url) as running:
        server.replies["/v1/models"] = json_reply({"error": {"message": "starting"}}, status)
        for path in ("/v1/models", "/api/tags", "/v1/models/m"):
            answer = get(running.url, path)
            assert answer.status_code == told, answer.text
            assert f"status {status}" in answer.text
        server.replies["/v1/models"] = json_reply({}, 404)
        assert get(running.url, "/v1/models").json()["data"] == []


def test_a_list_of_models_without_an_upstream() -> None:
    """The error says why; what the configuration names is listed all the same, and so is what another upstream has."""
    with gateway(None, "--upstream", GONE) as running:
        answer = get(running.url, "/v1/models")
        assert (answer.status_code, "cannot be reached" in answer.text) == (502, True)
    with upstream() as server:
        config = {"upstreams": [{"url": GONE, "name": "far"}, {"url": server.url}]}
        with gateway(config) as running:
            assert [model["id"] for model in get(running.url, "/v1/models").json()["data"]] == ["m"]
    with gateway({"upstreams": [{"url": GONE}], "models": {"mine": {"format": "qwen3"}}}) as running:
        assert [model["id"] for model in get(running.url, "/v1/models").json()["data"]] == ["mine"]
