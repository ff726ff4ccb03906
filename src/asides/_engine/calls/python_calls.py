"""Calls written as Python: `[f(a="v"), g(b=1)]`, or one call a line. Data only.

How they are read is in `python_reader.py`, which is loaded when a call is met.
"""

from __future__ import annotations

import re

from .reader import Reader, Sink
from .steps import LONGEST_NAME, skip_some
from .syntax import CallSyntax

_SNIFF = re.compile(r"\[\s{0,255}+[^\W\d][\w.:\-]{0,255}+\s{0,255}+\(")
_SNIFF_PARTIAL = re.compile(r"\[\s{0,255}+(?:[^\W\d][\w.:\-]{0,255}+\s{0,255}+)?\Z")
_METHOD = re.compile(r"([^\W\d]\w*+)(\.\w*+\(?)?")
_NAME_START = re.compile(r"[^\W\d]")


class PythonCalls(CallSyntax, frozen=True, kw_only=True):
    """`[f(a="v"), g(b=1)]`, or the same without brackets, separated by lines or commas."""

    lines: bool = False
    """Whether the calls may stand without brackets."""
    unescaped: bool = False
    """Whether the template puts strings between quotes as they are, so that a backslash in one may be no escape."""
    method: str = ""
    """What is called of the function where that is an object: `call` in `f.call(a="v")`. It is not part of the name."""

    @property
    def bare_starts(self) -> tuple[str, ...]:
        """A list."""
        return ("[",)

    def sniff(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """A bracket, a name and a parenthesis; or just a name, where lines are allowed."""
        at = skip_some(text, at, end)
        if at == end:
            return True if final else None
        if self.method:
            return self.calls_method(text, at, end, final)
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

    def calls_method(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """Whether a call of the method begins here; None when more must be seen."""
        match = _METHOD.match(text, at, end)
        if match is None:
            return False
        if match.end() == end:
            rest = match[2] or ""
            return None if not final and f".{self.method}(".startswith(rest) and len(match[1]) < LONGEST_NAME else False
        return match[2] == f".{self.method}("

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for the calls."""
        from .python_reader import PythonReader

        return PythonReader(self, sink, opener)
