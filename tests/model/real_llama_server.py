"""llama.cpp's own server behind the gateway: `make test-model`. Budgets that it keeps to, budgets that it takes and
ignores, thoughts that are ended and gone on from, and what its prefix cache finds of a turn that comes back. Not named
`test_*`, because the ordinary tests have no model."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from asides._config import UpstreamSettings
from asides._config.schema import Limits
from asides._gateway.engines import Engines
from asides._gateway.prompt_ends import PromptEnds
from asides._gateway.upstreams import HttpUpstream
from asides.dialects._rendered_prompts import PromptQuestion
from tests.gateway.running import Gateway, gateway
from tests.model import llama_server
from tests.model.in_process import TEMPLATE
from tests.model.llama_server import find_weights

QUESTION: Any = [{"role": "user", "content": "Why is the sea blue?"}]
BUDGET = 12
FREE = 'root ::= "<think>\\n" [a-zA-Z ,.]{400,500} "\\n</think>\\n\\n" [a-zA-Z ,.]{5,40}'
"""A thought far beyond the budget, from a model that does not think by itself."""
CALL = '</think>\n\n<tool_call>\n{"name": "find", "arguments": {"query": "it"}}\n</tool_call>'
PROMPT = "<|im_start|>user\nWhy is the sea blue?<|im_end|>\n<|im_start|>assistant\n<think>\n"


def post(address: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The server's own answer."""
    request = urllib.request.Request(address + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=llama_server.PATIENCE) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def count(address: str, text: str) -> int:
    """How many tokens a text has for this model."""
    return len(post(address, "/tokenize", {"content": text})["tokens"])


@pytest.fixture(scope="module")
def thinking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose template shows where the model thinks."""
    # llama.cpp reads arguments into an object before its template sees them.
    template = TEMPLATE.replace("{{ call.function.arguments }}", "{{ call.function.arguments | tojson }}")
    with llama_server.serving(find_weights(), tmp_path_factory.mktemp("thinking"), template) as address:
        yield address


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the model's own template, which shows no thoughts."""
    with llama_server.serving(find_weights(), tmp_path_factory.mktemp("plain")) as address:
        yield address


def serve(address: str, **settings: Any) -> Any:
    """A gateway before it."""
    return gateway({"defaults": {"format": "qwen3", **settings}}, "--upstream", f"{address}/v1")


def ask(running: Gateway, stream: bool, **fields: Any) -> tuple[str, str, str]:
    """Thinking and answer, as OpenAI's SDK sees them, and who keeps to the budget."""
    with openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as sdk:
        asked: Any = {"model": "m", "messages": QUESTION, "temperature": 0, "max_tokens": 120}
        raw = sdk.chat.completions.with_raw_response.create(**asked, stream=stream, extra_body=fields)
        told = raw.headers.get("x-asides-budget", "")
        reply: Any = raw.parse()
        if not stream:
            message = reply.choices[0].message
            return getattr(message, "reasoning_content", ""), message.content or "", told
        deltas: list[Any] = [chunk.choices[0].delta for chunk in reply if chunk.choices]
        thought = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
        return thought, "".join(delta.content or "" for delta in deltas), told


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_server_keeps_to_a_budget(thinking: str, stream: bool) -> None:
    """By its own field, from any of the names that clients use; without one the thought is longer."""
    with serve(thinking) as running:
        free, _, told = ask(running, stream)
        assert told == ""
        assert count(thinking, free) > 3 * BUDGET
        thought, answer, told = ask(running, stream, thinking={"type": "enabled", "budget_tokens": BUDGET})
    assert told == "server"
    assert 0 < count(thinking, thought) <= BUDGET
    assert answer.strip()
    assert "think>" not in answer


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_where_it_would_ignore_a_budget_the_gateway_keeps_to_it(plain: str, stream: bool) -> None:
    """Behind a template without thoughts the server takes the field and thinks on; the gateway ends the thought, and
    the server goes on from it."""
    alone = post(
        plain,
        "/v1/chat/completions",
        {"messages": QUESTION, "temperature": 0, "max_tokens": 60, "grammar": FREE, "reasoning_budget_tokens": BUDGET},
    )
    ignored = alone["choices"][0]["message"]["content"]
    assert ignored.startswith("<think>")
    assert "</think>" not in ignored
    assert count(plain, ignored) > 3 * BUDGET
    # Without the grammar, which would hold the second request to a thought too: all that the model writes is one.
    with serve(plain, start="thinking") as running:
        thought, answer, told = ask(running, stream, thinking_budget=BUDGET)
    assert told.startswith("gateway")
    assert 0 < count(plain, thought) <= 2 * BUDGET
    assert answer.strip()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_bare_prompt(thinking: str, stream: bool) -> None:
    """At `/v1/completions` the server ignores the field; the gateway ends the thought and goes on with the prompt."""
    asked: Any = {"model": "m", "prompt": PROMPT, "temperature": 0, "max_tokens": 80}
    alone = post(thinking, "/v1/completions", {**asked, "reasoning_budget_tokens": BUDGET})["choices"][0]["text"]
    assert count(thinking, alone.partition("</think>")[0]) > 3 * BUDGET
    with (
        serve(thinking, start="thinking") as running,
        openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as sdk,
    ):
        body = {"reasoning_budget_tokens": BUDGET}
        raw = sdk.completions.with_raw_response.create(**asked, stream=stream, extra_body=body)
        assert raw.headers["x-asides-budget"].startswith("gateway")
        found: Any = raw.parse()
        choices: list[Any] = [chunk.choices[0] for chunk in found if chunk.choices] if stream else [found.choices[0]]
    thought = "".join(getattr(choice, "reasoning_content", None) or "" for choice in choices)
    assert 0 < count(thinking, thought) <= 2 * BUDGET
    assert "".join(choice.text for choice in choices).strip()


def test_the_server_counts_the_tokens(plain: str) -> None:
    """The first long thought is counted by its `/tokenize`; the next is ended where the budget is by that count."""
    budget = 80
    with serve(plain, start="thinking") as running:
        _, _, first = ask(running, True, thinking_budget=budget)
        thought, _, second = ask(running, True, thinking_budget=budget)
    assert (first, second) == ("gateway; count=estimate", "gateway; count=calibrated")
    assert budget * 0.85 <= count(plain, thought) <= budget * 1.15


def second_turn(address: str, *, replay: bool) -> int:
    """How many tokens of the second turn's prompt the server evaluated, with the replay cache or without."""
    # Token by token, as a model that was trained on them writes them: a grammar alone would allow any other tokens that
    # spell the same, and no prompt would begin with those.
    tokens = post(address, "/tokenize", {"content": CALL, "parse_special": True})["tokens"]
    grammar = 'root ::= [a-zA-Z ,.]{120,200} "\\n" ' + " ".join(f"<[{token}]>" for token in tokens)
    calls = {"grammar": grammar, "reasoning_format": "none", "max_tokens": 200}
    config = {
        "replay_cache": {"entries": 1000 if replay else 0},
        "defaults": {"format": "qwen3", "calls": "always"},
        "models": {"calls": {"extra_body": calls}, "m": {"extra_body": {"max_tokens": 1}}},
    }
    with (
        gateway(config, "--upstream", f"{address}/v1") as running,
        openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as sdk,
    ):
        asked: Any = [{"role": "user", "content": f"Why is the sea blue? Find it! {replay}"}]
        first: Any = sdk.chat.completions.create(model="calls", messages=asked, temperature=0).choices[0].message
        (call,) = first.tool_calls
        assert first.reasoning_content
        # As many clients do: the call goes back, the thought does not.
        asked += [{"role": "assistant", "content": None, "tool_calls": [call.model_dump()]}]
        asked += [{"role": "tool", "tool_call_id": call.id, "content": "found"}]
        second: Any = sdk.chat.completions.create(model="calls", messages=asked, temperature=0)
    timings: dict[str, int] = second.model_extra["timings"]
    return timings["prompt_n"]


def test_replay_spares_the_server_its_own_words(thinking: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A turn that goes back as it was written is in the server's prefix cache (`timings.prompt_n`)."""
    without = second_turn(thinking, replay=False)
    with_replay = second_turn(thinking, replay=True)
    with capsys.disabled():
        print(f"\n{llama_server.NAME}: {with_replay} prompt tokens evaluated in turn 2 with replay, {without} without")
    assert with_replay < 25 < without


@pytest.mark.parametrize("think", [None, True, False])
def test_the_server_says_how_it_ends_prompts(thinking: str, think: bool | None) -> None:
    """As its own `/apply-template` does for a client's request, with the keyword that the request has."""
    keywords = {} if think is None else {"chat_template_kwargs": {"enable_thinking": think}}
    body: dict[str, Any] = {"model": "m", "messages": QUESTION, **keywords}
    question = PromptQuestion.about(body)
    assert question is not None

    async def find() -> str | None:
        upstream, engines = HttpUpstream(UpstreamSettings(url=f"{thinking}/v1"), Limits()), Engines()
        await engines.find(upstream)
        try:
            return await PromptEnds(engines).ask(upstream, question)
        finally:
            await upstream.close()

    whole = post(thinking, "/apply-template", body)["prompt"]
    assert asyncio.run(find()) == whole.rpartition("Why is the sea blue?")[2]
