"""Stop strings that act on the answer alone.

A server looks for a stop string in all that a model writes, so that one which a model only thinks of would end its
reply in the middle of the thought. For models that think, the upstream is therefore not sent them: they are looked for
here, in texts, and the reply ends where one is found. What may be the beginning of one waits for what follows.

    stops = StopStrings(("END",))
    stops.apply(items)        # the items up to it, and `Ended(0, "stop", "END")`
    stops.found               # True: that choice needs no more of the upstream
"""

from __future__ import annotations

import msgspec

from ..events import PartEnd, Retyped, TextDelta
from ..reply._items import Ended, Failed, Foreign, ReplyEvent, ReplyItem


class StopStrings:
    """Ends each choice of a reply before the first of some strings in its text."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held: dict[int, tuple[int, str]] = {}
        """By choice: the part, and what of its text may be the beginning of one."""
        self._ended: set[int] = set()

    @property
    def found(self) -> bool:
        """Whether any choice has ended so."""
        return bool(self._ended)

    def apply(self, items: list[ReplyItem]) -> list[ReplyItem]:
        """The items to take in place of these."""
        found: list[ReplyItem] = []
        for item in items:
            choice = getattr(item, "choice", None)
            if choice in self._ended:
                continue
            if isinstance(item, ReplyEvent) and isinstance(item.event, TextDelta):
                found += self._text(item, item.event)
                continue
            if isinstance(item, Failed):
                found += self.finish()
            # What stands beside the text is no end of it: the rest of a stop string may follow.
            elif choice is not None and not isinstance(item, Foreign):
                found += self._released(choice)
            if isinstance(item, ReplyEvent) and isinstance(item.event, Retyped):
                found += self._retyped(item, item.event)
            else:
                found.append(item)
        return found

    def finish(self) -> list[ReplyItem]:
        """Nothing more will come: release what is held back."""
        return [item for choice in list(self._held) for item in self._released(choice)]

    def _released(self, choice: int) -> list[ReplyItem]:
        """What was held back and is no beginning of one: something else follows it."""
        if choice not in self._held:
            return []
        index, text = self._held.pop(choice)
        return [ReplyEvent(choice, TextDelta(index, text))]

    def _text(self, item: ReplyEvent, event: TextDelta) -> list[ReplyItem]:
        text = self._held.pop(item.choice, (0, ""))[1] + event.text
        place, stop = self._find(text)
        if stop:
            before = [self._delta(item, event, text[:place])] if place else []
            return [*before, *self._end(item.choice, event.index, stop)]
        held = max((_overlap(text, stop) for stop in self._stops), default=0)
        if held:
            self._held[item.choice] = (event.index, text[len(text) - held :])
            text = text[: len(text) - held]
        return [self._delta(item, event, text)] if text else []

    def _retyped(self, item: ReplyEvent, event: Retyped) -> list[ReplyItem]:
        """A part is of the other kind; of words that are the answer, those before a stop string."""
        place, stop = self._find(item.raw)
        if not stop:
            return [item]
        return [msgspec.structs.replace(item, raw=item.raw[:place]), *self._end(item.choice, event.index, stop)]

    def _find(self, text: str) -> tuple[int, str]:
        """Where the first of the strings stands, and which."""
        return min(((place, stop) for stop in self._stops if (place := text.find(stop)) >= 0), default=(-1, ""))

    def _end(self, choice: int, index: int, stop: str) -> list[ReplyItem]:
        self._ended.add(choice)
        return [ReplyEvent(choice, PartEnd(index, True)), Ended(choice, "stop", stop)]

    @staticmethod
    def _delta(item: ReplyEvent, event: TextDelta, text: str) -> ReplyItem:
        return msgspec.structs.replace(item, event=TextDelta(event.index, text))


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of a text are the beginning of a stop string."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
