"""Calls written with bare keys in braces: `call:f{a:<|"|>v<|"|>,n:42}`. Data only.

How they are read is in `brace_reader.py`, which is loaded when a call is met.
"""

from __future__ import annotations

from .reader import Reader, Sink
from .steps import ends_inside, skip_some, starts
from .syntax import CallSyntax


class BraceCalls(CallSyntax, frozen=True, kw_only=True):
    """`call:NAME{key:value,...}`; strings stand between two of the same marker."""

    prefix: str = "call:"
    """What stands before the name."""
    quote: str
    """The marker on both sides of a string."""

    def sniff(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """The word before the name."""
        at = skip_some(text, at, end)
        if at == end:
            return True if final else None
        return True if final and ends_inside(text, at, end, self.prefix) else starts(text, at, end, self.prefix, final)

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for the calls."""
        from .brace_reader import BraceReader

        return BraceReader(self, sink)
