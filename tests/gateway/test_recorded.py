"""The gateway with nothing configured: the recordings, asked by the real SDKs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import ollama
import openai
import pytest

from asides._recordings.replies import recordings
from asides._recordings.upstream import Recorded
from tests.gateway.clients import DIALECTS, Dialect, ask
from tests.gateway.running import gateway
from tests.waiting import PATIENCE

AT_ONCE = {"defaults": {"extra_body": {"pace": 0}}}
THINKERS = [model.name for model in recordings().model if not model.call]
QUICK = recordings().recording[0]
WITHOUT_THINKING: dict[Dialect, dict[str, Any]] = {
    "chat": {"reasoning_effort": "none"},
    "responses": {"reasoning": {"effort": "none"}},
    "messages": {"thinking": {"type": "disabled"}},
    "ollama_chat": {"think": False},
}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
RECIPES = (Path(__file__).parents[2] / "docs" / "how-to" / "recipes.md").read_text(encoding="utf-8")
SDK_EXAMPLES = re.findall(r"^```python\n(import (?:openai|anthropic|ollama)\n.*?)^```", RECIPES, re.M | re.S)
WEATHER = "How is the weather?"
TOLD = "The tool says: 24 degrees"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a gateway that replays the recordings without waiting."""
    with gateway(AT_ONCE) as running:
        yield running.url


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_every_client_gets_thought_and_answer_apart(url: str, dialect: Dialect, stream: bool) -> None:
    """Whatever markers a recorded model writes, each SDK finds the thought in its own field and a clean answer."""
    turn = DIALECTS.index(dialect) + stream
    for model in (THINKERS[turn % len(THINKERS)], THINKERS[(turn + 2) % len(THINKERS)]):
        seen = ask(dialect, url, stream=stream, model=model, question="What is 17 times 23?")
        assert (seen.thinking, seen.text) == (QUICK.thinking, QUICK.answer)


@pytest.mark.parametrize(("dialect", "model"), list(zip(WITHOUT_THINKING, THINKERS, strict=True)))
def test_thinking_turned_off(url: str, dialect: Dialect, model: str) -> None:
    """Each dialect's own way to turn thinking off reaches the model, and its answer is read as an answer."""
    for asked in {model, "recorded-deepseek-r1"}:
        seen = ask(dialect, url, model=asked, question="What is 17 times 23?", **WITHOUT_THINKING[dialect])
        assert (seen.thinking, seen.text) == ("", QUICK.answer)


def test_a_tool_turn_with_openai(url: str) -> None:
    """Question, call, result, answer: the call, which is text between markers, is a call to the client."""
    tools: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    messages: list[Any] = [{"role": "user", "content": WEATHER}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as sdk:
        first: Any = sdk.chat.completions.create(model="recorded-tools", messages=messages, tools=tools).choices[0]
        (call,) = first.message.tool_calls
        assert (call.function.name, call.function.arguments) == ("get_weather", '{"city":"Lisbon"}')
        assert first.finish_reason == "tool_calls"
        messages += [first.message, {"role": "tool", "tool_call_id": call.id, "content": "24 degrees"}]
        second = sdk.chat.completions.create(model="recorded-tools", messages=messages, tools=tools).choices[0]
    assert second.message.content == TOLD


def test_a_tool_turn_with_anthropic(url: str) -> None:
    """The same with Anthropic's SDK, streamed; the thinking block goes back as it came."""
    tools: Any = [{"name": "get_weather", "input_schema": SCHEMA}]
    messages: list[Any] = [{"role": "user", "content": WEATHER}]
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as sdk:
        with sdk.messages.stream(model="recorded-tools", max_tokens=999, messages=messages, tools=tools) as stream:
            first: Any = stream.get_final_message()
        assert [block.type for block in first.content] == ["thinking", "text", "tool_use"]
        call = first.content[-1]
        assert (call.name, call.input, first.stop_reason) == ("get_weather", {"city": "Lisbon"}, "tool_use")
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "24 degrees"}
        messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        second: Any = sdk.messages.create(model="recorded-tools", max_tokens=999, messages=messages, tools=tools)
    assert second.content[-1].text == TOLD


def test_a_tool_turn_with_ollama(url: str) -> None:
    """The same with Ollama's SDK, whose calls have no id."""
    tools: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    messages: list[Any] = [{"role": "user", "content": WEATHER}]
    with ollama.Client(url) as sdk:
        first: Any = sdk.chat(model="recorded-tools", messages=messages, tools=tools).message
        (call,) = first.tool_calls
        assert (call.function.name, dict(call.function.arguments)) == ("get_weather", {"city": "Lisbon"})
        messages += [first, {"role": "tool", "tool_name": "get_weather", "content": "24 degrees"}]
        assert sdk.chat(model="recorded-tools", messages=messages, tools=tools).message.content == TOLD


def test_an_unknown_model_is_told_the_names(url: str) -> None:
    """Whoever asks for another model learns which there are."""
    with pytest.raises(openai.NotFoundError) as refused:
        ask("chat", url, model="gpt-5")
    assert all(model in str(refused.value) for model in Recorded().models)


def test_it_says_what_it_is_when_it_starts() -> None:
    """With nothing configured the gateway says that no model runs, and gives lines to try."""
    with gateway() as running:
        running.close()
        assert "no model is running" in running.log
        for line in ("curl", f"{running.url}/v1/chat/completions", "openai.OpenAI(", "anthropic.Anthropic(", "ollama."):
            assert line in running.log


@pytest.mark.parametrize("code", SDK_EXAMPLES, ids=range(len(SDK_EXAMPLES)))
def test_the_recipes_of_the_sdks_work(url: str, code: str) -> None:
    """The examples of docs/how-to/recipes.md print the thought and then the answer."""
    program = code.replace("http://127.0.0.1:8777", url)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == f"{QUICK.thinking}\n{QUICK.answer}\n", done.stderr


def test_every_sdk_has_a_recipe() -> None:
    """The examples above are those of the three SDKs."""
    assert [code.split()[1] for code in SDK_EXAMPLES] == ["openai", "openai", "anthropic", "ollama"]
