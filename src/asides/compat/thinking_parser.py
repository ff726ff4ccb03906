"""Ollama's kind of interface: `ThinkingParser().process(chunk)` returns the thinking and the content of a chunk.

Thin over `asides.Parser`. Calls are text here: they stay in the content as they were written.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from .._api import Parser
from .._engine.format import Format
from ..errors import UsageError
from ..events import Event
from ..families._family import EFFORTS, nearest_effort
from ..policies import Start
from ._streaming import TwoTexts, without_call_markers

__all__ = ["LEVELS", "Level", "ProcessedChunk", "ThinkValue", "ThinkingParser"]

Level = Literal["high", "medium", "low", "max"]
"""How much to think, as a type."""
LEVELS: tuple[Level, ...] = get_args(Level)
"""How much to think, as Ollama names it."""
_CHOICES = ", ".join(f'"{level}"' for level in LEVELS) + ", true, or false"


class ProcessedChunk(msgspec.Struct, frozen=True):
    """What a chunk adds."""

    thinking: str | None = None
    """More of the thinking; None where there is none."""
    content: str = ""
    """More of the answer."""


class ThinkingParser:
    """Separates thinking from content as chunks come. After `finish` the next chunk begins another reply."""

    def __init__(
        self,
        format: str | Format = "auto",
        *,
        start: Start | None = None,
        prompt: str | None = None,
    ) -> None:
        self._format = without_call_markers(format)
        self._start = start
        self._prompt = prompt
        self._thoughts: list[str] = []
        self._begin()

    @classmethod
    def new(cls) -> ThinkingParser:
        """A parser for any format: the same as `ThinkingParser()`."""
        return cls()

    def _begin(self) -> None:
        self._parser = Parser(self._format, start=self._start, prompt=self._prompt, retype=False, collect=False)
        self._texts = TwoTexts()
        self._begins = True

    @property
    def thinking(self) -> str:
        """All thinking of the reply so far; after `finish` that of the whole reply, until the next begins."""
        return "".join(self._thoughts)

    @property
    def held(self) -> int:
        """How many characters are held back."""
        return self._parser.held

    def process(self, chunk: str) -> ProcessedChunk:
        """Read a chunk."""
        if self._begins:
            self._begins, self._thoughts = False, []
        return self._take(self._parser.feed(chunk))

    def finish(self) -> ProcessedChunk:
        """Release what was held back at the end of a reply."""
        rest = self._take(self._parser.finish())
        self._begin()
        return rest

    def _take(self, events: list[Event]) -> ProcessedChunk:
        thinking, content = self._texts.take(events)
        if thinking:
            self._thoughts.append(thinking)
        return ProcessedChunk(thinking or None, content)


class ThinkValue(msgspec.Struct, frozen=True):
    """The `think` of a request: true, false, or how much."""

    value: bool | Level
    """`True`, `False`, or a level: `high`, `medium`, `low` or `max`."""

    @classmethod
    def read(cls, value: object) -> ThinkValue | None:
        """A `think` as it stands in a request's JSON; None where it is absent or null."""
        if value is None or isinstance(value, cls):
            return value
        if isinstance(value, bool):
            return cls(value)
        if not isinstance(value, str):
            raise UsageError(f"think must be a boolean or string ({_CHOICES})")
        if value not in LEVELS:
            raise UsageError(f'invalid think value: "{value}" (must be {_CHOICES})')
        return cls(value)

    @classmethod
    def from_effort(cls, effort: str | None) -> ThinkValue | None:
        """OpenAI's `reasoning_effort` as a `think`; None where none was given."""
        if not effort:
            return None
        level = nearest_effort(effort, LEVELS)
        if effort != "none" and not level:
            raise UsageError(f"invalid reasoning effort {effort!r}: must be none, {', '.join(EFFORTS)}")
        return cls.read(level or False)

    @property
    def enabled(self) -> bool:
        """Whether the model should think."""
        return self.value is not False

    @property
    def level(self) -> Level | None:
        """How much; true is `medium`, as in Ollama. None where it should not think."""
        if isinstance(self.value, bool):
            return "medium" if self.value else None
        return self.value
