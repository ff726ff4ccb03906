"""Stop strings that act on the answer alone.

A server looks for a stop string in all that a model writes, so that one which a model only thinks of would end its
reply in the middle of the thought. For models that think, the upstream is therefore not sent them: they are looked for
here, in texts, and the reply ends where one is found. What may be the beginning of one waits for what follows.

    stops = StopStrings(("END",), choices=1)
    stops.apply(items)        # the items up to it, and `Ended(0, "stop", "END")`
    stops.over                # True: nothing more is to be read
"""

from __future__ import annotations

import msgspec

from ..events import PartEnd, TextDelta
from ..reply.items import Ended, Failed, ReplyEvent, ReplyItem


class StopStrings:
    """Ends each choice of a reply before the first of some strings in its text."""

    def __init__(self, stops: tuple[str, ...], choices: int) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._left = choices
        """Choices in which none was found."""
        self._held: dict[int, tuple[int, str]] = {}
        """By choice: the part, and what of its text may be the beginning of one."""
        self._ended: set[int] = set()

    @property
    def over(self) -> bool:
        """Whether every choice has ended so."""
        return self._left <= 0

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
            elif choice is not None:
                found += self._released(choice)
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
        place, stop = min(((place, stop) for stop in self._stops if (place := text.find(stop)) >= 0), default=(-1, ""))
        if stop:
            self._ended.add(item.choice)
            self._left -= 1
            before = [self._delta(item, event, text[:place])] if place else []
            return [*before, ReplyEvent(item.choice, PartEnd(event.index, True)), Ended(item.choice, "stop", stop)]
        held = max((_overlap(text, stop) for stop in self._stops), default=0)
        if held:
            self._held[item.choice] = (event.index, text[len(text) - held :])
            text = text[: len(text) - held]
        return [self._delta(item, event, text)] if text else []

    @staticmethod
    def _delta(item: ReplyEvent, event: TextDelta, text: str) -> ReplyItem:
        return msgspec.structs.replace(item, event=TextDelta(event.index, text))


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of a text are the beginning of a stop string."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
