"""The gateway with nothing configured: the recordings, asked by the real SDKs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from asides.backends.recorded import Recorded
from asides.backends.recordings import NOTE, VOICES, recordings
from tests.gateway.clients import DIALECTS, Dialect, ask
from tests.gateway.running import gateway

AT_ONCE = {"defaults": {"extra_body": {"pace": 0}}}
THINKERS = [voice.model for voice in VOICES.values() if not voice.call]
QUICK = recordings().recording[0]
WITHOUT_THINKING: dict[Dialect, dict[str, Any]] = {
    "chat": {"reasoning_effort": "none"},
    "responses": {"reasoning": {"effort": "none"}},
    "messages": {"thinking": {"type": "disabled"}},
    "ollama_chat": {"think": False},
}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: dict[Dialect, list[Any]] = {
    "chat": [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}],
    "responses": [{"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}],
    "messages": [{"name": "get_weather", "input_schema": SCHEMA}],
    "ollama_chat": [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}],
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a gateway that replays the recordings without waiting."""
    with gateway(AT_ONCE) as running:
        yield running.url


@pytest.mark.parametrize("model", THINKERS)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_every_client_gets_thought_and_answer_apart(url: str, dialect: Dialect, stream: bool, model: str) -> None:
    """Whatever markers a recorded model writes, each SDK finds the thought in its own field and a clean answer."""
    seen = ask(dialect, url, stream=stream, model=model, question="What is 17 times 23?")
    assert (seen.thinking, seen.text) == (QUICK.thinking, f"{NOTE} {QUICK.answer}")


@pytest.mark.parametrize("model", THINKERS)
@pytest.mark.parametrize("dialect", WITHOUT_THINKING)
def test_thinking_turned_off(url: str, dialect: Dialect, model: str) -> None:
    """Each dialect's own way to turn thinking off reaches the model, and its answer is read as an answer."""
    seen = ask(dialect, url, model=model, question="What is 17 times 23?", **WITHOUT_THINKING[dialect])
    assert (seen.thinking, seen.text) == ("", f"{NOTE} {QUICK.answer}")


@pytest.mark.parametrize("dialect", TOOLS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_call_in_every_dialect(url: str, dialect: Dialect, stream: bool) -> None:
    """The recorded call, which is text between markers, is a call to each client."""
    question = "How is the weather?"
    seen = ask(dialect, url, stream=stream, model="recorded-tools", question=question, tools=TOOLS[dialect])
    assert seen.calls == (("get_weather", {"city": "Lisbon"}),)
    assert seen.thinking == recordings().call.thinking
    assert seen.text == f"{NOTE} {recordings().call.answer}"


def test_a_result_is_answered(url: str) -> None:
    """A whole tool turn with the SDK: question, call, result, answer."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as sdk:
        messages: list[Any] = [{"role": "user", "content": "How is the weather?"}]
        first = sdk.chat.completions.create(model="recorded-tools", messages=messages, tools=TOOLS["chat"])
        call: Any = (first.choices[0].message.tool_calls or [])[0]
        messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "24 degrees"}]
        second = sdk.chat.completions.create(model="recorded-tools", messages=messages, tools=TOOLS["chat"])
    assert second.choices[0].message.content == f"{NOTE} The tool says: 24 degrees"


def test_an_unknown_model_is_told_the_names(url: str) -> None:
    """Whoever asks for another model learns which there are."""
    with pytest.raises(openai.NotFoundError) as refused:
        ask("chat", url, model="gpt-5")
    assert all(model in str(refused.value) for model in Recorded.models)


def test_it_says_what_it_is_when_it_starts() -> None:
    """With nothing configured the gateway says that no model runs, and gives lines to try."""
    with gateway() as running:
        running.close()
        assert "no model is running" in running.log
        for line in ("curl", f"{running.url}/v1/chat/completions", "openai.OpenAI(", "anthropic.Anthropic(", "ollama."):
            assert line in running.log
