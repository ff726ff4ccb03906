"""A batch of conversations for a trainer: rows with messages in, ids with labels out.

What trainers of Hugging Face call a data collator. It needs no `{% generation %}` in the template: what counts is what
a model samples, read off the template itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from ..errors import UsageError
from ._examples import IGNORED, Loss

if TYPE_CHECKING:
    from ._conversation import Conversation


class Collator:
    """Makes a batch of rows. `Conversation.collator` makes it."""

    def __init__(
        self,
        conversation: Conversation,
        loss: Loss,
        max_length: int | None,
        pad_id: int,
        tensors: Literal["pt"] | None,
    ) -> None:
        self._conversation = conversation
        self._loss = loss
        self._max_length = max_length
        self._pad_id = pad_id
        self._tensors = tensors
        self._with_tools: dict[str, Conversation] = {}

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The batch: `input_ids`, `attention_mask` and `labels`, all equally long."""
        examples = [self._example(row) for row in rows]
        longest = max((len(ids) for ids, _ in examples), default=0)
        batch: dict[str, Any] = {
            "input_ids": [ids + [self._pad_id] * (longest - len(ids)) for ids, _ in examples],
            "attention_mask": [[1] * len(ids) + [0] * (longest - len(ids)) for ids, _ in examples],
            "labels": [labels + [IGNORED] * (longest - len(labels)) for _, labels in examples],
        }
        if self._tensors is None:
            return batch
        try:
            tensor = import_module("torch").tensor
        except ImportError as error:
            raise UsageError("tensors are made by torch, which is not installed; tensors=None gives lists") from error
        return {name: tensor(values) for name, values in batch.items()}

    def _example(self, row: Mapping[str, Any]) -> tuple[list[int], list[int]]:
        given = row if isinstance(row, Mapping) else {}
        stretches = [given.get("messages")]
        if stretches == [None]:
            stretches = [given.get("prompt"), given.get("completion")]
        messages: list[Any] = []
        for stretch in stretches:
            if isinstance(stretch, Sequence) and not isinstance(stretch, str):
                messages += stretch
                continue
            raise UsageError("a row needs `messages`, or `prompt` and `completion`, each a list of messages")
        conversation = self._conversation if not row.get("tools") else self._for(row["tools"])
        (example,) = conversation.prompt(messages, add_generation_prompt=False).examples(self._loss)
        return list(example.ids[: self._max_length]), example.labels[: self._max_length]

    def _for(self, tools: Any) -> Conversation:
        """The conversation with a row's own tools: a list, or JSON as datasets keep it."""
        key = tools if isinstance(tools, str) else json.dumps(tools, sort_keys=True, default=str)
        if key not in self._with_tools:
            given = _read_json(tools) if isinstance(tools, str) else tools
            self._with_tools[key] = self._conversation.but(tools=given)
        return self._with_tools[key]


def _read_json(tools: str) -> Any:
    try:
        return json.loads(tools)
    except ValueError as error:
        raise UsageError(f"the tools of a row are a list, or JSON of one: {error}") from error
