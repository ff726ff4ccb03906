"""Against tinker-cookbook (`make test-conversations-tinker`): the ids and weights of its supervised examples.

Each renderer of theirs is written by hand. Ids are compared with those of the checkpoint's template; where they are the
same, the weights of the last answer are compared with what a model samples of it.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from tests.hf.figures import check
from tests.oracles.comparing import PAGE, Answers, Ours
from tests.oracles.conversations import Message, finished
from tests.oracles.masking import HEAD, UNEXPLAINED, cells, count_masks
from tests.oracles.material import checkpoints, tokenizer_of

pytestmark = pytest.mark.filterwarnings("ignore")  # those of tinker-cookbook and transformers are theirs

RENDERERS = {
    "qwen3": "npm qwen3",
    "qwen3_instruct": "trl qwen3_instruct_2507",
    "llama3": "npm llama3_2",
    "deepseekv3": "npm deepseek_v3",
    "kimi_k2": "llama.cpp Kimi-K2-Instruct",
    "nemotron3": "trl nemotron_3_nano",
    "nemotron3_ultra": "trl nemotron_3_ultra",
    "gpt_oss_medium_reasoning": "trl gptoss",
}
"""Renderers of theirs that take text alone, and the template of the checkpoint that each is for."""
KNOWN: dict[str, int] = {}
"""Tokens for which there is no reason yet, at most."""


def their_messages(messages: list[Message], thinking: str) -> list[Any]:
    """Messages in their form: thoughts are a part of the content, calls are objects."""
    base = import_module("tinker_cookbook.renderers.base")
    found: list[Any] = []
    for message in messages:
        made: dict[str, Any] = {"role": message["role"], "content": message["content"]}
        if message.get(thinking):
            text = [{"type": "text", "text": message["content"]}] if message["content"] else []
            made["content"] = [{"type": "thinking", "thinking": message[thinking]}, *text]
        if message.get("tool_calls"):
            made["tool_calls"] = [
                base.ToolCall(
                    id=call["id"],
                    function=base.ToolCall.FunctionBody(
                        name=call["function"]["name"],
                        arguments=json.dumps(call["function"]["arguments"], ensure_ascii=False),
                    ),
                )
                for call in message["tool_calls"]
            ]
        made |= {key: message[key] for key in ("tool_call_id", "name") if key in message}
        found.append(made)
    return found


@cache
def compared(name: str) -> Counter[str]:
    """How conversations and tokens came out."""
    checkpoint = checkpoints()[RENDERERS[name]]
    tokenizer = tokenizer_of(checkpoint)
    renderer = import_module("tinker_cookbook.renderers").get_renderer(name, tokenizer)
    ours = Ours(tokenizer, protect=())
    found: Counter[str] = Counter()
    for messages, _ in finished(checkpoint.thinking):
        if any(not isinstance(message["content"], str) for message in messages) or any(
            isinstance(call["function"]["arguments"], str) for each in messages for call in each.get("tool_calls", ())
        ):
            continue
        prompt = ours.prompt(messages, None)
        if prompt is None:
            continue
        found["conversations"] += 1
        try:
            given, weights = renderer.build_supervised_example(their_messages(messages, checkpoint.thinking))
        except Exception:  # whatever a renderer raises for what its template writes
            found["they refuse"] += 1
            continue
        ids = given.to_ints()
        # They end with the token that ends the turn; a template may write a line break after it.
        if ids != list(prompt.ids[: len(ids)]) or any(prompt.sampled[len(ids) :]):
            continue
        found["same ids"] += 1
        last = len(messages) - 1
        mask = [bool(weight) if prompt.message[at] == last else prompt.sampled[at] for at, weight in enumerate(weights)]
        count_masks(found, prompt, Answers(ours, prompt, messages, None), mask)
    return found


@pytest.mark.parametrize("name", RENDERERS)
def test_ids_and_weights(name: str) -> None:
    found = compared(name)
    print(f"\n{name}: {dict(found)}")
    assert found["conversations"] > 0
    assert found[UNEXPLAINED] <= KNOWN.get(name, 0)


def test_the_page_has_what_was_counted() -> None:
    lines: list[list[str | int]] = [["renderer", "conversations", "they refuse", "same ids", *HEAD]]
    for name in RENDERERS:
        found = compared(name)
        counts = [found[key] for key in ("conversations", "they refuse", "same ids")]
        lines.append([f"`{name}`", *counts, *cells(found)])
    check("tinker", ("transformers", "tinker-cookbook"), lines, PAGE)
