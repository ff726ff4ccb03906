"""What every part of the machine stands on: the buffer and its positions, what is held back, what is told.

Positions: `_buffer` holds what has not been decided yet (with a few characters before it, for looking back),
`_buffer[_at]` is the first character that no event has told of, and `_base` is the offset of `_buffer[0]` in the raw
text. Everything that outlives a call to `feed` is kept as an offset.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from ..errors import StrictError
from ..events import NOTICES, Event, Notice, NoticeCode, TextDelta, ThinkingDelta
from ..message import Collector
from ..parts import Kind
from ..policies import CallsInThinking, Policies
from .bare_calls import REACH
from .call_region import NOWHERE, Draft, Region, ThoughtEnd
from .calls.tools import Tools
from .fences import Fences
from .format import TEXT, THINKING, Format, State
from .markers import Found, Marker, Table, compile_tables
from .mentions import Lookahead, Verdict, judge
from .raw_text import Tape

log = logging.getLogger("asides")

LOOKBACK = 4
"""How many characters before the undecided text are kept: a fence's indent or a quote and what stands before it."""
NON_SPACE = re.compile(r"\S")


class Machine:
    """State, positions, events. The reading is in the classes above this one."""

    __slots__ = (
        "_asleep",
        "_at",
        "_bare",
        "_bare_lines",
        "_base",
        "_blank",
        "_buffer",
        "_cache",
        "_calls_in_thinking",
        "_calm",
        "_calm_into",
        "_calm_room",
        "_carry",
        "_collect",
        "_collector",
        "_content_from",
        "_count",
        "_cut",
        "_debug",
        "_draft",
        "_fenced",
        "_fences",
        "_fences_until",
        "_few",
        "_finished",
        "_foreign_in",
        "_format",
        "_fresh",
        "_gap",
        "_gap_head",
        "_glance",
        "_goes_on",
        "_header_before",
        "_holds",
        "_index",
        "_keep",
        "_kind",
        "_known_end",
        "_lookahead",
        "_lookback",
        "_may_watch",
        "_mode",
        "_noticed_stop",
        "_opened_call",
        "_out",
        "_outside",
        "_quick",
        "_quotes",
        "_reads_calls",
        "_region",
        "_reread_until",
        "_runs_calls",
        "_said",
        "_scan",
        "_seen_text",
        "_seen_thinking",
        "_seen_words",
        "_separate",
        "_slept",
        "_spilled",
        "_start",
        "_stopped",
        "_strict",
        "_table",
        "_tables",
        "_tape",
        "_thinking_gap",
        "_tidy",
        "_undecided",
        "_wake",
        "_watching",
        "_weak_from",
        "calls_made",
        "limit",
        "repair",
        "seed",
        "tools",
    )

    def __init__(self, format: Format, policies: Policies) -> None:
        self._format = format
        self._calls_in_thinking: CallsInThinking = policies.calls_in_thinking or format.calls_in_thinking
        self._reads_calls = policies.calls
        self._quotes = policies.mentions == "literal"
        self._tidy = policies.whitespace == "tidy"
        strict = policies.strict
        self._strict = frozenset(NOTICES) if strict is True else frozenset(strict or ())
        self.limit = policies.limit
        self.seed = policies.seed
        self.tools = Tools(policies.tools) if policies.tools is not None else None
        self.repair = policies.repair
        self._debug = log.isEnabledFor(logging.DEBUG)

        self._tape = Tape()
        self._collect = policies.collect
        self._collector = Collector()
        self._out: list[Event] = []
        self._holds: list[list[Event]] = []
        self._finished = False
        self._calm: Callable[[str], re.Match[str] | None] | None = None
        self._calm_into: list[str] | None = None
        self._calm_room = 0
        self._header_before = ""
        self._may_watch = False
        self._opened_call: Marker | None = None
        self._quick: type[TextDelta] | type[ThinkingDelta] | None = None

        # Never in `auto`: bare JSON behind prose is a call only to those who know that their model writes calls so.
        self._bare_lines = self.tools is not None and format.settle is None and any(each.bare for each in format.calls)
        self._lookback = REACH if self._bare_lines else LOOKBACK
        self._tables = compile_tables(format, self._calls_in_thinking, policies.calls, self._bare_lines)

    def _restart(self, state: State, fresh: bool, undecided: bool, fences_until: int = NOWHERE) -> None:
        """Begin at the first character."""
        self._buffer = ""
        self._at = 0
        self._base = 0
        self._carry = ""
        self._asleep: list[str] | None = None
        self._slept = 0
        self._wake: re.Pattern[str] | None = None
        self._cache: dict[Table, list[tuple[int, int, int, Marker | None]]] = {}
        self._lookahead = Lookahead()
        self._fences = Fences()
        self._fences_until = fences_until
        self._fenced = False
        self._holds.clear()

        self._mode: Callable[[int, bool], bool] = self._read_prose
        self._runs_calls = True
        self._watching = False  # whether a joined header may show that what is held back is no text
        self._table = self._table_of(state)
        self._outside = False
        self._separate = False
        self._fresh = fresh
        self._blank = True
        self._content_from = 0
        self._foreign_in = -1  # where the text begins in which a foreign marker was told of last
        self._weak_from = 0  # where content begins in which an opener of a weak name may come first
        self._scan = 0
        self._spilled = False
        self._kind: Kind | None = None
        self._index = 0
        self._start = 0
        self._said = 0
        self._count = 0
        self._gap = ""
        self._gap_head = ""
        self._thinking_gap = ""
        self._goes_on = False  # whether a thought was interrupted by a marker that means nothing
        self._seen_text = False
        self._seen_thinking = False
        self._seen_words = False
        self._stopped = False
        self._noticed_stop = False
        self._cut = False
        self.calls_made = 0
        self._region: Region | None = None
        self._draft: Draft | None = None
        self._reread_until = 0
        self._known_end: tuple[int, int, ThoughtEnd | None] = (0, 0, None)
        self._bare = bool(self._tables.bare) and state == TEXT
        self._undecided = undecided
        if undecided:
            self._holds.append([])

    def _table_of(self, state: State) -> Table:
        """What acts in a state. In a message that its header addresses to no tool, calls are only talked about."""
        tables = self._tables
        if self._watching and state != THINKING:
            return tables.watching
        if self._runs_calls:
            return tables.thinking if state == THINKING else tables.text
        return tables.thinking_without_calls if state == THINKING else tables.text_without_calls

    def _read_prose(self, end: int, final: bool) -> bool:
        """Read on as text or thinking: what everything else returns to."""
        raise NotImplementedError

    def _read_begin(self, end: int, final: bool) -> bool:
        """Read what may be a message's header without the marker that opens it."""
        raise NotImplementedError

    def _find(self, table: Table, scan: int, end: int) -> Found | None:
        """The first marker of the table in `_buffer[scan:end]`. Remembers, so that each character is searched once."""
        entries = self._cache.get(table)
        if entries is None:
            entries = self._cache[table] = [(NOWHERE, -1, -1, None)] * len(table.searches)
        base = self._base
        offset = base + scan
        nearest = NOWHERE
        first: tuple[int, int, int, Marker | None] = (0, NOWHERE, NOWHERE, None)
        for number, entry in enumerate(entries):
            if not entry[0] <= offset <= entry[1]:
                match = table.searches[number].search(self._buffer, scan)
                if match is None:
                    entry = (offset, NOWHERE, NOWHERE, None)
                else:
                    entry = (offset, base + match.start(), base + match.end(), table.marker(match.group()))
                entries[number] = entry
            if entry[1] < nearest:
                first, nearest = entry, entry[1]
        if first[3] is None or first[2] - base > end:
            return None
        return Found(first[1] - base, first[2] - base, first[3])

    def _judge_quotes(self, found: Found, end: int, final: bool) -> tuple[Verdict, int]:
        """Whether a marker is quoted, and so only talked about."""
        if not self._quotes or found.marker.certain:
            return Verdict.ACTS, found.stop
        floor = max(self._content_from - self._base, 0)
        return judge(
            self._buffer,
            self._base,
            found,
            end,
            final,
            floor=floor,
            limit=self.limit,
            lookahead=self._lookahead,
        )

    def _rewind(self, offset: int, scan: int) -> None:
        """Read again from `offset`; no marker before `scan` acts."""
        self._load(offset)
        self._scan = scan
        self._mode = self._read_prose

    def _reach_back(self, offset: int) -> None:
        """Have the buffer hold the text from `offset` on as well, without reading it again."""
        if offset - LOOKBACK < self._base:
            at = self._base + self._at
            self._load(offset)
            self._at = at - self._base

    def _load(self, offset: int) -> None:
        before = max(0, offset - LOOKBACK)
        self._buffer = self._tape.text(before, self._tape.sync())
        self._base = before
        self._at = offset - before

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
