"""A real model behind the gateway: `make test-model`. llama-cpp-python's own server runs a small GGUF; a grammar, set
by the gateway's configuration, makes it think. Not named `test_*`, because the ordinary tests have no model."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.gateway.clients import DIALECTS, WITH_TOOLS, Dialect, Seen, ask
from tests.gateway.running import gateway
from tests.model import in_process, llama_server
from tests.model.llama_server import find_weights

THOUGHT = re.compile(r"[A-Za-z ,.']+")
ANSWER = re.compile(r"[A-Za-z0-9 ,.+=]+")
"""What the grammars let the model write: no marker can hide in it."""
THINKS = r"""root ::= "<think>\n" [a-zA-Z ,.']{10,40} "\n</think>\n\n" [a-zA-Z0-9 ,.+=]{5,30}"""
BEGINS_THINKING = r"""root ::= [a-zA-Z ,.']{10,40} "\n</think>\n\n" [a-zA-Z0-9 ,.+=]{5,30}"""
CALLS = (
    r"""root ::= "<think>\n" [a-zA-Z ,.']{10,40} "\n</think>\n\n<tool_call>\n"""
    r"""{\"name\": \"find\", \"arguments\": {\"query\": \"" [A-Za-z]{3,12} "\"}}\n</tool_call>" """
)
MODELS = {
    "thinks": {"format": "qwen3", "extra_body": {"grammar": THINKS, "max_tokens": 100}},
    "begins-thinking": {
        "format": "qwen3",
        "start": "thinking",
        "extra_body": {"grammar": BEGINS_THINKING, "max_tokens": 100},
    },
    "calls": {"format": "qwen3", "extra_body": {"grammar": CALLS, "max_tokens": 100}},
    "is-cut": {"format": "qwen3", "empty_answer": "thinking", "extra_body": {"grammar": THINKS, "max_tokens": 8}},
}
"""Names of the gateway's own: the one model behind them takes any name."""
QUESTION = "What is two plus two?"


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the model's own server."""
    weights = find_weights()
    port = llama_server.free_port()
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(weights), "--host", "127.0.0.1"]
    # One thread, because several wait for each other, and on a busy machine they crawl.
    command += ["--port", str(port), "--n_ctx", "2048", "--n_threads", "1", "--n_threads_batch", "1"]
    command += ["--interrupt_requests", "false"]  # else a request that comes ends the one before it
    log = tmp_path_factory.mktemp("model") / "log"
    with llama_server.running(command, f"http://127.0.0.1:{port}", log) as address:
        yield address


@pytest.fixture(scope="module")
def url(upstream: str) -> Iterator[str]:
    """The gateway's address."""
    with gateway({"models": MODELS}, "--upstream", f"{upstream}/v1") as running:
        yield running.url


def check(seen: Seen) -> None:
    """Thinking and answer are each what the grammar allows there, with no marker and nothing of the other."""
    assert THOUGHT.fullmatch(seen.thinking), seen
    assert ANSWER.fullmatch(seen.text), seen


def test_the_model_alone_sends_markers(upstream: str) -> None:
    """Without the gateway thinking stands in the content: what the other tests find clean was not clean before."""
    seen = ask("chat", upstream, question=QUESTION, extra_body={"grammar": THINKS})
    assert seen.thinking == ""
    assert re.fullmatch(rf"<think>\n{THOUGHT.pattern}\n</think>\n\n{ANSWER.pattern}", seen.text)


@pytest.mark.parametrize("model", ["thinks", "begins-thinking"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_thinking_and_answer_are_apart(url: str, dialect: Dialect, stream: bool, model: str) -> None:
    """Every SDK gets the model's thinking in its own field and a clean answer, whole and streamed."""
    check(ask(dialect, url, stream=stream, model=model, question=QUESTION))


@pytest.mark.parametrize("dialect", WITH_TOOLS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_calls(url: str, dialect: Dialect, stream: bool) -> None:
    """A call that the model writes as text is a call to every client."""
    seen = ask(dialect, url, stream=stream, model="calls", question="Find it!", tools=True)
    ((name, arguments),) = seen.calls
    assert (name, list(arguments)) == ("find", ["query"])
    assert THOUGHT.fullmatch(seen.thinking)
    assert seen.text == ""


def test_a_stream_comes_in_pieces(url: str) -> None:
    """Thinking flows piece by piece as the model writes it, before the first piece of the answer."""
    chunks = ask("chat", url, stream=True, model="thinks", question=QUESTION).raw
    kinds = "".join(
        "t" if getattr(choice.delta, "reasoning_content", None) else "a"
        for chunk in chunks
        for choice in chunk.choices
        if getattr(choice.delta, "reasoning_content", None) or choice.delta.content
    )
    assert re.fullmatch("t{3,}a{2,}", kinds)


def test_usage(url: str) -> None:
    """A whole reply has the server's own usage. It sends none in streams, and none is made up."""
    whole = ask("chat", url, model="thinks", question=QUESTION).raw
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens > 0
    options = {"include_usage": True}
    chunks = ask("chat", url, stream=True, model="thinks", question=QUESTION, stream_options=options).raw
    assert [chunk.usage for chunk in chunks if chunk.usage] == []


def test_several_choices(url: str) -> None:
    """The server ignores `n`; the one choice that it gives arrives."""
    seen = ask("chat", url, model="thinks", question=QUESTION, n=2)
    check(seen)
    assert len(seen.raw.choices) == 1


def test_a_result_goes_back(url: str) -> None:
    """The turn after a call, with the thinking and the result in it, is understood by the model's server."""
    tools: Any = [{"name": "find", "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}}}]
    asked: Any = [{"role": "user", "content": "Find it!"}]
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as sdk:
        first: Any = sdk.messages.create(model="calls", max_tokens=200, messages=asked, tools=tools)
        result = {"type": "tool_result", "tool_use_id": first.content[-1].id, "content": "found"}
        asked += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        second: Any = sdk.messages.create(model="thinks", max_tokens=200, messages=asked, tools=tools)
    assert [block.type for block in second.content] == ["thinking", "text"]
    assert ANSWER.fullmatch(second.content[1].text)


def test_a_thought_that_is_cut_off(url: str) -> None:
    """Where configuration asks for it, a thought that never closed is the answer, whole and streamed."""
    for stream in (False, True):
        seen = ask("chat", url, stream=stream, model="is-cut", question=QUESTION)
        assert seen.reason == "length"
        assert THOUGHT.fullmatch(seen.text)


def test_who_leaves_frees_the_model(url: str) -> None:
    """A stream left after its first piece does not keep the server, which answers one request at a time."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as sdk:
        for _ in range(3):
            asked: Any = [{"role": "user", "content": QUESTION}]
            stream = sdk.chat.completions.create(model="thinks", messages=asked, stream=True)
            next(iter(stream))
            stream.close()
    check(ask("chat", url, model="thinks", question=QUESTION))


def test_tokens_are_counted(url: str) -> None:
    """The server has no `/tokenize`, so Anthropic's count is an estimate and says so."""
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as sdk:
        asked: Any = [{"role": "user", "content": QUESTION}]
        counted = sdk.messages.with_raw_response.count_tokens(model="thinks", messages=asked)
    assert counted.headers.get("x-asides-estimate") == "tokens"
    assert counted.parse().input_tokens > 0


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_budget_of_a_bare_prompt(upstream: str, stream: bool) -> None:
    """A server that has never heard of budgets: the thought is ended, and the server goes on with the prompt."""
    asked: Any = {"model": "m", "prompt": "<think>\n", "temperature": 0, "max_tokens": 60}
    with (
        gateway({"defaults": {"format": "qwen3", "start": "thinking"}}, "--upstream", f"{upstream}/v1") as running,
        openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as sdk,
    ):
        free: Any = sdk.completions.create(**asked)
        assert len(free.choices[0].reasoning_content) > 120
        raw = sdk.completions.with_raw_response.create(**asked, stream=stream, extra_body={"thinking_budget": 12})
        assert raw.headers["x-asides-budget"] == "gateway; count=estimate"
        found: Any = raw.parse()
        choices: list[Any] = [chunk.choices[0] for chunk in found if chunk.choices] if stream else [found.choices[0]]
    thought = "".join(getattr(choice, "reasoning_content", None) or "" for choice in choices)
    assert 40 <= len(thought) <= 60  # four bytes a token
    assert "".join(choice.text for choice in choices).strip()


def test_a_budget_of_a_conversation_is_not_kept(upstream: str) -> None:
    """The server cannot go on from a message of the assistant, and nothing shows what it is: the client is told."""
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": QUESTION}], "max_tokens": 5}
    with (
        gateway({"defaults": {"format": "qwen3"}}, "--upstream", f"{upstream}/v1") as running,
        openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as sdk,
    ):
        raw = sdk.chat.completions.with_raw_response.create(**asked, extra_body={"thinking_budget": 12})
    assert raw.headers["x-asides-budget"] == "not-enforced"


def second_turn(engine: in_process.Engine, address: str, *, replay: bool) -> int:
    """How many tokens of the second turn's prompt were evaluated, with the replay cache or without."""
    tools: Any = [{"name": "find", "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}}}]
    asked: Any = [{"role": "user", "content": "Find it!"}]
    config = {"replay_cache": {"entries": 1000 if replay else 0}, "defaults": {"format": "qwen3"}}
    with (
        gateway(config, "--upstream", f"{address}/v1") as running,
        anthropic.Anthropic(base_url=running.url, api_key="none", max_retries=0) as sdk,
    ):
        first: Any = sdk.messages.create(model="m", max_tokens=200, messages=asked, tools=tools)
        assert [block.type for block in first.content] == ["thinking", "tool_use"]
        result = {"type": "tool_result", "tool_use_id": first.content[-1].id, "content": "found"}
        # As many clients do: the call goes back, the thought does not.
        asked += [{"role": "assistant", "content": first.content[1:]}, {"role": "user", "content": [result]}]
        sdk.messages.create(model="m", max_tokens=200, messages=asked, tools=tools)
    return engine.evaluated[-1]


def test_replay_spares_the_model_its_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    """A turn that goes back as it was written is in the engine's prefix cache: only what is new is evaluated."""
    engine = in_process.Engine(find_weights())
    with in_process.serving(engine) as address:
        without = second_turn(engine, address, replay=False)
        with_replay = second_turn(engine, address, replay=True)
    with capsys.disabled():
        print(f"\n{engine.name}: {with_replay} prompt tokens evaluated in turn 2 with replay, {without} without")
    # With replay: the end of the turn, the result of the call, the opening of the next answer.
    assert with_replay < 30 < without
