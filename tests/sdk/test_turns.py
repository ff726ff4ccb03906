"""Turns of an agent with the real SDKs over a real socket: what is sent, what comes, what the next request has."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import ollama
import pytest

import asides
from asides import dialects
from asides._engine.calls.ids import make_id
from asides.dialects._request import CallPiece, RequestTurn, TextPiece, ThinkingPiece
from asides.reading import Reading
from tests.gateway import upstream as scripted
from tests.gateway.upstream import Upstream
from tests.sdk.clients import MODEL, SDKS, SEPARATES, Sdk, anthropic_client, openai_client, serve

FUNCTION = {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
TOOLS: dict[str, list[Any]] = {
    "openai_chat": [{"type": "function", "function": FUNCTION}],
    "ollama": [{"type": "function", "function": FUNCTION}],
    "anthropic": [{"name": "add", "input_schema": FUNCTION["parameters"]}],
    "openai_responses": [{"type": "function", **FUNCTION}],
}
ASKED = [{"role": "user", "content": "2+2?"}]
TURNS = {name: sdk for name, sdk in SDKS.items() if sdk.api in TOOLS}
EACH = pytest.mark.parametrize("sdk", TURNS.values(), ids=TURNS)
CALLS = """<think>
Two and two.
</think>

Let me see.
<tool_call>
{"name": "add", "arguments": {"a": 2}}
</tool_call>
<tool_call>
{"name": "add", "arguments": {"a": 3}}
</tool_call>"""


def fields(sdk: Sdk) -> dict[str, Any]:
    """What a turn is given with this SDK, beside client and messages."""
    needed = {"max_tokens": 99} if sdk.api == "anthropic" else {}
    return {"model": MODEL, "tools": TOOLS[sdk.api], **needed}


def asked_of(sdk: Sdk, client: Any) -> Any:
    """What a turn is given as the client."""
    return client.responses if sdk.api == "openai_responses" else client


def sent(server: Upstream, api: str) -> tuple[RequestTurn, ...]:
    """The conversation of the last request, as the dialect reads it."""
    asked = server.asked[-1]
    return dialects.get(api).read_request(asked.body, asked.path).turns


def words(turns: tuple[RequestTurn, ...]) -> list[tuple[str, str]]:
    """Who says what; a call is its name and arguments."""
    return [(turn.role, "|".join(map(_words, turn.pieces))) for turn in turns]


def _words(piece: Any) -> str:
    if isinstance(piece, CallPiece):
        return f"{piece.name}({json.loads(piece.arguments)})"
    assert isinstance(piece, TextPiece | ThinkingPiece)
    return f"({piece.text})" if isinstance(piece, ThinkingPiece) else piece.text


@SEPARATES
@EACH
def test_a_conversation_with_tools(server: Upstream, sdk: Sdk, separates: bool) -> None:
    """The first turn calls twice, the second answers. Results may come in any order, and each finds its call."""
    with sdk.client(server.url) as client:
        messages: list[Any] = list(ASKED)
        serve(server, sdk.api, separates, CALLS)
        turn = asides.turn(asked_of(sdk, client), messages, **fields(sdk))
        events = list(turn)
        assert [event.kind for event in events if isinstance(event, asides.PartStart)] == [
            "thinking", "text", "tool_call", "tool_call",
        ]  # fmt: skip
        assert [(call.name, json.loads(call.arguments)) for call in turn.calls] == [
            ("add", {"a": 2}),
            ("add", {"a": 3}),
        ]
        results = {call.id: str(json.loads(call.arguments)["a"]) for call in reversed(turn.calls)}
        assert len(results) == 2
        messages += turn.messages(results)
        serve(server, sdk.api, separates, "<think>Easy.</think>Five.")
        last = asides.turn(asked_of(sdk, client), messages, **fields(sdk))
        assert (last.reply.thinking, last.reply.text, last.calls) == ("Easy.", "Five.", ())
    found = sent(server, sdk.api)
    # To Anthropic a thought goes back with its signature, so only where the server has made it one.
    thought = "(Two and two.)|" if separates or sdk.api != "anthropic" else ""
    called = "add({'a': 2})|add({'a': 3})"
    # What a server that separates takes out of the text has left its whitespace to us.
    assert [(role, said.replace("Let me see.\n", "Let me see.")) for role, said in words(found)] == [
        ("user", "2+2?"), ("assistant", f"{thought}Let me see.|{called}"), ("tool", "2"), ("tool", "3"),
    ]  # fmt: skip
    assert [turn.call_id for turn in found[2:]] == [
        piece.id for piece in found[1].pieces if isinstance(piece, CallPiece)
    ] or sdk.api == "ollama", "Ollama's calls have no ids"
    # What OpenAI's Responses have sent goes back to them as it came.
    assert len(last.messages()) == (2 if sdk.api == "openai_responses" and separates else 1)


@SEPARATES
@EACH
def test_a_turn_of_nothing_but_a_thought(server: Upstream, sdk: Sdk, separates: bool) -> None:
    """Anthropic refuses an empty message and one that ends with a thought, OpenAI reasoning that nothing follows."""
    with sdk.client(server.url) as client:
        for raw in ("<think>Hm", ""):
            serve(server, sdk.api, separates, raw)
            written = asides.turn(asked_of(sdk, client), ASKED, **fields(sdk)).messages()
            empty = [] if sdk.api in ("anthropic", "openai_responses") else [{"role": "assistant", "content": ""}]
            assert written == empty


@EACH
def test_the_same_with_asynchronous_clients(server: Upstream, sdk: Sdk) -> None:
    async def converse() -> list[Any]:
        async with sdk.aclient(server.url) as client:
            serve(server, sdk.api, False, CALLS)
            turn = asides.aturn(asked_of(sdk, client), ASKED, **fields(sdk))
            with pytest.raises(asides.UsageError, match="`await` the turn"):
                _ = turn.reply
            assert [event async for event in turn]
            messages = ASKED + turn.messages({call.id: "5" for call in turn.calls})
            serve(server, sdk.api, False, "<think>Easy.</think>Five.")
            last = await asides.aturn(asked_of(sdk, client), messages, **fields(sdk))
            assert last.reply.text == "Five."
            return messages

    # Anthropic has the results in one message; Responses has each part in an item of its own.
    lengths = {"anthropic": 3, "openai_responses": 7}
    assert len(asyncio.run(converse())) == lengths.get(sdk.api, 4)


BROKEN = """Let me see.
<tool_call>
{"name": "add", "arguments": {"a": }}
</tool_call>
<tool_call>
{"arguments": {"a": 1}}
</tool_call>
<tool_call>
{"name": "add", "arguments": {"a": 3}}
</tool_call>"""


@EACH
def test_the_model_learns_of_its_broken_calls(server: Upstream, sdk: Sdk) -> None:
    """One with a name is a call with a result, one without is text and a message behind the results."""
    with sdk.client(server.url) as client:
        serve(server, sdk.api, False, BROKEN)
        turn = asides.turn(asked_of(sdk, client), ASKED, **fields(sdk))
        broken, nameless, whole = turn.reply.tool_calls
        assert (broken.name, bool(broken.error), nameless.name) == ("add", True, "")
        assert turn.calls == (whole,)
        messages = turn.messages({whole.id: "3"})
        serve(server, sdk.api, False, "Sorry.")
        assert asides.turn(asked_of(sdk, client), ASKED + messages, **fields(sdk)).reply.text == "Sorry."
    _, assistant, first, second, user = sent(server, sdk.api)
    calls = [piece for piece in assistant.pieces if isinstance(piece, CallPiece)]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("add", {}), ("add", {"a": 3})]
    assert '{"arguments": {"a": 1}}' in assistant.text
    assert assistant.text.startswith("Let me see.")
    assert '{"a": }' in first.text
    assert broken.error_message in first.text
    assert second.text == "3"
    assert (user.role, nameless.error_message in user.text) == ("user", True)


@pytest.mark.parametrize("arguments", ['{"a": ', '{"a": }', '{"a": 1, "a": 2}', "[1]"])
def test_the_model_learns_of_broken_calls_that_the_server_has_read(server: Upstream, arguments: str) -> None:
    call = {"index": 0, "id": "c", "function": {"name": "add", "arguments": arguments}}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    frame = json.dumps({"id": "r", "model": MODEL, "choices": [choice]})
    server.send(scripted.Reply([f"data: {frame}\n\n".encode(), b"data: [DONE]\n\n"]), "/v1/chat/completions")
    with openai_client(server.url) as client:
        turn = asides.turn(client, ASKED, model=MODEL, tools=TOOLS["openai_chat"])
        assert turn.calls == ()
        message, result = turn.messages()
    (broken,) = turn.reply.tool_calls
    assert broken.error_message
    assert broken.error_message in result["content"]
    assert arguments in result["content"]
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_what_templates_want_of_a_conversation_is_seen_to(server: Upstream) -> None:
    """One system message, and results in the order of their calls, whoever wrote the messages; else nothing changes."""
    calls = [{"id": id, "type": "function", "function": {"name": "add", "arguments": "{}"}} for id in ("c1", "c2")]
    messages: list[Any] = [
        {"role": "system", "content": "Be brief."}, {"role": "system", "content": "Be kind."}, *ASKED,
        {"role": "assistant", "content": None, "reasoning": "Hm.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
    ]  # fmt: skip
    with openai_client(server.url) as client:
        serve(server, "openai_chat", False, "Four.")
        assert (
            asides.turn(client, messages, model=MODEL, temperature=0.5, extra_body={"top_k": 3}).reply.text == "Four."
        )
        body = server.questions[-1].body
        assert [(each["role"], each.get("content")) for each in body["messages"]] == [
            ("system", "Be brief.\n\nBe kind."), ("user", "2+2?"), ("assistant", None),
            ("tool", "one"), ("tool", "two"),
        ]  # fmt: skip
        assert body["messages"][2]["reasoning"] == "Hm."
        assert (body["temperature"], body["top_k"], body["stream"]) == (0.5, 3, True)
        serve(server, "openai_chat", False, "Four.")
        asides.turn(client, ASKED, model=MODEL).messages()
        assert server.questions[-1].body == {"model": MODEL, "messages": ASKED, "stream": True}


def test_a_signed_thought_goes_back_with_its_signature(server: Upstream) -> None:
    """Anthropic refuses the results of a turn without its thoughts, and a thought without its own signature."""
    blocks: list[tuple[Any, Any]] = [
        ({"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "Add."}),
        ({"type": "tool_use", "id": "t1", "name": "add", "input": {}},
         {"type": "input_json_delta", "partial_json": "{}"}),
    ]  # fmt: skip
    message = {"id": "m", "type": "message", "role": "assistant", "model": MODEL, "content": [], "usage": {}}
    frames: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, (block, delta) in enumerate(blocks):
        frames.append({"type": "content_block_start", "index": index, "content_block": block})
        frames.append({"type": "content_block_delta", "index": index, "delta": delta})
        if not index:
            signed = {"type": "signature_delta", "signature": "c2ln"}
            frames.append({"type": "content_block_delta", "index": index, "delta": signed})
        frames.append({"type": "content_block_stop", "index": index})
    frames += [
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    server.send(frames_reply(frames), "/v1/messages")
    with anthropic_client(server.url) as client:
        turn = asides.turn(client, ASKED, model=MODEL, tools=TOOLS["anthropic"], max_tokens=99)
        assistant, _ = turn.messages({"t1": "4"})
    assert assistant["content"][0] == {"type": "thinking", "thinking": "Add.", "signature": "c2ln"}
    assert assistant["content"][1]["type"] == "tool_use"


def frames_reply(frames: list[dict[str, Any]]) -> scripted.Reply:
    lines = [f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n".encode() for frame in frames]
    return scripted.Reply(lines, headers=scripted.SSE)


def test_redacted_thoughts_go_back_as_they_came(server: Upstream) -> None:
    """At their places, and so do a thought that is only signed and what tools of the server have done."""
    blocks: list[dict[str, Any]] = [
        {"type": "redacted_thinking", "data": "c2VjcmV0"},
        {"type": "thinking", "thinking": "", "signature": "b25seQ=="},
        {"type": "text", "text": "Searching."},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "2+2"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        {"type": "redacted_thinking", "data": "bW9yZQ=="},
        {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 2}},
    ]
    message = {"id": "m", "type": "message", "role": "assistant", "model": MODEL, "content": [], "usage": {}}
    frames: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, block in enumerate(blocks):
        frames.append({"type": "content_block_start", "index": index, "content_block": block})
        frames.append({"type": "content_block_stop", "index": index})
    frames.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}})
    frames.append({"type": "message_stop"})
    server.send(frames_reply(frames), "/v1/messages")
    with anthropic_client(server.url) as client:
        turn = asides.turn(client, ASKED, model=MODEL, tools=TOOLS["anthropic"], max_tokens=99)
        assistant, result = turn.messages({"t1": "4"})
        assert assistant["content"] == blocks
        assert result["content"][0]["tool_use_id"] == "t1"
        serve(server, "anthropic", True, "Four.")
        asides.turn(client, [*ASKED, assistant, result], model=MODEL, max_tokens=99).messages()
        assert server.asked[-1].body["messages"][1]["content"] == blocks


RESPONSE = {"id": "r", "object": "response", "model": MODEL, "created_at": 1}


def response_frames(output: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events of a Response whose items come whole."""
    frames: list[dict[str, Any]] = [{"type": "response.created", "response": {**RESPONSE, "output": []}}]
    for index, item in enumerate(output):
        begun = {
            name: value
            for name, value in item.items()
            if name in ("type", "id", "call_id", "name", "namespace", "role")
        }
        frames.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        frames.append({"type": "response.output_item.done", "output_index": index, "item": item})
    done = {**RESPONSE, "status": "completed", "output": output, "usage": {"input_tokens": 1, "output_tokens": 2}}
    return [*frames, {"type": "response.completed", "response": done}]


OUTPUTS: dict[str, list[dict[str, Any]]] = {
    "encrypted": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Add."}],
         "encrypted_content": "c2VjcmV0"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": '{"a": 2}'},
    ],
    "nothing but encrypted": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}]},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "bW9yZQ=="},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": '{"a": 2}'},
    ],
    "a summary": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Add."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": '{"a": 2}'},
    ],
    "a thought": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Add."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": '{"a": 2}'},
    ],
    "a tool of the server": [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "2"}},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": '{"a": 2}'},
    ],
    "a namespace": [
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "namespace": "sums",
         "arguments": '{"a": 2}'},
    ],
}  # fmt: skip


@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
def test_items_of_responses_go_back_as_they_came(server: Upstream, output: list[dict[str, Any]]) -> None:
    """OpenAI refuses a call without the reasoning before it, and reasoning under another id."""
    server.send(frames_reply(response_frames(output)), "/v1/responses")
    with openai_client(server.url) as client:
        turn = asides.turn(client.responses, ASKED, model=MODEL, tools=TOOLS["openai_responses"])
        assert [call.name for call in turn.calls] == ["add"]
        written = turn.messages({"c1": "4"})
        assert written == [*output, {"type": "function_call_output", "call_id": "c1", "output": "4"}]
        serve(server, "openai_responses", True, "Four.")
        said: Any = {"instructions": "Be brief.", "include": ["reasoning.encrypted_content"]}
        asides.turn(client.responses, ASKED + written, model=MODEL, **said).messages()
        body = server.asked[-1].body
        assert body == {"model": MODEL, "input": ASKED + written, "stream": True, **said}


def test_a_custom_tool_of_responses(server: Upstream) -> None:
    """Its call is free text, and its result is of its own type."""
    call = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "shell", "input": 'echo "a"\n'}
    server.send(frames_reply(response_frames([call])), "/v1/responses")
    with openai_client(server.url) as client:
        turn = asides.turn(client.responses, ASKED, model=MODEL, tools=[{"type": "custom", "name": "shell"}])
        assert [call.name for call in turn.calls] == ["shell"]
        assert turn.messages({"c1": "a"}) == [
            call, {"type": "custom_tool_call_output", "call_id": "c1", "output": "a"},
        ]  # fmt: skip


def test_instructions_of_responses_are_one(server: Upstream) -> None:
    with openai_client(server.url) as client:
        serve(server, "openai_responses", True, "Four.")
        messages = [{"role": "system", "content": "Be kind."}, *ASKED]
        asides.turn(client.responses, messages, model=MODEL, instructions="Be brief.").messages()
        body = server.asked[-1].body
        assert body["instructions"] == "Be brief.\n\nBe kind."
        assert [item["role"] for item in body["input"]] == ["user"]
        with pytest.raises(asides.UsageError, match="input is set by the turn itself"):
            asides.turn(client.responses, ASKED, model=MODEL, input="2+2?")


def test_thoughts_go_back_under_the_servers_own_name(server: Upstream) -> None:
    delta = {
        "reasoning": "Add.",
        "tool_calls": [{"index": 0, "id": "c", "function": {"name": "add", "arguments": "{}"}}],
    }
    chunk = {"id": "r", "model": MODEL, "choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]}
    server.send(
        scripted.Reply([f"data: {json.dumps(chunk)}\n\n".encode(), b"data: [DONE]\n\n"]), "/v1/chat/completions"
    )
    with openai_client(server.url) as client:
        turn = asides.turn(client, ASKED, model=MODEL, tools=TOOLS["openai_chat"])
        assistant, result = turn.messages({"c": "4"})
    assert (assistant["reasoning"], "reasoning_content" in assistant) == ("Add.", False)
    assert result == {"role": "tool", "tool_call_id": "c", "content": "4"}


def test_how_it_is_read_may_be_chosen(server: Upstream) -> None:
    """By a reading, or by format and policies; not by both. Tools and messages may be the SDK's own objects."""
    tool = ollama.Tool(function=ollama.Tool.Function(name="add"))
    with ollama.Client(server.url) as client:
        for chosen in ({"reading": Reading.of(MODEL).but(seed=7)}, {"policies": asides.Policies(seed=7)}):
            serve(server, "ollama", False, CALLS)
            asked = [ollama.Message(role="user", content="2+2?")]
            turn = asides.turn(client, asked, model=MODEL, tools=[tool], **chosen)
            assert [call.id for call in turn.calls] == [make_id("call", 7, index, "", 0) for index in (2, 3)]
        with pytest.raises(asides.UsageError, match="a reading says it all"):
            asides.turn(client, ASKED, model=MODEL, format="qwen3", reading=Reading.of(MODEL))
        with pytest.raises(asides.UsageError, match="an object of the SDK is wanted here, or a dict, not function"):
            asides.turn(client, ASKED, model=MODEL, tools=[fields])


def test_two_calls_with_one_id_have_two_results(server: Upstream) -> None:
    """Models that write ids may write one twice; a server would refuse the second result, or take it for the first."""
    call = "<|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
    with openai_client(server.url) as client:
        said = f"<|tool_calls_section_begin|>{call}{call}<|tool_calls_section_end|>"
        serve(server, "openai_chat", False, said)
        turn = asides.turn(client, ASKED, model=MODEL, format="kimi_k2", tools=TOOLS["openai_chat"])
        first, second = (call.id for call in turn.calls)
        results = turn.messages({first: "1", second: "2"})[1:]
    assert first != second
    assert [(each["tool_call_id"], each["content"]) for each in results] == [(first, "1"), (second, "2")]


def test_without_tools_nothing_is_called(server: Upstream) -> None:
    """As the gateway reads it: who offers no tool wants no call."""
    with openai_client(server.url) as client:
        serve(server, "openai_chat", False, CALLS)
        turn = asides.turn(client, ASKED, model=MODEL)
        assert turn.reply.tool_calls == ()
        assert "<tool_call>" in turn.messages()[0]["content"]


def test_what_cannot_work_is_refused_in_a_sentence(server: Upstream) -> None:
    with openai_client(server.url) as client:
        serve(server, "openai_chat", False, CALLS)
        turn = asides.turn(client, ASKED, model=MODEL, tools=TOOLS["openai_chat"])
        first, second = turn.calls
        with pytest.raises(asides.UsageError, match="there is no result for add"):
            turn.messages({first.id: "2"})
        with pytest.raises(asides.UsageError, match="there is none with the id nobody"):
            turn.messages({first.id: "2", second.id: "3", "nobody": "4"})
        wrong: Any = {first.id: 2, second.id: "3"}
        with pytest.raises(asides.UsageError, match="the result of add is no text"):
            turn.messages(wrong)
        with pytest.raises(asides.UsageError, match="stream is set by the turn itself"):
            asides.turn(client, ASKED, model=MODEL, stream=False)
        with pytest.raises(asides.UsageError, match="must be a list of messages"):
            asides.turn(client, "2+2?", model=MODEL)
    with pytest.raises(asides.UsageError, match="a client of OpenAI's, Anthropic's or Ollama's SDK is wanted"):
        asides.turn(object(), ASKED, model=MODEL)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no messages": ({"messages": None}, "messages must be a list"),
    "bytes": ({"messages": b"hi"}, "messages must be a list"),
    "tools": ({"tools": 3}, "tools must be a list"),
    "one tool": ({"tools": {"type": "function"}}, "tools must be a list"),
    "a format": ({"format": None}, "a format is a name"),
    "policies": ({"policies": {}}, "policies are asides.Policies"),
    "a reading": ({"reading": "qwen3"}, "a reading is an asides.Reading"),
    "several replies": ({"n": 2}, "a turn is one reply"),
}


@pytest.mark.parametrize(("given", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused_in_words(server: Upstream, given: dict[str, Any], words: str) -> None:
    serve(server, "openai_chat", False)
    with openai_client(server.url) as client, pytest.raises(asides.UsageError, match=words):
        _ = asides.turn(client, **{"messages": ASKED, "model": MODEL, **given}).reply


@pytest.mark.parametrize("results", [["5"], "5", 5, {3: "x", None: "y"}])
def test_results_that_are_none_are_refused_in_words(server: Upstream, results: Any) -> None:
    serve(server, "openai_chat", False, CALLS)
    with openai_client(server.url) as client:
        turn = asides.turn(client, ASKED, model=MODEL, tools=TOOLS["openai_chat"])
        given = {**{call.id: "5" for call in turn.calls}, **results} if isinstance(results, dict) else results
        with pytest.raises(asides.UsageError, match=r"results are (a dict|for the calls)"):
            turn.messages(given)


@EACH
def test_a_client_of_the_other_kind_is_refused_in_words(server: Upstream, sdk: Sdk) -> None:
    serve(server, sdk.api, False)

    async def both() -> None:
        async with sdk.aclient(server.url) as client:
            with pytest.raises(asides.UsageError, match="aturn asks it"):
                asides.turn(asked_of(sdk, client), ASKED, **fields(sdk))
        with sdk.client(server.url) as client, pytest.raises(asides.UsageError, match=r"asides\.turn asks it"):
            await asides.aturn(asked_of(sdk, client), ASKED, **fields(sdk))

    asyncio.run(both())


@pytest.mark.parametrize("number", [-1, 1, 10**30])
def test_the_one_reply_is_the_first_whatever_its_number(server: Upstream, number: int) -> None:
    frame = {"id": "r", "model": MODEL, "choices": [{"index": number, "delta": {"content": "Four."}}]}
    data = f"data: {json.dumps(frame)}\n\ndata: [DONE]\n\n".encode()
    server.send(scripted.Reply([data], headers=scripted.SSE), "/v1/chat/completions")
    with openai_client(server.url) as client:
        assert asides.turn(client, ASKED, model=MODEL).reply.text == "Four."
