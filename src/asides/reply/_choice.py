"""One choice of a reply: its chunks become events, whoever has separated its parts.

Raw text goes to a parser. Thinking and calls that the upstream has already separated become the same events without
passing it; text after thinking is read for calls only, and text after a call is the answer. One numbering counts all
parts. What came earlier can change what comes now: whitespace before something separated is framing (`MOST_EARLY`), a
block that repeats thinking which came in a field of its own is left out, and of a call that turns out broken the raw
text is kept (`LOOKBACK`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from .._engine.cursor import Tape
from .._engine.format import TEXT, THINKING, Format, thinking_pair
from .._engine.parser import Parser, beyond_of, format_of, keep_kinds, may_become_text, open_span, termination_of
from .._engine.shortcut import events_of
from ..events import Delta, Event, Notice, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from ..message import FinishReason, Message, Termination
from ._call_ids import UniqueIds
from ._items import CallChunk, Ended, OpenThought, RawText, ReplyEvent, ReplyItem, ThinkingChunk
from ._later_formats import in_the_middle, without_thinking
from ._logprobs import Alignment
from ._separated_calls import SeparatedCall, without_markers

MOST_EARLY = 1024
"""How much whitespace may wait to see whether something that was split off follows."""
MakeParser = Callable[[Format], Parser]
"""Makes the parser of a choice: the format with the caller's policies.

It is called with another format than the splitter's own for text behind something that the upstream has split off: this
format has its own start, and the caller's `start` and `prompt`, which are about where the output begins, do not hold.
"""
TERMINATIONS: dict[FinishReason | None, Termination] = {"stop": "stop", "length": "cut", None: "end"}
"""How output has ended of which no parser has read the end."""
_ANSWER = (TextDelta, ToolCallDelta)
MOST_PIECES = 64
"""How many more chunks of text are kept before it is decided again which are still needed."""
LOOKBACK = 1024
"""Characters that are kept before what the parser holds back: whitespace before a marker."""
MOST_COMPARED = 1_048_576
"""Characters of thinking that are compared with text that may repeat it, or kept because they may be the answer."""


class Choice:
    """One choice of a reply."""

    def __init__(self, number: int, format: Format, make_parser: MakeParser, seed: int | None, keep: int) -> None:
        self.number = number
        self._keep = keep
        self._format = format
        self._make_parser = make_parser
        self._ids = UniqueIds(seed)
        self._parser: Parser | None = None
        self.plain = False
        """Whether the parser's events need no change: nothing came before them, nothing is aligned or compared."""
        self._early = ""
        """Text before it is decided how it is read."""
        self._count = 0
        self._first = 0
        """The parser counts its parts from zero; the choice counts all."""
        self._thinking = -1
        """The part of thinking that the upstream is sending."""
        self._calls: dict[int, SeparatedCall] = {}
        self._written: dict[int, str] = {}
        """By part: what the upstream sent of a call that it had read itself and that may not be run."""
        self._thoughts: list[str] = []
        self._repeat: list[Event] | None = None
        """What stands in a block that may only repeat thinking which came in a field of its own."""
        self._seen_thinking = False
        self._ended = False
        self._ordinary = False
        """Whether its text was taken apart without a parser, and nobody has said yet how it ended."""
        self.termination: Termination = "end"
        """How it ended, once the choice has."""
        self.beyond = 0
        """How many characters its output has beyond its turn, once the choice has ended."""
        self._in_thought = False
        """Whether calls that come now were begun inside a thought that nothing closed."""
        self._tape = Tape()
        self._trim_at = MOST_PIECES
        """How many chunks of text there are when it is decided next which are still needed."""
        self._calling = False
        """Whether a call is open."""
        self._alignment: Alignment | None = None
        self.thinking_characters = 0
        self.answer_characters = 0
        self.found_parts = False
        """Whether a thought or a call was found in raw text."""

    def raw_text(self, chunk: RawText) -> list[ReplyItem]:
        """Content, which may hold markers."""
        # Late chunks are passed over: a part must not begin behind the end of its choice.
        if self._ended:
            return []
        if chunk.logprobs or self._alignment is not None:
            self._align(chunk)
        if not chunk.text:
            return []
        if self._parser is None:
            self._early += chunk.text
            if self._is_open_question(self._early.lstrip()):
                return []
            return self._emit(self._begin_text())
        if not self.plain:
            return self._emit(self._read(self._parser, chunk.text))
        found = self.delta(chunk.text)
        return found if isinstance(found, list) else [ReplyEvent(self.number, found)]

    def ordinary(self, message: Message) -> list[ReplyItem]:
        """All of the content, which was taken apart without a parser: the choice is over with it."""
        self.termination = message.termination
        self.thinking_characters, self.answer_characters = len(message.thinking), len(message.text)
        self.found_parts = len(message.thinking) > 0 or bool(message.tool_calls)
        self._ended = self._ordinary = True
        return [ReplyEvent(self.number, event) for event in events_of(message)]

    def delta(self, piece: Any) -> Delta | list[ReplyItem]:
        """More text without log probabilities: the event itself where it is more of an open part."""
        text: str = piece
        # Else the parser's events need a change, or there is no parser.
        if not self.plain or self._parser is None:
            return self.raw_text(RawText(self.number, text))
        pieces = self._tape.pieces
        # Before the parser reads it: a call may turn out broken in this very chunk, and its raw text is cut from the
        # tape.
        pieces.append(text)
        if len(pieces) > self._trim_at:
            self._trim(self._parser, text)
        events = self._parser.feed(text)
        if len(events) == 1:
            event = events[0]
            if type(event) is TextDelta:
                self.answer_characters += len(event.text)
                return event
            if type(event) is ThinkingDelta:
                self.thinking_characters += len(event.text)
                return event
        return self._emit(self._counted(events)) if events else []

    def _align(self, chunk: RawText) -> None:
        self.plain = False
        if self._alignment is None:
            self._alignment = Alignment(len(self._early) if self._parser is None else self._tape.sync())
        # The text before was closed by something split off: the next parser counts its characters from zero.
        elif self._parser is None and not self._early:
            self._alignment.restart()
        self._alignment.add(chunk.text, chunk.logprobs)

    def _is_open_question(self, text: str) -> bool:
        """Whether more must be seen: whitespace before split-off parts is framing, thinking may be repeated."""
        if len(self._early) > MOST_EARLY:
            return False
        return not text or (bool(self._thoughts) and any(opener.startswith(text) for opener in self._openers()))

    def _openers(self) -> tuple[str, ...]:
        return tuple(marker for marker, target in self._format.states.get(TEXT, {}).items() if target == THINKING)

    def _begin_text(self) -> list[Event]:
        text, self._early = self._early, ""
        format = self._format
        events: list[Event] = []
        # llama.cpp's `deepseek-legacy` sends a thought in a field of its own and once more, in tags, in the content.
        # Whether it is the same is known when the block ends, so its events wait in `_repeat`.
        if self._thoughts and text.lstrip().startswith(self._openers()):
            self._repeat = []
        else:
            if self._thoughts:
                format = without_thinking(format)
            elif self._count:
                format = in_the_middle(format)
            events = self._close_split()
        self._parser = self._make_parser(format)
        if self._count:
            keep_kinds(self._parser)  # text after something split off is the answer
        self._first = self._count
        self.plain = not self._first and self._repeat is None and self._alignment is None
        self._tape = Tape()
        self._trim_at = MOST_PIECES
        return events + self._read(self._parser, text)

    def _read(self, parser: Parser, text: str) -> list[Event]:
        self._tape.pieces.append(text)
        if len(self._tape.pieces) > self._trim_at:
            self._trim(parser, text)
        return self._shift(parser, parser.feed(text))

    def _trim(self, parser: Parser, text: str) -> None:
        """What was written is kept for a call that turns out broken: let go of what stands before any that may."""
        # The tape already holds `text`, which the parser has not read yet: hence the subtraction.
        if may_become_text(parser):
            # Its words would be written once more. A bound, because a thought may be endless.
            if self._tape.sync() > MOST_COMPARED:
                keep_kinds(parser)
        elif not self._calling and self._tape.sync() > self._keep:
            self._tape.forget(self._tape.sync() - len(text) - self._held(parser) - LOOKBACK)
        # Asking at every chunk once 64 are kept would make a long reply cost more for each chunk than a short one.
        self._trim_at = len(self._tape.pieces) + MOST_PIECES

    def written(self) -> str:
        """All that the first parser has read, if nothing of it was let go of."""
        text = "".join(self._tape.pieces)
        return text if not self._first and len(text) == self._tape.sync() else ""

    def thought(self) -> OpenThought | None:
        """What was written so far, where a thought is open and could be closed here."""
        if self._ended or self._calls:
            return None
        if self._thinking >= 0:
            return OpenThought("".join(self._thoughts), True) if self.thinking_characters <= MOST_COMPARED else None
        parser = self._parser
        if parser is None or parser.state != "thinking":
            return None  # a call that was begun in the thought is one of these: nothing is cut off inside it
        text = self.written()
        if not text or text[len(text) - self._held(parser) :].strip():
            return None
        return OpenThought(text, False, *self._thinking_pair(parser))  # `auto` has settled on them

    def thinking(self, chunk: ThinkingChunk) -> list[ReplyItem]:
        """Thinking that is already split off."""
        if self._ended:
            return []
        # What could have begun a repetition is text after all; whitespace is framing.
        events = self._begin_text() if self._early and not self._early.isspace() else []
        # While a repetition is compared, the field may go on growing beside it: its text is not closed for that.
        if self._parser is not None and self._repeat is None:
            events += self._close_text()
        if chunk.begins:
            events += self._close_thinking(True)
        if chunk.text and self._thinking < 0:
            events += self._close_split()
            self._thinking = self._count
            events.append(PartStart(self._thinking, "thinking", "\n\n" if self._seen_thinking else ""))
            self._count += 1
        self._early = ""
        items = self._emit(events) if events else []
        if self._thinking >= 0:
            # Beyond the bound nothing is collected any more, and `_end_repeat` takes the block for no repetition.
            if self.thinking_characters <= MOST_COMPARED:
                self._thoughts.append(chunk.text)
            self.thinking_characters += len(chunk.text)
            # Also with an empty text: a signature or details may come with it.
            event = ThinkingDelta(self._thinking, chunk.text)
            items.append(ReplyEvent(self.number, event, (), chunk.logprobs, chunk.details, chunk.signature))
        return items

    def call(self, chunk: CallChunk) -> list[ReplyItem]:
        """A call that is already read."""
        if self._ended:
            return []
        events = self._begin_text() if self._early and not self._early.isspace() else []
        events += self._close_text() + self._close_thinking(True)
        self._early = ""
        call = self._calls.get(chunk.index)
        if call is None:
            call = self._calls[chunk.index] = SeparatedCall(self._count, self._ids.take("", self._count))
            self._count += 1
        return call.with_extra(self._emit(events + call.feed(chunk)), self.number)

    def finish(self, reason: FinishReason | None) -> list[ReplyItem]:
        """The choice has ended; `reason` as in `Parser.finish`."""
        if self._ended:
            # Of a text that was taken apart without a parser nothing depends on this but how it ended.
            if self._ordinary and reason is not None:
                self.termination = "cut" if reason == "length" and self.termination != "stop" else "stop"
                self._ordinary = False
            return []
        cut = reason == "length"
        events = self._begin_text() if self._early else []
        # Taken before `_close_text` lets go of it.
        parser = self._parser
        events += self._close_text(reason)
        self.termination = termination_of(parser) if parser is not None else TERMINATIONS[reason]
        start, stop = (beyond_of(parser) if parser is not None else None) or (0, 0)
        self.beyond = stop - start
        self._ended = True
        return self._emit(events + self._close_thinking(not cut) + self._close_calls(cut))

    def ended(self, chunk: Ended) -> Ended:
        """The end of the choice as the upstream says it, with what its output shows."""
        # Those of tokens behind the last part.
        rest = tuple(self._alignment.rest()) if self._alignment is not None else ()
        shown = (self.number, rest, self.termination, self.beyond)
        if shown == (chunk.choice, chunk.other_logprobs, chunk.termination, chunk.beyond):
            return chunk
        return msgspec.structs.replace(
            chunk, choice=self.number, other_logprobs=rest, termination=self.termination, beyond=self.beyond
        )

    def _close_text(self, reason: FinishReason | None = None) -> list[Event]:
        parser, self._parser, self.plain = self._parser, None, False
        if parser is None:
            return []
        events = self._shift(parser, parser.finish(reason))
        if self._repeat is not None:
            events = self._end_repeat(self._repeat)
        return events

    def _close_split(self) -> list[Event]:
        """Text follows: what the upstream has split off is over."""
        return self._close_thinking(True) + self._close_calls(False)

    def _close_calls(self, cut: bool) -> list[Event]:
        events: list[Event] = []
        for call in self._calls.values():
            events += call.finish(cut)
            if call.error is not None:
                self._written[call.index] = call.written
        self._calls.clear()
        return events

    def _close_thinking(self, complete: bool) -> list[Event]:
        if self._thinking < 0:
            return []
        index, self._thinking = self._thinking, -1
        return [PartEnd(index, complete)]

    def _shift(self, parser: Parser, events: list[Event]) -> list[Event]:
        """The parser's events, counted as the choice counts its parts."""
        if self._alignment is not None:
            self._alignment.place(partial(self._open_start, parser), events)
        if self._repeat is not None:
            return self._without_repeat(events)
        return [self._moved(event) for event in events] if self._first else self._counted(events)

    # What a parser knows, in characters of the raw text.

    def _open_start(self, parser: Parser) -> int:
        return open_span(parser)[0]

    def _held(self, parser: Parser) -> int:
        return parser.held

    def _thinking_pair(self, parser: Parser) -> tuple[str, str]:
        return thinking_pair(format_of(parser))

    def _counted(self, events: list[Event]) -> list[Event]:
        for event in events:
            if isinstance(event, PartStart):
                self._count += 1
                self._ids.add(event.id)
        return events

    def _moved(self, event: Event) -> Event:
        if isinstance(event, Notice):
            return event
        index = event.index + self._first
        if isinstance(event, PartEnd):
            return PartEnd(index, event.complete, event.error, event.span, event.error_message)
        if isinstance(event, PartStart):
            self._count += 1
            gap = event.gap
            if event.kind == "thinking" and self._seen_thinking:
                gap = "\n\n"
            # Parser and upstream make ids without knowing of each other; two calls of a choice must not share one.
            id = self._ids.take(event.id, index) if event.kind == "tool_call" else ""
            return PartStart(index, event.kind, gap, event.name, id)
        if isinstance(event, Retyped):
            return Retyped(index, event.kind)
        return type(event)(index, event.text)

    def _without_repeat(self, events: list[Event]) -> list[Event]:
        """Leave out a thinking block that only repeats what came in a field of its own."""
        held = self._repeat
        assert held is not None
        for number, event in enumerate(events):
            # Only a block at the very beginning of the text can be the repetition.
            if isinstance(event, PartStart) and event.kind != "thinking":
                return self._end_repeat(held, events[number:])
            held.append(event)
            if isinstance(event, PartEnd):
                return self._end_repeat(held, events[number + 1 :])
        return []

    def _end_repeat(self, held: list[Event], rest: list[Event] | None = None) -> list[Event]:
        self._repeat = None
        events = self._close_split()
        found = "".join(event.text for event in held if isinstance(event, ThinkingDelta)).strip()
        whole = self.thinking_characters <= MOST_COMPARED
        same = whole and bool(found) and found == "".join(self._thoughts).strip()
        # A repetition was the parser's part 0 and gets no number, so all that follow it move up by one.
        self._first = self._count - same
        kept = [] if same else held
        return events + [self._moved(event) for event in kept + (rest or [])]

    def _emit(self, events: list[Event]) -> list[ReplyItem]:
        items: list[ReplyItem] = []
        for event in events:
            item = ReplyEvent(self.number, event)
            if isinstance(event, _ANSWER):
                self.answer_characters += len(event.text)
            elif isinstance(event, ThinkingDelta):
                self.thinking_characters += len(event.text)
            elif isinstance(event, PartStart):
                self._note_start(event)
            elif isinstance(event, PartEnd):
                self._calling = False
                if event.error is not None:
                    item = self._broken(event)
            elif isinstance(event, Notice):
                self._in_thought = self._in_thought or event.code == "implicit_close"
            else:
                item = self._retyped(event, events)
            if self._alignment is not None:
                item = self._with_logprobs(item, self._alignment)
            items.append(item)
        return items

    def _retyped(self, event: Retyped, events: list[Event]) -> ReplyEvent:
        """The only part so far is of the other kind. Its end comes with it."""
        sent = self.answer_characters + self.thinking_characters
        span = next(other.span for other in events if isinstance(other, PartEnd) and other.index == event.index)
        thought = self._seen_thinking = event.kind == "thinking"
        length = span[1] - span[0]
        self.thinking_characters, self.answer_characters = (length, 0) if thought else (0, length)
        self._tape.sync()
        return ReplyEvent(self.number, event, raw="" if thought else self._tape.text(*span), characters=sent)

    def _broken(self, end: PartEnd) -> ReplyEvent:
        """The end of a call that may not be run, with what was written of it."""
        own = self._written.get(end.index)
        raw = self._raw(end) if own is None else own
        written = without_markers(raw, self._format) if own is None else own
        # Dialects that cannot express a broken call write it as text. One that was cut off inside an open thought is a
        # piece of the thought, and must not appear in the answer that way.
        withheld = own is None and self._in_thought and end.error == "incomplete"
        return ReplyEvent(self.number, end, written=written, withheld=withheld, raw=raw)

    def _note_start(self, start: PartStart) -> None:
        self._calling = start.kind == "tool_call"
        self.found_parts = self.found_parts or (self._parser is not None and start.kind != "text")
        if start.kind == "thinking":
            self._seen_thinking = True
        if start.kind != "tool_call":
            self._in_thought = start.kind == "thinking" and self._format.calls_in_thinking == "always"

    def _raw(self, event: PartEnd) -> str:
        """What the model wrote of a call that may not be run."""
        self._tape.sync()
        return self._tape.text(*event.span)

    def _with_logprobs(self, item: ReplyEvent, alignment: Alignment) -> ReplyEvent:
        logprobs, others = alignment.take(item.event, self._first)
        return msgspec.structs.replace(item, logprobs=tuple(logprobs), other_logprobs=tuple(others))
