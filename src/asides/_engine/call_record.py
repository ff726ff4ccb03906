"""The record of one call while it is read: its name and id, the arguments as far as they came, keys given twice.

`CallSink` writes it as the grammar reports. What is worth a file of its own is the rule about repeated keys: a key that
was given before is put aside, unwritten, until it is known whether it says the same again (then it is left out, with a
notice) or something else (then it is written, and the call may not be run).
"""

from __future__ import annotations

from ..events import ToolCallDelta
from .calls.json_scan import JsonScanner, repeated_key
from .cursor import Tape
from .holds import Holds

LONGEST_REPEAT = 65_536
"""An argument that is given again is compared with the first if both stand in a stretch of this length."""

_CUT_OFF = ("incomplete", "unclosed", "invalid_json")
"""Errors of calls whose arguments may be whole, where only brackets around them are missing."""


class CallRecord:
    """What is known of the call that is being read."""

    __slots__ = (
        "_aside_room",
        "_holds",
        "_member",
        "_members",
        "_tape",
        "_written",
        "_written_before",
        "aside",
        "committed",
        "fault",
        "id",
        "index",
        "name",
        "name_closed",
        "open",
        "start",
    )

    def __init__(self, holds: Holds, tape: Tape, start: int, repair: bool) -> None:
        self._holds = holds
        self._tape = tape
        self.start = start
        """Where its own text begins."""
        self.open = False
        """Whether it has begun and not ended."""
        self.committed = False
        """Whether it has been announced."""
        self.index = -1
        """Its index in the message, once it is announced."""
        self.name = ""
        self.name_closed = False
        """Whether the grammar has closed the name: no letter can be added to it."""
        self.id = ""
        self.fault = ""
        """Why it may not be run although it is whole: a key that has two values."""
        self.aside: list[str] | None = None
        """The value of a key that was given before, while it is compared; None while there is none."""
        self._aside_room = 0
        self._members: dict[str, tuple[int, int]] = {}
        self._member = ("", -1)
        # What was written, where its missing brackets may have to be written too.
        self._written: list[str] | None = [] if repair else None
        self._written_before = 0

    def begin(self, offset: int) -> None:
        """A call may begin here."""
        self.start = offset
        self.open = True
        self._forget()

    def end(self, offset: int) -> None:
        """The call has ended; another may begin here."""
        self.start = offset
        self.open = self.committed = False
        self._forget()

    def _forget(self) -> None:
        self.name = self.id = self.fault = ""
        self.name_closed = False
        if self._written:
            self._written.clear()
        if self._members:
            self._members.clear()
        self._member = ("", -1)
        self.aside = None

    def be_named(self, name: str, closed: bool) -> None:
        """The name is known; a call that is cut off before its arguments has it at least."""
        self.name, self.name_closed = name, closed

    def commit(self, name: str, id: str, index: int) -> None:
        """It is announced as this part."""
        self.name, self.id, self.index = name, id, index
        self.committed = self.name_closed = True

    @property
    def needed(self) -> int | None:
        """Where the text begins that may still be compared; None when there is none."""
        if self._members:
            return next(iter(self._members.values()))[0]
        return self._member[1] if self._member[1] >= 0 else None

    # Its arguments.

    def write(self, text: str) -> None:
        """More of the arguments, or of a value that is put aside."""
        if self.aside is not None:
            self.aside.append(text)
            self._aside_room -= len(text)
            if self._aside_room < 0:
                self._differs()
        elif text:
            self._holds.emit(ToolCallDelta(self.index, text))
            if self._written is not None:
                self._written.append(text)

    def member(self, key: str, offset: int, limit: int) -> None:
        """A key of the arguments. One that was given before is put aside until it is known to be the same."""
        self._member = (key, offset)
        first = self._members.get(key)
        if first is None or self.fault:
            return
        self.aside = []
        # No encoding is longer than this, so what is longer cannot be the same.
        self._aside_room = 64 + 8 * (len(key) + first[1] - first[0])
        if offset - first[0] > LONGEST_REPEAT or first[1] - first[0] > limit:
            self._differs()

    def member_end(self, offset: int, read: int) -> None:
        """The value of that key ends."""
        key, start = self._member
        first = self._members.setdefault(key, (start, offset))
        if self.aside is None:
            return
        tape = self._tape
        tape.sync()
        near = max(offset, read) - first[0] <= LONGEST_REPEAT
        if near and tape.text(*first).strip() == tape.text(start, offset).strip():
            self.aside = None
            self._holds.notice("duplicate_argument", start, f"the argument {key!r} is given twice, the same")
        else:
            self._differs()

    def _differs(self) -> None:
        """What was put aside is another value for an argument that was given before."""
        texts, self.aside = self.aside or [], None
        self.fault = f"the argument {self._member[0]!r} is given twice, with different values"
        self.write("".join(texts))

    def repeated(self, key: str) -> None:
        """A key came twice in JSON that the model wrote."""
        self.fault = self.fault or f"the argument {key!r} is given twice"

    # Writing the brackets that it lacks.

    def remember_written(self) -> None:
        """What is written from here on may have to be forgotten."""
        self._written_before = len(self._written or ())

    def forget_written(self) -> None:
        """What was written since is no part of the call."""
        if self._written:
            del self._written[self._written_before :]

    def mend(self, error: str) -> bool:
        """Where the caller asked for it, write the closing brackets that the arguments lack."""
        if self._written is None or not self.name or self.fault or self.aside is not None:
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
            self._holds.emit(ToolCallDelta(self.index, missing))
        return True
