"""Replies of the Responses API, read: frames and whole bodies of any server that speaks something like it.

Never raises. Servers differ in what they number and which events they leave out: items are known by their place or by
their id, and what came in no delta is taken from the event or the item that ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import msgspec

from ...reply._items import Begin, CallChunk, Chunk, Ended, Failed, Foreign, Proof, RawText, Reason, ThinkingChunk
from .._custom_tools import arguments_of
from .._errors import UPSTREAM_ENDED, malformed
from .._fields import as_moment, as_object, as_objects, as_reply, as_text, as_tokens
from .._framing import SseReader, read_odd_json, to_json
from ..openai_chat._reader import read_usage
from ._errors import failed_of
from ._request import NAME, reasoning_text, unseal

CALLS: dict[str, Literal["function", "custom"]] = {"function_call": "function", "custom_tool_call": "custom"}
"""The items that are calls, and what kind of tool each calls."""
OWN = ("message", "reasoning", *CALLS)
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


_GROWING = {
    f"response.{name}.{end}": (kind, field, end == "done")
    for name, kind, field in (
        ("output_text", "message", "output_text"),
        ("refusal", "message", "refusal"),
        ("reasoning_text", "reasoning", "reasoning_text"),
        ("reasoning_summary_text", "reasoning", "summary_text"),
        ("function_call_arguments", "function_call", "arguments"),
        ("custom_tool_call_input", "custom_tool_call", "input"),
    )
    for end in ("delta", "done")
}
"""Events that let an item grow, or say all of it at its end: its type, what of it, and whether this is its end."""


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
    input: Any = None
    logprobs: Any = None
    item: Any = None
    response: Any = None
    error: Any = None


_decode_event = msgspec.json.Decoder(_ResponsesEvent).decode
_decode = msgspec.json.decode
_TROUBLE = (msgspec.MsgspecError, UnicodeError, RecursionError)


class _Item:
    """An item while it is read."""

    __slots__ = ("begun", "closed", "field", "id", "kind", "number", "part", "refused", "whole")

    def __init__(self, kind: str, number: int, id: str) -> None:
        self.kind = kind
        self.number = number
        """Its place among all items that were seen."""
        self.id = id
        self.begun = False
        """Whether anything of it was passed on."""
        self.closed = False
        self.field = ""
        """For reasoning: whether its text or its summary is passed on; never both."""
        self.part = 0
        self.refused = False
        self.whole = False
        """For a call of a custom tool: whether its arguments are written to their end."""


class ResponsesReader:
    """Reads a streamed reply from bytes cut anywhere."""

    text_frame = None

    def __init__(self, *, ids: bool = False) -> None:
        """`ids` makes no difference: this API has none."""
        self.frames: SseReader = SseReader()
        self._items = _Items()
        self._begun: Begin | None = None
        self._over = False

    def feed(self, chunk: bytes) -> list[Chunk]:
        """Read bytes and return the chunks of the reply that are whole in them."""
        chunks: list[Chunk] = []
        end = chunk.find(b"\n")
        if (  # most chunks are one event
            chunk.startswith(b"data: {", end + 1)
            and chunk.find(b"\n", end + 7) == len(chunk) - 2
            and chunk.startswith(b"event: ")
            and chunk.endswith(b"\n\n")
            and b"\r" not in chunk
            and self.frames.idle
        ):
            self._frame(chunk[end + 7 : -2], chunk[7:end], chunks)
            return chunks
        for frame in self.frames.feed(chunk):
            self._frame(frame.raw, frame.event.encode(), chunks)
        return chunks

    def read_frame(self, frame: dict[str, Any]) -> list[Chunk]:
        """Read an event that is decoded already."""
        chunks: list[Chunk] = []
        if not self._over:
            event = msgspec.convert(frame, _ResponsesEvent)
            if event.type in _GROWING:
                self._items.grow(event, *_GROWING[event.type], chunks)
            else:
                self._rare(event, str(event.type), lambda: frame, chunks)
        return chunks

    def finish(self) -> list[Chunk]:
        """The stream is over. If the upstream did not say so before, that is a failure."""
        chunks: list[Chunk] = []
        for frame in self.frames.finish():
            self._frame(frame.raw, frame.event.encode(), chunks)
        if not self._over:
            self._over = True
            chunks.append(UPSTREAM_ENDED)
        return chunks

    def _frame(self, data: bytes, name: bytes, chunks: list[Chunk]) -> None:
        if self._over:
            return
        if data[:1] != b"{":
            if data.startswith(b"[DONE]"):
                self._over = True
                chunks.append(Ended(0))
            return  # keep-alive junk
        try:
            event = _decode_event(data)
        except _TROUBLE:
            repaired = _repaired(data)
            if repaired is None:
                self._over = True
                chunks.append(Failed(malformed(data), code="malformed_frame", dialect=NAME))
                return
            event = repaired
        kind = event.type or name.decode("utf-8", "replace")
        if type(kind) is str and kind in _GROWING:
            self._items.grow(event, *_GROWING[kind], chunks)
        else:
            self._rare(event, str(kind), partial(_body, data), chunks)

    def _rare(self, event: _ResponsesEvent, kind: str, body: Callable[[], dict[str, Any]], chunks: list[Chunk]) -> None:
        """`body`: makes all that the event says."""
        items = self._items
        match kind:
            case "response.created":
                self._begin(as_object(event.response), chunks)
            case "response.output_item.added" if isinstance(event.item, dict):
                if not items.add(event.item, event.output_index, chunks):
                    chunks.append(Foreign(NAME, kind, body()))
            case "response.output_item.done" if isinstance(event.item, dict):
                if not items.done(event.item, event.output_index, chunks):
                    chunks.append(Foreign(NAME, kind, body()))
            case "response.completed" | "response.incomplete" | "response.failed":
                self._end(as_object(event.response), kind.removeprefix("response."), chunks)
            case "error":
                self._fail(body(), chunks)
            case _ if event.error:
                self._fail(body(), chunks)
            case _ if kind not in _SILENT:
                chunks.append(Foreign(NAME, kind, body()))

    def _begin(self, response: dict[str, Any], chunks: list[Chunk]) -> None:
        if self._begun is None:
            self._begun = read_begin(response)
            chunks.append(self._begun)

    def _end(self, response: dict[str, Any], status: str, chunks: list[Chunk]) -> None:
        self._over = True
        self._begin(response, chunks)
        # A server that streamed no items at all sends them with its last event.
        if not self._items.seen:
            self._items.whole(response.get("output"), chunks)
        known = self._begun.extra if self._begun is not None else {}
        read_end(response, status, known, chunks)

    def _fail(self, body: dict[str, Any], chunks: list[Chunk]) -> None:
        self._over = True
        error = body.get("error")
        chunks.append(failed_of(body if isinstance(error, dict | str) and error else {"error": _without(body, "type")}))


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
        """The item whose text was passed on last, with nothing after it."""

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
        # llama.cpp numbers nothing: what names no item belongs to the one that is open.
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

    def add(self, body: dict[str, Any], index: Any, chunks: list[Chunk]) -> bool:
        """An item begins; False if it is none of ours."""
        kind = body.get("type")
        item = self._new(str(kind), index, body.get("id"))
        if kind not in OWN:
            self._speaking = None
            return False
        if kind in CALLS:
            self._call(item, body, chunks)
        return True

    def done(self, body: dict[str, Any], index: Any, chunks: list[Chunk]) -> bool:
        """An item ends; False if it is none of ours."""
        kind, id = str(body.get("type")), body.get("id")
        item = self._find(kind, index, id)
        # vLLM gives an item another id when it ends.
        if item is None:  # some servers count, or name, an item otherwise when it ends
            item = next((each for each in self._items if each.kind == kind and not each.closed), None)
        if item is None:
            item = self._new(kind, index, id)
            if kind in CALLS:
                self._call(item, body, chunks)
        item.closed = True
        self._latest = (None, None, None)
        if kind == "message" and not item.begun:
            self._content(item, body.get("content"), chunks)
        elif kind == "function_call" and not item.begun and (arguments := as_text(body.get("arguments"))):
            self._arguments(item, arguments, chunks)
        elif kind == "custom_tool_call":
            self._input(item, "" if item.begun else as_text(body.get("input")), chunks, whole=True)
        elif kind == "reasoning":
            self._reasoning(item, body, chunks)
        return kind in OWN

    def whole(self, output: Any, chunks: list[Chunk]) -> None:
        """Items that come all at once."""
        for index, body in enumerate(output if isinstance(output, list) else ()):
            if isinstance(body, dict) and not self.done(body, index, chunks):
                self._speaking = None
                chunks.append(Foreign(NAME, "response.output_item.done", {"output_index": index, "item": body}))

    def grow(self, event: _ResponsesEvent, kind: str, field: str, done: bool, chunks: list[Chunk]) -> None:
        """More of an item; at its end all of it, which counts if no delta came before."""
        text = (event.text or event.refusal or event.arguments or event.input) if done else event.delta
        if type(text) is not str or not text:
            return
        item = self._of(event, kind)
        if field == "input":
            self._input(item, "" if done and item.begun else text, chunks, whole=done)
            return
        if done and (item.refused if field == "refusal" else item.begun):
            return
        if field == "output_text":  # by far the most frames
            if not item.begun or item is not self._speaking:
                self._speak(item, chunks)
            chunks.append(RawText(0, text, as_tokens(event.logprobs) if event.logprobs else ()))
        elif kind == "reasoning":
            part = event.content_index if field == "reasoning_text" else event.summary_index
            self._think(item, part if type(part) is int else 0, field, text, chunks)
        elif kind == "function_call":
            self._arguments(item, text, chunks)
        else:
            self._refuse(item, text, chunks)

    # Messages.

    def _speak(self, item: _Item, chunks: list[Chunk]) -> None:
        if self._speaking is not None and self._speaking is not item:
            chunks.append(RawText(0, "\n\n"))  # two messages with nothing between them are still two
        if not item.begun:
            item.begun = True
            _announce(item, chunks)
        self._speaking = item

    def _refuse(self, item: _Item, text: str, chunks: list[Chunk]) -> None:
        """A refusal is text for every client, marked for those of this dialect."""
        self._speak(item, chunks)
        if not item.refused:
            item.refused = True
            chunks.append(Foreign(NAME, "refusal", {}))
        chunks.append(RawText(0, text))

    def _content(self, item: _Item, content: Any, chunks: list[Chunk]) -> None:
        for part in as_objects(content):
            text, refusal = part.get("text"), part.get("refusal")
            if isinstance(text, str) and text:
                self._speak(item, chunks)
                chunks.append(RawText(0, text, as_tokens(part.get("logprobs"))))
            elif isinstance(refusal, str) and refusal:
                self._refuse(item, refusal, chunks)
            annotations = part.get("annotations")
            for number, annotation in enumerate(annotations if isinstance(annotations, list) else ()):
                data = {"annotation": annotation, "annotation_index": number}
                chunks.append(Foreign(NAME, "response.output_text.annotation.added", data))

    # Reasoning.

    def _think(self, item: _Item, part: int, field: str, text: str, chunks: list[Chunk]) -> None:
        # Servers may send one thought both as text and as a summary.
        item.field = item.field or field
        if item.field != field:
            return  # the same again, under another name
        begins = not item.begun
        if begins:
            item.begun = True
            item.part = part
            self._speaking = None
            _announce(item, chunks)
        elif part != item.part:
            item.part = part
            text = "\n\n" + text
        chunks.append(ThinkingChunk(0, text, begins=begins))

    def _reasoning(self, item: _Item, body: dict[str, Any], chunks: list[Chunk]) -> None:
        sealed = body.get("encrypted_content")
        plain = unseal(sealed)
        text = reasoning_text(body)
        if not item.begun and (plain or text):
            field = "reasoning_text" if body.get("content") or not text else "summary_text"
            self._think(item, 0, field, plain or text, chunks)
        if item.begun and item is self._items[-1]:
            # Ollama puts the thinking itself into `encrypted_content`, and wants it back there.
            chunks.append(ThinkingChunk(0, "", "encrypted_content" if text and sealed == text else item.field))
        if isinstance(sealed, str) and sealed and sealed != text and plain is None:
            chunks.append(Foreign(NAME, "response.output_item.done", {"item": body}))
            chunks.append(Proof(0, NAME, body))

    # Calls.

    def _call(self, item: _Item, body: dict[str, Any], chunks: list[Chunk]) -> None:
        id, name = body.get("call_id") or item.id, as_text(body.get("name"))
        self._speaking = None
        called = {"name": name, "namespace": as_text(body.get("namespace"))}
        chunks.append(_announcement(item, **called))
        chunks.append(CallChunk(0, item.number, as_text(id), name))
        if text := as_text(body.get("input")) if item.kind == "custom_tool_call" else "":
            self._input(item, text, chunks)
        elif arguments := as_text(body.get("arguments")):
            self._arguments(item, arguments, chunks)

    def _arguments(self, item: _Item, text: str, chunks: list[Chunk]) -> None:
        item.begun = True
        chunks.append(CallChunk(0, item.number, arguments=text))

    def _input(self, item: _Item, text: str, chunks: list[Chunk], *, whole: bool = False) -> None:
        """More of the free text that a custom tool is called with: the one string of its arguments, as they grow."""
        if item.whole:
            return
        head, tail = arguments_of("").split('""')
        written = ("" if item.begun else head + '"') + to_json(text)[1:-1].decode() + ('"' + tail if whole else "")
        item.whole = whole
        if written:
            self._arguments(item, written, chunks)


def _announce(item: _Item, chunks: list[Chunk]) -> None:
    """The id that the upstream gave an item: a client of this dialect may have to send it back."""
    if item.id:
        chunks.append(_announcement(item))


def _announcement(item: _Item, **called: str) -> Foreign:
    """That an item begins, for a client of this dialect; `called`: what it calls, by the client's own names."""
    return Foreign(NAME, "response.output_item.added", {"item": {"type": item.kind, "id": item.id, **called}})


def read_reply(body: Any) -> list[Chunk]:
    """A whole reply."""
    body = as_reply(body)
    if not isinstance(body.get("output"), list):
        return [failed_of(body)]
    chunks: list[Chunk] = []
    begin = read_begin(body)
    chunks.append(begin)
    _Items().whole(body["output"], chunks)
    read_end(body, str(body.get("status") or "completed"), begin.extra, chunks)
    return chunks


def read_begin(response: dict[str, Any]) -> Begin:
    """How a reply begins."""
    return Begin(
        as_text(response.get("id")),
        as_text(response.get("model")),
        as_moment(response.get("created_at")),
        NAME,
        {name: value for name, value in response.items() if name not in _RESPONSE},
    )


def read_end(response: dict[str, Any], status: str, known: dict[str, Any], chunks: list[Chunk]) -> None:
    """How a reply ends; `known` is what stood in its beginning."""
    if status in ("failed", "cancelled"):
        error = response.get("error")
        detail = error if isinstance(error, dict) else {"message": f"the upstream's reply is {status}"}
        chunks.append(failed_of({"error": detail}))
        return
    if status in ("queued", "in_progress"):
        chunks.append(Failed("the upstream answered before the reply was over", dialect=NAME))
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
    chunks.append(Ended(0, reason, extra=extra))
    usage = response.get("usage")
    if isinstance(usage, dict):
        chunks.append(read_usage(usage, "input", "output"))


def _without(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != name}
