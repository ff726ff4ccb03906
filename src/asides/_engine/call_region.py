"""One stretch of calls while it is read: from its opener to where its grammar ends. Turns reader reports into events.

A region is held back until it has shown itself to be a call (`head`). Inside thinking it is held back to its end and
beyond, because only what follows tells a call from a draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..events import NoticeCode, PartEnd, PartStart, ToolCallDelta
from .calls.ids import make_id
from .calls.json_scan import JsonScanner, repeated_key
from .calls.reader import Reader
from .calls.strings import StringBody
from .calls.syntax import CallSyntax
from .calls.tools import Tools
from .cursor import NOWHERE
from .open_part import PartWriter

MESSAGES = {
    "incomplete": "the output ended before the call did",
    "duplicate_argument": "an argument is given twice, with different values",
    "invalid_json": "the arguments are not valid JSON",
    "not_object": "the arguments are not a JSON object",
    "no_name": "the call names no function",
    "unreadable": "the call is not written as its syntax asks",
    "unclosed": "the call's text never ends; it was cut at its closing marker",
}
"""Every error code of a call, in words."""
LONGEST_REPEAT = 65_536
"""An argument that is given again is compared with the first if both stand in a stretch of this length."""

_CUT_OFF = ("incomplete", "unclosed", "invalid_json")
"""Errors of calls whose arguments may be whole, where only brackets around them are missing."""


class CallOptions(msgspec.Struct, frozen=True):
    """What the caller wants of calls."""

    tools: Tools | None = None
    seed: int = 0
    """Ids of calls that have none are made from it."""
    repair: bool = False
    """Whether closing brackets that are missing are written."""


class Closer(msgspec.Struct, frozen=True):
    """A marker inside a call that may be its end."""

    start: int
    stop: int
    ends_turn: bool
    """Whether it is a stop marker, which ends the turn with the call cut off."""


class Region:
    """The calls behind one opener."""

    __slots__ = (
        "_aside",
        "_aside_room",
        "_call_start",
        "_committed",
        "_fault",
        "_holds",
        "_id",
        "_index",
        "_member",
        "_members",
        "_name",
        "_open",
        "_options",
        "_writer",
        "_written",
        "_written_before_hold",
        "announced",
        "body",
        "broken",
        "broken_at",
        "calls",
        "closer",
        "dead_from",
        "draft",
        "fault_from",
        "faulty",
        "holds_closer",
        "name_closed",
        "opener",
        "reader",
        "space_from",
        "start",
        "syntaxes",
        "tentative",
        "watched",
    )

    def __init__(
        self,
        writer: PartWriter,
        options: CallOptions,
        syntaxes: Sequence[CallSyntax],
        opener: str,
        start: int,
        body: int,
        space_from: int,
        draft: bool = False,
        announced: bool | None = None,
    ) -> None:
        self._writer = writer
        self._holds = writer.holds
        self._options = options
        self.syntaxes = syntaxes
        """The syntaxes it may be written in; the first characters decide."""
        self.opener = opener
        self.announced = bool(opener) if announced is None else announced
        """Whether an opening marker stands in the output, so that it is news if no call follows."""
        self.start = start
        """Offset of the opener."""
        self.body = body
        """Offset of what follows it."""
        self.space_from = space_from
        """Offset of the whitespace before the opener, which is text again if this was no call."""
        self.draft = draft
        """Whether it may be a draft or an example, so that everything is held back."""
        self.tentative = draft and not opener
        """Whether it has no marker and stands behind prose."""
        self.name_closed = False
        """Whether the grammar has closed the name of the call that is being read: no letter can be added to it."""
        self.reader: Reader | None = None
        self.calls = 0
        """How many calls have ended."""
        self.faulty = 0
        """How many of them had an error."""
        self.fault_from = NOWHERE
        """Where the first of these begins."""
        self.broken: tuple[str, str] | None = None
        """Code and words of what the grammar rejected."""
        self.dead_from = start
        """Where the text that the grammar rejected begins."""
        self.broken_at = start
        """Where the grammar rejected it."""
        self.closer: Closer | None = None
        """The first closing marker that stood inside the call that is being read."""
        self.holds_closer = False
        """Whether events since that marker are held back."""
        self.watched = body
        """How far closing markers have been looked for."""
        self._call_start = start
        self._committed = False
        self._open = False
        self._name = ""
        self._id = ""
        self._index = -1
        self._written: list[str] = []
        self._written_before_hold = 0
        self._fault = ""
        self._members: dict[str, tuple[int, int]] = {}
        self._member = ("", -1)
        self._aside: list[str] | None = None
        self._aside_room = 0

    @property
    def closers(self) -> tuple[str, ...]:
        """The markers that close a call here."""
        return tuple(text for syntax in self.syntaxes for text in syntax.closers)

    @property
    def opens_section(self) -> bool:
        """Whether the opener is that of a section of calls."""
        return any(self.opener in syntax.section for syntax in self.syntaxes)

    @property
    def begun(self) -> bool:
        """Whether a call has begun that has not ended."""
        return self._open or self.calls == 0

    @property
    def committed(self) -> bool:
        """Whether the call that is being read has been announced."""
        return self._committed

    @property
    def name(self) -> str:
        """The name of the call that is being read, as far as it is known."""
        return self._name

    @property
    def index(self) -> int:
        """The index of the call that is being read."""
        return self._index

    @property
    def string_ends(self) -> tuple[str, ...] | None:
        """While the call streams through a string: the first characters of each thing that may end it. Else None."""
        if self.reader is None or self.waiting or self._options.repair or self._aside is not None:
            return None
        return self.reader.string_ends

    @property
    def string_body(self) -> StringBody | None:
        """How the rest of that string is written."""
        return self.reader.string_body if self.reader is not None else None

    @property
    def string_into(self) -> tuple[list[Any] | None, int]:
        """Where the string goes if it waits, and how many characters more may."""
        waiting = self.reader.string_into if self.reader is not None else None
        return waiting if waiting is not None else (None, 0)

    @property
    def waiting(self) -> bool:
        """Whether what was read so far is still held back."""
        return self.draft or self.holds_closer or not self._committed

    @property
    def hold_start(self) -> int:
        """Where what is held back begins; the limit counts from here."""
        if self.holds_closer and self.closer:
            return self.closer.start
        return self.dead_from if self.calls else self.start

    @property
    def untold(self) -> int:
        """The first character that no event has told of, while it waits."""
        return self.hold_start if self.calls or self.holds_closer else self.space_from

    @property
    def needed(self) -> int | None:
        """Where the text begins that may still be compared; None when there is none."""
        if self._members:
            return next(iter(self._members.values()))[0]
        return self._member[1] if self._member[1] >= 0 else None

    @property
    def tools(self) -> Tools | None:
        """The tools that the caller gave."""
        return self._options.tools

    @property
    def stops(self) -> tuple[str, ...]:
        """The markers that end a turn or a message."""
        return self._writer.markers.tables.turn_ends

    @property
    def limit(self) -> int:
        """How many characters may be held back."""
        return self._writer.limit

    def accepts(self, key: str) -> bool:
        """Whether the call that is being read may have this argument."""
        return not self.tentative or (self.tools is not None and self.tools.lists(self._name, key))

    # What the reader reports.

    def begin(self, offset: int) -> None:
        """A call may begin here."""
        # The opener may stand in the prompt.
        self._call_start = self.dead_from = max(offset, self.start)
        self._open = True
        self._forget_call()

    def _forget_call(self) -> None:
        self._name = self._id = self._fault = ""
        self.name_closed = False
        if self._written:
            self._written.clear()
        if self._members:
            self._members.clear()
        self._member = ("", -1)
        self._aside = None

    def named(self, name: str, *, closed: bool = True) -> None:
        """The name is known; a call that is cut off before its arguments has it at least."""
        self._name, self.name_closed = name, closed

    def head(self, name: str, id: str | None = None) -> None:
        """The call shows itself: announce it."""
        writer, options = self._writer, self._options
        self._name, self._committed, self.name_closed = name, True, True
        # A closing marker that stood before the arguments can no longer be the end of this call.
        self.closer = None
        self._index = writer.open_call(self.start, self.space_from, self.calls == 0)
        number = writer.count_call()
        self._id = id or make_id(self.reader_syntax.id_shape, options.seed, self._index, name, number)
        self._holds.emit(PartStart(self._index, "tool_call", "", name, self._id))
        if name and options.tools is not None and name not in options.tools.names:
            self._holds.notice("unknown_tool", self._call_start, f"no tool named {name!r} was given")

    def arguments(self, text: str) -> None:
        """More of the arguments."""
        if self._aside is not None:
            self._put_aside(text)
        elif text:
            self._holds.emit(ToolCallDelta(self._index, text))
            if self._options.repair:
                self._written.append(text)

    def member(self, key: str, offset: int) -> None:
        """A key of the arguments. One that was given before is put aside until it is known to be the same."""
        self._member = (key, offset)
        first = self._members.get(key)
        if first is None or self._fault:
            return
        self._aside = []
        # No encoding is longer than this, so what is longer cannot be the same.
        self._aside_room = 64 + 8 * (len(key) + first[1] - first[0])
        if offset - first[0] > LONGEST_REPEAT or first[1] - first[0] > self.limit:
            self._differs()

    def member_end(self, offset: int, read: int = 0) -> None:
        """The value of that key ends."""
        key, start = self._member
        first = self._members.setdefault(key, (start, offset))
        if self._aside is None:
            return
        tape = self._writer.cursor.tape
        tape.sync()
        near = max(offset, read) - first[0] <= LONGEST_REPEAT
        if near and tape.text(*first).strip() == tape.text(start, offset).strip():
            self._aside = None
            self._holds.notice("duplicate_argument", start, f"the argument {key!r} is given twice, the same")
        else:
            self._differs()

    def repeated(self, key: str) -> None:
        """A key came twice in JSON that the model wrote."""
        self._fault = self._fault or f"the argument {key!r} is given twice"

    def _put_aside(self, text: str) -> None:
        assert self._aside is not None
        self._aside.append(text)
        self._aside_room -= len(text)
        if self._aside_room < 0:
            self._differs()

    def _differs(self) -> None:
        """What was put aside is another value for an argument that was given before."""
        texts, self._aside = self._aside or [], None
        self._fault = f"the argument {self._member[0]!r} is given twice, with different values"
        self.arguments("".join(texts))

    def late_id(self, offset: int) -> None:
        """An id came too late to be used."""
        self._holds.notice("late_id", offset)

    def unescaped_quote(self, offset: int) -> None:
        """A string holds its own quote."""
        self._holds.notice("unescaped_quote", offset)

    def string_arguments(self, offset: int) -> None:
        """The arguments were written as a string."""
        self._holds.notice("string_arguments", offset)

    def limited(self, message: str = "") -> None:
        """A value was held for too long."""
        message = message or "a value without a type is too long to wait for; taken as a string"
        self._holds.notice("limit", self._call_start, message)

    def notice(self, code: NoticeCode, offset: int, message: str = "") -> None:
        """Something odd was met."""
        self._holds.notice(code, offset, message)

    def invalid(self, key: str) -> None:
        """A value does not fit its schema."""
        self._holds.notice(
            "invalid_argument", self._call_start, f"the argument {key!r} is not of the type that its tool gives it"
        )

    def missing_close(self, offset: int) -> None:
        """The closing marker did not come."""
        self._holds.notice("missing_close", offset)

    def end(
        self, offset: int, *, alone: bool = False, error: str | None = None, message: str = "", cut: bool = True
    ) -> None:
        """The call ends."""
        if not self._committed:
            self._name_only()
        start = self.start if alone else self._call_start
        self._close((start, offset), error, message, cut)

    # What the parser decides.

    @property
    def reader_syntax(self) -> CallSyntax:
        """The syntax that was chosen."""
        return self.syntaxes[0]

    def _close(self, span: tuple[int, int], error: str | None, message: str, cut: bool) -> None:
        holds = self._holds
        if error is None and self._fault:
            error, message = "duplicate_argument", self._fault
        elif error is not None and cut and self._mend(error):
            holds.notice(
                "repaired", span[0], f"{message or MESSAGES.get(error, error)}; its missing brackets were written"
            )
            error, message = None, ""
        complete = error != "incomplete"
        if error is not None:
            self.faulty += 1
            self.fault_from = min(self.fault_from, span[0])
            message = message or MESSAGES.get(error, "")
            holds.notice("unreadable_call" if complete else "incomplete_call", span[0], message)
        holds.emit(PartEnd(self._index, complete, error, span, message))
        self.calls += 1
        self._committed = self._open = False
        self._forget_call()
        self.closer = None
        self._call_start = self.dead_from = span[1]
        if self.holds_closer:
            self.holds_closer = False
            holds.release()
        self._writer.cursor.scan_from(span[1])
        self._writer.begin_content(span[1])  # what follows begins anew

    def _mend(self, error: str) -> bool:
        """Where the caller asked for it, write the closing brackets that the arguments lack."""
        if not self._options.repair or not self._name or self._fault or self._aside is not None:
            return False
        text = "".join(self._written)
        keys: list[str] = []
        scanner = JsonScanner(keys.append)
        stop = scanner.scan(text, 0, len(text))
        missing = scanner.completion() if text.lstrip().startswith("{") else None
        if missing is None or stop < len(text) or (not missing and error not in _CUT_OFF):
            return False
        if repeated_key(keys) is not None:
            return False
        if missing:
            self._holds.emit(ToolCallDelta(self._index, missing))
        return True

    def choose(self, syntax: CallSyntax) -> None:
        """The first characters fit this syntax."""
        self.syntaxes = [syntax]
        self.reader = syntax.reader(self, self.opener)

    def watch_from(self, offset: int) -> None:
        """Closing markers have been looked for up to here."""
        self.watched = offset

    def meet_closer(self, start: int, stop: int, ends_turn: bool) -> None:
        """A marker that may be the end: until the reader has told, nothing behind it is certain."""
        if self.closer is not None:
            return
        self.closer = Closer(start, stop, ends_turn)
        if self._committed:
            self.holds_closer = True
            self._written_before_hold = len(self._written)
            self._holds.open()

    def drop_hold(self) -> None:
        """That marker was the end, and what was read since is not part of the call."""
        if self.holds_closer:
            self.holds_closer = False
            del self._written[self._written_before_hold :]
            self._holds.drop()

    def release_hold(self) -> None:
        """That marker was not the end, or it does not matter."""
        if self.holds_closer:
            self.holds_closer = False
            self._holds.release()

    def expire_hold(self) -> None:
        """That marker has been waited behind for too long: it was not the end."""
        self._holds.expire(self.hold_start)
        self.closer = None
        self.release_hold()

    def reject(self, code: str, reason: str, offset: int) -> None:
        """The grammar does not allow what stands at `offset`."""
        self.broken = (code, reason)
        self.broken_at = offset

    def end_broken(self, stop: int, words_until: int) -> None:
        """What was rejected ends here. `words_until`: where its words end."""
        assert self.broken is not None
        code, reason = self.broken
        self.fail(stop, code, reason, cut=words_until <= self.broken_at)
        self.broken = None

    def fail(self, offset: int, error: str, message: str = "", *, cut: bool = True) -> None:
        """The call that is being read ends here with an error, announced or not. `cut` as in `end`."""
        if not self._committed:
            self._name_only()
        self._close((self._first(), offset), error, message, cut)

    def _name_only(self) -> None:
        start = self._call_start
        self.head(self._name, self._id or None)
        self._call_start = start

    def _first(self) -> int:
        """Where the raw text of a call that ended badly begins: at the opener, unless others came before it."""
        whole = self.calls == 0 and self.opener not in self.reader_syntax.section
        return self.start if whole else min(self.dead_from, self._call_start)
