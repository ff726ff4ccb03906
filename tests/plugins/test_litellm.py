"""LiteLLM: its real proxy before a scripted server, asked by OpenAI's SDK over sockets; and its own functions.

The proxy finds the callback by the name in its configuration, in a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import Any, NamedTuple

import pytest

from tests.plugins.host import check_examples, check_tried, require_module

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else importing it asks the network, and waits
require_module("litellm")

import httpx
import litellm
import openai
import yaml
from litellm.types.utils import Choices, Delta, ModelResponse, ModelResponseStream, StreamingChoices
from litellm.types.utils import Message as LiteMessage

import asides
from asides import Message
from asides.dialects._whole_calls import behind_arguments
from asides.plugins._litellm import ChunkSplitter, split_reply
from asides.plugins.litellm import AsidesHandler, acompletion, completion, handler, split_stream
from asides.policies import DEFAULTS, Policies
from asides.reading import Reading
from tests.gateway.running import gateway
from tests.gateway.upstream import Close, Pause, Reply, Upstream, frame, left, upstream
from tests.plugins.protocols import MIXED, check_cases, check_linear, options
from tests.support import characters
from tests.test_cases import Case
from tests.waiting import eventually

# Its own warnings are LiteLLM's.
pytestmark = pytest.mark.filterwarnings("ignore")

TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
        },
    }
]
ASKED: Any = [{"role": "user", "content": "2+2?"}]
TEXT = (
    "<think>First.</think>One. <think>Second.</think>Two.\n"
    '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
)
CALL = {"name": "add", "arguments": '{"a": 1, "b": 2}'}


class Proxy(NamedTuple):
    """LiteLLM's proxy while it runs, and the server behind it."""

    url: str
    key: str
    server: Upstream
    log: Path

    @property
    def client(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=self.key, max_retries=0, timeout=120)


@contextmanager
def proxying(folder: Path, server: Upstream, models: Mapping[str, dict[str, Any]]) -> Iterator[Proxy]:
    """LiteLLM's own command with a configuration file, in a process of its own."""
    own = {"api_base": f"{server.url}/v1", "api_key": "none"}
    config = {
        "model_list": [
            {"model_name": name, "litellm_params": {**own, **fields["params"]}, "model_info": fields.get("info", {})}
            for name, fields in models.items()
        ],
        "litellm_settings": {
            "callbacks": "asides.plugins.litellm.handler",
            "num_retries": 0,
            "cache": True,
            "cache_params": {"type": "local", "mode": "default_off"},
        },
        "router_settings": {"disable_cooldowns": True},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    key = "sk-" + secrets.token_hex(32)
    command = [str(Path(sys.executable).parent / "litellm"), "--config", str(folder / "config.yaml")]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    url, log = f"http://127.0.0.1:{port}", folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, "LITELLM_MASTER_KEY": key, "PYTHONPATH": path},
        )
        try:
            eventually(lambda: process.poll() is not None or _lives(url), "the proxy did not start")
            assert process.poll() is None, log.read_text(encoding="utf-8")[-2000:]
            yield Proxy(url, key, server, log)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _lives(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/liveliness", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A proxy with a model of each kind; before one of them stands the gateway."""
    models: dict[str, dict[str, Any]] = {
        "qwen": {"params": {"model": "openai/qwen3"}},
        "vllm": {"params": {"model": "hosted_vllm/qwen3"}},
        "studio": {
            "params": {"model": "lm_studio/qwen3"}
        },  # for which LiteLLM translates every API to chat completions
        "unknown": {"params": {"model": "openai/my-own"}},
        "thinking": {
            "params": {"model": "openai/my-own"},
            "info": {"asides": {"format": "qwen3", "start": "thinking"}},
        },
        "unsplit": {"params": {"model": "openai/qwen3"}, "info": {"asides": False}},
        "wrong": {"params": {"model": "openai/qwen3"}, "info": {"asides": {"format": "qwen33"}}},
        "odd": {"params": {"model": "openai/qwen3"}, "info": {"asides": {"no_such": 1}}},
    }
    with (
        upstream() as server,
        gateway({"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}}) as before,
    ):
        behind = {"model": "hosted_vllm/m", "api_base": f"{before.url}/v1"}
        models["gateway"] = {"params": behind, "info": {"asides": False}}
        with proxying(tmp_path_factory.mktemp("proxy"), server, models) as running:
            yield running


@pytest.fixture(autouse=True)
def _forget(request: pytest.FixtureRequest) -> None:
    if "proxy" in request.fixturenames:
        request.getfixturevalue("proxy").server.forget()


class Streamed(NamedTuple):
    """What a client has put together from the chunks of a stream."""

    reasoning: str
    content: str
    calls: list[dict[str, str]]
    finish: str | None
    kinds: str
    """One letter for each run of chunks: reasoning, content, tool call."""


def joined(chunks: Iterable[Any]) -> Streamed:
    reasoning = content = kinds = ""
    finish = None
    calls: list[dict[str, str]] = []
    for chunk in chunks:
        for choice in chunk.choices:
            delta = choice.delta
            thought, text = getattr(delta, "reasoning_content", None) or "", delta.content or ""
            reasoning, content = reasoning + thought, content + text
            for call in delta.tool_calls or ():
                if call.index == len(calls):
                    calls.append({"name": call.function.name, "arguments": ""})
                calls[call.index]["arguments"] += call.function.arguments or ""
            kinds += ("r" if thought else "") + ("c" if text else "") + ("t" if delta.tool_calls else "")
            assert finish is None or not (thought or text or delta.tool_calls), "something behind the end"
            finish = choice.finish_reason or finish
    runs = "".join(kind for at, kind in enumerate(kinds) if not kinds[:at].endswith(kind))
    return Streamed(reasoning, content, calls, finish, runs)


def drained(stream: Iterable[Any]) -> tuple[list[Any], Exception | None]:
    """The chunks of a stream, and what it failed with."""
    chunks: list[Any] = []
    try:
        for chunk in stream:
            chunks.append(chunk)
    except Exception as error:
        return chunks, error
    return chunks, None


def whole_of(message: Any) -> tuple[str | None, str | None, list[dict[str, str]]]:
    calls = [{"name": call.function.name, "arguments": call.function.arguments} for call in message.tool_calls or ()]
    return getattr(message, "reasoning_content", None), message.content, calls


@pytest.mark.parametrize("model", ["qwen", "vllm", "unknown"])
def test_the_proxy_splits_whole_replies(proxy: Proxy, model: str) -> None:
    """Both thoughts, though LiteLLM itself takes the first one off before any hook sees the reply."""
    proxy.server.say(TEXT)
    choice = proxy.client.chat.completions.create(model=model, messages=ASKED, tools=TOOLS).choices[0]
    assert whole_of(choice.message) == ("First.\n\nSecond.", "One. Two.", [CALL])
    assert choice.finish_reason == "tool_calls"


@pytest.mark.parametrize("stream", [False, True])
def test_the_proxy_splits_replies_from_its_cache(proxy: Proxy, stream: bool) -> None:
    """Where no deployment is asked: the second time the reply is the same."""
    proxy.server.say(TEXT)
    asked: list[Any] = [{"role": "user", "content": f"cached {stream}?"}]
    cached: dict[str, Any] = {"extra_body": {"cache": {"use-cache": True}}}
    replies = []
    for _ in range(2):
        reply: Any = proxy.client.chat.completions.create(
            model="qwen", messages=asked, tools=TOOLS, stream=stream, **cached
        )
        replies.append(
            joined(reply)[:4] if stream else (*whole_of(reply.choices[0].message), reply.choices[0].finish_reason)
        )
    assert replies == [("First.\n\nSecond.", "One. Two.", [CALL], "tool_calls")] * 2
    assert len(proxy.server.questions) == 1


@pytest.mark.parametrize("model", ["qwen", "vllm", "unknown"])
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_the_proxy_splits_streams(proxy: Proxy, model: str, size: int) -> None:
    proxy.server.say(TEXT, size=size)
    stream = proxy.client.chat.completions.create(
        model=model, messages=ASKED, tools=TOOLS, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    found = joined(chunks)
    assert found == Streamed("First.\n\nSecond.", "One. Two.", [CALL], "tool_calls", "rcrct")
    assert chunks[0].choices[0].delta.role == "assistant"
    [usage] = [chunk.usage for chunk in chunks if chunk.usage is not None]
    assert (usage.prompt_tokens, usage.completion_tokens) == (11, 22)


def test_a_client_without_tools_finds_calls_in_the_text(proxy: Proxy) -> None:
    """It may be reading them from there by itself."""
    proxy.server.say(TEXT)
    choice = proxy.client.chat.completions.create(model="qwen", messages=ASKED).choices[0]
    assert whole_of(choice.message)[::2] == ("First.\n\nSecond.", [])
    assert choice.message.content == "One. " + TEXT[TEXT.index("Two.") :]
    found = joined(proxy.client.chat.completions.create(model="qwen", messages=ASKED, stream=True))
    assert (found.content, found.finish) == (choice.message.content, "stop")


def test_a_model_says_how_it_is_read(proxy: Proxy) -> None:
    """`model_info` names the format and the policies, or turns splitting off."""
    proxy.server.say("It is\ntwo.</think>It is 4.")
    for stream in (False, True):
        reply: Any = proxy.client.chat.completions.create(model="thinking", messages=ASKED, stream=stream)
        parts = joined(reply)[:2] if stream else whole_of(reply.choices[0].message)[:2]
        assert parts == ("It is\ntwo.", "It is 4.")
    proxy.server.say(TEXT)
    found = joined(proxy.client.chat.completions.create(model="unsplit", messages=ASKED, stream=True))
    assert (found.content, found.reasoning) == (TEXT, "")


@pytest.mark.parametrize(
    ("model", "why"), [("wrong", "unknown format 'qwen33'; did you mean qwen3"), ("odd", "no_such")]
)
def test_a_wrong_configuration_is_refused_before_it_costs_anything(proxy: Proxy, model: str, why: str) -> None:
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError, match="model_info: asides: of openai/qwen3") as failure:
            proxy.client.chat.completions.create(model=model, messages=ASKED, stream=stream)
        assert why in str(failure.value)
    assert not proxy.server.questions


def test_what_a_server_has_split_stays_split(proxy: Proxy) -> None:
    proxy.server.say("It says `<think>` here.", thought="Own thought.", calls=(("add", '{"a": 1}'),))
    for stream in (False, True):
        reply: Any = proxy.client.chat.completions.create(model="qwen", messages=ASKED, tools=TOOLS, stream=stream)
        parts = joined(reply)[:3] if stream else whole_of(reply.choices[0].message)
        assert parts == ("Own thought.", "It says `<think>` here.", [{"name": "add", "arguments": '{"a": 1}'}])


def test_text_alone_comes_back_untouched(proxy: Proxy) -> None:
    text = "  List<Thought> of\n\n`<think>` \t"
    proxy.server.say(text)
    assert proxy.client.chat.completions.create(model="qwen", messages=ASKED).choices[0].message.content == text
    found = joined(proxy.client.chat.completions.create(model="qwen", messages=ASKED, stream=True))
    assert found[:2] == ("", text)


def test_a_reply_that_is_cut_off(proxy: Proxy) -> None:
    """By its length in a thought; and by a server that dies with something held back."""
    proxy.server.say("<think>It is", reason="length")
    choice = proxy.client.chat.completions.create(model="qwen", messages=ASKED).choices[0]
    assert (*whole_of(choice.message)[:2], choice.finish_reason) == ("It is", "", "length")
    found = joined(proxy.client.chat.completions.create(model="qwen", messages=ASKED, stream=True))
    assert (found.reasoning, found.content, found.finish) == ("It is", "", "length")
    proxy.server.send(Reply([frame("<think>a</think>"), frame("b <thi"), Pause(0.5), Close()]))
    chunks, error = drained(proxy.client.chat.completions.create(model="qwen", messages=ASKED, stream=True))
    assert isinstance(error, openai.APIError)
    assert joined(chunks)[:2] == ("a", "b <thi")


def test_a_client_that_leaves_ends_the_request(proxy: Proxy) -> None:
    """The server's stream is closed with the client's."""
    proxy.server.say("<think>" + "a " * 20000, cuts=500, pause=0.01)
    stream = proxy.client.chat.completions.create(model="qwen", messages=ASKED, stream=True)
    assert next(iter(stream))
    stream.close()
    assert left(proxy.server)


def test_what_the_hooks_do_not_allow(proxy: Proxy) -> None:
    """Clients of other APIs: whole replies are split before LiteLLM translates them; their streams are not."""
    proxy.server.say(TEXT)
    body = {"model": "vllm", "max_tokens": 100, "messages": ASKED}
    headers = {"Authorization": f"Bearer {proxy.key}"}
    whole = httpx.post(f"{proxy.url}/v1/messages", json=body, headers=headers, timeout=120).json()
    assert whole["content"][0]["thinking"] == "First.\n\nSecond."
    assert whole["content"][1]["text"].startswith("One. Two.")
    deltas = _events(proxy, {**body, "stream": True})
    assert "".join(delta.get("text", "") for delta in deltas) == TEXT
    assert proxy.client.completions.create(model="qwen", prompt="2+2?").choices[0].text == TEXT
    asked = {"model": "studio", "input": "2+2?"}
    response = httpx.post(f"{proxy.url}/v1/responses", json=asked, headers=headers, timeout=120).json()
    thought, answer = (item["content"][0]["text"] for item in response["output"])
    assert (thought, answer[:9]) == ("First.\n\nSecond.", "One. Two.")
    streamed = httpx.post(
        f"{proxy.url}/v1/responses", json={**asked, "stream": True}, headers=headers, timeout=120
    ).text
    events = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
    assert "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta") == TEXT
    chunks = proxy.client.completions.create(model="qwen", prompt="2+2?", stream=True)
    assert "".join(choice.text or "" for chunk in chunks for choice in chunk.choices) == TEXT


def test_the_gateway_before_the_server_does_all_of_it(proxy: Proxy) -> None:
    """The recipe for what the hooks do not allow: streams of every API, split before LiteLLM reads them."""
    proxy.server.say(TEXT)
    found = joined(proxy.client.chat.completions.create(model="gateway", messages=ASKED, tools=TOOLS, stream=True))
    assert found == Streamed("First.\n\nSecond.", "One. Two.", [CALL], "tool_calls", "rcrct")
    body = {"model": "gateway", "max_tokens": 100, "messages": ASKED, "stream": True}
    deltas = _events(proxy, body)
    assert "".join(delta.get("thinking", "") for delta in deltas) == "First.\n\nSecond."
    assert "".join(delta.get("text", "") for delta in deltas).startswith("One. Two.")


def _events(proxy: Proxy, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The deltas of a stream of Anthropic's API."""
    headers = {"Authorization": f"Bearer {proxy.key}"}
    text = httpx.post(f"{proxy.url}/v1/messages", json=body, headers=headers, timeout=120).text
    return [json.loads(line[6:]).get("delta", {}) for line in text.splitlines() if line.startswith("data: ")]


# In a program.


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with upstream() as found:
        yield found


def call(server: Upstream, **more: Any) -> dict[str, Any]:
    own = {"model": "openai/qwen3", "api_base": f"{server.url}/v1", "api_key": "none", "max_retries": 0}
    return {**own, "messages": ASKED, "tools": TOOLS, **more}


def test_completion_splits_whole_and_streamed(server: Upstream) -> None:
    """Also asynchronous; LiteLLM's own `logger_fn` is still called."""
    server.say(TEXT)
    logged: list[dict[str, Any]] = []
    response = completion(**call(server, logger_fn=logged.append))
    assert isinstance(response, ModelResponse)
    assert whole_of(response.choices[0].message) == ("First.\n\nSecond.", "One. Two.", [CALL])
    assert logged
    expected = Streamed("First.\n\nSecond.", "One. Two.", [CALL], "tool_calls", "rcrct")
    assert joined(completion(**call(server, stream=True))) == expected

    async def both() -> tuple[Any, list[Any]]:
        whole = await acompletion(**call(server))
        return whole, [chunk async for chunk in await acompletion(**call(server, stream=True))]

    whole, chunks = asyncio.run(both())
    assert whole_of(whole.choices[0].message) == ("First.\n\nSecond.", "One. Two.", [CALL])
    assert joined(chunks) == expected


def test_every_chunk_has_a_choice_as_litellms_own_have() -> None:
    """Also the one with the usage: programs look at the first choice of each."""
    asked = {"messages": ASKED, "mock_response": "<think>a</think>b", "stream": True}
    chunks = list(completion(model="openai/qwen3", stream_options={"include_usage": True}, **asked))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "b"
    assert [getattr(chunk, "usage", None) is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]


def test_completion_takes_a_format_and_policies(server: Upstream) -> None:
    server.say("a</think>b")
    found = completion(**call(server), format="qwen3", policies=Policies(start="thinking")).choices[0].message
    assert whole_of(found)[:2] == ("a", "b")
    with pytest.raises(asides.UnknownFormatError, match="qwen3"):
        completion(**call(server), format="qwen33")
    with pytest.raises(asides.UnknownFormatError):
        AsidesHandler("qwen33")
    with pytest.raises(asides.UsageError):
        AsidesHandler(mentions="no")  # type: ignore[arg-type]


def test_the_callback_in_a_program(server: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is called for asynchronous whole replies. Of a stream it sees the last chunk alone, and of synchronous calls
    nothing: hence `completion` and `acompletion`. Should that change, this test fails and they can go."""
    server.say(TEXT)
    monkeypatch.setattr(litellm, "callbacks", [handler])

    async def both() -> tuple[Any, list[Any]]:
        whole = await litellm.acompletion(**call(server))
        return whole, [chunk async for chunk in await litellm.acompletion(**call(server, stream=True))]

    whole, chunks = asyncio.run(both())
    assert whole_of(whole.choices[0].message) == ("First.\n\nSecond.", "One. Two.", [CALL])
    assert joined(chunks).content == TEXT
    assert "<think>Second." in litellm.completion(**call(server)).choices[0].message.content


def test_several_choices_keep_apart(server: Upstream) -> None:
    server.say(["<think>a</think>b", "<think>c</think>d"])
    whole = completion(**call(server, n=2))
    assert [whole_of(choice.message)[:2] for choice in whole.choices] == [("a", "b"), ("c", "d")]
    texts = {0: "", 1: ""}
    for chunk in completion(**call(server, n=2, stream=True)):
        for choice in chunk.choices:
            texts[choice.index] += (getattr(choice.delta, "reasoning_content", None) or "") + (
                choice.delta.content or ""
            )
    assert texts == {0: "ab", 1: "cd"}


# In LiteLLM's own types.


def chunk_of(text: str, **fields: Any) -> ModelResponseStream:
    return ModelResponseStream(
        id="1", model="m", choices=[StreamingChoices(index=0, delta=Delta(content=text), **fields)]
    )


def reading(format: str, **chosen: Any) -> Reading:
    return Reading.of(format=format, policies=DEFAULTS.but(**{**chosen, "collect": False}))


def test_recorded_cases_streamed_and_whole() -> None:
    """For every recorded case: thinking, text and calls as the parser reads them, streamed and in one piece."""
    check_cases(_check_case)


def _check_case(case: Case, message: Message) -> None:
    text, found = "".join(case.chunks), reading(case.format, **options(case))
    splitter = ChunkSplitter(lambda _: found)
    pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
    chunks = [out for piece in pieces for out in splitter.feed(chunk_of(piece))]
    chunks += splitter.feed(chunk_of("", finish_reason="stop"))
    assert not splitter.release()
    streamed = joined(chunks)
    assert streamed.reasoning == message.thinking
    named = [part for part in message.tool_calls if part.name]
    # What the model wrote follows where a broken call would look like one that may be run.
    more = ["" if part.error is None else behind_arguments(part.arguments, part.raw) for part in named]
    arguments = [part.arguments + text for part, text in zip(named, more, strict=True)]
    assert streamed.calls == [
        {"name": part.name, "arguments": text} for part, text in zip(named, arguments, strict=True)
    ]
    assert streamed.finish == ("tool_calls" if named else "stop")
    if len(named) == len(message.tool_calls):
        assert streamed.content == message.text
    response = ModelResponse(
        model="m", choices=[Choices(index=0, message=LiteMessage(content=text), finish_reason="stop")]
    )
    split_reply(response, found)
    again = response.choices[0]
    content, thinking, names = streamed.content, streamed.reasoning, [each["name"] for each in streamed.calls]
    if case.said.get("stream"):  # all of it at once shows where it began
        whole = asides.parse(text, case.format, **case.options)
        content, thinking, names = whole.text, whole.thinking, [part.name for part in whole.tool_calls]
    assert (again.message.content or "") == content
    assert (getattr(again.message, "reasoning_content", None) or "") == thinking
    assert [each.function.name for each in again.message.tool_calls or ()] == names
    assert again.finish_reason == ("tool_calls" if names else "stop")


def test_what_is_held_back_comes_at_the_end_of_any_stream() -> None:
    """Of one that says nothing of its end, and before the error of one that fails; and the stream is closed."""
    splitter = ChunkSplitter(lambda _: reading("qwen3"))
    held = [*splitter.feed(chunk_of("a <thi")), *splitter.release()]
    assert joined(held).content == "a <thi"
    closed: list[bool] = []

    def failing() -> Iterator[ModelResponseStream]:
        try:
            yield chunk_of("a <thi")
            raise ConnectionError("gone")
        finally:
            closed.append(True)

    got, error = drained(split_stream(failing(), lambda _: reading("qwen3")))
    assert isinstance(error, ConnectionError)
    assert (joined(got).content, closed) == ("a <thi", [True])
    assert list(split_stream(iter([]), lambda _: reading("qwen3"))) == []


def test_a_stream_that_is_given_up_is_closed() -> None:
    closed: list[str] = []

    def chunks() -> Iterator[ModelResponseStream]:
        try:
            yield from map(chunk_of, characters(MIXED))
        finally:
            closed.append("sync")

    stream = split_stream(chunks(), lambda _: reading("qwen3"))
    next(stream)
    stream.close()  # type: ignore[attr-defined]

    async def later() -> AsyncIterator[ModelResponseStream]:
        try:
            for chunk in map(chunk_of, characters(MIXED)):
                yield chunk
        finally:
            closed.append("async")

    async def give_up() -> None:
        hook: Any = handler.async_post_call_streaming_iterator_hook(None, later(), {})
        await anext(hook)
        await hook.aclose()
        assert closed == ["sync", "async"]  # here, because the end of the loop would close it too

    asyncio.run(give_up())


def test_signed_thoughts_of_a_provider_pass_as_they_are() -> None:
    delta = Delta(
        content="", thinking_blocks=[{"type": "thinking", "thinking": "a", "signature": "s"}], reasoning_content="a"
    )
    chunk = ModelResponseStream(model="m", choices=[StreamingChoices(index=0, delta=delta)])
    splitter = ChunkSplitter(lambda _: reading("qwen3"))
    assert splitter.feed(chunk) == [chunk]
    after = chunk_of("<think>b")
    assert splitter.feed(after) == [after]
    splitter = ChunkSplitter(lambda _: reading("qwen3"))
    assert joined([*splitter.feed(chunk_of("b <thi")), *splitter.feed(chunk)]).kinds == "cr"
    assert not splitter.release()


def test_calls_of_the_older_kind_pass_as_they_are() -> None:
    """A client that sends `functions` reads `function_call`, not `tool_calls`."""
    called = {"name": "add", "arguments": "{}"}
    delta = Delta(content=None, function_call=called)
    chunk = ModelResponseStream(model="m", choices=[StreamingChoices(index=0, delta=delta)])
    assert ChunkSplitter(lambda _: reading("qwen3")).feed(chunk) == [chunk]
    response = _response({"content": None, "function_call": called}, finish_reason="function_call")
    expected = response.model_dump()
    split_reply(response, reading("qwen3"))
    assert response.model_dump() == expected


def test_a_message_without_text_stays_as_it_is() -> None:
    native = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    for message in ({"content": None, "refusal": "No."}, {"content": None, "tool_calls": [native]}, {"content": ""}):
        response = _response(message)
        expected = response.model_dump()
        split_reply(response, reading("qwen3"))
        assert response.model_dump() == expected


def test_choices_are_known_by_their_place() -> None:
    """LiteLLM numbers them anew, and not every server does at all."""
    texts = ["<think>a</think>b <think>c</think>d", "<think>e</think>f"]
    original = {"choices": [{"index": 0, "message": {"content": text}} for text in texts]}
    split_off = [("a", "b <think>c</think>d"), ("e", "f")]  # what LiteLLM makes of them
    messages = [{"content": text, "reasoning_content": thought} for thought, text in split_off]
    for numbers in ((0, 1), (0, 0)):
        response = _response(*messages, numbers=numbers)
        split_reply(response, reading("qwen3"), json.dumps(original))
        assert [whole_of(choice.message)[:2] for choice in response.choices] == [("a\n\nc", "b d"), ("e", "f")]
        assert [choice.index for choice in response.choices] == list(numbers)


def _response(*messages: dict[str, Any], numbers: Sequence[int] = (0, 1), **fields: Any) -> ModelResponse:
    choices = [
        Choices(index=number, message=LiteMessage(**message), **fields)
        for number, message in zip(numbers, messages, strict=False)
    ]
    return ModelResponse(model="m", choices=choices)


def test_text_behind_a_call_of_the_server_is_the_answer() -> None:
    called = {"index": 0, "id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    middle = ModelResponseStream(model="m", choices=[StreamingChoices(index=0, delta=Delta(tool_calls=[called]))])
    splitter = ChunkSplitter(lambda _: reading("qwen3", start="thinking"))
    chunks = [chunk_of("a</think>b"), middle, chunk_of("c"), chunk_of("", finish_reason="stop")]
    found = joined(out for chunk in chunks for out in splitter.feed(chunk))
    assert (found.reasoning, found.content, found.kinds) == ("a", "bc", "rctc")


def test_the_work_grows_with_the_text() -> None:
    check_linear(lambda chunks: list(split_stream(map(chunk_of, chunks), lambda _: reading("qwen3"))))


def test_the_page(tmp_path: Path) -> None:
    check_examples("litellm", tmp_path)
    check_tried("litellm", "litellm")
