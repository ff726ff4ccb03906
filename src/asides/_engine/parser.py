"""`Parser`: text in, events out. Sans-IO; knows no format by name, no wire, no clock, no file.

What it is made of, each part in a file of its own that explains it and knows only those before it:

    Cursor         where reading stands: buffer, offsets, raw text
    Holds          events on their way out, and those held back until it is known what they are
    ActiveMarkers  the format as far as it is settled, and which markers act now
    PartWriter     the open part: words and whitespace become its events
    CallsInProgress the call that is being read, and whether it is one
    Prose          text, thinking and headers, and what their markers do
    FastPath       chunks in which nothing can matter, answered without any of the above

`Parser` asks the fast path first; else it lets the reader of the present mode read, looks the outcome up (`modes.py`),
and so on until a reader waits. Reading never looks past the offset at which something that is held must be decided,
so a whole text and a stream of single characters decide alike.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, Unpack

import msgspec

from ..errors import StrictError, UsageError
from ..events import NOTICES, Event, Notice, ToolCallDelta
from ..message import Collector, Message, Termination, read_finish_reason
from ..policies import DEFAULTS, Policies, PolicyOptions
from .active_markers import ActiveMarkers
from .call_record import LONGEST_REPEAT
from .call_region import CallOptions
from .calls.tools import Tools
from .calls_in_progress import CallsInProgress
from .cursor import Cursor
from .fast_path import LONG_SPACE, SHORT, FastPath, OpenString, string_search
from .format import HEADER, TEXT, THINKING, Format, State, find_format, read_model
from .given import check_text
from .holds import Holds
from .markers import Action, compile_tables
from .mentions import LINE
from .modes import NEXT, Mode, ReadOutcome
from .open_part import PartWriter
from .prose import Prose

ParserState = Literal["thinking", "text", "call", "undecided", "ended"]

_FINISHED = "feed() was called after finish(); make a new Parser for the next message"
FEW = 8
"""Chunks that are kept without asking which of them are needed again."""
_WAIT, _WAIT_FOR_WORDS, _PROSE, _CALL = ReadOutcome.WAIT, ReadOutcome.WAIT_FOR_WORDS, Mode.PROSE, Mode.CALL


class Opening(msgspec.Struct, frozen=True):
    """Where reading begins."""

    state: State
    fresh: bool = False
    """Whether a marker stands just before, so that whitespace at the start belongs to it."""
    undecided: bool = False
    runs_calls: bool = True
    """Whether calls may stand in the message that the prompt has opened."""
    header: str = ""
    """What the prompt holds of a message header that the output goes on with."""
    call: str = ""
    """The opener of a call that ends the prompt."""
    opener: str = ""
    """The weak opener at the end of the prompt, if that is what opened thinking: only its own closer ends it."""


class Parser:
    """Takes a model's output apart as it comes. `feed` chunks, then `finish`; both return a list of events.

    Examples:
        >>> parser = asides.Parser("qwen3")
        >>> parser.feed("<think>2+")
        [PartStart(index=0, kind='thinking'), ThinkingDelta(index=0, text='2+')]
        >>> events = parser.feed("2</think>It is 4.")
        >>> parser.finish()
        [PartEnd(index=1, span=(18, 26))]
        >>> parser.message.text
        'It is 4.'
    """

    __slots__ = (
        "_calls",
        "_collector",
        "_cursor",
        "_fast",
        "_finished",
        "_holds",
        "_lookback",
        "_markers",
        "_mode",
        "_prose",
        "_readers",
        "_writer",
    )

    def __init__(
        self,
        format: str | Format = "auto",
        policies: Policies = DEFAULTS,
        *,
        model: str | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None:
        """`model`: the name of the model that writes, which says where its output begins, and with `format="auto"`
        also how it is written."""
        if options:
            policies = policies.but(**options)
        if model is not None:
            format, policies = read_model(model, format, policies)
        format = find_format(format)
        opening = _opening(format, policies)
        tools = Tools(policies.tools) if policies.tools is not None else None
        # Never in `auto`: bare JSON behind prose is a call only to those who know that their model writes calls so.
        bare_lines = tools is not None and format.settle is None and any(each.bare for each in format.calls)
        strict = policies.strict
        self._collector = Collector() if policies.collect else None
        self._cursor = Cursor()
        self._holds = Holds(self._collector, frozenset(NOTICES) if strict is True else frozenset(strict or ()))
        self._markers = ActiveMarkers(
            format,
            calls_in_thinking=policies.calls_in_thinking,
            reads_calls=policies.calls,
            bare_lines=bare_lines,
        )
        if opening.opener:
            self._markers.settle_on(opening.opener)
        self._writer = PartWriter(
            self._cursor,
            self._holds,
            self._markers,
            state=opening.state,
            after_marker=opening.fresh,
            tidy=policies.whitespace == "tidy",
            quotes=policies.mentions == "literal",
            limit=policies.limit,
            bare_lines=bare_lines,
            may_retype=_may_retype(format, policies),
        )
        if opening.undecided:
            self._holds.open_undecided()
        if not opening.runs_calls:
            self._markers.let_calls(False)
            self._markers.enter(opening.state)
        opened = None
        if opening.call:
            opened = self._markers.tables.text.markers.get(opening.call)
            self._writer.expect_call(opened is not None)
        self._calls = CallsInProgress(self._writer, CallOptions(tools, policies.seed, policies.repair), opened)
        may_watch = policies.start == "undecided" and format.header is not None and format.header.bare is not None
        self._prose = Prose(self._writer, self._calls, header_before=opening.header, may_watch=may_watch)
        self._readers: dict[Mode, Callable[[int, bool], ReadOutcome]] = {
            Mode.BEGIN: self._prose.read_begin,
            Mode.HEADER: self._prose.read_header,
            Mode.BARE_HEADER: self._prose.read_bare_header,
            Mode.PROSE: self._prose.read,
            Mode.CALL: self._calls.read,
            Mode.DEAD: self._calls.read_dead,
            Mode.AFTER_CALLS: self._calls.read_after,
            Mode.AFTER_STOP: self._prose.read_after_stop,
            Mode.BEYOND: self._prose.read_beyond,
        }
        self._mode = Mode.BEGIN if opening.state == HEADER or may_watch else _PROSE
        self._finished = False
        self._lookback = LINE
        self._fast = FastPath(
            self._cursor.tape,
            self._markers.table,
            tidy=self._writer.tidy,
            limit=policies.limit,
            collector=self._collector,
        )

    def feed(self, chunk: str | None) -> list[Event]:
        """Read a chunk and return its events. None is no text, as an empty chunk is: servers send both."""
        if not chunk:
            return self._feed_nothing(chunk)
        # The commonest chunks are answered here, field by field; `fast_path.py` says why, and has the rest.
        fast = self._fast
        delta = fast.inline
        matters: object
        events: list[Event] | None
        if delta is not None:
            few = fast.few
            if few is not None:
                one, two, three, four = few
                matters = one in chunk or (two is not None and (two in chunk or three in chunk or four in chunk))
            else:
                matters = fast.glance(chunk)
            if matters and fast.suspect(chunk) is not None:
                events = fast.take_doubtful(chunk)
            else:
                words = chunk.rstrip()
                if words is chunk:
                    pieces = fast.pieces
                    pieces.append(chunk)
                    if len(pieces) > fast.most:
                        fast.close()
                    return [delta(fast.index, chunk)]
                events = fast.take_spaced(chunk, words)
        elif fast.string is None:
            events = fast.take(chunk)
        elif not fast.held and fast.string_into is None and fast.string(chunk) is None:
            pieces = fast.pieces
            pieces.append(chunk)
            if len(pieces) > fast.most:
                fast.close()
            event = ToolCallDelta(fast.index, chunk)
            if fast.arguments is not None:
                fast.arguments.append(event)
            return [event]
        else:
            events = fast.take_string(chunk)
        if events is not None:
            return events
        if self._finished:
            raise UsageError(_FINISHED)
        if chunk.__class__ is not str:
            check_text(chunk)
        return self._advance(chunk, False)

    def _feed_nothing(self, chunk: object) -> list[Event]:
        """A chunk without text."""
        if self._finished:
            raise UsageError(_FINISHED)
        if chunk is not None:
            check_text(chunk)
        return []

    def finish(self, finish_reason: str | None = None) -> list[Event]:
        """The input is over: return what was held back and how it ends. A second call returns nothing.

        `finish_reason` is what the server says of the end: `"stop"` (the model ended its turn) or `"length"` (the reply
        was cut: calls that are held back are none). None: nobody knows, which counts as a stop.
        """
        reason = read_finish_reason(finish_reason)
        if self._finished:
            return []
        self._writer.report_end(reason)
        return self._advance("", True)

    @property
    def message(self) -> Message:
        """The message so far; the whole of it after `finish`."""
        if self._collector is None:
            raise UsageError("message is not available with collect=False")
        tape = self._cursor.tape
        tape.sync()
        return self._collector.message("".join(tape.pieces), open_span(self), termination_of(self), beyond_of(self))

    @property
    def state(self) -> ParserState:
        """Where the parser stands: what the next word would be part of."""
        if self._holds.undecided:
            return "undecided"
        if self._calls.region is not None:
            return "call"
        if self._markers.table.state == THINKING:
            return "thinking"
        part = self._writer.part
        return "ended" if part.stopped and part.kind is None else "text"

    @property
    def held(self) -> int:
        """How many characters are held back."""
        return self._cursor.tape.sync() - self._emitted()

    def _emitted(self) -> int:
        """The offset up to which events hold everything."""
        if self._holds.undecided:
            return 0
        read, untold = self._cursor.tape.sync() - self._fast.size, self._calls.untold
        # A broken call may have been read less far than to the closing marker that may be its end.
        return read if untold is None else min(read, untold)

    def _advance(self, chunk: str, final: bool) -> list[Event]:
        """Let the machine read a chunk."""
        fast, cursor, holds = self._fast, self._cursor, self._holds
        fast.pieces.append(chunk)
        text = fast.held + chunk if fast.waiting is None else fast.resume(chunk, final)
        if text is None:
            return []
        out = holds.collect()
        cursor.start(text)
        if self._calls.region is None:
            self._writer.catch_up(cursor.base + cursor.at)
        try:
            outcome = self._run(final)
            if final:
                self._end()
        except StrictError:
            self._finished = True
            fast.close()
            raise
        fast.hold(cursor.stop(), outcome is _WAIT_FOR_WORDS)
        if self._collector is None and len(fast.pieces) > FEW:
            self._forget()
        if len(text) <= SHORT and not self._finished and not holds.stack:
            self._open_fast_path()
        return out

    def _forget(self) -> None:
        """Drop the text that is not looked at again."""
        offset = self._emitted()
        region = self._calls.region
        compared = region.record.needed if region is not None else None
        if compared is not None:
            offset = min(offset, max(compared, offset - LONGEST_REPEAT))
        self._cursor.tape.forget(offset - self._lookback)

    def _open_fast_path(self) -> None:
        """Whether the next chunk may go straight through, and what would stop it."""
        fast, region, writer = self._fast, self._calls.region, self._writer
        if region is not None:
            ends = region.string_ends if self._mode is _CALL and not fast.held else None
            if ends is not None:
                markers = self._markers.tables.closers_of(region.syntax)
                body = region.string_body if writer.limit >= SHORT else None
                search = string_search(ends, markers.beginnings)
                fast.write_string(region.record.index, OpenString(search, body, markers, *region.string_into))
            return
        part, table = writer.part, self._markers.table
        if (
            part.kind is not None
            and self._mode is _PROSE
            and not part.overflowed
            and not part.empty
            and fast.waiting is None
            and writer.limit >= LONG_SPACE
        ):
            fast.write_prose(table.after_words, part.index)

    def _run(self, final: bool) -> ReadOutcome:
        """Read on from mode to mode, until a reader waits."""
        cursor, readers = self._cursor, self._readers
        while True:
            end = len(cursor.buffer)
            held = self._calls.region is not None or self._holds.undecided
            horizon = self._horizon() - cursor.base if held else end
            if horizon >= end:
                if cursor.at == end and self._mode is _PROSE and not final:
                    return _WAIT  # a marker ended the chunk, and there is nothing behind it
                outcome = readers[self._mode](end, final)
                if outcome is _WAIT or outcome is _WAIT_FOR_WORDS:
                    return outcome
            else:
                # An opener may itself be longer than the limit.
                outcome = readers[self._mode](max(horizon, cursor.at), False)
                if outcome is _WAIT or outcome is _WAIT_FOR_WORDS:
                    if self._horizon() - cursor.base > horizon:
                        continue
                    outcome = self._expire()
            self._mode = NEXT[self._mode, outcome]

    def _horizon(self) -> int:
        """The offset at which something that is held back must be decided."""
        horizon = self._calls.horizon
        return min(horizon, self._writer.limit + 1) if self._holds.undecided else horizon

    def _expire(self) -> ReadOutcome:
        """What is held back has reached the limit: decide it now."""
        if not self._holds.undecided:
            return self._calls.expire()
        self._writer.settle_as_text(Notice("limit", "the start is undecided for too long; taken as text", 0))
        return ReadOutcome.EXPIRED

    def _end(self) -> None:
        """The input is over."""
        holds, writer = self._holds, self._writer
        if self._markers.watching and writer.header_in_open_fence and writer.reported != "length":
            # The block that never closes stands in a thought, and the header after it is one.
            self._mode = NEXT[self._mode, self._prose.settle_as_bare()]
            self._run(True)
        if holds.undecided:
            writer.settle_as_text()
        writer.end(self._cursor.base + self._cursor.at)
        self._calls.release()
        self._finished = True


def read_all(parser: Parser, text: str, finish_reason: str | None = None) -> None:
    """Feed a new parser a whole output and finish it, in one go: it waits for nothing that is there already."""
    parser._writer.report_end(read_finish_reason(finish_reason))
    parser._advance(text, True)


def fast_path_of(parser: Parser) -> FastPath:
    """The fast path of a parser, for one who looks at pieces before they come: `TokenParser`."""
    return parser._fast


def open_span(parser: Parser) -> tuple[int, int]:
    """Where the open part begins, and up to where events hold everything."""
    start = parser._calls.start
    return parser._writer.part.start if start is None else start, parser._emitted()


def format_of(parser: Parser) -> Format:
    """The format that is in effect: what `auto` has settled on so far."""
    return parser._markers.format


def termination_of(parser: Parser) -> Termination:
    """How the output ended, as `message.termination` says; `cut` while thinking or a call is open. A stop marker
    outranks what was reported."""
    writer = parser._writer
    if writer.reported is not None:
        return "cut" if writer.reported == "length" and not writer.stopped else "stop"
    if writer.cut or (not parser._finished and (parser._markers.table.state == THINKING or parser._calls.region)):
        return "cut"
    return "stop" if writer.stopped else "end"


def keep_kinds(parser: Parser) -> None:
    """From here on the first part stays what it was said to be: for those who cannot take back what they sent."""
    parser._writer.keep_kinds()


def may_become_text(parser: Parser) -> bool:
    """Whether what was read as a thought so far may turn out to be the answer, so that its words are needed again."""
    writer = parser._writer
    return writer.may_retype and not writer.part.acted and writer.part.kind != "text"


def beyond_of(parser: Parser) -> tuple[int, int] | None:
    """Where the output goes on as another turn."""
    start = parser._writer.beyond_from
    return (start, parser._cursor.tape.sync()) if start is not None else None


def turn_end_of(parser: Parser) -> int:
    """The offset of the stop marker that ended the turn; `NOWHERE` while none has."""
    return parser._writer.part.turn_end


def _may_retype(format: Format, policies: Policies) -> bool:
    """Whether the first part may turn out to be of the other kind: where its start is a guess."""
    if policies.retype is not None:
        return policies.retype
    return policies.start is None and policies.prompt is None and format.start == TEXT


def _opening(format: Format, policies: Policies) -> Opening:
    """Where reading begins: the caller's word, else what the prompt says, else the format's own start."""
    start, first = policies.start, format.start
    if start == "undecided":
        return Opening(TEXT, undecided=True) if first in (TEXT, THINKING) else Opening(first)
    if start is not None:
        return Opening(THINKING, fresh=True) if start == "thinking" else Opening(TEXT)
    if policies.prompt is not None:
        return read_prompt(format, policies.prompt)
    return Opening(first, fresh=first == THINKING)


def read_prompt(format: Format, prompt: str) -> Opening:
    """Where a prompt leaves the model: read off what follows the last assistant header, or off a marker at its end."""
    place, header = max(((prompt.rfind(header), header) for header in format.assistant), default=(-1, ""))
    if place < 0:
        tail = prompt.rstrip()
        tables = compile_tables(format, "never", False)
        ends = [marker for table in (tables.text, tables.thinking) for marker in table.at_end(tail)]
        if any(marker.action is Action.CLOSE for marker in ends):
            return Opening(TEXT, fresh=True)
        for marker in ends:
            if marker.action is Action.OPEN:
                return Opening(THINKING, fresh=True, opener=marker.text if marker.weak else "")
        call = _call_at_end(format, tail)
        return Opening(TEXT, fresh=True, call=call) if call else Opening(format.start, fresh=format.start == THINKING)
    tail = prompt[place + len(header) :]
    return _read_tail(format, tail) if len(tail) <= SHORT else _read_tail.__wrapped__(format, tail)


@lru_cache(maxsize=512)
def _read_tail(format: Format, tail: str) -> Opening:
    """Where what follows the assistant header leaves the model. Mostly nothing does, or a marker does."""
    first: State = TEXT if format.start == THINKING else format.start
    parser = Parser(_starting_in(format, first), mentions="marker", calls_in_thinking="never")
    parser.feed(tail)
    if first == HEADER and parser._mode in (Mode.BEGIN, Mode.HEADER):
        return Opening(HEADER, header=tail[parser._emitted() :])
    part, markers = parser._writer.part, parser._markers
    fresh = part.kind is None and part.after_marker
    if parser.state != "thinking":
        call = _call_at_end(format, tail) if markers.runs_calls else ""
        return Opening(TEXT, fresh=fresh or bool(call), runs_calls=markers.runs_calls, call=call)
    opener = markers.tables.weak_opener
    return Opening(THINKING, fresh=fresh, runs_calls=markers.runs_calls, opener=opener)


@lru_cache(maxsize=512)
def _starting_in(format: Format, state: State) -> Format:
    """The format with this start. Always the same object: its tables take milliseconds, and are kept by object."""
    return format if format.start == state else format.but(start=state)


def _call_at_end(format: Format, prompt: str) -> str:
    """The opener of a call that ends a prompt, or an empty string: the output goes on with the call."""
    openers = compile_tables(format, "never", True).text.at_end(prompt.rstrip())
    found = [marker.text for marker in openers if marker.action is Action.CALL]
    return max(found, key=len, default="")
