"""Tools of chat completions that are no functions: offered elsewhere as functions of one string, and turned back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects import anthropic, ollama
from asides.dialects import openai_chat as chat
from asides.dialects import openai_responses as responses
from asides.dialects._request import Request, RequestError
from asides.events import PartEnd, PartStart, ToolCallDelta
from asides.reply._items import Begin, Ended, ReplyEvent, ReplyItem
from tests.dialects.test_openai_chat import frames, stream

GRAMMAR = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /.+/"}}
PATCH = {"type": "custom", "custom": {"name": "apply_patch", "description": "Edits files.", "format": GRAMMAR}}
READ = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
TEXT = '*** Begin Patch\n+"ü" \\ \u2028\n*** End Patch'
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "?"}], "tools": [PATCH, READ]}


def read(**fields: Any) -> Request:
    return chat.read_request({**BODY, **fields})


def calls(*written: tuple[str, str]) -> list[ReplyItem]:
    """A reply that makes these calls, each with arguments in three pieces."""
    found: list[ReplyItem] = [Begin("1", "m")]
    for index, (name, arguments) in enumerate(written):
        found.append(ReplyEvent(0, PartStart(index, "tool_call", "", name, f"call_{index}")))
        pieces = (arguments[:3], arguments[3:7], arguments[7:])
        found += [ReplyEvent(0, ToolCallDelta(index, piece)) for piece in pieces if piece]
        found.append(ReplyEvent(0, PartEnd(index, True)))
    return [*found, Ended(0)]


@pytest.mark.parametrize("dialect", [ollama, anthropic, responses], ids=lambda dialect: str(dialect.NAME))
def test_what_a_model_of_another_api_is_offered(dialect: Any) -> None:
    """A function with one string, and the grammar in its description."""
    offered = [tool.get("function", tool) for tool in dialect.write_request(read())["tools"]]
    patch = next(tool for tool in offered if tool["name"] == "apply_patch")
    schema = patch.get("parameters", patch.get("input_schema"))
    assert schema["required"] == ["input"]
    assert patch["description"] == "Edits files.\n\nThe input must match this lark grammar:\n\nstart: /.+/"


def test_the_same_api_gets_it_as_it_was() -> None:
    """Tools, the choice of one, and calls that come back."""
    earlier = {"id": "c", "type": "custom", "custom": {"name": "apply_patch", "input": TEXT}}
    messages = [*BODY["messages"], {"role": "assistant", "content": None, "tool_calls": [earlier]}]
    choice = {"type": "custom", "custom": {"name": "apply_patch"}}
    body = chat.write_request(read(messages=messages, tool_choice=choice))
    assert body["tools"] == [READ, PATCH]
    assert body["tool_choice"] == choice
    assert body["messages"][1]["tool_calls"] == [earlier]


def test_calls_are_turned_back() -> None:
    """Whole and streamed alike, in the order of writing; what is not one string goes to the tool as it is."""
    odd = '{"input": 1}'
    found = calls(("apply_patch", json.dumps({"input": TEXT})), ("read", "{}"), ("apply_patch", odd))
    (choice,) = chat.write_reply(found, read())["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"] == [
        {"id": "call_0", "type": "custom", "custom": {"name": "apply_patch", "input": TEXT}},
        {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}},
        {"id": "call_2", "type": "custom", "custom": {"name": "apply_patch", "input": odd}},
    ]
    deltas = [
        call for frame in frames(stream(found, read())) for call in frame["choices"][0]["delta"].get("tool_calls", ())
    ]
    customs = [call for call in deltas if "custom" in call]
    assert [call["index"] for call in customs] == [0, 2]
    assert [call["custom"]["input"] for call in customs] == [TEXT, odd]
    assert "".join(call["function"]["arguments"] for call in deltas if "function" in call) == "{}"


def test_what_comes_back_reaches_the_model() -> None:
    """A call and its result, under the name that the model knows."""
    messages = [
        *BODY["messages"],
        *(
            {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": name, "input": "x"}}]}
            for name in ("apply_patch", "read")
        ),
        {"role": "tool", "tool_call_id": "c", "content": "done"},
    ]
    clash = {"type": "custom", "custom": {"name": "read"}}
    asked = read(messages=messages, tools=[clash, PATCH, READ])
    names = [tool.name for tool in asked.tools]
    assert len(set(names)) == 3
    assert names[0] == "read"
    sent = ollama.write_request(asked)["messages"]
    made = [message["tool_calls"][0]["function"] for message in sent[1:3]]
    assert made == [{"name": name, "arguments": {"input": "x"}} for name in ("apply_patch", names[1])]
    (choice,) = chat.write_reply(calls((names[1], '{"input": "y"}')), asked)["choices"]
    assert choice["message"]["tool_calls"][0]["custom"] == {"name": "read", "input": "y"}


def test_allowed_tools() -> None:
    """What is not allowed is offered nowhere; the mode is the choice."""
    for named, left in ((PATCH, "apply_patch"), (READ, "read")):
        kind = named["type"]
        allowed = {"mode": "required", "tools": [{"type": kind, kind: {"name": left}}]}
        asked = read(tool_choice={"type": "allowed_tools", "allowed_tools": allowed})
        assert [tool.name for tool in asked.tools] == [left]
        body = chat.write_request(asked)
        assert body["tools"] == [named]
        assert body["tool_choice"] == "required"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "custom"}]}, "tools[0].custom"),
        ({"tools": [{"type": "custom", "custom": {}}]}, "tools[0].custom.name"),
        ({"tool_choice": {"type": "custom", "custom": {}}}, "tool_choice.custom.name"),
        ({"tool_choice": {"type": "other"}}, "tool_choice"),
        ({"tool_choice": 1}, "tool_choice"),
        ({"tool_choice": {"type": "allowed_tools"}}, "tool_choice.allowed_tools"),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "x"}}}, "tool_choice.allowed_tools.mode"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"type": "custom"}]}]},
            "messages[0].tool_calls[0].custom",
        ),
    ],
)
def test_what_cannot_be_read_is_named(fields: dict[str, Any], param: str) -> None:
    """The field that is wrong."""
    with pytest.raises(RequestError) as caught:
        read(**fields)
    assert caught.value.param == param


def test_a_tool_of_another_kind_is_refused_elsewhere() -> None:
    """Within the dialect it passes."""
    asked = read(tools=[READ, {"type": "new"}])
    assert chat.write_request(asked)["tools"] == [READ, {"type": "new"}]
    with pytest.raises(RequestError) as caught:
        ollama.write_request(asked)
    assert caught.value.param == "tools"
