"""Families that neither think nor call: turns named by a word and a colon, and Llama 3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from .._engine.format import END, TEXT, Format
from .._engine.vocabulary import Vocabulary
from ..families import get_format
from .base import Renderer, Token, Writing, Written
from .content import History, Message, Said, read_message
from .framing import Frame

USER = "\n\nUser:"
"""At which the answer of a model that writes turns as words is over."""


class RoleColon(Renderer):
    """`User: ...` and `Assistant: ...`, for models without tokens of their own for turns."""

    name = "role_colon"
    histories: ClassVar[tuple[History, ...]] = ("keep",)
    frame = Frame(begin=" ")
    thinks = False
    calls = False

    def _make_format(self) -> Format:
        # A model may also end its answer with its own token.
        found = get_format("role_colon")
        end = _named(self.vocabulary, "eos")
        return found.but(states={TEXT: {USER: END, **({end: END} if end else {})}})

    def _begin(self) -> Writing:
        token = _named(self.vocabulary, "bos")
        return [Token(token)] if token else []

    def _write(self, messages: Sequence[Said], index: int, target: bool) -> Written:
        message = messages[index]
        return Written([f"{message.role.capitalize()}:"], [f" {message.text}\n\n"])

    def _open(self, messages: Sequence[Said], role: str) -> Writing:
        return [f"{role.capitalize()}:"]

    def _overlap(self, messages: Sequence[Said]) -> Writing:
        return [USER.lstrip()] if messages and messages[-1].role == "assistant" else []

    @property
    def has_extension_property(self) -> bool:
        """Always: nothing of a turn is written otherwise later on."""
        return True

    def get_stop_sequences(self) -> list[int] | list[str]:
        """The words with which a user's turn begins."""
        return [USER]

    def extend(
        self, prompt_ids: Sequence[int], completion_ids: Sequence[int], new_messages: Iterable[Message]
    ) -> list[int] | None:
        """The next prompt. The answer has already named the user, so only a user's words can follow."""
        new = [read_message(message) for message in new_messages]
        if not new or new[0].role != "user" or not self.vocabulary.text(completion_ids).endswith(USER):
            return None
        ids = [*prompt_ids, *completion_ids]
        for index in range(len(new)):
            written = self._write(new, index, False)
            ids += (self._encode(written.header) if index else []) + self._encode(written.body)
        return ids + self._encode(self._open(new, "assistant"))

    def _ended(self, ids: Sequence[int], raw: str) -> bool:
        end = _named(self.vocabulary, "eos")
        return raw.endswith((USER, end) if end else USER)


def _named(vocabulary: Vocabulary, which: str) -> str:
    """The text of a tokenizer's first or last token, where it says which that is."""
    found = getattr(vocabulary.tokenizer, f"{which}_token", None)
    if isinstance(found, str):
        return found
    id = getattr(vocabulary.tokenizer, f"{which}_token_id", None)
    return vocabulary.text([id]) if isinstance(id, int) else ""


class Llama3(Renderer):
    """Llama 3: a header for every turn, and a token that ends it."""

    name = "llama3"
    histories: ClassVar[tuple[History, ...]] = ("keep",)
    stops = ("<|eot_id|>",)
    thinks = False
    calls = False

    def _make_format(self) -> Format:
        # What it cannot write it does not read either: JSON and tags in an answer are words.
        found = get_format("llama3")
        return found.but(states={TEXT: {stop: END for stop, to in found.states[TEXT].items() if to == END}}, calls=())

    def _begin(self) -> Writing:
        return [Token("<|begin_of_text|>")]

    def _write(self, messages: Sequence[Said], index: int, target: bool) -> Written:
        message = messages[index]
        return Written(self._open(messages, message.role), [message.text, Token("<|eot_id|>")])

    def _open(self, messages: Sequence[Said], role: str) -> Writing:
        return [Token("<|start_header_id|>"), role, Token("<|end_header_id|>"), "\n\n"]

    @property
    def has_extension_property(self) -> bool:
        """Always: nothing of a turn is written otherwise later on."""
        return True
