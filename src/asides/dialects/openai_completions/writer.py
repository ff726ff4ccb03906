"""Replies of plain completions, written: streamed and whole.

A choice is made of the deltas of chat completions: `content` is `text` here, thinking stands beside it, and
a call, which this API cannot say, is held until it ends and written as text. Log probabilities are lists side by side.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...events import PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from ...reply.items import Begin, Ended, Failed, Foreign, ReplyEvent, ReplyItem, Usage
from ..fields import as_json
from ..framing import DONE, sse, to_json
from ..openai_chat.errors import write_error
from ..openai_chat.request import REASONING
from ..openai_chat.writer import ChoiceWriter, Delta, Reasoning, chosen, head, write_usage
from ..request import Request
from .request import NAME


class CompletionsWriter:
    """Writes a streamed reply."""

    delta = None

    def __init__(self, request: Request, *, reasoning: Reasoning = "reasoning_content") -> None:
        self._request = request
        self._reasoning = chosen(reasoning, request)
        self._same = False
        self._failed = False
        self._fields: dict[str, Any] = {}
        self._choices: dict[int, _TextChoice] = {}
        self._base: dict[str, Any] = {}
        self._head = self._tail = b""

    def feed(self, item: ReplyItem) -> bytes:
        """Write what an item tells."""
        if isinstance(item, ReplyEvent):
            choice = self._choice(item.choice)
            event = item.event
            if not (choice.gap or self._fields or item.logprobs or item.other_logprobs):
                if type(event) is TextDelta:
                    choice.length += len(event.text)
                    return b"%b%b%b" % (choice.text, to_json(event.text), self._tail)
                if type(event) is ThinkingDelta and choice.thought:
                    return b"%b%b%b" % (choice.thought, to_json(event.text), self._tail)
            return b"".join(self._chunk(item.choice, delta) for delta in choice.fields_of(item))
        if isinstance(item, Begin):
            self._start(item)
        elif isinstance(item, Ended):
            choice = self._choice(item.choice)
            return self._chunk(item.choice, {**choice.end(item), "finish_reason": item.reason})
        elif isinstance(item, Usage):
            if self._request.include_usage:
                self._choice(0)
                return sse(to_json({**self._base, "choices": [], "usage": write_usage(item, self._same)}))
        elif isinstance(item, Failed):
            self._failed = True
            return sse(to_json(write_error(item)))
        elif isinstance(item, Foreign) and item.dialect == NAME:
            if item.event == "frame":
                return sse(to_json(item.data))
            if item.event == "fields":
                self._fields = {**self._fields, **item.data}
        return b""

    def finish(self) -> bytes:
        """The reply is over."""
        return b"" if self._failed else DONE

    def _start(self, begin: Begin) -> None:
        self._same = begin.dialect == NAME
        self._base = head(begin, self._request, "text_completion", self._same)
        self._head = b'data: %b,"choices":[{"index":' % to_json(self._base)[:-1]
        self._tail = b',"logprobs":null,"finish_reason":null}]%b}\n\n' % (
            b',"usage":null' if self._request.include_usage else b""
        )

    def _choice(self, number: int) -> _TextChoice:
        if not self._base:
            self._start(Begin())
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = _TextChoice(self._reasoning, self._same)
            choice.text = b'%b%d,"text":' % (self._head, number)
            if self._reasoning in REASONING:
                choice.thought = b'%b"","%b":' % (choice.text, self._reasoning.encode())
        return choice

    def _chunk(self, number: int, fields: dict[str, Any]) -> bytes:
        choice = {"index": number, "text": "", **fields}
        choice.setdefault("logprobs", None)
        choice.setdefault("finish_reason", None)
        more, self._fields = self._fields, {}
        usage = {"usage": None} if self._request.include_usage else {}
        return sse(to_json({**self._base, "choices": [choice], **usage, **more}))


def write_reply(
    items: Iterable[ReplyItem], request: Request, *, reasoning: Reasoning = "reasoning_content"
) -> dict[str, Any]:
    """A whole reply; an error's body where it failed."""
    reasoning = chosen(reasoning, request)
    begin = Begin()
    usage: Usage | None = None
    fields: dict[str, Any] = {}
    writers: dict[int, _TextChoice] = {}
    written: dict[int, dict[str, Any]] = {}
    for item in items:
        if isinstance(item, Failed):
            return write_error(item)
        if isinstance(item, Begin):
            begin = item
        elif isinstance(item, Usage):
            usage = item
        elif isinstance(item, Foreign):
            if item.dialect == NAME and item.event == "fields":
                fields.update(item.data)
        else:
            writer = writers.setdefault(item.choice, _TextChoice(reasoning, begin.dialect == NAME))
            choice = written.setdefault(item.choice, {"index": item.choice, "text": "", "logprobs": None})
            if isinstance(item, Ended):
                _add(choice, {**writer.end(item), "finish_reason": item.reason})
            else:
                for delta in writer.fields_of(item):
                    _add(choice, delta)
    body = head(begin, request, "text_completion", begin.dialect == NAME)
    body["choices"] = [_settled(written[number]) for number in sorted(written)]
    if usage is not None:
        body["usage"] = write_usage(usage, begin.dialect == NAME)
    return {**body, **fields}


def _add(choice: dict[str, Any], delta: dict[str, Any]) -> None:
    """Put a delta to what came before. Texts wait in lists, so that cost stays linear."""
    for name, value in delta.items():
        if isinstance(value, str) and name != "finish_reason":
            kept = choice.get(name)
            if not isinstance(kept, list):
                kept = choice[name] = []
            kept.append(value)
        elif name in ("logprobs", "reasoning_logprobs") and choice.get(name):
            for column, values in value.items():
                choice[name][column] += values
        elif name == "reasoning_details":
            details = choice.setdefault(name, [])
            for detail in value:
                if detail["index"] == len(details):
                    details.append(dict(detail))
                else:
                    details[detail["index"]]["text"] += detail["text"]
        else:
            choice[name] = value


def _settled(choice: dict[str, Any]) -> dict[str, Any]:
    names = ("text", *REASONING)
    return {
        name: "".join(value) if name in names and isinstance(value, list) else value for name, value in choice.items()
    }


class _TextChoice(ChoiceWriter):
    """One choice: from items to fields of a choice."""

    def __init__(self, reasoning: Reasoning, same: bool) -> None:
        super().__init__(reasoning, same)
        self._held: dict[int, tuple[PartStart, list[str]]] = {}
        self.text = self.thought = b""
        """What a frame of a stream begins with."""
        self.length = 0
        """How many characters of text have been written."""

    def fields_of(self, item: ReplyEvent) -> list[dict[str, Any]]:
        """What an item adds to the choice."""
        deltas = self._call(item)
        found = []
        for delta in deltas:
            text = delta.pop("content", None)
            found.append({"text": text, **delta} if text is not None else delta)
        if item.logprobs or item.other_logprobs:
            found = found or [{}]
            if item.logprobs:
                text = found[0].get("text", "")
                place = self.length + max(len(text) - sum(len(token["token"]) for token in item.logprobs), 0)
                found[0]["logprobs"] = _columns(item.logprobs, place)
            if item.other_logprobs and self._reasoning != "drop":
                found[0]["reasoning_logprobs"] = _columns(item.other_logprobs, None)
        self.length += sum(len(delta.get("text", "")) for delta in found)
        return [delta for delta in found if delta]

    def _call(self, item: ReplyEvent) -> list[Delta]:
        """Calls are held until they end, and written as text."""
        event = item.event
        if isinstance(event, PartStart) and event.kind == "tool_call":
            self._held[event.index] = (event, [])
            return self.deltas_of(ReplyEvent(item.choice, PartStart(event.index, "tool_call")))
        if isinstance(event, ToolCallDelta):
            self._held[event.index][1].append(event.text)
            return []
        if isinstance(event, PartEnd) and event.index in self._held:
            start, arguments = self._held.pop(event.index)
            if item.shown is None:
                return self.deltas_of(item)
            name = as_json(start.name)
            written = item.written or f'{{"name": {name}, "arguments": {"".join(arguments) or "{}"}}}'
            return self.deltas_of(ReplyEvent(item.choice, event, written=written))
        return self.deltas_of(item)


def _columns(tokens: tuple[dict[str, Any], ...], place: int | None) -> dict[str, list[Any]]:
    """Tokens as this API has them: lists side by side."""
    columns: dict[str, list[Any]] = {
        "tokens": [token["token"] for token in tokens],
        "token_logprobs": [token.get("logprob") for token in tokens],
        "top_logprobs": [token.get("top_logprobs") for token in tokens],
    }
    if place is not None:
        offsets = columns["text_offset"] = []
        for token in columns["tokens"]:
            offsets.append(place)
            place += len(token)
    return columns
