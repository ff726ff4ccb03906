"""No field of a reply is lost between a server and a client of the same API, and none of them shows a dropped thought.

A field that nobody knows is put into each object of a reply, one after the other, whole and streamed. What may hold the
thought obeys `reasoning`; signatures reach the client whatever field its thinking is in.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from asides import Parser, dialects
from asides.dialects._request import CallPiece, Request, ThinkingOptions, ThinkingPiece, WriteOptions
from asides.dialects._thought_fields import THOUGHT_FIELDS, without_text
from asides.events import PartStart
from asides.families import get_format
from asides.reply._items import Chunk, ReplyEvent, ReplyItem
from asides.reply._splitter import Splitter
from tests.dialects.nested import objects, with_field

ALL: dict[str, Any] = {dialect.NAME: dialect for dialect in dialects.ALL}
NEW, VALUE = "x_new", "x_value"
SECRET = "Nobody may see this."
_CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"query": "x"}'}}
_HEAD = {"id": "r1", "created": 1, "model": "m"}
WHOLE: dict[str, dict[str, Any]] = {
    "openai_chat": {
        **_HEAD,
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm.", "tool_calls": [_CALL]},
                "finish_reason": "tool_calls",
            }
        ],
    },
    "completions": {
        **_HEAD,
        "object": "text_completion",
        "choices": [{"index": 0, "text": "Yes.", "reasoning_content": "Hm.", "finish_reason": "stop"}],
    },
    "ollama": {
        "model": "m",
        "created_at": "2026-11-17T00:00:00Z",
        "message": {
            "role": "assistant",
            "content": "Yes.",
            "thinking": "Hm.",
            "tool_calls": [{"id": "c1", "function": {"name": "find", "arguments": {"query": "x"}}}],
        },
        "done": True,
        "done_reason": "stop",
    },
}
"""By dialect: a reply of every object that it understands."""


def _frames(name: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The same reply as a stream: thinking, the text, the call, the end, each with all fields of its object."""
    if name == "ollama":
        line = {**body, "done": False}
        last = {"model": "m", "created_at": body["created_at"], "done": True, "done_reason": "stop"}
        return [line, {**last, "message": {"role": "assistant", "content": ""}}]
    choice = dict(body["choices"][0])
    if "message" in choice:
        choice["delta"] = choice.pop("message")
    return [
        {**body, "choices": [{**choice, "finish_reason": None}]},
        {**_HEAD, "choices": [{**choice, "delta": {}, "text": ""}]},
    ]


def _bytes(name: str, frames: list[dict[str, Any]]) -> bytes:
    if name == "ollama":
        return b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)
    return b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames) + b"data: [DONE]\n\n"


def items_of(chunks: list[Chunk]) -> list[ReplyItem]:
    splitter = Splitter(get_format("qwen3"), Parser)
    return [item for chunk in chunks for item in splitter.feed(chunk)] + splitter.finish()


def reply(name: str, body: dict[str, Any], *, streamed: bool, stream: bool, show: bool = True, **options: Any) -> str:
    """What a client of the same API is sent of this reply, as JSON text; `streamed`: the server streams it."""
    dialect = ALL[name]
    passed = options.pop("passed", ())
    request = Request(dialect=name, model="m", thinking=ThinkingOptions(show=show, passed=passed))
    if streamed:
        reader = dialect.ReplyReader()
        items = items_of([*reader.feed(_bytes(name, _frames(name, body))), *reader.finish()])
    else:
        items = items_of(dialect.read_reply(body))
    if not stream:
        return json.dumps(dialect.write_reply(items, request, **options))
    writer = dialect.ReplyWriter(request, **options)
    return str((b"".join(map(writer.feed, items)) + writer.finish()).decode())


CASES = [(name, streamed, stream) for name in WHOLE for streamed in (False, True) for stream in (False, True)]


@pytest.mark.parametrize(("name", "streamed", "stream"), CASES)
def test_every_object_passes_its_fields(name: str, streamed: bool, stream: bool) -> None:
    """At any depth, from a stream and from a whole reply to either."""
    places = [path for path in objects(WHOLE[name]) if path[-1:] != ("arguments",)]
    assert len(places) >= 2
    for path in places:
        for value in (VALUE, {"deep": [VALUE]}):
            found = reply(name, with_field(WHOLE[name], path, NEW, value), streamed=streamed, stream=stream)
            assert NEW in found, path
            assert VALUE in found, path
            if any(step in ("message", "tool_calls") for step in path):
                assert found.count(VALUE) == 1, path


@pytest.mark.parametrize(("name", "streamed", "stream"), CASES)
def test_nothing_unknown_of_a_dropped_thought(name: str, streamed: bool, stream: bool) -> None:
    """Without thinking no unknown field of a message or call passes, but those that were named and `extra_content`."""
    for path in (path for path in objects(WHOLE[name]) if path[-1:] != ("arguments",)):
        body = with_field(WHOLE[name], path, NEW, VALUE)
        inside = any(step in ("message", "tool_calls") for step in path)
        hidden = reply(name, body, streamed=streamed, stream=stream, show=False)
        assert (NEW in hidden) is not inside, path
        if "function" not in path:
            named = reply(name, body, streamed=streamed, stream=stream, show=False, passed=(NEW,))
            assert NEW in named, path


@pytest.mark.parametrize(("name", "streamed", "stream"), CASES)
@pytest.mark.parametrize("field", sorted(THOUGHT_FIELDS))
def test_every_known_name_of_a_thought_is_dropped(name: str, streamed: bool, stream: bool, field: str) -> None:
    """Wherever it stands: in the reply, in a choice, in a message, in a call."""
    for path in (path for path in objects(WHOLE[name]) if path[-1:] != ("arguments",)):
        for value in (SECRET, [{"type": "thinking", "thinking": SECRET, "signature": "s"}], {"inner": SECRET}):
            body = with_field(WHOLE[name], path, field, value)
            assert SECRET not in reply(name, body, streamed=streamed, stream=stream, show=False), path


CHAT = [(streamed, stream) for streamed in (False, True) for stream in (False, True)]
DETAILS: list[dict[str, Any]] = [
    {"type": "reasoning.text", "text": "Hm.", "signature": "s1", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "e1", "id": "i1"},
    {"type": "reasoning.encrypted", "data": "e2"},
]
BLOCKS = [{"type": "thinking", "thinking": "Hm.", "signature": "s2"}, {"type": "redacted_thinking", "data": "e3"}]


def chat(**fields: Any) -> dict[str, Any]:
    """A reply whose message has these fields too."""
    body = WHOLE["openai_chat"]
    choice = body["choices"][0]
    message = {name: value for name, value in {**choice["message"], **fields}.items() if value is not None}
    return {**body, "choices": [{**choice, "message": message}]}


@pytest.mark.parametrize(("streamed", "stream"), CHAT)
@pytest.mark.parametrize("reasoning", ["reasoning_content", "reasoning", "thinking", "both", "tags"])
@pytest.mark.parametrize("text", ["Hm.", None])
def test_signatures_pass_and_text_stands_once(reasoning: str, text: str | None, streamed: bool, stream: bool) -> None:
    """OpenRouter's details and LiteLLM's blocks, with the thought in a field of its own too and alone."""
    nested = {"thinking_blocks": BLOCKS, "citations": ["c"]}
    for fields in (
        {"reasoning_details": DETAILS},
        {"thinking_blocks": BLOCKS},
        {"reasoning_details": DETAILS, "provider_specific_fields": nested},
    ):
        body = chat(reasoning_content=text, **fields)
        found = reply("openai_chat", body, streamed=streamed, stream=stream, reasoning=reasoning)
        assert found.count("Hm.") == (2 if reasoning == "both" else 1), found
        proofs = [proof for proof in ("s1", "e1", "e2") if "reasoning_details" in fields]
        proofs += [proof for proof in ("s2", "e3") if "reasoning_details" not in fields or len(fields) > 1]
        assert all(found.count(f'"{proof}"') == 1 for proof in proofs), found
        assert ("citations" in found) is (len(fields) > 1)


@pytest.mark.parametrize(("streamed", "stream"), CHAT)
def test_details_are_whole_where_they_are_the_place_of_thinking(streamed: bool, stream: bool) -> None:
    """Every entry by itself, though some have no index."""
    body = chat(reasoning_details=DETAILS)
    found = reply("openai_chat", body, streamed=streamed, stream=stream, reasoning="details")
    for part in ("Hm.", "s1", "e1", "e2"):
        assert found.count(part) == 1, found


@pytest.mark.parametrize(("streamed", "stream"), CHAT)
def test_geminis_signature_of_a_call(streamed: bool, stream: bool) -> None:
    """Beside the name of the call, also where thinking is dropped; in another API it has no place."""
    body = chat(tool_calls=[{**_CALL, "extra_content": {"google": {"thought_signature": "g"}}}])
    for show in (True, False):
        found = reply("openai_chat", body, streamed=streamed, stream=stream, show=show)
        frame = next(line for line in found.split("\n\n") if "extra_content" in line)
        assert "find" in frame
        assert found.count('"g"') == 1
    items = items_of(dialects.openai_chat.read_reply(body))
    for other in dialects.ALL:
        if other.NAME != "openai_chat":
            assert '"g"' not in json.dumps(other.write_reply(items, Request(dialect=other.NAME, model="m")))


def test_fields_of_a_call_in_pieces() -> None:
    """Before the name and behind the arguments: they reach the client, and the arguments stay as they were."""
    pieces: list[dict[str, Any]] = [
        {"index": 0, "extra_content": {"a": 1}},
        {"index": 0, "id": "c", "function": {"name": "find", "arguments": "{"}},
        {"index": 0, "function": {"arguments": "}"}},
        {"index": 0, "x_late": 2},
        {"index": 0, "x_last": 3, "function": {"arguments": ""}},
    ]
    frames = [{**_HEAD, "choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]} for piece in pieces]
    frames.append({**_HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    reader = dialects.openai_chat.ReplyReader()
    items = items_of([*reader.feed(_bytes("openai_chat", frames)), *reader.finish()])
    written = dialects.openai_chat.write_reply(items, Request(dialect="openai_chat", model="m"))
    (call,) = written["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "find", "arguments": "{}"}
    assert (call["extra_content"], call["x_late"], call["x_last"]) == ({"a": 1}, 2, 3)
    # Elsewhere it is the same call as without them.
    plain = [item for item in items if not isinstance(item, ReplyEvent) or item.extra is None]
    begun = [
        replace(item, extra=None)
        for item in items
        if isinstance(item, ReplyEvent) and isinstance(item.event, PartStart)
    ]
    plain[1:1] = begun
    for other in dialects.ALL:
        if other.NAME != "openai_chat":
            asked = Request(dialect=other.NAME, model="m")
            found, wanted = (other.ReplyWriter(asked) for _ in range(2))
            bodies = [b"".join(map(writer.feed, each)) for writer, each in ((found, items), (wanted, plain))]
            assert len(bodies[0]) == len(bodies[1]), other.NAME


def test_what_was_split_up_is_joined_when_it_comes_back() -> None:
    """Signatures go back to the server with the text that they sign."""
    for fields in ({"reasoning_details": DETAILS}, {"thinking_blocks": BLOCKS[:1]}):
        written = json.loads(reply("openai_chat", chat(**fields), streamed=False, stream=False))
        message = written["choices"][0]["message"]
        back = {"model": "m", "messages": [{"role": "user", "content": "?"}, message]}
        request = dialects.openai_chat.read_request(back)
        thought = next(piece for piece in request.turns[1].pieces if isinstance(piece, ThinkingPiece))
        assert thought.text == "Hm."
        if "reasoning_details" in fields:
            sent = dialects.openai_chat.write_request(request, WriteOptions(field="reasoning"))["messages"][1]
            assert sent["reasoning"] == "Hm."
            by_data = {detail.get("data"): detail for detail in sent["reasoning_details"]}
            assert by_data == {detail.get("data"): detail for detail in DETAILS}
        else:
            assert thought.signature == "s2"
    call = next(piece for piece in request.turns[1].pieces if isinstance(piece, CallPiece))
    assert call.name == "find"


def test_text_of_another_thought_stays() -> None:
    """Only what the client is sent anyway is taken out; what is nested too deep to look into is left out."""
    assert without_text("Hm.", "Hm. So.") is None
    assert without_text("Other.", "Hm. So.") == "Other."
    assert without_text([{"type": "text", "text": "So.", "index": 0}], "Hm. So.") is None
    assert without_text({"type": "So.", "text": "Hm.", "signature": "So."}, "Hm. So.") == {
        "type": "So.",
        "signature": "So.",
    }
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    assert without_text(deep, "") is None
