"""Responses: the real SDK reads what we write, we read what it sends, and both ways agree."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import msgspec
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent

import asides
from asides import Text, Thinking
from asides.dialects import openai_chat as chat
from asides.dialects import openai_responses as responses
from asides.dialects._framing import SseReader
from asides.dialects._request import (
    CallPiece,
    ImagePiece,
    OtherPiece,
    Request,
    RequestError,
    RequestTurn,
    TextPiece,
    ThinkingOptions,
    ThinkingPiece,
    Tool,
    WriteOptions,
)
from asides.dialects.openai_responses import _ids as ids
from asides.events import PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from asides.families import Switch, get_format
from asides.reply._items import (
    Begin,
    CallChunk,
    Chunk,
    Ended,
    Failed,
    RawText,
    Reason,
    ReplyEvent,
    ReplyItem,
    ThinkingChunk,
    Usage,
)
from asides.reply._splitter import Splitter
from tests.dialects.replay import JSON, cut, serve
from tests.dialects.shapes import BY_NAME, DEATH, FAILING, WHOLE, Shape, expected, items, make_parser, told

CHOICES: tuple[Any, ...] = ("raw", "summary", "both")
SINGLE = [shape for shape in WHOLE if len(shape.raw) == 1]
TYPES = {
    get_args(event.model_fields["type"].annotation)[0]: event
    for event in get_args(get_args(ResponseStreamEvent)[0])
    if get_args(event.model_fields["type"].annotation)
}
"""The SDK's own types of events."""


def named(shape: Shape) -> str:
    return shape.name


def request(shape: Shape | None = None, **thinking: Any) -> Request:
    """A request as a client would send it for this shape."""
    thinking = {"show": shape.show if shape else True, **thinking}
    return Request(dialect="openai_responses", model="m", thinking=ThinkingOptions(**thinking))


def stream(found: Iterable[ReplyItem], asked: Request, **choices: Any) -> bytes:
    """A whole stream's bytes."""
    writer = responses.ReplyWriter(asked, **choices)
    return b"".join(map(writer.feed, found)) + writer.finish()


def events(body: bytes) -> list[dict[str, Any]]:
    """The events of a stream, numbered as they must be, each with its name twice."""
    reader = SseReader()
    frames = [*reader.feed(body), *reader.finish()]
    found = [json.loads(frame.data) for frame in frames]
    assert [event["type"] for event in found] == [frame.event for frame in frames]
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    return found


SDK = openai.OpenAI(base_url="http://127.0.0.1", api_key="none", max_retries=0)


def client(url: str) -> openai.OpenAI:
    """Making one takes long; a copy with another address does not."""
    return SDK.with_options(base_url=f"{url}/v1")


def ask(data: bytes, cuts: int | Sequence[int] | None) -> list[Any]:
    with serve(data, cuts=cuts) as server:
        return list(client(server.base_url).responses.create(model="m", input="Hello", stream=True))


def ask_whole(body: dict[str, Any], cuts: int | None = None) -> Response:
    with serve(msgspec.json.encode(body), headers=JSON, cuts=cuts) as server:
        return client(server.base_url).responses.create(model="m", input="Hello")


def without_ids(body: dict[str, Any]) -> dict[str, Any]:
    output = [{name: value for name, value in item.items() if name != "id"} for item in body["output"]]
    return {**body, "id": "", "output": output}


def deltas(found: list[Any]) -> list[dict[str, Any]]:
    """The items of a stream, put together from nothing but what was added and the deltas."""
    made: dict[int, dict[str, Any]] = {}
    for event in found:
        match event.type:
            case "response.output_item.added":
                assert event.output_index == len(made)
                made[event.output_index] = event.item.model_dump(exclude_unset=True)
            case "response.content_part.added":
                part = event.part.model_dump(exclude_unset=True)
                assert event.content_index == len(made[event.output_index]["content"])
                made[event.output_index]["content"].append(part)
            case "response.reasoning_summary_part.added":
                assert event.summary_index == len(made[event.output_index]["summary"])
                made[event.output_index]["summary"].append(event.part.model_dump(exclude_unset=True))
            case "response.output_text.delta" | "response.reasoning_text.delta":
                made[event.output_index]["content"][event.content_index]["text"] += event.delta
            case "response.reasoning_summary_text.delta":
                made[event.output_index]["summary"][event.summary_index]["text"] += event.delta
            case "response.function_call_arguments.delta":
                made[event.output_index]["arguments"] += event.delta
            case "response.output_item.done":
                made[event.output_index]["status"] = event.item.status
                if event.item.type == "reasoning":  # comes with no delta
                    made[event.output_index]["encrypted_content"] = event.item.encrypted_content
            case _:
                continue
        if hasattr(event, "item_id"):
            assert event.item_id == made[event.output_index]["id"]
    return list(made.values())


def wanted(shape: Shape, *, raw: bool = False, summary: bool = True) -> list[tuple[Any, ...]]:
    """The items that a shape must become."""
    found: list[tuple[Any, ...]] = []
    parts = expected(shape).parts
    for part in parts:
        cut_off = shape.reason != "stop" and part is parts[-1]
        status = "incomplete" if cut_off else "completed"
        if isinstance(part, Thinking):
            if shape.show:
                texts = ([part.text] if raw else None, [part.text] if summary else [])
                found.append(("reasoning", *texts, "completed" if part.complete else "incomplete"))
        elif isinstance(part, Text):
            found.append(("message", part.text, status))
        else:
            status = "completed" if part.error is None else "incomplete"
            found.append(("function_call", part.id, part.name, part.arguments, status))
    return found


def summed_up(output: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The items of a reply, in the same shape."""
    found: list[tuple[Any, ...]] = []
    for item in output:
        if item.type == "reasoning":
            content = None if item.content is None else [part.text for part in item.content]
            found.append((item.type, content, [part.text for part in item.summary], item.status))
        elif item.type == "message":
            found.append((item.type, "".join(part.text for part in item.content), item.status))
        else:
            found.append((item.type, item.call_id, item.name, item.arguments, item.status))
    return found


# What the SDK reads.


@pytest.mark.parametrize("cuts", [1, 7])
@pytest.mark.parametrize("shape", SINGLE, ids=named)
def test_the_sdk_reads_streams_and_whole_replies_alike(shape: Shape, cuts: int | None) -> None:
    """Streamed and whole are equal, deltas and last event are, and they say what the parser said."""
    asked = request(shape)
    found = ask(stream(items(shape), asked), cuts)
    last = found[-1]
    whole = ask_whole(responses.write_reply(items(shape, size=7), asked), cuts)
    assert without_ids(last.response.model_dump()) == without_ids(whole.model_dump())
    assert deltas(found) == [item.model_dump(exclude_unset=True) for item in last.response.output]
    assert last.type == ("response.completed" if shape.reason == "stop" else "response.incomplete")
    details = last.response.incomplete_details
    assert (details and details.reason) == {"length": "max_output_tokens"}.get(
        shape.reason, None if shape.reason == "stop" else shape.reason
    )
    if all(call.name for call in expected(shape).tool_calls):
        assert summed_up(whole.output) == wanted(shape)


@pytest.mark.parametrize("reasoning", [*CHOICES, None])
@pytest.mark.parametrize("summary", [None, "auto"])
@pytest.mark.parametrize("name", ["interleaved", "cut_in_thinking"])
def test_thinking_is_written_where_it_was_chosen(name: str, summary: str | None, reasoning: Any) -> None:
    """By default as a summary, whether the request asks for a summary or not: clients read it without asking."""
    shape = BY_NAME[name]
    asked = request(shape, summary=summary)
    chosen = {} if reasoning is None else {"reasoning": reasoning}
    found = ask(stream(items(shape), asked, **chosen), 5)
    expectation = wanted(shape, raw=reasoning in ("raw", "both"), summary=reasoning != "raw")
    assert summed_up(found[-1].response.output) == expectation
    assert deltas(found) == [item.model_dump(exclude_unset=True) for item in found[-1].response.output]
    whole = ask_whole(responses.write_reply(items(shape), asked, **chosen))
    assert summed_up(whole.output) == expectation
    dropped = responses.write_reply(items(shape), asked, reasoning="drop")
    assert "reasoning" not in [item["type"] for item in dropped["output"]]
    assert b"reasoning_" not in stream(items(shape), asked, reasoning="drop").replace(b"reasoning_tokens", b"")
    with pytest.raises(asides.UsageError):
        responses.ReplyWriter(asked, reasoning="loud")  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [shape for shape in SINGLE if shape.reason == "stop"], ids=named)
def test_the_sdks_own_accumulator_agrees(shape: Shape) -> None:
    """`responses.stream` checks ids and order, and puts deltas together by rules of its own."""
    asked = request(shape, summary="auto")
    with (
        serve(stream(items(shape), asked), cuts=11) as server,
        client(server.base_url).responses.stream(model="m", input="Hello") as found,
    ):
        snapshots = [event.snapshot for event in found if event.type == "response.output_text.delta"]
        final = found.get_final_response()
    whole = ask_whole(responses.write_reply(items(shape), asked))
    assert summed_up(final.output) == summed_up(whole.output)
    assert final.output_text == whole.output_text
    texts = [item.content[0].text for item in final.output if item.type == "message"]  # type: ignore[union-attr]
    assert set(texts) <= set(snapshots)


def test_the_asynchronous_sdk_reads_the_same() -> None:
    """The other client of the SDK has a reader of its own."""
    shape = BY_NAME["interleaved"]

    async def run(url: str) -> list[Any]:
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as sdk:
            found = await sdk.responses.create(model="m", input="Hello", stream=True)
            return [event async for event in found]

    with serve(stream(items(shape), request(shape)), cuts=3) as server:
        found = asyncio.run(run(server.base_url))
    assert summed_up(found[-1].response.output) == wanted(shape)


@pytest.mark.parametrize("shape", FAILING, ids=named)
def test_a_failure_reaches_the_client_behind_what_was_said(shape: Shape) -> None:
    """Held text first, then `response.failed`; the items that were open are incomplete."""
    found = ask(stream(items(shape), request(shape)), 3)
    assert found[0].type == "response.created"
    assert found[-1].type == "response.failed"
    response = found[-1].response
    assert response.status == "failed"
    assert response.error.message == (shape.failure or DEATH).message
    assert response.error.code == "server_error"
    said = [(item[0], *item[1:-1]) for item in summed_up(response.output)]
    assert said == [(item[0], *item[1:-1]) for item in wanted(shape)]
    assert all(item.status == "incomplete" for item in response.output[-1:])
    body = responses.write_reply(items(shape), request(shape))
    assert body["error"]["message"] == (shape.failure or DEATH).message


def test_a_reply_that_nobody_ends_has_failed() -> None:
    found = events(stream(items(BY_NAME["none"])[:-2], request()))
    assert found[-1]["type"] == "response.failed"
    assert found[-1]["response"]["output"][0]["content"][0]["text"] == BY_NAME["none"].raw[0]
    assert responses.write_reply([], request())["error"]["code"] == "upstream_ended"
    assert events(stream([], request()))[-1]["type"] == "response.failed"


def test_an_error_before_the_reply_is_the_sdks_error() -> None:
    failed = Failed("no such model", 404, "not_found_error", "model_not_found", "model")
    body = msgspec.json.encode(responses.write_error(failed))
    with serve(body, status=404, headers=JSON) as server, pytest.raises(openai.NotFoundError) as caught:
        client(server.base_url).responses.create(model="m", input="Hello")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    assert msgspec.structs.replace(responses.read_error(404, body), body=None, dialect="") == failed
    assert responses.write_error(responses.read_error(404, body)) == json.loads(body)


@pytest.mark.parametrize("body", [b"", b"<html>Bad Gateway</html>", b"[]", b"\xff", b'{"error": 3}', b'{"a": [1]}'])
def test_any_error_is_read(body: bytes) -> None:
    failed = responses.read_error(502, body)
    assert failed.message
    assert failed.status == 502


# What the events are.


@pytest.mark.parametrize("shape", [*SINGLE, *FAILING], ids=named)
def test_every_event_is_as_the_sdks_types_say(shape: Shape) -> None:
    """The SDK itself does not look, but clients in stricter languages do."""
    asked = request(shape, summary="auto", encrypted=True)
    for reasoning in CHOICES:
        for event in events(stream(items(shape), asked, reasoning=reasoning)):
            TYPES[event["type"]].model_validate(event)
    if shape.failure is None:
        Response.model_validate(responses.write_reply(items(shape), asked))


def test_the_sequence_of_events() -> None:
    """Thinking, a message and a call; no event is missing, and ids and indices agree."""
    shape = Shape("x", ('<think>A.</think>\n\nB.\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',))
    found = events(stream(items(shape, size=1000), request(shape, summary="auto"), reasoning="both"))
    assert [event["type"].removeprefix("response.") for event in found] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "reasoning_summary_part.added",
        "reasoning_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    output = found[-1]["response"]["output"]
    for kind in ("output_item.added", "output_item.done"):
        ids = [event["item"]["id"] for event in found if event["type"].endswith(kind)]
        assert ids == [item["id"] for item in output]
    assert [item["id"].partition("_")[0] for item in output] == ["rs", "msg", "fc"]
    for event in found:
        if "item_id" in event:
            assert event["item_id"] == output[event["output_index"]]["id"]
    assert output == [event["item"] for event in found if event["type"].endswith("item.done")]


def test_a_call_without_a_name_is_text_in_its_place() -> None:
    body = responses.write_reply(items(BY_NAME["nameless_call"]), request())
    assert [part["text"] for item in body["output"] for part in item["content"]] == [
        'Look:\n\n{"arguments": {"query": "Zürich"}}\nSo.'
    ]


def test_calls_that_grow_side_by_side() -> None:
    """An upstream that has read the calls itself may send their arguments in turns."""
    pieces: list[Chunk] = [
        Begin("chatcmpl-1", "m"),
        CallChunk(0, 0, "call_a", "f", '{"a"'),
        CallChunk(0, 1, "call_b", "g", ""),
        CallChunk(0, 0, arguments=": 1}"),
        CallChunk(0, 2, "call_c", "h", '{"c": '),
        Ended(0),
        Usage(1, 2),
    ]
    found = split(pieces)
    with (
        serve(stream(found, request()), cuts=7) as server,
        client(server.base_url).responses.stream(model="m", input="Hello") as streamed,
    ):
        final = streamed.get_final_response()
    assert summed_up(final.output) == [
        ("function_call", "call_a", "f", '{"a": 1}', "completed"),
        ("function_call", "call_b", "g", "{}", "completed"),
        ("function_call", "call_c", "h", '{"c": ', "incomplete"),
    ]
    assert re.fullmatch("resp_[0-9a-f]{32}", final.id)
    assert told(split(read_stream(stream(found, request()), 9))) == told(found)


def test_neighbouring_texts_share_a_message() -> None:
    body = responses.write_reply(items(Shape("x", ("<think>a</think>b\n</think>\nc",))), request())
    assert [item["type"] for item in body["output"]] == ["reasoning", "message"]
    assert body["output"][1]["content"][0]["text"] == "b\nc"


def test_the_first_of_several_choices_is_told() -> None:
    body = responses.write_reply(items(BY_NAME["two"]), request())
    assert [item["type"] for item in body["output"]] == ["reasoning", "message"]


def test_usage_has_every_number() -> None:
    usage = responses.write_reply(items(BY_NAME["none"]), request())["usage"]
    assert usage == {
        "input_tokens": 11,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 22,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 33,
    }
    usage = responses.write_reply(items(BY_NAME["hidden_only"]), request())["usage"]
    assert usage["output_tokens_details"] == {"reasoning_tokens": 22, "estimated": True}
    usage = responses.write_reply(items(BY_NAME["thinking"], usage=Usage(5, 9, 4, False, 2)), request())["usage"]
    assert usage["output_tokens_details"] == {"reasoning_tokens": 4}
    assert usage["input_tokens_details"]["cached_tokens"] == 2


def test_a_reply_tells_what_was_asked() -> None:
    asked = responses.read_request(
        {
            "model": "m",
            "instructions": "Be brief.",
            "input": "Hello",
            "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}],
            "tool_choice": {"type": "function", "name": "f"},
            "parallel_tool_calls": False,
            "max_output_tokens": 7,
            "temperature": 0.5,
            "metadata": {"a": "b"},
            "reasoning": {"effort": "low", "summary": "auto"},
            "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}},
        }
    )
    body = responses.write_reply(items(BY_NAME["none"]), asked)
    Response.model_validate(body)
    assert body["instructions"] == "Be brief."
    assert body["tools"][0]["name"] == "f"
    assert body["tool_choice"] == {"type": "function", "name": "f"}
    assert body["parallel_tool_calls"] is False
    assert (body["max_output_tokens"], body["temperature"], body["metadata"]) == (7, 0.5, {"a": "b"})
    assert body["reasoning"] == {"context": "all_turns", "effort": "low", "mode": "standard", "summary": "auto"}
    assert body["text"]["format"]["name"] == "x"


def test_line_separators_are_escaped() -> None:
    body = stream(items(BY_NAME["thinking"]), request())
    assert not any(character in body.decode() for character in "\x85\u2028\u2029")


def test_log_probabilities_stand_with_their_words() -> None:
    tokens = ({"token": "It", "logprob": -0.5}, {"token": " is", "logprob": -0.25, "bytes": [32, 105, 115]})
    found: list[ReplyItem] = [
        Begin("r", "m"),
        ReplyEvent(0, PartStart(0, "text")),
        ReplyEvent(0, TextDelta(0, "It is"), tokens),
    ]
    found += [ReplyEvent(0, PartEnd(0)), Ended(0), Usage(1, 2)]
    for event in events(stream(found, request())):
        TYPES[event["type"]].model_validate(event)
    last = ask(stream(found, request()), 3)[-1].response
    assert [token.logprob for token in last.output[0].content[0].logprobs] == [-0.5, -0.25]
    words = [piece for piece in read_stream(stream(found, request()), 9) if isinstance(piece, RawText)]
    assert [token["token"] for piece in words for token in piece.logprobs] == ["It", " is"]


# Thinking that comes back.


def test_encrypted_content_is_given_when_an_item_is_done_and_read_back() -> None:
    """Asked for or not, as OpenAI gives it; what an item is added with has none yet."""
    shape = BY_NAME["thinking"]
    thinking = expected(shape).thinking
    for reasoning in CHOICES:
        found = ask(stream(items(shape), request(), reasoning=reasoning), 4)
        added, done = (
            next(event.item for event in found if event.type == f"response.output_item.{end}")
            for end in ("added", "done")
        )
        assert added.encrypted_content is None
        assert done == found[-1].response.output[0]
        item = found[-1].response.output[0].model_dump(exclude_none=True)
        assert item["encrypted_content"].startswith("asides1:")
        assert thinking not in item["encrypted_content"]
        back = {"type": "reasoning", "id": item["id"], "summary": [], "encrypted_content": item["encrypted_content"]}
        turns = responses.read_request({"model": "m", "input": [{"role": "user", "content": "?"}, back]}).turns
        assert turns[1].pieces == (ThinkingPiece(thinking),)


@given(st.text())
def test_any_thinking_is_sealed_and_unsealed(thinking: str) -> None:
    assert responses.unseal(responses.seal(thinking)) == thinking


@pytest.mark.parametrize("content", ["", "gAAAA", "asides1:?", "asides1:/w==", None, 3])
def test_what_another_server_sealed_is_not_ours(content: Any) -> None:
    assert responses.unseal(content) is None


# Replies, read.


def split(pieces: Iterable[Chunk]) -> list[ReplyItem]:
    splitter = Splitter(get_format("qwen3"), make_parser())
    return [item for piece in pieces for item in splitter.feed(piece)] + splitter.finish()


def read_stream(body: bytes, size: int) -> list[Chunk]:
    reader = responses.ReplyReader()
    pieces = [piece for chunk in cut(body, size) for piece in reader.feed(chunk)]
    return pieces + reader.finish()


@pytest.mark.parametrize("reasoning", CHOICES)
@pytest.mark.parametrize("shape", SINGLE, ids=named)
def test_written_then_read(shape: Shape, reasoning: Any) -> None:
    """Law 6, for every shape: streamed and whole."""
    asked = request(shape, encrypted=True)
    found = items(shape)
    streamed = split(read_stream(stream(found, asked, reasoning=reasoning), 7))
    whole = split(responses.read_reply(responses.write_reply(found, asked, reasoning=reasoning)))
    assert told(streamed) == told(whole)
    if all(call.name for call in expected(shape).tool_calls):
        assert told(streamed) == told(found, show=shape.show)
    assert next(item for item in streamed if isinstance(item, Usage)).output_tokens == 22


@pytest.mark.parametrize("shape", SINGLE, ids=named)
def test_written_read_and_written_again(shape: Shape) -> None:
    """Within the dialect nothing changes, ids included."""
    asked = request(shape, encrypted=True, summary="auto")
    body = responses.write_reply(items(shape), asked)
    assert responses.write_reply(split(responses.read_reply(body)), asked) == body
    again = stream(split(read_stream(stream(items(shape), asked), 100)), asked)
    assert without_ids(events(again)[-1]["response"]) == without_ids(body)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_how_bytes_are_cut_does_not_matter(ending: bytes) -> None:
    """An event at a time, all at once, or anyhow, with any ending of lines."""
    shape = BY_NAME["interleaved"]
    body = stream(items(shape), request(shape))
    apart = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    sizes = [[body], apart, [b": hello\n\n", *apart], *(cut(body, size) for size in (1, 2, 3, 64, 500))]
    for chunks in sizes:
        reader = responses.ReplyReader()
        pieces = [piece for chunk in chunks for piece in reader.feed(chunk.replace(b"\n", ending))]
        assert told(split([*pieces, *reader.finish()])) == told(items(shape))


DELTAS: dict[str, Any] = {"thinking": ThinkingDelta, "text": TextDelta, "tool_call": ToolCallDelta}


@st.composite
def replies(draw: st.DrawFn) -> list[ReplyItem]:
    """Any reply whose words hold no markers."""
    words = st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"]), min_size=1).filter(str.strip)
    kinds = draw(st.lists(st.sampled_from(["thinking", "text", "tool_call"]), max_size=6))
    found: list[ReplyItem] = [Begin("resp_1", "m", 5)]
    before = ""
    for index, kind in enumerate(kinds):
        if kind == "text" and before == "text":
            kind = "tool_call"  # neighbouring texts share a message
        before = kind
        name = draw(st.from_regex(r"\A[a-z_]{1,9}\Z")) if kind == "tool_call" else ""
        found.append(ReplyEvent(0, PartStart(index, kind, "", name, f"call_{index}" if name else "")))  # type: ignore[arg-type]
        if kind == "tool_call":
            value = draw(st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(), max_size=3))
            text = json.dumps(value, ensure_ascii=draw(st.booleans()))
        else:
            text = draw(words).strip() or "x"
        for chunk in _chunks(text, draw(st.integers(1, 20))):
            found.append(ReplyEvent(0, DELTAS[kind](index, chunk)))
        found.append(ReplyEvent(0, PartEnd(index)))
    reasons: list[Reason] = ["stop", "length", "content_filter"]
    return [*found, Ended(0, draw(st.sampled_from(reasons))), Usage(draw(st.integers(0, 99)), 3, 1)]


def _chunks(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@given(replies(), st.integers(1, 60), st.sampled_from(CHOICES), st.booleans())
def test_any_reply_comes_back(found: list[ReplyItem], size: int, reasoning: Any, encrypted: bool) -> None:
    asked = request(encrypted=encrypted)
    streamed = split(read_stream(stream(found, asked, reasoning=reasoning), size))
    whole = split(responses.read_reply(responses.write_reply(found, asked, reasoning=reasoning)))
    assert told(streamed) == told(whole) == told(found)
    for read in (streamed, whole):
        # How the text ended is the splitter's to say, which has read some only if there is some.
        ends = [msgspec.structs.replace(item, termination="end") for item in read if isinstance(item, Ended)]
        assert ends == [item for item in found if isinstance(item, Ended)]
        usage = next(item for item in read if isinstance(item, Usage))
        assert msgspec.structs.replace(usage, extra={}) == found[-1]


def sent(*frames: dict[str, Any], done: bool = False) -> bytes:
    """Frames of some server, none of them ours."""
    body = b"".join(b"event: %b\ndata: %b\n\n" % (f["type"].encode(), json.dumps(f).encode()) for f in frames)
    return body + (b"data: [DONE]\n\n" if done else b"")


def ended(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    response = {"id": "resp_1", "model": "m", "created_at": 1, "status": "completed", "output": list(output)}
    return {"type": "response.completed", "response": {**response, "usage": usage, **fields}}


CREATED = {"type": "response.created", "response": {"id": "resp_1", "model": "m", "created_at": 1.5, "output": []}}


def test_a_stream_of_vllm_is_read() -> None:
    """Parts of reasoning under names of its own, ids that change, all items again at the end."""
    place = {"output_index": 0, "item_id": "msg_a", "content_index": 0}
    text = {"output_index": 1, "item_id": "msg_b", "content_index": 0}
    call = {"output_index": 2, "item_id": "fc_a"}
    function = {"type": "function_call", "id": "fc_a", "call_id": "call_a", "name": "f"}
    body = sent(
        CREATED,
        {"type": "response.in_progress", "sequence_number": 1, "response": CREATED["response"]},
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "msg_a"}},
        {"type": "response.reasoning_part.added", **place, "part": {"type": "reasoning_text", "text": ""}},
        {"type": "response.reasoning_text.delta", **place, "delta": "One "},
        {"type": "response.reasoning_text.delta", **place, "delta": "two."},
        {"type": "response.reasoning_text.done", **place, "text": "One two."},
        {"type": "response.reasoning_part.done", **place, "part": {"type": "reasoning_text", "text": "One two."}},
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": "reasoning", "id": "rs_other"}},
        {"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "id": "msg_b"}},
        {"type": "response.content_part.added", **text, "part": {"type": "output_text", "text": ""}},
        {"type": "response.output_text.delta", **text, "delta": "Three", "logprobs": []},
        {"type": "response.output_text.done", **text, "text": "Three", "logprobs": []},
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": {"type": "message", "id": "msg_z", "content": [{"type": "output_text", "text": "Three"}]},
        },
        {"type": "response.output_item.added", "output_index": 2, "item": function},
        {"type": "response.function_call_arguments.delta", **call, "delta": '{"a":'},
        {"type": "response.function_call_arguments.delta", **call, "delta": "1}"},
        {"type": "response.function_call_arguments.done", **call, "arguments": '{"a":1}'},
        {"type": "response.output_item.done", "output_index": 2, "item": {**function, "arguments": '{"a":1}'}},
        ended({"type": "message", "id": "msg_new", "content": [{"type": "output_text", "text": "Three"}]}),
    )
    for size in (1, 50, 100_000):
        found = split(read_stream(body, size))
        assert told(found) == (
            (("thinking", "One two."), ("text", "Three"), ("call", "f", '{"a":1}')),
            "stop",
        )
        assert found[0] == Begin("resp_1", "m", 1, "openai_responses")


def test_a_stream_of_llama_cpp_is_read() -> None:
    """No numbers at all, no end of thinking, and every item ends at the end."""
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": ""}
    message = {"type": "message", "id": "msg_1", "role": "assistant"}
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f"}
    body = sent(
        CREATED,
        {"type": "response.output_item.added", "item": {**reasoning, "content": []}},
        {"type": "response.reasoning_text.delta", "item_id": "rs_1", "delta": "Hm."},
        {"type": "response.output_item.added", "item": {**message, "content": []}},
        {"type": "response.content_part.added", "item_id": "msg_1", "part": {"type": "output_text", "text": ""}},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "Yes"},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "."},
        {"type": "response.output_item.added", "item": {**call, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": "{}"},
        {
            "type": "response.output_item.done",
            "item": {**reasoning, "content": [{"type": "reasoning_text", "text": "Hm."}]},
        },
        {"type": "response.output_text.done", "item_id": "msg_1", "text": "Yes."},
        {
            "type": "response.output_item.done",
            "item": {**message, "content": [{"type": "output_text", "text": "Yes."}]},
        },
        {"type": "response.function_call_arguments.done", "item_id": "fc_1", "arguments": "{}"},
        {"type": "response.output_item.done", "item": {**call, "arguments": "{}"}},
        ended(),
    )
    found = split(read_stream(body, 13))
    assert told(found) == ((("thinking", "Hm."), ("text", "Yes."), ("call", "f", "{}")), "stop")


def test_a_stream_of_ollama_is_read_and_its_thinking_goes_back_where_it_wants_it() -> None:
    """Thinking is a summary only, and stands in plain words where others encrypt it."""
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Hm so."}],
        "encrypted_content": "Hm so.",
    }
    place = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    body = sent(
        CREATED,
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "summary": []}},
        {"type": "response.reasoning_summary_text.delta", **place, "delta": "Hm "},
        {"type": "response.reasoning_summary_text.delta", **place, "delta": "so."},
        {"type": "response.reasoning_summary_text.done", **place, "text": "Hm so."},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.output_text.delta", "item_id": "m", "output_index": 1, "content_index": 0, "delta": "Yes"},
        ended(),
    )
    splitter = Splitter(get_format("qwen3"), make_parser())
    found = [item for piece in read_stream(body, 13) for item in splitter.feed(piece)]
    assert told(found) == ((("thinking", "Hm so."), ("text", "Yes")), "stop")
    assert splitter.fields == {"encrypted_content"}
    turns = (
        RequestTurn("user", (TextPiece("?"),)),
        RequestTurn("assistant", (ThinkingPiece("Hm so."), TextPiece("Yes"))),
    )
    asked = Request(dialect="openai_chat", turns=turns)
    back = responses.write_request(asked, WriteOptions(field="encrypted_content"))["input"][1]
    assert (back["encrypted_content"], back["summary"][0]["text"]) == ("Hm so.", "Hm so.")
    back = responses.write_request(asked)["input"][1]
    assert back["content"] == [{"type": "reasoning_text", "text": "Hm so."}]


def test_items_of_openai_keep_ids_and_what_is_encrypted() -> None:
    """Summaries in parts; reasoning without a word; a tool that OpenAI runs; a citation."""
    secret = {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "gAAAA"}
    thought = {
        "type": "reasoning",
        "id": "rs_8",
        "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}],
        "encrypted_content": "gBBBB",
    }
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    citation = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    part = {"type": "output_text", "text": "Yes.", "annotations": [citation], "logprobs": []}
    message = {"type": "message", "id": "msg_9", "role": "assistant", "status": "completed", "content": [part]}
    place = {"item_id": "rs_8", "output_index": 1}
    text = {"item_id": "msg_9", "output_index": 3, "content_index": 0}
    body = sent(
        CREATED,
        {"type": "response.output_item.added", "output_index": 0, "item": {**secret, "encrypted_content": "g"}},
        {"type": "response.output_item.done", "output_index": 0, "item": secret},
        {"type": "response.output_item.added", "output_index": 1, "item": {**thought, "summary": []}},
        {"type": "response.reasoning_summary_text.delta", **place, "summary_index": 0, "delta": "One."},
        {"type": "response.reasoning_summary_text.delta", **place, "summary_index": 1, "delta": "Two."},
        {"type": "response.output_item.done", "output_index": 1, "item": thought},
        {"type": "response.output_item.added", "output_index": 2, "item": {**search, "status": "in_progress"}},
        {"type": "response.web_search_call.searching", "output_index": 2, "item_id": "ws_1", "sequence_number": 9},
        {"type": "response.output_item.done", "output_index": 2, "item": search},
        {"type": "response.output_item.added", "output_index": 3, "item": {**message, "content": []}},
        {"type": "response.output_text.delta", **text, "delta": "Yes."},
        {"type": "response.output_text.annotation.added", **text, "annotation_index": 0, "annotation": citation},
        {"type": "response.output_item.done", "output_index": 3, "item": message},
        ended(secret, thought, search, message, service_tier="flex"),
    )
    streamed = split(read_stream(body, 99))
    whole = split(responses.read_reply(ended(secret, thought, search, message, service_tier="flex")["response"]))
    assert told(streamed) == told(whole) == ((("thinking", "One.\n\nTwo."), ("text", "Yes.")), "stop")
    again = events(stream(streamed, request()))
    assert "response.web_search_call.searching" in [event["type"] for event in again]
    for response in (again[-1]["response"], responses.write_reply(whole, request())):
        output = response["output"]
        assert [item["id"] for item in output] == ["rs_9", "rs_8", "ws_1", "msg_9"]
        assert [item.get("encrypted_content") for item in output] == ["gAAAA", "gBBBB", None, None]
        assert output[2] == search
        assert output[3]["content"] == [part]
        assert response["service_tier"] == "flex"
        assert response["id"] == "resp_1"
    assert [item["type"] for item in responses.write_reply(whole, request(show=False))["output"]] == [
        "web_search_call",
        "message",
    ]
    chatted = chat.write_reply(whole, Request(dialect="openai_chat"))
    assert chatted["choices"][0]["message"]["content"] == "Yes."


def test_refusals_pass() -> None:
    """A refusal stays one within the dialect, and is words in any other."""
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    content = [{"type": "refusal", "refusal": "I will not."}]
    body = sent(
        CREATED,
        {"type": "response.output_item.added", "output_index": 0, "item": {**message, "content": []}},
        {"type": "response.refusal.delta", **place, "delta": "I will"},
        {"type": "response.refusal.delta", **place, "delta": " not."},
        {"type": "response.refusal.done", **place, "refusal": "I will not."},
        {"type": "response.output_item.done", "output_index": 0, "item": {**message, "content": content}},
        ended({**message, "content": content}),
    )
    for pieces in (read_stream(body, 9), responses.read_reply(ended({**message, "content": content})["response"])):
        found = split(pieces)
        assert told(found) == ((("text", "I will not."),), "stop")
        last = ask(stream(found, request()), 5)[-1].response
        assert last.output[0].content[0].refusal == "I will not."
        kinds = [event["type"] for event in events(stream(found, request()))]
        assert "response.refusal.delta" in kinds
        assert "response.refusal.done" in kinds
        assert (
            chat.write_reply(found, Request(dialect="openai_chat"))["choices"][0]["message"]["content"] == "I will not."
        )


def test_refusals_of_chat_completions_pass() -> None:
    message = {"role": "assistant", "content": None, "refusal": "I will not."}
    pieces = chat.read_reply({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    body = responses.write_reply(split(pieces), request())
    assert [part for item in body["output"] for part in item["content"]] == [
        {"type": "refusal", "refusal": "I will not."}
    ]


@pytest.mark.parametrize(
    ("frames", "parts"),
    [
        ([ended({"type": "message", "content": [{"type": "output_text", "text": "a"}]})], (("text", "a"),)),
        ([{"type": "response.output_text.done", "output_index": 0, "text": "a"}, ended()], (("text", "a"),)),
        ([{"type": "response.reasoning_text.done", "output_index": 0, "text": "a"}, ended()], (("thinking", "a"),)),
        (
            [
                {"type": "response.output_item.done", "item": {"type": "message", "content": [{"text": "a"}]}},
                {"type": "response.output_item.done", "item": {"type": "message", "content": [{"text": "b"}]}},
                ended(),
            ],
            (("text", "a\n\nb"),),
        ),
        (
            [
                {"type": "response.output_item.done", "item": {"type": "function_call", "name": "f", "call_id": "c"}},
                ended(),
            ],
            (("call", "f", "{}"),),
        ),
        (
            [
                {
                    "type": "response.output_item.done",
                    "item": {"type": "reasoning", "encrypted_content": responses.seal("a")},
                },
                ended(),
            ],
            (("thinking", "a"),),
        ),
    ],
)
def test_what_no_delta_told_is_taken_from_the_end(frames: list[dict[str, Any]], parts: Any) -> None:
    assert told(split(read_stream(sent(*frames), 7))) == (parts, "stop")


def test_ends_and_failures_of_upstreams() -> None:
    def last(*frames: dict[str, Any], done: bool = False) -> Chunk:
        return read_stream(sent(CREATED, *frames, done=done), 9)[-1]

    incomplete = {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}}
    assert last(incomplete) == Ended(0, "length")
    incomplete["response"] = {"incomplete_details": {"reason": "content_filter"}}
    assert last(incomplete) == Ended(0, "content_filter")
    incomplete["response"] = {"incomplete_details": {"reason": "steered"}}
    assert last(incomplete) == Ended(0, "length", extra={"incomplete_details": {"reason": "steered"}})
    assert last(done=True) == Ended(0)
    death = last()
    assert isinstance(death, Failed)
    assert death.code == "upstream_ended"
    error = {"code": "rate_limit_exceeded", "message": "slow down"}
    failed = last({"type": "response.failed", "response": {"status": "failed", "error": error}})
    assert isinstance(failed, Failed)
    assert (failed.message, failed.status, failed.code) == ("slow down", 429, "rate_limit_exceeded")
    found = events(stream([Begin("r"), failed], request()))
    assert found[-1]["response"]["error"]["code"] == "rate_limit_exceeded"
    failed = last({"type": "error", "code": "x", "message": "broke", "param": None})
    assert isinstance(failed, Failed)
    assert (failed.message, failed.code) == ("broke", "x")
    failed = last({"type": "error", "error": {"message": "broke"}})
    assert isinstance(failed, Failed)
    assert failed.message == "broke"
    malformed = read_stream(b"data: {oops\n\ndata: [DONE]\n\n", 3)[-1]
    assert isinstance(malformed, Failed)
    assert malformed.code == "malformed_frame"
    for body in ({}, {"error": {"message": "broke"}}, {"output": [], "status": "queued"}, {"detail": "no"}):
        assert isinstance(responses.read_reply(body)[-1], Failed)


def test_text_before_a_death_is_not_lost() -> None:
    body = sent(CREATED, {"type": "response.output_text.delta", "output_index": 0, "delta": "It is <thi"})
    found = split(read_stream(body, 9))
    assert told(found).parts == (("text", "It is <thi"),)
    assert isinstance(found[-1], Failed)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.sampled_from(
    [
        "delta",
        "output_index",
        "item_id",
        "content_index",
        "summary_index",
        "text",
        "refusal",
        "arguments",
        "logprobs",
        "item",
        "response",
        "error",
        "part",
        "annotation",
    ]
)
ITEMS = st.builds(
    lambda kind, rest: {**rest, "type": kind},
    st.sampled_from(["message", "reasoning", "function_call", "web_search_call", None, 3]),
    st.dictionaries(
        st.sampled_from(["id", "call_id", "name", "arguments", "content", "summary", "encrypted_content", "status"]),
        VALUES | st.just([{"type": "output_text", "text": "a"}]),
    ),
)
FRAMES = st.builds(
    lambda kind, rest, item: {**rest, "type": kind, **({"item": item} if item else {})},
    st.sampled_from([*TYPES, "response.reasoning_part.added", "x", None, 3]),
    st.dictionaries(FIELDS, VALUES),
    st.none() | ITEMS,
)


@given(st.lists(FRAMES, max_size=6), st.binary(max_size=20), st.integers(1, 30))
def test_the_reader_takes_anything_and_the_writer_what_it_makes_of_it(
    frames: list[Any], noise: bytes, size: int
) -> None:
    body = b"".join(b"data: %b\n\n" % json.dumps(frame).encode() for frame in frames) + noise
    pieces = read_stream(body, size)
    assert any(isinstance(piece, Ended | Failed) for piece in pieces)
    events(stream(split(pieces), request()))


@given(VALUES, st.lists(ITEMS, max_size=3), st.dictionaries(st.sampled_from(["usage", "status", "error"]), VALUES))
def test_any_whole_reply_is_read(output: Any, given_items: list[Any], fields: dict[str, Any]) -> None:
    for body in ({"output": output, **fields}, {"output": given_items, **fields}):
        found = split(responses.read_reply(body))
        assert any(isinstance(piece, Ended | Failed) for piece in found)
        responses.write_reply(found, request())


# Requests, read.


def recorded(**fields: Any) -> dict[str, Any]:
    """What the SDK sends for these arguments."""
    body = msgspec.json.encode(responses.write_reply(items(BY_NAME["none"]), request()))
    with serve(body, headers=JSON) as server:
        client(server.base_url).responses.create(model="qwen3", **fields)
    (asked,) = server.requests
    assert (asked.method, asked.path) == ("POST", "/v1/responses")
    return dict(asked.body)


TOOL: Any = {
    "type": "function",
    "name": "find",
    "description": "Look",
    "parameters": {"type": "object"},
    "strict": True,
}


def test_a_request_of_the_sdk_is_read() -> None:
    body = recorded(
        instructions="Be brief.",
        input=[
            {"role": "user", "content": "Hello"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
            },
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "find", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "found"},
            {"role": "developer", "content": [{"type": "input_text", "text": "Now."}]},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "And?"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
                    {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
                ],
            },
        ],
        tools=[TOOL],
        tool_choice={"type": "function", "name": "find"},
        reasoning={"effort": "low", "summary": "concise"},
        text={"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}, "verbosity": "low"},
        max_output_tokens=99,
        parallel_tool_calls=False,
        include=["reasoning.encrypted_content", "message.output_text.logprobs"],
        metadata={"a": "b"},
        store=False,
        temperature=0.5,
        top_p=0.9,
        top_logprobs=2,
        user="me",
    )
    asked = responses.read_request(body)
    assert asked.model == "qwen3"
    assert [turn.role for turn in asked.turns] == ["system", "user", "assistant", "tool", "developer", "user"]
    assert [turn.text for turn in asked.turns] == ["Be brief.", "Hello", "I look.", "found", "Now.", "And?"]
    thinking, words, call = asked.turns[2].pieces
    assert isinstance(thinking, ThinkingPiece)
    assert thinking.text == "Hm."
    assert isinstance(words, TextPiece)
    assert isinstance(call, CallPiece)
    assert (call.name, call.arguments, call.id) == ("find", '{"a": 1}', "call_1")
    assert asked.turns[3].call_id == "call_1"
    assert asked.turns[5].pieces[1:] == (
        ImagePiece(data="AAAA", media_type="image/png", extra={"detail": "low"}),
        ImagePiece("https://example.org/a.png", extra={"detail": "auto"}),
    )
    assert asked.tools == (Tool("find", "Look", {"type": "object"}, True),)
    assert asked.tool_choice == "function:find"
    assert asked.parallel_calls is False
    options = asked.thinking
    assert (options.think, options.show, options.effort, options.summary, options.encrypted) == (
        True,
        True,
        "low",
        "concise",
        True,
    )
    schema = {"name": "x", "schema": {"type": "object"}}
    assert asked.response_format == {"type": "json_schema", "json_schema": schema}
    assert (asked.max_tokens, asked.logprobs, asked.top_logprobs, asked.user) == (99, True, 2, "me")
    assert asked.sampling == {"temperature": 0.5, "top_p": 0.9}
    assert asked.extra == {"metadata": {"a": "b"}, "store": False, "text": {"verbosity": "low"}}
    assert asked.essential == ()
    assert responses.write_request(asked) == body | {"input": responses.write_request(asked)["input"]}
    assert responses.read_request(responses.write_request(asked)) == asked


def test_a_plain_request_of_the_sdk_is_read() -> None:
    asked = responses.read_request(recorded(input="Hello"))
    assert asked.turns == (RequestTurn("user", (TextPiece("Hello"),)),)
    assert (asked.stream, asked.thinking) == (False, ThinkingOptions())
    with (
        serve(stream(items(BY_NAME["none"]), request())) as server,
        client(server.base_url).responses.stream(model="m", input="Hello") as found,
    ):
        found.until_done()
    assert responses.read_request(server.requests[0].body).stream


def test_a_reply_goes_back_as_the_sdk_sends_it() -> None:
    """The items of a reply, put into the next request as everyone does."""
    shape = BY_NAME["interleaved"]
    reply = ask(stream(items(shape), request(encrypted=True)), 9)[-1].response
    calls = [item for item in reply.output if item.type == "function_call"]
    results = [{"type": "function_call_output", "call_id": calls[0].call_id, "output": "found"}]
    body = recorded(input=[{"role": "user", "content": "?"}, *reply.output, *results])
    user, assistant, tool = responses.read_request(body).turns
    assert (user.role, assistant.role, tool.role) == ("user", "assistant", "tool")
    pieces: list[Any] = list(assistant.pieces)
    assert [(type(piece).__name__, getattr(piece, "text", "")) for piece in pieces] == [
        ("ThinkingPiece", "One."),
        ("TextPiece", "First."),
        ("CallPiece", ""),
        ("ThinkingPiece", "Two."),
        ("TextPiece", "Second."),
    ]
    assert tool.call_id == pieces[2].id
    written = chat.write_request(responses.read_request(body))["messages"]
    assert [message["role"] for message in written] == ["user", "assistant", "tool"]
    assert written[1]["reasoning_content"] == "One.\n\nTwo."


@pytest.mark.parametrize(
    ("fields", "thinking"),
    [
        ({}, (None, True, None)),
        ({"reasoning": {}}, (None, True, None)),
        ({"reasoning": {"summary": "auto"}}, (None, True, None)),
        ({"reasoning": {"effort": "high"}}, (True, True, "high")),
        ({"reasoning": {"effort": "none"}}, (False, False, "none")),
        ({"reasoning": {"exclude": True}}, (None, False, None)),
        ({"reasoning": {"enabled": False}}, (False, False, None)),
        ({"reasoning": {"max_tokens": 100}}, (True, True, None)),
        ({"reasoning_effort": "none"}, (False, False, "none")),
        ({"include_reasoning": False}, (None, False, None)),
        ({"think": False}, (False, False, None)),
        ({"thinking": {"type": "disabled"}}, (False, False, None)),
        ({"chat_template_kwargs": {"enable_thinking": False}}, (False, False, None)),
    ],
)
def test_thinking_is_wanted_or_refused(fields: dict[str, Any], thinking: tuple[Any, ...]) -> None:
    asked = responses.read_request({"model": "m", "input": "?", **fields})
    assert (asked.thinking.think, asked.thinking.show, asked.thinking.effort) == thinking
    body = responses.write_reply(items(BY_NAME["thinking"]), asked)
    assert [item["type"] for item in body["output"]] == (["reasoning", "message"] if thinking[1] else ["message"])
    assert {name: value for name, value in responses.write_request(asked).items() if name in fields} == fields


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ({"input": []}, "input"),
        ({"input": 3}, "input"),
        ({"input": [3]}, "input[0]"),
        ({"input": [{}]}, "input[0].type"),
        ({"input": [{"role": "tool", "content": "a"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": 3}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text"),
        ({"input": [{"type": "function_call", "call_id": "a"}]}, "input[0].name"),
        ({"input": "?", "background": True}, "background"),
        ({"input": "?", "instructions": 3}, "instructions"),
        ({"input": "?", "tools": {}}, "tools"),
        ({"input": "?", "tools": [{"type": "function"}]}, "tools[0].name"),
        ({"input": "?", "tool_choice": 3}, "tool_choice"),
        ({"input": "?", "reasoning": "high"}, "reasoning"),
        ({"input": "?", "max_output_tokens": "9"}, "max_output_tokens"),
        ({"input": "?", "text": {"format": "json"}}, "text.format"),
    ],
)
def test_what_cannot_be_understood_is_named(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        responses.read_request({"model": "m", **body})
    assert caught.value.param == param
    assert param.partition(".")[0] in caught.value.message


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"tools": [TOOL, {"type": "web_search"}], "tool_choice": {"type": "web_search"}}, "tool_choice"),
        ({"tool_choice": {"type": "file_search"}}, "tool_choice"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "messages"),
        ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "messages"),
    ],
)
def test_what_only_openai_can_do_is_refused_by_every_other_dialect(fields: dict[str, Any], param: str) -> None:
    body = {"model": "m", "input": "?", **fields}
    asked = responses.read_request(body)
    with pytest.raises(RequestError) as caught:
        chat.write_request(asked)
    assert caught.value.param == param
    again = responses.write_request(asked)
    assert {name: again.get(name) for name in fields if name != "tool_choice"} == {
        name: value for name, value in body.items() if name in fields and name != "tool_choice"
    } or "input" in fields


def test_which_earlier_thinking_is_seen() -> None:
    """`reasoning.context` holds for every other dialect, is repeated as what holds, and is checked."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
    said = [thought, {"role": "assistant", "content": "A."}]
    items_ = [{"role": "user", "content": "?"}, *said, {"role": "user", "content": "!"}, *said]
    for context, kept in (("current_turn", 1), ("all_turns", 2), ("auto", 2), (None, 2)):
        body = {"model": "m", "input": items_, "reasoning": {"context": context, "mode": "standard"}}
        asked = responses.read_request(body)
        messages = chat.write_request(asked)["messages"]
        assert [message.get("reasoning_content") for message in messages if message["role"] == "assistant"] == [
            *([None] * (2 - kept)),
            *(["Hm."] * kept),
        ]
        effective = "current_turn" if kept == 1 else "all_turns"
        reply = responses.write_reply([Begin("1"), Ended(0)], asked)
        assert (reply["reasoning"]["context"], reply["reasoning"]["mode"]) == (effective, "standard")
        again = responses.write_request(asked)
        assert again["reasoning"] == body["reasoning"]
        assert len(again["input"]) == len(items_)
    # Instructions in the middle become text of the user, and still end no turn of the assistant.
    between = [*items_[:2], {"role": "developer", "content": "Be brief."}, *said]
    asked = responses.read_request({"model": "m", "input": between, "reasoning": {"context": "current_turn"}})
    thoughts = [message.get("reasoning_content") for message in chat.write_request(asked)["messages"]]
    assert thoughts.count("Hm.") == 2
    for name, value in (("context", "some"), ("context", 3), ("mode", 3)):
        with pytest.raises(RequestError) as caught:
            responses.read_request({"model": "m", "input": "?", "reasoning": {name: value}})
        assert caught.value.param == f"reasoning.{name}"
    asked = responses.read_request({"model": "m", "input": "?", "reasoning": {"mode": "pro"}})
    with pytest.raises(RequestError) as caught:
        chat.write_request(asked)
    assert caught.value.param == "reasoning.mode"
    assert responses.write_request(asked)["reasoning"] == {"mode": "pro"}


def test_tools_that_are_allowed_are_the_only_ones() -> None:
    tools = [{"type": "function", "name": name} for name in "abc"]
    allowed = {"type": "allowed_tools", "mode": "required", "tools": tools[1:]}
    asked = responses.read_request({"model": "m", "input": "?", "tools": tools, "tool_choice": allowed})
    assert [tool.name for tool in asked.tools] == ["b", "c"]
    assert asked.tool_choice == "required"


def test_messages_that_follow_each_other_stay_apart() -> None:
    body = {"model": "m", "input": [{"role": "assistant", "content": text} for text in ("a", "b")]}
    asked = responses.read_request(body)
    assert [turn.text for turn in asked.turns] == ["a", "b"]
    assert [item["content"] for item in responses.write_request(asked)["input"]] == ["a", "b"]


def test_thinking_between_tags_is_thinking() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}]}
    said = {"role": "assistant", "content": "<think>a</think>\n\nb"}
    for given_items in ([said], [reasoning, said]):
        (turn,) = responses.read_request({"model": "m", "input": given_items}).turns
        assert [getattr(piece, "text", None) for piece in turn.pieces] == ["a", "b"]
        assert isinstance(turn.pieces[0], ThinkingPiece)
    quoted = {"role": "user", "content": "<think>a</think>b"}
    assert responses.read_request({"model": "m", "input": [quoted]}).turns[0].text == "<think>a</think>b"


def test_results_know_the_tool_that_gave_them() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "find", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "a"}]}
    asked = responses.read_request({"model": "m", "input": [call, result]})
    assert (asked.turns[1].tool_name, asked.turns[1].text) == ("find", "a")
    assert responses.write_request(asked)["input"] == [call, {**result, "output": "a"}]


# Requests, written.


def test_a_request_of_another_dialect() -> None:
    asked = chat.read_request(
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hello"},
                {
                    "role": "assistant",
                    "reasoning_content": "Hm.",
                    "content": "I look.",
                    "tool_calls": [
                        {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "found"},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "And?"},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                    ],
                },
            ],
            "tools": [{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}],
            "tool_choice": {"type": "function", "function": {"name": "find"}},
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}},
            "reasoning_effort": "low",
            "max_tokens": 7,
            "temperature": 0.5,
            "seed": 3,
            "logprobs": True,
            "stream": True,
        }
    )
    body = responses.write_request(asked, WriteOptions(model="other", switch=Switch()))
    thinking = body["input"][1]
    assert thinking.pop("id").startswith("rs_")
    assert body == {
        "model": "other",
        "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "user", "content": "Hello"},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
            {"type": "message", "role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "call_1", "name": "find", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "found"},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "And?"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
                ],
            },
        ],
        "tools": [{"type": "function", "name": "find", "parameters": {"type": "object"}, "strict": False}],
        "tool_choice": {"type": "function", "name": "find"},
        "text": {"format": {"type": "json_schema", "name": "x", "schema": {}}},
        "include": ["message.output_text.logprobs"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "chat_template_kwargs": {"enable_thinking": True},
        "max_output_tokens": 7,
        "temperature": 0.5,
        "stream": True,
    }


@pytest.mark.parametrize(
    ("options", "contents"),
    [
        (WriteOptions(), ["rs:a", "b", "rs:c", "d", "?"]),
        (WriteOptions(keep_thinking="tool_turns"), ["b", "rs:c", "d", "?"]),
        (WriteOptions(keep_thinking="none"), ["b", "d", "?"]),
        (WriteOptions(replay="drop"), ["b", "d", "?"]),
        (WriteOptions(replay="tags"), ["<think>a</think>\n\nb", "<think>c</think>\n\nd", "?"]),
        (WriteOptions(field="tags"), ["<think>a</think>\n\nb", "<think>c</think>\n\nd", "?"]),
        (WriteOptions(replay="reasoning"), ["rs:a", "b", "rs:c", "d", "?"]),
    ],
)
def test_thinking_of_earlier_turns(options: WriteOptions, contents: list[str]) -> None:
    call = CallPiece("f", "{}", "call_1")
    turns = (
        RequestTurn("assistant", (ThinkingPiece("a"), TextPiece("b"))),
        RequestTurn("assistant", (ThinkingPiece("c"), TextPiece("d"), call)),
        RequestTurn("user", (TextPiece("?"),)),
    )
    written = responses.write_request(Request(dialect="openai_chat", turns=turns), options)["input"]
    assert [
        "rs:" + item["content"][0]["text"] if item["type"] == "reasoning" else item["content"]
        for item in written
        if item["type"] != "function_call"
    ] == contents


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        (Request(dialect="openai_chat", choices=2), "n"),
        (Request(dialect="openai_chat", stop=("a",)), "stop"),
        (Request(dialect="completions", prompt="a"), "prompt"),
        (Request(dialect="anthropic", extra={"container": "a"}, essential=("container",)), "container"),
        (Request(dialect="anthropic", turns=(RequestTurn("user", (OtherPiece({"type": "document"}),)),)), "messages"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(asked: Request, param: str) -> None:
    with pytest.raises(RequestError) as caught:
        responses.write_request(asked)
    assert caught.value.param == param


def test_a_budget_goes_under_the_name_that_the_upstream_knows() -> None:
    asked = Request(
        dialect="anthropic",
        turns=(RequestTurn("user", (TextPiece("?"),)),),
        thinking=ThinkingOptions(think=True, budget=50),
    )
    assert responses.write_request(asked, WriteOptions(budget="thinking_budget"))["thinking_budget"] == 50
    body = responses.write_request(asked, WriteOptions(budget="reasoning.max_tokens"))
    assert body["reasoning"] == {"max_tokens": 50}
    assert "reasoning" not in responses.write_request(asked)
    refused = Request(dialect="ollama", thinking=ThinkingOptions(think=False, show=False))
    assert responses.write_request(refused)["reasoning"] == {"effort": "none"}


WORD = st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"]), min_size=1, max_size=8)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[RequestTurn, ...]:
    """Turns as they stand after reading: no empty text, and no two texts beside each other in what was said."""
    turns: list[RequestTurn] = []
    if draw(st.booleans()):
        turns.append(RequestTurn("system", (TextPiece(draw(WORD)),)))
    for _ in range(draw(st.integers(1, 4))):
        said: list[Any] = []
        for kind in draw(st.lists(st.sampled_from(["thinking", "text", "call"]), max_size=4)):
            if kind == "thinking":
                said.append(ThinkingPiece(draw(WORD)))
            elif kind == "call":
                said.append(CallPiece(draw(WORD), "{}", draw(WORD)))
            elif not said or not isinstance(said[-1], TextPiece):
                said.append(TextPiece(draw(WORD)))
        turns.append(RequestTurn("user", (TextPiece(draw(WORD)), *draw(st.just(()) | st.just((ImagePiece("u"),))))))
        if said:
            turns.append(RequestTurn("assistant", tuple(said)))
        if draw(st.booleans()):
            turns.append(RequestTurn("tool", (TextPiece(draw(WORD)),), draw(WORD)))
    return tuple(turns)


@given(conversations(), st.sampled_from(["auto", "none", "required", "function:f"]))
def test_any_request_comes_back(turns: tuple[RequestTurn, ...], choice: str) -> None:
    """Law 6 for requests of another dialect, as far as this one can say them."""
    asked = Request(dialect="openai_chat", model="m", turns=turns, tools=(Tool("f", "", {"type": "object"}),))
    asked = msgspec.structs.replace(asked, tool_choice=choice, max_tokens=5, response_format={"type": "json_object"})
    back = responses.read_request(responses.write_request(asked))
    assert [(turn.role, turn.call_id, _plain(turn)) for turn in back.turns] == [
        (turn.role, turn.call_id, _plain(turn)) for turn in turns
    ]
    assert (back.tools[0].name, back.tool_choice, back.max_tokens) == ("f", choice, 5)
    assert back.response_format == {"type": "json_object"}
    again = responses.read_request(responses.write_request(back))
    assert again == back


def _plain(turn: RequestTurn) -> list[tuple[Any, ...]]:
    return [
        (piece.name, piece.arguments, piece.id)
        if isinstance(piece, CallPiece)
        else (type(piece).__name__, getattr(piece, "text", ""), getattr(piece, "url", ""))
        for piece in turn.pieces
    ]


def test_ids_are_ours_and_lead_from_an_item_to_its_reply() -> None:
    """Upstreams number their replies from 1, or not at all; ours are never the same, and tell where an item is."""
    replies = [responses.write_reply(split([Begin("chatcmpl-1", "m"), *CALLING]), request()) for _ in range(2)]
    assert replies[0]["id"] != replies[1]["id"]
    for reply in replies:
        token = reply["id"].removeprefix("resp_")
        assert re.fullmatch("[0-9a-f]{32}", token)
        assert [item["id"] for item in reply["output"]] == [f"rs_{token}_0", f"msg_{token}_1", f"fc_{token}_2"]
        assert {ids.response_of(item["id"]) for item in reply["output"]} == {reply["id"]}
    assert ids.response_of(ids.input_id(reply["id"], "message", 3)) == reply["id"]
    for foreign in ("", "rs_1", "resp_" + token, f"rs_{token}", f"RS_{token}_0", f"rs_{token}_0_0", "rs_\ud800_0"):
        assert ids.response_of(foreign) == ""


def test_the_last_event_waits_for_the_end() -> None:
    """A client that reads it may go on from this reply at once; what comes after the usage changes nothing."""
    writer = responses.ReplyWriter(request())
    before = b"".join(map(writer.feed, [*split([Begin("chatcmpl-1", "m"), *CALLING]), Failed("late", 502)]))
    after = writer.finish()
    assert after.startswith(b"event: response.completed")
    assert b"response.completed" not in before
    assert b"late" not in before
    assert events(before + after)[-1]["response"]["usage"]["total_tokens"] == 3


CALLING: list[Chunk] = [
    ThinkingChunk(0, "Hm."),
    RawText(0, "I look."),
    CallChunk(0, 0, "call_a", "f", "{}"),
    Ended(0),
    Usage(1, 2),
]
