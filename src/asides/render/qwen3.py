"""Qwen3: ChatML turns, thinking in a framed block, calls as JSON between tags."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar

from .._engine.format import Format
from ..families import get_format
from .base import Renderer, Token, Writing, Written, last_user
from .content import Call, History, RendererError, Said
from .framing import Frame

OPEN, CLOSE = Token("<think>"), Token("</think>")
START, STOP = Token("<|im_start|>"), Token("<|im_end|>")
CALL, CALL_CLOSE = Token("<tool_call>"), Token("</tool_call>")
RESULT, RESULT_CLOSE = Token("<tool_response>"), Token("</tool_response>")


class Qwen3(Renderer):
    """Qwen3 with thinking. The prompt opens no block: the model does."""

    name = "qwen3"
    histories: ClassVar[tuple[History, ...]] = ("strip", "turn", "keep")
    frame = Frame(open="\n", close="\n", after="\n\n", before_call="\n")
    stops = ("<|im_end|>",)

    def _make_format(self) -> Format:
        return get_format("qwen3")

    def _write(self, messages: Sequence[Said], index: int, target: bool) -> Written:
        message = messages[index]
        if message.role == "tool":
            return self._result(messages, index)
        header = self._header(index, message.role)
        if message.role == "assistant":
            return Written(header, [*self._answer(messages, index, target), STOP])
        return Written(header, [*_declared(message), STOP])

    def _header(self, index: int, role: str) -> Writing:
        return ["\n" if index else "", START, f"{role}\n"]

    def _open(self, messages: Sequence[Said], role: str) -> Writing:
        return self._header(len(messages), role)

    def _answer(self, messages: Sequence[Said], index: int, target: bool) -> Writing:
        message = messages[index] if self._keeps(messages, index, target) else messages[index].without_thinking()
        writing: Writing = []
        user = last_user([said.role for said in messages])
        framed = self.history == "keep" or (target and 0 <= user < index)
        if framed and not message.thinks:
            writing += (OPEN, "\n\n", CLOSE, "\n\n")
        for piece in message.pieces:
            writing += (OPEN, f"\n{piece.text}\n", CLOSE, "\n\n") if piece.thinks else (piece.text,)
        return writing + _calls(message)

    def _keeps(self, messages: Sequence[Said], index: int, target: bool) -> bool:
        """Whether a message keeps its thinking."""
        if target or self.history == "keep":
            return True
        return self.history == "turn" and index > last_user([said.role for said in messages])

    def _result(self, messages: Sequence[Said], index: int) -> Written:
        """What a tool returned. Several results in a row stand in one turn of the user."""
        first = index == 0 or messages[index - 1].role != "tool"
        last = index + 1 == len(messages) or messages[index + 1].role != "tool"
        header = self._header(index, "user") if first else ["\n"]
        ends: Writing = [STOP] if last else []
        return Written(header, [RESULT, f"\n{messages[index].text}\n", RESULT_CLOSE, *ends])

    @property
    def has_extension_property(self) -> bool:
        """Only when all thinking is kept: else an earlier answer loses its block."""
        return self.history == "keep"


class Qwen3DisableThinking(Qwen3):
    """Qwen3 with thinking turned off: the prompt ends with an empty block."""

    name = "qwen3_disable_thinking"

    def _open(self, messages: Sequence[Said], role: str) -> Writing:
        header = super()._open(messages, role)
        return [*header, OPEN, "\n\n", CLOSE, "\n\n"] if role == "assistant" else header

    def _write(self, messages: Sequence[Said], index: int, target: bool) -> Written:
        message = messages[index]
        if message.role != "assistant":
            return super()._write(messages, index, target)
        if target and message.thinks:
            raise RendererError(f"{self.name}: the prompt has closed thinking, so an answer that thinks is no target")
        block = target or self.history == "keep"
        header = self._open(messages[:index], "assistant") if block else self._header(index, "assistant")
        plain = message.without_thinking()
        return Written(header, [*(piece.text for piece in plain.pieces), *_calls(plain), STOP])


def _calls(message: Said) -> Writing:
    writing: Writing = []
    for number, call in enumerate(message.calls):
        writing += ("\n" if number or message.text else "", CALL, f"\n{_json(call)}\n", CALL_CLOSE)
    return writing


def _json(call: Call) -> str:
    # The arguments as the model wrote them: written anew they would be other tokens.
    return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {call.arguments}}}'


def _declared(message: Said) -> Writing:
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
