"""Six ways in which clients hold a conversation with a gateway, by the real SDKs: what each keeps of a reply.

Each asks, answers two calls at once, and asks twice more (`providers` has the script), and yields the answers as they
come, so that a test can do something in between.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai

from tests.gateway.clients import FUNCTION
from tests.waiting import PATIENCE

QUESTIONS = ("2+2?", "Sure?", "Bye?")
CLIENT_KEY = "sk-client"
Body = dict[str, Any]
Way = Callable[..., Iterator[str]]


def _openai(url: str) -> openai.OpenAI:
    http = openai.DefaultHttpxClient(verify=False)
    return openai.OpenAI(base_url=f"{url}/v1", api_key=CLIENT_KEY, max_retries=0, timeout=PATIENCE, http_client=http)


def _anthropic(url: str) -> anthropic.Anthropic:
    http = anthropic.DefaultHttpxClient(verify=False)
    return anthropic.Anthropic(base_url=url, api_key=CLIENT_KEY, max_retries=0, timeout=PATIENCE, http_client=http)


def _found(arguments: Any) -> str:
    return f"found {json.dumps(arguments, sort_keys=True)}"


# Chat completions.


def _message(found: Any, stream: bool) -> Body:
    """The message of a reply with every field that came."""
    if not stream:
        message: Body = found.choices[0].message.model_dump(exclude_unset=True)
        return message
    message = {"role": "assistant", "content": ""}
    calls: dict[int, Body] = {}
    for chunk in found:
        for choice in chunk.choices:
            for name, value in choice.delta.model_dump(exclude_unset=True).items():
                if name == "tool_calls":
                    for call in value:
                        known = calls.setdefault(call.pop("index"), {"function": {"name": "", "arguments": ""}})
                        function = call.pop("function")
                        known["function"]["name"] += function.get("name") or ""
                        known["function"]["arguments"] += function.get("arguments") or ""
                        known.update(call)
                elif name == "reasoning_details":
                    message.setdefault(name, []).extend(value)
                elif name != "role" and value is not None:
                    message[name] = message.get(name, "") + value
    return message | ({"tool_calls": [calls[index] for index in sorted(calls)]} if calls else {})


def _chat(url: Callable[[], str], model: str, stream: bool, keeps: bool) -> Iterator[str]:
    messages: list[Any] = [{"role": "system", "content": "Be brief."}]
    tools: list[Any] = [{"type": "function", "function": FUNCTION}]
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        while messages[-1]["role"] != "assistant":
            with _openai(url()) as sdk:
                reply = sdk.chat.completions.create(model=model, messages=messages, tools=tools, stream=stream)
                message = _message(reply, stream)
            calls = message.get("tool_calls") or []
            sent = message
            if not keeps:
                plain = [{name: call[name] for name in ("id", "type", "function")} for call in calls]
                sent = {"role": "assistant", "content": message["content"], **({"tool_calls": plain} if calls else {})}
            messages.append(sent)
            for call in calls:
                result = _found(json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            yield str(message["content"])


def chat_keeps(url: Callable[[], str], model: str, stream: bool) -> Iterator[str]:
    """Sends messages back with every field that they had."""
    return _chat(url, model, stream, True)


def chat_drops(url: Callable[[], str], model: str, stream: bool) -> Iterator[str]:
    """Sends back text and calls alone."""
    return _chat(url, model, stream, False)


# Messages.


def _messages(url: Callable[[], str], model: str, stream: bool, keeps: bool) -> Iterator[str]:
    messages: list[Any] = []
    tool: Any = {"name": "find", "description": "find something", "input_schema": FUNCTION["parameters"]}
    asked: Body = {"model": model, "max_tokens": 2048, "system": "Be brief.", "tools": [tool]}
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        while messages[-1]["role"] != "assistant":
            reply: anthropic.types.Message
            with _anthropic(url()) as sdk:
                if stream:
                    with sdk.messages.stream(messages=messages, **asked) as events:
                        reply = events.get_final_message()
                else:
                    reply = sdk.messages.create(messages=messages, **asked)
            blocks = [block.model_dump(exclude_unset=True) for block in reply.content]
            fields = {"text": ("type", "text"), "tool_use": ("type", "id", "name", "input")}
            blocks = [
                {name: block[name] for name in fields.get(block["type"], tuple(block)) if name in block}
                for block in blocks
                if keeps or block["type"] in fields
            ]
            messages.append({"role": "assistant", "content": blocks})
            results = [
                {"type": "tool_result", "tool_use_id": block["id"], "content": _found(block["input"])}
                for block in blocks
                if block["type"] == "tool_use"
            ]
            if results:
                messages.append({"role": "user", "content": results})
            yield "".join(block.text for block in reply.content if block.type == "text")


def messages_keep(url: Callable[[], str], model: str, stream: bool) -> Iterator[str]:
    """Sends blocks back as they came."""
    return _messages(url, model, stream, True)


def messages_drop(url: Callable[[], str], model: str, stream: bool) -> Iterator[str]:
    """Sends back text and calls alone."""
    return _messages(url, model, stream, False)


# Responses.


def _response(sdk: openai.OpenAI, stream: bool, asked: Body) -> Any:
    if not stream:
        return sdk.responses.create(**asked)
    events: list[Any] = list(sdk.responses.create(stream=True, **asked))
    return events[-1].response


def _responses(url: Callable[[], str], model: str, stream: bool, by_id: bool) -> Iterator[str]:
    tools: list[Any] = [{"type": "function", "strict": False, **FUNCTION}]
    asked: Body = {"model": model, "instructions": "Be brief.", "tools": tools}
    asked |= {} if by_id else {"store": False, "include": ["reasoning.encrypted_content"]}
    items: list[Any] = []
    for question in QUESTIONS:
        items.append({"role": "user", "content": question})
        open_calls = True
        while open_calls:
            with _openai(url()) as sdk:
                reply = _response(sdk, stream, {**asked, "input": items})
            output = [item.model_dump(exclude_unset=True) for item in reply.output]
            results = [
                {
                    "type": "function_call_output",
                    "call_id": item["call_id"],
                    "output": _found(json.loads(item["arguments"])),
                }
                for item in output
                if item["type"] == "function_call"
            ]
            if by_id:
                asked["previous_response_id"] = reply.id
                items = results
            else:
                items = [*items, *output, *results]
            open_calls = bool(results)
            yield reply.output_text


def responses_by_id(url: Callable[[], str], model: str, stream: bool) -> Iterator[str]:
    """Goes on from the reply before by its id."""
    return _responses(url, model, stream, True)


def responses_items(url: Callable[[], str], model: str, stream: bool) -> Iterator[str]:
    """Sends every item back and lets nothing be stored, as Codex does."""
    return _responses(url, model, stream, False)


WAYS: tuple[Way, ...] = (chat_keeps, chat_drops, messages_keep, messages_drop, responses_by_id, responses_items)
