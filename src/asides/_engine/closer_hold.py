"""A closing marker inside a call that may be its end or part of a value: what follows is held until that is known."""

from __future__ import annotations

import msgspec

from .call_record import CallRecord
from .holds import Holds


class Closer(msgspec.Struct, frozen=True):
    """A marker inside a call that may be its end."""

    start: int
    stop: int
    ends_turn: bool
    """Whether it is a stop marker, which ends the turn with the call cut off."""


class CloserHold:
    """The first closing marker that stood inside the call that is being read, and the events since."""

    __slots__ = ("_holds", "_record", "closer", "open", "watched")

    def __init__(self, holds: Holds, record: CallRecord, watched: int) -> None:
        self._holds = holds
        self._record = record
        self.closer: Closer | None = None
        self.open = False
        """Whether events since that marker are held back."""
        self.watched = watched
        """How far closing markers have been looked for."""

    def watch_from(self, offset: int) -> None:
        """Closing markers have been looked for up to here."""
        self.watched = offset

    def meet(self, start: int, stop: int, ends_turn: bool) -> None:
        """A marker that may be the end: until the reader has told, nothing behind it is certain."""
        if self.closer is not None:
            return
        self.closer = Closer(start, stop, ends_turn)
        if self._record.committed:
            self.open = True
            self._record.remember_written()
            self._holds.open()

    def forget(self) -> None:
        """That marker can no longer be the end."""
        self.closer = None

    def drop(self) -> None:
        """That marker was the end, and what was read since is not part of the call."""
        if self.open:
            self.open = False
            self._record.forget_written()
            self._holds.drop()

    def release(self) -> None:
        """That marker was not the end, or it does not matter."""
        if self.open:
            self.open = False
            self._holds.release()

    def expire(self) -> None:
        """That marker has been waited behind for too long: it was not the end."""
        assert self.closer is not None
        self._holds.put_first("limit", self.closer.start)
        self.closer = None
        self.release()
