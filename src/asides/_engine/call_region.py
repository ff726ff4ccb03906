"""One stretch of calls while it is read: from its opener to where its grammar ends. Where it stands, how far it came.

A region is held back until it has shown itself to be a call. Inside thinking it is held back to its end and beyond,
because only what follows tells a call from a draft. `record` is the call that is being read, `hold` the closing marker
that may be its end; what the grammar reports goes to `CallSink`, which turns it into events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from .call_record import CallRecord
from .calls.reader import Reader
from .calls.strings import StringBody
from .calls.syntax import CallSyntax
from .calls.tools import Tools
from .closer_hold import CloserHold
from .cursor import NOWHERE
from .open_part import PartWriter


class CallOptions(msgspec.Struct, frozen=True):
    """What the caller wants of calls."""

    tools: Tools | None = None
    seed: int | None = None
    """Ids of calls that have none are made from it; random ones where it is None."""
    repair: bool = False
    """Whether closing brackets that are missing are written."""


class Region:
    """The calls behind one opener."""

    __slots__ = (
        "_repair",
        "announced",
        "body",
        "broken",
        "broken_at",
        "calls",
        "dead_from",
        "draft",
        "fault_from",
        "faulty",
        "hold",
        "opener",
        "reader",
        "record",
        "space_from",
        "start",
        "syntaxes",
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
        self._repair = options.repair
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
        self.record = CallRecord(writer.holds, writer.cursor.tape, start, options.repair)
        self.hold = CloserHold(writer.holds, self.record, body)

    @property
    def closers(self) -> tuple[str, ...]:
        """The markers that close a call here."""
        return tuple(text for syntax in self.syntaxes for text in syntax.closers)

    @property
    def opens_section(self) -> bool:
        """Whether the opener is that of a section of calls."""
        return any(self.opener in syntax.section for syntax in self.syntaxes)

    @property
    def never_shown(self) -> bool:
        """Whether no reader shall see the opener."""
        return self.announced and any(syntax.never_shown for syntax in self.syntaxes)

    @property
    def syntax(self) -> CallSyntax:
        """The syntax that was chosen."""
        return self.syntaxes[0]

    @property
    def begun(self) -> bool:
        """Whether a call has begun that has not ended."""
        return self.record.open or self.calls == 0

    @property
    def waiting(self) -> bool:
        """Whether what was read so far is still held back."""
        return self.draft or self.hold.open or not self.record.committed

    @property
    def hold_start(self) -> int:
        """Where what is held back begins; the limit counts from here."""
        if self.hold.open and self.hold.closer:
            return self.hold.closer.start
        return self.dead_from if self.calls else self.start

    @property
    def untold(self) -> int:
        """The first character that no event has told of, while it waits."""
        return self.hold_start if self.calls or self.hold.open else self.space_from

    @property
    def first(self) -> int:
        """Where the raw text of a call that ended badly begins: at the opener, unless others came before it."""
        whole = self.calls == 0 and self.opener not in self.syntax.section
        return self.start if whole else min(self.dead_from, self.record.start)

    # While the call streams through a string (see `fast_path.py`).

    @property
    def string_ends(self) -> tuple[str, ...] | None:
        """The first characters of each thing that may end that string; None where there is none."""
        if self.reader is None or self.waiting or self._repair or self.record.aside is not None:
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

    # How far it came.

    def choose(self, syntax: CallSyntax, reader: Reader) -> None:
        """The first characters fit this syntax."""
        self.syntaxes = [syntax]
        self.reader = reader

    def release(self) -> None:
        """Nothing more is read of it. Its reader holds the sink, which holds this, and itself by its own methods: all
        of that, with the text, would stay until the garbage collector runs."""
        reader, self.reader = self.reader, None
        if reader is not None:
            reader.release()

    def begin_call(self, offset: int) -> None:
        """A call may begin here."""
        self.dead_from = offset

    def end_call(self, span: tuple[int, int], error: str | None) -> None:
        """A call has ended."""
        self.calls += 1
        self.dead_from = span[1]
        if error is not None:
            self.faulty += 1
            self.fault_from = min(self.fault_from, span[0])

    def reject(self, code: str, reason: str, offset: int) -> None:
        """The grammar does not allow what stands at `offset`."""
        self.broken = (code, reason)
        self.broken_at = offset

    def take_broken(self) -> tuple[str, str]:
        """Code and words of what was rejected, which ends."""
        assert self.broken is not None
        broken, self.broken = self.broken, None
        return broken
