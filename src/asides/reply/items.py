"""A reply on its way between two dialects: its content, how it ended, what it cost. Values only.

A dialect's reader makes `Chunk`s of what an upstream sends: raw text that may still hold markers, thinking and calls
that the upstream has already split off. The splitter turns chunks into `ReplyItem`s, in which every part is described
by the engine's own events, one sequence for each choice. A writer turns items into the bytes of its dialect, and a
`Fold` turns them into a `Reply`.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..events import Event
from ..message import Termination

Reason = Literal["stop", "length", "content_filter"]
"""Why a reply ended. Whether calls were made is in its parts."""


class Begin(msgspec.Struct, frozen=True, tag=True):
    """A reply begins."""

    id: str = ""
    model: str = ""
    created: int = 0
    """Seconds since the epoch; 0 when the upstream does not say."""
    dialect: str = ""
    """The dialect of the upstream: only its own writer passes on the `extra` of this reply's items."""
    extra: dict[str, Any] = {}
    """Fields of the reply that only the same dialect understands."""


class RawText(msgspec.Struct, frozen=True, tag=True):
    """Content as the upstream sent it; it may hold markers."""

    choice: int
    text: str
    logprobs: tuple[dict[str, Any], ...] = ()
    """Token by token, in the upstream's own shape, each with a `token` and perhaps `bytes`."""


class ThinkingChunk(msgspec.Struct, frozen=True, tag=True):
    """Thinking that the upstream has already split off."""

    choice: int
    text: str
    field: str = ""
    """The name under which the upstream sends it."""
    details: tuple[dict[str, Any], ...] = ()
    """Details that came with it and must be sent back as they are."""
    signature: str = ""
    logprobs: tuple[dict[str, Any], ...] = ()
    begins: bool = False
    """Whether a new thought begins here, even if one is open."""


class CallChunk(msgspec.Struct, frozen=True, tag=True):
    """More of a call that the upstream has already read. The first of an index has the name."""

    choice: int
    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    """More of the argument text."""


class ReplyEvent(msgspec.Struct, frozen=True, tag=True):
    """An event of the engine, with the choice it belongs to and what only dialects need."""

    choice: int
    event: Event
    logprobs: tuple[dict[str, Any], ...] = ()
    """For a text: the log probabilities of its tokens, trimmed where a marker was part of them."""
    other_logprobs: tuple[dict[str, Any], ...] = ()
    """Those of what is in no text: thinking, calls, markers."""
    details: tuple[dict[str, Any], ...] = ()
    """For thinking: the details that came with it."""
    signature: str = ""
    """For thinking: the upstream's signature, with the delta (perhaps an empty one) that it came with."""
    written: str = ""
    """At the end of a call that may not be run: what the model wrote, without the outer markers."""
    withheld: bool = False
    """Whether that is the end of a thought, so that an API which writes such calls as text must leave it out."""
    raw: str = ""
    """The same as `written`, with its own markers."""

    @property
    def shown(self) -> str | None:
        """What an API that has no place for a call that may not be run writes as text; None where it writes none."""
        return None if self.withheld else self.written


class Ended(msgspec.Struct, frozen=True, tag=True):
    """A choice has ended."""

    choice: int
    reason: Reason = "stop"
    stop_sequence: str | None = None
    extra: dict[str, Any] = {}
    other_logprobs: tuple[dict[str, Any], ...] = ()
    """Those of tokens behind the last part."""
    termination: Termination = "end"
    """How the output itself ended, where raw text was read."""


class Usage(msgspec.Struct, frozen=True, tag=True):
    """What the reply cost, in tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int | None = None
    """None when nobody knows."""
    estimated: bool = False
    """Whether the tokens of thinking were shared out by characters."""
    cached_tokens: int = 0
    durations: dict[str, int] = {}
    """Ollama's times in nanoseconds, by their names."""
    extra: dict[str, Any] = {}
    """The upstream's own record, for the same dialect."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The reply failed: before it began, or in the middle."""

    message: str
    status: int = 502
    kind: str = "api_error"
    """The type, in OpenAI's words."""
    code: str | None = None
    param: str | None = None
    dialect: str = ""
    """The dialect of the upstream."""
    body: dict[str, Any] | None = None
    """The upstream's own error, for the same dialect."""


class Foreign(msgspec.Struct, frozen=True, tag=True):
    """Something only the dialect that sent it understands. Passed on within that dialect, else left out."""

    dialect: str
    event: str
    data: dict[str, Any]


Chunk = Begin | RawText | ThinkingChunk | CallChunk | Ended | Usage | Failed | Foreign
ReplyItem = Begin | ReplyEvent | Ended | Usage | Failed | Foreign
