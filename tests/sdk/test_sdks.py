"""Replies of the real SDKs over a real socket, taken apart: the same whether or not the server has separated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import ollama
import openai
import pytest

import asides
import asides.anthropic
import asides.ollama
import asides.openai
from asides.reading import Reading
from asides.reply import Reply
from tests.gateway import upstream as scripted
from tests.gateway.upstream import Upstream, upstream
from tests.sdk.clients import (
    CHAT,
    EACH,
    MODEL,
    SDKS,
    SEPARATES,
    USAGE,
    Sdk,
    anthropic_client,
    create_chat,
    openai_client,
    serve,
)
from tests.support import joined


def check(reply: Reply) -> None:
    assert reply.thinking == "Two and two."
    assert reply.text.strip() == "Let me see."
    # Some APIs have arguments as an object, so that their characters are the SDK's.
    assert [(call.name, json.loads(call.arguments), call.error) for call in reply.tool_calls] == [
        ("add", {"a": 2}, None)
    ]
    assert reply.model == MODEL
    assert reply.reason == "stop"
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 22)


@SEPARATES
@EACH
def test_one_stream_of_events_whoever_has_separated(server: Upstream, sdk: Sdk, separates: bool) -> None:
    serve(server, sdk.api, separates)

    def read(given: Any) -> tuple[list[asides.Event], Reply]:
        stream = sdk.module.split(given, seed=0)
        return list(stream), stream.reply

    events, reply = sdk.ask(server.url, True, read)
    check(reply)
    kinds = [event.kind for event in events if isinstance(event, asides.PartStart)]
    assert kinds == ["thinking", "text", "tool_call"]
    assert len([event for event in events if isinstance(event, asides.ThinkingDelta)]) > 1, "it does not stream"

    async def aread() -> tuple[list[asides.Event], Reply]:
        async with sdk.aclient(server.url) as client:
            stream = sdk.module.asplit(await sdk.create(client, True), seed=0)
            return [event async for event in stream], stream.reply

    serve(server, sdk.api, separates)
    again, reply = asyncio.run(aread())
    check(reply)
    assert joined(again) == joined(events)


@SEPARATES
@EACH
def test_a_whole_reply(server: Upstream, sdk: Sdk, separates: bool) -> None:
    serve(server, sdk.api, separates)
    response = sdk.ask(server.url, False, lambda response: response)
    check(sdk.module.read(response))
    check(sdk.module.read(response.model_dump(exclude_unset=True)))


@SEPARATES
def test_the_helpers_of_the_sdks_are_streams_too(server: Upstream, separates: bool) -> None:
    serve(server, "anthropic", separates)
    with anthropic_client(server.url) as client, client.messages.stream(**CHAT, max_tokens=99) as helper:
        stream = asides.anthropic.split(helper)
        assert list(stream)
        check(stream.reply)
    serve(server, "openai_responses", separates)
    with openai_client(server.url) as other, other.responses.stream(model=MODEL, input="2+2?") as events:
        found = asides.openai.split(events)
        assert list(found)
        check(found.reply)


def test_events_of_the_chat_helper_are_refused_with_a_way_out(server: Upstream) -> None:
    serve(server, "openai_chat", False)
    with (
        openai_client(server.url) as client,
        client.chat.completions.stream(**CHAT) as events,
        pytest.raises(asides.UsageError, match="give the `chunk` of its events"),
    ):
        list(asides.openai.split(events))
    serve(server, "openai_chat", False)
    with openai_client(server.url) as client, client.chat.completions.stream(**CHAT) as events:
        stream = asides.openai.split(event.chunk for event in events if event.type == "chunk")
        assert list(stream)
        assert stream.reply.thinking == "Two and two."


def test_two_replies_never_share_an_id(server: Upstream) -> None:
    ids = set()
    for _ in range(2):
        serve(server, "openai_chat", False)
        ids.add(SDKS["chat"].ask(server.url, False, asides.openai.read).tool_calls[0].id)
    assert len(ids) == 2


def test_several_choices(server: Upstream) -> None:
    server.forget()
    server.say(("<think>a</think>One.", "<think>b</think>Two."))
    with openai_client(server.url) as client:
        _check_choices(server, client)


def _check_choices(server: Upstream, client: openai.OpenAI) -> None:
    stream = asides.openai.split(client.chat.completions.create(**CHAT, n=2, stream=True, **USAGE))
    assert {choice for choice, _ in stream.choices()} == {0, 1}
    assert [(reply.thinking, reply.text) for reply in stream.replies] == [("a", "One."), ("b", "Two.")]
    assert all(reply.usage is not None and reply.reason == "stop" for reply in stream.replies)
    server.say(("<think>a</think>One.", "<think>b</think>Two."))
    whole = asides.openai.read_choices(client.chat.completions.create(**CHAT, n=2))
    assert [(reply.thinking, reply.text) for reply in whole] == [("a", "One."), ("b", "Two.")]


def test_completions_and_generate(server: Upstream) -> None:
    server.forget()
    server.say("<think>a</think>One.")
    with openai_client(server.url) as client:
        stream = asides.openai.split(client.completions.create(model=MODEL, prompt="1", stream=True))
        assert list(stream)
        assert (stream.reply.thinking, stream.reply.text) == ("a", "One.")
        assert asides.openai.read(client.completions.create(model=MODEL, prompt="1")).text == "One."
    with upstream("ollama", models=(MODEL,)) as other, ollama.Client(other.url) as local:
        other.say("<think>a</think>One.")
        generated = asides.ollama.split(local.generate(model=MODEL, prompt="1", stream=True))
        assert list(generated)
        assert (generated.reply.thinking, generated.reply.text) == ("a", "One.")


def test_a_connection_that_breaks_gives_what_was_held_before_the_error(server: Upstream) -> None:
    frame = b'data: {"id": "1", "model": "%b", "choices": [{"index": 0, "delta": {"content": "Four. <thi"}}]}\n\n'
    server.send(scripted.Reply([frame % MODEL.encode(), scripted.Reset()]), "/v1/chat/completions")
    texts: list[str] = []
    with openai_client(server.url) as client:
        stream = asides.openai.split(create_chat(client, True))
        with pytest.raises((openai.OpenAIError, httpx.HTTPError)):
            texts.extend(event.text for event in stream if isinstance(event, asides.TextDelta))
    assert "".join(texts) == "Four. <thi"
    assert stream.reply.text == "Four. <thi"
    assert stream.reply.termination == "cut"


def test_a_stream_without_its_end_is_a_reply_that_was_cut() -> None:
    chunk = {"model": MODEL, "choices": [{"index": 0, "delta": {"content": "<think>hm"}, "finish_reason": None}]}
    stream = asides.openai.split([chunk])
    assert isinstance(list(stream)[-1], asides.Notice | asides.PartEnd)
    assert (stream.reply.thinking, stream.reply.termination) == ("hm", "cut")


@pytest.mark.parametrize(
    "broken",
    [
        None,
        ["a"],
        {},
        {"choices": 5},
        {"choices": ["a"]},
        {"choices": [{"index": 0, "delta": 7}]},
        {"choices": [{"index": 0, "delta": {"content": 5}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": "a"}}]},
    ],
    ids=repr,
)
def test_a_broken_frame_is_a_notice(broken: Any) -> None:
    """What came before and what comes after is not lost, and nothing is silent."""
    frames: list[Any] = [
        {"model": MODEL, "choices": [{"index": 0, "delta": {"content": "<think>a</think>On"}}]},
        broken,
        {"choices": [{"index": 0, "delta": {"content": "e."}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
    ]
    stream = asides.openai.split(frames)
    codes = [event.code for event in stream if isinstance(event, asides.Notice)]
    assert codes == [notice.code for notice in stream.reply.notices] == ["unreadable_frame"]
    assert (stream.reply.thinking, stream.reply.text, stream.reply.termination) == ("a", "One.", "stop")
    with pytest.raises(asides.StrictError, match="has no shape that its API has"):
        list(asides.openai.split(frames, strict=True))


@pytest.mark.parametrize(
    ("first", "codes"),
    [
        ({}, ["unreadable_frame"]),
        (None, ["unreadable_frame"]),
        ([1], ["unreadable_frame"]),
        ({"heartbeat": 1}, ["unreadable_frame"]),
        ({"model": "Qwen/Qwen3-4B-Thinking-2507", "choices": [5]}, ["unreadable_frame"]),
        ({"object": "chat.completion.chunk", "choices": None}, ["unreadable_frame"]),
        ({"type": "ping"}, []),
        ({"choices": [], "prompt_filter_results": [{}]}, []),
    ],
    ids=repr,
)
def test_a_server_may_begin_with_anything(first: Any, codes: list[str]) -> None:
    """The reply comes all the same, and the model's name, which comes later, says where it begins."""
    thinker = "Qwen/Qwen3-4B-Thinking-2507"
    choice = {"index": 0, "delta": {"content": "hm</think>Four."}, "finish_reason": "stop"}
    stream = asides.openai.split([first, {"model": thinker, "choices": [choice]}])
    found = list(stream)
    assert [event.code for event in found if isinstance(event, asides.Notice)] == codes
    assert [event for event in found if isinstance(event, asides.Retyped)] == []
    assert (stream.reply.thinking, stream.reply.text) == ("hm", "Four.")
    if codes:
        with pytest.raises(asides.StrictError, match="has no shape that its API has"):
            list(asides.openai.split([first, {"model": thinker, "choices": [choice]}], strict=True))


def test_a_stream_of_which_nothing_can_be_read_is_refused() -> None:
    stream = asides.openai.split([{}, {"heartbeat": 1}])
    with pytest.raises(asides.UsageError, match="no chunk and no reply of an SDK"):
        list(stream)
    assert [notice.code for notice in stream.reply.notices] == ["unreadable_frame"] * 2


def test_a_frame_of_another_api_is_told() -> None:
    start = {"type": "message_start", "message": {"model": MODEL, "role": "assistant", "content": [], "usage": {}}}
    stream = asides.anthropic.split([start, chunk_of(0, "Four.", "stop")])
    assert [event.code for event in stream if isinstance(event, asides.Notice)] == ["unreadable_frame"]


def test_a_refusal_is_what_the_model_says() -> None:
    """OpenAI has it beside the content, where a program that shows the answer would not look."""
    deltas = [{"role": "assistant", "content": "", "refusal": None}, {"refusal": "I can"}, {"refusal": "not."}]
    frames: list[Any] = [{"model": "gpt-5", "choices": [{"index": 1, "delta": delta}]} for delta in deltas]
    stream = asides.openai.split([*frames, {"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}]}])
    assert "".join(event.text for event in stream if isinstance(event, asides.TextDelta)) == "I cannot."
    message = {"role": "assistant", "content": None, "refusal": "I cannot."}
    assert asides.openai.read({"choices": [{"message": message, "finish_reason": "stop"}]}).text == "I cannot."


def test_frames_that_say_nothing_are_not_broken() -> None:
    start = {"type": "message_start", "message": {"model": MODEL, "role": "assistant", "content": [], "usage": {}}}
    frames = [start, {"type": "ping"}, {"type": "newer_than_us", "data": 1}, {"type": "message_stop"}]
    assert not [event for event in asides.anthropic.split(frames) if isinstance(event, asides.Notice)]
    role = {"model": MODEL, "choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]}
    done = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    assert not [event for event in asides.openai.split([role, role, done]) if isinstance(event, asides.Notice)]


def test_what_a_server_says_of_a_failure_is_raised() -> None:
    with pytest.raises(asides.Error, match="the model is on fire"):
        list(asides.openai.split([{"error": {"message": "the model is on fire"}}]))
    with pytest.raises(asides.Error, match="the model is on fire"):
        asides.ollama.read({"error": "the model is on fire"})


def test_the_obvious_mistakes_are_refused_in_a_sentence() -> None:
    with pytest.raises(asides.UsageError, match=r"asides\.split reads text"):
        list(asides.openai.split(["<think>a</think>b"]))
    with pytest.raises(asides.UsageError, match="a reading says it all"):
        asides.openai.read({}, reading=Reading.of(MODEL), model=MODEL)
    with pytest.raises(asides.UsageError, match="it has no choices"):
        asides.openai.read({"id": "x"})
    assert asides.anthropic.read is asides.openai.read is asides.ollama.read, "what a reply is of, it says itself"


def test_the_models_name_says_how_it_is_read() -> None:
    """The server's word for it, unless the caller has a better one."""
    body = {
        "model": "Qwen/Qwen3-4B-Thinking-2507",
        "choices": [{"message": {"content": "hm"}, "finish_reason": "length"}],
    }
    assert asides.openai.read(body).thinking == "hm"
    assert asides.openai.read(body, model=MODEL).text == "hm"
    assert asides.openai.read(body, start="text").text == "hm"
    assert asides.openai.read(body, reading=Reading.of("Qwen/Qwen3-4B-Thinking-2507")).thinking == "hm"


def chunk_of(number: int, text: str, finish_reason: str | None = None) -> Any:
    return {"model": MODEL, "choices": [{"index": number, "delta": {"content": text}, "finish_reason": finish_reason}]}


def test_an_only_choice_may_have_any_number() -> None:
    """Where the server gives no choice the number 0, the lowest is the first."""
    stream = asides.openai.split([chunk_of(1, "<think>hm</think>"), chunk_of(1, "Four."), chunk_of(1, "", "stop")])
    assert "".join(event.text for event in stream if isinstance(event, asides.TextDelta)) == "Four."
    assert (stream.reply.thinking, stream.reply.text, stream.reply.reason) == ("hm", "Four.", "stop")
    assert stream.replies == (stream.reply,)
    response = {"choices": [{"index": 7, "message": {"content": "<think>hm</think>Four."}, "finish_reason": "stop"}]}
    assert asides.openai.read(response).text == "Four."
    assert len(asides.openai.read_choices(response)) == 1


def test_the_first_of_several_choices_may_speak_last() -> None:
    stream = asides.openai.split(
        [
            chunk_of(1, "one"),
            {"choices": "broken"},
            chunk_of(0, "zero"),
            chunk_of(1, "", "stop"),
            chunk_of(0, "", "stop"),
        ]
    )
    events = list(stream)
    assert "".join(event.text for event in events if isinstance(event, asides.TextDelta)) == "zero"
    assert [event.code for event in events if isinstance(event, asides.Notice)] == ["unreadable_frame"]
    assert [reply.text for reply in stream.replies] == ["zero", "one"]
    assert stream.reply.text == "zero"


def test_an_only_choice_with_a_number_of_its_own_in_a_stream_that_breaks_off() -> None:
    def broken() -> Iterator[Any]:
        yield chunk_of(1, "Four")
        raise ConnectionError("lost")

    async def later() -> AsyncIterator[Any]:
        for chunk in broken():
            yield chunk

    async def collect_later(found: list[Any]) -> None:
        async for event in asides.openai.asplit(later()):
            found.append(event)

    def collect(found: list[Any]) -> None:
        for event in asides.openai.split(broken()):
            found.append(event)

    seen: list[Any] = []
    with pytest.raises(ConnectionError):
        collect(seen)
    also: list[Any] = []
    with pytest.raises(ConnectionError):
        asyncio.run(collect_later(also))
    assert "".join(event.text for event in seen if isinstance(event, asides.TextDelta)) == "Four"
    assert also == seen


def test_nothing_at_all_is_a_reply_without_parts() -> None:
    stream = asides.openai.split([])
    assert list(stream) == []
    assert (stream.reply.parts, stream.reply.termination, len(stream.replies)) == ((), "cut", 1)
