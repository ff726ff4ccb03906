"""Events on their way out, and those that are held back until it is known what they are.

Everything that is read becomes an event and passes `emit`. Ordinarily it is appended to the list that `feed` returns.
While a hold is open it waits there instead: an undecided start, calls that may be drafts, what stands behind a closing
marker that may be part of a value. Holds nest; the innermost takes the events. In the end a hold is released (what it
holds is true, and goes to the hold around it or out) or dropped (it is not, and the text is read again).
"""

from __future__ import annotations

from ..errors import StrictError
from ..events import NOTICES, Event, Notice, NoticeCode
from ..message import Collector

Hold = list[Event]
"""Events that wait."""


class Holds:
    """The stack of holds, and the list of events that `feed` will return."""

    __slots__ = ("_pending", "_strict", "out", "stack", "undecided")

    def __init__(self, collector: Collector | None = None, strict: frozenset[str] = frozenset()) -> None:
        self._pending = collector.pending if collector is not None else None
        self._strict = strict
        self.stack: list[Hold] = []
        """The open holds, the innermost last."""
        self.out: list[Event] = []
        """What this call to `feed` returns."""
        self.undecided = False
        """Whether the outermost hold is that of an undecided start."""

    def restart(self) -> None:
        """Drop everything: the text is read again from its first character."""
        self.stack.clear()
        self.undecided = False

    def collect(self) -> list[Event]:
        """Begin the list of another call to `feed`."""
        self.out = []
        return self.out

    def emit(self, event: Event) -> None:
        """Append an event to this call's output, or to the innermost hold while one is open."""
        if self.stack:
            # Neither collected nor judged by `strict` yet: what a dropped hold held has never happened.
            self.stack[-1].append(event)
            return
        self.out.append(event)
        if self._pending is not None:
            self._pending.append(event)
        if self._strict and isinstance(event, Notice) and event.code in self._strict:
            raise StrictError(event, self.out)

    def notice(self, code: NoticeCode, offset: int, message: str = "") -> None:
        """Emit a notice."""
        self.emit(Notice(code, message or NOTICES[code], offset))

    def open(self) -> Hold:
        """From here on events wait."""
        hold: Hold = []
        self.stack.append(hold)
        return hold

    def release(self) -> None:
        """Let the events of the innermost hold go out, to the hold around it or to the caller."""
        for event in self.stack.pop():
            self.emit(event)

    def drop(self, hold: Hold | None = None) -> None:
        """Discard the events of this hold, or of the innermost, and of all holds inside it: the text is read again."""
        while self.stack.pop() is not hold and hold is not None:
            pass

    def put_first(self, code: NoticeCode, offset: int) -> None:
        """Put a notice before the events of the innermost hold: it is about all of them."""
        self.stack[-1].insert(0, Notice(code, NOTICES[code], offset))

    def open_undecided(self) -> None:
        """The start is undecided: everything waits."""
        self.open()
        self.undecided = True

    def settle_start(self, notice: Notice | None = None) -> None:
        """The start is settled: what the outermost hold has goes out, what is inside it goes on waiting."""
        self.undecided = False
        outermost, *inner = self.stack
        self.stack = []
        # Empty while they go out: `emit` would put them into an inner hold, which is younger than they are.
        if notice is not None:
            self.emit(notice)
        for event in outermost:
            self.emit(event)
        self.stack = inner
