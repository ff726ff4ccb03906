"""Efforts over real sockets: clamped to the family's, learned from a refusal, and reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.clients import body_of, post
from tests.gateway.servers import Servers, serving
from tests.gateway.upstream import Asked, Reply, json_reply

FINAL = "<|channel|>final<|message|>So.<|return|>"
LITERAL = "[{'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be 'low', 'medium' or 'high'\", 'input': %r}]"


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """Models of three families: one that takes three efforts, one that takes any, one that always thinks."""
    models = {
        **{name: {"format": "harmony"} for name in ("oss", "oss2")},
        **{name: {"format": "qwen3"} for name in ("plain", "other", "stubborn", "groq")},
        "always": {"format": "step3p5"},
    }
    with serving(models=models) as found:
        yield found


def picky(allowed: tuple[str, ...] = ("low", "medium", "high")) -> Any:
    """A server that takes only some efforts, and names them when it refuses."""

    def answer(asked: Asked) -> Reply:
        effort = asked.body.get("reasoning_effort")
        if effort is not None and effort not in allowed:
            return json_reply({"error": {"message": LITERAL % effort, "type": "BadRequestError", "code": 400}}, 400)
        message = {"role": "assistant", "content": f"<think>Hm.</think>It was {effort}."}
        return json_reply({"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    return answer


@pytest.mark.parametrize(
    ("path", "fields", "sent"),
    [
        ("/v1/chat/completions", {"reasoning_effort": "max"}, "high"),
        ("/v1/chat/completions", {"reasoning_effort": "minimal"}, "low"),
        ("/v1/chat/completions", {"reasoning_effort": "none"}, "low"),
        ("/v1/messages", {"output_config": {"effort": "xhigh"}}, "high"),
        ("/v1/responses", {"reasoning": {"effort": "minimal"}}, "low"),
        ("/api/chat", {"think": "max"}, "high"),
    ],
)
def test_clamped_to_the_family(servers: Servers, path: str, fields: dict[str, Any], sent: str) -> None:
    """gpt-oss takes low, medium and high: whatever is asked, the nearest is sent, and the client informed."""
    servers.upstream.say(FINAL)
    dialect = {"/v1/messages": "messages", "/v1/responses": "responses", "/api/chat": "ollama_chat"}.get(path, "chat")
    reply = post(servers.gateway.url, path, body_of(dialect, model="oss", **fields))  # type: ignore[arg-type]
    assert reply.status_code == 200, reply.text
    assert reply.headers["x-asides-effort"] == sent
    body = servers.upstream.question().body
    assert (body["reasoning_effort"], body["chat_template_kwargs"]["reasoning_effort"]) == (sent, sent)


def test_what_is_taken_is_not_reported(servers: Servers) -> None:
    """No header, no field in the log, where the effort is the client's own."""
    servers.upstream.say(FINAL)
    for fields in ({"reasoning_effort": "high"}, {}):
        reply = post(servers.gateway.url, "/v1/chat/completions", body_of("chat", model="oss", **fields))
        assert "x-asides-effort" not in reply.headers
        assert servers.upstream.question().body.get("reasoning_effort") == fields.get("reasoning_effort")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_learned_from_a_refusal(stream: bool) -> None:
    """One more try with the nearest that the refusal names; the next request knows it."""
    with serving() as (running, server):
        server.send(picky())
        body = body_of("chat", stream=stream, reasoning_effort="max")
        reply = post(running.url, "/v1/chat/completions", body)
        assert reply.status_code == 200, reply.text
        assert "It was high." in reply.text
        assert reply.headers["x-asides-effort"] == "high"
        assert [asked.body["reasoning_effort"] for asked in server.questions] == ["max", "high"]
        running.wait_for_record(lambda record: "takes no effort 'max'" in record.get("message", ""))
        line = running.wait_for_record(lambda record: reply.headers["x-request-id"] in str(record))
        assert (line["effort"], line["status"]) == ("high", 200)
        post(running.url, "/v1/messages", body_of("messages", output_config={"effort": "xhigh"}))
        assert [asked.body["reasoning_effort"] for asked in server.questions[2:]] == ["high"]
        post(running.url, "/v1/chat/completions", body_of("chat", model="another", reasoning_effort="low"))
        assert [asked.body["reasoning_effort"] for asked in server.questions[3:]] == ["low"]


def test_what_is_left_out_is_reported_once_after_a_second_try() -> None:
    """The header is of the request that was answered, however often it was written."""
    with serving() as (running, server):
        server.send(picky())
        asked = body_of("messages", output_config={"effort": "max"}, frobnicate=1)
        reply = post(running.url, "/v1/messages", asked)
        assert [asked.body["reasoning_effort"] for asked in server.questions] == ["max", "high"]
        assert reply.headers.get_list("x-asides-left-out") == ["frobnicate"]


def test_tried_once_more_and_not_for_ever(servers: Servers) -> None:
    """A server that refuses what it named: its second refusal is the client's."""
    refusal = {"error": {"message": "reasoning_effort: supported values are 'low' and 'medium'", "code": 400}}
    servers.upstream.send(json_reply(refusal, 400))
    reply = post(servers.gateway.url, "/v1/chat/completions", body_of("chat", model="stubborn", reasoning_effort="max"))
    assert (reply.status_code, reply.json()) == (400, refusal)
    assert [asked.body["reasoning_effort"] for asked in servers.upstream.questions] == ["max", "medium"]


def test_other_refusals_are_the_clients(servers: Servers) -> None:
    """What names no efforts, or comes to a request that asks for none, is passed on at once."""
    for message, fields in (("max_tokens is too high", {"reasoning_effort": "max"}), (LITERAL % "max", {})):
        servers.upstream.forget()
        servers.upstream.send(json_reply({"error": {"message": message}}, 400))
        reply = post(servers.gateway.url, "/v1/chat/completions", body_of("chat", model="plain", **fields))
        assert reply.status_code == 400
        assert len(servers.upstream.questions) == 1


def test_a_server_with_names_of_its_own(servers: Servers) -> None:
    """Where none of the names can be compared, the effort is left out, and the model thinks as it likes."""

    def answer(asked: Asked) -> Reply:
        if "reasoning_effort" in asked.body:
            message = "`reasoning_effort` must be one of `none` or `default`"
            return json_reply({"error": {"message": message}}, 400)
        return json_reply({"choices": [{"index": 0, "message": {"content": "So."}, "finish_reason": "stop"}]})

    servers.upstream.send(answer)
    reply = post(servers.gateway.url, "/v1/chat/completions", body_of("chat", model="groq", reasoning_effort="high"))
    assert reply.json()["choices"][0]["message"]["content"] == "So."
    assert reply.headers["x-asides-effort"] == "default"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_model_that_always_thinks(servers: Servers, stream: bool) -> None:
    """Thinking refused, and nothing turns it off: it is kept short, hidden, and never taken for the answer."""
    servers.upstream.say("Hm.</think>So.", size=99)
    body = body_of("chat", model="always", stream=stream, reasoning_effort="none")
    reply = post(servers.gateway.url, "/v1/chat/completions", body)
    assert "Hm." not in reply.text
    assert "So." in reply.text
    assert servers.upstream.question().body["reasoning_effort"] == "low"
