"""A reply of pydantic-ai, read by the engine: the wrapped model's parts and events in, parts and events of our own out.

`SplitResponse` reads what the wrapped model's stream emits, one event after the other, and writes with the host's own
manager of parts. A reply that comes whole goes the same way, as one event for each part. Text goes through a
`Splitter`. Parts that the server has split off stay as they are, with all that they carry; the splitter only has to
know of thoughts among them, so that the text behind one is not searched for thoughts again.

A call that may not be run must not look to the host like one that may. The host takes empty arguments for `{}`, and a
call that was cut off behind its arguments has them complete: such arguments are made invalid (`_break_call`). The host
then does what it does for every call with invalid arguments, and asks the model again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pydantic_ai.messages import (
    Citation,
    ModelResponse,
    ModelResponsePart,
    ModelResponsePartDelta,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.usage import RequestUsage
from pydantic_core import from_json

from ..events import Notice, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from ..reading import Reading
from ..reply import RawText, ReplyEvent, ReplyItem, ThinkingChunk
from ..reply._call_ids import CallIds
from ._streams import aread_stream


@dataclass
class _Source:
    """A text of the wrapped model: what is known of it besides its characters, and what became of it."""

    part: TextPart
    """Its id, provider and details; no text."""
    key: Hashable = None
    """The first text part that was made of it, by its key among the parts."""
    parts: int = 0
    read: int = 0
    written: int = 0

    @property
    def is_untouched(self) -> bool:
        """Whether one text part was made of all of it, so that positions in it still hold."""
        return self.parts == 1 and self.read == self.written


@dataclass
class _Record:
    """What goes into the response's metadata: notices, and the calls that may not be run."""

    notices: list[dict[str, Any]] = field(default_factory=list)
    broken_calls: list[dict[str, Any]] = field(default_factory=list)
    retyped_characters: int = 0
    """How many characters of text turned out to be a thought once they were out."""

    def added_to(self, metadata: dict[str, Any] | None) -> dict[str, Any] | None:
        found = {name: value for name, value in vars(self).items() if value}
        return {**(metadata or {}), "asides": found} if found else metadata


class SplitResponse(StreamedResponse):
    """A reply that is taken apart as it comes. All but its parts is the wrapped model's."""

    def __init__(
        self,
        inner: StreamedResponse,
        parameters: ModelRequestParameters,
        reading: Reading,
        *,
        whole: bool = False,
    ) -> None:
        """`whole`: the reply is not streamed, so a lone closing marker makes all before it thinking."""
        super().__init__(parameters)
        self._inner = inner
        self._whole = whole
        reading = reading.but(tools=reading.policies.tools or _tools_of(parameters))
        self._splitter = reading.splitter(whole=whole, is_first=self._is_first)
        self._call_ids = CallIds()
        self._record = _Record()
        self._silent = True
        """Whether the wrapped model's stream has emitted nothing yet."""
        self._sources: dict[int, _Source] = {}
        self._source = _Source(TextPart(""))
        """The text that is being read."""
        self._reading = False
        """Whether text was read since something else began."""
        self._first = True
        """Whether the text that begins now is the first thing of the output."""
        self._own: set[int] = set()
        """The splitter's parts that were made of text; it counts those of the server too."""
        self._gap = ""
        self._apart = False
        """Whether a text that turned out to be a thought came last."""
        self._calls: set[int] = set()
        self._called = False

    def _is_first(self) -> bool:
        """Whether the text that begins now is the first thing of the output: asked once for each text."""
        first, self._first = self._first, False
        return first

    # What the host calls.

    def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        return aread_stream(self._inner, self._read, self._end)

    async def close_stream(self) -> None:
        """Close the wrapped model's stream."""
        await self._inner.cancel()

    def get_stream_cancel_errors(self) -> tuple[type[BaseException], ...]:
        """What the wrapped model's stream raises when it is closed."""
        return self._inner.get_stream_cancel_errors()

    def get(self) -> ModelResponse:
        """The reply as far as it has come."""
        if self.cancelled:
            self.release()
        response = self._inner.get()
        # What the provider has noted about the end counts; whether the end was reached is seen here.
        if self._finished or response.state == "suspended":
            self.state = response.state
        own = super().get()
        attempts = [*(own.failed_attempts or ()), *(response.failed_attempts or ())]
        return replace(self.finished(response), state=own.state, failed_attempts=attempts or None)

    @property
    def usage(self) -> RequestUsage:
        """What the reply has cost so far."""
        return self._inner.usage

    @property
    def model_name(self) -> str:
        """The model, as the reply names it."""
        return self._inner.model_name

    @property
    def provider_name(self) -> str | None:
        """The wrapped model's provider."""
        return self._inner.provider_name

    @property
    def provider_url(self) -> str | None:
        """The wrapped model's provider's address."""
        return self._inner.provider_url

    @property
    def timestamp(self) -> datetime:
        """When the reply began."""
        return self._inner.timestamp

    # Reading.

    def read_whole(self, parts: Iterable[ModelResponsePart]) -> None:
        """Read all parts of a reply."""
        for _ in self._read_parts(parts):
            pass
        self.release()

    def release(self) -> None:
        """Nothing more will come, or nobody reads on: put what is held back into the parts."""
        for _ in self._finish():
            pass

    def finished(self, response: ModelResponse) -> ModelResponse:
        """The wrapped model's reply with the parts that were made of its own."""
        reason = response.finish_reason
        return replace(
            response,
            parts=self._parts_manager.get_parts(),
            # Servers that leave calls in the text do not know of them.
            finish_reason="tool_call" if self._called and reason == "stop" else reason,
            metadata=self._record.added_to(response.metadata),
        )

    def _read_parts(self, parts: Iterable[ModelResponsePart]) -> Iterator[ModelResponseStreamEvent]:
        for index, part in enumerate(parts):
            yield from self._read_part(index, part)

    def _read(self, event: ModelResponseStreamEvent) -> Iterator[ModelResponseStreamEvent]:
        """Read an event. Ends of parts and final results are the host's to find anew in what comes out."""
        self._silent = False
        if isinstance(event, PartStartEvent):
            yield from self._read_part(event.index, event.part)
        elif isinstance(event, PartDeltaEvent):
            yield from self._read_delta(event.index, event.delta)

    def _read_part(self, index: int, part: ModelResponsePart) -> Iterator[ModelResponseStreamEvent]:
        yield from self._end_text()
        # In a stream an empty text has yet to come; in a whole reply it may carry an id that has to go back.
        if isinstance(part, TextPart) and (part.content or not self._whole):
            self._source = self._sources[index] = _Source(replace(part, content="", citations=None))
            yield from self._read_text(part.content)
            if part.citations:
                yield from self._cite(self._source, part.citations)
            return
        if isinstance(part, ThinkingPart):
            self._note_thought(part.content)
        yield self._parts_manager.handle_part(vendor_part_id=index, part=replace(part))

    def _read_delta(self, index: int, delta: ModelResponsePartDelta) -> Iterator[ModelResponseStreamEvent]:
        if isinstance(delta, TextPartDelta):
            yield from self._read_text_delta(self._sources[index], delta)
            return
        yield from self._end_text()
        if isinstance(delta, ThinkingPartDelta):
            self._note_thought(delta.content_delta or "")
            yield from self._parts_manager.handle_thinking_delta(
                vendor_part_id=index,
                content=delta.content_delta,
                signature=delta.signature_delta,
                provider_name=delta.provider_name,
                provider_details=delta.provider_details,
            )
        elif isinstance(delta, ToolCallPartDelta):
            yield from self._write_call(
                index,
                tool_name=delta.tool_name_delta,
                args=delta.args_delta,
                tool_call_id=delta.tool_call_id,
                provider_name=delta.provider_name,
                provider_details=delta.provider_details,
            )

    def _read_text_delta(self, source: _Source, delta: TextPartDelta) -> Iterator[ModelResponseStreamEvent]:
        if delta.content_delta:
            if source is not self._source:
                yield from self._end_text()
                self._source = source
            yield from self._read_text(delta.content_delta)
        if delta.provider_name is None and delta.provider_details is None and delta.citations_delta is None:
            return
        if delta.citations_delta is not None:
            yield from self._cite(source, delta.citations_delta)
        if source.key is None:
            source.part = replace(delta, content_delta="", citations_delta=None).apply(source.part)
        elif delta.provider_details is not None:
            yield from self._parts_manager.handle_text_delta(
                vendor_part_id=source.key,
                content="",
                provider_name=delta.provider_name,
                provider_details=delta.provider_details,
            )

    def _read_text(self, text: str) -> Iterator[ModelResponseStreamEvent]:
        if text:
            self._reading = True
            self._source.read += len(text)
            yield from self._write(self._splitter.feed(RawText(0, text)))

    def _note_thought(self, text: str) -> None:
        """The server has split off a thought: it is written as it came, and the splitter has to know of it."""
        self._first = False
        if text:
            self._splitter.feed(ThinkingChunk(0, text))

    def _end_text(self) -> Iterator[ModelResponseStreamEvent]:
        """Something else than text begins, or another text: release what is held back."""
        if self._reading:
            self._reading = False
            yield from self._write(self._splitter.feed(ThinkingChunk(0, "")))

    def _end(self, failed: bool) -> Iterator[ModelResponseStreamEvent]:
        """The stream is over."""
        # One that is complete from the beginning has parts and no events.
        if self._silent and not failed:
            yield from self._read_parts(self._inner.get().parts)
        yield from self._finish(failed)

    def _finish(self, failed: bool = False) -> Iterator[ModelResponseStreamEvent]:
        yield from self._write(self._splitter.finish("length" if failed else None))

    # Writing.

    def _write(self, items: list[ReplyItem]) -> Iterator[ModelResponseStreamEvent]:
        for item in items:
            if not isinstance(item, ReplyEvent):
                continue
            event = item.event
            if isinstance(event, Notice):
                self._record.notices.append({"code": event.code, "message": event.message, "offset": event.offset})
            elif isinstance(event, PartStart):
                yield from self._start(event)
            elif event.index not in self._own:
                continue  # one of the server's
            elif isinstance(event, PartEnd):
                if event.error is not None:
                    yield from self._break_call(item, event)
                elif event.index in self._calls:
                    self._called = True
            elif isinstance(event, Retyped):
                # Words cannot be taken back: those of a thought stay, and those of an answer are a text besides.
                self._apart = event.kind == "thinking"
                if event.kind == "thinking":
                    self._record.retyped_characters = item.characters
                else:
                    yield from self._write_text(_key(_AGAIN), item.raw)
            elif isinstance(event, TextDelta):
                yield from self._write_text(_key(event.index), event.text)
            elif isinstance(event, ThinkingDelta):
                yield from self._parts_manager.handle_thinking_delta(
                    vendor_part_id=_key(event.index), content=event.text
                )
            elif isinstance(event, ToolCallDelta) and event.index in self._calls:
                yield from self._write_call(_key(event.index), args=event.text)

    def _start(self, start: PartStart) -> Iterator[ModelResponseStreamEvent]:
        self._own.add(start.index)
        self._source.parts += 1
        self._gap = ""
        if start.kind == "text":
            self._gap, self._apart = start.gap or "\n\n" * self._apart, False
        # The host has no place for a call without a name: `_break_call` writes it as text.
        if start.kind == "tool_call" and start.name:
            self._calls.add(start.index)
            id = self._call_ids.give(start.id, start.index)
            yield from self._write_call(_key(start.index), tool_name=start.name, tool_call_id=id)

    def _write_text(self, key: Hashable, text: str) -> Iterator[ModelResponseStreamEvent]:
        # An agent's output is its text parts joined with nothing between them.
        text, self._gap = self._gap + text, ""
        source = self._source
        source.written += len(text)
        if source.key is None:
            source.key = key
            part = source.part
            yield from self._parts_manager.handle_text_delta(
                vendor_part_id=key,
                content=text,
                id=part.id,
                provider_name=part.provider_name,
                provider_details=part.provider_details,
                citations=part.citations,
            )
        else:
            yield from self._parts_manager.handle_text_delta(vendor_part_id=key, content=text)

    def _write_call(self, key: Hashable, **more: Any) -> Iterator[ModelResponseStreamEvent]:
        """A call, or more of one. Nothing is emitted before it has its name."""
        event = self._parts_manager.handle_tool_call_delta(vendor_part_id=key, **more)
        if event is not None:
            yield event

    def _cite(self, source: _Source, citations: list[Citation]) -> Iterator[ModelResponseStreamEvent]:
        """Citations of a text, which come when it is complete. They count in the text as the server sent it."""
        yield from self._end_text()
        if not source.is_untouched:
            citations = [replace(citation, anchor=None) for citation in citations]
        if source.key is None:
            source.part = replace(source.part, citations=citations)
        else:
            yield from self._parts_manager.handle_text_delta(vendor_part_id=source.key, content="", citations=citations)

    def _break_call(self, item: ReplyEvent, end: PartEnd) -> Iterator[ModelResponseStreamEvent]:
        """A call that may not be run: the host must find its arguments invalid, and ask the model again."""
        key = _key(end.index)
        call = self._parts_manager.get_part_by_vendor_id(key)
        broken = {"error": end.error, "message": end.error_message, "raw": item.raw}
        if not isinstance(call, ToolCallPart):
            self._record.broken_calls.append(broken)
            if item.withheld:
                yield from self._parts_manager.handle_thinking_delta(vendor_part_id=key, content=item.written)
            elif item.written:
                yield from self._write_text(key, item.written)
            return
        self._record.broken_calls.append({"tool_call_id": call.tool_call_id, **broken})
        # Arguments that were cut off are no JSON. Those that are JSON all the same, or empty, which the host takes for
        # `{}`, are made invalid by what follows them: no JSON goes on with a bracket of this kind.
        if not call.args or (isinstance(call.args, str) and _is_json(call.args)):
            yield from self._write_call(key, args=f"\n({end.error_message or end.error}) {item.raw}")


_AGAIN = -1
"""In place of an index: the text with the words of a thought that was the answer."""


def _key(index: int) -> tuple[str, int]:
    """The key of a part that was made of text; those of the server have their own index for a key."""
    return ("asides", index)


def _tools_of(parameters: ModelRequestParameters) -> list[dict[str, Any]] | None:
    """The request's tools, output tools among them, as OpenAI writes them: they give types to arguments."""
    return [
        {"type": "function", "function": {"name": tool.name, "parameters": tool.parameters_json_schema}}
        for tool in parameters.tool_defs.values()
    ] or None


def _is_json(arguments: str) -> bool:
    try:
        from_json(arguments)
    except ValueError:
        return False
    return True
