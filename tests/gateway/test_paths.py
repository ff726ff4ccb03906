"""Which path leads where: names in paths, paths that climb, Ollama's paths, and what is passed on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from asides._gateway.routes import ROUTES, Route, Router, normalized
from asides.dialects import ALL, openai_chat
from tests.gateway.clients import PATHS, body_of, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.sockets import send
from tests.gateway.upstream import Upstream, json_reply, upstream

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "gateway.md"


class Servers(NamedTuple):
    """A gateway before a server of each kind."""

    gateway: Gateway
    vllm: Upstream
    ollama: Upstream


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One for all tests of this file that need no other."""
    with upstream(models=["m", "a/b:c"]) as vllm, upstream("ollama", ["q"]) as ollama:
        config = {
            "upstreams": [{"name": "v", "url": vllm.url + "/v1"}, {"name": "o", "url": ollama.url, "models": ["q"]}],
            "defaults": {"format": "qwen3"},
            "models": {
                "alias": {"name": "m", "upstream": "v"},
                "bytes": {"name": "q", "upstream": "o", "format": "none"},
            },
            "pass_on": "all",
        }
        with gateway(config) as running:
            yield Servers(running, vllm, ollama)


@pytest.mark.parametrize("path", ["/v1/../admin", "/..", "/v1/%2e%2E/admin", "/x/..%2fadmin", "/x\\..\\admin", "*"])
def test_no_path_climbs(servers: Servers, path: str) -> None:
    """A path that would leave the upstream's own root is refused, however it is written."""
    reply = send(servers.gateway.url, f"GET {path}")
    assert b" 400 " in reply.splitlines()[0], reply
    assert not servers.vllm.asked


def test_dots_in_names_are_no_climbing(servers: Servers) -> None:
    """Two dots within a name, and escapes, pass as they are."""
    assert b" 404 " in send(servers.gateway.url, "GET /odd/a..b/%C3%A9%2Fc?q=..%2F").splitlines()[0]
    assert (servers.vllm.asked[-1].path, servers.vllm.asked[-1].query) == ("/odd/a..b/%C3%A9%2Fc", "q=..%2F")


def test_a_v1_further_behind_is_left_alone(servers: Servers) -> None:
    """Only `/v1` at the beginning is ours to read."""
    send(servers.gateway.url, "GET /v1beta/v1/odd")
    assert servers.vllm.asked[-1].path == "/v1beta/v1/odd"


def test_what_is_no_http_has_an_id_too(servers: Servers) -> None:
    """Even what the web server itself refuses says under which id."""
    reply = send(servers.gateway.url, "NOTHING /odd").lower()
    assert b" 400 " in reply.splitlines()[0]
    assert b"\r\nx-request-id: " in reply


def test_a_name_of_a_model_in_a_path(servers: Servers) -> None:
    """Slashes and colons in a model's name, plain and escaped."""
    for path in ("/v1/models/a/b:c", "/v1/models/a%2Fb%3Ac", "/models/a%2Fb:c"):
        assert get(servers.gateway.url, path).json()["id"] == "a/b:c"
    missing = get(servers.gateway.url, "/v1/models/none")
    assert missing.status_code == 404
    assert "a/b:c" in missing.json()["error"]["message"]


# The table.


@pytest.mark.parametrize(
    ("asked", "handler"),
    [
        ("POST /v1/chat/completions", "generate"),
        ("POST //V1/v1//Messages/", "generate"),
        ("HEAD /models", "models"),
        ("GET /v1/models/a/B", "model"),
        ("DELETE /v1/models/a", "not_found"),
        ("POST /models", "not_found"),
        ("GET /v1/chat/completions", "not_allowed"),
        ("PUT /v1/chat/completions", "not_allowed"),
        ("POST /healthz", "not_allowed"),
        ("OPTIONS /anything", "options"),
        ("POST /v1/audio/speech", "pass_on"),
        ("GET /audio", "pass_on"),
        ("GET /audiobooks", "not_found"),
        ("PATCH /embeddings", "not_found"),
        ("GET /files/1", "not_found"),
    ],
)
def test_who_answers(asked: str, handler: str) -> None:
    """Each spelling of a path and each method leads to the handler of its row."""
    method, path = asked.split()
    found = Router().find(method, path)
    assert found.route.handler == handler
    assert found.rest == ("a/B" if handler == "model" else "speech" if "speech" in path else "")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.handler} {route.path}")
def test_an_error_beside_a_row_has_its_shape(route: Route) -> None:
    """At a path that has no row the rows decide that begin alike, so these must agree."""
    beside = Router().find("PATCH", "/" + route.path.split("/")[1] + "/none/such").route
    assert (beside.handler, beside.dialect) == ("not_found", route.dialect)


def test_a_path_beside_every_row() -> None:
    """OpenAI's shape, which most clients read; `*` is what a client asks that means the whole server."""
    for path in ("*", "", "/none/such", "/v1"):
        for method in ("OPTIONS", "PUT"):
            assert Router().find(method, path).route.dialect is openai_chat


def test_who_counts_tokens() -> None:
    """A row says so for the dialects that can write it, and for no others."""
    counting = [route.dialect for route in ROUTES if route.handler == "count_tokens"]
    assert counting == [dialect for dialect in ALL if dialect.write_count is not None]


def test_rows_of_the_configuration() -> None:
    """`pass_on` adds rows, replaces none of ours, and `all` passes on what has no row."""
    router = Router(["/Files", "DELETE /v1/files/*", "GET /chat/completions", "POST /chat/completions"])
    assert router.find("GET", "/v1/files").route.handler == "pass_on"
    assert router.find("DELETE", "/files/a/b").route.handler == "pass_on"
    assert router.find("GET", "/files/a").route.handler == "not_found"
    assert router.find("GET", "/chat/completions").route.handler == "pass_on"
    assert router.find("POST", "/chat/completions").route.handler == "generate"
    every = Router(["all"])
    assert every.find("PATCH", "/anything").route.handler == "pass_on"
    assert every.find("DELETE", "/models/a").route.handler == "pass_on"
    assert every.find("GET", "/messages").route.handler == "not_allowed"


def test_a_wrong_method_is_told_the_right_ones(servers: Servers) -> None:
    """A 405 lists the methods of the path."""
    assert get(servers.gateway.url, PATHS["chat"]).headers["allow"] == "POST"
    assert post(servers.gateway.url, "/healthz", {}).headers["allow"] == "GET, HEAD"


def named_paths(table: str) -> set[tuple[str, str]]:
    """The methods and paths in the first column of a table; a path without a method has that of the one before it."""
    named: set[tuple[str, str]] = set()
    for line in table.splitlines():
        method = ""
        for found in re.finditer(
            r"`(?:(GET|POST|DELETE) )?(/[^`]*)`", line.partition(" | ")[0] if line[:3] == "| `" else ""
        ):
            method = found[1] or method
            named.add((method, found[2]))
    return named


def test_the_docs_name_every_path() -> None:
    """The table of docs/reference/gateway.md has every row of ours, with its method; the page's are in read_api.md."""
    table = DOCS.read_text(encoding="utf-8").partition("## What it answers")[2].partition("\n\nAn upstream")[0]
    named = {
        (method, normalized(path).replace("NAME", "*").replace("ID", "+"))
        for method, path in named_paths(table)
        if path != "/asides/…"
    }
    ours = {(method, route.path) for route in ROUTES for method in route.methods}
    assert named == {row for row in ours if not row[1].startswith("/asides/")}


def test_the_docs_of_the_page_name_every_path() -> None:
    """The table of docs/reference/read_api.md names paths that are answered, and none of the page's rows is missing."""
    table = DOCS.with_name("read_api.md").read_text(encoding="utf-8")
    router, rows = Router(), {route for route in ROUTES if route.path.startswith("/asides/") and route.needs_key}
    assert rows == {router.find(method, path).route for method, path in named_paths(table)}


# Ollama's paths.


def test_generate_goes_to_generate(servers: Servers) -> None:
    """What came for `/api/generate` goes to `/api/generate`: at `/api/chat` Ollama would not look at a prompt."""
    for fields in ({}, {"system": "Be brief."}, {"raw": True}):
        reply = post(servers.gateway.url, "/api/generate", {"model": "q", "prompt": "2+2?", "stream": False, **fields})
        assert reply.json()["response"] == "It is 4."
        asked = servers.ollama.question()
        assert (asked.path, asked.body["prompt"]) == ("/api/generate", "2+2?")
    post(servers.gateway.url, "/api/generate", {"model": "q", "keep_alive": 0})
    assert servers.ollama.question().path == "/api/generate"
    assert servers.ollama.question().body["keep_alive"] == 0


def test_bytes_with_a_slash_too_many(servers: Servers) -> None:
    """What passes byte for byte goes to Ollama's own path, however the client wrote it."""
    for path in ("/v1/api/chat", "/api/chat/"):
        assert post(servers.gateway.url, path, body_of("ollama_chat", model="bytes")).status_code == 200
        assert servers.ollama.question().path == "/api/chat"


def test_a_model_that_ollama_does_not_have() -> None:
    """Ollama's own word that there is no such model reaches its client."""
    with upstream("ollama", ["q"]) as server, gateway({"upstreams": [{"url": server.url}]}) as running:
        server.send(json_reply({"error": "model 'q' not found"}, 404), "/api/show")
        reply = post(running.url, "/api/show", {"model": "q"})
    assert (reply.status_code, reply.json()) == (404, {"error": "model 'q' not found"})


# What is passed on.


def test_another_name_for_what_is_passed_on(servers: Servers) -> None:
    """A model that the upstream knows by another name has that name there on every path."""
    post(servers.gateway.url, "/v1/embeddings", {"model": "alias", "input": "é", "odd": [1.0, None]})
    assert servers.vllm.asked[-1].body == {"model": "m", "input": "é", "odd": [1.0, None]}
    post(servers.gateway.url, "/v1/embeddings", b'{ "model":"m","input" : "x" }')
    assert servers.vllm.asked[-1].raw == b'{ "model":"m","input" : "x" }'


def test_space_before_what_is_passed_on(servers: Servers) -> None:
    """The model of a body is found behind space, too."""
    reply = post(servers.gateway.url, "/api/embed", b' \r\n{"model": "q", "input": "x"}')
    assert reply.json()["embeddings"] == [[1.5]]


def test_recordings_are_asked_for_anything() -> None:
    """The recordings say what they answer to whatever is sent."""
    with gateway() as running:
        for body in (b"--form", b"[1]", b"", b'{"model": 5}'):
            reply = post(running.url, "/v1/embeddings", body)
            assert reply.status_code == 404
            assert "recordings answer" in reply.json()["error"]["message"]
