"""OpenTelemetry: replies in spans by the GenAI conventions, thoughts as parts of their own.

A span says how a reply ended, what it cost, and how much of it was thought; with the conventions' own variable
(`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`) or `content=True` also its messages, with `reasoning`, `text` and
`tool_call` parts in their order. The names are those of `dialects/_telemetry.py`, which the gateway writes too. Which
exporter sends spans, and what else stands in them (`gen_ai.request.model`, ...), is the caller's.

    with tracer.start_as_current_span("chat m"):
        for event in split(chunks, "qwen3"):           # raw text in, events of asides out
            ...
    writer = OtelWriter(span)                          # or events of asides in
    writer.feed(event), writer.finish()
    span.set_attributes(attributes(message))           # or a whole message
"""

from __future__ import annotations

from ._hosts import require_host

require_host("opentelemetry-api")

import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from contextlib import aclosing
from typing import Any, Unpack

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode

from .._engine.format import Format
from ..dialects import _telemetry as telemetry
from ..dialects._telemetry import Value
from ..events import Event
from ..message import Message
from ..parts import Text, Thinking, ToolCall
from ..policies import DEFAULTS, Policies, PolicyOptions
from ..reply._fold import Fold
from ..reply._items import Ended, Failed, ReplyEvent, ReplyItem, Usage
from ..reply._reply import Reply
from ._events import aread, read

__all__ = ["OtelWriter", "asplit", "attributes", "from_message", "split", "usage"]


class OtelWriter:
    """Writes one reply into a span: make it when the request is sent, feed it what comes, finish it."""

    def __init__(self, span: Span | None = None, *, content: bool | None = None) -> None:
        """`span`: the current one unless given. `content`: whether it gets the messages; None: as the variable says."""
        self._span = trace.get_current_span() if span is None else span
        self._content = content
        self._started = time.monotonic()
        self._fold = Fold(clock=time.monotonic, started=self._started)
        self._first: float | None = None
        self._ended = False
        self._failed: Failed | None = None

    def feed(self, item: Event | ReplyItem) -> None:
        """Take an event of asides, or an item of a `Splitter` or client: they have more in them (usage, the end)."""
        if self._first is None:
            self._first = time.monotonic() - self._started
        if isinstance(item, Ended):
            self._ended = True
        elif isinstance(item, Failed):
            self._failed = item
        self._fold.add(item)

    def _pass_on(self, item: ReplyEvent) -> tuple[Event]:
        """Take an item, and give its event."""
        self.feed(item)
        return (item.event,)

    def finish(self, *, cut: bool = False) -> dict[str, Value]:
        """Write the span's attributes, and return them. `cut`: the reply was given up before its end."""
        if not (self._ended or self._failed or cut):
            # Nothing but events came, so that no server has said why it ended.
            self._fold.add(_end(self._fold.reply.parts))
        reply = self._fold.reply
        found = attributes(reply, content=self._content)
        if self._first is not None:
            found[telemetry.FIRST_CHUNK] = self._first
        if self._failed is not None:
            found["error.type"] = self._failed.code or self._failed.kind
            self._span.set_status(Status(StatusCode.ERROR, self._failed.message))
        self._span.set_attributes(found)
        return found


def split(
    chunks: Iterable[str],
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    span: Span | None = None,
    content: bool | None = None,
    **options: Unpack[PolicyOptions],
) -> Iterator[Event]:
    """The events of a stream of raw text, as `asides.split`, and the reply in a span: the current one unless given."""
    writer = OtelWriter(span, content=content)
    cut = True
    try:
        yield from read(chunks, format, policies.but(**options), writer._pass_on, model)
        cut = False
    finally:
        writer.finish(cut=cut)


async def asplit(
    chunks: AsyncIterable[str],
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    span: Span | None = None,
    content: bool | None = None,
    **options: Unpack[PolicyOptions],
) -> AsyncIterator[Event]:
    """The events of an asynchronous stream of raw text, as `split`."""
    writer = OtelWriter(span, content=content)
    cut = True
    try:
        async with aclosing(aread(chunks, format, policies.but(**options), writer._pass_on, model)) as events:
            async for event in events:
                yield event
        cut = False
    finally:
        writer.finish(cut=cut)


def attributes(message: Message | Reply, *, content: bool | None = None) -> dict[str, Value]:
    """What a span says of a whole message; `content` as for `OtelWriter`."""
    reply = _reply(message)
    thinking = sum(len(part.text) for part in reply.parts if isinstance(part, Thinking))
    answer = sum(
        len(part.arguments if isinstance(part, ToolCall) else part.text)
        for part in reply.parts
        if not isinstance(part, Thinking)
    )
    times = reply.times
    found = {
        **telemetry.reply_attributes([reply], reply.usage),
        **telemetry.thinking_attributes(
            first_thought=times.first_thought, first_answer=times.first_answer, thinking=thinking, answer=answer
        ),
        "asides.notices": tuple(notice.code for notice in reply.notices),
    }
    if telemetry.captures_content() if content is None else content:
        found[telemetry.OUTPUT_MESSAGES] = telemetry.write_messages([telemetry.output_message(reply)])
    return telemetry.present(found)


def from_message(message: Message | Reply) -> dict[str, Any]:
    """A whole message as one of `gen_ai.output.messages`."""
    return telemetry.output_message(_reply(message))


def usage(usage: Usage) -> dict[str, Value]:
    """What a reply cost, as attributes."""
    return telemetry.present(telemetry.usage_attributes(usage))


def _reply(message: Message | Reply) -> Reply:
    return message if isinstance(message, Reply) else Reply.of(message, reason=_end(message.parts).reason)


def _end(parts: tuple[Any, ...]) -> Ended:
    """The end of a reply where no server says why it ended: with something open, it was too long."""
    cut = bool(parts) and not isinstance(parts[-1], Text) and not parts[-1].complete
    return Ended(0, "length" if cut else "stop")
