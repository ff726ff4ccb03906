"""From events to a `Message`: the parts in their order, and what can be said of the whole.

`Message` is what the parser gives: it holds the raw text too. `Collector` is the fold from events to parts that it
shares with `asides.reply.Reply`, the record of a reply that came from a server. `OpenCalls` makes one part at a time.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Literal

import msgspec

from .events import Event, Notice, PartEnd, PartStart, ToolCallDelta
from .parts import Part, Span, Text, Thinking, ToolCall

Termination = Literal["stop", "end", "cut"]
"""How output ended: by a stop marker, with nothing open, or inside a thought or a call."""


class Message(msgspec.Struct, frozen=True):
    """What a model wrote, taken apart."""

    parts: tuple[Part, ...] = ()
    """The `Thinking`, `Text` and `ToolCall` parts in the order of writing; any number, any order."""
    raw: str = ""
    """The input, unchanged."""
    notices: tuple[Notice, ...] = ()
    """What was odd and tolerated, in the order in which it was found."""
    termination: Termination = "end"
    """`stop`: a stop marker was seen. `end`: none, but nothing was open. `cut`: thinking or a call was open."""
    thinking: str = ""
    """The thinking parts joined, each with the `gap` of its `PartStart` before it."""
    text: str = ""
    """The text parts joined, as a person would want to read them."""
    roles: tuple[str, ...] = ()
    """Where token ids were read, one for each id: thinking, text, call, marker or other. None where text was read."""

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
        """The `PartStart` of every part so far, in the order in which they came."""
        self._ends: dict[int, PartEnd] = {}
        self.texts: dict[int, list[str]] = {}
        """By index: the argument text of a call; where there is no raw text, also that of the other parts."""
        self.raw: dict[int, str] = {}
        """By index: what the model wrote of a call, where there is no raw text to cut it from."""
        self.notices: list[Notice] = []
        """The notices so far."""
        self.pending: list[Event] = []
        """Events that were appended and are not counted in yet."""

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


class OpenCalls:
    """Builds each call at the moment when it ends, for those who pass calls on whole and one by one.

    To make all parts so far anew for each call would cost the square of their number.
    """

    __slots__ = ("_open",)

    def __init__(self) -> None:
        # By index: calls that a server has split off may end together.
        self._open: dict[int, tuple[PartStart, list[str]]] = {}

    def add(self, event: Event, raw: str = "") -> ToolCall | None:
        """Take note of an event; the call, if one ends with it. `raw`: what the model wrote of it."""
        if isinstance(event, ToolCallDelta):
            self._open[event.index][1].append(event.text)
        elif isinstance(event, PartStart):
            if event.kind == "tool_call":
                self._open[event.index] = (event, [])
        elif isinstance(event, PartEnd) and event.index in self._open:
            start, pieces = self._open.pop(event.index)
            outcome = (event.complete, event.error, event.error_message)
            return ToolCall(start.name, "".join(pieces), start.id, *outcome, raw, event.span)
        return None

    def cut(self) -> list[PartEnd]:
        """The ends of calls that never came to theirs, where a stream was given up."""
        return [PartEnd(index, False, "incomplete", error_message="the reply ended inside it") for index in self._open]
