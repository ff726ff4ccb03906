"""Telling parts: text and thinking as they grow, whitespace that belongs to markers, where a part begins and ends."""

from __future__ import annotations

from ..events import NOTICES, PartEnd, PartStart, TextDelta, ThinkingDelta
from .calls.syntax import CallSyntax
from .format import OUTSIDE, TEXT, THINKING, State
from .machine import NON_SPACE, Machine
from .markers import Marker, compile_tables

DELTA: dict[State, type[TextDelta] | type[ThinkingDelta]] = {TEXT: TextDelta, THINKING: ThinkingDelta}


def _width(run: str) -> tuple[int, int]:
    return run.count("\n"), len(run)


class Telling(Machine):
    """Gives words to parts."""

    __slots__ = ()

    def _flow(self, stop: int, *, beside: bool, final: bool = False) -> None:
        """Give `_buffer[_at:stop]` to the part. `beside`: a marker stands at `stop` and owns whitespace before it."""
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
            elif len(text) > self.limit:
                self._gap_head = self._gap_head or text[: self.limit]
                self._at += lead
                return
        if not text:
            if beside and self._spilled:
                self._end_spill(self._base + stop)
            return
        words = text.rstrip()
        if words:
            self._say(self._at + len(words), words)
            self._spilled = False
        if final:
            self._say(stop)
        elif len(words) < len(text):
            space = text[len(words) :]
            spills = not self._fresh_start() and (self._spilled or len(space) > self.limit)
            if spills:
                self._say(stop)
                self._spilled = True
            if beside and spills:
                self._end_spill(self._base + stop)
            elif beside:
                self._frame(space)
                self._at = stop
            elif not spills:
                self._wake = NON_SPACE

    def _end_spill(self, offset: int) -> None:
        """Whitespace that was held too long stands beside a marker and is told as words all the same."""
        self.notice("limit", offset)
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
        space, self._gap_head = self._gap_head or space[: self.limit], ""
        if space and self._table.state == TEXT and self._seen_text:
            self._gap = max(self._gap, space, key=_width)
        elif space and self._table.state == THINKING:
            self._thinking_gap = max(self._thinking_gap, space, key=_width) if self._thinking_gap else space

    def _say(self, stop: int, text: str = "") -> None:
        """Give `_buffer[_at:stop]` to the part, as it is; `text` is that, where it has been cut out already."""
        text = text or self._buffer[self._at : stop]
        if not text:
            return
        if self._kind is None:
            self._open_part()
        if self._blank and not text.isspace():
            self._blank = False
            self._seen_words = self._seen_words or self._table.state == TEXT
        self.emit(DELTA[self._table.state](self._index, text))
        if self._table.state == TEXT and (self._quotes or self._bare_lines):
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
            gap = ""
            if self._seen_thinking and self._tidy:
                gap = self._thinking_gap if self._goes_on else "\n\n"
            self._seen_thinking, self._thinking_gap = True, ""
        else:
            self._kind = "text"
            gap = ""
            if self._seen_text and self._tidy:
                gap = "\n\n" if self._separate else self._gap
            self._seen_text, self._gap, self._separate = True, "", False
        self.emit(PartStart(self._index, self._kind, gap))

    def _notice_place(self, offset: int) -> None:
        """Say so when a part begins where none is expected."""
        if self._stopped and not self._noticed_stop:
            self._noticed_stop = True
            self.notice("after_stop", offset)
        elif self._outside and self._table.state == TEXT:
            self.notice("outside_message", offset)

    def _notice_marker(self, marker: Marker, offset: int) -> None:
        """Say so when a marker that acts is odd in itself."""
        if marker.notice:
            self.notice(marker.notice, offset, f"{marker.text.strip()}: {NOTICES[marker.notice]}")

    def _close_part(self, complete: bool) -> None:
        if self._kind is not None:
            self.emit(PartEnd(self._index, complete, None, (self._start, self._said)))
            self._kind = None

    def _go(self, state: State) -> None:
        """Enter a state; the part before has ended."""
        self._runs_calls = self._runs_calls or state == OUTSIDE
        self._table = self._table_of(state)
        self._outside = state == OUTSIDE
        self._separate = self._separate or self._outside
        self._mode = self._read_prose

    def _pass(self, stop: int) -> None:
        """A marker ends here, and the text of the state it leads to begins."""
        self._at = stop
        self._begin_content(self._base + stop)

    def _begin_content(self, offset: int) -> None:
        self._content_from = self._scan = offset
        self._fresh = self._blank = True
        self._spilled = False
        self._fences.reset(offset)
        self._bare = False

    def _begin_text(self) -> None:
        """A text begins, where a call may stand without an opening marker."""
        self._bare = bool(self._tables.bare) and self._table.state == TEXT

    def _settle_on(self, met: str | CallSyntax) -> None:
        """`auto` alone: go on with the format that this marker or call syntax belongs to."""
        settle = self._format.settle
        if settle is None or (format := settle(met)) is self._format:
            return
        state = self._table.state
        self._known_end = (0, 0, None)  # other markers may end a thought now
        self._format = format
        self._tables = compile_tables(format, self._calls_in_thinking, self._reads_calls)
        self._table = self._table_of(state)

    def _settle_as_text(self) -> None:
        self._undecided = False
        if self._watching:
            self._watching = False
            self._table = self._table_of(self._table.state)
        if self._draft is not None:
            self._draft.holds -= 1
        events = self._holds.pop(0)
        later, self._holds = self._holds, []
        for event in events:
            self.emit(event)
        self._holds = later
