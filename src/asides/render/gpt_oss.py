"""gpt-oss: harmony. Thinking, preambles, answers and calls are messages of their own, in channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from ..policies import Start
from .base import RenderedMessage, Renderer, Segments, TemplateToken
from .messages import ChatMessage, EarlierThinking, RendererError
from .typescript import declarations

START, CHANNEL, MESSAGE = map(TemplateToken, ("<|start|>", "<|channel|>", "<|message|>"))
CONSTRAIN, END, RETURN, CALL = map(TemplateToken, ("<|constrain|>", "<|end|>", "<|return|>", "<|call|>"))
Effort = Literal["low", "medium", "high"]


class GptOss(Renderer):
    """gpt-oss. With `effort` a system message in the family's own words stands first; without it there is none."""

    histories: ClassVar[tuple[EarlierThinking, ...]] = ("keep", "turn", "strip")
    stops: ClassVar[tuple[str, ...]] = ("<|return|>", "<|call|>")
    start: ClassVar[Start | None] = None

    def __init__(
        self, tokenizer: Any, *, effort: Effort | None = None, date: str | None = None, **options: Any
    ) -> None:
        super().__init__(tokenizer, **options)
        if effort not in (None, "low", "medium", "high"):
            raise RendererError(f"effort is low, medium or high, not {effort!r}")
        self.effort = effort
        """The effort that the system message asks for; None leaves that message out."""
        self.date = date
        """The date that the system message names, if any."""

    def _prepare(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        if self.effort is None:
            return messages
        return [
            ChatMessage("gpt_oss_system", tools=tuple(tool for message in messages for tool in message.tools)),
            *messages,
        ]

    def _write(self, messages: Sequence[ChatMessage], index: int, target: bool) -> RenderedMessage:
        message = messages[index]
        if message.role == "assistant":
            return RenderedMessage(self._open(messages, "assistant"), self._answer(messages, index, target))
        if message.role == "gpt_oss_system":
            return RenderedMessage([START, "system"], [MESSAGE, self._system(bool(message.tools)), END])
        if message.role in ("system", "developer"):
            return RenderedMessage([START, "developer"], [MESSAGE, _developer(message), END])
        if message.role == "tool":
            header = [START, f"functions.{_tool(messages, index)} to=assistant"]
            return RenderedMessage(header, [CHANNEL, "commentary", MESSAGE, message.text, END])
        return RenderedMessage(self._open(messages, message.role), [MESSAGE, message.text, END])

    def _open(self, messages: Sequence[ChatMessage], role: str) -> Segments:
        return [START, role]

    def _answer(self, messages: Sequence[ChatMessage], index: int, target: bool) -> Segments:
        message = self._visible(messages, index, target)
        parts: list[Segments] = []
        for number, part in enumerate(message.parts):
            last = not message.calls and number == len(message.parts) - 1
            channel = "analysis" if part.thinks else "final" if last else "commentary"
            parts.append([CHANNEL, channel, MESSAGE, part.text, END])
        for call in message.calls:
            header = f" to=functions.{call.name}"
            parts.append([header, CHANNEL, "commentary ", CONSTRAIN, "json", MESSAGE, call.arguments, CALL])
        if not parts:
            parts.append([CHANNEL, "final", MESSAGE, END])
        if target and not message.calls:
            parts[-1][-1] = RETURN
        # The first one's header is the prompt's.
        return parts[0] + [segment for part in parts[1:] for segment in (START, "assistant", *part)]

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


def _developer(message: ChatMessage) -> str:
    text = f"# Instructions\n\n{message.text}\n\n" if message.text or not message.tools else ""
    return f"{text}# Tools\n\n## functions\n\n{declarations(message.tools)}" if message.tools else text


def _tool(messages: Sequence[ChatMessage], index: int) -> str:
    """The function whose result this is: by its name, else by the call that it answers."""
    message = messages[index]
    if message.name:
        return message.name
    calls = [call for earlier in messages[:index] for call in earlier.calls]
    answered = [call for call in calls if call.id and call.id == message.call_id]
    if not answered:
        raise RendererError("gpt_oss: a tool's result needs the function's name, or the id of a call before it")
    return answered[-1].name
