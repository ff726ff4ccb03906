"""Tools that are no plain functions, through the gateway: the real SDKs ask, and a chat server is asked."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest
from openai.types.chat import ChatCompletionMessageCustomToolCall
from openai.types.responses import Response

from tests.gateway.clients import KEY, PATHS, Dialect, body_of, post
from tests.gateway.running import gateway
from tests.gateway.servers import Servers, serving
from tests.gateway.upstream import upstream

PATCH = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch"
TOOLS: list[Any] = [
    {
        "type": "namespace",
        "name": "agents",
        "description": "About agents.",
        "tools": [{"type": "function", "name": "spawn", "parameters": {"type": "object", "properties": {}}}],
    },
    {"type": "custom", "name": "apply_patch", "description": "Edits files."},
    {"type": "web_search"},
]
SERVER_TOOL: Any = {"type": "web_search_20250305", "name": "web_search"}
OWN_TOOL: Any = {"name": "find", "input_schema": {"type": "object", "properties": {}}}


def called(name: str, arguments: dict[str, Any]) -> str:
    """A call as Qwen3 writes it."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def client(servers: Servers) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{servers.gateway.url}/v1", api_key=KEY, max_retries=0)


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_with_every_kind_of_tool(servers: Servers, stream: bool) -> None:
    """OpenAI's SDK sees calls of its own tools; what it sends back reaches the model under the model's names."""
    written = [("agents__spawn", {}), ("apply_patch", {"input": PATCH})]
    servers.upstream.say("<think>Both.</think>" + "".join(called(*each) for each in written))
    reply: Response
    with client(servers) as sdk:
        if stream:
            with sdk.responses.stream(model="m", input="?", tools=TOOLS) as found:
                for _ in found:
                    pass
                reply = found.get_final_response()
        else:
            reply = sdk.responses.create(model="m", input="?", tools=TOOLS)
        assert [item.type for item in reply.output] == ["reasoning", "function_call", "custom_tool_call"]
        spawn, patch = reply.output[1:]
        assert spawn.type == "function_call"
        assert (spawn.name, spawn.namespace) == ("spawn", "agents")
        assert patch.type == "custom_tool_call"
        assert (patch.name, patch.input) == ("apply_patch", PATCH)
        offered = servers.upstream.question().body["tools"]
        assert [tool["function"]["name"] for tool in offered] == ["agents__spawn", "apply_patch"]
        servers.upstream.say("Done.")
        sent_back: list[Any] = [
            *(item.model_dump(exclude_none=True) for item in reply.output),
            {"type": "function_call_output", "call_id": spawn.call_id, "output": "one"},
            {"type": "custom_tool_call_output", "call_id": patch.call_id, "output": "two"},
        ]
        assert sdk.responses.create(model="m", input=sent_back, tools=TOOLS).output_text == "Done."
    turn, *results = servers.upstream.question().body["messages"]
    assert turn["reasoning_content"] == "Both."
    assert [
        (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in turn["tool_calls"]
    ] == written
    assert [(result["content"], result["name"]) for result in results] == [
        ("one", "agents__spawn"),
        ("two", "apply_patch"),
    ]


def test_what_only_the_server_could_run_is_reported(servers: Servers) -> None:
    """The request is served without it; a header and the line of the log name it."""
    with client(servers) as sdk:
        tools = [*TOOLS, {"type": "code_interpreter"}]
        raw = sdk.responses.with_raw_response.create(model="m", input="?", tools=tools)
        assert raw.headers["x-asides-left-out"] == "web_search, code_interpreter"
        assert raw.parse().output_text == "It is 4."
        line = servers.gateway.wait_for_record(lambda record: "code_interpreter" in record.get("left_out", ""))
        assert line["left_out"] == "web_search, code_interpreter"
        plain = sdk.responses.with_raw_response.create(model="m", input="?", tools=TOOLS[:1])
        assert "x-asides-left-out" not in plain.headers
    odd = [{"type": "a\r\nset-cookie: b\u2028"}, {"type": 3}]
    answer = post(servers.gateway.url, "/v1/responses", body_of("responses", tools=odd))
    assert answer.headers["x-asides-left-out"] == "a__set-cookie__b_, 3"
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("path", "fields", "named"),
    [
        ("messages", {"frobnicate": 1, "max_tokens": 9}, "frobnicate"),
        ("responses", {"frobnicate": 1, "a\r\nset-cookie: b": 1}, "a__set-cookie__b, frobnicate"),
        ("ollama_chat", {"options": {"num_ctx": 9, "temperature": 0}, "stream": False}, "options.num_ctx"),
        ("messages", {f"field{n:02}": n for n in range(23)}, "field19, and 3 more"),
        ("chat", {"frobnicate": 1}, None),
    ],
)
def test_a_field_that_the_upstream_is_not_sent_is_reported(
    servers: Servers, path: Dialect, fields: dict[str, Any], named: str | None
) -> None:
    """To the client, in a header, and in the line of the log. What the upstream is sent needs no report."""
    answer = post(servers.gateway.url, PATHS[path], body_of(path, **fields))
    assert answer.status_code == 200
    if named is None:
        assert "x-asides-left-out" not in answer.headers
        assert servers.upstream.question().body["frobnicate"] == 1
        return
    assert answer.headers["x-asides-left-out"].endswith(named)
    line = servers.gateway.wait_for_record(lambda record: record.get("left_out", "").endswith(named))
    assert line["left_out"] == answer.headers["x-asides-left-out"]
    assert "set-cookie" not in answer.headers


def test_a_request_without_a_model_is_sent_without_one(servers: Servers) -> None:
    """Servers with one model need no name; an empty one they refuse, as one that they do not have."""
    body = body_of("chat")
    del body["model"]
    assert post(servers.gateway.url, PATHS["chat"], body).status_code == 200
    assert "model" not in servers.upstream.question().body


def test_anthropics_server_tools(servers: Servers) -> None:
    """The same for what Anthropic would run; only a choice that forces it is refused."""
    with anthropic.Anthropic(base_url=servers.gateway.url, api_key=KEY, max_retries=0) as sdk:
        asked: dict[str, Any] = {
            "model": "m",
            "max_tokens": 99,
            "messages": [{"role": "user", "content": "?"}],
            "tools": [SERVER_TOOL, OWN_TOOL],
        }
        raw = sdk.messages.with_raw_response.create(**asked)
        assert raw.headers["x-asides-left-out"] == "web_search_20250305"
        assert [tool["function"]["name"] for tool in servers.upstream.question().body["tools"]] == ["find"]
        with pytest.raises(anthropic.BadRequestError, match="tool_choice"):
            sdk.messages.create(**asked, tool_choice={"type": "tool", "name": "web_search"})


def test_a_choice_that_forces_it_is_refused(servers: Servers) -> None:
    """A client that relies on the tool is not served without it."""
    with client(servers) as sdk, pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.create(model="m", input="?", tools=TOOLS, tool_choice={"type": "web_search_preview"})
    assert caught.value.param == "tool_choice"
    assert not servers.upstream.questions


def test_strict_refuses_it() -> None:
    """`strict: true`: no tool is left out."""
    with serving(strict=True) as servers:
        with client(servers) as sdk:
            with pytest.raises(openai.BadRequestError, match="web_search") as caught:
                sdk.responses.create(model="m", input="?", tools=TOOLS)
            assert caught.value.param == "tools[2].web_search"
            assert sdk.responses.create(model="m", input="?", tools=TOOLS[:2]).output_text == "It is 4."
        asked = body_of("messages", tools=[SERVER_TOOL])
        assert post(servers.gateway.url, "/v1/messages", asked).status_code == 400


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_clients_custom_tool_before_an_ollama(stream: bool) -> None:
    """The model is offered a function of one string; OpenAI's SDK sees a call of its own tool, and its result goes
    back."""
    tools: list[Any] = [{"type": "custom", "custom": {"name": "apply_patch", "description": "Edits files."}}]
    messages: list[Any] = [{"role": "user", "content": "?"}]
    with upstream("ollama") as server:
        config = {"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}}
        with gateway(config) as running, client(Servers(running, server)) as sdk:
            server.say(called("apply_patch", {"input": PATCH}))
            if stream:
                chunks = list(sdk.chat.completions.create(model="m", messages=messages, tools=tools, stream=True))
                found = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
                call: Any = found[0].model_dump(exclude_none=True)
                assert (len(found), call.pop("index")) == (1, 0)
                assert chunks[-1].choices[0].finish_reason == "tool_calls"
            else:
                reply = sdk.chat.completions.create(model="m", messages=messages, tools=tools)
                (made,) = list(reply.choices[0].message.tool_calls or ())
                assert isinstance(made, ChatCompletionMessageCustomToolCall)
                call = made.model_dump(exclude_none=True)
            assert (call["type"], call["custom"]) == ("custom", {"name": "apply_patch", "input": PATCH})
            (offered,) = server.question().body["tools"]
            assert offered["function"]["parameters"]["required"] == ["input"]
            server.say("Done.")
            messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": "applied"}]
            last = sdk.chat.completions.create(model="m", messages=messages, tools=tools)
            assert last.choices[0].message.content == "Done."
            _, turn, result = server.question().body["messages"]
            assert turn["tool_calls"][0]["function"] == {"name": "apply_patch", "arguments": {"input": PATCH}}
            assert (result["tool_name"], result["content"]) == ("apply_patch", "applied")
