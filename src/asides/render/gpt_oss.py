"""gpt-oss: harmony. Thinking, preambles, answers and calls are messages of their own, told apart by their channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from .._engine.format import Format
from ..families import get_format
from ..policies import Start
from .base import Renderer, Token, Writing, Written, last_user
from .content import History, RendererError, Said
from .typescript import declarations

START, CHANNEL, MESSAGE = Token("<|start|>"), Token("<|channel|>"), Token("<|message|>")
CONSTRAIN, END, RETURN, CALL = Token("<|constrain|>"), Token("<|end|>"), Token("<|return|>"), Token("<|call|>")
Effort = Literal["low", "medium", "high"]


class GptOss(Renderer):
    """gpt-oss. With `effort` a system message in the family's own words stands first; without it there is none."""

    name = "gpt_oss"
    histories: ClassVar[tuple[History, ...]] = ("keep", "turn", "strip")
    stops = ("<|return|>", "<|call|>")
    start: ClassVar[Start | None] = None

    def __init__(
        self, tokenizer: Any, *, effort: Effort | None = None, date: str | None = None, **options: Any
    ) -> None:
        super().__init__(tokenizer, **options)
        if effort not in (None, "low", "medium", "high"):
            raise RendererError(f"effort is low, medium or high, not {effort!r}")
        self.effort = effort
        """How hard the model is told to think; None leaves the system message out."""
        self.date = date
        """The date that the system message names, if any."""

    def _make_format(self) -> Format:
        return get_format("harmony")

    def _prepare(self, messages: list[Said]) -> list[Said]:
        if self.effort is None:
            return messages
        return [Said("gpt_oss_system", tools=tuple(tool for said in messages for tool in said.tools)), *messages]

    def _write(self, messages: Sequence[Said], index: int, target: bool) -> Written:
        message = messages[index]
        if message.role == "assistant":
            return Written(self._open(messages, "assistant"), self._answer(messages, index, target))
        if message.role == "gpt_oss_system":
            return Written([START, "system"], [MESSAGE, self._system(bool(message.tools)), END])
        if message.role in ("system", "developer"):
            return Written([START, "developer"], [MESSAGE, _developer(message), END])
        if message.role == "tool":
            header = [START, f"functions.{_tool(messages, index)} to=assistant"]
            return Written(header, [CHANNEL, "commentary", MESSAGE, message.text, END])
        return Written(self._open(messages, message.role), [MESSAGE, message.text, END])

    def _open(self, messages: Sequence[Said], role: str) -> Writing:
        return [START, role]

    def _answer(self, messages: Sequence[Said], index: int, target: bool) -> Writing:
        message = messages[index] if self._keeps(messages, index, target) else messages[index].without_thinking()
        said: list[Writing] = []
        for number, piece in enumerate(message.pieces):
            if piece.thinks:
                channel = "analysis"
            else:
                last = not message.calls and number == len(message.pieces) - 1
                channel = "final" if last else "commentary"
            said.append([CHANNEL, channel, MESSAGE, piece.text, END])
        for call in message.calls:
            header = f" to=functions.{call.name}"
            said.append([header, CHANNEL, "commentary ", CONSTRAIN, "json", MESSAGE, call.arguments, CALL])
        if not said:
            said.append([CHANNEL, "final", MESSAGE, END])
        if target and not message.calls:
            said[-1][-1] = RETURN
        writing = list(said[0])
        for one in said[1:]:
            writing += (START, "assistant", *one)
        return writing

    def _keeps(self, messages: Sequence[Said], index: int, target: bool) -> bool:
        """Whether a message keeps its thinking."""
        if target or self.history == "keep":
            return True
        return self.history == "turn" and index > last_user([said.role for said in messages])

    def _system(self, tools: bool) -> str:
        lines = [
            "You are ChatGPT, a large language model trained by OpenAI.",
            "Knowledge cutoff: 2024-06",
            *([f"Current date: {self.date}"] if self.date else []),
            f"\nReasoning: {self.effort}",
            "\n# Valid channels: analysis, commentary, final. Channel must be included for every message.",
            *(["Calls to these tools must go to the commentary channel: 'functions'."] if tools else []),
        ]
        return "\n".join(lines)

    @property
    def has_extension_property(self) -> bool:
        """Never: the token that ends an answer is another one later on."""
        return False


def _developer(message: Said) -> str:
    text = f"# Instructions\n\n{message.text}\n\n" if message.text or not message.tools else ""
    return f"{text}# Tools\n\n## functions\n\n{declarations(message.tools)}" if message.tools else text


def _tool(messages: Sequence[Said], index: int) -> str:
    """The function whose result this is: by its name, else by the call that it answers."""
    message = messages[index]
    if message.name:
        return message.name
    answered = [call for said in messages[:index] for call in said.calls if call.id and call.id == message.call_id]
    if not answered:
        raise RendererError("gpt_oss: a tool's result needs the function's name, or the id of a call before it")
    return answered[-1].name
