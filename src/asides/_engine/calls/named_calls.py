"""Calls whose name stands in a header before JSON arguments, and bodies of messages whose header named the call.

Data only: how they are read is in `named_reader.py`, which is loaded when a call is met.
"""

from __future__ import annotations

import re

from .reader import Reader, Sink
from .steps import LONGEST_NAME, marker_at, skip_some, starts
from .syntax import CallSyntax

NAME = re.compile(r"""[^\s<>{}\[\]"'`|｜]++""")
"""A name as it stands before arguments."""


def _names_object(text: str, at: int, end: int, final: bool) -> bool | None:
    """Whether a name stands at `at` and behind it the beginning of a JSON object; None when more must be seen."""
    match = NAME.match(text, at, min(end, at + LONGEST_NAME))
    if match is None:
        return False
    brace = skip_some(text, match.end(), end)
    inside = skip_some(text, brace + 1, end) if brace < end and text[brace] == "{" else brace
    if inside == end:
        return True if final else None
    return inside > brace and text[inside] in '"}'


class NamedCalls(CallSyntax, frozen=True, kw_only=True):
    """`NAME<separator>{...}`, alone or each between its own markers in a section."""

    separators: tuple[str, ...] = ()
    """Markers between the name and the arguments."""
    direct: bool = False
    """Whether the arguments may follow the name without a separator."""
    before_name: str = ""
    """What stands before the name."""
    before_arguments: str = ""
    """What may stand between the separator and the arguments, to name their type."""
    behind_arguments: str = ""
    """What closes the arguments, before what closes the call."""
    call_id: str = ""
    """A marker between the name and the separator, before the call's id."""
    numbered: bool = False
    """Whether the name is written as an id that holds it: `functions.f:0`."""
    fenced: bool = False
    """Whether the arguments may stand in a fenced code block."""

    def sniff(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """A name, and no JSON; where nothing else tells a call from words, JSON behind the name too."""
        at = skip_some(text, at, end)
        if at < end and self.section:
            opener = marker_at(text, at, end, self.open, final)
            if opener is None:
                return None
            at = skip_some(text, at + len(opener), end)
            if opener and opener == self.before_name:
                return True
        if self.before_name and self.before_name not in self.open and at < end:
            named = starts(text, at, end, self.before_name, final)
            if not named:
                return named
            at = skip_some(text, at + len(self.before_name), end)
        if at == end:
            return True if final else None
        if self.direct and not self.separators and not self.section:
            return _names_object(text, at, end, final)
        return text[at] not in "{["

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for the calls."""
        from .named_reader import NamedReader

        return NamedReader(self, sink, opener)


class BodyCalls(CallSyntax, frozen=True, kw_only=True):
    """The body of a message to a tool: JSON, or whatever that tool reads. `close` ends it and is not part of it."""

    prefix: str = ""
    """Recipients that begin so are functions, which read JSON and nothing else; it is not part of the name."""
    keeps_close: bool = True
    marked: bool = True
    """Whether its end is marked. Where a server has left the markers out, JSON needs none."""

    def sniff(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """Nothing to look for: the header has decided that this is a call."""
        return True

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for the body; `opener` is the recipient that the header names."""
        from .named_reader import BodyReader

        return BodyReader(self, sink, opener)
