"""Calls written as Python: `[f(a="v"), g(b=1)]`, or one call a line. Data only.

How they are read is in `python_reader.py`, which is loaded when a call is met.
"""

from __future__ import annotations

import re

from .reader import Reader, Sink
from .steps import skip_some
from .syntax import CallSyntax

_SNIFF = re.compile(r"\[\s{0,255}+[^\W\d][\w.:\-]{0,255}+\s{0,255}+\(")
_SNIFF_PARTIAL = re.compile(r"\[\s{0,255}+(?:[^\W\d][\w.:\-]{0,255}+\s{0,255}+)?\Z")
_NAME_START = re.compile(r"[^\W\d]")


class PythonCalls(CallSyntax, frozen=True, kw_only=True):
    """`[f(a="v"), g(b=1)]`, or the same without brackets, separated by lines or commas."""

    lines: bool = False
    """Whether the calls may stand without brackets."""

    @property
    def bare_starts(self) -> tuple[str, ...]:
        """A list."""
        return ("[",)

    def sniff(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """A bracket, a name and a parenthesis; or just a name, where lines are allowed."""
        at = skip_some(text, at, end)
        if at == end:
            return True if final else None
        if _SNIFF.match(text, at, end):
            return True
        if text[at] == "[":
            after = skip_some(text, at + 1, end)
            if after < end and text[after] == "]":
                return True
            if _SNIFF_PARTIAL.match(text, at, end) is None:
                return False
            return True if final else None
        return self.lines and _NAME_START.match(text, at, end) is not None

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for the calls."""
        from .python_reader import PythonReader

        return PythonReader(self, sink, opener)
