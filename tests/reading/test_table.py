"""The same model, evidence and text give the same parts on every surface, whole or streamed (law 10).

Each row is a model, each column whether thinking was asked for and where the reply is read. The text is the one about
which surfaces used to disagree: a thought that the prompt had opened, so that only its close is in the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import asides.openai
from asides import arrow
from asides._engine.format import thinking_pair
from asides.client import Client
from asides.plugins._halves import ThoughtHalf
from asides.plugins.evals import answer_of
from asides.reading import Reading
from tests.cli.running import run
from tests.gateway.clients import ask
from tests.gateway.servers import Servers, serving
from tests.support import check_each

ALWAYS = (
    "MiniMaxAI/MiniMax-M2", "allenai/Olmo-3-7B-Think", "stepfun-ai/step3", "deepseek-ai/DeepSeek-R1",
    "Qwen/Qwen3-4B-Thinking-2507", "Qwen/QwQ-32B", "stepfun-ai/Step-3.5-Flash", "ai-sage/GigaChat3.5-10B",
    "ServiceNow-AI/Apriel-1.6-15b-Thinker", "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
)  # fmt: skip
"""Models that begin in a thought and that nothing turns off."""
SWITCHED = (
    "Qwen/Qwen3.5-4B", "zai-org/GLM-5.1", "moonshotai/Kimi-K2.5", "deepseek-ai/DeepSeek-V4.1-Flash",
    "inclusionAI/Ring-2.5-1T",
)  # fmt: skip
"""Models that begin in a thought unless they are asked not to."""
NEAR = ("MiniMaxAI/MiniMax-M2.7", "zai-org/GLM-5.2", "moonshotai/Kimi-K2.7-Code", "Qwen/Qwen3.7-9B")
"""Versions that no card lists, which begin like the one before them."""
OPENING = (
    "Qwen/Qwen3-8B", "HuggingFaceTB/SmolLM3-3B", "openbmb/MiniCPM4.1-8B", "ibm-granite/granite-3.3-8b-instruct",
    "meta-llama/Llama-3.3-70B-Instruct", "Qwen/Qwen2.5-7B-Instruct", "baidu/ERNIE-4.5-21B-A3B-PT",
    "XiaomiMiMo/MiMo-V2-Flash",
    "LGAI-EXAONE/EXAONE-4.0-32B", "LGAI-EXAONE/EXAONE-4.5-32B", "meituan/LongCat-Flash-Chat", "meituan/LongCat-2.0",
    "NousResearch/Hermes-4-14B", "tencent/Hunyuan-A13B-Instruct", "microsoft/phi-4", "google/gemma-3-27b-it",
    "somebody/unheard-of", "gpt-4o", "", "deepseek-ai/DeepSeek-V3.1", "mistralai/Magistral-Small-2509",
)  # fmt: skip
"""Models that open their thoughts themselves, or of which nothing is known."""
MODELS = (*ALWAYS, *SWITCHED, *NEAR, *OPENING)
THINK = (None, False, True)

LATE = ("Four.", "hm so\n\nFour.")
"""The one way in which a streamed cell may differ: an API that cannot take words back has sent the thought before its
close comes. docs/explanation/reading.md says it."""

CHAT: dict[bool | None, dict[str, Any]] = {
    None: {},
    False: {"reasoning_effort": "none"},
    True: {"reasoning_effort": "medium"},
}
APIS: dict[str, dict[bool | None, dict[str, Any]]] = {
    "responses": {None: {}, False: {"reasoning": {"effort": "none"}}, True: {"reasoning": {"effort": "medium"}}},
    "messages": {
        None: {},
        False: {"thinking": {"type": "disabled"}},
        True: {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096},
    },
    "ollama_chat": {None: {}, False: {"think": False}, True: {"think": True}},
}


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """A gateway that knows nothing of its models but their names."""
    with serving(defaults={}) as found:
        yield found


def text_of(model: str) -> str:
    """What the model writes: a thought without its opener, and the answer."""
    format = Reading.of(model or None).format
    closer = thinking_pair(format)[1] if format.settle is None else ""
    return f"hm so{closer or '</think>'}Four."


def begins_in_text(reading: Reading) -> bool:
    """Whether a stream is read from text on."""
    return (reading.policies.start or reading.format.start) != "thinking"


def expected(model: str, think: bool | None) -> str:
    """The answer that every whole reply has."""
    return Reading.of(model or None, think=think).parse(text_of(model)).text


def test_models_that_always_think_are_never_read_from_text() -> None:
    """Whatever a request asks for: the thought must not become the answer."""
    for model in ALWAYS:
        for think in THINK:
            reading = Reading.of(model, think=think)
            assert not begins_in_text(reading), (model, think, reading.reason)
            assert reading.turns_off != "known", model


def test_every_whole_reading_has_the_answer_alone() -> None:
    for model in MODELS:
        for think in THINK:
            assert expected(model, think) == "Four.", (model, think)


def test_in_process() -> None:
    """The library, columns, evaluations, and what the SDKs hand over."""
    for model in MODELS:
        reading, text, name = Reading.of(model or None), text_of(model), model or None
        answer = ("hm so", "Four.")
        assert answer_of(text, model=name) == "Four."
        assert answer_in(asides.parse(text, model=name)) == answer
        assert reading.rows().read(text)[0].text == "Four."
        column = arrow.split(pa.array([text]), model=name)
        assert column.field("text")[0].as_py() == "Four."
        for parser in (reading.parser(), asides.Parser(model=name)):
            events = [event for character in text for event in parser.feed(character)] + parser.finish()
            assert events
            assert answer_in(parser.message) == answer, model
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        reply = {"model": model, "choices": [{**choice, "message": {"content": text}}]}
        assert answer_in(asides.openai.read(reply)) == answer, model
        frames = [{"model": model, "choices": [{"index": 0, "delta": {"content": each}}]} for each in text]
        stream = asides.openai.split([*frames, {"model": model, "choices": [{**choice, "delta": {}}]}])
        assert list(stream)
        assert answer_in(stream.reply) == answer, model


def answer_in(found: Any) -> tuple[str, str]:
    """Thought and answer."""
    return found.thinking, found.text


def test_the_half_of_plugins_that_takes_thoughts() -> None:
    """What the plug-ins for vLLM, SGLang and LiteLLM stand on; their hosts cannot take words back."""
    for model in MODELS:
        for think in THINK:
            reading, text = Reading.of(model or None, think=think), text_of(model)
            half = ThoughtHalf(reading)
            taken = [*(half.feed(character) for character in text), half.finish()]
            found = "".join(each.rest for each in taken)
            assert found in (LATE if begins_in_text(reading) else LATE[:1]), (model, think)


def test_filter() -> None:
    """Whose words are gone too when the close comes."""
    for model in (*ALWAYS[:2], SWITCHED[0], NEAR[0], *OPENING[:2]):
        done = run("--model", model, given=text_of(model).encode())
        late = begins_in_text(Reading.of(model))
        assert done.stdout.decode() in (LATE if late else LATE[:1]), (model, done.stderr)


def test_chat_through_the_gateway(servers: Servers) -> None:
    """Every model, streamed and whole. Streamed first: from what it has seen the gateway learns."""
    check_each(lambda model: _check_chat(servers, model), [model for model in MODELS if model])


def _check_chat(servers: Servers, model: str) -> None:
    servers.upstream.say(text_of(model))
    for think in THINK:
        thought = "" if think is False else "hm so"  # who asks for none is shown none
        streamed = ask("chat", servers.gateway.url, model=model, stream=True, **CHAT[think])
        if begins_in_text(Reading.of(model, think=think)):
            assert streamed.text in LATE, (model, think)
        else:
            assert (streamed.thinking, streamed.text) == (thought, "Four."), (model, think)
        whole = ask("chat", servers.gateway.url, model=model, **CHAT[think])
        assert (whole.thinking, whole.text) == (thought, "Four."), (model, think)


@pytest.mark.parametrize("api", APIS)
def test_other_apis_through_the_gateway(servers: Servers, api: Any) -> None:
    for model in (*ALWAYS[:5], SWITCHED[0], NEAR[0]):
        servers.upstream.say(text_of(model))
        for think in THINK:
            for stream in (False, True):
                found = ask(api, servers.gateway.url, model=model, stream=stream, **APIS[api][think])
                late = stream and api != "responses" and begins_in_text(Reading.of(model, think=think))
                assert found.text in (LATE if late else LATE[:1]), (model, think, stream)


def test_run(servers: Servers) -> None:
    """The client, which streams. Each question goes to a new one: it learns too."""
    for model in MODELS:
        servers.upstream.say(text_of(model))
        for think in THINK:
            client = Client(servers.upstream.url, kind="openai")
            reading = Reading.of(model or None, think=think)
            reply = client.ask("2+2?", model=model or "m", think=think)
            assert (reply.thinking, reply.text) == ("hm so", "Four."), (model, think)
            # What is known by its exact name is not learned otherwise, unless it was asked not to think.
            if not reading.sure or think is False:
                assert client.ask("2+2?", model=model or "m", think=think).text == "Four.", (model, think, "learned")
