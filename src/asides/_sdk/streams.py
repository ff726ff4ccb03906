"""The streams of events that are made of what the SDKs of model servers hand over.

An SDK gives objects, or the same as plain dictionaries. `frame_of` makes a dictionary of either, the dialect's own
reader reads it, and the splitter makes events of what it finds: raw text is parsed, thoughts and calls that the server
has separated become the same events. So a program sees one kind of stream, whatever the server does.

The model's name, which servers send with each reply, says how it is read, unless the caller says it.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

import msgspec

from .._engine.format import Format
from .._engine.given import check_stream
from ..dialects._base import Dialect, FrameReader
from ..dialects._errors import UPSTREAM_ENDED
from ..dialects._recognized import UnreadableError, is_broken, is_chunk, recognize, says_nothing
from ..dialects._sent_back import OwnItem, ThinkingProof, own_item
from ..dialects.openai_chat._reader import refusal_of
from ..errors import Error, StrictError, UsageError
from ..events import NOTICES, Event, Notice, PartStart
from ..policies import DEFAULTS, Policies, PolicyOptions
from ..reading import Reading
from ..reply._call_ids import CallIds
from ..reply._fold import Fold
from ..reply._items import Begin, Chunk, Ended, Failed, Foreign, RawText, ReplyEvent, ReplyItem, Usage
from ..reply._reply import Reply
from ..reply._splitter import Splitter

MOST_CHOICES = 1000
"""Choices of one reply that are read; SDKs ask for a few."""
MOST_SHOWN = 200
"""Characters of a frame that a notice repeats."""
Frame = dict[str, Any]


class Options:
    """What a caller says of how replies are read."""

    __slots__ = ("_format", "_model", "_policies", "_reading")

    def __init__(
        self,
        reading: Reading | None,
        model: str | None,
        format: str | Format,
        policies: Policies,
        options: PolicyOptions,
    ) -> None:
        if reading is not None and (model is not None or format != "auto" or policies is not DEFAULTS or options):
            raise UsageError("a reading says it all: give it alone, or model, format and policies without it")
        self._reading = reading
        self._model = model
        self._format = format
        self._policies = policies.but(**options)

    @property
    def policies(self) -> Policies:
        """The policies that were chosen, before a model's name has added to them."""
        return self._policies if self._reading is None else self._reading.policies

    def reading(self, model: str) -> Reading:
        """How the reply of a server is read that gives its model this name."""
        return self._reading or Reading.named(self._model or model, self._format, self._policies)


def frame_of(given: Any, whole: bool = False) -> Frame:
    """What an SDK's object or a dictionary says: a frame of a stream, or a `whole` reply."""
    if isinstance(given, dict):
        return given
    dump = getattr(given, "model_dump", None)
    if dump is None:
        hint = ""
        if isinstance(given, str):
            hint = f"; asides.{'parse' if whole else 'split'} reads text"
        elif hasattr(given, "__await__"):
            hint = "; await it first"
        elif hasattr(given, "__aiter__") or hasattr(given, "__next__"):
            hint = f"; {'asplit' if hasattr(given, '__aiter__') else 'split'}() reads a stream"
        kind = UsageError if hint else UnreadableError
        raise kind(f"an object of the SDK is wanted here, or a dict, not {type(given).__name__}{hint}")
    # Fields that were not sent stay out. SDKs do not validate what they are sent, so no warnings either.
    frame: Frame = dump(exclude_unset=True, by_alias=True, warnings=False)
    return frame


class SdkReader:
    """Reads one reply; `replies` are what has come of each choice."""

    def __init__(self, options: Options, choices: int = MOST_CHOICES) -> None:
        """`choices`: how many were asked for. Where that is one, it is the first, whatever number the server gives."""
        self._options = options
        self._most_choices = choices
        self._recognized: tuple[Dialect, FrameReader] | None = None
        """The API of the server, and its reader, once a frame has shown which it is."""
        self._unreadable: UnreadableError | None = None
        """The first frame that could not be read, while none could."""
        self._splitter: Splitter | None = None
        self._failed: Failed | None = None
        self._folds: dict[int, Fold] = {}
        """What has come of each choice that the server has named."""
        self._of_all: dict[object, Begin | Usage | Notice] = {}
        """What has come of the whole reply and of no choice; of what servers send with every chunk, the last."""
        self._waiting: list[tuple[int, Event]] = []
        """Events of other choices, while the one numbered 0 has not come: it may never."""
        self.reading: Reading | None = None
        """How the reply is read, once it has begun."""
        self._call_ids: dict[int, CallIds] = {}
        self.proofs: dict[int, ThinkingProof] = {}
        """What came with the thoughts of the first choice, by their places."""
        self.own_items: list[OwnItem] = []
        """What came between its parts and goes back with them."""

    def feed(self, given: Any) -> list[tuple[int, Event]]:
        """The events of one more frame. One that cannot be read gives a notice.

        A first one that is no frame of a server, but something that a program has by mistake, is refused.
        """
        first = self._recognized is None
        try:
            frame = frame_of(given)
            if self._recognized is None:
                if says_nothing(frame):
                    return []
                found = recognize(frame)
                self._recognized = found, found.ReplyReader()
            dialect, reader = self._recognized
            chunks = reader.read_frame(frame)
            broken = (first or not chunks) and is_broken(frame, dialect)
        except UsageError as error:
            if self._recognized is None:
                if not isinstance(error, UnreadableError):
                    raise
                self._unreadable = self._unreadable or error
            return self._notice(str(error))
        events = self._split(chunks)
        return events + self._notice(repr(frame)[:MOST_SHOWN]) if broken else events

    def _notice(self, found: str) -> list[tuple[int, Event]]:
        notice = Notice("unreadable_frame", f"{NOTICES['unreadable_frame']}: {found}", 0)
        strict = self._options.policies.strict
        if strict is True or (strict and notice.code in strict):
            raise StrictError(notice)
        self._add_to_all(notice)
        return [(0, notice)]

    def finish(self) -> list[tuple[int, Event]]:
        """The stream is over: what was held back. One of which nothing could be read is a mistake."""
        if self._recognized is None and self._unreadable is not None:
            raise self._unreadable
        events = self._split(self._recognized[1].finish()) if self._recognized is not None else []
        return events + self.give_up()

    def give_up(self) -> list[tuple[int, Event]]:
        """The stream broke off: what was held back."""
        return self._events(self._splitter.finish("length")) if self._splitter is not None else []

    def read(self, given: Any) -> None:
        """Read a whole reply."""
        frame = frame_of(given, whole=True)
        dialect = recognize(frame)
        if is_chunk(frame):
            # Read as a whole it would be a reply without a word, and no error.
            raise UsageError("this is a piece of a stream and no whole reply: split() and asplit() read the stream")
        self._split(dialect.read_reply(frame), whole=True)
        self.check()

    @property
    def replies(self) -> tuple[Reply, ...]:
        """What has come so far of every choice, in their order; at least one."""
        folds = self._folds or {0: self._new_fold(0)}
        return tuple(fold.reply for _, fold in sorted(folds.items()))

    @property
    def reply(self) -> Reply:
        """What has come so far of the first choice: of the lowest number that the server has given to one."""
        first = min(self._folds, default=0)
        return (self._folds.get(first) or self._new_fold(first)).reply

    def of_first(self, events: list[tuple[int, Event]]) -> list[Event]:
        """Those of the first choice. What cannot be told yet waits for more, or for `rest_of_first`."""
        if self._waiting or 0 not in self._folds:
            self._waiting += events
            if 0 not in self._folds:
                return []
            events, self._waiting = self._waiting, []
        return [event for choice, event in events if not choice]

    def rest_of_first(self) -> list[Event]:
        """What has waited and is of the first choice: a server may give its only choice any number."""
        first = min(self._folds, default=0)
        events, self._waiting = self._waiting, []
        return [event for choice, event in events if choice in (0, first)]

    def check(self) -> None:
        """Raise what a server has said of a failure. A reply without its end is none: it is one that was cut."""
        if self._failed is not None and self._failed.code != UPSTREAM_ENDED.code:
            raise Error(self._failed.message)

    def _split(self, chunks: list[Chunk], whole: bool = False) -> list[tuple[int, Event]]:
        events: list[tuple[int, Event]] = []
        for chunk in chunks:
            if type(chunk) is Foreign and (refusal := refusal_of(chunk, chunk.choice)):
                # What a model says instead of an answer is its text: beside the content nobody would look for it.
                chunk = RawText(chunk.choice or 0, refusal)
            splitter = self._splitter
            if splitter is None:
                if isinstance(chunk, Foreign):  # something of the server's own, before the frame with the model's name
                    events += self._events([chunk])
                    continue
                model = chunk.model if isinstance(chunk, Begin) else ""
                self.reading = self._options.reading(model)
                splitter = self._splitter = self.reading.splitter(whole=whole, choices=self._most_choices)
            events += self._events(splitter.feed(chunk))
        return events

    def _events(self, items: list[ReplyItem]) -> list[tuple[int, Event]]:
        events: list[tuple[int, Event]] = []
        for item in items:
            if type(item) is ReplyEvent:
                fold = self._fold(item.choice)
                event = item.event
                if type(event) is PartStart and event.kind == "tool_call":
                    ids = self._call_ids.setdefault(item.choice, CallIds())
                    event = msgspec.structs.replace(event, id=ids.give(event.id, event.index))
                fold.event(event, item.raw)
                if (item.signature or item.details) and not item.choice:
                    self._add_proof(item)
                events.append((item.choice, event))
            elif isinstance(item, Ended):
                self._fold(item.choice).add(item)
            elif isinstance(item, Failed):
                self._failed = item
            elif isinstance(item, Foreign):
                place = self._folds[0].next_index if 0 in self._folds else 0
                if (own := own_item(item, place)) is not None:
                    self.own_items.append(own)
            elif isinstance(item, Begin | Usage):
                self._add_to_all(item)
        return events

    def _fold(self, choice: int) -> Fold:
        fold = self._folds.get(choice)
        if fold is None:
            fold = self._folds[choice] = self._new_fold(choice)
        return fold

    def _new_fold(self, choice: int) -> Fold:
        fold = Fold(choice=choice)
        for item in self._of_all.values():
            fold.add(item)
        return fold

    def _add_to_all(self, item: Begin | Usage | Notice) -> None:
        self._of_all[len(self._of_all) if isinstance(item, Notice) else type(item)] = item
        for fold in self._folds.values():
            fold.add(item)

    def _add_proof(self, item: ReplyEvent) -> None:
        index = getattr(item.event, "index", 0)
        before = self.proofs.get(index) or ThinkingProof()
        self.proofs[index] = ThinkingProof(before.signature + item.signature, before.details + item.details)

    @property
    def field(self) -> str:
        """The name under which the server has sent thoughts; empty where it has sent none."""
        return next(iter(self._splitter.fields), "") if self._splitter is not None else ""


class _Replies:
    """What both kinds of stream can be asked."""

    def __init__(self, reader: SdkReader) -> None:
        self._reader = reader

    @property
    def reply(self) -> Reply:
        """What has come so far, of the first choice: its parts, how it ended, what it cost."""
        return self._reader.reply

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The same of every choice, in their order."""
        return self._reader.replies


class SplitStream(_Replies):
    """The events of a streamed reply; `reply` is what they add up to.

    Where the stream fails, what was held back comes before the error. A stream that ends without its end is no error:
    its `reply.termination` is `cut`.

    Examples:
        >>> import asides.ollama
        >>> stream = asides.ollama.split([{"message": {"content": "<think>2+2</think>4"}, "done": True}])
        >>> events = list(stream)
        >>> stream.reply.thinking
        '2+2'
    """

    def __init__(self, stream: Iterable[Any], reader: SdkReader) -> None:
        super().__init__(reader)
        check_stream(stream, "split")
        self._stream = stream

    def __iter__(self) -> Iterator[Event]:
        """The events of the first choice. Where a request asked for several, `choices` has them all."""
        try:
            for events in self._feed():
                yield from self._reader.of_first(events)
        except Exception:
            yield from self._reader.rest_of_first()
            raise
        yield from self._reader.rest_of_first()

    def choices(self) -> Iterator[tuple[int, Event]]:
        """The events of all choices as they come, each with the number of its choice."""
        for events in self._feed():
            yield from events

    def _feed(self) -> Iterator[list[tuple[int, Event]]]:
        reader = self._reader
        try:
            for given in self._stream:
                yield reader.feed(given)
                reader.check()
        except (StrictError, UsageError):
            raise
        except Exception:
            yield reader.give_up()
            raise
        yield reader.finish()


class AsyncSplitStream(_Replies):
    """As `SplitStream`, of an asynchronous stream.

    Examples:
        >>> import asyncio
        >>> import asides.ollama
        >>> async def chunks():
        ...     yield {"message": {"content": "<think>2+2</think>4"}, "done": True}
        >>> async def thought():
        ...     stream = asides.ollama.asplit(chunks())
        ...     async for event in stream:
        ...         pass
        ...     return stream.reply.thinking
        >>> asyncio.run(thought())
        '2+2'
    """

    def __init__(self, stream: AsyncIterable[Any], reader: SdkReader) -> None:
        super().__init__(reader)
        check_stream(stream, "asplit")
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[Event]:
        """The events of the first choice. Where a request asked for several, `choices` has them all."""
        reader = self._reader
        try:
            async for events in self._feed():
                for event in reader.of_first(events):
                    yield event
        except Exception:
            for event in reader.rest_of_first():
                yield event
            raise
        for event in reader.rest_of_first():
            yield event

    async def choices(self) -> AsyncIterator[tuple[int, Event]]:
        """The events of all choices as they come, each with the number of its choice."""
        async for events in self._feed():
            for event in events:
                yield event

    async def _feed(self) -> AsyncIterator[list[tuple[int, Event]]]:
        reader = self._reader
        try:
            async for given in self._stream:
                yield reader.feed(given)
                reader.check()
        except (StrictError, UsageError):
            raise
        except Exception:
            yield reader.give_up()
            raise
        yield reader.finish()
