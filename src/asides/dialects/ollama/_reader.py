"""Replies of Ollama's own API, read: lines and whole bodies of either endpoint. Never raises.

A line is decoded into a typed record, which costs less than a dictionary; one whose fields are not all what they should
be is read field by field (`_line_of`). Arguments of calls stay JSON text, so that their characters are the model's.
A line with a field that is not known is decoded a second time, for what only this dialect may understand of it.
"""

from __future__ import annotations

from datetime import datetime
from itertools import zip_longest
from typing import Any

import msgspec

from ...reply._items import Begin, CallChunk, Chunk, Ended, Foreign, RawText, Reason, ThinkingChunk, Usage
from .._errors import UPSTREAM_ENDED, malformed
from .._fields import as_object, as_objects, as_reply, as_text, as_tokens, maybe_count, maybe_object, maybe_text
from .._framing import JsonLinesReader, read_odd_json, to_json
from .._thought_fields import unknown_parts
from ._errors import failed_of
from ._request import NAME

DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")

_REASONS: dict[str | None, Reason] = {"length": "length"}
_PLAIN_REASONS = (None, "", "stop", "length")


class _LineFunction(msgspec.Struct):
    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    index: Any = None


class _LineCall(msgspec.Struct):
    function: _LineFunction
    id: str | None = None
    type: Any = None


class _LineMessage(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: tuple[_LineCall, ...] | None = None
    role: Any = None


class _ReplyLine(msgspec.Struct):
    model: str = ""
    created_at: Any = ""
    message: _LineMessage | None = None
    response: str | None = None
    thinking: str | None = None
    tool_calls: tuple[_LineCall, ...] | None = None
    logprobs: Any = None
    done: bool = False
    done_reason: str | None = None
    context: list[int] | None = None
    # Whatever stands here, the text is good.
    prompt_eval_count: Any = None
    eval_count: Any = None
    total_duration: Any = None
    load_duration: Any = None
    prompt_eval_duration: Any = None
    eval_duration: Any = None
    error: Any = None


class _KnownFunction(_LineFunction, forbid_unknown_fields=True):
    """As the one above; so are the next three. These refuse a line with a field that is not named."""


class _KnownCall(_LineCall, forbid_unknown_fields=True):
    function: _KnownFunction


class _KnownMessage(_LineMessage, forbid_unknown_fields=True):
    tool_calls: tuple[_KnownCall, ...] | None = None


class _KnownLine(_ReplyLine, forbid_unknown_fields=True):
    message: _KnownMessage | None = None
    tool_calls: tuple[_KnownCall, ...] | None = None


_LINE, _MESSAGE = frozenset(_ReplyLine.__struct_fields__), frozenset(_LineMessage.__struct_fields__)
_CALL, _FUNCTION = frozenset(_LineCall.__struct_fields__), frozenset(_LineFunction.__struct_fields__)
_decode_known_line = msgspec.json.Decoder(_KnownLine).decode
_decode_line = msgspec.json.Decoder(_ReplyLine).decode
_TROUBLE = (msgspec.MsgspecError, UnicodeError, RecursionError)


def _line_of(body: dict[str, Any]) -> _ReplyLine:
    """A line that is decoded already, or whose fields are not all what they should be: those that are."""
    message = maybe_object(body.get("message"))
    return _ReplyLine(
        as_text(body.get("model")),
        body.get("created_at"),
        None if message is None else _message_of(message),
        maybe_text(body.get("response")),
        maybe_text(body.get("thinking")),
        _calls_of(body),
        body.get("logprobs"),
        body.get("done") is True,
        maybe_text(body.get("done_reason")),
        _context_of(body),
        *(body.get(name) for name in ("prompt_eval_count", "eval_count", *DURATIONS, "error")),
    )


def _message_of(message: dict[str, Any]) -> _LineMessage:
    return _LineMessage(maybe_text(message.get("content")), maybe_text(message.get("thinking")), _calls_of(message))


def _calls_of(holder: dict[str, Any]) -> tuple[_LineCall, ...]:
    """The calls; their arguments become JSON again."""
    calls = []
    for call in as_objects(holder.get("tool_calls")):
        function = as_object(call.get("function"))
        arguments = msgspec.Raw(to_json(function.get("arguments", {})))
        calls.append(_LineCall(_LineFunction(as_text(function.get("name")), arguments), maybe_text(call.get("id"))))
    return tuple(calls)


def _unknown_of(body: dict[str, Any], thinking: str) -> dict[str, dict[str, Any]]:
    """Fields of a line and of its message that only this dialect may understand."""
    message = as_object(body.get("message"))
    found = {"line": unknown_parts(body, _LINE, thinking), "message": unknown_parts(message, _MESSAGE, thinking)}
    return {place: fields for place, fields in found.items() if fields}


def _unknown_of_calls(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The same for each call."""
    message = maybe_object(body.get("message"))
    found = []
    for call in as_objects((body if message is None else message).get("tool_calls")):
        beside = unknown_parts(as_object(call.get("function")), _FUNCTION)
        found.append(unknown_parts(call, _CALL) | ({"function": beside} if beside else {}))
    return found


def _context_of(body: dict[str, Any]) -> list[int] | None:
    context = body.get("context")
    return context if isinstance(context, list) and all(type(each) is int for each in context) else None


class OllamaReader:
    """A streamed reply of an Ollama upstream, of either endpoint."""

    text_frame = None

    __slots__ = ("_begun", "_calls", "_over", "frames")

    def __init__(self, *, ids: bool = False) -> None:
        """`ids` makes no difference: this API has none."""
        self.frames: JsonLinesReader = JsonLinesReader()
        self._begun = False
        self._calls = 0
        self._over = False

    def feed(self, chunk: bytes) -> list[Chunk]:
        """Read bytes and return the chunks of the reply that are whole in them."""
        # Nearly every chunk is one whole line: no splitting.
        if self.frames.idle and chunk.find(b"\n") == len(chunk) - 1 > 0:
            return self._read(chunk)
        return [piece for line in self.frames.feed(chunk) for piece in self._read(line)]

    def read_frame(self, frame: dict[str, Any]) -> list[Chunk]:
        """Read a line that is decoded already."""
        if self._over:
            return []
        line = _line_of(frame)
        return self._fail(line.error) if line.error else self.chunks_of(line, frame)

    def finish(self) -> list[Chunk]:
        """The stream is over."""
        chunks = [piece for line in self.frames.finish() for piece in self._read(line)]
        if not self._over:
            self._over = True
            chunks.append(UPSTREAM_ENDED)
        return chunks

    def _read(self, data: bytes) -> list[Chunk]:
        if self._over:
            return []
        body: Any = None
        line: _ReplyLine
        try:
            line = _decode_known_line(data)
        except _TROUBLE:
            body = read_odd_json(data)
            if not isinstance(body, dict):
                return self._fail(malformed(data, "line"))
            line = _decoded_line(data) or _line_of(body)
        if line.error:
            return self._fail(line.error)
        return self.chunks_of(line, body)

    def chunks_of(self, line: _ReplyLine, body: dict[str, Any] | None = None) -> list[Chunk]:
        """What one line holds, in the order in which Ollama writes: thinking, text, calls.

        `body`: all of the line, where something in it may not be known.
        """
        chunks: list[Chunk] = []
        if not self._begun:
            self._begun = True
            chunks.append(Begin("", line.model, _seconds(line.created_at), NAME))
        message = line.message
        thinking = line.thinking if message is None else message.thinking
        text = line.response if message is None else message.content
        extras: list[dict[str, Any]] = []
        if body is not None:
            extras = _unknown_of_calls(body)
            if fields := _unknown_of(body, thinking or ""):
                chunks.append(Foreign(NAME, "fields", fields))
        if thinking:
            chunks.append(ThinkingChunk(0, thinking, "thinking"))
        if text or line.logprobs:
            chunks.append(RawText(0, text or "", as_tokens(line.logprobs) if line.logprobs else ()))
        calls = (line.tool_calls if message is None else message.tool_calls) or ()
        for call, extra in zip_longest(calls, extras[: len(calls)]):
            arguments = _arguments(bytes(call.function.arguments))
            chunks.append(CallChunk(0, self._calls, call.id or "", call.function.name, arguments, extra))
            self._calls += 1
        if line.done:
            self._over = True
            chunks += _read_end(line)
        return chunks

    def _fail(self, error: Any) -> list[Chunk]:
        self._over = True
        return [failed_of(error)]


def _decoded_line(data: bytes) -> _ReplyLine | None:
    """A line whatever else is in it; None where a field is not what it should be."""
    try:
        return _decode_line(data)
    except _TROUBLE:
        return None


def read_reply(body: Any) -> list[Chunk]:
    """A whole reply, of either endpoint."""
    body = as_reply(body)
    if body.get("error"):
        return [failed_of(body["error"])]
    line = _line_of(body)
    reader = OllamaReader()
    chunks = reader.chunks_of(line, body)
    return chunks if line.done else [*chunks, UPSTREAM_ENDED]


def _arguments(raw: bytes) -> str:
    """The upstream's own characters; some servers send them as a string."""
    if raw[:1] == b'"':
        return str(read_odd_json(raw))
    return raw.decode("utf-8", "replace") if raw != b"null" else "{}"


def _read_end(line: _ReplyLine) -> list[Chunk]:
    extra = {} if line.done_reason in _PLAIN_REASONS else {"done_reason": line.done_reason}
    chunks: list[Chunk] = []
    if line.context:
        chunks.append(Foreign(NAME, "context", {"context": line.context}))
    chunks.append(Ended(0, _REASONS.get(line.done_reason, "stop"), extra=extra))
    times = {name: value for name in DURATIONS if (value := maybe_count(getattr(line, name))) is not None}
    counts = [maybe_count(value) for value in (line.prompt_eval_count, line.eval_count)]
    if times or any(count is not None for count in counts):
        chunks.append(Usage(counts[0] or 0, counts[1] or 0, durations=times))
    return chunks


def _seconds(moment: Any) -> int:
    try:
        return int(datetime.fromisoformat(moment).timestamp())
    except (TypeError, ValueError, OverflowError):
        return 0
