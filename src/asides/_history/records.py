"""What is kept: a `Reply`, who kept it and when, what was asked; how it is written; and the hash that is its name.

A kept reply has one written shape, plain data, in two places: a line of an export holds all of it (`to_record`), and a
row of a store holds it as columns plus `body`, a JSON text for what no column has. Fields that came later are written
only where they say something. So what older versions wrote is read as it was, and keeps its id:

    {"id": "5b0c…", "time": "2026-11-01T12:00:00Z", "model": "qwen3", "source": "run", …, "text": "It is 4.",
     "thoughts": [{"index": 0, "text": "2+2", "complete": true, "seconds": 1.5}], "calls": [], "notices": [],
     "termination": "stop", "asked": [{"role": "user", "text": "2+2?", "calls": [], "call_id": ""}], "seconds": 2.0}

Raw output is not kept, so spans are not either. Knows no store.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, islice, repeat
from typing import Any, Literal, cast

import msgspec

from ..dialects._request import CallPiece, RequestTurn, Role, TextPiece
from ..errors import UsageError
from ..events import Notice, NoticeCode
from ..message import Message, Termination
from ..parts import Part, Text, Thinking, ToolCall
from ..reply._items import Usage
from ..reply._reply import Reply, Times

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
LABELS = ("source", "agent", "conversation", "client", "format")
"""The fields of a kept reply that are short texts of ours, each a column."""
THINKING_GAP = "\n\n"


class ThoughtRow(msgspec.Struct, frozen=True):
    """A thought as it is written: a `Thinking` part, where it stands, and how long it took."""

    index: int
    """Its place among the parts."""
    text: str
    complete: bool = True
    seconds: float | None = None


class KeptReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply of the history."""

    id: str = ""
    """A hash of all other fields, 32 hexadecimal digits; empty until `named`."""
    time: datetime
    """When the reply was whole; with a time zone."""
    reply: Reply
    """The reply itself. Its `model` is the name that the request wrote."""
    source: str = ""
    """What stored it: `filter`, `run`, `gateway` or `import`."""
    agent: str = ""
    """The name given with `--agent`, or found by an import; empty where there was none."""
    conversation: str = ""
    """An id that all replies of one conversation share; empty for a reply on its own."""
    client: str = ""
    """The fingerprint of the key that a gateway's client sent; empty where there was none."""
    format: str = ""
    """The name of the format by which the output was read."""
    asked: tuple[RequestTurn, ...] = ()
    """What led to this reply since the one before: the user's messages, the results of tools. Clean text only."""
    places: tuple[int, ...] = ()
    """The indexes of the thoughts among the parts. Only in replies of older versions, whose order of parts is
    guessed."""

    @classmethod
    def of(
        cls,
        reply: Reply | Message,
        *,
        time: datetime | None = None,
        asked: Sequence[RequestTurn] = (),
        model: str = "",
        source: str = "run",
        **labels: Any,
    ) -> KeptReply:
        """A reply to keep, without spans, which mean nothing without the raw text. `time` is now unless given.

        `model` is the name by which it was asked for, where that is not the one that the server gives.
        """
        # Or a thought could come back to a model: only clean text of other roles is stored as what was asked.
        if any(turn.role == "assistant" for turn in asked):
            raise UsageError("`asked` may hold no turn of the assistant: these are kept as its own replies")
        if isinstance(reply, Message):
            reply = Reply.of(reply)
        usage = reply.usage
        stored = msgspec.structs.replace(
            reply,
            parts=tuple(msgspec.structs.replace(part, span=(0, 0), tokens=None) for part in reply.parts),
            usage=None if usage is None else msgspec.structs.replace(usage, extra={}),
            model=model or reply.model,
        )
        when = (time or datetime.now(UTC)).astimezone(UTC)
        turns = tuple(text_turn(turn.role, turn.text, calls_of(turn), turn.call_id) for turn in asked)
        return cls(time=when, reply=stored, asked=turns, source=source, **labels)

    def named(self) -> KeptReply:
        """The same with its id, and with labels and durations that every store can hold."""
        times = self.reply.times
        first, answer, whole = map(_finite, (times.first_thought, times.first_answer, times.seconds))
        tidy = Times(first, answer, whole, _known([_finite(seconds) for seconds in times.thoughts]))
        labels = {name: label(getattr(self.reply, name)) for name in ("model", "termination", "reason", "id")}
        reply = msgspec.structs.replace(self.reply, times=tidy, **labels)
        kept = msgspec.structs.replace(self, reply=reply, **{name: label(getattr(self, name)) for name in LABELS})
        return msgspec.structs.replace(kept, id=identity(kept))

    @property
    def thoughts(self) -> list[ThoughtRow]:
        """The thoughts, each with its place among the parts and how long it took, where that is known."""
        found = [(index, part) for index, part in enumerate(self.reply.parts) if isinstance(part, Thinking)]
        seconds = chain(self.reply.times.thoughts, repeat(None))
        places = self.places or [index for index, _ in found]
        return [
            ThoughtRow(place, thought.text, thought.complete, took)
            for place, (_, thought), took in zip(places, found, seconds, strict=False)
        ]

    @property
    def size(self) -> int:
        """Roughly its number of characters."""
        reply = self.reply
        texts = [reply.text, reply.thinking, *(call.arguments + call.raw for call in reply.tool_calls)]
        return sum(map(len, texts)) + sum(len(turn.text) for turn in self.asked)

    def to_record(self) -> dict[str, Any]:
        """The reply as plain data, as an export writes it."""
        return {
            "id": self.id,
            "time": self.time,
            "model": self.reply.model,
            **{name: getattr(self, name) for name in LABELS},
            "text": self.reply.text,
            "thoughts": msgspec.to_builtins(self.thoughts),
            **_rest(self),
        }


def calls_of(turn: RequestTurn) -> list[ToolCall]:
    """The calls of a message."""
    return [ToolCall(piece.name, piece.arguments, piece.id) for piece in turn.pieces if isinstance(piece, CallPiece)]


def text_turn(role: str, text: str, calls: Sequence[ToolCall] = (), call_id: str = "") -> RequestTurn:
    """A message of a stored conversation: clean text and calls that may be run. A thought is never in it.

    Examples:
        >>> from asides.history import chat_message, text_turn
        >>> chat_message(text_turn("assistant", "It is 4."))
        {'role': 'assistant', 'content': 'It is 4.'}
    """
    pieces = [CallPiece(call.name, call.arguments, call.id) for call in calls if call.error is None]
    return RequestTurn(cast(Role, role), (*([TextPiece(text)] if text else []), *pieces), call_id)


def chat_message(turn: RequestTurn) -> dict[str, Any]:
    """The message in the shape of OpenAI's chat API.

    Examples:
        >>> from asides.history import chat_message, text_turn
        >>> chat_message(text_turn("user", "2+2?"))
        {'role': 'user', 'content': '2+2?'}
    """
    message: dict[str, Any] = {"role": turn.role, "content": turn.text}
    if calls := calls_of(turn):
        message["tool_calls"] = [call.to_dict() for call in calls]
    if turn.call_id:
        message["tool_call_id"] = turn.call_id
    return message


def identity(kept: KeptReply) -> str:
    """The hash of a reply's content. It is stored, so what goes into it never changes; a new way gets a new tag."""
    digest = hashlib.blake2b(digest_size=16)
    # The client is in it only where it is known, so that replies of before there was such a field keep their ids.
    fields = [
        *(("asides reply 2", kept.client) if kept.client else ("asides reply 1",)),
        str(microseconds(kept.time)),
        kept.reply.model,
        kept.source,
        kept.agent,
        kept.conversation,
        kept.format,
        kept.reply.text,
        body(kept),
    ]
    for thought in kept.thoughts:
        fields += (str(thought.index), str(thought.complete), repr(thought.seconds), thought.text)
    for field in fields:
        data = field.encode("utf-8", "surrogatepass")
        # With its length, so that moving a character from one field to the next changes the hash.
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return digest.hexdigest()


def body(kept: KeptReply) -> str:
    """What no column holds, as JSON in one fixed spelling; in ASCII, so that every store takes every character."""
    # Part of the id, so its spelling is fixed: another order of keys would be another reply.
    return json.dumps(_rest(kept), sort_keys=True, separators=(",", ":"))


def _rest(kept: KeptReply) -> dict[str, Any]:
    reply = kept.reply
    joined = THINKING_GAP.join(thought.text for thought in reply.thoughts)
    later = {
        # Fields that came after the first version: absent where they say nothing, so that older rows keep their text
        # and id.
        "order": _order(kept),
        "thinking": reply.thinking if reply.thinking != joined else None,
        "reason": reply.reason or None,
        "usage": None if reply.usage is None else msgspec.structs.asdict(reply.usage),
        "first_thought": reply.times.first_thought,
        "first_answer": reply.times.first_answer,
        "server_id": reply.id or None,
        "beyond": reply.beyond or None,
    }
    return {
        "asked": [
            {
                "role": turn.role,
                "text": turn.text,
                "calls": [call_record(call) for call in calls_of(turn)],
                "call_id": turn.call_id,
            }
            for turn in kept.asked
        ],
        "calls": [call_record(call) for call in reply.tool_calls],
        "notices": [{"code": odd.code, "message": odd.message, "offset": odd.offset} for odd in reply.notices],
        "seconds": reply.times.seconds,
        "termination": reply.termination,
        **{name: value for name, value in later.items() if value is not None},
    }


def call_record(call: ToolCall) -> dict[str, Any]:
    """A call as plain data."""
    later = {"error_message": call.error_message, "raw": call.raw}
    # An incomplete call has that for its error, but for one that is broken as well.
    incomplete = {} if call.complete or call.error == "incomplete" else {"complete": False}
    return {
        "name": call.name,
        "arguments": call.arguments,
        "id": call.id,
        "error": call.error,
        **{name: value for name, value in later.items() if value},
        **incomplete,
    }


def _order(kept: KeptReply) -> list[str | tuple[int, int]] | None:
    """The order of the parts, where it is not the usual one. A text is given by its range in the joined text."""
    reply = kept.reply
    # Rows from before the order was stored are read in the usual one; writing it only where it differs keeps their ids.
    if kept.places or _usual_order(reply.text, kept.thoughts, reply.tool_calls) == reply.parts:
        return None
    order: list[str | tuple[int, int]] = []
    at = 0
    for part in reply.parts:
        if isinstance(part, Text):
            # Between two texts stands whitespace at most, so that the next place where it fits is its own.
            start = reply.text.index(part.text, at)
            at = start + len(part.text)
            order.append((start, at))
        else:
            order.append("thinking" if isinstance(part, Thinking) else "call")
    return order


def _usual_order(text: str, thoughts: Sequence[ThoughtRow], calls: Sequence[ToolCall]) -> tuple[Part, ...]:
    """Thoughts in their places; before, between and behind them the whole text, then the calls."""
    others: list[Part] = [*([Text(text)] if text else []), *calls]
    parts: list[Part] = []
    for thought in thoughts:
        while others and len(parts) < thought.index:
            parts.append(others.pop(0))
        parts.append(Thinking(thought.text, thought.complete))
    return (*parts, *others)


# Reading it back.


class StoredTurn(msgspec.Struct):
    """A message of `asked` as it is written."""

    role: str
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


class StoredRest(msgspec.Struct, kw_only=True):
    """What `body` writes."""

    asked: tuple[StoredTurn, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    notices: tuple[dict[str, str | int], ...] = ()
    """Their codes are any text, so that old history outlives codes."""
    seconds: float | None = None
    termination: str = "end"
    order: tuple[Literal["thinking", "call"] | tuple[int, int], ...] | None = None
    thinking: str | None = None
    reason: str = ""
    usage: Usage | None = None
    first_thought: float | None = None
    first_answer: float | None = None
    server_id: str = ""
    beyond: int = 0

    @property
    def question(self) -> str:
        """The last message of the user; empty where tools were answered, or nothing was kept of it."""
        return next((turn.text for turn in reversed(self.asked) if turn.role == "user"), "")

    def turns(self) -> tuple[RequestTurn, ...]:
        """What was asked."""
        return tuple(text_turn(turn.role, turn.text, turn.calls, turn.call_id) for turn in self.asked)

    def restore(
        self, thoughts: Sequence[ThoughtRow], *, id: str, time: datetime, model: str, text: str, **labels: Any
    ) -> KeptReply:
        """The reply, with what stands in columns."""
        joined = THINKING_GAP.join(thought.text for thought in thoughts)
        calls = [
            msgspec.structs.replace(call, complete=call.complete and call.error != "incomplete") for call in self.calls
        ]
        parts = (
            _usual_order(text, thoughts, calls) if self.order is None else _ordered(self.order, text, thoughts, calls)
        )
        reply = Reply(
            parts=parts,
            thinking=joined if self.thinking is None else self.thinking,
            text=text,
            notices=tuple(
                Notice(cast(NoticeCode, odd["code"]), str(odd["message"]), int(odd["offset"])) for odd in self.notices
            ),
            termination=cast(Termination, self.termination),
            beyond=self.beyond,
            reason=self.reason,
            usage=self.usage,
            times=Times(
                self.first_thought, self.first_answer, self.seconds, _known([thought.seconds for thought in thoughts])
            ),
            model=model,
            id=self.server_id,
        )
        kept = KeptReply(id=id, time=time, reply=reply, asked=self.turns(), **labels)
        if [*kept.thoughts] == [*thoughts]:
            return kept
        return msgspec.structs.replace(kept, places=tuple(thought.index for thought in thoughts))


class StoredLine(StoredRest, kw_only=True):
    """What `to_record` writes."""

    time: datetime
    text: str = ""
    thoughts: tuple[ThoughtRow, ...] = ()
    model: str = ""
    source: str = ""
    agent: str = ""
    conversation: str = ""
    client: str = ""
    format: str = ""


def from_record(record: dict[str, Any]) -> KeptReply:
    """The reverse of `to_record`, without the id. Raises msgspec's errors where the record is none of ours."""
    line = msgspec.convert(record, StoredLine)
    labels = {name: getattr(line, name) for name in LABELS}
    time = line.time.astimezone(UTC)
    return line.restore(line.thoughts, id="", time=time, model=line.model, text=line.text, **labels)


def read_body(text: str) -> StoredRest:
    """What `body` wrote."""
    # The standard library reads lone surrogates, which msgspec refuses.
    return msgspec.convert(json.loads(text), StoredRest)


def _ordered(
    order: Sequence[str | tuple[int, int]],
    text: str,
    thoughts: Sequence[ThoughtRow],
    calls: Sequence[ToolCall],
) -> tuple[Part, ...]:
    waiting: dict[str, Iterator[Part]] = {
        "thinking": (Thinking(thought.text, thought.complete) for thought in thoughts),
        "call": iter(calls),
    }
    parts: list[Part] = []
    for place in order:
        parts += [Text(text[place[0] : place[1]])] if isinstance(place, tuple) else [*islice(waiting[place], 1)]
    return (*parts, *waiting["thinking"], *waiting["call"])


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


def original_text(text: str, data: bytes | None) -> str:
    """The text of the columns `text` and `exact`."""
    return text if data is None else bytes(data).decode("utf-8", "surrogatepass")


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


def _known(seconds: Sequence[float | None]) -> tuple[float | None, ...]:
    return tuple(seconds) if any(took is not None for took in seconds) else ()
