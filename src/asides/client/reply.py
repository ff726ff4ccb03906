"""A reply put together from its items, as far as it has come: what was thought, said and called. Knows no socket."""

from __future__ import annotations

from typing import Any

import msgspec

from ..events import Event, Notice, PartEnd, PartStart
from ..message import Message, Termination
from ..parts import Part, Text, Thinking, ToolCall
from ..reply.items import Begin, Ended, ReplyEvent, ReplyItem, Usage


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One whole reply, or what had come of it."""

    parts: tuple[Part, ...] = ()
    """In the order of writing. Spans and raw text are those of the server's words, where it sent words to be split."""
    thinking: str = ""
    """The thinking parts joined."""
    text: str = ""
    """The text parts joined: the clean answer."""
    reason: str = ""
    """Why it ended: `stop`, `length` or `content_filter`; empty where it has not ended."""
    notices: tuple[Notice, ...] = ()
    """What was odd."""
    usage: Usage | None = None
    """What it cost, where the server says so."""
    model: str = ""
    """The model's name, as the server gives it."""
    id: str = ""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order, the broken ones too."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def complete(self) -> bool:
        """False when it has not ended, was cut off, or its last part is an incomplete thinking or call."""
        last = self.parts[-1] if self.parts else None
        return self.reason in ("stop", "content_filter") and (last is None or isinstance(last, Text) or last.complete)

    @property
    def message(self) -> Message:
        """The same as the engine's message. It has no raw text: servers that split send none."""
        ended: Termination = "end" if self.complete else "cut"
        return Message(self.parts, "", self.notices, ended, self.thinking, self.text)

    def to_message(self) -> dict[str, Any]:
        """The message to put into the conversation: clean text, calls that may be run, and the thinking beside them.

        Thinking goes along only with calls: servers whose models need it there ask for it back, and nowhere else.
        """
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        calls = [call.to_dict() for call in self.tool_calls if call.error is None]
        if calls:
            message["tool_calls"] = calls
            if self.thinking:
                message["reasoning_content"] = self.thinking
        return message


class Gathering:
    """Takes the items of a reply one by one; `reply` is what has come so far. Only the first choice counts."""

    def __init__(self) -> None:
        self._starts: list[PartStart] = []
        self._ends: dict[int, PartEnd] = {}
        self._words: dict[int, list[str]] = {}
        self._written: dict[int, str] = {}
        self._notices: list[Notice] = []
        self._facts: dict[str, Any] = {}

    def add(self, item: ReplyItem) -> None:
        """Take note of an item."""
        if isinstance(item, ReplyEvent):
            if item.choice == 0:
                self._event(item.event)
                if item.written and isinstance(item.event, PartEnd):
                    self._written[item.event.index] = item.written
        elif isinstance(item, Begin):
            self._facts |= {"model": item.model, "id": item.id}
        elif isinstance(item, Usage):
            self._facts["usage"] = item
        elif isinstance(item, Ended) and item.choice == 0:
            self._facts["reason"] = item.reason

    def _event(self, event: Event) -> None:
        if isinstance(event, PartStart):
            self._starts.append(event)
        elif isinstance(event, PartEnd):
            self._ends[event.index] = event
        elif isinstance(event, Notice):
            self._notices.append(event)
        else:
            self._words.setdefault(event.index, []).append(event.text)

    @property
    def reply(self) -> Reply:
        """What has come so far."""
        parts: list[Part] = []
        joined: dict[str, list[str]] = {"thinking": [], "text": []}
        for start in self._starts:
            words = "".join(self._words.get(start.index, ()))
            end = self._ends.get(start.index) or PartEnd(start.index, False, "incomplete")
            if start.kind == "tool_call":
                written = self._written.get(start.index, "")
                parts.append(
                    ToolCall(start.name, words, start.id, end.complete, end.error, end.error_message, written, end.span)
                )
                continue
            joined[start.kind] += (start.gap, words)
            parts.append(Thinking(words, end.complete, end.span) if start.kind == "thinking" else Text(words, end.span))
        return Reply(
            parts=tuple(parts),
            thinking="".join(joined["thinking"]),
            text="".join(joined["text"]),
            notices=tuple(self._notices),
            **self._facts,
        )
