"""Families that neither think nor call: turns named by their role and a colon, and Llama 3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from .._engine.format import END, TEXT, Format
from .._engine.vocabulary import Vocabulary
from .base import RenderedMessage, Renderer, Segments, TemplateToken
from .messages import ChatMessage, EarlierThinking, MessageDict, read_message
from .whitespace import PartWhitespace

USER = "\n\nUser:"
"""Where an answer ends: the model goes on with the next turn."""


class RoleColon(Renderer):
    """`User: ...` and `Assistant: ...`, for models without tokens of their own for turns."""

    histories: ClassVar[tuple[EarlierThinking, ...]] = ("keep",)
    whitespace: ClassVar[PartWhitespace] = PartWhitespace(begin=" ")
    thinks = False
    calls = False

    def _make_format(self) -> Format:
        # A model may also end its answer with its own token.
        ends = [USER, *filter(None, [_named(self.vocabulary, "eos")])]
        return super()._make_format().but(states={TEXT: dict.fromkeys(ends, END)})

    def _begin(self) -> Segments:
        token = _named(self.vocabulary, "bos")
        return [TemplateToken(token)] if token else []

    def _write(self, messages: Sequence[ChatMessage], index: int, target: bool) -> RenderedMessage:
        message = messages[index]
        return RenderedMessage([f"{message.role.capitalize()}:"], [f" {message.text}\n\n"])

    def _open(self, messages: Sequence[ChatMessage], role: str) -> Segments:
        return [f"{role.capitalize()}:"]

    def _overlap(self, messages: Sequence[ChatMessage]) -> Segments:
        return [USER.lstrip()] if messages and messages[-1].role == "assistant" else []

    def get_stop_sequences(self) -> list[int] | list[str]:
        """The string with which a user's turn begins."""
        return [USER]

    def extend(
        self, prompt_ids: Sequence[int], completion_ids: Sequence[int], new_messages: Iterable[MessageDict]
    ) -> list[int] | None:
        """The next prompt. The answer has already written the user's header, so only a user's message can follow."""
        new = [read_message(message) for message in new_messages]
        if not new or new[0].role != "user" or not self.vocabulary.text(completion_ids).endswith(USER):
            return None
        first = self._encode(self._write(new, 0, False).body)
        follows = first + self._encode_messages(new, 1) + self._encode(self._open(new, "assistant"))
        return [*prompt_ids, *completion_ids, *follows]

    def _ended(self, ids: Sequence[int], raw: str) -> bool:
        end = _named(self.vocabulary, "eos")
        return raw.endswith((USER, end) if end else USER)


def _named(vocabulary: Vocabulary, which: str) -> str:
    """The text of a tokenizer's `bos` or `eos` token; empty where it names none."""
    found = getattr(vocabulary.tokenizer, f"{which}_token", None)
    if isinstance(found, str):
        return found
    id = getattr(vocabulary.tokenizer, f"{which}_token_id", None)
    return vocabulary.text([id]) if isinstance(id, int) else ""


class Llama3(Renderer):
    """Llama 3: a header for every turn, and a token that ends it."""

    histories: ClassVar[tuple[EarlierThinking, ...]] = ("keep",)
    stops: ClassVar[tuple[str, ...]] = ("<|eot_id|>",)
    thinks = False
    calls = False

    def _make_format(self) -> Format:
        # What it cannot write it does not read either: JSON and tags in an answer are text.
        found = super()._make_format()
        return found.but(states={TEXT: {stop: END for stop, to in found.states[TEXT].items() if to == END}}, calls=())

    def _begin(self) -> Segments:
        return [TemplateToken("<|begin_of_text|>")]

    def _write(self, messages: Sequence[ChatMessage], index: int, target: bool) -> RenderedMessage:
        message = messages[index]
        return RenderedMessage(self._open(messages, message.role), [message.text, TemplateToken("<|eot_id|>")])

    def _open(self, messages: Sequence[ChatMessage], role: str) -> Segments:
        return [TemplateToken("<|start_header_id|>"), role, TemplateToken("<|end_header_id|>"), "\n\n"]
