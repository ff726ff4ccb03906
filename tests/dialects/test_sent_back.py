"""What goes back to a server: each shape is one that the SDK's own types and the dialect's own reader take.

The readers of servers take it too: `real_readers.py` (`make test-readers`) and `tests/model/real_sent_back.py`
(`make test-model`).
"""

from __future__ import annotations

from typing import Any

import ollama
import pytest
from anthropic.types import MessageParam
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter, ValidationError

import asides
from asides import dialects
from asides.dialects._request import CallPiece, TextPiece, ThinkingPiece
from asides.reading import Reading
from tests.dialects.sent_back import take

CALL = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
BROKEN = '<tool_call>{"name": "add", "arguments": {"a": 1</tool_call>'
TEXTS = {
    "thought": "<think>hm</think>\n\nFour.",
    "calls": f"<think>hm</think>One.\n\n<think>so</think>Two.\n{CALL}\n{CALL}",
    "call alone": CALL,
    "broken": f"<think>hm</think>Well.\n{BROKEN}",
    "plain": "Four.",
}
CHAT = TypeAdapter[Any](ChatCompletionMessageParam)
MESSAGES = TypeAdapter[Any](MessageParam)
ITEM = TypeAdapter[Any](ResponseInputItemParam)


def read(text: str) -> asides.Message:
    return asides.parse(text, "qwen3", seed=0)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_sdks_take_it(text: str) -> None:
    message = read(text)
    for thinking in ("auto", "reasoning_content", "reasoning", "drop"):
        take(CHAT, message.to_openai(thinking))
    for blocks in ("drop", "thinking"):
        take(MESSAGES, message.to_anthropic(blocks))
    for items in ("drop", "reasoning"):
        for item in message.to_responses(items):
            take(ITEM, item)
    for field in ("auto", "thinking", "drop"):
        sent = message.to_ollama(field)
        assert ollama.Message.model_validate(sent).model_dump(exclude_none=True, exclude={"tool_calls"}) == {
            name: value for name, value in sent.items() if name != "tool_calls"
        }


def test_what_is_for_storing_the_sdks_do_not_take() -> None:
    stored = read(TEXTS["thought"]).to_dict()
    for types in (CHAT, MESSAGES, TypeAdapter(ollama.Message)):
        with pytest.raises(ValidationError):
            take(types, stored)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_dialects_read_the_same_message_in_it(text: str) -> None:
    """Text and calls are the message's own in every API; thoughts are there where they were to go back."""
    message = read(text)
    calls = [(call.name, call.id) for call in message.tool_calls if call.error is None]
    user = {"role": "user", "content": "2+2?"}
    bodies: list[tuple[str, dict[str, Any], str]] = [
        ("openai_chat", {"messages": [user, message.to_openai("reasoning")]}, message.thinking),
        ("openai_chat", {"messages": [user, message.to_openai("drop")]}, ""),
        ("ollama", {"messages": [user, message.to_ollama("thinking")]}, message.thinking),
        ("anthropic", {"max_tokens": 9, "messages": [user, message.to_anthropic()]}, ""),
        ("anthropic", {"max_tokens": 9, "messages": [user, message.to_anthropic("thinking")]}, message.thinking),
        ("openai_responses", {"input": [user, *message.to_responses()]}, ""),
        ("openai_responses", {"input": [user, *message.to_responses("reasoning")]}, message.thinking),
    ]
    for api, body, thinking in bodies:
        turn = dialects.get(api).read_request({"model": "m", **body}).turns[1]
        assert "\n\n".join(piece.text for piece in turn.pieces if isinstance(piece, ThinkingPiece)) == thinking, api
        assert [(piece.name, piece.id) for piece in turn.pieces if isinstance(piece, CallPiece)] == calls, api
        texts = [piece.text for piece in turn.pieces if isinstance(piece, TextPiece)]
        assert " ".join(texts).split() == message.text.split(), api


def test_no_thought_and_no_marker_is_in_the_text() -> None:
    sent = read(TEXTS["calls"]).to_openai()
    assert sent["content"] == "One.\n\nTwo."
    assert sent["reasoning_content"] == "hm\n\nso"
    assert [call["function"]["arguments"] for call in sent["tool_calls"]] == ['{"a": 1}'] * 2


def test_thoughts_go_back_beside_calls_alone() -> None:
    assert read(TEXTS["thought"]).to_openai() == {"role": "assistant", "content": "Four."}
    assert read(TEXTS["thought"]).to_ollama() == {"role": "assistant", "content": "Four."}
    assert read(TEXTS["calls"]).to_ollama()["thinking"] == "hm\n\nso"


def test_a_call_that_may_not_be_run_does_not_go_back() -> None:
    message = read(TEXTS["broken"])
    assert message.tool_calls[0].error is not None
    assert message.to_openai() == {"role": "assistant", "content": "Well."}


@pytest.mark.parametrize(
    ("model", "wants"),
    [("zai-org/GLM-5.3", True), ("deepseek-ai/DeepSeek-V4", True), ("zai-org/GLM-4.7", False), ("who-knows", False)],
)
def test_a_model_that_wants_all_its_thoughts_gets_them(model: str, wants: bool) -> None:
    message = read(TEXTS["thought"])
    sent = message.to_openai(model=model)
    assert sent == {"role": "assistant", "content": "Four."} | ({"reasoning_content": "hm"} if wants else {})
    assert message.to_openai(reading=Reading.of(model)) == sent
    assert ("thinking" in message.to_ollama(model=model)) is wants


def test_a_thought_in_every_message_where_the_api_wants_one() -> None:
    """DeepSeek refuses a request with tools in which a message of the assistant has none."""
    model, message = "deepseek-ai/DeepSeek-V4", read("Four.")
    assert message.to_openai(model=model) == {"role": "assistant", "content": "Four.", "reasoning_content": ""}
    assert message.to_openai("drop", model=model) == {"role": "assistant", "content": "Four."}


def test_a_way_that_an_api_does_not_have_is_refused() -> None:
    with pytest.raises(asides.UsageError, match=r"^thinking must be one of 'drop', 'thinking', not 'keep'$"):
        read("a").to_anthropic("keep")  # type: ignore[arg-type]  # the mistake
