"""Replies of Anthropic's Messages API, read: events and whole bodies. Never raises.

A stream opens a block, lets it grow and closes it; `AnthropicReader` remembers the open block only, because text,
thinking and arguments are passed on as they come. Blocks that no other API has (`server_tool_use`, redacted thinking)
are put together and passed on whole, as `Foreign`; so are fields of texts and calls that only this API has. Usage
comes in two halves, with the first and the last event.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from ...reply._items import Begin, CallChunk, Chunk, Ended, Foreign, Proof, RawText, Reason, ThinkingChunk, Usage
from .._errors import UPSTREAM_ENDED, malformed
from .._fields import as_count, as_json, as_object, as_objects, as_reply, as_text, maybe_count, maybe_object, maybe_text
from .._frame_templates import FrameTemplates
from .._framing import SseFrame, SseReader, read_odd_json
from .._request_fields import without
from .._whole_calls import to_object
from ._errors import failed_of
from ._request import NAME


class _BlockDelta(msgspec.Struct, gc=False):
    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    signature: str = ""
    stop_reason: str | None = None
    stop_sequence: str | None = None


class _MessageEvent(msgspec.Struct):
    type: str = ""
    index: int = 0
    delta: _BlockDelta | None = None
    message: dict[str, Any] | None = None
    content_block: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None


def _event_of(body: dict[str, Any]) -> _MessageEvent:
    """A frame whose fields are not all what they should be: those that are."""
    delta = maybe_object(body.get("delta"))
    return _MessageEvent(
        as_text(body.get("type")),
        as_count(body.get("index")),
        None if delta is None else _delta_of(delta),
        maybe_object(body.get("message")),
        maybe_object(body.get("content_block")),
        maybe_object(body.get("usage")),
    )


def _delta_of(delta: dict[str, Any]) -> _BlockDelta:
    return _BlockDelta(
        as_text(delta.get("type")),
        as_text(delta.get("text")),
        as_text(delta.get("thinking")),
        as_text(delta.get("partial_json")),
        as_text(delta.get("signature")),
        maybe_text(delta.get("stop_reason")),
        maybe_text(delta.get("stop_sequence")),
    )


_decode_event = msgspec.json.Decoder(_MessageEvent).decode
_TROUBLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
_REASONS: dict[str | None, Reason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_PLAIN_REASONS = (None, "end_turn", "max_tokens", "refusal", "stop_sequence", "tool_use")


_END_OF_TEXT = Foreign(NAME, "fields", {"type": "text"})
"""What follows has none of the fields of the text before it."""
_FIELDS = {"text_delta": "text", "thinking_delta": "thinking"}


class AnthropicReader:
    """A streamed reply of an upstream that speaks this dialect."""

    text_frame = None

    __slots__ = (
        "_block",
        "_delta",
        "_idle",
        "_inputs",
        "_over",
        "_passed",
        "_stop",
        "_templates",
        "_texts",
        "_usage",
        "frames",
    )

    def __init__(self, *, ids: bool = False) -> None:
        """`ids` makes no difference: this API has none."""
        self.frames: SseReader = SseReader()
        self._templates = FrameTemplates()
        self._idle = True
        self._block: dict[str, Any] = {}
        """The block that is open."""
        self._passed = False
        """Whether anything of it was passed on."""
        self._inputs: list[str] = []
        self._texts: list[str] = []
        """The text of the thought that is open: it goes back with its signature."""
        self._usage: dict[str, Any] = {}
        self._delta: dict[str, Any] = {}
        self._stop = False
        """Whether a reason for the end was given."""
        self._over = False

    def feed(self, chunk: bytes) -> list[Chunk]:
        """Read bytes and return the chunks of the reply that are whole in them."""
        if not self._idle or chunk[-2:] != b"\n\n" or b"\r" in chunk:
            chunks = [piece for frame in self.frames.feed(chunk) for piece in self._read(frame)]
            self._idle = self.frames.idle
            return chunks
        if (found := self._templates.find(chunk)) is not None:
            return self._more(*found)
        return [piece for block in chunk[:-2].split(b"\n\n") for piece in self._event(block + b"\n\n")]

    def _event(self, block: bytes) -> list[Chunk]:
        """A whole event. Most are like the one before but for their text."""
        if (found := self._templates.find(block)) is not None:
            return self._more(*found)
        return [piece for frame in self.frames.feed(block) for piece in self._read(frame, block)]

    def _more(self, kind: str, text: str) -> list[Chunk]:
        if self._over:
            return []
        return [RawText(0, text)] if kind == "text_delta" else self._thought(text, "")

    def read_frame(self, frame: dict[str, Any]) -> list[Chunk]:
        """Read an event that is decoded already."""
        if self._over:
            return []
        event = _event_of(frame)
        if event.type == "error" or "error" in frame:
            return self._fail(frame)
        return self._event_read(event, event.type, lambda: frame)

    def finish(self) -> list[Chunk]:
        """The stream is over."""
        chunks = [piece for frame in self.frames.finish() for piece in self._read(frame)]
        if not self._over:
            chunks += self._end() if self._stop else [UPSTREAM_ENDED]
        return chunks

    def _read(self, frame: SseFrame, block: bytes = b"") -> list[Chunk]:
        if self._over:
            return []
        try:
            event = _decode_event(frame.raw)
        except _TROUBLE:
            # The typed decoder refuses a frame for one odd field. Its text is good all the same, so it is read field by
            # field.
            body = _body(frame)
            if not body or frame.event == "error" or "error" in body:
                return self._odd(frame, body)
            event = _event_of(body)
        if event.type == "content_block_delta" and event.delta is not None:
            if block and (field := _FIELDS.get(event.delta.type)):
                self._templates.learn(block, frame.raw, ("delta", field), event.delta.type)
            return self._grow(event.index, event.delta, partial(_body, frame))
        return self._event_read(event, event.type or frame.event, partial(_body, frame))

    def _event_read(self, event: _MessageEvent, kind: str, body: Callable[[], dict[str, Any]]) -> list[Chunk]:
        """What an event says. `body` makes all of it."""
        match kind:
            case "content_block_delta" if event.delta is not None:
                return self._grow(event.index, event.delta, body)
            case "message_start":
                return self._begin(event.message or {})
            case "content_block_start":
                return self._start(event.index, event.content_block or {})
            case "content_block_stop":
                return self._close(event.index)
            case "message_delta":
                # The counts of the input came with `message_start`; later ones replace only what they name.
                self._usage |= event.usage or {}
                if event.delta is not None:
                    self._stop = self._stop or event.delta.stop_reason is not None
                    # Decoded a second time, whole: the record has only the fields that every stream has.
                    self._delta |= as_object(body().get("delta"))
            case "message_stop":
                return self._end()
            case "error":
                return self._fail(body())
        return []

    def _odd(self, frame: SseFrame, body: dict[str, Any]) -> list[Chunk]:
        """A frame that is not as it should be. An error in any shape is one; what is no object may have been text."""
        if body or frame.event == "error":
            return self._fail(body or {"message": frame.data})
        return self._fail({"message": malformed(frame.raw)})

    def _fail(self, body: dict[str, Any]) -> list[Chunk]:
        self._over = True
        return [failed_of(body)]

    def _begin(self, message: dict[str, Any]) -> list[Chunk]:
        begin = _read_begin(message)
        self._usage |= begin.extra.get("usage", {})
        return [begin]

    def _start(self, index: int, block: dict[str, Any]) -> list[Chunk]:
        self._block, self._passed, self._inputs = block, False, []
        self._texts.clear()
        match block.get("type"):
            case "text":
                return [*_own_fields(block), *_raw_text(block.get("text"))]
            case "thinking":
                return self._thought(as_text(block.get("thinking")), as_text(block.get("signature")), True)
            case "tool_use":
                # Anthropic opens a call with an empty input and lets it grow; a server may also send all of it here.
                self._passed = bool(block.get("input"))
                return [*_own_fields(block), _read_call(index, block, "" if not self._passed else None)]
        return []

    def _thought(self, text: str, signature: str, begins: bool = False) -> list[Chunk]:
        if text:
            self._passed = True
            self._texts.append(text)
        if signature:
            self._block = {**self._block, "signature": signature}
        return [ThinkingChunk(0, text, "thinking", signature=signature, begins=begins)]

    def _grow(self, index: int, delta: _BlockDelta, body: Callable[[], dict[str, Any]]) -> list[Chunk]:
        kind = delta.type
        if kind == "text_delta":
            return [RawText(0, delta.text)]
        if kind == "thinking_delta":
            return self._thought(delta.thinking, "")
        if kind == "signature_delta":
            return self._thought("", delta.signature)
        if kind == "input_json_delta":
            if self._block.get("type") != "tool_use":
                self._inputs.append(delta.partial_json)
            elif delta.partial_json:
                self._passed = True
                return [CallChunk(0, index, arguments=delta.partial_json)]
        elif self._block.get("type") == "text":
            return [Foreign(NAME, "delta", as_object(body().get("delta")))]
        return []

    def _close(self, index: int) -> list[Chunk]:
        block, self._block = self._block, {}
        match block.get("type"):
            case "tool_use" if not self._passed:
                # A function without parameters: nothing of its input ever came.
                return [CallChunk(0, index, arguments="{}")]
            case "thinking" if block.get("signature"):
                proof = _proof({**block, "thinking": "".join(self._texts)})
                # Of thinking whose text is omitted nothing else tells.
                return [proof] if self._passed else [_foreign(block), proof]
            case "redacted_thinking":
                return [_foreign(block), _proof(block)]
            case "text" if _own_fields(block):
                return [_END_OF_TEXT]
            case "tool_use" | "thinking" | "text" | None:
                return []
        if self._inputs:
            block = {**block, "input": to_object("".join(self._inputs)) or {}}
        return [_foreign(block)]

    def _end(self) -> list[Chunk]:
        self._over = True
        return _read_end(self._delta, self._usage)


def _body(frame: SseFrame) -> dict[str, Any]:
    """All that a frame says."""
    body = read_odd_json(frame.raw)
    return body if isinstance(body, dict) else {}


def read_reply(body: Any) -> list[Chunk]:
    """A whole reply."""
    body = as_reply(body)
    content = body.get("content")
    if body.get("type") == "error" or not isinstance(content, list):
        return [failed_of(body)]
    chunks: list[Chunk] = [_read_begin(body)]
    for index, block in enumerate(as_objects(content)):
        match block.get("type"):
            case "text":
                own = _own_fields(block)
                chunks += [*own, *_raw_text(block.get("text")), *([_END_OF_TEXT] if own else [])]
            case "thinking" if block.get("thinking"):
                text, signature = as_text(block["thinking"]), as_text(block.get("signature"))
                chunks.append(ThinkingChunk(0, text, "thinking", signature=signature, begins=True))
                chunks += [_proof(block)] if signature else []
            case "tool_use":
                chunks += [*_own_fields(block), _read_call(index, block, None)]
            case kind:
                chunks.append(_foreign(block))
                if kind == "redacted_thinking" or (kind == "thinking" and block.get("signature")):
                    chunks.append(_proof(block))
    return chunks + _read_end(without(body, "usage"), as_object(body.get("usage")))


def _read_begin(message: dict[str, Any]) -> Begin:
    usage = message.get("usage")
    extra: dict[str, Any] = {"usage": usage} if isinstance(usage, dict) else {}
    if isinstance(dropped := message.get("input_transformations"), list):
        extra["input_transformations"] = dropped
    return Begin(as_text(message.get("id")), as_text(message.get("model")), dialect=NAME, extra=extra)


def _read_call(index: int, block: dict[str, Any], arguments: str | None) -> CallChunk:
    if arguments is None:
        arguments = as_json(block.get("input") or {})
    return CallChunk(0, index, as_text(block.get("id")), as_text(block.get("name")), arguments)


def _read_end(delta: dict[str, Any], usage: dict[str, Any]) -> list[Chunk]:
    reason = delta.get("stop_reason")
    extra = {name: delta[name] for name in ("stop_details", "container") if delta.get(name) is not None}
    if reason not in _PLAIN_REASONS:
        extra["stop_reason"] = reason
    stop = delta.get("stop_sequence")
    ended = Ended(0, _REASONS.get(str(reason), "stop"), stop if isinstance(stop, str) else None, extra)
    return [ended, _read_usage(usage)] if usage else [ended]


def _read_usage(usage: dict[str, Any]) -> Usage:
    """Anthropic counts what was read from or written to a cache beside the input, not within."""
    details = as_object(usage.get("output_tokens_details"))
    cached = as_count(usage.get("cache_read_input_tokens"))
    return Usage(
        as_count(usage.get("input_tokens")) + cached + as_count(usage.get("cache_creation_input_tokens")),
        as_count(usage.get("output_tokens")),
        maybe_count(details.get("thinking_tokens")),
        details.get("estimated") is True,
        cached_tokens=cached,
        extra=usage,
    )


def _raw_text(text: Any) -> list[Chunk]:
    return [RawText(0, text)] if isinstance(text, str) and text else []


def _proof(block: dict[str, Any]) -> Proof:
    return Proof(0, NAME, block)


def _own_fields(block: dict[str, Any]) -> list[Chunk]:
    """The fields of a block that only this API understands, citations for example, for the block that begins here."""
    fields = without(block, "text", "input", "name")
    return [Foreign(NAME, "fields", fields)] if fields.keys() - {"type", "id"} else []


def _foreign(block: dict[str, Any]) -> Foreign:
    return Foreign(NAME, "content_block", block)
