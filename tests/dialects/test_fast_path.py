"""The fast path of a stream and its ordinary path give the same bytes, between every two dialects.

A pipeline takes frames that are one more piece of content past the records between reader and writer (`text_frame`,
`delta`), and readers know frames again that differ from earlier ones only in their text. Both are shortcuts: here the
same upstream bytes go through a pipeline as it is, in chunks that are often exactly one frame, and through one whose
reader never recognises anything and whose writer takes none of its short ways.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides import dialects
from asides._engine.format import Format
from asides._gateway.pipeline import ItemFilter, Pipeline
from asides._gateway.record import RequestRecord
from asides.dialects import _frame_templates, openai_chat
from asides.dialects._base import Dialect, StreamReader, StreamWriter
from asides.dialects._frame_templates import FrameTemplates
from asides.dialects._request import Request
from asides.dialects.openai_chat._writer import ChatWriter
from asides.families import get_format
from asides.reply._items import Chunk, Foreign, RawText, ReplyEvent, ReplyItem
from asides.reply._splitter import Splitter

TEXTS = st.one_of(
    st.sampled_from(
        ["", " ", "\n", "a", "word ", "<think>", "</think>", "</thi", "nk>", "<", '"', "\\", '\\"', "{", "}", "\\u0041"]
    ),
    st.sampled_from(
        [
            "a\n</think>\n\nb",
            "é",
            "🙂",
            "\u2028",
            "\x85",
            "\x00",
            "日本",
            '<tool_call>\n{"name": "f"',
            ', "arguments": {}}\n',
        ]
    ),
    st.text(max_size=6),
)
"""What a frame may carry: nothing, plain words, quotes and escapes, line breaks of Unicode, pieces of markers."""
KINDS = ("text", "text", "text", "thinking", "logprobs", "extra", "note", "role", "call")
RUNS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 2), st.lists(TEXTS, min_size=1, max_size=5)), max_size=6
)
"""Frames that are alike but for their text: what is in them, of which choice, and the texts."""
STYLES = st.sampled_from([(False, (",", ":")), (True, (",", ":")), (False, (", ", ": "))])
"""How a server writes JSON: escaped or not, spaced or not."""


def chat_frame(kind: str, choice: int, text: str) -> dict[str, Any]:
    """A frame of chat completions."""
    delta: dict[str, Any] = {"content": text}
    fields: dict[str, Any] = {"logprobs": None, "finish_reason": None}
    top: dict[str, Any] = {}
    if kind == "thinking":
        delta = {"reasoning_content": text}
    elif kind == "role":
        delta["role"] = "assistant"
    elif kind == "logprobs":
        fields["logprobs"] = {"content": [{"token": text, "logprob": -0.5, "bytes": None, "top_logprobs": []}]}
    elif kind == "extra":
        top["timings"] = {"content": text}
    elif kind == "note":  # another string of that name, which comes first
        delta = {"content": "same"}
        return {"note": {"content": text}, "choices": [{"index": choice, "delta": delta, **fields}]}
    elif kind == "call":
        delta = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": text}}]}
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [{"index": choice, "delta": delta, **fields}], **top}


def completion_frame(kind: str, choice: int, text: str) -> dict[str, Any]:
    """A frame of plain completions."""
    fields: dict[str, Any] = {"text": text, "logprobs": None, "finish_reason": None}
    top: dict[str, Any] = {}
    if kind == "thinking":
        fields = {**fields, "text": "", "reasoning_content": text}
    elif kind == "logprobs":
        fields["logprobs"] = {"tokens": [text], "token_logprobs": [-0.5], "top_logprobs": None, "text_offset": [0]}
    elif kind == "extra":
        top["timings"] = {"text": text}
    elif kind == "note":
        return {"note": {"text": text}, "choices": [{"index": choice, **fields, "text": "same"}]}
    head = {"id": "1", "object": "text_completion", "created": 1, "model": "m"}
    return {**head, "choices": [{"index": choice, **fields}], **top}


def anthropic_frames(kind: str, choice: int, text: str) -> list[dict[str, Any]]:
    """Events of Anthropic's, each piece in a block that is open already (0: thinking, 1: text)."""
    if kind == "thinking":
        return [{"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": text}}]
    found: dict[str, Any] = {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": text}}
    if kind == "note":
        return [{"note": {"text": text}, **found, "delta": {"type": "text_delta", "text": "same"}}]
    return [{**found, "more": {"text": text}} if kind == "extra" else found]


def response_frames(kind: str, choice: int, text: str) -> list[dict[str, Any]]:
    """Events of Responses."""
    place = {"output_index": choice, "item_id": f"item_{choice}", "content_index": 0}
    if kind == "thinking":
        return [{"type": "response.reasoning_text.delta", **place, "output_index": 7, "item_id": "r", "delta": text}]
    tokens = [{"token": text, "logprob": -0.5}] if kind == "logprobs" else []
    return [{"type": "response.output_text.delta", **place, "delta": text, "logprobs": tokens}]


def ollama_frame(kind: str, choice: int, text: str) -> dict[str, Any]:
    """A line of Ollama's."""
    said = {"thinking": {"content": "", "thinking": text}}.get(kind, {"content": text})
    more = {"logprobs": [{"token": text, "logprob": -0.5}]} if kind == "logprobs" else {}
    return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": said, "done": False, **more}


ENDS: dict[str, list[Any]] = {
    "openai_chat": [
        *({"choices": [{"index": number, "delta": {}, "finish_reason": "stop"}]} for number in range(3)),
        "[DONE]",
    ],
    "completions": [
        *({"choices": [{"index": number, "text": "", "finish_reason": "stop"}]} for number in range(3)),
        "[DONE]",
    ],
    "anthropic": [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}],
    "openai_responses": [{"type": "response.completed", "response": {"id": "r", "usage": {"output_tokens": 5}}}],
    "ollama": [{"model": "m", "message": {"content": ""}, "done": True, "done_reason": "stop"}],
}


def frames_of(name: str, kind: str, choice: int, text: str) -> list[Any]:
    """The frames by which an upstream of this dialect says so."""
    if name == "openai_chat":
        return [chat_frame(kind, choice, text)]
    if name == "completions":
        return [completion_frame(kind, choice, text)]
    if name == "anthropic":
        return anthropic_frames(kind, choice, text)
    return response_frames(kind, choice, text) if name == "openai_responses" else [ollama_frame(kind, choice, text)]


def written(name: str, frame: Any, style: tuple[bool, tuple[str, str]]) -> bytes:
    """A frame as bytes."""
    escaped, gaps = style
    try:
        data = (
            frame.encode()
            if isinstance(frame, str)
            else json.dumps(frame, ensure_ascii=escaped, separators=gaps).encode()
        )
    except UnicodeEncodeError:  # half a surrogate pair can only be escaped
        data = json.dumps(frame, separators=gaps).encode()
    if name == "ollama":
        return data + b"\n"
    event = b"event: %b\n" % frame["type"].encode() if isinstance(frame, dict) and "type" in frame else b""
    return event + b"data: " + data + b"\n\n"


def pipeline(upstream: Dialect, client: Dialect, *, fast: bool) -> Pipeline:
    """A pipeline between two dialects; without its fast path where it is to be slow."""

    def make(format: Format) -> asides.Parser:
        return asides.Parser(format, collect=False)

    splitter = Splitter(get_format("qwen3"), make, seed=1, choices=3)
    request = Request(dialect=client.NAME, model="m", stream=True, choices=3, include_usage=True)
    reader: StreamReader = upstream.ReplyReader()
    writer: StreamWriter = client.ReplyWriter(request)
    if not fast:
        if hasattr(reader, "_templates"):
            reader._templates = NoFrames()
        writer = SlowWriter(writer)
    line = Pipeline(reader, ItemFilter(splitter, RequestRecord("id", "POST", "/")), writer)
    if not fast:
        line._text_frame = None
    return line


class NoFrames(FrameTemplates):
    """Recognises no frame."""

    def find(self, frame: bytes) -> None:
        """It is never like another."""


class SlowEvent(ReplyEvent, frozen=True):
    """An event that no writer takes for one of the plain ones that it has prepared bytes for."""


class SlowWriter:
    """A writer without any of its short ways."""

    delta = None
    written = None

    def __init__(self, writer: StreamWriter) -> None:
        self._writer = writer

    def feed(self, item: ReplyItem) -> bytes:
        """Write an item by the way of those that are not plain."""
        if isinstance(item, ReplyEvent):
            if isinstance(self._writer, ChatWriter):
                return self._writer._write_event(item)
            item = SlowEvent(*(getattr(item, name) for name in item.__struct_fields__))
        return self._writer.feed(item)

    def finish(self) -> bytes:
        """The reply is over."""
        return self._writer.finish()


def run(line: Pipeline, chunks: list[bytes]) -> bytes:
    """All that a client gets, without what is made up anew for each reply."""
    out = b"".join(map(line.feed, chunks)) + line.finish()
    out = re.sub(rb'"(id|item_id|call_id)":"[^"]*"', rb'"\1":""', out)
    return re.sub(rb'"(created_at|created|signature)":("[^"]*"|\d+)', rb'"\1":0', out)


@pytest.mark.parametrize("client", dialects.ALL, ids=lambda dialect: dialect.NAME)
@pytest.mark.parametrize("upstream", dialects.ALL, ids=lambda dialect: dialect.NAME)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_fast_and_ordinary_path_write_the_same_bytes(upstream: Dialect, client: Dialect, data: st.DataObject) -> None:
    """Over generated frames, in chunks that are frames, parts of frames or several."""
    name, style = upstream.NAME, data.draw(STYLES)
    runs = data.draw(RUNS)
    frames = [frame for kind, choice, texts in runs for text in texts for frame in frames_of(name, kind, choice, text)]
    blocks = [written(name, frame, style) for frame in (*frames, *ENDS[name])]
    stream = b"".join(blocks)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    cut = [stream[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    expected = run(pipeline(upstream, client, fast=False), [stream])
    for chunks in (blocks, cut, [stream]):
        assert run(pipeline(upstream, client, fast=True), chunks) == expected


PIECES = ("Hm", " so", "\n", "</think>", "Fo", "ur", "é", '"', "\\", " 🎉", "<")


@settings(max_examples=60, deadline=None)
@given(
    words=st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3), max_size=12),
    choices=st.integers(1, 2),
    data=st.data(),
)
def test_frames_with_ids_say_the_same_however_they_are_read(
    words: list[list[str]], choices: int, data: st.DataObject
) -> None:
    """The ids of tokens are handed over with their text by templates, as by decoding; none is passed on."""
    style = data.draw(STYLES)
    frames = [
        {
            "id": "1",
            "choices": [
                {
                    "index": at % choices,
                    "delta": {"content": "".join(each)},
                    "finish_reason": None,
                    "token_ids": [PIECES.index(word) for word in each],
                }
            ],
        }
        for at, each in enumerate(words)
    ]
    blocks = [written("openai_chat", frame, style) for frame in frames]
    slow = openai_chat.ReplyReader(ids=True)
    slow._templates = NoFrames()
    expected = [chunk for block in blocks for chunk in slow.feed(block)]
    fast = openai_chat.ReplyReader(ids=True)
    found: list[Chunk] = []
    for block in blocks:
        frame = fast.text_frame(block)
        if frame is None:
            found += fast.feed(block)
        else:
            number, (text, ids) = frame
            found.append(RawText(number, text, (), (ids,) if isinstance(ids, int) else ids))
    assert found == expected
    together = openai_chat.ReplyReader(ids=True)
    assert together.feed(b"".join(blocks)) == expected
    assert not [chunk for chunk in expected if isinstance(chunk, Foreign)]


def test_what_frames_say_is_remembered_of_single_tokens_and_of_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tokens together may be somebody's words."""
    said: dict[bytes, Any] = {}
    monkeypatch.setattr(_frame_templates, "_TAILS", said)
    monkeypatch.setattr(_frame_templates, "_MOST_TAILS", 10)
    reader = openai_chat.ReplyReader(ids=True)

    def read(text: str, *ids: int) -> object:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": None, "token_ids": ids}
        block = written("openai_chat", {"id": "1", "choices": [choice]}, (False, (",", ":")))
        return reader.text_frame(block) or reader.feed(block)

    for number in range(100):
        assert read(f"word{number}", number) or not number
        assert read("my secret", 1, number)
        assert read("x" * 1000, number)
        assert len(said) <= 10
    assert said
    assert not [tail for tail in said if b"secret" in tail or b"xxx" in tail]
