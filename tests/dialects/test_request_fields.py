"""Tables of fields: what an API's reader takes from a body, its writer puts back, and nothing is lost in between."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.dialects import anthropic, ollama, openai_chat, openai_completions, openai_responses
from asides.dialects._request import (
    CallPiece,
    ImagePiece,
    Request,
    RequestError,
    RequestTurn,
    TextPiece,
    ThinkingPiece,
    Tool,
    WriteOptions,
)
from asides.dialects._request_fields import (
    COMMON,
    Field,
    FieldTable,
    call_value,
    expect,
    image_url,
    of,
    read_image,
    replay_field,
    stops,
    with_data,
)

TABLE = FieldTable(
    *COMMON,
    Field("limit", "max_tokens", of(int)),
    Field("ends", "stop", stops, list),
    Field("template", "template_arguments", of(dict), None),
    apart=("messages",),
    within="body.",
)


@given(
    body=st.fixed_dictionaries(
        {"model": st.text(min_size=1)},
        optional={
            "stream": st.just(True),
            "limit": st.integers(1, 99),
            "ends": st.lists(st.text(), min_size=1),
            "temperature": st.floats(0, 2),
            "repetition_penalty": st.floats(0, 2),
        },
    )
)
def test_what_is_read_is_written(body: dict[str, Any]) -> None:
    """By the same rows."""
    assert TABLE.write(Request(dialect="x", **TABLE.read(body))) == body


def test_defaults_and_fields_that_are_written_elsewhere_are_not_written() -> None:
    """Nor is a model without a name."""
    request = Request(dialect="x", template_arguments={"a": 1}, sampling={"seed": 5})
    table = FieldTable(*COMMON, foreign_sampling=("temperature",))
    assert table.write(request, same=False) == {}


def test_the_rest_is_what_no_row_has() -> None:
    """Nor is read apart, nor null."""
    assert TABLE.rest({"model": "m", "messages": [], "top_k": 1, "own": 2, "none": None}) == {"own": 2}


@pytest.mark.parametrize(
    ("body", "param"), [({"limit": "5"}, "body.limit"), ({"limit": True}, "body.limit"), ({"ends": [5]}, "body.ends")]
)
def test_an_error_names_the_field_with_its_place(body: dict[str, Any], param: str) -> None:
    """So that a client finds it."""
    with pytest.raises(RequestError) as raised:
        TABLE.read(body)
    assert raised.value.param == param


def test_a_whole_number_is_not_true() -> None:
    """Though Python thinks so."""
    with pytest.raises(RequestError):
        expect(True, int, "n")


def test_what_is_left_out_is_logged_and_what_changes_the_question_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """At every level; within the dialect neither."""
    tool = Tool("f", extra={"cache_control": {}})
    request = Request(dialect="x", tools=(tool,), extra={"priority": 1, "kept": 2})
    with caplog.at_level(logging.INFO, logger="asides"):
        assert not TABLE.leave_out(request, "y", ("kept",))
    assert "cache_control, priority" in caplog.text
    with pytest.raises(RequestError, match="'audio' has no counterpart in y"):
        TABLE.leave_out(Request(dialect="x", essential=("audio",)), "y")
    assert TABLE.leave_out(Request(dialect="x", essential=("audio",)), "x")


def test_images_in_addresses_are_taken_apart_and_put_together() -> None:
    """With or without parameters; any other address stays."""
    url = "data:image/gif;base64,aGk="
    image = read_image(url, {})
    assert (image.data, image.media_type) == ("aGk=", "image/gif")
    assert image_url(image) == url
    assert with_data(ImagePiece("data:image/gif;charset=x;base64,aGk=")).data == "aGk="
    assert with_data(ImagePiece("https://example.org/a.png")).url == "https://example.org/a.png"


def test_arguments_that_are_no_object_go_along() -> None:
    """Because their result needs a call to answer."""
    assert call_value(CallPiece("f", "")) == {}
    assert call_value(CallPiece("f", '{"a": 1}')) == {"a": 1}
    assert call_value(CallPiece("f", "[1]")) == {"unparsed": "[1]"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (WriteOptions(), ["reasoning_content"] * 3),
        (WriteOptions(keep_thinking="tool_turns", field="thinking"), ["", "thinking", "thinking"]),
        (WriteOptions(keep_thinking="none"), ["", "", ""]),
        (WriteOptions(replay="tags", keep_thinking="none"), ["tags"] * 3),
        (WriteOptions(replay="drop"), ["", "", ""]),
    ],
)
def test_where_earlier_thinking_goes_back(options: WriteOptions, expected: list[str]) -> None:
    """A turn without a call, one with a call, one behind the last question."""
    thought = ThinkingPiece("Hm.")
    turns = (
        RequestTurn("assistant", (thought, TextPiece("Hi"))),
        RequestTurn("assistant", (thought, CallPiece("f", "{}"))),
        RequestTurn("user", (TextPiece("And?"),)),
        RequestTurn("assistant", (thought,)),
    )
    request = Request(dialect="x", turns=turns)
    assert [replay_field(request, index, options) for index in (0, 1, 3)] == expected


def test_a_budget_does_not_change_the_request_it_is_written_from() -> None:
    """The caller's own record goes to other upstreams too."""
    sent = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "reasoning": {"max_tokens": 5}}
    request = openai_chat.read_request({**sent, "reasoning": {"effort": "low"}, "thinking_budget": 7})
    body = openai_chat.write_request(request, WriteOptions(budget="reasoning.max_tokens"))
    assert body["reasoning"] == {"effort": "low", "max_tokens": 7}
    assert request.thinking.sent["reasoning"] == {"effort": "low"}


def test_responses_read_thinking_by_all_names_of_chat_completions() -> None:
    """Servers add the same fields to both APIs."""
    for fields in ({"enable_thinking": False}, {"think": "none"}, {"chat_template_kwargs": {"thinking": False}}):
        request = openai_responses.read_request({"model": "m", "input": "Hi", **fields})
        assert request.thinking.think is False


def test_every_dialect_writes_the_upstreams_model_and_whether_to_stream() -> None:
    """By the options, whatever the caller asked for."""
    chat = Request(dialect="x", model="mine", stream=True, turns=(RequestTurn("user", (TextPiece("Hi"),)),))
    bare = Request(dialect="x", model="mine", stream=True, prompt="Hi")
    options = WriteOptions(model="theirs", stream=False)
    for dialect, request in (
        *((dialect, chat) for dialect in (openai_chat, openai_responses, anthropic, ollama)),
        (openai_completions, bare),
    ):
        body = dialect.write_request(request, options)
        assert body["model"] == "theirs"
        assert not body.get("stream")
