"""An output that is there as a whole, read by the machine."""

from __future__ import annotations

from ..policies import DEFAULTS, Policies
from .format import TEXT, Format
from .parser import Parser, read_all

_UNDECIDED = DEFAULTS.but(start="undecided")


def for_whole(policies: Policies, format: Format) -> Policies:
    """The policies for an output that is read as a whole, with the one default that differs from a stream's."""
    if policies.start is None and policies.prompt is None and format.start == TEXT:
        return _UNDECIDED if policies is DEFAULTS else policies.but(start="undecided")
    return policies


def read_whole(text: str, format: Format, policies: Policies, finish_reason: str | None = None) -> Parser:
    """A `Parser` that has read a whole output."""
    parser = Parser(format, for_whole(policies, format))
    read_all(parser, text, finish_reason)
    return parser
