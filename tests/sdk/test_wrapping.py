"""Wrapped clients of the real SDKs over a real socket: replies come apart, and everything else is the SDK's own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import ollama
import openai
import pytest

import asides
import asides.anthropic
import asides.ollama
import asides.openai
from asides.dialects import openai_chat
from asides.dialects._request import RequestError
from asides.reply import Reply
from tests.gateway import upstream as scripted
from tests.gateway.upstream import Upstream, upstream
from tests.sdk.clients import (
    CHAT,
    EACH,
    MODEL,
    RAW,
    SEPARATES,
    USAGE,
    USER,
    Sdk,
    anthropic_client,
    async_openai_client,
    openai_client,
    serve,
)

FUNCTION = {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
TOOL: Any = {"type": "function", "function": FUNCTION}
TOOLS: dict[str, Any] = {
    "openai_chat": {"tools": [TOOL]},
    "openai_responses": {"tools": [{"type": "function", "strict": False, **FUNCTION}]},
    "anthropic": {"tools": [{"name": "add", "input_schema": FUNCTION["parameters"]}]},
    "ollama": {"tools": [TOOL]},
}
CREATE = {
    "openai_chat": lambda client: client.chat.completions.create,
    "openai_responses": lambda client: client.responses.create,
    "anthropic": lambda client: client.messages.create,
    "ollama": lambda client: client.chat,
}


def arguments(sdk: Sdk, stream: bool) -> dict[str, Any]:
    """What the SDK's method is given."""
    if sdk.api == "openai_responses":
        return {"model": MODEL, "input": "2+2?", "stream": stream, **TOOLS[sdk.api]}
    needed = {"max_tokens": 99} if sdk.api == "anthropic" else {}
    return {**CHAT, **needed, "stream": stream, **TOOLS[sdk.api]}


def check(reply: Reply) -> None:
    """Read without any marker, so what is apart here was apart in the SDK's objects."""
    assert (reply.thinking, reply.text.strip()) == ("Two and two.", "Let me see.")
    assert [(call.name, json.loads(call.arguments)) for call in reply.tool_calls] == [("add", {"a": 2})]
    assert reply.model == MODEL


@SEPARATES
@EACH
def test_replies_come_apart(server: Upstream, sdk: Sdk, separates: bool) -> None:
    with sdk.client(server.url) as plain, sdk.module.wrap(plain) as client:
        assert type(client) is type(plain)
        serve(server, sdk.api, separates)
        check(sdk.module.read(CREATE[sdk.api](client)(**arguments(sdk, False)), "passthrough"))
        serve(server, sdk.api, separates)
        stream = sdk.module.split(CREATE[sdk.api](client)(**arguments(sdk, True)), "passthrough")
        assert len([event for event in stream if isinstance(event, asides.ThinkingDelta)]) > 1, "it does not stream"
        check(stream.reply)

    async def ask() -> None:
        async with sdk.aclient(server.url) as plain, sdk.module.wrap(plain) as client:
            serve(server, sdk.api, separates)
            check(sdk.module.read(await CREATE[sdk.api](client)(**arguments(sdk, False)), "passthrough"))
            serve(server, sdk.api, separates)
            stream = sdk.module.asplit(await CREATE[sdk.api](client)(**arguments(sdk, True)), "passthrough")
            assert [event async for event in stream]
            check(stream.reply)

    asyncio.run(ask())


@SEPARATES
def test_the_helpers_of_the_sdks_see_it_apart(server: Upstream, separates: bool) -> None:
    """They put the reply together by the SDK's own rules, from the pieces that come."""
    with asides.openai.wrap(openai_client(server.url)) as client:
        serve(server, "openai_chat", separates)
        with client.chat.completions.stream(**CHAT, **TOOLS["openai_chat"]) as events:
            for _ in events:
                pass
            message = events.get_final_completion().choices[0].message
        assert (message.content or "").strip() == "Let me see."
        assert [call.function.arguments for call in message.tool_calls or ()] == ['{"a": 2}']
        serve(server, "openai_responses", separates)
        with client.responses.stream(model=MODEL, input="2+2?", **TOOLS["openai_responses"]) as responses:
            response = responses.get_final_response()
        assert [item.type for item in response.output] == ["reasoning", "message", "function_call"]
        assert response.output_text.strip() == "Let me see."
    with asides.anthropic.wrap(anthropic_client(server.url)) as other:
        serve(server, "anthropic", separates)
        with other.messages.stream(**CHAT, max_tokens=99, **TOOLS["anthropic"]) as messages:
            final = messages.get_final_message()
        assert [block.type for block in final.content] == ["thinking", "text", "tool_use"]


def test_raw_responses_are_untouched(server: Upstream) -> None:
    for text in ("<think>a</think>b", "c"):
        server.forget()
        server.say(text)
        with openai_client(server.url) as plain, asides.openai.wrap(plain) as client:
            bodies = [each.chat.completions.with_raw_response.create(**CHAT).text for each in (plain, client)]
            assert json.loads(bodies[0])["choices"] == json.loads(bodies[1])["choices"]
            with client.chat.completions.with_streaming_response.create(**CHAT) as response:
                assert text in response.read().decode().replace("\\u003c", "<").replace("\\u003e", ">")
            assert client.chat.completions.create(**CHAT).choices[0].message.content == text[-1]


def test_everything_else_is_the_sdks_own(server: Upstream) -> None:
    """Other routes, errors, retries, copies; several choices; and the client that was given is as it was."""
    server.forget()
    with openai_client(server.url) as plain:
        client = asides.openai.wrap(plain)
        assert client.models.list().data[0].id == MODEL
        server.say(("<think>a</think>One.", "<think>b</think>Two."))
        choices = client.with_options(timeout=9).chat.completions.create(**CHAT, n=2).choices
        assert [choice.message.content for choice in choices] == ["One.", "Two."]
        chunks = list(client.chat.completions.create(**CHAT, n=2, stream=True, **USAGE))
        texts = {0: "", 1: ""}
        for choice in (choice for chunk in chunks for choice in chunk.choices):
            texts[choice.index] += choice.delta.content or ""
        assert texts == {0: "One.", 1: "Two."}
        assert chunks[-1].usage is not None
        assert plain.chat.completions.create(**CHAT).choices[0].message.content == "<think>a</think>One."
        refusal = scripted.json_reply({"error": {"message": "no such model"}}, status=404)
        server.send(refusal, "/v1/chat/completions")
        with pytest.raises(openai.NotFoundError, match="no such model"):
            client.chat.completions.create(**CHAT)
        server.send(scripted.json_reply({"odd": 1}), "/v1/chat/completions")
        assert client.chat.completions.create(**CHAT).model_extra == {"odd": 1}


FRAME = b'data: {"id": "1", "model": "%b", "choices": [{"index": 0, "delta": {"content": "Four. <thi"}}]}\n\n'


@pytest.mark.parametrize("end", [scripted.Reset(), scripted.Close(), None], ids=["reset", "closed", "no end"])
def test_a_stream_that_breaks_ends_as_with_the_bare_sdk(server: Upstream, end: scripted.Step | None) -> None:
    """With the same error or none; what was held back comes before it."""
    steps = [FRAME % MODEL.encode(), *([end] if end is not None else [])]
    server.send(scripted.Reply(steps), "/v1/chat/completions")
    with openai_client(server.url) as plain:
        found = [_read_all(client) for client in (plain, asides.openai.wrap(plain))]
    assert found[0] == found[1]
    assert found[0] == ("Four. <thi", None) or end is not None


def _read_all(client: openai.OpenAI) -> tuple[str, type[Exception] | None]:
    """The text of a stream, and how it failed."""
    text = ""
    try:
        for chunk in client.chat.completions.create(**CHAT, stream=True):
            text += chunk.choices[0].delta.content or ""
    except Exception as error:
        return text, type(error)
    return text, None


def test_a_stream_that_is_left_is_closed(server: Upstream) -> None:
    async def leave() -> None:
        plain = async_openai_client(server.url)
        async with (
            asides.openai.wrap(plain) as client,
            await client.chat.completions.create(**CHAT, stream=True) as found,
        ):
            async for chunk in found:
                assert chunk.choices
                break

    server.forget()
    frame = FRAME % MODEL.encode()
    server.send(scripted.Reply([frame.replace(b"<thi", b"It"), scripted.Hang()]), "/v1/chat/completions")
    asyncio.run(leave())
    assert scripted.left(server)


def test_ollamas_generate(server: Upstream) -> None:
    with upstream("ollama", models=(MODEL,)) as other, asides.ollama.wrap(ollama.Client(other.url)) as client:
        other.say("<think>a</think>One.")
        whole = client.generate(model=MODEL, prompt="1")
        assert (whole.thinking, whole.response) == ("a", "One.")
        pieces = list(client.generate(model=MODEL, prompt="1", stream=True))
        assert "".join(piece.thinking or "" for piece in pieces) == "a"
        assert "".join(piece.response for piece in pieces) == "One."


def test_how_it_is_read_may_be_chosen(server: Upstream) -> None:
    """And calls are read only where tools are offered: elsewhere they are text."""
    with openai_client(server.url) as plain:
        serve(server, "openai_chat", False)
        message = asides.openai.wrap(plain, "passthrough").chat.completions.create(**CHAT).choices[0].message
        assert message.content == RAW
        serve(server, "openai_chat", False)
        message = asides.openai.wrap(plain, model=MODEL).chat.completions.create(**CHAT).choices[0].message
        assert "<tool_call>" in (message.content or "")
        assert message.tool_calls is None
        serve(server, "openai_chat", False)
        turn = asides.turn(asides.openai.wrap(plain), CHAT["messages"], model=MODEL, tools=[TOOL])
        assert [call.name for call in turn.calls] == ["add"]


def test_the_reply_to_a_request_that_we_cannot_read_comes_apart_too(server: Upstream) -> None:
    """The server has understood it; a thought that passes because of a field would be a leak."""
    odd: Any = {"model": MODEL, "messages": []}
    with asides.openai.wrap(openai_client(server.url)) as client:
        server.forget()
        server.say("<think>a</think>b")
        with pytest.raises(RequestError):
            openai_chat.read_request(odd)
        message: Any = client.chat.completions.create(**odd).choices[0].message
        assert (message.reasoning_content, message.content) == ("a", "b")
        assert "".join(_text(chunk) for chunk in client.chat.completions.create(**odd, stream=True)) == "b"


def _text(chunk: Any) -> str:
    return chunk.choices[0].delta.content or "" if chunk.choices else ""


def test_what_is_no_client_is_refused() -> None:
    for wrong in (object(), ollama, "http://127.0.0.1"):
        with pytest.raises(asides.UsageError, match="a client of OpenAI's, Anthropic's or Ollama's SDK is wanted"):
            asides.openai.wrap(wrong)


CITED: list[dict[str, Any]] = [
    {"type": "text", "text": "So it is said: "},
    {"type": "text", "text": "grass is green", "citations": [{"type": "char_location", "cited_text": "green"}]},
    {"type": "text", "text": ", and that is all."},
    {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 2}, "caller": {"type": "direct"}},
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_what_only_anthropics_blocks_have_stays(server: Upstream, stream: bool) -> None:
    """Citations stay with the text that they are of, and so do fields of calls."""
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "usage": {}}
    if stream:
        frames: list[dict[str, Any]] = [{"type": "message_start", "message": {**message, "content": []}}]
        for index, block in enumerate(CITED):
            begun = {**block, "text": ""} if "text" in block else {**block, "input": {}}
            deltas: list[dict[str, Any]] = [{"type": "text_delta", "text": block.get("text")}]
            if "citations" in block:
                begun["citations"] = []
                deltas += [{"type": "citations_delta", "citation": each} for each in block["citations"]]
            if "input" in block:
                deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
            frames.append({"type": "content_block_start", "index": index, "content_block": begun})
            frames += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            frames.append({"type": "content_block_stop", "index": index})
        frames.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}})
        frames.append({"type": "message_stop"})
        lines = [f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n".encode() for frame in frames]
        server.send(scripted.Reply(lines, headers=scripted.SSE), "/v1/messages")
    else:
        server.send(scripted.json_reply({**message, "content": CITED, "stop_reason": "tool_use"}), "/v1/messages")
    tools: Any = [{"name": "add", "input_schema": {"type": "object"}}]
    asked: Any = {"model": MODEL, "messages": USER, "max_tokens": 99, "tools": tools}
    with asides.anthropic.wrap(anthropic_client(server.url)) as client:
        if stream:
            with client.messages.stream(**asked) as events:
                found = events.get_final_message()
        else:
            found = client.messages.create(**asked)
    blocks = [block.model_dump(exclude_unset=True, warnings=False) for block in found.content]
    texts = [
        {name: value for name, value in block.items() if name in CITED[0] or name == "citations"} for block in blocks
    ]
    # A space at a text's end is known to be one when the next words come.
    assert [(text["text"].strip(), text.get("citations")) for text in texts[:2]] == [
        (text["text"].strip(), text.get("citations")) for text in CITED[:2]
    ]
    assert "".join(block.get("text", "") for block in blocks) == "".join(block.get("text", "") for block in CITED)
    assert [(block["type"], block.get("text")) for block in blocks[2:]] == [
        ("text", ", and that is all."),
        ("tool_use", None),
    ]
    assert (blocks[3]["input"], blocks[3]["caller"]) == ({"a": 2}, {"type": "direct"})


def test_blocks_between_texts_stay_there(server: Upstream) -> None:
    """In a whole reply too: what a tool of the server has done stands between the words before and after it."""
    between = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    content = [{"type": "text", "text": "Searching."}, between, {"type": "text", "text": "Found."}]
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "usage": {}, "content": content}
    server.send(scripted.json_reply({**message, "stop_reason": "end_turn"}), "/v1/messages")
    with asides.anthropic.wrap(anthropic_client(server.url)) as client:
        found = client.messages.create(model=MODEL, messages=USER, max_tokens=99)
    assert [getattr(block, "text", block.type) for block in found.content] == [
        "Searching.", "server_tool_use", "Found.",
    ]  # fmt: skip
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    texts = [
        {"type": "message", "id": f"msg_{text}", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": text, "annotations": []}]}
        for text in ("Searching.", "Found.")
    ]  # fmt: skip
    response = {"id": "r", "object": "response", "created_at": 1, "model": MODEL, "status": "completed"}
    server.send(scripted.json_reply({**response, "output": [texts[0], searched, texts[1]]}), "/v1/responses")
    with asides.openai.wrap(openai_client(server.url)) as other:
        answered = other.responses.create(model=MODEL, input="?")
    assert [item.type for item in answered.output] == ["message", "web_search_call", "message"]
    assert answered.output_text == "Searching.Found."
