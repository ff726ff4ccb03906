"""From events to a `Message`: the parts in their order, and what can be said of the whole.

`Message` is what the parser gives: it holds the raw text too. `Collector` is the fold from events to parts that it
shares with `asides.reply.Reply`, the record of a reply that came from a server.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Literal

import msgspec

from .events import Event, Notice, PartEnd, PartStart, ToolCallDelta
from .parts import Part, Span, Text, Thinking, ToolCall

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
    """Builds parts from events: the one place that joins them, for the parser's `Message` and for a `Reply`.

    The parser holds the raw text, so its text and thinking are cut out by their spans at the end; it appends its events
    to `pending`, which costs no call, and `message` takes note of them. Who has no raw text puts deltas into `texts`.
    """

    __slots__ = ("_ends", "notices", "pending", "raw", "starts", "texts")

    def __init__(self) -> None:
        self.starts: list[PartStart] = []
        self._ends: dict[int, PartEnd] = {}
        self.texts: dict[int, list[str]] = {}
        """By index: the argument text of a call; where there is no raw text, also that of the other parts."""
        self.raw: dict[int, str] = {}
        """By index: what the model wrote of a call, where there is no raw text to cut it from."""
        self.notices: list[Notice] = []
        self.pending: list[Event] = []
        """Events that have not been taken note of."""

    def add(self, event: Event) -> None:
        """Take note of an event."""
        if isinstance(event, PartStart):
            self.starts.append(event)
        elif isinstance(event, PartEnd):
            self._ends[event.index] = event
        elif isinstance(event, ToolCallDelta):
            self.texts.setdefault(event.index, []).append(event.text)
        elif isinstance(event, Notice):
            self.notices.append(event)

    def parts(self, raw: str | None = None, open_span: Span = (0, 0)) -> tuple[tuple[Part, ...], str, str]:
        """The parts so far, thinking joined, text joined. A part that has not ended stands at `open_span`."""
        parts: list[Part] = []
        thinking: list[str] = []
        text: list[str] = []
        # A server may open a call before it names it, and name a later one first.
        starts = self.starts if raw is not None else sorted(self.starts, key=attrgetter("index"))
        for start in starts:
            index, kind = start.index, start.kind
            end = self._ends.get(index) or PartEnd(index, False, "incomplete", open_span)
            if kind == "tool_call":
                arguments = "".join(self.texts.get(index, ()))
                written = self.raw.get(index, "") if raw is None else raw[end.span[0] : end.span[1]]
                outcome = (end.complete, end.error, end.error_message)
                parts.append(ToolCall(start.name, arguments, start.id, *outcome, written, end.span))
                continue
            content = "".join(self.texts[index]) if raw is None else raw[end.span[0] : end.span[1]]
            if kind == "thinking":
                thinking += (start.gap, content)
                parts.append(Thinking(content, end.complete, end.span))
            else:
                text += (start.gap, content)
                parts.append(Text(content, end.span))
        return tuple(parts), "".join(thinking), "".join(text)

    def message(self, raw: str, open_span: Span, termination: Termination) -> Message:
        """The message so far, its texts cut from `raw`."""
        for event in self.pending:
            self.add(event)
        self.pending.clear()
        parts, thinking, text = self.parts(raw, open_span)
        return Message(parts, raw, tuple(self.notices), termination, thinking, text)
