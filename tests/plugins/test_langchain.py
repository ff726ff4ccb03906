"""The LangChain plug-in, with the real package: every way to call a model, streams cut anywhere, turns sent back.

The models inside are `Scripted`, which gives what a test tells it to, and LangChain's own models for OpenAI's and
DeepSeek's API against a server on a socket (`tests.client.upstream`).
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.client.upstream import Script, chat, serve, think
from tests.plugins.host import ROOT, check_examples, require_module
from tests.support import as_parse, characters, check_each, count_calls, cut, run
from tests.test_cases import ALL, Case, case_name

require_module("langchain_core")

from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.load import dumpd, dumps, load, loads
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    message_chunk_to_message,
)
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.tracers import BaseTracer
from langchain_core.utils.json import parse_partial_json
from pydantic import BaseModel, Field, SecretStr

import asides
from asides import Text, Thinking, ToolCall, UnknownFormatError
from asides.errors import UsageError
from asides.plugins import _hosts
from asides.plugins._langchain import unreadable_end
from asides.plugins.langchain import SplitChatModel, split

CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Rome", "days": [1, 2]}}</tool_call>'
REPLY = f"<think>First I think.</think>Let me look.<think>And again.</think>\n\nOne moment. {CALL}"
CUT_OFF = '<think>Hm.</think>Wait: <tool_call>{"name": "get_weather", "arguments": {"city": "Ro'
Piece = Any
"""A text or an `AIMessageChunk`."""


class Scripted(BaseChatModel):
    """Gives the pieces that it was made with, whole or one after another, and keeps what it was asked."""

    pieces: Sequence[Any]
    model_name: str = ""
    asked: list[list[BaseMessage]] = Field(default_factory=list)
    options: list[dict[str, Any]] = Field(default_factory=list)
    closed: list[str] = Field(default_factory=list)
    whole: Any = None
    """The whole reply, where it is not the pieces joined."""

    def _chunks(self) -> Iterator[ChatGenerationChunk]:
        for piece in self.pieces:
            message = AIMessageChunk(content=piece) if isinstance(piece, str) else piece.model_copy(deep=True)
            yield ChatGenerationChunk(message=message)

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.asked.append(messages)
        self.options.append({"stop": stop, **kwargs})
        found = self.whole
        if found is None:
            chunks = [chunk.message for chunk in self._chunks()]
            found = message_chunk_to_message(chunks[0] + chunks[1:]) if len(chunks) > 1 else chunks[0]
        return ChatResult(generations=[ChatGeneration(message=message_chunk_to_message(found))])

    def _stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        self.asked.append(messages)
        self.options.append({"stop": stop, **kwargs})
        try:
            yield from self._chunks()
        finally:
            self.closed.append("stream")

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        self.asked.append(messages)
        try:
            for chunk in self._chunks():
                await asyncio.sleep(0)
                yield chunk
        finally:
            self.closed.append("astream")

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """As models of OpenAI-compatible servers do."""
        from langchain_core.utils.function_calling import convert_to_openai_tool

        return self.bind(tools=[convert_to_openai_tool(each) for each in tools], **kwargs)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name}


@tool
def get_weather(city: str, days: list[int] | None = None) -> str:
    """The weather."""
    return f"rain in {city}"


def scripted(*pieces: Piece, **fields: Any) -> Scripted:
    return Scripted(pieces=pieces, **fields)


def added(chunks: Sequence[Any]) -> AIMessageChunk:
    """Chunks added one by one, as a user does."""
    found = chunks[0]
    for chunk in chunks[1:]:
        found += chunk
    assert isinstance(found, AIMessageChunk)
    return found


def streamed(pieces: Sequence[Piece], format: str = "auto", **options: Any) -> AIMessage:
    """The message that a stream adds up to."""
    chunks = list(split(scripted(*pieces), format, seed=1, **options).stream("?"))
    message = message_chunk_to_message(chunks[0] + chunks[1:])
    assert isinstance(message, AIMessage)
    return message


def invoked(text: str, format: str = "auto", **options: Any) -> AIMessage:
    return split(scripted(text), format, seed=1, **options).invoke("?")


def same(one: AIMessage, other: AIMessage) -> None:
    """Two messages are the same but for the id of the run that made them."""
    for name in ("content", "tool_calls", "invalid_tool_calls", "additional_kwargs", "usage_metadata"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.response_metadata == other.response_metadata
    assert one.content_blocks == other.content_blocks


def kinds(message: AIMessage) -> list[str]:
    return [block["type"] for block in message.content_blocks]


# Whole replies and streams.


def test_a_reply_becomes_standard_blocks_in_their_order() -> None:
    message = invoked(REPLY)
    assert [
        {name: value for name, value in block.items() if name not in ("index", "id")}
        for block in message.content_blocks
    ] == [
        {"type": "reasoning", "reasoning": "First I think."},
        {"type": "text", "text": "Let me look."},
        {"type": "reasoning", "reasoning": "And again."},
        {"type": "text", "text": "\n\nOne moment."},
        {"type": "tool_call", "name": "get_weather", "args": {"city": "Rome", "days": [1, 2]}},
    ]
    assert message.text == asides.parse(REPLY).text == "Let me look.\n\nOne moment."
    [call] = message.tool_calls
    assert call["args"] == {"city": "Rome", "days": [1, 2]}
    assert message.content_blocks[-1] == {name: call[name] for name in ("type", "name", "args", "id")}
    assert message.response_metadata["asides"]["markers"] == ["<think>", "</think>"]


def test_a_stream_adds_up_to_the_same_message_however_it_is_cut() -> None:
    whole = invoked(REPLY, "qwen3")
    ways = [characters(REPLY), (REPLY,), *(cut(REPLY, [place]) for place in range(1, len(REPLY)))]
    randomness = random.Random(5)
    ways += [cut(REPLY, randomness.sample(range(len(REPLY)), 12)) for _ in range(20)]
    check_each(lambda way: same(streamed(way, "qwen3"), whole), ways)
    chunks = list(split(scripted(*REPLY), "qwen3", seed=1).stream("?"))
    same(message_chunk_to_message(added(chunks)), whole)  # type: ignore[arg-type]


def test_a_stream_flows() -> None:
    chunks = list(split(scripted(*REPLY), "qwen3").stream("?"))
    thoughts = [
        block["reasoning"] for chunk in chunks for block in chunk.content_blocks if block["type"] == "reasoning"
    ]
    assert "".join(thoughts) == "First I think.And again."
    assert len(thoughts) > 20
    arguments = [piece["args"] for chunk in chunks for piece in chunk.tool_call_chunks]
    assert "".join(filter(None, arguments)) == '{"city": "Rome", "days": [1, 2]}'
    assert len(arguments) > 20
    seen = [block for chunk in chunks for block in chunk.content_blocks if block["type"] == "tool_call_chunk"]
    assert [block["args"] for block in seen] == arguments  # the blocks of each chunk have them too


def test_text_without_thinking_comes_back_untouched() -> None:
    text = "  Two < three,\n\n`<think>` is a tag. "
    assert invoked(text).text == text
    assert streamed(characters(text)).text == text
    assert kinds(invoked(text)) == ["text"]
    assert (split(scripted(text)) | StrOutputParser()).invoke("?") == text
    assert invoked("").content == []
    assert streamed([""]).text == ""


@pytest.mark.parametrize("file", sorted({case.file for case in ALL}))
def test_every_recorded_case_arrives(file: str) -> None:
    check_each(_check_case, [case for case in ALL if case.file == file], case_name)


def _check_case(case: Case) -> None:
    text = "".join(case.chunks)
    options = case.said.get("options", {})
    decided = as_parse(case.format, options)
    outcome = run(case.format, [text], seed=1, **decided)
    assert outcome.message is not None
    gaps = {event.index: event.gap for event in outcome.events if isinstance(event, asides.PartStart)}
    expected: list[dict[str, Any]] = []
    for index, part in enumerate(outcome.message.parts):
        if isinstance(part, Thinking):
            expected += [{"type": "reasoning", "reasoning": part.text}] if part.text else []
        elif isinstance(part, Text):
            expected += [{"type": "text", "text": gaps[index] + part.text}] if part.text else []
        else:
            expected.append(_expected_call(part))
    message = invoked(text, case.format, **options)
    found = [{name: value for name, value in block.items() if name != "index"} for block in message.content_blocks]
    assert found == expected
    assert message.text == outcome.message.text
    assert [call["id"] for call in message.tool_calls] == [
        call.id for call in outcome.message.tool_calls if call.error is None
    ]
    assert [notice["code"] for notice in message.response_metadata["asides"].get("notices", [])] == [
        notice.code for notice in outcome.message.notices
    ]
    way = case.chunks if len(case.chunks) > 1 else cut(text, random.Random(text).choices(range(len(text) + 1), k=4))
    pieces = streamed(way, case.format, **decided)
    if not message.invalid_tool_calls:
        same(pieces, message)
    assert pieces.tool_calls == message.tool_calls
    assert pieces.text == message.text
    assert [call["id"] for call in pieces.invalid_tool_calls] == [call["id"] for call in message.invalid_tool_calls]


def _expected_call(part: ToolCall) -> dict[str, Any]:
    if part.error is None:
        arguments = json.loads(part.arguments, strict=False)
        return {"type": "tool_call", "name": part.name, "args": arguments, "id": part.id}
    error = f"{part.error}: {part.error_message}" if part.error_message else part.error
    return {"type": "invalid_tool_call", "name": part.name, "args": part.raw, "id": part.id, "error": error}


def test_an_unclosed_thought_is_thinking_and_noted() -> None:
    for message in (invoked("<think>on and on"), streamed(characters("<think>on and on"))):
        assert [block["type"] for block in message.content_blocks] == ["reasoning"]
        assert message.text == ""
        assert [each["code"] for each in message.response_metadata["asides"]["notices"]] == ["unclosed_thinking"]


def test_a_lone_close_needs_a_start_in_a_stream() -> None:
    text = "Hm.</think>Yes."
    assert kinds(invoked(text)) == ["reasoning", "text"]
    assert kinds(streamed(characters(text), start="thinking")) == ["reasoning", "text"]
    assert kinds(streamed(characters(text), start="undecided")) == ["reasoning", "text"]
    assert "".join(block["text"] for block in streamed(characters(text)).content_blocks) == "Hm.\n\nYes."  # type: ignore[typeddict-item]
    assert streamed(characters(text)).response_metadata["asides"]["retyped_characters"] == len("Hm.")


def test_the_name_of_the_model_chooses_the_format() -> None:
    text = "Hm.</think>Yes."
    model = split(scripted(*text, model_name="Qwen/Qwen3-4B-Thinking-2507"))
    assert added(list(model.stream("?"))).text == "Yes."
    bound = split(scripted(*text)).bind(model="Qwen/Qwen3-4B-Thinking-2507")
    assert added(list(bound.stream("?"))).text == "Yes."


def test_a_long_reply_costs_in_proportion_to_its_length() -> None:
    def cost(size: int) -> int:
        text = "<think>" + "why " * size + "</think>" + "so " * size
        model = split(scripted(*re.findall(".{1,40}", text)), "qwen3")
        return count_calls(lambda: list(model.stream("?")))

    assert cost(8000) < 5.5 * cost(2000)


# Calls.


def test_a_broken_call_may_never_be_run() -> None:
    whole = invoked(CUT_OFF)
    assert whole.tool_calls == []
    [call] = whole.invalid_tool_calls
    assert call["args"] == CUT_OFF[CUT_OFF.index("<tool_call>") :]
    assert (call["name"], call["error"]) == ("get_weather", "incomplete: the output ended before the call did")
    assert kinds(whole) == ["reasoning", "text", "invalid_tool_call"]
    merged = streamed(characters(CUT_OFF))
    assert merged.tool_calls == []
    assert [each["id"] for each in merged.invalid_tool_calls] == [call["id"]]
    block: Any = merged.content_blocks[-1]
    assert (block["error"], block["extras"]["raw"]) == (call["error"], call["args"])


def test_what_ends_a_broken_call_is_read_by_nobody_as_an_object() -> None:
    whole = '{"a\\\\": "x\\"}]", "b": [{"c": [1, "]"]}, "\\\\"], "d": {}}'
    for size in range(len(whole) + 1):
        arguments = whole[:size]
        assert not isinstance(parse_partial_json(arguments + unreadable_end(arguments)), dict), arguments
    for arguments in ('{"a": 1}}', '{"a": ]', "[", '"', "nonsense", '{"a": "\\'):
        assert unreadable_end(arguments) == "" or len(unreadable_end(arguments)) <= 3
        try:
            found = parse_partial_json(arguments + unreadable_end(arguments))
        except ValueError:
            continue
        assert not isinstance(found, dict)


def test_an_invoke_that_is_streamed_inside_keeps_the_error() -> None:
    class Listener(BaseCallbackHandler):
        def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
            tokens.append(token)

    tokens: list[Any] = []

    model = split(scripted(*CUT_OFF), seed=1)
    expected = split(scripted(CUT_OFF), seed=1).invoke("?")
    message = model.invoke("?", stream=True, config={"callbacks": [Listener()]})
    same(message, expected)
    assert len(tokens) > 20
    same(asyncio.run(model.ainvoke("?", stream=True)), expected)


def test_calls_of_two_replies_have_different_ids() -> None:
    model = split(scripted(CALL))
    ids = {model.invoke("?").tool_calls[0]["id"] for _ in range(3)}
    assert len(ids) == 3


def test_an_id_that_the_model_wrote_is_kept() -> None:
    call = "<|tool_call_begin|>functions.get_weather:3<|tool_call_argument_begin|>{}<|tool_call_end|>"
    text = f"<|tool_calls_section_begin|>{call}<|tool_calls_section_end|>"
    assert invoked(text, "kimi_k2").tool_calls[0]["id"] == "functions.get_weather:3"
    assert streamed(characters(text), "kimi_k2").tool_calls[0]["id"] == "functions.get_weather:3"


def test_an_id_that_stands_twice_is_that_of_one_call_only() -> None:
    merged = streamed([native("f", '{"a": 1', "c", 0), native("f", '{"a": 2}', "c", 1), native("f", "{}", "c", 2)])
    assert [call["id"] for call in merged.tool_calls] == ["c_1", "c_2"]
    assert [call["id"] for call in merged.invalid_tool_calls] == ["c"]
    assert kinds(merged) == ["tool_call_chunk", "tool_call", "tool_call"]


def test_a_request_that_allows_no_calls_has_them_as_text() -> None:
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    model = split(scripted(call), "qwen3").bind(tool_choice="none")
    for message in (model.invoke("?"), added(list(model.stream("?")))):
        assert (message.text, message.tool_calls) == (call, [])


def test_bound_tools_give_types_to_arguments() -> None:
    parameters = "<parameter=city>\n12\n</parameter>\n<parameter=days>\n[1]\n</parameter>"
    text = f"<tool_call>\n<function=get_weather>\n{parameters}\n</function>\n</tool_call>"
    inner = scripted(*text)
    model = split(inner, "qwen3_coder").bind_tools([get_weather], tool_choice="any")
    for message in (model.invoke("?"), added(list(model.stream("?")))):
        assert message.tool_calls[0]["args"] == {"city": "12", "days": [1]}
    assert [each["tool_choice"] for each in inner.options] == ["any", "any"]
    assert inner.options[0]["tools"][0]["function"]["name"] == "get_weather"


# What a server has split off.


def native(name: str | None, args: str | None, id: str | None, index: int | None) -> AIMessageChunk:
    return AIMessageChunk(content="", tool_call_chunks=[{"name": name, "args": args, "id": id, "index": index}])


def field(text: str, content: str = "") -> AIMessageChunk:
    return AIMessageChunk(content=content, additional_kwargs={"reasoning_content": text})


def test_reasoning_content_and_native_calls_go_through() -> None:
    pieces = [field("Let "), field("me see."), AIMessageChunk(content="Yes"), AIMessageChunk(content=": <think> it is")]
    pieces += [native("get_weather", "", "c1", 0), native(None, '{"city": "Ro', None, 0), native(None, 'me"}', None, 0)]
    pieces += [native("get_weather", "{}", "c2", 1)]
    merged = streamed(pieces)
    assert [{name: value for name, value in block.items() if name != "index"} for block in merged.content_blocks] == [
        {"type": "reasoning", "reasoning": "Let me see."},
        {"type": "text", "text": "Yes: <think> it is"},
        {"type": "tool_call", "name": "get_weather", "args": {"city": "Rome"}, "id": "c1"},
        {"type": "tool_call", "name": "get_weather", "args": {}, "id": "c2"},
    ]
    assert merged.additional_kwargs == {}
    whole = AIMessage(
        content="Yes: <think> it is",
        additional_kwargs={"reasoning_content": "Let me see."},
        tool_calls=[
            {"name": "get_weather", "args": {"city": "Rome"}, "id": "c1"},
            {"name": "get_weather", "args": {}, "id": "c2"},
        ],
    )
    same(split(scripted("", whole=whole), seed=1).invoke("?"), merged)


def test_text_behind_a_native_call_is_the_answer() -> None:
    pieces = ["Hm.</think>", "Look:", native("get_weather", "{}", "c1", 0), "Done", "."]
    assert kinds(streamed(pieces, start="thinking")) == ["reasoning", "text", "tool_call", "text"]
    assert kinds(streamed(pieces[2:], "deepseek_r1")) == ["tool_call", "text"]


def test_a_native_call_that_was_cut_off_is_broken() -> None:
    end = AIMessageChunk(content="", response_metadata={"finish_reason": "length"})
    merged = streamed([native("get_weather", '{"city": "Ro', "c1", 0), end])
    assert merged.tool_calls == []
    assert merged.invalid_tool_calls[0]["id"] == "c1"


def test_blocks_of_other_providers() -> None:
    content: list[Any] = [
        {"type": "thinking", "thinking": "One.", "signature": "sig"},
        {"type": "reasoning", "reasoning": "Two."},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Three."}]},
        {"type": "text", "text": "Four. ", "annotations": [{"type": "citation", "url": "u"}]},
        "Five.",
        {"type": "image", "url": "http://127.0.0.1/i.png", "index": 7},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {}},
    ]
    whole = AIMessage(content=content, tool_calls=[{"name": "get_weather", "args": {}, "id": "c1"}])
    message = split(scripted("", whole=whole)).invoke("?")
    assert kinds(message) == [
        "reasoning",
        "reasoning",
        "reasoning",
        "text",
        "non_standard",
        "image",
        "non_standard",
        "tool_call",
    ]
    assert [block["reasoning"] for block in message.content_blocks if block["type"] == "reasoning"] == [
        "One.",
        "Two.",
        "Three.",
    ]
    assert message.content[0]["extras"] == {"signature": "sig"}  # type: ignore[index]
    assert message.text == "Four. Five."
    assert [call["id"] for call in message.tool_calls] == ["c1"]
    assert sent_back(message, "drop").content == [
        {"type": "text", "text": "Four. Five."},
        {"type": "image", "url": "http://127.0.0.1/i.png"},
        {"type": "redacted_thinking", "data": "x"},
    ]


def test_blocks_of_a_stream_are_joined_by_their_index() -> None:
    pieces = [
        AIMessageChunk(content=[{"type": "reasoning", "reasoning": text, "index": index}])
        for text, index in (("On", 0), ("e.", 0), ("Two.", 1))
    ]
    pieces += [AIMessageChunk(content=[{"type": "text", "text": text, "index": 2}]) for text in ("Fi", "ve.")]
    merged = streamed(pieces)
    assert [block["reasoning"] for block in merged.content_blocks if block["type"] == "reasoning"] == ["One.", "Two."]
    assert merged.text == "Five."
    signed = [*pieces[:2], AIMessageChunk(content=[{"type": "thinking", "thinking": "", "signature": "s", "index": 0}])]
    assert streamed(signed).content == [
        {"type": "reasoning", "index": 0, "reasoning": "One.", "extras": {"signature": "s"}}
    ]
    unnumbered = [AIMessageChunk(content=[{"type": "reasoning", "reasoning": text}]) for text in ("On", "e.")]
    assert kinds(streamed(unnumbered)) == ["reasoning"]


def test_a_signed_thought_without_text_is_kept_in_a_stream() -> None:
    """Providers send some thoughts as their signature alone, which has to go back."""
    block = {"type": "thinking", "thinking": "", "signature": "s", "index": 0}
    answer = AIMessageChunk(content=[{"type": "text", "text": "Yes.", "index": 1}])
    thought = AIMessageChunk(content=[{"type": "thinking", "thinking": "Hm.", "index": 0}])
    last = AIMessageChunk(content=[{**block, "index": 2}])
    unnumbered = AIMessageChunk(content=[{name: value for name, value in block.items() if name != "index"}])
    sent = {"type": "thinking", "thinking": "", "signature": "s"}
    for before in ([AIMessageChunk(content=[block])], [unnumbered]):
        assert sent_back(streamed([*before, answer]), "drop").content == [sent, {"type": "text", "text": "Yes."}]
    for pieces in ([thought, last, answer], [thought, answer, last]):
        message = streamed(pieces)
        assert sorted(kinds(message)) == ["non_standard", "reasoning", "text"]
        assert sent in sent_back(message, "drop").content


def test_thinking_in_a_field_and_again_in_the_text_is_there_once() -> None:
    whole = AIMessage(content="<think>Hm.</think>Yes.", additional_kwargs={"reasoning_content": "Hm."})
    message = split(scripted("", whole=whole)).invoke("?")
    assert kinds(message) == ["reasoning", "text"]
    assert message.text == "Yes."


def test_usage_and_metadata_go_through() -> None:
    usage: Any = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}
    last = AIMessageChunk(
        content="", usage_metadata=usage, response_metadata={"model_name": "m", "finish_reason": "stop"}
    )
    merged = streamed([*REPLY, last])
    assert merged.usage_metadata == usage  # without a share of thinking that nobody counted
    assert merged.response_metadata["model_name"] == "m"
    whole = AIMessage(
        content=REPLY,
        id="reply-1",
        usage_metadata={**usage, "output_token_details": {"reasoning": 2}},
        response_metadata={"finish_reason": "stop"},
        additional_kwargs={"refusal": None},
    )
    message = split(scripted("", whole=whole)).invoke("?")
    assert message.usage_metadata == whole.usage_metadata
    assert (message.id, message.additional_kwargs) == ("reply-1", {"refusal": None})
    assert message.response_metadata["finish_reason"] == "stop"


# Every way to call it.


def test_the_asynchronous_twins() -> None:
    whole = invoked(REPLY, "qwen3")

    async def ask() -> tuple[AIMessage, list[Any]]:
        model = split(scripted(*REPLY), "qwen3", seed=1)
        return await model.ainvoke("?"), [chunk async for chunk in model.astream("?")]

    message, chunks = asyncio.run(ask())
    same(message, whole)
    same(message_chunk_to_message(added(chunks)), whole)  # type: ignore[arg-type]


def test_batches() -> None:
    model = split(scripted(REPLY), seed=1)
    assert [message.text for message in model.batch(["a", "b"])] == ["Let me look.\n\nOne moment."] * 2
    assert len(asyncio.run(model.abatch(["a", "b"]))) == 2


def test_events_of_the_newest_version() -> None:
    stream = split(scripted(*REPLY), "qwen3", seed=1).stream_events("?", version="v3")
    thoughts = "".join(stream.reasoning)
    message = stream.output
    assert thoughts == "First I think.And again."
    assert message.text == "Let me look.\n\nOne moment."
    assert kinds(message) == kinds(invoked(REPLY, "qwen3"))
    assert message.tool_calls[0]["args"] == {"city": "Rome", "days": [1, 2]}
    broken = split(scripted(*CUT_OFF), seed=1).stream_events("?", version="v3").output
    assert broken.tool_calls == []
    assert broken.invalid_tool_calls[0]["name"] == "get_weather"


def test_stop_and_options_reach_the_model() -> None:
    inner = scripted("x")
    model = split(inner)
    model.invoke("?", stop=["END"], temperature=0.5)
    model.bind(stop=["E"]).invoke("?")
    list(model.stream("?", stop=["F"], top_k=3))
    assert inner.options == [{"stop": ["END"], "temperature": 0.5}, {"stop": ["E"]}, {"stop": ["F"], "top_k": 3}]


def test_one_request_is_one_run_and_nobody_hears_the_raw_text() -> None:
    class Tracer(BaseTracer):
        def _persist_run(self, run: Any) -> None:
            runs.append(run)

    class Listener(BaseCallbackHandler):
        def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
            heard.append(json.dumps(token))

    runs: list[Any] = []
    heard: list[str] = []
    model = split(GenericFakeChatModel(messages=iter([REPLY, REPLY]), callbacks=[Listener()], tags=["t"]))
    list(model.stream("?", config={"callbacks": [Tracer()]}))
    model.invoke("?", config={"callbacks": [Tracer()]})
    assert [(len(run.child_runs), run.tags) for run in runs] == [(0, ["t"])] * 2
    assert heard
    assert not [token for token in heard if "think>" in token or "tool_call>" in token]
    assert runs[0].extra["invocation_params"]["_type"] == "generic-fake-chat-model"
    assert runs[0].extra["invocation_params"]["asides"]["format"] == "auto"


def test_a_cache_holds_split_replies_and_knows_the_choices() -> None:
    cache = InMemoryCache()
    inner = scripted(REPLY, cache=cache, model_name="m")
    model = split(inner)
    first = model.invoke("?")
    assert model.invoke("?").content == first.content
    assert len(inner.asked) == 1
    assert split(inner, calls=False).invoke("?").tool_calls == []
    assert inner.invoke("?").content == REPLY  # the model itself has entries of its own
    assert len(inner.asked) == 3
    other = split(scripted("Other.", cache=cache, model_name="n"))
    assert other.invoke("?").text == "Other."


def test_a_rate_limiter_is_asked_once() -> None:
    limiter = InMemoryRateLimiter(requests_per_second=1000, max_bucket_size=1)
    acquired: list[bool] = []
    real = limiter.acquire
    limiter.acquire = lambda *, blocking=True: acquired.append(blocking) or real(blocking=blocking)  # type: ignore[method-assign, func-returns-value]
    split(scripted("x", rate_limiter=limiter)).invoke("?")
    assert len(acquired) == 1


def test_streaming_is_off_where_the_model_has_it_off() -> None:
    for inner in (scripted(*REPLY, disable_streaming=True), OnlyWhole(pieces=REPLY)):
        [message] = split(inner, seed=1).stream("?")
        same(message, invoked(REPLY))
        assert inner.closed == []


class OnlyWhole(Scripted):
    """A model without streaming."""

    _stream = BaseChatModel._stream  # type: ignore[assignment]
    _astream = BaseChatModel._astream  # type: ignore[assignment]


def test_a_stream_that_is_left_early_is_closed_at_once() -> None:
    inner = scripted(*REPLY)
    stream = split(inner).stream("?")
    next(stream)
    assert inner.closed == []
    stream.close()  # type: ignore[attr-defined]
    assert inner.closed == ["stream"]

    async def leave() -> list[str]:
        inner = scripted(*REPLY)
        async for _ in (stream := split(inner).astream("?")):
            break
        await stream.aclose()  # type: ignore[attr-defined]
        gc.collect()
        await asyncio.sleep(0.01)  # LangChain leaves what it loops over to the event loop's own clean-up
        return inner.closed

    assert asyncio.run(leave()) == ["astream"]


def test_strict_raises_and_closes() -> None:
    inner = scripted(*"<think>a</think>b</think>c")
    model = split(inner, strict=True)
    with pytest.raises(asides.StrictError):
        list(model.stream("?"))
    assert inner.closed == ["stream"]
    with pytest.raises(asides.StrictError):
        model.invoke("?")


def test_what_is_held_back_comes_before_an_error() -> None:
    class Failing(Scripted):
        def _chunks(self) -> Iterator[ChatGenerationChunk]:
            yield from super()._chunks()
            raise ConnectionError("gone")

    async def ask() -> None:
        async for chunk in split(Failing(pieces=["Yes <thi"])).astream("?"):
            seen.append(chunk.text)

    seen: list[str] = []
    with pytest.raises(ConnectionError):
        seen.extend(chunk.text for chunk in split(Failing(pieces=["Yes <thi"])).stream("?"))
    with pytest.raises(ConnectionError):
        asyncio.run(ask())
    assert "".join(seen) == "Yes <thi" * 2


def test_a_stream_that_fails_at_once_gives_nothing_before_the_error() -> None:
    """LangChain asks another model only where the first chunk is the error."""

    class Failing(Scripted):
        def _chunks(self) -> Iterator[ChatGenerationChunk]:
            raise ConnectionError("down")

    def models() -> Any:
        return split(Failing(pieces=[])).with_fallbacks([split(scripted(*REPLY), "qwen3")])

    async def ask() -> str:
        return "".join([chunk.text async for chunk in models().astream("?")])

    assert "".join(chunk.text for chunk in models().stream("?")) == "Let me look.\n\nOne moment."
    assert asyncio.run(ask()) == "Let me look.\n\nOne moment."


def test_choices_that_cannot_be_made() -> None:
    with pytest.raises(UnknownFormatError, match="qwen3"):
        split(scripted("x"), "qwen33")
    with pytest.raises(UsageError, match="mentions"):
        split(scripted("x"), mentions="sometimes")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="ChatModelBinding"):
        split(scripted("x").bind(stop=["x"]))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'field'"):
        split(scripted("x"), "harmony", earlier_thinking="text")
    with pytest.raises(ValueError, match="earlier_thinking"):
        split(scripted("x"), earlier_thinking="keep")  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError):
        split(GenericFakeChatModel(messages=iter(["x"]))).bind_tools([get_weather])


def test_structured_output() -> None:
    class Weather(BaseModel):
        """The weather."""

        city: str
        days: list[int]

    text = REPLY.replace("get_weather", "Weather")
    model = split(scripted(text)).with_structured_output(Weather)
    assert model.invoke("?") == Weather(city="Rome", days=[1, 2])
    both: Any = split(scripted(text)).with_structured_output(Weather, include_raw=True).invoke("?")
    assert both["parsed"] == Weather(city="Rome", days=[1, 2])
    assert kinds(both["raw"])[0] == "reasoning"


def test_what_is_no_model_any_more_is_refused() -> None:
    class Odd(Scripted):
        def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
            return RunnableLambda(lambda _: AIMessage("raw"))

    with pytest.raises(UsageError, match="RunnableLambda of Odd"):
        split(Odd(pieces=["x"])).bind_tools([get_weather])


def test_tokens_are_counted_by_the_model_inside() -> None:
    inner = scripted("x", custom_get_token_ids=lambda text: list(range(len(text))))
    model = split(inner)
    assert model.get_num_tokens("four") == 4
    long = split(scripted("<think>" + "x" * 500 + "</think>Yes.")).invoke("?")
    assert model.get_num_tokens_from_messages([long]) < 100


# Turns sent back.


def sent_back(message: AIMessage, choice: Any, *more: BaseMessage, format: str = "auto") -> AIMessage:
    """What the wrapped model gets for a message of an earlier turn."""
    inner = scripted("x")
    split(inner, format, earlier_thinking=choice).invoke([HumanMessage("?"), message, *more])
    found = inner.asked[0][1]
    assert isinstance(found, AIMessage)
    return found


@pytest.mark.parametrize("read", [invoked, lambda text: streamed(characters(text))])
def test_earlier_thinking_is_dropped_or_sent_back(read: Any) -> None:
    message = read(REPLY)
    before = message.model_copy(deep=True)
    dropped = sent_back(message, "drop")
    assert dropped.content == "Let me look.\n\nOne moment."
    assert dropped.tool_calls == message.tool_calls
    assert dropped.response_metadata == {}
    assert "reasoning_content" not in dropped.additional_kwargs
    in_field = sent_back(message, "field")
    assert in_field.content == dropped.content
    assert in_field.additional_kwargs["reasoning_content"] == "First I think.\n\nAnd again."
    in_text = sent_back(message, "text")
    assert in_text.text.startswith("<think>\nFirst I think.\n</think>\n\nLet me look.<think>\nAnd again.\n</think>")
    again = invoked(in_text.text)
    assert [block["reasoning"] for block in again.content_blocks if block["type"] == "reasoning"] == [
        "First I think.",
        "And again.",
    ]
    assert again.text == message.text
    assert message == before  # the caller's message is left alone


def test_thinking_is_sent_back_between_the_markers_that_it_came_in() -> None:
    message = invoked("[THINK]Hm.[/THINK]Yes.")
    assert sent_back(message, "text").content == "[THINK]\nHm.\n[/THINK]\n\nYes."
    other = AIMessage("Yes.", additional_kwargs={"reasoning_content": "Hm."})
    assert sent_back(other, "text").content == "<think>\nHm.\n</think>\n\nYes."
    assert sent_back(other, "text", format="mistral").content == "[THINK]\nHm.\n[/THINK]\n\nYes."
    assert sent_back(other, "drop").additional_kwargs == {}
    assert sent_back(other, "field").additional_kwargs == {"reasoning_content": "Hm."}


def test_with_exact_whitespace_a_turn_goes_back_as_it_came() -> None:
    text = "<think>\nHm.\n</think>\n\nYes.\n"
    inner = scripted(text)
    model = split(inner, whitespace="exact", earlier_thinking="text")
    message = model.invoke("?")
    model.invoke(["?", message])
    assert inner.asked[1][1].content == text


def test_other_messages_and_blocks_are_sent_as_they_are() -> None:
    plain, human = AIMessage("Yes."), HumanMessage([{"type": "text", "text": "?"}])
    inner = scripted("x")
    split(inner).invoke([human, plain])
    assert inner.asked[0] == [human, plain]
    image = {"type": "image", "url": "http://127.0.0.1/i.png"}
    mixed = AIMessage([{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "Here:"}, image])
    assert sent_back(mixed, "drop").content == [{"type": "text", "text": "Here:"}, image]


@pytest.mark.parametrize("read", [invoked, lambda text: streamed(characters(text))])
def test_a_broken_call_is_sent_back_as_what_the_model_wrote(read: Any) -> None:
    message = read(CUT_OFF)
    [call] = message.invalid_tool_calls
    found = sent_back(message, "drop")
    assert found.content == "Wait:" + CUT_OFF[CUT_OFF.index("<tool_call>") :]
    assert found.invalid_tool_calls == []
    answered = sent_back(message, "drop", ToolMessage("not JSON", tool_call_id=call["id"]))
    assert answered.content == "Wait:"
    assert [each["id"] for each in answered.invalid_tool_calls] == [call["id"]]


@pytest.mark.filterwarnings("ignore:The function `loads` is in beta")
def test_messages_and_models_can_be_written_down() -> None:
    message = invoked(CUT_OFF)
    assert loads(dumps(message), allowed_objects="messages") == message
    written = dumpd(split(scripted("x"), "qwen3", mentions="marker"))
    assert written["kwargs"]["format"] == "qwen3"
    assert written["kwargs"]["options"] == {"mentions": "marker"}
    assert dumpd(split(scripted("x"), asides.Format.tags("<a>", "</a>", name="own")))["id"][-1] == "SplitChatModel"


# Real models over a socket.


def whole(text: str) -> Script:
    """A reply in one piece."""
    body: dict[str, Any] = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m"}
    body["choices"] = [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]
    body["usage"] = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
    return Script([json.dumps(body).encode()], type="application/json")


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
def test_chat_openai_over_a_socket() -> None:
    require_module("langchain_openai")
    from langchain_openai import ChatOpenAI

    with serve(chat(*REPLY), whole(REPLY), chat(*"<think>Rain.</think>Take a coat.")) as upstream:
        inner = ChatOpenAI(
            model="Qwen/Qwen3-8B", base_url=f"{upstream.url}/v1", api_key=SecretStr("k"), stream_usage=True
        )
        model = split(inner, seed=1)
        tools = model.bind_tools([get_weather])
        merged = added(list(tools.stream("?")))
        message = tools.invoke("?")
        assert message.usage_metadata == {
            "input_tokens": 3,
            "output_tokens": 5,
            "total_tokens": 8,
            "input_token_details": {},
            "output_token_details": {},
        }
        assert merged.content_blocks == message.content_blocks
        assert kinds(message) == ["reasoning", "text", "reasoning", "text", "tool_call"]
        assert message.response_metadata["model_provider"] == "openai"
        result = get_weather.invoke(message.tool_calls[0])
        last = added(list(tools.stream([HumanMessage("?"), merged, result])))
        assert last.text == "Take a coat."
        assert upstream.asked[0]["tools"][0]["function"]["name"] == "get_weather"
        turn = upstream.asked[2]["messages"][1]
        assert turn["content"] == "Let me look.\n\nOne moment."
        assert turn["tool_calls"][0]["id"] == upstream.asked[2]["messages"][2]["tool_call_id"]
        assert "k" not in dumps(model.wrapped).split('"')
        loaded = load(
            dumpd(model),
            secrets_map={"OPENAI_API_KEY": "k"},
            valid_namespaces=["asides"],
            allowed_objects=[SplitChatModel, ChatOpenAI],
        )
        assert isinstance(loaded, SplitChatModel)
        assert loaded.options == {"seed": 1}
        assert added(list(loaded.stream("?"))).text == "Take a coat."


def test_chat_openai_structured_output_in_json_mode() -> None:
    require_module("langchain_openai")
    from langchain_openai import ChatOpenAI

    class Weather(BaseModel):
        city: str

    with serve(whole('<think>{"city": "no"}</think>{"city": "Rome"}')) as upstream:
        inner = ChatOpenAI(model="m", base_url=f"{upstream.url}/v1", api_key=SecretStr("k"))
        model = split(inner).with_structured_output(Weather, method="json_mode")
        assert model.invoke("?") == Weather(city="Rome")
        assert upstream.asked[0]["response_format"] == {"type": "json_object"}


def test_a_stream_that_is_left_early_ends_the_request() -> None:
    require_module("langchain_openai")
    from langchain_openai import ChatOpenAI

    with serve(Script(chat(*"<think>abc", end=None), hangs=True)) as upstream:
        model = split(ChatOpenAI(model="m", base_url=f"{upstream.url}/v1", api_key=SecretStr("k")))
        stream = model.stream("?")
        while not next(stream).content:
            pass
        stream.close()  # type: ignore[attr-defined]
        assert upstream.left.wait(10)


def test_chat_openai_behind_the_gateway() -> None:
    require_module("langchain_openai")
    require_module("uvicorn")
    from langchain_openai import ChatOpenAI

    with serve(chat(*"<think>Rain.</think>Take a coat.<think>Or two?</think> One.")) as upstream:
        command = [sys.executable, "-m", "asides", "serve", "--port", "0", "--upstream", upstream.url]
        # None of this machine's settings.
        settings = {name: value for name, value in os.environ.items() if not name.startswith("ASIDES_")}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=settings, text=True
        ) as gateway:
            try:
                assert gateway.stdout is not None
                url = next(filter(None, (re.search(r"http://127\.0\.0\.1:\d+", line) for line in gateway.stdout)))[0]
                inner = ChatOpenAI(
                    model="Qwen/Qwen3-8B",
                    base_url=f"{url}/v1",
                    api_key=SecretStr("k"),
                    default_headers={"X-Asides-Reasoning": "tags"},
                )
                model = split(inner)
                for message in (model.invoke("?"), added(list(model.stream("?")))):
                    assert kinds(message) == ["reasoning", "text", "reasoning", "text"]
                    assert message.text == "Take a coat.\n\nOne."
            finally:
                gateway.terminate()


def test_a_model_that_keeps_reasoning_content() -> None:
    require_module("langchain_deepseek")
    from langchain_deepseek import ChatDeepSeek

    with serve(chat(think("Let "), think("me see."), "Ye", "s.")) as upstream:
        inner = ChatDeepSeek(model="m", base_url=f"{upstream.url}/v1", api_key=SecretStr("k"))
        message = added(list(split(inner).stream("?")))
        assert [block["type"] for block in message.content_blocks] == ["reasoning", "text"]
        assert message.content_blocks[0]["reasoning"] == "Let me see."  # type: ignore[typeddict-item]
        assert message.text == "Yes."


def test_an_agent_with_tools() -> None:
    require_module("langchain")
    from langchain.agents import create_agent

    class InTurns(Scripted):
        replies: list[str]

        def _chunks(self) -> Iterator[ChatGenerationChunk]:
            for piece in self.replies[len(self.asked) - 1]:
                yield ChatGenerationChunk(message=AIMessageChunk(content=piece))

    replies = [REPLY, "<think>Rain.</think>Take a coat."]
    agent = create_agent(split(InTurns(pieces=[], replies=replies)), tools=[get_weather])
    messages = agent.invoke({"messages": [HumanMessage("?")]})["messages"]
    assert [type(message).__name__ for message in messages] == ["HumanMessage", "AIMessage", "ToolMessage", "AIMessage"]
    assert messages[2].content == "rain in Rome"
    assert messages[-1].text == "Take a coat."
    inner = InTurns(pieces=[], replies=replies)
    agent = create_agent(split(inner), tools=[get_weather])
    tokens = [chunk for chunk, _ in agent.stream({"messages": [HumanMessage("?")]}, stream_mode="messages")]
    texts = [chunk.text for chunk in tokens if isinstance(chunk, AIMessageChunk)]
    assert "".join(texts) == "Let me look.\n\nOne moment.Take a coat."
    assert inner.asked[1][1].text == "Let me look.\n\nOne moment."


def test_the_page(tmp_path: Path) -> None:
    check_examples("langchain", tmp_path)
    page = (ROOT / "docs" / "plugins" / "langchain.md").read_text(encoding="utf-8")
    [tried] = re.findall(r"Tried with langchain-core (\d+\.\d+)", page.splitlines()[-1])
    assert tried == _hosts.LEAST["langchain-core"]
