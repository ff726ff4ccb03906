"""The contract between the parser and the call grammars.

A reader is given the text after a call's opener, a stretch at a time. It consumes what it can, tells the sink what it
found, and says through `status` whether it is still reading, has read to the end of its region, or has met something
that its grammar does not allow. It knows nothing of thinking, of events or of what is held back; and it must leave
the same traces however its input is cut.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from ...events import NoticeCode
from ..members import members
from .tools import Tools

if TYPE_CHECKING:
    from .strings import StringBody


class Status(Enum):
    """What a reader says of its region."""

    READING = "reading"
    """It could still become or continue a call."""
    DONE = "done"
    """The region is over; what follows is not part of it."""
    REJECTED = "rejected"
    """The text at the returned position is not in the grammar."""


Statuses = members(Status)


class Sink(Protocol):
    """Where a reader reports, and what it may ask. Offsets are characters of the raw text."""

    @property
    def tools(self) -> Tools | None:
        """The tools that the caller gave, for the types of untyped arguments."""

    @property
    def limit(self) -> int:
        """How many characters may be held back."""

    @property
    def calls(self) -> int:
        """How many calls of the region have ended."""

    @property
    def stops(self) -> tuple[str, ...]:
        """The markers that end a turn or a message."""

    def notice(self, code: NoticeCode, offset: int, message: str = "") -> None:
        """Something odd was met that has no other method here."""

    @property
    def tentative(self) -> bool:
        """Whether it has no marker and stands behind prose, so that the first thing wrong says that it is no call."""

    def accepts(self, key: str) -> bool:
        """Whether the call may have this argument: where it is tentative, only one that its tool lists."""

    def begin(self, offset: int) -> None:
        """A call may begin here: the start of its raw text if it turns out to be one of several."""

    def named(self, name: str, *, closed: bool = True) -> None:
        """The name is known, though the arguments have not begun. `closed`: the grammar lets nothing be added to it."""

    def head(self, name: str, id: str | None = None) -> None:
        """The name is known and the arguments begin: from now on it is a call."""

    def arguments(self, text: str) -> None:
        """More of the arguments' JSON text."""

    def member(self, key: str, offset: int) -> None:
        """Where the encoding is ours: a key of the arguments, before it is written. Its value begins here."""

    def member_end(self, offset: int, read: int = 0) -> None:
        """The value of that key ends here, and is written. `read`: how far has been read, where that is further."""

    def repeated(self, key: str) -> None:
        """A key of the arguments came twice in JSON that the model wrote: the call may not be run."""

    def late_id(self, offset: int) -> None:
        """An id came after the arguments had begun."""

    def end(
        self, offset: int, *, alone: bool = False, error: str | None = None, message: str = "", cut: bool = True
    ) -> None:
        """The call ends here.

        `alone`: the region held this one call, so its raw text includes the region's markers. `cut`: with an error,
        whether nothing of the call was passed over, so that it may be that only its closing brackets are missing.
        """

    def unescaped_quote(self, offset: int) -> None:
        """A string holds its own quote, which is taken as part of it."""

    def string_arguments(self, offset: int) -> None:
        """The arguments were written as a string that holds JSON."""

    def limited(self, message: str = "") -> None:
        """Something was held for too long: a value whose type is not known, unless the message says otherwise."""

    def invalid(self, key: str) -> None:
        """A value of this argument is not of the type that the schema gives it; it is written as it stands."""

    def missing_close(self, offset: int) -> None:
        """The call is complete, but its closing marker did not come."""


class Reader(Protocol):
    """Reads the calls of one region."""

    status: Status
    reason: str
    """When rejected: why, in words."""
    code: str
    """When rejected: the error's code."""

    @property
    def string_ends(self) -> tuple[str, ...] | None:
        """Inside a string that streams as it comes, with nothing held back: the first one or two characters of each
        thing that may end it.

        Quotes, backslashes and control characters need not be named. None everywhere else. Text without any of these
        is its own JSON, so it may be told without asking the reader.
        """

    @property
    def string_body(self) -> StringBody | None:
        """How the rest of that string is written, where more of it than plain characters can be told from what may end
        it; None where only the reader can."""

    @property
    def string_into(self) -> tuple[list[Any], int] | None:
        """Where such text goes if it waits to be told, and how much more may; None where it is told at once."""

    @property
    def quoting(self) -> bool:
        """Inside a call that a value quotes: a closing marker here is not this region's."""

    def read(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Consume `text[at:end]` as far as it can be understood and return where it stopped.

        `base` is the raw offset of `text[0]`. With `final` nothing will follow. When the status is no longer
        READING, the returned position is the first character that is not part of the region.
        """

    def release(self) -> None:
        """Nothing more will be asked: let go of everything that is held."""

    def recover(self, marker: str) -> None:
        """After a rejection the parser found this closing marker: go on behind it (status READING or DONE)."""
