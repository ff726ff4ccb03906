"""What goes back to a server, read by llama.cpp's own server (`make test-model`): it shows the prompt that it makes of
a chat, and counts the tokens of the prompts that it makes of Messages and Responses, sent by the real SDKs."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

import asides
from tests.detect.templates import ECHO
from tests.dialects.sent_back import NAMELESS, OUTPUTS, RESULT, USER, sent_back, sent_turn
from tests.model import llama_server

EACH = pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
ONE_TEXT = {name: output for name, output in OUTPUTS.items() if name != "a second thought"}
"""Those in which no thought stands between two texts: APIs that have them in order join them in their own way."""
EACH_OF_ONE_TEXT = pytest.mark.parametrize("output", ONE_TEXT.values(), ids=ONE_TEXT)
CALL = re.compile(r"<tool_call>\n(.*?)\n</tool_call>", re.DOTALL)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose template writes the thoughts that it gets."""
    folder = tmp_path_factory.mktemp("llama")
    with llama_server.serving(llama_server.find_weights(), folder, ECHO) as address:
        yield address


def post(address: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(address + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=llama_server.PATIENCE) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def prompt_of(address: str, messages: list[dict[str, Any]]) -> str:
    prompt: str = post(address, "/apply-template", {"messages": messages})["prompt"]
    return prompt


def count(address: str, messages: list[dict[str, Any]]) -> int:
    """The tokens of the prompt that a chat becomes."""
    prompt = prompt_of(address, messages)
    return len(post(address, "/tokenize", {"content": prompt, "parse_special": True})["tokens"])


@pytest.mark.parametrize("thinking", ["auto", "reasoning_content", "reasoning", "drop"])
@EACH
def test_it_reads_chat_completions(server: str, output: str, thinking: str) -> None:
    """The turn in the prompt is the message: its thought in the template's own place, or nowhere."""
    sent = sent_back(output, "chat", thinking)
    _, asked, said, *after = prompt_of(server, sent.written).split("<|im_start|>")
    assert asked == f"user\n{USER['content']}<|im_end|>\n"
    # It has one name for the field, so that a thought in the other is not read.
    goes = sent.thought and thinking != "reasoning"
    thought = f"<think>\n{sent.message.thinking}\n</think>\n\n" if goes else ""
    assert said.startswith(f"assistant\n{thought}{sent.message.text}")
    calls = [json.loads(call) for call in CALL.findall(said)]
    assert calls == [{"name": call.name, "arguments": json.loads(call.arguments)} for call in sent.calls]
    assert [turn for turn in after if turn.startswith("tool")] == [f"tool\n{RESULT}<|im_end|>\n"] * len(sent.calls)


@pytest.mark.parametrize("thinking", ["thinking", "drop"])
@EACH_OF_ONE_TEXT
def test_it_reads_messages(server: str, output: str, thinking: str) -> None:
    """The prompt has as many tokens as that of the same chat."""
    sent: Any = sent_back(output, "messages", thinking)
    with anthropic.Anthropic(base_url=server, api_key="none", max_retries=0) as sdk:
        found = sdk.messages.count_tokens(model="m", messages=sent.written).input_tokens
    chat = sent_back(output, "chat", "drop" if thinking == "drop" else "reasoning_content")
    assert found == count(server, chat.written)


@pytest.mark.parametrize("thinking", ["reasoning", "drop"])
@EACH_OF_ONE_TEXT
def test_it_reads_responses(server: str, output: str, thinking: str) -> None:
    sent: Any = sent_back(output, "responses", thinking)
    with openai.OpenAI(base_url=f"{server}/v1", api_key="none", max_retries=0) as sdk:
        reply = sdk.responses.create(model="m", input=sent.written, max_output_tokens=1)
    chat = sent_back(output, "chat", "drop" if thinking == "drop" else "reasoning_content")
    assert reply.usage is not None
    assert reply.usage.input_tokens == count(server, chat.written)


@pytest.mark.parametrize("output", [*OUTPUTS.values(), NAMELESS], ids=[*OUTPUTS, "a call without a name"])
def test_it_reads_turns(server: str, output: str) -> None:
    """As `asides.turn` writes them: each call that has a name is followed by its answer, also a broken one."""
    message, written = sent_turn(output, "chat")
    turns = prompt_of(server, written).split("<|im_start|>")[2:]
    named = [call for call in message.tool_calls if call.name]
    found = [json.loads(call).get("name") for call in CALL.findall(turns[0])]
    assert [name for name in found if name] == [call.name for call in named]
    results = [turn for turn in turns if turn.startswith("tool\n")]
    for call, result in zip(named, results, strict=True):
        assert (call.raw if call.error else RESULT) in result
    sent: Any = sent_turn(output, "messages")[1]
    with anthropic.Anthropic(base_url=server, api_key="none", max_retries=0) as sdk:
        assert sdk.messages.count_tokens(model="m", messages=sent).input_tokens


def test_why_to_dict_is_not_sent(server: str) -> None:
    message = asides.parse(OUTPUTS["an answer"], "qwen3").to_dict()
    with pytest.raises(urllib.error.HTTPError, match="400"):
        prompt_of(server, [USER, message, USER])
