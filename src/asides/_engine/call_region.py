"""One stretch of calls while it is read: from its opener to where its grammar ends. Turns reader reports into events.

A region is held back until it has shown itself to be a call (`head`). Inside thinking it is held back to its end and
beyond, because only what follows tells a call from a draft.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..events import NoticeCode, PartEnd, PartStart, ToolCallDelta
from ..parts import Kind
from .calls.ids import make_id
from .calls.json_scan import JsonScanner, repeated_key
from .calls.reader import Reader
from .calls.syntax import CallSyntax
from .calls.tools import Tools

if TYPE_CHECKING:
    from .call_outcomes import Calling

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
NOWHERE = sys.maxsize
"""An offset that no text reaches."""

LONGEST_REPEAT = 65_536
"""An argument that is given again is compared with the first if both stand in a stretch of this length."""

_CUT_OFF = ("incomplete", "unclosed", "invalid_json")
"""Errors of calls whose arguments may be whole, where only brackets around them are missing."""


class Draft(msgspec.Struct, kw_only=True):
    """Calls inside open thinking, or bare ones behind prose, until it is known what they are; and what must be put back
    if they are drafts or examples."""

    space_from: int
    """Offset of the whitespace before the first opener."""
    start: int
    """Offset of the first opener."""
    calls: int = 0
    """How many well-formed calls the regions before the present one held."""
    begins_line: bool
    """Whether the first opener stands where a line begins."""
    quoted: bool
    """Whether an opening quote stands directly before it."""
    bare: bool
    """Whether it stands in a text and has no opening marker, so that only what follows tells it from an example."""
    holds: int
    """How many levels of held events there were before."""
    kind: Kind | None
    index: int
    part_start: int
    count: int
    gap: str
    seen_text: bool
    seen_thinking: bool
    calls_made: int
    noticed_stop: bool
    goes_on: bool
    fresh: bool
    blank: bool
    content_from: int


class ThoughtEnd(msgspec.Struct, frozen=True):
    """A marker that ends thinking, inside what may be a call."""

    offset: int
    ends_turn: bool
    """Whether it is a stop marker."""


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
        "_id",
        "_index",
        "_member",
        "_members",
        "_name",
        "_open",
        "_owner",
        "_told",
        "_told_before_hold",
        "announced",
        "body",
        "broken",
        "broken_at",
        "calls",
        "closer",
        "dead_from",
        "draft",
        "draft_end",
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
        owner: Calling,
        syntaxes: Sequence[CallSyntax],
        opener: str,
        start: int,
        body: int,
        space_from: int,
        draft: bool,
    ) -> None:
        self._owner = owner
        self.syntaxes = syntaxes
        """The syntaxes it may be written in; the first characters decide."""
        self.opener = opener
        self.announced = bool(opener)
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
        self.draft_end: ThoughtEnd | None = None
        """In thinking that is read again: where the thought ends, which this call must not pass."""
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
        self._told: list[str] = []
        self._told_before_hold = 0
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
    def calm(self) -> tuple[str, ...] | None:
        """While the call streams through a string: the first characters of each thing that may end it. Else None."""
        if self.reader is None or self.waiting or self._owner.repair or self._aside is not None:
            return None
        return self.reader.calm

    @property
    def calm_into(self) -> tuple[list[Any] | None, int]:
        """Where the string goes if it waits, and how many characters more may."""
        waiting = self.reader.calm_into if self.reader is not None else None
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
        return self._owner.tools

    @property
    def stops(self) -> tuple[str, ...]:
        """The markers that end a turn or a message."""
        return self._owner.turn_ends

    @property
    def limit(self) -> int:
        """How many characters may be held back."""
        return self._owner.limit

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
        if self._told:
            self._told.clear()
        if self._members:
            self._members.clear()
        self._member = ("", -1)
        self._aside = None

    def named(self, name: str, *, closed: bool = True) -> None:
        """The name is known; a call that is cut off before its arguments has it at least."""
        self._name, self.name_closed = name, closed

    def head(self, name: str, id: str | None = None) -> None:
        """The call shows itself: announce it."""
        owner = self._owner
        self._name, self._committed, self.name_closed = name, True, True
        if not self.holds_closer:
            # A closing marker that stood before the arguments can no longer be the end of this call.
            self.closer = None
        self._index = owner.open_call(self)
        syntax = self.reader_syntax
        self._id = id or make_id(syntax.id_shape, owner.seed, self._index, name, owner.calls_made)
        owner.calls_made += 1
        owner.emit(PartStart(self._index, "tool_call", "", name, self._id))
        if name and owner.tools is not None and name not in owner.tools.names:
            owner.notice("unknown_tool", self._call_start, f"no tool named {name!r} was given")

    def arguments(self, text: str) -> None:
        """More of the arguments."""
        if self._aside is not None:
            self._put_aside(text)
        elif text:
            self._owner.emit(ToolCallDelta(self._index, text))
            if self._owner.repair:
                self._told.append(text)

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
        raw_text = self._owner.raw_text
        near = max(offset, read) - first[0] <= LONGEST_REPEAT
        if near and raw_text(*first).strip() == raw_text(start, offset).strip():
            self._aside = None
            self._owner.notice("duplicate_argument", start, f"the argument {key!r} is given twice, the same")
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
        self._owner.notice("late_id", offset)

    def unescaped_quote(self, offset: int) -> None:
        """A string holds its own quote."""
        self._owner.notice("unescaped_quote", offset)

    def string_arguments(self, offset: int) -> None:
        """The arguments were written as a string."""
        self._owner.notice("string_arguments", offset)

    def limited(self, message: str = "") -> None:
        """A value was held for too long."""
        message = message or "a value without a type is too long to wait for; taken as a string"
        self._owner.notice("limit", self._call_start, message)

    def notice(self, code: NoticeCode, offset: int, message: str = "") -> None:
        """Something odd was met."""
        self._owner.notice(code, offset, message)

    def invalid(self, key: str) -> None:
        """A value does not fit its schema."""
        self._owner.notice(
            "invalid_argument", self._call_start, f"the argument {key!r} is not of the type that its tool gives it"
        )

    def missing_close(self, offset: int) -> None:
        """The closing marker did not come."""
        self._owner.notice("missing_close", offset)

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
        owner = self._owner
        if error is None and self._fault:
            error, message = "duplicate_argument", self._fault
        elif error is not None and cut and self._mend(error):
            owner.notice(
                "repaired", span[0], f"{message or MESSAGES.get(error, error)}; its missing brackets were written"
            )
            error, message = None, ""
        complete = error != "incomplete"
        if error is not None:
            self.faulty += 1
            self.fault_from = min(self.fault_from, span[0])
            message = message or MESSAGES.get(error, "")
            owner.notice("unreadable_call" if complete else "incomplete_call", span[0], message)
        owner.emit(PartEnd(self._index, complete, error, span, message))
        self.calls += 1
        self._committed = self._open = False
        self._forget_call()
        self.closer = None
        self._call_start = self.dead_from = span[1]
        if self.holds_closer:
            self.holds_closer = False
            owner.release_hold()
        owner.call_ended(span[1])

    def _mend(self, error: str) -> bool:
        """Where the caller asked for it, write the closing brackets that the arguments lack."""
        if not self._owner.repair or not self._name or self._fault or self._aside is not None:
            return False
        text = "".join(self._told)
        keys: list[str] = []
        scanner = JsonScanner(keys.append)
        stop = scanner.scan(text, 0, len(text))
        missing = scanner.completion() if text.lstrip().startswith("{") else None
        if missing is None or stop < len(text) or (not missing and error not in _CUT_OFF):
            return False
        if repeated_key(keys) is not None:
            return False
        if missing:
            self._owner.emit(ToolCallDelta(self._index, missing))
        return True

    def hold(self) -> None:
        """From here on events are held back: a closing marker was met that may be the call's end."""
        self.holds_closer = True
        self._told_before_hold = len(self._told)

    def drop_hold(self) -> None:
        """That marker was the end, and what was told since is not part of the call."""
        self.holds_closer = False
        del self._told[self._told_before_hold :]

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
