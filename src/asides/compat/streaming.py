"""The engine's events as two growing texts, thinking and content, for interfaces that know no parts."""

from __future__ import annotations

from collections.abc import Iterable

from ..events import Event, PartEnd, PartStart, TextDelta, ThinkingDelta


class TwoTexts:
    """Takes events and hands out what was thought and what was said since the last call, joined as a message is."""

    __slots__ = ("_pending", "_whole")

    def __init__(self, *, whole_thoughts: bool = False) -> None:
        self._whole = whole_thoughts
        """Whether a thought is handed out only when it has ended."""
        self._pending: list[str] = []

    def take(self, events: Iterable[Event]) -> tuple[str, str]:
        """The thinking and the content that these events tell."""
        thinking: list[str] = []
        content: list[str] = []
        thought = self._pending if self._whole else thinking
        for event in events:
            if isinstance(event, ThinkingDelta):
                thought.append(event.text)
            elif isinstance(event, TextDelta):
                content.append(event.text)
            elif isinstance(event, PartStart):
                (thought if event.kind == "thinking" else content).append(event.gap)
            elif isinstance(event, PartEnd) and self._pending:
                thinking += self._pending
                self._pending.clear()
        return "".join(thinking), "".join(content)
