"""Kimi K2: a token for each role, thinking in plain tags, calls in a section, a message of its own to declare tools."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from .._engine.format import Format
from ..families import get_format
from .base import Renderer, Token, Writing, Written
from .content import Call, History, Piece, Said

OPEN, CLOSE = Token("<think>"), Token("</think>")
SYSTEM, USER, ASSISTANT = Token("<|im_system|>"), Token("<|im_user|>"), Token("<|im_assistant|>")
MIDDLE, STOP = Token("<|im_middle|>"), Token("<|im_end|>")
SECTION, SECTION_CLOSE = Token("<|tool_calls_section_begin|>"), Token("<|tool_calls_section_end|>")
CALL, ARGUMENTS = Token("<|tool_call_begin|>"), Token("<|tool_call_argument_begin|>")
CALL_CLOSE = Token("<|tool_call_end|>")
DEFAULT = "You are Kimi, an AI assistant created by Moonshot AI."
"""What the family's template says where there is no system message."""


class KimiK2(Renderer):
    """Kimi K2. The prompt opens no block: the model does. Without thinking it writes an empty one."""

    name = "kimi_k2"
    histories: ClassVar[tuple[History, ...]] = ("turn", "strip", "keep")
    stops = ("<|im_end|>",)

    def _make_format(self) -> Format:
        return get_format("kimi_k2")

    def _prepare(self, messages: list[Said]) -> list[Said]:
        if any(message.role == "system" for message in messages):
            return messages
        first = int(bool(messages) and messages[0].role == "tool_declare")
        return [*messages[:first], Said("system", (Piece(False, DEFAULT),)), *messages[first:]]

    def _write(self, messages: Sequence[Said], index: int, target: bool) -> Written:
        message = messages[index]
        if message.role == "tool":
            header = [SYSTEM, message.name or "tool", MIDDLE]
            return Written(header, [f"## Return of {message.call_id}\n{message.text}", STOP])
        header = self._open(messages[:index], message.role)
        if message.role == "assistant":
            return Written(header, [*self._answer(messages, index, target), STOP])
        if message.tools:
            return Written(header, [_declaration(message.tools), message.text, STOP])
        return Written(header, [message.text, STOP])

    def _open(self, messages: Sequence[Said], role: str) -> Writing:
        token = {"user": USER, "assistant": ASSISTANT}.get(role, SYSTEM)
        return [token, role, MIDDLE]

    def _answer(self, messages: Sequence[Said], index: int, target: bool) -> Writing:
        message = messages[index] if self._keeps(messages, index, target) else messages[index].without_thinking()
        writing: Writing = [] if message.pieces and message.pieces[0].thinks else [OPEN, CLOSE]
        for piece in message.pieces:
            writing += (OPEN, piece.text, CLOSE) if piece.thinks else (piece.text,)
        before = sum(len(said.calls) for said in messages[:index])
        writing += [SECTION] if message.calls else []
        for number, call in enumerate(message.calls, before):
            writing += (CALL, _id(call, number), ARGUMENTS, call.arguments, CALL_CLOSE)
        return writing + ([SECTION_CLOSE] if message.calls else [])

    def _keeps(self, messages: Sequence[Said], index: int, target: bool) -> bool:
        """A turn goes on until an answer without calls, whoever speaks in it."""
        if target or self.history == "keep":
            return True
        answers = [at for at, said in enumerate(messages) if said.role == "assistant" and not said.calls]
        # The answer that an example ends with is what is being said, not an earlier turn's end.
        ended = [at for at in answers if at < len(messages) - 1]
        return self.history == "turn" and index > max(ended, default=-1)

    @property
    def has_extension_property(self) -> bool:
        """Only when all thinking is kept: else an earlier answer loses it."""
        return self.history == "keep"

    def create_conversation_prefix_with_tools(
        self, tools: Iterable[Mapping[str, Any]], system_prompt: str = ""
    ) -> list[dict[str, Any]]:
        """A declaration of its own, before the system's message."""
        declaration = {"role": "tool_declare", "content": "", "tools": list(tools)}
        return [declaration, {"role": "system", "content": system_prompt or DEFAULT}]


def _id(call: Call, number: int) -> str:
    """How a call is named: by its id where that has the family's shape, which holds the name and a number."""
    head, _, count = call.id.rpartition(":")
    return call.id if head == f"functions.{call.name}" and count.isdigit() else f"functions.{call.name}:{number}"


def _declaration(tools: Iterable[Mapping[str, Any]]) -> str:
    wrapped = [{"type": "function", "function": tool} for tool in tools]
    return json.dumps(wrapped, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
