"""What one dialect says and another must hear: refusals, shared fields, and frames that are not quite right."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from asides.dialects import anthropic, ollama, openai_chat, openai_responses
from asides.dialects._framing import SseReader, to_json
from asides.dialects._request import Request, WriteOptions
from asides.families import get_format
from asides.reply._items import CallChunk, Chunk, Ended, Failed, RawText, ReplyItem, ThinkingChunk
from asides.reply._splitter import Splitter
from tests.dialects.replay import cut
from tests.dialects.shapes import make_parser

BOM = b"\xef\xbb\xbf"


def split(pieces: list[Chunk]) -> list[ReplyItem]:
    splitter = Splitter(get_format("qwen3"), make_parser())
    return [item for piece in pieces for item in splitter.feed(piece)] + splitter.finish()


def chat_stream(*deltas: dict[str, Any]) -> bytes:
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    frames = [{"id": "1", "model": "m", "choices": [choice]} for choice in choices]
    return b"".join(b"data: %b\n\n" % json.dumps(frame).encode() for frame in frames) + b"data: [DONE]\n\n"


def read(dialect: Any, data: bytes, size: int | None = None) -> list[Chunk]:
    reader = dialect.ReplyReader()
    return [piece for part in cut(data, size) for piece in reader.feed(part)] + list(reader.finish())


REFUSALS: dict[str, tuple[tuple[dict[str, Any], ...], str]] = {
    "only": (({"role": "assistant", "content": None}, {"refusal": "I will"}, {"refusal": " not."}), "I will not."),
    "behind words": (({"content": "Well."}, {"refusal": "I will"}, {"refusal": " not."}), "Well.\n\nI will not."),
    "behind thinking": (({"reasoning": "Hm."}, {"refusal": "I will"}, {"refusal": " not."}), "I will not."),
    "before words": (({"refusal": "No."}, {"content": "Sorry."}), "No.\n\nSorry."),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_of_chat_completions_is_text_elsewhere(name: str) -> None:
    """Streamed and whole; nothing that the model said is lost."""
    deltas, text = REFUSALS[name]
    found = split(read(openai_chat, chat_stream(*deltas)))

    request = Request(dialect="anthropic", model="m")
    writer = anthropic.ReplyWriter(request)
    data = b"".join(map(writer.feed, found)) + writer.finish()
    whole = anthropic.write_reply(found, request)
    assert [block["text"] for block in whole["content"] if block["type"] == "text"] == [text]
    again = read(anthropic, data)
    assert "".join(piece.text for piece in again if isinstance(piece, RawText)) == text
    assert any(isinstance(piece, ThinkingChunk) for piece in again) == ("thinking" in name)

    for names in ({}, {"turns": "prompt"}):
        request = Request(dialect="ollama", model="m", names=names)
        lines = ollama.ReplyWriter(request)
        data = b"".join(map(lines.feed, found)) + lines.finish()
        assert all(json.loads(line)["model"] == "m" for line in data.splitlines())
        assert "".join(piece.text for piece in read(ollama, data) if isinstance(piece, RawText)) == text
        body = ollama.write_reply(found, request)
        assert (body["response"] if names else body["message"]["content"]) == text


def test_a_whole_refusal_is_text_elsewhere_and_stays_one_in_chat() -> None:
    """As the upstream of a client that does not stream tells it."""
    message = {"role": "assistant", "content": None, "refusal": "I will not."}
    found = split(openai_chat.read_reply({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    assert anthropic.write_reply(found, Request(dialect="anthropic"))["content"] == [
        {"type": "text", "text": "I will not."}
    ]
    assert ollama.write_reply(found, Request(dialect="ollama"))["message"]["content"] == "I will not."
    chat = openai_chat.write_reply(found, Request(dialect="openai_chat"))["choices"][0]["message"]
    assert chat["refusal"] == "I will not."
    assert not chat["content"]


def test_a_refusal_of_another_choice_is_not_heard() -> None:
    """These clients get the first choice only."""
    choices = [
        {"index": 0, "message": {"content": "Yes."}, "finish_reason": "stop"},
        {"index": 1, "message": {"content": None, "refusal": "No."}, "finish_reason": "stop"},
    ]
    found = split(openai_chat.read_reply({"choices": choices}))
    assert anthropic.write_reply(found, Request(dialect="anthropic"))["content"] == [{"type": "text", "text": "Yes."}]
    assert ollama.write_reply(found, Request(dialect="ollama"))["message"]["content"] == "Yes."
    assert "No." not in str(openai_responses.write_reply(found, Request(dialect="openai_responses"))["output"])


def test_a_reasoning_item_is_not_sent_as_a_detail() -> None:
    """`reasoning_details` know nothing of items; the words go there, and what has none stays away."""
    summary = [{"type": "summary_text", "text": "Hm."}]
    items: list[dict[str, Any]] = [
        {"role": "user", "content": "a"},
        {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "x"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "y"},
        {"role": "assistant", "content": "d"},
    ]
    request = openai_responses.read_request({"model": "m", "input": items})
    messages = openai_chat.write_request(request, WriteOptions(field="reasoning_details"))["messages"]
    assert messages[1]["reasoning_details"] == [{"type": "reasoning.text", "text": "Hm.", "index": 0}]
    assert messages[3] == {"role": "assistant", "content": "d"}


SHARED = {
    "service_tier": "flex",
    "metadata": {"a": "b"},
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "safety_identifier": "s",
}


def test_fields_that_chat_and_responses_share_are_translated(caplog: pytest.LogCaptureFixture) -> None:
    """Both ways; no other dialect gets them, and what neither shares is logged."""
    caplog.set_level(logging.INFO, "asides")
    hello = [{"role": "user", "content": "Hello"}]
    asked = openai_chat.read_request({"model": "m", "messages": hello, "verbosity": "low", "store": True, **SHARED})
    response = openai_responses.write_request(asked)
    assert response.items() >= (SHARED | {"text": {"verbosity": "low"}}).items()
    assert not {"store", "verbosity"} & response.keys()
    text = {"verbosity": "low", "format": {"type": "json_object"}}
    back = openai_responses.read_request({"model": "m", "input": "Hello", "text": text, "store": False, **SHARED})
    chat = openai_chat.write_request(back)
    assert chat.items() >= (SHARED | {"verbosity": "low", "response_format": {"type": "json_object"}}).items()
    assert not {"store", "text"} & chat.keys()
    assert [record.getMessage().rpartition(": ")[2] for record in caplog.records] == ["store", "store"]
    assert not (SHARED.keys() | {"verbosity", "text"}) & ollama.write_request(asked).keys()


def test_verbosity_stands_beside_a_format() -> None:
    """Neither takes the other's place."""
    format = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
    hello = [{"role": "user", "content": "Hello"}]
    body = {"model": "m", "messages": hello, "verbosity": "high", "response_format": format}
    text = openai_responses.write_request(openai_chat.read_request(body))["text"]
    assert text == {"format": {"type": "json_schema", "name": "n", "schema": {}}, "verbosity": "high"}


def event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), json.dumps({"type": kind, **fields}).encode())


def sse_streams(text: str, thinking: str) -> dict[str, tuple[Any, bytes]]:
    block = {"type": "text", "text": ""}
    return {
        "chat": (openai_chat, chat_stream({"reasoning": thinking}, {"content": text}, {"content": text})),
        "anthropic": (
            anthropic,
            event("message_start", message={"id": "1", "model": "m", "content": []})
            + event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""})
            + event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": thinking})
            + event("content_block_stop", index=0)
            + event("content_block_start", index=1, content_block=block)
            + event("content_block_delta", index=1, delta={"type": "text_delta", "text": text}) * 2
            + event("content_block_stop", index=1)
            + event("message_delta", delta={"stop_reason": "end_turn", "note": text})
            + event("message_stop"),
        ),
        "responses": (
            openai_responses,
            event("response.created", response={"id": "1", "model": "m"})
            + event("response.output_item.added", output_index=0, item={"type": "reasoning", "id": "r"})
            + event("response.reasoning_text.delta", item_id="r", output_index=0, content_index=0, delta=thinking)
            + event("response.output_item.added", output_index=1, item={"type": "message", "id": "a"})
            + event("response.output_text.delta", item_id="a", output_index=1, content_index=0, delta=text) * 2
            + event("response.completed", response={"id": "1", "status": "completed", "note": text}),
        ),
    }


@pytest.mark.parametrize("size", [None, 1, 2])
@pytest.mark.parametrize("name", ["chat", "anthropic", "responses"])
def test_a_byte_order_mark_before_a_stream_is_passed_over(name: str, size: int | None) -> None:
    """Wherever it is cut."""
    dialect, data = sse_streams("Hi", "Hm")[name]
    assert read(dialect, BOM + data, size) == read(dialect, data)
    assert not any(isinstance(piece, Failed) for piece in read(dialect, data))


def test_a_byte_order_mark_is_one_only_at_the_start() -> None:
    """Behind that it is part of a line."""
    reader = SseReader()
    assert [frame.data for frame in reader.feed(BOM + b"data: " + BOM + b"a\n\n" + BOM + b"data: b\n\n")] == ["\ufeffa"]


@pytest.mark.parametrize("size", [None, 1])
@pytest.mark.parametrize("half", ["a\ud83d", "\ude42b", "\ud83d"])
@pytest.mark.parametrize("name", ["chat", "anthropic", "responses", "ollama"])
def test_half_a_surrogate_pair_does_not_fail_a_reply(name: str, half: str, size: int | None) -> None:
    """Servers that cut text by UTF-16 send such halves; every client still gets a reply that it can read."""
    line = {"model": "m", "message": {"role": "assistant", "content": half}, "done": False}
    thought = {"model": "m", "message": {"role": "assistant", "content": "", "thinking": half}, "done": False}
    call = {"function": {"name": "f", "arguments": {"x": half}}}
    called = {"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": False}
    lines = [thought, line, line, called, {"model": "m", "done": True, "done_reason": "stop"}]
    streams = sse_streams(half, half) | {
        "ollama": (ollama, b"".join(json.dumps(each).encode() + b"\n" for each in lines))
    }
    pieces = read(*streams[name], size)
    assert "".join(piece.text for piece in pieces if isinstance(piece, RawText)) == half * 2
    assert "".join(piece.text for piece in pieces if isinstance(piece, ThinkingChunk)) == half
    assert any(isinstance(piece, Ended) for piece in pieces)
    assert not any(isinstance(piece, Failed) for piece in pieces)
    if name == "ollama":
        assert [json.loads(piece.arguments) for piece in pieces if isinstance(piece, CallChunk)] == [{"x": half}]
    for dialect in (openai_chat, anthropic, openai_responses, ollama):
        writer = dialect.ReplyWriter(Request(dialect=dialect.NAME, model="m"))
        data = b"".join(map(writer.feed, split(pieces))) + writer.finish()
        again = read(dialect, data)
        assert not any(isinstance(piece, Failed) for piece in again)


def test_both_halves_of_a_pair_are_one_character_for_the_client() -> None:
    """Though they came in two frames."""
    found = split(read(openai_chat, chat_stream({"content": "\ud83d"}, {"content": "\ude42"})))
    body = to_json(anthropic.write_reply(found, Request(dialect="anthropic")))
    assert json.loads(body)["content"] == [{"type": "text", "text": "🙂"}]


def test_a_whole_reply_with_half_a_pair_is_read() -> None:
    """Ollama's is checked against a schema on the way."""
    call = {"function": {"name": "f", "arguments": {"x": "\ud83d"}}}
    body = {"model": "m", "message": {"content": "\ud83d", "tool_calls": [call]}, "done": True}
    pieces = ollama.read_reply(body)
    assert [piece.text for piece in pieces if isinstance(piece, RawText)] == ["\ud83d"]
    assert not any(isinstance(piece, Failed) for piece in pieces)


def test_an_error_with_half_a_pair_is_an_error() -> None:
    """With its own words."""
    data = event("error", error={"type": "overloaded_error", "message": "busy \ud83d"})
    failed = read(anthropic, data)[-1]
    assert isinstance(failed, Failed)
    assert failed.message == "busy \ud83d"
