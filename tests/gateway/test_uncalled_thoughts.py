"""Thoughts of turns without calls: put back where the model or its server wants them, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from asides._config.schema import ModelSettings
from asides._gateway.model_profile import make_profile
from asides.dialects import openai_chat
from asides.dialects._request import WriteOptions
from tests.gateway.clients import PATHS, Dialect, ask, post
from tests.gateway.servers import Servers, serving
from tests.gateway.upstream import Asked, Reply, json_reply

DEEPSEEK = "deepseek-v4-flash"
TOOLS: Any = [{"name": "find", "parameters": {"type": "object"}}]


def strict(asked: Asked) -> Reply:
    """DeepSeek V4's own rule: with tools every message of the assistant has a thought, be it an empty one."""
    body = asked.body
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    if body.get("tools") and any("reasoning_content" not in message for message in said):
        message = "The `reasoning_content` in the thinking mode must be passed back to the API."
        return json_reply({"error": {"message": message, "type": "invalid_request_error"}}, 400)
    number = sum(message["role"] == "user" for message in body["messages"])
    text = {"role": "assistant", "content": f"Answer {number}.", "reasoning_content": f"Thought {number}."}
    choice = {"index": 0, "message": text, "finish_reason": "stop"}
    if not body.get("stream"):
        return json_reply({"id": "1", "model": body["model"], "created": 1, "choices": [choice]})
    frame = {"id": "1", "model": body["model"], "created": 1, "choices": [{**choice, "delta": text}]}
    return Reply([f"data: {json.dumps(frame)}\n\ndata: [DONE]\n\n".encode()])


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """A gateway before a server that is as strict as DeepSeek's."""
    models: dict[str, Any] = {"alias": {"format": "deepseek_v4"}, "keeping": {"name": "Qwen/Qwen3.6-8B"}}
    models["keeping"]["extra_body"] = {"chat_template_kwargs": {"preserve_thinking": True}}
    models["forgetful"] = {"name": DEEPSEEK, "keep_thinking": "tool_turns"}
    models["mute"] = {"name": DEEPSEEK, "replay": "drop"}
    with serving(models=models) as found:
        yield found


@pytest.fixture(autouse=True)
def _as_strict_as_deepseek(servers: Servers) -> None:
    servers.upstream.send(strict)


def thoughts(servers: Servers) -> list[str | None]:
    """What the server was sent of earlier thoughts; None where a message has no field for one."""
    messages = servers.upstream.question().body["messages"]
    return [message.get("reasoning_content") for message in messages if message["role"] == "assistant"]


def talk(
    servers: Servers, model: str, turns: int, *, greeting: str = "Hi", stream: bool = False, **fields: Any
) -> list[dict[str, Any]]:
    """A conversation of a chat client that keeps no thinking; the messages that it sent last."""
    messages: list[dict[str, Any]] = []
    for number in range(1, turns + 1):
        messages.append({"role": "user", "content": greeting if number == 1 else f"And {number}?"})
        seen = ask("chat", servers.gateway.url, model=model, messages=messages, stream=stream, **fields)
        assert seen.text == f"Answer {number}."
        messages.append({"role": "assistant", "content": f"{seen.text}\n"})
    return messages


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", [DEEPSEEK, "alias", "deepseek-ai/DeepSeek-V4.1-Flash"])
def test_deepseek_with_tools(servers: Servers, model: str, stream: bool) -> None:
    """Three turns without a call: each request has all thoughts before it, and none is refused."""
    talk(servers, model, 3, greeting=f"{model} {stream}", stream=stream, tools=TOOLS)
    assert thoughts(servers) == ["Thought 1.", "Thought 2."]


def test_an_empty_thought_where_none_is_known(servers: Servers) -> None:
    """A conversation that began elsewhere goes on; what a client sends itself stays as it is."""
    messages = [
        {"role": "user", "content": "elsewhere"},
        {"role": "assistant", "content": "Of another server."},
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "Again.", "reasoning_content": "Mine."},
        {"role": "user", "content": "?"},
    ]
    ask("chat", servers.gateway.url, model=DEEPSEEK, messages=messages, tools=TOOLS)
    assert thoughts(servers) == ["", "Mine."]
    for model, kept in (("forgetful", ["", ""]), ("mute", ["", ""])):
        ask("chat", servers.gateway.url, model=model, messages=messages, tools=TOOLS)
        assert thoughts(servers) == kept


def test_without_tools_nothing_is_put_back(servers: Servers) -> None:
    """There DeepSeek wants none."""
    talk(servers, DEEPSEEK, 3, greeting="no tools")
    assert thoughts(servers) == [None, None]


@pytest.mark.parametrize("dialect", ["messages", "ollama_chat", "responses"])
def test_in_every_dialect(servers: Servers, dialect: Dialect) -> None:
    """Whichever API the client uses, as long as it sends the answer back."""
    url = servers.gateway.url
    ask(dialect, url, model=DEEPSEEK, question=f"{dialect}?", tools=True)
    messages = [
        {"role": "user", "content": f"{dialect}?"},
        {"role": "assistant", "content": "Answer 1."},
        {"role": "user", "content": "And?"},
    ]
    fields: Any = {"input" if dialect == "responses" else "messages": messages}
    ask(dialect, url, model=DEEPSEEK, tools=True, **fields)
    assert thoughts(servers) == ["Thought 1."]


@pytest.mark.parametrize(
    ("model", "fields", "kept"),
    [
        ("Qwen/Qwen3.6-27B", {}, False),
        ("Qwen/Qwen3.6-27B", {"chat_template_kwargs": {"preserve_thinking": True}}, True),
        ("Qwen/Qwen3.8-27B", {}, True),
        ("Qwen/Qwen3.8-27B", {"chat_template_kwargs": {"preserve_thinking": False}}, False),
        ("Qwen/Qwen3.5-27B", {"chat_template_kwargs": {"preserve_thinking": True}}, False),
        ("keeping", {}, True),
        ("zai-org/GLM-4.7", {}, False),
        ("zai-org/GLM-4.7", {"chat_template_kwargs": {"clear_thinking": False}}, True),
        ("zai-org/GLM-4.7", {"thinking": {"type": "enabled", "clear_thinking": False}}, True),
        ("zai-org/GLM-4.7", {"thinking": {"type": "enabled", "clear_thinking": True}}, False),
        ("zai-org/GLM-5.3", {}, True),
        ("kimi-k2.6", {"thinking": {"type": "enabled", "keep": "all"}}, True),
        ("kimi-k2.6", {"thinking": {"type": "enabled"}}, False),
    ],
)
def test_by_the_keyword_of_the_family(servers: Servers, model: str, fields: dict[str, Any], kept: bool) -> None:
    """A template, or an API, that shows all thoughts is given them; any other is not."""
    messages: list[dict[str, Any]] = []
    for number in (1, 2):
        messages.append({"role": "user", "content": f"{model} {fields} {number}"})
        reply = post(servers.gateway.url, PATHS["chat"], {"model": model, "messages": messages, **fields})
        assert reply.status_code == 200, reply.text
        messages.append({"role": "assistant", "content": reply.json()["choices"][0]["message"]["content"]})
    assert thoughts(servers) == ["Thought 1." if kept else None]


def test_another_answer_has_another_thought(servers: Servers) -> None:
    """A key covers the answer too: one that the client has changed gets no thought that does not belong to it."""
    messages = talk(servers, DEEPSEEK, 1, greeting="changed", tools=TOOLS)
    messages[-1]["content"] = "Something else."
    messages.append({"role": "user", "content": "?"})
    ask("chat", servers.gateway.url, model=DEEPSEEK, messages=messages, tools=TOOLS)
    assert thoughts(servers) == [""]
    owners: Any = ({"key": "sk-other"}, {"user": "another"})
    for owner in owners:
        messages[-2]["content"] = "Answer 1."
        ask("chat", servers.gateway.url, model=DEEPSEEK, messages=messages, tools=TOOLS, **owner)
        assert thoughts(servers) == [""]


def test_what_the_cards_say() -> None:
    """Nothing of models that want only what was thought before calls."""
    for name in ("deepseek-r1", "deepseek-v3.2", "Qwen/Qwen3-8B", "zai-org/GLM-4.6", "gpt-oss-20b", "unheard-of"):
        assert make_profile(name, ModelSettings()).earlier is None, name
    asked = {"model": "m", "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]}
    request = openai_chat.read_request(asked)
    for field, name in (("reasoning", "reasoning"), ("tags", "reasoning_content")):
        written = openai_chat.write_request(request, WriteOptions(field=field, every_thought=True))
        assert written["messages"][1] == {"role": "assistant", "content": "!", name: ""}
