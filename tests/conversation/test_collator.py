"""Batches for trainers: rows of messages in, ids and labels out, and only what a model samples is learned."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from tests.conversation.support import TOOLS, conversation, tokenizer

SHORT = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "Four."}]
LONG = [
    *SHORT,
    {"role": "user", "content": "And 3+3?"},
    {"role": "assistant", "reasoning_content": "so", "content": "Six."},
]


def learned(talk: asides.Conversation, batch: dict[str, Any], row: int) -> str:
    return talk.text(id for id in batch["labels"][row] if id >= 0)


def test_a_batch() -> None:
    talk = conversation("chatml")
    batch = talk.collator(tensors=None)([{"messages": SHORT}, {"prompt": LONG[:-1], "completion": LONG[-1:]}])
    assert learned(talk, batch, 0) == "Four.<|im_end|>"
    assert learned(talk, batch, 1) == "Four.<|im_end|><think>\nso\n</think>\n\nSix.<|im_end|>"
    assert len({len(row) for values in batch.values() for row in values}) == 1
    size = sum(batch["attention_mask"][0])
    assert batch["input_ids"][0][:size] == list(talk.prompt(SHORT).ids)
    assert set(batch["labels"][0][size:]) == {-100}


def test_rows_with_tools_of_their_own() -> None:
    talk = conversation("chatml")
    rows: list[dict[str, Any]] = [
        {"messages": SHORT, "tools": TOOLS},
        {"messages": SHORT, "tools": json.dumps(TOOLS)},
        {"messages": SHORT},
    ]
    batch = talk.collator(tensors=None)(rows)
    texts = [
        talk.text(id for id, on in zip(*each, strict=True) if on)
        for each in zip(batch["input_ids"], batch["attention_mask"], strict=True)
    ]
    assert texts[0] == texts[1] == conversation("chatml", tools=True).prompt(SHORT).text
    assert texts[2] == talk.prompt(SHORT).text


def test_only_some_kinds_and_a_limit() -> None:
    talk = conversation("chatml")
    batch = talk.collator(["thinking"], tensors=None)([{"messages": LONG}])
    assert learned(talk, batch, 0) == "so"
    cut = talk.collator(max_length=5, pad_id=7, tensors=None)([{"messages": LONG}])
    assert [len(values[0]) for values in cut.values()] == [5, 5, 5]


def test_a_row_without_messages_is_an_error() -> None:
    with pytest.raises(asides.UsageError, match="a row needs `messages`"):
        conversation("chatml").collator()([{"text": "hi"}])


def test_a_conversation_but_for_something() -> None:
    talk = asides.Conversation(
        tokenizer("bytes"), "{{ tools is none }}{{ a }}{{ b }}{{ messages[0].content }}", a=1, b=2
    )
    other = talk.but(b=3)
    assert [each.prompt(SHORT).text for each in (talk, other, other.but(tools=TOOLS))] == [
        "True122+2?",
        "True132+2?",
        "False132+2?",
    ]
