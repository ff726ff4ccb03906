"""Replies of Ollama's own API, written: a line of JSON for every delta, or all of it in one.

`_JoinedParts` joins the parts of each kind with their gaps; a sink makes lines of them (`_PartLines`) or collects them
(`_WholeParts`). Calls are written whole, with an object as arguments; what is none becomes text (`whole_calls`).

    {"model":"qwen3","created_at":"...","message":{"role":"assistant","content":"It is 4."},"done":false}
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ...events import PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from ...message import OpenCalls
from ...parts import ToolCall
from ...reply._corrected import corrected
from ...reply._items import Begin, Ended, Foreign, ReplyEvent, ReplyItem
from .._errors import UPSTREAM_ENDED
from .._framing import to_json
from .._one_choice import OneChoice
from .._request import Request
from .._thought_fields import CALL_FIELDS, EVERYTHING, retyped_field, shown
from .._whole_calls import arguments_or_text
from ..openai_chat._reader import refusal_of
from ._errors import write_error
from ._request import NAME, is_generate


class _WholeParts:
    """Parts as they stand in a whole reply."""

    def __init__(self) -> None:
        self.thoughts: list[str] = []
        self.texts: list[str] = []
        self.calls: list[dict[str, Any]] = []
        self.logprobs: list[dict[str, Any]] = []
        self.fields: dict[str, dict[str, Any]] = {}
        """The upstream's own fields of the line and of its message, for the next line or the whole reply."""

    def thinking(self, text: str) -> None:
        self.thoughts.append(text)

    def text(self, text: str, logprobs: tuple[dict[str, Any], ...]) -> None:
        self.texts.append(text)
        self.logprobs += logprobs

    def call(self, call: dict[str, Any]) -> None:
        self.calls.append(call)


class _JoinedParts:
    """From the parts of a choice to thinking, text and calls, each joined with the gaps that the parts name."""

    def __init__(self, request: Request, sink: _WholeParts) -> None:
        self._sink = sink
        self._show = request.thinking.show
        self._passed = request.thinking.passed
        self._extras: dict[int, dict[str, Any]] = {}
        """By the index of the part: the upstream's own fields of a call."""
        self._gap = ""
        self._said = False
        self._apart = False
        """Whether a call that became text, a refusal, or text that turned out to be a thought came last."""
        self.retyped = 0
        """How many characters of text turned out to be a thought."""
        self._refusing = False
        """Whether a refusal came last."""
        self._calls = OpenCalls()
        self._count = 0
        self.context: list[int] = []
        self.same = False
        """Whether the upstream speaks this API too."""

    def write_event(self, item: ReplyEvent) -> None:
        """Write what an event adds to a part."""
        event = item.event
        if item.extra and isinstance(event, PartStart | ToolCallDelta):
            known = self._extras.setdefault(event.index, {})
            known |= shown(item.extra, show=self._show, passed=(*CALL_FIELDS, *self._passed), hidden=EVERYTHING)
        if isinstance(event, TextDelta):
            self._text(event.text, item.logprobs)
        elif isinstance(event, ThinkingDelta):
            if self._show and event.text:
                self._sink.thinking(self._gap + event.text)
                self._gap = ""
        elif isinstance(event, ToolCallDelta):
            self._calls.add(event)
        elif isinstance(event, PartStart):
            self._start(event)
        elif isinstance(event, Retyped):
            # Words cannot be taken back: those of a thought stay, and those of an answer are written once more.
            if event.kind == "thinking":
                self.retyped, self._apart = item.characters, True
            else:
                self._text(item.raw, ())
        elif isinstance(event, PartEnd) and (call := self._calls.add(event)) is not None:
            if item.withheld:
                for each in item.as_thought():
                    self.write_event(each)
            else:
                self._call(call, item.written, self._extras.pop(event.index, {}))

    def _start(self, event: PartStart) -> None:
        if event.kind == "tool_call":
            self._calls.add(event)
        elif self._show or event.kind == "text":
            self._gap = event.gap
            if event.kind == "text" and self._apart:
                self._gap, self._apart, self._refusing = event.gap or "\n\n", False, False

    def _text(self, text: str, logprobs: tuple[dict[str, Any], ...]) -> None:
        self._sink.text(self._gap + text, logprobs)
        self._gap, self._said = "", True

    def refuse(self, text: str) -> None:
        """Write a refusal, which here is text like any other."""
        if not self._refusing:
            self._gap = "\n\n" if self._said else ""
        self._text(text, ())
        self._refusing = self._apart = True

    def carry(self, sealed: str) -> None:
        """Nothing: no field of this API comes back."""

    def foreign(self, item: Foreign) -> None:
        """Keep the ids of the conversation for the last line, and the upstream's own fields for the next."""
        if item.event == "context":
            self.context = item.data["context"]
        elif item.event == "fields":
            fields, known = item.data, self._sink.fields
            line = shown(fields.get("line", {}), show=self._show, passed=self._passed)
            message = shown(fields.get("message", {}), show=self._show, passed=self._passed, hidden=EVERYTHING)
            known["line"] = known.get("line", {}) | line
            known["message"] = known.get("message", {}) | message

    def close(self) -> None:
        """Nothing is open between two lines."""

    def _call(self, call: ToolCall, written: str, extra: dict[str, Any]) -> None:
        arguments = arguments_or_text(call, written)
        if not isinstance(arguments, dict):
            if arguments:
                self._gap = "\n\n" if self._said else ""
                self._text(arguments, ())
                self._apart = True
            return
        beside = extra.pop("function", {}) if self.same else {}
        function = {"index": self._count, "name": call.name, "arguments": arguments, **beside}
        self._count += 1
        self._sink.call({**({"id": call.id} if call.id else {}), "function": function, **(extra if self.same else {})})


class _PartLines(_WholeParts):
    """Parts as lines. Calls for `/api/generate` wait for the last one."""

    def __init__(self, generate: bool) -> None:
        super().__init__()
        self.out: list[bytes] = []
        self._generate = generate
        self._before = b""
        self._after = b',"done":false}\n' if generate else b'},"done":false}\n'

    def begin(self, fields: dict[str, Any]) -> None:
        """What every line begins with."""
        inner = b',"response":' if self._generate else b',"message":{"role":"assistant","content":'
        self._before = to_json(fields)[:-1] + inner

    def thinking(self, text: str) -> None:
        self._line(b'"","thinking":' + to_json(text))

    def text(self, text: str, logprobs: tuple[dict[str, Any], ...]) -> None:
        self._line(to_json(text), b',"logprobs":' + to_json(logprobs) if logprobs else b"")

    def call(self, call: dict[str, Any]) -> None:
        if self._generate:
            # Ollama has calls of `/api/generate` on the last line only.
            super().call(call)
        else:
            self._line(b'"","tool_calls":' + to_json([call]))

    def _line(self, inner: bytes, logprobs: bytes = b"") -> None:
        after = self._after
        if self.fields or logprobs:
            fields, self.fields = self.fields, {}
            line, message = fields.get("line", {}), fields.get("message", {})
            after = _members(message) + after.replace(b',"done"', logprobs + _members(line) + b',"done"')
        self.out.append(b"%b%b%b" % (self._before, inner, after))


def _members(fields: dict[str, Any]) -> bytes:
    """Fields as they stand behind others."""
    return b"," + to_json(fields)[1:-1] if fields else b""


class _LineReply(OneChoice[_JoinedParts]):
    """A reply, and what stands in its lines besides its parts."""

    def __init__(self, request: Request, sink: _WholeParts) -> None:
        super().__init__(request, NAME, _JoinedParts(request, sink))
        self.generate: bool = is_generate(request)

    def take(self, item: ReplyItem) -> None:
        """Take in an item."""
        super().take(item)
        if isinstance(item, Begin):
            self.parts.same = self.same

    def head(self) -> dict[str, Any]:
        """What every line begins with."""
        moment = datetime.fromtimestamp(self.begin.created or time.time(), UTC)
        return {
            "model": self.begin.model or self.request.model,
            "created_at": moment.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        }

    def tail(self) -> dict[str, Any]:
        """How it ended and what it cost."""
        ended = self.ended or Ended(0)
        extra = ended.extra if self.same else {}
        times = self.usage.durations
        context = {"context": self.parts.context} if self.parts.context and self.generate else {}
        return {
            "done": True,
            "done_reason": "length" if ended.reason == "length" else "stop",
            **extra,
            **context,
            "total_duration": times.get("total_duration", 0),
            "load_duration": times.get("load_duration", 0),
            "prompt_eval_count": self.usage.input_tokens,
            "prompt_eval_duration": times.get("prompt_eval_duration", 0),
            "eval_count": self.usage.output_tokens,
            "eval_duration": times.get("eval_duration", 0),
            **retyped_field(self.parts.retyped),
        }

    def body(
        self, text: str, thinking: str, calls: list[dict[str, Any]], fields: dict[str, dict[str, Any]]
    ) -> dict[str, Any]:
        """The content, where this endpoint has it, and the upstream's own fields."""
        others = ({"thinking": thinking} if thinking else {}) | ({"tool_calls": calls} if calls else {})
        line, message = fields.get("line", {}), fields.get("message", {})
        if self.generate:
            return {"response": text, **others, **message, **line}
        return {"message": {"role": "assistant", "content": text, **others, **message}, **line}


class OllamaWriter:
    """A streamed reply to a client of this dialect. There is no keep-alive: every line is part of the reply."""

    __slots__ = ("_begun", "_lines", "_over", "_reply")

    delta = None
    written = None

    def __init__(self, request: Request) -> None:
        self._lines = _PartLines(is_generate(request))
        self._reply = _LineReply(request, self._lines)
        self._begun = False
        self._over = False

    def feed(self, item: ReplyItem) -> bytes:
        """The bytes that this item adds to the stream."""
        if self._over:
            return b""
        reply, lines = self._reply, self._lines
        lines.out.clear()
        if type(item) is ReplyEvent and self._begun and item.choice == 0:
            reply.parts.write_event(item)
            return b"".join(lines.out)
        if not self._begun and (isinstance(item, ReplyEvent) or (isinstance(item, Foreign) and refusal_of(item))):
            self._begun = True
            lines.begin(reply.head())
        reply.take(item)
        if reply.failed is not None:
            self._over = True
            lines.out.append(to_json(write_error(reply.failed)) + b"\n")
        return b"".join(lines.out)

    def finish(self) -> bytes:
        """The last line. A stream that nobody ended has failed."""
        if self._over:
            return b""
        if self._reply.ended is None:
            return self.feed(UPSTREAM_ENDED)
        self._over = True
        reply = self._reply
        return to_json(reply.head() | reply.body("", "", self._lines.calls, self._lines.fields) | reply.tail()) + b"\n"


def write_reply(items: Iterable[ReplyItem], request: Request) -> dict[str, Any]:
    """A whole reply, or the error that it ended with."""
    sink = _WholeParts()
    reply = _LineReply(request, sink)
    if (failed := reply.take_all(corrected(items))) is not None:
        return write_error(failed)
    logprobs = {"logprobs": sink.logprobs} if sink.logprobs else {}
    content = reply.body("".join(sink.texts), "".join(sink.thoughts), sink.calls, sink.fields)
    return reply.head() | content | logprobs | reply.tail()
