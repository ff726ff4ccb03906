"""What a second reading of the gateway brought up: paths, headers, keys, silence, and servers that are odd."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvicorn
from uvicorn.server import ServerState

from asides._gateway import protocol
from tests.cli.running import run
from tests.gateway.clients import FUNCTION, PATHS, ask, body_of, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.sockets import connected
from tests.gateway.upstream import Asked, Hang, Pause, Reply, Upstream, json_reply, upstream
from tests.waiting import PATIENCE

IDLE = 3.0
"""Seconds of silence that the gateway bears: a busy machine may be late by less."""
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
CALL = '<tool_call>\n{"name": "find", "arguments": {"query": "x"}}\n</tool_call>'


class House(NamedTuple):
    """A gateway before a server of each kind."""

    gateway: Gateway
    vllm: Upstream
    ollama: Upstream


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """One for all tests of this file that need no other."""
    with upstream(models=["m", "a/b:c"]) as vllm, upstream("ollama", ["q"]) as ollama:
        config = {
            "upstreams": [{"name": "v", "url": vllm.url + "/v1"}, {"name": "o", "url": ollama.url, "models": ["q"]}],
            "defaults": {"format": "qwen3"},
            "models": {
                "alias": {"name": "m", "upstream": "v"},
                "bytes": {"name": "q", "upstream": "o", "format": "none"},
            },
            "limits": {"idle": IDLE},
            "pass_on": "all",
        }
        with gateway(config) as running:
            yield House(running, vllm, ollama)


@pytest.fixture(autouse=True)
def _forget(request: pytest.FixtureRequest) -> None:
    if "house" in request.fixturenames:
        found: House = request.getfixturevalue("house")
        found.vllm.replies.clear()
        found.vllm.forget()
        found.ollama.replies.clear()
        found.ollama.forget()


def send(url: str, head: str, *headers: bytes) -> bytes:
    """What a server says to a request of these very bytes, all of it."""
    lines = [f"{head} HTTP/1.1".encode("latin-1"), b"Host: localhost", b"Connection: close", *headers, b"", b""]
    with connected(url) as client:
        client.socket.sendall(b"\r\n".join(lines))
        return client.read_rest()


class Wire:
    """A server that says the same bytes to everyone, and keeps the heads of what it was asked."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.answer = b""
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.asked: list[bytes] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    more = connection.recv(65536)
                    if not more:
                        break
                    head += more
                if head.startswith(b"STOP"):
                    return
                self.asked.append(head)
                connection.sendall(self.answer)

    def close(self) -> None:
        """End it."""
        with connected(self.url) as client:
            client.socket.sendall(b"STOP\r\n\r\n")
            client.read_rest()
        self._thread.join()
        self._socket.close()


class Odd(NamedTuple):
    """A gateway before a server that says any bytes."""

    gateway: Gateway
    wire: Wire


@pytest.fixture(scope="module")
def odd() -> Iterator[Odd]:
    """One for all tests that need it."""
    wire = Wire()
    try:
        settings = {"pass_on": "all", "forward_headers": ["x-a", "X-Name", "x-mine"]}
        with gateway({"upstreams": [{"url": wire.url, "kind": "openai"}], **settings}) as running:
            yield Odd(running, wire)
    finally:
        wire.close()


# Paths.


@pytest.mark.parametrize("path", ["/v1/../admin", "/..", "/v1/%2e%2E/admin", "/x/..%2fadmin", "/x\\..\\admin", "*"])
def test_no_path_climbs(house: House, path: str) -> None:
    """A path that would leave the upstream's own root is refused, however it is written."""
    reply = send(house.gateway.url, f"GET {path}")
    assert b" 400 " in reply.splitlines()[0], reply
    assert not house.vllm.asked


def test_dots_in_names_are_no_climbing(house: House) -> None:
    """Two dots within a name, and escapes, pass as they are."""
    assert b" 404 " in send(house.gateway.url, "GET /odd/a..b/%C3%A9%2Fc?q=..%2F").splitlines()[0]
    assert (house.vllm.asked[-1].path, house.vllm.asked[-1].query) == ("/odd/a..b/%C3%A9%2Fc", "q=..%2F")


def test_a_v1_further_behind_is_left_alone(house: House) -> None:
    """Only `/v1` at the beginning is ours to read."""
    send(house.gateway.url, "GET /v1beta/v1/odd")
    assert house.vllm.asked[-1].path == "/v1beta/v1/odd"


def test_what_is_no_http_has_an_id_too(house: House) -> None:
    """Even what the web server itself refuses says under which id."""
    reply = send(house.gateway.url, "NOTHING /odd").lower()
    assert b" 400 " in reply.splitlines()[0]
    assert b"\r\nx-request-id: " in reply


def test_a_name_of_a_model_in_a_path(house: House) -> None:
    """Slashes and colons in a model's name, plain and escaped."""
    for path in ("/v1/models/a/b:c", "/v1/models/a%2Fb%3Ac", "/models/a%2Fb:c"):
        assert get(house.gateway.url, path).json()["id"] == "a/b:c"
    missing = get(house.gateway.url, "/v1/models/none")
    assert missing.status_code == 404
    assert "a/b:c" in missing.json()["error"]["message"]


# Headers.


def test_headers_that_are_for_the_next_hop_alone(odd: Odd) -> None:
    """What `Connection` names goes no further, in either direction; several of one name all pass."""
    odd.wire.answer = b"HTTP/1.1 200 OK\r\nVary: a\r\nVary: b\r\nConnection: close, X-Theirs\r\nX-Theirs: 1\r\n\r\nbody"
    with connected(odd.gateway.url) as client:
        lines = [
            b"GET /odd HTTP/1.1",
            b"Host: localhost",
            b"Connection: close, X-Mine",
            b"X-Mine: 1",
            b"X-A: 1",
            b"X-A: 2",
        ]
        client.socket.sendall(b"\r\n".join([*lines, b"", b""]))
        reply = client.read_rest().lower()
    assert b"\r\nvary: a, b\r\n" in reply
    assert b"x-theirs" not in reply
    asked = odd.wire.asked[-1].lower()
    assert b"\r\nx-a: 1, 2\r\n" in asked
    assert b"x-mine" not in asked
    assert b"content-type" not in asked  # nobody sent a body


def test_headers_keep_their_bytes(odd: Odd) -> None:
    """Characters beyond ASCII pass as the bytes that they are."""
    odd.wire.answer = "HTTP/1.1 200 OK\r\nX-Name: café\r\nConnection: close\r\n\r\n".encode()
    reply = send(odd.gateway.url, "GET /odd", "X-Name: thé".encode(), "Authorization: Bearer clé".encode())
    assert "\r\nx-name: café\r\n".encode() in reply
    assert "\r\nx-name: thé\r\n".encode() in odd.wire.asked[-1]
    assert "\r\nauthorization: Bearer clé\r\n".encode() in odd.wire.asked[-1]


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_a_length_without_a_body(odd: Odd, status: str) -> None:
    """An answer that has no body by its nature may speak of a length; it is no failure."""
    odd.wire.answer = f"HTTP/1.1 {status}\r\nContent-Length: 5\r\nETag: x\r\nConnection: close\r\n\r\n".encode()
    reply = send(odd.gateway.url, "GET /odd")
    assert reply.startswith(f"HTTP/1.1 {status}".encode())
    assert b"\r\netag: x\r\n" in reply
    assert not [record for record in odd.gateway.records if "trace" in record]


def test_another_scheme_of_authorization(house: House) -> None:
    """Credentials that are no bearer's are handed on as they are, by a gateway without keys."""
    basic = {"Authorization": "Basic dXNlcjpwYXNz"}
    post(house.gateway.url, PATHS["chat"], body_of("chat"), headers=basic)
    assert house.vllm.question().headers["authorization"] == basic["Authorization"]
    with gateway({"upstreams": [{"url": house.vllm.url}], "keys": ["k"]}) as guarded:
        assert post(guarded.url, PATHS["chat"], body_of("chat"), headers=basic).status_code == 401
        post(guarded.url, PATHS["chat"], body_of("chat"), headers={**basic, "x-api-key": "k"})
        assert "authorization" not in house.vllm.question().headers


def test_a_page_of_another_site(house: House) -> None:
    """A web page may send what it may not read the answer of; browsers say so, and it is refused unasked."""
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"}
    for path in (PATHS["chat"], "/v1/embeddings"):
        assert post(house.gateway.url, path, body_of("chat"), headers=foreign).status_code == 403
    assert not house.vllm.asked
    with gateway({"upstreams": [{"url": house.vllm.url}], "cors": ["https://evil.example"]}) as open_to_it:
        assert post(open_to_it.url, PATHS["chat"], body_of("chat"), headers=foreign).status_code == 200


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
            assert get(running.url, "/v1/models").json()["data"] == []


def test_a_clients_key_goes_where_its_request_goes(house: House) -> None:
    """With several upstreams a client's key is shown to the one that serves its model, and to no other."""
    for path in ("/v1/models", "/api/tags", "/api/version", "/api/ps", "/v1/models/m"):
        get(house.gateway.url, path, Authorization="Bearer secret")
    post(house.gateway.url, PATHS["chat"], body_of("chat", model="new"), headers={"x-api-key": "secret"})
    ask("chat", house.gateway.url, model="q", key="secret")
    assert not [asked for asked in house.vllm.asked if "authorization" in asked.headers]
    assert house.ollama.question().headers["authorization"] == "Bearer secret"


def test_odd_times_of_models() -> None:
    """A list with times that no date can tell is still a list."""
    with upstream() as server:
        entries = [{"id": str(made), "created": made} for made in (1_700_000_000_000, -(10**20), 10**30, 1.5, None)]
        server.send(json_reply({"data": entries}), "/v1/models")
        with gateway({"upstreams": [{"url": server.url}]}) as running:
            assert len(get(running.url, "/v1/models").json()["data"]) == 5
            assert len(get(running.url, "/api/tags").json()["models"]) == 5


# Which kind of server it is.


def test_ollama_behind_a_key() -> None:
    """An Ollama that wants a key is recognised with the configured one."""
    with upstream("ollama", ["q"]) as server:

        def version(asked: Asked) -> Reply:
            known = asked.headers.get("authorization") == "Bearer sesame" and asked.headers.get("x-tenant") == "t"
            return json_reply({"version": "0.31.4"}) if known else json_reply({"error": "unauthorized"}, 401)

        server.send(version, "/api/version")
        config = {"upstreams": [{"url": server.url, "key": "sesame", "headers": {"X-Tenant": "t"}}]}
        with gateway(config) as running:
            assert ask("chat", running.url, model="q").text == "It is 4."
            assert server.question().path == "/api/chat"


@pytest.mark.parametrize("answer", [Reply([], before=[Hang()]), json_reply({}, 503)], ids=["busy", "in trouble"])
def test_a_server_that_does_not_say_what_it_is(answer: Reply) -> None:
    """A server that is too busy to say what it is, or in trouble, is asked all the same."""
    with upstream() as server:
        server.send(answer, "/api/version")
        with gateway({"upstreams": [{"url": server.url}], "limits": {"connect": 2.0}}) as running:
            for _ in range(2):
                assert ask("chat", running.url).text == "It is 4."
        assert len([asked for asked in server.asked if asked.path == "/api/version"]) == 1


def test_nobody_is_led_away_by_the_first_question() -> None:
    """An upstream cannot send the gateway to another server when it is asked what it is."""
    with upstream() as server, upstream("ollama") as trap:
        moved = Reply([b""], 307, {"Location": f"{trap.url}/api/version"}, whole=True)
        server.send(moved, "/api/version")
        with gateway({"upstreams": [{"url": server.url}]}) as running:
            assert ask("chat", running.url).text == "It is 4."
        assert not trap.asked


# Ollama's paths.


def test_generate_goes_to_generate(house: House) -> None:
    """What came for `/api/generate` goes to `/api/generate`: at `/api/chat` Ollama would not look at a prompt."""
    for fields in ({}, {"system": "Be brief."}, {"raw": True}):
        reply = post(house.gateway.url, "/api/generate", {"model": "q", "prompt": "2+2?", "stream": False, **fields})
        assert reply.json()["response"] == "It is 4."
        asked = house.ollama.question()
        assert (asked.path, asked.body["prompt"]) == ("/api/generate", "2+2?")
    post(house.gateway.url, "/api/generate", {"model": "q", "keep_alive": 0})
    assert house.ollama.question().path == "/api/generate"
    assert house.ollama.question().body["keep_alive"] == 0


def test_bytes_with_a_slash_too_many(house: House) -> None:
    """What passes byte for byte goes to Ollama's own path, however the client wrote it."""
    for path in ("/v1/api/chat", "/api/chat/"):
        assert post(house.gateway.url, path, body_of("ollama_chat", model="bytes")).status_code == 200
        assert house.ollama.question().path == "/api/chat"


def test_a_model_that_ollama_does_not_have(house: House) -> None:
    """Ollama's own word that there is no such model reaches its client."""
    house.ollama.send(json_reply({"error": "model 'q' not found"}, 404), "/api/show")
    reply = post(house.gateway.url, "/api/show", {"model": "q"})
    assert (reply.status_code, reply.json()) == (404, {"error": "model 'q' not found"})


# What is passed on.


def test_another_name_for_what_is_passed_on(house: House) -> None:
    """A model that the upstream knows by another name has that name there on every path."""
    post(house.gateway.url, "/v1/embeddings", {"model": "alias", "input": "é", "odd": [1.0, None]})
    assert house.vllm.asked[-1].body == {"model": "m", "input": "é", "odd": [1.0, None]}
    post(house.gateway.url, "/v1/embeddings", b'{ "model":"m","input" : "x" }')
    assert house.vllm.asked[-1].raw == b'{ "model":"m","input" : "x" }'


def test_space_before_what_is_passed_on(house: House) -> None:
    """The model of a body is found behind space, too."""
    reply = post(house.gateway.url, "/api/embed", b' \r\n{"model": "q", "input": "x"}')
    assert reply.json()["embeddings"] == [[1.5]]


def test_recordings_are_asked_for_anything() -> None:
    """The recordings say what they answer to whatever is sent."""
    with gateway() as running:
        for body in (b"--form", b"[1]", b"", b'{"model": 5}'):
            reply = post(running.url, "/v1/embeddings", body)
            assert reply.status_code == 404
            assert "recordings answer" in reply.json()["error"]["message"]


# Silence.


def test_a_client_that_reads_slowly_is_no_silence(house: House) -> None:
    """While a client does not read, its upstream may not speak; that is not held against it."""
    frame = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % (b"x" * 60_000)
    house.vllm.send(Reply([*[frame] * 200, END]))
    reply = bytearray()
    with connected(house.gateway.url, buffer=65_536) as client:
        client.post(PATHS["chat"], body_of("chat", stream=True), Connection="close")
        client.read_until(b"200 OK")
        time.sleep(IDLE * 1.5)
        while more := client.socket.recv(1_000_000):
            reply += more
    assert reply.count(b"x") >= 200 * 60_000 - len(client.read)
    assert b"[DONE]" in reply
    assert b'"error"' not in reply


@pytest.mark.parametrize("first", [b"", b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'])
def test_silence_is_called_silence(house: House, first: bytes) -> None:
    """An upstream that goes quiet right behind its head, or soon after it, did not break off: it went quiet."""
    house.vllm.send(Reply([first, Hang()] if first else [Hang()]))
    for dialect in ("chat", "messages"):
        reply = post(house.gateway.url, PATHS[dialect], body_of(dialect, stream=True))
        assert "went quiet" in reply.text


def test_a_reply_slower_than_the_limit_of_silence(house: House) -> None:
    """A reply may take longer than any silence may last, as long as something comes."""
    piece = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
    house.vllm.send(Reply([part for _ in range(8) for part in (piece, Pause(IDLE / 6))] + [END]))
    assert ask("chat", house.gateway.url, stream=True).text == "x" * 8


# Calls that were not wanted.


def test_no_calls_for_who_wants_none(house: House) -> None:
    """With `tool_choice: none` no calls come back, as servers do it: a client that forbids them cannot answer them."""
    house.vllm.say(CALL)
    tools = [{"type": "function", "function": FUNCTION}]
    for stream in (False, True):
        assert ask("chat", house.gateway.url, stream=stream, tools=True).calls
        seen = ask("chat", house.gateway.url, stream=stream, tools=True, tool_choice="none")
        assert (seen.calls, seen.text.strip()) == ((), CALL)
    assert house.vllm.question().body["tools"] == tools
    assert house.vllm.question().body["tool_choice"] == "none"


# Heads.


def test_every_head_is_bounded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that does not come to its end is not waited for, be it the first of its connection or a later one."""
    monkeypatch.setattr(protocol, "SECONDS_FOR_HEAD", 0.2)

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def talk() -> None:
        config = uvicorn.Config(answer, log_config=None)
        config.load()
        made = partial(protocol.limited(65_536), config=config, server_state=ServerState(), app_state={})
        server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
        for before in (0, 2):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            for _ in range(before):
                writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await reader.readuntil(b"ok")
            writer.write(b"GET / HTTP/1.1\r\nHost:")
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
            writer.close()
        server.close()
        await server.wait_closed()

    asyncio.run(talk())


# What --check may not show.


def test_check_repeats_no_secret(tmp_path: Path) -> None:
    """An upstream that repeats the key in its error, or writes to the terminal, is not repeated."""
    with upstream() as server:
        told: dict[str, Any] = {"error": {"message": "wrong key sk-very-secret-key \x1b[2Jand more"}}
        server.send(json_reply(told, 401))
        place = tmp_path / "asides.yaml"
        place.write_text(json.dumps({"upstreams": [{"url": server.url, "key": "sk-very-secret-key"}]}))
        shown = run("serve", "--config", place, "--check").stdout.decode()
    assert "wrong key" in shown
    assert "very-secret" not in shown
    assert "\x1b" not in shown


def test_check_of_an_answer_that_is_not_there() -> None:
    """A reply that was read as thinking to its end is told, with what would read it; one that was cut is no mistake."""
    with upstream() as server:
        command = ("serve", "--check", "--upstream", server.url, "--format", "qwen3", "--start", "thinking")
        server.say("Four.")
        done = run(*command)
        assert (done.returncode, b"EMPTY" in done.stdout) == (1, True)
        assert b"--format qwen3 --start text" in done.stdout
        server.say("Two and two", reason="length")
        done = run(*command)
        assert (done.returncode, b"--format qwen3 --start" in done.stdout) == (0, False)
        assert b"tokens were not enough" in done.stdout


@pytest.mark.parametrize(
    ("format", "said", "leak", "reads"),
    [
        ("qwen3", "<Think>I add them.</THINK>It is 4.", "<Think>, </THINK>", "--format auto --start text"),
        ("qwen3", '<thinking id="1">I add them.</thinking>It is 4.', '<thinking id="1">', "--format auto --start text"),
        ("qwen3", "<internal>I add them.</internal>It is 4.", "<internal>", "--format auto --start text"),
        ("auto", "<Reason>I add them.</Reason>It is 4.", "<Reason>, </Reason>", "--format think_tag --start text"),
    ],
)
def test_check_finds_tags_in_any_spelling(format: str, said: str, leak: str, reads: str) -> None:
    """Thoughts in a tag that the format does not read are a leak, and the format that reads them is named."""
    with upstream() as server:
        server.say(said)
        done = run("serve", "--check", "--upstream", server.url, "--format", format, "--start", "text")
    assert done.returncode == 1
    assert f"the answer still holds {leak}" in done.stdout.decode()
    assert reads in done.stdout.decode()


def test_check_of_tags_that_are_read() -> None:
    with upstream() as server:
        server.say("<Think>I add them.</Think>It is 4.")
        done = run("serve", "--check", "--upstream", server.url, "--format", "auto", "--start", "text")
    assert (done.returncode, b"LEAK" in done.stdout) == (0, False)


# How it ends.


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_the_exit_code_is_as_the_help_says(number: signal.Signals, code: int) -> None:
    """Being told to stop is no failure; Ctrl-C is told apart from it."""
    with gateway() as running:
        running.signal(number)
        assert running.wait() == code
