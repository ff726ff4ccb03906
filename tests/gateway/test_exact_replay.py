"""What goes back to a model is what it wrote, to the byte, so that a server's prefix cache holds it.

Checked as a server would find it: the second prompt, rendered by the model's template from what reached the upstream,
begins with the first prompt and the model's own output.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import jinja2.sandbox
import pytest

from tests.gateway.clients import get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Upstream, json_reply, upstream

TEMPLATE = (
    "{%% for message in messages %%}<|im_start|>{{ message.role }}\n"
    "{%% if message.role == 'assistant' %%}"
    "%s{{ message.content or '' }}"
    "{%% for call in message.tool_calls or [] %%}<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments }}}'
    "\n</tool_call>{%% endfor %%}"
    "{%% else %%}{{ message.content }}{%% endif %%}<|im_end|>\n{%% endfor %%}"
    "{%% if add_generation_prompt %%}<|im_start|>assistant\n%s{%% endif %%}"
)
"""A template in ChatML, by how it writes a thought and what it puts before the answer."""
IF = "{% if message.reasoning_content %}"
STYLES = {
    # Qwen's way: newlines around the thought, whatever stood there.
    "stripped": (IF + "<think>\n{{ message.reasoning_content.strip('\\n') }}\n</think>\n\n{% endif %}", ""),
    # MiniMax's: newlines around it as it is.
    "framed": (IF + "<think>\n{{ message.reasoning_content }}\n</think>\n\n{% endif %}", ""),
    # DeepSeek's and Kimi's: nothing around it.
    "bare": (IF + "<think>{{ message.reasoning_content }}</think>{% endif %}", ""),
    # The prompt opens the thought, as for Qwen3.5.
    "opened": (IF + "<think>\n{{ message.reasoning_content }}\n</think>\n\n{% endif %}", "<think>\n"),
    # The same, and nothing behind the opener.
    "opened bare": (IF + "<think>{{ message.reasoning_content }}</think>{% endif %}", "<think>"),
}
CALL = '<tool_call>\n{"name": "find", "arguments": {"query":  "weather",\n "limit": 3}}\n</tool_call>'
"""With whitespace of its own, as models write it."""
OUTPUTS = {
    "stripped": ("<think>\nI look it up.\n</think>\n\n", "<think>\n  I look \n\n it up.  \n</think>\n\n"),
    "framed": ("<think>\nI look it up.\n</think>\n\n", "<think>\n\n I look it up.\n\n\n</think>\n\n"),
    "bare": ("<think>I look it up.</think>", "<think>\n I look it up.\n\n</think>", "<think> I look it up.</think>"),
    "opened": ("I look it up.\n</think>\n\n", "  I look it up.  \n\n</think>\n\n", "\nI look it up.\n</think>\n\n"),
    "opened bare": ("I look it up.</think>", " I look it up. </think>", "\nI look it up.\n</think>"),
}
FUNCTION = {"name": "find", "parameters": {"type": "object", "properties": {"query": {}, "limit": {}}}}
CASES = [(style, output) for style, outputs in OUTPUTS.items() for output in outputs]


class Servers(NamedTuple):
    """A gateway before one upstream for each template."""

    gateway: Gateway
    upstreams: dict[str, Upstream]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One for all tests of this file."""
    with ExitStack() as stack:
        found: dict[str, Upstream] = {}
        for style, parts in STYLES.items():
            found[style] = stack.enter_context(upstream(models=[style], owner="llamacpp"))
            found[style].send(json_reply({"chat_template": TEMPLATE % parts}), "/props")
        config = {"upstreams": [{"url": each.url, "name": style, "models": [style]} for style, each in found.items()]}
        yield Servers(stack.enter_context(gateway(config)), found)


def rendered(style: str, body: dict[str, Any]) -> str:
    """The prompt that a server makes of a request."""
    template = jinja2.sandbox.ImmutableSandboxedEnvironment().from_string(TEMPLATE % STYLES[style])
    return template.render(messages=body["messages"], add_generation_prompt=True)


def chat(url: str, model: str, thinking: bool) -> None:
    """Two turns of a chat client that sends thinking back, or drops it."""
    body: dict[str, Any] = {"model": model, "tools": [{"type": "function", "function": FUNCTION}]}
    body["messages"] = [{"role": "user", "content": "The weather?"}]
    message = post(url, "/v1/chat/completions", body).json()["choices"][0]["message"]
    assert message["reasoning_content"]
    (call,) = message["tool_calls"]
    kept = ("role", "content", "tool_calls", *(("reasoning_content",) if thinking else ()))
    result = {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}
    body["messages"] += [{name: message[name] for name in kept}, result]
    assert post(url, "/v1/chat/completions", body).status_code == 200


def messages(url: str, model: str, thinking: bool) -> None:
    """The same of Anthropic's, whose clients write arguments anew."""
    tool = {"name": "find", "input_schema": FUNCTION["parameters"]}
    body: dict[str, Any] = {"model": model, "max_tokens": 99, "tools": [tool]}
    body["messages"] = [{"role": "user", "content": "The weather?"}]
    content = post(url, "/v1/messages", body).json()["content"]
    assert [block["type"] for block in content] == ["thinking", "tool_use"]
    result = {"type": "tool_result", "tool_use_id": content[1]["id"], "content": "sunny"}
    turn = {"role": "assistant", "content": content if thinking else content[1:]}
    body["messages"] += [turn, {"role": "user", "content": [result]}]
    assert post(url, "/v1/messages", body).status_code == 200


def ollama(url: str, model: str, thinking: bool) -> None:
    """The same of Ollama's."""
    body: dict[str, Any] = {"model": model, "stream": False, "tools": [{"type": "function", "function": FUNCTION}]}
    body["messages"] = [{"role": "user", "content": "The weather?"}]
    message = post(url, "/api/chat", body).json()["message"]
    if not thinking:
        del message["thinking"]
    body["messages"] += [message, {"role": "tool", "tool_name": "find", "content": "sunny"}]
    assert post(url, "/api/chat", body).status_code == 200


CLIENTS = {"chat": chat, "messages": messages, "ollama": ollama}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("thinking", [False, True], ids=["dropped", "sent back"])
@pytest.mark.parametrize(("style", "output"), CASES)
def test_the_second_prompt_begins_with_the_first_and_its_reply(
    servers: Servers, style: str, output: str, thinking: bool, client: str
) -> None:
    """Whitespace of the thought and of the arguments included, whoever asks and whatever it sends back."""
    server = servers.upstreams[style]
    server.asked.clear()
    server.by_message.clear()
    server.say(output + CALL)
    CLIENTS[client](servers.gateway.url, style, thinking)
    first, second = (rendered(style, asked.body) for asked in server.questions)
    assert second.startswith(first + output + CALL + "<|im_end|>")


def test_a_thought_that_the_client_has_changed_is_its_own(servers: Servers) -> None:
    """What a client sends is replaced only where it is the same but for whitespace, or equal arguments."""
    server = servers.upstreams["bare"]
    server.say("<think> I look it up. </think>" + CALL)
    body: dict[str, Any] = {"model": "bare", "tools": [{"type": "function", "function": FUNCTION}]}
    body["messages"] = [{"role": "user", "content": "The weather, changed?"}]
    message = post(servers.gateway.url, "/v1/chat/completions", body).json()["choices"][0]["message"]
    (call,) = message["tool_calls"]
    call["function"]["arguments"] = json.dumps({"query": "rain"})
    message["reasoning_content"] = "I look up something else."
    result = {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}
    body["messages"] += [message, result]
    post(servers.gateway.url, "/v1/chat/completions", body)
    sent = server.question().body["messages"][1]
    assert sent["reasoning_content"] == "I look up something else."
    assert sent["tool_calls"][0]["function"]["arguments"] == '{"query": "rain"}'


def test_it_is_counted(servers: Servers) -> None:
    """Thoughts put back for clients that drop them, and turns that went back as they were written for others."""

    def figures() -> tuple[float, float]:
        found = dict(
            line.split(" ") for line in get(servers.gateway.url, "/metrics").text.splitlines() if line[:1] != "#"
        )
        return float(found["asides_replay_cache_hits_total"]), float(found["asides_replay_cache_exact_total"])

    servers.upstreams["bare"].say("<think> I look it up. </think>" + CALL)
    before = figures()
    chat(servers.gateway.url, "bare", thinking=False)
    assert figures() == (before[0] + 1, before[1])
    chat(servers.gateway.url, "bare", thinking=True)
    assert figures() == (before[0] + 1, before[1] + 1)
