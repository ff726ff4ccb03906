"""Qwen3: ChatML turns, thinking in a block with newlines around it, calls as JSON between tags."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar

from .base import RenderedMessage, Renderer, Segments, TemplateToken
from .messages import ChatMessage, EarlierThinking, MessageCall, RendererError
from .whitespace import PartWhitespace

OPEN, CLOSE = map(TemplateToken, ("<think>", "</think>"))
START, STOP = map(TemplateToken, ("<|im_start|>", "<|im_end|>"))
CALL, CALL_CLOSE = map(TemplateToken, ("<tool_call>", "</tool_call>"))
RESULT, RESULT_CLOSE = map(TemplateToken, ("<tool_response>", "</tool_response>"))


class Qwen3(Renderer):
    """Qwen3 with thinking. The prompt opens no block: the model does."""

    histories: ClassVar[tuple[EarlierThinking, ...]] = ("strip", "turn", "keep")
    whitespace: ClassVar[PartWhitespace] = PartWhitespace(open="\n", close="\n", after="\n\n", before_call="\n")
    stops: ClassVar[tuple[str, ...]] = ("<|im_end|>",)

    def _write(self, messages: Sequence[ChatMessage], index: int, target: bool) -> RenderedMessage:
        message = messages[index]
        if message.role == "tool":
            return self._result(messages, index)
        header = self._header(index, message.role)
        if message.role == "assistant":
            return RenderedMessage(header, [*self._answer(messages, index, target), STOP])
        return RenderedMessage(header, [*_declared(message), STOP])

    def _header(self, index: int, role: str) -> Segments:
        return ["\n" if index else "", START, f"{role}\n"]

    def _open(self, messages: Sequence[ChatMessage], role: str) -> Segments:
        return self._header(len(messages), role)

    def _answer(self, messages: Sequence[ChatMessage], index: int, target: bool) -> Segments:
        message = self._visible(messages, index, target)
        segments: Segments = []
        # An answer behind a user's message always has a block, if only an empty one.
        has_block = self.history == "keep" or (target and 0 < self._turn_start(messages) <= index)
        if has_block and not message.thinks:
            segments += (OPEN, "\n\n", CLOSE, "\n\n")
        for part in message.parts:
            segments += (OPEN, f"\n{part.text}\n", CLOSE, "\n\n") if part.thinks else (part.text,)
        return segments + _calls(message)

    def _result(self, messages: Sequence[ChatMessage], index: int) -> RenderedMessage:
        """What a tool returned. Several results in a row stand in one turn of the user."""
        first = index == 0 or messages[index - 1].role != "tool"
        last = index + 1 == len(messages) or messages[index + 1].role != "tool"
        header = self._header(index, "user") if first else ["\n"]
        ends: Segments = [STOP] if last else []
        return RenderedMessage(header, [RESULT, f"\n{messages[index].text}\n", RESULT_CLOSE, *ends])


class Qwen3DisableThinking(Qwen3):
    """Qwen3 with thinking turned off: the prompt ends with an empty block."""

    def _open(self, messages: Sequence[ChatMessage], role: str) -> Segments:
        header = super()._open(messages, role)
        return [*header, OPEN, "\n\n", CLOSE, "\n\n"] if role == "assistant" else header

    def _write(self, messages: Sequence[ChatMessage], index: int, target: bool) -> RenderedMessage:
        message = messages[index]
        if message.role != "assistant":
            return super()._write(messages, index, target)
        if target and message.thinks:
            raise RendererError(f"{self.name}: the prompt has closed thinking, so an answer that thinks is no target")
        block = target or self.history == "keep"
        header = self._open(messages[:index], "assistant") if block else self._header(index, "assistant")
        plain = message.without_thinking()
        return RenderedMessage(header, [*(part.text for part in plain.parts), *_calls(plain), STOP])


def _calls(message: ChatMessage) -> Segments:
    segments: Segments = []
    for number, call in enumerate(message.calls):
        segments += ("\n" if number or message.text else "", CALL, f"\n{_json(call)}\n", CALL_CLOSE)
    return segments


def _json(call: MessageCall) -> str:
    # The arguments as the model wrote them: written anew they would be other tokens.
    return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {call.arguments}}}'


def _declared(message: ChatMessage) -> Segments:
    """A message's text, and the tools that it declares as the family's chat template writes them."""
    if not message.tools:
        return [message.text]
    lines = [json.dumps({"type": "function", "function": tool}, ensure_ascii=False) for tool in message.tools]
    return [
        f"{message.text}\n\n" if message.text else "",
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n<tools>",
        *(f"\n{line}" for line in lines),
        "\n</tools>\n\nFor each function call, return a json object with function name and arguments within ",
        *(CALL, CALL_CLOSE, " XML tags:\n", CALL),
        '\n{"name": <function-name>, "arguments": <args-json-object>}\n',
        CALL_CLOSE,
    ]
