"""The plug-in for pydantic-ai, with the host's own agent, its test models, and its OpenAI client over a real socket."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.plugins.host import ROOT, check_examples, require_module

require_module("pydantic_ai")

from groq import AsyncGroq
from huggingface_hub import AsyncInferenceClient
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, TextOutput, ToolOutput
from pydantic_ai.capabilities import BatchModelRequests
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import IncompleteToolCall, ModelAPIError, UnexpectedModelBehavior, UserError
from pydantic_ai.messages import (
    BinaryContent,
    Citation,
    ContentCitationAnchor,
    FilePart,
    FinalResultEvent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    NativeToolCallPart,
    NativeToolReturnPart,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    WebCitationSource,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.concurrency import ConcurrencyLimitedModel
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.groq import GroqModel
from pydantic_ai.models.huggingface import HuggingFaceModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.groq import GroqProvider
from pydantic_ai.providers.huggingface import HuggingFaceProvider
from pydantic_ai.providers.openai import OpenAIProvider

import asides
from asides.plugins import _hosts
from asides.plugins.pydantic_ai import Split, SplitModel, split
from tests.plugins.protocols import IDS, ONE_ID_TWICE
from tests.support import as_parse, characters, check_each, count_calls, cut, run, two_way_splits
from tests.test_cases import ALL, Case, case_name

USER: list[ModelMessage] = [ModelRequest.user_text_prompt("?")]
CALL = '<tool_call>\n{"name": "add", "arguments": {"x": 1, "y": 2}}\n</tool_call>'
TWO = "<think>one</think>\n\nHello <think>two</think> World"


# Running. One loop for all: the host's `run_sync` makes loops and leaves them open.

LOOP = asyncio.new_event_loop()
Result = TypeVar("Result")


def go(work: Coroutine[Any, Any, Result]) -> Result:
    return LOOP.run_until_complete(work)


@pytest.fixture(autouse=True, scope="module")
def loop() -> Iterator[None]:
    yield
    LOOP.run_until_complete(LOOP.shutdown_asyncgens())
    LOOP.close()


# Models.


def scripted(*replies: str | Sequence[Any], name: str = "scripted") -> FunctionModel:
    """The host's model for tests: each reply whole, or as the chunks that it is written in."""
    left = list(replies)

    def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        reply = left.pop(0)
        return ModelResponse([TextPart("".join(reply))], finish_reason="stop")

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        for chunk in left.pop(0):
            yield chunk

    return FunctionModel(answer, stream_function=stream, model_name=name)


def replying(*parts: ModelResponsePart) -> FunctionModel:
    """A model whose reply has these parts."""
    return FunctionModel(lambda _messages, _info: ModelResponse(list(parts)))


def whole(text: str, format: str = "auto", **options: Any) -> ModelResponse:
    return go(model_request(split(scripted(text), format, **options), USER))


def streamed(chunks: Sequence[Any], format: str = "auto", **options: Any) -> tuple[ModelResponse, list[Any]]:
    async def read() -> tuple[ModelResponse, list[Any]]:
        async with model_request_stream(split(scripted(chunks), format, **options), USER) as stream:
            events = [event async for event in stream]
            return stream.get(), events

    return go(read())


def shown(parts: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Parts without the ids that are made anew for each reply."""
    return [
        (part.part_kind, part.tool_name, part.args)
        if isinstance(part, ToolCallPart)
        else (part.part_kind, part.content)
        for part in parts
    ]


def rebuilt(events: Sequence[Any]) -> list[ModelResponsePart]:
    """The parts as somebody sees them who only follows the events."""
    parts: dict[int, Any] = {}
    for event in events:
        if isinstance(event, PartStartEvent):
            assert event.index == len(parts)
            parts[event.index] = event.part
        elif isinstance(event, PartDeltaEvent):
            parts[event.index] = event.delta.apply(parts[event.index])
        elif isinstance(event, PartEndEvent):
            assert event.part == parts[event.index]
    return list(parts.values())


def metadata(response: ModelResponse) -> dict[str, Any]:
    found: dict[str, Any] = (response.metadata or {}).get("asides", {})
    return found


# A server as there are many: it leaves thinking and calls in the text, or does not, and streams.


class Server(ThreadingHTTPServer):
    """Sends its replies one after the other, and keeps what it was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.clients: list[Any] = []
        self.closed = threading.Event()
        """Set when a client went away before the end of an endless reply."""

    def will_send(self, *chunks: Any, finish: str | None = "stop", then: str = "") -> None:
        """One more reply, as contents or deltas; a whole reply is all of them joined."""
        deltas = [{"content": chunk} if isinstance(chunk, str) else chunk for chunk in chunks]
        self.replies.append({"deltas": deltas, "finish": finish, "then": then})

    def model(self, name: str = "a-model", **profile: Any) -> OpenAIChatModel:
        client = AsyncOpenAI(base_url=f"http://127.0.0.1:{self.server_port}/v1", api_key="none", max_retries=0)
        self.clients.append(client)
        provider = OpenAIProvider(openai_client=client)
        return OpenAIChatModel(name, provider=provider, profile=profile or None)  # type: ignore[arg-type]

    def groq_model(self) -> GroqModel:
        client = AsyncGroq(base_url=f"http://127.0.0.1:{self.server_port}", api_key="none", max_retries=0)
        self.clients.append(client)
        return GroqModel("a-model", provider=GroqProvider(groq_client=client))

    def hugging_face_model(self) -> HuggingFaceModel:
        client = AsyncInferenceClient(base_url=f"http://127.0.0.1:{self.server_port}/v1", api_key="none")
        self.clients.append(client)
        return HuggingFaceModel("a-model", provider=HuggingFaceProvider(hf_client=client, api_key="none"))


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: Any) -> None:
        """Keep it to itself."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(body)
        reply = self.server.replies.pop(0)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if body.get("stream") else "application/json")
        self.end_headers()
        head = {"id": "reply-1", "created": 1_700_000_000, "model": "served", "system_fingerprint": "f"}
        usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
        if not body.get("stream"):
            message: dict[str, Any] = {"role": "assistant", "content": None}
            for delta in reply["deltas"]:
                for key, value in delta.items():
                    message[key] = value if message.get(key) is None else message[key] + value
            for call in message.get("tool_calls", []):
                call.pop("index")
            choice = {"index": 0, "message": message, "finish_reason": reply["finish"]}
            self.write({**head, "object": "chat.completion", "choices": [choice], "usage": usage}, b"")
            return
        head["object"] = "chat.completion.chunk"
        try:
            for delta in reply["deltas"]:
                self.send({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            while reply["then"] == "endless":
                self.send({**head, "choices": [{"index": 0, "delta": {"content": "on "}, "finish_reason": None}]})
        except OSError:
            self.server.closed.set()
            return
        if reply["then"] == "break":
            self.wfile.write(b'data: {"error": {"message": "broken", "code": 500}}\n\n')
            return
        self.send({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reply["finish"]}]})
        self.send({**head, "choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def send(self, data: dict[str, Any]) -> None:
        self.write(data, b"data: ", b"\n\n")

    def write(self, data: dict[str, Any], before: bytes, after: bytes = b"") -> None:
        self.wfile.write(before + json.dumps(data).encode() + after)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        for client in made.clients:
            go(client.close())
        made.shutdown()
        thread.join()


async def both(server: Server, model: Any, *chunks: Any, finish: str = "stop") -> tuple[ModelResponse, ModelResponse]:
    """The same reply, whole and streamed."""
    server.will_send(*chunks, finish=finish)
    server.will_send(*chunks, finish=finish)
    first = await model_request(model, USER)
    async with model_request_stream(model, USER) as stream:
        async for _ in stream:
            pass
        return first, stream.get()


# Reading.


def test_several_thoughts_in_order() -> None:
    """And the answer as a person would want to read it: the host joins texts with nothing between them."""
    response = whole(TWO)
    assert shown(response.parts) == [("thinking", "one"), ("text", "Hello"), ("thinking", "two"), ("text", " World")]
    assert response.thinking == "one\n\ntwo"
    assert go(Agent(split(scripted(TWO))).run("?")).output == asides.clean(TWO) == "Hello World"


def test_a_stream_cut_anywhere_is_the_whole() -> None:
    text = f"{TWO}!\n{CALL}\n<think>three</think>{CALL}"
    expected = shown(whole(text).parts)
    assert [kind for kind, *_ in expected] == [
        "thinking", "text", "thinking", "text", "tool-call", "thinking", "tool-call",
    ]  # fmt: skip
    generator = random.Random(7)
    ways = [characters(text), *two_way_splits(text)]
    ways += [cut(text, sorted(generator.sample(range(1, len(text)), 9))) for _ in range(40)]

    def check(chunks: Sequence[str]) -> None:
        response, events = streamed(chunks)
        assert shown(response.parts) == expected
        assert rebuilt(events) == response.parts

    check_each(check, ways)


def test_text_without_markers_is_untouched() -> None:
    text = "  1 < 2 & <b>bold</b>\n\n  List<Thought> \n"
    assert shown(whole(text).parts) == shown(streamed(characters(text))[0].parts) == [("text", text)]
    assert whole(text).metadata is None


def test_a_lone_close_and_an_unclosed_thought() -> None:
    assert shown(whole("so</think>4").parts) == [("thinking", "so"), ("text", "4")]
    assert shown(streamed(["so</thi", "nk>4"], start="undecided")[0].parts) == [("thinking", "so"), ("text", "4")]
    for response in (whole("<think>and so"), streamed(["<thi", "nk>and so"])[0]):
        assert shown(response.parts) == [("thinking", "and so")]
        assert [notice["code"] for notice in metadata(response)["notices"]] == ["unclosed_thinking"]


def test_the_name_of_the_model_decides() -> None:
    """It begins inside a thought, as its chat template has it."""
    model = split(scripted(["so", "</think>4"], name="Qwen/Qwen3-4B-Thinking-2507"))

    async def read() -> ModelResponse:
        async with model_request_stream(model, USER) as stream:
            async for _ in stream:
                pass
            return stream.get()

    assert shown(go(read()).parts) == [("thinking", "so"), ("text", "4")]


def test_an_unknown_format_is_the_hosts_error() -> None:
    with pytest.raises(UserError, match=r"qwne3.*qwen3"):
        split(TestModel(), "qwne3")
    with pytest.raises(UserError, match=r"qwne3.*qwen3"):
        Split("qwne3")


def test_strictness_is_an_error() -> None:
    with pytest.raises(asides.StrictError):
        whole("<think>and so", strict=True)


@pytest.mark.parametrize("file", sorted({case.file for case in ALL}))
def test_cases(file: str) -> None:
    """Every recorded case, whole and in the case's own chunks, gives what the engine does."""

    async def check_both(case: Case) -> None:
        options = {"seed": 7, **case.said.get("options", {})}
        text = "".join(case.chunks)
        expected = run(case.format, [text], **as_parse(case.format, options))
        check_parts(await model_request(split(scripted(text), case.format, **options), USER), expected)
        options = as_parse(case.format, options)
        async with model_request_stream(split(scripted(case.chunks), case.format, **options), USER) as stream:
            async for _ in stream:
                pass
            check_parts(stream.get(), expected)

    check_each(lambda case: go(check_both(case)), [case for case in ALL if case.file == file], case_name)


def check_parts(response: ModelResponse, expected: Any) -> None:
    """The host's parts are those of a message, the broken calls among them as the page has it."""
    gaps = [event.gap for event in expected.events if isinstance(event, asides.events.PartStart)]
    broken = iter(metadata(response).get("broken_calls", []))
    # The host's own empty text, where there was nothing to read, stays.
    found: Iterator[Any] = (part for part in response.parts if part != TextPart(""))
    for part, gap in zip(expected.message.parts, gaps, strict=True):
        if not isinstance(part, asides.ToolCall):
            made = next(found)
            kind = "thinking" if isinstance(part, asides.Thinking) else "text"
            assert (made.part_kind, made.content) == (kind, part.text if kind == "thinking" else gap + part.text)
            continue
        if part.error is not None:
            record = next(broken)
            assert (record["error"], record["raw"]) == (part.error, part.raw)
            if not part.name:
                made = next(found, None)
                assert made is None or isinstance(made, TextPart | ThinkingPart)
                continue
        made = next(found)
        assert isinstance(made, ToolCallPart)
        assert (made.tool_name, made.tool_call_id) == (part.name, part.id)
        if part.error is None:
            assert made.args == part.arguments
        else:
            assert isinstance(made.args, str)
            assert made.args.startswith(part.arguments)
            assert set(made.args_as_dict()) == {"INVALID_JSON"}
    assert not list(found)
    assert not list(broken)
    notices = [notice["code"] for notice in metadata(response).get("notices", [])]
    assert notices == [notice.code for notice in expected.message.notices]


def test_a_long_reply_takes_time_by_its_length() -> None:
    def read(size: int) -> int:
        chunks = ["<think>", *["thought "] * size, "</think>", *["word "] * size]
        return count_calls(lambda: streamed(chunks))

    read(10)
    first, second = read(500), read(1000)
    assert second < 2.2 * first


# Agents.


def adding() -> tuple[list[tuple[int, int]], Any]:
    calls: list[tuple[int, int]] = []

    def add(x: int, y: int) -> int:
        calls.append((x, y))
        return x + y

    return calls, add


THINKS_AND_CALLS = characters(f"<think>add</think>\n\n{CALL}")
ANSWERS = characters("<think>so</think>It is 3.")


def test_an_agent_runs_a_call_that_is_written_in_the_text() -> None:
    calls, add = adding()
    result = go(Agent(split(scripted(THINKS_AND_CALLS, ANSWERS)), tools=[add]).run("1+2?"))
    assert (result.output, calls) == ("It is 3.", [(1, 2)])
    responses = [message for message in result.all_messages() if isinstance(message, ModelResponse)]
    assert [response.finish_reason for response in responses] == ["tool_call", "stop"]
    assert shown(responses[0].parts) == [("thinking", "add"), ("tool-call", "add", '{"x": 1, "y": 2}')]


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_request_that_allows_no_calls_has_them_as_text(is_streamed: bool) -> None:
    """But for tools that are an agent's output: these the host allows."""
    calls, add = adding()
    reply: Any = characters(CALL) if is_streamed else CALL

    async def ask(**agent: Any) -> Any:
        made = Agent(split(scripted(reply)), model_settings={"tool_choice": "none"}, **agent)
        if not is_streamed:
            return (await made.run("?")).output
        async with made.run_stream("?") as result:
            return await result.get_output()

    assert go(ask(tools=[add])) == CALL
    assert not calls
    assert go(ask(output_type=ToolOutput(add, name="add"))) == 3


def test_run_stream() -> None:
    calls, add = adding()

    async def read() -> list[str]:
        agent = Agent(split(scripted(THINKS_AND_CALLS, ANSWERS)), tools=[add])
        async with agent.run_stream("1+2?") as result:
            return [text async for text in result.stream_text(delta=True, debounce_by=None)]

    assert go(read()) == ["I", "t", " i", "s", " 3", "."]
    assert calls == [(1, 2)]


def test_iter_and_an_event_stream_handler() -> None:
    seen: list[Any] = []

    async def handle(_context: Any, events: Any) -> None:
        seen.append([event async for event in events])

    async def read() -> tuple[str, list[Any]]:
        _, add = adding()
        agent = Agent(split(scripted(THINKS_AND_CALLS, ANSWERS, THINKS_AND_CALLS, ANSWERS)), tools=[add])
        handled = await agent.run("1+2?", event_stream_handler=handle)
        events: list[Any] = []
        async with agent.iter("1+2?") as going:
            async for node in going:
                if Agent.is_model_request_node(node):
                    async with node.stream(going.ctx) as stream:
                        events += [event async for event in stream]
        assert going.result is not None
        assert going.result.output == handled.output
        return handled.output, events

    output, events = go(read())
    assert output == "It is 3."
    starts = [event.part.part_kind for event in events if isinstance(event, PartStartEvent)]
    assert starts == ["thinking", "tool-call", "thinking", "text"]
    assert sum(isinstance(event, FinalResultEvent) for event in events) == 1
    handled_starts = [event.part.part_kind for each in seen for event in each if isinstance(event, PartStartEvent)]
    assert handled_starts == starts


def test_an_agents_capability() -> None:
    """The host's own hook for wrapping whichever model serves a request."""
    calls, add = adding()
    agent = Agent(scripted(THINKS_AND_CALLS, ANSWERS), tools=[add], capabilities=[Split("qwen3")])
    result = go(agent.run("1+2?"))
    assert (result.output, calls) == ("It is 3.", [(1, 2)])
    twice = split(scripted("a"))
    assert Split().get_wrapper_model(ConcurrencyLimitedModel(twice, 1)) is None
    made = Split("qwen3", mentions="marker").get_wrapper_model(scripted("a"))
    assert isinstance(made, SplitModel)
    assert (made.format, made.policies.mentions) == ("qwen3", "marker")


def test_a_capability_from_a_specification() -> None:
    agent = Agent.from_spec(
        {"model": "test", "capabilities": [{"Split": {"format": "qwen3"}}]}, custom_capability_types=[Split]
    )
    with agent.override(model=scripted(TWO)):
        assert go(agent.run("?")).output == "Hello World"


def test_values_that_need_a_type_get_that_of_their_tool() -> None:
    seen: list[Any] = []

    def show(number: int, text: str) -> str:
        seen.append((number, text))
        return "ok"

    call = "<tool_call>\n<function=show>\n<parameter=number>\n5\n</parameter>\n<parameter=text>\n5\n</parameter>\n"
    call += "</function>\n</tool_call>"
    go(Agent(split(scripted(call, "done"), "qwen3_coder"), tools=[show]).run("?"))
    assert seen == [(5, "5")]


class City(BaseModel):
    name: str
    people: int


def as_city(text: str) -> City:
    return City.model_validate_json(text)


PARIS = '{"name": "Paris", "people": 2}'


@pytest.mark.parametrize(
    ("output", "reply"),
    [
        (ToolOutput(City), f'<tool_call>{{"name": "final_result", "arguments": {PARIS}}}</tool_call>'),
        (NativeOutput(City), PARIS),
        (PromptedOutput(City), PARIS),
        (TextOutput(as_city), PARIS),
    ],
)
def test_structured_output(output: Any, reply: str) -> None:
    """In each of the host's modes, whole and streamed."""
    text = f"<think>which?</think>\n\n{reply}"
    agent = Agent(split(scripted(text, characters(text))), output_type=output)
    assert go(agent.run("?")).output == City(name="Paris", people=2)

    async def read() -> Any:
        async with agent.run_stream("?") as result:
            return await result.get_output()

    assert go(read()) == City(name="Paris", people=2)


# Calls that may not be run.


BROKEN = {
    "cut off in its arguments": '<tool_call>{"name": "add", "arguments": {"x": 1, "y": 2',
    "cut off behind its arguments": '<tool_call>{"name": "add", "arguments": {"x": 1, "y": 2}',
    "cut off before its arguments": '<tool_call>{"name": "add", "arguments": ',
    "no object": '<tool_call>{"name": "add", "arguments": [1, 2]}</tool_call>',
    "a key twice": '<tool_call>{"name": "add", "arguments": {"x": 1, "x": 2, "y": 3}}</tool_call>',
    "no JSON": '<tool_call>{"name": "add", "arguments": {"x": 1, y: 2}}</tool_call>',
}


@pytest.mark.parametrize("reply", BROKEN.values(), ids=BROKEN)
def test_a_broken_call_is_never_run(reply: str) -> None:
    """The host finds its arguments invalid, and asks the model again; all that was written is in the metadata."""
    ran: list[Any] = []

    def add(x: int = 0, y: int = 0) -> int:
        ran.append((x, y))
        return x + y

    agent = Agent(split(scripted(reply, "sorry", characters(reply), "sorry"), "qwen3"), tools=[add])
    result = go(agent.run("?"))

    async def read() -> list[ModelMessage]:
        async with agent.run_stream("?") as stream:
            assert await stream.get_output() == "sorry"
            messages: list[ModelMessage] = stream.all_messages()
            return messages

    for messages in (result.all_messages(), go(read())):
        broken, again = messages[1], messages[2]
        assert isinstance(broken, ModelResponse)
        (record,) = metadata(broken)["broken_calls"]
        assert record["raw"] == reply
        (call,) = broken.tool_calls
        assert record["tool_call_id"] == call.tool_call_id
        (retry,) = again.parts
        assert "Invalid JSON" in str(retry.content)  # type: ignore[union-attr]
        assert broken.finish_reason != "tool_call"
    assert result.output == "sorry"
    assert not ran


def test_a_broken_call_for_a_tool_without_a_schema() -> None:
    """Such a tool takes whatever JSON there is."""
    ran: list[Any] = []
    agent = Agent(split(scripted(BROKEN["cut off behind its arguments"], BROKEN["no object"], "sorry"), "qwen3"))
    from pydantic_ai import Tool

    tool = Tool.from_schema(lambda **given: ran.append(given), "add", None, {"type": "object"})
    agent = Agent(agent.model, tools=[tool], retries=3)
    assert go(agent.run("?")).output == "sorry"
    assert not ran


def test_a_call_without_a_name_is_text() -> None:
    """The host has no place for it, and it has to go somewhere."""
    text = 'Look: <tool_call>{"arguments": {"x": 1}}</tool_call>'
    for response in (whole(text, "qwen3"), streamed(characters(text), "qwen3")[0]):
        assert shown(response.parts) == [("text", "Look:"), ("text", '{"arguments": {"x": 1}}')]
        assert [record["error"] for record in metadata(response)["broken_calls"]] == ["no_name"]


def test_a_call_cut_off_by_the_token_limit_is_the_hosts_own_error(server: Server) -> None:
    server.will_send(BROKEN["cut off behind its arguments"], finish="length")
    with pytest.raises(IncompleteToolCall):
        go(Agent(split(server.model()), tools=[adding()[1]], retries=0).run("?"))


def test_a_thought_cut_off_by_the_token_limit_is_no_answer(server: Server) -> None:
    server.will_send("<think>and so", finish="length")
    with pytest.raises(UnexpectedModelBehavior, match="token limit"):
        go(Agent(split(server.model())).run("?"))


def test_a_response_can_be_stored() -> None:
    response = whole("<think>a</think>b</think>" + BROKEN["no object"], "qwen3")
    assert set(metadata(response)) == {"notices", "broken_calls"}
    stored = ModelMessagesTypeAdapter.dump_json([response])
    assert ModelMessagesTypeAdapter.validate_json(stored) == [response]


# Servers that have split something themselves.


def test_what_the_server_has_split_stays(server: Server) -> None:
    call = {"index": 0, "id": "call-7", "type": "function", "function": {"name": "add", "arguments": '{"x": 1}'}}
    chunks = [{"reasoning_content": "so"}, "Hi <think>x", {"tool_calls": [call]}]
    for response in go(both(server, split(server.model()), *chunks, finish="tool_calls")):
        thought, text, made = response.parts
        assert (thought.id, thought.provider_name, thought.content) == ("reasoning_content", "openai", "so")  # type: ignore[union-attr]
        assert text.content == "Hi <think>x"  # type: ignore[union-attr]
        assert isinstance(made, ToolCallPart)
        assert (made.tool_call_id, made.args) == ("call-7", '{"x": 1}')
        assert response.finish_reason == "tool_call"


def test_calls_behind_thinking_that_the_server_has_split(server: Server) -> None:
    for response in go(both(server, split(server.model()), {"reasoning_content": "so"}, "\n\n", CALL)):
        assert shown(response.parts) == [("thinking", "so"), ("tool-call", "add", '{"x": 1, "y": 2}')]


def test_an_answer_behind_thinking_that_the_server_has_split(server: Server) -> None:
    """Raw output of this model begins inside a thought; what such a server sends as text does not."""
    model = split(server.model("Qwen/Qwen3-4B-Thinking-2507"))
    for chunks in (["4"], ["<think>so</think>", "4"]):
        for response in go(both(server, model, {"reasoning_content": "so"}, *chunks)):
            assert shown(response.parts) == [("thinking", "so"), ("text", "4")]


def test_an_answer_behind_thinking_that_the_server_hides() -> None:
    hidden = ThinkingPart("", signature="s", provider_name="p")
    response = go(model_request(split(replying(hidden, TextPart("4")), "qwen3_thinking"), USER))
    assert response.parts == [hidden, TextPart("4")]


def test_a_thought_that_the_server_sends_twice_comes_once(server: Server) -> None:
    chunks = [{"reasoning_content": "so"}, "<think>so</think>", "\n\n4"]
    for response in go(both(server, split(server.model()), *chunks)):
        assert shown(response.parts) == [("thinking", "so"), ("text", "4")]
    chunks = [{"reasoning_content": "so"}, "<think>s", {"reasoning_content": " it"}, "o it</think>", "4"]
    _, response = go(both(server, split(server.model()), *chunks))
    assert shown(response.parts) == [("thinking", "so"), ("thinking", " it"), ("text", "4")]


def test_a_stream_of_the_servers_own_parts() -> None:
    chunks: list[Any] = [
        {0: DeltaThinkingPart(content="a", signature="s")},
        {0: DeltaThinkingPart(content="b")},
        "x",
        {1: DeltaToolCall(name="add", json_args='{"x":', tool_call_id="c1")},
        {1: DeltaToolCall(json_args=" 1}")},
        "y",
    ]
    response, events = streamed(chunks)
    assert shown(response.parts) == [
        ("thinking", "ab"),
        ("text", "x"),
        ("tool-call", "add", '{"x": 1}'),
        ("text", "y"),
    ]
    assert rebuilt(events) == response.parts
    thought, _, call, _ = response.parts
    assert (thought.signature, thought.provider_name) == ("s", "function")  # type: ignore[union-attr]
    assert call.tool_call_id == "c1"  # type: ignore[union-attr]


def test_other_parts_stay_in_their_places() -> None:
    others: list[ModelResponsePart] = [
        NativeToolCallPart("web_search", {"q": "x"}, "n1", provider_name="p"),
        NativeToolReturnPart("web_search", "found", "n1", provider_name="p"),
        FilePart(BinaryContent(b"x", media_type="image/png")),
    ]
    model = split(replying(TextPart("<think>a</think>b"), *others, TextPart("c"), TextPart("d")))
    parts = go(model_request(model, USER)).parts
    assert parts == [ThinkingPart("a"), TextPart("b"), *others, TextPart("c"), TextPart("d")]


def test_a_text_behind_another_part_does_not_begin_in_a_thought() -> None:
    native = NativeToolCallPart("web_search", {"q": "x"}, "n1", provider_name="p")
    model = split(replying(TextPart("a</think>b"), native, TextPart("c")), "qwen3_thinking")
    parts = go(model_request(model, USER)).parts
    assert parts == [ThinkingPart("a"), TextPart("b"), native, TextPart("c")]


def test_an_empty_text_keeps_its_id() -> None:
    empty = TextPart("", id="m1", provider_name="p")
    assert go(model_request(split(replying(ThinkingPart("a"), empty)), USER)).parts == [ThinkingPart("a"), empty]


def test_what_a_text_carries() -> None:
    source = WebCitationSource(url="https://example.org")
    cited = [Citation([source], anchor=ContentCitationAnchor(start=0, end=1))]
    details = {"id": "m1", "provider_name": "p", "provider_details": {"k": 1}, "citations": cited}
    untouched, changed = TextPart("abc", **details), TextPart("<think>x</think>a<think>y</think>b", **details)  # type: ignore[arg-type]
    (same,) = go(model_request(split(replying(untouched)), USER)).parts
    assert same == untouched
    parts = go(model_request(split(replying(changed)), USER)).parts
    # Positions in the text as it was are no positions in what is left of it; and an id is given once.
    details["citations"] = [Citation([source])]
    assert parts == [ThinkingPart("x"), TextPart("a", **details), ThinkingPart("y"), TextPart("b")]  # type: ignore[arg-type]


# The host's own OpenAI client.


def test_all_else_goes_through(server: Server) -> None:
    """Usage, reason, ids, times and provider are those of the model without us."""
    model = server.model()
    plain = go(both(server, model, "4"))
    for one, other in zip(plain, go(both(server, split(model), "<think>a</think>", "4")), strict=True):
        assert shown(other.parts) == [("thinking", "a"), ("text", "4")]
        for name in {each.name for each in fields(ModelResponse)} - {"parts", "timestamp"}:
            assert getattr(other, name) == getattr(one, name), name
        assert other.usage.output_tokens == 4
        assert (other.provider_response_id, other.state, other.model_name) == ("reply-1", "complete", "served")


@pytest.mark.parametrize("make", ["model", "groq_model", "hugging_face_model"])
def test_the_hosts_own_tags_are_not_read_first(server: Server, make: str) -> None:
    """They would lose the mark of an unclosed thought, end a quoted one, and miss a closing tag that is cut.

    These are the host's three clients that read tags.
    """
    model = getattr(server, make)()
    texts: dict[tuple[str, ...], list[tuple[str, str]]] = {
        ("<think>", "and so"): [("thinking", "and so")],
        ("<think>", "a.", "</think>b"): [("thinking", "a."), ("text", "b")],
        ("the `", "<think>", "` tag"): [("text", "the `<think>` tag")],
        ("<think>", "a", "</think>", "b", "<think>", "c", "</think>", "d"): [
            ("thinking", "a"), ("text", "b"), ("thinking", "c"), ("text", "d"),
        ],
    }  # fmt: skip

    async def check(chunks: tuple[str, ...]) -> None:
        for response in await both(server, split(model), *chunks):
            assert shown(response.parts) == texts[chunks]
        inside = FallbackModel(ConcurrencyLimitedModel(model, 1), TestModel())
        for response in await both(server, split(inside), *chunks):
            assert shown(response.parts) == texts[chunks]

    check_each(lambda chunks: go(check(chunks)), texts)
    # The host without us reads this one as the answer: if it no longer does, all this can go.
    assert shown(go(both(server, model, "<think>", "and so"))[0].parts) == [("text", "and so")]
    assert model.profile.get("thinking_tags") == ("<think>", "</think>")


@pytest.mark.parametrize(
    ("profile", "content", "field"),
    [
        ({}, "<think>\nso\n</think>\n\n4", None),
        ({"openai_chat_send_back_thinking_parts": "tags"}, "<think>\nso\n</think>\n\n4", None),
        ({"thinking_tags": ("[THINK]", "[/THINK]")}, "[THINK]\nso\n[/THINK]\n\n4", None),
        ({"openai_chat_send_back_thinking_parts": False}, "4", None),
        (
            {"openai_chat_send_back_thinking_parts": "field", "openai_chat_thinking_field": "reasoning_content"},
            "4",
            "so",
        ),
    ],
)
def test_thoughts_go_back_as_the_models_profile_has_it(
    server: Server, profile: dict[str, Any], content: str, field: str | None
) -> None:
    agent = Agent(split(server.model(**profile)))
    server.will_send("<think>so</think>4")
    server.will_send("again")
    go(agent.run("again?", message_history=go(agent.run("2+2?")).all_messages()))
    assert server.requests[-1]["messages"][1] == {
        "role": "assistant",
        "content": content,
        **({"reasoning_content": field} if field else {}),
    }


def test_a_thought_from_a_field_goes_back_in_it(server: Server) -> None:
    agent = Agent(split(server.model()))
    server.will_send({"reasoning_content": "so"}, "4")
    server.will_send("again")
    go(agent.run("again?", message_history=go(agent.run("2+2?")).all_messages()))
    assert server.requests[-1]["messages"][1] == {"role": "assistant", "content": "4", "reasoning_content": "so"}


def test_requests_at_once(server: Server) -> None:
    """Tags are read in one reply while they are written into another request."""
    model = split(server.model())
    history = [*USER, ModelResponse([ThinkingPart("so"), TextPart("4")]), *USER]

    async def ask() -> list[ModelResponse]:
        return await asyncio.gather(*(model_request(model, history) for _ in range(8)))

    for _ in range(8):
        server.will_send("<think>a</think>b")
    assert [shown(response.parts) for response in go(ask())] == [[("thinking", "a"), ("text", "b")]] * 8
    sent = [request["messages"][1]["content"] for request in server.requests]
    assert sent == ["<think>\nso\n</think>\n\n4"] * 8


def test_leaving_a_stream_early_closes_it(server: Server) -> None:
    async def read() -> ModelResponse:
        server.will_send("<think>a</think>b <thi", then="endless")
        async with model_request_stream(split(server.model()), USER) as stream:
            async for event in stream:
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                    break
            return stream.get()

    response = go(read())
    assert server.closed.wait(10)
    assert response.state == "incomplete"
    assert shown(response.parts)[0] == ("thinking", "a")


def test_cancelling_a_stream_closes_it(server: Server) -> None:
    async def read() -> ModelResponse:
        server.will_send("<think>a</think>", "b ", then="endless")
        async with model_request_stream(split(server.model()), USER) as stream:
            async for event in stream:
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                    await stream.cancel()
                    break  # the host raises what its client does when it reads on
            assert await asyncio.to_thread(server.closed.wait, 10)
            return stream.get()

    response = go(read())
    assert response.state == "interrupted"
    assert shown(response.parts)[0] == ("thinking", "a")


def test_a_cancelled_stream_keeps_what_was_held_back() -> None:
    async def read() -> ModelResponse:
        async with model_request_stream(split(scripted(["a", "b <thi", "nk>c"])), USER) as stream:
            async for event in stream:
                if isinstance(event, PartDeltaEvent):
                    await stream.cancel()
                    break
            return stream.get()

    response = go(read())
    assert (shown(response.parts), response.state) == ([("text", "ab <thi")], "interrupted")


def test_an_abandoned_stream_keeps_what_was_held_back() -> None:
    async def read() -> ModelResponse:
        async with model_request_stream(split(scripted(["a", "b <thi", "nk>c"])), USER) as stream:
            async for event in stream:
                if isinstance(event, PartDeltaEvent):
                    break
        return stream.get()

    assert shown(go(read()).parts) == [("text", "ab <thi")]


def test_what_is_held_back_goes_out_before_an_error(server: Server) -> None:
    seen: list[Any] = []

    async def read() -> None:
        server.will_send("<think>a</think>b", " <thi", then="break")
        async with model_request_stream(split(server.model()), USER) as stream:
            async for event in stream:
                seen.append(event)

    with pytest.raises(ModelAPIError):
        go(read())
    assert shown(rebuilt(seen)) == [("thinking", "a"), ("text", "b <thi")]


# The host's other models around and inside.


def test_models_around_models() -> None:
    @asynccontextmanager
    async def asking(model: Any) -> AsyncIterator[Any]:
        async with model_request_stream(model, USER) as stream:
            async for _ in stream:
                pass
            yield stream.get()

    async def read() -> list[ModelResponse]:
        fallback = FallbackModel(split(scripted(TWO, characters(TWO))), TestModel())
        around = split(FallbackModel(scripted(TWO, characters(TWO)), TestModel()))
        found = []
        for model in (fallback, around):
            found.append(await model_request(model, USER))
            async with asking(model) as response:
                found.append(response)
        return found

    for response in go(read()):
        assert shown(response.parts)[1:] == [("text", "Hello"), ("thinking", "two"), ("text", " World")]


def test_a_batch_is_split_too() -> None:
    agent = Agent(
        split(scripted(TWO)),
        capabilities=[BatchModelRequests(max_requests=1, poll_interval=timedelta(milliseconds=1))],
    )
    assert go(agent.run("?")).output == "Hello World"


def test_a_model_by_its_name() -> None:
    model = split("test", "qwen3")
    assert isinstance(model.wrapped, TestModel)
    assert model == split(model.wrapped, "qwen3") != split(model.wrapped, "harmony")
    assert (model.model_name, model.system) == ("test", "test")


def test_ids_of_calls_differ_between_replies() -> None:
    first, second = (whole(CALL).tool_calls[0].tool_call_id for _ in range(2))
    assert first != second
    assert whole(CALL, seed=5).tool_calls[0].tool_call_id == whole(CALL, seed=5).tool_calls[0].tool_call_id


def test_calls_with_one_id_stay_two() -> None:
    """The host ends a run whose calls share an id."""
    given: list[int] = []

    def add(a: int) -> None:
        given.append(a)

    go(Agent(split(scripted(characters(ONE_ID_TWICE), ["4"]), "kimi_k2"), tools=[add]).run("?"))
    assert sorted(given) == [1, 2]
    assert [call.tool_call_id for call in whole(ONE_ID_TWICE, "kimi_k2").tool_calls] == IDS


def test_a_reply_without_events() -> None:
    """A stream of the host's may be complete from the beginning: it has parts and emits nothing."""
    from pydantic_ai.models import CompletedStreamedResponse

    class Complete(TestModel):
        @asynccontextmanager
        async def request_stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
            yield CompletedStreamedResponse(
                ModelResponse([TextPart(TWO)]), model_request_parameters=ModelRequestParameters()
            )

    async def read() -> ModelResponse:
        async with model_request_stream(split(Complete()), USER) as stream:
            assert [event async for event in stream]
            return stream.get()

    assert go(read()).thinking == "one\n\ntwo"


# The page.


def test_the_page(tmp_path: Path) -> None:
    check_examples("pydantic_ai", tmp_path)
    page = (ROOT / "docs" / "plugins" / "pydantic_ai.md").read_text(encoding="utf-8")
    assert f" {_hosts.LEAST['pydantic-ai-slim']}." in page.rstrip().rpartition("\n")[2]
