"""From chunks to items: what an upstream sent becomes one sequence of events for each choice.

Raw text goes through a `Parser`, one for each choice. Thinking and calls that the upstream has already split off become
the same events without passing it; from then on the text of that choice is read for calls only, not for thinking again.
Text behind a call that the upstream has read is the answer, wherever the output itself begins.
Writers and the fold see one numbering of parts, whoever split them. Nothing is left out here for a client that wants
no thinking: its writer does that, so that the record of a reply is the same whoever asked for it.

    splitter = Splitter(get_format("qwen3"), asides.Parser)
    splitter.feed(RawText(0, "<think>2+2</think>It is 4."))    # ReplyEvent(0, PartStart(0, "thinking")), …
    splitter.feed(Ended(0))                                    # …, Ended(0)

Three things make it more than a call of the parser: whitespace before something split off is framing and waits
(`MOST_EARLY`); some servers repeat in the text what they sent as thinking, and the repetition is left out; and of a
call that turns out broken the raw text is still needed, so the last of it is kept (`LOOKBACK`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from .._engine.calls.ids import make_id
from .._engine.calls.json_scan import JsonScanner
from .._engine.cursor import Tape
from .._engine.format import TEXT, THINKING, Format, State, thinking_pair
from .._engine.parser import Parser, format_of, termination_of
from .._engine.shortcut import events_of
from ..events import (
    NOTICES,
    Delta,
    Event,
    Notice,
    NoticeCode,
    PartEnd,
    PartStart,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from ..message import Message, Termination
from .items import Begin, CallChunk, Chunk, Ended, Failed, Foreign, RawText, ReplyEvent, ReplyItem, ThinkingChunk, Usage
from .logprobs import Alignment

MOST_EARLY = 1024
"""How much whitespace may wait to see whether something that was split off follows."""

MakeParser = Callable[[Format], Parser]
"""Makes the parser of a choice: the format with the caller's policies.

It is called with another format than the splitter's own for text behind something that the upstream has split off: this
format has its own start, and the caller's `start` and `prompt`, which are about where the output begins, do not hold.
"""
ParseOrdinary = Callable[[str], Message | None]
"""Takes a whole text of the ordinary shape apart as that parser would, without one; None for any other text."""


_ANSWER = (TextDelta, ToolCallDelta)
MOST_PIECES = 64
"""How many more chunks of text are kept before it is decided again which are still needed."""
LOOKBACK = 1024
"""Characters that are kept before what the parser holds back: whitespace before a marker."""
MOST_COMPARED = 1_048_576
"""Characters of thinking that are compared with text that may repeat it."""


_thinking_characters = attrgetter("thinking_characters")
_answer_characters = attrgetter("answer_characters")


class _SurplusChoiceError(Exception):
    """A chunk of a choice that nobody asked for."""


class OpenThought(NamedTuple):
    """A choice that is inside a thought."""

    text: str
    """All raw text of the choice, with the opening marker; of a thought that the upstream has split off its text."""
    split: bool
    """Whether the upstream has split it off."""
    opening: str = ""
    closing: str = ""
    """The markers around it; empty where none are known."""


class Splitter:
    """Turns the chunks of a reply into items."""

    def __init__(
        self,
        format: Format,
        make_parser: MakeParser,
        *,
        seed: int = 0,
        choices: int | None = None,
        parse_ordinary: ParseOrdinary | None = None,
        keep: int = 0,
    ) -> None:
        """`choices`: how many were asked for; chunks of others are left out and counted. None: any number.

        `parse_ordinary`: the shortcut for replies that come in one piece; without it every text has a parser.
        `keep`: characters of a choice's raw text that are kept for `written`.
        """
        self._keep = keep
        self._most = sys.maxsize if choices is None else choices
        self.surplus: int = 0
        """How many chunks belonged to choices that nobody asked for."""
        self._format = format
        self._make_parser = make_parser
        self._parse_ordinary = parse_ordinary
        self._seed = seed
        self._choices: dict[int, _Choice] = {}
        self.fields: set[str] = set()
        """The names under which the upstream has sent thinking."""

    def feed(self, chunk: Chunk) -> list[ReplyItem]:
        """Read a chunk and return the items that it makes."""
        try:
            # By type, the most frequent first: a stream is nearly all text, and this runs for every chunk.
            if type(chunk) is RawText:
                return self._choice(chunk.choice).raw_text(chunk)
            if type(chunk) is ThinkingChunk:
                if chunk.field:
                    self.fields.add(chunk.field)
                return self._choice(chunk.choice).thinking(chunk)
            if type(chunk) is CallChunk:
                return self._choice(chunk.choice).call(chunk)
            return [chunk] if type(chunk) is Begin else self._other(chunk)
        except _SurplusChoiceError:
            self.surplus += 1
            return []

    def feed_last(self, chunk: RawText) -> list[ReplyItem]:
        """Read text behind which its choice has nothing more than its end.

        Where it is also the first of its choice, so that it is all of it, and of the ordinary shape, no parser is made.
        """
        if self._parse_ordinary is not None and not chunk.logprobs and chunk.choice not in self._choices:
            message = self._parse_ordinary(chunk.text)
            if message is not None and 0 <= chunk.choice < self._most:
                return self._choice(chunk.choice).ordinary(message)
        return self.feed(chunk)

    def _other(self, chunk: Chunk) -> list[ReplyItem]:
        """What comes only once or twice in a reply."""
        if isinstance(chunk, Ended):
            choice = self._choice(chunk.choice)
            items = choice.finish(cut=chunk.reason == "length")
            rest, termination = choice.other_logprobs, choice.termination
            if rest or termination != "end":
                chunk = msgspec.structs.replace(chunk, other_logprobs=rest, termination=termination)
            return [*items, chunk]
        if isinstance(chunk, Usage):
            return [self._usage(chunk)]
        # What the parsers hold back is the model's: it goes out before the error, never after it or not at all.
        if isinstance(chunk, Failed):
            return [*self.finish(), chunk]
        return [chunk] if isinstance(chunk, Foreign) else []

    @property
    def thinking_characters(self) -> int:
        """Characters of thinking in all choices."""
        return sum(map(_thinking_characters, self._choices.values()))

    @property
    def answer_characters(self) -> int:
        """Characters of text and of calls' arguments in all choices."""
        return sum(map(_answer_characters, self._choices.values()))

    def fast_path(self, number: int) -> Callable[[str], Delta | list[ReplyItem]]:
        """A function that reads text of a choice without log probabilities, for a stream.

        It returns the event itself where all that comes of it is more of an open part, so that no item has to be made.
        """
        try:
            return self._choice(number).delta
        except _SurplusChoiceError:
            return lambda text: self.feed(RawText(number, text))

    def finish(self) -> list[ReplyItem]:
        """Nothing more will come: release what is held back."""
        return [item for choice in self._choices.values() for item in choice.finish(cut=True)]

    def written(self, number: int) -> str:
        """The raw text that the spans of a choice's parts count; empty where more came than is kept.

        Parts that the upstream split off by itself are not in it, and have no span.
        """
        choice = self._choices.get(number)
        return choice.written() if choice is not None else ""

    def thought(self, number: int) -> OpenThought | None:
        """What a choice has written, where it is inside a thought and nothing but whitespace is held back."""
        choice = self._choices.get(number)
        return choice.thought() if choice is not None else None

    def _choice(self, number: int) -> _Choice:
        choice = self._choices.get(number)
        if choice is None:
            # A parser is made for each choice, so an upstream that invents choices would buy one for a few bytes each:
            # 200,000 of them took minutes before there was this bound.
            if not 0 <= number < self._most:
                raise _SurplusChoiceError
            choice = _Choice(number, self._format, self._make_parser, self._seed, self._keep)
            self._choices[number] = choice
        return choice

    def _usage(self, usage: Usage) -> Usage:
        """Where the upstream does not count thinking, share the tokens out by characters."""
        thought, said = self.thinking_characters, self.answer_characters
        if usage.reasoning_tokens or not thought:
            return usage  # a count of none beside thinking is not a count
        share = round(usage.output_tokens * thought / (thought + said))
        return msgspec.structs.replace(usage, reasoning_tokens=share, estimated=True)


class _Choice:
    """One choice of a reply."""

    def __init__(self, number: int, format: Format, make_parser: MakeParser, seed: int, keep: int) -> None:
        self._number = number
        self._keep = keep
        self._format = format
        self._make_parser = make_parser
        self._seed = seed
        self._ids: set[str] = set()
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
        self._calls: dict[int, _Call] = {}
        self._written: dict[int, str] = {}
        """By part: what the upstream sent of a call that it had read itself and that may not be run."""
        self._thoughts: list[str] = []
        self._repeat: list[Event] | None = None
        """What stands in a block that may only repeat thinking which came in a field of its own."""
        self._seen_thinking = False
        self._ended = False
        self.termination: Termination = "end"
        """How the output itself ended, once the choice has: `stop` and `cut` come from a parser."""
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
        return found if isinstance(found, list) else [ReplyEvent(self._number, found)]

    def ordinary(self, message: Message) -> list[ReplyItem]:
        """All of the content, which was taken apart without a parser: the choice is over with it."""
        self.termination = message.termination
        self.thinking_characters, self.answer_characters = len(message.thinking), len(message.text)
        self._ended = True
        return [ReplyEvent(self._number, event) for event in events_of(message)]

    def delta(self, text: str) -> Delta | list[ReplyItem]:
        """More text without log probabilities: the event itself where it is more of an open part."""
        # Else the parser's events need a change, or there is no parser.
        if not self.plain or self._parser is None:
            return self.raw_text(RawText(self._number, text))
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
        if not self._calling and self._tape.sync() > self._keep:
            self._tape.forget(self._tape.sync() - len(text) - parser.held - LOOKBACK)
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
        if not text or text[len(text) - parser.held :].strip():
            return None
        return OpenThought(text, False, *thinking_pair(format_of(parser)))  # `auto` has settled on them

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
            items.append(ReplyEvent(self._number, event, (), chunk.logprobs, chunk.details, chunk.signature))
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
            call = self._calls[chunk.index] = _Call(self._count, self._new_id("", self._count))
            self._count += 1
        return self._emit(events + call.feed(chunk))

    def _new_id(self, id: str, index: int) -> str:
        """The id of a call; another one where it has none, or one that was given before."""
        seed = self._seed
        while not id or id in self._ids:
            id = make_id("call", seed, index, "", 0)
            seed += 1
        self._ids.add(id)
        return id

    def finish(self, *, cut: bool) -> list[ReplyItem]:
        """The choice has ended."""
        if self._ended:
            return []
        events = self._begin_text() if self._early else []
        # Taken before `_close_text` lets go of it.
        parser = self._parser
        events += self._close_text()
        if parser is not None:
            self.termination = termination_of(parser)
        self._ended = True
        return self._emit(events + self._close_thinking(not cut) + self._close_calls(cut))

    @property
    def other_logprobs(self) -> tuple[dict[str, Any], ...]:
        """Those of tokens behind the last part."""
        return tuple(self._alignment.rest()) if self._alignment is not None else ()

    def _close_text(self) -> list[Event]:
        parser, self._parser, self.plain = self._parser, None, False
        if parser is None:
            return []
        events = self._shift(parser, parser.finish())
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
            self._alignment.place(parser, events)
        if self._repeat is not None:
            return self._without_repeat(events)
        return [self._moved(event) for event in events] if self._first else self._counted(events)

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
            id = self._new_id(event.id, index) if event.kind == "tool_call" else ""
            return PartStart(index, event.kind, gap, event.name, id)
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
            item = ReplyEvent(self._number, event)
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
            elif event.code == "implicit_close":
                self._in_thought = True
            if self._alignment is not None:
                item = self._with_logprobs(item, self._alignment)
            items.append(item)
        return items

    def _broken(self, end: PartEnd) -> ReplyEvent:
        """The end of a call that may not be run, with what was written of it."""
        own = self._written.get(end.index)
        raw = self._raw(end) if own is None else own
        written = without_markers(raw, self._format) if own is None else own
        # Dialects that cannot express a broken call write it as text. One that was cut off inside an open thought is a
        # piece of the thought, and must not appear in the answer that way.
        withheld = own is None and self._in_thought and end.error == "incomplete"
        return ReplyEvent(self._number, end, written=written, withheld=withheld, raw=raw)

    def _note_start(self, start: PartStart) -> None:
        self._calling = start.kind == "tool_call"
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


class _Call:
    """A call that the upstream has already read, in chunks."""

    def __init__(self, index: int, made_id: str) -> None:
        self.index = index
        self._begun = False
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
        if self._begun:
            return [ToolCallDelta(self.index, chunk.arguments)] if chunk.arguments else []
        # A part's start cannot be changed once it is out, so a call begins when its name has come. An id that comes
        # even later is not used.
        return self._begin() if self._name else []

    def _begin(self) -> list[Event]:
        self._begun = True
        events: list[Event] = [PartStart(self.index, "tool_call", "", self._name, self._id or self._made_id)]
        arguments = "".join(self._arguments)
        if arguments:
            events.append(ToolCallDelta(self.index, arguments))
        return events

    def finish(self, cut: bool) -> list[Event]:
        events = [] if self._begun else self._begin()
        # Servers send no arguments at all for a function without parameters. In a reply that was cut off, the same
        # silence means that they had not come yet.
        if not self._arguments and self._name and not cut:
            self._arguments.append("{}")  # a call without arguments
            events.append(ToolCallDelta(self.index, "{}"))
        error = self.error = "no_name" if not self._name else error_of("".join(self._arguments))
        if error is not None:
            code: NoticeCode = "incomplete_call" if error == "incomplete" else "unreadable_call"
            events.append(Notice(code, NOTICES[code], 0))
        events.append(PartEnd(self.index, error != "incomplete", error))
        return events


def error_of(arguments: str) -> str | None:
    """Why a call with these arguments may not be run."""
    scanner = JsonScanner()
    at, before = 0, -1
    while at > before or scanner.error is None:
        if scanner.done or at == len(arguments):
            break
        before, at = at, scanner.scan(arguments, at, len(arguments), True)
        if at == before:
            break
    if not scanner.done:
        return "incomplete"
    if scanner.error is not None or arguments[at:].strip():
        return "invalid_json"
    return None if arguments.lstrip().startswith("{") else "not_object"


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


@lru_cache(maxsize=64)
def without_thinking(format: Format) -> Format:
    """The same format, read for calls only."""
    text: dict[str, State] = {
        marker: target for marker, target in format.states.get(TEXT, {}).items() if target != THINKING
    }
    # No header either: who splits thinking off has read the headers, and the rest has none.
    return format.but(states={TEXT: text}, header=None, start=TEXT, leading=frozenset(), settle=None)


@lru_cache(maxsize=64)
def in_the_middle(format: Format) -> Format:
    """The same format for text behind a call that the upstream has read itself: it does not begin in a thought."""
    return format.but(start=TEXT if format.start == THINKING else format.start)
