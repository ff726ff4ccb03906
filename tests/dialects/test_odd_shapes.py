"""JSON of any shape in any place of what servers and clients send: readers of replies never raise, those of requests
raise `RequestError` alone, and no writer fails on what either hands on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.dialects._request import RequestError
from asides.reply._items import Ended, Failed, RawText
from tests.dialects import odd
from tests.dialects.odd import DIALECTS, ODD, REQUESTS, STREAMS, WHOLE
from tests.laws.effort import examples

every_dialect = pytest.mark.parametrize("dialect", DIALECTS)
CHARACTERS = st.characters() | st.sampled_from("\ud800\udfff\n\x00")
ANYTHING = st.sampled_from(ODD) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(CHARACTERS, max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(CHARACTERS, max_size=6), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def changed(draw: st.DrawFn, recorded: list[Any]) -> Any:
    """Something recorded, with something else in one to three places."""
    value = draw(st.sampled_from(recorded))
    for _ in range(draw(st.integers(1, 3))):
        value = odd.replaced(value, draw(st.sampled_from(list(odd.places(value)))), draw(ANYTHING))
    return value


@every_dialect
def test_streams(dialect: str) -> None:
    """A frame may say anything."""

    @settings(max_examples=examples(150))
    @given(changed(STREAMS[dialect]))
    def law(frames: Any) -> None:
        chunks = odd.to_stream(dialect, frames if isinstance(frames, list) else [frames])
        told = odd.read_stream(dialect, chunks)
        whole = odd.read_stream(dialect, [b"".join(chunks)])
        assert repr(whole.pieces) == repr(told.pieces), "frames that come together say something else"

    law()


@every_dialect
def test_whole_replies(dialect: str) -> None:
    """A body may be anything; read as a reply, and as an error."""

    @settings(max_examples=examples(100))
    @given(changed(WHOLE[dialect]), st.sampled_from((400, 404, 429, 500, 503, 529)))
    def law(body: Any, status: int) -> None:
        told = odd.read_whole(dialect, body)
        assert any(isinstance(piece, Ended | Failed) for piece in told.pieces), "it never ended"
        odd.read_failure(dialect, status, json.dumps(body).encode())

    law()


@every_dialect
@settings(max_examples=examples(100))
@given(st.binary(max_size=40) | st.text(CHARACTERS).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_bytes(dialect: str, data: bytes) -> None:
    """Bytes need not be JSON at all."""
    odd.read_stream(dialect, [data])
    odd.read_stream(dialect, [b"event: x\ndata: " + data + b"\n\n", data + b"\n"])
    odd.read_failure(dialect, 500, data)


@every_dialect
def test_requests(dialect: str) -> None:
    """A request is read, or refused with our own error that says why."""

    @settings(max_examples=examples(100))
    @given(changed(REQUESTS[dialect]))
    def law(body: Any) -> None:
        odd.read_asked(dialect, body)

    law()


@every_dialect
def test_what_is_recorded_is_read(dialect: str) -> None:
    """The recordings themselves are sound, so that a change to them is what is odd."""
    for frames in STREAMS[dialect]:
        odd.read_stream(dialect, odd.to_stream(dialect, frames))
    for body in WHOLE[dialect]:
        odd.read_whole(dialect, body)
    assert all(odd.read_asked(dialect, body) is not None for body in REQUESTS[dialect])


@every_dialect
@pytest.mark.parametrize("body", [None, [], [1], "x", 5, True], ids=repr)
def test_a_body_that_is_no_object(dialect: str, body: Any) -> None:
    """It is a failure that says what came, and a request that is refused."""
    (failed,) = DIALECTS[dialect].read_reply(body)
    assert isinstance(failed, Failed)
    assert f"no JSON object: {json.dumps(body)}" in failed.message
    with pytest.raises(RequestError, match="the request must be a JSON object"):
        DIALECTS[dialect].read_request(body)


@every_dialect
def test_frames_as_deep_as_can_be_read(dialect: str) -> None:
    """What is nested just less than too deep to be read is written too, at some depth."""
    for depth in (200, *range(900, 1000, 9)):
        deep = '{"error": {"message": "@"}, "x": "@", "item": {"x": "@"}, "type": "y"}'.replace(
            '"@"', "[" * depth + '"\\ud800"' + "]" * depth
        )
        odd.read_stream(dialect, [b"data: %b\n\n" % deep.encode() if dialect != "ollama" else deep.encode() + b"\n"])
        odd.read_failure(dialect, 500, deep.encode())


@pytest.mark.parametrize(
    ("dialect", "frame"),
    [
        ("anthropic", {"type": "content_block_delta", "index": None, "delta": {"type": "text_delta", "text": "Hi"}}),
        ("anthropic", {"type": "content_block_delta", "usage": 5, "delta": {"type": "text_delta", "text": "Hi"}}),
        ("ollama", {"model": 5, "message": {"content": "Hi"}, "done": False}),
        ("ollama", {"message": {"content": "Hi", "thinking": []}, "context": "x", "done_reason": 5}),
        ("ollama", {"response": "Hi", "logprobs": 5, "tool_calls": {}}),
        ("openai_chat", {"created": "x", "choices": [{"index": "x", "delta": {"content": "Hi"}, "logprobs": 5}]}),
    ],
)
def test_words_beside_an_odd_field_are_told(dialect: str, frame: Any) -> None:
    """Whatever stands in another field, the words are good."""
    pieces = odd.read_stream(dialect, odd.to_stream(dialect, [frame])).pieces
    assert [piece.text for piece in pieces if isinstance(piece, RawText)] == ["Hi"]
