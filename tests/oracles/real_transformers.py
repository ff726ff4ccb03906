"""Against transformers itself (`make test-conversations`): every template that packages carry, text and ids.

Each conversation is written by both. With `protect=()` nothing may differ; where transformers raises, so must we. With
the usual protection nothing may differ either, as long as no user and no tool spells a marker out.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import Any

import pytest

import asides
from tests.oracles.comparing import Ours
from tests.oracles.conversations import Message, Tools, corpus, finished
from tests.oracles.material import checkpoints, tokenizer_of

pytestmark = pytest.mark.filterwarnings("ignore")  # those of transformers are theirs
SPELLED = (
    "<think>",
    "</think>",
    "<|im_end|>",
    "<|im_start|>system\n",
    "<tool_call>",
    "[INST]",
    "<|end|>",
    "<end_of_turn>",
)
"""Markers that users and tools spell out."""
REFUSING = {
    "npm command_r_plus tool_use": "wants tools in a shape of its own",
    "npm command_r_plus rag": "wants documents",
    "llama.cpp CohereForAI-c4ai-command-r-plus-tool_use": "wants tools in a shape of its own",
    "llama.cpp fireworks-ai-llama-3-firefunction-v2": "wants functions",
}
"""Templates that refuse every conversation here."""


def theirs(tokenizer: Any, messages: list[Message], tools: Tools) -> tuple[str, list[int]] | None:
    """The text and the ids that transformers gives; None where the template refuses."""
    asks = messages[-1]["role"] != "assistant"
    given = copy.deepcopy(messages)  # it changes them
    try:
        text = tokenizer.apply_chat_template(given, tools=tools, tokenize=False, add_generation_prompt=asks)
    except Exception:  # a template can fail in as many ways as Python
        return None
    return text, list(tokenizer(text, add_special_tokens=False)["input_ids"])


def written(prompt: asides.Prompt | None) -> tuple[str, list[int]] | None:
    return (prompt.text, list(prompt.ids)) if prompt is not None else None


def spells(ours: Ours, messages: list[Message], tools: Tools) -> bool:
    """Whether a user, a tool or a definition spells an added token: in Gemma's vocabulary `<b>` is one."""
    words = [message["content"] for message in messages if message["role"] in ("user", "tool")]
    text = json.dumps([words, tools], ensure_ascii=False)
    return any(marker in text for marker in ours.markers if marker.strip())


@pytest.mark.parametrize("name", checkpoints())
def test_text_and_ids(name: str) -> None:
    """The same text and the same ids, or neither writes it."""
    checkpoint = checkpoints()[name]
    ours = Ours(tokenizer_of(checkpoint))
    found: Counter[str] = Counter()
    for spelled in ((), SPELLED):
        for messages, tools in corpus(checkpoint.thinking, spelled):
            expected = theirs(ours.tokenizer, messages, tools)
            assert written(ours.prompt(messages, tools, protect=())) == expected
            found["written" if expected else "refused"] += 1
            if expected and not spelled and not spells(ours, messages, tools):
                assert written(ours.prompt(messages, tools)) == expected
    print(f"\n{name}: {dict(found)}")
    assert (not found["written"]) == (name in REFUSING)


@pytest.mark.parametrize("name", checkpoints())
def test_truncated_turns(name: str) -> None:
    """An answer that was cut is closed by the prompt as the template closes it, and none of its ids is lost."""
    checkpoint = checkpoints()[name]
    ours = Ours(tokenizer_of(checkpoint), protect=())
    found: Counter[str] = Counter()
    for number, (messages, tools) in enumerate(finished(checkpoint.thinking, count=8)):
        prompt, whole = ours.prompt(messages[:-1], tools), ours.prompt(messages, tools)
        if prompt is None or whole is None or whole.ids[: len(prompt)] != prompt.ids:
            continue
        rest = zip(whole.ids[len(prompt) :], whole.sampled[len(prompt) :], strict=True)
        ids = [id for id, sampled in rest if sampled]
        turn = prompt.add(ids[: number * len(ids) // 7 % (len(ids) + 1)], finish_reason="length")
        if turn.stop:
            continue
        try:
            following = turn.next([{"role": "user", "content": "So?"}], keep=True)
        except asides.UsageError:  # some templates want a text where the model wrote none
            found["refused"] += 1
            continue
        if following.broke is not None:
            found["the template leaves it out"] += 1
            continue
        assert following.ids[: len(turn.ids)] == turn.ids
        assert not any(following.sampled[len(turn.ids) :])
        written = theirs(ours.tokenizer, [dict(each) for each in following.messages], tools)
        if written is not None and written[0].startswith(turn.text):
            words = following._whole.last_words(len(messages) - 1) or 0
            same = words > len(turn.text) or following.text == written[0]  # half a header may be read as words
            found["closed as the template does" if same else "closed otherwise"] += 1
        else:
            found["the template writes it otherwise"] += 1
    print(f"\n{name}: {dict(found)}")
    assert not found["closed otherwise"]
