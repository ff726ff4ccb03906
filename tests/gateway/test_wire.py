"""Odd things on the wire: where no request may lead, encodings, numbers, histories, replies that belie themselves."""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import openai
import pytest

from tests.gateway.clients import PATHS, ask, body_of, chat_deltas, events, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.servers import serving
from tests.gateway.sockets import connected
from tests.gateway.upstream import JSON, SSE, Asked, Reply, Upstream, cut, json_reply, upstream


class Servers(NamedTuple):
    """A gateway before one upstream, and a server that nobody may ever be led to."""

    gateway: Gateway
    upstream: Upstream
    trap: Upstream


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One for all tests of this file."""
    with upstream(models=["m"]) as server, upstream() as trap:
        models = {
            "tagged": {"replay": "tags"},
            "dropped": {"replay": "drop"},
            "named": {"replay": "reasoning"},
            "alias": {"name": "m"},
        }
        config = {
            "upstreams": [{"url": server.url + "/v1"}],
            "defaults": {"format": "qwen3"},
            "models": {name: {"format": "qwen3", **settings} for name, settings in models.items()},
            "pass_on": "all",
        }
        with gateway(config) as running:
            yield Servers(running, server, trap)


# No address is taken from a client.


def test_nobody_is_led_elsewhere(servers: Servers) -> None:
    """Whatever a request line, a header or an upstream's answer says, only the configured upstream is asked."""
    place = servers.trap.url.removeprefix("http://")
    targets = [
        f"http://{place}/odd",
        f"//{place}/odd",
        f"@{place}/odd",
        f"/@{place}/odd",
        f"/v1/../../{place}/odd",
        f"/{servers.trap.url}/odd",
        f"/odd?url={servers.trap.url}",
    ]
    for target in targets:
        with connected(servers.gateway.url) as client:
            head = f"POST {target} HTTP/1.1\r\nHost: {place}\r\nX-Forwarded-Host: {place}\r\nConnection: close\r\n"
            client.socket.sendall(f"{head}Content-Length: 2\r\n\r\n{{}}".encode())
            client.read_rest()
    body = body_of("chat", base_url=servers.trap.url, api_base=servers.trap.url)
    assert post(servers.gateway.url, PATHS["chat"], body).status_code == 200
    moved = Reply([b""], 307, {"Location": f"{servers.trap.url}/v1/chat/completions"}, whole=True)
    servers.upstream.send(moved)
    for stream in (False, True):
        post(servers.gateway.url, PATHS["messages"], body_of("messages", stream=stream))
    assert not servers.trap.asked


# Encodings and sizes.


def test_an_upstream_that_compresses_anyway(servers: Servers) -> None:
    """A compressed reply is read; one that is passed on stays as it is, and says so."""
    reply = {"id": "1", "choices": [{"index": 0, "message": {"content": "<think>A</think>B"}}]}
    whole = gzip.compress(json.dumps(reply).encode())
    servers.upstream.send(Reply([whole], headers={**JSON, "Content-Encoding": "gzip"}, whole=True))
    seen = ask("chat", servers.gateway.url)
    assert (seen.thinking, seen.text) == ("A", "B")
    frames = b'data: {"choices":[{"index":0,"delta":{"content":"<think>A</think>B"}}]}\n\ndata: [DONE]\n\n'
    servers.upstream.send(Reply(cut(gzip.compress(frames), 5), headers={**SSE, "Content-Encoding": "gzip"}))
    seen = ask("chat", servers.gateway.url, stream=True)
    assert (seen.thinking, seen.text) == ("A", "B")
    servers.upstream.send(Reply([gzip.compress(b"plain")], headers={"Content-Encoding": "gzip"}), "/odd")
    passed = httpx.get(servers.gateway.url + "/odd", headers={"Accept-Encoding": "gzip"}, verify=False)
    assert passed.headers["content-encoding"] == "gzip"
    assert passed.text == "plain"


def test_a_client_that_asks_before_it_sends(servers: Servers) -> None:
    """`Expect: 100-continue`, as curl says it before a large body."""
    body = json.dumps(body_of("chat")).encode()
    with connected(servers.gateway.url) as client:
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        client.socket.sendall(f"{head}Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        client.read_until(b"100 Continue")
        client.socket.sendall(body)
        client.read_until(b"It is 4.")


def test_numbers_stay_numbers(servers: Servers) -> None:
    """Numbers of any size reach the upstream as they were."""
    odd = '"big": 12345678901234567890123, "small": 1e-7, "float": 1.0, "negative": -0.0, "exact": 0.1'
    sent = '{"model": "m", "messages": [{"role": "user", "content": "?"}], ' + odd + "}"
    assert post(servers.gateway.url, PATHS["chat"], sent.encode()).status_code == 200
    body = servers.upstream.question().body
    expected = json.loads("{" + odd + "}")
    assert {name: body[name] for name in expected} == expected
    assert isinstance(body["float"], float)


def test_characters_stay_characters(servers: Servers) -> None:
    """Words of any script and controls pass both ways."""
    words = "\x00\x1f\u2028\u2029\x85é日本🙂\ufeff"
    servers.upstream.say(words, cuts=1)
    for dialect in ("chat", "messages", "responses", "ollama_chat"):
        assert ask(dialect, servers.gateway.url, stream=True, question=words).text == words
        assert servers.upstream.question().body["messages"][-1]["content"] == words


@pytest.mark.parametrize("half", [b"\\ud800", b"\\uDFFF", "\ud800".encode("utf-8", "surrogatepass")])
def test_half_a_surrogate_pair_is_replaced(servers: Servers, half: bytes) -> None:
    """A client that cuts its text in the middle of a character is served; whole pairs and numbers beside it stay."""
    body = b'{"model": "m", "seed": 12345678901234567890, "temperature": 1.0, "messages": [%b]}'
    message = b'{"role": "user", "content": "a%bb \\ud83d\\ude42 \\\\ud800"}'
    assert post(servers.gateway.url, PATHS["chat"], body % (message % half)).status_code == 200
    sent = servers.upstream.question().body
    halves = sent["messages"][0]["content"].removeprefix("a").removesuffix("b \U0001f642 \\ud800")
    assert set(halves) == {"\ufffd"}
    assert (sent["seed"], sent["temperature"]) == (12345678901234567890, 1.0)
    broken = post(servers.gateway.url, PATHS["chat"], body % (message % half) + b"}")
    assert broken.status_code == 400
    assert "not JSON" in broken.json()["error"]["message"]


@pytest.mark.parametrize("start", [gzip.compress(b"{}", mtime=0), b"\x28\xb5\x2f\xfd\x04"], ids=["gzip", "zstd"])
def test_a_compressed_request_is_refused_as_one(servers: Servers, start: bytes) -> None:
    """Not as JSON that is malformed at its first byte."""
    refused = post(servers.gateway.url, PATHS["chat"], start)
    assert refused.status_code == 415
    assert "the body is compressed" in refused.json()["error"]["message"]


# Replies that are not what they say.


def test_a_failure_that_says_200(servers: Servers) -> None:
    """An error in a reply whose status is 200 is an error for the client."""
    servers.upstream.send(json_reply({"error": {"message": "out of memory", "code": 500}}))
    for stream in (False, True):
        with pytest.raises(openai.APIError, match="out of memory"):
            ask("chat", servers.gateway.url, stream=stream)


def test_a_stream_for_who_wanted_none(servers: Servers) -> None:
    """An upstream that streams whatever it is asked for: the client still gets a whole reply."""
    frames = (
        b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"<think>A</think>B"},"finish_reason":"stop"}]}\n\n'
    )
    servers.upstream.send(Reply([frames, b"data: [DONE]\n\n"]))
    for dialect in ("chat", "messages"):
        seen = ask(dialect, servers.gateway.url)
        assert (seen.thinking, seen.text) == ("A", "B")


def test_the_models_name_in_a_reply(servers: Servers) -> None:
    """A client sees the name that it asked for, streamed and whole."""
    for stream in (False, True):
        reply = post(servers.gateway.url, PATHS["chat"], body_of("chat", model="alias", stream=stream))
        frames = [frame for frame in events(reply.content) if frame != "[DONE]"] if stream else [reply.json()]
        assert {frame["model"] for frame in frames} == {"alias"}
        assert servers.upstream.question().body["model"] == "m"


def test_several_prompts(servers: Servers) -> None:
    """A list of prompts goes on as it is, and each choice is read by itself."""
    servers.upstream.say(["<think>A</think>B", "<think>C</think>D"])
    for stream in (False, True):
        body = {"model": "m", "prompt": ["one", "two"], "stream": stream}
        reply = post(servers.gateway.url, PATHS["completions"], body)
        assert servers.upstream.question().body["prompt"] == ["one", "two"]
        frames = [frame for frame in events(reply.content) if frame != "[DONE]"] if stream else [reply.json()]
        choices = [choice for frame in frames for choice in frame["choices"]]
        for index, (thinking, text) in enumerate((("A", "B"), ("C", "D"))):
            mine = [choice for choice in choices if choice["index"] == index]
            assert "".join(choice["text"] for choice in mine) == text
            assert "".join(choice.get("reasoning_content") or "" for choice in mine) == thinking


# Thinking of earlier turns.


THINKING_BLOCK = {"type": "thinking", "thinking": "2+2", "signature": "x"}
HISTORIES: dict[str, list[dict[str, Any]]] = {
    "chat": [{"role": "assistant", "content": "4.", "reasoning_content": "2+2"}],
    "chat, as vLLM names it": [{"role": "assistant", "content": "4.", "reasoning": "2+2"}],
    "chat, in tags": [{"role": "assistant", "content": "<think>2+2</think>\n\n4."}],
    "messages": [{"role": "assistant", "content": [THINKING_BLOCK, {"type": "text", "text": "4."}]}],
    "ollama_chat": [{"role": "assistant", "content": "4.", "thinking": "2+2"}],
}


@pytest.mark.parametrize("shape", HISTORIES)
def test_history(servers: Servers, shape: str) -> None:
    """Thinking that a client sends back, in whatever shape, goes to the upstream as the model's settings say."""
    turns = [{"role": "user", "content": "2+2?"}, *HISTORIES[shape], {"role": "user", "content": "Sure?"}]
    dialect = shape.partition(",")[0]
    found = {}
    for model in ("m", "named", "tagged", "dropped"):
        ask(dialect, servers.gateway.url, model=model, messages=turns)  # type: ignore[arg-type]  # made of literals
        found[model] = servers.upstream.question().body["messages"][1]
    assert (found["m"]["reasoning_content"], found["m"]["content"]) == ("2+2", "4.")
    assert (found["named"]["reasoning"], found["named"]["content"]) == ("2+2", "4.")
    assert found["tagged"]["content"].startswith("<think>")
    assert "2+2" in found["tagged"]["content"]
    assert "2+2" not in json.dumps(found["dropped"])
    assert found["dropped"]["content"] == "4."


# Curl, and other simple clients.


def test_a_request_without_a_content_type(servers: Servers) -> None:
    """A body is read as JSON whatever its header says: `curl -d` calls it a form."""
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert post(servers.gateway.url, PATHS["chat"], body_of("chat"), headers=headers).status_code == 200
    assert servers.upstream.question().headers["content-type"] == "application/json"


def test_a_slash_too_many(servers: Servers) -> None:
    """A slash at the end, or /v1 written twice, is what people type."""
    for path in ("/v1/chat/completions/", "/v1/v1/chat/completions"):
        assert post(servers.gateway.url, path, body_of("chat")).status_code == 200
    assert get(servers.gateway.url, "/v1/models/").status_code == 200


def test_a_request_without_a_model(servers: Servers) -> None:
    """With one upstream a request need not name a model; the upstream decides."""
    body = {"messages": [{"role": "user", "content": "?"}], "stream": True}
    reply = post(servers.gateway.url, PATHS["chat"], body)
    assert reply.status_code == 200
    assert chat_deltas(events(reply.content)) == "It is 4."


def test_a_trailer_is_no_header() -> None:
    """A key behind the body opens nothing, and nothing else that stands there counts."""
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
    )
    body = json.dumps(body_of("chat")).encode()
    chunks = b"%x\r\n%b\r\n0\r\n" % (len(body), body)
    key, odd = b"Authorization: Bearer sk-right\r\n", b"X-Asides-Nonsense: 1\r\nX-Request-Id: trailer\r\n"
    with serving(keys=["sk-right"]) as servers:
        for before, behind, status in ((b"", key, b"401"), (key, odd, b"200"), (key, b"", b"200")):
            with connected(servers.gateway.url) as client:
                client.socket.sendall(head + before + b"\r\n" + chunks + behind + b"\r\n")
                answer = client.read_rest()
            assert answer.split()[1] == status, answer
            assert b"trailer" not in answer


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("value", ["a\x00b", "a\x01b", "a\x7fb"])
def test_an_upstreams_header_that_no_header_may_be(servers: Servers, value: str, stream: bool) -> None:
    """Its answer is kept; what may not stand in a header is a space, as HTTP wants it."""
    servers.upstream.say("Hi")
    usual = servers.upstream.answer

    def odd(asked: Asked) -> Reply:
        servers.upstream.replies.clear()
        reply = usual(asked)
        return dataclasses.replace(reply, headers={**reply.headers, "X-Odd": value})

    servers.upstream.send(odd)
    reply = post(servers.gateway.url, PATHS["chat"], body_of("chat", stream=stream))
    assert (reply.status_code, reply.headers["x-odd"]) == (200, "a b")
    assert "Hi" in reply.text
