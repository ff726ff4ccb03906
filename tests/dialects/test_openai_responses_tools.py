"""Tools of Responses that are no functions: offered to the model as functions, and their calls turned back."""

from __future__ import annotations

import json
import logging
import re
import sys
from typing import Any

import pytest

import asides
from asides.dialects import openai_chat as chat
from asides.dialects import openai_responses as responses
from asides.dialects._custom_tools import arguments_of, input_of
from asides.dialects._framing import sse, to_json
from asides.dialects._request import CallPiece, Request, RequestError
from asides.dialects.openai_responses._tools import RequestTools
from asides.events import PartEnd, PartStart, ToolCallDelta
from asides.reply._items import Begin, CallChunk, Chunk, Ended, ReplyEvent, ReplyItem
from asides.reply._splitter import Splitter
from tests.dialects.test_openai_responses import TYPES, events, stream

SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}}
SPAWN = {"type": "function", "name": "spawn", "description": "Start one.", "parameters": SCHEMA, "strict": False}
PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}
AGENTS = {"type": "namespace", "name": "agents", "description": "About agents.", "tools": [SPAWN, PATCH]}
READ = {"type": "function", "name": "read", "parameters": SCHEMA}
SEARCH = {"type": "web_search", "external_web_access": True}
BODY: dict[str, Any] = {"model": "m", "input": "?", "tools": [AGENTS, READ, PATCH, SEARCH]}


def read(**fields: Any) -> Request:
    return responses.read_request({**BODY, **fields})


def call(name: str, *arguments: str, error: str | None = None, whole: bool = True) -> list[ReplyItem]:
    """A reply that is one call."""
    found: list[ReplyItem] = [Begin("1", "m"), ReplyEvent(0, PartStart(0, "tool_call", "", name, "call_1"))]
    found += [ReplyEvent(0, ToolCallDelta(0, text)) for text in arguments]
    found.append(ReplyEvent(0, PartEnd(0, whole, error)))
    return [*found, Ended(0)]


def written(asked: Request, found: list[ReplyItem]) -> dict[str, Any]:
    """The item that a call becomes; the same whole and streamed, and every event as the SDK knows it."""
    sent = events(stream(found, asked))
    for event in sent:
        TYPES[event["type"]].model_validate(event)
    (item,) = responses.write_reply(found, asked)["output"]
    last = sent[-1]["response"]["output"][0]
    assert {**last, "id": ""} == {**item, "id": ""}
    assert sent[-2]["item"] == last
    return dict(item)


def test_what_the_model_is_offered() -> None:
    """Each tool that the client runs is a function; a grammar and a namespace's description are in theirs."""
    offered = {tool["function"]["name"]: tool["function"] for tool in chat.write_request(read())["tools"]}
    assert sorted(offered) == ["agents__apply_patch", "agents__spawn", "apply_patch", "read"]
    assert offered["agents__spawn"]["parameters"] == SCHEMA
    assert offered["agents__spawn"]["strict"] is False
    assert "About agents." in offered["agents__spawn"]["description"]
    assert "About agents." not in offered["agents__apply_patch"]["description"]
    for name in ("apply_patch", "agents__apply_patch"):
        assert offered[name]["description"].startswith("Edits files.")
        assert "lark" in offered[name]["description"]
        assert "start: /.+/" in offered[name]["description"]
        assert offered[name]["parameters"]["required"] == ["input"]
        assert offered[name]["parameters"]["properties"]["input"]["type"] == "string"


def test_names_do_not_collide() -> None:
    """A plain function keeps its name; whatever would be joined to the same gets another, and finds back."""
    spaces = [{**AGENTS, "name": name, "tools": [SPAWN]} for name in ("agents", "agents_", "agents__")]
    clash = {**READ, "name": "agents__spawn"}
    custom = {**PATCH, "name": "read"}
    asked = read(tools=[*spaces, custom, READ, clash])
    names = [tool.name for tool in asked.tools]
    assert len(set(names)) == 6
    assert {"read", "agents__spawn"} <= set(names)
    found = {name: written(asked, call(name, "{}")) for name in names}
    assert {(item["type"], item.get("namespace", ""), item["name"]) for item in found.values()} == {
        ("function_call", "agents", "spawn"),
        ("function_call", "agents_", "spawn"),
        ("function_call", "agents__", "spawn"),
        ("function_call", "", "read"),
        ("function_call", "", "agents__spawn"),
        ("custom_tool_call", "", "read"),
    }
    back = read(tools=[*spaces, custom, READ, clash], input=list(found.values()))
    pieces = [piece for turn in back.turns for piece in turn.pieces]
    assert [piece.name for piece in pieces if isinstance(piece, CallPiece)] == names


def test_names_are_such_as_every_server_takes() -> None:
    """Whatever the client calls its tools: at most 64 letters, digits, `_` and `-`, and all of them different."""
    long = [{**SPAWN, "name": f"{'long_' * 20}{number}"} for number in range(3)]
    odd = [{**SPAWN, "name": name} for name in ("a.b", "a/b", "ü")]
    tools = [{**AGENTS, "name": "mcp.x", "tools": [*long, *odd]}]
    asked = read(tools=tools)
    names = [tool.name for tool in asked.tools]
    assert len(set(names)) == 6
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in names)
    made = [written(asked, call(name, "{}")) for name in names]
    assert [(item["namespace"], item["name"]) for item in made] == [("mcp.x", each["name"]) for each in [*long, *odd]]
    back = read(tools=tools, input=made)
    pieces = [piece for turn in back.turns for piece in turn.pieces]
    assert [piece.name for piece in pieces if isinstance(piece, CallPiece)] == names


def test_a_call_in_a_namespace() -> None:
    """It is written as the client expects it: the tool's own name, and the namespace beside it."""
    item = written(read(), call("agents__spawn", '{"id"', ': "a"}'))
    assert (item["type"], item["name"], item["namespace"]) == ("function_call", "spawn", "agents")
    assert (item["arguments"], item["call_id"], item["status"]) == ('{"id": "a"}', "call_1", "completed")
    assert "namespace" not in written(read(), call("read", "{}"))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_call_of_a_custom_tool(size: int) -> None:
    """Its text comes out of the arguments, however these are cut."""
    text = '*** Begin Patch\n+"ü" \\ \u2028\n*** End Patch'
    arguments = json.dumps({"input": text})
    pieces = [arguments[start : start + size] for start in range(0, len(arguments), size)]
    found = call("agents__apply_patch", *pieces)
    item = written(read(), found)
    assert (item["type"], item["name"], item["namespace"]) == ("custom_tool_call", "apply_patch", "agents")
    assert (item["input"], item["call_id"], item["status"]) == (text, "call_1", "completed")
    assert "arguments" not in item
    sent = events(stream(found, read()))
    assert [event["type"].removeprefix("response.") for event in sent[2:-1]] == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
    ]
    assert sent[3]["delta"] == sent[4]["input"] == text


def test_a_custom_call_that_was_cut_off() -> None:
    """What the model wrote of it is not lost, and not taken for a whole call."""
    item = written(read(), call("apply_patch", '{"input": "*** Beg', error="incomplete", whole=False))
    assert (item["type"], item["status"], item["input"]) == ("custom_tool_call", "incomplete", '{"input": "*** Beg')
    assert written(read(), call("apply_patch", error="incomplete", whole=False))["input"] == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"input": "a"}', "a"),
        ('{"patch": "a"}', "a"),
        ('{"input": "a", "why": "b"}', '{"input": "a", "why": "b"}'),
        ('{"input": 3}', '{"input": 3}'),
        ("{}", "{}"),
        ("[]", "[]"),
        ("a", "a"),
    ],
)
def test_the_text_of_a_custom_call(arguments: str, text: str) -> None:
    """One string under any name; all else goes to the tool as the model wrote it."""
    assert input_of(arguments) == text
    assert input_of(arguments_of(text)) == text


def test_calls_and_results_come_back() -> None:
    """In the next request they have the names and the arguments that the model wrote."""
    asked = read()
    calls = [
        written(asked, call("agents__spawn", '{"id": "a"}')),
        written(asked, call("agents__apply_patch", '{"input":"x\\ny"}')),
    ]
    calls[1]["call_id"] = "call_2"
    results: list[dict[str, Any]] = [
        {"type": "function_call_output", "call_id": "call_1", "output": "one"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "two"}]},
    ]
    again = read(input=[*calls, *results])
    messages = chat.write_request(again)["messages"]
    assert [made["function"] for made in messages[0]["tool_calls"]] == [
        {"name": "agents__spawn", "arguments": '{"id": "a"}'},
        {"name": "agents__apply_patch", "arguments": '{"input":"x\\ny"}'},
    ]
    assert [(m["tool_call_id"], m["content"], m["name"]) for m in messages[1:]] == [
        ("call_1", "one", "agents__spawn"),
        ("call_2", "two", "agents__apply_patch"),
    ]
    # Within the dialect nothing of it is changed.
    same = responses.write_request(again)
    assert same["input"] == [*calls, results[0], {**results[1], "output": "two"}]
    assert same["tools"] == [{**READ}, AGENTS, PATCH, SEARCH]


def test_calls_of_tools_that_are_gone() -> None:
    """A call of an earlier turn keeps a name of its own though its tool is no longer offered."""
    gone = {"type": "function_call", "call_id": "c", "name": "stop", "namespace": "agents", "arguments": "{}"}
    turn = read(input=[gone]).turns[0]
    assert [piece.name for piece in turn.pieces if isinstance(piece, CallPiece)] == ["agents__stop"]


def test_a_namespace_that_the_client_left_out() -> None:
    """It is clear which tool is meant where no other has the name."""
    left = {"type": "function_call", "call_id": "c", "name": "spawn", "arguments": "{}"}

    def name(**fields: Any) -> list[str]:
        pieces = read(input=[left], **fields).turns[0].pieces
        return [piece.name for piece in pieces if isinstance(piece, CallPiece)]

    assert name() == ["agents__spawn"]
    assert name(tools=[AGENTS, {**READ, "name": "spawn"}]) == ["spawn"]
    assert name(tools=[AGENTS, {**AGENTS, "name": "other"}]) == ["spawn"]
    assert name(tools=[]) == ["spawn"]


def test_tools_that_an_item_adds() -> None:
    """Codex sends them so to some models; they are tools like others."""
    added = {"type": "additional_tools", "role": "developer", "tools": [AGENTS, SEARCH]}
    asked = read(tools=[READ], input=[added, {"role": "user", "content": "?"}])
    assert [tool.name for tool in asked.tools] == ["read", "agents__spawn", "agents__apply_patch"]
    assert asked.hosted == ("input[0].tools[1].web_search",)
    assert [message["role"] for message in chat.write_request(asked)["messages"]] == ["user"]
    assert responses.write_request(asked)["tools"] == [READ, AGENTS, SEARCH]
    with pytest.raises(RequestError) as caught:
        read(input=[{**added, "tools": {}}])
    assert caught.value.param == "input[0].tools"


LOOKUP = {
    "type": "tool_search",
    "execution": "client",
    "description": "Finds tools.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}


def test_a_search_that_the_client_carries_out() -> None:
    """It is a function; its call has the type that the client expects, and what it found can be called."""
    asked = read(tools=[READ, LOOKUP])
    assert [(tool.name, tool.description) for tool in asked.tools][1:] == [("tool_search", "Finds tools.")]
    assert asked.hosted == ()
    item = written(asked, call("tool_search", '{"query":', ' "agents"}'))
    assert (item["type"], item["execution"], item["call_id"]) == ("tool_search_call", "client", "call_1")
    assert (item["arguments"], item["status"]) == ({"query": "agents"}, "completed")
    cut = written(asked, call("tool_search", '{"query', error="incomplete", whole=False))
    assert (cut["arguments"], cut["status"]) == ('{"query', "incomplete")
    assert written(asked, call("tool_search"))["arguments"] == {}
    found = {
        "type": "tool_search_output",
        "execution": "client",
        "call_id": "call_1",
        "tools": [AGENTS, {**SPAWN, "name": "wait"}, {"type": "web_search"}],
    }
    # A second search may find the same; it is offered once.
    again = read(tools=[READ, LOOKUP], input=[item, found, {**item, "call_id": "2"}, {**found, "call_id": "2"}])
    names = ["agents__spawn", "agents__apply_patch", "wait"]
    assert {tool.name for tool in again.tools} == {"read", "tool_search", *names}
    messages = chat.write_request(again)["messages"]
    assert messages[0]["tool_calls"][0]["function"] == {"name": "tool_search", "arguments": '{"query":"agents"}'}
    assert (json.loads(messages[1]["content"]), messages[1]["name"]) == ({"tools": names}, "tool_search")
    called = written(again, call("wait", "{}"))
    assert (called["type"], called["name"]) == ("function_call", "wait")
    same = responses.write_request(again)
    assert same["input"][:2] == [item, found]
    assert same["tools"] == [READ, LOOKUP]


def test_a_search_that_the_server_carries_out_is_left_out() -> None:
    """What it would have found is offered at once."""
    later = {**AGENTS, "tools": [{**SPAWN, "defer_loading": True}]}
    asked = read(tools=[{"type": "tool_search"}, later])
    assert asked.hosted == ("tools[0].tool_search",)
    assert [tool.name for tool in asked.tools] == ["agents__spawn"]


def test_many_names_that_are_alike_cost_no_more_each() -> None:
    """The number behind a name is not counted from the start again, nor is each call compared with every tool."""
    count = 5000
    tools = [{**AGENTS, "tools": [{**SPAWN, "name": "ü" * 60 + str(number)} for number in range(count)]}]
    items = [
        {"type": "function_call", "call_id": "c", "name": f"x{number}", "arguments": "{}"} for number in range(count)
    ]
    lines = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += frame.f_code.co_filename.endswith("tools.py")
        return trace

    before = sys.gettrace()  # of `make coverage`, which would see nothing of the tests behind this one
    sys.settrace(trace)
    try:
        asked = read(tools=tools, input=items)
    finally:
        sys.settrace(before)
    assert len({tool.name for tool in asked.tools}) == count
    assert lines < 100 * count


def test_what_the_server_would_run_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """And the log names it; within the dialect it stays."""
    asked = read()
    assert (asked.hosted, asked.essential) == (("tools[3].web_search",), ())
    with caplog.at_level(logging.INFO, "asides"):
        assert len(chat.write_request(asked)["tools"]) == 4
    assert "tools[3].web_search" in caplog.text
    odd = {**AGENTS, "tools": [{"type": "mcp"}]}
    assert read(tools=[odd]).hosted == ("tools[0].tools[0].mcp",)


@pytest.mark.parametrize(
    ("choice", "ours"),
    [
        ({"type": "custom", "name": "apply_patch"}, "function:apply_patch"),
        ({"type": "function", "name": "spawn", "namespace": "agents"}, "function:agents__spawn"),
        ({"type": "function", "name": "spawn"}, "function:agents__spawn"),
        ({"type": "function", "name": "read"}, "function:read"),
        ("required", "required"),
    ],
)
def test_a_choice_by_the_clients_name(choice: Any, ours: str) -> None:
    """It becomes the model's name; the reply repeats the client's."""
    asked = read(tool_choice=choice)
    assert asked.tool_choice == ours
    spawn = {"type": "function", "name": "spawn", "namespace": "agents"}
    assert responses.write_reply(call("read"), asked)["tool_choice"] == (spawn if "spawn" in ours else choice)


@pytest.mark.parametrize(
    ("tools", "choice"),
    [
        ([READ, SEARCH], {"type": "web_search"}),
        ([READ, SEARCH], {"type": "mcp", "server_label": "x"}),
        ([SEARCH], "required"),
        (
            [READ, SEARCH],
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]},
        ),
    ],
)
def test_a_choice_that_forces_what_only_the_server_could_run(tools: list[Any], choice: Any) -> None:
    """Without that tool the request could not be obeyed, so it is refused."""
    asked = read(tools=tools, tool_choice=choice)
    with pytest.raises(RequestError) as caught:
        chat.write_request(asked)
    assert caught.value.param == "tool_choice"
    assert responses.write_request(asked)["tool_choice"] == choice


def test_allowed_tools() -> None:
    """Of every kind, and all others are not offered."""

    def allowed(*tools: dict[str, Any], mode: str = "auto") -> list[str]:
        asked = read(tool_choice={"type": "allowed_tools", "mode": mode, "tools": list(tools)})
        assert asked.tool_choice == mode
        return [tool.name for tool in asked.tools]

    assert allowed({"type": "custom", "name": "apply_patch"}, mode="required") == ["apply_patch"]
    assert allowed({"type": "namespace", "name": "agents"}) == ["agents__spawn", "agents__apply_patch"]
    assert allowed({"type": "function", "name": "read"}, {"type": "web_search"}) == ["read"]
    only = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "read"}]}
    assert read(tool_choice=only).hosted == ()
    assert responses.write_request(read(tool_choice=only))["tools"] == [READ]


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ({"type": "namespace"}, "tools[0].name"),
        ({"type": "namespace", "name": "a", "tools": 3}, "tools[0].tools"),
        ({"type": "namespace", "name": "a", "tools": [3]}, "tools[0].tools[0]"),
        ({"type": "namespace", "name": "a", "tools": [{"type": "function"}]}, "tools[0].tools[0].name"),
        ({"type": "custom"}, "tools[0].name"),
        ({"type": "custom", "name": "a", "format": "lark"}, "tools[0].format"),
        (3, "tools[0]"),
    ],
)
def test_what_is_no_tool(tool: Any, param: str) -> None:
    """The error names its place."""
    with pytest.raises(RequestError) as caught:
        RequestTools({"tools[0]": tool})
    assert caught.value.param == param


CUSTOM = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "namespace": "agents"}
PATCHED = '*** Begin Patch\n+"ü" \\ \U0001f600\n*** End Patch'
FUNCTION_CALL = {"id": "fc_1", "type": "function_call", "call_id": "c2", "name": "spawn", "namespace": "agents"}


def _upstream_events(size: int, *, deltas: bool, ends: bool) -> list[dict[str, Any]]:
    """A stream with a call of a custom tool, as upstreams may write it."""
    place = {"output_index": 0, "item_id": "ctc_1"}
    begun = [{"type": "response.output_item.added", "output_index": 0, "item": {**CUSTOM, "input": ""}}]
    grown = [
        {"type": "response.custom_tool_call_input.delta", **place, "delta": PATCHED[start : start + size]}
        for start in range(0, len(PATCHED), size)
    ]
    ended = [{"type": "response.custom_tool_call_input.done", **place, "input": PATCHED}]
    done = [{"type": "response.output_item.done", "output_index": 0, "item": {**CUSTOM, "input": PATCHED}}]
    return begun + (grown if deltas else []) + (ended if ends else []) + done


def _read_upstream(sent: list[dict[str, Any]]) -> list[Chunk]:
    reader = responses.ReplyReader()
    created = {"type": "response.created", "response": {"id": "r", "model": "m"}}
    last = {"type": "response.completed", "response": {"id": "r", "status": "completed"}}
    return reader.feed(b"".join(sse(to_json(event), event["type"]) for event in [created, *sent, last]))


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("deltas", [True, False])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_upstreams_call_of_a_custom_tool_is_a_call(size: int, deltas: bool, ends: bool) -> None:
    """Its free text is the one string of the arguments: for other APIs a function, for its own what it was."""
    chunks = _read_upstream(_upstream_events(size, deltas=deltas, ends=ends))
    arguments = "".join(chunk.arguments for chunk in chunks if isinstance(chunk, CallChunk))
    assert json.loads(arguments) == {"input": PATCHED}
    splitter = Splitter(asides.get_format("qwen3"), asides.Parser)
    found = [item for chunk in chunks for item in splitter.feed(chunk)]
    (call,) = chat.write_reply(found, chat.read_request({"model": "m", "messages": [{"role": "user"}]}))["choices"]
    assert call["message"]["tool_calls"][0]["function"] == {"name": "apply_patch", "arguments": arguments}
    item = written(read(), found)
    assert item == {**CUSTOM, "status": "completed", "input": PATCHED}
    whole = responses.read_reply({"id": "r", "status": "completed", "output": [{**CUSTOM, "input": PATCHED}]})
    assert next(chunk for chunk in whole if isinstance(chunk, CallChunk)).name == "apply_patch"
    assert "".join(chunk.arguments for chunk in whole if isinstance(chunk, CallChunk)) == arguments


def test_a_call_of_a_custom_tool_that_is_cut_off() -> None:
    """What came of it is there, and it may not be run."""
    chunks = _read_upstream(_upstream_events(7, deltas=True, ends=False)[:3])
    assert [chunk.arguments for chunk in chunks if isinstance(chunk, CallChunk)] == ["", '{"input":"*** Beg', "in Patc"]


def test_an_upstreams_namespace_stays() -> None:
    """A client of the same API sees what was called by its own names, also where the model's would be others."""
    whole = {"id": "r", "status": "completed", "output": [{**FUNCTION_CALL, "arguments": "{}"}]}
    splitter = Splitter(asides.get_format("qwen3"), asides.Parser)
    found = [item for chunk in responses.read_reply(whole) for item in splitter.feed(chunk)]
    assert written(read(), found) == {**FUNCTION_CALL, "arguments": "{}", "status": "completed"}
