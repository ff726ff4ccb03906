"""Against the masks of TRL's training templates, as transformers computes them from `{% generation %}`.

A mask says which tokens carry loss; `sampled` says which tokens a model writes after the prompt. Every token for which
they differ has one of the reasons below, and each template lists those that it has.
"""

from __future__ import annotations

import copy
from collections import Counter
from functools import cache

import pytest

from tests.hf.figures import check
from tests.oracles.comparing import PAGE, Answers, Ours
from tests.oracles.conversations import finished
from tests.oracles.masking import HEAD, UNEXPLAINED, cells, count_masks
from tests.oracles.material import checkpoints, tokenizer_of

pytestmark = pytest.mark.filterwarnings("ignore")  # those of transformers are theirs

TWINS = [name for name in checkpoints() if name.startswith("trl ") and name.endswith("_training")]


@cache
def compared(name: str) -> Counter[str]:
    """How the tokens of conversations came out."""
    checkpoint = checkpoints()[name]
    tokenizer = tokenizer_of(checkpoint)
    ours = Ours(tokenizer, protect=())
    found: Counter[str] = Counter()
    for messages, tools in finished(checkpoint.thinking):
        prompt = ours.prompt(messages, tools)
        if prompt is None:
            continue
        masked = tokenizer.apply_chat_template(
            copy.deepcopy(messages), tools=tools, return_dict=True, return_assistant_tokens_mask=True
        )
        assert list(prompt.ids) == list(masked["input_ids"])
        found["conversations"] += 1
        answers = Answers(ours, prompt, messages, tools)
        count_masks(found, prompt, answers, masked["assistant_masks"])
    return found


KNOWN: dict[str, int] = {}
"""Tokens for which there is no reason yet, at most."""


@pytest.mark.parametrize("name", TWINS)
def test_masks(name: str) -> None:
    found = compared(name)
    print(f"\n{name}: {dict(found)}")
    assert found["tokens"] > 0
    assert found[UNEXPLAINED] <= KNOWN.get(name, 0)


def rows(counted: dict[str, Counter[str]]) -> list[list[str | int]]:
    """The table of the page."""
    lines: list[list[str | int]] = [["TRL's template", *HEAD]]
    return [*lines, *([f"`{name[4:]}`", *cells(found)] for name, found in counted.items())]


def test_the_page_has_what_was_counted() -> None:
    check("masks", ("transformers", "trl"), rows({name: compared(name) for name in TWINS}), PAGE)
