"""Every client's dialect before every upstream, with the real SDKs: thoughts, answers and calls where they belong."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import anthropic
import openai
import pytest

from tests.gateway.clients import DIALECTS, PATHS, WITH_TOOLS, Dialect, Seen, ask, body_of, post, read_chat
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Gate, Reply, Upstream, upstream


class Case(NamedTuple):
    """What a model writes and what of it clients must be shown."""

    model: str
    raw: str
    thinking: str
    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


FIND = {"query": "Zürich \u2028 <b>", "limit": 3}
FIND_JSON = '{"query": "Zürich \\u2028 <b>", "limit": 3}'
PLAIN = (
    Case(
        "qwen",
        "<think>\nNaïve: a<b, </thin> 🙂.\n</think>\n\nIt is 4 \u2028 🙂.",
        "Naïve: a<b, </thin> 🙂.",
        "It is 4 \u2028 🙂.",
    ),
    Case(
        "oss",
        "<|channel|>analysis<|message|>Naïve 🙂.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>It is 4 🙂.<|return|>",
        "Naïve 🙂.",
        "It is 4 🙂.",
    ),
    Case("r1", "Naïve: 🙂.\n</think>\n\nIt is 4 🙂.", "Naïve: 🙂.", "It is 4 🙂."),
)
CALLING = (
    Case(
        "qwen",
        '<think>Look.</think>\n\nI look.\n<tool_call>\n{"name": "find", "arguments": ' + FIND_JSON + "}\n</tool_call>",
        "Look.",
        "I look.",
        (("find", FIND),),
    ),
    Case(
        "oss",
        "<|channel|>analysis<|message|>Look.<|end|><|start|>assistant<|channel|>commentary to=functions.find "
        "<|constrain|>json<|message|>" + FIND_JSON + "<|call|>",
        "Look.",
        "",
        (("find", FIND),),
    ),
    Case(
        "coder",
        "<tool_call>\n<function=find>\n<parameter=query>\nZürich \u2028 <b>\n</parameter>\n<parameter=limit>\n3\n"
        "</parameter>\n</function>\n</tool_call>",
        "",
        "",
        (("find", FIND),),
    ),
)
CALL_REASONS = {"chat": "tool_calls", "responses": "completed", "messages": "tool_use", "ollama_chat": "stop"}
STOP_REASONS = {
    "chat": "stop",
    "completions": "stop",
    "responses": "completed",
    "messages": "end_turn",
    "ollama_chat": "stop",
    "ollama_generate": "stop",
}
FORMATS = {"qwen": "qwen3", "oss": "harmony", "r1": "deepseek_r1", "coder": "qwen3_coder"}


class Servers(NamedTuple):
    """A gateway before two upstreams; names of models that end in `-o` are Ollama's."""

    gateway: Gateway
    openai: Upstream
    ollama: Upstream

    def say(self, words: str | list[str], **choices: Any) -> None:
        """Let both models say this."""
        self.openai.say(words, **choices)
        self.ollama.say(words, **choices)


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One for all tests of this file."""
    with upstream("openai") as first, upstream("ollama") as second:
        config = {
            "upstreams": [
                {"url": first.url + "/v1", "name": "first", "models": ["*-v"]},
                {"url": second.url, "name": "second", "models": ["*-o"]},
            ],
            "models": {f"{model}-?": {"format": format} for model, format in FORMATS.items()},
        }
        with gateway(config) as running:
            yield Servers(running, first, second)


def check(seen: Seen, case: Case) -> None:
    """The client was shown exactly this."""
    assert seen.thinking == case.thinking
    assert seen.text == case.text
    assert seen.calls == case.calls


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", ["v", "o"])
@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.model)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_thinking_and_answer(servers: Servers, dialect: Dialect, case: Case, kind: str, stream: bool) -> None:
    """Each SDK finds the thinking in its own field and a clean answer, whatever the upstream and wherever it cuts."""
    servers.say(case.raw, seed=len(case.raw))
    seen = ask(dialect, servers.gateway.url, stream=stream, model=f"{case.model}-{kind}")
    check(seen, case)
    assert seen.reason == STOP_REASONS[dialect]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_asynchronous_sdks(servers: Servers, dialect: Dialect, stream: bool) -> None:
    """The asynchronous SDKs too."""
    case = PLAIN[0]
    servers.say(case.raw, seed=1)
    check(ask(dialect, servers.gateway.url, stream=stream, asynchronous=True, model="qwen-v"), case)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", ["v", "o"])
@pytest.mark.parametrize("case", CALLING, ids=lambda case: case.model)
@pytest.mark.parametrize("dialect", WITH_TOOLS)
def test_calls(servers: Servers, dialect: Dialect, case: Case, kind: str, stream: bool) -> None:
    """Calls that a model writes as text reach each SDK as calls that can be run."""
    servers.say(case.raw, seed=7)
    seen = ask(dialect, servers.gateway.url, stream=stream, model=f"{case.model}-{kind}", tools=True)
    check(seen, case)
    assert seen.reason == CALL_REASONS[dialect]


@pytest.mark.parametrize("cuts", [1, 7])
@pytest.mark.parametrize("kind", ["v", "o"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_bytes_cut_anywhere(servers: Servers, dialect: Dialect, kind: str, cuts: int) -> None:
    """Where the upstream's bytes are cut changes nothing, even inside a character."""
    case = PLAIN[0]
    servers.say(case.raw, size=5, cuts=cuts)
    check(ask(dialect, servers.gateway.url, stream=True, model=f"qwen-{kind}"), case)


@pytest.mark.parametrize("seed", range(6))
def test_bytes_cut_at_random(servers: Servers, seed: int) -> None:
    """Random cuts, with calls, in every size of frame."""
    case = CALLING[0]
    servers.say(case.raw, size=1 + seed, seed=seed)
    check(ask("chat", servers.gateway.url, stream=True, model="qwen-v", tools=True), case)
    check(ask("messages", servers.gateway.url, stream=True, model="qwen-o", tools=True), case)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", ["v", "o"])
@pytest.mark.parametrize("dialect", WITH_TOOLS)
def test_already_split(servers: Servers, dialect: Dialect, kind: str, stream: bool) -> None:
    """What the upstream has split off itself arrives as the same, and its answer is not read for thinking again."""
    servers.say("Write `x` or <think>: it is text.", thought="Two and two.", field="reasoning")
    seen = ask(dialect, servers.gateway.url, stream=stream, model=f"qwen-{kind}")
    assert (seen.thinking, seen.text) == ("Two and two.", "Write `x` or <think>: it is text.")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", ["v", "o"])
@pytest.mark.parametrize("dialect", WITH_TOOLS)
def test_already_split_calls(servers: Servers, dialect: Dialect, kind: str, stream: bool) -> None:
    """Calls that the upstream has split off itself arrive as calls, behind thinking in raw markers."""
    servers.say("<think>Look.</think>\n\nI look.", calls=(("find", FIND_JSON), ("find", "{}")))
    seen = ask(dialect, servers.gateway.url, stream=stream, model=f"qwen-{kind}", tools=True)
    assert (seen.thinking, seen.text, seen.calls) == ("Look.", "I look.", (("find", FIND), ("find", {})))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", ["v", "o"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_cut_off_by_length(servers: Servers, dialect: Dialect, kind: str, stream: bool) -> None:
    """A reply that ran into its limit says so in the dialect's own word, its thought stays a thought."""
    words = {"chat": "length", "completions": "length", "responses": "incomplete", "messages": "max_tokens"}
    servers.say("<think>Two and two and", reason="length")
    seen = ask(dialect, servers.gateway.url, stream=stream, model=f"qwen-{kind}")
    assert (seen.thinking, seen.text, seen.reason) == ("Two and two and", "", words.get(dialect, "length"))


def test_streams_at_once(servers: Servers) -> None:
    """A stream is handed on as it comes: the first thought is there while the upstream still waits to say the rest."""
    first = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"<think>One"}}]}\n\n'
    rest = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"</think>Two"},"finish_reason":"stop"}]}\n\n'
    gate = Gate()
    servers.openai.send(Reply([first, gate, rest, b"data: [DONE]\n\n"]))
    with openai.OpenAI(base_url=servers.gateway.url + "/v1", api_key="x", max_retries=0) as sdk:
        stream = sdk.chat.completions.create(model="qwen-v", messages=[{"role": "user", "content": "?"}], stream=True)
        chunks = []
        for chunk in stream:
            chunks.append(chunk)
            if read_chat(chunks).thinking == "One":
                gate.open()
    seen = read_chat(chunks)
    assert gate.opened.is_set()
    assert (seen.thinking, seen.text) == ("One", "Two")


def test_several_choices(servers: Servers) -> None:
    """With n > 1 every choice is read by itself, though their frames take turns; streamed and whole."""
    servers.say(["<think>A.</think>\n\nFirst.", "<think>B, longer.</think>\n\nSecond."], seed=3)
    for stream in (False, True):
        found = ask("chat", servers.gateway.url, stream=stream, model="qwen-v", n=2).raw
        assert [(read_chat(found, i).thinking, read_chat(found, i).text) for i in (0, 1)] == [
            ("A.", "First."),
            ("B, longer.", "Second."),
        ]
        assert servers.openai.question().body["n"] == 2


def test_usage(servers: Servers) -> None:
    """Usage reaches whoever asks for it, with the tokens of thinking; the upstream is always asked for it."""
    servers.say("<think>Half.</think>Half.")
    url = servers.gateway.url
    whole = ask("chat", url, model="qwen-v").raw.usage
    assert (whole.prompt_tokens, whole.completion_tokens) == (11, 22)
    assert whole.completion_tokens_details.reasoning_tokens == 11
    chunks = ask("chat", url, stream=True, model="qwen-v", stream_options={"include_usage": True}).raw
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 22
    assert all(chunk.usage is None for chunk in ask("chat", url, stream=True, model="qwen-v").raw)
    assert servers.openai.question().body["stream_options"]["include_usage"] is True
    response = ask("responses", url, stream=True, model="qwen-v").raw[-1].response
    assert (response.usage.input_tokens, response.usage.output_tokens) == (11, 22)
    assert response.usage.output_tokens_details.reasoning_tokens == 11
    message = ask("messages", url, model="qwen-v").raw
    assert (message.usage.input_tokens, message.usage.output_tokens) == (11, 22)
    line = ask("ollama_chat", url, stream=True, model="qwen-v").raw[-1]
    assert (line.prompt_eval_count, line.eval_count) == (11, 22)


def test_raw_anthropic_events(servers: Servers) -> None:
    """An Anthropic stream has the events of that API in their order, a signature before a thought ends."""
    servers.say("<think>A.</think>\n\nB.")
    with anthropic.Anthropic(base_url=servers.gateway.url, api_key="x", max_retries=0) as sdk:
        stream = sdk.messages.create(
            model="qwen-v", max_tokens=99, messages=[{"role": "user", "content": "?"}], stream=True
        )
        found = [event for event in stream if str(event.type) != "ping"]
    kinds = [event.delta.type if event.type == "content_block_delta" else event.type for event in found]
    assert [kind for kind, _ in itertools.groupby(kinds)] == [
        "message_start",
        "content_block_start",
        "thinking_delta",
        "signature_delta",
        "content_block_stop",
        "content_block_start",
        "text_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_content_types(servers: Servers, dialect: Dialect) -> None:
    """Streams are announced as what they are, are not to be cached or buffered, and are never compressed."""
    servers.say("<think>A.</think>B.")
    url = servers.gateway.url
    stream = post(url, PATHS[dialect], body_of(dialect, model="qwen-v", stream=True))
    native = dialect.startswith("ollama")
    assert stream.headers["content-type"].split(";")[0] == ("application/x-ndjson" if native else "text/event-stream")
    assert "content-encoding" not in stream.headers
    if not native:
        assert "no-cache" in stream.headers["cache-control"]
        assert stream.headers["x-accel-buffering"] == "no"
    whole = post(url, PATHS[dialect], body_of(dialect, model="qwen-v", stream=False))
    assert whole.headers["content-type"].split(";")[0] == "application/json"
    assert stream.headers["x-request-id"] != whole.headers["x-request-id"]


def test_ollama_streams_by_default(servers: Servers) -> None:
    """A request for /api/chat that does not say so streams; one for chat completions does not."""
    servers.say("<think>A.</think>B.")
    body = {"model": "qwen-v", "messages": [{"role": "user", "content": "?"}]}
    assert post(servers.gateway.url, "/api/chat", body).headers["content-type"].startswith("application/x-ndjson")
    assert servers.openai.question().body["stream"] is True
    assert post(servers.gateway.url, "/v1/chat/completions", body).json()["choices"][0]["message"]["content"] == "B."


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/chat/completions"])
def test_with_and_without_v1(servers: Servers, path: str) -> None:
    """Every path works with and without /v1."""
    servers.say("<think>A.</think>B.")
    reply = post(servers.gateway.url, path, body_of("chat", model="qwen-v")).json()
    assert reply["choices"][0]["message"]["reasoning_content"] == "A."


@pytest.mark.parametrize("dialect", ["messages", "responses", "completions"])
def test_others_without_v1(servers: Servers, dialect: Dialect) -> None:
    """The other dialects' paths too."""
    servers.say("<think>A.</think>B.")
    reply = post(servers.gateway.url, PATHS[dialect].removeprefix("/v1"), body_of(dialect, model="qwen-v"))
    assert reply.status_code == 200
    assert "A." in reply.text


def test_messages_with_beta_query(servers: Servers) -> None:
    """Claude Code adds `?beta=true`, and headers of its own."""
    servers.say("<think>A.</think>B.")
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "interleaved-thinking-2025-05-14"}
    reply = post(servers.gateway.url, "/v1/messages?beta=true", body_of("messages", model="qwen-v"), headers=headers)
    assert [block["type"] for block in reply.json()["content"]] == ["thinking", "text"]


def test_compressed_upstream(servers: Servers) -> None:
    """A gateway that may have to read a stream asks its upstream not to compress it, or reads what is compressed."""
    servers.say("<think>A.</think>B.")
    ask("chat", servers.gateway.url, stream=True, model="qwen-v")
    wanted = servers.openai.question().headers.get("accept-encoding", "identity")
    assert wanted in ("identity", "")
