"""A reply to a client whose API knows one choice only: what is known of it besides its parts. Knows no API.

Anthropic's and Ollama's writers share it. `OneChoice` keeps how the reply began, ended, what it cost and how it failed,
and hands what its parts say to the dialect's own `PartsWriter`, which makes blocks or lines of it. Other choices are
left out; a refusal, which only OpenAI's APIs set apart, is text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from ..reply._items import Begin, Ended, Failed, Foreign, Proof, ReplyEvent, ReplyItem, Usage
from ._errors import UPSTREAM_ENDED
from ._request import Request
from .openai_chat._reader import refusal_of


class PartsWriter(Protocol):
    """Writes the parts of a choice in the shape of one API."""

    def write_event(self, item: ReplyEvent) -> None:
        """Write what an event adds to a part."""

    def refuse(self, text: str) -> None:
        """Write more of a refusal, as text."""

    def foreign(self, item: Foreign) -> None:
        """Write something that only this API understands."""

    def carry(self, sealed: str) -> None:
        """Write what the client shall send back with the thought before it."""

    def close(self) -> None:
        """End what is open."""


P = TypeVar("P", bound=PartsWriter)


class OneChoice(Generic[P]):
    """The state of such a reply while it is written."""

    def __init__(self, request: Request, dialect: str, parts: P) -> None:
        self.request: Request = request
        self.parts: P = parts
        self.begin: Begin = Begin()
        self.ended: Ended | None = None
        self.usage: Usage = Usage()
        self.failed: Failed | None = None
        self._dialect = dialect

    @property
    def same(self) -> bool:
        """Whether the upstream speaks this API too, so that fields which only it understands may pass."""
        return self.begin.dialect == self._dialect

    def take(self, item: ReplyItem) -> None:
        """Take in an item; what it says of parts is written."""
        if self.failed is not None:
            return
        if isinstance(item, ReplyEvent):
            if item.choice == 0:
                # These APIs have one choice; a request for several gets the first.
                self.parts.write_event(item)
        elif isinstance(item, Begin):
            self.begin = item
        elif isinstance(item, Ended):
            if item.choice == 0:
                self.ended = item
                self.parts.close()
        elif isinstance(item, Usage):
            self.usage = item
        # What is open is closed first: clients put a block together by its end, and would lose what came of it.
        elif isinstance(item, Failed):
            self.parts.close()
            self.failed = item
        elif isinstance(item, Proof):
            if item.sealed and item.choice == 0:
                self.parts.carry(item.sealed)
        elif item.dialect == self._dialect:
            self.parts.foreign(item)
        elif refusal := refusal_of(item):
            self.parts.refuse(refusal)

    def take_all(self, items: Iterable[ReplyItem]) -> Failed | None:
        """Take in a whole reply; how it failed, where it did. One that nobody ended has failed."""
        for item in items:
            self.take(item)
        return self.failed or (UPSTREAM_ENDED if self.ended is None else None)
