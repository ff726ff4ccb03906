"""One value between tags: where it ends.

The hard part of every tagged grammar, because a value may be code that holds the very tags of its call. The rule: a
value is balanced. Inside it, a tag that opens an argument goes one in and a closing tag one out, and behind a quoted
call the count is what it was before it. The value ends at the first closing tag at count 0 behind which the grammar
goes on (another argument, the end of the call or of its region, the next call, the end of the turn or of the input).
If the call's end comes first, a closing tag is missing or a tag was only talked about: then the rest of the call is
read by the plain rule, for which it must be known up to its end (`PlainReading`).

    <parameter=doc>                      the value begins
    Write <parameter=path>               one in
    a.md</parameter>, and so on.         one out
    </parameter>                         count 0, another argument follows: the value ends
    <parameter=path>

From the first tag at which the plain rule could end the value, text is held; before that it streams.
docs/reference/calls.md has the rule in full.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ..literals import beginnings
from .steps import SPACE, marker_at, skip, wait
from .strings import StringBody
from .value_tags import LINE_START, MARK, NO_TAG, Piece, PlainReading, ValueTags
from .values import ValueWriter

LONGEST_INDENT = 64
"""How much whitespace may stand before CDATA."""

CDATA = "<![CDATA["
CDATA_CLOSE = "]]>"
_SPACES = " \t\n\r"
_LINE_END = re.compile(r"[\r\n]")


def skip_gap(gap: re.Pattern[str], text: str, at: int, end: int) -> int:
    """Behind what may stand between two tags."""
    match = gap.match(text, at, end)
    return match.end() if match else at


def _line_end_at(text: str, at: int, end: int) -> int:
    """How long the line end at `at` is."""
    return 1 if text.startswith("\n", at, end) else 2 if text.startswith("\r\n", at, end) else 0


def _line_end_before(text: str, at: int, stop: int) -> int:
    """How long the line end is that `text[at:stop]` ends with."""
    return 2 if text.endswith("\r\n", at, stop) else 1 if text.endswith("\n", at, stop) else 0


class ValueFrame(NamedTuple):
    """The tags around a value, as its syntax writes them."""

    close: str
    """The tag that closes it."""
    next: tuple[str, ...]
    """What may follow that tag."""
    start: str = ""
    """The beginning of tags of any name, where such may follow too; what closes something begins so as well."""
    around: tuple[str, ...] = ()
    """The tags that close what it stands in, the innermost first."""
    framed: bool = False
    """Whether one line end behind the opening tag and one before the closing tag are framing."""
    paired: bool = False
    """Whether the second is so only where the first is there."""
    cdata: bool = False
    gap: re.Pattern[str] = SPACE
    """What may stand between two tags."""

    def inner(self, text: str, at: int, stop: int) -> str:
        """The value that stands between `at` and `stop`, without what is framing."""
        if self.framed:
            led = _line_end_at(text, at, stop)
            at += led
            if (led or not self.paired) and text[stop - 1] == "\n":
                stop -= _line_end_before(text, at, stop)
        return text[at:stop]

    def follows(self, text: str, at: int, end: int) -> str | None:
        """Which of the things that may follow a value stands here; as `marker_at`."""
        found = marker_at(text, at, end, self.next)
        start = self.start
        if start and found == "":
            # A start that is cut off, or has nothing behind it, may become a closing tag as well.
            if end - at <= len(start):
                return None if start.startswith(text[at:end]) else ""
            if text.startswith(start, at, end) and text[at + len(start)] != "/":
                return start
        return found


class Ending(NamedTuple):
    """How a value of a call ended whose count did not come out."""

    place: int
    """Where reading goes on."""
    stop: int
    """Where the value's text ends."""
    closed: bool
    """Whether a closing tag ended it."""


class TaggedValue:
    """Reads a value up to the closing tag that ends it, or up to the end of the call."""

    __slots__ = (
        "_before",
        "_cdata",
        "_closed",
        "_count",
        "_depth",
        "_firm",
        "_held",
        "_hold_before",
        "_holding",
        "_led",
        "_limit",
        "_literal",
        "_looking",
        "_mark",
        "_may_begin",
        "_on_limit",
        "_quotes",
        "_size",
        "_step",
        "_tags",
        "_tail",
        "_tail_size",
        "_writer",
        "call_ended",
        "done",
        "frame",
        "space",
        "start",
    )

    def __init__(
        self,
        writer: ValueWriter,
        tags: ValueTags,
        frame: ValueFrame,
        start: int,
        limit: int,
        may_begin: Callable[[str], bool],
        on_limit: Callable[[], None],
    ) -> None:
        self._writer = writer
        self._tags = tags
        self.frame = frame
        self._limit = limit
        self._may_begin = may_begin
        self._on_limit = on_limit
        self.start = start
        """Offset of its first character."""
        self.done = False
        """Whether the value has ended. The position is then behind the whitespace that follows its closing tag."""
        self.space = 0
        """How much of that whitespace there was."""
        self.call_ended = False
        """Whether the call's end came first. The position is then before the tag that closes the call."""

        self._count = 0
        self._quotes: list[int] = []  # the count before each quoted call that is open
        self._before = MARK  # the character before the position
        self._tail: list[str] = []  # a line's end and whitespace behind it, which may frame a tag
        self._tail_size = 0
        self._led = False
        self._cdata = False
        self._closed = False

        self._holding = False
        self._firm = False  # whether the plain rule could end the value in what is held
        self._held: list[str] = []
        self._size = 0
        self._mark = 0  # how many of the held pieces stand before the closing tag that is looked behind
        self._depth = 0  # how many quoted calls were open where holding began
        self._hold_before = MARK
        self._looking = False
        self._literal = False
        self._step = self._lead if frame.framed else self._open_cdata if frame.cdata else self._body

    def read(self, text: str, at: int, end: int, final: bool) -> int:
        """Read `text[at:end]`; return where reading stopped."""
        while not self.done and not self.call_ended:
            # What is held must be decided by what stands within the limit, however much of the text is there.
            seen = min(end, max(at, at + self._limit + 1 - self._size)) if self._holding else end
            stop = self._step(text, at, seen, final and seen == end)
            if stop >= 0:
                at = stop
                continue
            at = -1 - stop
            if seen == end:
                return at
            self._give_up()
        return at

    @property
    def string_ends(self) -> tuple[str, ...] | None:
        """What may end the value, while it is a string that is written as it comes."""
        if self.done or self._step != self._body or self._holding or self._tail or not self._writer.flows:
            return None
        if self._before in LINE_START:
            return None  # a tag that follows directly counts otherwise than one behind words
        return self._tags.spelling.beginnings

    @property
    def string_body(self) -> StringBody:
        """The text up to the next tag."""
        return self._tags.body

    @property
    def quoting(self) -> bool:
        """Whether it stands inside a call that the value quotes."""
        return bool(self._quotes)

    # Before the value's own text.

    def _lead(self, text: str, at: int, end: int, final: bool) -> int:
        """One line end directly behind the opening tag is not part of the value."""
        if at == end or (text[at] == "\r" and at + 1 == end and not final):
            return wait(at)
        self._step = self._body
        size = _line_end_at(text, at, end)
        self._led = size > 0
        if size:
            self._before = "\n"
        return at + size

    def _open_cdata(self, text: str, at: int, end: int, final: bool) -> int:
        place = skip(text, at, min(end, at + LONGEST_INDENT))
        found = marker_at(text, place, end, (CDATA,)) if place < at + LONGEST_INDENT else ""
        if found is None:
            return wait(at)
        if not found:
            self._step = self._body
            return at
        self._step = self._cdata_body
        return place + len(CDATA)

    def _cdata_body(self, text: str, at: int, end: int, final: bool) -> int:
        """In CDATA nothing is a tag but its own end."""
        place = text.find(CDATA_CLOSE, at, end)
        if place < 0:
            stop = beginnings((CDATA_CLOSE,)).find_unmet(text, at, end)
            self._put(text[at:stop])
            return wait(stop)
        self._put(text[at:place])
        self._hold(firm=False)
        self._cdata, self._closed = True, False
        self._mark = len(self._held)
        self._append(CDATA_CLOSE)
        self._step = self._behind
        return place + len(CDATA_CLOSE)

    # The value's text.

    def _body(self, text: str, at: int, end: int, final: bool) -> int:
        tags = self._tags
        match = tags.search(text, at, end)
        if match is None:
            stop = tags.begins(text, at, end)
            if stop > at:
                words = text[at:stop]
                self._before = words[-1]
                if self._holding:
                    self._append(words)
                else:
                    self._put(words)
            return wait(stop)
        place = match.start()
        self._take(text[at:place])
        if self._before != MARK and place:
            self._before = text[place - 1]  # the fast path may have passed words on since
        read = tags.read(text, place, match.group(), end)
        if read is None:
            # At the end of input, what might have become a tag that opens something is words, and tags may follow it.
            if not final or tags.closes(text, place, match.group(), end):
                return wait(place)
            read = Piece.OTHER, NO_TAG
        piece, tag = read
        if tag.stop < 0:
            self._take(match.group())
            return match.end()
        if piece is Piece.CLOSE:
            return self._meet_close(text, place, tag.stop)
        if piece is Piece.END:
            return self._meet_end(text, place, tag.stop, end, final)
        if piece is Piece.OPEN:
            if tag.stop == end and not final:
                return wait(place)  # what follows tells whether it is only talked about
            self._meet_open(tag.name, text[tag.stop : tag.stop + 1])
        elif piece is Piece.CALL:
            self._quotes.append(self._count)
        self._take_tag(text[place : tag.stop])
        return tag.stop

    def _meet_open(self, name: str, after: str) -> None:
        """A tag that opens an argument of this name, with this character behind it."""
        self._count += 1
        if not self._quotes and self._may_begin(name) and self._tags.may_begin(name, self._before, after):
            self._hold(firm=True)

    def _meet_close(self, text: str, place: int, stop: int) -> int:
        """A closing tag: what follows it tells whether the value may end here."""
        tag = text[place:stop]
        if tag != self.frame.close:
            if self._count:
                self._count -= 1
            elif tag in self.frame.around:
                self._hold(firm=True)
            self._take_tag(tag)
            return stop
        self._hold(firm=False)
        self._closed = True
        self._mark = len(self._held)
        self._append(tag)
        self._before = MARK
        self._step = self._behind
        return stop

    def _behind(self, text: str, at: int, end: int, final: bool) -> int:
        """Behind a closing tag: does the value end here?"""
        stop = skip_gap(self.frame.gap, text, at, end)
        if stop > at:
            self._append(text[at:stop])
            self.space += stop - at
            self._before = text[stop - 1]
            at = stop
        if self._closed:
            found = self.frame.follows(text, at, end)
        else:
            found = marker_at(text, at, end, (self.frame.close,))
        if found is None and not (final and self._closed):
            return wait(at)
        if found and not self._closed:
            self._closed = True
            self._append(found)
            self.space = 0
            return at + len(found)
        if found != "" and not self._count:
            self._end()
            return at
        self._pass_close(ends=found != "")
        return at

    def _pass_close(self, ends: bool) -> None:
        """The closing tag is part of the value, at least for now. `ends`: the plain rule could end the value here."""
        self.space = 0
        self._step = self._cdata_body if self._cdata else self._body
        self._count -= self._count > 0
        if ends:
            self._hold(firm=True)
        elif not self._firm:
            self._release()

    def _meet_end(self, text: str, place: int, stop: int, end: int, final: bool) -> int:
        """A tag that closes a call: this one, or one that is quoted, or it is only talked about."""
        ends: bool | None = False
        if not self._literal:
            if not self._holding:
                self._hold(firm=False)
                return place
            ends = self._tags.ends_call(text, stop, end, final, quoted=bool(self._quotes))
        self._looking = ends is None
        if ends is None:
            return wait(place)
        if ends:
            self.call_ended = True
            return place
        self._literal = False
        self._take_tag(text[place:stop])
        if self._quotes:
            self._count = self._quotes.pop()
            # What a quoted call holds cannot end the value, once it has closed.
            self._firm = self._firm and len(self._quotes) >= self._depth
        if self._holding and not self._firm:
            self._release()
        return stop

    # Holding.

    def _hold(self, firm: bool) -> None:
        """From here on what is read waits. `firm`: until the value or the call ends; else for what follows this tag."""
        if not self._holding:
            self._holding = True
            self._hold_before = self._before
        if firm and not self._firm:
            self._firm = True
            self._depth = len(self._quotes)

    def _release(self) -> None:
        """What is held is part of the value."""
        words = "".join(self._held)
        self._drop_hold()
        self._put(words)

    def let_go(self) -> None:
        """The input has ended inside the value: nothing is held any longer."""
        if self._step == self._behind:
            del self._held[self._mark :]  # a closing tag that is cut off from what follows it
        self._release()

    def _drop_hold(self) -> None:
        self._held.clear()
        self._size = 0
        self._holding = self._firm = False

    def _give_up(self) -> None:
        """More would have to be held than the limit allows."""
        if self._firm:
            self._on_limit()
        self._release()
        if self._step == self._behind:
            self._pass_close(ends=False)
        self._literal, self._looking = self._looking, False

    def _append(self, words: str) -> None:
        self._held.append(words)
        self._size += len(words)

    def _take(self, words: str) -> None:
        if not words:
            return
        self._before = words[-1]
        if self._holding:
            self._append(words)
        else:
            self._put(words)

    def _take_tag(self, tag: str) -> None:
        self._take(tag)
        self._before = MARK

    def _put(self, words: str) -> None:
        """Give words to the writer; a line's end and whitespace behind it are kept back, for they may frame a tag."""
        if not words:
            return
        tail = self._tail
        if tail:
            if not words.strip(_SPACES):
                tail.append(words)
                self._tail_size += len(words)
                if self._tail_size > self._limit:
                    self._spill()
                return
            words = "".join(tail) + words
            self._tail, self._tail_size = [], 0
        if words[-1] in _SPACES:
            match = _LINE_END.search(words, len(words.rstrip(_SPACES)))
            if match is not None:
                place = match.start()
                self._tail, self._tail_size = [words[place:]], len(words) - place
                words = words[:place]
        self._writer.add(words)
        if self._tail_size > self._limit:
            self._spill()

    def _spill(self) -> None:
        """Whitespace beyond the limit no longer frames anything."""
        text = "".join(self._tail)
        place = 0
        while 0 <= place < len(text) - self._limit:
            match = _LINE_END.search(text, place + self._limit)
            place = match.start() if match is not None else -1
        kept = text[place:] if place >= 0 else ""
        self._writer.add(text[: len(text) - len(kept)])
        self._tail, self._tail_size = [kept] if kept else [], len(kept)

    # The end.

    def _end(self) -> None:
        """The closing tag that was looked behind ends the value."""
        words = "".join(self._held[: self._mark])
        self._drop_hold()
        self._put(words)
        self._close(closed=True)

    def _close(self, closed: bool) -> None:
        tail = "".join(self._tail)
        self._tail = []
        if closed:
            frame = self.frame
            framed = frame.framed and (self._led or not frame.paired)
            self._writer.add(tail[: len(tail) - _line_end_before(tail, 0, len(tail))] if framed else tail)
        self._writer.close()
        self.done = True

    # Where the call's end is known.

    def held_text(self) -> tuple[str, str, bool]:
        """What is held, the character before it, and whether that stands in a quoted call. It is no longer held."""
        found = "".join(self._held), self._hold_before, self._firm and self._depth > 0
        self._drop_hold()
        return found

    def read_plainly(self, plain: PlainReading, at: int) -> Ending:
        """Read the value, of which the rest begins at `at`, by the plain rule."""
        text = plain.text
        while self._step in (self._lead, self._open_cdata):
            stop = self._step(text, at, len(text), True)
            if stop < 0:
                break
            at = stop
        ending = self._plain_ending(plain, at)
        self._put(text[at : ending.stop])
        self._close(closed=ending.closed)
        return ending

    def _plain_ending(self, plain: PlainReading, at: int) -> Ending:
        text, frame = plain.text, self.frame
        in_cdata = self._step == self._cdata_body
        for place in plain.places_from(at):
            if place.name is not None:
                if not in_cdata and self._may_begin(place.name):
                    return Ending(place.start, place.start, closed=False)
                continue
            tag = text[place.start : place.stop]
            if tag == frame.close:
                stop = place.start
                if in_cdata:
                    stop = text.rfind(CDATA_CLOSE, max(at, stop - LONGEST_INDENT), stop)
                    if stop < 0 or text[stop + len(CDATA_CLOSE) : place.start].strip(_SPACES):
                        continue
                behind = skip_gap(frame.gap, text, place.stop, len(text))
                if self._goes_on(text, behind):
                    return Ending(behind, stop, closed=True)
            elif tag in frame.around:
                return Ending(place.start, place.start, closed=False)
        return Ending(len(text), len(text), closed=False)

    def _goes_on(self, text: str, at: int) -> bool:
        """Whether the call goes on, or ends, at `at`."""
        around = self.frame.around[:1]
        return at == len(text) or text.startswith(around, at) or self._tags.opens(text, at, len(text))
