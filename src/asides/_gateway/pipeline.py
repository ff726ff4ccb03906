"""The way of one reply: bytes of the upstream in, bytes for the client out. Knows no socket.

    bytes -> reader -> chunks -> splitter -> items -> `ItemFilter` -> writer -> bytes
                                                           |
                                                    the request's record

Reader and writer are those of the two dialects; the splitter (`asides.reply`) turns what an upstream sent into the
events of parts. `ItemFilter` is what is ours: every item is recorded, the model gets the name that the client knows, an
answer that never came may be filled in, and a stop string, a turn that is over and too many calls end the reply: no
more of it is read, and the upstream's connection is closed. Nearly all frames of a stream hold one more delta; for
these the pipeline uses the fast paths of reader, splitter and writer, and builds no record between them.
A reply that came in one piece has a shorter way still (`split_whole`): most of these need no parser.

Whatever an upstream sends, and whatever fails in a reader or writer of ours, `feed` and `finish` return bytes that the
client can read: all that was understood, then an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from itertools import zip_longest

import msgspec

from .._config.schema import Limits
from ..dialects._base import StreamReader, StreamWriter
from ..dialects._errors import web_page
from ..events import Delta, Notice, PartEnd, PartStart, TextDelta
from ..reply._items import Begin, Chunk, Ended, Failed, PlacedProof, Proof, RawText, ReplyEvent, ReplyItem, Usage
from ..reply._splitter import Splitter
from .record import RequestRecord
from .stops import StopStrings

HEAD = 512
"""Bytes of an answer that are kept until something in it is understood."""
SHOWN = 200
"""Characters of its first line that an error shows."""
CHARACTERS_PER_TOKEN = 4
"""How many count as a token where nobody has counted."""
UNREADABLE = Failed(
    "the gateway could not read all of the upstream's reply; its log says why", 502, "api_error", "internal"
)


class ItemFilter:
    """What every item of a reply passes before it is written."""

    def __init__(
        self,
        splitter: Splitter,
        record: RequestRecord,
        *,
        limits: Limits = Limits(),  # noqa: B008  # frozen
        model: str = "",
        fill_empty: bool = False,
        stops: StopStrings | None = None,
        choices: int = 1,
        whole: bool = False,
        seal: Callable[[Proof, PlacedProof], str] | None = None,
    ) -> None:
        """`fill_empty`: whether a thought that never closed becomes the answer of a choice that has none.

        `stops`: the strings that end the answer here and not at the upstream. `choices`: how many were asked for.
        `whole`: the upstream's reply is there, so that nothing is spared by not reading it to its end. `seal`: makes of
        a proof what the client shall carry, or an empty text.
        """
        self.stops = stops
        self._seal = seal
        self._choices = choices
        self._whole = whole
        self._ended: set[int] = set()
        """The choices that have ended."""
        self._turns: set[int] = set()
        """Those among them whose turn is over, so that whatever the upstream still sends of them is another's."""
        self.splitter = splitter
        self.record = record
        self.limits = limits
        self._model = model
        """The name that the client knows the model by, where the upstream has another."""
        self._fill_empty = fill_empty
        self._changes = fill_empty or bool(model)
        self.understood = False
        """Whether anything of the answer was."""
        self.head = b""
        """How the answer begins: if nothing of it is understood, the error shows this."""
        self.over = False
        """Whether no more of the reply is to be read: it has ended here, or holds more than is taken."""

    def apply(self, items: list[ReplyItem]) -> list[ReplyItem]:
        """Record items, and return those to write in their place."""
        if not self.understood and items:
            # Nothing but a failure came of it: what was sent instead (a proxy's login page, say) explains more than our
            # own message does.
            if isinstance(items[0], Failed):
                items = [explained(items[0], self.head), *items[1:]]
            else:
                self.understood = True
        if not self._whole:
            items = self._within_turns(items)
        if self.stops is not None:
            items = self.stops.apply(items)
        if not self._whole and not self.over and self._all_ended(items):
            self.over = True
            items = [*items, self._estimated()]
        record = self.record
        record.add(*items)
        if self._seal is not None and type(items[0] if items else None) is Proof:
            items = [self._sealed(item) if type(item) is Proof else item for item in items]
        if self._changes:
            items = [each for item in items for each in self._changed(item)]
        if record.calls > self.limits.calls and not self.over:
            self.over = True
            # Set before the recursion below, which would come here again.
            message = f"the upstream's reply holds more than {self.limits.calls} calls (limits.calls)"
            items = [*items, *self.apply([*self.splitter.finish("length"), malformed(message)])]
        return items

    def _sealed(self, proof: Proof) -> Proof:
        """A proof as the client shall carry it. Each comes alone, so that the record knows its place."""
        fold = self.record.folds.get(proof.choice)
        sealed = self._seal(proof, fold.placed(proof)) if self._seal is not None and fold is not None else ""
        return msgspec.structs.replace(proof, sealed=sealed) if sealed else proof

    def _all_ended(self, items: list[ReplyItem]) -> bool:
        """Whether every choice has ended with these items, and one of them here, so that the upstream goes on."""
        for item in items:
            if type(item) is Ended:
                self._ended.add(item.choice)
        here = bool(self._turns) or (self.stops is not None and self.stops.found)
        return here and len(self._ended) >= self._choices

    def _within_turns(self, items: list[ReplyItem]) -> list[ReplyItem]:
        """The items without what follows the end of a turn; a choice whose turn is over ends there."""
        found: list[ReplyItem] = []
        for item in items:
            if self._turns and getattr(item, "choice", None) in self._turns:
                continue
            found.append(item)
            if type(item) is ReplyEvent and type(item.event) is Notice and item.event.code == "after_turn":
                self._turns.add(item.choice)
                found += self.splitter.end(item.choice)
        return found

    def _estimated(self) -> Usage:
        """What a reply cost that was ended here: the upstream would have said so behind what it will not write."""
        thinking, answer = self.splitter.thinking_characters, self.splitter.answer_characters
        tokens = -(-thinking // CHARACTERS_PER_TOKEN)
        return Usage(output_tokens=tokens - (-answer // CHARACTERS_PER_TOKEN), reasoning_tokens=tokens, estimated=True)

    def _changed(self, item: ReplyItem) -> list[ReplyItem]:
        if type(item) is ReplyEvent:
            return [item]
        if isinstance(item, Begin) and self._model:
            return [msgspec.structs.replace(item, model=self._model)]
        if isinstance(item, Ended) and self._fill_empty:
            return [*self._filled(item.choice), item]
        return [item]

    def _filled(self, choice: int) -> list[ReplyEvent]:
        fold = self.record.folds.get(choice)
        # A fold that let go of text cannot give all of the thought; half of one is no answer.
        if fold is None or fold.answered or fold.truncated:
            return []
        thoughts, index = fold.reply.thoughts, fold.next_index
        if not thoughts or thoughts[-1].complete:
            return []
        events = (PartStart(index, "text", ""), TextDelta(index, thoughts[-1].text), PartEnd(index, True))
        return [ReplyEvent(choice, event) for event in events]


class CollectedItems:
    """A writer that writes nothing and holds the items, for a reply that is sent in one piece."""

    delta = None
    written = None

    def __init__(self) -> None:
        self.items: list[ReplyItem] = []

    def feed(self, item: ReplyItem) -> bytes:
        """Take an item."""
        self.items.append(item)
        return b""

    def finish(self) -> bytes:
        """Nothing is written."""
        return b""


class Pipeline:
    """From the upstream's bytes of a stream to the client's."""

    def __init__(
        self,
        reader: StreamReader,
        filter: ItemFilter,
        writer: StreamWriter,
        *,
        on_error: Callable[[Exception], object] = lambda error: None,
    ) -> None:
        """`on_error` is called with what a reader or writer raised, while the exception is being handled."""
        self._reader = reader
        self._splitter = filter.splitter
        self._filter = filter
        self._writer = writer
        self._record = filter.record
        self._folds = filter.record.folds
        self._longest_frame = filter.limits.frame
        self._on_error = on_error
        self._takes: dict[int, tuple[int, Callable[[str], Delta | list[ReplyItem]]]] = {}
        """By the upstream's number of a choice: ours, and what reads its text."""
        self._last: type = type(None)
        """The kind of delta that was folded last: where no text is kept, a fold needs no more of the same."""
        # The fast path knows no items, and stop strings are looked for in these.
        self._text_frame = reader.text_frame if filter.stops is None else None
        self._delta = writer.delta
        self.over = False
        """Whether no more is to be read: something failed, or was too large."""

    def feed(self, chunk: bytes) -> bytes:
        """Read bytes of the upstream and return those for the client."""
        try:
            # In one function, without helpers: this runs once for each frame of every stream.
            found = self._text_frame(chunk) if self._text_frame is not None else None
            if found is None:
                if not self._filter.understood and len(self._filter.head) < HEAD:
                    self._filter.head += chunk[:HEAD]
                out = self._translate(self._reader.feed(chunk))
                # One line without an end once took 4 GB. The frames before it have been written above.
                if self._reader.frames.pending > self._longest_frame and not self.over:
                    message = f"the upstream sent a frame of more than {self._longest_frame} bytes (limits.frame)"
                    out += self._end_with(malformed(message))
                return out
            given, text = found
            taken = self._takes.get(given)
            if taken is None:
                taken = self._takes[given] = self._splitter.fast_path(given)
            number, take = taken
            event = take(text)
            if isinstance(event, list):  # a part ends or begins
                out = b"".join(map(self._writer.feed, self._filter.apply(event))) if event else b""
                return out + self._stop() if self._filter.over else out
            kind, fold = type(event), self._folds[number]
            # `_last` is of choice 0 alone, so deltas of other choices are always folded.
            if kind is not self._last or number or fold.collect:
                self._last = kind
                fold.delta(event)
            return (
                self._delta(number, event) if self._delta is not None else self._writer.feed(ReplyEvent(number, event))
            )
        except Exception as error:  # a bug of ours: what was read so far must not be lost
            return self._give_up(error)

    def finish(self) -> bytes:
        """The upstream's reply is over: the last bytes for the client."""
        if self.over:
            return b""
        try:
            return self._translate(self._reader.finish()) + self._writer.finish()
        except Exception as error:
            return self._give_up(error)

    def continue_with(self, reader: StreamReader, closing: str) -> bytes:
        """Go on with another reply to the same request. `closing` ends what is open: the marker that closes a thought.

        Where the upstream splits thoughts off by itself it is empty: text that follows ends one.
        """
        self._reader = reader
        self._text_frame = reader.text_frame if self._filter.stops is None else None
        try:
            return self._translate_own(RawText(0, closing)) if closing else self._translate_own()
        except Exception as error:
            return self._give_up(error)

    def cut(self, usage: Usage) -> bytes:
        """End the reply here as if its tokens had run out: the last bytes for the client."""
        try:
            out = self._translate_own(Ended(0, "length"), usage)
            return out if self.over else out + self._stop()
        except Exception as error:
            return self._give_up(error)

    def lose(self, why: Failed) -> bytes:
        """No more will come, and this is why: the last bytes for the client, what was held back and then the error."""
        if self.over:
            return b""
        try:
            chunks = self._reader.finish()
            # The reader believes that the stream ended properly, and may count a `[DONE]` without a reason as a stop.
            # It did not.
            kept: list[Chunk] = [chunk for chunk in chunks if not isinstance(chunk, Failed | Ended)]
            if len(kept) < len(chunks):  # the upstream had not yet said that all of it was over
                kept.append(why)
            return self._translate(kept) + self._writer.finish()
        except Exception as error:
            return self._give_up(error)

    def abandon(self) -> None:
        """The client has left: what was held back is recorded, and written to nobody."""
        self._record.add(*self._splitter.finish("length"))

    def _translate_own(self, *chunks: Chunk) -> bytes:
        """Chunks of our own between two replies, each of which numbers its choices by itself."""
        self._takes.clear()
        self._splitter.continue_with_another()
        out = self._translate(chunks)
        self._splitter.continue_with_another()
        return out

    def _translate(self, chunks: Sequence[Chunk]) -> bytes:
        out: list[bytes] = []
        for chunk in chunks:
            items = self._splitter.feed(chunk)
            if items:
                out += map(self._writer.feed, self._filter.apply(items))
                if self._filter.over:
                    out.append(self._stop())
                    break
        return out[0] if len(out) == 1 else b"".join(out)

    def _stop(self) -> bytes:
        self.over = True
        return self._writer.finish()

    def _give_up(self, error: Exception) -> bytes:
        self._on_error(error)
        return self._end_with(UNREADABLE)

    def _end_with(self, failed: Failed) -> bytes:
        """Read no further: what was held back, then this failure, each as far as it can be written."""
        self.over = True
        out: list[bytes] = []
        stops = self._filter.stops
        held = stops.finish() if stops is not None else []
        for item in (*held, *self._splitter.finish("length"), failed):
            with contextlib.suppress(Exception):
                # The writer may be what failed, and may fail again with this item; the next one may still be written.
                self._record.add(item)
                out.append(self._writer.feed(item))
        with contextlib.suppress(Exception):
            out.append(self._writer.finish())
        return b"".join(out)


def split_whole(
    chunks: Sequence[Chunk], filter: ItemFilter, *, on_error: Callable[[Exception], object]
) -> list[ReplyItem]:
    """The items of a reply that came in one piece. What cannot be read of it is left out, and `on_error` called."""
    items: list[ReplyItem] = []
    splitter = filter.splitter
    for chunk, following in zip_longest(chunks, chunks[1:]):
        if filter.over:
            break
        try:
            # Only where nothing stands between a text and the end of its choice: no item may change places with it.
            if type(chunk) is RawText and type(following) is Ended and following.choice == chunk.choice:
                items += filter.apply(splitter.feed_last(chunk))
            else:
                items += filter.apply(splitter.feed(chunk))
        except Exception as error:
            on_error(error)
    return items


def malformed(message: str) -> Failed:
    """The failure of a reply that no client can be given."""
    return Failed(message, 502, "api_error", "malformed_frame")


def explained(failed: Failed, head: bytes) -> Failed:
    """The failure of an answer of which nothing was understood, with a message that shows how it begins."""
    if failed.code not in ("upstream_ended", "malformed_frame") or not head.strip():
        return failed
    text = head.decode("utf-8", "replace").strip()
    other = f"the upstream answered with something that is no model's reply: {text.splitlines()[0][:SHOWN]}"
    return msgspec.structs.replace(failed, message=web_page(text) or other)
