"""Thinking budgets over real sockets: passed to servers that keep to them, kept by the gateway for others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from asides._gateway.budgets import BudgetPlan
from asides._gateway.enforcement import ThoughtWatch
from asides.reply._items import OpenThought
from tests.gateway import speech
from tests.gateway.clients import Dialect, ask, body_of, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.sockets import connected
from tests.gateway.speech import Speech
from tests.gateway.upstream import (
    JSON,
    SSE,
    Asked,
    Close,
    Hang,
    Pause,
    Reply,
    Step,
    Upstream,
    cut,
    frame,
    json_reply,
    upstream,
)
from tests.waiting import eventually

CHAT = "/v1/chat/completions"
THOUGHT = "word " * 200
"""1,000 characters: some 250 tokens by estimate."""
RAW = f"<think>\n{THOUGHT}\n</think>\n\nToo late."
ANSWER = "So it is."


def models(owner: str) -> Reply:
    """A list of models as this engine writes it."""
    return json_reply({"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": owner}]})


class Servers(NamedTuple):
    """One gateway before a server of each engine."""

    gateway: Gateway
    vllm: Upstream
    sglang: Upstream
    llamacpp: Upstream
    other: Upstream
    ollama: Upstream


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One for all tests of this file."""
    names = ("vllm", "sglang", "llamacpp", "other")
    with (
        upstream(models=["vllm"]) as vllm,
        upstream(models=["sglang"]) as sglang,
        upstream(models=["llamacpp"]) as llamacpp,
        upstream(models=["other"]) as other,
        upstream("ollama", models=["ollama"]) as ollama,
    ):
        found = dict(zip(names, (vllm, sglang, llamacpp, other), strict=True))
        for owner, server in found.items():
            server.send(models(owner), "/v1/models")
        listed = [
            {"url": server.url, "name": name, "models": [name, f"{name}-*"]}
            for name, server in {**found, "ollama": ollama}.items()
        ]
        settings: dict[str, Any] = {
            "sglang-cut": {"budget": {"enforce": "cut"}},
            "sglang-never": {"budget": {"enforce": "never"}},
            "sglang-default": {"budget": {"tokens": 20}},
            "sglang-opened": {"start": "thinking"},
            "sglang-harmony": {"format": "harmony"},
            "sglang-auto": {"format": "auto"},
            "sglang-auto-2": {"format": "auto"},
            "sglang-counts": {"format": "qwen3"},
            "vllm-bytes": {"format": "none"},
            "other-cut": {"budget": {"enforce": "cut"}},
            "other-field": {"budget": "my.limit"},
        }
        config = {"upstreams": listed, "defaults": {"format": "qwen3"}, "models": settings}
        with gateway(config) as running:
            yield Servers(running, vllm, sglang, llamacpp, other, ollama)


@pytest.fixture(autouse=True)
def _forget_answers(servers: Servers) -> None:
    for server in servers[1:]:
        server.forget()


def continuing(
    raw: str = RAW, *, split: bool = False, whole_first: bool = False, size: int = 5, pause: float = 60.0
) -> Callable[[Asked], Reply]:
    """A server that thinks on and on, and answers where a message of the assistant is to be continued.

    It pauses behind the budgets of most tests, for longer than the busiest machine takes to stop it.
    """

    def answer(asked: Asked) -> Reply:
        body = asked.body
        if body.get("continue_final_message") or ("prompt" in body and "</think>" in body["prompt"]):
            said, render = Speech(ANSWER, size=size, usage=(70, 5)), speech.chat_stream
        elif split:
            said, render = Speech("Too late.", size=size, thought=THOUGHT), speech.chat_stream
        else:
            said, render = Speech(raw, size=size), speech.chat_stream
        if "prompt" in body:
            render = speech.completions_stream
        assert body["stream"] is True
        frames: list[Step] = list(cut(render(said, body), 2000))
        # What is behind the budget comes only if nobody stops it.
        stops = "continue_final_message" not in body and ("prompt" not in body or "</think>" not in body["prompt"])
        return Reply([*frames[:20], Pause(pause), *frames[20:]] if stops and not whole_first else frames, headers=SSE)

    return answer


# Servers that keep to a budget.


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (CHAT, {"thinking_token_budget": 100}),
        (CHAT, {"reasoning_budget_tokens": 100}),
        (CHAT, {"thinking_budget_tokens": 100}),
        (CHAT, {"thinking_budget": 100}),
        (CHAT, {"reasoning": {"max_tokens": 100}}),
        (CHAT, {"thinking": {"type": "enabled", "budget_tokens": 100}}),
        (CHAT, {"chat_template_kwargs": {"thinking_budget": 100}}),
        ("/v1/messages", {"thinking": {"type": "enabled", "budget_tokens": 100}, "max_tokens": 999}),
        ("/v1/responses", {"reasoning": {"max_tokens": 100}}),
    ],
)
def test_every_name_reaches_the_servers_own(servers: Servers, path: str, fields: dict[str, Any]) -> None:
    """vLLM's and llama.cpp's own fields, whatever the client calls it; the client is told who keeps to it."""
    dialect: Dialect = {"/v1/messages": "messages", "/v1/responses": "responses"}.get(path, "chat")  # type: ignore[assignment]
    for model, server, field in (
        ("vllm", servers.vllm, "thinking_token_budget"),
        ("llamacpp", servers.llamacpp, "reasoning_budget_tokens"),
    ):
        reply = post(servers.gateway.url, path, body_of(dialect, model=model, **fields))
        assert reply.status_code == 200, reply.text
        assert server.question().body[field] == 100
        assert reply.headers["x-asides-budget"] == "server"


def test_the_operator_may_name_the_field(servers: Servers) -> None:
    """For a server that is not known."""
    reply = post(servers.gateway.url, CHAT, body_of("chat", model="other-field", thinking_budget=100))
    assert servers.other.question().body["my"] == {"limit": 100}
    assert reply.headers["x-asides-budget"] == "server"


def test_no_budget_is_no_news(servers: Servers) -> None:
    """Without one nothing is sent and nothing is reported; nor with one that has no bound, or where thinking is off."""
    cases: list[dict[str, Any]] = [{}, {"thinking_budget": -1}, {"thinking_budget": 100, "think": False}]
    for fields in cases:
        reply = post(servers.gateway.url, CHAT, body_of("chat", model="sglang", **fields))
        assert "x-asides-budget" not in reply.headers
        assert "custom_params" not in servers.sglang.question().body


def test_a_budget_of_nothing_turns_thinking_off(servers: Servers) -> None:
    """0 tokens are no thinking."""
    post(servers.gateway.url, CHAT, body_of("chat", model="vllm", thinking_budget=0))
    assert servers.vllm.question().body["chat_template_kwargs"] == {"enable_thinking": False}


@pytest.mark.parametrize("value", ["many", 1.5, True, [3]])
def test_what_is_no_number_is_refused(servers: Servers, value: Any) -> None:
    """By its name, never ignored."""
    reply = post(servers.gateway.url, CHAT, body_of("chat", model="vllm", thinking_token_budget=value))
    assert reply.status_code == 400
    assert "thinking_token_budget" in reply.text
    assert not servers.vllm.questions


def test_a_server_that_refuses_the_field(servers: Servers) -> None:
    """It is asked once more without it, the gateway keeps to the budget, and from then on the field is left out."""

    def answer(asked: Asked) -> Reply:
        if "thinking_token_budget" in asked.body:
            message = "thinking_token_budget is set but reasoning_config is not configured"
            return json_reply({"error": {"message": message}}, 400)
        return continuing()(asked)

    servers.vllm.send(answer)
    for questions in (3, 2):
        servers.vllm.asked.clear()
        seen = ask("messages", servers.gateway.url, model="vllm-old", thinking={"type": "enabled", "budget_tokens": 20})
        assert seen.text == ANSWER
        assert len(servers.vllm.questions) == questions


# Servers that do not: the gateway does.


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("split", [False, True], ids=["raw", "split"])
@pytest.mark.parametrize("dialect", ["chat", "messages", "responses", "ollama_chat"])
def test_the_gateway_ends_the_thought(servers: Servers, dialect: Dialect, split: bool, stream: bool) -> None:
    """The thought is stopped at the budget, closed, and the model goes on with its answer: one reply for the client."""
    servers.sglang.send(continuing(split=split))
    every: dict[str, dict[str, Any]] = {
        "chat": {"extra_body": {"thinking_budget": 20}},
        "messages": {"thinking": {"type": "enabled", "budget_tokens": 20}},
        "responses": {"extra_body": {"reasoning": {"max_tokens": 20}}},
        "ollama_chat": {},
    }
    fields = every[dialect]
    model = "sglang-default" if dialect == "ollama_chat" else "sglang"
    seen = ask(dialect, servers.gateway.url, stream=stream, model=model, **fields)
    assert seen.text == ANSWER
    assert seen.thinking == THOUGHT[: len(seen.thinking)]
    assert 70 <= len(seen.thinking) <= 90
    first, second = servers.sglang.questions
    assert first.body["custom_params"] == {"thinking_budget": 20}
    *before, last = second.body["messages"]
    assert before == first.body["messages"]
    assert last["role"] == "assistant"
    assert last["content"] == f"<think>\n{seen.thinking.rstrip()}\n</think>\n\n"
    assert first.left.wait(30)  # its generation was stopped
    assert "custom_params" not in second.body


def test_the_figures_are_those_of_both(servers: Servers) -> None:
    """Tokens of the thought count as the reply's, and not as the prompt's; the limit for the rest is less by them."""
    servers.sglang.send(continuing())
    body = body_of("chat", model="sglang", thinking_budget=20, max_tokens=100)
    reply = post(servers.gateway.url, CHAT, body)
    usage = reply.json()["usage"]
    thought = usage["completion_tokens_details"]["reasoning_tokens"]
    assert 20 <= thought <= 25
    assert usage["completion_tokens"] == thought + 5
    assert usage["prompt_tokens"] == 70 - thought
    assert servers.sglang.questions[1].body["max_tokens"] == 100 - thought
    assert reply.headers["x-asides-budget"] == "gateway; count=estimate"
    line = servers.gateway.wait_for_record(lambda record: reply.headers["x-request-id"] in str(record))
    assert line["budget"] == "continued"


def test_a_thought_that_the_prompt_has_opened(servers: Servers) -> None:
    """The message that goes on has the opening marker, which stood in the prompt before."""
    servers.sglang.send(continuing(RAW.removeprefix("<think>\n")))
    seen = ask("chat", servers.gateway.url, model="sglang-opened", extra_body={"thinking_budget": 20})
    assert seen.text == ANSWER
    content = servers.sglang.questions[1].body["messages"][-1]["content"]
    assert content == f"<think>\n{seen.thinking.rstrip()}\n</think>\n\n"


def test_a_prompt_goes_on_at_any_server(servers: Servers) -> None:
    """A bare prompt is continued by itself: nothing of the server has to be known."""
    servers.other.send(continuing())
    seen = ask("completions", servers.gateway.url, model="other", extra_body={"thinking_budget": 20})
    assert ANSWER in seen.text or seen.text == ANSWER
    first, second = servers.other.questions
    assert second.body["prompt"].startswith(first.body["prompt"] + "<think>\n" + THOUGHT[:60])
    assert second.body["prompt"].endswith("\n</think>\n\n")


def test_llama_cpp_does_not_know_a_prompts_thoughts(servers: Servers) -> None:
    """It takes the field at `/v1/completions` too, and ignores it: so the gateway keeps to the budget."""
    servers.llamacpp.send(continuing())
    raw = post(servers.gateway.url, "/v1/completions", body_of("completions", model="llamacpp", thinking_budget=20))
    assert raw.headers["x-asides-budget"].startswith("gateway")
    first, second = servers.llamacpp.questions
    assert "reasoning_budget_tokens" not in first.body
    assert second.body["prompt"].endswith("\n</think>\n\n")


PLAIN_TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
THINKING_TEMPLATE = PLAIN_TEMPLATE.replace(
    "{{ m.content }}",
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}",
)


@pytest.mark.parametrize(("template", "told"), [(PLAIN_TEMPLATE, "gateway"), (THINKING_TEMPLATE, "server")])
def test_llama_cpp_keeps_to_budgets_by_its_template(template: str, told: str) -> None:
    """Where its chat template shows no thoughts it takes the field and ignores it: so the gateway keeps to the
    budget."""

    def answer(asked: Asked) -> Reply:
        goes_on = asked.body["messages"][-1]["role"] == "assistant"
        said = Speech(ANSWER if goes_on else RAW, size=5)
        return Reply(list(cut(speech.chat_stream(said, asked.body), 2000)), headers=SSE)

    with upstream() as server:
        server.send(models("llamacpp"), "/v1/models")
        server.send(json_reply({"chat_template": template + "<|im_start|>assistant\n"}), "/props")
        server.send(answer)
        with gateway({"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}}) as running:
            body = body_of("chat", model="m", thinking_budget=20, stream=True)

            def told_by() -> str:
                server.asked.clear()
                return post(running.url, CHAT, body).headers["x-asides-budget"].partition(";")[0]

            eventually(lambda: told_by() == told, "the template was never read")  # a busy machine is slow to render it
            assert server.questions[0].body["reasoning_budget_tokens"] == 20
            assert len(server.questions) == (2 if told == "gateway" else 1)
            if told == "gateway":
                assert server.questions[1].body["messages"][-1]["content"].endswith("\n</think>\n\n")


@pytest.mark.parametrize("tag", ["think", "reasoning"])
def test_auto_closes_with_the_markers_that_it_met(servers: Servers, tag: str) -> None:
    """The format need not be known before: what opened the thought says what closes it."""

    def answer(asked: Asked) -> Reply:
        said = ANSWER if asked.body.get("continue_final_message") else RAW.replace("think>", f"{tag}>")
        return Reply(list(cut(speech.chat_stream(Speech(said, size=5), asked.body), 2000)), headers=SSE)

    servers.sglang.send(answer)
    seen = ask("chat", servers.gateway.url, model="sglang-auto", extra_body={"thinking_budget": 20})
    assert seen.text == ANSWER
    assert 70 <= len(seen.thinking) <= 90
    content = servers.sglang.questions[1].body["messages"][-1]["content"]
    assert content == f"<{tag}>\n{seen.thinking.rstrip()}\n</{tag}>\n\n"


def test_auto_that_meets_headers_lets_the_thought_run_on(servers: Servers) -> None:
    """There is no marker that closes such a thought: nothing is lost, and the next client is told."""
    said = f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>Done."
    servers.sglang.send(
        lambda asked: Reply(list(cut(speech.chat_stream(Speech(said, size=5), asked.body), 2000)), headers=SSE)
    )
    body = body_of("chat", model="sglang-auto-2", stream=True, thinking_budget=20)
    reply = post(servers.gateway.url, CHAT, body)
    assert reply.headers["x-asides-budget"].startswith("gateway")
    line = servers.gateway.wait_for_record(lambda record: record.get("request_id") == reply.headers["x-request-id"])
    assert (line["budget"], line["answer_characters"]) == ("not_enforced", len("Done."))
    assert line["thinking_characters"] == len(THOUGHT.strip())
    assert len(servers.sglang.questions) == 1
    assert post(servers.gateway.url, CHAT, body).headers["x-asides-budget"] == "not-enforced"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("ratio", [2, 6])
def test_the_server_counts_once(ratio: int, stream: bool) -> None:
    """Where it has `/tokenize`, the first long thought of a model is counted by it, and all others by that."""

    def count(asked: Asked) -> Reply:
        text = asked.body.get("prompt") or ""
        return json_reply({"count": len(text) // ratio, "max_model_len": 9})

    with upstream() as server:
        server.send(models("sglang"), "/v1/models")
        server.send(count, "/tokenize")
        with gateway({"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}}) as running:
            for told in ("estimate", "calibrated"):
                server.send(continuing(f"<think>\n{'word ' * 900}\n</think>\n\nToo late.", pause=0.2))
                body = body_of("chat", model="m", thinking_budget=300, stream=stream)
                reply = post(running.url, CHAT, body)
                assert reply.headers["x-asides-budget"] == f"gateway; count={told}"
                content = server.questions[-1].body["messages"][-1]["content"]
                assert 300 * ratio <= len(content) - len("<think>\n\n</think>\n\n") <= 300 * ratio + 10
            counted = [asked for asked in server.asked if asked.path == "/tokenize" and "prompt" in asked.body]
            assert len(counted) == 1
            assert set(counted[0].body["prompt"].split()) <= {"word", "wor", "wo", "w"}


def test_a_server_that_is_gone_when_it_is_to_go_on(servers: Servers) -> None:
    """Nothing of the reply is lost: it is read to its end as if it had no budget, and that is logged."""

    def answer(asked: Asked) -> Reply:
        if asked.body.get("continue_final_message"):
            return Reply(before=[Close()])
        return Reply([speech.chat_stream(Speech(RAW, size=5), asked.body)], headers=SSE)

    servers.sglang.send(answer)
    seen = ask("chat", servers.gateway.url, model="sglang-gone", extra_body={"thinking_budget": 20})
    assert (seen.thinking, seen.text) == (THOUGHT.strip(), "Too late.")
    servers.gateway.wait_for_record(
        lambda record: "sglang cannot go on: the upstream sglang broke off" in record.get("message", "")
    )


def test_a_server_that_breaks_off_in_a_thought_with_a_budget(servers: Servers) -> None:
    """A reply in one piece has no half: it is an error with a status."""
    servers.sglang.send(Reply([frame("<think>Why"), Close()], headers=SSE))
    assert post(servers.gateway.url, CHAT, body_of("chat", model="sglang", thinking_budget=20)).status_code == 502


def test_a_thought_that_is_counted_by_the_server_and_is_too_long() -> None:
    """Is not read on."""
    unused: Any = None
    watch = ThoughtWatch(BudgetPlan(tokens=10, by="gateway"), unused)
    watch.thought, watch.unread = OpenThought("x" * 100, split=True), b"more"
    assert watch.go_on(5.0, unused) == b""
    assert (watch.counted, watch.unread) == (20, b"more")
    assert watch.thought is not None


def test_within_the_budget_nothing_happens(servers: Servers) -> None:
    """A short thought is left alone, and no second request is made; also one that comes and ends in one frame."""
    for stream, size in product((False, True), (5, 1000)):
        servers.sglang.say("<think>\nShort.\n</think>\n\nFine.", size=size)
        servers.sglang.asked.clear()
        seen = ask("chat", servers.gateway.url, stream=stream, model="sglang", extra_body={"thinking_budget": 20})
        assert (seen.thinking, seen.text) == ("Short.", "Fine.")
        assert len(servers.sglang.questions) == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", ["sglang-cut", "other-cut"])
def test_cut(servers: Servers, model: str, stream: bool) -> None:
    """`enforce: cut` ends the reply with `length`, whatever the server can."""
    server = servers.sglang if model.startswith("sglang") else servers.other
    server.send(continuing())
    seen = ask("chat", servers.gateway.url, stream=stream, model=model, extra_body={"thinking_budget": 20})
    assert (seen.text, seen.reason) == ("", "length")
    assert 70 <= len(seen.thinking) <= 90
    (only,) = server.questions
    assert only.left.wait(30)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_server_that_cannot_go_on(servers: Servers, stream: bool) -> None:
    """The thought runs on to its end, nothing is lost, and the next client is told."""

    def answer(asked: Asked) -> Reply:
        if asked.body.get("continue_final_message"):
            return json_reply({"error": {"message": "the final message does not appear in the chat"}}, 400)
        return continuing(whole_first=True)(asked)

    servers.sglang.send(answer)
    model = f"sglang-old-{stream}"
    body = body_of("chat", model=model, stream=stream, thinking_budget=20)
    reply = post(servers.gateway.url, CHAT, body)
    assert reply.headers["x-asides-budget"].startswith("gateway")
    line = servers.gateway.wait_for_record(lambda record: record.get("request_id") == reply.headers["x-request-id"])
    assert line["budget"] == "not_enforced"
    assert line["answer_characters"] == len("Too late.")
    assert line["thinking_characters"] == len(THOUGHT.strip())
    reply = post(servers.gateway.url, CHAT, {**body, "stream": True})
    assert reply.headers["x-asides-budget"] == "not-enforced"
    assert len([asked for asked in servers.sglang.questions if "continue_final_message" in asked.body]) == 1


@pytest.mark.parametrize(
    ("model", "fields"),
    [("other", {}), ("sglang-never", {}), ("sglang-harmony", {}), ("sglang", {"n": 2}), ("sglang", {"logprobs": True})],
)
def test_what_nobody_keeps_is_told(servers: Servers, model: str, fields: dict[str, Any]) -> None:
    """A server that is not known, a format of headers, several choices: the thought runs on, and the client is told."""

    def figure() -> float:
        lines = get(servers.gateway.url, "/metrics").text.splitlines()
        name = 'asides_budgets_total{outcome="not_enforced"} '
        return next((float(line.removeprefix(name)) for line in lines if line.startswith(name)), 0.0)

    before = figure()
    body = body_of("chat", model=model, thinking_budget=20, **fields)
    reply = post(servers.gateway.url, CHAT, body)
    assert reply.status_code == 200
    assert reply.headers["x-asides-budget"] == "not-enforced"
    assert figure() == before + 1


def test_bodies_that_pass_as_they_are(servers: Servers) -> None:
    """With `format: none` nothing is changed, and the client is told whether the server has such a field."""
    for field, told in (("thinking_token_budget", "server"), ("thinking_budget", "not-enforced")):
        reply = post(servers.gateway.url, CHAT, body_of("chat", model="vllm-bytes", **{field: 20}))  # type: ignore[arg-type]
        assert reply.headers["x-asides-budget"] == told
        body = servers.vllm.question().body
        assert [name for name in body if "budget" in name] == [field]
    reply = post(servers.gateway.url, CHAT, body_of("chat", model="vllm-bytes"))
    assert "x-asides-budget" not in reply.headers


def test_an_ollama_has_none(servers: Servers) -> None:
    """It has no field for a budget and goes on with nothing."""
    reply = post(servers.gateway.url, CHAT, body_of("chat", model="ollama", thinking_budget=20))
    assert reply.headers["x-asides-budget"] == "not-enforced"


def test_never_inside_a_call(servers: Servers) -> None:
    """A call that was begun in the thought is not cut in two: what follows decides what it is."""
    call = '<tool_call>\n{"name": "find", "arguments": {"query": "' + "w" * 300 + '"}}\n</tool_call>'
    servers.sglang.send(continuing(f"<think>\nI look it up.\n{call}", whole_first=True))
    tools = [{"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {}}}}]
    reply = post(servers.gateway.url, CHAT, body_of("chat", model="sglang", thinking_budget=20, tools=tools))
    (found,) = reply.json()["choices"][0]["message"]["tool_calls"]
    assert json.loads(found["function"]["arguments"]) == {"query": "w" * 300}
    assert len(servers.sglang.questions) == 1


def test_a_client_that_leaves(servers: Servers) -> None:
    """Both requests to the upstream end with it."""

    def answer(asked: Asked) -> Reply:
        if asked.body.get("continue_final_message"):
            return Reply([speech.chat_stream(Speech("So", done=False), asked.body)[:400], Hang()], headers=SSE)
        return continuing()(asked)

    servers.sglang.send(answer)
    with connected(servers.gateway.url) as client:
        client.post(CHAT, body_of("chat", model="sglang", stream=True, thinking_budget=20))
        servers.sglang.wait_for(lambda: servers.sglang.questions[1] if len(servers.sglang.questions) > 1 else None)
    assert all(asked.left.wait(30) for asked in servers.sglang.questions)


def test_a_server_that_does_not_stream(servers: Servers) -> None:
    """It answers in one piece though a stream was asked for: nothing can be stopped, and that is logged."""
    servers.sglang.send(lambda asked: Reply([speech.chat_whole(Speech(RAW), asked.body)], headers=JSON, whole=True))
    reply = post(servers.gateway.url, CHAT, body_of("chat", model="sglang", thinking_budget=20))
    assert reply.json()["choices"][0]["message"]["content"] == "Too late."
    line = servers.gateway.wait_for_record(lambda record: record.get("request_id") == reply.headers["x-request-id"])
    assert line["budget"] == "not_enforced"


def test_a_tokenizer_counts(tmp_path: Path) -> None:
    """With the model's own tokenizer the count is exact, and that is what the client is told."""
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordLevel({"word": 0, "?": 1}, unk_token="?")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    file = tmp_path / "tokenizer.json"
    tokenizer.save(str(file))
    missing = {"budget": {"tokens": 20, "tokenizer": str(tmp_path / "none.json")}, "format": "qwen3"}
    with upstream() as server:
        config = {
            "upstreams": [{"url": server.url, "engine": "sglang"}],
            "defaults": {"format": "qwen3", "budget": {"tokens": 20, "tokenizer": str(file)}},
            "models": {"missing": missing},
        }
        server.send(continuing())
        with gateway(config) as running:
            reply = post(running.url, CHAT, body_of("chat", model="m"))
            message = reply.json()["choices"][0]["message"]
            assert len(message["reasoning_content"].split()) == 20
            assert reply.json()["usage"]["completion_tokens_details"]["reasoning_tokens"] == 20
            assert reply.headers["x-asides-budget"] == "gateway; count=tokenizer"
            estimated = post(running.url, CHAT, body_of("chat", model="missing"))
            assert estimated.headers["x-asides-budget"] == "gateway; count=estimate"
            running.wait_for_record(lambda record: "cannot be used, tokens are estimated" in record.get("message", ""))
