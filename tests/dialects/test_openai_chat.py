"""Chat completions: the real SDK reads what we write, we read what it sends, and both ways agree."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import msgspec
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asides
from asides import Thinking, ToolCall
from asides.dialects import anthropic
from asides.dialects import openai_chat as chat
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
    WriteOptions,
)
from asides.dialects.openai_chat._reader import MOST_CHOICES, ChoiceReader
from asides.events import PartEnd, PartStart
from asides.families import Switch, get_format
from asides.reply._items import (
    Begin,
    CallChunk,
    Chunk,
    Ended,
    Failed,
    Foreign,
    RawText,
    ReplyEvent,
    ReplyItem,
    ThinkingChunk,
    Usage,
)
from asides.reply._splitter import Splitter
from tests.dialects.replay import JSON, cut, serve
from tests.dialects.shapes import BY_NAME, DEATH, FAILING, SHAPES, WHOLE, Shape, expected, items, make_parser, told

HELLO: Any = [{"role": "user", "content": "Hello"}]
CUTS: tuple[int | None, ...] = (1, 7)


def request(shape: Shape | None = None, **fields: Any) -> Request:
    """A request as a client would send it for this shape."""
    thinking = ThinkingOptions(show=shape.show if shape else True)
    return Request(
        dialect="openai_chat", model="m", choices=len(shape.raw) if shape else 1, thinking=thinking, **fields
    )


def stream(found: Iterable[ReplyItem], asked: Request, **choices: Any) -> bytes:
    """A whole stream's bytes."""
    writer = chat.ReplyWriter(asked, **choices)
    return b"".join(map(writer.feed, found)) + writer.finish()


def frames(data: bytes) -> list[dict[str, Any]]:
    """The JSON of every frame but the last."""
    lines = [line.removeprefix("data: ") for line in data.decode().split("\n\n") if line]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def accumulate(chunks: Iterable[Any]) -> dict[int, dict[str, Any]]:
    """What a client makes of a stream, choice by choice."""
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            found = choices.setdefault(choice.index, {"finish_reason": None})
            delta = choice.delta.model_dump(exclude_unset=True)
            for call in delta.pop("tool_calls", None) or ():
                calls = found.setdefault("tool_calls", [])
                if call["index"] == len(calls):
                    calls.append({"id": call["id"], "type": call["type"], **call["function"]})
                else:
                    assert "id" not in call
                    assert "name" not in call["function"]
                    calls[call["index"]]["arguments"] += call["function"]["arguments"]
            for detail in delta.pop("reasoning_details", None) or ():
                details = found.setdefault("reasoning_details", [])
                if detail["index"] == len(details):
                    details.append(dict(detail))
                else:
                    assert not detail.keys() & {"id", "format"}
                    details[detail["index"]]["text"] += detail["text"]
            for name, value in delta.items():
                found[name] = found.get(name, "") + value if name != "role" else value
            if choice.finish_reason is not None:
                assert found["finish_reason"] is None
                found["finish_reason"] = choice.finish_reason
    return choices


def plain(choice: Any) -> dict[str, Any]:
    """A whole choice in the same shape."""
    found = choice.message.model_dump(exclude_unset=True)
    if found.get("tool_calls"):
        found["tool_calls"] = [
            {"id": call["id"], "type": call["type"], **call["function"]} for call in found["tool_calls"]
        ]
    found["content"] = found["content"] or ""
    return {**found, "finish_reason": choice.finish_reason}


SDK = openai.OpenAI(base_url="http://127.0.0.1", api_key="none", max_retries=0)


def client(url: str) -> openai.OpenAI:
    """Making one takes long; a copy with another address does not."""
    return SDK.with_options(base_url=f"{url}/v1")


def ask(data: bytes, cuts: int | Sequence[int] | None, **fields: Any) -> dict[int, dict[str, Any]]:
    with serve(data, cuts=cuts) as server:
        return accumulate(
            client(server.base_url).chat.completions.create(model="m", messages=HELLO, stream=True, **fields)
        )


def ask_whole(body: dict[str, Any], cuts: int | None = None) -> Any:
    with serve(msgspec.json.encode(body), headers=JSON, cuts=cuts) as server:
        return client(server.base_url).chat.completions.create(model="m", messages=HELLO)


def told_by(message: asides.Message, show: bool) -> dict[str, Any]:
    """What chat can say of a message."""
    calls = [call for call in message.tool_calls if call.name]
    found: dict[str, Any] = {"role": "assistant", "content": message.text}
    if message.thinking and show:
        found["reasoning_content"] = message.thinking
    if calls:
        found["tool_calls"] = [
            {"id": call.id, "type": "function", "name": call.name, "arguments": call.arguments} for call in calls
        ]
    return found


# What the SDK reads.


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("shape", WHOLE, ids=lambda shape: shape.name)
def test_the_sdk_reads_streams_and_whole_replies_alike(shape: Shape, cuts: int | None) -> None:
    """Streamed and whole are equal, and say what the parser said."""
    asked = request(shape, include_usage=True)
    streamed = ask(stream(items(shape), asked), cuts)
    whole = ask_whole(chat.write_reply(items(shape, size=7), asked), cuts)
    assert streamed == {choice.index: plain(choice) for choice in whole.choices}
    for number in range(len(shape.raw)):
        message = expected(shape, number)
        if any(not call.name for call in message.tool_calls):
            continue
        wanted = told_by(message, shape.show)
        reason = "tool_calls" if "tool_calls" in wanted and shape.reason == "stop" else shape.reason
        assert streamed[number] == {**wanted, "finish_reason": reason}


@pytest.mark.parametrize("shape", WHOLE[:8], ids=lambda shape: shape.name)
def test_the_asynchronous_sdk_reads_the_same(shape: Shape) -> None:
    """The other client of the SDK has a reader of its own."""
    asked = request(shape)
    data = stream(items(shape), asked)

    async def run(url: str, streamed: bool) -> Any:
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as sdk:
            found: Any = await sdk.chat.completions.create(model="m", messages=HELLO, stream=streamed)
            return [chunk async for chunk in found] if streamed else found

    with serve(data, cuts=3) as server:
        chunks = asyncio.run(run(server.base_url, True))
    with serve(msgspec.json.encode(chat.write_reply(items(shape), asked)), headers=JSON, cuts=3) as server:
        whole = asyncio.run(run(server.base_url, False))
    assert accumulate(chunks) == {choice.index: plain(choice) for choice in whole.choices}


@pytest.mark.parametrize("name", ["interleaved", "two"])
def test_the_sdks_own_accumulator_agrees(name: str) -> None:
    """`chat.completions.stream` puts the deltas together by rules of its own."""
    shape = BY_NAME[name]
    asked = request(shape)
    for reasoning in ("reasoning_content", "details", "both", "tags"):
        data = stream(items(shape), asked, reasoning=reasoning)
        with (
            serve(data, cuts=11) as server,
            client(server.base_url).chat.completions.stream(model="m", messages=HELLO) as found,
        ):
            final = found.get_final_completion()
        whole = ask_whole(chat.write_reply(items(shape), asked, reasoning=reasoning))
        for ours, theirs in zip(whole.choices, final.choices, strict=True):
            left, right = ours.message.model_dump(), theirs.message.model_dump()
            right.pop("parsed", None)
            for call in right.get("tool_calls") or ():
                call.pop("index", None)
                call["function"].pop("parsed_arguments", None)
            left["content"] = left["content"] or ""
            assert left == right


@pytest.mark.parametrize("shape", FAILING, ids=lambda shape: shape.name)
def test_a_failure_reaches_the_client_behind_what_was_said(shape: Shape) -> None:
    """Held text first, then the error, and no [DONE]."""
    data = stream(items(shape), request(shape))
    assert b"[DONE]" not in data
    seen: list[Any] = []
    with serve(data, cuts=5) as server:
        found = client(server.base_url).chat.completions.create(model="m", messages=HELLO, stream=True)
        with pytest.raises(openai.APIError) as caught:
            seen.extend(found)
    assert shape.failure is not None
    assert caught.value.message == shape.failure.message
    assert caught.value.code == shape.failure.code
    if any(shape.raw):
        message = expected(shape)
        said = accumulate(seen)[0]
        assert (said["content"], said["reasoning_content"]) == (message.text, message.thinking)
    whole = chat.write_reply(items(shape), request(shape))
    assert whole == {"error": {"message": shape.failure.message, "type": shape.failure.kind, "param": None,
                               "code": shape.failure.code}}  # fmt: skip


def test_an_error_status_is_the_sdks_own_exception() -> None:
    """The body of an error is what the SDK expects."""
    body = chat.write_error(Failed("no such model", 404, "not_found_error", "model_not_found", "model"))
    with (
        serve(msgspec.json.encode(body), status=404, headers=JSON) as server,
        pytest.raises(openai.NotFoundError) as caught,
    ):
        client(server.base_url).chat.completions.create(model="m", messages=HELLO)
    assert (caught.value.code, caught.value.param, caught.value.type) == ("model_not_found", "model", "not_found_error")


# What is written.


def test_a_stream_opens_with_the_role_and_nothing_said() -> None:
    """Every choice does, before anything else."""
    found = frames(stream(items(BY_NAME["two"]), request(BY_NAME["two"])))
    for number in (0, 1):
        first = next(f["choices"][0] for f in found if f["choices"][0]["index"] == number)
        assert first["delta"] == {"role": "assistant", "content": ""}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_no_line_break_but_our_own_reaches_the_wire(shape: Shape) -> None:
    """U+0085, U+2028 and U+2029 are escaped, and no frame has an id."""
    data = stream(items(shape), request(shape)).decode()
    assert not set(data) & {"\x85", "\u2028", "\u2029"}
    assert all(line.startswith("data: ") for line in data.splitlines() if line)


@pytest.mark.parametrize(
    ("reasoning", "wanted"),
    [
        ("reasoning_content", {"content": "b\nd", "reasoning_content": "a\n\nc"}),
        ("reasoning", {"content": "b\nd", "reasoning": "a\n\nc"}),
        ("thinking", {"content": "b\nd", "thinking": "a\n\nc"}),
        ("both", {"content": "b\nd", "reasoning_content": "a\n\nc", "reasoning": "a\n\nc"}),
        ("tags", {"content": "<think>a</think>\n\nb<think>c</think>\n\nd"}),
        ("drop", {"content": "b\nd"}),
    ],
)
def test_thinking_is_written_where_the_caller_wants_it(reasoning: Any, wanted: dict[str, str]) -> None:
    """Seven choices, one of them below; streamed and whole alike."""
    shape = Shape("", ("<think>a</think>b\n<think>c</think>d",))
    body = chat.write_reply(items(shape), request(), reasoning=reasoning)
    assert body["choices"][0]["message"] == {"role": "assistant", **wanted}
    streamed = ask(stream(items(shape, size=1), request(), reasoning=reasoning), None)[0]
    assert streamed == {"role": "assistant", **wanted, "finish_reason": "stop"}


def test_details_have_an_index_and_say_their_id_once() -> None:
    """OpenRouter's shape: one detail for each stretch of thinking."""
    shape = Shape("", ("<think>a one</think>b<think>c</think>d",))
    streamed = ask(stream(items(shape, size=1), request(), reasoning="details"), None)[0]
    details = [
        {"id": "reasoning_0", "format": "unknown", "type": "reasoning.text", "text": "a one", "index": 0},
        {"id": "reasoning_1", "format": "unknown", "type": "reasoning.text", "text": "c", "index": 1},
    ]
    assert streamed["reasoning_details"] == details
    body = chat.write_reply(items(shape), request(), reasoning="details")
    assert body["choices"][0]["message"]["reasoning_details"] == details


def test_tags_are_closed_before_a_call_and_at_the_end() -> None:
    """Whatever ends thinking, the tag is closed."""
    calls = chat.write_reply(items(BY_NAME["cut_in_call"]), request(), reasoning="tags")["choices"][0]
    assert calls["message"]["content"] == f"<think>{expected(BY_NAME['cut_in_call']).thinking}</think>\n\n"
    assert calls["message"]["tool_calls"][0]["function"]["arguments"] == '{"query": "Zü'
    ended = chat.write_reply(items(BY_NAME["cut_in_thinking"]), request(), reasoning="tags")["choices"][0]
    assert ended["message"]["content"] == "<think>Two and two and</think>\n\n"
    assert ended["finish_reason"] == "length"


def test_a_refusal_of_thinking_is_heeded_whatever_the_choice() -> None:
    """Thinking is counted and not sent, even where the items hold some."""
    shape = BY_NAME["thinking"]
    asked = msgspec.structs.replace(request(shape), thinking=ThinkingOptions(show=False))
    for reasoning in ("tags", "both", "details"):
        data = stream(items(shape), asked, reasoning=reasoning)
        assert b"naive" not in data
        assert b"think" not in data
    usage = next(item for item in items(BY_NAME["hidden"]) if isinstance(item, Usage))
    assert usage.reasoning_tokens
    assert usage.estimated


def test_a_call_without_a_name_is_text_in_its_place() -> None:
    """Without its outer markers, on a line of its own."""
    body = chat.write_reply(items(BY_NAME["nameless_call"]), request())
    choice = body["choices"][0]
    assert choice["message"]["content"] == 'Look:\n{"arguments": {"query": "Zürich"}}\nSo.'
    assert choice["finish_reason"] == "stop"
    assert "tool_calls" not in choice["message"]
    body = chat.write_reply(items(BY_NAME["cut_in_name"]), request())
    assert body["choices"][0]["message"]["content"] == 'Wait.\n{"name": "fi'


def test_content_is_null_with_calls_and_empty_with_neither() -> None:
    """As OpenAI's own servers have it."""
    assert chat.write_reply(items(BY_NAME["only_calls"]), request())["choices"][0]["message"]["content"] is None
    assert chat.write_reply(items(BY_NAME["empty"]), request())["choices"][0]["message"]["content"] == ""


def test_usage_comes_only_to_those_who_asked() -> None:
    """A client that did not ask may die of a chunk without choices."""
    shape = BY_NAME["thinking"]
    assert all(frame["choices"] for frame in frames(stream(items(shape), request(shape))))
    found = frames(stream(items(shape, usage=Usage(10, 20, 8)), request(shape, include_usage=True)))
    assert all(frame["usage"] is None for frame in found[:-1])
    assert found[-1]["choices"] == []
    assert found[-1]["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 20,
        "total_tokens": 30,
        "completion_tokens_details": {"reasoning_tokens": 8},
    }
    estimated = frames(stream(items(shape), request(shape, include_usage=True)))[-1]["usage"]
    assert estimated["completion_tokens_details"]["estimated"] is True


# What is read.


def read(data: bytes, cuts: int | None = None) -> list[Chunk]:
    reader = chat.ReplyReader()
    pieces = [piece for chunk in cut(data, cuts) for piece in reader.feed(chunk)]
    return pieces + reader.finish()


def sse(*bodies: Any, done: bool = True) -> bytes:
    """A stream of these frames."""
    data = b"".join(
        b"data: " + (body if isinstance(body, bytes) else json.dumps(body).encode()) + b"\n\n" for body in bodies
    )
    return data + (b"data: [DONE]\n\n" if done else b"")


def delta(*, finish: str | None = None, index: int = 0, **fields: Any) -> dict[str, Any]:
    """A frame."""
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": index, "delta": fields, "finish_reason": finish}]}  # fmt: skip


def split(pieces: Iterable[Chunk], **policies: Any) -> list[ReplyItem]:
    splitter = Splitter(get_format("qwen3"), make_parser(**policies))
    return [item for piece in pieces for item in splitter.feed(piece)]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_thinking_is_read_under_every_name(field: str) -> None:
    """And the name is remembered, to send it back by."""
    thinking: dict[str, Any] = {field: "hm", "content": None}
    pieces = read(sse(delta(role="assistant"), delta(**thinking), delta(content="so"), delta(finish="stop")))
    assert pieces[1:] == [ThinkingChunk(0, "hm", field), RawText(0, "so"), Ended(0)]


LIKELY = st.sampled_from(
    [
        {"content": "a"},
        {"content": 'b "quoted" \\ \n é🙂 \u2028'},
        {"content": ""},
        {"content": None},
        {"reasoning": "x"},
        {"reasoning": "\ny", "content": ""},
        {"reasoning_content": "z", "reasoning": "z"},
        {"role": "assistant", "content": "c"},
        {"content": "d", "annotations": [{"content": "e"}]},
        {"tool_calls": [{"index": 0, "id": "i", "function": {"name": "f", "arguments": "{}"}}]},
    ]
)
FRAME = st.tuples(
    st.integers(0, 1), LIKELY, st.sampled_from([None, None, None, None, "stop"]), st.sampled_from([1, 1, 2])
)


@given(st.lists(FRAME, max_size=30), st.integers(1, 400))
def test_frames_that_are_alike_are_read_like_any_other(found: list[Any], cuts: int) -> None:
    """Reading them without decoding them whole is only faster."""
    bodies = [{**delta(index=index, finish=finish, **fields), "created": time} for index, fields, finish, time in found]
    same = [json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() for body in bodies]
    # No two of these frames begin alike.
    other = [b"{" + b" " * number + body[1:] for number, body in enumerate(same)]
    assert read(sse(*same), cuts) == read(sse(*same)) == read(sse(*other))
    one_by_one = chat.ReplyReader()
    assert [piece for body in same for piece in one_by_one.feed(sse(body, done=False))] + one_by_one.feed(sse()) + (
        one_by_one.finish()
    ) == read(sse(*other))


def test_the_gap_between_two_thoughts_is_not_doubled() -> None:
    """We write it in front of the second; so do others."""
    call = {"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}}
    later = [delta(reasoning=text) for text in ("\n", "\nb", "\nc")]
    found = split(read(sse(delta(reasoning="a"), delta(tool_calls=[call]), *later)))
    message = chat.write_reply(found, request())["choices"][0]["message"]
    assert message["reasoning_content"] == "a\n\nb\nc"


def test_details_are_read_and_kept_as_they_are() -> None:
    """Words become thinking; what has no words is passed on within the dialect."""
    worded = {"type": "reasoning.text", "text": "hm", "index": 0, "format": "f", "id": "i"}
    sealed = {"type": "reasoning.encrypted", "data": "xyz", "index": 3}
    pieces = read(sse(delta(reasoning="hm", reasoning_details=[worded]), delta(reasoning_details=[sealed]),
                      delta(content="so", finish="stop")))  # fmt: skip
    assert pieces[1] == ThinkingChunk(0, "hm", "reasoning", (worded,))
    assert pieces[2] == Foreign("openai_chat", "details", {"details": [sealed]}, 0)
    streamed = ask(stream(split(pieces), request(), reasoning="details"), None)[0]
    assert streamed["reasoning_details"] == [worded, {**sealed, "index": 1}]


def test_calls_are_read_whatever_the_server_leaves_out() -> None:
    """Indices that are missing or all the same, names again and again, arguments as an object or absent."""
    function = {"name": "f", "arguments": '{"a":'}
    normal = read(sse(delta(tool_calls=[{"index": 0, "id": "x", "type": "function", "function": function}]),
                      delta(tool_calls=[{"index": 0, "function": {"name": None, "arguments": "1}"}}]),
                      delta(finish="tool_calls")))  # fmt: skip
    assert normal[1:] == [CallChunk(0, 0, "x", "f", '{"a":'), CallChunk(0, 0, "", "", "1}"), Ended(0)]
    assert told(split(normal)).parts == (("call", "f", '{"a":1}'),)
    same_index = [{"index": 0, "id": id, "function": {"name": "f", "arguments": {"a": 1}}} for id in "xy"]
    assert told(split(read(sse(delta(tool_calls=same_index))))).parts == (("call", "f", '{"a":1}'),) * 2
    no_index = [{"id": id, "function": {"name": "f"}} for id in "xy"]
    assert told(split(read(sse(delta(tool_calls=no_index))))).parts == (("call", "f", "{}"),) * 2


def test_a_call_cut_off_by_the_upstream_says_so() -> None:
    """Its characters are passed on; its error is told."""
    call = {"index": 0, "id": "x", "function": {"name": "f", "arguments": '{"a": "'}}
    found = split(read(sse(delta(tool_calls=[call]), delta(finish="length"))))
    events = [item.event for item in found if isinstance(item, ReplyEvent)]
    assert [event.error for event in events if isinstance(event, PartEnd)] == ["incomplete"]
    assert chat.write_reply(found, request())["choices"][0]["finish_reason"] == "length"


def test_usage_is_read_wherever_it_stands() -> None:
    """In a frame without choices, or again and again (vLLM); the last one counts, told once."""
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
    early = {**delta(content="x"), "usage": {**usage, "completion_tokens": 1}}
    last = {**delta(), "choices": [], "usage": usage}
    pieces = read(sse(early, delta(finish="stop"), last))
    assert [piece for piece in pieces if isinstance(piece, Usage)] == [Usage(3, 5, extra=usage)]
    assert pieces[-1] == Usage(3, 5, extra=usage)


def test_done_without_a_reason_is_a_stop_and_neither_is_a_death() -> None:
    """A reason without [DONE] is enough."""
    assert read(sse(delta(content="x")))[-1] == Ended(0)
    assert read(sse(delta(content="x"), delta(finish="stop"), done=False))[-1] == Ended(0)
    for data in (
        sse(delta(content="x"), done=False),
        b"",
        sse(delta(finish="stop"), delta(index=1, content="y"), done=False),
    ):
        failed = read(data)[-1]
        assert isinstance(failed, Failed)
        assert (failed.message, failed.status) == (DEATH.message, 502)


@pytest.mark.parametrize(
    ("format", "raw"),
    [
        ("qwen3", '<tool_call>\n{"name": "f", "arguments": [1]}\n</tool_call>'),
        ("llama3_json", '{"name": "f", "parameters": [1]}'),
    ],
)
def test_arguments_that_cannot_be_read_are_what_the_model_wrote(format: str, raw: str) -> None:
    """Not empty: a client would run the call without arguments. And never an object, or it would run it with these."""
    (call,) = asides.parse(raw, format).tool_calls
    assert (call.name, call.arguments, call.error) == ("f", "", "not_object")
    splitter = Splitter(get_format(format), asides.Parser)
    found = [*splitter.feed(RawText(0, raw)), *splitter.feed(Ended(0))]
    (written,) = chat.write_reply(found, request())["choices"][0]["message"]["tool_calls"]
    arguments = written["function"]["arguments"]
    assert raw in (arguments, json.loads(arguments) if arguments.startswith('"') else None)
    assert not arguments.startswith("{")
    writer = chat.ReplyWriter(request(stream=True))
    frames = b"".join(map(writer.feed, found)).decode()
    assert json.dumps(arguments) in frames.replace("\\u003c", "<")


def test_errors_in_a_stream_become_failures() -> None:
    """In the shapes that servers use."""
    for error, message, status in (
        ({"error": {"message": "no", "type": "t", "code": 429}}, "no", 429),
        ({"error": "no"}, "no", 502),
        ({"object": "error", "message": "no", "type": "t", "code": 400}, "no", 400),
        ({**delta(content="x", finish="error"), "error": {"message": "no", "code": 500}}, "no", 500),
    ):
        failed = read(sse(delta(content="a"), error, done=False))[-1]
        assert isinstance(failed, Failed)
        assert (failed.message, failed.status) == (message, status)


def test_what_is_no_json_is_passed_over_or_told() -> None:
    """Keep-alive junk is nothing; a frame that is broken is a failure that shows it."""
    assert read(sse(b": keepalive", b"", delta(content="x", finish="stop"), b"17"))[1:] == [RawText(0, "x"), Ended(0)]
    failed = read(sse(delta(content="x"), b'{"choices": [{"delta": {"content": "lo'))[-1]
    assert isinstance(failed, Failed)
    assert '"content": "lo' in failed.message


@given(st.binary(max_size=200), st.integers(1, 9))
def test_nothing_raises(data: bytes, size: int) -> None:
    """Whatever comes over the wire."""
    read(data, size)
    read(b"data: {" + data + b"}\n\n", size)
    chat.read_error(500, data)


NAMES = [
    "choices",
    "delta",
    "message",
    "content",
    "tool_calls",
    "function",
    "index",
    "name",
    "id",
    "reasoning_details",
    "usage",
    "error",
    "finish_reason",
    "logprobs",
    "arguments",
    "reasoning",
    "text",
    "role",
    "type",
    "image_url",
]
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["user", "assistant", "text"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(JUNK, max_size=4))
def test_no_json_raises_either(bodies: list[Any]) -> None:
    """Whatever the JSON says."""
    split(read(sse(*bodies)))
    for body in bodies:
        if isinstance(body, dict):
            split(chat.read_reply(body))


def test_unknown_fields_pass_within_the_dialect() -> None:
    """Of the reply, of a choice's end and of a delta; and only there."""
    first = {**delta(content="x"), "system_fingerprint": "fp"}
    second = {**delta(content="y"), "system_fingerprint": "fp"}
    extra = {**delta(annotations=[{"url": "u"}]), "system_fingerprint": "fp"}
    last = {**delta(finish="stop"), "system_fingerprint": "fp", "timings": {"ms": 3}}
    last["choices"][0]["stop_reason"] = "END"
    found = split(read(sse(first, second, extra, last, {"id": "c", "choices": [], "custom": 1})))
    written = frames(stream(found, request()))
    assert all(frame["system_fingerprint"] == "fp" for frame in written[:-1])
    assert [frame for frame in written if "timings" in frame] == [written[-2]]
    assert written[-2]["choices"][0] == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop",
                                         "stop_reason": "END"}  # fmt: skip
    assert written[-1]["custom"] == 1
    assert {"annotations": [{"url": "u"}]} in [frame["choices"][0]["delta"] for frame in written[:-1]]
    foreign = [
        msgspec.structs.replace(item, dialect="") if isinstance(item, Begin | Foreign) else item for item in found
    ]
    assert b"fp" not in stream(foreign, request())
    assert b"stop_reason" not in stream(foreign, request())


def test_a_block_repeated_in_the_content_is_removed_once() -> None:
    """llama.cpp's `deepseek-legacy` sends thinking in a field and in the content too."""
    for size in (1, 3, 100):
        for content, wanted in (
            ("<think>\nhm\n</think>\n\nso", (("thinking", "hm"), ("text", "so"))),
            ("<think>other</think>so", (("thinking", "hm"), ("thinking", "other"), ("text", "so"))),
            ("<b>so</b>", (("thinking", "hm"), ("text", "<b>so</b>"))),
            ("<thi", (("thinking", "hm"), ("text", "<thi"))),
            ("a <think>so", (("thinking", "hm"), ("text", "a <think>so"))),
            (" ", (("thinking", "hm"), ("text", " "))),
        ):
            pieces: list[Chunk] = [ThinkingChunk(0, "hm", "reasoning_content")]
            pieces += [RawText(0, content[at : at + size]) for at in range(0, len(content), size)]
            found = split([*pieces, Ended(0)])
            assert told(found).parts == wanted
            events = [item.event for item in found if isinstance(item, ReplyEvent)]
            starts = [event.index for event in events if isinstance(event, PartStart)]
            assert starts == list(range(len(wanted)))


# Log probabilities.


def token(text: str, logprob: float = -0.5) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode()), "top_logprobs": []}


def test_log_probabilities_stay_with_the_words_they_are_of() -> None:
    """Those of the content in their place, the rest beside them; a token that a marker shares is trimmed."""
    tokens = ["<think>", "hm", " so", "</think>", "\n\nIt", " is", " 4", ".\n", "<tool_call>", '{"name": "f"',
              ', "arguments": {}}', "</tool_call>", "<|im_end|>"]  # fmt: skip
    for size in (1, 2, 20):
        pieces: list[Chunk] = [Begin()]
        for at in range(0, len(tokens), size):
            group = tokens[at : at + size]
            pieces.append(RawText(0, "".join(group), tuple(token(text) for text in group)))
        pieces.append(Ended(0))
        found = split(pieces)
        body = chat.write_reply(found, request())["choices"][0]
        visible = [entry["token"] for entry in body["logprobs"]["content"]]
        assert "".join(visible) == body["message"]["content"] == "It is 4."
        assert visible == ["It", " is", " 4", "."]
        assert body["logprobs"]["content"][0]["bytes"] == [73, 116]
        rest = [entry["token"] for entry in body["reasoning_logprobs"]["content"]]
        assert rest == [*tokens[:4], *tokens[8:]]
        streamed: dict[str, list[str]] = {"logprobs": [], "reasoning_logprobs": []}
        for frame in frames(stream(found, request())):
            for name, list_of in streamed.items():
                list_of += [each["token"] for each in (frame["choices"][0].get(name) or {"content": []})["content"]]
        assert streamed == {"logprobs": visible, "reasoning_logprobs": rest}


def test_log_probabilities_of_less_than_a_character() -> None:
    """The bytes of one character may be several tokens, told before the character is."""
    smile = "🙂".encode()
    parts = [{"token": "\ufffd", "bytes": list(smile[:2])}, {"token": "\ufffd", "bytes": list(smile[2:])}]
    eos = {"token": "<eos>", "bytes": list(b"<eos>")}
    found = split([RawText(0, "a", (token("a"),)), RawText(0, "", (parts[0],)), RawText(0, "🙂", (parts[1],)),
                   RawText(0, "", (eos,)), Ended(0)])  # fmt: skip
    body = chat.write_reply(found, request())["choices"][0]
    assert body["logprobs"]["content"] == [token("a"), *parts]
    assert body["reasoning_logprobs"]["content"] == [eos]


def test_log_probabilities_of_a_reply_that_is_split_already() -> None:
    """vLLM gives those of every token, thinking and markers too, in one list."""
    tokens = [token(text) for text in ("<think>", "hm", "</think>", "\n\n", "so")]
    message = {"role": "assistant", "content": "so", "reasoning": "hm"}
    body = {"choices": [{"index": 0, "message": message, "logprobs": {"content": tokens}, "finish_reason": "stop"}]}
    written = chat.write_reply(split(chat.read_reply(body)), request())["choices"][0]
    assert written["logprobs"]["content"] == tokens[4:]
    assert written["reasoning_logprobs"]["content"] == tokens[:4]


def test_hidden_thinking_does_not_leak_through_log_probabilities() -> None:
    """Who may not see the thinking does not get its tokens."""
    splitter = Splitter(get_format("qwen3"), make_parser())
    words = ("<think>", "secret", "</think>", "so")
    found = [item for text in words for item in splitter.feed(RawText(0, text, (token(text),)))]
    found += splitter.feed(Ended(0))
    asked = Request(dialect="openai_chat", thinking=ThinkingOptions(show=False))
    assert b"secret" not in stream(found, asked)
    assert [entry["token"] for entry in chat.write_reply(found, asked)["choices"][0]["logprobs"]["content"]] == ["so"]


@given(st.lists(st.sampled_from(["<think>", "</think>", "hm", " ", "\n", "é", "🙂 b", "<tool_call>", "</tool_call>",
                                 '{"name": "f", "arguments": {}}', "a\n", "x"]), max_size=12),
       st.integers(1, 4))  # fmt: skip
def test_tokens_of_the_content_joined_are_the_content(tokens: list[str], size: int) -> None:
    """Without the gaps between texts, which no token stands for."""
    pieces: list[Chunk] = []
    for at in range(0, len(tokens), size):
        group = tokens[at : at + size]
        pieces.append(RawText(0, "".join(group), tuple(token(text) for text in group)))
    found = split([*pieces, Ended(0)])
    texts = "".join(part[1] for part in told(found).parts if part[0] == "text")
    given_out = [entry["token"] for item in found if isinstance(item, ReplyEvent) for entry in item.logprobs]
    assert "".join(given_out) == texts


# Round trips (law 6).

SAID = (
    st.text(st.characters(codec="utf-8", exclude_characters="<>`'\""), min_size=1, max_size=12)
    .map(str.strip)
    .filter(bool)
)
PART = st.one_of(
    st.tuples(st.just("thinking"), SAID),
    st.tuples(st.just("text"), SAID),
    st.tuples(st.just("call"), st.sampled_from(["f", "g"]), st.sampled_from(["{}", '{"a": 1}', '{"a": "ü\\n"}'])),
)


def raw_of(parts: Sequence[tuple[str, ...]]) -> str:
    """What a model would write."""
    written = []
    for kind, *rest in parts:
        if kind == "thinking":
            written.append(f"<think>{rest[0]}</think>\n\n")
        elif kind == "text":
            written.append(rest[0])
        else:
            written.append(f'\n<tool_call>\n{{"name": "{rest[0]}", "arguments": {rest[1]}}}\n</tool_call>\n')
    return "".join(written)


@given(
    st.lists(PART, max_size=6),
    st.integers(1, 5),
    st.integers(1, 50),
    st.sampled_from(["reasoning_content", "both", "details", "tags"]),
)
def test_a_stream_that_is_read_again_says_the_same(
    parts: list[tuple[str, ...]], size: int, cuts: int, reasoning: Any
) -> None:
    """Part by part, where parts of one kind do not stand next to each other."""
    shape = Shape("", (raw_of(parts),))
    first = told(items(shape, size=size))
    data = stream(items(shape, size=size), request(shape), reasoning=reasoning)
    again = told(split(read(data, cuts)))
    kinds = [part[0] for part in first.parts]
    if all(left != right or left == "call" for left, right in pairwise(kinds)) and reasoning != "tags":
        assert [tuple(text.strip() for text in part) for part in again.parts] == list(first.parts)
    assert _joined(again) == _joined(first)
    assert again.reason == first.reason


@given(st.lists(PART, max_size=6), st.sampled_from(["reasoning_content", "reasoning", "details", "tags"]))
def test_a_whole_reply_that_is_read_again_says_the_same(parts: list[tuple[str, ...]], reasoning: Any) -> None:
    """Each kind joined: the order of kinds is what this API cannot say."""
    shape = Shape("", (raw_of(parts),))
    body = chat.write_reply(items(shape), request(shape), reasoning=reasoning)
    assert _joined(told(split(chat.read_reply(json.loads(json.dumps(body)))))) == _joined(told(items(shape)))


def _joined(found: Any) -> tuple[str, str, list[tuple[str, ...]]]:
    kinds: dict[str, list[str]] = {"thinking": [], "text": []}
    for part in found.parts:
        if part[0] != "call":
            kinds[part[0]].append(part[1])
    calls = [part for part in found.parts if part[0] == "call"]
    return "".join("".join(kinds["thinking"]).split()), "".join("".join(kinds["text"]).split()), calls


# Requests.


def recorded(**fields: Any) -> dict[str, Any]:
    """The body that the SDK sends."""
    body = chat.write_reply(items(BY_NAME["none"]), request())
    with serve(msgspec.json.encode(body), headers=JSON) as server:
        client(server.base_url).chat.completions.create(**{"model": "m", "messages": HELLO, **fields})
        assert server.requests[0].path == "/v1/chat/completions"
        found: dict[str, Any] = server.requests[0].body
    return found


TOOL: Any = {
    "type": "function",
    "function": {"name": "find", "description": "Find it", "parameters": {"type": "object"}, "strict": True},
}


def test_a_request_of_the_sdk_is_read() -> None:
    """Everything that it sends has its place."""
    body = recorded(
        messages=[
            {"role": "system", "content": "Be kind."},
            {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "user", "name": "Ann", "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "found"},
        ],
        tools=[TOOL], tool_choice={"type": "function", "function": {"name": "find"}}, parallel_tool_calls=False,
        max_completion_tokens=9, n=2, temperature=0.5, seed=3, stop=["a", "b"], logprobs=True, top_logprobs=2, user="u",
        response_format={"type": "json_object"}, reasoning_effort="low", metadata={"a": "b"},
        extra_body={"top_k": 4, "repetition_penalty": 1.1, "chat_template_kwargs": {"x": 1}},
    )  # fmt: skip
    found = chat.read_request(body)
    image = ImagePiece("", "AAAA", "image/png", {"detail": "low"})
    assert found.turns == (
        RequestTurn("system", (TextPiece("Be kind."),)),
        RequestTurn("developer", (TextPiece("Be brief."),)),
        RequestTurn(
            "user", (TextPiece("What is it?"), image, ImagePiece("https://example.com/a.png")), extra={"name": "Ann"}
        ),
        RequestTurn("assistant", (CallPiece("find", '{"a": 1}', "c1"),)),
        RequestTurn("tool", (TextPiece("found"),), "c1"),
    )
    assert (found.tools[0].name, found.tools[0].strict, found.tool_choice) == ("find", True, "function:find")
    assert (found.parallel_calls, found.max_tokens, found.choices, found.stop) == (False, 9, 2, ("a", "b"))
    assert found.sampling == {"temperature": 0.5, "seed": 3, "top_k": 4, "repeat_penalty": 1.1}
    assert (found.logprobs, found.top_logprobs, found.user) == (True, 2, "u")
    assert found.response_format == {"type": "json_object"}
    assert (found.thinking.effort, found.thinking.think, found.thinking.show) == ("low", True, True)
    assert (found.template_arguments, found.extra) == ({"x": 1}, {"metadata": {"a": "b"}})
    written = chat.write_request(found)
    body["messages"][1]["content"] = "Be brief."
    assert written == body


def test_a_streaming_request_of_the_sdk_is_read() -> None:
    """And whether it wants to know what the reply cost."""
    data = stream(items(BY_NAME["none"]), request())
    with serve(data) as server:
        list(
            client(server.base_url).chat.completions.create(
                model="m", messages=HELLO, stream=True, stream_options={"include_usage": True}
            )
        )
        body = server.requests[0].body
    found = chat.read_request(body)
    assert (found.stream, found.include_usage) == (True, True)
    assert chat.write_request(found) == body
    assert "stream" not in chat.write_request(found, WriteOptions(stream=False))


@pytest.mark.parametrize(
    "fields",
    [
        {"think": False},
        {"reasoning_effort": "none"},
        {"reasoning": {"effort": "none"}},
        {"reasoning": {"exclude": True}},
        {"reasoning": {"enabled": False}},
        {"include_reasoning": False},
        {"thinking": {"type": "disabled"}},
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"chat_template_kwargs": {"thinking": False}},
        {"enable_thinking": False},
        {"reasoning_format": "hidden"},
    ],
)
def test_every_refusal_of_thinking_is_understood(fields: dict[str, Any]) -> None:
    """In whatever words; and passed on in the same."""
    found = chat.read_request({"model": "m", "messages": HELLO, **fields})
    assert not found.thinking.show
    hides = "exclude" in str(fields) or "include" in str(fields) or "hidden" in str(fields)
    assert found.thinking.think is (None if hides else False)
    assert chat.write_request(found) == {"model": "m", "messages": HELLO, **fields}


@pytest.mark.parametrize(
    ("fields", "thinking"),
    [
        ({}, ThinkingOptions()),
        ({"reasoning_effort": "high"}, ThinkingOptions(True, effort="high")),
        ({"reasoning": {"max_tokens": 500}}, ThinkingOptions(True, budget=500)),
        ({"thinking": {"type": "enabled", "budget_tokens": 5}}, ThinkingOptions(True, budget=5)),
        ({"thinking_token_budget": 7}, ThinkingOptions(True, budget=7)),
        ({"think": "medium"}, ThinkingOptions(True, effort="medium")),
        ({"chat_template_kwargs": {"enable_thinking": True}}, ThinkingOptions(True)),
    ],
)
def test_wishes_are_understood(fields: dict[str, Any], thinking: ThinkingOptions) -> None:
    """How hard to think, and for how long."""
    found = chat.read_request({"model": "m", "messages": HELLO, **fields}).thinking
    assert msgspec.structs.replace(found, sent={}) == thinking


@pytest.mark.parametrize(
    ("message", "thinking"),
    [
        ({"reasoning_content": "hm"}, ThinkingPiece("hm")),
        ({"reasoning": "hm"}, ThinkingPiece("hm")),
        ({"thinking": "hm"}, ThinkingPiece("hm")),
        ({"reasoning": "hm", "reasoning_content": "hm"}, ThinkingPiece("hm")),
        ({"content": "<think>\nhm\n</think>\n\nso"}, ThinkingPiece("hm")),
        ({"content": "hm</think>so"}, ThinkingPiece("hm")),
        ({"content": "<think>hm</think>so", "reasoning_content": "hm"}, ThinkingPiece("hm")),
        ({"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}], "reasoning_content": "hm"},
         ThinkingPiece("hm", "s")),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
         ThinkingPiece("hm", details=({"type": "reasoning.text", "text": "hm"},))),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}], "reasoning": "hm"},
         ThinkingPiece("hm", details=({"type": "reasoning.encrypted", "data": "x"},))),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                      {"type": "text", "text": "so"}]},
         ThinkingPiece("hm")),
    ],
)  # fmt: skip
def test_thinking_of_earlier_turns_is_read_in_any_shape(message: dict[str, Any], thinking: ThinkingPiece) -> None:
    """And the words stand without it."""
    found = chat.read_request({"messages": [{"role": "assistant", "content": "so", **message}]}).turns[0]
    assert found == RequestTurn("assistant", (thinking, TextPiece("so")))


CONVERSATION = Request(
    dialect="anthropic",
    model="m",
    turns=(
        RequestTurn("user", (TextPiece("Go"),)),
        RequestTurn("assistant", (ThinkingPiece("one"), TextPiece("said"))),
        RequestTurn("user", (TextPiece("On"),)),
        RequestTurn("assistant", (ThinkingPiece("two"), CallPiece("f", "{}", "c"))),
        RequestTurn("tool", (TextPiece("r"),), "c"),
        RequestTurn("user", (TextPiece("And"), TextPiece("so"))),
        RequestTurn("assistant", (ThinkingPiece("three"), TextPiece("x"))),
    ),
)


@pytest.mark.parametrize(
    ("options", "field", "wanted"),
    [
        (WriteOptions(), "reasoning_content", ["one", "two", "three"]),
        (WriteOptions(field="reasoning"), "reasoning", ["one", "two", "three"]),
        (WriteOptions(keep_thinking="tool_turns"), "reasoning_content", [None, "two", "three"]),
        (WriteOptions(keep_thinking="none"), "reasoning_content", [None, None, None]),
        (WriteOptions(replay="reasoning", keep_thinking="none"), "reasoning", ["one", "two", "three"]),
        (WriteOptions(replay="drop"), "reasoning_content", [None, None, None]),
        (WriteOptions(replay="tags"), "content",
         ["<think>one</think>\n\nsaid", "<think>two</think>\n\n", "<think>three</think>\n\nx"]),
    ],
)  # fmt: skip
def test_thinking_is_sent_back_as_the_upstream_wants_it(
    options: WriteOptions, field: str, wanted: list[str | None]
) -> None:
    """Under the upstream's own name, in the turns that its format needs it for."""
    body = chat.write_request(CONVERSATION, options)
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    assert [message.get(field) for message in said] == wanted
    for other in {"reasoning", "reasoning_content"} - {field}:
        assert not any(other in message for message in said)
    assert body["messages"][5]["content"] == "And\n\nso"
    if options.replay != "tags":
        assert said[1]["content"] == ""


def test_details_are_sent_back_as_they_came() -> None:
    """In order, untouched; within the dialect."""
    details = [{"type": "reasoning.encrypted", "data": "x", "id": "i", "index": 0}]
    message = {"role": "assistant", "content": "so", "reasoning": "hm", "reasoning_details": details}
    body = chat.write_request(chat.read_request({"messages": [message]}), WriteOptions(field="reasoning"))
    assert body["messages"] == [message]


def test_switches_are_mapped_to_what_the_upstream_knows() -> None:
    """A keyword of the chat template, or the effort."""
    off = msgspec.structs.replace(CONVERSATION, thinking=ThinkingOptions(think=False, show=False))
    assert chat.write_request(off, WriteOptions(switch=Switch()))["chat_template_kwargs"] == {"enable_thinking": False}
    assert chat.write_request(off, WriteOptions(switch=Switch.named("thinking")))["chat_template_kwargs"] == {
        "thinking": False
    }
    assert chat.write_request(off)["reasoning_effort"] == "none"
    on = msgspec.structs.replace(CONVERSATION, thinking=ThinkingOptions(think=True, effort="high", budget=99))
    body = chat.write_request(on, WriteOptions(switch=Switch.named("reasoning_effort"), budget="reasoning.max_tokens"))
    assert body["reasoning_effort"] == "high"
    assert body["chat_template_kwargs"] == {"reasoning_effort": "high"}
    assert body["reasoning"] == {"max_tokens": 99}
    assert chat.write_request(on, WriteOptions(budget="thinking_token_budget"))["thinking_token_budget"] == 99
    asked = chat.read_request({"messages": HELLO, "reasoning_effort": "none"})
    body = chat.write_request(asked, WriteOptions(switch=Switch()))
    assert (body["reasoning_effort"], body["chat_template_kwargs"]) == ("none", {"enable_thinking": False})


def test_what_only_another_dialect_understands_is_refused_by_name() -> None:
    """If it changes what is asked; else it is left out."""
    asked = msgspec.structs.replace(CONVERSATION, extra={"top_a": 1, "container": 2})
    assert "top_a" not in chat.write_request(asked)
    with pytest.raises(RequestError) as caught:
        chat.write_request(msgspec.structs.replace(asked, essential=("container",)))
    assert caught.value.param == "container"
    other = RequestTurn("user", (OtherPiece({"type": "document"}),))
    with pytest.raises(RequestError, match="document"):
        chat.write_request(msgspec.structs.replace(CONVERSATION, turns=(other,)))


def test_empty_tools_are_not_sent() -> None:
    """Some servers take them for a request to call."""
    body = chat.write_request(chat.read_request({"messages": HELLO, "tools": [], "tool_choice": "none"}))
    assert body == {"messages": HELLO}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"messages": [{"role": "king"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": HELLO, "n": 0}, "n"),
        ({"messages": HELLO, "stream": "yes"}, "stream"),
        ({"messages": HELLO, "tools": [{"type": "function"}]}, "tools[0].function"),
        ({"messages": HELLO, "tool_choice": "maybe"}, "tool_choice"),
        ({"messages": HELLO, "functions": []}, "functions"),
        ({"messages": HELLO, "reasoning": "much"}, "reasoning"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]},
         "messages[0].tool_calls[0].function.name"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_named(body: dict[str, Any], param: str) -> None:
    """The field, and what it should be."""
    with pytest.raises(RequestError) as caught:
        chat.read_request(body)
    assert caught.value.param == param


@given(JUNK, JUNK)
def test_requests_raise_nothing_but_our_own(messages: Any, tools: Any) -> None:
    """Whatever the JSON says."""
    for body in (messages, {"messages": messages, "tools": tools}, {"messages": [messages], "reasoning": tools}):
        if isinstance(body, dict):
            with suppress(RequestError):
                chat.write_request(chat.read_request(body))


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="<>"), max_size=9)
MESSAGE = st.one_of(
    st.builds(lambda text: {"role": "user", "content": text}, WORDS),
    st.builds(lambda text, name: {"role": "system", "content": text, "name": name}, WORDS, WORDS),
    st.builds(lambda a, b: {"role": "user", "content": [{"type": "text", "text": a}, {"type": "text", "text": b}]},
              WORDS, WORDS),
    st.builds(lambda url: {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]},
              WORDS.map("https://{}".format)),
    st.builds(lambda text, thinking: {"role": "assistant", "content": text, "reasoning": thinking}, WORDS, WORDS),
    st.builds(lambda id, name, arguments: {"role": "assistant", "content": None, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]}, WORDS, WORDS, WORDS),
    st.builds(lambda id, text: {"role": "tool", "tool_call_id": id, "content": text}, WORDS, WORDS),
)  # fmt: skip
FIELDS = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGE, min_size=1, max_size=4), "model": WORDS},
    optional={
        "temperature": st.floats(0, 2),
        "stop": st.lists(WORDS, min_size=1, max_size=2),
        "max_tokens": st.integers(1, 9),
        "max_completion_tokens": st.integers(1, 9),
        "tools": st.just([TOOL]),
        "tool_choice": st.sampled_from(
            ["auto", "none", "required", {"type": "function", "function": {"name": "find"}}]
        ),
        "stream": st.booleans(),
        "stream_options": st.sampled_from([{"include_usage": True}, {"include_usage": True, "x": 1}]),
        "reasoning_effort": st.sampled_from(["none", "low"]),
        "chat_template_kwargs": st.just({"enable_thinking": True}),
        "logit_bias": st.just({"1": 2}),
        "n": st.integers(1, 3),
    },
)


@given(FIELDS)
def test_a_request_that_is_written_and_read_again_is_the_same(body: dict[str, Any]) -> None:
    """Law 6, for requests."""
    found = chat.read_request(body)
    written = chat.write_request(found, WriteOptions(field="reasoning"))
    again = chat.read_request(json.loads(json.dumps(written)))
    if not found.stream:
        found = msgspec.structs.replace(found, include_usage=False, extra={**found.extra})
        found.extra.pop("stream_options", None)
    if not found.tools:
        found = msgspec.structs.replace(found, tool_choice="auto")
    assert again == found


def test_errors_are_read_from_any_body() -> None:
    """JSON in several shapes, or none."""
    found = chat.read_error(400, b'{"error": {"message": "no", "type": "t", "param": "p", "code": "c"}}')
    assert (found.message, found.status, found.kind, found.code, found.param) == ("no", 400, "t", "c", "p")
    assert chat.read_error(429, b'{"error": "slow"}').message == "slow"
    assert chat.read_error(429, b'{"detail": [{"msg": "bad"}]}').kind == "rate_limit_error"
    page = chat.read_error(502, b"<html>bad gateway")
    assert page.message == "the upstream answered with a web page: <html>bad gateway"
    assert chat.read_error(502, b"").message == "the upstream answered with status 502"


def test_parts_and_calls_are_what_the_parser_says() -> None:
    """The shapes hold what their names say."""
    assert isinstance(expected(BY_NAME["drafted"]).parts[0], Thinking)
    assert not any(isinstance(part, ToolCall) for part in expected(BY_NAME["drafted"]).parts)


def test_instructions_come_first_for_clients_of_other_apis() -> None:
    """A system message in the middle of an Anthropic conversation is words of the user: templates refuse it later."""
    asked = anthropic.read_request(
        {
            "model": "m",
            "max_tokens": 9,
            "system": "Be kind.",
            "messages": [
                {"role": "user", "content": "Hello"},
                {"role": "system", "content": "Be brief."},
                {"role": "assistant", "content": "Hi"},
                {"role": "system", "content": "Be clear."},
            ],
        }
    )
    messages = chat.write_request(asked)["messages"]
    assert [(message["role"], message["content"]) for message in messages] == [
        ("system", "Be kind."),
        ("user", "Be brief.\n\nHello"),
        ("assistant", "Hi"),
        ("user", "Be clear."),
    ]


def test_invented_choices_are_told_and_not_remembered() -> None:
    """An upstream that goes on inventing choices makes the reader hold no more of them."""
    reader = chat.ReplyReader()
    frame = b'data: {"choices": [{"index": %d, "delta": {"content": "x"}}]}\n\n'
    before = sum(isinstance(each, ChoiceReader) for each in gc.get_objects())
    told = [piece for number in range(3000) for piece in reader.feed(frame % number) if isinstance(piece, RawText)]
    assert [piece.choice for piece in told] == list(range(3000))
    assert sum(isinstance(each, ChoiceReader) for each in gc.get_objects()) - before <= MOST_CHOICES + 1
