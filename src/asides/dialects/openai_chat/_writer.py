"""Replies of chat completions, written: streamed and whole, from the same deltas.

`ChoiceWriter` makes the deltas of one choice from its items: where thinking goes, how calls are numbered, which gap
comes before a text. `ChatWriter` puts deltas into chunks; `write_reply` joins them to messages (`_WholeChoice`), so a
stream and a whole reply cannot differ. `ChoiceShape` is all in which plain completions differ.

    {"index": 0, "delta": {"content": "It is 4."}, "logprobs": null, "finish_reason": null}
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from ...errors import UsageError
from ...events import Event, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from ...reply._corrected import corrected
from ...reply._items import Begin, Ended, Failed, Foreign, Proof, ReplyEvent, ReplyItem, Usage
from .._custom_tools import input_of
from .._fields import as_object
from .._framing import DONE, sse, to_json
from .._request import Request
from .._request_fields import without
from .._thought_fields import CALL_FIELDS, EVERYTHING, asks_for_ids, retyped_field, shown
from .._whole_calls import behind_arguments
from ._errors import write_error
from ._request import NAME, REASONING, detail_text

Reasoning = Literal["reasoning_content", "reasoning", "thinking", "both", "details", "tags", "drop"]
"""Where thinking is written."""
CARRIED = "asides-v1"
"""The `format` of a detail that is the gateway's own."""
PLACES: tuple[str, ...] = get_args(Reasoning)

Delta = dict[str, Any]
Tokens = tuple[dict[str, Any], ...]
_OF_CHOICE = (ReplyEvent, Ended)
_MESSAGE = frozenset({"annotations", "audio", "refusal", "tool_calls"})
"""Fields of a message that are this API's own: they are known to hold no thought."""


class ChoiceShape(NamedTuple):
    """How an API of this kind lays out a choice: chat completions, or plain ones (`openai_completions`)."""

    dialect: str
    streamed: str
    """The `object` of a chunk."""
    whole: str
    """The `object` of a whole reply."""
    choice: type[ChoiceWriter]
    """What makes deltas of a choice's items."""
    opening: Delta | None
    """The delta that each choice of a stream begins with."""
    text: bytes
    """What stands before the text in the choice of a chunk."""
    thinking: bytes
    """What stands before thinking; `%b` is its field."""
    behind: bytes
    """What stands behind either."""
    of_delta: Callable[[Delta], dict[str, Any]]
    """The fields of a choice that a delta becomes."""
    of_message: Callable[[dict[str, Any]], dict[str, Any]]
    """The fields of a choice that a whole message becomes."""


class ChatWriter:
    """Writes a streamed reply."""

    written = None

    def __init__(
        self, request: Request, *, reasoning: Reasoning = "reasoning_content", shape: ChoiceShape | None = None
    ) -> None:
        self._shape = shape or CHAT
        self._request = request
        self._reasoning = chosen(reasoning, request)
        self._passed = request.thinking.passed
        self._ids = asks_for_ids(request.extra)
        tools = request.tools
        self._customs = {tool.name: tool.origin.name for tool in tools if tool.origin is not None} if tools else {}
        self._no_usage = {"usage": None} if request.include_usage else {}
        self._same = self._failed = False
        self._fields: dict[str, Any] = {}
        """What the next chunk carries besides."""
        self._choices: dict[int, ChoiceWriter] = {}
        self._base: dict[str, Any] = {}
        """What every chunk begins with."""
        self._head = self._tail = self._behind = b""

    def delta(self, number: int, event: Event, item: ReplyEvent | None = None) -> bytes:
        """Write more of an open part that came with nothing else; `item` is the event with what did."""
        choice = self._choices.get(number)
        # A gap belongs to the next text, fields of the upstream's own to the next chunk: both need the ordinary path
        # once.
        if choice is not None and not choice.gap and not self._fields:
            if type(event) is TextDelta:
                choice.has_text = True
                if choice.counts:
                    choice.length += len(event.text)
                return b"%b%b%b" % (choice.before_text, to_json(event.text), self._behind)
            if type(event) is ThinkingDelta and choice.before_thinking and event.text:
                return b"%b%b%b" % (choice.before_thinking, to_json(event.text), self._behind)
        return self._write_event(item or ReplyEvent(number, event))

    def feed(self, item: ReplyItem) -> bytes:
        """Write what an item adds."""
        if type(item) is ReplyEvent:
            if item.logprobs or item.other_logprobs:
                return self._write_event(item)
            return self.delta(item.choice, item.event, item)
        if isinstance(item, Begin):
            self._start(item)
            # A client that waits is told at once that its reply has begun. Which of several choices speaks, and whether
            # all do, is not known yet.
            return self._open(0) if self._request.choices == 1 else b""
        if isinstance(item, Ended):
            opening, choice = self._choice(item.choice)
            return opening + self._chunk(item.choice, {}, choice.end(item))
        if isinstance(item, Usage):
            return self._usage(item)
        if isinstance(item, Failed):
            self._failed = True
            return sse(to_json(write_error(item)))
        if isinstance(item, Proof):
            if not item.sealed:
                return b""
            opening, choice = self._choice(item.choice)
            return opening + b"".join(self._chunk(item.choice, delta) for delta in choice.carry(item.sealed))
        return self._foreign(item) if isinstance(item, Foreign) else b""

    def finish(self) -> bytes:
        """The reply is over."""
        # Clients take `[DONE]` for the end of a whole reply.
        return b"" if self._failed else DONE

    def _start(self, begin: Begin) -> None:
        self._same = begin.dialect == self._shape.dialect
        extra = self._shown(begin.extra) if self._same else {}
        self._base = head(begin, self._request, self._shape.streamed, extra)
        self._head = b'data: %b,"choices":[{"index":' % to_json(self._base)[:-1]
        usage = b',"usage":null' if self._no_usage else b""
        self._tail = b',"logprobs":null,"finish_reason":null}]%b}\n\n' % usage
        self._behind = self._shape.behind + self._tail

    def _shown(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Fields of the upstream's own beside a message."""
        return shown(fields, show=self._reasoning != "drop", passed=self._passed, ids=self._ids)

    def _open(self, number: int) -> bytes:
        if not self._base:
            self._start(Begin())
        shape = self._shape
        choice = self._choices[number] = shape.choice(
            self._reasoning, self._same, self._customs, self._passed, self._ids
        )
        start = b"%b%d," % (self._head, number)
        choice.before_text = start + shape.text
        if self._reasoning in REASONING:
            choice.before_thinking = start + shape.thinking % self._reasoning.encode()
        return b"" if shape.opening is None else self._chunk(number, shape.opening)

    def _choice(self, number: int) -> tuple[bytes, ChoiceWriter]:
        """A choice, and the bytes that open it if it is new."""
        opening = b"" if number in self._choices else self._open(number)
        return opening, self._choices[number]

    def _write_event(self, item: ReplyEvent) -> bytes:
        choice = self._choices.get(item.choice)
        out: list[bytes] = []
        if choice is None:
            opening, choice = self._choice(item.choice)
            out.append(opening)
        deltas = choice.deltas_of(item)
        fields = choice.logprobs_of(item) if item.logprobs or item.other_logprobs else {}
        for delta in deltas or ([{}] if fields else ()):
            out.append(self._chunk(item.choice, delta, fields))
            fields = {}
        return b"".join(out)

    def _chunk(self, number: int, delta: Delta, fields: dict[str, Any] | None = None) -> bytes:
        if not fields and not self._fields:
            return b"%b%d,%b%b" % (self._head, number, to_json(self._shape.of_delta(delta))[1:-1], self._tail)
        ends = {"logprobs": None, "finish_reason": None}
        choice = {"index": number, **self._shape.of_delta(delta), **ends, **(fields or {})}
        return self._frame({"choices": [choice], **self._no_usage})

    def _frame(self, fields: dict[str, Any]) -> bytes:
        more, self._fields = self._fields, {}
        return sse(to_json({**self._base, **fields, **more}))

    def _usage(self, usage: Usage) -> bytes:
        # A client that did not ask for it may fail on a chunk without choices.
        if not self._request.include_usage:
            return b""
        if not self._base:
            self._start(Begin())
        return self._frame({"choices": [], "usage": write_usage(usage, self._same)})

    def _foreign(self, item: Foreign) -> bytes:
        if item.dialect != self._shape.dialect:
            return b""
        if item.event == "fields":
            self._fields = {**self._fields, **self._shown(item.data)}
            return b""
        if item.event == "frame":
            return sse(to_json(self._shown(item.data)))
        number = item.choice or 0
        opening, choice = self._choice(number)
        if item.event == "choice":
            fields = choice.choice_fields(item)
            return opening + self._chunk(number, {}, fields) if fields else opening
        return opening + b"".join(self._chunk(number, delta) for delta in choice.foreign(item))


def write_reply(
    items: Iterable[ReplyItem],
    request: Request,
    *,
    reasoning: Reasoning = "reasoning_content",
    shape: ChoiceShape | None = None,
) -> dict[str, Any]:
    """A whole reply; an error's body where it failed."""
    shape = shape or CHAT
    reasoning = chosen(reasoning, request)
    begin = Begin()
    choices: dict[int, _WholeChoice] = {}
    last: dict[str, Any] = {}
    """What stands behind the choices."""
    same = False
    passed, ids = request.thinking.passed, asks_for_ids(request.extra)
    customs = {tool.name: tool.origin.name for tool in request.tools if tool.origin is not None}
    for item in corrected(items):
        if isinstance(item, _OF_CHOICE):  # first, because most are
            number = item.choice
        elif isinstance(item, Failed):
            return write_error(item)
        elif isinstance(item, Begin):
            begin, same = item, item.dialect == shape.dialect
            continue
        elif isinstance(item, Usage):
            last["usage"] = write_usage(item, same)
            continue
        elif isinstance(item, Proof):
            if not item.sealed:
                continue
            number = item.choice
        elif item.dialect != shape.dialect or item.event in ("fields", "frame"):
            if item.dialect == shape.dialect and item.event == "fields":
                last.update(shown(item.data, show=reasoning != "drop", passed=passed, ids=ids))
            continue
        else:
            number = item.choice or 0
        if number not in choices:
            choices[number] = _WholeChoice(shape.choice(reasoning, same, customs, passed, ids))
        choices[number].add(item)
    extra = shown(begin.extra, show=reasoning != "drop", passed=passed, ids=ids) if same else {}
    body = head(begin, request, shape.whole, extra)
    return {**body, "choices": [choices[number].written(number, shape) for number in sorted(choices)], **last}


def chosen(reasoning: Reasoning, request: Request) -> Reasoning:
    """Where thinking is written: nowhere if the request refuses it."""
    if reasoning not in PLACES:
        raise UsageError(f"reasoning must be one of {', '.join(PLACES)}, not {reasoning!r}")
    return reasoning if request.thinking.show else "drop"


def head(begin: Begin, request: Request, kind: str, extra: dict[str, Any]) -> dict[str, Any]:
    """What every frame of a reply begins with; `extra`: the upstream's own fields."""
    return {
        "id": begin.id or f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": begin.created or int(time.time()),
        "model": begin.model or request.model,
        **extra,
    }


def write_usage(usage: Usage, same: bool) -> dict[str, Any]:
    """What the reply cost, by this dialect's names."""
    body: dict[str, Any] = dict(usage.extra) if same else {}
    body["prompt_tokens"] = usage.input_tokens
    body["completion_tokens"] = usage.output_tokens
    body.setdefault("total_tokens", usage.input_tokens + usage.output_tokens)
    if usage.reasoning_tokens is not None:
        details = {**as_object(body.get("completion_tokens_details")), "reasoning_tokens": usage.reasoning_tokens}
        if usage.estimated:
            details["estimated"] = True
        body["completion_tokens_details"] = details
    if usage.cached_tokens:
        body["prompt_tokens_details"] = {
            **as_object(body.get("prompt_tokens_details")),
            "cached_tokens": usage.cached_tokens,
        }
    return body


class ChoiceWriter:
    """One choice: from items to deltas, whether streamed or whole."""

    counts: bool = False
    """Whether the length of the text matters: one call less for each delta where it does not."""

    def __init__(
        self,
        reasoning: Reasoning,
        same: bool,
        customs: Mapping[str, str],
        passed: tuple[str, ...] = (),
        ids: bool = True,
    ) -> None:
        """`customs`: the tools whose calls are written as those of custom tools, with the client's names.

        `passed`: fields of the upstream's own that are written though thinking is not. `ids`: whether ids of tokens
        are.
        """
        self._ids = ids
        self._reasoning = reasoning
        self._passed = passed
        self._same = same
        self._customs = customs
        self._custom_calls: dict[int, Delta] = {}
        """By the index of the part: a call of a custom tool."""
        self._kinds: dict[int, str] = {}
        self._calls: dict[int, int] = {}
        """By the index of the part: the number of the call."""
        self._arguments: dict[int, list[str]] = {}
        """By the index of the part: what came of the arguments of a call that is open."""
        self._details: dict[int | None, int] = {}
        """By the upstream's index: ours."""
        self._next_detail = 0
        self._behind_tag = False
        """Whether a closing tag was written last, and a blank line with it."""
        self._apart = ""
        """What sets the next text apart, where its own gap does not: from text that stands for a call, or that turned
        out to be a thought."""
        self._retyped = 0
        """How many characters of text turned out to be a thought."""
        self.gap: str = ""
        """What to write before the next text or thinking."""
        self.has_text: bool = False
        self.length: int = 0
        """How many characters of text were written, where they count."""
        self.before_text: bytes = b""
        self.before_thinking: bytes = b""
        """What chunks of a stream begin with; empty where thinking has no field of its own."""

    def deltas_of(self, item: ReplyEvent) -> list[Delta]:
        """What an item adds to the message."""
        event = item.event
        if type(event) is TextDelta:
            return [self._text(event.text)]
        if type(event) is ThinkingDelta:
            return self._think(item, event.text)
        if type(event) is ToolCallDelta:
            arguments = self._arguments.get(event.index)
            if arguments is None:
                return []
            arguments.append(event.text)
            if event.index in self._custom_calls:
                return []
            extra = self._call_fields(item)
            function = {"arguments": event.text, **extra.pop("function", {})}
            return [_call(self._calls[event.index], {"function": function, **extra})]
        if type(event) is PartStart:
            return self._start(event, self._call_fields(item))
        if type(event) is Retyped:
            return self._retype(item, event)
        return self._stop(item, event) if type(event) is PartEnd else []

    def _retype(self, item: ReplyEvent, event: Retyped) -> list[Delta]:
        """Words cannot be taken back: those of a thought stay, and those of an answer are written once more as text."""
        self._kinds[event.index] = event.kind
        if event.kind == "thinking":
            self._retyped = item.characters
            # Where tags are text, the one that closes the thought follows with its end.
            self._apart = "" if self._reasoning == "tags" else "\n\n"
            return []
        closing = [self._text("</think>\n\n")] if self._reasoning == "tags" else []
        return [*closing, self._text(item.raw)]

    def _call_fields(self, item: ReplyEvent) -> dict[str, Any]:
        """The upstream's own fields of a call."""
        if not item.extra or not self._same:
            return {}
        passed = (*CALL_FIELDS, *self._passed)
        return dict(shown(item.extra, show=self._reasoning != "drop", passed=passed, hidden=EVERYTHING))

    def _text(self, text: str) -> Delta:
        text, self.gap = self.gap + text, ""
        self.has_text = True
        self.length += len(text)
        return {"content": text}

    def _start(self, event: PartStart, extra: dict[str, Any]) -> list[Delta]:
        self._kinds[event.index] = event.kind
        self.gap = event.gap
        if event.kind == "tool_call":
            if not event.name:
                return []
            self._arguments[event.index] = []
            if event.name in self._customs:
                # Its text stands in the arguments and can be taken out of them only when they are whole.
                custom = {"name": self._customs[event.name]}
                self._custom_calls[event.index] = {"id": event.id, "type": "custom", "custom": custom, **extra}
                return []
            number = self._calls[event.index] = len(self._calls)
            function = {"name": event.name, "arguments": "", **extra.pop("function", {})}
            return [_call(number, {"id": event.id, "type": "function", "function": function, **extra})]
        if event.kind == "text":
            # The closing tag was written with its blank line.
            if self._behind_tag:
                self.gap = ""
            # What stands for a call that cannot be expressed is on lines of its own.
            elif self._apart:
                self.gap = self.gap or self._apart
            self._behind_tag, self._apart = False, ""
            return []
        self._details.pop(None, None)
        if self._reasoning in ("tags", "details"):
            self.gap = ""
        return [self._text("<think>")] if self._reasoning == "tags" else []

    def _think(self, item: ReplyEvent, text: str) -> list[Delta]:
        if self._reasoning == "details" and self._same and item.details:
            return [{"reasoning_details": [self._numbered(detail) for detail in item.details]}]
        text, self.gap = self.gap + text, ""
        if not text or self._reasoning == "drop":
            return []
        if self._reasoning == "tags":
            return [self._text(text)]
        if self._reasoning == "both":
            return [{"reasoning_content": text, "reasoning": text}]
        if self._reasoning == "details":
            return [{"reasoning_details": [self._numbered({"type": "reasoning.text", "text": text})]}]
        return [{self._reasoning: text}]

    def _numbered(self, detail: dict[str, Any], *, alone: bool = False) -> dict[str, Any]:
        """A detail with an index; its id and format only the first time.

        Text without an index goes on with the text before it. `alone`: this one without text does not.
        """
        theirs = detail.get("index")
        theirs = theirs if isinstance(theirs, int) else None
        if theirs is None and alone:
            self._details.pop(None, None)
        number = self._details.get(theirs)
        if number is None:
            number = self._details[theirs] = self._next_detail
            self._next_detail += 1
            made = {"id": f"reasoning_{number}", "format": "unknown"} if theirs is None else {}
            return {**made, **detail, "index": number}
        return {**{name: value for name, value in detail.items() if name not in ("id", "format")}, "index": number}

    def _stop(self, item: ReplyEvent, event: PartEnd) -> list[Delta]:
        kind = self._kinds.get(event.index)
        if kind == "thinking" and self._reasoning == "tags":
            self._behind_tag = True
            return [self._text("</think>\n\n")]
        arguments = self._arguments.pop(event.index, ())
        custom = self._custom_calls.pop(event.index, None)
        # Free text can be run whatever it is, so of a call that may not be run nothing goes out but what was written.
        if custom is not None and event.error is None:
            number = self._calls[event.index] = len(self._calls)
            text = input_of("".join(arguments))
            return [_call(number, {**custom, "custom": {**custom["custom"], "input": text}})]
        if event.index in self._calls and event.error is not None and item.raw:
            more = behind_arguments("".join(arguments), item.raw)
            return [_call(self._calls[event.index], {"function": {"arguments": more}})] if more else []
        if kind == "tool_call" and event.index not in self._calls:
            if item.withheld:
                return [delta for each in item.as_thought() for delta in self.deltas_of(each)]
            written = item.written or "".join(arguments)
            if written:
                self.gap = "\n" if self.has_text else ""
                self._apart = "\n"
                return [self._text(written)]
        return []

    def carry(self, sealed: str) -> list[Delta]:
        """What the client shall send back with its thoughts: a detail without text."""
        detail = {"type": "reasoning.encrypted", "data": sealed, "format": CARRIED}
        return [{"reasoning_details": [self._numbered(detail, alone=True)]}]

    def foreign(self, item: Foreign) -> list[Delta]:
        """What only this dialect understands."""
        if item.event == "delta":
            delta, show = item.data["delta"], self._reasoning != "drop"
            if self._reasoning == "details":  # written as the thought itself, below and with its text
                delta = without(delta, "reasoning_details")
            delta = shown(delta, show=show, passed=(*_MESSAGE, *self._passed), hidden=EVERYTHING, ids=self._ids)
            return [delta] if delta else []
        if item.event == "details" and self._reasoning == "details":
            return [{"reasoning_details": [self._numbered(detail, alone=True) for detail in item.data["details"]]}]
        return []

    def choice_fields(self, item: Foreign) -> dict[str, Any]:
        """The upstream's own fields beside a message or delta."""
        return shown(item.data["fields"], show=self._reasoning != "drop", passed=self._passed, ids=self._ids)

    def logprobs_of(self, item: ReplyEvent) -> dict[str, Any]:
        """The log probabilities that came with an item, as fields of the choice."""
        fields = {"logprobs": self._text_tokens(item.logprobs)} if item.logprobs else {}
        return fields | self._other_tokens(item.other_logprobs) if item.other_logprobs else fields

    def _text_tokens(self, tokens: Tokens) -> dict[str, Any]:
        return {"content": list(tokens), "refusal": None}

    def _other_tokens(self, tokens: Tokens) -> dict[str, Any]:
        return {} if self._reasoning == "drop" else {"reasoning_logprobs": self._columns(tokens)}

    def _columns(self, tokens: Tokens) -> dict[str, Any]:
        return {"content": list(tokens)}

    def end(self, ended: Ended) -> dict[str, Any]:
        """How the choice ended."""
        extra = dict(ended.extra) if self._same else {}
        reason = str(extra.pop("finish_reason", ended.reason))
        extra = shown(extra, show=self._reasoning != "drop", passed=self._passed, ids=self._ids)
        # Only for a stop: a client must see that a reply was cut off or filtered, even one with calls before that.
        if self._calls and ended.reason == "stop":
            reason = "tool_calls"
        if ended.other_logprobs:
            extra |= self._other_tokens(ended.other_logprobs)
        return {"finish_reason": reason, **extra, **retyped_field(self._retyped)}


def _call(number: int, fields: dict[str, Any]) -> Delta:
    return {"tool_calls": [{"index": number, **fields}]}


class _WholeChoice:
    """A choice of a whole reply: its deltas put together."""

    def __init__(self, writer: ChoiceWriter) -> None:
        self._writer = writer
        self._texts: dict[str, list[str]] = {"content": []}
        self._calls: dict[int, tuple[dict[str, Any], list[str]]] = {}
        """By their numbers: what they are, and what their text is made of."""
        self._foreign_calls: list[dict[str, Any]] = []
        self._details: list[tuple[dict[str, Any], list[str]]] = []
        self._others: dict[str, Any] = {}
        self._beside: dict[str, Any] = {}
        """The upstream's own fields beside the message."""
        self._logprobs: dict[str, Any] = {"logprobs": None}
        self._finish: dict[str, Any] = {"finish_reason": "stop"}

    def add(self, item: ReplyEvent | Ended | Foreign | Proof) -> None:
        """Add an item to what came before."""
        if isinstance(item, ReplyEvent):
            if deltas := self._writer.deltas_of(item):
                self._add_deltas(deltas)
            if item.logprobs or item.other_logprobs:
                self._add_logprobs(self._writer.logprobs_of(item))
        elif isinstance(item, Proof):
            self._add_deltas(self._writer.carry(item.sealed))
        elif isinstance(item, Foreign):
            if item.event == "choice":
                self._add_fields(self._beside, self._writer.choice_fields(item))
            for delta in self._writer.foreign(item):
                if item.event == "details":
                    self._add_deltas([delta])
                else:
                    self._foreign_calls += delta.get("tool_calls", ())
                    self._add_fields(self._others, without(delta, "tool_calls"))
        else:
            self._finish = self._writer.end(item)
            if "reasoning_logprobs" in self._finish:
                self._add_logprobs({"reasoning_logprobs": self._finish.pop("reasoning_logprobs")})

    def _add_logprobs(self, fields: dict[str, Any]) -> None:
        for name, columns in fields.items():
            known = self._logprobs[name] = self._logprobs.get(name) or {}
            for column, values in columns.items():
                if values is None or column not in known:
                    known[column] = values
                else:
                    known[column] += values

    def _add_deltas(self, deltas: list[Delta]) -> None:
        for delta in deltas:
            for name, value in delta.items():
                if name == "tool_calls":
                    for call in value:
                        self._add_call(call)
                elif name == "reasoning_details":
                    for detail in value:
                        self._add_detail(detail)
                elif isinstance(value, str):
                    self._texts.setdefault(name, []).append(value)
                else:
                    self._others[name] = value

    @staticmethod
    def _add_fields(known: dict[str, Any], fields: dict[str, Any]) -> None:
        """Add fields of the upstream's own, which may come in pieces: text and lists grow, all else is replaced."""
        for name, value in fields.items():
            if isinstance(value, str | list) and type(known.get(name)) is type(value):
                known[name] = known[name] + value
            else:
                known[name] = value

    def _add_call(self, call: dict[str, Any]) -> None:
        known, texts = self._calls.setdefault(call["index"], ({}, []))
        fields = without(call, "index")
        if "function" in call:  # a call of a custom tool comes whole
            texts.append(call["function"]["arguments"])
            fields["function"] = {**known.get("function", {}), **call["function"]}
        known.update(fields)

    def _add_detail(self, detail: dict[str, Any]) -> None:
        number = detail["index"]
        if number == len(self._details):
            self._details.append((dict(detail), []))
        known, texts = self._details[number]
        texts.append(detail_text(detail))
        known.update({name: value for name, value in detail.items() if value is not None})

    def written(self, number: int, shape: ChoiceShape) -> dict[str, Any]:
        """The choice."""
        message: dict[str, Any] = {"role": "assistant"}
        message.update({name: "".join(texts) for name, texts in self._texts.items()})
        if self._details:
            message["reasoning_details"] = [_joined(detail, texts) for detail, texts in self._details]
        calls = [
            {**call, "function": {**call["function"], "arguments": "".join(texts)}} if "function" in call else call
            for _, (call, texts) in sorted(self._calls.items())
        ]
        calls += self._foreign_calls
        if calls:
            message["tool_calls"] = calls
            # As OpenAI's servers do; without calls an empty answer is "".
            message["content"] = message["content"] or None
        # The upstream's own details without text passed by themselves, and come first.
        theirs = self._others.get("reasoning_details")
        if self._details and isinstance(theirs, list):
            self._others["reasoning_details"] = [*theirs, *message["reasoning_details"]]
        message.update(self._others)
        return {"index": number, **shape.of_message(message), **self._logprobs, **self._finish, **self._beside}


def _joined(detail: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    name = "summary" if "summary" in detail else "text"
    text = "".join(texts)
    return {**detail, name: text} if text else detail


CHAT = ChoiceShape(
    dialect=NAME,
    streamed="chat.completion.chunk",
    whole="chat.completion",
    choice=ChoiceWriter,
    opening={"role": "assistant", "content": ""},
    text=b'"delta":{"content":',
    thinking=b'"delta":{"%b":',
    behind=b"}",
    of_delta=lambda delta: {"delta": delta},
    of_message=lambda message: {"message": message},
)
