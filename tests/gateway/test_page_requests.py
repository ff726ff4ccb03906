"""Requests on the page: who sees whose, what a look inside shows, and that nobody who watches slows anybody down."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn

from asides._config.schema import Config, Limits, UpstreamSettings
from asides._gateway import page_requests
from asides._gateway.app import Gateway as Application
from asides._gateway.headers import fingerprint_of
from asides._gateway.inspection import InspectedRequest, Registry, _sent_back
from asides._gateway.page_requests import PageRequests
from asides._gateway.protocol import limited
from asides._gateway.record import RequestRecord
from asides._gateway.refusals import Refusal
from asides._gateway.upstreams import HttpUpstream
from asides._page import traffic
from asides.dialects import openai_chat
from asides.dialects._request import RequestTurn, TextPiece
from asides.events import PartStart, ThinkingDelta
from asides.reply._items import ReplyEvent
from tests.gateway.clients import FUNCTION, PATHS, body_of, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.sockets import connected
from tests.gateway.test_reload import Served
from tests.gateway.upstream import SSE, Asked, Gate, Pause, Reply, Step, Upstream, json_reply, upstream
from tests.waiting import PATIENCE, eventually

A, B, OPERATOR = "page-key-aaa", "page-key-bbb", "page-key-ops"
KEYS = [A, B, {"key": OPERATOR, "operator": True, "name": "ops"}]
CHAT = PATHS["chat"]
FIRST = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"<think>One"}}]}\n\n'
REST = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"</think>Two"},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
INSPECT = {"x-asides-inspect": "1"}


class Servers(NamedTuple):
    """Gateways before one upstream: one for each way to watch, and one that others reach without keys."""

    all: Gateway
    own: Gateway
    off: Gateway
    beyond: Gateway
    upstream: Upstream


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One for all tests of this file."""
    with upstream(models=("m", "plain")) as server:
        shared: dict[str, Any] = {
            "upstreams": [{"url": server.url, "name": "near"}],
            "defaults": {"format": "qwen3"},
            "models": {"plain": {"format": "none"}},
            "log": {"form": "json"},
        }
        with (
            gateway({**shared, "keys": KEYS, "page": {"watch": "all"}}) as everything,
            gateway({**shared, "keys": KEYS, "page": {"watch": "own"}}) as own,
            gateway({**shared, "keys": KEYS}) as off,
            gateway({**shared, "page": {"watch": "all"}}, "--host", "0.0.0.0") as beyond,
        ):
            yield Servers(everything, own, off, beyond, server)


class Watching:
    """Somebody who watches, in a thread of its own."""

    def __init__(self, url: str, key: str, token: str) -> None:
        self.events: list[tuple[str, Any]] = []
        self.over = threading.Event()
        self._stream = httpx.stream(
            "GET",
            f"{url}/asides/traffic",
            headers={"x-asides-token": token, **({"x-api-key": key} if key else {})},
            timeout=None,
            verify=False,
        )
        self._answer = self._stream.__enter__()
        assert self._answer.status_code == 200
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        eventually(lambda: bool(self.events), "nothing came")

    def _read(self) -> None:
        name = ""
        try:
            for line in self._answer.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    self.events.append((name, json.loads(line.removeprefix("data: "))))
        except httpx.HTTPError:
            pass
        self.over.set()

    def of(self, id: str) -> list[tuple[str, Any]]:
        """The events of a request."""
        return [(name, data) for name, data in list(self.events) if data.get("id") == id]

    def wait_for_end(self, id: str) -> list[tuple[str, Any]]:
        """The events of a request, as soon as it is over."""
        eventually(lambda: any(name == "end" for name, _ in self.of(id)), f"{id} did not end")
        return self.of(id)

    def close(self) -> None:
        """Leave."""
        # Closing alone does not end the connection while a thread reads from it.
        with suppress(OSError):  # the gateway may have ended it
            self._answer.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE)
        self._stream.__exit__(None, None, None)


@contextmanager
def watching(url: str, key: str = "", token: str = "") -> Iterator[Watching]:
    """Somebody who watches as long as the block."""
    found = Watching(url, key, token)
    try:
        yield found
    finally:
        found.close()


def send(running: Gateway, key: str, id: str = "", path: str = CHAT, **body: Any) -> httpx.Response:
    """Ask a model with a key, under an id."""
    headers = {"x-api-key": key} if key else {}
    headers |= {"x-request-id": id} if id else {}
    headers |= INSPECT if body.pop("inspect", False) else {}
    return post(running.url, path, {**body_of("chat"), **body}, headers=headers)


def inspected(id: str) -> dict[str, str]:
    """The headers of a request that is looked into."""
    return {"x_api_key": A, "x_request_id": id, "x_asides_inspect": "1"}


def read(running: Gateway, path: str = "", key: str = A, **headers: str) -> httpx.Response:
    """Get requests with a key."""
    headers = {"x_asides_token": running.token, **headers}
    return get(running.url, f"/asides/requests{path}", **({"x_api_key": key} if key else {}), **headers)


def detail(running: Gateway, id: str, key: str = A) -> dict[str, Any]:
    """A look into a request that is over."""
    eventually(lambda: not read(running, f"/{id}", key).json().get("running", True), f"{id} is not kept")
    found: dict[str, Any] = read(running, f"/{id}", key).json()
    return found


def ids(running: Gateway, key: str) -> set[str]:
    """The requests that a key sees."""
    return {request["id"] for request in read(running, "", key).json()["requests"]}


# Who sees what.


def test_a_key_watches_its_own_and_an_operator_all(servers: Servers) -> None:
    """Live, in the list, and by id."""
    servers.upstream.say("<think>One</think>Two")
    url = servers.all.url
    with watching(url, A) as a, watching(url, B) as b, watching(url, OPERATOR) as operator:
        send(servers.all, A, "w-a", stream=True, messages=[{"role": "user", "content": "of a"}])
        send(servers.all, B, "w-b", stream=True)
        seen = operator.wait_for_end("w-a")
        operator.wait_for_end("w-b")
        a.wait_for_end("w-a")
        b.wait_for_end("w-b")
    assert not a.of("w-b")
    assert not b.of("w-a")
    assert [name for name, _ in (seen[0], seen[-1])] == ["begin", "end"]
    begin, end = seen[0][1], seen[-1][1]
    assert (begin["question"], begin["running"], begin["client"]) == ("of a", True, fingerprint_of(A))
    assert (end["running"], end["status"], end["termination"]) == (False, 200, "stop")
    assert (end["thinking_characters"], end["answer_characters"], end["usage"]["output_tokens"]) == (3, 3, 22)
    deltas = [data for name, data in seen if name == "delta"]
    for kind, text, part in (("thinking", "One", 0), ("text", "Two", 1)):
        assert "".join(delta["text"] for delta in deltas if delta["kind"] == kind) == text
        assert {delta["part"] for delta in deltas if delta["kind"] == kind} == {part}
    detail(servers.all, "w-a")
    detail(servers.all, "w-b", B)
    assert "w-b" not in ids(servers.all, A)
    assert "w-a" not in ids(servers.all, B)
    assert {"w-a", "w-b"} <= ids(servers.all, OPERATOR)
    assert read(servers.all, "/w-a", B).status_code == 404
    assert read(servers.all, "/w-a", OPERATOR).json()["question"] == "of a"


def test_who_comes_later_is_sent_the_last_requests(servers: Servers) -> None:
    """The newest first, each key its own: as the list has them."""
    for key, id in ((A, "l-1"), (B, "l-2"), (A, "l-3")):
        send(servers.all, key, id)
        detail(servers.all, id, key)
    for key, expected in ((A, ["l-3", "l-1"]), (B, ["l-2"]), (OPERATOR, ["l-3", "l-2", "l-1"])):
        with watching(servers.all.url, key) as late:
            name, hello = late.events[0]
        assert name == "hello"
        assert [each["id"] for each in hello["recent"] if each["id"].startswith("l-")] == expected
        assert not any(each["running"] for each in hello["recent"])


def test_own_is_for_operators_too(servers: Servers) -> None:
    """`watch: own` shows nobody the requests of others."""
    with watching(servers.own.url, A) as a, watching(servers.own.url, OPERATOR) as operator:
        send(servers.own, A, "o-a", stream=True)
        send(servers.own, OPERATOR, "o-o", stream=True)
        a.wait_for_end("o-a")
        assert operator.wait_for_end("o-o")[0][1]["name"] == "ops"
        assert not operator.of("o-a")
        assert not a.of("o-o")
    detail(servers.own, "o-a")
    assert read(servers.own, "/o-a", OPERATOR).status_code == 404
    assert "o-a" not in ids(servers.own, OPERATOR)


def test_without_watching_only_what_a_client_asks_for_is_kept(servers: Servers) -> None:
    """And shown to its own key alone."""
    assert send(servers.off, A, "i-not").status_code == 200
    assert send(servers.off, A, "i-yes", inspect=True).status_code == 200
    assert detail(servers.off, "i-yes")["status"] == 200
    assert ids(servers.off, A) == {"i-yes"}
    assert read(servers.off, "/i-not").status_code == 404
    for other in (B, OPERATOR):
        assert read(servers.off, "/i-yes", other).status_code == 404
        assert ids(servers.off, other) == set()
    found = get(servers.off.url, "/asides/traffic", x_api_key=A)
    assert (found.status_code, found.json()["error"]["code"]) == (404, "watch_off")


def test_two_clients_may_choose_one_id(servers: Servers) -> None:
    """Neither sees the other's, nor puts it out of its place."""
    for key in (A, B):
        send(servers.all, key, "same", messages=[{"role": "user", "content": f"from {key}"}])
    for key in (A, B):
        assert detail(servers.all, "same", key)["question"] == f"from {key}"


def test_without_keys_only_the_start_token_watches(servers: Servers) -> None:
    """Whatever key is sent: anybody can send any."""
    send(servers.beyond, A, "b-1", inspect=True)
    token = {"x_asides_token": servers.beyond.token}
    assert get(servers.beyond.url, "/asides/requests/b-1", **token).json()["id"] == "b-1"
    for key in (A, ""):
        for path in ("/asides/traffic", "/asides/requests", "/asides/requests/b-1"):
            found = get(servers.beyond.url, path, **({"x_api_key": key} if key else {}))
            assert (found.status_code, found.json()["error"]["code"]) == (403, "no_access")


def test_without_keys_a_thought_is_ended_by_who_asked_for_it(servers: Servers) -> None:
    """Its id is known to nobody else: no token is needed, and nothing is read."""
    servers.upstream.send(thinking_on(ANSWER))
    with connected(servers.beyond.url.replace("0.0.0.0", "127.0.0.1")) as client:
        client.post(CHAT, body_of("chat", stream=True), **inspected("b-2"))
        client.read_until(b"One")
        assert end_thought(servers.beyond, "b-2", B).status_code == 404
        assert end_thought(servers.beyond, "b-3", A).status_code == 404
        assert end_thought(servers.beyond, "b-2", A).status_code == 200
        client.read_until(b"[DONE]")


@pytest.mark.parametrize("path", ["/asides/traffic", "/asides/requests", "/asides/requests/x"])
def test_other_sites_cannot_watch(servers: Servers, path: str) -> None:
    """Keys, host and origin are looked at on every route."""
    assert get(servers.all.url, path).status_code == 401
    for headers in ({"origin": "https://evil.example"}, {"sec_fetch_site": "cross-site"}, {"host": "evil.example"}):
        assert get(servers.all.url, path, x_api_key=A, **headers).status_code == 403
    for other in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"host": "evil.example"}):
        headers = {"x-api-key": A, **other}
        assert post(servers.all.url, "/asides/requests/x/answer-now", {}, headers=headers).status_code == 403
    assert post(servers.all.url, "/asides/requests/x/answer-now", {}).status_code == 401


def test_what_shall_not_be_stored_is_not_kept(servers: Servers) -> None:
    """It is shown live where traffic is watched, and gone when it is over."""
    with watching(servers.all.url, A) as a:
        body = {"model": "m", "input": "secret", "store": False, "stream": True}
        headers = {"x-api-key": A, "x-request-id": "p-1", **INSPECT}
        post(servers.all.url, PATHS["responses"], body, headers=headers)
        assert a.wait_for_end("p-1")[0][1]["question"] == "secret"
    assert read(servers.all, "/p-1").status_code == 404
    assert "p-1" not in ids(servers.all, A)


def test_no_key_is_logged(servers: Servers) -> None:
    """Nor is one in anything that is shown."""
    send(servers.all, A, "l-1", inspect=True)
    assert A not in json.dumps(detail(servers.all, "l-1"))
    for running in servers[:4]:
        assert not [key for key in (A, B, OPERATOR) if key in running.log]


# A look inside.


@pytest.mark.parametrize("stream", [True, False])
def test_a_look_inside(servers: Servers, stream: bool) -> None:
    """The raw text, parts with their places, what is in none, notices, and how it was read."""
    servers.upstream.say("<think>\nOne\n</think>\n\nTwo</think>x")
    id = f"d-{stream}"
    answered = send(servers.off, A, id, stream=stream, inspect=True)
    assert answered.headers["x-request-id"] == id
    found = detail(servers.off, id)
    (raw,) = found["raw"]
    assert raw == "<think>\nOne\n</think>\n\nTwo</think>x"
    (choice,) = found["choices"]
    assert [(part["kind"], raw[part["start"] : part["end"]]) for part in choice["parts"]] == [
        ("thinking", "One"),
        ("text", "Two"),
        ("text", "x"),
    ]
    marked = [raw[gap["start"] : gap["end"]] for gap in choice["markers"]]
    assert marked == ["<think>\n", "\n</think>\n\n", "</think>"]
    assert [notice["code"] for notice in choice["notices"]] == ["stray_close"]
    assert raw[choice["notices"][0]["at"] :].startswith("</think>x")
    assert (found["format"], found["format_source"]) == ("qwen3", "configuration")
    assert found["begins"] == {"start": "text", "sure": True, "reason": "qwen3 begins so"}
    assert (found["upstream"], found["dialect"], found["stream"]) == ("near", "openai_chat", stream)
    assert (choice["termination"], choice["reason"], found["truncated"]) == ("stop", "stop", False)
    assert found["first_thought"] <= found["first_answer"] <= found["seconds"]


def test_a_look_into_what_the_server_split(servers: Servers) -> None:
    """There is no raw text then, and no part has a place."""
    servers.upstream.say("Two", thought="One")
    send(servers.off, A, "s-1", stream=True, inspect=True)
    found = detail(servers.off, "s-1")
    assert found["raw"] is None
    assert [(part["kind"], part["text"], "start" in part) for part in found["choices"][0]["parts"]] == [
        ("thinking", "One", False),
        ("text", "Two", False),
    ]


def test_a_look_into_a_request_that_was_refused_or_passed_on(servers: Servers) -> None:
    """What is known of it: its status and its error; of bytes that passed untouched nothing was read."""
    assert send(servers.off, A, "r-1", inspect=True, messages="none").status_code == 400
    found = detail(servers.off, "r-1")
    assert (found["status"], found["choices"], bool(found["error"])) == (400, [], True)
    servers.upstream.send(json_reply({"error": {"message": "too long: a secret"}}, 400))
    assert send(servers.off, A, "r-3", inspect=True).status_code == 400
    assert detail(servers.off, "r-3")["error"] == "too long: a secret"
    assert "a secret" not in servers.off.log, "what an upstream says may quote the question"
    servers.upstream.forget()
    assert send(servers.off, A, "r-2", inspect=True, model="plain").status_code == 200
    passed = detail(servers.off, "r-2")
    assert (passed["raw"], passed["model"], passed["question"]) == (None, "plain", "2+2?")


def test_several_choices(servers: Servers) -> None:
    """Each has its own text."""
    servers.upstream.say(["<think>a</think>b", "<think>c</think>d"])
    send(servers.off, A, "n-2", stream=True, n=2, inspect=True)
    found = detail(servers.off, "n-2")
    assert found["raw"] == ["<think>a</think>b", "<think>c</think>d"]
    assert [[part["text"] for part in choice["parts"]] for choice in found["choices"]] == [["a", "b"], ["c", "d"]]


def test_a_look_into_a_reply_that_runs(servers: Servers) -> None:
    """As far as it has come."""
    gate = Gate()
    servers.upstream.send(Reply([FIRST, gate, REST, DONE]))
    with connected(servers.off.url) as client:
        client.post(CHAT, body_of("chat", stream=True), **inspected("live"))
        client.read_until(b"One")
        found = read(servers.off, "/live").json()
        assert (found["running"], found["raw"], found["choices"][0]["parts"][0]["text"]) == (
            True,
            ["<think>One"],
            "One",
        )
        assert read(servers.off, "/live", B).status_code == 404
        gate.open()
        client.read_until(b"[DONE]")
    assert detail(servers.off, "live")["choices"][0]["parts"][1]["text"] == "Two"


def test_what_was_sent_back(servers: Servers) -> None:
    """What the client brought and the upstream got, what it did not get, and what the gateway put back."""
    servers.upstream.say('<think>I look.</think><tool_call>{"name": "find", "arguments": {"query": "x"}}</tool_call>')
    tools = [{"type": "function", "function": FUNCTION}]
    asked = {"role": "user", "content": "2+2?"}
    call = send(servers.off, A, messages=[asked], tools=tools).json()["choices"][0]["message"]["tool_calls"][0]
    result = {"role": "tool", "tool_call_id": call["id"], "content": "found"}
    servers.upstream.say("done")
    bare = {"role": "assistant", "content": "", "tool_calls": [call]}
    send(servers.off, A, "back-1", inspect=True, messages=[asked, bare, result], tools=tools)
    put_back = {"turn": 1, "thought": "I look.", "outcome": "put back by the gateway"}
    assert detail(servers.off, "back-1")["sent"] == [put_back]
    own = {**bare, "reasoning_content": "I look."}
    send(servers.off, A, "back-2", inspect=True, messages=[asked, own, result], tools=tools)
    assert detail(servers.off, "back-2")["sent"] == [{**put_back, "outcome": "sent back"}]
    assert "I look." in str(servers.upstream.question().body)


def test_what_was_not_sent_back() -> None:
    """Where a setting leaves thoughts out, each says so."""
    with upstream() as server:
        config = {"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3", "replay": "drop"}}
        with gateway(config) as running:
            turns = [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": "<think>In tags.</think>b"},
                {"role": "user", "content": "c"},
                {"role": "assistant", "content": "d", "reasoning_content": "In a field."},
                {"role": "user", "content": "e"},
            ]
            send(running, "", "drop", inspect=True, messages=turns)
            found = detail(running, "drop", "")["sent"]
            assert "In a field." not in str(server.question().body)
    assert ("In a field.", "not sent back") in [(each["thought"], each["outcome"]) for each in found]


def test_only_the_last_requests_are_kept(servers: Servers) -> None:
    """Two hundred, whoever asked."""
    with httpx.Client(verify=False, timeout=PATIENCE) as client:
        for number in range(201):
            headers = {"x-api-key": B, "x-request-id": f"many-{number}", **INSPECT}
            client.post(servers.off.url + CHAT, json=body_of("chat"), headers=headers)
    detail(servers.off, "many-200", B)
    assert len(ids(servers.off, B)) <= 200
    assert read(servers.off, "/many-0", B).status_code == 404


# Ending a thought.


def thinking_on(continued: bytes = REST) -> Any:
    """A server that thinks on and on, and answers where a message of the assistant is to be continued."""

    def steps() -> Iterator[Step]:
        yield FIRST
        while True:
            yield b'data: {"id":"1","choices":[{"index":0,"delta":{"content":" more"}}]}\n\n'
            yield Pause(0.01)

    def answer(asked: Asked) -> Reply:
        if asked.body["messages"][-1]["role"] == "assistant":
            return Reply([continued, DONE] if continued else [], 200 if continued else 400)
        return Reply(steps(), headers=SSE)

    return answer


ANSWER = b'data: {"id":"2","choices":[{"index":0,"delta":{"content":"So."},"finish_reason":"stop"}]}\n\n'


def end_thought(running: Gateway, id: str, key: str = A) -> httpx.Response:
    """Ask for the answer now."""
    return post(running.url, f"/asides/requests/{id}/answer-now", {}, headers={"x-api-key": key})


def test_a_thought_is_ended_on_demand(servers: Servers) -> None:
    """By its own key alone; the model goes on with its answer."""
    servers.upstream.send(thinking_on(ANSWER))
    with connected(servers.off.url) as client:
        client.post(CHAT, body_of("chat", stream=True), **inspected("now-1"))
        client.read_until(b"One")
        for other in (B, OPERATOR):
            assert end_thought(servers.off, "now-1", other).status_code == 404
        assert end_thought(servers.off, "now-1").json() == {"by": "gateway", "pending": False}
        client.read_until(b"[DONE]")
    found = detail(servers.off, "now-1")
    assert [part["kind"] for part in found["choices"][0]["parts"]] == ["thinking", "text"]
    assert found["choices"][0]["parts"][1]["text"] == "So."
    sent = servers.upstream.question().body["messages"][-1]
    assert sent["content"].startswith("<think>One")
    assert sent["content"].rstrip().endswith("</think>")
    ended = end_thought(servers.off, "now-1")
    assert ended.status_code == 404


def test_a_server_that_cannot_go_on_loses_nothing(servers: Servers) -> None:
    """The reason is given, and the thought runs on."""
    servers.upstream.send(thinking_on(b""))
    with (
        gateway(
            {"upstreams": [{"url": servers.upstream.url}], "defaults": {"format": "qwen3"}, "keys": KEYS}
        ) as running,
        connected(running.url) as client,
    ):
        client.post(CHAT, body_of("chat", stream=True), **inspected("now-2"))
        client.read_until(b"One")
        refused = end_thought(running, "now-2")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "cannot_answer_now")
        client.read_until(b"more")
        assert "cannot go on" in end_thought(running, "now-2").json()["error"]["message"]


def test_what_cannot_be_ended(servers: Servers) -> None:
    """A reply that is not thinking; one that was not looked into; a request that is not there."""
    gate = Gate()
    text = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"Plain"}}]}\n\n'
    servers.upstream.send(Reply([text, gate, DONE]))
    with connected(servers.off.url) as client:
        client.post(CHAT, body_of("chat", stream=True), **inspected("now-3"))
        client.read_until(b"Plain")
        refused = end_thought(servers.off, "now-3")
        assert (refused.status_code, refused.json()["error"]["message"]) == (409, "the model is not thinking now")
        gate.open()
        client.read_until(b"[DONE]")
    assert end_thought(servers.off, "nothing").status_code == 404
    assert post(servers.off.url, "/asides/requests/x/y", {}, headers={"x-api-key": A}).status_code == 404


def test_the_server_ends_a_thought_where_it_can() -> None:
    """llama.cpp has a request for that; it has to be told of it with the question, and only where somebody may ask."""
    with upstream() as server:
        listed = {"data": [{"id": "m", "owned_by": "llamacpp"}]}
        server.send(json_reply(listed), "/v1/models")
        server.send(json_reply({"ended": True}), "/v1/chat/completions/control")
        with gateway({"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}, "keys": KEYS}) as running:
            models = get(running.url, "/asides/models", x_api_key=A).json()["models"]
            assert models[0]["answer_now"] is True
            gate = Gate()
            server.send(Reply([FIRST, gate, REST, DONE]), CHAT)
            with connected(running.url) as client:
                client.post(CHAT, body_of("chat", stream=True), **inspected("now-4"))
                client.read_until(b"One")
                assert end_thought(running, "now-4").json() == {"by": "server", "pending": False}
                gate.open()
                client.read_until(b"[DONE]")
            asked = [each for each in server.asked if each.path.endswith("/control")]
            assert asked[0].body == {"id": "1", "action": "reasoning_end"}
            assert server.question().body["reasoning_control"] is True
            server.send(Reply([FIRST, REST, DONE]), CHAT)
            send(running, A, stream=True)
            assert "reasoning_control" not in server.question().body


# Watching costs nobody anything.


def test_a_slow_watcher_slows_nothing(servers: Servers) -> None:
    """What it does not read in time is counted, and it is told how much that was."""
    words = "<think>" + "word " * 2_000_000 + "</think>So."  # more than the system's own buffers hold
    servers.upstream.say(words, size=4000)
    with connected(servers.all.url, buffer=4096) as slow:
        slow.get("/asides/traffic", x_api_key=A)
        slow.read_until(b"hello")
        with watching(servers.all.url, OPERATOR) as other:
            answered = send(servers.all, A, "slow", stream=True)
            assert answered.text.count("word ") > 1_900_000
            other.wait_for_end("slow")
        while b"event: lost" not in slow.read[-200_000:]:
            assert slow.read_some()
    eventually(lambda: get(servers.all.url, "/healthz").json()["open"] == 0, "somebody still watches")


def test_who_leaves_watches_no_more(servers: Servers) -> None:
    """The stream ends, and nothing is left of it."""
    eventually(lambda: get(servers.all.url, "/healthz").json()["open"] == 0, "somebody still watches")
    with watching(servers.all.url, A), watching(servers.all.url, B):
        assert get(servers.all.url, "/healthz").json()["open"] == 2
    eventually(lambda: get(servers.all.url, "/healthz").json()["open"] == 0, "somebody still watches")
    assert get(servers.all.url, "/healthz").json()["open"] == 0


def test_one_key_does_not_take_the_place_of_all_who_watch(servers: Servers) -> None:
    eventually(lambda: get(servers.all.url, "/healthz").json()["open"] == 0, "somebody still watches")
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(httpx.Client(base_url=servers.all.url, timeout=PATIENCE))

        def watch(key: str) -> int:
            headers = {"authorization": f"Bearer {key}"}
            return stack.enter_context(client.stream("GET", "/asides/traffic", headers=headers)).status_code

        assert {watch(B) for _ in range(20)} == {200}
        assert watch(B) == 429
        assert watch(OPERATOR) == 200


def test_a_long_name_of_a_model_is_cut_in_lists(servers: Servers) -> None:
    send(servers.all, B, "long-name", model="n" * 100_000)
    eventually(lambda: "long-name" in ids(servers.all, B), "it is not listed")
    listed = next(each for each in read(servers.all, key=B).json()["requests"] if each["id"] == "long-name")
    assert listed["model"] == "n" * 200


def test_a_reload_keeps_who_watches(tmp_path: Path, servers: Servers) -> None:
    """Unless who may watch has changed: then they have to ask again."""
    config: dict[str, Any] = {"upstreams": [{"url": servers.upstream.url}], "keys": KEYS, "page": {"watch": "all"}}
    with Served(tmp_path / "asides.yaml", config) as served:
        with watching(served.gateway.url, OPERATOR) as watcher:
            served.write({**config, "defaults": {"format": "qwen3"}})
            served.reload()
            send(served.gateway, A, "after", stream=True)
            watcher.wait_for_end("after")
            assert not watcher.over.is_set()
            served.write({**config, "keys": [A, B, OPERATOR]})
            served.reload()
            assert watcher.over.wait(PATIENCE)
        with watching(served.gateway.url, OPERATOR) as watcher:
            send(served.gateway, A, "hidden", stream=True)
            send(served.gateway, OPERATOR, "shown", stream=True)
            watcher.wait_for_end("shown")
            assert not watcher.of("hidden")


def test_a_gateway_that_stops_waits_for_nobody_who_watches(servers: Servers) -> None:
    """Though it would wait for a reply, and longer than is waited here."""
    limits = {"shutdown": PATIENCE * 5}
    config = {"upstreams": [{"url": servers.upstream.url}], "page": {"watch": "all"}, "limits": limits}
    with gateway(config) as running, watching(running.url, token=running.token) as watcher:
        running.signal(signal.SIGTERM)
        assert watcher.over.wait(PATIENCE)
        assert running.wait() == 0


def test_several_workers(tmp_path: Path) -> None:
    """Any of them finds a request that another answered and ends its thought; but none could show all traffic."""
    with upstream() as server:
        config: dict[str, Any] = {
            "listen": {"workers": 2},
            "upstreams": [{"url": server.url}],
            "defaults": {"format": "qwen3"},
            "responses": {"entries": 0},
            "replay_cache": {"entries": 0},
        }
        with pytest.raises(AssertionError, match=r"page\.watch"), gateway({**config, "page": {"watch": "all"}}):
            pass
        with gateway({**config, "keys": KEYS}) as running:
            send(running, A, "far", inspect=True)
            for _ in range(8):
                assert detail(running, "far")["id"] == "far"
                assert ids(running, A) == {"far"}
                assert read(running, "/far", B).status_code == 404
            server.send(thinking_on(ANSWER))
            with connected(running.url) as client:
                client.post(CHAT, body_of("chat", stream=True), **inspected("end"))
                client.read_until(b"One")
                assert {end_thought(running, "end", B).status_code for _ in range(4)} == {404}
                assert end_thought(running, "end").status_code == 200
                client.read_until(b"[DONE]")


def test_what_is_not_watched_calls_nothing_of_this() -> None:
    """Not one function of it, neither for a request nor for a frame; with the header, some for each frame."""
    plain, looked_into = asyncio.run(_counted({})), asyncio.run(_counted(INSPECT))
    assert plain == Counter()
    assert looked_into["inspection.py"] > 20


async def _counted(headers: dict[str, str]) -> Counter[str]:
    """The calls of functions in the files of watching while one streamed reply passes, by file."""
    files = {"inspection.py", "page_requests.py", "page_access.py", "page.py", "traffic.py", "splitting.py"}
    calls: Counter[str] = Counter()

    def see(frame: FrameType, event: str, argument: object) -> None:
        name = Path(frame.f_code.co_filename).name
        if event == "call" and name in files:
            calls[name] += 1

    application = Application(Config())
    settings = uvicorn.Config(application, port=0, http=limited(65536), lifespan="on", log_config=None)
    server = uvicorn.Server(settings)
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    body = json.dumps({**body_of("chat", model="recorded-qwen3"), "stream": True, "pace": 0}).encode()
    named = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\n{named}Content-Length: {len(body)}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sys.setprofile(see)
    try:
        writer.write(head.encode() + body)
        answered = await reader.readuntil(b"[DONE]\n\n")
        await asyncio.sleep(0.1)
    finally:
        sys.setprofile(None)
        writer.close()
        server.should_exit = True
        await running
    assert answered.count(b"data:") > 20
    return calls


def test_who_watches_sees_calls(servers: Servers) -> None:
    """With their names, as they begin."""
    servers.upstream.say('<tool_call>\n{"name": "find", "arguments": {"query": "x"}}\n</tool_call>')
    with watching(servers.own.url, A) as seen:
        send(servers.own, A, "call-1", tools=[{"type": "function", "function": FUNCTION}])
        events = seen.wait_for_end("call-1")
    calls = [data for name, data in events if name == "delta" and data["kind"] == "tool_call"]
    assert calls[0]["name"] == "find"
    assert "x" in "".join(data["text"] for data in calls)


def test_traffic_has_no_head(servers: Servers) -> None:
    """It is a stream without an end."""
    answer = httpx.head(f"{servers.own.url}/asides/traffic", headers={"x-api-key": A}, verify=False)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


def test_a_response_that_is_looked_into_is_kept(servers: Servers) -> None:
    """As it was streamed."""
    body = {"model": "m", "input": "?", "stream": True}
    headers = {"x-api-key": A, **INSPECT}
    streamed = post(servers.off.url, "/v1/responses", body, headers=headers).text
    done = json.loads(streamed.rstrip().rpartition("data: ")[2])["response"]
    assert get(servers.off.url, f"/v1/responses/{done['id']}", x_api_key=A).json()["output"] == done["output"]


# The same without a socket: other workers, and servers that are gone.

CONTROL = {"control": "1", "upstream": "far"}


def ended(monkeypatch: pytest.MonkeyPatch, *outcomes: dict[str, str], upstreams: tuple[Any, ...] = ()) -> Any:
    """What is answered to a request to end a thought, with these outcomes of trying to, one after the other."""
    sent: list[Any] = []
    left = list(outcomes)
    state = SimpleNamespace(upstreams=upstreams, headers_for=lambda *given, **named: {})
    access: Any = SimpleNamespace(open=lambda http: state, owner=lambda http, state: None)
    requests = PageRequests(access)

    async def end_thought(id: str, credential: str, *, by_server: bool) -> dict[str, str]:
        return left.pop(0)

    async def answer(status: int, body: bytes, *rest: Any, **named: Any) -> None:
        sent.append(json.loads(body))

    monkeypatch.setattr(requests, "_end_thought", end_thought)
    http: Any = SimpleNamespace(headers={}, answer=answer)
    match: Any = SimpleNamespace(rest="1/answer-now")
    asyncio.run(requests.answer_now(http, match))
    return sent[0]


def test_a_server_that_was_to_end_a_thought_and_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway ends it; where it cannot either, the client learns what went wrong first."""
    far = HttpUpstream(UpstreamSettings(url="http://127.0.0.1:9", name="far"), Limits())
    found = ended(monkeypatch, CONTROL, {"continued": ""}, upstreams=(far,))
    assert found == {"by": "gateway", "pending": False}
    with pytest.raises(Refusal, match="not configured any more") as caught:
        ended(monkeypatch, CONTROL, {"refused": "no"})
    assert caught.value.status == 409


def test_another_worker_ends_a_thought() -> None:
    """Whatever it reports is what the client is told."""

    async def ask(*question: str) -> list[bytes]:
        return [b"", b'{"continued": ""}']

    access: Any = None
    siblings: Any = SimpleNamespace(ask=ask)
    requests = PageRequests(access)
    requests.siblings = siblings
    assert asyncio.run(requests._end_thought("1", "ann", by_server=True)) == {"continued": ""}


def test_a_thought_that_does_not_end_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends with the next line that the server sends."""
    monkeypatch.setattr(page_requests, "WAIT", 0.0)
    request: Any = SimpleNamespace(record=SimpleNamespace(budget=""))
    assert asyncio.run(page_requests._outcome(request)) == {"pending": ""}


def test_thoughts_that_cannot_be_ended() -> None:
    """Of a request that has no plan yet, of a server that cannot go on, and of a reply that is over."""
    record = RequestRecord("1", "POST", CHAT)
    http: Any = SimpleNamespace(record=record, headers={})
    unused: Any = None
    request = InspectedRequest(http, "ann", "", Registry(traffic.Traffic(), traffic.RecentRequests(), {}, set()))
    assert request.end_thought(by_server=True) == {"refused": "the reply has not begun"}
    record.begin_reply(unused, collect=True, limit=1000)
    record.add(ReplyEvent(0, PartStart(0, "thinking")), ReplyEvent(0, ThinkingDelta(0, "Why")))
    plan: Any = SimpleNamespace(target=SimpleNamespace(engine=None))
    request._plan = plan
    assert "cannot go on" in request.end_thought(by_server=True)["refused"]
    request._over = True
    assert request.end_thought(by_server=True) == {"refused": "the reply is over"}


def test_a_request_that_is_planned_again_has_begun_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """After something was learned from its server; the later plan counts."""
    http: Any = SimpleNamespace(record=RequestRecord("1", "POST", CHAT), headers={})
    request = InspectedRequest(http, "ann", "", Registry(traffic.Traffic(), traffic.RecentRequests(), {}, set()))
    begun: list[Any] = []
    monkeypatch.setattr(request, "_begin", begun.append)
    plans: list[Any] = [SimpleNamespace(target=SimpleNamespace(engine=None), request=name) for name in "ab"]
    for plan in plans:
        assert request.planned(plan) is plan
    assert begun == ["a"]
    assert request._plan is plans[1]


def test_a_request_is_found_among_those_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only the latest."""
    access: Any = None
    requests = PageRequests(access)
    for id in "123":
        http: Any = SimpleNamespace(record=RequestRecord(id, "POST", CHAT), headers={})
        InspectedRequest(http, "ann", "", requests._registry)
    monkeypatch.setattr(InspectedRequest, "detail", lambda request: request.record.id)
    found = [requests._find(id, traffic.Watcher("ann", everything=False)) for id in "123"]
    assert found == [b'"1"', b'"2"', b'"3"']


def test_turns_that_are_not_the_clients_are_not_compared() -> None:
    """An operator may have put others in their place (`extra_body`)."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "?"}]}).encode()
    request = SimpleNamespace(turns=[RequestTurn("assistant", (TextPiece("So."),))])
    plan: Any = SimpleNamespace(request=request, upstream_dialect=openai_chat, body=body)
    assert list(_sent_back(plan)) == []
