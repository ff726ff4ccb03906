"""Who may ask, whose key is shown to whom, what browsers are told, and that no secret is ever logged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest

from tests.gateway.clients import DIALECTS, PATHS, Dialect, ask, body_of, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Asked, Reply, Upstream, json_reply, upstream
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


class Servers(NamedTuple):
    """An open gateway and a guarded one before the same upstreams; `keyed` is one that is given a key."""

    open: Gateway
    guarded: Gateway
    plain: Upstream
    keyed: Upstream


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
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
            yield Servers(first, second, plain, keyed)


def shown(headers: dict[str, str], key: str) -> dict[str, str]:
    """Headers that show a key."""
    return {name: value.format(key) for name, value in headers.items()}


def asked(server: Upstream) -> dict[str, str]:
    """The headers of the latest request for the model."""
    return dict(server.question().headers)


# Without keys of its own.


@pytest.mark.parametrize("headers", SHOWN, ids=str)
def test_a_clients_key_is_forwarded(servers: Servers, headers: dict[str, str]) -> None:
    """Without gateway keys, a client's key reaches the upstream in the upstream's own header."""
    reply = post(servers.open.url, PATHS["chat"], body_of("chat", model="plain"), headers=shown(headers, CLIENT_KEY))
    assert reply.status_code == 200
    found = asked(servers.plain)
    assert found["authorization"] == f"Bearer {CLIENT_KEY}"
    assert "x-api-key" not in found
    assert "api-key" not in found


def test_no_key_is_made_up(servers: Servers) -> None:
    """A client without a key: the upstream gets none."""
    assert post(servers.open.url, PATHS["chat"], body_of("chat", model="plain")).status_code == 200
    assert "authorization" not in asked(servers.plain)


def test_the_upstreams_own_key_wins(servers: Servers) -> None:
    """An upstream with a key in the file gets that one, from the environment, and its own headers."""
    body = body_of("chat", model="keyed")
    assert post(servers.open.url, PATHS["chat"], body, headers=shown(SHOWN[0], CLIENT_KEY)).status_code == 200
    found = asked(servers.keyed)
    assert found["authorization"] == f"Bearer {UPSTREAM_KEY}"
    assert found["x-team"] == "a"
    assert CLIENT_KEY not in str(found)


def test_other_headers(servers: Servers) -> None:
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
    post(servers.open.url, PATHS["chat"], body_of("chat", model="plain", stream=True), headers=headers)
    found = asked(servers.plain)
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
    assert found["host"] == servers.plain.url.removeprefix("http://")
    assert found.get("accept-encoding", "identity") == "identity"


def test_another_scheme_of_authorization(servers: Servers) -> None:
    """Credentials that are no bearer's are handed on as they are, by a gateway without keys."""
    basic, body = {"Authorization": "Basic dXNlcjpwYXNz"}, body_of("chat", model="plain")
    post(servers.open.url, PATHS["chat"], body, headers=basic)
    assert asked(servers.plain)["authorization"] == basic["Authorization"]
    assert post(servers.guarded.url, PATHS["chat"], body, headers=basic).status_code == 401
    post(servers.guarded.url, PATHS["chat"], body, headers={**basic, "x-api-key": GATEWAY_KEY})
    assert "authorization" not in asked(servers.plain)


# With keys of its own.


@pytest.mark.parametrize("key", [GATEWAY_KEY, OTHER_GATEWAY_KEY])
@pytest.mark.parametrize("headers", SHOWN, ids=str)
def test_a_gateway_key_stops_here(servers: Servers, headers: dict[str, str], key: str) -> None:
    """With gateway keys, one of them is needed, in any of three headers, and it never reaches an upstream."""
    encoded = {name: value.encode() for name, value in shown(headers, key).items()}
    for model, server in (("plain", servers.plain), ("keyed", servers.keyed)):
        server.forget()
        reply = httpx.post(
            servers.guarded.url + PATHS["chat"],
            json=body_of("chat", model=model),
            headers=[(name.encode(), value) for name, value in encoded.items()],
            verify=False,
        )
        assert reply.status_code == 200, reply.text
        found = asked(server)
        assert key not in str(found)
        assert found.get("authorization") == (f"Bearer {UPSTREAM_KEY}" if model == "keyed" else None)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_wrong_key(servers: Servers, dialect: Dialect) -> None:
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
        reply = post(servers.guarded.url, PATHS[dialect], body_of(dialect, model="plain"), headers=headers)
        assert reply.status_code == 401, headers
        error = reply.json()["error"]
        assert isinstance(error, str if dialect.startswith("ollama") else dict)
        if dialect == "messages":
            assert reply.json()["error"]["type"] == "authentication_error"
    assert not servers.plain.asked


@pytest.mark.parametrize(
    "path", ["/v1/models", "/v1/models/plain", "/api/tags", "/v1/embeddings", "/tokenize", "/anything", "/metrics"]
)
def test_every_path_is_guarded(servers: Servers, path: str) -> None:
    """A key is asked for wherever something of the model, its server or its use could be learned."""
    assert get(servers.guarded.url, path).status_code == 401
    assert post(servers.guarded.url, path, {}).status_code in (401, 405)  # 405: nobody may post there


def test_health_needs_no_key(servers: Servers) -> None:
    """Whoever watches over the gateway needs no key."""
    assert get(servers.guarded.url, "/healthz").status_code == 200


def test_the_sdks_show_keys(servers: Servers) -> None:
    """Each SDK shows its key in its own header."""
    for dialect in DIALECTS:
        assert ask(dialect, servers.guarded.url, model="plain", key=GATEWAY_KEY).text == "It is 4."


# What a client's own key may see.


def by_key(asked: Asked) -> Reply:
    """A list of models, to who shows a key."""
    key = asked.headers.get("authorization", "").removeprefix("Bearer ")
    if not key:
        return json_reply({"error": {"message": "no key"}}, 401)
    return json_reply({"object": "list", "data": [{"id": f"of-{key}", "object": "model"}]})


def test_models_for_a_clients_own_key() -> None:
    """Where the upstream's key is the client's, so is the list of models; nobody sees another's."""
    with upstream() as server:
        server.send(by_key, "/v1/models")
        with gateway({"upstreams": [{"url": server.url}]}) as running:
            for key in ("ada", "bob"):
                listed = get(running.url, "/v1/models", Authorization=f"Bearer {key}").json()["data"]
                assert [model["id"] for model in listed] == [f"of-{key}"]
                assert get(running.url, f"/v1/models/of-{key}", x_api_key=key).json()["id"] == f"of-{key}"
            assert get(running.url, "/v1/models/of-ada", x_api_key="bob").status_code == 404
            assert get(running.url, "/v1/models").status_code == 401  # as the upstream itself answers


def test_a_clients_key_goes_where_its_request_goes() -> None:
    """With several upstreams a client's key is shown to the one that serves its model, and to no other."""
    with upstream(models=["m"]) as vllm, upstream("ollama", ["q"]) as ollama:
        config = {"upstreams": [{"url": vllm.url}, {"url": ollama.url, "models": ["q"]}]}
        with gateway(config) as running:
            for path in ("/v1/models", "/api/tags", "/api/version", "/api/ps", "/v1/models/m"):
                get(running.url, path, Authorization="Bearer secret")
            post(running.url, PATHS["chat"], body_of("chat", model="new"), headers={"x-api-key": "secret"})
            ask("chat", running.url, model="q", key="secret")
        assert not [asked for asked in vllm.asked if "authorization" in asked.headers]
        assert ollama.question().headers["authorization"] == "Bearer secret"


# What is logged.


def test_nothing_private_is_logged(servers: Servers) -> None:
    """No key, no word of a request or a reply stands in the log, even of one that fails, even at debug."""
    servers.plain.say(f"<think>{ANSWER}</think>{ANSWER}")
    for running, key in (
        (servers.open, CLIENT_KEY),
        (servers.guarded, GATEWAY_KEY),
        (servers.guarded, "gw-wrong-55ff"),
    ):
        for dialect in DIALECTS:
            for stream in (False, True):
                body = body_of(dialect, model="plain", question=PROMPT, stream=stream)
                for headers in SHOWN:
                    post(running.url, PATHS[dialect], body, headers=shown(headers, key))
        post(running.url, "/v1/embeddings", {"model": "plain", "input": PROMPT}, headers=shown(SHOWN[0], key))
    servers.plain.send(json_reply({"error": {"message": f"bad: {ANSWER}"}}, 400))
    post(servers.open.url, PATHS["chat"], body_of("chat", model="plain", question=PROMPT))
    for running in (servers.open, servers.guarded):
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


def test_no_browser_may_ask(servers: Servers) -> None:
    """Without configuration no origin is allowed, and an upstream's own leave does not pass."""
    servers.plain.send(json_reply({"choices": []}, Access_Control_Allow_Origin="*"))
    reply = post(
        servers.open.url, PATHS["chat"], body_of("chat", model="plain"), headers={"Origin": "https://chat.example"}
    )
    assert not [name for name in reply.headers if name.startswith("access-control")]
    preflight = httpx.options(
        servers.open.url + PATHS["chat"],
        headers={"Origin": "https://chat.example", "Access-Control-Request-Method": "POST"},
        verify=False,
    )
    assert not [name for name in preflight.headers if name.startswith("access-control")]


def test_a_configured_origin(servers: Servers) -> None:
    """A configured origin gets its preflight without a key, and replies and errors that it may read."""
    origin = {"Origin": "https://chat.example"}
    wanted = "authorization, content-type, x-stainless-lang, x-api-key"
    preflight = httpx.options(
        servers.guarded.url + PATHS["chat"],
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
        reply = post(servers.guarded.url, PATHS["chat"], body_of("chat", model="plain"), headers=headers)
        assert reply.status_code == status
        assert reply.headers["access-control-allow-origin"] == "https://chat.example"
        assert "x-request-id" in reply.headers["access-control-expose-headers"].lower()


def test_another_origin(servers: Servers) -> None:
    """An origin that is not configured is allowed nothing."""
    for origin in ("https://evil.example", "https://chat.example.evil", "http://chat.example", "null"):
        headers = {"Origin": origin, "Authorization": f"Bearer {GATEWAY_KEY}"}
        reply = post(servers.guarded.url, PATHS["chat"], body_of("chat", model="plain"), headers=headers)
        assert "access-control-allow-origin" not in reply.headers


# Where it listens.


@pytest.mark.parametrize("keys", [[], ["k"]], ids=["open", "guarded"])
def test_listening_beyond_the_loopback(servers: Servers, keys: list[str]) -> None:
    """Listening beyond the loopback without keys works and warns; with keys it does not warn."""
    config = {"upstreams": [{"url": servers.plain.url}], "keys": keys, "log": {"form": "json"}}
    with gateway(config, "--host", "0.0.0.0") as running:
        reply = get(running.url.replace("0.0.0.0", "127.0.0.1"), "/v1/models")
        assert reply.status_code == (401 if keys else 200)
        running.wait_for_record(lambda record: record.get("request_id") == reply.headers["x-request-id"])
        assert warned(running) is (not keys)


def test_the_loopback_is_quiet(servers: Servers) -> None:
    """On the loopback nobody needs a warning."""
    assert not warned(servers.open)


def warned(running: Gateway) -> bool:
    """Whether the log warns that no key is asked for."""
    return any(record["level"] == "warning" and "keys" in record["message"] for record in running.records)
