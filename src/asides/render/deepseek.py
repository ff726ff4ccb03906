"""DeepSeek V3.1: a token for each turn, thinking that the prompt opens or closes, calls as a name and its JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from .._engine.format import Format
from ..families import get_format
from ..policies import Start
from .base import Renderer, Token, Writing, Written, last_user
from .content import History, RendererError, Said

OPEN, CLOSE = Token("<think>"), Token("</think>")
BEGIN, STOP = Token("<｜begin▁of▁sentence｜>"), Token("<｜end▁of▁sentence｜>")
USER, ASSISTANT = Token("<｜User｜>"), Token("<｜Assistant｜>")
SECTION, SECTION_CLOSE = Token("<｜tool▁calls▁begin｜>"), Token("<｜tool▁calls▁end｜>")
CALL, SEPARATOR, CALL_CLOSE = Token("<｜tool▁call▁begin｜>"), Token("<｜tool▁sep｜>"), Token("<｜tool▁call▁end｜>")
RESULT, RESULT_CLOSE = Token("<｜tool▁output▁begin｜>"), Token("<｜tool▁output▁end｜>")


class _DeepSeekV3(Renderer):
    stops = ("<｜end▁of▁sentence｜>",)

    def __init__(self, tokenizer: Any, *, system_role_as_user: bool = False, **options: Any) -> None:
        super().__init__(tokenizer, **options)
        self.system_role_as_user = system_role_as_user
        """Whether a system message in the middle is written as a user's; else it is an error."""

    def _begin(self) -> Writing:
        return [BEGIN]

    def _write(self, messages: Sequence[Said], index: int, target: bool) -> Written:
        message = messages[index]
        if message.role == "assistant":
            return self._answer(messages, index, target)
        if message.role == "tool":
            return Written([], [RESULT, message.text, RESULT_CLOSE])
        if message.role == "system" and index == 0:
            return Written([], _declared(message))
        if message.role == "user" or (message.role == "system" and self.system_role_as_user):
            return Written([USER], [message.text])
        if message.role == "system":
            raise RendererError(f"{self.name}: only the first message may be the system's, unless system_role_as_user")
        raise RendererError(f"{self.name} knows no role {message.role!r}")

    def _answer(self, messages: Sequence[Said], index: int, target: bool) -> Written:
        raise NotImplementedError

    def _end(self, message: Said) -> Writing:
        writing: Writing = [SECTION] if message.calls else []
        for call in message.calls:
            writing += (CALL, call.name, SEPARATOR, call.arguments, CALL_CLOSE)
        return [*writing, *([SECTION_CLOSE] if message.calls else []), STOP]


class DeepSeekV3Thinking(_DeepSeekV3):
    """DeepSeek V3.1 with thinking: the prompt ends with the opener, but for one that ends with a tool's result."""

    name = "deepseekv3_thinking"
    histories: ClassVar[tuple[History, ...]] = ("turn", "strip", "keep")
    start: ClassVar[Start | None] = "thinking"

    def _make_format(self) -> Format:
        return get_format("deepseek_v3_thinking")

    def _open(self, messages: Sequence[Said], role: str) -> Writing:
        if role != "assistant":
            return [USER]
        return [] if _after_result(messages, len(messages)) else [ASSISTANT, OPEN]

    def _answer(self, messages: Sequence[Said], index: int, target: bool) -> Written:
        message = messages[index]
        after_result = _after_result(messages, index)
        if not self._keeps(messages, index, target):
            header: Writing = [] if after_result else [ASSISTANT, CLOSE]
            return Written(header, [message.text, *self._end(message)])
        pieces = message.pieces
        first = pieces[0].text if pieces and pieces[0].thinks else ""
        body: Writing = [OPEN] if after_result else []
        body += (first, CLOSE)
        for piece in pieces[1:] if first else pieces:
            body += (OPEN, piece.text, CLOSE) if piece.thinks else (piece.text,)
        return Written([] if after_result else [ASSISTANT, OPEN], body + self._end(message))

    def _keeps(self, messages: Sequence[Said], index: int, target: bool) -> bool:
        """Whether a message is written with a block of thinking, if only an empty one."""
        if target or self.history == "keep":
            return True
        user = last_user([said.role for said in messages])
        return self.history == "turn" and messages[index].thinks and index > user

    @property
    def has_extension_property(self) -> bool:
        """Only when all thinking is kept: else an earlier answer loses it."""
        return self.history == "keep"


class DeepSeekV3DisableThinking(_DeepSeekV3):
    """DeepSeek V3.1 without thinking: the prompt ends with the closer."""

    name = "deepseekv3_disable_thinking"
    histories: ClassVar[tuple[History, ...]] = ("strip",)

    def _make_format(self) -> Format:
        return get_format("deepseek_v3")

    def _open(self, messages: Sequence[Said], role: str) -> Writing:
        if role != "assistant":
            return [USER]
        return [] if _after_result(messages, len(messages)) else [ASSISTANT, CLOSE]

    def _answer(self, messages: Sequence[Said], index: int, target: bool) -> Written:
        message = messages[index]
        return Written(self._open(messages[:index], "assistant"), [message.text, *self._end(message)])

    @property
    def has_extension_property(self) -> bool:
        """Always: an answer is written the same way wherever it stands."""
        return True


def _after_result(messages: Sequence[Said], index: int) -> bool:
    """Whether an answer follows a tool's result, where no token names the assistant."""
    return index > 0 and messages[index - 1].role == "tool"


def _declared(message: Said) -> Writing:
    """The system's text, and the tools that it declares as the model's documentation asks for."""
    if not message.tools:
        return [message.text]
    writing: Writing = [
        f"{message.text}\n\n" if message.text else "",
        "## Tools\nYou have access to the following tools:\n",
    ]
    for tool in message.tools:
        schema = json.dumps(tool.get("parameters") or {}, ensure_ascii=False)
        writing.append(f"\n### {tool['name']}\nDescription: {tool.get('description', '')}\n\nParameters: {schema}\n")
    return [
        *writing,
        "\nIMPORTANT: ALWAYS adhere to this exact format for tool use:\n",
        *(SECTION, CALL, "tool_call_name", SEPARATOR, "tool_call_arguments", CALL_CLOSE, "{additional_tool_calls}"),
        SECTION_CLOSE,
        "\n\nWhere:\n- `tool_call_name` must be an exact match to one of the available tools\n"
        "- `tool_call_arguments` must be valid JSON that strictly follows the tool's Parameters Schema\n"
        "- For multiple tool calls, chain them directly without separators or spaces\n",
    ]
