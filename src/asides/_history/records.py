"""What is kept: a reply, its thoughts beside it, and what was asked; and the hash that is a reply's name.

Knows messages, and no store.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from ..errors import UsageError
from ..message import Message
from ..parts import Thinking

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Thought(msgspec.Struct, frozen=True):
    """One stretch of thinking."""

    index: int
    """Its place among the parts of the message."""
    text: str
    complete: bool = True
    """False when the end of the output cut it off."""
    seconds: float | None = None
    """How long it took, where that is known."""


class Call(msgspec.Struct, frozen=True):
    """A call that the model asked for."""

    name: str
    arguments: str
    """A JSON object as text; what was read of it when the call is broken."""
    id: str = ""
    error: str | None = None
    """None when it may be run, else the parser's code."""


class Notice(msgspec.Struct, frozen=True):
    """Something odd in the output. Its code is any text, so that old history outlives codes."""

    code: str
    message: str
    offset: int


class Turn(msgspec.Struct, frozen=True):
    """One message of a conversation's memory. Clean text only: a thought is never in it."""

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    """The assistant's calls that may be run."""
    call_id: str = ""
    """Of a tool's answer: the call that it answers."""

    def to_dict(self) -> dict[str, Any]:
        """The turn as a message of OpenAI's chat API."""
        message: dict[str, Any] = {"role": self.role, "content": self.text}
        if self.calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.calls
            ]
        if self.call_id:
            message["tool_call_id"] = self.call_id
        return message


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered once, with its thoughts beside the clean text."""

    id: str = ""
    """The hash of all the rest; empty until it is needed."""
    time: datetime
    """When the reply was whole; with a time zone."""
    model: str = ""
    source: str = ""
    """Who kept it: `filter`, `run`, `gateway` or `import`."""
    agent: str = ""
    """A name for who was speaking, or for where it came from."""
    conversation: str = ""
    """The same for all replies of one conversation; empty for a reply on its own."""
    client: str = ""
    """Who asked a gateway: the fingerprint of the key that the client showed. Empty where there was none."""
    format: str = ""
    """How the output was read."""
    text: str = ""
    """The answer, without a thought or a marker."""
    thoughts: tuple[Thought, ...] = ()
    calls: tuple[Call, ...] = ()
    notices: tuple[Notice, ...] = ()
    termination: str = "end"
    """`stop`, `end` or `cut`, as `Message.termination` says."""
    asked: tuple[Turn, ...] = ()
    """What led to this reply since the one before: the user's words, the answers of tools."""
    seconds: float | None = None
    """How long the whole reply took, where that is known."""

    @classmethod
    def of(
        cls,
        message: Message,
        *,
        model: str = "",
        source: str = "run",
        agent: str = "",
        conversation: str = "",
        client: str = "",
        format: str = "",
        time: datetime | None = None,
        asked: Sequence[Turn] = (),
        seconds: float | None = None,
        thought_seconds: Iterable[float | None] = (),
    ) -> Reply:
        """The record of a message. `time` is now unless given; `thought_seconds` has one for each thought."""
        if any(turn.role == "assistant" for turn in asked):
            raise UsageError("`asked` holds what others said; what the model said is kept by its own replies")
        durations = iter(thought_seconds)
        thoughts = tuple(
            Thought(index, part.text, part.complete, _finite(next(durations, None)))
            for index, part in enumerate(message.parts)
            if isinstance(part, Thinking)
        )
        return cls(
            time=(time or datetime.now(UTC)).astimezone(UTC),
            model=model,
            source=source,
            agent=agent,
            conversation=conversation,
            client=client,
            format=format,
            text=message.text,
            thoughts=thoughts,
            calls=tuple(Call(call.name, call.arguments, call.id, call.error) for call in message.tool_calls),
            notices=tuple(Notice(notice.code, notice.message, notice.offset) for notice in message.notices),
            termination=message.termination,
            asked=tuple(asked),
            seconds=_finite(seconds),
        )

    def named(self) -> Reply:
        """The same with its id, and with labels and durations that every store can hold."""
        labels = {
            name: label(getattr(self, name))
            for name in ("model", "source", "agent", "conversation", "client", "format", "termination")
        }
        thoughts = tuple(
            msgspec.structs.replace(thought, seconds=None) if _finite(thought.seconds) != thought.seconds else thought
            for thought in self.thoughts
        )
        tidy = msgspec.structs.replace(self, **labels, thoughts=thoughts, seconds=_finite(self.seconds))
        return msgspec.structs.replace(tidy, id=identity(tidy))

    @property
    def size(self) -> int:
        """Roughly how many characters it holds."""
        size = len(self.text) + sum(len(thought.text) for thought in self.thoughts)
        return size + sum(len(call.arguments) for call in self.calls) + sum(len(turn.text) for turn in self.asked)


def identity(reply: Reply) -> str:
    """The hash of a reply's content. It is stored, so what goes into it never changes; a new way gets a new tag."""
    digest = hashlib.blake2b(digest_size=16)
    # Whoever asked is in it only where that is known: replies of before there was such a field keep their names.
    fields = [
        *(("asides reply 2", reply.client) if reply.client else ("asides reply 1",)),
        str(microseconds(reply.time)),
        reply.model,
        reply.source,
        reply.agent,
        reply.conversation,
        reply.format,
        reply.text,
        body(reply),
    ]
    for thought in reply.thoughts:
        fields += (str(thought.index), str(thought.complete), repr(thought.seconds), thought.text)
    for field in fields:
        data = field.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return digest.hexdigest()


def body(reply: Reply) -> str:
    """What no column holds, as JSON in one fixed spelling; in ASCII, so that every store takes every character."""
    rest = {
        "asked": msgspec.to_builtins(reply.asked),
        "calls": msgspec.to_builtins(reply.calls),
        "notices": msgspec.to_builtins(reply.notices),
        "seconds": reply.seconds,
        "termination": reply.termination,
    }
    return json.dumps(rest, sort_keys=True, separators=(",", ":"))


class Body(msgspec.Struct, frozen=True):
    """What `body` wrote."""

    asked: tuple[Turn, ...] = ()
    calls: tuple[Call, ...] = ()
    notices: tuple[Notice, ...] = ()
    seconds: float | None = None
    termination: str = "end"


def read_body(text: str) -> Body:
    """The reverse of `body`."""
    # The standard library reads lone surrogates, which msgspec refuses.
    return msgspec.convert(json.loads(text), Body)


def microseconds(time: datetime) -> int:
    """A time as a whole number, counted from 1970 in UTC."""
    return (time - EPOCH) // MICROSECOND


def from_microseconds(number: int) -> datetime:
    """The reverse of `microseconds`."""
    return EPOCH + number * MICROSECOND


def label(text: str) -> str:
    """A short text of ours with nothing in it that a store refuses."""
    return readable(text) if exact(text) is not None else text


def exact(text: str) -> bytes | None:
    """The bytes of a text that databases cannot hold as text (a NUL, half a surrogate pair); None for all others."""
    if text.isascii():
        return text.encode("ascii") if "\0" in text else None
    data = text.encode("utf-8", "surrogatepass")
    if "\0" in text:
        return data
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data
    return None


def readable(text: str) -> str:
    """The text with U+FFFD for each character that databases cannot hold."""
    return "".join(
        "\ufffd" if character == "\0" or "\ud800" <= character <= "\udfff" else character for character in text
    )


def encode_line(record: Any) -> bytes:
    """A record as a line of JSON, without the newline, whatever is in its texts."""
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(record), separators=(",", ":")).encode("ascii")


def local(time: datetime) -> datetime:
    """A time as the clocks here show it; at the ends of the calendar, where there may be no such time, in UTC."""
    try:
        return time.astimezone()
    except (OverflowError, ValueError, OSError):
        return time


def _finite(seconds: float | None) -> float | None:
    return float(seconds) if seconds is not None and math.isfinite(seconds) else None
