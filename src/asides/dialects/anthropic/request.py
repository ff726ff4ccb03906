"""Requests for Anthropic's Messages API, read and written.

Two things set it apart from chat completions: `system` stands beside the messages, and results of tools are blocks
of a user's message. Reading turns each result into a turn of its own; writing joins results, and what the user says
next, into one message again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ..checks import expect, expect_object, optional
from ..framing import to_json
from ..request import (
    OWN_SIGNATURE,
    CallPiece,
    ImagePiece,
    OtherPiece,
    Request,
    RequestError,
    RequestPiece,
    TextPiece,
    ThinkingOptions,
    ThinkingPiece,
    Tool,
    Turn,
    WriteOptions,
    leave_out,
    log,
)
from ..tags import untagged
from ..whole_calls import to_object

NAME = "anthropic"

MAX_TOKENS = 8192
"""What is asked for when the caller names no limit: this API wants one."""
SMALLEST_BUDGET = 1024
"""Anthropic refuses a smaller budget for thinking."""

_PLAIN = WriteOptions()

# Reading.

_SAMPLING = ("temperature", "top_p", "top_k")
_READ = {
    *("model", "messages", "system", "max_tokens", "stream", "stop_sequences", "metadata", "tools", "tool_choice"),
    *("thinking", "output_config", "output_format"),
    *_SAMPLING,
}
_ESSENTIAL = ("container", "mcp_servers")
"""Fields that change what is asked, besides tools that Anthropic itself runs."""


def read_request(body: Any, path: str = "") -> Request:
    """A request for `/v1/messages`, or for counting its tokens."""
    body = expect_object(body)
    config = optional(body, "output_config", dict, {})
    metadata = optional(body, "metadata", dict, {})
    thinking = optional(body, "thinking", dict, {})
    tool_choice = optional(body, "tool_choice", dict, {})
    tools, hosted = _read_tools(optional(body, "tools", list, []))
    extra = {name: value for name, value in body.items() if name not in _READ and value is not None} | hosted
    for name, rest in (
        ("metadata", without(metadata, "user_id")),
        ("output_config", without(config, "effort", "format")),
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
        thinking=_read_thinking_options(thinking, config),
        stream=optional(body, "stream", bool, False),
        max_tokens=optional(body, "max_tokens", int, 0) or None,
        stop=tuple(expect(stop, str, "stop_sequences") for stop in optional(body, "stop_sequences", list, [])),
        sampling={name: body[name] for name in _SAMPLING if body.get(name) is not None},
        response_format=_read_format(config.get("format", body.get("output_format"))),
        user=optional(metadata, "user_id", str, "", "metadata.") or None,
        extra=extra,
        essential=(*hosted, *(name for name in _ESSENTIAL if name in extra)),
    )


def _read_thinking_options(thinking: dict[str, Any], config: dict[str, Any]) -> ThinkingOptions:
    effort = optional(config, "effort", str, "", "output_config.") or None
    if not thinking:
        return ThinkingOptions(effort=effort)
    kind = thinking.get("type")
    if kind not in ("enabled", "adaptive", "between_tools", "disabled"):
        raise RequestError("thinking.type must be enabled, adaptive, between_tools or disabled", "thinking.type")
    if kind == "disabled":
        return ThinkingOptions(think=False, show=False, effort=effort, sent={"thinking": thinking})
    return ThinkingOptions(
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
                extra=without(tool, "name", "description", "input_schema", "strict"),
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
        extra = without(message, "role", "content")
        if role == "assistant" or role == "system":
            pieces = _read_content(message.get("content"), f"{where}.content")
            if role == "assistant":
                pieces = tuple(_without_tags(pieces))
            names |= {piece.id: piece.name for piece in pieces if isinstance(piece, CallPiece)}
            yield Turn(role, pieces, extra=extra)
        elif role == "user":
            yield from _read_user(message.get("content"), f"{where}.content", names, extra)
        else:
            raise RequestError(f"{where}.role must be user or assistant", f"{where}.role")


def _without_tags(pieces: Iterable[RequestPiece]) -> Iterator[RequestPiece]:
    for piece in pieces:
        yield from untagged(piece.text, piece.extra) if isinstance(piece, TextPiece) else (piece,)


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
            extra=without(block, "type", "tool_use_id", "content", "is_error"),
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
            return TextPiece(expect(block.get("text"), str, f"{where}.text"), without(block, "type", "text"))
        case "thinking":
            return ThinkingPiece(
                optional(block, "thinking", str, "", f"{where}."), optional(block, "signature", str, "", f"{where}.")
            )
        case "redacted_thinking":
            return ThinkingPiece("", details=(block,))
        case "tool_use":
            return CallPiece(
                expect(block.get("name"), str, f"{where}.name"),
                to_json(optional(block, "input", dict, {}, f"{where}.")).decode(),
                expect(block.get("id"), str, f"{where}.id"),
                without(block, "type", "name", "input", "id"),
            )
        case "image":
            source = expect(block.get("source"), dict, f"{where}.source")
            extra = without(block, "type", "source")
            if source.get("type") == "base64":
                data = expect(source.get("data"), str, f"{where}.source.data")
                kind = optional(source, "media_type", str, "image/png", f"{where}.source.")
                return ImagePiece(data=data, media_type=kind, extra=extra)
            if source.get("type") == "url":
                return ImagePiece(url=expect(source.get("url"), str, f"{where}.source.url"), extra=extra)
        case None:
            raise RequestError(f"{where}.type is missing", f"{where}.type")
    return OtherPiece(block)


def without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    """The fields that are not among these, and not null."""
    return {name: value for name, value in body.items() if name not in names and value is not None}


# Writing.

_UNFIT = re.compile("[^a-zA-Z0-9_-]")
"""What this API allows in no id of a call."""


def write_request(request: Request, options: WriteOptions = _PLAIN) -> dict[str, Any]:
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
    body["max_tokens"] = request.max_tokens or MAX_TOKENS + (request.thinking.budget or 0)
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
    thinking = request.thinking
    if request.dialect == NAME:
        return expect(thinking.sent.get("thinking", {}), dict, "thinking")
    if thinking.think is False or thinking.effort == "none":
        return {"type": "disabled"}
    if thinking.budget is not None:
        budget = min(thinking.budget, max_tokens - 1)
        return {"type": "enabled", "budget_tokens": max(budget, SMALLEST_BUDGET)}
    return {"type": "adaptive"} if thinking.think or thinking.effort else {}


def _write_config(request: Request) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if request.thinking.effort not in (None, "none"):
        config["effort"] = "low" if request.thinking.effort == "minimal" else request.thinking.effort
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
            case CallPiece():
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


def sign(thinking: str) -> str:
    """The signature of thinking that no other server has signed. It proves nothing; clients want one."""
    return OWN_SIGNATURE + hashlib.sha256(thinking.encode("utf-8", "surrogatepass")).hexdigest()[:32]
