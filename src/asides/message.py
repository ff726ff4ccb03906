"""From events to a `Message`: the parts in their order, and what can be said of the whole."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .events import Event, Notice, PartEnd, PartStart, ToolCallDelta
from .parts import Part, Text, Thinking, ToolCall

Termination = Literal["stop", "end", "cut"]


class Message(msgspec.Struct, frozen=True):
    """What a model wrote, taken apart."""

    parts: tuple[Part, ...] = ()
    """In the order of writing; any number, any order."""
    raw: str = ""
    """The input, unchanged."""
    notices: tuple[Notice, ...] = ()
    """What was odd."""
    termination: Termination = "end"
    """`stop`: a stop marker was seen. `end`: none, but nothing was open. `cut`: thinking or a call was open."""
    thinking: str = ""
    """The thinking parts joined."""
    text: str = ""
    """The text parts joined, as a person would want to read them."""
    roles: tuple[str, ...] = ()
    """Where ids were read, what each is: thinking, text, call, marker or other."""

    def token_roles(self) -> tuple[str, ...]:
        """What each id is: `thinking`, `text`, `call`, `marker` or `other`. Empty where no ids were read."""
        return self.roles

    def mask(self, role: str) -> list[bool]:
        """For each id, whether it has this role."""
        return [found == role for found in self.roles]

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order, the broken ones too."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def complete(self) -> bool:
        """False when the last part is an incomplete thinking or call."""
        last = self.parts[-1] if self.parts else None
        return isinstance(last, Text) or last is None or last.complete

    def to_dict(self) -> dict[str, Any]:
        """The message as plain data, calls in OpenAI's shape."""
        content: list[dict[str, Any]] = []
        for part in self.parts:
            if isinstance(part, Thinking):
                content.append({"type": "thinking", "thinking": part.text})
            elif isinstance(part, Text):
                content.append({"type": "text", "text": part.text})
        thinks = any(isinstance(part, Thinking) for part in self.parts)
        message: dict[str, Any] = {"role": "assistant", "content": content if thinks else self.text}
        runnable = [call.to_dict() for call in self.tool_calls if call.error is None]
        unparsed = [{"raw": call.raw, "error": call.error} for call in self.tool_calls if call.error is not None]
        if runnable:
            message["tool_calls"] = runnable
        if unparsed:
            message["unparsed_tool_calls"] = unparsed
        return message


class Collector:
    """Gathers what a message needs of the events as they are released. Texts are cut from the raw text at the end."""

    __slots__ = ("_arguments", "_ends", "_starts", "notices")

    def __init__(self) -> None:
        self._starts: list[PartStart] = []
        self._ends: list[PartEnd] = []
        self._arguments: dict[int, list[str]] = {}
        self.notices: list[Notice] = []

    def add(self, event: Event) -> None:
        """Take note of an event. Parts end in the order in which they start."""
        if isinstance(event, PartStart):
            self._starts.append(event)
        elif isinstance(event, PartEnd):
            self._ends.append(event)
        elif isinstance(event, ToolCallDelta):
            self._arguments.setdefault(event.index, []).append(event.text)
        elif isinstance(event, Notice):
            self.notices.append(event)

    def message(self, raw: str, open_span: tuple[int, int], termination: Termination) -> Message:
        """The message so far. A part that has not ended stands at `open_span`."""
        parts: list[Part] = []
        joined: dict[str, list[str]] = {"thinking": [], "text": []}
        for index, start in enumerate(self._starts):
            end = self._ends[index] if index < len(self._ends) else PartEnd(index, False, "incomplete", open_span)
            words = raw[end.span[0] : end.span[1]]
            if start.kind == "tool_call":
                arguments = "".join(self._arguments.get(start.index, ()))
                parts.append(
                    ToolCall(
                        start.name,
                        arguments,
                        start.id,
                        end.complete,
                        end.error,
                        end.error_message,
                        words,
                        end.span,
                    )
                )
                continue
            joined[start.kind] += (start.gap, words)
            if start.kind == "thinking":
                parts.append(Thinking(words, end.complete, end.span))
            else:
                parts.append(Text(words, end.span))
        thinking, text = ("".join(joined[kind]) for kind in ("thinking", "text"))
        return Message(tuple(parts), raw, tuple(self.notices), termination, thinking, text)
