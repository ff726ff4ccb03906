"""AG-UI: replies as the protocol's events, thoughts as `REASONING_*`, calls only where they may be run.

Each part is a message of its own, in the order of writing: a thought is a reasoning message in a span of its own, a
text an assistant message, and a call belongs to the assistant message directly before it. A call is held until it is
whole, because a client may run one at its `TOOL_CALL_END`; one that may not be run is an activity (`BROKEN_CALL`),
which keeps its place among the messages and is never run. Notices are custom events (`NOTICE`). The events of a run
(`RUN_STARTED`, `RUN_FINISHED`, `RUN_ERROR`) are the agent's own: it has their ids. So is a snapshot of the
conversation, which an agent sends after the notice `retyped`: with `from_message` it replaces what was sent as the
other kind.

    for event in split(chunks, "qwen3"):               # raw text in
        yield encoder.encode(event)
    writer = AguiWriter()                                  # or events of asides in
    writer.feed(event), writer.finish()
    from_message(asides.parse(text))                   # messages to keep
"""

from __future__ import annotations

from ._hosts import require_host

require_host("ag-ui-protocol")

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, Unpack

import msgspec
from ag_ui.core import (
    ActivityMessage,
    ActivitySnapshotEvent,
    AssistantMessage,
    BaseEvent,
    CustomEvent,
    FunctionCall,
    ReasoningEndEvent,
    ReasoningMessage,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from ag_ui.core import ToolCall as AguiToolCall

from .._engine.format import Format
from ..events import Event, Notice, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from ..message import Message, OpenCalls
from ..parts import Text, Thinking, ToolCall
from ..policies import DEFAULTS, Policies, PolicyOptions
from ..reply._call_ids import CallIds
from ..reply._items import ReplyEvent, Usage
from ..reply._reply import Reply
from ._events import aread, event_of, read
from ._ids import make_prefix

__all__ = ["BROKEN_CALL", "NOTICE", "AguiWriter", "asplit", "from_message", "split", "usage"]

BROKEN_CALL = "asides.broken_call"
"""The type of the activity that a call is which may not be run."""
NOTICE = "asides.notice"
"""The name of the custom event that a notice is."""

CUT_OFF: dict[str, Any] = {"asides": {"complete": False}}
"""The metadata of a thought that was cut off."""


class AguiWriter:
    """Turns the events of one reply into events of AG-UI; of several choices, the first."""

    def __init__(self, *, seed: int | None = None) -> None:
        """`seed`: what the ids of messages depend on; random unless given, because ids are those of a conversation."""
        self._prefix = make_prefix(seed)
        self._calls = OpenCalls()
        self._call_ids = CallIds()
        self._open: PartStart | None = None
        """The thought or text that has begun and not ended."""
        self._words: list[str] = []
        """Those of the open thought: where it turns out to be the answer, they are needed again."""
        self._again = -1
        """The part whose words were sent as a thought and then as the answer."""
        self._parent = ""
        """The assistant message that was written last, if nothing came behind it: a call belongs to it."""

    def feed(self, event: Event | ReplyEvent) -> list[BaseEvent]:
        """The protocol's events for one of asides: of a `Parser`, or of a `Splitter` or client, with more in it."""
        if isinstance(event, ReplyEvent) and event.choice:
            return []
        event, raw = event_of(event)
        match event:
            case TextDelta(text="") | ThinkingDelta(text=""):
                return []  # a signature comes with an empty text, which clients refuse
            case TextDelta():
                return [TextMessageContentEvent(message_id=self._id(event.index), delta=event.text)]
            case ThinkingDelta():
                self._words.append(event.text)
                return [ReasoningMessageContentEvent(message_id=self._id(event.index), delta=event.text)]
            case ToolCallDelta():
                self._calls.add(event)
                return []
            case PartStart():
                return self._start(event)
            case PartEnd():
                return self._end(event, raw)
            case Retyped():
                return self._retype(event, raw)
            case Notice():
                return [CustomEvent(name=NOTICE, value=msgspec.to_builtins(event))]
        raise TypeError(f"an event of asides is needed, not {type(event).__name__}")

    def finish(self) -> list[BaseEvent]:
        """Close what is open. Only needed where a stream was given up: a parser that has finished leaves nothing."""
        events = [] if self._open is None else self._end(PartEnd(self._open.index, False), "")
        for end in self._calls.cut():
            events += self._end(end, "")
        return events

    def _id(self, index: int) -> str:
        return f"{self._prefix}_{index}{'_text' if index == self._again else ''}"

    def _start(self, start: PartStart) -> list[BaseEvent]:
        if start.kind == "tool_call":
            self._calls.add(msgspec.structs.replace(start, id=self._call_ids.give(start.id, start.index)))
            return []
        self._open, self._words = start, []
        message = self._id(start.index)
        # Messages of their own are not joined, so the gap between two is not written.
        if start.kind == "text":
            self._parent = message
            return [TextMessageStartEvent(message_id=message, role="assistant")]
        self._parent = ""
        return [ReasoningStartEvent(message_id=message), ReasoningMessageStartEvent(message_id=message)]

    def _retype(self, event: Retyped, raw: str) -> list[BaseEvent]:
        """A message cannot become one of another kind. An answer that was sent as a thought is a message besides; a
        thought that was sent as an answer stays one until a snapshot."""
        if event.kind == "thinking":
            self._parent = ""
            return []
        words, closing = raw or "".join(self._words), self._end(PartEnd(event.index), "")
        self._again = event.index
        message = self._id(event.index)
        opening = self._start(PartStart(event.index, "text"))
        return [*closing, *opening, TextMessageContentEvent(message_id=message, delta=words)]

    def _end(self, end: PartEnd, raw: str) -> list[BaseEvent]:
        call = self._calls.add(end, raw)
        if call is not None:
            return self._call(call, self._id(end.index))
        start, self._open = self._open, None
        message = self._id(end.index)
        if start is None or start.kind == "text":
            return [TextMessageEndEvent(message_id=message)]
        metadata = None if end.complete else CUT_OFF
        return [ReasoningMessageEndEvent(message_id=message, metadata=metadata), ReasoningEndEvent(message_id=message)]

    def _call(self, call: ToolCall, message: str) -> list[BaseEvent]:
        if call.error is not None:
            self._parent = ""
            return [ActivitySnapshotEvent(message_id=message, activity_type=BROKEN_CALL, content=_broken(call))]
        self._parent = self._parent or message
        return [
            ToolCallStartEvent(tool_call_id=call.id, tool_call_name=call.name, parent_message_id=self._parent),
            ToolCallArgsEvent(tool_call_id=call.id, delta=call.arguments),
            ToolCallEndEvent(tool_call_id=call.id),
        ]


def split(
    chunks: Iterable[str],
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    **options: Unpack[PolicyOptions],
) -> Iterator[BaseEvent]:
    """The events of a stream of raw text. Ids depend on `seed`, which is random unless given."""
    chosen = policies.but(**options)
    return read(chunks, format, chosen, AguiWriter(seed=chosen.seed).feed, model)


def asplit(
    chunks: AsyncIterable[str],
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    **options: Unpack[PolicyOptions],
) -> AsyncIterator[BaseEvent]:
    """The events of an asynchronous stream of raw text, as `split`."""
    chosen = policies.but(**options)
    return aread(chunks, format, chosen, AguiWriter(seed=chosen.seed).feed, model)


def from_message(
    message: Message | Reply, *, seed: int | None = None
) -> list[ReasoningMessage | AssistantMessage | ActivityMessage]:
    """A whole message as messages to keep: those that a client builds from the events, with the same ids by `seed`."""
    prefix = make_prefix(seed)
    call_ids = CallIds()
    messages: list[ReasoningMessage | AssistantMessage | ActivityMessage] = []
    for index, part in enumerate(message.parts):
        id = f"{prefix}_{index}"
        match part:
            case Thinking():
                metadata = None if part.complete else CUT_OFF
                messages.append(ReasoningMessage(id=id, content=part.text, metadata=metadata))
            case Text():
                messages.append(AssistantMessage(id=id, content=part.text))
            case ToolCall():
                part = msgspec.structs.replace(part, id=call_ids.give(part.id, index))
                if part.error is not None:
                    messages.append(ActivityMessage(id=id, activity_type=BROKEN_CALL, content=_broken(part)))
                    continue
                last = messages[-1] if messages else None
                if not isinstance(last, AssistantMessage):
                    last = AssistantMessage(id=id)
                    messages.append(last)
                call = AguiToolCall(id=part.id, function=FunctionCall(name=part.name, arguments=part.arguments))
                last.tool_calls = [*(last.tool_calls or ()), call]
    return messages


def usage(usage: Usage, *, provider: str | None = None, model: str | None = None) -> TokenUsage:
    """What a reply cost, for the `usage` of `RUN_FINISHED` or `RUN_ERROR`."""
    return TokenUsage(
        provider=provider,
        model=model,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cached_input_tokens=usage.cached_tokens or None,
    )


def _broken(call: ToolCall) -> dict[str, Any]:
    """A call that may not be run, with all that is known of it."""
    return {
        "id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "error": call.error,
        "errorMessage": call.error_message,
        "raw": call.raw,
    }
