"""Calls: letting a call's own grammar read, and deciding what it was.

A region that shows itself to be a call is told as it streams. One that does not is given back as words. One inside
thinking is held until what follows tells a call from a draft.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..events import NoticeCode
from .calls.reader import Status
from .calls.syntax import CallSyntax
from .format import TEXT, THINKING
from .machine import NON_SPACE
from .markers import Action, Found, Marker
from .mentions import Verdict
from .region import Closer, Draft, Region
from .telling import Telling


class Calling(Telling):
    """Reads regions of calls."""

    __slots__ = ()

    def _begin_region(self, marker: Marker, found: Found) -> None:
        space_from = self._base + self._at
        self._start_region(list(marker.syntaxes), marker.text, self._base + found.start, found.stop, space_from)

    def _start_region(
        self,
        syntaxes: Sequence[CallSyntax],
        opener: str,
        start: int,
        stop: int,
        space_from: int,
    ) -> None:
        drafts = self._table.state == THINKING and self._calls_in_thinking == "resolve"
        if drafts and self._draft is None:
            self._draft = Draft(
                space_from=space_from,
                start=start,
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
                fresh=self._fresh,
                blank=self._blank,
                content_from=self._content_from,
            )
            self._holds.append([])
        self._region = Region(self, syntaxes, opener, start, self._base + stop, space_from, drafts)
        self._at = stop
        self._mode = self._read_region

    def _begin_bare(self, end: int, final: bool) -> bool:
        """A call without an opening marker counts only where text begins."""
        match = NON_SPACE.search(self._buffer, self._at, end)
        if match is None:
            return False
        self._bare = False
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
        stop, closer = self._watch(region, end, final)
        before = self._at
        self._at = reader.read(self._buffer, self._at, stop, self._base, final and stop == end)
        if reader.status is Status.DONE:
            self._leave_region(region)
            return True
        if reader.status is Status.REJECTED:
            place = self._base + self._at
            stopped = region.closer is not None and region.closer.ends_turn and region.closer.start == place
            if stopped and region.begun and not self._tape.text(region.body, place).isspace() and place > region.body:
                self._cut_off(region, place, "incomplete")
            else:
                self._reject(region, reader.code, reader.reason)
            return True
        if closer is not None:
            # The reader stands before a closing marker that it may take as its end or as part of a value. Until
            # it has told which, nothing behind the marker is certain.
            region.watched = self._base + closer.stop
            if region.closer is None:
                ends_turn = closer.marker.action is Action.STOP
                region.closer = Closer(self._base + closer.start, self._base + closer.stop, ends_turn)
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

    def call_ended(self, offset: int) -> None:
        """A call has ended; what follows begins anew."""
        self._begin_content(offset)

    def _leave_region(self, region: Region) -> None:
        """The region is over: back to prose, or find out whether it was a draft."""
        if self._draft is not None:
            if region.faulty or not region.calls:
                self._give_back("draft_call")
            else:
                self._mode = self._read_after_calls
            return
        if not region.calls and not region.opener:
            self._give_back(None)  # an empty list that nothing announced is words
            return
        self._settle_on(region.reader_syntax)
        self._region = None
        self._goes_on = False
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
            self._give_back(None, reread=True)
        else:
            region.broken = (code, reason)
            self._scan = self._base + self._at
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
            if found is None or (not final and table.may_extend(self._buffer, found, end)):
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
            region.fail(self._base + end, *region.broken)
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
        if not own:
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
        if not region.opener and not region.committed:
            self._give_back(None, reread=True)
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
        if self._draft is not None and (region.faulty or not region.calls + self._draft.calls):
            self._cut = False
            self._give_back("draft_call", "a call in thinking is cut off; it stays thinking", reread=True)
            return
        if region.holds_closer:
            region.holds_closer = False
            end = self._base + len(self._buffer)
            if place < end:
                self._holds.pop()
            else:
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
            self._give_back("draft_call")
        elif not final and table.may_extend(self._buffer, found, end):
            return False
        elif found.marker.action is Action.STRAY:
            self._at = found.stop
        elif found.marker.action is Action.STOP:
            self._at = place
            self._resolve_draft()
        else:
            assert self._draft is not None
            assert self._region is not None
            self._draft.calls += self._region.calls
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
        assert self._draft is not None
        assert self._region is not None
        syntax = self._region.reader_syntax
        self._draft = None
        self._region = None
        self.release_hold()
        self._go(TEXT)
        self._settle_on(syntax)
        self._pass(self._at)

    def _give_back(self, code: NoticeCode | None, message: str = "", *, reread: bool = False) -> None:
        """What was held as a call is words. `reread`: markers behind its opener may act after all."""
        region = self._region
        assert region is not None
        resume = self._base + self._at
        space_from, start = region.space_from, region.start
        if self._draft is not None:
            draft, self._draft = self._draft, None
            space_from, start = draft.space_from, draft.start
            del self._holds[draft.holds :]
            self._kind, self._index, self._start = draft.kind, draft.index, draft.part_start
            self._count, self._gap = draft.count, draft.gap
            self._seen_text, self._seen_thinking = draft.seen_text, draft.seen_thinking
            self.calls_made, self._noticed_stop = draft.calls_made, draft.noticed_stop
            self._fresh, self._blank, self._content_from = draft.fresh, draft.blank, draft.content_from
        elif region.calls:
            space_from = start = region.dead_from
        self._region = None
        if code:
            self.notice(code, start, message)
        if reread and self._may_reread(start):
            self._reread_until = resume
            resume = region.body
        self._rewind(space_from, resume)
