"""The Messages API: what the real SDK makes of what we write, and what we make of what it sends."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import anthropic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.dialects import anthropic as dialect
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
from asides.events import Notice, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from asides.families import get_format
from asides.parts import Text, Thinking
from asides.reply._items import (
    Begin,
    Chunk,
    Ended,
    Failed,
    Foreign,
    RawText,
    Reason,
    ReplyEvent,
    ReplyItem,
    ThinkingChunk,
    Usage,
)
from asides.reply._splitter import Splitter
from tests.dialects.replay import JSON, serve
from tests.dialects.shapes import BY_NAME, FAILING, WHOLE, Shape, expected, items, make_parser, told

ASKED = Request(dialect="anthropic", model="qwen3-8b")
SINGLE = [shape for shape in WHOLE if len(shape.raw) == 1]
SOUND = [shape for shape in SINGLE if all(call.error is None for call in expected(shape).tool_calls)]
"""Those whose calls may all be run."""
STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


def named(shape: Shape) -> str:
    return shape.name


def asked(shape: Shape) -> Request:
    return Request(dialect="anthropic", model="qwen3-8b", thinking=ThinkingOptions(show=shape.show))


def streamed(found: Sequence[ReplyItem], request: Request = ASKED) -> bytes:
    writer = dialect.ReplyWriter(request)
    return b"".join([writer.feed(item) for item in found] + [writer.finish()])


def events(body: bytes) -> list[dict[str, Any]]:
    reader = SseReader()
    frames = [*reader.feed(body), *reader.finish()]
    for frame in frames:
        assert json.loads(frame.data)["type"] == frame.event
    return [json.loads(frame.data) for frame in frames]


SDK = anthropic.Anthropic(api_key="none", max_retries=0)
"""One for all tests: making one takes longer than a test."""


def client(base_url: str) -> anthropic.Anthropic:
    return SDK.with_options(base_url=base_url)


def ask_stream(body: bytes, cuts: int | None) -> anthropic.types.Message:
    with (
        serve(body, cuts=cuts) as replay,
        client(replay.base_url).messages.stream(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}]
        ) as stream,
    ):
        return stream.get_final_message()


def ask_whole(body: dict[str, Any]) -> anthropic.types.Message:
    with serve(json.dumps(body).encode(), headers=JSON, cuts=7) as replay:
        sdk = client(replay.base_url)
        return sdk.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}])


def blocks(message: anthropic.types.Message) -> list[dict[str, Any]]:
    return [block.model_dump(exclude_none=True) for block in message.content]


def wanted(shape: Shape) -> list[dict[str, Any]]:
    """The blocks that a shape must become."""
    found: list[dict[str, Any]] = []
    for part in expected(shape).parts:
        if isinstance(part, Thinking):
            if shape.show:
                found.append({"type": "thinking", "thinking": part.text, "signature": dialect.sign(part.text)})
        elif isinstance(part, Text):
            found.append({"type": "text", "text": part.text})
        elif part.error is None:
            found.append({"type": "tool_use", "id": part.id, "name": part.name, "input": json.loads(part.arguments)})
    return found


# What the SDK reads.


@pytest.mark.parametrize("cuts", [1, 17, None])
@pytest.mark.parametrize("shape", SINGLE, ids=named)
def test_the_sdk_reads_streamed_and_whole_alike(shape: Shape, cuts: int | None) -> None:
    found = items(shape)
    stream = ask_stream(streamed(found, asked(shape)), cuts)
    whole = ask_whole(dialect.write_reply(found, asked(shape)))
    assert stream.model_dump(exclude={"id"}) == whole.model_dump(exclude={"id"})
    assert stream.id == whole.id == "msg_reply_1"
    assert stream.model == "qwen3-8b"
    assert (stream.usage.input_tokens, stream.usage.output_tokens) == (11, 22)


@pytest.mark.parametrize("shape", SOUND, ids=named)
def test_blocks_are_the_parts(shape: Shape) -> None:
    message = ask_stream(streamed(items(shape), asked(shape)), 5)
    assert blocks(message) == wanted(shape)
    called = any(block["type"] == "tool_use" for block in wanted(shape))
    assert message.stop_reason == ("tool_use" if called and shape.reason == "stop" else STOP_REASONS[shape.reason])


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("cut_in_call", ['{"name": "find", "arguments": {"query": "Zü']),
        ("cut_in_name", ['Wait.\n\n{"name": "fi']),
        ("broken_call", ['Look:\n\n{"name": "find", "arguments": {"query": Zürich}}\nSo.']),
        ("nameless_call", ['Look:\n\n{"arguments": {"query": "Zürich"}}\nSo.']),
    ],
)
def test_a_call_that_is_not_whole_is_text_in_its_place(name: str, texts: list[str]) -> None:
    message = ask_stream(streamed(items(BY_NAME[name])), 3)
    assert [block["text"] for block in blocks(message) if block["type"] == "text"] == texts
    assert all(block["type"] != "tool_use" for block in blocks(message))


def test_the_first_of_several_choices_is_told() -> None:
    message = ask_stream(streamed(items(BY_NAME["two"])), 4)
    assert [block.get("text") for block in blocks(message)] == [None, "First answer."]


@pytest.mark.parametrize("shape", FAILING, ids=named)
def test_failure_comes_after_everything_that_was_said(shape: Shape) -> None:
    found = items(shape)
    body = streamed(found)
    said = raised = ""
    with serve(body, cuts=3) as replay:
        sdk = client(replay.base_url)
        stream = sdk.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}], stream=True)
        try:
            for event in stream:
                if event.type == "content_block_delta" and event.delta.type == "text_delta":
                    said += event.delta.text
        except anthropic.APIStatusError as error:
            raised = str(error)
    assert shape.failure is not None
    assert shape.failure.message in raised
    assert said == expected(shape).text
    assert dialect.write_reply(found, ASKED) == dialect.write_error(shape.failure)
    with (
        serve(json.dumps(dialect.write_error(shape.failure)).encode(), status=502, headers=JSON) as replay,
        pytest.raises(anthropic.InternalServerError, match=shape.failure.message),
    ):
        client(replay.base_url).messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}])


def test_a_stream_that_nobody_ends_has_failed() -> None:
    found = [item for item in items(BY_NAME["thinking"]) if not isinstance(item, Ended)]
    last = events(streamed(found))[-1]
    assert last["type"] == "error"
    assert last["error"]["type"] == "api_error"


# The stream itself.


def test_the_sequence_of_events() -> None:
    found = events(streamed(items(BY_NAME["interleaved"], size=1000)))
    kinds = [(event["type"], event.get("delta", {}).get("type")) for event in found]
    start, delta, stop = "content_block_start", "content_block_delta", "content_block_stop"
    assert kinds == [
        ("message_start", None),
        (start, None),
        (delta, "thinking_delta"),
        (delta, "signature_delta"),
        (stop, None),
        (start, None),
        (delta, "text_delta"),
        ("ping", None),
        (stop, None),
        (start, None),
        (delta, "input_json_delta"),
        (stop, None),
        (start, None),
        (delta, "thinking_delta"),
        (delta, "signature_delta"),
        (stop, None),
        (start, None),
        (delta, "text_delta"),
        (stop, None),
        ("message_delta", None),
        ("message_stop", None),
    ]
    indices = [event["index"] for event in found if event["type"] == start]
    assert indices == [0, 1, 2, 3, 4]


def test_usage_has_every_field() -> None:
    found = events(streamed(items(BY_NAME["thinking"], usage=Usage(100, 20, 7, cached_tokens=30))))
    counts = {"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"}
    assert counts <= found[0]["message"]["usage"].keys()
    assert found[-2]["usage"] == {
        "input_tokens": 70,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 30,
        "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 7},
    }


def test_usage_of_the_start_is_kept() -> None:
    usage = {"input_tokens": 5, "output_tokens": 1, "service_tier": "standard"}
    start = {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": usage}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
    body = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in (start, end))
    found = events(streamed(split(read_stream(body, 10))))
    assert found[0]["message"]["usage"].items() >= usage.items()
    assert (found[-2]["usage"]["input_tokens"], found[-2]["usage"]["output_tokens"]) == (5, 9)


def test_estimated_thinking_is_marked() -> None:
    usage = dialect.write_reply(items(BY_NAME["thinking"]), ASKED)["usage"]
    assert usage["output_tokens_details"]["estimated"] is True
    assert 0 < usage["output_tokens_details"]["thinking_tokens"] < 22


def test_pings_while_a_call_is_held() -> None:
    found = events(streamed(items(BY_NAME["only_calls"], size=1)))
    first = next(number for number, event in enumerate(found) if event["type"] == "content_block_start")
    assert [event["type"] for event in found[1:first]].count("ping") >= 2


def test_omitted_thinking_has_a_block_and_a_signature() -> None:
    request = Request(dialect="anthropic", thinking=ThinkingOptions(think=True, omitted=True))
    found = items(BY_NAME["thinking"])
    whole = dialect.write_reply(found, request)["content"][0]
    assert whole == {
        "type": "thinking",
        "thinking": "",
        "signature": dialect.sign(expected(BY_NAME["thinking"]).thinking),
    }
    assert blocks(ask_stream(streamed(found, request), 2))[0] == whole


def test_line_separators_are_escaped() -> None:
    body = streamed(items(BY_NAME["thinking"]))
    assert "\u2028".encode() not in body
    assert b"\\u2028" in body


def test_a_stop_sequence_is_told_only_if_the_caller_set_it() -> None:
    found: list[ReplyItem] = [Begin(), Ended(0, "stop", "END")]
    asked_for = Request(dialect="anthropic", stop=("END",))
    assert dialect.write_reply(found, asked_for)["stop_reason"] == "stop_sequence"
    assert dialect.write_reply(found, asked_for)["stop_sequence"] == "END"
    assert dialect.write_reply(found, ASKED)["stop_reason"] == "end_turn"
    assert dialect.write_reply(found, ASKED)["stop_sequence"] is None


@pytest.mark.parametrize("arguments", ['{"a": "\\ud800"}', "[]", '{"a":' + "[" * 300 + "]" * 300 + "}", "{} {}"])
def test_arguments_that_the_sdk_cannot_read_are_text(arguments: str) -> None:
    found: list[ReplyItem] = [
        Begin(),
        ReplyEvent(0, PartStart(0, "tool_call", "", "f", "id")),
        ReplyEvent(0, ToolCallDelta(0, arguments)),
        ReplyEvent(0, PartEnd(0)),
        Ended(0),
    ]
    message = ask_stream(streamed(found), None)
    assert [block.type for block in message.content] == ["text"]
    assert message.stop_reason == "end_turn"


# Replies, read.


def split(pieces: list[Chunk]) -> list[ReplyItem]:
    splitter = Splitter(get_format("passthrough"), make_parser())
    return [item for piece in pieces for item in splitter.feed(piece)] + splitter.finish()


def read_stream(body: bytes, size: int) -> list[Chunk]:
    reader = dialect.ReplyReader()
    chunks = [body[start : start + size] for start in range(0, len(body), size)]
    return [piece for chunk in chunks for piece in reader.feed(chunk)] + reader.finish()


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("shape", SINGLE, ids=named)
def test_written_then_read(shape: Shape, size: int) -> None:
    request = asked(shape)
    body = streamed(items(shape), request)
    whole = dialect.write_reply(items(shape), request)
    from_stream, from_whole = split(read_stream(body, size)), split(dialect.read_reply(whole))
    assert told(from_stream).reason == told(from_whole).reason
    assert dialect.write_reply(from_stream, request) == dialect.write_reply(from_whole, request) == whole


words = st.text(min_size=1, max_size=20).filter(str.strip)
call_values = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | words,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)


@st.composite
def replies(draw: st.DrawFn) -> list[ReplyItem]:
    """The items of any reply that this dialect can tell."""
    found: list[ReplyItem] = [Begin("msg_1", "m")]
    last = ""
    for index in range(draw(st.integers(0, 5))):
        kind = draw(
            st.sampled_from([kind for kind in ("thinking", "text", "tool_call") if kind != "text" or last != kind])
        )
        last = kind
        if kind == "tool_call":
            arguments = json.dumps(draw(call_values), ensure_ascii=draw(st.booleans()))
            found.append(ReplyEvent(0, PartStart(index, "tool_call", "", draw(words), f"call_{index}")))
            found.append(ReplyEvent(0, ToolCallDelta(index, arguments)))
        else:
            start = PartStart(index, "thinking") if kind == "thinking" else PartStart(index, "text")
            found.append(ReplyEvent(0, start))
            for text in draw(st.lists(words, min_size=1, max_size=3)):
                found.append(
                    ReplyEvent(0, ThinkingDelta(index, text) if kind == "thinking" else TextDelta(index, text))
                )
        found.append(ReplyEvent(0, PartEnd(index)))
    reason: Reason = draw(st.sampled_from(["stop", "length", "content_filter"]))
    usage = Usage(draw(st.integers(0, 9)), draw(st.integers(0, 9)), draw(st.integers(0, 9)))
    return [*found, Ended(0, reason), usage]


@settings(deadline=None)
@given(replies(), st.integers(1, 50))
def test_any_reply_comes_back(found: list[ReplyItem], size: int) -> None:
    before = told(found)
    for pieces in (read_stream(streamed(found), size), dialect.read_reply(dialect.write_reply(found, ASKED))):
        after = split(pieces)
        assert [part[:-1] if part[0] == "call" else part for part in told(after).parts] == [
            part[:-1] if part[0] == "call" else part for part in before.parts
        ]
        for part, same in zip(before.parts, told(after).parts, strict=True):
            if part[0] == "call":
                assert json.loads(part[-1]) == json.loads(same[-1])
        assert told(after).reason == before.reason
        assert [item.output_tokens for item in after if isinstance(item, Usage)] == [
            item.output_tokens for item in found if isinstance(item, Usage)
        ]


@settings(deadline=None)
@given(
    st.binary(max_size=200),
    st.lists(
        st.sampled_from(
            [
                b"event: error\n",
                b"data: {}\n",
                b"data: []\n",
                b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":3}}\n',
                b'data: {"type":"message_delta","delta":null}\n',
                b'data: {"type":"content_block_stop"}\n',
                b"\n",
            ]
        ),
        max_size=6,
    ),
)
def test_the_reader_takes_anything(noise: bytes, lines: list[bytes]) -> None:
    pieces = read_stream(noise + b"\n\n" + b"\n".join(lines), 9)
    assert isinstance(pieces[-1], Failed)


def test_what_only_this_dialect_knows_is_kept() -> None:
    content = [
        {"type": "redacted_thinking", "data": "abc"},
        {"type": "thinking", "thinking": "", "signature": "sealed"},
        {"type": "thinking", "thinking": "Hm.", "signature": "real"},
        {"type": "thinking", "thinking": "Again.", "signature": "real2"},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "text", "text": "So."},
    ]
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 2, "output_tokens": 4, "service_tier": "standard"}
    body: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "usage": usage,
    }
    body |= {"stop_reason": "pause_turn", "stop_sequence": None}
    again = dialect.write_reply(split(dialect.read_reply(body)), ASKED)
    assert again["content"] == content
    assert again["stop_reason"] == "pause_turn"
    assert again["usage"].items() >= usage.items()
    stream = streamed(split(dialect.read_reply(body)))
    assert blocks(ask_stream(stream, 6)) == content
    assert dialect.write_reply(split(read_stream(stream, 5)), ASKED)["content"] == content


def test_an_upstream_that_stops_is_dead() -> None:
    body = streamed(items(BY_NAME["thinking"]))
    cut = body[: body.index(b"event: message_delta")]
    pieces = read_stream(cut, 50)
    assert isinstance(pieces[-1], Failed)
    assert pieces[-1].status == 502
    assert "".join(piece.text for piece in pieces if isinstance(piece, RawText)) == expected(BY_NAME["thinking"]).text


def test_a_reason_without_message_stop_is_an_end() -> None:
    body = streamed(items(BY_NAME["cut_in_text"]))
    pieces = read_stream(body[: body.index(b"event: message_stop")], 50)
    assert [piece.reason for piece in pieces if isinstance(piece, Ended)] == ["length"]
    assert not any(isinstance(piece, Failed) for piece in pieces)


def test_thoughts_name_their_field() -> None:
    pieces = dialect.read_reply(dialect.write_reply(items(BY_NAME["thinking"]), ASKED))
    assert {piece.field for piece in pieces if isinstance(piece, ThinkingChunk)} == {"thinking"}


def test_a_split_off_call_that_is_broken_is_text_with_a_notice() -> None:
    content = [{"type": "tool_use", "id": "a", "name": "f", "input": {}}, {"type": "text", "text": "So."}]
    stream = streamed(split(dialect.read_reply({"content": content, "stop_reason": "max_tokens"})))
    broken = stream.replace(b'"partial_json":"{}"', b'"partial_json":"{\\"a"')
    found = split(read_stream(broken, 20))
    assert [item.event.code for item in found if isinstance(item, ReplyEvent) and isinstance(item.event, Notice)] == [
        "incomplete_call"
    ]
    text = dialect.write_reply(found, ASKED)["content"][0]["text"]
    assert text == '{"name": "f", "arguments": {"a\n\nSo.'


def test_foreign_items_of_others_are_left_out() -> None:
    found: list[ReplyItem] = [Begin(), Foreign("openai_chat", "content_block", {"type": "x"}), Ended(0)]
    assert dialect.write_reply(found, ASKED)["content"] == []


# Errors.


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (418, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_errors_have_the_type_of_their_status(status: int, kind: str) -> None:
    body = dialect.write_error(Failed("no", status))
    assert body == {"type": "error", "error": {"type": kind, "message": "no"}}
    read = dialect.read_error(status, json.dumps(body).encode())
    assert (read.message, read.status) == ("no", status)
    assert dialect.write_error(read) == body


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"error": "no"}', b'{"message": "no"}', b"\xff", b'{"error": {}}']
)
def test_any_error_is_read(body: bytes) -> None:
    failed = dialect.read_error(503, body)
    assert failed.status == 503
    assert failed.message


def test_counting() -> None:
    assert dialect.write_count(12) == {"input_tokens": 12}


# Requests.


def recorded() -> Iterator[tuple[str, dict[str, Any]]]:
    """What the SDK itself sends."""
    body = json.dumps(dialect.write_reply(items(BY_NAME["none"]), ASKED)).encode()
    with serve(body, headers=JSON) as replay:
        sdk = client(replay.base_url)
        sdk.messages.create(
            model="m",
            max_tokens=4096,
            system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            messages=[
                {"role": "user", "content": "Weather?"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Ask.", "signature": "any"},
                        {"type": "redacted_thinking", "data": "xyz"},
                        {"type": "text", "text": "One moment."},
                        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bern"}},
                        {"type": "tool_use", "id": "toolu_2", "name": "map", "input": {}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Rain.", "is_error": True},
                        {
                            "type": "tool_result",
                            "tool_use_id": "toolu_2",
                            "content": [
                                {"type": "text", "text": "Here."},
                                {
                                    "type": "image",
                                    "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
                                },
                            ],
                            "cache_control": {"type": "ephemeral"},
                        },
                        {"type": "text", "text": "And now?"},
                        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                    ],
                },
            ],
            tools=[
                {
                    "name": "weather",
                    "description": "Tells it.",
                    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
                    "cache_control": {"type": "ephemeral"},
                },
                {"name": "map", "input_schema": {"type": "object"}},
            ],
            tool_choice={"type": "any", "disable_parallel_tool_use": True},
            thinking={"type": "enabled", "budget_tokens": 2000, "display": "omitted"},
            output_config={"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}},
            stop_sequences=["END"],
            metadata={"user_id": "u1"},
            service_tier="auto",
            extra_body={"temperature": 0.5, "top_p": 0.9, "top_k": 40},
        )
        yield "full", replay.requests[0].body


def test_a_request_of_the_sdk_is_read() -> None:
    ((_, body),) = recorded()
    request = dialect.read_request(body)
    assert request.turns == (
        RequestTurn("system", (TextPiece("Be brief.", {"cache_control": {"type": "ephemeral"}}),)),
        RequestTurn("user", (TextPiece("Weather?"),)),
        RequestTurn(
            "assistant",
            (
                ThinkingPiece("Ask.", "any"),
                ThinkingPiece("", details=({"type": "redacted_thinking", "data": "xyz"},)),
                TextPiece("One moment."),
                CallPiece("weather", '{"city":"Bern"}', "toolu_1"),
                CallPiece("map", "{}", "toolu_2"),
            ),
        ),
        RequestTurn("tool", (TextPiece("Rain."),), "toolu_1", "weather", True),
        RequestTurn(
            "tool",
            (TextPiece("Here."), ImagePiece(data="aGk=", media_type="image/png")),
            "toolu_2",
            "map",
            extra={"cache_control": {"type": "ephemeral"}},
        ),
        RequestTurn("user", (TextPiece("And now?"), ImagePiece(url="https://example.org/a.png"))),
    )
    assert [tool.name for tool in request.tools] == ["weather", "map"]
    assert request.tools[0].parameters["properties"] == {"city": {"type": "string"}}
    assert (request.tool_choice, request.parallel_calls) == ("required", False)
    thinking = request.thinking
    assert (thinking.think, thinking.show, thinking.effort, thinking.budget, thinking.omitted) == (
        True,
        True,
        "high",
        2000,
        True,
    )
    assert request.response_format is not None
    assert request.response_format["json_schema"]["schema"] == {"type": "object"}
    assert (request.max_tokens, request.stop, request.user) == (4096, ("END",), "u1")
    assert request.sampling == {"temperature": 0.5, "top_p": 0.9, "top_k": 40}
    assert request.extra == {"service_tier": "auto"}
    assert request.essential == ()
    assert dialect.write_request(request) == body


def test_streaming_and_counting_requests_of_the_sdk_are_read() -> None:
    with serve(streamed(items(BY_NAME["none"]))) as replay:
        sdk = client(replay.base_url)
        for _ in sdk.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}], stream=True):
            pass
    assert dialect.read_request(replay.requests[0].body).stream is True
    with serve(json.dumps(dialect.write_count(5)).encode(), headers=JSON) as replay:
        sdk = client(replay.base_url)
        assert sdk.messages.count_tokens(model="m", messages=[{"role": "user", "content": "?"}]).input_tokens == 5
    assert dialect.read_request(replay.requests[0].body).max_tokens is None


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        ({"type": "adaptive"}, (True, True, None)),
        ({"type": "between_tools"}, (True, True, None)),
        ({"type": "enabled", "budget_tokens": 1024}, (True, True, 1024)),
        ({"type": "disabled"}, (False, False, None)),
        (None, (None, True, None)),
    ],
)
def test_thinking(thinking: dict[str, Any] | None, expected: tuple[Any, ...]) -> None:
    body = {"model": "m", "max_tokens": 9, "messages": [], **({"thinking": thinking} if thinking else {})}
    request = dialect.read_request(body)
    assert (request.thinking.think, request.thinking.show, request.thinking.budget) == expected
    assert dialect.write_request(request) == body


def test_thinking_between_tags_is_thinking() -> None:
    messages = [{"role": "assistant", "content": "<think>Hm.</think>\n\nSo."}]
    request = dialect.read_request({"messages": messages})
    assert request.turns[0].pieces == (ThinkingPiece("Hm."), TextPiece("So."))


def test_results_come_before_words() -> None:
    content = [{"type": "text", "text": "So?"}, {"type": "tool_result", "tool_use_id": "a", "content": "1"}]
    request = dialect.read_request({"messages": [{"role": "user", "content": content}]})
    assert [turn.role for turn in request.turns] == ["tool", "user"]
    assert dialect.write_request(request)["messages"][0]["content"] == content[::-1]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": 3}, "messages"),
        ({"messages": [3]}, "messages.0"),
        ({"messages": [{"role": "robot", "content": ""}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages.0.content.0.text"),
        ({"messages": [{"role": "user", "content": [{}]}]}, "messages.0.content.0.type"),
        ({"thinking": {"type": "much"}}, "thinking.type"),
        ({"tool_choice": {"type": "x"}}, "tool_choice.type"),
        ({"tools": [{}]}, "tools.0.name"),
        ({"max_tokens": "9"}, "max_tokens"),
        ({"stream": 1}, "stream"),
        ({"output_config": {"format": {}}}, "output_config.format.schema"),
    ],
)
def test_what_cannot_be_understood_is_named(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as raised:
        dialect.read_request(body)
    assert raised.value.param == param


def test_what_anthropic_runs_itself_is_essential() -> None:
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": "x"}}]}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "mcp_servers": [{"url": "x"}],
        "context_management": {"edits": []},
    }
    request = dialect.read_request(body)
    assert (request.essential, request.hosted) == (("mcp_servers",), ("tools.0.web_search_20250305",))
    assert isinstance(request.turns[0].pieces[0], OtherPiece)
    assert dialect.write_request(request) == body


@pytest.mark.parametrize(
    ("keep", "ours"),
    [
        (None, 1),
        ("all", "all"),
        ({"type": "all"}, "all"),
        ({"type": "thinking_turns", "value": 2}, 2),
        ("some", "clear_thinking_20251015.keep"),
        ({"type": "thinking_turns"}, "clear_thinking_20251015.keep.value"),
        ({"type": "thinking_turns", "value": 0}, "clear_thinking_20251015.keep.value"),
    ],
)
def test_earlier_thinking_that_is_cleared(keep: Any, ours: Any) -> None:
    """The edit is understood; other edits have no counterpart and are refused by name elsewhere."""
    edit = {"type": "clear_thinking_20251015"} | ({} if keep is None else {"keep": keep})
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "?"}],
        "context_management": {"edits": [edit]},
    }
    if isinstance(ours, str) and ours != "all":
        with pytest.raises(RequestError) as caught:
            dialect.read_request(body)
        assert caught.value.param == f"context_management.{ours}"
        return
    request = dialect.read_request(body)
    assert (request.thinking.keep, request.essential) == (ours, ())
    assert dialect.write_request(request) == body
    other = {"type": "clear_tool_uses_20250919"}
    more = dialect.read_request({**body, "context_management": {"edits": [other, edit]}})
    assert more.thinking.keep == ours
    assert more.essential == ("context_management.clear_tool_uses_20250919",)
    wrongs: list[Any] = [{"edits": {}}, {"edits": [3]}, []]
    for wrong in wrongs:
        with pytest.raises(RequestError, match="context_management"):
            dialect.read_request({**body, "context_management": wrong})


@pytest.mark.parametrize(
    ("choice", "forced"),
    [
        ({"type": "auto"}, False),
        ({"type": "any"}, False),
        ({"type": "tool", "name": "find"}, False),
        ({"type": "tool", "name": "web_search"}, True),
    ],
)
def test_a_choice_that_forces_what_anthropic_runs_itself(choice: dict[str, Any], forced: bool) -> None:
    """Such a tool is left out elsewhere, unless it must be called."""
    hosted = {"type": "web_search_20250305", "name": "web_search"}
    own = {"name": "find", "input_schema": {"type": "object"}}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
    request = dialect.read_request({**body, "tools": [hosted, own], "tool_choice": choice})
    assert (request.essential == ("tool_choice",)) is forced
    only = dialect.read_request({**body, "tools": [hosted], "tool_choice": choice})
    assert (only.essential == ("tool_choice",)) is (forced or choice["type"] == "any")
    assert dialect.write_request(only)["tools"] == [hosted]


def test_a_request_of_another_dialect() -> None:
    request = Request(
        dialect="openai_chat",
        model="m",
        turns=(
            RequestTurn("system", (TextPiece("A."),)),
            RequestTurn("user", (TextPiece("Hi", {"x": 1}), ImagePiece(url="data:image/gif;base64,aGk="))),
            RequestTurn("assistant", (ThinkingPiece("Hm."), CallPiece("f", '{"a": 1', "functions.f:0"))),
            RequestTurn("tool", (TextPiece("1"),), "functions.f:0"),
            RequestTurn("developer", (TextPiece("B."),)),
            RequestTurn("user", (TextPiece("So?"),)),
        ),
        tools=(Tool("f", extra={"x": 1}),),
        tool_choice="function:f",
        thinking=ThinkingOptions(think=True, budget=100),
        stream=True,
        sampling={"temperature": 1, "seed": 3},
        extra={"store": True},
    )
    assert dialect.write_request(request, WriteOptions(model="claude", stream=False)) == {
        "model": "claude",
        "max_tokens": 8292,
        "system": "A.",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Hi"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "aGk="}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": dialect.sign("Hm.")},
                    {"type": "tool_use", "id": "functions_f_0", "name": "f", "input": {"unparsed": '{"a": 1'}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "functions_f_0", "content": "1"},
                    {"type": "text", "text": "B."},
                    {"type": "text", "text": "So?"},
                ],
            },
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}}],
        "tool_choice": {"type": "tool", "name": "f"},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "temperature": 1,
    }
    dropped = dialect.write_request(request, WriteOptions(replay="drop"))
    assert [block["type"] for block in dropped["messages"][1]["content"]] == ["tool_use"]


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        (Request(dialect="openai_chat", choices=2), "n"),
        (Request(dialect="openai_chat", logprobs=True), "logprobs"),
        (Request(dialect="openai_chat", response_format={"type": "json_object"}), "response_format"),
        (Request(dialect="openai_completions", prompt="x"), "prompt"),
        (Request(dialect="x", extra={"background": True}, essential=("background",)), "background"),
        (Request(dialect="x", turns=(RequestTurn("user", (OtherPiece({"type": "file"}),)),)), "messages"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(request_: Request, param: str) -> None:
    with pytest.raises(RequestError) as raised:
        dialect.write_request(request_)
    assert raised.value.param == param


texts = st.text(min_size=1, max_size=20)
pieces_of_users = st.lists(
    st.builds(TextPiece, texts) | st.builds(ImagePiece, data=st.just("aGk="), media_type=st.just("image/png")),
    min_size=1,
    max_size=3,
)
pieces_of_assistants = st.lists(
    st.builds(TextPiece, texts)
    | st.builds(ThinkingPiece, texts, st.just("signed"))
    | st.builds(CallPiece, st.just("f"), st.just('{"a":1}'), st.just("call_1")),
    min_size=1,
    max_size=4,
)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[RequestTurn, ...]:
    turns = [RequestTurn("system", (TextPiece(draw(texts)),))]
    for _ in range(draw(st.integers(0, 3))):
        turns.append(RequestTurn("user", tuple(draw(pieces_of_users))))
        turns.append(RequestTurn("assistant", tuple(draw(pieces_of_assistants))))
    return tuple(turns)


@given(conversations(), st.sampled_from(["auto", "none", "required", "function:f"]))
def test_any_request_comes_back(turns: tuple[RequestTurn, ...], choice: str) -> None:
    request = Request(
        dialect="anthropic",
        model="m",
        max_tokens=7,
        turns=turns,
        tools=(Tool("f", "d", {"type": "object"}),),
        tool_choice=choice,
    )
    assert dialect.read_request(dialect.write_request(request)) == request
