"""Replies of the Responses API, read: frames and whole bodies of any server that speaks something like it.

Never raises. Servers differ in what they number and which events they leave out: items are known by their place or by
their id, and what no delta has told is taken from the event or the item that ends it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...reply.items import Begin, CallChunk, Chunk, Ended, Failed, Foreign, RawText, Reason, ThinkingChunk, Usage
from ..errors import UPSTREAM_ENDED, malformed
from ..fields import as_count, as_moment, as_object, as_objects, as_reply, as_text, as_tokens, maybe_count
from ..framing import SseReader, read_odd_json
from .errors import failed_of
from .request import NAME, reasoning_text, unseal

OWN = ("message", "reasoning", "function_call")
"""The items that become parts."""
_RESPONSE = frozenset(
    {"id", "object", "created_at", "status", "model", "output", "usage", "error", "incomplete_details", "output_text"}
)
_REASONS: dict[str, Reason] = {"max_output_tokens": "length", "content_filter": "content_filter"}
_SILENT = frozenset(
    {
        "response.queued",
        "response.in_progress",
        "response.content_part.added",
        "response.content_part.done",
        "response.reasoning_part.added",
        "response.reasoning_part.done",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
    }
)
"""Events that say nothing which others do not say too."""


class _ResponsesEvent(msgspec.Struct):
    """The fields of a frame that are read. Anything may stand in them."""

    type: Any = ""
    delta: Any = None
    output_index: Any = None
    item_id: Any = None
    content_index: Any = None
    summary_index: Any = None
    text: Any = None
    refusal: Any = None
    arguments: Any = None
    logprobs: Any = None
    item: Any = None
    response: Any = None
    error: Any = None


_decode_event = msgspec.json.Decoder(_ResponsesEvent).decode
_decode = msgspec.json.decode
_TROUBLE = (msgspec.MsgspecError, UnicodeError, RecursionError)


class _Item:
    """An item while it is read."""

    __slots__ = ("closed", "field", "id", "kind", "number", "part", "refused", "told")

    def __init__(self, kind: str, number: int, id: str) -> None:
        self.kind = kind
        self.number = number
        """Its place among all items that were seen."""
        self.id = id
        self.told = False
        """Whether anything of it was told."""
        self.closed = False
        self.field = ""
        """For reasoning: whether its text or its summary is told; never both."""
        self.part = 0
        self.refused = False


class ResponsesReader:
    """Reads a streamed reply from bytes cut anywhere."""

    text_frame = None

    def __init__(self) -> None:
        self.frames: SseReader = SseReader()
        self._items = _Items()
        self._begun: Begin | None = None
        self._over = False

    def feed(self, chunk: bytes) -> list[Chunk]:
        """Read bytes and return what they tell."""
        pieces: list[Chunk] = []
        end = chunk.find(b"\n")
        if (  # most chunks are one event
            chunk.startswith(b"data: {", end + 1)
            and chunk.find(b"\n", end + 7) == len(chunk) - 2
            and chunk.startswith(b"event: ")
            and chunk.endswith(b"\n\n")
            and b"\r" not in chunk
            and self.frames.idle
        ):
            self._frame(chunk[end + 7 : -2], chunk[7:end], pieces)
            return pieces
        for frame in self.frames.feed(chunk):
            self._frame(frame.raw, frame.event.encode(), pieces)
        return pieces

    def finish(self) -> list[Chunk]:
        """The stream is over. If nothing said so before, that is a failure."""
        pieces: list[Chunk] = []
        for frame in self.frames.finish():
            self._frame(frame.raw, frame.event.encode(), pieces)
        if not self._over:
            self._over = True
            pieces.append(UPSTREAM_ENDED)
        return pieces

    def _frame(self, data: bytes, name: bytes, pieces: list[Chunk]) -> None:
        if self._over:
            return
        if data[:1] != b"{":
            if data.startswith(b"[DONE]"):
                self._over = True
                pieces.append(Ended(0))
            return  # keep-alive junk
        try:
            event = _decode_event(data)
        except _TROUBLE:
            repaired = _repaired(data)
            if repaired is None:
                self._over = True
                pieces.append(Failed(malformed(data), code="malformed_frame", dialect=NAME))
                return
            event = repaired
        kind = event.type or name.decode("utf-8", "replace")
        if kind == "response.output_text.delta":  # by far the most frames
            if type(event.delta) is str and event.delta:
                self._items.words(event, event.delta, pieces)
        elif kind == "response.reasoning_text.delta":
            self._items.thought(event, event.content_index, "reasoning_text", event.delta, pieces)
        elif kind == "response.reasoning_summary_text.delta":
            self._items.thought(event, event.summary_index, "summary_text", event.delta, pieces)
        elif kind == "response.function_call_arguments.delta":
            self._items.arguments(event, event.delta, pieces)
        elif not self._items.over(event, kind, pieces):
            self._rare(event, str(kind), data, pieces)

    def _rare(self, event: _ResponsesEvent, kind: str, data: bytes, pieces: list[Chunk]) -> None:
        items = self._items
        match kind:
            case "response.created":
                self._begin(as_object(event.response), pieces)
            case "response.output_item.added" if isinstance(event.item, dict):
                if not items.add(event.item, event.output_index, pieces):
                    pieces.append(Foreign(NAME, kind, _body(data)))
            case "response.output_item.done" if isinstance(event.item, dict):
                if not items.done(event.item, event.output_index, pieces):
                    pieces.append(Foreign(NAME, kind, _body(data)))
            case "response.refusal.delta":
                items.refuse(event, event.delta, pieces)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._end(as_object(event.response), kind.removeprefix("response."), pieces)
            case "error":
                self._fail(_body(data), pieces)
            case _ if event.error:
                self._fail(_body(data), pieces)
            case _ if kind not in _SILENT:
                pieces.append(Foreign(NAME, kind, _body(data)))

    def _begin(self, response: dict[str, Any], pieces: list[Chunk]) -> None:
        if self._begun is None:
            self._begun = read_begin(response)
            pieces.append(self._begun)

    def _end(self, response: dict[str, Any], status: str, pieces: list[Chunk]) -> None:
        self._over = True
        self._begin(response, pieces)
        if not self._items.seen:
            self._items.whole(response.get("output"), pieces)
        known = self._begun.extra if self._begun is not None else {}
        read_end(response, status, known, pieces)

    def _fail(self, body: dict[str, Any], pieces: list[Chunk]) -> None:
        self._over = True
        error = body.get("error")
        pieces.append(failed_of(body if isinstance(error, dict | str) and error else {"error": _without(body, "type")}))


def _repaired(data: bytes) -> _ResponsesEvent | None:
    """A frame with faults that can be forgiven."""
    try:
        return msgspec.convert(read_odd_json(data), _ResponsesEvent)
    except _TROUBLE:
        return None


def _body(data: bytes) -> dict[str, Any]:
    """All that a frame says."""
    try:
        return as_object(_decode(data))
    except _TROUBLE:  # in a field that was passed over
        return as_object(read_odd_json(data))


class _Items:
    """The items of a reply, in the order in which they come."""

    def __init__(self) -> None:
        self._by_index: dict[int, _Item] = {}
        self._by_id: dict[str, _Item] = {}
        self._latest: tuple[Any, Any, _Item | None] = (None, None, None)
        """Where the last event stood, and its item: the next one is mostly of the same."""
        self._items: list[_Item] = []
        self._speaking: _Item | None = None
        """The item whose message was told last, with nothing after it."""

    @property
    def seen(self) -> bool:
        """Whether there were any."""
        return bool(self._items)

    def _new(self, kind: str, index: Any, id: Any) -> _Item:
        self._latest = (None, None, None)
        item = _Item(kind, len(self._items), as_text(id))
        self._items.append(item)
        if isinstance(index, int):
            self._by_index[index] = item
        if item.id:
            self._by_id[item.id] = item
        return item

    def _find(self, kind: str, index: Any, id: Any) -> _Item | None:
        """The item of an event: by its place, else by its id; without either it is the last."""
        item = None
        if type(index) is int:
            item = self._by_index.get(index)
        if item is None and type(id) is str:
            item = self._by_id.get(id)
        if item is None and index is None and id is None and self._items and not self._items[-1].closed:
            item = self._items[-1]
        return item if item is not None and item.kind == kind else None

    def _of(self, event: _ResponsesEvent, kind: str) -> _Item:
        index, id, item = self._latest
        if item is not None and item.kind == kind and event.output_index == index and event.item_id == id:
            return item
        item = self._found(event, kind)
        self._latest = event.output_index, event.item_id, item
        return item

    def _found(self, event: _ResponsesEvent, kind: str) -> _Item:
        item = self._find(kind, event.output_index, event.item_id)
        return self._new(kind, event.output_index, event.item_id) if item is None else item

    def add(self, body: dict[str, Any], index: Any, pieces: list[Chunk]) -> bool:
        """An item begins; False if it is none of ours."""
        kind = body.get("type")
        item = self._new(str(kind), index, body.get("id"))
        if kind not in OWN:
            self._speaking = None
            return False
        if kind == "function_call":
            self._call(item, body, pieces)
        return True

    def done(self, body: dict[str, Any], index: Any, pieces: list[Chunk]) -> bool:
        """An item ends; False if it is none of ours."""
        kind, id = str(body.get("type")), body.get("id")
        item = self._find(kind, index, id)
        if item is None:  # some servers count, or name, an item otherwise when it ends
            item = next((each for each in self._items if each.kind == kind and not each.closed), None)
        if item is None:
            item = self._new(kind, index, id)
            if kind == "function_call":
                self._call(item, body, pieces)
        item.closed = True
        self._latest = (None, None, None)
        if kind == "message" and not item.told:
            self._content(item, body.get("content"), pieces)
        elif kind == "function_call":
            self._rest_of_call(item, body.get("arguments"), pieces)
        elif kind == "reasoning":
            self._reasoning(item, body, pieces)
        return kind in OWN

    def whole(self, output: Any, pieces: list[Chunk]) -> None:
        """Items that come all at once."""
        for index, body in enumerate(output if isinstance(output, list) else ()):
            if isinstance(body, dict) and not self.done(body, index, pieces):
                self._speaking = None
                pieces.append(Foreign(NAME, "response.output_item.done", {"output_index": index, "item": body}))

    def over(self, event: _ResponsesEvent, kind: Any, pieces: list[Chunk]) -> bool:
        """A text or arguments are over, and count if no delta told them; False for any other event."""
        match kind:
            case "response.output_text.done":
                if isinstance(event.text, str) and event.text and not self._of(event, "message").told:
                    self.words(event, event.text, pieces)
            case "response.refusal.done":
                if not self._of(event, "message").refused:
                    self.refuse(event, event.refusal, pieces)
            case "response.reasoning_text.done":
                if not self._of(event, "reasoning").told:
                    self.thought(event, event.content_index, "reasoning_text", event.text, pieces)
            case "response.reasoning_summary_text.done":
                if not self._of(event, "reasoning").told:
                    self.thought(event, event.summary_index, "summary_text", event.text, pieces)
            case "response.function_call_arguments.done":
                self._rest_of_call(self._of(event, "function_call"), event.arguments, pieces)
            case _:
                return False
        return True

    # Messages.

    def words(self, event: _ResponsesEvent, text: str, pieces: list[Chunk]) -> None:
        """More of a message."""
        item = self._of(event, "message")
        tokens = as_tokens(event.logprobs) if event.logprobs else ()
        if not item.told or item is not self._speaking:
            self._speak(item, pieces)
        pieces.append(RawText(0, text, tokens))

    def _speak(self, item: _Item, pieces: list[Chunk]) -> None:
        if self._speaking is not None and self._speaking is not item:
            pieces.append(RawText(0, "\n\n"))  # two messages with nothing between them are still two
        if not item.told:
            item.told = True
            _announce(item, pieces)
        self._speaking = item

    def refuse(self, event: _ResponsesEvent, text: Any, pieces: list[Chunk]) -> None:
        """More of a refusal: words for every client, marked for those of this dialect."""
        item = self._of(event, "message")
        if isinstance(text, str) and text:
            self._refuse(item, text, pieces)

    def _refuse(self, item: _Item, text: str, pieces: list[Chunk]) -> None:
        self._speak(item, pieces)
        if not item.refused:
            item.refused = True
            pieces.append(Foreign(NAME, "refusal", {}))
        pieces.append(RawText(0, text))

    def _content(self, item: _Item, content: Any, pieces: list[Chunk]) -> None:
        for part in as_objects(content):
            text, refusal = part.get("text"), part.get("refusal")
            if isinstance(text, str) and text:
                self._speak(item, pieces)
                pieces.append(RawText(0, text, as_tokens(part.get("logprobs"))))
            elif isinstance(refusal, str) and refusal:
                self._refuse(item, refusal, pieces)
            annotations = part.get("annotations")
            for number, annotation in enumerate(annotations if isinstance(annotations, list) else ()):
                data = {"annotation": annotation, "annotation_index": number}
                pieces.append(Foreign(NAME, "response.output_text.annotation.added", data))

    # Reasoning.

    def thought(self, event: _ResponsesEvent, part: Any, field: str, text: Any, pieces: list[Chunk]) -> None:
        """More thinking, from the text or from the summary."""
        item = self._of(event, "reasoning")
        if type(text) is str and text:
            self._think(item, part if type(part) is int else 0, field, text, pieces)

    def _think(self, item: _Item, part: int, field: str, text: str, pieces: list[Chunk]) -> None:
        item.field = item.field or field
        if item.field != field:
            return  # the same again, in other words
        begins = not item.told
        if begins:
            item.told = True
            item.part = part
            self._speaking = None
            _announce(item, pieces)
        elif part != item.part:
            item.part = part
            text = "\n\n" + text
        pieces.append(ThinkingChunk(0, text, begins=begins))

    def _reasoning(self, item: _Item, body: dict[str, Any], pieces: list[Chunk]) -> None:
        sealed = body.get("encrypted_content")
        plain = unseal(sealed)
        text = reasoning_text(body)
        if not item.told and (plain or text):
            field = "reasoning_text" if body.get("content") or not text else "summary_text"
            self._think(item, 0, field, plain or text, pieces)
        if item.told and item is self._items[-1]:
            # Ollama puts the thinking itself into `encrypted_content`, and wants it back there.
            pieces.append(ThinkingChunk(0, "", "encrypted_content" if text and sealed == text else item.field))
        if isinstance(sealed, str) and sealed and sealed != text and plain is None:
            pieces.append(Foreign(NAME, "response.output_item.done", {"item": body}))

    # Calls.

    def _call(self, item: _Item, body: dict[str, Any], pieces: list[Chunk]) -> None:
        id, name = body.get("call_id") or item.id, body.get("name")
        self._speaking = None
        _announce(item, pieces)
        pieces.append(CallChunk(0, item.number, as_text(id), as_text(name)))
        arguments = body.get("arguments")
        if isinstance(arguments, str) and arguments:
            item.told = True
            pieces.append(CallChunk(0, item.number, arguments=arguments))

    def arguments(self, event: _ResponsesEvent, text: Any, pieces: list[Chunk]) -> None:
        """More of a call's arguments."""
        item = self._of(event, "function_call")
        if type(text) is str and text:
            item.told = True
            pieces.append(CallChunk(0, item.number, arguments=text))

    def _rest_of_call(self, item: _Item, text: Any, pieces: list[Chunk]) -> None:
        if isinstance(text, str) and text and not item.told:
            item.told = True
            pieces.append(CallChunk(0, item.number, arguments=text))


def _announce(item: _Item, pieces: list[Chunk]) -> None:
    """The id that the upstream gave an item: a client of this dialect may have to send it back."""
    if item.id:
        data = {"item": {"type": item.kind, "id": item.id}}
        pieces.append(Foreign(NAME, "response.output_item.added", data))


def read_reply(body: Any) -> list[Chunk]:
    """A whole reply."""
    body = as_reply(body)
    if not isinstance(body.get("output"), list):
        return [failed_of(body)]
    pieces: list[Chunk] = []
    begin = read_begin(body)
    pieces.append(begin)
    _Items().whole(body["output"], pieces)
    read_end(body, str(body.get("status") or "completed"), begin.extra, pieces)
    return pieces


def read_begin(response: dict[str, Any]) -> Begin:
    """How a reply begins."""
    return Begin(
        as_text(response.get("id")),
        as_text(response.get("model")),
        as_moment(response.get("created_at")),
        NAME,
        {name: value for name, value in response.items() if name not in _RESPONSE},
    )


def read_end(response: dict[str, Any], status: str, known: dict[str, Any], pieces: list[Chunk]) -> None:
    """How a reply ends; `known` is what its beginning said of it."""
    if status in ("failed", "cancelled"):
        error = response.get("error")
        told = error if isinstance(error, dict) else {"message": f"the upstream's reply is {status}"}
        pieces.append(failed_of({"error": told}))
        return
    if status in ("queued", "in_progress"):
        pieces.append(Failed("the upstream answered before the reply was over", dialect=NAME))
        return
    reason: Reason = "stop"
    extra = {
        name: value
        for name, value in response.items()
        if name not in _RESPONSE and (name not in known or known[name] != value)
    }
    if status == "incomplete":
        details = response.get("incomplete_details")
        given = str(details.get("reason")) if isinstance(details, dict) else ""
        reason = _REASONS.get(given, "length")
        if given not in _REASONS:
            extra["incomplete_details"] = details
    pieces.append(Ended(0, reason, extra=extra))
    usage = response.get("usage")
    if isinstance(usage, dict):
        pieces.append(_read_usage(usage))


def _read_usage(usage: dict[str, Any]) -> Usage:
    given, output = as_object(usage.get("input_tokens_details")), as_object(usage.get("output_tokens_details"))
    return Usage(
        as_count(usage.get("input_tokens")),
        as_count(usage.get("output_tokens")),
        maybe_count(output.get("reasoning_tokens")),
        bool(output.get("estimated")),
        as_count(given.get("cached_tokens")),
        extra=usage,
    )


def _without(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != name}
