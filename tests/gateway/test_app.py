"""The application in this process, over real sockets: requests that cannot be served, and upstreams that break off."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from asides._config import UpstreamSettings
from asides._config.schema import Config, Limits, ModelSettings, PageSettings
from asides._gateway.app import Gateway
from asides._gateway.record import RequestRecord
from asides._gateway.routes import HANDLERS
from asides.dialects import openai_chat
from asides.reply._items import ReplyItem, Usage
from tests.gateway.clients import PATHS, body_of, get, post
from tests.gateway.sockets import connected
from tests.gateway.test_kept_nowhere import running
from tests.gateway.upstream import JSON, SSE, Close, Reply, Upstream, frame, upstream

CHAT = PATHS["chat"]


class Servers(NamedTuple):
    """An application before a server of each kind."""

    app: Gateway
    url: str
    openai: Upstream
    ollama: Upstream


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One for all tests of this file."""
    with upstream(models=("m", "plain")) as openai, upstream("ollama", models=("local",)) as ollama:
        upstreams = (
            UpstreamSettings(url=openai.url, name="openai", kind="openai", models=("m", "plain")),
            UpstreamSettings(url=ollama.url, name="ollama", kind="ollama", models=("local",)),
        )
        models = {"plain": ModelSettings(format="none")}
        config = Config(
            upstreams=upstreams, models=models, defaults=ModelSettings(format="qwen3"), limits=Limits(body=50_000)
        )
        app = Gateway(config)
        with running(app) as url:
            yield Servers(app, url, openai, ollama)


def error_of(reply: httpx.Response) -> tuple[int, str]:
    """The status of a refusal, and its message."""
    found = reply.json()["error"]
    return reply.status_code, found if isinstance(found, str) else found["message"]


def test_every_row_has_a_handler(servers: Servers) -> None:
    """And every handler a row."""
    assert servers.app._handlers.keys() == HANDLERS


def test_tokens_of_what_is_no_request_are_not_counted(servers: Servers) -> None:
    """The client learns which field is wrong, and no server is asked."""
    status, message = error_of(post(servers.url, "/v1/messages/count_tokens", {"model": "m", "messages": 5}))
    assert status == 400
    assert "messages" in message
    assert not servers.openai.asked


def test_a_model_that_has_no_name_is_not_shown(servers: Servers) -> None:
    """As Ollama answers it."""
    assert error_of(post(servers.url, "/api/show", {})) == (400, "model is required")


def test_a_preflight_request_without_an_origin_is_refused(servers: Servers) -> None:
    """No browser sends one."""
    assert httpx.options(servers.url + CHAT, verify=False).status_code == 405


@pytest.mark.parametrize(("error", "status"), [(ZeroDivisionError("inner"), 500), (asyncio.CancelledError(), 503)])
def test_a_failure_of_ours_is_an_answer(
    servers: Servers,
    error: BaseException,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In the client's dialect and without what went wrong inside; and the next request is served."""

    async def fail(*arguments: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setitem(servers.app._handlers, "models", fail)
        found, message = error_of(get(servers.url, "/v1/models"))
    assert found == status
    assert "inner" not in message
    assert ("ZeroDivisionError: inner" in caplog.text) is (status == 500)
    assert get(servers.url, "/v1/models").status_code == 200


def test_a_failure_of_ours_behind_an_answer_is_no_second_one(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What has begun ends there; the log says what went wrong."""

    async def fail(http: Any, *rest: Any) -> None:
        await http.answer(200, b"{}")
        raise ZeroDivisionError("inner")

    monkeypatch.setitem(servers.app._handlers, "models", fail)
    with connected(servers.url) as client:
        client.socket.sendall(b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        client.read_rest()
    assert client.read.count(b"HTTP/1.1 ") == 1
    assert client.read.endswith(b"{}")
    assert "ZeroDivisionError: inner" in caplog.text


def test_tokens_that_a_server_does_not_count_are_estimated(servers: Servers) -> None:
    """Ollama has no path for it, so it is not asked."""
    body = {"model": "local", "messages": [{"role": "user", "content": "a" * 40}]}
    reply = post(servers.url, "/v1/messages/count_tokens", body)
    assert reply.json()["input_tokens"] >= 10
    assert reply.headers["x-asides-estimate"] == "tokens"
    assert not servers.ollama.asked


def test_a_server_that_breaks_off_while_it_shows_a_model(servers: Servers) -> None:
    """Is an error of the upstream's, by its code."""
    servers.ollama.send(Reply([b'{"details', Close()], headers=JSON), "/api/show")
    assert post(servers.url, "/api/show", {"model": "local"}).status_code == 502
    servers.ollama.replies.clear()


def test_a_body_without_a_length_is_bounded(servers: Servers) -> None:
    """Also one that has come whole with its head."""
    body = b"x" * 60_000
    with connected(servers.url) as client:
        head = b"POST %b HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n" % CHAT.encode()
        client.socket.sendall(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        client.read_until(b"limits.body")
    assert client.read.startswith(b"HTTP/1.1 413 ")


def test_what_passes_unread_is_the_upstreams_to_refuse(servers: Servers) -> None:
    """A body that we cannot read is passed on all the same where nothing of it is to be changed."""
    reply = post(servers.url, CHAT, body_of("chat", model="plain", thinking_token_budget="many"))
    assert reply.status_code == 200
    assert "x-asides-budget" not in reply.headers
    assert servers.openai.question().body["thinking_token_budget"] == "many"


def test_what_passes_unread_breaks_off_as_the_upstream_does(servers: Servers) -> None:
    """No error of ours is written among bytes that are not ours."""
    servers.openai.send(Reply([frame("One"), Close()], headers=SSE))
    with connected(servers.url) as client:
        client.post(CHAT, body_of("chat", model="plain", stream=True))
        client.read_until(b"One")
        assert b"error" not in client.read_rest()
        assert not client.read.endswith(b"0\r\n\r\n")


def test_a_reply_that_cannot_be_written_whole(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is written without what the upstream says about it: the answer is worth more than its figures."""
    write = openai_chat.write_reply

    def fail(items: list[ReplyItem], *rest: Any, **options: Any) -> dict[str, Any]:
        if any(isinstance(item, Usage) for item in items):
            raise ZeroDivisionError
        return write(items, *rest, **options)

    monkeypatch.setattr(openai_chat, "write_reply", fail)
    servers.openai.say("<think>\nWhy.\n</think>\n\nSo.", usage=(5, 7))
    message = post(servers.url, CHAT, body_of("chat", model="m")).json()["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("Why.", "So.")


def test_what_the_page_shows_of_models(servers: Servers) -> None:
    """Ollama says what its models can; recordings cannot see; and neither ends a thought on request."""
    found = get(servers.url, "/asides/models/local").json()
    assert (found["images"], found["answer_now"]) == (False, False)
    with running(Gateway(Config(page=PageSettings(show=True)))) as url:
        recorded = get(url, "/asides/models").json()["models"]
    assert recorded
    assert all(model["images"] is False for model in recorded)


def test_earlier_states_are_closed_when_it_stops() -> None:
    """Also one whose requests have not ended: nobody waits for them any more."""
    sent: list[str] = []

    async def work() -> None:
        app = Gateway(Config())
        stopping = asyncio.Event()
        starting = [{"type": "lifespan.startup"}]

        async def receive() -> dict[str, Any]:
            if not starting:
                await stopping.wait()
            return starting.pop() if starting else {"type": "lifespan.shutdown"}

        async def send(message: Any) -> None:
            sent.append(message["type"])

        serving = asyncio.create_task(app({"type": "lifespan"}, receive, send))
        await asyncio.sleep(0)
        app._open.add(RequestRecord("never", "POST", CHAT))
        app.reload(Config())
        await asyncio.sleep(0)
        assert app._retiring
        stopping.set()
        await serving
        await asyncio.sleep(0)
        assert not app._retiring

    asyncio.run(work())
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
