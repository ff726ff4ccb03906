"""Replies of chat completions, written: streamed and whole, from the same deltas."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from typing import Any, Literal, get_args

from ...errors import UsageError
from ...events import Event, Notice, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from ...reply.items import Begin, Ended, Failed, Foreign, ReplyEvent, ReplyItem, Usage
from ..fields import as_object
from ..framing import DONE, sse, to_json
from ..request import Request
from .errors import write_error
from .request import NAME, detail_text

Reasoning = Literal["reasoning_content", "reasoning", "thinking", "both", "details", "tags", "drop"]
"""Where thinking is written."""

Delta = dict[str, Any]


class ChatWriter:
    """Writes a streamed reply."""

    def __init__(self, request: Request, *, reasoning: Reasoning = "reasoning_content") -> None:
        self._request = request
        self._reasoning = chosen(reasoning, request)
        self._same = False
        self._failed = False
        self._fields: dict[str, Any] = {}
        """What the next chunk carries besides."""
        self._choices: dict[int, _StreamedChoice] = {}
        self._begin = Begin()
        self._base: dict[str, Any] = {}
        self._head = self._tail = b""
        self._started = False

    def delta(self, number: int, event: Event) -> bytes:
        """Write more of an open part that came with nothing else."""
        return self._quick(number, event) or self._write_event(ReplyEvent(number, event))

    def _quick(self, number: int, event: Event) -> bytes:
        """The chunk of a delta like those before; empty where it is not."""
        choice = self._choices.get(number)
        if choice is not None and not choice.gap and not self._fields:
            if type(event) is TextDelta:
                choice.has_text = True
                return b"%b%b%b" % (choice.content, to_json(event.text), self._tail)
            if type(event) is ThinkingDelta and choice.thought:
                return b"%b%b%b" % (choice.thought, to_json(event.text), self._tail)
        return b""

    def feed(self, item: ReplyItem) -> bytes:
        """Write what an item tells."""
        if type(item) is ReplyEvent:
            if item.logprobs or item.other_logprobs:
                return self._write_event(item)
            return self._quick(item.choice, item.event) or self._write_event(item)
        if isinstance(item, Begin):
            self._start(item)
            return b"".join(self._open(number) for number in range(self._request.choices))
        if isinstance(item, Ended):
            return self._end(item)
        if isinstance(item, Usage):
            return self._usage(item)
        if isinstance(item, Failed):
            self._failed = True
            return sse(to_json(write_error(item)))
        return self._foreign(item) if isinstance(item, Foreign) else b""

    def finish(self) -> bytes:
        """The reply is over."""
        return b"" if self._failed else DONE

    def _start(self, begin: Begin) -> None:
        self._started = True
        self._same = begin.dialect == NAME
        self._base = head(begin, self._request, "chat.completion.chunk", self._same)
        self._head = b'data: %b,"choices":[{"index":' % to_json(self._base)[:-1]
        self._tail = b'},"logprobs":null,"finish_reason":null}]%b}\n\n' % (
            b',"usage":null' if self._request.include_usage else b""
        )

    def _open(self, number: int) -> bytes:
        if not self._started:
            self._start(Begin())
        choice = self._choices[number] = _StreamedChoice(self._reasoning, self._same)
        start = b'%b%d,"delta":{' % (self._head, number)
        choice.content = start + b'"content":'
        if self._reasoning in ("reasoning_content", "reasoning", "thinking"):
            choice.thought = b'%b"%b":' % (start, self._reasoning.encode())
        return self._chunk(number, {"role": "assistant", "content": ""})

    def _write_event(self, item: ReplyEvent) -> bytes:
        opening = b"" if item.choice in self._choices else self._open(item.choice)
        deltas = self._choices[item.choice].deltas_of(item)
        if not item.logprobs and not item.other_logprobs:
            return opening + b"".join(self._chunk(item.choice, delta) for delta in deltas)
        first, *others = deltas or [{}]
        fields: dict[str, Any] = {}
        if item.logprobs:
            fields["logprobs"] = {"content": list(item.logprobs), "refusal": None}
        if item.other_logprobs and self._reasoning != "drop":
            fields["reasoning_logprobs"] = {"content": list(item.other_logprobs)}
        if not fields and not deltas:
            return opening
        chunks = [self._chunk(item.choice, first, fields), *(self._chunk(item.choice, delta) for delta in others)]
        return opening + b"".join(chunks)

    def _chunk(self, number: int, delta: Delta, fields: dict[str, Any] | None = None) -> bytes:
        if fields is None and not self._fields:
            return b'%b%d,"delta":%b%b' % (self._head, number, to_json(delta)[:-1], self._tail)
        choice = {"index": number, "delta": delta, "logprobs": None, "finish_reason": None, **(fields or {})}
        more, self._fields = self._fields, {}
        frame = {**self._base, "choices": [choice], **({"usage": None} if self._request.include_usage else {}), **more}
        return sse(to_json(frame))

    def _end(self, ended: Ended) -> bytes:
        opening = b"" if ended.choice in self._choices else self._open(ended.choice)
        choice = self._choices[ended.choice]
        return opening + self._chunk(ended.choice, {}, choice.end(ended))

    def _usage(self, usage: Usage) -> bytes:
        if not self._request.include_usage:
            return b""
        if not self._started:
            self._start(Begin())
        more, self._fields = self._fields, {}
        return sse(to_json({**self._base, "choices": [], "usage": write_usage(usage, self._same), **more}))

    def _foreign(self, item: Foreign) -> bytes:
        if item.dialect != NAME:
            return b""
        if item.event == "fields":
            self._fields = {**self._fields, **item.data}
            return b""
        if item.event == "frame":
            return sse(to_json(item.data))
        number = item.data["choice"]
        opening = b"" if number in self._choices else self._open(number)
        return opening + b"".join(self._chunk(number, delta) for delta in self._choices[number].foreign(item))


def write_reply(
    items: Iterable[ReplyItem], request: Request, *, reasoning: Reasoning = "reasoning_content"
) -> dict[str, Any]:
    """A whole reply; an error's body where it failed."""
    reasoning = chosen(reasoning, request)
    begin = Begin()
    choices: dict[int, _WholeChoice] = {}
    usage: Usage | None = None
    fields: dict[str, Any] = {}
    for item in items:
        if isinstance(item, Failed):
            return write_error(item)
        if isinstance(item, Begin):
            begin = item
        elif isinstance(item, Usage):
            usage = item
        elif isinstance(item, Foreign):
            if item.dialect != NAME:
                continue
            if item.event == "fields":
                fields.update(item.data)
            elif item.event != "frame":
                choice = choices.setdefault(item.data["choice"], _WholeChoice(reasoning, begin.dialect == NAME))
                choice.add(choice.foreign(item))
        else:
            choice = choices.setdefault(item.choice, _WholeChoice(reasoning, begin.dialect == NAME))
            if isinstance(item, Ended):
                choice.finish = choice.end(item)
            else:
                choice.add(choice.deltas_of(item), item)
    same = begin.dialect == NAME
    body = head(begin, request, "chat.completion", same)
    body["choices"] = [choices[number].written(number) for number in sorted(choices)]
    if usage is not None:
        body["usage"] = write_usage(usage, same)
    return {**body, **fields}


def chosen(reasoning: Reasoning, request: Request) -> Reasoning:
    """Where thinking is written: nowhere if the request refuses it."""
    if reasoning not in get_args(Reasoning):
        raise UsageError(f"reasoning must be one of {', '.join(get_args(Reasoning))}, not {reasoning!r}")
    return reasoning if request.thinking.show else "drop"


def head(begin: Begin, request: Request, kind: str, same: bool) -> dict[str, Any]:
    """What every frame of a reply begins with."""
    return {
        "id": begin.id or f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": begin.created or int(time.time()),
        "model": begin.model or request.model,
        **(begin.extra if same else {}),
    }


def write_usage(usage: Usage, same: bool) -> dict[str, Any]:
    """What the reply cost, in this dialect's words."""
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

    def __init__(self, reasoning: Reasoning, same: bool) -> None:
        self._reasoning = reasoning
        self._same = same
        self._kinds: dict[int, str] = {}
        self._calls: dict[int, int] = {}
        """By the index of the part: the number of the call."""
        self._details: dict[int | None, int] = {}
        """By the upstream's index: ours."""
        self._next_detail = 0
        self._behind_tag = False
        """Whether a closing tag was written last, and a blank line with it."""
        self._behind_call = False
        """Whether the text that stands for a call was written last."""
        self.gap: str = ""
        """What to write before the next words."""
        self.has_text: bool = False

    def deltas_of(self, item: ReplyEvent) -> list[Delta]:
        """What an item adds to the message."""
        event = item.event
        if isinstance(event, TextDelta):
            return [self._text(event.text)]
        if isinstance(event, ThinkingDelta):
            return self._think(item, event.text)
        if isinstance(event, ToolCallDelta):
            number = self._calls.get(event.index)
            return [] if number is None else [_call(number, {"function": {"arguments": event.text}})]
        if isinstance(event, PartStart):
            return self._start(event)
        return [] if isinstance(event, Notice) else self._stop(event, item.shown)

    def _text(self, text: str) -> Delta:
        text, self.gap = self.gap + text, ""
        self.has_text = True
        return {"content": text}

    def _start(self, event: PartStart) -> list[Delta]:
        self._kinds[event.index] = event.kind
        self.gap = event.gap
        if event.kind == "tool_call":
            if not event.name:
                return []
            number = self._calls[event.index] = len(self._calls)
            function = {"name": event.name, "arguments": ""}
            return [_call(number, {"id": event.id, "type": "function", "function": function})]
        if event.kind == "text":
            if self._behind_tag:
                self.gap = ""
            elif self._behind_call:
                self.gap = self.gap or "\n"
            self._behind_tag = self._behind_call = False
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

    def _numbered(self, detail: dict[str, Any]) -> dict[str, Any]:
        """A detail with an index; its id and format only the first time."""
        theirs = detail.get("index")
        theirs = theirs if isinstance(theirs, int) else None
        number = self._details.get(theirs)
        if number is None:
            number = self._details[theirs] = self._next_detail
            self._next_detail += 1
            made = {"id": f"reasoning_{number}", "format": "unknown"} if theirs is None else {}
            return {**made, **detail, "index": number}
        return {**{name: value for name, value in detail.items() if name not in ("id", "format")}, "index": number}

    def _stop(self, event: PartEnd, written: str | None) -> list[Delta]:
        kind = self._kinds.get(event.index)
        if kind == "thinking" and self._reasoning == "tags":
            self._behind_tag = True
            return [self._text("</think>\n\n")]
        if kind == "tool_call" and event.index not in self._calls and written:
            self.gap = "\n" if self.has_text else ""
            self._behind_call = True
            return [self._text(written)]
        return []

    def foreign(self, item: Foreign) -> list[Delta]:
        """What only this dialect understands."""
        if item.event == "delta":
            return [item.data["delta"]]
        if item.event == "details" and self._reasoning == "details":
            return [{"reasoning_details": [self._numbered(detail) for detail in item.data["details"]]}]
        return []

    def end(self, ended: Ended) -> dict[str, Any]:
        """How the choice ended."""
        extra = dict(ended.extra) if self._same else {}
        reason = str(extra.pop("finish_reason", ended.reason))
        if self._calls and ended.reason == "stop":
            reason = "tool_calls"
        if ended.other_logprobs and self._reasoning != "drop":
            extra["reasoning_logprobs"] = {"content": list(ended.other_logprobs)}
        return {"finish_reason": reason, **extra}


def _call(number: int, fields: dict[str, Any]) -> Delta:
    return {"tool_calls": [{"index": number, **fields}]}


class _StreamedChoice(ChoiceWriter):
    """A choice of a streamed reply, with the bytes that its chunks begin with."""

    content = b""
    thought = b""


class _WholeChoice(ChoiceWriter):
    """A choice of a whole reply: its deltas put together."""

    def __init__(self, reasoning: Reasoning, same: bool) -> None:
        super().__init__(reasoning, same)
        self._texts: dict[str, list[str]] = {"content": []}
        self._tool_calls: list[tuple[dict[str, Any], list[str]]] = []
        self._whole_details: list[tuple[dict[str, Any], list[str]]] = []
        self._others: dict[str, Any] = {}
        self._logprobs: list[dict[str, Any]] = []
        self._other_logprobs: list[dict[str, Any]] = []
        self.finish: dict[str, Any] = {"finish_reason": "stop"}

    def add(self, deltas: list[Delta], item: ReplyEvent | None = None) -> None:
        """Put deltas to what came before."""
        if item is not None:
            self._logprobs += item.logprobs
            self._other_logprobs += item.other_logprobs
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

    def _add_call(self, call: dict[str, Any]) -> None:
        function = call.get("function")
        if function is None or "index" not in call:
            self._others.setdefault("tool_calls", []).append(call)
        elif "id" in call:
            self._tool_calls.append(({"id": call["id"], "type": "function"}, [function["name"], ""]))
        else:
            self._tool_calls[call["index"]][1].append(function["arguments"])

    def _add_detail(self, detail: dict[str, Any]) -> None:
        number = detail["index"]
        if number == len(self._whole_details):
            self._whole_details.append((dict(detail), []))
        known, texts = self._whole_details[number]
        texts.append(detail_text(detail))
        for name, value in detail.items():
            if value is not None:
                known[name] = value

    def written(self, number: int) -> dict[str, Any]:
        """The choice."""
        message: dict[str, Any] = {"role": "assistant"}
        message.update({name: "".join(texts) for name, texts in self._texts.items()})
        if self._whole_details:
            message["reasoning_details"] = [_joined(detail, texts) for detail, texts in self._whole_details]
        calls = [
            {**call, "function": {"name": name, "arguments": "".join(arguments)}}
            for call, (name, *arguments) in self._tool_calls
        ]
        calls += self._others.pop("tool_calls", [])
        if calls:
            message["tool_calls"] = calls
            message["content"] = message["content"] or None
        message.update(self._others)
        choice: dict[str, Any] = {"index": number, "message": message, "logprobs": None}
        if self._logprobs:
            choice["logprobs"] = {"content": self._logprobs, "refusal": None}
        others = self._other_logprobs + self.finish.pop("reasoning_logprobs", {"content": []})["content"]
        if others and self._reasoning != "drop":
            choice["reasoning_logprobs"] = {"content": others}
        return {**choice, **self.finish}


def _joined(detail: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    name = "summary" if "summary" in detail else "text"
    text = "".join(texts)
    return {**detail, name: text} if text else detail
