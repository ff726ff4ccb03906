"""The machine: text in, events out. Sans-IO; knows no format by name, no wire, no clock, no file.

One loop: find the next marker that can act in this state; give what stands before it to the state's part; go where the
marker leads; when no marker is there, give all but the longest tail that could still begin one. What a marker does is
in `markers.py`, what quotes it in `mentions.py`, how calls read in `calls/` and `region.py`, how message headers read
in `headers.py`.

Positions: `_buffer` holds what has not been decided yet (with a few characters before it, for looking back),
`_buffer[_at]` is the first character that no event has told of, and `_base` is the offset of `_buffer[0]` in the raw
text. Everything that outlives a call to `feed` is kept as an offset.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ..errors import StrictError, UsageError
from ..events import (
    NOTICES,
    Event,
    Notice,
    NoticeCode,
    PartEnd,
    PartStart,
    TextDelta,
    ThinkingDelta,
)
from ..parts import Kind
from .calls.reader import Status
from .calls.tools import Tools
from .fences import Fences
from .format import END, HEADER, OUTSIDE, TEXT, THINKING, CallsInThinking, Format, State
from .headers import read_header, starts_header
from .markers import Action, Found, Marker, Table, compile_tables
from .mentions import Lookahead, Verdict, judge
from .message import Collector, Message, Termination
from .region import Region
from .tape import Tape

log = logging.getLogger("asides")

Start = Literal["text", "thinking", "undecided"]
Mentions = Literal["literal", "marker"]
Whitespace = Literal["tidy", "exact"]
ParserState = Literal["thinking", "text", "call", "undecided", "ended"]

LIMIT = 1_048_576
"""How many characters may be held back unless the caller says otherwise."""
LOOKBACK = 4
"""How many characters before the undecided text are kept: a fence's indent or a quote and what stands before it."""
ASLEEP = 256
"""From this length on, held whitespace is no longer joined with every chunk."""
SHORT = 512
"""Chunks longer than this do not take the fast path: searching them marker by marker is faster."""
NOWHERE = sys.maxsize

NON_SPACE = re.compile(r"\S")
_DELTA: dict[State, type[TextDelta] | type[ThinkingDelta]] = {TEXT: TextDelta, THINKING: ThinkingDelta}


class _Memory(msgspec.Struct, gc=False):
    """What must be put back when held events turn out to be wrong."""

    kind: Kind | None
    index: int
    start: int
    count: int
    gap: str
    seen: tuple[bool, bool]
    calls_made: int
    noticed_stop: bool
    fresh: bool
    content_from: int
    holds: int


class Parser:
    """Takes a model's output apart as it comes. `feed` chunks, then `finish`; both return a list of events."""

    __slots__ = (
        "_alarm",
        "_asleep",
        "_at",
        "_bare_from",
        "_base",
        "_buffer",
        "_cache",
        "_calls_in_thinking",
        "_carry",
        "_collect",
        "_collector",
        "_content_from",
        "_count",
        "_cut",
        "_debug",
        "_draft",
        "_drafted",
        "_fenced",
        "_fences",
        "_fences_until",
        "_finished",
        "_format",
        "_fresh",
        "_gap",
        "_gap_head",
        "_glance",
        "_holds",
        "_index",
        "_keep",
        "_kind",
        "_limit",
        "_lookahead",
        "_mode",
        "_noticed_stop",
        "_out",
        "_outside",
        "_quick",
        "_quotes",
        "_reads_calls",
        "_region",
        "_reread_until",
        "_said",
        "_scan",
        "_seen_text",
        "_seen_thinking",
        "_spilled",
        "_start",
        "_stopped",
        "_strict",
        "_table",
        "_tables",
        "_tape",
        "_tidy",
        "_undecided",
        "_wake",
        "calls_made",
        "repair",
        "seed",
        "tools",
    )

    def __init__(
        self,
        format: Format,
        *,
        start: Start | None = None,
        prompt: str | None = None,
        calls_in_thinking: CallsInThinking | None = None,
        mentions: Mentions = "literal",
        whitespace: Whitespace = "tidy",
        tools: Sequence[Mapping[str, Any]] | None = None,
        seed: int = 0,
        strict: bool | Collection[str] = False,
        limit: int = LIMIT,
        collect: bool = True,
        calls: bool = True,
        repair: bool = False,
    ) -> None:
        _check("start", start, (None, "text", "thinking", "undecided"))
        _check("calls_in_thinking", calls_in_thinking, (None, "resolve", "never", "always"))
        _check("mentions", mentions, ("literal", "marker"))
        _check("whitespace", whitespace, ("tidy", "exact"))
        if limit < 1:
            raise UsageError(f"limit must be at least 1, not {limit}")
        self._format = format
        self._calls_in_thinking: CallsInThinking = calls_in_thinking or format.calls_in_thinking
        self._reads_calls = calls
        self._quotes = mentions == "literal"
        self._tidy = whitespace == "tidy"
        self._strict = frozenset(NOTICES) if strict is True else frozenset(strict or ())
        unknown = self._strict - frozenset(NOTICES)
        if unknown:
            raise UsageError(f"strict names unknown notices: {', '.join(sorted(unknown))}")
        self._limit = limit
        self.seed = seed
        self.tools = Tools(tools) if tools is not None else None
        self.repair = repair
        self._debug = log.isEnabledFor(logging.DEBUG)

        self._tape = Tape()
        self._collect = collect
        self._keep: Callable[[str], None] = self._tape.pieces.append if collect else self._keep_some
        self._collector = Collector()
        self._out: list[Event] = []
        self._holds: list[list[Event]] = []
        self._finished = False

        self._tables = compile_tables(format, self._calls_in_thinking, calls)
        self._restart(*self._first_state(start, prompt))
        self._settle_fast_path(0)

    def _first_state(self, start: Start | None, prompt: str | None) -> tuple[State, bool, bool]:
        """Where reading begins: the state, whether a marker stands just before it, and whether it is undecided."""
        if start == "undecided":
            first = self._format.start
            return (TEXT, False, True) if first in (TEXT, THINKING) else (first, False, False)
        if start is not None:
            return (THINKING, True, False) if start == "thinking" else (TEXT, False, False)
        if prompt is not None:
            return (*read_prompt(self._format, prompt), False)
        return self._format.start, self._format.start == THINKING, False

    def _restart(self, state: State, fresh: bool, undecided: bool, fences_until: int = NOWHERE) -> None:
        """Begin at the first character."""
        self._buffer = ""
        self._at = 0
        self._base = 0
        self._carry = ""
        self._asleep: list[str] | None = None
        self._wake: re.Pattern[str] | None = None
        self._cache: dict[Table, list[tuple[int, int, int, Marker | None]]] = {}
        self._lookahead = Lookahead()
        self._fences = Fences()
        self._fences_until = fences_until
        self._fenced = False
        self._holds.clear()

        self._mode = self._read_begin if state == HEADER else self._read_prose
        self._table = self._tables.thinking if state == THINKING else self._tables.text
        self._outside = False
        self._fresh = fresh
        self._content_from = 0
        self._scan = 0
        self._spilled = False
        self._kind: Kind | None = None
        self._index = 0
        self._start = 0
        self._said = 0
        self._count = 0
        self._gap = ""
        self._gap_head = ""
        self._seen_text = False
        self._seen_thinking = False
        self._stopped = False
        self._noticed_stop = False
        self._cut = False
        self.calls_made = 0
        self._region: Region | None = None
        self._draft: tuple[_Memory, int, int] | None = None
        self._drafted = 0
        self._reread_until = 0
        self._bare_from = 0 if self._tables.bare and state == TEXT else -1
        self._undecided = undecided
        if undecided:
            self._holds.append([])

    # The public face.

    def feed(self, chunk: str) -> list[Event]:
        """Read a chunk and return what it tells."""
        # The fast path: a part is open, at most whitespace is held, and nothing in the chunk can matter.
        delta = self._quick
        if delta is not None and (self._glance(chunk) is None or self._harmless(chunk)):
            words = chunk.rstrip() if self._tidy else chunk
            if words:
                self._keep(chunk)
                carry = self._carry
                if words is not chunk:
                    self._carry = chunk[len(words) :]
                elif carry:
                    self._carry = ""
                return [delta(self._index, carry + words if carry else words)]
            if chunk and len(self._carry) < ASLEEP:
                self._keep(chunk)
                self._carry += chunk
                return []
        if self._finished:
            raise UsageError("feed() was called after finish(); make a new Parser for the next message")
        return self._advance(chunk, False)

    def _harmless(self, chunk: str) -> bool:
        """Whether a chunk that holds the first character of a marker or a fence holds neither."""
        match = self._alarm(chunk)
        if match is None:
            return True
        if match.start() > 0 or match.group()[-1] not in "`~" or match.group()[0] == "\n":
            return False
        # A fence character at the start of the chunk matters only if a line begins there.
        before = self._carry or self._tape.pieces[-1]
        return bool(before) and not before[-1].isspace() and self._alarm(chunk, match.end()) is None

    def finish(self) -> list[Event]:
        """The input is over: return what was held back and how it ends. A second call returns nothing."""
        if self._finished:
            return []
        return self._advance("", True)

    @property
    def message(self) -> Message:
        """The message so far; the whole of it after `finish`."""
        if not self._collect:
            raise UsageError("message is not available with collect=False")
        tape = self._tape
        tape.sync()
        termination: Termination = "cut" if self._cut else "stop" if self._stopped else "end"
        if not self._finished and (self._table.state == THINKING or self._region):
            termination = "cut"
        return self._collector.message("".join(tape.pieces), (self._open_start(), self._told()), termination)

    @property
    def state(self) -> ParserState:
        """Where the parser stands: what the next word would be part of."""
        if self._undecided:
            return "undecided"
        if self._region is not None:
            return "call"
        if self._table.state == THINKING:
            return "thinking"
        return "ended" if self._stopped and self._kind is None else "text"

    @property
    def held(self) -> int:
        """How many characters are held back."""
        return self._tape.sync() - self._told()

    def _told(self) -> int:
        """The offset up to which events have told everything."""
        consumed = self._tape.sync() - len(self._carry) - sum(map(len, self._asleep or ()))
        if self._undecided:
            return 0
        if self._draft is not None:
            return self._draft[1]
        if self._region is not None and self._region.waiting:
            region = self._region
            return region.hold_start if region.holds_closer else region.space_from
        return consumed

    def _open_start(self) -> int:
        return self._region.start if self._region is not None and self._region.committed else self._start

    # Reading.

    def _keep_some(self, chunk: str) -> None:
        pieces = self._tape.pieces
        pieces.append(chunk)
        if len(pieces) > 512:
            self._tape.sync()
            self._tape.forget(self._told() - LOOKBACK)

    def _advance(self, chunk: str, final: bool) -> list[Event]:
        self._keep(chunk)
        if self._asleep is not None:
            self._asleep.append(chunk)
            size = len(self._carry) + sum(map(len, self._asleep)) if len(self._asleep) % 64 == 0 else 0
            if not final and self._wake is not None and not self._wake.search(chunk) and size <= self._limit:
                return []
            chunk = "".join(self._asleep)
            self._asleep = None
        self._out = out = []
        tape = self._tape
        consumed = tape.sync() - len(self._carry) - len(chunk)
        before = tape.text(max(0, consumed - LOOKBACK), consumed)
        self._buffer = before + self._carry + chunk
        self._at = len(before)
        self._base = consumed - self._at
        if self._region is None:
            # The fast path does not count, and lets nothing through that could be a fence.
            self._said = consumed
            self._fences.at = max(self._fences.at, consumed)
        self._cache.clear()
        self._wake = None
        try:
            self._run(final)
            if final:
                self._end()
        except StrictError:
            self._finished = True
            self._quick = None
            raise
        self._carry = self._buffer[self._at :]
        if self._wake is not None and len(self._carry) >= ASLEEP:
            self._asleep = []
        if not self._collect:
            tape.forget(self._told() - LOOKBACK)
        self._buffer = ""
        self._settle_fast_path(len(chunk))
        return out

    def _settle_fast_path(self, size: int) -> None:
        """Whether the next chunk may go straight through, and what would stop it."""
        self._quick: type[TextDelta] | type[ThinkingDelta] | None = None
        table = self._table
        if (
            self._kind is None
            or size > SHORT
            or self._finished
            or self._holds
            or self._spilled
            or self._region is not None
            or self._mode != self._read_prose
            or self._asleep is not None
            or self._limit < ASLEEP
            or (self._carry and not (self._tidy and self._carry.isspace()))
            or (table.state == TEXT and not self._fences.settled)
        ):
            return
        self._glance, self._alarm = table.glance, table.alarm
        self._quick = _DELTA[table.state]

    def _run(self, final: bool) -> None:
        while True:
            end = len(self._buffer)
            horizon = self._horizon() - self._base
            if horizon < end:
                # An opener may itself be longer than the limit.
                if not self._mode(max(horizon, self._at), False) and self._horizon() - self._base <= horizon:
                    self._expire()
            elif not self._mode(end, final):
                return

    def _horizon(self) -> int:
        """The offset at which something that is held back must be decided."""
        horizon = NOWHERE
        if self._undecided:
            horizon = self._limit + 1
        if self._draft is not None:
            horizon = min(horizon, self._draft[2] + self._limit + 1)
        elif self._region is not None and self._region.waiting:
            horizon = min(horizon, self._region.hold_start + self._limit + 1)
        return horizon

    def _expire(self) -> None:
        """What is held back has reached the limit: decide it now."""
        if self._undecided:
            notice = Notice("limit", "the start is undecided for too long; taken as text", 0)
            self._holds[0].insert(0, notice)
            self._settle_as_text()
        elif self._draft is not None:
            self._give_back("limit", "a call in thinking is held for too long; taken as thinking")
        elif self._region is not None and self._region.holds_closer:
            self._notice_limit(self._region.hold_start)
            self._region.holds_closer = False
            self._region.closer = None
            self.release_hold()
        else:
            self._give_back("limit", "a possible call is held for too long; taken literally")

    def _notice_limit(self, offset: int) -> None:
        self._holds[-1].insert(0, Notice("limit", NOTICES["limit"], offset))

    # Prose: text and thinking.

    def _read_prose(self, end: int, final: bool) -> bool:
        """Read text or thinking up to the next marker that acts."""
        table = self._table
        scan = max(self._scan - self._base, self._at)
        if self._bare_from >= 0 and self._kind is None and self._begin_bare(end, final):
            return True
        while True:
            found = self._find(table, scan, end)
            if found is None:
                hold = end if final else table.begins(self._buffer, scan, end)
                break
            if found.stop == end and not final and found.marker.text in table.extendable:
                hold = found.start
                break
            verdict, stop = self._judge(found, end, final)
            if verdict is Verdict.WAIT:
                hold = found.start
                break
            if verdict is Verdict.ACTS and not self._is_literal(found):
                return self._act(found)
            if verdict is Verdict.SPENT:
                self._say_literal(found.start)
                self.notice("limit", self._base + found.start)
            scan = stop
        self._scan = self._base + hold
        self._flow(hold, beside=False, final=final)
        return False

    def _find(self, table: Table, scan: int, end: int) -> Found | None:
        """The first marker of the table in `_buffer[scan:end]`. Remembers, so that each character is searched once."""
        entries = self._cache.get(table)
        if entries is None:
            entries = self._cache[table] = [(NOWHERE, -1, -1, None)] * len(table.searches)
        base = self._base
        offset = base + scan
        first = (0, NOWHERE, NOWHERE, None)
        for number, (pattern, members) in enumerate(table.searches):
            entry = entries[number]
            if not entry[0] <= offset <= entry[1]:
                match = pattern.search(self._buffer, scan)
                if match is None:
                    entry = (offset, NOWHERE, NOWHERE, None)
                else:
                    marker = members[(match.lastindex or 1) - 1]
                    entry = (offset, base + match.start(), base + match.end(), marker)
                entries[number] = entry
            if entry[1] < first[1]:
                first = entry
        if first[3] is None or first[2] - base > end:
            return None
        return Found(first[1] - base, first[2] - base, first[3])

    def _judge(self, found: Found, end: int, final: bool) -> tuple[Verdict, int]:
        """Whether a marker acts or is only talked about."""
        if not self._quotes:
            return Verdict.ACTS, found.stop
        floor = max(self._content_from - self._base, 0)
        verdict, stop = judge(
            self._buffer,
            self._base,
            found,
            end,
            final,
            floor=floor,
            limit=self._limit,
            lookahead=self._lookahead,
        )
        if verdict is Verdict.ACTS and self._table.state == TEXT and self._in_fence(found.start, floor):
            verdict, stop = Verdict.LITERAL, found.stop
            self._fenced = True
        if verdict is Verdict.LITERAL and found.marker.action is Action.STOP:
            # A stop marker with nothing but whitespace behind it is a stop, wherever it stands.
            after = NON_SPACE.search(self._buffer, found.stop, end)
            if after is None and end - found.stop <= self._limit:
                if final:
                    return Verdict.ACTS, found.stop
                self._wake = NON_SPACE
                return Verdict.WAIT, found.stop
        return verdict, stop

    def _in_fence(self, place: int, floor: int) -> bool:
        self._fences.advance(self._buffer, self._base, place, floor)
        return self._fences.inside and self._fences.opened_at < self._fences_until

    def _is_literal(self, found: Found) -> bool:
        """Whether a marker that acts elsewhere is plain words here, and saying so."""
        marker = found.marker
        if marker.leading and (self._seen_text or self._kind is not None or not self._blank_before(found.start)):
            return True
        if marker.action is not Action.NESTED:
            return False
        if self._kind is None and self._blank_before(found.start):
            return False
        self._say_literal(found.start)
        self.notice("nested_open", self._base + found.start)
        return True

    def _blank_before(self, place: int) -> bool:
        return NON_SPACE.search(self._buffer, self._at, place) is None

    def _flow(self, stop: int, *, beside: bool, final: bool = False) -> None:
        """Give `_buffer[_at:stop]` to the part. `beside`: a marker stands at `stop`, so whitespace before it is its own."""
        if not self._tidy:
            self._say(stop)
            return
        text = self._buffer[self._at : stop]
        if self._kind is None and self._fresh:
            lead = len(text) - len(text.lstrip())
            if lead < len(text) or beside or final:
                self._frame(text[:lead])
                self._at += lead
                text = text[lead:]
            elif len(text) > self._limit:
                self._gap_head = self._gap_head or text[: self._limit]
                self._at += lead
                return
        if not text:
            if beside and self._spilled:
                self._end_spill(stop)
            return
        words = len(text.rstrip())
        if words:
            self._say(self._at + words)
            self._spilled = False
        if final:
            self._say(stop)
        elif words < len(text):
            space = text[words:]
            spills = not self._fresh_start() and (self._spilled or len(space) > self._limit)
            if spills:
                self._say(stop)
                self._spilled = True
            if beside and spills:
                self._end_spill(stop)
            elif beside:
                self._frame(space)
                self._at = stop
            elif not spills:
                self._wake = NON_SPACE

    def _end_spill(self, stop: int) -> None:
        """Whitespace that was held too long stands beside a marker and is told as words all the same."""
        self.notice("limit", self._base + stop)
        self._spilled = False

    def _say_literal(self, stop: int) -> None:
        """Give everything up to `stop` to the part, because what stands there is words too."""
        if self._tidy and self._fresh_start():
            match = NON_SPACE.search(self._buffer, self._at, stop)
            start = match.start() if match else stop
            self._frame(self._buffer[self._at : start])
            self._at = start
        self._say(stop)
        self._spilled = False

    def _fresh_start(self) -> bool:
        return self._kind is None and self._fresh

    def _frame(self, space: str) -> None:
        """Whitespace that belongs to a marker. The widest run between two texts is the gap between them."""
        space, self._gap_head = self._gap_head or space[: self._limit], ""
        if space and self._table.state == TEXT and self._seen_text:
            self._gap = max(self._gap, space, key=lambda run: (run.count("\n"), len(run)))

    def _say(self, stop: int) -> None:
        """Give `_buffer[_at:stop]` to the part, as it is."""
        text = self._buffer[self._at : stop]
        if not text:
            return
        if self._kind is None:
            self._open_part()
        self.emit(_DELTA[self._table.state](self._index, text))
        if self._table.state == TEXT and self._quotes:
            self._fences.advance(self._buffer, self._base, stop, max(self._content_from - self._base, 0))
        self._at = stop
        self._said = self._base + stop

    def _open_part(self) -> None:
        offset = self._base + self._at
        self._notice_place(offset)
        self._index, self._start = self._count, offset
        self._count += 1
        if self._table.state == THINKING:
            self._kind = "thinking"
            gap = "\n\n" if self._seen_thinking and self._tidy else ""
            self._seen_thinking = True
        else:
            self._kind = "text"
            gap = ""
            if self._seen_text and self._tidy:
                gap = self._gap if self._format.header is None else "\n\n"
            self._seen_text, self._gap = True, ""
        self.emit(PartStart(self._index, self._kind, gap))

    def _notice_place(self, offset: int) -> None:
        """Say so when a part begins where none is expected."""
        if self._stopped and not self._noticed_stop:
            self._noticed_stop = True
            self.notice("after_stop", offset)
        elif self._outside and self._table.state == TEXT:
            self.notice("outside_message", offset)

    def _close_part(self, complete: bool) -> None:
        if self._kind is not None:
            self.emit(PartEnd(self._index, complete, None, (self._start, self._said)))
            self._kind = None

    # What markers do.

    def _act(self, found: Found) -> bool:
        """Go where a marker leads."""
        marker = found.marker
        if self._debug:
            offset = self._base + found.start
            log.debug("%s at %d: in %s, %s", marker.text, offset, self._table.state, marker.action.value)
        if marker.action is Action.CALL:
            self._flow(found.start, beside=False)
            self._begin_region(marker, found)
            return True
        if marker.action is Action.HEADER:
            self._flow(found.start, beside=False)
            self._scan = self._base + found.start
            self._mode = self._read_header
            return True
        if self._undecided:
            if marker.action is Action.STRAY and marker.closes_thinking:
                self._settle_as_thinking(self._base + found.start)
                return True
            if marker.action in (Action.OPEN, Action.STOP):
                self._settle_as_text()
        self._flow(found.start, beside=True)
        offset = self._base + found.start
        if marker.action is Action.STOP:
            self._stop(offset)
        elif marker.action is Action.NESTED:
            self._close_part(True)  # with exact whitespace, what stood before the echo is a part
        else:
            said = self._seen_text
            self._close_part(True)
            if marker.action is Action.STRAY and (said or not marker.closes_thinking):
                self.notice("stray_close", offset, f"{marker.text} closes nothing; it is left out")
            self._settle_on(marker.text)
            self._go(marker.target)
        self._pass(found.stop)
        return True

    def _stop(self, offset: int) -> None:
        if self._table.state == THINKING:
            self.notice("unclosed_thinking", offset)
        self._close_part(self._table.state != THINKING)
        self._stopped = True
        self._go(TEXT)

    def _go(self, state: State) -> None:
        """Enter a state; the part before has ended."""
        self._table = self._tables.thinking if state == THINKING else self._tables.text
        self._outside = state == OUTSIDE
        self._mode = self._read_prose

    def _pass(self, stop: int) -> None:
        """A marker ends here, and the text of the state it leads to begins."""
        self._at = stop
        self._begin_content(self._base + stop)

    def _begin_content(self, offset: int) -> None:
        self._content_from = self._scan = offset
        self._fresh = True
        self._spilled = False
        self._fences.reset(offset)
        self._bare_from = offset if self._tables.bare and self._table.state == TEXT and not self._seen_text else -1

    def _settle_on(self, met: Any) -> None:
        """`auto` alone: go on with the format that this marker or call syntax belongs to."""
        if self._format.settle is not None:
            state = self._table.state
            self._format = self._format.settle(met)
            self._tables = compile_tables(self._format, self._calls_in_thinking, self._reads_calls)
            self._table = self._tables.thinking if state == THINKING else self._tables.text

    # The undecided start.

    def _settle_as_text(self) -> None:
        self._undecided = False
        events = self._holds.pop(0)
        later, self._holds = self._holds, []
        for event in events:
            self.emit(event)
        self._holds = later

    def _settle_as_thinking(self, close: int) -> None:
        """A lone close: everything before it was thinking."""
        self._restart(THINKING, True, False)
        self._rewind(0, close)

    def _rewind(self, offset: int, scan: int) -> None:
        """Read again from `offset`; no marker before `scan` acts."""
        stop = self._tape.sync()
        before = max(0, offset - LOOKBACK)
        self._buffer = self._tape.text(before, stop)
        self._base = before
        self._at = offset - before
        self._scan = scan
        self._mode = self._read_prose

    # Message headers (harmony and its like).

    def _read_begin(self, end: int, final: bool) -> bool:
        """The output may begin inside the header that the prompt has opened."""
        found = self._find(self._tables.header, self._at, end)
        place = found.start if found else (end if final else self._tables.header.begins(self._buffer, self._at, end))
        answer = starts_header(self._format, self._buffer[self._at : place], found.marker if found else None)
        if answer is None and not final and found is None:
            return False
        if answer and found:
            self._mode = self._read_header
            self._scan = self._base + self._at
        else:
            self._outside = True
            self._mode = self._read_prose
        return True

    def _read_header(self, end: int, final: bool) -> bool:
        """Read the header of a message and enter the state that it names."""
        place = self._scan - self._base
        result = read_header(self._format, self._tables.header, self._buffer, place, end, final)
        if result is None:
            return False
        offset = self._scan
        if result.state is None and result.syntax is None:
            # No header after all: the marker is words.
            self.notice("malformed_header", offset, "a header marker with no header; it is taken literally")
            self._scan = self._base + result.stop
            self._mode = self._read_prose
            self._say_literal(result.stop)
            return True
        self._flow(place, beside=True)
        self._at = max(self._at, place)
        if self._table.state == THINKING and self._kind is not None:
            self.notice("implicit_close", offset)
        self._close_part(True)
        for code, message in result.notices:
            self.notice(code, offset, message)
        self._settle_on(result.marker)
        if result.syntax is not None:
            self._go(TEXT)
            self._pass(result.stop)
            self._start_region([result.syntax], result.name, offset, result.stop, offset, named=True)
            return True
        self._go(result.state or TEXT)
        self._pass(result.stop)
        return True

    # Calls.

    def _begin_region(self, marker: Marker, found: Found) -> None:
        space_from = self._base + self._at
        self._start_region(list(marker.syntaxes), marker.text, self._base + found.start, found.stop, space_from)

    def _start_region(
        self,
        syntaxes: Sequence[Any],
        opener: str,
        start: int,
        stop: int,
        space_from: int,
        named: bool = False,
    ) -> None:
        drafts = self._table.state == THINKING and self._calls_in_thinking == "resolve"
        if drafts and self._draft is None:
            memory = _Memory(
                self._kind,
                self._index,
                self._start,
                self._count,
                self._gap,
                (self._seen_text, self._seen_thinking),
                self.calls_made,
                self._noticed_stop,
                self._fresh,
                self._content_from,
                len(self._holds),
            )
            self._draft = (memory, space_from, start)
            self._holds.append([])
        self._region = Region(self, syntaxes, opener, start, self._base + stop, space_from, drafts)
        self._at = stop
        self._mode = self._read_region

    def _begin_bare(self, end: int, final: bool) -> bool:
        """A call without an opening marker counts only where text begins."""
        match = NON_SPACE.search(self._buffer, self._at, end)
        if match is None:
            return False
        self._bare_from = -1
        self._flow(match.start(), beside=False)
        self._start_region(
            list(self._tables.bare), "", self._base + match.start(), match.start(), self._base + self._at
        )
        return True

    def _read_region(self, end: int, final: bool) -> bool:
        """Let the call's own grammar read."""
        region = self._region
        assert region is not None
        if region.reader is None and not self._choose_reader(region, end, final):
            return region.reader is not None or self._mode != self._read_region
        reader = region.reader
        assert reader is not None
        stop, closer = end, None
        if region.closer is None:
            stop, closer = self._watch(region, end, final)
        before = self._at
        self._at = reader.read(self._buffer, self._at, stop, self._base, final and stop == end)
        if reader.status is Status.DONE:
            self._leave_region(region)
            return True
        if reader.status is Status.REJECTED:
            self._reject(region, reader.code, reader.reason)
            return True
        if closer is not None:
            # The reader stands before a closing marker that it may take as its end or as part of a value. Until
            # it has told which, nothing behind the marker is certain.
            region.closer = (self._base + closer.start, self._base + closer.stop)
            region.watched = self._base + closer.stop
            if region.committed:
                region.holds_closer = True
                self._holds.append([])
            return True
        if final:
            self._finish_region(region)
            return True
        return self._at > before and stop < end

    def _choose_reader(self, region: Region, end: int, final: bool) -> bool:
        """Pick the syntax that the first characters fit."""
        for syntax in region.syntaxes:
            answer = syntax.sniff(self._buffer, self._at, end, final)
            if answer is None:
                return False
            if answer:
                region.syntaxes = [syntax]
                region.reader = syntax.reader(region, region.opener)
                return True
        self._reject(region, "unreadable", "what follows the opening marker is not a call")
        return False

    def _watch(self, region: Region, end: int, final: bool) -> tuple[int, Found | None]:
        """Look for the region's closing markers ahead of the reader."""
        table = self._tables.closers_of(region.reader_syntax)
        found = self._find(table, max(region.watched - self._base, self._at), end)
        if found is not None:
            return found.start, found
        stop = end if final else table.begins(self._buffer, max(region.watched - self._base, self._at), end)
        region.watched = self._base + stop
        return stop, None

    def open_call(self, region: Region) -> int:
        """A region shows itself to be a call: end the part before it and return the call's index."""
        if self._kind == "thinking" and region.draft:
            self.notice("implicit_close", region.start)
        if region.calls == 0 and self._table.state == TEXT:
            self._frame(self._tape.text(region.space_from, region.start))
        self._close_part(True)
        if self._undecided and self._count == 0:
            self._settle_as_text()
        self._notice_place(region.start)
        self._count += 1
        return self._count - 1

    def call_ended(self, offset: int) -> None:
        """A call has ended; what follows begins anew."""
        self._begin_content(offset)

    def _leave_region(self, region: Region) -> None:
        """The region is over: back to prose, or find out whether it was a draft."""
        if self._draft is not None:
            if region.faulty or not region.calls:
                self._give_back("draft_call", NOTICES["draft_call"])
            else:
                self._mode = self._read_after_calls
            return
        self._settle_on(region.reader_syntax)
        self._region = None
        self._mode = self._read_prose
        if not region.calls:
            # An empty list of calls: nothing to tell of, but the text before it has ended.
            self._close_part(True)
        self._pass(self._at)

    def _reject(self, region: Region, code: str, reason: str) -> None:
        """The text is not in the call's grammar."""
        if self._draft is not None:
            self._give_back("draft_call", "what looked like a call is none; it stays thinking", reread=True)
        elif not region.opener and not region.committed and not region.calls:
            self._give_back("", "", reread=True)
        else:
            region.broken = (code, reason)
            self._scan = self._base + self._at
            self._mode = self._read_dead

    def _read_dead(self, end: int, final: bool) -> bool:
        """Behind what the grammar rejected: a closing marker ends a broken call, anything else says it was none."""
        region = self._region
        assert region is not None and region.broken is not None
        table = self._tables.text
        scan = max(self._scan - self._base, self._at)
        while True:
            found = self._find(table, scan, end)
            if found is None or (found.stop == end and not final and found.marker.text in table.extendable):
                break
            verdict, stop = self._judge_plain(found, end, final)
            if verdict is Verdict.WAIT:
                break
            closes = found.marker.text in region.closers
            if verdict is Verdict.ACTS and (closes or found.marker.ends_dead_region):
                self._end_dead(region, found, closes)
                return True
            scan = stop
        hold = end if final else min(found.start if found else end, table.begins(self._buffer, scan, end))
        self._at = max(self._at, hold)
        self._scan = self._base + self._at
        if not final:
            return False
        if region.committed:
            region.fail(self._base + end, *region.broken)
            self._leave_dead(region)
        else:
            self._give_back("not_a_call", NOTICES["not_a_call"])
        return True

    def _judge_plain(self, found: Found, end: int, final: bool) -> tuple[Verdict, int]:
        if not self._quotes:
            return Verdict.ACTS, found.stop
        floor = max(self._content_from - self._base, 0)
        return judge(
            self._buffer, self._base, found, end, final, floor=floor, limit=self._limit, lookahead=self._lookahead
        )

    def _end_dead(self, region: Region, found: Found, closes: bool) -> None:
        assert region.broken is not None
        self._at = found.stop if closes else found.start
        if not closes and not region.committed:
            self._give_back("not_a_call", NOTICES["not_a_call"])
            return
        stop = self._base + self._at
        if not closes:
            raw = self._tape.text(region.dead_from, stop)
            stop -= len(raw) - len(raw.rstrip())
        region.fail(stop, *region.broken)
        region.broken = None
        if closes and region.reader is not None:
            region.reader.recover(found.marker.text)
            if region.reader.status is Status.READING:
                region.watched = stop
                self._mode = self._read_region
                return
        self._leave_dead(region)

    def _leave_dead(self, region: Region) -> None:
        self._region = None
        self._mode = self._read_prose
        self._pass(self._at)

    def _finish_region(self, region: Region) -> None:
        """The input ended while the grammar wanted more."""
        if self._draft is not None:
            if region.calls + self._drafted and not region.faulty:
                if region.begun:
                    region.fail(self._base + len(self._buffer), "incomplete")
                self._resolve_draft()
                self._cut = True
            else:
                self._give_back("draft_call", "a call in thinking is cut off; it stays thinking", reread=True)
            return
        if not region.opener and not region.committed:
            self._give_back("", "", reread=True)
            return
        if region.closer is not None and self._may_reread(region.start):
            place, stop = region.closer
            if region.holds_closer:
                region.holds_closer = False
                self._holds.pop()
            region.fail(stop, "unclosed")
            self._reread_until = self._tape.sync()
            self._region = None
            self._rewind(stop, stop)
            self._begin_content(stop)
            return
        if region.holds_closer:
            region.holds_closer = False
            self.release_hold()
        if region.begun:
            region.fail(self._base + len(self._buffer), "incomplete")
            self._cut = True
        self._at = len(self._buffer)
        self._region = None
        self._mode = self._read_prose
        self._pass(self._at)

    def _may_reread(self, offset: int) -> bool:
        """Each character is read again at most once, so that cost stays linear."""
        return offset >= self._reread_until

    def _read_after_calls(self, end: int, final: bool) -> bool:
        """Behind well-formed calls in thinking: if the turn ends here they are calls, else drafts."""
        match = NON_SPACE.search(self._buffer, self._at, end)
        if match is None:
            if final:
                self._resolve_draft()
                return True
            self._wake = NON_SPACE
            return False
        place = match.start()
        table = self._tables.stops
        found = self._find(table, place, end)
        if found is None or found.start > place:
            if not final and found is None and table.begins(self._buffer, place, end) == place:
                return False
            self._give_back("draft_call", NOTICES["draft_call"])
        elif found.stop == end and not final and found.marker.text in table.extendable:
            return False
        elif found.marker.action is Action.STRAY:
            self._at = found.stop
        elif found.marker.action is Action.STOP:
            self._at = place
            self._resolve_draft()
        else:
            self._drafted += self._region.calls if self._region else 0
            self._start_region(
                list(found.marker.syntaxes),
                found.marker.text,
                self._base + place,
                found.stop,
                self._base + place,
            )
        return True

    def _resolve_draft(self) -> None:
        """The turn ends behind the calls: they are calls, and thinking was closed by them."""
        assert self._draft is not None and self._region is not None
        syntax = self._region.reader_syntax
        self._draft = None
        self._drafted = 0
        self._region = None
        self.release_hold()
        self._go(TEXT)
        self._settle_on(syntax)
        self._pass(self._at)

    def _give_back(self, code: str, message: str, *, reread: bool = False) -> None:
        """What was held as a call is words. `reread`: markers behind its opener may act after all."""
        region = self._region
        assert region is not None
        resume = self._base + self._at
        space_from, start = region.space_from, region.start
        if self._draft is not None:
            memory, space_from, start = self._draft
            del self._holds[memory.holds :]
            self._kind, self._index, self._start = memory.kind, memory.index, memory.start
            self._count, self._gap = memory.count, memory.gap
            self._seen_text, self._seen_thinking = memory.seen
            self.calls_made, self._noticed_stop = memory.calls_made, memory.noticed_stop
            self._fresh, self._content_from = memory.fresh, memory.content_from
            self._draft = None
            self._drafted = 0
        elif region.calls:
            space_from = start = region.dead_from
        self._region = None
        if code:
            self.notice(code, start, message)
        if reread and self._may_reread(start):
            self._reread_until = resume
            resume = region.body
        self._rewind(space_from, resume)

    # Telling.

    def emit(self, event: Event) -> None:
        """Tell of something, or hold it back with the rest."""
        if self._holds:
            self._holds[-1].append(event)
        else:
            self._release(event)

    def _release(self, event: Event) -> None:
        self._out.append(event)
        if self._collect:
            self._collector.add(event)
        if isinstance(event, Notice) and event.code in self._strict:
            raise StrictError(event, self._out)

    def release_hold(self) -> None:
        """What was held back last is true."""
        for event in self._holds.pop():
            self.emit(event)

    def notice(self, code: NoticeCode, offset: int, message: str = "") -> None:
        """Tell of something odd."""
        self.emit(Notice(code, message or NOTICES[code], offset))

    def _end(self) -> None:
        """The input is over."""
        if self._undecided:
            if self._fenced and self._fences.inside:
                # A fence that never closes does not count while the start is undecided.
                self._restart(TEXT, False, True, fences_until=self._fences.opened_at)
                self._rewind(0, 0)
                self._run(True)
            if self._undecided:
                self._settle_as_text()
        place = self._base + self._at
        if self._table.state == THINKING:
            self.notice("unclosed_thinking", place)
            self._cut = True
        self._close_part(self._table.state != THINKING)
        self._finished = True


def read_prompt(format: Format, prompt: str) -> tuple[State, bool]:
    """The state that a prompt leaves the model in, and whether a marker stands at its very end."""
    headers = [(prompt.rfind(header), header) for header in format.assistant]
    place, header = max(headers, default=(-1, ""))
    first: State = TEXT if format.start == THINKING else format.start
    if place < 0:
        tail = prompt.rstrip()
        tables = compile_tables(format, "never", False)
        for table in (tables.text, tables.thinking):
            for marker in table.markers.values():
                if tail.endswith(marker.text) and marker.action in (Action.OPEN, Action.CLOSE, Action.NESTED):
                    return (TEXT, True) if marker.action is Action.CLOSE else (THINKING, True)
        return format.start, format.start == THINKING
    parser = Parser(format.but(start=first), collect=True, mentions="marker", calls_in_thinking="never")
    parser.feed(prompt[place + len(header) :])
    state: State = THINKING if parser.state == "thinking" else TEXT
    if first == HEADER and parser.held == len(prompt) - place - len(header) and parser.state == "text":
        return HEADER, False
    return state, parser._kind is None and parser._fresh


def _check(policy: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        names = ", ".join(repr(choice) for choice in choices if choice is not None)
        raise UsageError(f"{policy} must be one of {names}, not {value!r}")


__all__ = ["END", "LIMIT", "Mentions", "Parser", "ParserState", "Start", "Whitespace", "read_prompt"]
