"""Calls: letting a call's own grammar read, and deciding what it was.

A region that shows itself to be a call is told as it streams. One that does not is given back as words. One inside
thinking is held until what follows tells a call from a draft.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..events import NoticeCode
from .bare_calls import REACH, may_follow
from .call_region import Closer, Draft, Region, ThoughtEnd
from .calls.reader import Status
from .calls.syntax import CallSyntax
from .fences import begins_line
from .format import TEXT, THINKING
from .machine import NON_SPACE
from .markers import Action, Found, Marker
from .mentions import Verdict, quote_before
from .part_writer import Telling


class Calling(Telling):
    """Reads regions of calls."""

    __slots__ = ()

    def _begin_region(self, marker: Marker, found: Found) -> None:
        space_from, start = self._base + self._at, self._base + found.start
        if self._table.state == THINKING and self._calls_in_thinking == "resolve":
            floor = max(self._content_from - self._base, 0)
            quotes = self._quotes and not marker.certain
            self._begin_draft(
                space_from,
                start,
                begins_line=begins_line(self._buffer, found.start, floor),
                quoted=quotes and bool(quote_before(self._buffer, found.start, floor)),
                bare=False,
            )
        self._start_region(list(marker.syntaxes), marker.text, start, found.stop, space_from)

    def _begin_draft(self, space_from: int, start: int, *, begins_line: bool, quoted: bool, bare: bool) -> None:
        """From here on everything is held, until it is known what the calls are."""
        self._draft = Draft(
            space_from=space_from,
            start=start,
            begins_line=begins_line,
            quoted=quoted,
            bare=bare,
            holds=len(self._holds),
            kind=self._kind,
            index=self._index,
            part_start=self._start,
            count=self._count,
            gap=self._gap,
            seen_text=self._seen_text,
            seen_thinking=self._seen_thinking,
            calls_made=self.calls_made,
            noticed_stop=self._noticed_stop,
            goes_on=self._goes_on,
            fresh=self._fresh,
            blank=self._blank,
            content_from=self._content_from,
        )
        self._holds.append([])

    def _start_region(
        self,
        syntaxes: Sequence[CallSyntax],
        opener: str,
        start: int,
        stop: int,
        space_from: int,
    ) -> None:
        draft = self._draft is not None
        self._region = Region(self, syntaxes, opener, start, self._base + stop, space_from, draft)
        if draft and start < self._reread_until:
            self._region.draft_end = self._thought_end(self._base + stop, self._reread_until)
        self._at = stop
        self._mode = self._read_region

    def _begin_bare(self, end: int, final: bool) -> bool:
        """A call without an opening marker counts only where text begins. The prompt may end with the marker."""
        match = NON_SPACE.search(self._buffer, self._at, end)
        if match is None:
            return False
        place = match.start()
        if not final and self._table.begins(self._buffer, place, end) == place:
            return False  # it may still become a marker
        self._bare = False
        marker = self._table.marker_at(self._buffer, place, end)
        if marker is not None and marker.action is not Action.BARE:
            return False
        self._flow(place, beside=False)
        opened = self._opened_call
        syntaxes = opened.syntaxes if opened is not None else self._tables.bare
        self._start_region(
            list(syntaxes), opened.text if opened else "", self._base + place, place, self._base + self._at
        )
        if opened is not None and self._region is not None:
            self._opened_call, self._region.announced = None, False
        return True

    def _may_be_call(self, place: int) -> bool:
        """Whether a call without an opening marker may begin here, behind prose."""
        offset = self._base + place
        begins = self._blank and NON_SPACE.search(self._buffer, self._at, place) is None
        # What was given back is not tried again from its middle, so that cost stays linear.
        if begins or offset < self._reread_until:
            return False
        floor = max(self._content_from - self._base, 0)
        if not begins_line(self._buffer, place, floor):
            return False
        self._fences.advance(self._buffer, self._base, place, floor)
        if self._fences.inside:
            return False
        return may_follow(self._tape.text(max(self._content_from, offset - REACH), offset))

    def _begin_bare_line(self, place: int) -> None:
        """Behind prose a call without an opening marker is held until what follows tells it from an example."""
        self._flow(place, beside=False)
        space_from, start = self._base + self._at, self._base + place
        self._begin_draft(space_from, start, begins_line=True, quoted=False, bare=True)
        self._start_region(list(self._tables.bare), "", start, place, space_from)

    def _read_region(self, end: int, final: bool) -> bool:
        """Let the call's own grammar read."""
        region = self._region
        assert region is not None
        if region.reader is None and not self._choose_reader(region, end, final):
            return region.reader is not None or self._mode != self._read_region
        reader = region.reader
        assert reader is not None
        stop, closer = self._watch(region, end, final)
        thought_end = region.draft_end
        if thought_end is not None and thought_end.offset <= self._base + stop:
            stop, closer = max(thought_end.offset - self._base, self._at), None
        else:
            thought_end = None
        before, calls = self._at, region.calls
        self._at = reader.read(self._buffer, self._at, stop, self._base, final and stop == end)
        if reader.status is Status.DONE:
            self._leave_region(region)
            return True
        if reader.status is Status.READING and region.calls > calls:
            return True
        if reader.status is Status.REJECTED:
            place = self._base + self._at
            stopped = region.closer is not None and region.closer.ends_turn and region.closer.start == place
            if stopped and region.begun and self._tape.words_until(place) > region.body:
                self._cut_off(region, place, "incomplete")
            elif stopped and region.calls and not region.begun:
                # A list of whole calls that the turn's end cut off before its bracket.
                self.notice("missing_close", region.dead_from)
                self._leave_region(region)
            else:
                self._reject(region, reader.code, reader.reason)
            return True
        if thought_end is not None:
            self._end_draft(region, thought_end)
            return True
        if closer is not None:
            # The reader stands before a closing marker that it may take as its end or as part of a value. Until
            # it has told which, nothing behind the marker is certain.
            region.watched = self._base + closer.stop
            ends_turn = closer.marker.action is Action.STOP
            if region.closer is None and (ends_turn or not reader.quoting):
                region.closer = Closer(self._base + closer.start, self._base + closer.stop, ends_turn)
                if region.committed:
                    region.hold()
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

    @property
    def turn_ends(self) -> tuple[str, ...]:
        """The markers that end a turn or a message."""
        return self._tables.turn_ends

    def open_call(self, region: Region) -> int:
        """A region shows itself to be a call: end the part before it and return the call's index."""
        if self._kind == "thinking":
            self.notice("implicit_close", region.start)
        if self._spilled:
            self._end_spill(region.start)
        if region.calls == 0 and self._table.state == TEXT:
            self._frame(self._tape.text(region.space_from, region.start))
        self._close_part(True)
        if self._undecided and self._count == 0:
            self._settle_as_text()
        self._notice_place(region.start)
        self._count += 1
        return self._count - 1

    def raw_text(self, start: int, stop: int) -> str:
        """What the model wrote between two offsets."""
        self._tape.sync()
        return self._tape.text(start, stop)

    def call_ended(self, offset: int) -> None:
        """A call has ended; what follows begins anew."""
        self._begin_content(offset)

    def _leave_region(self, region: Region) -> None:
        """The region is over: back to prose, or find out whether it was a draft."""
        if self._draft is not None:
            if (region.faulty or not region.calls) and self._draft.bare:
                self._show_example()
            elif region.faulty or not region.calls:
                self._give_back("draft_call", resume=self._resume_behind(region, region.fault_from))
            else:
                self._mode = self._read_after_calls
            return
        if not region.calls and not region.announced:
            self._give_back(None)  # an empty list that nothing announced is words
            return
        self._settle_on(region.reader_syntax)
        self._region = None
        self._goes_on = False
        self._mode = self._read_begin if self._tables.bare_headers else self._read_prose
        if not region.calls:
            # An empty list of calls: nothing to tell of, but the text before it has ended.
            self._close_part(True)
        self._pass(self._at)

    def _reject(self, region: Region, code: str, reason: str) -> None:
        """The text is not in the call's grammar."""
        draft = self._draft
        if draft is not None and draft.bare:
            self._show_example()
        elif draft is not None and draft.quoted:
            body = self._behind_openers(region.body, self._base + self._at)
            self._give_back(None, resume=self._read_again(draft.start, body))
        elif draft is not None:
            message = "what looked like a call is none; it stays thinking"
            self._give_back("draft_call", message, resume=self._read_again(draft.start, region.body))
        elif not region.announced and not region.committed and not region.calls:
            self._give_back(None, resume=self._read_again(region.start, region.body))
        else:
            region.broken = (code, reason)
            region.broken_at = self._scan = self._base + self._at
            self._mode = self._read_dead

    def _read_dead(self, end: int, final: bool) -> bool:
        """Behind what the grammar rejected: a closing marker ends a broken call, anything else says it was none."""
        region = self._region
        assert region is not None
        assert region.broken is not None
        table = self._tables.text
        scan = max(self._scan - self._base, self._at)
        while True:
            found = self._find(table, scan, end)
            if found is None:
                break
            if not final and (
                table.may_extend(self._buffer, found, end) or table.may_enclose(self._buffer, found, scan, end)
            ):
                break
            verdict, stop = self._judge_quotes(found, end, final)
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
            region.fail(
                self._base + end, *region.broken, cut=self._tape.words_until(self._base + end) <= region.broken_at
            )
            self._leave_dead(region)
        else:
            self._give_back("not_a_call")
        return True

    def _end_dead(self, region: Region, found: Found, closes: bool) -> None:
        assert region.broken is not None
        own = closes and not region.reader_syntax.keeps_close
        self._at = found.stop if own else found.start
        if not closes and not region.committed:
            if region.opens_section and any(found.marker.text in syntax.open for syntax in region.syntaxes):
                self._leave_section(region)
            else:
                self._give_back("not_a_call")
            return
        stop = self._base + self._at
        words_until = self._tape.words_until(self._base + found.start)
        if not own:
            stop = max(words_until, region.dead_from)
        region.fail(stop, *region.broken, cut=words_until <= region.broken_at)
        region.broken = None
        if closes and region.reader is not None:
            region.reader.recover(found.marker.text)
            if region.reader.status is Status.READING:
                region.watched = stop
                self._mode = self._read_region
                return
        self._leave_dead(region)

    def _leave_section(self, region: Region) -> None:
        """Words stand between a section's opener and its first call: they are text, and the opener is left out."""
        if self._draft is not None or region.calls:
            self._give_back("not_a_call")
            return
        place = self._base + self._at
        self._region = None
        if self._spilled:
            self._end_spill(region.start)
        self._frame(self._tape.text(region.space_from, region.start))
        self._close_part(True)
        self.notice("stray_marker", region.start, f"{region.opener} is followed by words; it is left out")
        self._begin_content(region.body)
        self._rewind(region.body, place)

    def _leave_dead(self, region: Region) -> None:
        self._region = None
        self._mode = self._read_prose
        self._pass(self._at)

    def _finish_region(self, region: Region) -> None:
        """The input ended while the grammar wanted more."""
        closer = region.closer
        if not region.announced and not region.committed and self._draft is None:
            self._give_back(None, resume=self._read_again(region.start, region.body))
        elif closer is not None and closer.ends_turn:
            self._cut_off(region, closer.start, "incomplete")
        elif self._draft is None and closer is not None and self._may_reread(region.start):
            kept = region.reader_syntax.keeps_close
            self._cut_off(region, closer.start if kept else closer.stop, "unclosed")
        else:
            self._cut = region.begun
            self._cut_off(region, self._base + len(self._buffer), "incomplete")

    def _cut_off(self, region: Region, place: int, error: str) -> None:
        """The call that is being read ends at `place`, unfinished. What follows is read as if it had not been."""
        draft = self._draft
        if draft is not None and draft.bare:
            if not self._is_call(region, draft):
                self._cut = False
                self._show_example(place)
                return
        elif draft is not None:
            ended = self._thought_end(max(region.body, region.dead_from), place)
            if ended is not None:
                self._end_draft(region, ended)
                return
            if not self._is_call(region, draft):
                self._cut = False
                again = self._behind_openers(region.body, place)
                self._give_back(None, resume=self._read_again(draft.start, again, place))
                return
        self._end_cut(region, place, error)

    def _end_draft(self, region: Region, ended: ThoughtEnd) -> None:
        """The thought ends inside a call that does not: it was a draft, unless the whole turn ends there."""
        self._cut = False
        assert self._draft is not None
        if not ended.ends_turn:
            self._reread_until = max(self._reread_until, self._base + self._at)
            self._give_back("draft_call", resume=ended.offset)
        elif self._is_call(region, self._draft):
            self._end_cut(region, ended.offset, "incomplete")
        else:
            self._reread_until = max(self._reread_until, self._base + self._at)
            self._give_back(None, resume=ended.offset)

    def _is_call(self, region: Region, draft: Draft) -> bool:
        """Whether held calls, the last of them cut off, are meant: not merely talked about."""
        if region.faulty:
            return False
        if draft.bare:
            return region.committed or not region.begun
        if region.calls + draft.calls:
            return True
        passed = region.closer is not None and not region.closer.ends_turn
        if passed or draft.quoted or not region.name_closed:
            return False
        return draft.begins_line or (self.tools is not None and region.name in self.tools.names)

    def _show_example(self, until: int = 0) -> None:
        """A bare call behind prose is words after all, as if nobody had held it."""
        assert self._draft is not None
        start = self._draft.start
        self._give_back(None, resume=self._read_again(start, start + 1, until))

    def _end_cut(self, region: Region, place: int, error: str) -> None:
        if region.holds_closer:
            if place < self._base + len(self._buffer):
                region.drop_hold()
                self._holds.pop()
            else:
                region.holds_closer = False
                self.release_hold()
        if region.begun:
            region.fail(place, error)
        if place < self._base + self._at:
            self._reread_until = self._tape.sync()
        self._rewind(place, place)
        if self._draft is not None:
            self._resolve_draft()
        else:
            self._region = None
            self._begin_content(place)

    def _thought_end(self, start: int, stop: int) -> ThoughtEnd | None:
        """The first marker between two offsets that ends thinking and is not only talked about."""
        since, until, known = self._known_end
        if since <= start and (start <= known.offset < stop if known is not None else stop <= until):
            return known  # so that asking again and again stays linear
        self._reach_back(start)
        table = self._tables.thought_ends
        scan, end = start - self._base, stop - self._base
        ended = None
        while ended is None and (found := self._find(table, scan, end)) is not None:
            verdict, scan = self._judge_quotes(found, end, True)
            if verdict is Verdict.ACTS:
                ended = ThoughtEnd(self._base + found.start, found.marker.action is Action.STOP)
        self._known_end = (start, stop, ended)
        return ended

    def _behind_openers(self, body: int, stop: int) -> int:
        """Behind further openers that follow an opener directly: they belong to what was no call and are none."""
        self._reach_back(body)
        at, end = body - self._base, stop - self._base
        table = self._tables.thinking
        while match := NON_SPACE.search(self._buffer, at, end):
            found = self._find(table, match.start(), end)
            if found is None or found.start > match.start() or found.marker.action is not Action.CALL:
                break
            at = found.stop
        return self._base + at

    def _resume_behind(self, region: Region, start: int) -> int:
        """Where reading goes on behind a call in thinking that is given back: the first end of the thought in it."""
        stop = self._base + self._at
        ended = self._thought_end(max(start, region.body), stop)
        if ended is None:
            return stop
        self._reread_until = max(self._reread_until, stop)
        return ended.offset

    def _read_again(self, start: int, body: int, until: int = 0) -> int:
        """Where reading goes on behind what was no call: at its body if that was not read again before."""
        until = until or self._base + self._at
        if not self._may_reread(start):
            return until
        self._reread_until = max(until, self._base + self._at)
        return body

    def _may_reread(self, offset: int) -> bool:
        """Each character is read again at most once, so that cost stays linear."""
        return offset >= self._reread_until

    def _expire_draft(self) -> None:
        """Calls in thinking are held for too long: they are thinking, as far as the thought goes."""
        region, draft = self._region, self._draft
        assert region is not None
        assert draft is not None
        horizon = draft.start + self.limit + 1
        if draft.bare:
            self._reread_until = max(self._reread_until, horizon)
            message = "a possible call is held for too long; taken literally"
            self._give_back("limit", message, resume=draft.start + 1)
            return
        body = max(region.body, region.dead_from)
        ended = self._thought_end(body, horizon)
        if ended is not None:
            resume = ended.offset
        else:
            # The beginning of a marker may stand before the horizon, and the rest of it behind.
            end = horizon - self._base
            resume = self._base + self._table.begins(self._buffer, min(body - self._base, end), end)
        self._reread_until = max(self._reread_until, horizon)
        message = "a call in thinking is held for too long; taken as thinking"
        self._give_back("limit", message, resume=resume)

    def _read_after_calls(self, end: int, final: bool) -> bool:
        """Behind well-formed calls that are held: if the turn ends here they are calls, else drafts or examples."""
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
            self._end_drafts(place)
        elif not final and table.may_extend(self._buffer, found, end):
            return False
        elif found.marker.action is Action.STRAY:
            self._at = found.stop
        elif found.marker.action is Action.CLOSE:
            self._at = found.stop
            self._resolve_draft()
            self._notice_marker(found.marker, self._base + place)
        elif found.marker.action is Action.BARE:
            if self._draft is not None and self._draft.bare:
                self._begin_further(list(self._tables.bare), "", place, place)
            else:
                self._end_drafts(place)
        elif found.marker.action is not Action.CALL:
            self._at = place
            self._resolve_draft()
        else:
            self._begin_further(list(found.marker.syntaxes), found.marker.text, place, found.stop)
        return True

    def _begin_further(self, syntaxes: list[CallSyntax], opener: str, place: int, stop: int) -> None:
        """Another call follows those that are held."""
        assert self._draft is not None
        assert self._region is not None
        self._draft.calls += self._region.calls
        self._start_region(syntaxes, opener, self._base + place, stop, self._base + place)

    def _end_drafts(self, place: int) -> None:
        """Something else follows calls that are held: they were drafts, or examples."""
        assert self._draft is not None
        if self._draft.bare:
            self._show_example(self._base + place)
        else:
            self._give_back("draft_call")

    def _resolve_draft(self) -> None:
        """The turn ends behind the calls: they are calls, and thinking was closed by them."""
        assert self._draft is not None
        assert self._region is not None
        syntax = self._region.reader_syntax
        self._draft = None
        self._region = None
        self.release_hold()
        self._go(TEXT)
        self._settle_on(syntax)
        self._pass(self._at)

    def _give_back(self, code: NoticeCode | None, message: str = "", *, resume: int | None = None) -> None:
        """What was held as a call is words. Markers from the offset `resume` on may act after all."""
        region = self._region
        assert region is not None
        resume = self._base + self._at if resume is None else resume
        space_from, start = region.space_from, region.start
        if self._draft is not None:
            draft, self._draft = self._draft, None
            space_from, start = draft.space_from, draft.start
            del self._holds[draft.holds :]
            self._kind, self._index, self._start = draft.kind, draft.index, draft.part_start
            self._count, self._gap = draft.count, draft.gap
            self._seen_text, self._seen_thinking = draft.seen_text, draft.seen_thinking
            self.calls_made, self._noticed_stop, self._goes_on = draft.calls_made, draft.noticed_stop, draft.goes_on
            self._fresh, self._blank, self._content_from = draft.fresh, draft.blank, draft.content_from
            if draft.bare:
                self._fences.reset(start)  # it began outside of any block
        elif region.calls:
            space_from = start = region.dead_from
        self._region = None
        if code:
            self.notice(code, start, message)
        self._rewind(space_from, resume)
