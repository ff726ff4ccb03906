"""Against verl (`make test-conversations-verl`): the ids and the loss mask of its dataset, and its continued prompts.

`MultiTurnSFTDataset` writes each message by itself and puts the ids one after another; `ContinuousTokenBuilder` goes on
from sampled ids, with a class for each family. Both use transformers as verl pins it.
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
from tests.oracles.conversations import Message, Tools, finished
from tests.oracles.masking import HEAD, UNEXPLAINED, cells, count_masks
from tests.oracles.material import checkpoints, tokenizer_of

pytestmark = pytest.mark.filterwarnings("ignore")  # those of verl and transformers are theirs

FAMILIES = {
    "npm qwen2_5": "qwen25",
    "npm qwen3": "qwen3",
    "trl qwen3_5_think": "qwen35",
    "trl glm4moe": "glm47",
    "trl gemma4_v5": "gemma4",
    "trl gptoss": "gptoss",
    "npm deepseek_v3": "deepseek",
    "npm llama3_2": "default",
}
"""Templates, and verl's name for the class that goes on from sampled ids."""
KNOWN: dict[str, int] = {}
"""Tokens for which there is no reason yet, at most."""


class _Rows:
    """Rows as the dataset would have read them from a file."""

    def __init__(self, tokenizer: Any) -> None:
        module = import_module("verl.utils.dataset.multiturn_sft_dataset")
        made = module.MultiTurnSFTDataset.__new__(module.MultiTurnSFTDataset)
        made.tokenizer, made.processor, made.apply_chat_template_kwargs = tokenizer, None, {}
        made.messages_key, made.image_key, made.video_key = "messages", "images", "videos"
        made.enable_thinking, made.enable_thinking_default = None, None
        made.pad_mode, made.max_length, made.truncation = "no_padding", 1 << 20, "error"
        made.ignore_input_ids_mismatch = True
        made.system_prompt, made.generation_prompt = module.extract_system_prompt_and_generation(tokenizer)
        self._dataset, self._pandas = made, import_module("pandas")

    def row(self, messages: list[Message], tools: Tools) -> tuple[list[int], list[int]] | None:
        """Ids and loss mask; None where a template refuses a message by itself."""
        self._dataset.dataframe = self._pandas.DataFrame({"messages": [messages]})
        self._dataset.tools = [tools] if tools else None
        try:
            row = self._dataset[0]
        except Exception:  # a template can fail in as many ways as Python
            return None
        return row["input_ids"].tolist(), row["loss_mask"].tolist()


@cache
def compared(name: str) -> Counter[str]:
    """How conversations, tokens and continued prompts came out."""
    checkpoint = checkpoints()[name]
    tokenizer = tokenizer_of(checkpoint)
    ours, rows = Ours(tokenizer, protect=()), _Rows(tokenizer)
    wiring = import_module("verl.utils.tokenizer.continuous_token_wiring")
    builder = wiring._CONTINUOUS_TOKEN_BUILDER_REGISTRY[wiring.ContinuousTokenModelFamily(FAMILIES[name])](tokenizer)
    found: Counter[str] = Counter()
    for messages, tools in finished(checkpoint.thinking):
        prompt = ours.prompt(messages, tools)
        if prompt is None or any(isinstance(message["content"], list) for message in messages):
            continue
        found["conversations"] += 1
        row = rows.row(json.loads(json.dumps(messages)), tools)
        if row is None:
            found["they refuse"] += 1
        elif row[0] == list(prompt.ids):
            found["same ids"] += 1
            count_masks(found, prompt, Answers(ours, prompt, messages, tools), row[1])
        found += bridged(ours, builder, messages, tools)
    return found


def bridged(ours: Ours, builder: Any, messages: list[Message], tools: Tools) -> Counter[str]:
    """The prompt after the first answer, by both."""
    answers = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
    if len(answers) < 2:
        return Counter()
    first, second = answers[:2]
    prompt, whole = (ours.prompt(messages[:end], tools) for end in (first, first + 1))
    if prompt is None or whole is None or whole.ids[: len(prompt)] != prompt.ids:
        return Counter()
    sampled = [
        id for id, by_model in zip(whole.ids[len(prompt) :], whole.sampled[len(prompt) :], strict=True) if by_model
    ]
    turn = prompt.add(sampled)
    following = turn.next(messages[first + 1 : second], keep=True)
    try:
        theirs = builder.merge_context_tokens(
            messages[: first + 1], messages[:second], [*prompt.ids, *sampled], tools=tools
        ).token_ids
    except Exception:  # whatever a class raises for what its template writes
        return Counter({"no bridge": 1})
    return Counter({"same bridge" if list(following.ids) == list(theirs) else "other bridge": 1})


@pytest.mark.parametrize("name", FAMILIES)
def test_ids_and_masks(name: str) -> None:
    found = compared(name)
    print(f"\n{name}: {dict(found)}")
    assert found["conversations"] > 0
    assert found[UNEXPLAINED] <= KNOWN.get(name, 0)


def test_the_page_has_what_was_counted() -> None:
    lines: list[list[str | int]] = [
        ["template", "conversations", "they refuse", "same ids", *HEAD, "same bridge", "other bridge", "no bridge"]
    ]
    for name in FAMILIES:
        found = compared(name)
        counts = [found[key] for key in ("conversations", "they refuse", "same ids")]
        bridges = [found[key] for key in ("same bridge", "other bridge", "no bridge")]
        lines.append([f"`{name.partition(' ')[2]}`", *counts, *cells(found), *bridges])
    check("verl", ("transformers", "verl"), lines, PAGE)
