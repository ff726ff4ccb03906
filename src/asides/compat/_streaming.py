"""The engine's events as two growing texts, thinking and content, for interfaces without parts."""

from __future__ import annotations

import json
from collections.abc import Iterable

from .._engine.format import Format
from ..events import Event, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from ..families import get_format

_WITHOUT: dict[int, tuple[Format, Format]] = {}
"""By the identity of a format: itself, and the same without markers of calls. A parser caches tables by the object."""


def without_call_markers(format: str | Format) -> Format:
    """The format with its call markers as text, whatever it settles on.

    Not `calls=False`: where calls are messages of their own (gpt-oss), their name stands in a header and would be
    lost. These are read, and written out in a known syntax.
    """
    found = get_format(format)
    known = _WITHOUT.get(id(found))
    if known is None:
        settle = found.settle
        then = None if settle is None else lambda met: without_call_markers(settle(met))
        suffixed = found.suffixed
        named = None if suffixed is None else lambda suffix: without_call_markers(suffixed(suffix))
        known = _WITHOUT[id(found)] = (found, found.but(calls=(), settle=then, suffixed=named))
    return known[1]


class TwoTexts:
    """Takes events and returns the thinking and the content that they add, joined as a message is."""

    __slots__ = ("_kind", "_pending", "_whole")

    def __init__(self, *, whole_thoughts: bool = False) -> None:
        self._whole = whole_thoughts
        """Whether a thought is returned only when it has ended."""
        self._pending: list[str] = []
        self._kind = ""

    def take(self, events: Iterable[Event]) -> tuple[str, str]:
        """The thinking and the content that these events add."""
        thinking: list[str] = []
        content: list[str] = []
        thought = self._pending if self._whole else thinking
        for event in events:
            if isinstance(event, PartStart):
                self._kind = event.kind
            if self._kind == "thinking":
                thought.append(text_of_event(event, self._kind))
            else:
                content.append(text_of_event(event, self._kind))
            if isinstance(event, PartEnd):
                thinking += self._pending
                self._pending.clear()
        return "".join(thinking), "".join(content)


def text_of_event(event: Event, kind: str) -> str:
    """What an event adds to the text of its kind.

    Calls stay in the text of most formats, when they are not to be read. Where a call is a message of its own
    (gpt-oss), or a server has already read it, it is written out in the commonest of syntaxes: no word is lost.
    """
    if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
        return event.text
    if isinstance(event, PartStart):
        return event.gap if kind != "tool_call" else f'<tool_call>{{"name": {json.dumps(event.name)}, "arguments": '
    return "}</tool_call>" if isinstance(event, PartEnd) and kind == "tool_call" else ""
