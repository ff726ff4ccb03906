"""Numbers that a client or an upstream chooses: how many choices, which number one has, how large anything may be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from asides.dialects import ALL
from asides.dialects._base import Dialect as DialectModule
from asides.dialects._request import Request
from asides.reply._items import Begin
from tests.gateway.clients import DIALECTS, PATHS, Dialect, ask, body_of, events, get, post
from tests.gateway.servers import Servers, serving
from tests.gateway.upstream import SSE, Asked, Reply, json_reply

MOST = 128
"""`limits.choices`, unless it is configured."""


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One for all tests of this file, with a model that is passed on byte for byte."""
    with serving(models={"passed": {"format": "none"}}) as found:
        yield found


# What a request asks for.


@pytest.mark.parametrize("model", ["m", "passed"])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("asked", [MOST + 1, 1_000_000, 10**30, 1e9])
@pytest.mark.parametrize("field", ["n", "best_of"])
def test_more_choices_than_are_taken(servers: Servers, field: str, asked: float, stream: bool, model: str) -> None:
    """A request of a hundred bytes once took gigabytes: it is refused, and the upstream is not asked."""
    servers.upstream.forget()
    dialects: tuple[Dialect, ...] = ("chat", "completions")
    for dialect in dialects:
        body = body_of(dialect, model=model, stream=stream) | {field: asked}
        reply = post(servers.gateway.url, PATHS[dialect], body)
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, field)
        assert "limits.choices" in reply.json()["error"]["message"]
    assert not servers.upstream.questions


def test_as_many_choices_as_are_taken(servers: Servers) -> None:
    """The last number that is allowed."""
    servers.upstream.say([f"choice {number}" for number in range(MOST)])
    found = ask("chat", servers.gateway.url, n=MOST).raw
    assert [choice.message.content for choice in found.choices] == [f"choice {number}" for number in range(MOST)]


@pytest.mark.parametrize(("prompts", "n", "status"), [(MOST, 1, 200), (MOST // 2, 2, 200), (MOST, 2, 400)])
def test_every_prompt_has_its_choices(servers: Servers, prompts: int, n: int, status: int) -> None:
    """Several prompts in one request: each makes `n` of them."""
    servers.upstream.say(["a"] * (prompts * n))
    reply = post(servers.gateway.url, PATHS["completions"], {"model": "m", "prompt": ["x"] * prompts, "n": n})
    assert reply.status_code == status
    assert ("limits.choices" in reply.text) == (status == 400)


def test_the_limit_can_be_set() -> None:
    """In either direction."""
    with serving(limits={"choices": 2}) as small:
        assert post(small.gateway.url, PATHS["chat"], body_of("chat", n=2)).status_code == 200
        assert "takes 2 (limits.choices)" in post(small.gateway.url, PATHS["chat"], body_of("chat", n=3)).text


@pytest.mark.parametrize(
    ("dialect", "changed", "param"),
    [
        ("chat", {"n": 0}, "n"),
        ("chat", {"n": -1}, "n"),
        ("chat", {"top_logprobs": 100_000}, "top_logprobs"),
        ("chat", {"max_tokens": 2**31}, "max_tokens"),
        ("chat", {"max_completion_tokens": 10**30}, "max_completion_tokens"),
        ("chat", {"seed": 10**30}, "seed"),
        ("chat", {"top_k": -(10**12)}, "top_k"),
        ("chat", {"truncate_prompt_tokens": 10**30}, "truncate_prompt_tokens"),
        ("chat", {"reasoning": {"max_tokens": 2**31}}, "reasoning.max_tokens"),
        ("chat", {"chat_template_kwargs": {"thinking_budget": 2**31}}, "chat_template_kwargs.thinking_budget"),
        ("completions", {"logprobs": 100_000}, "logprobs"),
        ("completions", {"prompt_logprobs": 100_000}, "prompt_logprobs"),
        ("responses", {"max_output_tokens": 2**31}, "max_output_tokens"),
        ("responses", {"max_tool_calls": 2**40}, "max_tool_calls"),
        ("messages", {"max_tokens": 2**31}, "max_tokens"),
        ("messages", {"thinking": {"type": "enabled", "budget_tokens": 2**31}}, "thinking.budget_tokens"),
        ("ollama_chat", {"options": {"num_predict": 2**31}}, "options.num_predict"),
        ("ollama_generate", {"options": {"num_ctx": 10**30}}, "options.num_ctx"),
        ("ollama_chat", {"top_logprobs": 100_000}, "top_logprobs"),
    ],
)
def test_numbers_out_of_bounds(servers: Servers, dialect: Dialect, changed: dict[str, Any], param: str) -> None:
    """The field is named, and its bound; the upstream is not asked."""
    servers.upstream.forget()
    reply = post(servers.gateway.url, PATHS[dialect], body_of(dialect) | changed)
    assert reply.status_code == 400
    assert param in reply.text
    assert "at least" in reply.text or "takes" in reply.text
    assert not servers.upstream.questions


@pytest.mark.parametrize(
    ("dialect", "changed"),
    [
        ("chat", {"max_tokens": -1, "top_logprobs": 20, "logprobs": True, "seed": 2**63 - 1, "top_k": -1}),
        ("chat", {"max_tokens": 2**31 - 1, "temperature": 1e300}),
        ("completions", {"max_tokens": 0, "logprobs": 5}),
        ("ollama_chat", {"options": {"num_predict": -2, "num_ctx": 2**20}}),
        ("chat", {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"maximum": 10**30}}}]}),
    ],
)
def test_numbers_within_bounds(servers: Servers, dialect: Dialect, changed: dict[str, Any]) -> None:
    """Those by which servers say "without a bound", too; and what a tool's schema says is the tool's."""
    servers.upstream.say("Hi")
    assert post(servers.gateway.url, PATHS[dialect], body_of(dialect) | changed).status_code == 200


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.NAME)
def test_choices_are_opened_when_they_speak(dialect: DialectModule) -> None:
    """The beginning of a reply costs the same however many choices were asked for."""
    sizes = set()
    for choices in (1, 2, MOST, 1_000_000_000):
        writer = dialect.ReplyWriter(Request(dialect=dialect.NAME, model="m", stream=True, choices=choices))
        sizes.add(writer.feed(Begin("reply_1", "m", 1_700_000_000)).count(b"\n\n"))
    assert max(sizes) <= 2


# Which number a choice has.


def numbered(*numbers: int) -> Any:
    """A model whose choices have these numbers."""

    def reply(asked: Asked) -> Reply:
        name = "text" if asked.path == "/v1/completions" else ""
        each = [(number, f"<think>Hm {number}.</think>Answer {number}.") for number in numbers]
        if not asked.body.get("stream"):
            said = [{name: text} if name else {"message": {"role": "assistant", "content": text}} for _, text in each]
            choices = [{"index": n, **s, "finish_reason": "stop"} for n, s in zip(numbers, said, strict=True)]
            return json_reply({"id": "1", "model": "m", "choices": choices})
        frames = []
        for number, text in each:
            for start in range(0, len(text), 5):
                piece = text[start : start + 5]
                delta = {name: piece} if name else {"delta": {"content": piece}}
                frames.append({"id": "1", "model": "m", "choices": [{"index": number, **delta}]})
            end: dict[str, Any] = {name: ""} if name else {"delta": {}}
            frames.append({"choices": [{"index": number, **end, "finish_reason": "stop"}]})
        return Reply(
            [*(f"data: {json.dumps(frame)}\n\n".encode() for frame in frames), b"data: [DONE]\n\n"], headers=SSE
        )

    return reply


@pytest.mark.parametrize("number", [1, 7, -1, 10**30])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_only_choice_may_have_any_number(servers: Servers, dialect: Dialect, stream: bool, number: int) -> None:
    """Asked for one and given one: the answer is kept."""
    servers.upstream.send(numbered(number))
    seen = ask(dialect, servers.gateway.url, stream=stream)
    assert (seen.thinking.replace("\0", ""), seen.text) == (f"Hm {number}.", f"Answer {number}.")


@pytest.mark.parametrize("stream", [True, False])
def test_choices_that_are_counted_from_one(servers: Servers, stream: bool) -> None:
    """As many as were asked for are kept, whatever their numbers; one more is left out."""
    servers.upstream.send(numbered(1, 2, 3, 4))
    reply = post(servers.gateway.url, PATHS["chat"], body_of("chat", n=3, stream=stream))
    found = [f"Answer {number}." for number in (1, 2, 3, 4)]
    if not stream:
        said = {choice["index"]: choice["message"]["content"] for choice in reply.json()["choices"]}
    else:
        said = {}
        for event in events(reply.content)[:-1]:
            for choice in event["choices"]:
                said[choice["index"]] = said.get(choice["index"], "") + choice["delta"].get("content", "")
    assert said == {0: found[2], 1: found[0], 2: found[1]}


@pytest.mark.parametrize("stream", [True, False])
def test_fields_of_a_choice_that_nobody_asked_for(servers: Servers, stream: bool) -> None:
    """They open no choice of their own, and one that has another number here carries its own."""
    delta = {"role": "assistant", "content": "Hi", "annotations": [{"a": 1}]}
    spam = {"role": "assistant", "content": "spam", "annotations": [{"b": 2}]}
    choices = [{"index": 5, "message": delta, "finish_reason": "stop"}, {"index": 6, "message": spam}]
    servers.upstream.send(json_reply({"id": "1", "model": "m", "choices": choices}))
    reply = post(servers.gateway.url, PATHS["chat"], body_of("chat", stream=stream))
    found = [reply.json()] if not stream else events(reply.content)[:-1]
    assert {choice["index"] for chunk in found for choice in chunk["choices"]} == {0}
    assert '"a":1' in reply.text
    assert '"b":2' not in reply.text


def test_a_frame_of_the_servers_own_whose_choices_are_no_list(servers: Servers) -> None:
    """It is passed on so that clients can read it, and what follows it."""
    odd = b'data: {"choices": 1000000000000, "x_odd": 1}\n\n'
    said = b'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\n'
    servers.upstream.send(Reply([odd + said + b"data: [DONE]\n\n"], headers=SSE))
    assert ask("chat", servers.gateway.url, stream=True).text == "Hi"


@pytest.mark.parametrize("stream", [True, False])
def test_a_chat_without_messages_is_answered_as_a_chat(servers: Servers, stream: bool) -> None:
    """Ollama's clients load a model so; the reply has the shape of the path that was asked."""
    servers.upstream.say("Hi")
    reply = post(servers.gateway.url, PATHS["ollama_chat"], {"model": "m", "stream": stream})
    lines = [json.loads(line) for line in reply.text.splitlines()]
    assert all("message" in line and "response" not in line for line in lines)


@pytest.mark.parametrize("stream", [True, False])
def test_an_empty_reason_is_none(servers: Servers, stream: bool) -> None:
    """A server that writes one in every frame has not ended its reply with the first."""
    choices = [{"index": 0, "delta": {"content": text}, "finish_reason": ""} for text in ("It", " is", " 4.")]
    frames = [f"data: {json.dumps({'choices': [choice]})}\n\n".encode() for choice in choices]
    message = {"role": "assistant", "content": "It is 4."}
    whole = json_reply({"choices": [{"index": 0, "message": message, "finish_reason": ""}]})
    servers.upstream.send(Reply([*frames, b"data: [DONE]\n\n"], headers=SSE) if stream else whole)
    seen = ask("chat", servers.gateway.url, stream=stream)
    assert (seen.text, seen.reason) == ("It is 4.", "stop")


# Whole replies that hold no answer.


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "sent",
    [
        {"choices": []},
        {"choices": [None]},
        {"choices": None},
        {"choices": {}},
        {},
        {"error": {"message": "no", "code": 200}},
        {"error": {"message": "no", "code": 204}},
        {"error": {"message": "no", "code": 999}},
        {"error": "no", "choices": []},
        {"id": "1", "usage": {"prompt_tokens": 1}},
    ],
    ids=json.dumps,
)
def test_an_error_in_a_whole_reply_has_its_status(servers: Servers, dialect: Dialect, sent: Any, stream: bool) -> None:
    """Never 200; and where the reply is an error the status is one."""
    servers.upstream.send(json_reply(sent))
    reply = post(servers.gateway.url, PATHS[dialect], body_of(dialect, stream=stream))
    assert reply.status_code == 502
    assert "error" in reply.json()


def test_a_gateway_that_was_asked_all_that_is_well(servers: Servers) -> None:
    """After all that."""
    assert get(servers.gateway.url, "/healthz").status_code == 200
    assert "Traceback" not in servers.gateway.log
