"""Prose: text and thinking up to the next marker that acts, and what that marker does. Message headers too."""

from __future__ import annotations

import msgspec

from .bare_headers import BareStart, bare_format, read_bare_header, starts_bare
from .call_outcomes import Calling
from .calls.steps import marker_at
from .fences import begins_line
from .format import HEADER, TEXT, THINKING
from .headers import LONGEST, HeaderResult, read_header, starts_header
from .machine import NON_SPACE, log
from .markers import Action, Found, compile_tables
from .mentions import Verdict


class Prose(Calling):
    """Reads what stands between markers."""

    __slots__ = ()

    def _read_prose(self, end: int, final: bool) -> bool:
        """Read text or thinking up to the next marker that acts."""
        table = self._table if self._blank else self._table.after_words
        scan = max(self._scan - self._base, self._at)
        if self._bare and self._blank and self._begin_bare(end, final):
            return True
        while True:
            found = self._find(table, scan, end)
            if found is None:
                hold = end if final else table.begins(self._buffer, scan, end)
                break
            marker = found.marker
            if marker.leading and not (self._blank and self._blank_before(found.start)):
                scan = found.start + 1
                continue
            if not final and table.may_enclose(self._buffer, found, scan, end):
                hold = table.begins(self._buffer, scan, end)
                break
            if table.may_extend(self._buffer, found, end):
                if not final:
                    hold = found.start
                    break
                # The output ends inside the longer marker: the rest is part of it, not of what follows.
                found = Found(found.start, end, marker)
            if marker.action is Action.BARE:
                if self._may_be_call(found.start):
                    self._begin_bare_line(found.start)
                    return True
                scan = found.stop
                continue
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

    def _judge(self, found: Found, end: int, final: bool) -> tuple[Verdict, int]:
        """Whether a marker acts or is only talked about."""
        verdict, stop = self._judge_quotes(found, end, final)
        if not self._quotes or found.marker.certain:
            return verdict, stop
        if verdict is Verdict.ACTS and self._table.state == TEXT and self._in_fence(found.start):
            verdict, stop = Verdict.LITERAL, found.stop
            self._fenced = True
        if verdict is Verdict.LITERAL and found.marker.action is Action.STOP:
            # A stop marker with nothing but whitespace behind it is a stop, wherever it stands.
            after = NON_SPACE.search(self._buffer, found.stop, end)
            if after is None and end - found.stop <= self.limit:
                if final:
                    return Verdict.ACTS, found.stop
                self._wake = NON_SPACE
                return Verdict.WAIT, found.stop
        return verdict, stop

    def _in_fence(self, place: int) -> bool:
        floor = max(self._content_from - self._base, 0)
        self._fences.advance(self._buffer, self._base, place, floor)
        return self._fences.inside and self._fences.opened_at < self._fences_until

    def _is_literal(self, found: Found) -> bool:
        """Whether a marker that acts elsewhere is plain words here, and saying so."""
        marker = found.marker
        begins = self._blank and self._blank_before(found.start)
        if marker.joined:
            return not begins and self._buffer[found.start - 1].isspace()
        if marker.action is Action.FOREIGN:
            self._tell_foreign(found)
            return True
        if marker.weak and not (begins and self._content_from == self._weak_from):
            return True
        if marker.at_line and not begins and not self._begins_line(found.start):
            self._say_literal(found.start)
            message = f"{marker.text!r} opens a call only where a line begins"
            self.notice("not_a_call", self._base + found.start, message)
            return True
        if marker.action is not Action.NESTED:
            return marker.leading and (self._seen_words or not begins)
        if begins:
            return False
        if not marker.leading:  # a sentence may well be written twice
            self._say_literal(found.start)
            self.notice("nested_open", self._base + found.start)
        return True

    def _begins_line(self, place: int) -> bool:
        return begins_line(self._buffer, place, max(self._content_from - self._base, 0))

    def _tell_foreign(self, found: Found) -> None:
        """A marker that the format does not know is left in the text: say so, once for each text."""
        text = self._buffer[found.start : found.stop]
        if self._content_from != self._foreign_in and self._tables.is_foreign(text):
            self._foreign_in = self._content_from
            self._say_literal(found.start)
            told = f"{text} stands in the text and is no marker of the format {self._format.name}; it is left there"
            self.notice("foreign_marker", self._base + found.start, told)

    def _blank_before(self, place: int) -> bool:
        return NON_SPACE.search(self._buffer, self._at, place) is None

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
            if marker.joined and self._watching:
                self._settle_as_bare()
                return True
            self._flow(found.start, beside=False)
            self._scan = self._base + found.start
            bare = marker.joined and not marker.text.endswith(self._header_markers())
            self._mode = self._read_bare_header if bare else self._read_header
            return True
        if self._undecided:
            if marker.action is Action.STRAY and marker.closes_thinking:
                self._settle_as_thinking(self._base + found.start)
                return True
            if marker.action in (Action.OPEN, Action.STOP):
                self._settle_as_text()
        self._flow(found.start, beside=True)
        self._goes_on = marker.action is Action.IGNORED and self._table.state == THINKING
        offset = self._base + found.start
        if marker.action is Action.STOP:
            self._stop(offset)
        elif marker.action is Action.NESTED:
            self._close_part(True)  # with exact whitespace, what stood before the echo is a part
            if marker.weak:
                self._settle_on(marker.text)  # or its closer would not act
        else:
            said = self._seen_words
            self._close_part(True)
            if marker.action is Action.STRAY and (said or not marker.closes_thinking):
                self.notice("stray_close", offset, f"{marker.text} closes nothing; it is left out")
            else:
                self._notice_marker(marker, offset)
            self._settle_on(marker.text)
            self._go(marker.target)
        self._pass(found.stop)
        if marker.action is Action.CLOSE:
            self._begin_text()
            self._weak_from = self._content_from
        return True

    def _stop(self, offset: int) -> None:
        if self._table.state == THINKING:
            self.notice("unclosed_thinking", offset)
        self._close_part(self._table.state != THINKING)
        self._stopped = self._runs_calls = True
        self._go(TEXT)

    def _settle_as_thinking(self, close: int) -> None:
        """A lone close: everything before it was thinking."""
        self._restart(THINKING, True, False)
        self._rewind(0, close)

    def _read_begin(self, end: int, final: bool) -> bool:
        """The output may begin inside the header that the prompt has opened."""
        if self._header_before:
            self._mode = self._read_header
            self._scan = self._base + self._at
            return True
        start = self._starts_bare(end, final)
        if start is BareStart.WAIT:
            return False
        if start in (BareStart.YES, BareStart.JOINED):
            self._begin_bare_headers(self._base + self._at)
            return True
        if start is BareStart.MAYBE and self._may_watch:
            self._undecided = True
            self._holds.append([])
            self._watch_for_headers()
            return True
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

    def _read_bare_begin(self, end: int, final: bool) -> bool:
        """The start is undecided, and a format that is not settled yet may begin with a header without markers."""
        start = self._starts_bare(end, final)
        if start is BareStart.WAIT:
            return False
        if start is BareStart.JOINED:
            self._settle_as_bare()
        elif start is BareStart.NO:
            self._mode = self._read_prose
            return self._read_prose(end, final)
        else:
            self._watch_for_headers()
        return True

    def _starts_bare(self, end: int, final: bool) -> BareStart:
        header, at = self._format.header, self._at
        if header is None or (at < end and self._buffer[at] not in self._tables.bare_firsts):
            return BareStart.NO
        return starts_bare(header, self._buffer, at, end, final)

    def _watch_for_headers(self) -> None:
        """Read on as text, held back, until a joined header shows that the first word was one too."""
        self._watching = True
        self._table = self._tables.watching
        self._outside = self._format.start == HEADER
        self._mode = self._read_prose

    def _settle_as_bare(self) -> None:
        """A joined header: the first word was a header without markers."""
        self._restart(TEXT, True, False)
        self._rewind(0, 0)
        self._begin_bare_headers(0)

    def _begin_bare_headers(self, offset: int) -> None:
        """A header without markers begins at `offset`; from here on they are read by their words."""
        header = self._format.header
        assert header is not None
        assert header.bare is not None
        if not self._tables.bare_headers:
            self._settle_on(header.channel_marker)
            self._known_end = (0, 0, None)
            self._format = bare_format(self._format)
            self._tables = compile_tables(self._format, self._calls_in_thinking, self._reads_calls)
            self._table = self._table_of(self._table.state)
            self.notice(header.bare.notice, offset)
        self._scan = offset
        self._mode = self._read_bare_header

    def _header_markers(self) -> tuple[str, ...]:
        header = self._format.header
        return (header.channel_marker, header.body) if header is not None else ()

    def _read_bare_header(self, end: int, final: bool) -> bool:
        """Read a header without markers and enter the state that it names."""
        header = self._format.header
        assert header is not None
        place = self._scan - self._base
        words = place + len(marker_at(self._buffer, place, end, self._tables.header_openers, True) or "")
        result = read_bare_header(header, self._buffer, words, end, final, self.tools)
        if result is None:
            return False
        self._enter_message(result, place)
        return True

    def _read_header(self, end: int, final: bool) -> bool:
        """Read the header of a message and enter the state that it names."""
        place = self._scan - self._base
        before, text = self._header_before, self._buffer
        seen = final or end - place > LONGEST
        lost = "" if before else marker_at(text, place, end, self._tables.lost_channels, seen)
        if lost is None:
            return False
        if lost:
            self._begin_bare_headers(self._scan)
            return True
        if before:
            text = before + text[place:]
            shift = place - len(before)
            result = read_header(self._format, self._tables.header, text, 0, end - shift, final)
            if result is not None:
                result = msgspec.structs.replace(result, stop=max(result.stop + shift, place))
        else:
            result = read_header(self._format, self._tables.header, text, place, end, final)
        if result is None:
            return False
        self._header_before = ""
        self._enter_message(result, place)
        return True

    def _enter_message(self, result: HeaderResult, place: int) -> None:
        """A header at `place` has been read: the part before it ends, and what it says begins."""
        offset = self._base + place
        if result.state is None and not result.syntaxes:
            # No header after all: the marker is words.
            self.notice("malformed_header", offset, "a header marker with no header; it is taken literally")
            self._scan = self._base + result.stop
            self._mode = self._read_prose
            return
        if self._undecided:
            self._settle_as_text()
        self._flow(place, beside=True)
        self._at = max(self._at, place)
        if self._table.state == THINKING and self._kind is not None and not self._tables.bare_headers:
            self.notice("implicit_close", offset)
        self._close_part(True)
        for code, message in result.notices:
            self.notice(code, offset, message)
        self._separate = True
        self._goes_on = False
        self._runs_calls = not result.addressed
        self._settle_on(result.marker)
        if result.syntaxes and self._reads_calls:
            self._go(TEXT)
            self._pass(result.stop)
            self._start_region(result.syntaxes, result.recipient, offset, result.stop, offset)
            if result.bodiless and self._region is not None:
                self._region.named(result.recipient.rpartition(".")[2])
                self._cut_off(self._region, self._base + result.stop, "incomplete")
            return
        self._go(result.state or TEXT)
        self._pass(result.stop)
        self._begin_text()
