"""What the writers of event protocols share (`agui`, `acp`, `otel`): events with the raw text of broken calls.

Each has a writer, which takes events one after another and gives those of its protocol. The events of a `Parser` have a
broken call's name, its error and as much of its arguments as could be read; what the model wrote of it stands in the
parser's raw text. The `ReplyEvent`s of a `Splitter` have that text with them, so everything here gives `ReplyEvent`s:
`read` from a stream of raw text, `events_of` from a whole message.

    for update in read(["<think>2+2</think>", "4"], "think", DEFAULTS, writer.feed):
        ...                            # what the writer makes of PartStart(0, "thinking"), …
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Iterator
from typing import Generic, TypeVar

from .._engine.format import Format
from ..events import Event, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from ..message import Message
from ..parts import Text, Thinking, ToolCall
from ..policies import Policies
from ..reading import Reading
from ..reply._items import RawText, ReplyEvent, ReplyItem
from ..reply._reply import Reply
from ._streams import aread_stream, read_stream

Written = TypeVar("Written")
Write = Callable[[ReplyEvent], Iterable[Written]]
"""What a writer makes of an event."""


class _TextReader(Generic[Written]):
    """Reads raw text, and has each event of it written."""

    def __init__(self, model: str | None, format: str | Format, policies: Policies, write: Write[Written]) -> None:
        self._splitter = Reading.of(model, format=format, policies=policies).splitter()
        self._write = write

    def feed(self, chunk: str) -> Iterator[Written]:
        return self._written(self._splitter.feed(RawText(0, chunk)))

    def release(self, failed: bool) -> Iterator[Written]:
        return self._written(self._splitter.finish("length" if failed else None))

    def _written(self, items: list[ReplyItem]) -> Iterator[Written]:
        return (made for item in items if isinstance(item, ReplyEvent) for made in self._write(item))


def read(
    chunks: Iterable[str], format: str | Format, policies: Policies, write: Write[Written], model: str | None = None
) -> Generator[Written, None, None]:
    """What `write` makes of the events of a stream of raw text. The stream is closed with the generator."""
    reader = _TextReader(model, format, policies, write)
    return read_stream(chunks, reader.feed, reader.release)


def aread(
    chunks: AsyncIterable[str],
    format: str | Format,
    policies: Policies,
    write: Write[Written],
    model: str | None = None,
) -> AsyncGenerator[Written, None]:
    """What `write` makes of the events of an asynchronous stream, as `read`."""
    reader = _TextReader(model, format, policies, write)
    return aread_stream(chunks, reader.feed, reader.release)


def event_of(item: Event | ReplyEvent) -> tuple[Event, str]:
    """An event, and the raw text of the broken call that ends with it, where it is known."""
    return (item.event, item.raw) if isinstance(item, ReplyEvent) else (item, "")


def events_of(message: Message | Reply) -> Iterator[ReplyEvent]:
    """The events of a whole message, as a parser would emit them, each text in one delta and notices at the end."""
    # A message has its texts joined with their gaps, and its parts without: the gap is what stands before the next one.
    thinking, text = message.thinking, message.text
    for index, part in enumerate(message.parts):
        match part:
            case Thinking():
                gap, _, thinking = thinking.partition(part.text)
                yield ReplyEvent(0, PartStart(index, "thinking", gap))
                yield ReplyEvent(0, ThinkingDelta(index, part.text))
                yield ReplyEvent(0, PartEnd(index, part.complete, span=part.span))
            case Text():
                gap, _, text = text.partition(part.text)
                yield ReplyEvent(0, PartStart(index, "text", gap))
                yield ReplyEvent(0, TextDelta(index, part.text))
                yield ReplyEvent(0, PartEnd(index, span=part.span))
            case ToolCall():
                yield ReplyEvent(0, PartStart(index, "tool_call", "", part.name, part.id))
                yield ReplyEvent(0, ToolCallDelta(index, part.arguments))
                end = PartEnd(index, part.complete, part.error, part.span, part.error_message)
                yield ReplyEvent(0, end, raw=part.raw)
    for notice in message.notices:
        yield ReplyEvent(0, notice)
