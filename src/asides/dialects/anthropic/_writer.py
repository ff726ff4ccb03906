"""Replies of Anthropic's Messages API, written: blocks in the order of the parts, streamed and whole.

`_Blocks` turns the events of a choice into blocks; a sink makes events of them (`_BlockEvents`) or puts them together
(`_WholeBlocks`). The SDK raises on arguments that are no object, so a call is held until it is whole and valid
(`whole_calls`), with a ping now and then; one that never is becomes text. Thinking is signed when its block closes.

    event: content_block_delta
    data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"It is 4."}}
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from ...events import PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from ...message import OpenCalls
from ...parts import ToolCall
from ...reply._corrected import corrected
from ...reply._items import Begin, Ended, Failed, Foreign, ReplyEvent, ReplyItem, Usage
from .._errors import UPSTREAM_ENDED
from .._fields import as_count, as_text
from .._framing import sse, to_json
from .._one_choice import OneChoice
from .._request import Request
from .._request_fields import without
from .._thought_fields import THOUGHT_FIELDS, retyped_field
from .._whole_calls import arguments_or_text, to_object
from ._errors import write_error
from ._request import NAME, sign

PING = sse(b'{"type":"ping"}', "ping")
"""What a client gets while nothing can be written."""
PING_EVERY = 16
"""A call is held until it is whole; after every so many pieces of it there is a ping."""


class _WholeBlocks:
    """Blocks as they stand in a whole reply."""

    def __init__(self) -> None:
        self.blocks: list[dict[str, Any]] = []
        self._fields: dict[str, list[str]] = {}

    def start(self, index: int, block: dict[str, Any]) -> None:
        self.blocks.append(dict(block))
        self._fields = {}

    def delta(self, index: int, kind: str, field: str, text: str) -> None:
        self._fields.setdefault(field, []).append(text)

    def stop(self, index: int) -> None:
        for field, pieces in self._fields.items():
            text = "".join(pieces)
            if field == "partial_json":
                self.blocks[-1]["input"] = to_object(text)
            else:
                self.blocks[-1][field] = text

    def own_delta(self, index: int, delta: dict[str, Any]) -> None:
        """More of a block that only this API understands."""
        if delta.get("type") == "citations_delta":
            self.blocks[-1]["citations"] = [*(self.blocks[-1].get("citations") or ()), delta.get("citation")]

    def ping(self) -> None:
        """Nobody waits for a whole reply."""


class _BlockEvents(_WholeBlocks):
    """Blocks as events."""

    def __init__(self) -> None:
        super().__init__()
        self.out: list[bytes] = []
        self.same = (-1, "")
        """Block and kind of the last delta."""
        self.before = b""
        """How such a delta begins."""

    def start(self, index: int, block: dict[str, Any]) -> None:
        self._event("content_block_start", {"index": index, "content_block": block})

    def delta(self, index: int, kind: str, field: str, text: str) -> None:
        if (index, kind) != self.same:
            self.same = (index, kind)
            self.before = (
                "event: content_block_delta\ndata: "
                f'{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}","{field}":'
            ).encode()
        self.out.append(self.before + to_json(text) + b"}}\n\n")

    def own_delta(self, index: int, delta: dict[str, Any]) -> None:
        self._event("content_block_delta", {"index": index, "delta": delta})

    def stop(self, index: int) -> None:
        self._event("content_block_stop", {"index": index})

    def ping(self) -> None:
        self.out.append(PING)

    def _event(self, kind: str, fields: dict[str, Any]) -> None:
        self.out.append(sse(to_json({"type": kind, **fields}), kind))


class _Blocks:
    """From the parts of a choice to blocks, one after the other."""

    def __init__(self, request: Request, sink: _WholeBlocks) -> None:
        self._sink = sink
        self._show = request.thinking.show
        self._omitted = request.thinking.omitted
        self._index = -1
        self.open = ""
        """The type of the block that is open."""
        self.gap = ""
        self._apart = False
        """Whether a call that became text, a refusal, or text that turned out to be a thought came last."""
        self.retyped = 0
        """How many characters of text turned out to be a thought."""
        self._thinking = -1
        """The part that is thinking, while its block is open."""
        self._thoughts: list[str] = []
        self._signature = ""
        self._refusing = False
        """Whether a refusal came last."""
        self._calls = OpenCalls()
        self._pieces = 0
        self.called = False
        """Whether a call was written."""
        self._text_fields: dict[str, Any] = {}
        """What the upstream's block of text has besides, until it is written."""
        self._call_fields: dict[str, dict[str, Any]] = {}
        """The same of calls, by their ids."""

    def write_event(self, item: ReplyEvent) -> None:
        """Write what an event adds to a part."""
        event = item.event
        if isinstance(event, TextDelta):
            self._text(event.text)
        elif isinstance(event, ThinkingDelta):
            if self.open == "thinking":
                self._signature = item.signature or self._signature
                self._think(event.text)
        elif isinstance(event, ToolCallDelta):
            self._calls.add(event)
            self._pieces += 1
            if self._pieces % PING_EVERY == 0:
                self._sink.ping()
        elif isinstance(event, PartStart):
            self._start(event)
        elif isinstance(event, Retyped):
            # Words cannot be taken back: those of a thought stay, and those of an answer are written once more.
            if event.kind == "thinking":
                self.retyped, self._apart = item.characters, True
            else:
                self._text(item.raw)
        elif isinstance(event, PartEnd):
            if event.index == self._thinking:
                self.close()
            elif (call := self._calls.add(event)) is not None:
                if item.withheld:
                    for each in item.as_thought():
                        self.write_event(each)
                else:
                    self._call(call, item.written)

    def _start(self, event: PartStart) -> None:
        if event.kind == "text":
            self.gap = event.gap or ("\n\n" if self._apart else "")
            self._apart = self._refusing = False
        elif event.kind == "tool_call":
            # Nothing of the call is written before it is whole, and models write long ones: the first ping comes at
            # once.
            self._calls.add(event)
            self._pieces = 0
            self._sink.ping()
        elif self._show:
            self._block({"type": "thinking", "thinking": "", "signature": ""})
            self._thinking = event.index

    def _text(self, text: str) -> None:
        if self.open != "text":
            self._block({"type": "text", "text": "", **self._text_fields})
            self._text_fields = {}
        # Only inside a block: between two blocks a client sets the text apart by itself.
        elif self.gap:
            text = self.gap + text
        self.gap = ""
        self._sink.delta(self._index, "text_delta", "text", text)

    def refuse(self, text: str) -> None:
        """Write a refusal, which here is text like any other."""
        if not self._refusing:
            self.gap = "\n\n"
        self._text(text)
        self._refusing = self._apart = True

    def _think(self, text: str) -> None:
        self._thoughts.append(text)
        if text and not self._omitted:
            self._sink.delta(self._index, "thinking_delta", "thinking", text)

    def _call(self, call: ToolCall, written: str) -> None:
        arguments = arguments_or_text(call, written)
        if not isinstance(arguments, dict):
            if arguments:
                self.gap = "\n\n"
                self._text(arguments)
                self._apart = True
            return
        id = call.id or "toolu_" + secrets.token_hex(12)
        fields = self._call_fields.pop(call.id, {})
        self._block({"type": "tool_use", "id": id, "name": call.name, "input": {}, **fields})
        self._sink.delta(self._index, "input_json_delta", "partial_json", call.arguments)
        self.close()
        self.called = True

    def foreign(self, item: Foreign) -> None:
        """Write a block that only this dialect understands."""
        block = item.data
        if item.event == "fields":
            # What nobody knows may hold the thought.
            self._own_fields(without(block, "type", "id", *THOUGHT_FIELDS) if self._show else {}, block)
        elif item.event == "delta" and self.open == "text" and self._show:
            self._sink.own_delta(self._index, block)
        if item.event != "content_block":
            return
        if block.get("type") in ("thinking", "redacted_thinking") and not self._show:
            return
        if block.get("type") == "thinking":
            self._block({"type": "thinking", "thinking": "", "signature": ""})
            self._signature = as_text(block.get("signature"))
        else:
            self._block(block)
        self.close()

    def carry(self, sealed: str) -> None:
        """Sign the thought that is open; without one, write a block without text, as for a thought that is omitted."""
        if self.open != "thinking":
            self._block({"type": "thinking", "thinking": "", "signature": ""})
            self._signature = sealed
            self.close()
        self._signature = sealed if self.open else ""

    def _own_fields(self, fields: dict[str, Any], block: dict[str, Any]) -> None:
        if block.get("type") == "tool_use":
            self._call_fields[as_text(block.get("id"))] = fields
            return
        # What is said of one text is not said of that before it.
        if self.open == "text":
            self.close()
        self._text_fields = fields

    def _block(self, block: dict[str, Any]) -> None:
        self.close()
        self._index += 1
        self.open = str(block.get("type"))
        self.gap, self._apart, self._refusing = "", False, False
        self._sink.start(self._index, block)

    def close(self) -> None:
        """End the block that is open."""
        if not self.open:
            return
        if self.open == "thinking":
            # Clients want a signature before they send a thought back, and local models sign nothing. By its prefix one
            # of ours is recognised when the client returns the block without its text.
            signature = self._signature or sign("".join(self._thoughts))
            self._sink.delta(self._index, "signature_delta", "signature", signature)
            self._thoughts.clear()
            self._signature = ""
        self._sink.stop(self._index)
        self.open, self._thinking = "", -1


class _MessageReply(OneChoice[_Blocks]):
    """A reply, and what stands in its message besides its blocks."""

    def __init__(self, request: Request, sink: _WholeBlocks) -> None:
        super().__init__(request, NAME, _Blocks(request, sink))

    def message(self) -> dict[str, Any]:
        """The reply without its content."""
        begin = self.begin
        id = begin.id or secrets.token_hex(12)
        # Local models sign nothing, so no thought is bound to anything: none is refused, none left out for that.
        theirs = begin.extra.get("input_transformations", []) if self.same else []
        dropped: dict[str, Any] = {"input_transformations": theirs} if self.request.thinking.reports_dropped else {}
        return {
            "id": id if id.startswith("msg_") else "msg_" + id.removeprefix("chatcmpl-"),
            "type": "message",
            "role": "assistant",
            "model": begin.model or self.request.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _NOTHING | (begin.extra.get("usage", {}) if self.same else {}),
            **dropped,
        }

    def delta(self) -> dict[str, Any]:
        """Why it ended."""
        ended = self.ended or Ended(0)
        extra = ended.extra if self.same else {}
        # Servers also name their own end tokens there, which mean nothing to a client that did not set them.
        stop = ended.stop_sequence if ended.stop_sequence in self.request.stop or self.same else None
        reason = "end_turn"
        if ended.reason == "length":
            reason = "max_tokens"
        elif ended.reason == "content_filter":
            reason = "refusal"
        elif self.parts.called:
            reason = "tool_use"
        elif stop is not None:
            reason = "stop_sequence"
        return {"stop_reason": reason, "stop_sequence": stop if reason == "stop_sequence" else None, **extra} | (
            retyped_field(self.parts.retyped)
        )

    def cost(self) -> dict[str, Any]:
        """What it cost."""
        return _write_usage(self.usage, self.same)


_NOTHING: dict[str, Any] = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "cache_creation": None,
    "output_tokens": 0,
    "output_tokens_details": None,
    "server_tool_use": None,
    "service_tier": None,
}
"""What a reply has cost when it begins; clients in other languages want every field."""


def _write_usage(usage: Usage, own: bool) -> dict[str, Any]:
    extra = usage.extra if own else {}
    created = as_count(extra.get("cache_creation_input_tokens"))
    details: dict[str, Any] = {"thinking_tokens": usage.reasoning_tokens or 0}
    if usage.estimated:
        details["estimated"] = True
    return extra | {
        "input_tokens": max(usage.input_tokens - usage.cached_tokens - created, 0),
        "cache_creation_input_tokens": created,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": details,
    }


class AnthropicWriter:
    """A streamed reply to a client of this dialect."""

    delta = None
    written = None

    __slots__ = ("_begun", "_over", "_reply", "_sink")

    def __init__(self, request: Request) -> None:
        self._sink = _BlockEvents()
        self._reply = _MessageReply(request, self._sink)
        self._begun = False
        self._over = False

    def feed(self, item: ReplyItem) -> bytes:
        """The bytes that this item adds to the stream."""
        if self._over:
            return b""
        reply, sink, out = self._reply, self._sink, self._sink.out
        if type(item) is ReplyEvent and self._begun and item.choice == 0:
            event, blocks = item.event, reply.parts
            # The fast path: `sink.before` is how a text delta of the open block begins, set by the first one of it.
            if type(event) is TextDelta and blocks.open == "text" and not blocks.gap:
                return b"%b%b}}\n\n" % (sink.before, to_json(event.text))
            out.clear()
            blocks.write_event(item)
            return b"".join(out)
        out.clear()
        # An error before anything else stands alone: it is no message that began.
        if not self._begun and not isinstance(item, Failed | Usage):
            self._begun = True
            if isinstance(item, Begin):
                reply.take(item)
            out.append(_event("message_start", message=reply.message()))
        reply.take(item)
        if reply.failed is not None:
            self._over = True
            out.append(sse(to_json(write_error(reply.failed)), "error"))
        return b"".join(out)

    def finish(self) -> bytes:
        """The end of the stream. One that nobody ended has failed."""
        if self._over:
            return b""
        if self._reply.ended is None:
            return self.feed(UPSTREAM_ENDED)
        self._over = True
        # Only here, because usage may come behind the end of the choice, and this event carries both.
        end = _event("message_delta", delta=self._reply.delta(), usage=self._reply.cost())
        return end + _event("message_stop")


def _event(kind: str, **fields: Any) -> bytes:
    return sse(to_json({"type": kind, **fields}), kind)


def write_reply(items: Iterable[ReplyItem], request: Request) -> dict[str, Any]:
    """A whole reply, or the error that it ended with."""
    sink = _WholeBlocks()
    reply = _MessageReply(request, sink)
    if (failed := reply.take_all(corrected(items))) is not None:
        return write_error(failed)
    message = reply.message()
    return message | {"content": sink.blocks} | reply.delta() | {"usage": message["usage"] | reply.cost()}


def write_count(tokens: int) -> dict[str, Any]:
    """The reply of `/v1/messages/count_tokens`."""
    return {"input_tokens": tokens}
