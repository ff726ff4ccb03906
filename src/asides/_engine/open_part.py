"""The part that is open, and writing it: words become deltas, whitespace goes to the part or to the marker beside it.

`OpenPart` is one record of everything that is known of the place in the message: the part, what stood before it, what
must be said of it. A call in thinking may turn out to be a draft; then the record is what it was before, so a draft
keeps a copy and puts it back (`PartWriter.restore`). Whatever such a call may change belongs into the record.

Whitespace beside a marker is the marker's, not the part's: `Hi. \\n<think>` is the text `Hi.`. So whitespace at the
end of what came is held until a word follows (it is the part's) or a marker does (it is in no part, and perhaps the
gap between two texts). With `whitespace="exact"` all of it is the part's.
"""

from __future__ import annotations

from ..events import NOTICES, Notice, PartEnd, PartStart, TextDelta, ThinkingDelta
from ..parts import Kind
from .active_markers import ActiveMarkers
from .calls.syntax import CallSyntax
from .cursor import LOOKBACK, NON_SPACE, NOWHERE, Cursor
from .fences import Fences
from .format import OUTSIDE, TEXT, THINKING, State
from .holds import Holds
from .markers import Actions, Found, Marker
from .mentions import PAIRS, Lookahead, Verdict, Verdicts, judge

DELTA: dict[State, type[TextDelta] | type[ThinkingDelta]] = {TEXT: TextDelta, THINKING: ThinkingDelta}


class OpenPart:
    """The part that is being written, if one is, and the place in the message."""

    __slots__ = (
        "after_marker",
        "call_may_begin",
        "calls",
        "content_from",
        "count",
        "empty",
        "end",
        "foreign_noticed_in",
        "gap",
        "index",
        "interrupted",
        "kind",
        "new_message",
        "noticed_stop",
        "outside_message",
        "overflowed",
        "overlong_gap",
        "seen_text",
        "seen_thinking",
        "seen_words",
        "start",
        "stopped",
        "thinking_gap",
        "weak_from",
    )

    def __init__(self, *, after_marker: bool = False, call_may_begin: bool = False) -> None:
        self.kind: Kind | None = None
        """None while no part is open: behind a marker, before the first word."""
        self.index = 0
        self.start = 0
        """Offset of its first character."""
        self.end = 0
        """Offset behind the last character that was emitted."""
        self.count = 0
        """How many parts have begun."""
        self.calls = 0
        """How many calls have been announced; ids count them."""

        self.content_from = 0
        """Offset where this content begins: behind the last marker. What stands before it is no neighbour."""
        self.after_marker = after_marker
        """Whether whitespace here belongs to the marker before it."""
        self.empty = True
        """Whether no word has come since the content began."""
        self.call_may_begin = call_may_begin
        """Whether a call without an opening marker may be the first thing here."""
        self.overflowed = False
        """Whether whitespace was too long to be held and has been emitted, so that a marker beside it is told late."""

        self.gap = ""
        """The widest whitespace run since the last text."""
        self.overlong_gap = ""
        """The beginning of a run that is too long to be held."""
        self.thinking_gap = ""
        """The widest whitespace run around a marker that interrupts a thought."""
        self.interrupted = False
        """Whether a thought was interrupted by a marker that means nothing, and goes on."""
        self.new_message = False
        """Whether a message's header or end stands before the next text."""
        self.outside_message = False

        self.seen_text = False
        self.seen_thinking = False
        self.seen_words = False
        """Whether a text with words in it was seen."""
        self.stopped = False
        """Whether a stop marker was seen."""
        self.noticed_stop = False
        self.foreign_noticed_in = -1
        """Where the content begins in which a foreign marker was noticed last: one notice for each text."""
        self.weak_from = 0
        """Where content begins in which an opener of a weak name may come first."""

    def copy(self) -> OpenPart:
        """The same record, for putting it back."""
        copied = OpenPart()
        for name in self.__slots__:
            setattr(copied, name, getattr(self, name))
        return copied


class PartWriter:
    """Gives what the cursor passes to the open part, as events."""

    __slots__ = (
        "_bare_lines",
        "_fenced",
        "_fences_until",
        "_lookahead",
        "cursor",
        "cut",
        "fences",
        "holds",
        "limit",
        "markers",
        "part",
        "quotes",
        "tidy",
    )

    def __init__(
        self,
        cursor: Cursor,
        holds: Holds,
        markers: ActiveMarkers,
        *,
        state: State = TEXT,
        after_marker: bool = False,
        tidy: bool = True,
        quotes: bool = True,
        limit: int = 1_048_576,
        bare_lines: bool = False,
    ) -> None:
        self.cursor = cursor
        self.holds = holds
        self.markers = markers
        self.tidy = tidy
        """Whether whitespace beside a marker is the marker's."""
        self.quotes = quotes
        """Whether a quoted or fenced marker is only talked about."""
        self.limit = limit
        """How many characters may be held back."""
        self._bare_lines = bare_lines
        self.restart(state, after_marker=after_marker)

    def restart(self, state: State, *, after_marker: bool = False, fences_until: int = NOWHERE) -> None:
        """Begin at the first character. Fences that open at `fences_until` or later do not count."""
        self.markers.restart(state)
        bare = bool(self.markers.tables.bare) and state == TEXT
        self.part = OpenPart(after_marker=after_marker, call_may_begin=bare)
        self.cut = False
        """Whether the output ended inside thinking or a call."""
        self.fences = Fences()
        self._fences_until = fences_until
        self._fenced = False
        self._lookahead = Lookahead()

    def snapshot(self) -> OpenPart:
        """A copy of the record, for `restore`."""
        return self.part.copy()

    def restore(self, part: OpenPart, fences_at: int | None = None) -> None:
        """Whatever happened since the snapshot has not. `fences_at`: no block is open at this offset."""
        self.part = part
        if fences_at is not None:
            self.fences.reset(fences_at)

    def catch_up(self, offset: int) -> None:
        """The fast path has emitted everything before this offset. Fences count when a marker is met, so they are
        followed now."""
        part, fences = self.part, self.fences
        part.end = offset
        # Thinking has no fences, and another content begins outside of any.
        if self.markers.table.state != TEXT or not (self.quotes or self._bare_lines):
            return
        if fences.at < offset and part.content_from < offset:
            base = max(fences.at - LOOKBACK, part.content_from)
            text = self.cursor.tape.text(base, offset)
            fences.advance(text, base, len(text), part.content_from)

    def mark_cut(self, cut: bool) -> None:
        """Say whether the output ended inside thinking or a call."""
        self.cut = cut

    # Words and whitespace.

    def flow(self, stop: int, *, beside: bool, final: bool = False) -> bool:
        """Give `buffer[at:stop]` to the part. `beside`: a marker stands at `stop` and owns whitespace before it.

        Whether what is left is whitespace, held until something else comes.
        """
        if not self.tidy:
            self._emit_text(stop)
            return False
        cursor, part = self.cursor, self.part
        text = cursor.buffer[cursor.at : stop]
        if part.after_marker and part.kind is None:
            lead = len(text) - len(text.lstrip())
            if lead < len(text) or beside or final:
                self.frame(text[:lead])
                cursor.move(cursor.at + lead)
                text = text[lead:]
            elif len(text) > self.limit:
                part.overlong_gap = part.overlong_gap or text[: self.limit]
                cursor.move(cursor.at + lead)
                return False
        if not text:
            if beside and part.overflowed:
                self.end_overflow(cursor.base + stop)
            return False
        words = text.rstrip()
        if words:
            self._emit_text(cursor.at + len(words), words)
            part.overflowed = False
        if final:
            self._emit_text(stop)
        elif len(words) < len(text):
            return self._hold_space(text[len(words) :], stop, beside)
        return False

    def _hold_space(self, space: str, stop: int, beside: bool) -> bool:
        """Whitespace at the end of what came, or before a marker."""
        part = self.part
        fresh = part.after_marker and part.kind is None
        overflows = not fresh and (part.overflowed or len(space) > self.limit)
        if overflows:
            self._emit_text(stop)
            part.overflowed = True
            if beside:
                self.end_overflow(self.cursor.base + stop)
        elif beside:
            self.frame(space)
            self.cursor.move(stop)
        return not overflows and not beside

    def end_overflow(self, offset: int) -> None:
        """Whitespace that was held too long stands beside a marker and was emitted as words all the same."""
        if self.part.overflowed:
            self.holds.notice("limit", offset)
            self.part.overflowed = False

    def write_literal(self, stop: int) -> None:
        """Give everything up to `stop` to the part, because what stands there is words too."""
        cursor, part = self.cursor, self.part
        if self.tidy and part.after_marker and part.kind is None:
            match = NON_SPACE.search(cursor.buffer, cursor.at, stop)
            start = match.start() if match else stop
            self.frame(cursor.buffer[cursor.at : start])
            cursor.move(start)
        self._emit_text(stop)
        part.overflowed = False

    def frame(self, space: str) -> None:
        """Whitespace that belongs to a marker. The widest run between two texts is the gap between them."""
        part = self.part
        space, part.overlong_gap = part.overlong_gap or space[: self.limit], ""
        if not space:
            return
        state = self.markers.table.state
        if state == TEXT and part.seen_text:
            part.gap = max(part.gap, space, key=_width)
        elif state == THINKING:
            part.thinking_gap = max(part.thinking_gap, space, key=_width) if part.thinking_gap else space

    def _emit_text(self, stop: int, text: str = "") -> None:
        """Give `buffer[at:stop]` to the part, as it is; `text` is that, where it has been cut out already."""
        cursor, part = self.cursor, self.part
        text = text or cursor.buffer[cursor.at : stop]
        if not text:
            return
        state = self.markers.table.state
        if part.kind is None:
            self._open(state)
        if part.empty and not text.isspace():
            part.empty = False
            part.seen_words = part.seen_words or state == TEXT
        self.holds.emit(DELTA[state](part.index, text))
        if state == TEXT and (self.quotes or self._bare_lines):
            self.fences.advance(cursor.buffer, cursor.base, stop, part.content_from)
        cursor.move(stop)
        part.end = cursor.base + stop

    # Where parts begin and end.

    def _open(self, state: State) -> None:
        cursor, part = self.cursor, self.part
        offset = cursor.base + cursor.at
        self._notice_place(offset)
        part.index, part.start = part.count, offset
        part.count += 1
        gap = ""
        if state == THINKING:
            part.kind = "thinking"
            if part.seen_thinking and self.tidy:
                gap = part.thinking_gap if part.interrupted else "\n\n"
            part.seen_thinking, part.thinking_gap = True, ""
        else:
            part.kind = "text"
            if part.seen_text and self.tidy:
                gap = "\n\n" if part.new_message else part.gap
            part.seen_text, part.gap, part.new_message = True, "", False
        self.holds.emit(PartStart(part.index, part.kind, gap))

    def open_call(self, start: int, space_from: int, first: bool) -> int:
        """A call shows itself: end the part before it and return the call's index. `first`: of those in a row."""
        part = self.part
        if part.kind == "thinking":
            self.holds.notice("implicit_close", start)
        self.end_overflow(start)
        if first and self.markers.table.state == TEXT:
            self.frame(self.cursor.tape.text(space_from, start))
        self.close(True)
        if self.holds.undecided and part.count == 0:
            self.settle_as_text()
        self._notice_place(start)
        part.count += 1
        return part.count - 1

    def count_call(self) -> int:
        """How many calls were announced before this one."""
        self.part.calls += 1
        return self.part.calls - 1

    def _notice_place(self, offset: int) -> None:
        """Say so when a part begins where none is expected."""
        part = self.part
        if part.stopped and not part.noticed_stop:
            part.noticed_stop = True
            self.holds.notice("after_stop", offset)
        elif part.outside_message and self.markers.table.state == TEXT:
            self.holds.notice("outside_message", offset)

    def notice_marker(self, marker: Marker, offset: int) -> None:
        """Say so when a marker that acts is odd in itself."""
        if marker.notice:
            self.holds.notice(marker.notice, offset, f"{marker.text.strip()}: {NOTICES[marker.notice]}")

    def notice_foreign(self, found: Found) -> None:
        """A marker that the format does not know is left in the text: say so, once for each text."""
        cursor, part, markers = self.cursor, self.part, self.markers
        text = cursor.buffer[found.start : found.stop]
        if part.content_from != part.foreign_noticed_in and markers.tables.is_foreign(text):
            part.foreign_noticed_in = part.content_from
            self.write_literal(found.start)
            name = markers.format.name
            message = f"{text} stands in the text and is no marker of the format {name}; it is left there"
            self.holds.notice("foreign_marker", cursor.base + found.start, message)

    def close(self, complete: bool, goes_on: bool = False) -> None:
        """The open part ends, if there is one. `goes_on`: a thought that goes on behind a marker that means nothing."""
        part = self.part
        part.interrupted = goes_on
        if part.kind is not None:
            self.holds.emit(PartEnd(part.index, complete, None, (part.start, part.end)))
            part.kind = None

    def stop(self, offset: int) -> None:
        """A stop marker ends every part."""
        thinks = self.markers.table.state == THINKING
        if thinks:
            self.holds.notice("unclosed_thinking", offset)
        self.close(not thinks)
        self.part.stopped = True
        self.markers.let_calls(True)
        self.enter(TEXT)

    def end(self, offset: int) -> None:
        """The output ends at this offset."""
        thinks = self.markers.table.state == THINKING
        if thinks:
            self.holds.notice("unclosed_thinking", offset)
            self.cut = True
        self.close(not thinks)

    def enter(self, state: State, met: str | CallSyntax | None = None) -> None:
        """Enter a state, led there by the marker or call that was met; the part before has ended."""
        self.markers.enter(state, met)
        part = self.part
        part.outside_message = state == OUTSIDE
        part.new_message = part.new_message or part.outside_message

    def enter_outside(self, outside: bool) -> None:
        """Text begins, perhaps where the format has no message."""
        self.part.outside_message = outside

    def enter_message(self) -> None:
        """A header has been read: the part before it ends, and another message begins."""
        self.close(True)
        self.part.new_message = True

    def begin_content(self, offset: int, *, after_thinking: bool = False, begins_message: bool = False) -> None:
        """Behind a marker or a call, or again behind an opener: content begins at this offset.

        In a text that follows a thought or a header a call may stand without an opening marker; behind a thought a weak
        opener may, too.
        """
        part = self.part
        part.content_from = offset
        part.after_marker = part.empty = True
        part.overflowed = part.call_may_begin = False
        if after_thinking:
            part.weak_from = offset
        if (after_thinking or begins_message) and self.markers.tables.bare:
            part.call_may_begin = self.markers.table.state == TEXT

    def expect_call(self, expected: bool) -> None:
        """Say whether a call without an opening marker may come first."""
        self.part.call_may_begin = expected

    def settle_as_text(self, notice: Notice | None = None) -> None:
        """The start was undecided, and what was held back is text."""
        self.markers.stop_watching()
        self.holds.settle_start(notice)

    # Whether a marker is only talked about.

    @property
    def floor(self) -> int:
        """The index where the content begins."""
        return max(self.part.content_from - self.cursor.base, 0)

    def judge_marker(self, found: Found, end: int, final: bool) -> tuple[Verdict, int]:
        """Whether a marker acts or is only talked about, quoted or in a fence; and where the mention ends."""
        # A marker that came as its own token acts whatever stands around it.
        if not self.quotes or found.marker.certain:
            return Verdicts.ACTS, found.stop
        buffer = self.cursor.buffer
        verdict, stop = Verdicts.ACTS, found.stop
        if buffer[found.start - 1 : found.start] in PAIRS:
            verdict, stop = self.judge_quotes(found, end, final)
        if verdict is Verdicts.ACTS and self.markers.table.state == TEXT and self.in_fence(found.start):
            verdict, stop = Verdicts.LITERAL, found.stop
        if verdict is Verdicts.LITERAL and found.marker.action is Actions.STOP:
            # A stop marker with nothing but whitespace behind it is a stop, wherever it stands.
            after = NON_SPACE.search(buffer, found.stop, end)
            if after is None and end - found.stop <= self.limit:
                return (Verdicts.ACTS if final else Verdicts.WAIT_FOR_WORDS), found.stop
        return verdict, stop

    def judge_quotes(self, found: Found, end: int, final: bool) -> tuple[Verdict, int]:
        """Whether a marker is quoted, and so only talked about; and where the mention ends."""
        cursor = self.cursor
        if not self.quotes or found.marker.certain:
            return Verdicts.ACTS, found.stop
        return judge(
            cursor.buffer,
            cursor.base,
            found,
            end,
            final,
            floor=max(self.part.content_from - cursor.base, 0),
            limit=self.limit,
            lookahead=self._lookahead,
        )

    def in_fence(self, place: int) -> bool:
        """Whether a marker at this index stands in a fenced block of a text."""
        self.fences.advance(self.cursor.buffer, self.cursor.base, place, self.part.content_from)
        inside = self.fences.inside and self.fences.opened_at < self._fences_until
        self._fenced = self._fenced or inside
        return inside

    @property
    def left_in_fence(self) -> bool:
        """Whether a marker was taken as literal in a block that never closed."""
        return self._fenced and self.fences.at >= self.part.content_from and self.fences.inside


def _width(run: str) -> tuple[int, int]:
    return run.count("\n"), len(run)
