"""The part that is open, and writing it: words become deltas, whitespace goes to the part or to the marker beside it.

`OpenPart` is one record of everything that is known of the place in the message: the part, what stood before it, what
must be said of it. A call in thinking may turn out to be a draft; then the record is what it was before, so a draft
keeps a copy and puts it back (`PartWriter.restore`). Whatever such a call may change belongs into the record.

Whitespace beside a marker is the marker's, not the part's: `Hi. \\n<think>` is the text `Hi.`. So whitespace at the
end of what came is held until a word follows (it is the part's) or a marker does (it is in no part, and perhaps the
gap between two texts). With `whitespace="exact"` all of it is the part's.
"""

from __future__ import annotations

from ..events import NOTICES, Notice, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta
from ..message import FinishReason
from ..parts import Kind
from .active_markers import ActiveMarkers
from .calls.syntax import CallSyntax
from .cursor import LOOKBACK, NON_SPACE, NOWHERE, Cursor
from .documents import WholeDocument
from .fences import Fences
from .format import OUTSIDE, TEXT, THINKING, State
from .holds import Holds
from .markers import Actions, Found, Marker
from .mentions import (
    LINE,
    LOOSE,
    QUOTES,
    Lookahead,
    Verdict,
    Verdicts,
    is_indented,
    judge_place,
    judge_quotes,
    judge_span,
    open_fence,
    open_run,
)

DELTA: dict[State, type[TextDelta] | type[ThinkingDelta]] = {TEXT: TextDelta, THINKING: ThinkingDelta}


class OpenPart:
    """The part that is being written, if one is, and the place in the message."""

    __slots__ = (
        "acted",
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
        "inline_noticed_in",
        "interrupted",
        "kind",
        "left_until",
        "mentioned_in",
        "new_message",
        "noticed_stop",
        "outside_message",
        "overflowed",
        "overlong_gap",
        "seen_text",
        "seen_thinking",
        "seen_words",
        "shown_in",
        "start",
        "stop_from",
        "stop_text",
        "stopped",
        "thinking_gap",
        "turn_end",
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

        self.acted = False
        """Whether any marker has acted."""
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
        self.turn_end = NOWHERE
        """Offset of the first one that ends the turn, so that no call after it may be run."""
        self.stop_from = 0
        """Offset of the last one."""
        self.stop_text = ""
        self.left_until = -1
        """Offset behind the last marker that is a stop if it is the last thing of the output."""
        self.noticed_stop = False
        self.foreign_noticed_in = -1
        """Where the content begins in which a foreign marker was noticed last: one notice for each text."""
        self.inline_noticed_in = -1
        """Where the content begins in which a marker inside a line was noticed last."""
        self.mentioned_in = -1
        """Where the content begins in which an opener was talked about. The next close of it is literal too."""
        self.shown_in = -1
        """Where the thought begins that shows an opener in a fenced block."""
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
        "_header_in_fence",
        "_lookahead",
        "beyond_from",
        "cursor",
        "cut",
        "document",
        "fences",
        "holds",
        "limit",
        "markers",
        "may_retype",
        "part",
        "quotes",
        "reported",
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
        may_retype: bool = False,
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
        self.may_retype = may_retype
        """Whether the first part may turn out to be of the other kind."""
        self.reported: FinishReason | None = None
        """How the reply ended, as the server says."""
        self.beyond_from: int | None = None
        """Offset where the output goes on as another turn, once it does."""
        self.restart(state, after_marker=after_marker)

    def restart(self, state: State, *, after_marker: bool = False) -> None:
        """Begin at the first character."""
        self.markers.restart(state)
        bare = bool(self.markers.tables.bare) and state == TEXT
        self.part = OpenPart(after_marker=after_marker, call_may_begin=bare)
        self.cut = False
        """Whether the output ended inside thinking or a call."""
        self.document: WholeDocument | None = None
        """What the output is as long as it may be one JSON value or one element, in which markers are words."""
        if self.quotes and self.markers.format.documents and state == TEXT:
            self.document = WholeDocument(self.markers.tables.names_marker)
        self.fences = Fences()
        self._header_in_fence = False
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
        if self.document is not None:
            self._follow_document(offset)
        # Thinking has no fences, and another content begins outside of any.
        if self.markers.table.state != TEXT or not (self.quotes or self._bare_lines):
            return
        if fences.at < offset and part.content_from < offset:
            base = max(fences.at - LOOKBACK, part.content_from)
            text = self.cursor.tape.text(base, offset)
            fences.advance(text, base, len(text), part.content_from)

    def leave_message(self, marker: Marker, offset: int) -> None:
        """A marker that ends a message has acted before this offset. The turn may be over, too, if nothing follows."""
        if marker.text in self.markers.format.last_stops:
            self.part.left_until = offset

    @property
    def stopped(self) -> bool:
        """Whether a stop marker has ended the output."""
        part, tape = self.part, self.cursor.tape
        return part.stopped or (part.left_until >= 0 and tape.words_until(tape.sync()) == part.left_until)

    def mark_cut(self, cut: bool) -> None:
        """Say whether the output ended inside thinking or a call."""
        self.cut = cut

    def report_end(self, reason: FinishReason | None) -> None:
        """The input is over; `reason` is how the server says that it ended."""
        self.reported = reason

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
        part.acted = True
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

    def keep_kinds(self) -> None:
        """From here on the first part stays what it was said to be."""
        self.may_retype = False

    @property
    def is_first(self) -> bool:
        """Whether no marker has acted and nothing was certain of the start, so that what came may be of the other
        kind."""
        return self.may_retype and not self.part.acted

    def retype(self, offset: int) -> None:
        """What stands at this offset shows that the open first part is of the other kind."""
        part = self.part
        thought = part.kind == "text"
        part.kind = "thinking" if thought else "text"
        part.seen_thinking, part.seen_text, part.seen_words = thought, not thought, not thought
        part.gap, part.thinking_gap = "", part.gap
        if thought and self.tidy:
            # Whitespace before a thought is the marker's that opened it.
            text = self.cursor.tape.text(part.start, part.end)
            part.start += len(text) - len(text.lstrip())
        elif not thought:
            part.start = 0
        self.holds.emit(Retyped(part.index, part.kind))
        self.holds.notice("retyped", offset)

    def _ends_answer(self, offset: int) -> bool:
        """Whether the turn ends in a thought that was none: its start was a guess, and nothing closed it."""
        if not self.is_first:
            return False
        if self.part.kind is not None:
            self.retype(offset)
        self.markers.enter(TEXT)
        return True

    def stop(self, offset: int, marker: Marker) -> None:
        """A stop marker ends every part."""
        thinks = self.markers.table.state == THINKING and not self._ends_answer(offset)
        if thinks:
            self.holds.notice("unclosed_thinking", offset)
        self.close(not thinks)
        part = self.part
        part.stopped = True
        if part.turn_end == NOWHERE and marker.text not in self.markers.format.goes_on:
            part.turn_end = offset
        part.stop_from, part.stop_text = offset, marker.text
        self.markers.let_calls(True)
        self.enter(TEXT)

    def end_turn(self, offset: int) -> None:
        """From this offset on the output is another turn's."""
        self.beyond_from = offset
        self.holds.notice("after_turn", offset)

    def end(self, offset: int) -> None:
        """The output ends at this offset."""
        thought = self.markers.table.state == THINKING
        thinks = thought and (self.reported == "length" or not self._ends_answer(offset))
        if thinks:
            self.holds.notice("unclosed_thinking", offset)
            self.cut = True
        elif thought and self.part.kind is None and offset <= self.limit:
            # Nothing but whitespace came. It is the text's: no marker stands beside it.
            self.cursor.rewind(0, 0)
            self._emit_text(offset)
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
        self.part.new_message = self.part.acted = True

    def begin_content(self, offset: int, *, after_thinking: bool = False, begins_message: bool = False) -> None:
        """Behind a marker or a call, or again behind an opener: content begins at this offset.

        In a text that follows a thought or a header a call may stand without an opening marker; behind a thought a weak
        opener may, too.
        """
        part = self.part
        part.content_from = offset
        part.acted = part.after_marker = part.empty = True
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
        """Whether a marker acts or is only talked about; and where the mention ends."""
        # A marker that came as its own token acts whatever stands around it.
        marker = found.marker
        if marker.last and not marker.certain:
            return self._judge_last(found, end, final)
        if not self.quotes or marker.certain:
            return Verdicts.ACTS, found.stop
        buffer, part = self.cursor.buffer, self.part
        in_text = self.markers.table.state == TEXT
        if marker.closes_thinking and part.mentioned_in == part.content_from and in_text:
            part.mentioned_in = -1  # the close of an opener that was talked about
            return Verdicts.LITERAL, found.stop
        verdict, stop = Verdicts.ACTS, found.stop
        in_document = self.document is not None and self._in_document(found)
        if in_document:
            verdict = Verdicts.LITERAL
        elif found.start > part.content_from - self.cursor.base and buffer[found.start - 1 : found.start] not in "\n":
            verdict, stop = self._judge_line(found, end, final)
        if verdict is Verdicts.ACTS:
            shown = marker.action is Actions.NESTED or part.shown_in == part.content_from
            # A call in a block is held until it is known whether it is shown: see `CallsInProgress.begin`.
            fenced = in_text and marker.action is not Actions.CALL and self.in_fence(found.start)
            self._header_in_fence = self._header_in_fence or (fenced and marker.joined)
            if fenced or (not in_text and shown and self._is_fenced_thought(found)):
                verdict, stop = Verdicts.LITERAL, found.stop
        elif verdict is Verdicts.INLINE:
            self._notice_inline(found)
            return Verdicts.LITERAL, found.stop
        if verdict is Verdicts.LITERAL and marker.action is Actions.STOP:
            # A stop marker with nothing but whitespace behind it is a stop, wherever it stands.
            after = NON_SPACE.search(buffer, found.stop, end)
            if after is None and end - found.stop <= self.limit:
                return (Verdicts.ACTS if final else Verdicts.WAIT_FOR_WORDS), found.stop
        if in_document:
            self._notice_document(found)
        return verdict, stop

    def _judge_last(self, found: Found, end: int, final: bool) -> tuple[Verdict, int]:
        """Whether a stop that is also a common tag is the last thing of the output, and closes no tag of its name."""
        after = NON_SPACE.search(self.cursor.buffer, found.stop, end)
        if after is not None or end - found.stop > self.limit:
            return Verdicts.LITERAL, found.stop
        if not final:
            return Verdicts.WAIT_FOR_WORDS, found.stop
        opened = found.marker.text.replace("</", "<", 1)
        closes = opened != found.marker.text and opened in self.before(found.start)
        return Verdicts.LITERAL if closes else Verdicts.ACTS, found.stop

    def _in_document(self, found: Found) -> bool:
        """Whether a marker stands in a string of the JSON value, or in the element, that the output is so far."""
        self._follow_document(self.cursor.base + found.start)
        document = self.document
        return document is not None and (document.in_string or document.in_element)

    def _notice_document(self, found: Found) -> None:
        """A marker in an element is left there: say so, once for each content. One in a string is quoted."""
        part, cursor = self.part, self.cursor
        if self.document is not None and self.document.in_element and part.inline_noticed_in != part.content_from:
            part.inline_noticed_in = part.content_from
            self.write_literal(found.start)
            written = cursor.buffer[found.start : found.stop]
            message = f"{written} stands in the element that the output begins with; it is left there"
            self.holds.notice("inline_marker", cursor.base + found.start, message)

    def _follow_document(self, offset: int) -> None:
        """See what the output is up to this offset. Once a marker has acted, it is no document."""
        document = self.document
        if document is not None and document.at < offset and not self.part.acted:
            document.advance(self.cursor.tape.text(document.at, offset))
        if document is not None and (document.over or self.part.acted):
            self.document = None

    def before(self, place: int) -> str:
        """What stands before this index in its content, as far as mentions look back."""
        offset = self.cursor.base + place
        return self.cursor.tape.text(max(self.part.content_from, offset - LINE), offset)

    def _judge_line(self, found: Found, end: int, final: bool) -> tuple[Verdict, int]:
        """Whether what stands before a marker on its line makes it a mention."""
        marker, buffer = found.marker, self.cursor.buffer
        before, verdict, stop = self.before(found.start), Verdicts.ACTS, found.stop
        last = before[-1:]
        if last in QUOTES or before[-2:-1] == "«":
            verdict, stop = self._judge_quotes(before, found, end, final)
        if verdict is not Verdicts.ACTS or marker.action is Actions.CALL or marker.action is Actions.FOREIGN:
            return verdict, stop
        line = before[before.rfind("\n") + 1 :]
        size = open_run(line) if "`" in line else 0
        if size:
            verdict, stop = judge_span(size, buffer, found.stop, end, final, self.limit)
            if verdict is not Verdicts.ACTS:
                return verdict, stop
        table, action = self.markers.table, marker.action
        # The first text may still turn out to be a thought; what of it went out already depends on the chunks.
        closes = action is Actions.CLOSE or (marker.closes_thinking and (self.holds.undecided or self.is_first))
        if last.isascii() and last not in LOOSE and not last.isspace():
            # Joined to a word: only a close may be talked about so, where more of the sentence follows it.
            follows = buffer[found.stop : min(end, found.stop + 1)]
            goes_on = not follows or (follows != "\n" and follows.isspace())
            if not closes or not goes_on or table.glance(line) is None:
                return verdict, stop
        shown = action is Actions.OPEN or (action is Actions.STRAY and not closes)
        if shown and last.isspace() and is_indented(before):
            return Verdicts.LITERAL, found.stop
        verdict = judge_place(
            marker, before, buffer, found.stop, end, final, table=table, closes=closes, limit=self.limit
        )
        return verdict, found.stop

    def _notice_inline(self, found: Found) -> None:
        """A marker inside a line is left there: say so, once for each content."""
        part, cursor = self.part, self.cursor
        if found.marker.action is Actions.OPEN:
            part.mentioned_in = part.content_from
        if part.inline_noticed_in != part.content_from:
            part.inline_noticed_in = part.content_from
            self.write_literal(found.start)
            message = f"{cursor.buffer[found.start : found.stop]} stands inside a line as if it were talked about"
            self.holds.notice("inline_marker", cursor.base + found.start, f"{message}; it is left there")

    def _is_fenced_thought(self, found: Found) -> bool:
        """Whether a marker stands in a fenced block of a thought that shows openers: these and as many closes."""
        part, action = self.part, found.marker.action
        if action is not Actions.NESTED and action is not Actions.CLOSE:
            return False
        before = self.before(found.start)
        opened = open_fence(before)
        if opened < 0:
            return False
        if action is Actions.NESTED:
            part.shown_in = part.content_from
            return True
        inside, markers = before[opened:], self.markers.table.markers.values()
        opens = sum(inside.count(marker.text) for marker in markers if marker.action is Actions.NESTED)
        closes = sum(inside.count(marker.text) for marker in markers if marker.action is Actions.CLOSE)
        return opens > closes

    def judge_quotes(self, found: Found, end: int, final: bool) -> tuple[Verdict, int]:
        """Whether a marker is quoted, and so only talked about; and where the mention ends."""
        if not self.quotes or found.marker.certain:
            return Verdicts.ACTS, found.stop
        return self._judge_quotes(self.before(found.start), found, end, final)

    def _judge_quotes(self, before: str, found: Found, end: int, final: bool) -> tuple[Verdict, int]:
        cursor = self.cursor
        return judge_quotes(
            before,
            cursor.buffer,
            cursor.base,
            found,
            end,
            final,
            table=self.markers.table,
            limit=self.limit,
            lookahead=self._lookahead,
        )

    def in_fence(self, place: int) -> bool:
        """Whether a marker at this index stands in a fenced block of a text."""
        self.fences.advance(self.cursor.buffer, self.cursor.base, place, self.part.content_from)
        return self.fences.inside

    def is_block(self, place: int) -> bool:
        """Whether a call at this index of a text stands in a fenced or an indented block."""
        return self.in_fence(place) or is_indented(self.before(place))

    @property
    def header_in_open_fence(self) -> bool:
        """Whether a header without its markers was taken as literal in a block that never closed."""
        return self._header_in_fence and self.fences.at >= self.part.content_from and self.fences.inside


def _width(run: str) -> tuple[int, int]:
    return run.count("\n"), len(run)
