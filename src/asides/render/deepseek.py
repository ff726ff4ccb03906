"""DeepSeek V3.1: a token for each turn, thinking that the prompt opens or closes, calls as a name and its JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from ..policies import Start
from .base import RenderedMessage, Renderer, Segments, TemplateToken
from .messages import ChatMessage, EarlierThinking, RendererError

OPEN, CLOSE = map(TemplateToken, ("<think>", "</think>"))
BEGIN, STOP = map(TemplateToken, ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"))
USER, ASSISTANT = map(TemplateToken, ("<｜User｜>", "<｜Assistant｜>"))
SECTION, SECTION_CLOSE = map(TemplateToken, ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"))
CALL, SEPARATOR, CALL_CLOSE = map(TemplateToken, ("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"))
RESULT, RESULT_CLOSE = map(TemplateToken, ("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"))


class _DeepSeekV3(Renderer):
    stops: ClassVar[tuple[str, ...]] = ("<｜end▁of▁sentence｜>",)

    def __init__(self, tokenizer: Any, *, system_role_as_user: bool = False, **options: Any) -> None:
        super().__init__(tokenizer, **options)
        self.system_role_as_user = system_role_as_user
        """Whether a system message in the middle is written as a user's; else it is an error."""

    def _begin(self) -> Segments:
        return [BEGIN]

    def _write(self, messages: Sequence[ChatMessage], index: int, target: bool) -> RenderedMessage:
        message = messages[index]
        if message.role == "assistant":
            return self._answer(messages, index, target)
        if message.role == "tool":
            return RenderedMessage([], [RESULT, message.text, RESULT_CLOSE])
        if message.role == "system" and index == 0:
            return RenderedMessage([], _declared(message))
        if message.role == "user" or (message.role == "system" and self.system_role_as_user):
            return RenderedMessage([USER], [message.text])
        if message.role == "system":
            raise RendererError(f"{self.name}: only the first message may be the system's, unless system_role_as_user")
        raise RendererError(f"{self.name} knows no role {message.role!r}")

    def _answer(self, messages: Sequence[ChatMessage], index: int, target: bool) -> RenderedMessage:
        raise NotImplementedError

    def _end(self, message: ChatMessage) -> Segments:
        segments: Segments = [SECTION] if message.calls else []
        for call in message.calls:
            segments += (CALL, call.name, SEPARATOR, call.arguments, CALL_CLOSE)
        return [*segments, *([SECTION_CLOSE] if message.calls else []), STOP]


class DeepSeekV3Thinking(_DeepSeekV3):
    """DeepSeek V3.1 with thinking: the prompt ends with the opener, but for one that ends with a tool's result."""

    histories: ClassVar[tuple[EarlierThinking, ...]] = ("turn", "strip", "keep")
    start: ClassVar[Start | None] = "thinking"

    def _open(self, messages: Sequence[ChatMessage], role: str) -> Segments:
        if role != "assistant":
            return [USER]
        return [] if _after_result(messages, len(messages)) else [ASSISTANT, OPEN]

    def _answer(self, messages: Sequence[ChatMessage], index: int, target: bool) -> RenderedMessage:
        message = messages[index]
        after_result = _after_result(messages, index)
        if not self._keeps_thinking(messages, index, target):
            header: Segments = [] if after_result else [ASSISTANT, CLOSE]
            return RenderedMessage(header, [message.text, *self._end(message)])
        parts = message.parts
        first = parts[0].text if parts and parts[0].thinks else ""
        body: Segments = [OPEN] if after_result else []
        body += (first, CLOSE)
        for part in parts[1:] if first else parts:
            body += (OPEN, part.text, CLOSE) if part.thinks else (part.text,)
        return RenderedMessage([] if after_result else [ASSISTANT, OPEN], body + self._end(message))

    def _keeps_thinking(self, messages: Sequence[ChatMessage], index: int, target: bool) -> bool:
        """Whether a message is written with a block of thinking, if only an empty one."""
        block = target or self.history == "keep" or messages[index].thinks
        return block and super()._keeps_thinking(messages, index, target)


class DeepSeekV3DisableThinking(_DeepSeekV3):
    """DeepSeek V3.1 without thinking: the prompt ends with the closer."""

    histories: ClassVar[tuple[EarlierThinking, ...]] = ("strip",)

    def _open(self, messages: Sequence[ChatMessage], role: str) -> Segments:
        if role != "assistant":
            return [USER]
        return [] if _after_result(messages, len(messages)) else [ASSISTANT, CLOSE]

    def _answer(self, messages: Sequence[ChatMessage], index: int, target: bool) -> RenderedMessage:
        message = messages[index]
        return RenderedMessage(self._open(messages[:index], "assistant"), [message.text, *self._end(message)])

    @property
    def has_extension_property(self) -> bool:
        """Always: an answer is written the same way wherever it stands."""
        return True


def _after_result(messages: Sequence[ChatMessage], index: int) -> bool:
    """Whether an answer follows a tool's result, where no token names the assistant."""
    return index > 0 and messages[index - 1].role == "tool"


def _declared(message: ChatMessage) -> Segments:
    """The system's text, and the tools that it declares as the model's documentation asks for."""
    if not message.tools:
        return [message.text]
    segments: Segments = [
        f"{message.text}\n\n" if message.text else "",
        "## Tools\nYou have access to the following tools:\n",
    ]
    for tool in message.tools:
        schema = json.dumps(tool.get("parameters") or {}, ensure_ascii=False)
        segments.append(f"\n### {tool['name']}\nDescription: {tool.get('description', '')}\n\nParameters: {schema}\n")
    return [
        *segments,
        "\nIMPORTANT: ALWAYS adhere to this exact format for tool use:\n",
        *(SECTION, CALL, "tool_call_name", SEPARATOR, "tool_call_arguments", CALL_CLOSE, "{additional_tool_calls}"),
        SECTION_CLOSE,
        "\n\nWhere:\n- `tool_call_name` must be an exact match to one of the available tools\n"
        "- `tool_call_arguments` must be valid JSON that strictly follows the tool's Parameters Schema\n"
        "- For multiple tool calls, chain them directly without separators or spaces\n",
    ]
