"""What a call's grammar reports, turned into events: `CallSink` is the `Sink` of the readers in `calls/`.

A grammar says what it reads (a call begins, is named, has more arguments, ends), with offsets of the raw text. The sink
writes that into the region's record (`call_record.py`), emits the events, and counts what the region has come to. It
decides nothing about the region: whether it was a call, a draft or words is up to `calls_in_progress.py`.
"""

from __future__ import annotations

from ..events import NoticeCode, PartEnd, PartStart
from .call_region import CallOptions, Region
from .calls.ids import make_id
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
    "after_stop": "the call stands after the end of the turn",
    "unclosed": "the call's text never ends; it was cut at its closing marker",
}
"""Every error code of a call, in words."""


class CallSink:
    """Takes the reports on the calls of one region."""

    __slots__ = ("_holds", "_options", "_record", "_region", "_writer")

    def __init__(self, writer: PartWriter, options: CallOptions, region: Region) -> None:
        self._writer = writer
        self._holds = writer.holds
        self._options = options
        self._region = region
        self._record = region.record

    def release(self) -> None:
        """Nothing more is read of the region."""
        self._region.release()

    # What a reader may ask.

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

    @property
    def calls(self) -> int:
        """How many calls of the region have ended."""
        return self._region.calls

    @property
    def tentative(self) -> bool:
        """Whether it has no marker and stands behind prose."""
        return self._region.draft and not self._region.opener

    def accepts(self, key: str) -> bool:
        """Whether the call that is being read may have this argument."""
        return not self.tentative or (self.tools is not None and self.tools.lists(self._record.name, key))

    # What it reports.

    def begin(self, offset: int) -> None:
        """A call may begin here."""
        offset = max(offset, self._region.start)  # the opener may stand in the prompt
        self._region.begin_call(offset)
        self._record.begin(offset)

    def named(self, name: str, *, closed: bool = True) -> None:
        """The name is known; a call that is cut off before its arguments has it at least."""
        self._record.be_named(name, closed)

    def head(self, name: str, id: str | None = None) -> None:
        """The call shows itself: announce it."""
        writer, options, region = self._writer, self._options, self._region
        # A closing marker that stood before the arguments can no longer be the end of this call.
        region.hold.forget()
        index = writer.open_call(region.start, region.space_from, region.calls == 0)
        number = writer.count_call()
        id = id or make_id(region.syntax.id_shape, options.seed, index, name, number)
        self._record.commit(name, id, index)
        self._holds.emit(PartStart(index, "tool_call", "", name, id))
        if name and options.tools is not None and name not in options.tools.names:
            self._holds.notice("unknown_tool", self._record.start, f"no tool named {name!r} was given")

    def arguments(self, text: str) -> None:
        """More of the arguments."""
        self._record.write(text)

    def member(self, key: str, offset: int) -> None:
        """A key of the arguments."""
        self._record.member(key, offset, self._writer.limit)

    def member_end(self, offset: int, read: int = 0) -> None:
        """The value of that key ends."""
        self._record.member_end(offset, read)

    def repeated(self, key: str) -> None:
        """A key came twice in JSON that the model wrote."""
        self._record.repeated(key)

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
        self._holds.notice("limit", self._record.start, message)

    def notice(self, code: NoticeCode, offset: int, message: str = "") -> None:
        """Something odd was met."""
        self._holds.notice(code, offset, message)

    def invalid(self, key: str) -> None:
        """A value does not fit its schema."""
        self._holds.notice(
            "invalid_argument", self._record.start, f"the argument {key!r} is not of the type that its tool gives it"
        )

    def missing_close(self, offset: int) -> None:
        """The closing marker did not come."""
        self._holds.notice("missing_close", offset)

    def end(
        self, offset: int, *, alone: bool = False, error: str | None = None, message: str = "", cut: bool = True
    ) -> None:
        """The call ends."""
        start = self._region.start if alone else self._record.start
        self._close((start, offset), error, message, cut)

    # What the parser decides.

    def fail(self, offset: int, error: str, message: str = "", *, cut: bool = True) -> None:
        """The call that is being read ends here with an error, announced or not. `cut` as in `end`."""
        self._close((self._region.first, offset), error, message, cut)

    def end_broken(self, stop: int, words_until: int) -> None:
        """What was rejected ends here. `words_until`: where its words end."""
        code, reason = self._region.take_broken()
        self.fail(stop, code, reason, cut=words_until <= self._region.broken_at)

    def _close(self, span: tuple[int, int], error: str | None, message: str, cut: bool) -> None:
        holds, record, region = self._holds, self._record, self._region
        if not record.committed:
            self.head(record.name, record.id or None)
        if error is None and record.fault:
            error, message = "duplicate_argument", record.fault
        elif error is not None and cut and record.mend(error):
            holds.notice(
                "repaired", span[0], f"{message or MESSAGES.get(error, error)}; its missing brackets were written"
            )
            error, message = None, ""
        complete = error != "incomplete"
        if error is None and self._writer.part.turn_end != NOWHERE:
            error, message = "after_stop", MESSAGES["after_stop"]  # the notice came when the call began
        elif error is not None:
            message = message or MESSAGES.get(error, "")
            holds.notice("unreadable_call" if complete else "incomplete_call", span[0], message)
        holds.emit(PartEnd(record.index, complete, error, span, message))
        region.end_call(span, error)
        record.end(span[1])
        region.hold.forget()
        region.hold.release()
        self._writer.cursor.scan_from(span[1])
        self._writer.begin_content(span[1])  # what follows begins anew
