"""Who may ask, whose key is shown to whom, what browsers are told, and that no secret is ever logged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest

from tests.gateway.clients import DIALECTS, PATHS, Dialect, ask, body_of, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Upstream, json_reply, upstream
from tests.waiting import eventually

CLIENT_KEY = "sk-client-1b7e"
GATEWAY_KEY = "gw-key-93aa"
OTHER_GATEWAY_KEY = "gw-kéy-77cc"
UPSTREAM_KEY = "up-key-41dd"
PROMPT = "a very private question"
ANSWER = "a very private answer"
SHOWN = [
    {"Authorization": "Bearer {}"},
    {"authorization": "bearer {}"},
    {"x-api-key": "{}"},
    {"api-key": "{}"},
]


class House(NamedTuple):
    """An open gateway and a guarded one before the same upstreams; `keyed` is one that is given a key."""

    open: Gateway
    guarded: Gateway
    plain: Upstream
    keyed: Upstream


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """One for all tests of this file."""
    with upstream() as plain, upstream() as keyed:
        upstreams = [
            {"url": plain.url, "name": "plain", "models": ["plain"]},
            {
                "url": keyed.url,
                "name": "keyed",
                "models": ["keyed"],
                "key": "$UPSTREAM_SECRET",
                "headers": {"X-Team": "a"},
            },
        ]
        shared = {"upstreams": upstreams, "defaults": {"format": "qwen3"}, "log": {"level": "debug", "form": "json"}}
        shared["forward_headers"] = ["X-Team-Tag", "cookie"]  # a cookie is the browser's, whatever is configured
        guarded = {**shared, "keys": [GATEWAY_KEY, OTHER_GATEWAY_KEY]}
        secret = {"UPSTREAM_SECRET": UPSTREAM_KEY}
        cors = {"cors": ["https://chat.example"]}
        with gateway(shared, variables=secret) as first, gateway({**guarded, **cors}, variables=secret) as second:
            yield House(first, second, plain, keyed)


@pytest.fixture(autouse=True)
def _forget(house: House) -> None:
    house.plain.forget()
    house.keyed.forget()


def shown(headers: dict[str, str], key: str) -> dict[str, str]:
    """Headers that show a key."""
    return {name: value.format(key) for name, value in headers.items()}


def asked(server: Upstream) -> dict[str, str]:
    """The headers of the latest request for the model."""
    return dict(server.question().headers)


# Without keys of its own.


@pytest.mark.parametrize("headers", SHOWN, ids=str)
def test_a_clients_key_is_forwarded(house: House, headers: dict[str, str]) -> None:
    """Without gateway keys, a client's key reaches the upstream in the upstream's own header."""
    reply = post(house.open.url, PATHS["chat"], body_of("chat", model="plain"), headers=shown(headers, CLIENT_KEY))
    assert reply.status_code == 200
    found = asked(house.plain)
    assert found["authorization"] == f"Bearer {CLIENT_KEY}"
    assert "x-api-key" not in found
    assert "api-key" not in found


def test_no_key_is_made_up(house: House) -> None:
    """A client without a key: the upstream gets none."""
    assert post(house.open.url, PATHS["chat"], body_of("chat", model="plain")).status_code == 200
    assert "authorization" not in asked(house.plain)


def test_the_upstreams_own_key_wins(house: House) -> None:
    """An upstream with a key in the file gets that one, from the environment, and its own headers."""
    body = body_of("chat", model="keyed")
    assert post(house.open.url, PATHS["chat"], body, headers=shown(SHOWN[0], CLIENT_KEY)).status_code == 200
    found = asked(house.keyed)
    assert found["authorization"] == f"Bearer {UPSTREAM_KEY}"
    assert found["x-team"] == "a"
    assert CLIENT_KEY not in str(found)


def test_other_headers(house: House) -> None:
    """A short list of headers goes on, and what `forward_headers` names; a client's own ids do not."""
    headers = {
        "OpenAI-Organization": "org-1",
        "Traceparent": "00-1-2-01",
        "X-Team-Tag": "yes",
        "User-Agent": "codex/1.0",
        "X-Codex-Turn-Metadata": "{}",
        "X-Claude-Code-Session-Id": "s",
        "X-Real-Ip": "192.0.2.1",
        "X-Forwarded-For": "192.0.2.1",
        "Anthropic-Beta": "b",
        "X-Vendor": "yes",
        "X-Asides-Start": "text",
        "Connection": "keep-alive, x-hop",
        "Cookie": "session=1",
        "Accept-Encoding": "gzip",
    }
    post(house.open.url, PATHS["chat"], body_of("chat", model="plain", stream=True), headers=headers)
    found = asked(house.plain)
    assert found["openai-organization"] == "org-1"
    assert (found["traceparent"], found["x-team-tag"], found["user-agent"]) == ("00-1-2-01", "yes", "asides")
    known = {"accept", "accept-encoding", "authorization", "content-length", "content-type", "host", "user-agent"}
    assert found.keys() <= known | {
        "anthropic-beta",
        "openai-organization",
        "traceparent",
        "x-team-tag",
        "x-request-id",
    }
    assert found["host"] == house.plain.url.removeprefix("http://")
    assert found.get("accept-encoding", "identity") == "identity"


# With keys of its own.


@pytest.mark.parametrize("key", [GATEWAY_KEY, OTHER_GATEWAY_KEY])
@pytest.mark.parametrize("headers", SHOWN, ids=str)
def test_a_gateway_key_stops_here(house: House, headers: dict[str, str], key: str) -> None:
    """With gateway keys, one of them is needed, in any of three headers, and it never reaches an upstream."""
    encoded = {name: value.encode() for name, value in shown(headers, key).items()}
    for model, server in (("plain", house.plain), ("keyed", house.keyed)):
        server.forget()
        reply = httpx.post(
            house.guarded.url + PATHS["chat"],
            json=body_of("chat", model=model),
            headers=[(name.encode(), value) for name, value in encoded.items()],
            verify=False,
        )
        assert reply.status_code == 200, reply.text
        found = asked(server)
        assert key not in str(found)
        assert found.get("authorization") == (f"Bearer {UPSTREAM_KEY}" if model == "keyed" else None)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_wrong_key(house: House, dialect: Dialect) -> None:
    """No key, a wrong one, or one in a place where keys do not stand: 401 in the dialect's shape; nobody is asked."""
    wrong: list[dict[str, str]] = [
        {},
        {"Authorization": f"Bearer {GATEWAY_KEY}x"},
        {"Authorization": f"Bearer {GATEWAY_KEY[:-1]}"},
        {"Authorization": "Bearer"},
        {"Authorization": f"Basic {GATEWAY_KEY}"},
        {"x-api-key": ""},
        {"Cookie": GATEWAY_KEY},
    ]
    for headers in wrong:
        reply = post(house.guarded.url, PATHS[dialect], body_of(dialect, model="plain"), headers=headers)
        assert reply.status_code == 401, headers
        error = reply.json()["error"]
        assert isinstance(error, str if dialect.startswith("ollama") else dict)
        if dialect == "messages":
            assert reply.json()["error"]["type"] == "authentication_error"
    assert not house.plain.asked


@pytest.mark.parametrize(
    "path", ["/v1/models", "/v1/models/plain", "/api/tags", "/v1/embeddings", "/tokenize", "/anything", "/metrics"]
)
def test_every_path_is_guarded(house: House, path: str) -> None:
    """A key is asked for wherever something of the model, its server or its use could be learned."""
    assert get(house.guarded.url, path).status_code == 401
    assert post(house.guarded.url, path, {}).status_code in (401, 405)  # 405: nobody may post there


def test_health_needs_no_key(house: House) -> None:
    """Whoever watches over the gateway needs no key."""
    assert get(house.guarded.url, "/healthz").status_code == 200


def test_the_sdks_show_keys(house: House) -> None:
    """Each SDK shows its key in its own header."""
    for dialect in DIALECTS:
        assert ask(dialect, house.guarded.url, model="plain", key=GATEWAY_KEY).text == "It is 4."


# What is logged.


def test_nothing_private_is_logged(house: House) -> None:
    """No key, no word of a request or a reply stands in the log, even of one that fails, even at debug."""
    house.plain.say(f"<think>{ANSWER}</think>{ANSWER}")
    for running, key in ((house.open, CLIENT_KEY), (house.guarded, GATEWAY_KEY), (house.guarded, "gw-wrong-55ff")):
        for dialect in DIALECTS:
            for stream in (False, True):
                body = body_of(dialect, model="plain", question=PROMPT, stream=stream)
                for headers in SHOWN:
                    post(running.url, PATHS[dialect], body, headers=shown(headers, key))
        post(running.url, "/v1/embeddings", {"model": "plain", "input": PROMPT}, headers=shown(SHOWN[0], key))
    house.plain.send(json_reply({"error": {"message": f"bad: {ANSWER}"}}, 400))
    post(house.open.url, PATHS["chat"], body_of("chat", model="plain", question=PROMPT))
    for running in (house.open, house.guarded):
        last = post(running.url, PATHS["chat"], b"{" + PROMPT.encode())
        id = last.headers["x-request-id"]
        eventually(lambda running=running, id=id: id in running.log, "the request is not in the log")  # type: ignore[misc]  # mypy cannot read defaults
        for secret in (CLIENT_KEY, GATEWAY_KEY, OTHER_GATEWAY_KEY, UPSTREAM_KEY, "gw-wrong-55ff", PROMPT, ANSWER):
            assert secret not in running.log, secret


def test_bodies_are_logged_if_asked() -> None:
    """`log.bodies` is what it takes."""
    with upstream() as server:
        server.say(ANSWER)
        config = {"upstreams": [{"url": server.url}], "log": {"form": "json", "bodies": True}}
        with gateway(config) as running:
            reply = post(
                running.url, PATHS["chat"], body_of("chat", question=PROMPT), headers=shown(SHOWN[0], CLIENT_KEY)
            )
            running.wait_for_record(lambda record: reply.headers["x-request-id"] in str(record))
            running.wait_for_record(lambda record: PROMPT in str(record))
            running.wait_for_record(lambda record: ANSWER in str(record))
            assert CLIENT_KEY not in running.log


# Browsers.


def test_no_browser_may_ask(house: House) -> None:
    """Without configuration no origin is allowed, and an upstream's own leave does not pass."""
    house.plain.send(json_reply({"choices": []}, Access_Control_Allow_Origin="*"))
    reply = post(
        house.open.url, PATHS["chat"], body_of("chat", model="plain"), headers={"Origin": "https://chat.example"}
    )
    assert not [name for name in reply.headers if name.startswith("access-control")]
    preflight = httpx.options(
        house.open.url + PATHS["chat"],
        headers={"Origin": "https://chat.example", "Access-Control-Request-Method": "POST"},
        verify=False,
    )
    assert not [name for name in preflight.headers if name.startswith("access-control")]


def test_a_configured_origin(house: House) -> None:
    """A configured origin gets its preflight without a key, and replies and errors that it may read."""
    origin = {"Origin": "https://chat.example"}
    wanted = "authorization, content-type, x-stainless-lang, x-api-key"
    preflight = httpx.options(
        house.guarded.url + PATHS["chat"],
        headers={**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": wanted},
        verify=False,
    )
    assert preflight.status_code in (200, 204)
    assert preflight.headers["access-control-allow-origin"] == "https://chat.example"
    assert "POST" in preflight.headers["access-control-allow-methods"]
    allowed = preflight.headers["access-control-allow-headers"].lower()
    assert allowed == "*" or all(name in allowed for name in wanted.split(", "))
    assert "origin" in preflight.headers.get("vary", "").lower()
    keyed = {**origin, "Authorization": f"Bearer {GATEWAY_KEY}"}
    for headers, status in ((keyed, 200), (origin, 401)):
        reply = post(house.guarded.url, PATHS["chat"], body_of("chat", model="plain"), headers=headers)
        assert reply.status_code == status
        assert reply.headers["access-control-allow-origin"] == "https://chat.example"
        assert "x-request-id" in reply.headers["access-control-expose-headers"].lower()


def test_another_origin(house: House) -> None:
    """An origin that is not configured is allowed nothing."""
    for origin in ("https://evil.example", "https://chat.example.evil", "http://chat.example", "null"):
        headers = {"Origin": origin, "Authorization": f"Bearer {GATEWAY_KEY}"}
        reply = post(house.guarded.url, PATHS["chat"], body_of("chat", model="plain"), headers=headers)
        assert "access-control-allow-origin" not in reply.headers


# Where it listens.


@pytest.mark.parametrize("keys", [[], ["k"]], ids=["open", "guarded"])
def test_listening_beyond_the_loopback(house: House, keys: list[str]) -> None:
    """Listening beyond the loopback without keys works and warns; with keys it does not warn."""
    config = {"upstreams": [{"url": house.plain.url}], "keys": keys, "log": {"form": "json"}}
    with gateway(config, "--host", "0.0.0.0") as running:
        reply = get(running.url.replace("0.0.0.0", "127.0.0.1"), "/v1/models")
        assert reply.status_code == (401 if keys else 200)
        running.wait_for_record(lambda record: record.get("request_id") == reply.headers["x-request-id"])
        assert warned(running) is (not keys)


def test_the_loopback_is_quiet(house: House) -> None:
    """On the loopback nobody needs a warning."""
    assert not warned(house.open)


def warned(running: Gateway) -> bool:
    """Whether the log warns that no key is asked for."""
    return any(record["level"] == "warning" and "keys" in record["message"] for record in running.records)
