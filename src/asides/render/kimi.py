"""Kimi K2: a token for each role, thinking in plain tags, calls in a section, a message of its own to declare tools."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from .base import RenderedMessage, Renderer, Segments, TemplateToken
from .messages import ChatMessage, EarlierThinking, MessageCall, MessagePart

OPEN, CLOSE = map(TemplateToken, ("<think>", "</think>"))
SYSTEM, USER, ASSISTANT = map(TemplateToken, ("<|im_system|>", "<|im_user|>", "<|im_assistant|>"))
MIDDLE, STOP = map(TemplateToken, ("<|im_middle|>", "<|im_end|>"))
SECTION, SECTION_CLOSE = map(TemplateToken, ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"))
CALL, ARGUMENTS = map(TemplateToken, ("<|tool_call_begin|>", "<|tool_call_argument_begin|>"))
CALL_CLOSE = TemplateToken("<|tool_call_end|>")
DEFAULT = "You are Kimi, an AI assistant created by Moonshot AI."
"""What the family's template says where there is no system message."""


class KimiK2(Renderer):
    """Kimi K2. The prompt opens no block: the model does. Without thinking it writes an empty one."""

    histories: ClassVar[tuple[EarlierThinking, ...]] = ("turn", "strip", "keep")
    stops: ClassVar[tuple[str, ...]] = ("<|im_end|>",)

    def _prepare(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        if any(message.role == "system" for message in messages):
            return messages
        first = int(bool(messages) and messages[0].role == "tool_declare")
        return [*messages[:first], ChatMessage("system", (MessagePart(False, DEFAULT),)), *messages[first:]]

    def _write(self, messages: Sequence[ChatMessage], index: int, target: bool) -> RenderedMessage:
        message = messages[index]
        if message.role == "tool":
            header = [SYSTEM, message.name or "tool", MIDDLE]
            return RenderedMessage(header, [f"## Return of {message.call_id}\n{message.text}", STOP])
        header = self._open(messages[:index], message.role)
        if message.role == "assistant":
            return RenderedMessage(header, [*self._answer(messages, index, target), STOP])
        if message.tools:
            return RenderedMessage(header, [_declaration(message.tools), message.text, STOP])
        return RenderedMessage(header, [message.text, STOP])

    def _open(self, messages: Sequence[ChatMessage], role: str) -> Segments:
        token = {"user": USER, "assistant": ASSISTANT}.get(role, SYSTEM)
        return [token, role, MIDDLE]

    def _answer(self, messages: Sequence[ChatMessage], index: int, target: bool) -> Segments:
        message = self._visible(messages, index, target)
        segments: Segments = [] if message.parts and message.parts[0].thinks else [OPEN, CLOSE]
        for part in message.parts:
            segments += (OPEN, part.text, CLOSE) if part.thinks else (part.text,)
        before = sum(len(earlier.calls) for earlier in messages[:index])
        segments += [SECTION] if message.calls else []
        for number, call in enumerate(message.calls, before):
            segments += (CALL, _id(call, number), ARGUMENTS, call.arguments, CALL_CLOSE)
        return segments + ([SECTION_CLOSE] if message.calls else [])

    def _turn_start(self, messages: Sequence[ChatMessage]) -> int:
        """A turn goes on until an answer without calls, whoever writes in it."""
        # The last message ends no earlier turn: it is the answer of an example.
        ends = (at for at, each in enumerate(messages[:-1], 1) if each.role == "assistant" and not each.calls)
        return max(ends, default=0)

    def create_conversation_prefix_with_tools(
        self, tools: Iterable[Mapping[str, Any]], system_prompt: str = ""
    ) -> list[dict[str, Any]]:
        """A declaration of its own, before the system's message."""
        declaration = {"role": "tool_declare", "content": "", "tools": list(tools)}
        return [declaration, {"role": "system", "content": system_prompt or DEFAULT}]


def _id(call: MessageCall, number: int) -> str:
    """How a call is named: by its id where that has the family's shape, which holds the name and a number."""
    head, _, count = call.id.rpartition(":")
    return call.id if head == f"functions.{call.name}" and count.isdigit() else f"functions.{call.name}:{number}"


def _declaration(tools: Iterable[Mapping[str, Any]]) -> str:
    wrapped = [{"type": "function", "function": tool} for tool in tools]
    return json.dumps(wrapped, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
