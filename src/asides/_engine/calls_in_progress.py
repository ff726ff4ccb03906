"""Calls in progress: letting a call's own grammar read, and deciding what it was.

A region (`call_region.py`) is what stands behind one opener. One that shows itself to be a call is emitted as it
streams. One that does not is given back as words, and its text is read again from behind the opener; each character
at most once, so that cost stays linear. One inside thinking, or bare behind prose, is a draft: its events are held
until what follows tells a call from a mere mention, and a draft that was none puts the open part back as it was.

Every method that decides where reading goes returns an `ReadOutcome`; `modes.py` says what follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..events import NoticeCode
from .bare_calls import REACH, may_follow
from .call_region import CallOptions, Region
from .call_sink import CallSink
from .calls.reader import Reader, Statuses
from .calls.steps import marker_at
from .calls.syntax import CallSyntax
from .calls.tools import Tools
from .cursor import NON_SPACE, NOWHERE
from .fences import begins_line
from .format import TEXT, THINKING
from .holds import Hold
from .markers import Actions, Found, Marker, Tables
from .mentions import Verdicts, are_words, closing_of_shown, is_inside_line, quotes_before
from .modes import Outcomes, ReadOutcome
from .open_part import OpenPart, PartWriter

_TOO_LONG = "a possible call is held for too long; taken literally"


class Draft(msgspec.Struct, kw_only=True):
    """Calls inside open thinking, or bare ones behind prose, until it is known what they are; and what must be put back
    if they are drafts or examples."""

    part: OpenPart
    """The open part as it was before."""
    hold: Hold
    """What holds their events."""
    space_from: int
    """Offset of the whitespace before the first opener."""
    start: int
    """Offset of the first opener."""
    begins_line: bool
    """Whether the first opener stands where a line begins."""
    quoted: bool
    """Whether an opening quote stands directly before it."""
    bare: bool = False
    """Whether it stands in a text and has no opening marker, so that what follows shows whether it is an example."""
    block: bool = False
    """Whether it stands in a block of a text, so that it is a call only if the turn ends with it."""
    closing: tuple[str, ...] = ()
    """Behind an opening quote or code span of a text: what closes it, so that it is an example."""
    calls: int = 0
    """How many well-formed calls the regions before the present one held."""

    @property
    def in_text(self) -> bool:
        """Whether it stands in a text and not in a thought."""
        return self.bare or self.shown

    @property
    def shown(self) -> bool:
        """Whether it may be an example that is shown."""
        return self.block or bool(self.closing)


class ThoughtEnd(msgspec.Struct, frozen=True):
    """A marker that ends thinking, inside what may be a call."""

    offset: int
    ends_turn: bool
    """Whether it is a stop marker."""


class CallsInProgress:
    """The region that is being read, and the draft that it may be part of."""

    __slots__ = (
        "_cursor",
        "_holds",
        "_known_end",
        "_markers",
        "_opened",
        "_options",
        "_passed_end",
        "_reread_until",
        "_sink",
        "_writer",
        "draft",
        "region",
    )

    def __init__(self, writer: PartWriter, options: CallOptions, opened: Marker | None = None) -> None:
        self._writer = writer
        self._cursor = writer.cursor
        self._holds = writer.holds
        self._markers = writer.markers
        self._options = options
        self._opened = opened  # the opener that ends the prompt, until the call behind it is read
        self.restart()

    def restart(self) -> None:
        """Begin at the first character."""
        self.region: Region | None = None
        """The calls that are being read."""
        self._sink: CallSink | None = None
        self.draft: Draft | None = None
        """What they are part of if they may not be meant."""
        self._reread_until = 0
        # Where the thought ends that is read again: the present call must not pass it.
        self._passed_end: ThoughtEnd | None = None
        self._known_end: tuple[Tables | None, int, int, ThoughtEnd | None] = (None, 0, 0, None)

    def begin_anew(self) -> None:
        """What stands before is a thought after all: what follows may be read again once more, as it is where a thought
        was seen to be one from the start."""
        self._reread_until = 0

    @property
    def tools(self) -> Tools | None:
        """The tools that the caller gave."""
        return self._options.tools

    def release(self) -> None:
        """Let go of the reader of the last region, which is over."""
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.release()

    # What is held back.

    @property
    def untold(self) -> int | None:
        """The first character that no event has gone out for; None where that does not depend on calls."""
        if self.draft is not None:
            return self.draft.space_from
        region = self.region
        return region.untold if region is not None and region.waiting else None

    @property
    def start(self) -> int | None:
        """Where the call begins that is open; None when none is."""
        if self.draft is not None:
            return self.draft.part.start
        region = self.region
        return region.start if region is not None and region.record.committed else None

    @property
    def horizon(self) -> int:
        """The offset at which what is held back must be decided."""
        limit = self._writer.limit
        if self.draft is not None:
            return self.draft.start + limit + 1
        region = self.region
        return region.hold_start + limit + 1 if region is not None and region.waiting else NOWHERE

    def expire(self) -> ReadOutcome:
        """What is held back has reached the limit: decide it now."""
        if self.draft is not None:
            return self._expire_draft(self.draft)
        region = self.region
        if region is not None and region.hold.open:
            region.hold.expire()
            return Outcomes.EXPIRED
        return self._give_back("limit", _TOO_LONG)

    # Where calls begin.

    def begin(self, found: Found) -> ReadOutcome:
        """A marker that opens a call."""
        cursor, marker = self._cursor, found.marker
        space_from, start = cursor.base + cursor.at, cursor.base + found.start
        # Models draft calls in their thoughts, and they forget to close a thought before a real call. In a text they
        # show calls. Only what follows tells which it is.
        judged = self._writer.quotes and not marker.certain
        if self._markers.table.state == THINKING:
            if self._markers.calls_in_thinking == "resolve":
                before = begins_line(cursor.buffer, found.start, self._writer.floor)
                quoted = judged and bool(quotes_before(self._writer.before(found.start)))
                self._begin_draft(space_from, start, begins_line=before, quoted=quoted)
        elif judged:
            if self._writer.is_block(found.start):
                self._begin_draft(space_from, start, block=True)
            elif closing := closing_of_shown(self._writer.before(found.start)):
                self._begin_draft(space_from, start, closing=closing)
        return self._start(list(marker.syntaxes), marker.text, start, found.stop, space_from)

    def begin_message(self, syntaxes: Sequence[CallSyntax], recipient: str, offset: int, stop: int) -> ReadOutcome:
        """A message whose header, at `offset`, says that it is a call; its body begins at the index `stop`."""
        return self._start(syntaxes, recipient, offset, stop, offset)

    def end_message(self, name: str, stop: int) -> ReadOutcome:
        """The message that is a call ended in its header, at the index `stop`."""
        region = self.region
        assert region is not None
        region.record.be_named(name, True)
        return self._cut_off(region, self._cursor.base + stop, "incomplete")

    def begin_bare(self, end: int, final: bool) -> bool:
        """A call without an opening marker counts only where text begins. The prompt may end with the marker."""
        cursor, table = self._cursor, self._markers.table
        match = NON_SPACE.search(cursor.buffer, cursor.at, end)
        if match is None:
            return False
        place = match.start()
        if not final and table.begins(cursor.buffer, place, end) == place:
            return False  # it may still become a marker
        # Tried once for each text: what is given back is read as prose.
        self._writer.expect_call(False)
        marker = table.marker_at(cursor.buffer, place, end)
        if marker is not None and marker.action is not Actions.BARE:
            return False
        self._writer.flow(place, beside=False)
        opened, self._opened = self._opened, None
        syntaxes = opened.syntaxes if opened is not None else self._markers.tables.bare
        text = opened.text if opened is not None else ""
        # It is no news if no call follows an opener that the model has not written.
        self._start(list(syntaxes), text, cursor.base + place, place, cursor.base + cursor.at, announced=False)
        return True

    def may_begin_line(self, place: int) -> bool:
        """Whether a call without an opening marker may begin here, behind prose."""
        cursor, writer = self._cursor, self._writer
        part = writer.part
        offset = cursor.base + place
        begins = part.empty and cursor.blank_before(place)
        # What was given back is not tried again from its middle, so that cost stays linear.
        if begins or offset < self._reread_until or not begins_line(cursor.buffer, place, writer.floor):
            return False
        writer.fences.advance(cursor.buffer, cursor.base, place, part.content_from)
        if writer.fences.inside:
            return False
        return may_follow(cursor.tape.text(max(part.content_from, offset - REACH), offset))

    def begin_line(self, place: int) -> ReadOutcome:
        """Behind prose a call without an opening marker is held until what follows shows whether it is an example."""
        cursor = self._cursor
        self._writer.flow(place, beside=False)
        space_from, start = cursor.base + cursor.at, cursor.base + place
        self._begin_draft(space_from, start, begins_line=True, bare=True)
        return self._start(list(self._markers.tables.bare), "", start, place, space_from)

    def _begin_draft(
        self,
        space_from: int,
        start: int,
        *,
        begins_line: bool = False,
        quoted: bool = False,
        bare: bool = False,
        block: bool = False,
        closing: tuple[str, ...] = (),
    ) -> None:
        """From here on everything is held, until it is known what the calls are."""
        self.draft = Draft(
            part=self._writer.snapshot(),
            hold=self._holds.open(),
            space_from=space_from,
            start=start,
            begins_line=begins_line,
            quoted=quoted,
            bare=bare,
            block=block,
            closing=closing,
        )

    def _start(
        self,
        syntaxes: Sequence[CallSyntax],
        opener: str,
        start: int,
        stop: int,
        space_from: int,
        announced: bool | None = None,
    ) -> ReadOutcome:
        cursor = self._cursor
        body = cursor.base + stop
        draft = self.draft is not None
        self.release()
        self.region = Region(self._writer, self._options, syntaxes, opener, start, body, space_from, draft, announced)
        self._sink = CallSink(self._writer, self._options, self.region)
        self._passed_end = None
        # In text that is read again no call passes a marker that ends the thought: the call that did was the mistake.
        if self.draft is not None and not self.draft.in_text and start < self._reread_until:
            self._passed_end = self._thought_end(body, self._reread_until)
        cursor.move(stop)
        return Outcomes.CALL

    # Reading them: the modes CALL, DEAD and AFTER_CALLS.

    def read(self, end: int, final: bool) -> ReadOutcome:
        """Let the call's own grammar read."""
        region, cursor = self.region, self._cursor
        assert region is not None
        if region.reader is None:
            chosen = self._choose_reader(region, end, final)
            if chosen is not None:
                return chosen
        reader = region.reader
        assert reader is not None
        # The reader is stopped before every marker that may be the region's end. If it reads on through it as part of a
        # value, events behind it are held, because the value may never end.
        stop, closer = self._watch(region, end, final)
        thought_end = self._passed_end
        if thought_end is not None and thought_end.offset <= cursor.base + stop:
            stop, closer = max(thought_end.offset - cursor.base, cursor.at), None
        else:
            thought_end = None
        before, calls = cursor.at, region.calls
        # Not final for the reader where it was stopped before a marker: more text follows.
        cursor.move(reader.read(cursor.buffer, before, stop, cursor.base, final and stop == end))
        if reader.status is not Statuses.READING:
            return self._leave(region) if reader.status is Statuses.DONE else self._refuse(region, reader)
        # Out of the reader behind every call: `limit` counts anew for the next one, whatever the chunking.
        if region.calls > calls:
            return Outcomes.GO_ON
        if thought_end is not None:
            return self._end_draft(region, thought_end)
        if closer is not None:
            # The reader stands before a closing marker that it may take as its end or as part of a value.
            region.hold.watch_from(cursor.base + closer.stop)
            ends_turn = closer.marker.action is Actions.STOP
            if ends_turn or not reader.quoting:
                region.hold.meet(cursor.base + closer.start, cursor.base + closer.stop, ends_turn)
            return Outcomes.GO_ON
        if final:
            return self._finish(region)
        return Outcomes.GO_ON if cursor.at > before and stop < end else Outcomes.WAIT

    def _refuse(self, region: Region, reader: Reader) -> ReadOutcome:
        """The reader met something that its grammar does not allow. A stop marker there only cuts the call off."""
        place = self._cursor.base + self._cursor.at
        closer = region.hold.closer
        if closer is not None and closer.ends_turn and closer.start == place:
            if region.begun and self._cursor.tape.words_until(place) > region.body:
                return self._cut_off(region, place, "incomplete")
            if region.calls and not region.begun:
                # A list of whole calls that the turn's end cut off before its bracket.
                self._holds.notice("missing_close", region.dead_from)
                return self._leave(region)
        return self._reject(region, reader.code, reader.reason)

    def _choose_reader(self, region: Region, end: int, final: bool) -> ReadOutcome | None:
        """Pick the syntax that the first characters fit; else what follows from there being none."""
        cursor = self._cursor
        # The format's own syntax comes first; siblings that share its opener are read because models slip between them.
        for syntax in region.syntaxes:
            answer = syntax.sniff(cursor.buffer, cursor.at, end, final)
            if answer is None:
                return Outcomes.WAIT
            if answer:
                assert self._sink is not None
                region.choose(syntax, syntax.reader(self._sink, region.opener))
                return None
        return self._reject(region, "unreadable", "what follows the opening marker is not a call")

    def _watch(self, region: Region, end: int, final: bool) -> tuple[int, Found | None]:
        """Look for the region's closing markers ahead of the reader."""
        cursor = self._cursor
        table = self._markers.tables.closers_of(region.syntax)
        scan = max(region.hold.watched - cursor.base, cursor.at)
        found = cursor.find(table, scan, end)
        if found is not None:
            return found.start, found
        stop = end if final else table.begins(cursor.buffer, scan, end)
        region.hold.watch_from(cursor.base + stop)
        return stop, None

    def _leave(self, region: Region) -> ReadOutcome:
        """The region is over: back to prose, or find out whether it was a draft."""
        draft, markers = self.draft, self._markers
        if draft is not None:
            # In a thought only a well-formed call can be meant; anything else is a draft without waiting for what
            # follows.
            if not region.faulty and region.calls:
                return Outcomes.HELD
            if draft.in_text:
                return self._show_example(draft)
            return self._give_back("draft_call", resume=self._resume_behind(region, region.fault_from))
        if not region.calls and not region.announced:
            # An empty list that nothing announced is words, but not the marker that closes it.
            return self._give_back(None, resume=self._read_again(region.start, region.body))
        markers.settle_on(region.syntax)
        if not region.calls:
            # An empty list of calls: no event, but the text before it has ended.
            self._writer.close(True)
            if self._holds.undecided:
                self._writer.settle_as_text()
        return self._close(Outcomes.CLOSED_MESSAGE if markers.tables.bare_headers else Outcomes.CLOSED)

    def _close(self, outcome: ReadOutcome) -> ReadOutcome:
        self.region = None
        cursor = self._cursor
        cursor.pass_over(cursor.at)
        self._writer.begin_content(cursor.scan)
        return outcome

    def _reject(self, region: Region, code: str, reason: str) -> ReadOutcome:
        """The text is not in the call's grammar."""
        draft = self.draft
        place = self._cursor.base + self._cursor.at
        if draft is not None and draft.in_text:
            return self._show_example(draft)
        # A quoted opener that no call follows is a mention, which gives no notice.
        if draft is not None and draft.quoted:
            body = self._behind_openers(region.body, place)
            return self._give_back(None, resume=self._read_again(draft.start, body))
        if draft is not None:
            message = "what looked like a call is none; it stays thinking"
            return self._give_back("draft_call", message, resume=self._read_again(draft.start, region.body))
        if not region.announced and not region.record.committed and not region.calls:
            return self._give_back(None, resume=self._read_again(region.start, region.body))
        if region.never_shown and not region.closers:
            return self._leave_out(region, region.body)  # nothing could show that it was a call
        region.reject(code, reason, place)
        self._cursor.scan_from(place)
        return Outcomes.REJECTED

    def read_dead(self, end: int, final: bool) -> ReadOutcome:
        """Behind what the grammar rejected: a closing marker ends a broken call, anything else says it was none."""
        region, cursor = self.region, self._cursor
        assert region is not None
        table = self._markers.tables.text
        scan = max(cursor.scan - cursor.base, cursor.at)
        while True:
            found = cursor.find(table, scan, end)
            if found is None:
                break
            if not final and (
                table.may_extend(cursor.buffer, found, end) or table.may_enclose(cursor.buffer, found, scan, end)
            ):
                break
            verdict, stop = self._writer.judge_quotes(found, end, final)
            if verdict is Verdicts.WAIT:
                break
            closes = found.marker.text in region.closers
            if verdict is Verdicts.ACTS and (closes or found.marker.ends_dead_region):
                return self._end_dead(region, found, closes)
            scan = stop
        hold = end if final else min(found.start if found else end, table.begins(cursor.buffer, scan, end))
        cursor.move(max(cursor.at, hold))
        cursor.scan_from(cursor.base + cursor.at)
        if not final:
            return Outcomes.WAIT
        if not region.record.committed:
            return self._give_back_opener(region)
        assert self._sink is not None
        self._sink.end_broken(cursor.base + end, cursor.tape.words_until(cursor.base + end))
        return self._close(Outcomes.CLOSED)

    def _end_dead(self, region: Region, found: Found, closes: bool) -> ReadOutcome:
        cursor = self._cursor
        own = closes and not region.syntax.keeps_close
        cursor.move(found.stop if own else found.start)
        # Another marker came before the region's end: what looked like an opener was none.
        if not closes and not region.record.committed:
            if region.opens_section and any(found.marker.text in syntax.open for syntax in region.syntaxes):
                return self._leave_out(region, cursor.base + cursor.at)
            return self._give_back_opener(region)
        if closes and self._are_words(region, found):
            return self._give_back("not_a_call", resume=cursor.base + found.stop)
        stop = cursor.base + cursor.at
        words_until = cursor.tape.words_until(cursor.base + found.start)
        if not own:
            stop = max(words_until, region.dead_from)
        assert self._sink is not None
        self._sink.end_broken(stop, words_until)
        # The section or list around the broken call may go on with further calls.
        if closes and region.reader is not None:
            region.reader.recover(found.marker.text)
            if region.reader.status is Statuses.READING:
                region.hold.watch_from(stop)
                return Outcomes.RECOVERED
        return self._close(Outcomes.CLOSED)

    def _are_words(self, region: Region, found: Found) -> bool:
        """Whether a region of a text that its grammar refused holds plain words, so that its tags are talked about."""
        writer, cursor = self._writer, self._cursor
        emitted = self.draft is not None or region.calls or region.record.committed
        if emitted or not writer.quotes or found.marker.certain or not region.opener:
            return False
        body = cursor.tape.text(region.body, cursor.base + found.start)
        return are_words(body, is_inside_line(writer.before(region.start - cursor.base)))

    def _give_back_opener(self, region: Region) -> ReadOutcome:
        """No call follows an opener: it is words, or left out where no reader shall see it."""
        if region.never_shown:
            return self._leave_out(region, self._cursor.base + self._cursor.at)
        return self._give_back("not_a_call")

    def _leave_out(self, region: Region, resume: int) -> ReadOutcome:
        """Words follow an opener: they are text, and the opener is left out. Markers from `resume` on may act."""
        cursor, writer = self._cursor, self._writer
        if self.draft is not None or region.calls:
            return self._give_back("not_a_call")
        self.region = None
        writer.end_overflow(region.start)
        writer.frame(cursor.tape.text(region.space_from, region.start))
        writer.close(True)
        if self._holds.undecided:
            writer.settle_as_text()
        message = f"{region.opener} is followed by words; it is left out"
        self._holds.notice("stray_marker", region.start, message)
        writer.begin_content(region.body)
        cursor.rewind(region.body, resume)
        return Outcomes.GIVEN_BACK

    def read_after(self, end: int, final: bool) -> ReadOutcome:
        """Behind well-formed calls that are held: if the turn ends here they are calls, else drafts or examples."""
        cursor, draft, table = self._cursor, self.draft, self._markers.tables.stops
        assert draft is not None
        match = NON_SPACE.search(cursor.buffer, cursor.at, end)
        if match is None:
            if not final:
                return Outcomes.WAIT_FOR_WORDS
            # Cut off here, nobody knows what would have followed.
            return self._end_drafts(draft, end) if self._writer.reported == "length" else self._resolve()
        place = match.start()
        if draft.closing:
            closed = marker_at(cursor.buffer, place, end, draft.closing, final)
            if closed is None:
                return Outcomes.WAIT
            return self._end_drafts(draft, place) if closed else self._resolve()
        found = cursor.find(table, place, end)
        if found is None or found.start > place:
            waits = not final and found is None and table.begins(cursor.buffer, place, end) == place
            return Outcomes.WAIT if waits else self._end_drafts(draft, place)
        if not final and table.may_extend(cursor.buffer, found, end):
            return Outcomes.WAIT
        marker = found.marker
        # Closing markers of the call syntax belong to the calls; the turn may still end behind them.
        if marker.action is Actions.STRAY:
            cursor.move(found.stop)
            return Outcomes.GO_ON
        # A close that the format lists in `behind_calls`: Kimi K3 closes the thought behind its calls. Any other close
        # makes them drafts, and is not in this table.
        if marker.action is Actions.CLOSE:
            cursor.move(found.stop)
            resolved = self._resolve()
            self._writer.notice_marker(marker, cursor.base + place)
            return resolved
        if marker.action is Actions.BARE:
            if not draft.bare:
                return self._end_drafts(draft, place)
            return self._begin_further(draft, self._markers.tables.bare, "", place, place)
        if marker.action is Actions.CALL:
            return self._begin_further(draft, marker.syntaxes, marker.text, place, found.stop)
        cursor.move(place)
        return self._resolve()

    def _begin_further(
        self, draft: Draft, syntaxes: Sequence[CallSyntax], opener: str, place: int, stop: int
    ) -> ReadOutcome:
        """Another call follows those that are held."""
        assert self.region is not None
        draft.calls += self.region.calls
        offset = self._cursor.base + place
        return self._start(list(syntaxes), opener, offset, stop, offset)

    def _end_drafts(self, draft: Draft, place: int, resume: int | None = None) -> ReadOutcome:
        """Something else follows calls that are held, or the reply was cut: they were drafts, or examples."""
        if draft.bare:
            return self._show_example(draft, self._cursor.base + place)
        return self._give_back("example_call" if draft.shown else "draft_call", resume=None if draft.shown else resume)

    def _resolve(self) -> ReadOutcome:
        """The turn ends behind the calls: they are calls, and thinking was closed by them."""
        assert self.region is not None
        syntax = self.region.syntax
        draft, self.draft = self.draft, None
        if draft is not None and draft.block:
            self._holds.put_first("fenced_call", draft.start)
        self._holds.release()
        self._writer.enter(TEXT, syntax)
        return self._close(Outcomes.CLOSED)

    # Calls that do not end as they should.

    def _finish(self, region: Region) -> ReadOutcome:
        """The input ended while the grammar wanted more."""
        closer, cursor = region.hold.closer, self._cursor
        if not region.announced and not region.record.committed and self.draft is None:
            return self._give_back(None, resume=self._read_again(region.start, region.body))
        # A stop marker inside a string of a call that never ends was the end of the turn after all.
        if closer is not None and closer.ends_turn:
            return self._cut_off(region, closer.start, "incomplete")
        # A string that never ends would take in the rest of the output. It is cut at the first closing marker that
        # stood in it, and what follows is read again.
        if self.draft is None and closer is not None and self._may_reread(region.start):
            keeps = region.syntax.keeps_close
            return self._cut_off(region, closer.start if keeps else closer.stop, "unclosed")
        end = cursor.base + len(cursor.buffer)
        draft = self.draft
        if draft is not None and self._writer.reported == "length" and region.calls + draft.calls:
            return self._end_drafts(draft, len(cursor.buffer), resume=self._resume_behind(region, draft.start))
        self._writer.mark_cut(region.begun)
        return self._cut_off(region, end, "incomplete")

    def _cut_off(self, region: Region, place: int, error: str) -> ReadOutcome:
        """The call that is being read ends at `place`, unfinished. What follows is read as if it had not been."""
        draft = self.draft
        if draft is not None and draft.shown:
            self._writer.mark_cut(False)
            return self._show_example(draft, place)
        if draft is not None and draft.bare:
            if not self._is_meant(region, draft):
                self._writer.mark_cut(False)
                return self._show_example(draft, place)
        elif draft is not None:
            ended = self._thought_end(max(region.body, region.dead_from), place)
            if ended is not None:
                return self._end_draft(region, ended)
            if not self._is_meant(region, draft):
                self._writer.mark_cut(False)
                again = self._behind_openers(region.body, place)
                return self._give_back(None, resume=self._read_again(draft.start, again, place))
        return self._end_cut(region, place, error)

    def _end_draft(self, region: Region, ended: ThoughtEnd) -> ReadOutcome:
        """The thought ends inside a call that does not: it was a draft, unless the whole turn ends there."""
        self._writer.mark_cut(False)
        assert self.draft is not None
        # Cut off where the turn ends, it is an incomplete call; cut off where the thought goes on or closes, it was a
        # draft.
        if ended.ends_turn and self._is_meant(region, self.draft):
            return self._end_cut(region, ended.offset, "incomplete")
        self._reread_until = max(self._reread_until, self._cursor.base + self._cursor.at)
        return self._give_back(None if ended.ends_turn else "draft_call", resume=ended.offset)

    def _is_meant(self, region: Region, draft: Draft) -> bool:
        """Whether held calls, the last of them cut off, are meant: not merely talked about."""
        if region.faulty:
            return False
        if draft.bare:
            return region.record.committed or not region.begun
        if region.calls + draft.calls:
            return True
        # In prose about calls an opener and a name are common. A call that is meant has a closed name, is not quoted,
        # and begins a line or names a tool that was given.
        passed = region.hold.closer is not None and not region.hold.closer.ends_turn
        if passed or draft.quoted or not region.record.name_closed:
            return False
        tools = self._options.tools
        return draft.begins_line or (tools is not None and region.record.name in tools.names)

    def _show_example(self, draft: Draft, until: int = 0) -> ReadOutcome:
        """A bare call behind prose is words after all, as if nobody had held it."""
        return self._give_back(None, resume=self._read_again(draft.start, draft.start + 1, until))

    def _end_cut(self, region: Region, place: int, error: str) -> ReadOutcome:
        cursor = self._cursor
        # What was held stands behind `place` and is read again, so its events must not go out twice.
        if place < cursor.base + len(cursor.buffer):
            region.hold.drop()
        else:
            region.hold.release()
        if region.begun:
            assert self._sink is not None
            self._sink.fail(place, error)
        if place < cursor.base + cursor.at:
            self._reread_until = cursor.tape.sync()
        cursor.rewind(place, place)
        if self.draft is not None:
            self._resolve()
        else:
            self.region = None
            self._writer.begin_content(place)
        return Outcomes.CUT_OFF

    def _thought_end(self, start: int, stop: int) -> ThoughtEnd | None:
        """The first marker between two offsets that ends thinking and is not only talked about."""
        cursor, tables = self._cursor, self._markers.tables
        known_in, since, until, known = self._known_end
        same = known_in is tables and since <= start
        if same and (start <= known.offset < stop if known is not None else stop <= until):
            return known  # so that asking again and again stays linear
        cursor.reach_back(start)
        scan, end = start - cursor.base, stop - cursor.base
        ended = None
        while ended is None and (found := cursor.find(tables.thought_ends, scan, end)) is not None:
            verdict, scan = self._writer.judge_quotes(found, end, True)
            if verdict is Verdicts.ACTS:
                ended = ThoughtEnd(cursor.base + found.start, found.marker.action is Actions.STOP)
        # With the tables: `auto` may settle on another format in between, and other markers end a thought there.
        self._known_end = (tables, start, stop, ended)
        return ended

    def _behind_openers(self, body: int, stop: int) -> int:
        """Behind further openers that follow an opener directly: they belong to what was no call and are none."""
        cursor = self._cursor
        cursor.reach_back(body)
        at, end = body - cursor.base, stop - cursor.base
        table = self._markers.tables.thinking
        while match := NON_SPACE.search(cursor.buffer, at, end):
            found = cursor.find(table, match.start(), end)
            if found is None or found.start > match.start() or found.marker.action is not Actions.CALL:
                break
            at = found.stop
        return cursor.base + at

    # Giving back, and reading again.

    def _resume_behind(self, region: Region, start: int) -> int:
        """Where reading goes on behind a call in thinking that is given back: the first end of the thought in it."""
        stop = self._cursor.base + self._cursor.at
        ended = self._thought_end(max(start, region.body), stop)
        if ended is None:
            return stop
        self._reread_until = max(self._reread_until, stop)
        return ended.offset

    def _read_again(self, start: int, body: int, until: int = 0) -> int:
        """Where reading goes on behind what was no call: at its body if that was not read again before."""
        here = self._cursor.base + self._cursor.at
        until = until or here
        if not self._may_reread(start):
            return until
        self._reread_until = max(until, here)
        return body

    def _may_reread(self, offset: int) -> bool:
        """Each character is read again at most once, so that cost stays linear."""
        return offset >= self._reread_until

    def _expire_draft(self, draft: Draft) -> ReadOutcome:
        """Calls in thinking are held for too long: they are thinking, as far as the thought goes."""
        region, cursor = self.region, self._cursor
        assert region is not None
        horizon = self.horizon
        if draft.in_text:
            self._reread_until = max(self._reread_until, horizon)
            return self._give_back("limit", _TOO_LONG, resume=draft.start + 1)
        body = max(region.body, region.dead_from)
        ended = self._thought_end(body, horizon)
        if ended is not None:
            resume = ended.offset
        else:
            # The beginning of a marker may stand before the horizon, and the rest of it behind.
            end = horizon - cursor.base
            resume = cursor.base + self._markers.table.begins(cursor.buffer, min(body - cursor.base, end), end)
        self._reread_until = max(self._reread_until, horizon)
        return self._give_back("limit", "a call in thinking is held for too long; taken as thinking", resume=resume)

    def _give_back(self, code: NoticeCode | None, message: str = "", *, resume: int | None = None) -> ReadOutcome:
        """What was held as a call is words. Markers from the offset `resume` on may act after all."""
        region, draft, cursor = self.region, self.draft, self._cursor
        assert region is not None
        resume = cursor.base + cursor.at if resume is None else resume
        space_from, start = region.space_from, region.start
        if draft is not None:
            space_from, start = draft.space_from, draft.start
            self._holds.drop(draft.hold)
            # A bare call began outside of any block.
            self._writer.restore(draft.part, start if draft.bare else None)
        elif region.calls:
            # The calls before it stay calls; only what follows the last of them is words.
            space_from = start = region.dead_from
        self.region = self.draft = None
        if code:
            self._holds.notice(code, start, message)
        cursor.rewind(space_from, resume)
        return Outcomes.GIVEN_BACK
