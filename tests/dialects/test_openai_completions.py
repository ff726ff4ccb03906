"""Plain completions: the real SDK reads what we write, we read what it sends, and both ways agree."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.dialects import openai_completions as completions
from asides.dialects._request import Request, RequestError, RequestTurn, TextPiece, ThinkingOptions, WriteOptions
from asides.events import PartEnd, PartStart, ThinkingDelta
from asides.families import Switch, get_format
from asides.reply._items import (
    Begin,
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
from tests.dialects.shapes import BY_NAME, FAILING, WHOLE, Shape, expected, items, make_parser, told

SDK = openai.OpenAI(base_url="http://127.0.0.1", api_key="none", max_retries=0)


def client(url: str) -> openai.OpenAI:
    """Making one takes long; a copy with another address does not."""
    return SDK.with_options(base_url=f"{url}/v1")


def request(shape: Shape | None = None, **fields: Any) -> Request:
    """A request as a client would send it for this shape."""
    thinking = ThinkingOptions(show=shape.show if shape else True)
    return Request(
        dialect="completions",
        model="m",
        prompt="Go",
        choices=len(shape.raw) if shape else 1,
        thinking=thinking,
        **fields,
    )


def stream(found: Iterable[ReplyItem], asked: Request, **choices: Any) -> bytes:
    """A whole stream's bytes."""
    writer = completions.ReplyWriter(asked, **choices)
    return b"".join(map(writer.feed, found)) + writer.finish()


def read(data: bytes, cuts: int | None = None) -> list[Chunk]:
    reader = completions.ReplyReader()
    pieces = [piece for chunk in cut(data, cuts) for piece in reader.feed(chunk)]
    return pieces + reader.finish()


def split(pieces: Iterable[Chunk], **policies: Any) -> list[ReplyItem]:
    splitter = Splitter(get_format("qwen3"), make_parser(**policies))
    return [item for piece in pieces for item in splitter.feed(piece)]


def accumulate(chunks: Iterable[Any]) -> dict[int, dict[str, Any]]:
    """What a client makes of a stream."""
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            found = choices.setdefault(choice.index, {"text": ""})
            for name, value in choice.model_dump().items():
                if name == "finish_reason":
                    found[name] = value
                elif isinstance(value, str):
                    found[name] = found.get(name, "") + value
    return choices


def plain(choice: Any) -> dict[str, Any]:
    """A whole choice in the same shape."""
    return {name: value for name, value in choice.model_dump().items() if name not in ("index", "logprobs")}


@pytest.mark.parametrize("shape", WHOLE, ids=lambda shape: shape.name)
def test_the_sdk_reads_streams_and_whole_replies_alike(shape: Shape) -> None:
    """Without tools in the request calls are not read: they stay in the text as written."""
    asked = request(shape, include_usage=True)
    with serve(stream(items(shape, calls=False), asked), cuts=5) as server:
        streamed = accumulate(client(server.base_url).completions.create(model="m", prompt="Go", stream=True))
    body = completions.write_reply(items(shape, size=7, calls=False), asked)
    with serve(msgspec.json.encode(body), headers=JSON) as server:
        whole = client(server.base_url).completions.create(model="m", prompt="Go")
    assert streamed == {choice.index: plain(choice) for choice in whole.choices}
    for number, raw in enumerate(shape.raw):
        found = streamed[number]
        assert found["finish_reason"] == shape.reason
        assert "<think>" not in found["text"]
        assert (
            found["text"].count("<tool_call>") == raw.partition("</think>")[2].count("<tool_call>")
            or "</think>" not in raw
        )
        assert ("reasoning_content" in found) is (shape.show and "<think>" in raw)


@pytest.mark.parametrize("shape", FAILING, ids=lambda shape: shape.name)
def test_a_failure_reaches_the_client_behind_what_was_said(shape: Shape) -> None:
    """Held text first, then the error, and no [DONE]."""
    data = stream(items(shape), request(shape))
    assert b"[DONE]" not in data
    seen: list[Any] = []
    with serve(data, cuts=5) as server:
        found = client(server.base_url).completions.create(model="m", prompt="Go", stream=True)
        with pytest.raises(openai.APIError) as caught:
            seen.extend(found)
    assert shape.failure is not None
    assert caught.value.message == shape.failure.message
    if any(shape.raw):
        assert accumulate(seen)[0]["text"] == expected(shape).text
    assert completions.write_reply(items(shape), request(shape))["error"]["message"] == shape.failure.message


def test_a_call_that_was_read_is_written_as_text() -> None:
    """In its place, whole or not; nothing says that there was a call."""
    body = completions.write_reply(items(BY_NAME["only_calls"]), request())
    first, second = body["choices"][0]["text"].split("\n")
    assert json.loads(first) == {"name": "find", "arguments": {"query": "Zürich \u2028 <b>", "limit": 3}}
    assert json.loads(second) == {"name": "open", "arguments": {}}
    assert body["choices"][0]["finish_reason"] == "stop"
    broken = completions.write_reply(items(BY_NAME["cut_in_call"]), request())["choices"][0]
    assert broken["text"] == '{"name": "find", "arguments": {"query": "Zü'


@pytest.mark.parametrize("reasoning", ["reasoning", "thinking", "both", "tags", "drop", "details"])
def test_thinking_is_written_where_the_caller_wants_it(reasoning: Any) -> None:
    """By the names of chat completions."""
    shape = Shape("", ("<think>a</think>b\n<think>c</think>d",))
    body = completions.write_reply(items(shape), request(), reasoning=reasoning)
    found = {name: value for name, value in body["choices"][0].items() if "reason" in name or name == "thinking"}
    found.pop("finish_reason")
    text = body["choices"][0]["text"]
    assert text == ("<think>a</think>\n\nb<think>c</think>\n\nd" if reasoning == "tags" else "b\nd")
    both = {"reasoning_content": "a\n\nc", "reasoning": "a\n\nc"}
    made = {"format": "unknown", "type": "reasoning.text"}
    details = [{"id": f"reasoning_{n}", **made, "text": text, "index": n} for n, text in enumerate("ac")]
    wanted: dict[str, Any] = {"both": both, "tags": {}, "drop": {}, "details": {"reasoning_details": details}}
    assert found == wanted.get(reasoning, {reasoning: "a\n\nc"})
    with serve(stream(items(shape, size=1), request(), reasoning=reasoning)) as server:
        streamed = accumulate(client(server.base_url).completions.create(model="m", prompt="Go", stream=True))[0]
    for name, value in wanted.get(reasoning, {reasoning: "a\n\nc"}).items():
        if name != "reasoning_details":
            assert streamed[name] == value
    assert streamed["text"] == text


def test_log_probabilities_stay_with_the_words_they_are_of() -> None:
    """Lists side by side, with offsets into the text that is seen."""
    tokens = ["<think>", "hm", "</think>", "\n\nIt", " is"]
    logprobs = {"tokens": tokens, "token_logprobs": [-1.0, -2.0, -3.0, -4.0, -5.0], "top_logprobs": None,
                "text_offset": [0, 7, 9, 17, 21]}  # fmt: skip
    body = {"choices": [{"index": 0, "text": "".join(tokens), "logprobs": logprobs, "finish_reason": "stop"}]}
    found = split(completions.read_reply(body))
    written = completions.write_reply(found, request())["choices"][0]
    assert written["logprobs"] == {
        "tokens": ["It", " is"],
        "token_logprobs": [-4.0, -5.0],
        "top_logprobs": [None, None],
        "text_offset": [0, 2],
    }
    assert written["reasoning_logprobs"]["tokens"] == tokens[:3]
    with serve(stream(found, request())) as server:
        chunks = list(client(server.base_url).completions.create(model="m", prompt="Go", stream=True))
    given_out = [chunk.choices[0].logprobs for chunk in chunks if chunk.choices[0].logprobs]
    assert [token for each in given_out for token in each.tokens or ()] == ["It", " is"]
    assert [offset for each in given_out for offset in each.text_offset or ()] == [0, 2]


def test_what_another_server_sends_is_read() -> None:
    """With its own fields, which pass within the dialect; usage told once."""
    frame = {"id": "c", "object": "text_completion", "created": 1, "model": "m", "system_fingerprint": "fp"}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    frames = [
        {**frame, "choices": [{"index": 0, "text": "a", "finish_reason": None}]},
        {**frame, "choices": [{"index": 0, "text": "", "finish_reason": "length"}], "timings": {"ms": 1}},
        {**frame, "choices": [], "usage": usage},
    ]
    data = b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in frames) + b"data: [DONE]\n\n"
    pieces = read(data, 3)
    begin = Begin("c", "m", 1, "completions", {"system_fingerprint": "fp"})
    foreign = Foreign("completions", "fields", {"timings": {"ms": 1}})
    assert pieces == [begin, RawText(0, "a"), foreign, Ended(0, "length"), Usage(1, 2, extra=usage)]
    written = stream(split(pieces), request(include_usage=True)).decode()
    last, cost = (json.loads(line[6:]) for line in written.split("\n\n")[-4:-2])
    assert (last["timings"], last["choices"][0]["finish_reason"]) == ({"ms": 1}, "length")
    assert cost["usage"] == usage
    split_off = read(b'data: {"choices": [{"text": "b", "reasoning_content": "a", "finish_reason": "stop"}]}\n\n')
    assert split_off[1:] == [ThinkingChunk(0, "a", "reasoning_content"), RawText(0, "b"), Ended(0)]
    assert isinstance(read(b'data: {"error": {"message": "no"}}\n\n')[-1], Failed)
    assert isinstance(completions.read_reply({"error": "no"})[0], Failed)


@given(st.text("ab <>\n", max_size=20), st.text("ab\n", max_size=9).map(str.strip), st.integers(1, 9), st.booleans())
def test_what_is_read_again_says_the_same(text: str, thinking: str, size: int, whole: bool) -> None:
    """Law 6: thinking joined, text joined."""
    shape = Shape("", (f"<think>{thinking}</think>\n\n{text}",))
    first = items(shape, size=size)
    if whole:
        again = split(completions.read_reply(json.loads(json.dumps(completions.write_reply(first, request())))))
    else:
        again = split(read(stream(first, request()), size))
    assert told(again) == told(first)


# Requests.


def test_a_request_of_the_sdk_is_read() -> None:
    """And written again as it was."""
    body = completions.write_reply(items(BY_NAME["none"]), request())
    with serve(msgspec.json.encode(body), headers=JSON) as server:
        client(server.base_url).completions.create(
            model="m", prompt="Go", n=2, max_tokens=5, stop=["x"], temperature=0.5, logprobs=3, user="u", echo=True,
            suffix="end", extra_body={"top_k": 4, "include_reasoning": False},
        )  # fmt: skip
        assert server.requests[0].path == "/v1/completions"
        sent = server.requests[0].body
    found = completions.read_request(sent)
    assert (found.prompt, found.choices, found.max_tokens, found.stop) == ("Go", 2, 5, ("x",))
    assert (found.sampling, found.top_logprobs, found.user) == ({"temperature": 0.5, "top_k": 4}, 3, "u")
    assert (found.thinking.show, found.essential) == (False, ("echo", "suffix"))
    assert completions.write_request(found) == sent


@pytest.mark.parametrize("prompt", ["Go", ["a", "b"], [1, 2, 3], [[1], [2]]])
def test_prompts_of_every_kind_are_carried(prompt: Any) -> None:
    """Several prompts make several choices."""
    found = completions.read_request({"model": "m", "prompt": prompt, "n": 2, "stream": True})
    assert found.choices == 2 * (1 if prompt == "Go" or isinstance(prompt[0], int) else 2)
    assert completions.write_request(found) == {"model": "m", "prompt": prompt, "stream": True, "n": 2}


def test_what_has_no_counterpart_is_refused_by_name() -> None:
    """Messages and tools; and what cannot be understood."""
    chat = Request(dialect="openai_chat", turns=(RequestTurn("user", (TextPiece("Hi"),)),))
    with pytest.raises(RequestError) as caught:
        completions.write_request(chat)
    assert caught.value.param == "messages"
    for body, param in (
        ({}, "prompt"),
        ({"prompt": 3}, "prompt"),
        ({"prompt": "a", "n": 0}, "n"),
        ({"prompt": []}, "prompt"),
    ):
        with pytest.raises(RequestError) as caught:
            completions.read_request(body)
        assert caught.value.param == param


def test_the_upstreams_own_words_are_used_for_another_dialects_request() -> None:
    """A bare prompt of another dialect, with its thinking options."""
    asked = Request(
        dialect="ollama", model="m", prompt="Go", stream=True, thinking=ThinkingOptions(think=False, show=False)
    )
    assert completions.write_request(asked, WriteOptions(switch=Switch(), model="big")) == {
        "model": "big",
        "prompt": "Go",
        "stream": True,
        "stream_options": {"include_usage": True},
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_tokens_behind_the_last_part_stand_in_columns_too() -> None:
    """As all others of thinking and markers do, streamed and whole."""
    token = {"token": "</s>", "logprob": -0.5}
    found: list[ReplyItem] = [
        Begin("c", "m", 1),
        ReplyEvent(0, PartStart(0, "thinking")),
        ReplyEvent(0, ThinkingDelta(0, "Hm"), other_logprobs=({"token": "Hm", "logprob": -1.0},)),
        ReplyEvent(0, PartEnd(0, True)),
        Ended(0, other_logprobs=(token,)),
    ]
    whole = completions.write_reply(found, request())["choices"][0]
    assert whole["reasoning_logprobs"]["tokens"] == ["Hm", "</s>"]
    writer = completions.ReplyWriter(request())
    last = b"".join(map(writer.feed, found)).split(b"data: ")[-1]
    assert json.loads(last)["choices"][0]["reasoning_logprobs"]["tokens"] == ["</s>"]
