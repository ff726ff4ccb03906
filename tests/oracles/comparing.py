"""Our side of a comparison: conversations of one tokenizer, and what a generation prompt supplies of an answer."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import asides
from tests.oracles.conversations import Message, Tools

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "conversations_compared.md"


class Ours:
    """Conversations with one tokenizer and its template, made once for each list of tools."""

    def __init__(self, tokenizer: Any, **options: Any) -> None:
        self.tokenizer = tokenizer
        self._options = options
        self._conversations: dict[str, asides.Conversation] = {}

    @cached_property
    def markers(self) -> frozenset[str]:
        """The added tokens."""
        return frozenset(self.tokenizer.get_added_vocab())

    def conversation(self, tools: Tools) -> asides.Conversation:
        key = json.dumps(tools)
        if key not in self._conversations:
            self._conversations[key] = asides.Conversation(self.tokenizer, tools=tools, **self._options)
        return self._conversations[key]

    def prompt(self, messages: list[Message], tools: Tools, **options: Any) -> asides.Prompt | None:
        """A prompt; None where the template refuses."""
        try:
            return self.conversation(tools).prompt(messages, **options)
        except asides.UsageError:
            return None


class Answers:
    """Where the ids of a prompt stand in its text, and how much of each answer the prompt before it supplies."""

    def __init__(self, ours: Ours, prompt: asides.Prompt, messages: list[Message], tools: Tools) -> None:
        self._ours, self._prompt, self._messages, self._tools = ours, prompt, messages, tools
        self._ends: dict[int, int] = {}

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Where each id begins and ends."""
        encoded = self._ours.tokenizer(self._prompt.text, add_special_tokens=False, return_offsets_mapping=True)
        assert encoded["input_ids"] == list(self._prompt.ids)
        return list(encoded["offset_mapping"])

    def text(self, at: int) -> str:
        """The text of an id."""
        start, stop = self.places[at]
        return self._prompt.text[start:stop]

    def is_supplied(self, at: int, index: int) -> bool:
        """Whether what asks for the answer of this index holds this id, or begins it: then no model writes it."""
        start, stop = self.places[at]
        end = self._end_of_question(index)
        # A marker is one token: that another begins with the same letter says nothing.
        return stop <= end if self.is_marker(at) else start < end

    def is_marker(self, at: int) -> bool:
        """Whether an id is an added token."""
        return self.text(at) in self._ours.markers

    def _end_of_question(self, index: int) -> int:
        if index not in self._ends:
            self._ends[index] = self._find_end(index)
        return self._ends[index]

    def _find_end(self, index: int) -> int:
        """How far the text is what a template writes to ask for an answer."""
        text, before = self._prompt.text, self._messages[:index]
        asked = self._ours.prompt(before, self._tools, add_generation_prompt=True, protect=()) if before else None
        told = self._ours.prompt(before, self._tools, add_generation_prompt=False, protect=()) if before else None
        if asked is None or told is None:
            return 0
        end = common(asked.text, text)
        block = next(
            start for (start, _), owner in zip(self.places, self._prompt.message, strict=True) if owner == index
        )
        if end > block:
            return end
        # What stands before the answer is written otherwise when it follows: so the question alone is looked for.
        question = asked.text[common(told.text, asked.text) :]
        return block + common(question, text[block:])


def common(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))
