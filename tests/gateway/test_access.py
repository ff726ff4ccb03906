"""Who may ask what: paths that reach an upstream, names the gateway is called by, web pages, ids of clients."""

from __future__ import annotations

import json
import socket
from typing import Any

import httpx
import pytest

from tests.gateway.clients import PATHS, ask, body_of, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.servers import Servers
from tests.gateway.upstream import SSE, Gate, Reply, upstream
from tests.waiting import eventually


def send(running: Gateway, method: str, path: str, **headers: str) -> httpx.Response:
    """One request, with a small JSON body."""
    return httpx.request(method, running.url + path, json={"model": "m", "input": "x"}, headers=headers, verify=False)


# Paths.

REFUSED = [
    "DELETE /api/delete",
    "POST /api/delete",
    "POST /api/pull",
    "POST /shutdown",
    "POST /v1/load_lora_adapter",
    "POST /v1/files",
    "GET /v1/files",
    "POST /v1/batches",
    "POST /v1/fine_tuning/jobs",
    "DELETE /v1/models/m",
    "PUT /v1/embeddings",
    "GET /slots",
    "POST /anything/else",
]


@pytest.mark.parametrize("asked", REFUSED)
def test_what_could_change_the_server_is_refused(servers: Servers, asked: str) -> None:
    """By default only a short list of paths goes on; the refusal names the setting, in the client's shape."""
    method, path = asked.split()
    reply = send(servers.gateway, method, path)
    assert reply.status_code == 404
    assert "`pass_on`" in reply.text
    error = reply.json()["error"]
    assert isinstance(error, str) is path.startswith("/api/")
    assert servers.upstream.asked == []


@pytest.mark.parametrize(
    "path",
    [
        "/v1/embeddings",
        "/embeddings",
        "/v1/rerank",
        "/v1/audio/speech",
        "/tokenize",
        "/v1/decisions",
        "/systemone",
        "/v1/systemone",
    ],
)
def test_what_only_computes_goes_on(servers: Servers, path: str) -> None:
    """Embeddings and their like."""
    send(servers.gateway, "POST", path)
    assert [asked.path for asked in servers.upstream.asked if asked.method == "POST"] != []


def test_the_configuration_opens_paths() -> None:
    """One by one, with a method, with what is below it, or all of them."""
    with upstream() as server:
        shared = {"upstreams": [{"url": server.url}]}
        with gateway({**shared, "pass_on": ["/v1/files", "DELETE /v1/files/*"]}) as some:
            for method, path, passes in (
                ("POST", "/v1/files", True),
                ("GET", "/v1/files", True),
                ("PUT", "/v1/files", False),
                ("DELETE", "/v1/files", True),
                ("DELETE", "/v1/files/a/b", True),
                ("GET", "/v1/files/a", False),
                ("GET", "/v1/filesystem", False),
            ):
                server.forget()
                send(some, method, path)
                assert bool(server.asked) is passes, (method, path)
        with gateway({**shared, "pass_on": "all"}) as everything:
            server.forget()
            send(everything, "DELETE", "/api/delete")
            assert [asked.path for asked in server.asked] == ["/api/delete"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1//chat/completions",
        "//v1/chat/completions",
        "/V1/Chat/Completions",
        "/v1/v1/chat/completions/",
        "/chat//completions",
    ],
)
def test_every_spelling_of_a_path_is_split(path: str) -> None:
    """Doubled slashes and other case reach the splitter, never the upstream unread."""
    with upstream() as server:
        with gateway(
            {"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}, "pass_on": "all"}
        ) as running:
            server.say("<think>secret</think>Hi")
            reply = post(running.url, path, body_of("chat"))
        message = reply.json()["choices"][0]["message"]
        assert (message["reasoning_content"], message["content"]) == ("secret", "Hi")


def test_control_is_for_ones_own_reply(servers: Servers) -> None:
    """A thought may be ended by who asked for it, and by nobody else."""
    gate = Gate()
    frame = b'data: {"id": "chatcmpl-7", "choices": [{"index": 0, "delta": {"content": "<think>hm"}}]}\n\n'
    servers.upstream.send(Reply([frame, gate, b"data: [DONE]\n\n"], headers=SSE))
    body = {"id": "chatcmpl-7", "action": "reasoning_end"}
    path = "/v1/chat/completions/control"
    own, other = {"Authorization": "Bearer sk-a"}, {"Authorization": "Bearer sk-b"}
    assert post(servers.gateway.url, path, body, headers=own).status_code == 404
    with httpx.stream(
        "POST",
        servers.gateway.url + PATHS["chat"],
        json=body_of("chat", stream=True),
        headers=own,
        verify=False,
        timeout=60,
    ) as stream:
        lines = stream.iter_lines()  # kept: an iterator that is let go closes the stream
        assert next(lines)
        assert post(servers.gateway.url, path, body, headers=other).status_code == 404
        assert post(servers.gateway.url, path, {"action": "reasoning_end"}, headers=own).status_code == 404
        assert not [asked for asked in servers.upstream.asked if asked.path == path]
        post(servers.gateway.url, path, body, headers=own)
        assert [asked.raw for asked in servers.upstream.asked if asked.path == path] == [json.dumps(body).encode()]
        gate.open()
        assert "data: [DONE]" in list(lines)
    servers.upstream.forget()
    assert post(servers.gateway.url, path, body, headers=own).status_code == 404
    assert servers.upstream.asked == []


# Names and pages.


def answer(running: Gateway, **headers: str) -> httpx.Response:
    """The answer to an ordinary question that comes with these headers."""
    return httpx.post(running.url + PATHS["chat"], json=body_of("chat"), headers=headers, verify=False)


def test_a_name_that_was_pointed_here(servers: Servers) -> None:
    """DNS rebinding: a page calls the gateway by its own name. Only the loopback's names count."""
    port = servers.gateway.url.rpartition(":")[2]
    for host in ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", "127.0.0.2", "[::1]", "app.localhost"):
        servers.upstream.say("Hi")
        assert answer(servers.gateway, Host=host).status_code == 200, host
    servers.upstream.forget()
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "a@localhost",
    ):
        for path in (PATHS["chat"], "/v1/models", "/healthz", "/metrics", "/"):
            reply = httpx.get(servers.gateway.url + path, headers={"Host": host}, verify=False)
            assert reply.status_code == 403, (host, path)
            assert repr(host) in reply.text.replace("\\'", "'")
            assert "allowed_hosts" in reply.text
    assert servers.upstream.asked == []


def test_names_that_no_public_name_server_gives() -> None:
    """A gateway that listens everywhere without keys goes by those, by its own name, and by those that are named."""
    own = socket.gethostname()
    private = ["192.168.1.5", "203.0.113.7", "[2001:db8::1]", "asides", "gpu-box", "localhost", "a.localhost"]
    private += ["box.local", "asides.internal", "a.b.home.arpa", "asides.default.svc", "a.b.svc.cluster.local", own]
    public = ["evil.example", "evil.example.", "local.evil.example", "127.0.0.1.evil.example", "evil.svc.example"]
    public += ["evillocal.example", "home.arpa.example", "1.2.3", "a@localhost", "192.168.1.5.nip.io", "x.box"]
    with gateway({"allowed_hosts": ["chat.example"]}, "--host", "0.0.0.0") as running:
        port = running.url.rpartition(":")[2]
        for name in [*private, "chat.example", "Box.LOCAL"]:
            for host in (name, f"{name}:{port}"):
                assert get(running.url, "/v1/models", host=host).status_code == 200, host
        for name in public:
            for host in (name, f"{name}:{port}"):
                refused = get(running.url, "/v1/models", host=host)
                assert (refused.status_code, refused.json()["error"]["code"]) == (403, "host_not_allowed"), host
        for name, line in (("evil.example:9", "`allowed_hosts: [evil.example]`"), ("a,b.c", "`allowed_hosts: [NAME]`")):
            assert line in get(running.url, "/v1/models", host=name).json()["error"]["message"]
    with gateway({"keys": ["k"]}, "--host", "0.0.0.0") as running:
        assert get(running.url, "/v1/models", host="chat.example", x_api_key="k").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "none"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Origin": "http://localhost"},
        {"Origin": "vscode-webview://abc"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
def test_pages_of_others(servers: Servers, headers: dict[str, str]) -> None:
    """Whatever `Sec-Fetch-Site` says, the origin decides; the refusal names it and the setting."""
    reply = answer(servers.gateway, **headers)
    assert reply.status_code == 403
    assert "cors" in reply.text
    assert headers.get("Origin", "") in reply.text
    assert servers.upstream.asked == []


def test_a_page_of_another_site(servers: Servers) -> None:
    """A web page may send what it may not read the answer of; browsers say so, and it is refused unasked."""
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"}
    for path in (PATHS["chat"], "/v1/embeddings"):
        assert post(servers.gateway.url, path, body_of("chat"), headers=foreign).status_code == 403
    assert not servers.upstream.asked
    with gateway({"upstreams": [{"url": servers.upstream.url}], "cors": ["https://evil.example"]}) as open_to_it:
        assert post(open_to_it.url, PATHS["chat"], body_of("chat"), headers=foreign).status_code == 200


def test_its_own_pages(servers: Servers) -> None:
    """A page that the gateway served itself, by any name of the loopback; the scheme's own port may be left out."""
    port = servers.gateway.url.rpartition(":")[2]
    for host, origin in (
        (f"localhost:{port}", f"http://localhost:{port}"),
        (f"127.0.0.1:{port}", f"http://127.0.0.1:{port}"),
        ("localhost", "http://localhost"),
        ("localhost:80", "http://localhost"),
        ("localhost", "https://localhost:443"),
    ):
        servers.upstream.say("Hi")
        assert answer(servers.gateway, Host=host, Origin=origin).status_code == 200, (host, origin)
    assert answer(servers.gateway, Host="localhost:80", Origin="https://localhost").status_code == 403


def test_names_and_pages_that_are_configured() -> None:
    """`allowed_hosts` counts for both headers; `cors` takes patterns for editors whose pages have random names."""
    with upstream() as server:
        config = {
            "upstreams": [{"url": server.url}],
            "allowed_hosts": ["chat.example", "other.example:8080"],
            "cors": ["vscode-webview://*", "tauri://localhost", "null"],
        }
        with gateway(config) as running:
            for headers, status in (
                ({"Host": "chat.example"}, 200),
                ({"Host": "chat.example:9"}, 200),
                ({"Host": "other.example:8080"}, 200),
                ({"Host": "other.example"}, 403),
                ({"Host": "127.0.0.1", "Origin": "https://chat.example"}, 200),
                ({"Host": "chat.example", "Origin": "https://chat.example"}, 200),
                ({"Origin": "vscode-webview://a1b2"}, 200),
                ({"Origin": "tauri://localhost"}, 200),
                ({"Origin": "null"}, 200),
                ({"Origin": "tauri://elsewhere"}, 403),
            ):
                server.say("Hi")
                reply = answer(running, **headers)
                assert reply.status_code == status, headers
                if "webview" in headers.get("Origin", ""):
                    assert reply.headers["access-control-allow-origin"] == headers["Origin"]


# What a client brings along.


def test_the_user_stays_here_unless_configured() -> None:
    """`metadata.user_id` of Anthropic's clients holds ids of device, account and session; `user` may be a name."""
    with upstream() as server:
        shared: dict[str, Any] = {"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}}
        for settings, forwarded in (({}, False), ({"forward_user": True}, True)):
            with gateway({**shared, **settings}) as running:
                server.say("Hi")
                ask("messages", running.url, metadata={"user_id": "device-1"})
                assert ("device-1" in server.question().raw.decode()) is forwarded
                ask("chat", running.url, user="alice")
                assert ("alice" in server.question().raw.decode()) is forwarded


@pytest.mark.parametrize("sealed", ["asides1:not base64", "asides1:"])
def test_our_own_seals_go_to_no_upstream(servers: Servers, sealed: str) -> None:
    """Signatures and encrypted contents that this gateway made mean nothing to an upstream."""
    servers.upstream.say("Hi")
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "t"}],
        "encrypted_content": sealed,
    }
    ask(
        "responses",
        servers.gateway.url,
        input=[{"role": "user", "content": "a"}, item, {"role": "user", "content": "b"}],
    )
    assert "asides1:" not in servers.upstream.question().raw.decode()
    block = {"type": "thinking", "thinking": "t", "signature": "asides-0123"}
    turns = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [block, {"type": "text", "text": "x"}]},
        {"role": "user", "content": "b"},
    ]
    ask("messages", servers.gateway.url, messages=turns)
    assert "asides-0123" not in servers.upstream.question().raw.decode()
    blocks = {"role": "assistant", "content": "x", "thinking_blocks": [{**block, "thinking": ""}]}
    ask("chat", servers.gateway.url, messages=[turns[0], blocks, turns[2]])
    assert "asides-0123" not in servers.upstream.question().raw.decode()


def test_the_help_in_a_refusal_is_not_taken_for_a_key() -> None:
    """The log says how to show a key as the client was told it."""
    with upstream() as server, gateway({"upstreams": [{"url": server.url}], "keys": ["k"]}) as running:
        post(running.url, PATHS["chat"], body_of("chat"), headers={"Authorization": "Bearer sk-abcdefgh12345"})
        eventually(lambda: [record for record in running.records if record.get("status") == 401], "nothing was logged")
        line = json.dumps([record for record in running.records if record.get("status") == 401])
    assert "`Authorization: Bearer`, `x-api-key` or `api-key`" in line
    assert "sk-abcdefgh12345" not in line
