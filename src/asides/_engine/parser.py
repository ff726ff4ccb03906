"""`Parser`: text in, events out. Sans-IO; knows no format by name, no wire, no clock, no file.

One loop: find the next marker that can act in this state; give what stands before it to the state's part; go where the
marker leads; when no marker is there, give all but the longest tail that could still begin one. What a marker does is
in `markers.py`, what quotes it in `mentions.py`, how calls read in `calls/`. The machine is built in layers, each
standing on the one before: `machine` (positions and events), `telling` (parts), `calling` (calls), `prose` (markers),
and here the public face, the fast path and the limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, Unpack

import msgspec

from ..errors import StrictError, UsageError
from ..events import NOTICES, Event, Notice, ToolCallDelta
from ..message import Message, Termination
from ..policies import DEFAULTS, Policies, PolicyOptions, Start
from .call_region import LONGEST_REPEAT, NOWHERE
from .format import HEADER, TEXT, THINKING, Format, State
from .machine import LOOKBACK
from .markers import Action, compile_tables
from .part_writer import DELTA
from .text_reading import Prose

ParserState = Literal["thinking", "text", "call", "undecided", "ended"]

ASLEEP = 256
"""From this length on, held whitespace is no longer joined with every chunk."""
LINE_FENCE = re.compile(r"(?:\A|\n) {0,3}[`~]")
"""Fence characters where a line begins, or may begin."""
ALWAYS = re.compile("").search
"""A glance that says of every chunk that it may matter."""
SHORT = 512
"""Chunks longer than this do not take the fast path: searching them marker by marker is faster."""


@lru_cache(maxsize=256)
def _calm(ends: tuple[str, ...], markers: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    """Finds what cannot stand in a JSON string as it is, or may end it: a beginning of one of its ends or of a marker
    (one or two characters; or the first of two, as the group, where the text ends)."""
    certain = '\\x00-\\x1f"\\\\\ud800-\udfff'
    beginnings = (*ends, *markers)
    firsts = re.escape("".join({text[0] for text in beginnings}))
    behind = [f"(?<={re.escape(text[0])}){re.escape(text[1:])}" for text in beginnings]
    # One set of characters in front, because only such a pattern is searched for fast.
    return re.compile(f"[{certain}{firsts}](?:{'|'.join([f'(?<=[{certain}])', *behind])}|(\\Z))").search


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


class Parser(Prose):
    """Takes a model's output apart as it comes. `feed` chunks, then `finish`; both return a list of events."""

    __slots__ = ()

    def __init__(self, format: Format, policies: Policies = DEFAULTS, **options: Unpack[PolicyOptions]) -> None:
        if options:
            policies = policies.but(**options)
        super().__init__(format, policies)
        self._keep = self._tape.pieces.append if self._collect else self._keep_some
        opening = self._opening(policies.start, policies.prompt)
        self._header_before = opening.header
        if opening.opener and self._format.settle is not None:
            self._format = self._format.settle(opening.opener)
            self._tables = compile_tables(self._format, self._calls_in_thinking, self._reads_calls)
        self._restart(opening.state, opening.fresh, opening.undecided)
        if not opening.runs_calls:
            self._runs_calls = False
            self._table = self._table_of(opening.state)
        self._may_watch = policies.start == "undecided" and format.header is not None and format.header.bare is not None
        if opening.call:
            self._opened_call = self._tables.text.markers.get(opening.call)
            self._bare = self._opened_call is not None
        if opening.state == HEADER:
            self._mode = self._read_begin
        elif self._may_watch:
            self._mode = self._read_bare_begin
        self._settle_fast_path(0)

    def _opening(self, start: Start | None, prompt: str | None) -> Opening:
        """Where reading begins: the caller's word, else what the prompt says, else the format's own start."""
        first = self._format.start
        if start == "undecided":
            return Opening(TEXT, undecided=True) if first in (TEXT, THINKING) else Opening(first)
        if start is not None:
            return Opening(THINKING, fresh=True) if start == "thinking" else Opening(TEXT)
        if prompt is not None:
            return read_prompt(self._format, prompt)
        return Opening(first, fresh=first == THINKING)

    def feed(self, chunk: str) -> list[Event]:
        """Read a chunk and return what it tells."""
        # The fast path: a part is open, at most whitespace or the beginning of a marker is held, and nothing in the
        # chunk can matter.
        delta = self._quick
        matters: object
        if delta is not None:
            few = self._few
            if few is not None:
                one, two, three, four = few
                matters = one in chunk or two in chunk or three in chunk or (four is not None and four in chunk)
            else:
                matters = self._glance(chunk)
            if matters:
                text = self._carry + chunk
                if len(text) < SHORT and self._harmless(text):
                    self._keep(chunk)
                    hold = self._arm(text)
                    words = text[:hold].rstrip() if self._tidy else text[:hold]
                    self._carry = text[len(words) :]
                    return [delta(self._index, words)] if words else []
            else:
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
        elif self._calm is not None and chunk:
            # The same for a call: inside a string of its arguments, nothing but more of the string.
            words = self._carry + chunk
            met = self._calm(words)
            if met is None and self._calm_into is None:
                self._keep(chunk)
                self._carry = ""
                event = ToolCallDelta(self._index, words)
                if self._collect:
                    self._collector.add(event)
                return [event]
            return self._hold_string(chunk, words, met)
        if self._finished:
            raise UsageError("feed() was called after finish(); make a new Parser for the next message")
        return self._advance(chunk, False)

    def _hold_string(self, chunk: str, words: str, met: re.Match[str] | None) -> list[Event]:
        """In a string of a call that waits as a whole, or whose last character may begin a marker; else read on."""
        waiting = self._calm_into
        if waiting is not None:
            self._calm_room -= len(chunk)
            if met is not None or self._calm_room < 0:
                return self._advance(chunk, False)
            self._keep(chunk)
            waiting.append(chunk)
            return []
        if met is None or not met.lastindex:
            return self._advance(chunk, False)
        self._keep(chunk)
        self._carry = words[-1]
        if len(words) == 1:
            return []
        event = ToolCallDelta(self._index, words[:-1])
        if self._collect:
            self._collector.add(event)
        return [event]

    def _harmless(self, text: str) -> bool:
        """Whether what is held and a chunk that holds the first character of a marker or a fence hold neither."""
        table = self._table.after_words
        if table.holds_marker(text):
            return False
        if table.state == THINKING:
            return True
        match = LINE_FENCE.search(text)
        if match is None:
            return True
        # Fence characters at the very start matter only if a line begins there. With tidy whitespace, the word before
        # them was told, so none does.
        return self._tidy and match.start() == 0 and text[0] != "\n" and not LINE_FENCE.search(text, match.end())

    def _arm(self, text: str) -> int:
        """Where the beginning of a marker stands in what is held; while there is one, every chunk is looked at."""
        table = self._table.after_words
        hold = table.begins(text, 0, len(text))
        self._few, self._glance = (table.few, table.glance) if hold == len(text) else (None, ALWAYS)
        return hold

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
        return self._collector.message("".join(tape.pieces), (self._open_start(), self._told()), self.termination)

    @property
    def termination(self) -> Termination:
        """How the output ended, as `message.termination` says; `cut` while thinking or a call is open."""
        if self._cut or (not self._finished and (self._table.state == THINKING or self._region)):
            return "cut"
        return "stop" if self._stopped else "end"

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
        if self._undecided:
            return 0
        if self._draft is not None:
            return self._draft.space_from
        if self._region is not None and self._region.waiting:
            return self._region.untold
        held = self._slept if self._asleep is not None else len(self._carry)
        return self._tape.sync() - held

    def _needed(self) -> int:
        """The offset before which no character is looked at again."""
        told = self._told()
        compared = self._region.needed if self._region is not None else None
        if compared is not None:
            told = min(told, max(compared, told - LONGEST_REPEAT))
        return told - self._lookback

    def _open_start(self) -> int:
        if self._draft is not None:
            return self._draft.part_start
        return self._region.start if self._region is not None and self._region.committed else self._start

    def _keep_some(self, chunk: str) -> None:
        pieces = self._tape.pieces
        pieces.append(chunk)
        if len(pieces) > 512:
            self._tape.sync()
            self._tape.forget(self._needed())

    def _advance(self, chunk: str, final: bool) -> list[Event]:
        self._keep(chunk)
        if self._asleep is not None:
            self._asleep.append(chunk)
            self._slept += len(chunk)
            sleeps = not final and self._wake is not None and self._wake.search(chunk) is None
            if sleeps and self._slept <= self.limit:
                return []
            chunk = "".join(self._asleep)
            self._asleep = None
        out: list[Event] = []
        self._out = out
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
            self._quick = self._calm = None
            raise
        self._carry = self._buffer[self._at :]
        if self._wake is not None and len(self._carry) >= ASLEEP:
            self._asleep = []
            self._slept = len(self._carry)
        if not self._collect:
            tape.forget(self._needed())
        self._buffer = ""
        self._settle_fast_path(len(chunk))
        return out

    def _settle_fast_path(self, size: int) -> None:
        """Whether the next chunk may go straight through, and what would stop it."""
        self._quick = self._calm = None
        if self._region is not None:
            reading = self._mode == self._read_region
            if reading and not self._holds and not self._carry and size <= SHORT:
                ends = self._region.calm
                if ends is not None:
                    self._calm = _calm(ends, self._tables.closers_of(self._region.reader_syntax).beginnings)
                    self._index = self._region.index
                    self._calm_into, self._calm_room = self._region.calm_into
            return
        table = self._table
        if (
            self._kind is None
            or size > SHORT
            or self._finished
            or self._holds
            or self._spilled
            or self._blank
            or self._mode != self._read_prose
            or self._asleep is not None
            or self.limit < ASLEEP
            or (table.state == TEXT and not self._fences.settled)
        ):
            return
        before = self._carry[: self._arm(self._carry)]
        if not before or (self._tidy and before.isspace()):
            self._quick = DELTA[table.state]

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
            horizon = self.limit + 1
        if self._draft is not None:
            horizon = min(horizon, self._draft.start + self.limit + 1)
        elif self._region is not None and self._region.waiting:
            horizon = min(horizon, self._region.hold_start + self.limit + 1)
        return horizon

    def _expire(self) -> None:
        """What is held back has reached the limit: decide it now."""
        if self._undecided:
            notice = Notice("limit", "the start is undecided for too long; taken as text", 0)
            self._holds[0].insert(0, notice)
            self._settle_as_text()
            if self._mode == self._read_bare_begin:
                self._mode = self._read_prose
        elif self._draft is not None:
            self._expire_draft()
        elif self._region is not None and self._region.holds_closer:
            self._holds[-1].insert(0, Notice("limit", NOTICES["limit"], self._region.hold_start))
            self._region.holds_closer = False
            self._region.closer = None
            self.release_hold()
        else:
            self._give_back("limit", "a possible call is held for too long; taken literally")

    def _end(self) -> None:
        """The input is over."""
        if self._undecided:
            if self._fenced and self._fences.inside:
                # A fence that never closes does not count while the start is undecided.
                watching = self._watching
                self._restart(TEXT, False, True, fences_until=self._fences.opened_at)
                self._rewind(0, 0)
                if watching:
                    self._watch_for_headers()
                self._run(True)
            if self._undecided:
                self._settle_as_text()
        place = self._base + self._at
        if self._table.state == THINKING:
            self.notice("unclosed_thinking", place)
            self._cut = True
        self._close_part(self._table.state != THINKING)
        self._finished = True


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
    first: State = TEXT if format.start == THINKING else format.start
    parser = Parser(format.but(start=first), mentions="marker", calls_in_thinking="never")
    parser.feed(tail)
    if first == HEADER and parser._mode in (parser._read_begin, parser._read_header):
        return Opening(HEADER, header=tail[parser._told() :])
    fresh = parser._kind is None and parser._fresh
    if parser.state != "thinking":
        call = _call_at_end(format, tail) if parser._runs_calls else ""
        return Opening(TEXT, fresh=fresh or bool(call), runs_calls=parser._runs_calls, call=call)
    opener = parser._tables.weak_opener
    return Opening(THINKING, fresh=fresh, runs_calls=parser._runs_calls, opener=opener)


def _call_at_end(format: Format, prompt: str) -> str:
    """The opener of a call that ends a prompt, or an empty string: the output goes on with the call."""
    openers = compile_tables(format, "never", True).text.at_end(prompt.rstrip())
    found = [marker.text for marker in openers if marker.action is Action.CALL]
    return max(found, key=len, default="")
