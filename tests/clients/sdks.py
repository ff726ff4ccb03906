"""Drivers of the three SDKs: openai (Chat Completions, Responses), anthropic (Messages), ollama."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import anthropic
import ollama
import openai
from pydantic import BaseModel

from tests.clients.driving import CITY, FIND_PARAMETERS, KEY, Shown
from tests.clients.model import MODEL, found, question
from tests.gateway.clients import read_chat, read_message, read_ollama, read_responses

FIND = {"name": "find", "description": "find a city", "parameters": FIND_PARAMETERS}


class City(BaseModel):
    """The structured output."""

    city: str
    people: int


def _user(case: str) -> dict[str, Any]:
    return {"role": "user", "content": question(case)}


class OpenAIChat:
    """`openai`, Chat Completions; the message that holds the calls goes back as the SDK gave it."""

    def __init__(self, url: str) -> None:
        self._client: Any = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)

    def plain(self) -> Iterable[Shown]:
        for stream in (False, True):
            reply = self.ask("plain", stream=stream)
            seen = read_chat(list(reply) if stream else reply)
            yield Shown(seen.thinking, seen.text)

    def calls(self) -> Shown:
        messages: list[Any] = [_user("calls")]
        tools = [{"type": "function", "function": FIND}]
        first = self._client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
        seen = read_chat(first)
        messages.append(first.choices[0].message)
        for call in first.choices[0].message.tool_calls:
            result = found(json.loads(call.function.arguments)["query"])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        last = self._client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
        return Shown(seen.thinking, read_chat(last).text, list(seen.calls))

    def structured(self) -> Shown:
        reply = self._client.chat.completions.parse(model=MODEL, messages=[_user("structured")], response_format=City)
        return Shown(value=reply.choices[0].message.parsed.model_dump())

    def ask(self, case: str, stream: bool = False) -> Any:
        return self._client.chat.completions.create(model=MODEL, messages=[_user(case)], stream=stream)


class OpenAIResponses:
    """`openai`, Responses; the second turn goes on by `previous_response_id`."""

    def __init__(self, url: str) -> None:
        self._client: Any = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)

    def plain(self) -> Iterable[Shown]:
        for stream in (False, True):
            reply = self.ask("plain", stream=stream)
            seen = read_responses(list(reply) if stream else reply)
            yield Shown(seen.thinking, seen.text)

    def calls(self) -> Shown:
        tools = [{"type": "function", "strict": False, **FIND}]
        first = self._client.responses.create(model=MODEL, input=question("calls"), tools=tools)
        seen = read_responses(first)
        results = [
            {
                "type": "function_call_output",
                "call_id": item.call_id,
                "output": found(json.loads(item.arguments)["query"]),
            }
            for item in first.output
            if item.type == "function_call"
        ]
        last = self._client.responses.create(model=MODEL, input=results, tools=tools, previous_response_id=first.id)
        return Shown(seen.thinking, last.output_text, list(seen.calls))

    def structured(self) -> Shown:
        reply = self._client.responses.parse(model=MODEL, input=question("structured"), text_format=City)
        return Shown(value=reply.output_parsed.model_dump())

    def ask(self, case: str, stream: bool = False) -> Any:
        return self._client.responses.create(model=MODEL, input=question(case), stream=stream)


class Anthropic:
    """`anthropic`, Messages; the blocks of the first turn go back as they came."""

    def __init__(self, url: str) -> None:
        self._client: Any = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0)

    def plain(self) -> Iterable[Shown]:
        seen = read_message(self.ask("plain"))
        yield Shown(seen.thinking, seen.text)
        with self._client.messages.stream(model=MODEL, max_tokens=999, messages=[_user("plain")]) as events:
            seen = read_message(events.get_final_message())
        yield Shown(seen.thinking, seen.text)

    def calls(self) -> Shown:
        messages: list[Any] = [_user("calls")]
        tools = [{"name": "find", "description": "find a city", "input_schema": FIND_PARAMETERS}]
        first = self._client.messages.create(model=MODEL, max_tokens=999, messages=messages, tools=tools)
        seen = read_message(first)
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": found(block.input["query"])}
            for block in first.content
            if block.type == "tool_use"
        ]
        # As clients do that send results as they finish.
        messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": results[::-1]}]
        last = self._client.messages.create(model=MODEL, max_tokens=999, messages=messages, tools=tools)
        return Shown(seen.thinking, read_message(last).text, list(seen.calls))

    def structured(self) -> Shown:
        reply = self._client.messages.parse(
            model=MODEL, max_tokens=999, messages=[_user("structured")], output_format=City
        )
        return Shown(value=reply.parsed_output.model_dump())

    def ask(self, case: str) -> Any:
        return self._client.messages.create(model=MODEL, max_tokens=999, messages=[_user(case)])


class Ollama:
    """`ollama`, `/api/chat`; results of calls have no ids there."""

    def __init__(self, url: str) -> None:
        self._client: Any = ollama.Client(url)

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        self._client.close()  # the other two do it by themselves

    def plain(self) -> Iterable[Shown]:
        for stream in (False, True):
            reply = self.ask("plain", stream=stream)
            seen = read_ollama(list(reply) if stream else reply)
            yield Shown(seen.thinking, seen.text)

    def calls(self) -> Shown:
        messages: list[Any] = [_user("calls")]
        tools = [{"type": "function", "function": FIND}]
        first = self._client.chat(model=MODEL, messages=messages, tools=tools)
        seen = read_ollama(first)
        messages.append(first.message)
        for name, arguments in seen.calls:
            messages.append({"role": "tool", "tool_name": name, "content": found(arguments["query"])})
        last = self._client.chat(model=MODEL, messages=messages, tools=tools)
        return Shown(seen.thinking, read_ollama(last).text, list(seen.calls))

    def structured(self) -> Shown:
        reply = self._client.chat(model=MODEL, messages=[_user("structured")], format=CITY)
        return Shown(value=City.model_validate_json(reply.message.content).model_dump())

    def ask(self, case: str, stream: bool = False) -> Any:
        return self._client.chat(model=MODEL, messages=[_user(case)], stream=stream)
