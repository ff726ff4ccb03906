"""What every call syntax has in common: its markers, and a reader for what stands between them."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import msgspec

from .reader import Reader, Sink

IdShape = Literal["call", "short", "counted"]
"""`call_` and 24 letters, nine letters, or `functions.` with the name and the number of the call."""


class CallSyntax(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One way of writing calls. Subclasses add what their grammar needs and make its reader.

    What follows from the fields is worked out once: a syntax outlives every reply that is read with it.
    """

    open: tuple[str, ...] = ()
    """Markers that open one call (or one list of calls)."""
    close: tuple[str, ...] = ()
    """Markers that close it; none where the grammar itself has an end."""
    section: tuple[str, ...] = ()
    """Markers that open a section of calls."""
    section_close: tuple[str, ...] = ()
    """Markers that close the section."""
    bare: bool = False
    """Whether a call may stand without an opening marker where text begins."""
    keeps_close: bool = False
    """Whether the closing markers belong to what follows: the end of a message, not of the call."""
    open_at_line: bool = False
    """Whether a marker of `open` acts only where a line begins, because others write such tags too."""
    never_shown: bool = False
    """Whether its openers are tokens that no reader shall see: left out, with a notice, where no call follows."""
    sibling: bool = False
    """Whether another family writes this: it is read because it shares an opener, and does not show the format."""
    id_shape: IdShape = "call"
    """The shape of ids that the model did not write."""

    @property
    def bare_starts(self) -> tuple[str, ...]:
        """What a call without an opening marker begins with, behind prose."""
        return ()

    @cached_property
    def openers(self) -> tuple[str, ...]:
        """Every marker at which reading this syntax begins."""
        return self.section + self.open

    @cached_property
    def closers(self) -> tuple[str, ...]:
        """Every marker that ends a call or a section of this syntax."""
        return self.close + self.section_close

    @property
    def strays(self) -> tuple[str, ...]:
        """The closing markers that act where nothing is open too; a tag that others write may be words there."""
        return self.section_close if self.open_at_line else self.closers

    def closers_of(self, opener: str) -> tuple[str, ...]:
        """The markers that close what this opener opens: a section, or one call."""
        return (self.section_close if opener in self.section else self.close) or self.closers

    def sniff(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """Whether the text after the opener can be this syntax; None when more must be seen."""
        raise NotImplementedError

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for what follows `opener`."""
        raise NotImplementedError
