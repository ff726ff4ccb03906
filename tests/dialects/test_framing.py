"""Framing: server-sent events and JSON lines, whatever the line ending and wherever the bytes are cut."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.dialects._framing import DONE, KEEP_ALIVE, JsonLinesReader, SseFrame, SseReader, sse, to_json
from tests.dialects.replay import cut


def read(data: bytes, cuts: int | Sequence[int] | None = None) -> list[SseFrame]:
    reader = SseReader()
    frames = [frame for piece in cut(data, cuts) for frame in reader.feed(piece)]
    return frames + reader.finish()


@pytest.mark.parametrize("size", [None, 1, 2, 3])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_are_read_by_the_rules(end: str, size: int | None) -> None:
    """Comments, ids, unknown fields, data over several lines, no space, a space too many, an event without its end."""
    lines = [": hello", "", "data: a", "", "data:b", "id: 7", "retry: 3", "", "event: ping", "data:  {", "data: }", "",
             "", "event: lost", "", "data", "", "data: é🙂", "", "nonsense", "", "data: last"]  # fmt: skip
    found = read(end.join(lines).encode(), size)
    assert found == [
        SseFrame(b"a"),
        SseFrame(b"b"),
        SseFrame(b" {\n}", "ping"),
        SseFrame(b""),
        SseFrame("é🙂".encode()),
        SseFrame(b"last"),
    ]


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")),
                          st.sampled_from(["", "ping", "response.done"])), max_size=5),
       st.integers(1, 9), st.sampled_from([b"\n", b"\r\n", b"\r"]))  # fmt: skip
def test_what_is_written_is_read_wherever_it_is_cut(events: list[tuple[str, str]], size: int, end: bytes) -> None:
    """Inside characters, inside line endings; keep-alives between."""
    data = b"".join(KEEP_ALIVE + sse(text.encode(), event) for text, event in events).replace(b"\n", end)
    assert read(data, size) == [SseFrame(text.encode(), event) for text, event in events]


@given(st.binary(max_size=60), st.integers(1, 7))
def test_any_bytes_are_read_the_same_however_they_are_cut(data: bytes, size: int) -> None:
    """Even such as are no text at all."""
    data = data.replace(b"\x00", b"data: ").replace(b"\x01", b"\n\n").replace(b"\x02", b"\r")
    assert read(data, size) == read(data)


def test_the_end_of_a_chat_stream_is_an_event() -> None:
    """Like any other."""
    assert read(DONE) == [SseFrame(b"[DONE]")]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner), max_leaves=5))
def test_json_is_one_line_for_every_client(value: Any) -> None:
    """Even for those that split lines at U+0085, U+2028 and U+2029."""
    data = to_json(value)
    assert len(data.decode().splitlines()) == 1
    assert not set(data.decode()) & {"\x85", "\u2028", "\u2029"}
    assert json.loads(data) == value


def test_half_a_surrogate_is_no_reason_to_fail() -> None:
    """It is escaped, as JSON allows."""
    assert to_json("a\ud800b") == b'"a\\ud800b"'
    assert json.loads(to_json({"a": "\u2028\ud800"})) == {"a": "\u2028\ud800"}


@given(st.lists(st.dictionaries(st.text(), st.text(), max_size=2), max_size=4), st.integers(1, 9), st.booleans())
def test_json_lines_are_read_wherever_they_are_cut(values: list[dict[str, str]], size: int, ended: bool) -> None:
    """Blank lines are passed over; the last newline may be missing."""
    data = b"\r\n \n".join(map(to_json, values)) + (b"\n" if ended else b"")
    reader = JsonLinesReader()
    lines = [line for piece in cut(data, size) for line in reader.feed(piece)] + reader.finish()
    assert [json.loads(line) for line in lines] == values
