"""Records of trace files: where the output is, and what is beside it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asides
from asides.analysis._traces import decode, find_replies, find_seconds, look_up

RAW = "<think>a</think>b"


def told(record: Any, field: str = "") -> list[list[str]]:
    """The parts of every reply, in short."""
    shapes = {asides.Thinking: "thinks", asides.Text: "says", asides.ToolCall: "calls"}
    return [
        [
            f"{shapes[type(part)]} {part.name if isinstance(part, asides.ToolCall) else part.text}"
            for part in reply.parts
        ]
        for reply in find_replies(record, asides.parse, field).replies
    ]


@pytest.mark.parametrize(
    "record",
    [
        {"text": RAW},
        {"prompt": "x", "output": RAW, "text": "the prompt and all"},
        {"response": RAW, "model": "m"},
        {"completion": [RAW]},
        {"choices": [{"text": RAW}]},
        {"choices": [{"message": {"role": "assistant", "content": RAW}}]},
        {"choices": [{"message": {"content": "b", "reasoning_content": "a"}}]},
        {"choices": [{"message": {"content": "b", "reasoning": "a"}}]},
        {"message": {"role": "assistant", "content": "b", "thinking": "a"}},
        {"message": {"content": [{"type": "thinking", "thinking": "a"}, {"type": "text", "text": "b"}]}},
        {"messages": [{"role": "user", "content": "<think>no</think>"}, {"role": "assistant", "content": RAW}]},
        {"conversations": [{"from": "human", "value": "no"}, {"from": "gpt", "value": RAW}]},
        {"reasoning": "a", "answer": "b"},
        RAW,
    ],
)
def test_an_output_is_found_in_the_usual_places(record: Any) -> None:
    """Raw, or already taken apart."""
    assert told(record) == [["thinks a", "says b"]]


def test_a_record_may_hold_several_replies() -> None:
    """Each generation, choice or turn of the model is one."""
    assert told({"generations": [RAW, "c"]}) == [["thinks a", "says b"], ["says c"]]


def test_calls_beside_the_text_are_found() -> None:
    """In the shapes of OpenAI, Ollama and Anthropic."""
    function = {"name": "f", "arguments": {"a": 1}}
    assert told({"message": {"content": "", "thinking": "a", "tool_calls": [{"function": function}]}}) == [
        ["thinks a", "calls f"]
    ]
    assert told({"message": {"content": [{"type": "tool_use", "name": "f", "input": {}}]}}) == [["calls f"]]


def test_a_named_field_wins_and_dots_lead_inside() -> None:
    """Also where the name itself has a dot."""
    record = {"text": "no", "run": {"outputs": [{"raw": RAW}]}, "a.b": RAW}
    assert told(record, "run.outputs.0.raw") == told(record, "a.b") == [["thinks a", "says b"]]
    assert told(record, "run.nothing") == told(record, "run.outputs.9") == []


@pytest.mark.parametrize("record", [{}, {"prompt": "x"}, [], 3, None, {"text": 3}, {"text": None}, {"messages": []}])
def test_a_record_without_an_output_gives_no_reply(record: Any) -> None:
    """And no error."""
    assert told(record) == []


@pytest.mark.parametrize(
    ("record", "seconds"),
    [
        ({"thinking_seconds": 2}, 2.0),
        ({"thinking_ms": 1500}, 1.5),
        ({"thinking_seconds": -1}, None),
        ({"thinking_seconds": float("nan")}, None),
        ({"thinking_seconds": True}, None),
        ({"thinking_seconds": "2"}, None),
        ([], None),
    ],
)
def test_seconds(record: Any, seconds: float | None) -> None:
    """The time is taken where it is a time."""
    assert find_seconds(record) == seconds


def test_a_named_field_holds_the_seconds() -> None:
    """Dots lead inside."""
    assert find_seconds({"usage": {"took": 3}}, "usage.took") == 3
    assert look_up({"a": [{"b": 1}]}, "a.0.b") == 1


def test_odd_json_is_read() -> None:
    """What the standard library lets pass."""
    assert decode(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
    assert decode(b'{"a": "\\ud800", "b": NaN}')["a"] == "\ud800"
    assert decode(b'{"a": "\xff"}') == {"a": "\ufffd"}
    for broken in (b"{", b"", b"[" * 100_000, b"nonsense"):
        with pytest.raises(ValueError):  # noqa: PT011  # each parser has words of its own
            decode(broken)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["text", "message", "messages", "content", "choices", "role", "type", "reasoning", "tool_calls"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON, st.sampled_from(["", "text", "message.content", "a.0"]))
def test_any_record_is_borne(record: Any, field: str) -> None:
    """Whatever is where something else was expected."""
    find_replies(record, asides.parse, field)
    find_seconds(record, field)
