"""Anthropic's Messages API: `/v1/messages`, requests and replies, streamed and whole.

Owns the shape of that API; knows no socket and no marker. What it cannot say: more than one choice, log probabilities,
a call that is not whole (it becomes text), where one of two neighbouring texts ends (they share a block), whether
thinking was cut off, `json_object` without a schema, a seed or penalties.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import msgspec

from ..events import PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from .checks import expect, optional
from .framing import Frame, SseReader, sse, to_json
from .reply import Begin, CallPiece, Ended, Failed, Foreign, Item, Piece, Reason, Said, Thought, Usage, Words
from .request import CallPiece as EarlierCall
from .request import (
    ImagePiece,
    OtherPiece,
    Request,
    RequestError,
    RequestPiece,
    TextPiece,
    ThinkingPiece,
    Tool,
    Turn,
    Wish,
    WriteOptions,
    leave_out,
    log,
)
from .whole_calls import HeldCalls, WholeCall, to_object

NAME = "anthropic"

MAX_TOKENS = 8192
"""What is asked for when the caller names no limit: this API wants one."""
SMALLEST_BUDGET = 1024
"""Anthropic refuses a smaller budget for thinking."""
PING = sse(b'{"type":"ping"}', "ping")
"""What a client hears while nothing can be told."""
PING_EVERY = 16
"""A call is held until it is whole; after every so many pieces of it there is a ping."""


# Requests, read.

_SAMPLING = ("temperature", "top_p", "top_k")
_READ = {
    *("model", "messages", "system", "max_tokens", "stream", "stop_sequences", "metadata", "tools", "tool_choice"),
    *("thinking", "output_config", "output_format"),
    *_SAMPLING,
}
_ESSENTIAL = ("container", "mcp_servers")
"""Fields that change what is asked, besides tools that Anthropic itself runs."""


def read_request(body: dict[str, Any]) -> Request:
    """A request for `/v1/messages`, or for counting its tokens."""
    config = optional(body, "output_config", dict, {})
    metadata = optional(body, "metadata", dict, {})
    thinking = optional(body, "thinking", dict, {})
    tool_choice = optional(body, "tool_choice", dict, {})
    tools, hosted = _read_tools(optional(body, "tools", list, []))
    extra = {name: value for name, value in body.items() if name not in _READ and value is not None} | hosted
    for name, rest in (
        ("metadata", _without(metadata, "user_id")),
        ("output_config", _without(config, "effort", "format")),
    ):
        if rest:
            extra[name] = rest
    return Request(
        dialect=NAME,
        model=optional(body, "model", str, ""),
        turns=(*_read_system(body.get("system")), *_read_messages(optional(body, "messages", list, []))),
        tools=tools,
        tool_choice=_read_tool_choice(tool_choice),
        parallel_calls=False if tool_choice.get("disable_parallel_tool_use") is True else None,
        wish=_read_wish(thinking, config),
        stream=optional(body, "stream", bool, False),
        max_tokens=optional(body, "max_tokens", int, 0) or None,
        stop=tuple(expect(stop, str, "stop_sequences") for stop in optional(body, "stop_sequences", list, [])),
        sampling={name: body[name] for name in _SAMPLING if body.get(name) is not None},
        response_format=_read_format(config.get("format") or body.get("output_format")),
        user=optional(metadata, "user_id", str, "", "metadata.") or None,
        extra=extra,
        essential=(*hosted, *(name for name in _ESSENTIAL if name in extra)),
    )


def _read_wish(thinking: dict[str, Any], config: dict[str, Any]) -> Wish:
    effort = optional(config, "effort", str, "", "output_config.") or None
    if not thinking:
        return Wish(effort=effort)
    kind = thinking.get("type")
    if kind not in ("enabled", "adaptive", "between_tools", "disabled"):
        raise RequestError("thinking.type must be enabled, adaptive, between_tools or disabled", "thinking.type")
    if kind == "disabled":
        return Wish(think=False, show=False, effort=effort, sent={"thinking": thinking})
    return Wish(
        think=True,
        effort=effort,
        budget=optional(thinking, "budget_tokens", int, 0, "thinking.") or None,
        omitted=thinking.get("display") == "omitted",
        sent={"thinking": thinking},
    )


def _read_format(format: Any) -> dict[str, Any] | None:
    if format is None:
        return None
    schema = expect(expect(format, dict, "output_config.format").get("schema"), dict, "output_config.format.schema")
    return {"type": "json_schema", "json_schema": {"name": "response", "schema": schema, "strict": True}}


def _read_tools(tools: list[Any]) -> tuple[tuple[Tool, ...], dict[str, Any]]:
    """The caller's own tools, and those that Anthropic runs."""
    own: list[Tool] = []
    hosted: dict[str, Any] = {}
    for number, tool in enumerate(tools):
        where = f"tools.{number}"
        expect(tool, dict, where)
        if tool.get("type") not in (None, "custom"):
            hosted[f"tools.{tool['type']}"] = tool
            continue
        own.append(
            Tool(
                name=expect(tool.get("name"), str, f"{where}.name"),
                description=optional(tool, "description", str, "", f"{where}."),
                parameters=optional(tool, "input_schema", dict, {}, f"{where}."),
                strict=tool.get("strict"),
                extra=_without(tool, "name", "description", "input_schema", "strict"),
            )
        )
    return tuple(own), hosted


def _read_tool_choice(choice: dict[str, Any]) -> str:
    match choice.get("type", "auto"):
        case "auto":
            return "auto"
        case "none":
            return "none"
        case "any":
            return "required"
        case "tool":
            return "function:" + expect(choice.get("name"), str, "tool_choice.name")
    raise RequestError("tool_choice.type must be auto, any, tool or none", "tool_choice.type")


def _read_system(system: Any) -> Iterator[Turn]:
    if not system:
        return
    yield Turn("system", _read_content(system, "system"))


def _read_messages(messages: list[Any]) -> Iterator[Turn]:
    names: dict[str, str] = {}
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        role = expect(message, dict, where).get("role")
        extra = _without(message, "role", "content")
        if role == "assistant" or role == "system":
            pieces = _read_content(message.get("content"), f"{where}.content")
            names |= {piece.id: piece.name for piece in pieces if isinstance(piece, EarlierCall)}
            yield Turn(role, pieces, extra=extra)
        elif role == "user":
            yield from _read_user(message.get("content"), f"{where}.content", names, extra)
        else:
            raise RequestError(f"{where}.role must be user or assistant", f"{where}.role")


def _read_user(content: Any, where: str, names: dict[str, str], extra: dict[str, Any]) -> Iterator[Turn]:
    """Results of tools come first, whatever stands around them: they answer the message before."""
    if isinstance(content, str):
        yield Turn("user", (TextPiece(content),), extra=extra)
        return
    words: list[RequestPiece] = []
    for number, block in enumerate(expect(content, list, where)):
        path = f"{where}.{number}"
        if expect(block, dict, path).get("type") != "tool_result":
            words.append(_read_block(block, path))
            continue
        id = expect(block.get("tool_use_id"), str, f"{path}.tool_use_id")
        yield Turn(
            "tool",
            _read_content(block.get("content") or "", f"{path}.content"),
            call_id=id,
            tool_name=names.get(id, ""),
            is_error=block.get("is_error") is True,
            extra=_without(block, "type", "tool_use_id", "content", "is_error"),
        )
    if words:
        yield Turn("user", tuple(words), extra=extra)


def _read_content(content: Any, where: str) -> tuple[RequestPiece, ...]:
    if isinstance(content, str):
        return (TextPiece(content),) if content else ()
    return tuple(
        _read_block(expect(block, dict, f"{where}.{number}"), f"{where}.{number}")
        for number, block in enumerate(expect(content, list, where))
    )


def _read_block(block: dict[str, Any], where: str) -> RequestPiece:
    match block.get("type"):
        case "text":
            return TextPiece(expect(block.get("text"), str, f"{where}.text"), _without(block, "type", "text"))
        case "thinking":
            return ThinkingPiece(
                optional(block, "thinking", str, "", f"{where}."), optional(block, "signature", str, "", f"{where}.")
            )
        case "redacted_thinking":
            return ThinkingPiece("", details=(block,))
        case "tool_use":
            return EarlierCall(
                expect(block.get("name"), str, f"{where}.name"),
                to_json(optional(block, "input", dict, {}, f"{where}.")).decode(),
                expect(block.get("id"), str, f"{where}.id"),
                _without(block, "type", "name", "input", "id"),
            )
        case "image":
            source = expect(block.get("source"), dict, f"{where}.source")
            extra = _without(block, "type", "source")
            if source.get("type") == "base64":
                data = expect(source.get("data"), str, f"{where}.source.data")
                kind = optional(source, "media_type", str, "image/png", f"{where}.source.")
                return ImagePiece(data=data, media_type=kind, extra=extra)
            if source.get("type") == "url":
                return ImagePiece(url=expect(source.get("url"), str, f"{where}.source.url"), extra=extra)
        case None:
            raise RequestError(f"{where}.type is missing", f"{where}.type")
    return OtherPiece(block)


def _without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names and value is not None}


# Requests, written.

_UNFIT = re.compile("[^a-zA-Z0-9_-]")
"""What this API allows in no id of a call."""


def write_request(request: Request, options: WriteOptions = WriteOptions()) -> dict[str, Any]:
    """The request for an upstream that speaks this dialect."""
    leave_out(request, NAME)
    for param, asked in (("n", request.choices > 1), ("logprobs", request.logprobs)):
        if asked:
            raise RequestError(f"{param} has no counterpart in {NAME}; leave it out", param)
    if request.prompt is not None and not request.turns:
        raise RequestError(f"{NAME} takes messages, no bare prompt", "prompt")
    own = request.dialect == NAME
    extra = request.extra if own else {}
    system, messages = _write_turns(request.turns, own, options)
    body: dict[str, Any] = {"model": options.model or request.model, "messages": messages}
    body["max_tokens"] = request.max_tokens or MAX_TOKENS + (request.wish.budget or 0)
    tools = [_write_tool(tool, own) for tool in request.tools]
    tools += [tool for name, tool in extra.items() if name.startswith("tools.")]
    for name, value in (
        ("system", system),
        ("tools", tools),
        ("tool_choice", _write_tool_choice(request) if tools else None),
        ("thinking", _write_thinking(request, body["max_tokens"])),
        ("output_config", _write_config(request) | extra.get("output_config", {})),
        ("metadata", ({"user_id": request.user} if request.user else {}) | extra.get("metadata", {})),
        ("stop_sequences", list(request.stop)),
        ("stream", request.stream if options.stream is None else options.stream),
    ):
        if value:
            body[name] = value
    body |= {name: value for name, value in request.sampling.items() if name in _SAMPLING}
    lost = [name for name in request.sampling if name not in _SAMPLING]
    lost += ["chat_template_kwargs"] if request.template_arguments else []
    if lost:
        log.info("left out, no counterpart in %s: %s", NAME, ", ".join(lost))
    return body | {name: value for name, value in extra.items() if "." not in name and name not in body}


def _write_tool(tool: Tool, own: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"name": tool.name}
    if tool.description:
        body["description"] = tool.description
    body["input_schema"] = tool.parameters or {"type": "object", "properties": {}}
    if tool.strict is not None:
        body["strict"] = tool.strict
    return body | (tool.extra if own else {})


def _write_tool_choice(request: Request) -> dict[str, Any]:
    kind, _, name = request.tool_choice.partition(":")
    choice: dict[str, Any] = {"type": {"required": "any", "function": "tool"}.get(kind, kind)}
    if name:
        choice["name"] = name
    if request.parallel_calls is False and kind != "none":
        choice["disable_parallel_tool_use"] = True
    return {} if choice == {"type": "auto"} else choice


def _write_thinking(request: Request, max_tokens: int) -> dict[str, Any]:
    wish = request.wish
    if request.dialect == NAME:
        return expect(wish.sent.get("thinking", {}), dict, "thinking")
    if wish.think is False or wish.effort == "none":
        return {"type": "disabled"}
    if wish.budget is not None:
        budget = min(wish.budget, max_tokens - 1)
        return {"type": "enabled", "budget_tokens": max(budget, SMALLEST_BUDGET)}
    return {"type": "adaptive"} if wish.think or wish.effort else {}


def _write_config(request: Request) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if request.wish.effort not in (None, "none"):
        config["effort"] = "low" if request.wish.effort == "minimal" else request.wish.effort
    format = request.response_format
    if format is not None and format.get("type") != "text":
        if format.get("type") != "json_schema":
            raise RequestError(f"{NAME} needs a schema: response_format must be json_schema", "response_format")
        config["format"] = {"type": "json_schema", "schema": format.get("json_schema", {}).get("schema", {})}
    return config


def _write_turns(turns: Iterable[Turn], own: bool, options: WriteOptions) -> tuple[Any, list[dict[str, Any]]]:
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    answering = False
    """Whether the last message holds results of tools; what the user says next belongs to it."""
    for turn in turns:
        blocks = list(_write_pieces(turn, own, options.replay != "drop"))
        extra = turn.extra if own else {}
        if turn.role in ("system", "developer") and not (own and messages):
            system += blocks
            continue
        if turn.role == "tool":
            blocks = [_write_result(turn, blocks, extra)]
            extra = {}
        if answering and turn.role in ("tool", "user"):
            messages[-1]["content"] += blocks
        else:
            role = turn.role if turn.role in ("assistant", "system") else "user"
            messages.append({"role": role, "content": blocks, **extra})
        answering = turn.role == "tool"
    for message in messages:
        message["content"] = _shortest(message["content"])
    return _shortest(system), messages


def _shortest(blocks: list[dict[str, Any]]) -> Any:
    """A lone text is written as a string."""
    if not blocks:
        return ""
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} else blocks


def _write_result(turn: Turn, blocks: list[dict[str, Any]], extra: dict[str, Any]) -> dict[str, Any]:
    result = {"type": "tool_result", "tool_use_id": _fit(turn.call_id), "content": _shortest(blocks)}
    return result | ({"is_error": True} if turn.is_error else {}) | extra


def _fit(id: str) -> str:
    return _UNFIT.sub("_", id)


def _write_pieces(turn: Turn, own: bool, replay: bool) -> Iterator[dict[str, Any]]:
    for piece in turn.pieces:
        match piece:
            case TextPiece(text="") | ThinkingPiece(text="", signature="", details=()):
                continue
            case TextPiece():
                yield {"type": "text", "text": piece.text, **(piece.extra if own else {})}
            case ThinkingPiece():
                if replay:
                    yield from _write_thought(piece)
            case EarlierCall():
                value = to_object(piece.arguments or "{}")
                if value is None:
                    value = {"unparsed": piece.arguments}  # the result that answers it needs a call
                call = {"type": "tool_use", "id": _fit(piece.id), "name": piece.name, "input": value}
                yield call | (piece.extra if own else {})
            case ImagePiece():
                yield {"type": "image", "source": _write_source(piece), **(piece.extra if own else {})}
            case OtherPiece(data=data):
                if not own:
                    kind = str(data.get("type", "content"))
                    raise RequestError(f"content of type {kind!r} has no counterpart in {NAME}", "messages")
                yield data


def _write_thought(piece: ThinkingPiece) -> Iterator[dict[str, Any]]:
    redacted = [detail for detail in piece.details if detail.get("type") == "redacted_thinking"]
    yield from redacted
    if piece.text or (piece.signature and not redacted):
        yield {"type": "thinking", "thinking": piece.text, "signature": piece.signature or sign(piece.text)}


def _write_source(piece: ImagePiece) -> dict[str, Any]:
    if piece.data:
        return {"type": "base64", "media_type": piece.media_type or "image/png", "data": piece.data}
    if piece.url.startswith("data:"):
        head, _, data = piece.url.partition(",")
        return {"type": "base64", "media_type": head[5:].partition(";")[0] or "image/png", "data": data}
    return {"type": "url", "url": piece.url}


# Replies, read.


class _Delta(msgspec.Struct, gc=False):
    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    signature: str = ""
    stop_reason: str | None = None
    stop_sequence: str | None = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    message: dict[str, Any] | None = None
    content_block: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None


_decode_event = msgspec.json.Decoder(_Event).decode
_REASONS: dict[str | None, Reason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_PLAIN_REASONS = (None, "end_turn", "max_tokens", "refusal", "stop_sequence", "tool_use")


class ReplyReader:
    """A streamed reply of an upstream that speaks this dialect."""

    __slots__ = ("_block", "_delta", "_inputs", "_over", "_sse", "_stop", "_told", "_usage")

    def __init__(self) -> None:
        self._sse = SseReader()
        self._block: dict[str, Any] = {}
        """The block that is open."""
        self._told = False
        """Whether anything of it was told."""
        self._inputs: list[str] = []
        self._usage: dict[str, Any] = {}
        self._delta: dict[str, Any] = {}
        self._stop = False
        """Whether a reason for the end was given."""
        self._over = False

    def feed(self, chunk: bytes) -> list[Piece]:
        """Read bytes and return what they tell."""
        return [piece for frame in self._sse.feed(chunk) for piece in self._read(frame)]

    def finish(self) -> list[Piece]:
        """The stream is over."""
        pieces = [piece for frame in self._sse.finish() for piece in self._read(frame)]
        if not self._over:
            pieces += self._end() if self._stop else [death()]
        return pieces

    def _read(self, frame: Frame) -> list[Piece]:
        if self._over:
            return []
        try:
            event = _decode_event(frame.data)
        except (msgspec.MsgspecError, UnicodeEncodeError):
            return self._odd(frame)
        if event.type == "content_block_delta" and event.delta is not None:
            return self._grow(event.index, event.delta)
        match event.type or frame.event:
            case "message_start":
                return self._begin(event.message or {})
            case "content_block_start":
                return self._start(event.index, event.content_block or {})
            case "content_block_stop":
                return self._close(event.index)
            case "message_delta":
                self._usage |= event.usage or {}
                if event.delta is not None:
                    self._stop = self._stop or event.delta.stop_reason is not None
                    self._delta |= msgspec.json.decode(frame.data)["delta"]
            case "message_stop":
                return self._end()
            case "error":
                return self._fail(msgspec.json.decode(frame.data))
        return []

    def _odd(self, frame: Frame) -> list[Piece]:
        """A frame that is not as it should be: an error in any shape is one, anything else is passed over."""
        body = _any_object(frame.data)
        if frame.event == "error" or "error" in body:
            return self._fail(body or {"message": frame.data})
        log.warning("%s: passed over a frame that cannot be read", NAME)
        return []

    def _fail(self, body: dict[str, Any]) -> list[Piece]:
        self._over = True
        return [_failed(body, None)]

    def _begin(self, message: dict[str, Any]) -> list[Piece]:
        if isinstance(usage := message.get("usage"), dict):
            self._usage |= usage
        return [_read_begin(message)]

    def _start(self, index: int, block: dict[str, Any]) -> list[Piece]:
        self._block, self._told, self._inputs = block, False, []
        match block.get("type"):
            case "text":
                return _words(block.get("text"))
            case "thinking":
                return self._thought(_string(block.get("thinking")), _string(block.get("signature")), True)
            case "tool_use":
                self._told = bool(block.get("input"))
                return [_read_call(index, block, "" if not self._told else None)]
        return []

    def _thought(self, text: str, signature: str, begins: bool = False) -> list[Piece]:
        if text:
            self._told = True
        elif signature and not self._told:
            self._block = {**self._block, "signature": signature}
        return [Thought(0, text, "thinking", signature=signature, begins=begins)]

    def _grow(self, index: int, delta: _Delta) -> list[Piece]:
        kind = delta.type
        if kind == "text_delta":
            return [Words(0, delta.text)]
        if kind == "thinking_delta":
            return self._thought(delta.thinking, "")
        if kind == "signature_delta":
            return self._thought("", delta.signature)
        if kind == "input_json_delta":
            if self._block.get("type") != "tool_use":
                self._inputs.append(delta.partial_json)
            elif delta.partial_json:
                self._told = True
                return [CallPiece(0, index, arguments=delta.partial_json)]
        return []

    def _close(self, index: int) -> list[Piece]:
        block, self._block = self._block, {}
        match block.get("type"):
            case "tool_use" if not self._told:
                return [CallPiece(0, index, arguments="{}")]
            case "thinking" if not self._told and block.get("signature"):
                return [_foreign(block)]  # thinking whose text is omitted
            case "tool_use" | "thinking" | "text" | None:
                return []
        if self._inputs:
            block = {**block, "input": _any_object("".join(self._inputs))}
        return [_foreign(block)]

    def _end(self) -> list[Piece]:
        self._over = True
        return _read_end(self._delta, self._usage)


def read_reply(body: dict[str, Any]) -> list[Piece]:
    """A whole reply."""
    content = body.get("content")
    if body.get("type") == "error" or not isinstance(content, list):
        return [_failed(body, None)]
    pieces: list[Piece] = [_read_begin(body)]
    for index, block in enumerate(content):
        if not isinstance(block, dict):
            continue
        match block.get("type"):
            case "text":
                pieces += _words(block.get("text"))
            case "thinking" if block.get("thinking"):
                text, signature = _string(block["thinking"]), _string(block.get("signature"))
                pieces.append(Thought(0, text, "thinking", signature=signature, begins=True))
            case "tool_use":
                pieces.append(_read_call(index, block, None))
            case _:
                pieces.append(_foreign(block))
    usage = body.get("usage")
    return pieces + _read_end(_without(body, "usage"), usage if isinstance(usage, dict) else {})


def _read_begin(message: dict[str, Any]) -> Begin:
    return Begin(_string(message.get("id")), _string(message.get("model")), dialect=NAME)


def _read_call(index: int, block: dict[str, Any], arguments: str | None) -> CallPiece:
    if arguments is None:
        arguments = to_json(block.get("input") or {}).decode()
    return CallPiece(0, index, _string(block.get("id")), _string(block.get("name")), arguments)


def _read_end(delta: dict[str, Any], usage: dict[str, Any]) -> list[Piece]:
    reason = delta.get("stop_reason")
    extra = {name: delta[name] for name in ("stop_details", "container") if delta.get(name) is not None}
    if reason not in _PLAIN_REASONS:
        extra["stop_reason"] = reason
    stop = delta.get("stop_sequence")
    ended = Ended(0, _REASONS.get(str(reason), "stop"), stop if isinstance(stop, str) else None, extra)
    return [ended, _read_usage(usage)] if usage else [ended]


def _read_usage(usage: dict[str, Any]) -> Usage:
    """Anthropic counts what was read from or written to a cache beside the input, not within."""
    details = usage.get("output_tokens_details")
    thought = details.get("thinking_tokens") if isinstance(details, dict) else None
    cached = _count(usage.get("cache_read_input_tokens"))
    return Usage(
        _count(usage.get("input_tokens")) + cached + _count(usage.get("cache_creation_input_tokens")),
        _count(usage.get("output_tokens")),
        thought if isinstance(thought, int) else None,
        isinstance(details, dict) and details.get("estimated") is True,
        cached_tokens=cached,
        extra=usage,
    )


def _words(text: Any) -> list[Piece]:
    return [Words(0, text)] if isinstance(text, str) and text else []


def _foreign(block: dict[str, Any]) -> Foreign:
    return Foreign(NAME, "content_block", block)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _any_object(data: str) -> dict[str, Any]:
    return to_object(data) or {}


# Replies, written.


def sign(thinking: str) -> str:
    """The signature of thinking that no other server has signed. It proves nothing; clients want one."""
    return _signature(hashlib.sha256(thinking.encode("utf-8", "surrogatepass")))


def _signature(digest: Any) -> str:
    return "asides-" + str(digest.hexdigest()[:32])


class _Sink(Protocol):
    """Where blocks go: into a stream or into a whole reply."""

    def start(self, index: int, block: dict[str, Any]) -> None: ...
    def delta(self, index: int, kind: str, field: str, text: str) -> None: ...
    def stop(self, index: int) -> None: ...
    def ping(self) -> None: ...


class _Blocks:
    """From the parts of a choice to blocks, one after the other."""

    def __init__(self, request: Request, sink: _Sink) -> None:
        self._sink = sink
        self._show = request.wish.show
        self._omitted = request.wish.omitted
        self._index = -1
        self._open = ""
        """The type of the block that is open."""
        self._gap = ""
        self._apart = False
        """Whether a call that became text came last."""
        self._thinking = -1
        """The part that is thinking, while its block is open."""
        self._digest = hashlib.sha256()
        self._signature = ""
        self._calls = HeldCalls()
        self._pieces = 0
        self.called = False
        """Whether a call was written."""

    def said(self, item: Said) -> None:
        """Write what a part tells."""
        event = item.event
        if isinstance(event, TextDelta):
            self._text(event.text)
        elif isinstance(event, ThinkingDelta):
            if self._open == "thinking":
                self._signature = item.signature or self._signature
                self._think(event.text)
        elif isinstance(event, ToolCallDelta):
            self._calls.grow(event)
            self._pieces += 1
            if self._pieces % PING_EVERY == 0:
                self._sink.ping()
        elif isinstance(event, PartStart):
            self._start(event)
        elif isinstance(event, PartEnd):
            if event.index == self._thinking:
                self.close()
            elif (call := self._calls.end(event, item.written)) is not None:
                self._call(call)

    def _start(self, event: PartStart) -> None:
        if event.kind == "text":
            self._gap = event.gap or ("\n\n" if self._apart else "")
            self._apart = False
        elif event.kind == "tool_call":
            self._calls.begin(event)
            self._pieces = 0
            self._sink.ping()
        elif self._show:
            self._block({"type": "thinking", "thinking": "", "signature": ""})
            self._thinking = event.index
            self._digest = hashlib.sha256()
            self._signature = ""

    def _text(self, text: str) -> None:
        if self._open != "text":
            self._block({"type": "text", "text": ""})
        elif self._gap:
            text = self._gap + text
        self._gap = ""
        self._sink.delta(self._index, "text_delta", "text", text)

    def _think(self, text: str) -> None:
        self._digest.update(text.encode("utf-8", "surrogatepass"))
        if text and not self._omitted:
            self._sink.delta(self._index, "thinking_delta", "thinking", text)

    def _call(self, call: WholeCall | str) -> None:
        if isinstance(call, str):
            if call:
                self._gap = "\n\n"
                self._text(call)
                self._apart = True
            return
        id = call.id or "toolu_" + secrets.token_hex(12)
        self._block({"type": "tool_use", "id": id, "name": call.name, "input": {}})
        self._sink.delta(self._index, "input_json_delta", "partial_json", call.arguments)
        self.close()
        self.called = True

    def foreign(self, block: dict[str, Any]) -> None:
        """Write a block that only this dialect understands."""
        if block.get("type") in ("thinking", "redacted_thinking") and not self._show:
            return
        if block.get("type") == "thinking":
            self._block({"type": "thinking", "thinking": "", "signature": ""})
            self._signature = _string(block.get("signature"))
        else:
            self._block(block)
        self.close()

    def _block(self, block: dict[str, Any]) -> None:
        self.close()
        self._index += 1
        self._open = str(block.get("type"))
        self._gap, self._apart = "", False
        self._sink.start(self._index, block)

    def close(self) -> None:
        """End the block that is open."""
        if not self._open:
            return
        if self._open == "thinking":
            signature = self._signature or _signature(self._digest)
            self._sink.delta(self._index, "signature_delta", "signature", signature)
        self._sink.stop(self._index)
        self._open, self._thinking = "", -1


class _Streamed:
    """Blocks as events."""

    def __init__(self) -> None:
        self.out: list[bytes] = []

    def start(self, index: int, block: dict[str, Any]) -> None:
        self._event("content_block_start", {"index": index, "content_block": block})

    def delta(self, index: int, kind: str, field: str, text: str) -> None:
        self.out.append(
            b"event: content_block_delta\ndata: "
            b'{"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":%b}}\n\n'
            % (index, kind.encode(), field.encode(), to_json(text))
        )

    def stop(self, index: int) -> None:
        self._event("content_block_stop", {"index": index})

    def ping(self) -> None:
        self.out.append(PING)

    def _event(self, kind: str, fields: dict[str, Any]) -> None:
        self.out.append(sse(to_json({"type": kind, **fields}), kind))


class _Gathered:
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

    def ping(self) -> None:
        pass


class _Reply:
    """What both ways of writing a reply know of it besides its blocks."""

    def __init__(self, request: Request, sink: _Sink) -> None:
        self.request = request
        self.blocks = _Blocks(request, sink)
        self.begin: Begin | None = None
        self.ended: Ended | None = None
        self.usage = Usage()
        self.failed: Failed | None = None

    def take(self, item: Item) -> None:
        """Take in an item; its blocks go to the sink."""
        if self.failed is not None:
            return
        if isinstance(item, Said):
            if item.choice == 0:
                self.blocks.said(item)
        elif isinstance(item, Begin):
            self.begin = self.begin or item
        elif isinstance(item, Ended):
            if item.choice == 0:
                self.ended = item
                self.blocks.close()
        elif isinstance(item, Usage):
            self.usage = item
        elif isinstance(item, Failed):
            self.blocks.close()
            self.failed = item
        elif item.dialect == NAME and item.event == "content_block":
            self.blocks.foreign(item.data)

    def message(self) -> dict[str, Any]:
        """The reply without its content."""
        begin = self.begin or Begin()
        id = begin.id or secrets.token_hex(12)
        return {
            "id": id if id.startswith("msg_") else "msg_" + id.removeprefix("chatcmpl-"),
            "type": "message",
            "role": "assistant",
            "model": begin.model or self.request.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _write_usage(Usage(), False),
        }

    def delta(self) -> dict[str, Any]:
        """Why it ended."""
        ended = self.ended or Ended(0)
        extra = ended.extra if self._own else {}
        stop = ended.stop_sequence if ended.stop_sequence in self.request.stop or self._own else None
        reason = "end_turn"
        if ended.reason == "length":
            reason = "max_tokens"
        elif ended.reason == "content_filter":
            reason = "refusal"
        elif self.blocks.called:
            reason = "tool_use"
        elif stop is not None:
            reason = "stop_sequence"
        return {"stop_reason": reason, "stop_sequence": stop if reason == "stop_sequence" else None, **extra}

    def cost(self) -> dict[str, Any]:
        """What it cost."""
        return _write_usage(self.usage, self._own)

    @property
    def _own(self) -> bool:
        return self.begin is not None and self.begin.dialect == NAME


def _write_usage(usage: Usage, own: bool) -> dict[str, Any]:
    extra = usage.extra if own else {}
    created = _count(extra.get("cache_creation_input_tokens"))
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


class ReplyWriter:
    """A streamed reply to a client of this dialect."""

    __slots__ = ("_begun", "_over", "_reply", "_sink")

    def __init__(self, request: Request) -> None:
        self._sink = _Streamed()
        self._reply = _Reply(request, self._sink)
        self._begun = False
        self._over = False

    def feed(self, item: Item) -> bytes:
        """The bytes that this item adds to the stream."""
        if self._over:
            return b""
        reply, out = self._reply, self._sink.out
        out.clear()
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
            return self.feed(death())
        self._over = True
        end = _event("message_delta", delta=self._reply.delta(), usage=self._reply.cost())
        return end + _event("message_stop")


def _event(kind: str, **fields: Any) -> bytes:
    return sse(to_json({"type": kind, **fields}), kind)


def write_reply(items: Iterable[Item], request: Request) -> dict[str, Any]:
    """A whole reply, or the error that it ended with."""
    sink = _Gathered()
    reply = _Reply(request, sink)
    for item in items:
        reply.take(item)
    if reply.failed is not None or reply.ended is None:
        return write_error(reply.failed or death())
    return reply.message() | {"content": sink.blocks} | reply.delta() | {"usage": reply.cost()}


def write_count(tokens: int) -> dict[str, Any]:
    """The reply of `/v1/messages/count_tokens`."""
    return {"input_tokens": tokens}


# Errors.

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_STATUSES = {kind: status for status, kind in reversed(_TYPES.items()) if status != 503}
_KINDS = {
    "billing_error": "insufficient_quota",
    "overloaded_error": "server_error",
    "request_too_large": "invalid_request_error",
    "timeout_error": "server_error",
}
"""Types in OpenAI's words, where they differ."""


def death() -> Failed:
    """The upstream went away in the middle of a reply."""
    return Failed("the upstream ended before the reply did", 502)


def write_error(failed: Failed) -> dict[str, Any]:
    """An error in this dialect's shape."""
    if failed.body is not None and failed.body.get("type") == "error":
        return failed.body
    kind = _TYPES.get(failed.status, "invalid_request_error" if 400 <= failed.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": failed.message}}


def read_error(status: int, body: bytes) -> Failed:
    """The error that an upstream answered with."""
    text = body.decode("utf-8", "replace")
    return _failed(_any_object(text) or {"message": text.strip()}, status)


def _failed(body: dict[str, Any], status: int | None) -> Failed:
    error = body.get("error")
    fields = error if isinstance(error, dict) else {}
    kind = _string(fields.get("type")) or "api_error"
    message = fields.get("message") or (error if isinstance(error, str) else "") or body.get("message")
    return Failed(
        str(message or "the upstream failed without a word"),
        status or _STATUSES.get(kind, 502),
        _KINDS.get(kind, kind),
        body=body if body.get("type") == "error" and fields else None,
    )
