"""The real SDKs as clients, each asked for the same: what it was shown as thinking, as answer and as calls.

One function for each way to ask, so that a test can take all of them in turn. Knows no server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import anthropic
import httpx
import ollama
import openai

from tests.waiting import PATIENCE

Dialect = Literal["chat", "completions", "responses", "messages", "ollama_chat", "ollama_generate"]
DIALECTS: tuple[Dialect, ...] = ("chat", "completions", "responses", "messages", "ollama_chat", "ollama_generate")
WITH_TOOLS: tuple[Dialect, ...] = ("chat", "responses", "messages", "ollama_chat")
"""Those whose requests can name tools."""
FUNCTION = {
    "name": "find",
    "description": "find something",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}},
}
KEY = "sk-client"
Functions = bool | Sequence[Mapping[str, Any]]
"""Whether a request names tools; or which, as OpenAI's functions."""


@dataclass(frozen=True)
class Seen:
    """What a client was shown."""

    thinking: str
    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    reason: str = ""
    """Why it ended, in the dialect's own word."""
    raw: Any = None
    """What the SDK gave: an object, or the list of what came in a stream."""


def ask(
    dialect: Dialect,
    url: str,
    *,
    stream: bool = False,
    asynchronous: bool = False,
    model: str = "m",
    question: str = "2+2?",
    tools: Functions = False,
    key: str = KEY,
    headers: Mapping[str, str] | None = None,
    **fields: Any,
) -> Seen:
    """Ask with the dialect's own SDK."""
    request = {"model": model, **BODIES[dialect](question, tools), **fields}
    if dialect.startswith("ollama"):
        return _ask_ollama(dialect, url, stream, asynchronous, request, dict(headers or {}), key)
    if dialect == "messages":
        return _ask_anthropic(url, stream, asynchronous, request, dict(headers or {}), key)
    return _ask_openai(dialect, url, stream, asynchronous, request, dict(headers or {}), key)


def functions(tools: Functions) -> list[Mapping[str, Any]]:
    """The functions that a request names."""
    return [FUNCTION] * tools if isinstance(tools, bool) else list(tools)


def _chat_body(question: str, tools: Functions) -> dict[str, Any]:
    body: dict[str, Any] = {"messages": [{"role": "user", "content": question}]}
    named = [{"type": "function", "function": function} for function in functions(tools)]
    return {**body, "tools": named} if named else body


def _responses_body(question: str, tools: Functions) -> dict[str, Any]:
    named = [{"type": "function", "strict": False, **function} for function in functions(tools)]
    return {"input": question, "tools": named} if named else {"input": question}


def _messages_body(question: str, tools: Functions) -> dict[str, Any]:
    body: dict[str, Any] = {"messages": [{"role": "user", "content": question}], "max_tokens": 999}
    named = [
        {"name": each["name"], "description": each.get("description", ""), "input_schema": each["parameters"]}
        for each in functions(tools)
    ]
    return {**body, "tools": named} if named else body


def _prompt_body(question: str, tools: Functions) -> dict[str, Any]:
    return {"prompt": question}


BODIES: dict[str, Callable[[str, Functions], dict[str, Any]]] = {
    "chat": _chat_body,
    "completions": _prompt_body,
    "responses": _responses_body,
    "messages": _messages_body,
    "ollama_chat": _chat_body,
    "ollama_generate": _prompt_body,
}


# OpenAI's SDK.


def _ask_openai(
    dialect: Dialect, url: str, stream: bool, asynchronous: bool, request: dict[str, Any], headers: Any, key: str
) -> Seen:
    settings: dict[str, Any] = {
        "base_url": f"{url}/v1",
        "api_key": key,
        "max_retries": 0,
        "default_headers": headers,
        "timeout": PATIENCE,
    }
    # Certificates take 30 ms to load, and nobody here needs one.
    if asynchronous:

        async def run() -> Any:
            http = openai.DefaultAsyncHttpxClient(verify=False)
            async with openai.AsyncOpenAI(http_client=http, **settings) as sdk:
                reply = await _openai_method(sdk, dialect)(stream=stream, **request)
                return [chunk async for chunk in reply] if stream else reply

        found = asyncio.run(run())
    else:
        with openai.OpenAI(http_client=openai.DefaultHttpxClient(verify=False), **settings) as sdk:
            reply = _openai_method(sdk, dialect)(stream=stream, **request)
            found = list(reply) if stream else reply
    readers = {"chat": read_chat, "completions": read_completions, "responses": read_responses}
    return readers[dialect](found)


def _openai_method(sdk: Any, dialect: Dialect) -> Callable[..., Any]:
    places = {"chat": sdk.chat.completions, "completions": sdk.completions, "responses": sdk.responses}
    method: Callable[..., Any] = places[dialect].create
    return method


def read_chat(found: Any, choice: int = 0) -> Seen:
    """A chat completion, or the chunks of one."""
    if not isinstance(found, list):
        message = found.choices[choice].message
        calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]
        thinking = getattr(message, "reasoning_content", None) or ""
        return Seen(thinking, message.content or "", tuple(calls), found.choices[choice].finish_reason, found)
    thinking, text, reason = "", "", ""
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    for chunk in found:
        for each in chunk.choices:
            if each.index != choice:
                continue
            thinking += getattr(each.delta, "reasoning_content", None) or ""
            text += each.delta.content or ""
            reason = each.finish_reason or reason
            for call in each.delta.tool_calls or ():
                names[call.index] = names.get(call.index, "") + (call.function.name or "")
                arguments[call.index] = arguments.get(call.index, "") + (call.function.arguments or "")
    return Seen(thinking, text, tuple((names[i], json.loads(arguments[i])) for i in sorted(names)), reason, found)


def read_completions(found: Any) -> Seen:
    """A plain completion, or the chunks of one."""
    choices = [choice for chunk in found for choice in chunk.choices] if isinstance(found, list) else found.choices
    thinking = "".join(getattr(choice, "reasoning_content", None) or "" for choice in choices)
    reason = [choice.finish_reason for choice in choices if choice.finish_reason]
    return Seen(thinking, "".join(choice.text or "" for choice in choices), (), reason[-1] if reason else "", found)


def read_responses(found: Any) -> Seen:
    """A response; of a stream, its deltas, which must say the same as its last event."""
    if not isinstance(found, list):
        return _read_response(found, found)
    whole = _read_response(found[-1].response, found)
    told: dict[str, str] = {}
    for event in found:
        if event.type.endswith(".delta"):
            told[event.type] = told.get(event.type, "") + event.delta
    assert told.get("response.output_text.delta", "") == whole.text
    shown = [
        told[name]
        for name in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")
        if name in told
    ]
    assert all(thinking == whole.thinking.replace("\0", "") for thinking in shown)
    assert bool(shown) == bool(whole.thinking)
    assert [event.sequence_number for event in found] == list(range(len(found)))
    return whole


def _read_response(response: Any, raw: Any) -> Seen:
    thinking, text = "", ""
    calls = []
    for item in response.output:
        if item.type == "reasoning":
            thinking += "".join(part.text for part in item.content or item.summary)
        elif item.type == "message":
            text += "".join(part.text for part in item.content)
        elif item.type == "function_call":
            calls.append((item.name, json.loads(item.arguments)))
    return Seen(thinking, text, tuple(calls), response.status, raw)


# Anthropic's SDK.


def _ask_anthropic(url: str, stream: bool, asynchronous: bool, request: dict[str, Any], headers: Any, key: str) -> Seen:
    settings: dict[str, Any] = {
        "base_url": url,
        "api_key": key,
        "max_retries": 0,
        "default_headers": headers,
        "timeout": PATIENCE,
    }
    if asynchronous:

        async def run() -> Any:
            http = anthropic.DefaultAsyncHttpxClient(verify=False)
            async with anthropic.AsyncAnthropic(http_client=http, **settings) as sdk:
                if not stream:
                    return await sdk.messages.create(**request)
                async with sdk.messages.stream(**request) as events:
                    return await events.get_final_message()

        return read_message(asyncio.run(run()))
    with anthropic.Anthropic(http_client=anthropic.DefaultHttpxClient(verify=False), **settings) as sdk:
        if not stream:
            return read_message(sdk.messages.create(**request))
        with sdk.messages.stream(**request) as events:
            seen = list(events)
            return read_message(events.get_final_message(), seen)


def read_message(message: Any, raw: Any = None) -> Seen:
    """A message of Anthropic's."""
    thinking = "".join(block.thinking for block in message.content if block.type == "thinking")
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = tuple((block.name, block.input) for block in message.content if block.type == "tool_use")
    return Seen(thinking, text, calls, message.stop_reason, raw or message)


# Ollama's SDK.


def _ask_ollama(
    dialect: Dialect, url: str, stream: bool, asynchronous: bool, request: dict[str, Any], headers: Any, key: str
) -> Seen:
    headers = {"Authorization": f"Bearer {key}", **headers} if key else headers
    name = "chat" if dialect == "ollama_chat" else "generate"
    if asynchronous:

        async def run() -> Any:
            sdk = ollama.AsyncClient(url, headers=headers, timeout=PATIENCE, verify=False)
            try:
                reply = await getattr(sdk, name)(stream=stream, **request)
                return [line async for line in reply] if stream else reply
            finally:
                await sdk._client.aclose()

        return read_ollama(asyncio.run(run()))
    client = ollama.Client(url, headers=headers, timeout=PATIENCE, verify=False)
    try:
        reply = getattr(client, name)(stream=stream, **request)
        return read_ollama(list(reply) if stream else reply)
    finally:
        client._client.close()


def read_ollama(found: Any) -> Seen:
    """A reply of Ollama's, or the lines of one."""
    lines: Sequence[Any] = found if isinstance(found, list) else [found]
    thinking, text = "", ""
    calls: list[tuple[str, dict[str, Any]]] = []
    for line in lines:
        message = getattr(line, "message", None)
        thinking += (message.thinking if message is not None else line.thinking) or ""
        text += (message.content if message is not None else line.response) or ""
        made = message.tool_calls if message is not None else getattr(line, "tool_calls", None)
        calls += [(call.function.name, dict(call.function.arguments)) for call in made or ()]
    return Seen(thinking, text, tuple(calls), lines[-1].done_reason if lines[-1].done else "", found)


# Without an SDK.

PATHS: dict[str, str] = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "ollama_chat": "/api/chat",
    "ollama_generate": "/api/generate",
}


def body_of(dialect: Dialect, *, model: str = "m", question: str = "2+2?", **fields: Any) -> dict[str, Any]:
    """A request of the dialect, as JSON; Ollama's with `stream` said, since it streams by default."""
    stream = {"stream": False} if dialect.startswith("ollama") else {}
    return {"model": model, **BODIES[dialect](question, False), **stream, **fields}


def post(url: str, path: str, body: Any, *, headers: Mapping[str, str] | None = None) -> httpx.Response:
    """Post JSON, or bytes as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {"content-type": "application/json", **(headers or {})}
    return httpx.post(url + path, content=content, headers=named, timeout=PATIENCE, verify=False)


def get(url: str, path: str, **headers: str) -> httpx.Response:
    """Get a path."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.get(url + path, headers=named, timeout=PATIENCE, verify=False)


def events(body: bytes | str) -> list[Any]:
    """The JSON of each event of a stream, `[DONE]` as it is."""
    text = body.decode() if isinstance(body, bytes) else body
    found: list[Any] = []
    for line in text.splitlines():
        if line.startswith("data:"):
            data = line[5:].strip()
            found.append(data if data == "[DONE]" else json.loads(data))
    return found


def chat_deltas(found: Iterable[Any], name: str = "content", choice: int = 0) -> str:
    """What the chunks of a chat stream say under a name."""
    return "".join(
        each["delta"].get(name) or ""
        for chunk in found
        if isinstance(chunk, dict)
        for each in chunk.get("choices", ())
        if each["index"] == choice
    )
