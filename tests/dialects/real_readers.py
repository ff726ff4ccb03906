"""What goes back to a server, read by vLLM's and SGLang's own readers of requests (`make test-readers`).

Their Python sources are imported from unpacked wheels. A reader ends in the messages that the server hands to its chat
template: the answer is the text and nothing else, the thought is where templates look for it or nowhere, calls have
their arguments as objects, and each result names its call.
"""

from __future__ import annotations

import json
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

import asides
from tests.dialects.sent_back import NAMELESS, OUTPUTS, RESULT, SentBack, sent_back, sent_turn

chat_utils = import_module("vllm.renderers.chat_utils")
VllmChat = import_module("vllm.entrypoints.openai.chat_completion.protocol").ChatCompletionRequest
VllmMessages = import_module("vllm.entrypoints.anthropic.protocol").AnthropicMessagesRequest
VllmServing = import_module("vllm.entrypoints.anthropic.serving").AnthropicServingMessages
VllmResponses = import_module("vllm.entrypoints.openai.responses.protocol").ResponsesRequest
responses = import_module("vllm.entrypoints.openai.responses.utils")
SglangChat = import_module("sglang.srt.entrypoints.openai.protocol").ChatCompletionRequest
SglangOllama = import_module("sglang.srt.entrypoints.ollama.protocol").OllamaChatRequest
process_content = import_module("sglang.srt.parser.jinja_template_utils").process_content_for_template_format

EACH = pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
TEXT_MODEL = SimpleNamespace(multimodal_config=None, is_multimodal_model=False, enable_prompt_embeds=False)
"""What vLLM's reader asks of the configuration of a model, of one that reads text alone."""


def for_template(messages: list[Any]) -> list[dict[str, Any]]:
    """What vLLM's chat template gets of the messages of a request."""
    found: list[dict[str, Any]] = chat_utils.parse_chat_messages(messages, TEXT_MODEL, "string")[0]
    return found


def letters(*texts: str | None) -> str:
    """The texts without whitespace: what stands between two parts is the server's own."""
    return "".join("".join((text or "").split()) for text in texts)


def check(sent: SentBack, read: list[dict[str, Any]]) -> None:
    """The messages between the question and what follows are the message that was sent."""
    calls = [call for message in read for call in message.get("tool_calls") or ()]
    assert [(call["id"], call["function"]["name"]) for call in calls] == [(call.id, call.name) for call in sent.calls]
    for call, wanted in zip(calls, sent.calls, strict=True):
        arguments = call["function"]["arguments"]
        assert (json.loads(arguments) if isinstance(arguments, str) else arguments) == json.loads(wanted.arguments)
    said = [message for message in read if message["role"] == "assistant"]
    assert letters(*(message.get("content") for message in said)) == letters(sent.message.text)
    thought = letters(sent.message.thinking) if sent.thought else ""
    assert letters(*(message.get("reasoning_content") for message in said)) == thought
    results = [message for message in read if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in results] == [call.id for call in sent.calls]
    assert all(message["content"] == RESULT for message in results)


@pytest.mark.parametrize("thinking", ["auto", "reasoning_content", "reasoning", "drop"])
@EACH
def test_vllm_reads_chat_completions(output: str, thinking: str) -> None:
    sent = sent_back(output, "chat", thinking)
    check(sent, for_template(VllmChat(model="m", messages=sent.written).messages))


@pytest.mark.parametrize("thinking", ["thinking", "drop"])
@EACH
def test_vllm_reads_messages(output: str, thinking: str) -> None:
    sent = sent_back(output, "messages", thinking)
    request = VllmMessages(model="m", max_tokens=9, messages=sent.written)
    check(sent, for_template(VllmServing.to_chat_completion_request(request).messages))


@pytest.mark.parametrize("thinking", ["reasoning", "drop"])
@EACH
def test_vllm_reads_responses(output: str, thinking: str) -> None:
    sent = sent_back(output, "responses", thinking)
    request = VllmResponses(model="m", input=sent.written)
    check(sent, for_template(responses.construct_input_messages(request_input=request.input)))


@pytest.mark.parametrize("thinking", ["auto", "reasoning_content", "reasoning", "drop"])
@EACH
def test_sglang_reads_chat_completions(output: str, thinking: str) -> None:
    """It knows one name of the field; `reasoning` is not read."""
    sent = sent_back(output, "chat", thinking)
    sent = sent._replace(thought=sent.thought and thinking != "reasoning")
    check(sent, for_sglang(SglangChat(model="m", messages=sent.written)))


def for_sglang(request: Any) -> list[dict[str, Any]]:
    """What SGLang's chat template gets of the messages of a request."""
    dumped = [message.model_dump() for message in request.messages]
    return [process_content(message, "string", [], [], [], []) for message in dumped]


@EACH
def test_sglang_reads_ollama(output: str) -> None:
    """Of a message it reads the text alone; nothing else may be in it."""
    sent = sent_back(output, "ollama", "auto")
    said = SglangOllama(model="m", messages=sent.written).messages[1]
    assert (said.role, said.content) == ("assistant", sent.message.text)


def check_turn(message: asides.Message, read: list[dict[str, Any]]) -> None:
    """Every call that has a name is there and answered, also a broken one; what had none the model is told of."""
    named = [call for call in message.tool_calls if call.name]
    calls = [call for each in read for call in each.get("tool_calls") or ()]
    assert [(call["id"], call["function"]["name"]) for call in calls] == [(call.id, call.name) for call in named]
    results = [each for each in read if each["role"] == "tool"]
    assert [each["tool_call_id"] for each in results] == [call.id for call in named]
    for call, result in zip(named, results, strict=True):
        assert (call.raw if call.error else RESULT) in result["content"]
    assert ("not run" in read[-1]["content"]) is any(call.error for call in message.tool_calls)
    said = letters(*(each.get("content") for each in read if each["role"] == "assistant"))
    assert said == letters(message.text, *(call.raw for call in message.tool_calls if not call.name))


TURNS = pytest.mark.parametrize("output", [*OUTPUTS.values(), NAMELESS], ids=[*OUTPUTS, "a call without a name"])


@TURNS
def test_vllm_reads_turns(output: str) -> None:
    message, written = sent_turn(output, "chat")
    check_turn(message, for_template(VllmChat(model="m", messages=written).messages))
    message, written = sent_turn(output, "messages")
    request = VllmMessages(model="m", max_tokens=9, messages=written)
    check_turn(message, for_template(VllmServing.to_chat_completion_request(request).messages))


@TURNS
def test_sglang_reads_turns(output: str) -> None:
    message, written = sent_turn(output, "chat")
    check_turn(message, for_sglang(SglangChat(model="m", messages=written)))


def test_why_to_dict_is_not_sent() -> None:
    """vLLM takes the thought for the answer: the leak that `to_openai` is for."""
    message = asides.parse(OUTPUTS["an answer"], "qwen3").to_dict()
    (read,) = for_template(VllmChat(model="m", messages=[message]).messages)
    assert "Two and two." in read["content"]
