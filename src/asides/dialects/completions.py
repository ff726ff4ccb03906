"""Plain completions (`/v1/completions`): a bare prompt in, text out; requests and replies, streamed and whole.

What this API cannot say: messages, images, tools, calls (one that was read is written as text). It has no place of its
own for thinking, which stands beside `text` under the name that chat completions use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..events import PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from ..reply.items import Begin, Chunk, Ended, Failed, Foreign, ReplyEvent, ReplyItem, Usage
from .checks import expect, expect_object, optional
from .fields import as_json, as_objects, as_reply
from .framing import DONE, sse, to_json
from .openai_chat.reader import (
    ChoiceReader,
    failed_of,
    read_begin,
    read_error,
    read_usage,
    unknown_fields,
    write_error,
)
from .openai_chat.reader import ReplyReader as ChatReader
from .openai_chat.request import (
    REASONING,
    SAMPLING,
    THINKING,
    read_options,
    read_stop,
    read_thinking_options,
    write_thinking_options,
)
from .openai_chat.writer import ChoiceWriter, Delta, Reasoning, chosen, head, write_usage
from .request import Request, RequestError, WriteOptions, leave_out

NAME = "completions"

__all__ = [
    "NAME",
    "ReplyReader",
    "ReplyWriter",
    "read_error",
    "read_reply",
    "read_request",
    "write_error",
    "write_reply",
    "write_request",
]

_KNOWN = frozenset(
    {
        "model",
        "prompt",
        "stream",
        "stream_options",
        "n",
        "max_tokens",
        "stop",
        "logprobs",
        "chat_template_kwargs",
        "response_format",
        "user",
        *SAMPLING,
        *THINKING,
    }
)
_ESSENTIAL = frozenset({"best_of", "echo", "grammar", "guided_json", "guided_regex", "json_schema", "suffix"})


# Requests.


def read_request(body: Any) -> Request:
    """Understand a request; `RequestError` names the field that cannot be."""
    body = expect_object(body)
    prompt = body.get("prompt")
    extra = {name: value for name, value in body.items() if name not in _KNOWN}
    essential = sorted(name for name in _ESSENTIAL & extra.keys() if extra[name])
    prompts = 1
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        prompt = prompt[0]
    if isinstance(prompt, list) and prompt:
        # Several prompts, or token ids: only this API has them.
        extra["prompt"] = prompt
        essential.append("prompt")
        prompts = 1 if isinstance(prompt[0], int) else len(prompt)
        prompt = ""
    template = optional(body, "chat_template_kwargs", dict, {})
    include_usage, more = read_options(body)
    if more:
        extra["stream_options"] = more
    choices = optional(body, "n", int, 1)
    if choices < 1:
        raise RequestError("n must be at least 1", "n")
    logprobs = body.get("logprobs")
    return Request(
        dialect=NAME,
        model=optional(body, "model", str, ""),
        prompt=expect(prompt, str, "prompt"),
        thinking=read_thinking_options(body, template),
        stream=optional(body, "stream", bool, False),
        include_usage=include_usage,
        choices=choices * prompts,
        max_tokens=None if body.get("max_tokens") is None else expect(body["max_tokens"], int, "max_tokens"),
        stop=read_stop(body.get("stop")),
        sampling={ours: body[name] for name, ours in SAMPLING.items() if body.get(name) is not None},
        response_format=body.get("response_format"),
        logprobs=logprobs is not None and logprobs is not False,
        top_logprobs=logprobs if type(logprobs) is int else None,
        template_arguments=template,
        user=None if body.get("user") is None else expect(body["user"], str, "user"),
        extra=extra,
        essential=tuple(essential),
    )


def write_request(request: Request, options: WriteOptions = WriteOptions()) -> dict[str, Any]:  # noqa: B008
    """The request for an upstream that completes bare prompts."""
    leave_out(request, NAME)
    if request.prompt is None:
        raise RequestError("messages have no counterpart in plain completions; send a prompt", "messages")
    if request.turns:
        raise RequestError("plain completions take a bare prompt and no messages", "messages")
    if request.tools:
        raise RequestError("tools have no counterpart in plain completions", "tools")
    same = request.dialect == NAME
    extra = dict(request.extra) if same else {}
    prompt = extra.pop("prompt", request.prompt)
    body: dict[str, Any] = {"model": options.model or request.model, "prompt": prompt}
    stream_options = extra.pop("stream_options", {})
    if request.stream if options.stream is None else options.stream:
        body["stream"] = True
        if request.include_usage or not same:
            stream_options = {**stream_options, "include_usage": True}
        if stream_options:
            body["stream_options"] = stream_options
    several = isinstance(prompt, list) and not isinstance(prompt[0], int)
    choices = request.choices // (len(prompt) if several else 1)
    if choices > 1:
        body["n"] = choices
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.stop:
        body["stop"] = list(request.stop)
    body.update({name: request.sampling[ours] for name, ours in SAMPLING.items() if ours in request.sampling})
    if request.logprobs:
        body["logprobs"] = request.top_logprobs or 0
    if request.response_format is not None:
        body["response_format"] = request.response_format
    if request.user is not None:
        body["user"] = request.user
    write_thinking_options(body, request, options, same)
    return {**body, **extra}


# Replies, read.


class ReplyReader(ChatReader):
    """Reads a streamed reply from bytes cut anywhere."""

    _dialect = NAME

    def _read(self, reader: ChoiceReader, choice: dict[str, Any], pieces: list[Chunk]) -> None:
        _read_choice(reader, choice, pieces)

    def _path(self, field: str) -> tuple[str | int, ...]:
        return ("choices", 0, "text" if field == "content" else field)


def read_reply(body: Any) -> list[Chunk]:
    """A whole reply."""
    body = as_reply(body)
    choices = as_objects(body.get("choices"))
    if not choices:
        return [failed_of(body, 502)]
    pieces: list[Chunk] = [read_begin(body, unknown_fields(body), NAME)]
    for position, choice in enumerate(choices):
        number = choice.get("index")
        reader = ChoiceReader(number if type(number) is int else position)
        _read_choice(reader, choice, pieces)
        if not reader.ended:
            pieces.append(Ended(reader.number))
    if isinstance(body.get("usage"), dict):
        pieces.append(read_usage(body["usage"]))
    return pieces


def _read_choice(reader: ChoiceReader, choice: dict[str, Any], pieces: list[Chunk]) -> None:
    delta: Delta = {name: choice[name] for name in (*REASONING, "reasoning_details") if choice.get(name)}
    delta["content"] = choice.get("text")
    rest = {name: value for name, value in choice.items() if name not in delta}
    if rest.get("logprobs"):
        rest["logprobs"] = {"content": _read_tokens(rest["logprobs"])}
    reader.read(rest, delta, pieces)


def _read_tokens(logprobs: Any) -> list[dict[str, Any]]:
    """Four lists side by side become one of tokens."""
    if not isinstance(logprobs, dict) or not isinstance(logprobs.get("tokens"), list):
        return []
    tokens = logprobs["tokens"]
    columns = [logprobs.get(name) for name in ("token_logprobs", "top_logprobs")]
    logs, tops = (column if isinstance(column, list) and len(column) == len(tokens) else [None] * len(tokens)
                  for column in columns)  # fmt: skip
    return [
        {"token": token, "logprob": log, "top_logprobs": top}
        for token, log, top in zip(tokens, logs, tops, strict=True)
    ]


# Replies, written.


class ReplyWriter:
    """Writes a streamed reply."""

    def __init__(self, request: Request, *, reasoning: Reasoning = "reasoning_content") -> None:
        self._request = request
        self._reasoning = chosen(reasoning, request)
        self._same = False
        self._failed = False
        self._fields: dict[str, Any] = {}
        self._choices: dict[int, _Choice] = {}
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
            return b"".join(self._chunk(item.choice, delta) for delta in choice.told(item))
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

    def _choice(self, number: int) -> _Choice:
        if not self._base:
            self._start(Begin())
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = _Choice(self._reasoning, self._same)
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
    writers: dict[int, _Choice] = {}
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
            writer = writers.setdefault(item.choice, _Choice(reasoning, begin.dialect == NAME))
            choice = written.setdefault(item.choice, {"index": item.choice, "text": "", "logprobs": None})
            if isinstance(item, Ended):
                _add(choice, {**writer.end(item), "finish_reason": item.reason})
            else:
                for delta in writer.told(item):
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


class _Choice(ChoiceWriter):
    """One choice: from items to fields of a choice."""

    def __init__(self, reasoning: Reasoning, same: bool) -> None:
        super().__init__(reasoning, same)
        self._held: dict[int, tuple[PartStart, list[str]]] = {}
        self.text = self.thought = b""
        """What a frame of a stream begins with."""
        self.length = 0
        """How many characters of text have been written."""

    def told(self, item: ReplyEvent) -> list[dict[str, Any]]:
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
            return self.say(ReplyEvent(item.choice, PartStart(event.index, "tool_call")))
        if isinstance(event, ToolCallDelta):
            self._held[event.index][1].append(event.text)
            return []
        if isinstance(event, PartEnd) and event.index in self._held:
            start, arguments = self._held.pop(event.index)
            if item.shown is None:
                return self.say(item)
            name = as_json(start.name)
            written = item.written or f'{{"name": {name}, "arguments": {"".join(arguments) or "{}"}}}'
            return self.say(ReplyEvent(item.choice, event, written=written))
        return self.say(item)


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
