"""Calls that an upstream has already read, in chunks; and what is wrong with one that may not be run.

The name of such a call may come before its arguments, its id after both, and either may never come. A call begins when
its name is known; when it ends, its arguments are judged as the parser judges those that it reads itself.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .._engine.call_sink import MESSAGES
from .._engine.calls.json_scan import JsonScanner, repeated_key
from .._engine.format import Format
from ..events import NOTICES, Event, Notice, NoticeCode, PartEnd, PartStart, ToolCallDelta
from ._items import CallChunk, ReplyEvent, ReplyItem


class SeparatedCall:
    """A call that the upstream has already read, in chunks."""

    def __init__(self, index: int, made_id: str) -> None:
        self.index = index
        self.begun = False
        """Whether its start is out."""
        self.extra: dict[str, Any] | None = None
        """Fields of the upstream's own that are not out yet."""
        self._made_id = made_id
        self._id = ""
        self._name = ""
        self._arguments: list[str] = []
        self.error: str | None = None
        """Why it may not be run, once it is over."""

    @property
    def written(self) -> str:
        """What is known of a call that may not be run."""
        arguments = "".join(self._arguments)
        return f'{{"name": "{self._name}", "arguments": {arguments}' if self._name else arguments

    def feed(self, chunk: CallChunk) -> list[Event]:
        self._id = self._id or chunk.id
        self._name = self._name or chunk.name
        if chunk.arguments:
            self._arguments.append(chunk.arguments)
        if chunk.extra:
            self.extra = {**(self.extra or {}), **chunk.extra}
        if self.begun:
            return [ToolCallDelta(self.index, chunk.arguments)] if chunk.arguments else []
        # A part's start cannot be changed once it is out, so a call begins when its name has come. An id that comes
        # even later is not used.
        return self._begin() if self._name else []

    def _begin(self) -> list[Event]:
        self.begun = True
        events: list[Event] = [PartStart(self.index, "tool_call", "", self._name, self._id or self._made_id)]
        arguments = "".join(self._arguments)
        if arguments:
            events.append(ToolCallDelta(self.index, arguments))
        return events

    def with_extra(self, items: list[ReplyItem], choice: int) -> list[ReplyItem]:
        """Items of the call with the fields that came for it; they wait until it has begun."""
        if not self.begun or not self.extra:
            return items
        extra, self.extra = self.extra, None
        # With the first item of the call: clients look for them beside its name.
        for place, item in enumerate(items):
            event = item.event if isinstance(item, ReplyEvent) else None
            if isinstance(event, PartStart | ToolCallDelta) and event.index == self.index:
                return [*items[:place], msgspec.structs.replace(item, extra=extra), *items[place + 1 :]]
        # Fields alone make an empty delta: no event says that nothing but these came.
        return [*items, ReplyEvent(choice, ToolCallDelta(self.index, ""), extra=extra)]

    def finish(self, cut: bool) -> list[Event]:
        events = [] if self.begun else self._begin()
        # Servers send no arguments at all for a function without parameters. In a reply that was cut off, the same
        # silence means that they had not come yet.
        if not self._arguments and self._name and not cut:
            self._arguments.append("{}")  # a call without arguments
            events.append(ToolCallDelta(self.index, "{}"))
        error, message = find_fault("".join(self._arguments)) if self._name else ("no_name", MESSAGES["no_name"])
        self.error = error
        if error is not None:
            code: NoticeCode = "incomplete_call" if error == "incomplete" else "unreadable_call"
            events.append(Notice(code, NOTICES[code], 0))
        events.append(PartEnd(self.index, error != "incomplete", error, error_message=message))
        return events


def find_fault(arguments: str) -> tuple[str | None, str]:
    """Why a call with these arguments may not be run: the code, and in words."""
    keys: list[str] = []
    scanner = JsonScanner(keys.append)
    at, before = 0, -1
    while at > before or scanner.error is None:
        if scanner.done or at == len(arguments):
            break
        before, at = at, scanner.scan(arguments, at, len(arguments), True)
        if at == before:
            break
    if not scanner.done:
        return "incomplete", MESSAGES["incomplete"]
    if scanner.error is not None or arguments[at:].strip():
        reason = scanner.error or "something follows the object"
        return "invalid_json", f"{MESSAGES['invalid_json']}: {reason}"
    if not arguments.lstrip().startswith("{"):
        return "not_object", MESSAGES["not_object"]
    if (key := repeated_key(keys)) is not None:
        return "duplicate_argument", f"the argument {key!r} is given twice"
    return None, ""


def without_markers(raw: str, format: Format) -> str:
    """What the model wrote of a call, without the markers around it."""
    if format.header is not None and format.header.body:
        raw = raw.partition(format.header.body)[2] or raw
    for syntax in (*format.calls, *(format.header.calls if format.header is not None else ())):
        for marker in syntax.openers:
            raw = raw.removeprefix(marker)
        for marker in syntax.closers:
            raw = raw.rstrip().removesuffix(marker)
    return raw.strip()
