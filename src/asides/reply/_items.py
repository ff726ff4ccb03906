"""A reply on its way between two dialects: its content, how it ended, what it cost. Values only.

A dialect's reader makes `Chunk`s of what an upstream sends: raw text that may still hold markers, thinking and calls
that the upstream has already split off. The splitter turns chunks into `ReplyItem`s, in which every part is described
by the engine's own events, one sequence for each choice. A writer turns items into the bytes of its dialect, and a
`Fold` turns them into a `Reply`.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from ..events import Event, PartEnd, PartStart, ThinkingDelta
from ..message import Termination

Reason = Literal["stop", "length", "content_filter"]
"""Why a reply ended. Whether calls were made is in its parts."""


class Begin(msgspec.Struct, frozen=True, tag=True):
    """A reply begins."""

    id: str = ""
    """The upstream's own id of the reply; empty when it gives none."""
    model: str = ""
    """The model's name, as the upstream gives it; empty when it gives none."""
    created: int = 0
    """When the reply was made, in seconds since 1970; 0 when the upstream does not say."""
    dialect: str = ""
    """The dialect of the upstream: only its own writer passes on the `extra` of this reply's items."""
    extra: dict[str, Any] = {}
    """Fields of the reply that only the same dialect understands."""


class RawText(msgspec.Struct, frozen=True, tag=True):
    """Content as the upstream sent it; it may hold markers."""

    choice: int
    """The number of the choice, from 0; above 0 only where a request asked for several (`n`)."""
    text: str
    """More of the choice's content, markers included."""
    logprobs: tuple[dict[str, Any], ...] = ()
    """Log probabilities token by token, in the upstream's own shape, each with a `token` and perhaps `bytes`; empty
    where none came."""
    ids: tuple[int, ...] = ()
    """The ids of tokens that came with it, where the upstream was asked for such; their text may come later."""


class ThinkingChunk(msgspec.Struct, frozen=True, tag=True):
    """Thinking that the upstream has already split off."""

    choice: int
    """The number of the choice, from 0."""
    text: str
    """More of the thought, without markers; may be empty, when only details or a signature came."""
    field: str = ""
    """The name of the field in which the upstream sends it, such as `reasoning_content`."""
    details: tuple[dict[str, Any], ...] = ()
    """Details that came with it and must be sent back as they are."""
    signature: str = ""
    """The upstream's signature of the thought, as Anthropic sends it; empty where none came."""
    logprobs: tuple[dict[str, Any], ...] = ()
    """Log probabilities of its tokens, in the upstream's own shape; empty where none came."""
    begins: bool = False
    """Whether a new thought begins here, even if one is open."""


class CallChunk(msgspec.Struct, frozen=True, tag=True):
    """More of a call that the upstream has already read. The first of an index has the name."""

    choice: int
    """The number of the choice, from 0."""
    index: int
    """A number that all chunks of one call share, as the upstream counts; it rises from call to call."""
    id: str = ""
    """The upstream's id of the call; empty in all chunks but the first."""
    name: str = ""
    """The name of the function; empty in all chunks but the first."""
    arguments: str = ""
    """More of the argument text."""
    extra: dict[str, Any] | None = None
    """Fields of the call that only the same dialect understands; those of its function under `function`."""


class ReplyEvent(msgspec.Struct, frozen=True, tag=True):
    """An event of the engine, with the choice it belongs to and what only dialects need."""

    choice: int
    """The number of the choice, from 0."""
    event: Event
    """The event: a part starts, grows or ends, or a notice."""
    logprobs: tuple[dict[str, Any], ...] = ()
    """For a text: the log probabilities of its tokens, trimmed where a marker was part of them."""
    other_logprobs: tuple[dict[str, Any], ...] = ()
    """The log probabilities of tokens that are in no text: thinking, calls, markers."""
    details: tuple[dict[str, Any], ...] = ()
    """For thinking: the details that came with it, to be sent back as they are."""
    signature: str = ""
    """For thinking: the upstream's signature, with the delta (perhaps an empty one) that it came with."""
    written: str = ""
    """At the end of a call that may not be run: what the model wrote, without the outer markers."""
    withheld: bool = False
    """Whether that is the end of a thought, so that an API which writes such calls as text must not show it as one."""
    raw: str = ""
    """The same as `written`, with its own markers. Where a thought is retyped as text: its words."""
    characters: int = 0
    """Where a part is retyped: how many characters of it have gone out."""
    extra: dict[str, Any] | None = None
    """For a call: fields that only the dialect of the upstream understands."""

    def as_thought(self) -> list[ReplyEvent]:
        """The end of a call that is withheld, as a thought behind the last part: it was cut off, so none follows it."""
        index = self.event.index + 1 if isinstance(self.event, PartEnd) else 0
        events = (PartStart(index, "thinking", gap="\n"), ThinkingDelta(index, self.raw), PartEnd(index, False))
        return [ReplyEvent(self.choice, event) for event in events]


class Ended(msgspec.Struct, frozen=True, tag=True):
    """A choice has ended."""

    choice: int
    """The number of the choice, from 0."""
    reason: Reason = "stop"
    """Why it ended, as the upstream says: `stop`, `length` or `content_filter`."""
    stop_sequence: str | None = None
    """The stop sequence of the request that ended it; None where none did or the upstream does not say."""
    extra: dict[str, Any] = {}
    """Fields of the end that only the same dialect understands."""
    other_logprobs: tuple[dict[str, Any], ...] = ()
    """The log probabilities of tokens behind the last part."""
    termination: Termination = "end"
    """How it ended, with what the output itself shows: `stop`, `end` or `cut`, as in `Message.termination`."""
    beyond: int = 0
    """How many characters of the output are beyond its turn and were not read, as far as they came."""


class Usage(msgspec.Struct, frozen=True, tag=True):
    """What the reply cost, in tokens."""

    input_tokens: int = 0
    """Tokens of the prompt, cached ones included."""
    output_tokens: int = 0
    """Tokens of the whole output, thinking included."""
    reasoning_tokens: int | None = None
    """Tokens of thinking among the output tokens; None when nobody counted them."""
    estimated: bool = False
    """Whether `reasoning_tokens` is an estimate, made from the number of characters."""
    cached_tokens: int = 0
    """Tokens of the prompt that the upstream had in its cache."""
    durations: dict[str, int] = {}
    """Ollama's own times, in nanoseconds, by field name such as `eval_duration`."""
    extra: dict[str, Any] = {}
    """The upstream's own usage object, for the same dialect."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The reply failed: before it began, or in the middle."""

    message: str
    """What happened, in one sentence."""
    status: int = 502
    """The HTTP status of the error."""
    kind: str = "api_error"
    """The type of the error by OpenAI's names, such as `invalid_request_error`."""
    code: str | None = None
    """The code of the error by OpenAI's names, such as `model_not_found`; None where there is none."""
    param: str | None = None
    """The field of the request that is at fault; None where it is none or not known."""
    dialect: str = ""
    """The name of the upstream's dialect."""
    body: dict[str, Any] | None = None
    """The upstream's own error object, for the same dialect; None where there was none."""


class Foreign(msgspec.Struct, frozen=True, tag=True):
    """Something only the dialect that sent it understands. Passed on within that dialect, else left out."""

    dialect: str
    """The name of the dialect that sent it."""
    event: str
    """The type of the event in that dialect."""
    data: dict[str, Any]
    """The whole event as JSON data."""
    choice: int | None = None
    """The number of the choice that it belongs to; None where it belongs to the reply."""


class Proof(msgspec.Struct, frozen=True, tag=True):
    """What an upstream wants back, untouched, with the thought before it or with a call. Never shown, never logged."""

    choice: int
    """The number of the choice, from 0."""
    dialect: str
    """The name of the dialect of the upstream: only it understands the proof."""
    data: dict[str, Any]
    """The upstream's own object: a block or an item that is sent back as it is; of chat completions the fields that
    are added to the message or to the call."""
    call: bool = False
    """Whether it belongs to the call before it, and not to a thought."""
    sealed: str = ""
    """The same as clients may carry it; empty where they are not given it."""


class PlacedProof(msgspec.Struct, frozen=True):
    """A proof, and where it stands in its turn."""

    texts: int
    """How many texts stand before it."""
    calls: int
    """How many calls stand before it; of the proof of a call the number of that call, from 0."""
    dialect: str
    """The name of the dialect of the upstream that made it."""
    data: dict[str, Any]
    """The upstream's own object, as in `Proof`."""
    call: bool = False
    """Whether it belongs to a call."""


Chunk = Begin | RawText | ThinkingChunk | CallChunk | Ended | Usage | Failed | Foreign | Proof
"""What a dialect's reader yields, before the splitter: text may still hold markers."""
ReplyItem = Begin | ReplyEvent | Ended | Usage | Failed | Foreign | Proof
"""What the splitter yields, and a dialect's writer takes: parts as events."""


class OpenThought(NamedTuple):
    """A choice that is inside a thought."""

    text: str
    """All raw text of the choice, with the opening marker; of a thought that the upstream has split off its text."""
    split: bool
    """Whether the upstream has split it off."""
    opening: str = ""
    closing: str = ""
    """The markers around it; empty where none are known."""
