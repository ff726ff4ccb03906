"""Replies of the Responses API, written: streamed and whole, from the same items.

`_Response` keeps the items that are open and those that are over, and sends an event for every change; a whole reply is
what the last event of a stream holds, so the two cannot differ. Every text that grows inside an item is a `_Channel`,
with the bytes of its delta events prepared; `growing` names the one that the next event most likely continues.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from typing import Any, Literal, get_args

from ...errors import UsageError
from ...events import Delta, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from ...message import within
from ...parts import Span
from ...reply._corrected import corrected
from ...reply._items import Begin, Ended, Failed, Foreign, Proof, ReplyEvent, ReplyItem, Usage
from .._custom_tools import input_of
from .._errors import UPSTREAM_ENDED
from .._fields import as_object
from .._framing import sse, to_json
from .._request import Request, TextPiece, ToolOrigin
from .._whole_calls import behind_arguments, to_object
from ..openai_chat._reader import refusal_of
from ._errors import CODES, write_error
from ._ids import PREFIXES, RESPONSE
from ._reader import CALLS, OWN
from ._request import NAME, seal, write_tool
from ._tools import in_namespace, write_choice

Reasoning = Literal["raw", "summary", "both", "drop"]
"""Where thinking is written: as `reasoning_text`, as a summary, as both, or nowhere. As a summary by default: every
client reads it, and those that read both places show a thought twice where it is in both."""

_OFFERED = ("custom", "namespace")
"""Tools that are no functions and that the model is offered all the same."""
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why a reply is not whole, by this dialect's names."""


class ResponsesWriter:
    """Writes a streamed reply."""

    delta = None

    def __init__(self, request: Request, *, reasoning: Reasoning = "summary") -> None:
        self._response = _Response(request, reasoning, _EventStream())
        self._out = self._response.stream.out
        self.written: dict[str, Any] | None = None

    def feed(self, item: ReplyItem) -> bytes:
        """Write what an item adds."""
        response = self._response
        if type(item) is ReplyEvent and not item.logprobs and item.choice == 0:
            event = item.event
            # The fast path: all but the text and the number of this event was written when the text began.
            if type(event) is response.growing and event.index == response.grown and event.text:
                channel, second = response.channel, response.second
                channel.texts.append(event.text)
                if second is None:
                    return response.stream.grown(channel.head, event.text, channel.tail)
                second.texts.append(event.text)
                return response.stream.grown_twice(channel, second, event.text)
        response.take(item)
        return self._taken()

    def finish(self) -> bytes:
        """The reply is over. One that nobody ended has failed."""
        self._response.finish()
        if self._response.failed is None:
            self.written = self._response.body
        return self._taken()

    def _taken(self) -> bytes:
        out = self._out
        if len(out) == 1:
            return out.pop()
        taken = b"".join(out)
        out.clear()
        return taken


def write_reply(items: Iterable[ReplyItem], request: Request, *, reasoning: Reasoning = "summary") -> dict[str, Any]:
    """A whole reply; an error's body where it failed."""
    response = _Response(request, reasoning, _NoStream())
    for item in corrected(items):
        response.take(item)
    response.finish()
    if response.failed is not None:
        return write_error(response.failed)
    return response.body


class _EventStream:
    """Where events go: numbered, and as bytes."""

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self._number = 0

    def event(self, kind: str, fields: dict[str, Any]) -> None:
        data = {"type": kind, **fields, "sequence_number": self._number}
        self.out.append(sse(to_json(data), kind))
        self._number += 1

    def delta(self, head: bytes, text: str, tail: bytes) -> None:
        """An event of which all but the text was written before."""
        self.out.append(self.grown(head, text, tail))

    def grown(self, head: bytes, text: str, tail: bytes) -> bytes:
        """The bytes of such an event."""
        number = self._number
        self._number = number + 1
        return b"%b%b%b%d}\n\n" % (head, to_json(text), tail, number)

    def grown_twice(self, first: _Channel, second: _Channel, text: str) -> bytes:
        """The bytes of two such events with the same text."""
        number, encoded = self._number, to_json(text)
        self._number = number + 2
        pieces = (first.head, encoded, first.tail, number, second.head, encoded, second.tail, number + 1)
        return b"%b%b%b%d}\n\n%b%b%b%d}\n\n" % pieces


class _NoStream(_EventStream):
    """For a whole reply: nobody listens to events."""

    def event(self, kind: str, fields: dict[str, Any]) -> None:
        pass

    def delta(self, head: bytes, text: str, tail: bytes) -> None:
        pass


class _Channel:
    """A text that grows inside an item: of a message, of thinking, of its summary, or arguments."""

    __slots__ = ("head", "kind", "place", "tail", "texts")

    def __init__(self, kind: str, place: dict[str, Any]) -> None:
        self.kind = kind
        self.place = place
        """Where it stands, as every event of it says."""
        self.texts: list[str] = []
        name = f"response.{kind}.delta"
        head = to_json({"type": name, **place, "delta": ""})
        self.head = b"event: %b\ndata: %b" % (name.encode(), head[:-3])
        self.tail = b',"logprobs":[],"sequence_number":' if kind == "output_text" else b',"sequence_number":'

    def text(self) -> str:
        return "".join(self.texts)


class _Open:
    """An item that is not yet over."""

    def __init__(self, index: int, body: dict[str, Any]) -> None:
        self.index = index
        """Its place in the output."""
        self.body = body
        self.channels: list[_Channel] = []
        self.held: list[str] | None = None
        """For a call of a custom tool or a search: its arguments so far, which are written once they are whole."""
        self.logprobs: list[dict[str, Any]] = []
        self.annotations: list[Any] = []

    def place(self, **fields: int) -> dict[str, Any]:
        return {"item_id": self.body["id"], "output_index": self.index, **fields}


class _Response:
    """A reply while it is written: the items that are open, and those that are over."""

    def __init__(self, request: Request, reasoning: Reasoning, stream: _EventStream) -> None:
        if reasoning not in get_args(Reasoning):
            raise UsageError(f"reasoning must be one of {', '.join(get_args(Reasoning))}, not {reasoning!r}")
        self._request = request
        self._raw = reasoning != "summary"
        self._summary = reasoning != "raw"
        self._show = request.thinking.show and reasoning != "drop"
        self.stream = stream
        self.body: dict[str, Any] = {}
        """The reply itself."""
        self.failed: Failed | None = None
        self._same = False
        self._ended: Ended | None = None
        self._usage: Usage | None = None
        self.growing: type[Delta] | None = None
        """The type of the event that would do no more than let the last text grow; of part `grown`, in `channel`."""
        self.grown = -1
        self.channel = _Channel("", {})
        self.second: _Channel | None = None
        """The other channel of thinking that is written raw and as a summary."""
        self._over = False
        self._output: list[dict[str, Any]] = []
        self._message: _Open | None = None
        self._thinking: _Open | None = None
        self._thought = -1
        """The part that is thinking."""
        self._retyped = -1
        """The text that turned out to be a thought."""
        self._corrections: dict[int, dict[str, Any] | None] = {}
        """By their places in the output: what items that have gone out turned out to be; None where it is said anew."""
        self._calls: dict[int, _Open] = {}
        self._origins = {tool.name: tool.origin for tool in request.tools if tool.origin is not None}
        self._announced: ToolOrigin | None = None
        """What an upstream of this dialect has called by the next call."""
        self._nameless: dict[int, list[str]] = {}
        self._gap = ""
        """What to write before the next text of the open message."""
        self._apart = False
        """Whether the text that stands for a call was written last."""
        self._refusing = False
        self._ids: dict[str, str] = {}
        """The upstream's id of the next item, by its type."""
        self._used: set[str] = set()
        self._token = ""
        """What the ids of all items have in common with that of the reply."""
        self._foreign: dict[str, int] = {}
        """Items that only this dialect understands: their place in the upstream's output, and in ours."""

    def take(self, item: ReplyItem) -> None:
        """Take in an item."""
        self.growing = None
        if self._over or (self._ended is not None and self._usage is not None):
            return
        if not self.body:
            self._begin(item if isinstance(item, Begin) else Begin())
        if isinstance(item, ReplyEvent):
            if item.choice == 0 and self._ended is None:
                self._write_event(item)
        elif isinstance(item, Ended):
            if item.choice == 0 and self._ended is None:
                self._close(item.reason == "stop")
                self._ended = item
        elif isinstance(item, Usage):
            self._usage = item
        elif isinstance(item, Failed):
            self._fail(item)
        elif isinstance(item, Proof):
            if item.sealed and item.choice == 0 and self._ended is None:
                self._carry(item.sealed)
        elif isinstance(item, Foreign) and item.dialect == NAME:
            self._take_foreign(item.event, item.data)
        elif isinstance(item, Foreign) and (refusal := refusal_of(item)):
            self._take_refusal(refusal)

    def finish(self) -> None:
        """Nothing more will come."""
        # Only now, though all of it may have come before: a client that reads the last event may go on from this reply
        # at once, and who keeps replies does so before `finish` is written.
        if not self._over and self._ended is not None:
            self._end(self._ended)
        elif not self._over:
            self.take(UPSTREAM_ENDED)

    # The reply as a whole.

    def _begin(self, begin: Begin) -> None:
        self._same = begin.dialect == NAME
        self.body = _head(begin, self._request) | (begin.extra if self._same else {})
        self._token = self.body["id"].removeprefix(RESPONSE)
        for kind in ("response.created", "response.in_progress"):
            self.stream.event(kind, {"response": self.body})

    def _end(self, ended: Ended) -> None:
        reason = INCOMPLETE.get(ended.reason)
        status = "completed" if reason is None else "incomplete"
        details = None if reason is None else {"incomplete_details": {"reason": reason}}
        self._last("response." + status, {"status": status, **(details or {}), **(ended.extra if self._same else {})})

    def _fail(self, failed: Failed) -> None:
        self._close(False)
        self.failed = failed
        error: dict[str, Any] = {"code": CODES.get(failed.status, "server_error"), "message": failed.message}
        theirs = failed.body.get("error") if failed.dialect == NAME and failed.body is not None else None
        if isinstance(theirs, dict):
            error |= theirs
        self._last("response.failed", {"status": "failed", "error": error})

    def _last(self, kind: str, fields: dict[str, Any]) -> None:
        self._over = True
        usage = None if self._usage is None else _write_usage(self._usage, self._same)
        self.body = self.body | fields | {"output": self._corrected_output(), "usage": usage}
        self.stream.event(kind, {"response": self.body})

    def _corrected_output(self) -> list[dict[str, Any]]:
        """The items as they turned out to be."""
        if not self._corrections:
            return self._output
        corrected = (self._corrections.get(place, item) for place, item in enumerate(self._output))
        return [item for item in corrected if item is not None]

    def _close(self, complete: bool) -> None:
        """End every item that is open."""
        self._close_message(complete)
        self._close_thinking(complete)
        for call in list(self._calls):
            self._close_call(call, complete)

    # Items.

    def _open(self, kind: str, fields: dict[str, Any]) -> _Open:
        id = self._ids.pop(kind, "")
        # The upstream's own id where it gave one, because a client may have to send it back; each for one item only,
        # since clients find an item by its id.
        if not id or id in self._used:
            id = f"{PREFIXES[kind]}{self._token}_{len(self._output)}"
        self._used.add(id)
        item = _Open(len(self._output), {"id": id, "type": kind, "status": "in_progress", **fields})
        self._output.append(item.body)
        self._apart = False
        self.stream.event("response.output_item.added", {"output_index": item.index, "item": item.body})
        return item

    def _done(self, item: _Open, complete: bool, fields: dict[str, Any]) -> None:
        body = item.body | {"status": "completed" if complete else "incomplete"} | fields
        self._output[item.index] = body
        self.stream.event("response.output_item.done", {"output_index": item.index, "item": body})

    def _write_event(self, item: ReplyEvent) -> None:
        event = item.event
        if isinstance(event, TextDelta):
            self._text(event.text, item)
            self._keep(event, self._message)
        elif isinstance(event, ThinkingDelta):
            if self._show and event.text:
                self._think(event.text)
                self._keep(event, self._thinking)
        elif isinstance(event, ToolCallDelta):
            if event.text:  # it may have come for fields of another API
                self._arguments(event)
                self._keep(event, self._calls.get(event.index))
        elif isinstance(event, PartStart):
            self._start(event)
        elif isinstance(event, PartEnd):
            self._stop(event, item)
        elif isinstance(event, Retyped):
            self._retype(event, item)

    def _stop(self, event: PartEnd, item: ReplyEvent) -> None:
        if event.index in self._calls:
            self._close_call(event.index, event.error is None, item.raw)
        elif event.index in self._nameless:
            arguments = self._nameless.pop(event.index)
            if item.withheld:
                for each in item.as_thought():
                    self._write_event(each)
            else:
                self._place(item.written or "".join(arguments))
        elif event.index == self._thought:
            self._close_thinking(event.complete)
        elif event.index == self._retyped:
            self._correct_message(event.span)

    def _start(self, event: PartStart) -> None:
        if event.kind == "text":
            self._gap = event.gap or ("\n\n" if self._apart else "")
            self._apart = False
        elif event.kind == "thinking":
            self._close_thinking(True)
            self._thought = event.index
        elif not event.name:
            self._nameless[event.index] = []
        else:
            self._close_message(True)
            self._calls[event.index] = self._open_call(event.name, event.id or "call_" + secrets.token_hex(12))

    def _open_call(self, name: str, call_id: str) -> _Open:
        """A call begins; under the name, and of the type, that the client gave its tool."""
        announced, self._announced = self._announced, None
        # An upstream of this dialect was offered the client's own tools, and calls them by their own names.
        if announced is not None and announced.name == name:
            origin = announced
        else:
            origin = self._origins.get(name) or ToolOrigin(name)
        if origin.kind == "tool_search":
            call = self._open("tool_search_call", {"call_id": call_id, "execution": "client", "arguments": {}})
            call.held = []
            return call
        fields = {"call_id": call_id, "name": origin.name, **in_namespace(origin)}
        if origin.kind == "custom":
            call = self._open("custom_tool_call", {**fields, "input": ""})
            call.held = []
        else:
            call = self._open("function_call", {**fields, "arguments": ""})
        channel = "function_call_arguments" if call.held is None else "custom_tool_call_input"
        call.channels.append(_Channel(channel, call.place()))
        return call

    def _keep(self, event: Delta, item: _Open | None) -> None:
        """The next event may well be of the same kind."""
        if item is not None and item.held is None:
            self.growing, self.grown = type(event), event.index
            # Of a message the last part grows, of thinking all there is.
            twice = isinstance(event, ThinkingDelta) and len(item.channels) == 2
            self.channel, self.second = item.channels if twice else (item.channels[-1], None)

    def _grow(self, channel: _Channel, text: str) -> None:
        channel.texts.append(text)
        self.stream.delta(channel.head, text, channel.tail)

    # Messages.

    def _text(self, text: str, item: ReplyEvent) -> None:
        message = self._message
        if message is None:
            message = self._message = self._open("message", {"role": "assistant", "content": []})
        elif self._gap:
            text = self._gap + text
        self._gap = ""
        kind = "refusal" if self._refusing else "output_text"
        if not message.channels or message.channels[-1].kind != kind:
            self._next_part(message, kind)
        channel = message.channels[-1]
        if not item.logprobs:
            self._grow(channel, text)
            return
        tokens = [_token(token) for token in item.logprobs]
        message.logprobs += tokens
        channel.texts.append(text)
        self.stream.event(f"response.{kind}.delta", {**channel.place, "delta": text, "logprobs": tokens})

    def _next_part(self, message: _Open, kind: str) -> None:
        if message.channels:
            self._close_part(message)
        channel = _Channel(kind, message.place(content_index=len(message.channels)))
        message.channels.append(channel)
        self.stream.event("response.content_part.added", {**channel.place, "part": _part(kind, "")})

    def _close_part(self, message: _Open) -> None:
        channel = message.channels[-1]
        text = channel.text()
        part = _part(channel.kind, text, message.annotations, message.logprobs)
        whole = {"refusal": text} if channel.kind == "refusal" else {"text": text, "logprobs": message.logprobs}
        message.body = message.body | {"content": [*message.body["content"], part]}
        message.annotations, message.logprobs = [], []
        self.stream.event(f"response.{channel.kind}.done", {**channel.place, **whole})
        self.stream.event("response.content_part.done", {**channel.place, "part": part})

    def _close_message(self, complete: bool) -> None:
        message, self._message = self._message, None
        if message is not None:
            self._close_part(message)
            self._done(message, complete, {})
        self._refusing = False

    def _place(self, text: str) -> None:
        """A call without a name is text in its place."""
        if text:
            self._gap = "\n\n"
            self._text(text, ReplyEvent(0, TextDelta(0, text)))
            self._apart = True

    # Thinking.

    def _think(self, text: str) -> None:
        if self._thinking is None:
            self._thinking = self._open_thinking()
        for channel in self._thinking.channels:
            self._grow(channel, text)

    def _open_thinking(self) -> _Open:
        self._close_message(True)
        item = self._open("reasoning", {"summary": [], **({"content": []} if self._raw else {})})
        if self._raw:
            channel = _Channel("reasoning_text", item.place(content_index=0))
            self.stream.event("response.content_part.added", {**channel.place, "part": _part("reasoning_text", "")})
            item.channels.append(channel)
        if self._summary:
            channel = _Channel("reasoning_summary_text", item.place(summary_index=0))
            self.stream.event(
                "response.reasoning_summary_part.added", {**channel.place, "part": _part("summary_text", "")}
            )
            item.channels.append(channel)
        return item

    def _retype(self, event: Retyped, item: ReplyEvent) -> None:
        """What has gone out stays an item of the stream. In the reply itself it is what it turned out to be."""
        if event.kind == "thinking":
            self._retyped = event.index
            return
        if self._thinking is not None:
            self._corrections[self._thinking.index] = None
            self._close_thinking(True)
        self._thought = -1
        self._text(item.raw, item)

    def _correct_message(self, span: Span) -> None:
        """The message that is open was a thought: it ends, and what follows is another."""
        message = self._message
        if message is None:
            return
        self._close_message(True)
        id = f"{PREFIXES['reasoning']}{self._token}_{message.index}"
        fields = self._thought_fields(within(message.channels[-1].text(), span))
        body = {"id": id, "type": "reasoning", "status": "completed", **fields}
        self._corrections[message.index] = body if self._show else None

    def _thought_fields(self, text: str) -> dict[str, Any]:
        """What an item of thinking says."""
        return {
            "summary": [_part("summary_text", text)] if self._summary else [],
            **({"content": [_part("reasoning_text", text)]} if self._raw else {}),
            # Only at its end: what stands here when an item is added is not whole, as clients of OpenAI know.
            "encrypted_content": seal(text),
        }

    def _close_thinking(self, complete: bool) -> None:
        item, self._thinking = self._thinking, None
        if item is None:
            return
        text = item.channels[0].text()
        fields = self._thought_fields(text)
        for channel in item.channels:
            place = channel.place
            self.stream.event(f"response.{channel.kind}.done", {**place, "text": text})
            if channel.kind == "reasoning_text":
                self.stream.event("response.content_part.done", {**place, "part": _part("reasoning_text", text)})
            else:
                cut = {} if complete else {"status": "incomplete"}
                done = {**place, "part": _part("summary_text", text), **cut}
                self.stream.event("response.reasoning_summary_part.done", done)
        if "encrypted_content" in item.body:
            del fields["encrypted_content"]  # the upstream's own
        self._done(item, complete, fields)

    def _carry(self, sealed: str) -> None:
        """What the client shall send back with a thought; without one that is open, an item without text."""
        if self._thinking is not None:
            self._thinking.body = self._thinking.body | {"encrypted_content": sealed}
            return
        self._close_message(True)
        self._done(self._open("reasoning", {"summary": []}), True, {"encrypted_content": sealed})

    # Calls.

    def _arguments(self, event: ToolCallDelta) -> None:
        call = self._calls.get(event.index)
        if call is not None and call.held is not None:
            call.held.append(event.text)
        elif call is not None:
            self._grow(call.channels[0], event.text)
        elif event.index in self._nameless:
            self._nameless[event.index].append(event.text)

    def _close_call(self, index: int, complete: bool, raw: str = "") -> None:
        """A call ends; `raw` is what the model wrote of one that may not be run."""
        call = self._calls.pop(index)
        if not complete and raw and call.held is not None:
            call.held.append(behind_arguments("".join(call.held), raw))
        elif not complete and raw and (more := behind_arguments(call.channels[0].text(), raw)):
            self._grow(call.channels[0], more)
        if not call.channels:  # a search: no event tells of it before it is whole
            arguments = "".join(call.held or ()) or "{}"
            value = to_object(arguments)
            self._done(call, complete, {"arguments": arguments if value is None else value})
            return
        channel = call.channels[0]
        if call.held:
            self._grow(channel, input_of("".join(call.held)))
        whole = {"arguments" if call.held is None else "input": channel.text()}
        self.stream.event(f"response.{channel.kind}.done", {**channel.place, **whole})
        self._done(call, complete, whole)

    # What only this dialect understands.

    def _take_foreign(self, kind: str, data: dict[str, Any]) -> None:
        item, place = data.get("item"), data.get("output_index")
        if kind == "refusal":
            self._refusing = True
        elif kind == "response.output_item.added" and isinstance(item, dict):
            if item.get("type") in OWN:
                self._ids[item["type"]] = item["id"]
                if item["type"] in CALLS:
                    self._announced = ToolOrigin(item["name"], item["namespace"], CALLS[item["type"]])
            else:
                self._foreign[str(place)] = self._add_foreign(item)
        elif kind == "response.output_item.done" and isinstance(item, dict):
            self._end_foreign(str(place), item)
        elif kind == "response.output_text.annotation.added":
            self._annotate(data)
        elif place is None and "response" not in data:
            self.stream.event(kind, _without(data, "type", "sequence_number"))
        elif str(place) in self._foreign:
            ours = {"output_index": self._foreign[str(place)]}
            self.stream.event(kind, _without(data, "type", "sequence_number") | ours)

    def _take_refusal(self, text: str) -> None:
        """The one thing that chat completions say as we do, and no other dialect."""
        if self._ended is None:
            self._refusing = True
            self._text(text, ReplyEvent(0, TextDelta(0, text)))

    def _add_foreign(self, item: dict[str, Any]) -> int:
        self._close_message(True)
        self._close_thinking(True)
        self._output.append(item)
        index = len(self._output) - 1
        self.stream.event("response.output_item.added", {"output_index": index, "item": item})
        return index

    def _end_foreign(self, place: str, item: dict[str, Any]) -> None:
        if item.get("type") == "reasoning":
            if not self._show:
                return
            if self._thinking is not None and self._thinking.body["id"] == item.get("id"):
                self._thinking.body = self._thinking.body | {"encrypted_content": item.get("encrypted_content")}
                return
            if str(item.get("id")) in self._used:
                return
        index = self._foreign.pop(place, None)
        if index is None:
            index = self._add_foreign(item)
        self._output[index] = item
        self.stream.event("response.output_item.done", {"output_index": index, "item": item})

    def _annotate(self, data: dict[str, Any]) -> None:
        if self._message is not None and self._message.channels:
            self._message.annotations.append(data.get("annotation"))
            event = _without(data, "type", "sequence_number") | self._message.channels[-1].place
            self.stream.event("response.output_text.annotation.added", event)


def _part(
    kind: str, text: str, annotations: list[Any] | None = None, logprobs: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """A part of an item's content."""
    fields = {"annotations": annotations or [], "logprobs": logprobs or []} if kind == "output_text" else {}
    return {"type": kind, "refusal" if kind == "refusal" else "text": text, **fields}


def _token(token: dict[str, Any]) -> dict[str, Any]:
    """A log probability with the fields that this dialect wants."""
    return {"bytes": list(str(token.get("token")).encode("utf-8", "surrogatepass")), "top_logprobs": []} | {
        name: value for name, value in token.items() if value is not None
    }


def _without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names}


def _head(begin: Begin, request: Request) -> dict[str, Any]:
    """The reply before any of its parts."""
    first = request.turns[0] if request.turns and request.turns[0].role == "system" else None
    format = request.response_format
    if format is not None and isinstance(format.get("json_schema"), dict):
        format = {"type": "json_schema", **format["json_schema"]}
    return {
        # Ours, unless the upstream speaks this API: others count from 1, or write the same id for every reply.
        "id": (begin.id if begin.dialect == NAME else "") or RESPONSE + secrets.token_hex(16),
        "object": "response",
        "created_at": begin.created or int(time.time()),
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None
        if first is None
        else "".join(piece.text for piece in first.pieces if isinstance(piece, TextPiece)),
        "max_output_tokens": request.max_tokens,
        "metadata": request.extra.get("metadata") or {},
        "model": begin.model or request.model,
        "output": [],
        "parallel_tool_calls": request.parallel_calls is not False,
        "previous_response_id": None,
        "reasoning": {
            "context": "current_turn" if request.thinking.keep == "current_turn" else "all_turns",
            "effort": request.thinking.effort,
            "mode": "standard",
            "summary": request.thinking.summary,
        },
        "store": False,
        "temperature": request.sampling.get("temperature"),
        "text": {"format": format or {"type": "text"}},
        "tool_choice": write_choice(request.tool_choice, request.tools),
        "tools": [write_tool(tool) for tool in request.tools if tool.origin is None]
        + [tool for tool in request.other_tools if tool.get("type") in _OFFERED or tool.get("execution") == "client"],
        "top_p": request.sampling.get("top_p"),
        "truncation": "disabled",
        "usage": None,
        "user": request.user,
        **request.echo,
    }


def _write_usage(usage: Usage, same: bool) -> dict[str, Any]:
    """What the reply cost. Every number is there: some clients refuse a reply without one."""
    extra = usage.extra if same else {}
    given = {"cache_write_tokens": 0, **as_object(extra.get("input_tokens_details"))}
    given["cached_tokens"] = usage.cached_tokens
    output = {**as_object(extra.get("output_tokens_details")), "reasoning_tokens": usage.reasoning_tokens or 0}
    if usage.estimated:
        output["estimated"] = True
    return {
        "total_tokens": usage.input_tokens + usage.output_tokens,
        **extra,
        "input_tokens": usage.input_tokens,
        "input_tokens_details": given,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": output,
    }
