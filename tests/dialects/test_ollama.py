"""Ollama's own API: what the real SDK makes of what we write, and what we make of what it sends."""

from __future__ import annotations

import json
import ssl
from collections.abc import Sequence
from typing import Any

import ollama
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.dialects import ollama as dialect
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
from asides.events import PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from asides.families import get_format
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
from tests.dialects.replay import JSON, NDJSON, Replay, serve
from tests.dialects.shapes import BY_NAME, FAILING, WHOLE, Shape, expected, items, make_parser, told

CHAT = Request(dialect="ollama", model="qwen3-8b")
GENERATE = Request(dialect="ollama", model="qwen3-8b", names={"turns": "prompt"})
SINGLE = [shape for shape in WHOLE if len(shape.raw) == 1]
SOUND = [shape for shape in SINGLE if all(call.error is None for call in expected(shape).tool_calls)]
"""Those whose calls may all be run."""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def named(shape: Shape) -> str:
    return shape.name


def asked(shape: Shape, names: dict[str, str] | None = None) -> Request:
    return Request(dialect="ollama", model="qwen3-8b", thinking=ThinkingOptions(show=shape.show), names=names or {})


def streamed(found: Sequence[ReplyItem], request: Request = CHAT) -> bytes:
    writer = dialect.ReplyWriter(request)
    return b"".join([writer.feed(item) for item in found] + [writer.finish()])


def lines(body: bytes) -> list[dict[str, Any]]:
    assert body.endswith(b"\n")
    return [json.loads(line) for line in body.split(b"\n")[:-1]]


class Heard:
    """What the SDK has put together."""

    def __init__(self) -> None:
        self.thinking = self.text = ""
        self.calls: list[tuple[str, Any]] = []
        self.last: dict[str, Any] = {}

    def chat(self, part: ollama.ChatResponse) -> None:
        self.thinking += part.message.thinking or ""
        self.text += part.message.content or ""
        self.calls += [(call.function.name, call.function.arguments) for call in part.message.tool_calls or ()]
        self.last = part.model_dump(exclude={"message", "created_at"})

    def generate(self, part: ollama.GenerateResponse) -> None:
        self.thinking += part.thinking or ""
        self.text += part.response or ""
        self.last = part.model_dump(exclude={"thinking", "response", "created_at"})


MESSAGES = [{"role": "user", "content": "?"}]
TLS = ssl.create_default_context()
"""For every client: each would read the certificates of this machine anew, to speak plain HTTP to a test."""


def sdk_for(replay: Replay) -> ollama.Client:
    return ollama.Client(replay.base_url, verify=TLS)


def ask_stream(body: bytes, cuts: int | None, *, generate: bool = False) -> Heard:
    heard = Heard()
    with serve(body, headers=NDJSON, cuts=cuts) as replay:
        sdk = sdk_for(replay)
        if generate:
            for line in sdk.generate("m", "?", stream=True):
                heard.generate(line)
        else:
            for part in sdk.chat("m", MESSAGES, stream=True):
                heard.chat(part)
    return heard


def ask_whole(body: dict[str, Any], *, generate: bool = False) -> Heard:
    heard = Heard()
    with serve(json.dumps(body).encode(), headers=JSON, cuts=7) as replay:
        sdk = sdk_for(replay)
        if generate:
            heard.generate(sdk.generate("m", "?"))
        else:
            heard.chat(sdk.chat("m", MESSAGES))
    return heard


# What the SDK reads.


@pytest.mark.parametrize("cuts", [1, 17, None])
@pytest.mark.parametrize("shape", SINGLE, ids=named)
def test_the_sdk_reads_streamed_and_whole_alike(shape: Shape, cuts: int | None) -> None:
    found = items(shape)
    stream = ask_stream(streamed(found, asked(shape)), cuts)
    whole = ask_whole(dialect.write_reply(found, asked(shape)))
    assert vars(stream) == vars(whole)
    assert stream.last["model"] == "qwen3-8b"
    assert stream.last["done"] is True
    assert (stream.last["prompt_eval_count"], stream.last["eval_count"]) == (11, 22)


@pytest.mark.parametrize("shape", SINGLE, ids=named)
def test_generate_too(shape: Shape) -> None:
    request = asked(shape, {"turns": "prompt"})
    found = items(shape)
    stream = ask_stream(streamed(found, request), 3, generate=True)
    assert vars(stream) == vars(ask_whole(dialect.write_reply(found, request), generate=True))
    assert stream.thinking == (expected(shape).thinking if shape.show else "")
    if shape in SOUND:
        assert stream.text == expected(shape).text


@pytest.mark.parametrize("shape", SOUND, ids=named)
def test_everything_is_told(shape: Shape) -> None:
    message = expected(shape)
    heard = ask_stream(streamed(items(shape), asked(shape)), 5)
    assert heard.thinking == (message.thinking if shape.show else "")
    assert heard.text == message.text
    assert heard.calls == [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
    assert heard.last["done_reason"] == ("length" if shape.reason == "length" else "stop")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cut_in_call", '{"name": "find", "arguments": {"query": "Zü'),
        ("cut_in_name", 'Wait.\n\n{"name": "fi'),
        ("broken_call", 'Look:\n\n{"name": "find", "arguments": {"query": Zürich}}\nSo.'),
        ("nameless_call", 'Look:\n\n{"arguments": {"query": "Zürich"}}\nSo.'),
    ],
)
def test_a_call_that_is_not_whole_is_text_in_its_place(name: str, text: str) -> None:
    heard = ask_stream(streamed(items(BY_NAME[name])), 3)
    assert heard.text == text
    assert heard.calls == []


def test_the_first_of_several_choices_is_told() -> None:
    assert ask_stream(streamed(items(BY_NAME["two"])), 4).text == "First answer."


@pytest.mark.parametrize("shape", FAILING, ids=named)
def test_failure_comes_after_everything_that_was_said(shape: Shape) -> None:
    found = items(shape)
    heard = Heard()
    raised = ""
    with serve(streamed(found), headers=NDJSON, cuts=3) as replay:
        try:
            for part in sdk_for(replay).chat("m", MESSAGES, stream=True):
                heard.chat(part)
        except ollama.ResponseError as error:
            raised = error.error
    assert shape.failure is not None
    assert raised == shape.failure.message
    assert heard.text == expected(shape).text
    assert heard.thinking == expected(shape).thinking
    body = dialect.write_reply(found, CHAT)
    assert body == {"error": shape.failure.message}
    with serve(json.dumps(body).encode(), status=502, headers=JSON) as replay:
        sdk = sdk_for(replay)
        with pytest.raises(ollama.ResponseError, match=shape.failure.message):
            sdk.chat("m", MESSAGES)


def test_a_stream_that_nobody_ends_has_failed() -> None:
    found = [item for item in items(BY_NAME["thinking"]) if not isinstance(item, Ended)]
    assert lines(streamed(found))[-1].keys() == {"error"}


# The lines themselves.


def test_lines() -> None:
    found = lines(streamed(items(BY_NAME["interleaved"], size=1000)))
    head = {"model": "qwen3-8b", "created_at": "2023-11-14T22:13:20.000000Z"}
    call = {"index": 0, "name": "find", "arguments": {"query": "Zürich \u2028 <b>", "limit": 3}}
    said: list[dict[str, Any]] = [
        {"content": "", "thinking": "One."},
        {"content": "First."},
        {"content": "", "tool_calls": [{"id": found[2]["message"]["tool_calls"][0]["id"], "function": call}]},
        {"content": "", "thinking": "\n\nTwo."},
        {"content": "\n\nSecond."},
    ]
    assert found[:-1] == [{**head, "message": {"role": "assistant", **each}, "done": False} for each in said]
    assert found[-1] == {
        **head,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "stop",
        "total_duration": 0,
        "load_duration": 0,
        "prompt_eval_count": 11,
        "prompt_eval_duration": 0,
        "eval_count": 22,
        "eval_duration": 0,
    }


def test_lines_of_generate() -> None:
    found = lines(streamed(items(BY_NAME["cut_in_text"], size=1000), GENERATE))
    assert [(line["response"], line.get("thinking")) for line in found] == [("", "Easy."), ("It is", None), ("", None)]
    assert found[-1]["done_reason"] == "length"
    calls = lines(streamed(items(BY_NAME["only_calls"]), GENERATE))[-1]["tool_calls"]
    assert [call["function"]["name"] for call in calls] == ["find", "open"]


@pytest.mark.parametrize("shape", [*WHOLE, *FAILING], ids=named)
def test_nothing_that_breaks_a_line(shape: Shape) -> None:
    body = streamed(items(shape), asked(shape))
    assert len(body.decode().splitlines()) == body.count(b"\n")
    for line in body.splitlines():
        json.loads(line)


def test_arguments_of_several_lines_stay_on_one() -> None:
    raw = '<tool_call>{"name": "f", "arguments": {\n  "a": [1,\n 12345678901234567890123]\n}}</tool_call>'
    heard = ask_stream(streamed(items(Shape("pretty", (raw,)))), 3)
    assert heard.calls == [("f", {"a": [1, 12345678901234567890123]})]


def test_the_time_is_told_when_nobody_knows_it() -> None:
    assert lines(streamed([Begin(), Ended(0)]))[0]["created_at"].endswith("Z")


def test_log_probabilities() -> None:
    tokens = ({"token": "It", "logprob": -0.5},)
    found: list[ReplyItem] = [
        Begin(),
        ReplyEvent(0, PartStart(0, "text")),
        ReplyEvent(0, TextDelta(0, "It"), tokens),
        Ended(0),
    ]
    assert lines(streamed(found))[0]["logprobs"] == list(tokens)
    assert lines(streamed(found, GENERATE))[0]["logprobs"] == list(tokens)
    assert dialect.write_reply(found, CHAT)["logprobs"] == list(tokens)
    assert read_stream(streamed(found), 9)[1] == RawText(0, "It", tokens)


# Replies, read.


def split(pieces: list[Chunk]) -> list[ReplyItem]:
    splitter = Splitter(get_format("passthrough"), make_parser())
    return [item for piece in pieces for item in splitter.feed(piece)] + splitter.finish()


def read_stream(body: bytes, size: int) -> list[Chunk]:
    reader = dialect.ReplyReader()
    chunks = [body[start : start + size] for start in range(0, len(body), size)]
    return [piece for chunk in chunks for piece in reader.feed(chunk)] + reader.finish()


@pytest.mark.parametrize("request_", [CHAT, GENERATE], ids=["chat", "generate"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("shape", SINGLE, ids=named)
def test_written_then_read(shape: Shape, size: int, request_: Request) -> None:
    whole = dialect.write_reply(items(shape), request_)
    for pieces in (read_stream(streamed(items(shape), request_), size), dialect.read_reply(whole)):
        again = dialect.write_reply(split(pieces), request_)
        assert again.keys() == whole.keys()
        # A whole reply has no order, so text that follows a call is read before it.
        assert again == whole or shape.name == "interleaved"


words = st.text(min_size=1, max_size=20).filter(str.strip)


@st.composite
def replies(draw: st.DrawFn) -> list[ReplyItem]:
    """The items of a reply in the order that this dialect knows: thinking, text, calls."""
    found: list[ReplyItem] = [Begin("", "m", 1_700_000_000)]
    index = 0
    for kind, wanted in (("thinking", draw(st.booleans())), ("text", draw(st.booleans()))):
        if not wanted:
            continue
        found.append(ReplyEvent(0, PartStart(index, "thinking" if kind == "thinking" else "text")))
        for text in draw(st.lists(words, min_size=1, max_size=3)):
            found.append(ReplyEvent(0, ThinkingDelta(index, text) if kind == "thinking" else TextDelta(index, text)))
        found.append(ReplyEvent(0, PartEnd(index)))
        index += 1
    for _ in range(draw(st.integers(0, 3))):
        arguments = json.dumps(draw(st.dictionaries(st.text(max_size=5), st.integers() | words, max_size=3)))
        found.append(ReplyEvent(0, PartStart(index, "tool_call", "", draw(words), f"call_{index}")))
        found.append(ReplyEvent(0, ToolCallDelta(index, arguments)))
        found.append(ReplyEvent(0, PartEnd(index)))
        index += 1
    reason: Reason = draw(st.sampled_from(["stop", "length"]))
    usage = Usage(draw(st.integers(0, 9)), draw(st.integers(0, 9)), durations={"total_duration": 5})
    return [*found, Ended(0, reason), usage]


@settings(deadline=None)
@given(replies(), st.integers(1, 50))
def test_any_reply_comes_back(found: list[ReplyItem], size: int) -> None:
    before = told(found)
    for pieces in (read_stream(streamed(found), size), dialect.read_reply(dialect.write_reply(found, CHAT))):
        after = told(split(pieces))
        assert [part[:2] for part in after.parts] == [part[:2] for part in before.parts]
        for part, same in zip(before.parts, after.parts, strict=True):
            if part[0] == "call":
                assert json.loads(part[2]) == json.loads(same[2])
        assert after.reason == before.reason
        (usage,) = [item for item in found if isinstance(item, Usage)]
        (same_usage,) = [piece for piece in pieces if isinstance(piece, Usage)]
        assert (same_usage.input_tokens, same_usage.output_tokens) == (usage.input_tokens, usage.output_tokens)
        assert same_usage.durations["total_duration"] == 5


ODD = [
    *(b"{}", b"[]", b"3", b"", b'{"message":3}', b'{"response":3}', b'{"error":{}}', b'{"done":"x"}'),
    *(b'{"message":{"tool_calls":[{}]}}', b'{"message":{"tool_calls":[{"function":{"arguments":null}}]}}'),
]


@settings(deadline=None)
@given(st.binary(max_size=100), st.lists(st.sampled_from(ODD), max_size=6))
def test_the_reader_takes_anything(noise: bytes, found: list[bytes]) -> None:
    assert isinstance(read_stream(b"\n".join([*found, noise]), 9)[-1], Failed)


def test_a_recorded_stream() -> None:
    body = (
        b'{"model":"qwen3","created_at":"2025-10-01T10:00:00.123456789Z","message":{"role":"assistant","content":"","thinking":"Hm"},"done":false}\n'
        b'{"model":"qwen3","created_at":"2025-10-01T10:00:00.2Z","message":{"role":"assistant","content":"So ","thinking":"."},"done":false}\n'  # noqa: E501
        b'{"model":"qwen3","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_x","function":{"index":0,"name":"f","arguments":{"a": 1}}},{"function":{"name":"g","arguments":"{}"}}]},"done":false}\n'  # noqa: E501
        b'{"model":"qwen3","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":9,"eval_count":4}'
    )
    assert read_stream(body, 11) == [
        Begin("", "qwen3", 1759312800, "ollama"),
        ThinkingChunk(0, "Hm", "thinking"),
        ThinkingChunk(0, ".", "thinking"),
        RawText(0, "So "),
        CallChunk(0, 0, "call_x", "f", '{"a": 1}'),
        CallChunk(0, 1, "", "g", "{}"),
        Ended(0),
        Usage(0, 4, durations={"total_duration": 9}),
    ]


def test_context_and_reason_are_kept() -> None:
    body = {"model": "m", "response": "", "done": True, "done_reason": "load", "context": [1, 2]}
    again = dialect.write_reply(split(dialect.read_reply(body)), GENERATE)
    assert (again["done_reason"], again["context"]) == ("load", [1, 2])


# Errors.


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":"no such model"}', "no such model"),
        (b'{"error":{"message":"no"}}', "no"),
        (b"gone", "gone"),
        (b"", "the upstream answered with status 404"),
        (b"\xff", "\ufffd"),
    ],
)
def test_any_error_is_read(body: bytes, message: str) -> None:
    failed = dialect.read_error(404, body)
    assert (failed.message, failed.status, failed.kind) == (message, 404, "not_found_error")
    assert dialect.write_error(failed) == {"error": message}


# Requests.


def sent(**fields: Any) -> dict[str, Any]:
    """What the SDK sends to `/api/chat`."""
    body = json.dumps(dialect.write_reply(items(BY_NAME["none"]), CHAT)).encode()
    with serve(body, headers=JSON) as replay:
        sdk_for(replay).chat(**{"model": "m", "messages": MESSAGES, **fields})
    assert replay.requests[0].path == "/api/chat"
    found: dict[str, Any] = replay.requests[0].body
    return found


def sent_generate(**fields: Any) -> dict[str, Any]:
    """What the SDK sends to `/api/generate`."""
    body = json.dumps(dialect.write_reply(items(BY_NAME["none"]), GENERATE)).encode()
    with serve(body, headers=JSON) as replay:
        sdk_for(replay).generate(**{"model": "m", **fields})
    assert replay.requests[0].path == "/api/generate"
    found: dict[str, Any] = replay.requests[0].body
    return found


def find(query: str) -> str:
    """Find something.

    Args:
        query: what to find
    """
    return query


def test_a_request_of_the_sdk_is_read() -> None:
    call = {"function": {"name": "find", "arguments": {"query": "x"}}}
    body = sent(
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Look!", "images": [PIXEL]},
            {"role": "assistant", "content": "", "thinking": "Hm.", "tool_calls": [call, call]},
            {"role": "tool", "content": "one", "tool_name": "find"},
            {"role": "tool", "content": "two", "tool_name": "find"},
        ],
        tools=[find],
        think="high",
        format={"type": "object"},
        options={"temperature": 0.5, "num_predict": 7, "stop": ["END"], "num_ctx": 4096},
        keep_alive=0,
        logprobs=True,
        top_logprobs=2,
    )
    request = dialect.read_request(body)
    assert request.turns == (
        RequestTurn("system", (TextPiece("Be brief."),)),
        RequestTurn("user", (TextPiece("Look!"), ImagePiece(data=PIXEL, media_type="image/png"))),
        RequestTurn(
            "assistant",
            (
                ThinkingPiece("Hm."),
                CallPiece("find", '{"query":"x"}', "call_1"),
                CallPiece("find", '{"query":"x"}', "call_2"),
            ),
        ),
        RequestTurn("tool", (TextPiece("one"),), "call_1", "find"),
        RequestTurn("tool", (TextPiece("two"),), "call_2", "find"),
    )
    assert request.tools[0].name == "find"
    assert request.tools[0].parameters["properties"]["query"]["type"] == "string"
    assert (request.thinking.think, request.thinking.show, request.thinking.effort) == (True, True, "high")
    assert request.response_format == {
        "type": "json_schema",
        "json_schema": {"name": "response", "schema": {"type": "object"}},
    }
    assert (request.max_tokens, request.stop, request.sampling) == (7, ("END",), {"temperature": 0.5})
    assert (request.stream, request.logprobs, request.top_logprobs) == (False, True, 2)
    assert request.extra == {"keep_alive": 0, "options": {"num_ctx": 4096}}
    assert request.essential == ()
    assert dialect.upstream_path(request) == "/api/chat"
    again = dialect.write_request(request)
    assert again["messages"][:2] == body["messages"][:2]
    assert again["messages"][3] == {"role": "tool", "content": "one", "tool_name": "find", "tool_call_id": "call_1"}
    assert {**again, "messages": None} == {**body, "messages": None}


def test_a_prompt_of_the_sdk_is_read() -> None:
    body = sent_generate(prompt="Hi", system="Be brief.", images=[PIXEL], think=False, format="json")
    request = dialect.read_request(body)
    assert request.turns == (
        RequestTurn("system", (TextPiece("Be brief."),)),
        RequestTurn("user", (TextPiece("Hi"), ImagePiece(data=PIXEL, media_type="image/png"))),
    )
    assert (request.thinking.think, request.thinking.show) == (False, False)
    assert request.response_format == {"type": "json_object"}
    assert request.prompt is None
    assert dialect.upstream_path(request) == "/api/generate"
    again = dialect.write_request(request)
    assert {name: again[name] for name in ("prompt", "system", "images", "think", "format")} == {
        name: body[name] for name in ("prompt", "system", "images", "think", "format")
    }


def test_a_raw_prompt_of_the_sdk_is_read() -> None:
    request = dialect.read_request(sent_generate(prompt="<|im_start|>", raw=True))
    assert (request.prompt, request.turns) == ("<|im_start|>", ())
    again = dialect.write_request(request)
    assert (again["prompt"], again["raw"]) == ("<|im_start|>", True)


def test_streaming_is_the_default() -> None:
    assert dialect.read_request({"model": "m", "messages": []}).stream is True
    assert dialect.read_request({"model": "m", "messages": [], "stream": False}).stream is False


@pytest.mark.parametrize(
    ("think", "thinking"),
    [
        (True, (True, True, None)),
        (False, (False, False, None)),
        ("low", (True, True, "low")),
        ("max", (True, True, "max")),
        (None, (True, True, None)),
    ],
)
def test_think(think: Any, thinking: tuple[Any, ...]) -> None:
    body = {"model": "m", "messages": [], "stream": True, **({} if think is None else {"think": think})}
    request = dialect.read_request(body)
    assert (request.thinking.think, request.thinking.show, request.thinking.effort) == thinking
    assert dialect.write_request(request) == body


@pytest.mark.parametrize(
    ("think", "message"),
    [
        ("x", 'invalid think value: "x" (must be "high", "medium", "low", "max", true, or false)'),
        ("High", 'invalid think value: "High" (must be "high", "medium", "low", "max", true, or false)'),
        (3, 'think must be a boolean or string ("high", "medium", "low", "max", true, or false)'),
    ],
)
def test_think_that_ollama_refuses(think: Any, message: str) -> None:
    with pytest.raises(RequestError) as raised:
        dialect.read_request({"think": think})
    assert (raised.value.message, raised.value.param, raised.value.status) == (message, "think", 400)


def test_results_find_their_calls_by_name_and_order() -> None:
    def call(name: str, id: str = "") -> dict[str, Any]:
        return {"function": {"name": name, "arguments": {}}, **({"id": id} if id else {})}

    request = dialect.read_request(
        {
            "messages": [
                {"role": "assistant", "tool_calls": [call("a"), call("b"), call("a")]},
                {"role": "tool", "tool_name": "b", "content": "1"},
                {"role": "tool", "tool_name": "a", "content": "2"},
                {"role": "tool", "content": "3"},
                {"role": "assistant", "tool_calls": [call("a", "mine"), call("c")]},
                {"role": "tool", "tool_name": "c", "content": "4"},
                {"role": "tool", "tool_call_id": "mine", "content": "5"},
                {"role": "tool", "tool_name": "z", "content": "6"},
            ]
        }
    )
    results = [(turn.text, turn.call_id, turn.tool_name) for turn in request.turns if turn.role == "tool"]
    assert results == [
        ("1", "call_2", "b"),
        ("2", "call_1", "a"),
        ("3", "call_3", "a"),
        ("4", "call_5", "c"),
        ("5", "mine", "a"),
        ("6", "", "z"),
    ]


def test_thinking_between_tags_is_thinking() -> None:
    messages = [{"role": "assistant", "content": "<think>Hm.</think>\n\nSo."}]
    pieces = (ThinkingPiece("Hm."), TextPiece("So."))
    assert dialect.read_request({"messages": messages}).turns[0].pieces == pieces
    messages[0]["thinking"] = "Hm."
    assert dialect.read_request({"messages": messages}).turns[0].pieces == pieces


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": 3}, "messages"),
        ({"messages": [3]}, "messages[0]"),
        ({"messages": [{"role": "robot"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": []}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "images": [3]}]}, "messages[0].images"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0].function"),
        ({"prompt": []}, "prompt"),
        ({"format": "xml"}, "format"),
        ({"options": []}, "options"),
        ({"options": {"stop": 3}}, "options.stop"),
        ({"options": {"stop": [3]}}, "options.stop"),
        ({"tools": [{}]}, "tools[0].function"),
    ],
)
def test_what_cannot_be_understood_is_named(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as raised:
        dialect.read_request(body)
    assert raised.value.param == param


def test_what_changes_a_prompt_is_essential() -> None:
    request = dialect.read_request({"prompt": "a", "suffix": "b", "template": "", "keep_alive": "5m"})
    assert request.essential == ("suffix",)
    assert dialect.write_request(request)["suffix"] == "b"


def test_a_request_of_another_dialect() -> None:
    request = Request(
        dialect="openai_chat",
        model="m",
        turns=(
            RequestTurn("developer", (TextPiece("A."), TextPiece("B."))),
            RequestTurn("user", (TextPiece("Hi"), ImagePiece(url="data:image/gif;base64,aGk="))),
            RequestTurn(
                "assistant",
                (ThinkingPiece("Hm."), CallPiece("f", '{"a": 1', "x1"), CallPiece("g", '{"b": 2}', "x2")),
            ),
            RequestTurn("tool", (TextPiece("1"),), "x1"),
            RequestTurn("tool", (TextPiece("2"),), "x2", "g"),
        ),
        tools=(Tool("f", extra={"x": 1}),),
        thinking=ThinkingOptions(think=True, effort="xhigh", budget=100),
        stream=True,
        max_tokens=5,
        sampling={"temperature": 1, "seed": 3},
        response_format={"type": "json_schema", "json_schema": {"schema": {"type": "object"}}},
        extra={"store": True},
    )
    assert dialect.write_request(request, WriteOptions(model="other", stream=False)) == {
        "model": "other",
        "messages": [
            {"role": "system", "content": "A.\n\nB."},
            {"role": "user", "content": "Hi", "images": ["aGk="]},
            {
                "role": "assistant",
                "content": "",
                "thinking": "Hm.",
                "tool_calls": [
                    {"id": "x1", "function": {"name": "f", "arguments": {"unparsed": '{"a": 1'}}},
                    {"id": "x2", "function": {"name": "g", "arguments": {"b": 2}}},
                ],
            },
            {"role": "tool", "content": "1", "tool_name": "f", "tool_call_id": "x1"},
            {"role": "tool", "content": "2", "tool_name": "g", "tool_call_id": "x2"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
        "stream": False,
        "think": "max",
        "format": {"type": "object"},
        "options": {"temperature": 1, "seed": 3, "num_predict": 5},
    }
    tagged = dialect.write_request(request, WriteOptions(replay="tags"))["messages"][2]
    assert (tagged["content"], "thinking" in tagged) == ("<think>Hm.</think>", False)
    assert "thinking" not in dialect.write_request(request, WriteOptions(replay="drop"))["messages"][2]
    assert "thinking" not in dialect.write_request(request, WriteOptions(keep_thinking="none"))["messages"][2]


@pytest.mark.parametrize(
    ("thinking", "think"),
    [
        (ThinkingOptions(), None),
        (ThinkingOptions(think=True), True),
        (ThinkingOptions(think=False, show=False), False),
        (ThinkingOptions(effort="none"), False),
        (ThinkingOptions(effort="minimal"), "low"),
        (ThinkingOptions(effort="medium"), "medium"),
        (ThinkingOptions(effort="odd"), True),
    ],
)
def test_wishes_of_other_dialects(thinking: ThinkingOptions, think: bool | str | None) -> None:
    assert dialect.write_request(Request(dialect="openai_chat", thinking=thinking)).get("think") == think


def test_no_tools_when_none_may_be_called() -> None:
    request = Request(dialect="openai_chat", tools=(Tool("f"),), tool_choice="none")
    assert "tools" not in dialect.write_request(request)


def test_a_bare_prompt_is_sent_raw() -> None:
    request = Request(dialect="openai_completions", model="m", prompt="x")
    assert dialect.upstream_path(request) == "/api/generate"
    assert dialect.write_request(request) == {"model": "m", "prompt": "x", "raw": True, "stream": False}


IMAGE = ImagePiece(url="https://example.org/a.png")


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        (Request(dialect="openai_chat", choices=2), "n"),
        (Request(dialect="openai_chat", tools=(Tool("f"),), tool_choice="required"), "tool_choice"),
        (Request(dialect="openai_chat", turns=(RequestTurn("user", (IMAGE,)),)), "image_url"),
        (Request(dialect="x", extra={"background": True}, essential=("background",)), "background"),
        (Request(dialect="x", turns=(RequestTurn("user", (OtherPiece({"type": "file"}),)),)), "messages"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(request_: Request, param: str) -> None:
    with pytest.raises(RequestError) as raised:
        dialect.write_request(request_)
    assert raised.value.param == param


texts = st.text(min_size=1, max_size=20).filter(lambda text: "think>" not in text)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[RequestTurn, ...]:
    turns = [RequestTurn("system", (TextPiece(draw(texts)),))]
    for number in range(draw(st.integers(0, 3))):
        turns.append(RequestTurn("user", (TextPiece(draw(texts)), ImagePiece(data=PIXEL, media_type="image/png"))))
        call = CallPiece("f", '{"a":1}', f"call_{number + 1}")
        turns.append(RequestTurn("assistant", (ThinkingPiece(draw(texts)), TextPiece(draw(texts)), call)))
        turns.append(RequestTurn("tool", (TextPiece(draw(texts)),), call.id, "f"))
    return tuple(turns)


@given(conversations(), st.none() | st.integers(1, 9))
def test_any_request_comes_back(turns: tuple[RequestTurn, ...], limit: int | None) -> None:
    request = Request(
        dialect="ollama",
        model="m",
        stream=True,
        max_tokens=limit,
        turns=turns,
        tools=(Tool("f", "d", {"type": "object"}),),
        thinking=ThinkingOptions(think=True, effort="low", sent={"think": "low"}),
    )
    assert dialect.read_request(dialect.write_request(request)) == request
