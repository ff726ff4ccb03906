"""Agent Client Protocol: replies as `session/update` notifications, thoughts as `agent_thought_chunk`.

Each thought and each text is a message with an id of its own, in the order of writing. A call is a tool call of the
session from its first character on: `pending` with its name, then its `rawInput` once it is whole. In this protocol the
agent runs its tools and the client only shows them, so nothing has to be held. A call that may not be run is `failed`,
with the model's own text as its content, and the error in `_meta`. The agent goes on from there with the same id.

    async for update in asplit(chunks, "qwen3"):       # raw text in
        await client.session_update(session, update)
    writer = AcpWriter()                               # or events of asides in
    writer.feed(event), writer.finish()
    from_message(message)                              # a reply of a session that is loaded again

The protocol has no update for notices: they are `AcpWriter.meta`, for the `_meta` of a `PromptResponse`, and logged.
"""

from __future__ import annotations

from ._hosts import require_host

require_host("agent-client-protocol")

import logging
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, TypeAlias, Unpack

import msgspec
from acp import start_tool_call, text_block, tool_content, update_tool_call
from acp.schema import AgentMessageChunk, AgentThoughtChunk, ToolCallProgress, ToolCallStart
from acp.schema import Usage as AcpUsage

from .._engine.format import Format
from ..dialects._whole_calls import to_object
from ..events import Event, Notice, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from ..message import Message, OpenCalls
from ..parts import ToolCall
from ..policies import DEFAULTS, Policies, PolicyOptions
from ..reply._call_ids import CallIds
from ..reply._items import ReplyEvent, Usage
from ..reply._reply import Reply
from ._events import aread, event_of, events_of, read
from ._ids import make_prefix

__all__ = ["AcpWriter", "Update", "asplit", "from_message", "split", "usage"]

Update: TypeAlias = AgentMessageChunk | AgentThoughtChunk | ToolCallStart | ToolCallProgress
"""What a reply becomes."""
UNNAMED = "unreadable call"
"""The title of a call whose name could not be read."""

_log = logging.getLogger(__name__)


class AcpWriter:
    """Turns the events of one reply into updates of a session; of several choices, the first."""

    def __init__(self, *, seed: int | None = None) -> None:
        """`seed`: what the ids of messages depend on; random unless given, because ids are those of a session."""
        self._prefix = make_prefix(seed)
        self._calls = OpenCalls()
        self._call_ids = CallIds()
        self._last = ""
        """The kind of the part that began last."""
        self._gap = ""
        """What to write before the next text."""
        self._apart = ""
        """What sets the next text apart from one that turned out to be a thought."""
        self._words: list[str] = []
        """Those of the open thought: where it turns out to be the answer, they are needed again."""
        self._notices: list[Notice] = []

    @property
    def meta(self) -> dict[str, Any] | None:
        """The notices so far, for `_meta`; None where nothing was odd."""
        return {"asides": {"notices": msgspec.to_builtins(self._notices)}} if self._notices else None

    def feed(self, event: Event | ReplyEvent) -> list[Update]:
        """The updates for one event of asides: of a `Parser`, or of a `Splitter` or client, with more in it."""
        if isinstance(event, ReplyEvent) and event.choice:
            return []
        event, raw = event_of(event)
        match event:
            case TextDelta() | ThinkingDelta():
                # A signature comes with an empty text.
                return [self._chunk(event)] if event.text else []
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
                self._notices.append(event)
                _log.info("%s at %d", event.code, event.offset)
                return []
        raise TypeError(f"an event of asides is needed, not {type(event).__name__}")

    def finish(self) -> list[Update]:
        """End the calls that are open. Only needed where a stream was given up: a parser leaves nothing open."""
        return [update for end in self._calls.cut() for update in self._end(end, "")]

    def _start(self, start: PartStart) -> list[Update]:
        # Clients that do not look at ids join neighbours of a kind; what stands apart needs no gap.
        self._gap = (start.gap or self._apart) if start.kind == self._last else ""
        self._last, self._apart, self._words = start.kind, "", []
        if start.kind != "tool_call":
            return []
        start = msgspec.structs.replace(start, id=self._call_ids.give(start.id, start.index))
        self._calls.add(start)
        return [start_tool_call(start.id, start.name or UNNAMED, status="pending")]

    def _retype(self, event: Retyped, raw: str) -> list[Update]:
        """Words cannot be taken back: those of a thought are set apart, those of an answer are a message besides."""
        if event.kind == "thinking":
            self._apart = "\n\n"
            return []
        self._last = "text"
        content = text_block(raw or "".join(self._words))
        id = f"{self._prefix}_{event.index}_text"
        return [AgentMessageChunk(session_update="agent_message_chunk", content=content, message_id=id)]

    def _chunk(self, delta: TextDelta | ThinkingDelta) -> Update:
        content, self._gap = text_block(self._gap + delta.text), ""
        id = f"{self._prefix}_{delta.index}"
        if isinstance(delta, TextDelta):
            return AgentMessageChunk(session_update="agent_message_chunk", content=content, message_id=id)
        self._words.append(delta.text)
        return AgentThoughtChunk(session_update="agent_thought_chunk", content=content, message_id=id)

    def _end(self, end: PartEnd, raw: str) -> list[Update]:
        call = self._calls.add(end, raw)
        if call is None:
            return []
        return [_broken(call) if call.error is not None else update_tool_call(call.id, raw_input=_input(call))]


def split(
    chunks: Iterable[str],
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    **options: Unpack[PolicyOptions],
) -> Iterator[Update]:
    """The updates of a stream of raw text. Ids depend on `seed`, which is random unless given."""
    chosen = policies.but(**options)
    return read(chunks, format, chosen, AcpWriter(seed=chosen.seed).feed, model)


def asplit(
    chunks: AsyncIterable[str],
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    **options: Unpack[PolicyOptions],
) -> AsyncIterator[Update]:
    """The updates of an asynchronous stream of raw text, as `split`."""
    chosen = policies.but(**options)
    return aread(chunks, format, chosen, AcpWriter(seed=chosen.seed).feed, model)


def from_message(message: Message | Reply, *, seed: int | None = None) -> list[Update]:
    """The updates of a whole message, each part in one piece: for a session that is loaded again."""
    writer = AcpWriter(seed=seed)
    return [update for item in events_of(message) for update in writer.feed(item)]


def usage(usage: Usage) -> AcpUsage:
    """What a reply cost, for a `PromptResponse`; `thoughtTokens` where they are known."""
    return AcpUsage(
        total_tokens=usage.input_tokens + usage.output_tokens,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        thought_tokens=usage.reasoning_tokens,
        cached_read_tokens=usage.cached_tokens or None,
    )


def _input(call: ToolCall) -> object:
    """The arguments of a call: the object, or their text where it is nested too deep for clients."""
    value = to_object(call.arguments)
    return call.arguments if value is None else value


def _broken(call: ToolCall) -> ToolCallProgress:
    """A call that may not be run: failed, with what the model wrote."""
    written = call.raw or call.arguments
    update = update_tool_call(
        call.id, status="failed", content=[tool_content(text_block(written))] if written else None
    )
    update.field_meta = {"asides": {"error": call.error, "errorMessage": call.error_message}}
    return update
