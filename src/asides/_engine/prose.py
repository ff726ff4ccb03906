"""Prose: text and thinking up to the next marker that acts, and what that marker does. Message headers too.

One loop (`read`): find the next marker that can act in this state; give what stands before it to the open part; do
what the marker does; where no marker is, give all but the longest tail that could still begin one. A marker that was
found is asked in this order whether it acts: may it still become a longer one or stand in an unfinished tag (wait);
is it quoted or fenced (then it is words); is it at a place where it means something.

Formats with headers (`<|channel|>analysis<|message|>`) have messages around their prose. Where the server has left the
special tokens out, the headers are read by their words alone (`bare_headers.py`).
"""

from __future__ import annotations

import logging

import msgspec

from .bare_headers import BareStart, BareStarts, read_bare_header, starts_bare
from .calls.steps import marker_at
from .calls_in_progress import CallsInProgress
from .cursor import NON_SPACE
from .fences import begins_line
from .format import HEADER, TEXT, THINKING, TO, State
from .headers import LONGEST, HeaderResult, leads_to_call, leads_to_message, read_header, starts_header
from .markers import Actions, Found, Marker
from .mentions import Verdict, Verdicts
from .modes import Outcomes, ReadOutcome
from .open_part import PartWriter

log = logging.getLogger("asides")


class Prose:
    """Reads what stands between calls: every mode that is not about calls."""

    __slots__ = ("_calls", "_cursor", "_debug", "_header_before", "_holds", "_markers", "_may_watch", "_writer")

    def __init__(
        self, writer: PartWriter, calls: CallsInProgress, *, header_before: str = "", may_watch: bool = False
    ) -> None:
        self._writer = writer
        self._cursor = writer.cursor
        self._holds = writer.holds
        self._markers = writer.markers
        self._calls = calls
        self._header_before = header_before  # what the prompt holds of a header that the output goes on with
        # Whether an output that may begin with a bare header is held until another one shows that it did.
        self._may_watch = may_watch
        self._debug = log.isEnabledFor(logging.DEBUG)

    def read(self, end: int, final: bool) -> ReadOutcome:
        """Read text or thinking up to the next marker that acts."""
        cursor, writer, part = self._cursor, self._writer, self._writer.part
        # Markers that act only before any words are not looked for behind the first: their letters are common in prose.
        table = self._markers.table if part.empty else self._markers.table.after_words
        scan = max(cursor.scan - cursor.base, cursor.at)
        # Before any marker is looked for: a bare call has none, and counts only where a text begins.
        if part.call_may_begin and part.empty and self._calls.begin_bare(end, final):
            return Outcomes.CALL
        buffer = cursor.buffer
        verdict = Verdicts.ACTS
        while True:
            found = cursor.find(table, scan, end)
            if found is None:
                hold = end if final else table.begins(buffer, scan, end)
                break
            marker = found.marker
            if marker.leading and not (part.empty and cursor.blank_before(found.start)):
                table, scan = table.after_words, found.start  # another marker may stand there that it begins with
                continue
            # A tag that is still open may hold this marker in an attribute. A whole text would show that, so a stream
            # waits.
            if table.has_spellings and not final and table.may_enclose(buffer, found, scan, end):
                hold = table.begins(buffer, scan, end)
                break
            # Markers may begin alike, and in a whole text the longest is found. So a stream waits for the rest of it.
            if marker.text in table.extendable and table.may_extend(buffer, found, end):
                if not final:
                    hold = found.start
                    break
                # The output ends inside the longer marker: the rest is part of it, not of what follows.
                found = Found(found.start, end, marker)
            if marker.action is Actions.BARE:
                if self._calls.may_begin_line(found.start):
                    return self._calls.begin_line(found.start)
                scan = found.stop
                continue
            judge = self._judge_recipient if marker.text == TO else writer.judge_marker
            verdict, stop = judge(found, end, final)
            if verdict is Verdicts.WAIT or verdict is Verdicts.WAIT_FOR_WORDS:
                hold = found.start
                break
            # Quotes first, then the place: a quoted marker must give no notice that it stands in the wrong place.
            if verdict is Verdicts.ACTS and not (marker.place_matters and self._is_literal(found)):
                return self._act(found)
            if verdict is Verdicts.SPENT:
                writer.write_literal(found.start)
                self._holds.notice("limit", cursor.base + found.start)
            scan = stop
        # What stands before `hold` is not searched again, however small the chunks are: cost stays linear.
        cursor.scan_from(cursor.base + hold)
        space = writer.flow(hold, beside=False, final=final)
        for_words = (space and hold == end) or verdict is Verdicts.WAIT_FOR_WORDS
        return Outcomes.WAIT_FOR_WORDS if for_words else Outcomes.WAIT

    def _judge_recipient(self, found: Found, end: int, final: bool) -> tuple[Verdict, int]:
        """The same as `PartWriter.judge_marker` for what may be a recipient.

        In a thought it acts only where a call follows, in text only between two messages.
        """
        part, cursor = self._writer.part, self._cursor
        leads: int | bool | None
        if self._markers.table.state == THINKING:
            leads = leads_to_call(self._markers.format, cursor.buffer, found.stop, end, final)
        elif part.outside_message and part.empty and cursor.blank_before(found.start):
            leads = leads_to_message(self._markers.format, cursor.buffer, found.stop, end, final)
        else:
            leads = False
        if not leads:
            return Verdicts.WAIT if leads is None else Verdicts.LITERAL, found.stop
        return self._writer.judge_marker(found, end, final)

    def _is_literal(self, found: Found) -> bool:
        """Whether a marker that acts elsewhere is plain words here, and saying so."""
        marker, cursor, writer, part = found.marker, self._cursor, self._writer, self._writer.part
        begins = part.empty and cursor.blank_before(found.start)
        # A header whose markers are gone has no whitespace before its role; behind whitespace it is an ordinary word.
        if marker.joined:
            return not begins and cursor.buffer[found.start - 1].isspace()
        if marker.action is Actions.FOREIGN:
            writer.notice_foreign(found)
            return True
        # `<internal>` and its like are also fields of answers: they act as the first thing of the output, and directly
        # behind a closed thought.
        if marker.weak and not (begins and part.content_from == part.weak_from):
            return True
        if marker.at_line and not begins and not begins_line(cursor.buffer, found.start, writer.floor):
            writer.write_literal(found.start)
            message = f"{marker.text!r} opens a call only where a line begins"
            self._holds.notice("not_a_call", cursor.base + found.start, message)
            return True
        if marker.action is not Actions.NESTED:
            return marker.leading and part.seen_words
        if begins:
            return False
        writer.write_literal(found.start)
        self._holds.notice("nested_open", cursor.base + found.start)
        return True

    def _act(self, found: Found) -> ReadOutcome:
        """Do what a marker does."""
        marker, cursor, writer = found.marker, self._cursor, self._writer
        offset = cursor.base + found.start
        if self._debug:
            log.debug("%s at %d: in %s, %s", marker.text, offset, self._markers.table.state, marker.action.value)
        # First: the part is neither closed nor is an undecided start settled before it is known that this is a call.
        if marker.action is Actions.CALL:
            writer.flow(found.start, beside=False)
            return self._calls.begin(found)
        if marker.action is Actions.HEADER:
            return self._meet_header(found)
        if self._holds.undecided:
            # The prompt had opened the thought. It must be read again, because other markers act in thinking than in
            # text.
            if marker.action is Actions.STRAY and marker.closes_thinking:
                return self._settle_as_thinking(offset)
            # Any other marker that acts: a stream has told what stands before it, and could not take it back. Behind
            # a word that may be a header without its markers, others of the format may be left.
            if not self._markers.watching or marker.action in (Actions.OPEN, Actions.STOP):
                writer.settle_as_text()
        writer.flow(found.start, beside=True)
        retypes = marker.action is Actions.STRAY and marker.closes_thinking and writer.is_first
        if marker.action is Actions.STOP:
            writer.stop(offset, marker)
        elif retypes:
            # The prompt had opened the thought, and what went out as text was one.
            if writer.part.kind is not None:
                writer.retype(offset)
            writer.close(True)
            self._calls.begin_anew()
            closer = self._markers.tables.thinking.markers.get(marker.text)  # none of its own has a suffix
            writer.enter(closer.target if closer is not None else TEXT, marker.text)
        elif marker.action is Actions.NESTED:
            writer.close(True)  # with exact whitespace, what stood before the echo is a part
            if marker.weak or self._markers.format.suffixed is not None:
                self._markers.settle_on(marker.text)  # or its closer would not act, and that of another suffix would
        else:
            writer.close(True, marker.action is Actions.IGNORED and self._markers.table.state == THINKING)
            if marker.action is Actions.STRAY or marker.notice:
                self._notice(marker, offset)
            if marker.action is Actions.LEAVE:
                writer.leave_message(marker, cursor.base + found.stop)
            writer.enter(marker.target, marker.text)
        cursor.pass_over(found.stop)
        writer.begin_content(cursor.scan, after_thinking=retypes or marker.action is Actions.CLOSE)
        return Outcomes.STOPPED if marker.action is Actions.STOP else Outcomes.MARKER

    def _notice(self, marker: Marker, offset: int) -> None:
        """Say what a marker has that is odd, where it is."""
        if marker.action is Actions.STRAY and (self._writer.part.seen_words or not marker.closes_thinking):
            self._holds.notice("stray_close", offset, f"{marker.text} closes nothing; it is left out")
        elif marker.notice:
            self._writer.notice_marker(marker, offset)

    def read_after_stop(self, end: int, final: bool) -> ReadOutcome:
        """Directly after a stop marker: whether the model goes on as another, so that the turn is over."""
        cursor, writer = self._cursor, self._writer
        match = NON_SPACE.search(cursor.buffer, cursor.at, end)
        place = match.start() if match is not None else end
        # Whitespace that may no longer be held is an answer too, whatever the chunking.
        if place - cursor.at > writer.limit or (match is None and final):
            return Outcomes.TURN_GOES_ON
        if match is None:
            return Outcomes.WAIT_FOR_WORDS
        begins = self._other_turn(place, end, final)
        if begins is None:
            return Outcomes.WAIT
        if begins < 0:
            return Outcomes.TURN_GOES_ON
        if begins >= cursor.base + cursor.at:
            writer.flow(place, beside=True)
            writer.close(True)
        writer.end_turn(begins)
        return Outcomes.TURN_OVER

    def _other_turn(self, place: int, end: int, final: bool) -> int | None:
        """The offset of the header of another turn before the first thing after a stop, at `place`, or there; -1 where
        none is, None where more must be seen."""
        cursor, part, tables = self._cursor, self._writer.part, self._markers.tables
        headers = tables.other_turns(part.stop_text)
        if not headers:
            return -1
        buffer, stops = cursor.buffer, tables.turn_stops
        stop = cursor.find(stops, cursor.at, end)
        if stop is not None and stop.start <= place:
            return -1  # further stops mean nothing, and one that is a header is asked next
        if not final and stops.begins(buffer, cursor.at, end) <= place:
            return None
        if part.stop_text in headers:
            return part.stop_from  # the user's own header, and words after it
        header = marker_at(buffer, place, end, headers, final)
        if not header:
            return None if header is None else -1
        own = self._markers.format.header
        if own is None or not own.roles or header not in tables.header_openers:
            return cursor.base + place
        # Where messages have headers, the assistant may go on with another message.
        at = place + len(header)
        role = marker_at(buffer, at, end, own.roles, final)
        if role is None or (at == end and not final):
            return None
        return -1 if role or not buffer[at : at + 1].isalnum() else cursor.base + place

    def read_beyond(self, end: int, final: bool) -> ReadOutcome:
        """After the end of the turn nothing is read."""
        self._cursor.pass_over(end)
        return Outcomes.WAIT

    def _settle_as_thinking(self, close: int) -> ReadOutcome:
        """A lone close: everything before it was thinking."""
        self._restart(THINKING)
        self._cursor.scan_from(close)
        return Outcomes.REREAD

    def _restart(self, state: State) -> None:
        """Read everything again."""
        self._holds.restart()
        self._writer.restart(state, after_marker=True)
        self._calls.restart()
        self._cursor.rewind(0, 0)

    # Headers.

    def _meet_header(self, found: Found) -> ReadOutcome:
        marker, cursor = found.marker, self._cursor
        # The output began with a word that might have been a channel: now it is known that it was.
        if marker.joined and self._markers.watching:
            return self.settle_as_bare()
        self._writer.flow(found.start, beside=False)
        cursor.scan_from(cursor.base + found.start)
        header = self._markers.format.header
        own = (header.channel_marker, header.body) if header is not None else ()
        return Outcomes.BARE_HEADER if marker.joined and not marker.text.endswith(own) else Outcomes.HEADER

    def read_begin(self, end: int, final: bool) -> ReadOutcome:
        """The output may begin inside the header that the prompt has opened."""
        cursor, holds = self._cursor, self._holds
        offset = cursor.base + cursor.at
        if self._header_before:
            cursor.scan_from(offset)
            return Outcomes.HEADER
        start = self._starts_bare(end, final)
        if start is BareStarts.WAIT:
            return Outcomes.WAIT
        if holds.undecided:
            return self._begin_undecided(start)
        # Before the format's own markers are looked for: a server that leaves them out sends none.
        if start in (BareStarts.YES, BareStarts.JOINED):
            return self._begin_bare_headers(offset)
        if start is BareStarts.MAYBE and self._may_watch:
            holds.open_undecided()
            return self._watch()
        table = self._markers.tables.header
        found = cursor.find(table, cursor.at, end)
        place = found.start if found else (end if final else table.begins(cursor.buffer, cursor.at, end))
        before = cursor.buffer[cursor.at : place]
        answer = starts_header(self._markers.format, before, found.marker if found else None)
        if answer is None and not final and found is None:
            return Outcomes.WAIT
        if answer and found:
            cursor.scan_from(offset)
            return Outcomes.HEADER
        self._writer.enter_outside(True)
        return Outcomes.NO_HEADER

    def _begin_undecided(self, start: BareStart) -> ReadOutcome:
        """The start is undecided, and a format that is not settled yet may begin with a header without markers."""
        if start is BareStarts.JOINED:
            return self.settle_as_bare()
        return Outcomes.NO_HEADER if start is BareStarts.NO else self._watch()

    def _starts_bare(self, end: int, final: bool) -> BareStart:
        header, cursor = self._markers.format.header, self._cursor
        at = cursor.at
        if header is None or (at < end and cursor.buffer[at] not in self._markers.tables.bare_firsts):
            return BareStarts.NO
        return starts_bare(header, cursor.buffer, at, end, final)

    def _watch(self) -> ReadOutcome:
        """Read on as text, held back, until a joined header shows that the first word was one too."""
        self._markers.watch()
        self._writer.enter_outside(self._markers.format.start == HEADER)
        return Outcomes.NO_HEADER

    def settle_as_bare(self) -> ReadOutcome:
        """A joined header: the first word was a header without markers."""
        self._restart(TEXT)
        return self._begin_bare_headers(0)

    def _begin_bare_headers(self, offset: int) -> ReadOutcome:
        """A header without markers begins at `offset`; from here on they are read by their words."""
        header = self._markers.format.header
        assert header is not None
        assert header.bare is not None
        if self._markers.read_bare_headers():
            self._holds.notice(header.bare.notice, offset)
        self._cursor.scan_from(offset)
        return Outcomes.BARE_HEADER

    def read_bare_header(self, end: int, final: bool) -> ReadOutcome:
        """Read a header without markers and enter the state that it names."""
        cursor, header = self._cursor, self._markers.format.header
        assert header is not None
        place = cursor.scan - cursor.base
        words = place + len(marker_at(cursor.buffer, place, end, self._markers.tables.header_openers, True) or "")
        result = read_bare_header(header, cursor.buffer, words, end, final, self._calls.tools)
        return self._enter_message(result, place) if result is not None else Outcomes.WAIT

    def read_header(self, end: int, final: bool) -> ReadOutcome:
        """Read the header of a message and enter the state that it names."""
        cursor, format, tables = self._cursor, self._markers.format, self._markers.tables
        place = cursor.scan - cursor.base
        before, text = self._header_before, cursor.buffer
        # Beyond the longest header there is nothing to wait for.
        seen = final or end - place > LONGEST
        lost = "" if before else marker_at(text, place, end, tables.lost_channels, seen)
        if lost is None:
            return Outcomes.WAIT
        if lost:
            return self._begin_bare_headers(cursor.scan)
        if before:
            # The prompt ended inside the header, so the output holds only the rest of it. Indices are shifted back
            # afterwards, never before the output's own beginning.
            text = before + text[place:]
            shift = place - len(before)
            result = read_header(format, tables.header, text, 0, end - shift, final)
            if result is not None:
                result = msgspec.structs.replace(result, stop=max(result.stop + shift, place))
        else:
            result = read_header(format, tables.header, text, place, end, final)
        if result is None:
            return Outcomes.WAIT
        self._header_before = ""
        return self._enter_message(result, place)

    def _enter_message(self, result: HeaderResult, place: int) -> ReadOutcome:
        """A header at `place` has been read: the part before it ends, and what it says begins."""
        cursor, holds, markers, writer = self._cursor, self._holds, self._markers, self._writer
        offset = cursor.base + place
        if result.state is None and not result.syntaxes:
            # No header after all: the marker is words.
            holds.notice("malformed_header", offset, "a header marker with no header; it is taken literally")
            cursor.scan_from(cursor.base + result.stop)
            return Outcomes.NO_HEADER
        if holds.undecided:
            writer.settle_as_text()
        writer.flow(place, beside=True)
        cursor.move(max(cursor.at, place))
        # Without its special tokens a thought has no closing marker at all: that the header ends it is no news.
        if writer.part.kind == "thinking" and not markers.tables.bare_headers:
            holds.notice("implicit_close", offset)
        writer.enter_message()
        for code, message in result.notices:
            holds.notice(code, offset, message)
        # Before the state is entered, which picks the table: in a message to the user a call is only an example.
        markers.let_calls(not result.addressed)
        calls = bool(result.syntaxes) and markers.reads_calls
        writer.enter(TEXT if calls else result.state or TEXT, result.marker)
        cursor.pass_over(result.stop)
        writer.begin_content(cursor.scan, begins_message=not calls)
        if not calls:
            return Outcomes.MESSAGE
        begun = self._calls.begin_message(result.syntaxes, result.recipient, offset, result.stop)
        if result.bodiless:
            # Something ended the message inside its header: a call without a body, which may not be run.
            return self._calls.end_message(result.recipient.rpartition(".")[2], result.stop)
        return begun
