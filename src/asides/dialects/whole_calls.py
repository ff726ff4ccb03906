"""Calls for clients that take nothing but an object as arguments: held until they are whole.

What is no such call is given back as text. Knows no API.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..events import PartEnd, PartStart, ToolCallDelta

DEPTH = 100
"""How deep arguments may be nested. Clients give up at a depth of their own, the first of them at 200."""


class WholeCall(msgspec.Struct, frozen=True):
    """A call that may be run."""

    id: str
    name: str
    arguments: str
    """The model's own characters."""
    value: dict[str, Any]
    """What they say."""


class HeldCalls:
    """The calls of a reply that have begun and not yet ended."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[int, tuple[PartStart, list[str]]] = {}

    def begin(self, start: PartStart) -> None:
        """A call begins."""
        self._open[start.index] = (start, [])

    def grow(self, delta: ToolCallDelta) -> None:
        """More of its arguments."""
        if delta.index in self._open:
            self._open[delta.index][1].append(delta.text)

    def end(self, end: PartEnd, written: str | None) -> WholeCall | str | None:
        """The call if it is whole and valid, else the text that stands for it; None if nothing is to be written."""
        start, pieces = self._open.pop(end.index, (None, []))
        # None is text that must not be shown: a call cut off inside an open thought.
        if start is None or written is None:
            return None
        arguments = "".join(pieces)
        value = to_object(arguments) if end.error is None and start.name else None
        if value is not None:
            return WholeCall(start.id, start.name, arguments, value)
        return written or f'{{"name": "{start.name}", "arguments": {arguments}'


def to_object(arguments: str) -> dict[str, Any] | None:
    """The object that this JSON text says; None if it says none, or one that clients cannot read."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    # Text is never nested deeper than it has brackets, those in strings included: counting them spares most calls the
    # walk.
    brackets = arguments.count("{") + arguments.count("[")
    return value if brackets <= DEPTH or _depth(value) <= DEPTH else None


def _depth(value: object) -> int:
    # Level by level and not by recursion, because the depth is the model's to choose.
    deepest, level = 0, [value]
    while level:
        deepest += 1
        inner: list[object] = []
        for each in level:
            inner.extend(each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
        level = [each for each in inner if isinstance(each, dict | list)]
    return deepest
