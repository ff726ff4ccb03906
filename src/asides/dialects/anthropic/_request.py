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

import msgspec

from ...families._family import EFFORTS, nearest_effort
from .._framing import to_json
from .._request import (
    OWN_SIGNATURE,
    PLAIN,
    CallPiece,
    ImagePiece,
    OtherPiece,
    Request,
    RequestError,
    RequestPiece,
    RequestTurn,
    TextPiece,
    ThinkingOptions,
    ThinkingPiece,
    Tool,
    WriteOptions,
    clear_thinking,
    in_tags,
)
from .._request_fields import (
    COMMON,
    Field,
    FieldTable,
    LeftOut,
    Moot,
    Refused,
    Shape,
    WrittenApart,
    call_value,
    expect,
    expect_object,
    no_counterpart,
    optional,
    positive,
    read_budget,
    read_content,
    read_image,
    read_tool,
    stops,
    unknown_fields,
    with_data,
    without,
    write_tool,
)
from .._tags import without_tags

NAME = "anthropic"

MAX_TOKENS = 8192
"""What is asked for when the caller names no limit: this API wants one."""
_EFFORTS = EFFORTS[1:]
"""All but `minimal`."""
SMALLEST_BUDGET = 1024
"""Anthropic refuses a smaller budget for thinking."""

FIELDS = FieldTable(
    *COMMON,
    Field("max_tokens", "max_tokens", lambda value, param: expect(value, int, param) or None),
    Field("stop_sequences", "stop", lambda value, param: stops(expect(value, list, param), param), list),
    *map(WrittenApart, ("turns", "tools", "other_tools", "tool_choice", "parallel_calls", "thinking")),
    *map(WrittenApart, ("response_format", "user")),
    Refused("choices", "n"),
    Refused("prompt", "prompt"),
    Refused("logprobs", "logprobs"),
    LeftOut("top_logprobs", "top_logprobs"),
    LeftOut("template_arguments", "chat_template_kwargs"),
    Moot("include_usage", "a reply always says what it cost"),
    Moot("names", "no field has a second name"),
    sampling={name: name for name in ("temperature", "top_p", "top_k")},
    apart=(
        *("messages", "system", "metadata", "tools", "tool_choice", "thinking", "output_config", "output_format"),
        "context_management",
    ),
)
_ESSENTIAL = ("compaction", "container", "inference_geo", "mcp_servers", "thread")
"""Fields that change what is asked, besides tools that Anthropic itself runs."""
BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""The `anthropic-beta` that allows `thinking.block_binding`."""
CLEAR_THINKING = "clear_thinking_20251015"
"""The edit of a conversation that says which earlier thinking stays."""
_CHOICE: Shape = dict.fromkeys(("disable_parallel_tool_use", "name", "type"))
_FORMAT: Shape = dict.fromkeys(("schema", "type"))
_EDIT: Shape = {"type": None, "keep": dict.fromkeys(("type", "value"))}
_UNDERSTOOD: dict[str, Shape] = {
    "context_management": {"edits": [_EDIT]},
    "output_config": {"effort": None, "format": _FORMAT},
    "output_format": _FORMAT,
    "thinking": {
        **dict.fromkeys(("budget_tokens", "display", "type")),
        "block_binding": {"prefix_mismatch_behavior": None},
    },
    "tool_choice": _CHOICE,
}
"""What is understood of fields that say what is asked for. Whatever else stands in them is refused elsewhere."""
_MISMATCHES = ("error", "drop_block")
"""What a request may ask to be done with thinking that is bound to another conversation."""
_CHOICES = {"auto": "auto", "none": "none", "any": "required", "tool": "function"}
"""This API's choices of tools, and ours."""
_OUR_CHOICES = {ours: theirs for theirs, ours in _CHOICES.items()}

# Reading.


def read_request(body: Any, path: str = "") -> Request:
    """A request for `/v1/messages`, or for counting its tokens."""
    body = expect_object(body)
    config = optional(body, "output_config", dict, {})
    metadata = optional(body, "metadata", dict, {})
    choice = optional(body, "tool_choice", dict, {})
    management = optional(body, "context_management", dict, {})
    edits = _read_edits(management)
    tools, hosted = _read_tools(optional(body, "tools", list, []))
    format = config.get("format", body.get("output_format"))
    strange = [place for name in _UNDERSTOOD if name in body for place in _unknown(body, name)]
    others = {
        "metadata": without(metadata, "user_id") or None,
        "output_config": without(config, "effort", "format") or None,
    }
    if strange:  # what is more than is understood goes as it was
        others["output_config"] = (others["output_config"] or {}) | ({"format": format} if format else {}) or None
        others["tool_choice"] = choice or None
    extra = FIELDS.rest(body) | without(others)
    return Request(
        dialect=NAME,
        turns=(*_read_system(body.get("system")), *_read_messages(optional(body, "messages", list, []))),
        tools=tools,
        other_tools=tuple(hosted.values()),
        hosted=tuple(hosted),
        tool_choice=_read_tool_choice(choice),
        parallel_calls=False if choice.get("disable_parallel_tool_use") is True else None,
        thinking=_with_kept(_read_thinking_options(optional(body, "thinking", dict, {}), config), management, edits),
        response_format=_read_format(format),
        user=optional(metadata, "user_id", str, "", "metadata.") or None,
        extra=extra,
        essential=(
            *(("tool_choice",) if _forces_hosted(choice, tools, hosted) else ()),
            *(f"context_management.{kind}" for kind in edits if kind != CLEAR_THINKING),
            *strange,
            *(name for name in _ESSENTIAL if name in extra),
        ),
        **FIELDS.read(body),
    )


def _read_thinking_options(thinking: dict[str, Any], config: dict[str, Any]) -> ThinkingOptions:
    effort = optional(config, "effort", str, "", "output_config.") or None
    if not thinking:
        return ThinkingOptions(effort=effort)
    binding = thinking.get("block_binding")
    if binding is not None:
        place = "thinking.block_binding"
        behavior = expect(binding, dict, place).get("prefix_mismatch_behavior")
        if behavior is not None and behavior not in _MISMATCHES:
            place += ".prefix_mismatch_behavior"
            raise RequestError(f"{place} must be {' or '.join(_MISMATCHES)}", place)
    kind = thinking.get("type")
    if kind not in ("enabled", "adaptive", "between_tools", "disabled"):
        raise RequestError("thinking.type must be enabled, adaptive, between_tools or disabled", "thinking.type")
    if kind == "disabled":
        return ThinkingOptions(
            think=False, show=False, effort=effort, sent={"thinking": thinking}, reports_dropped=binding is not None
        )
    return ThinkingOptions(
        think=True,
        effort=effort,
        budget=read_budget({"thinking.budget_tokens": thinking.get("budget_tokens")}) or None,
        omitted=thinking.get("display") == "omitted",
        reports_dropped=binding is not None,
        sent={"thinking": thinking},
    )


def _read_edits(management: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What is to be taken out of the conversation, by type."""
    edits = [
        expect(edit, dict, f"context_management.edits.{number}")
        for number, edit in enumerate(optional(management, "edits", list, [], "context_management."))
    ]
    return {str(edit.get("type")): edit for edit in edits}


def _with_kept(
    options: ThinkingOptions, management: dict[str, Any], edits: dict[str, dict[str, Any]]
) -> ThinkingOptions:
    """Those options with the turns whose thinking the model shall see."""
    sent = options.sent | ({"context_management": management} if management else {})
    if CLEAR_THINKING not in edits:
        return msgspec.structs.replace(options, sent=sent)
    place = f"context_management.{CLEAR_THINKING}.keep"
    keep = edits[CLEAR_THINKING].get("keep")
    if keep is None:
        return msgspec.structs.replace(options, keep=1, sent=sent)
    if keep == "all" or (isinstance(keep, dict) and keep.get("type") == "all"):
        return msgspec.structs.replace(options, keep="all", sent=sent)
    if not isinstance(keep, dict) or keep.get("type") != "thinking_turns":
        raise RequestError(f"{place} must be all, or thinking_turns with a value", place)
    return msgspec.structs.replace(options, keep=positive(keep.get("value"), f"{place}.value"), sent=sent)


def _read_format(format: Any) -> dict[str, Any] | None:
    if format is None:
        return None
    schema = expect(expect(format, dict, "output_config.format").get("schema"), dict, "output_config.format.schema")
    return {"type": "json_schema", "json_schema": {"name": "response", "schema": schema, "strict": True}}


def _unknown(body: dict[str, Any], name: str) -> Iterator[str]:
    return unknown_fields(body[name], _UNDERSTOOD[name], name)


def _read_tools(tools: list[Any]) -> tuple[tuple[Tool, ...], dict[str, Any]]:
    """The caller's own tools, and those that Anthropic runs."""
    own: list[Tool] = []
    hosted: dict[str, Any] = {}
    for number, tool in enumerate(tools):
        if expect(tool, dict, f"tools.{number}").get("type") not in (None, "custom"):
            hosted[f"tools.{number}.{tool['type']}"] = tool
        else:
            extra = without(tool, "name", "description", "input_schema", "strict")
            own.append(read_tool(tool, f"tools.{number}", extra, "input_schema"))
    return tuple(own), hosted


def _forces_hosted(choice: dict[str, Any], tools: tuple[Tool, ...], hosted: dict[str, Any]) -> bool:
    """Whether the model must call a tool that only Anthropic could run."""
    if choice.get("type") == "any":
        return bool(hosted) and not tools
    return choice.get("type") == "tool" and choice.get("name") in [tool.get("name") for tool in hosted.values()]


def _read_tool_choice(choice: dict[str, Any]) -> str:
    kind = choice.get("type", "auto")
    if not isinstance(kind, str) or kind not in _CHOICES:
        raise RequestError("tool_choice.type must be auto, any, tool or none", "tool_choice.type")
    return f"function:{expect(choice.get('name'), str, 'tool_choice.name')}" if kind == "tool" else _CHOICES[kind]


def _read_system(system: Any) -> Iterator[RequestTurn]:
    if system:
        yield RequestTurn("system", _read_content(system, "system"))


def _read_messages(messages: list[Any]) -> Iterator[RequestTurn]:
    names: dict[str, str] = {}
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        role = expect(message, dict, where).get("role")
        extra = without(message, "role", "content")
        if role == "assistant" or role == "system":
            pieces = _read_content(message.get("content"), f"{where}.content")
            names |= {piece.id: piece.name for piece in pieces if isinstance(piece, CallPiece)}
            yield RequestTurn(role, tuple(without_tags(pieces)) if role == "assistant" else pieces, extra=extra)
        elif role == "user":
            yield from _read_user(message.get("content"), f"{where}.content", names, extra)
        else:
            raise RequestError(f"{where}.role must be user or assistant", f"{where}.role")


def _read_user(content: Any, where: str, names: dict[str, str], extra: dict[str, Any]) -> Iterator[RequestTurn]:
    """Results of tools come first, whatever stands around them: they answer the message before."""
    if isinstance(content, str):
        yield RequestTurn("user", (TextPiece(content),), extra=extra)
        return
    others: list[RequestPiece] = []
    blocks = expect(content, list, where)
    if extra and all(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks):
        beside = {"message": extra}  # there is no turn of the user to hold it
    else:
        beside = {}
    for number, block in enumerate(blocks):
        path = f"{where}.{number}"
        if expect(block, dict, path).get("type") != "tool_result":
            others.append(_read_block(block, path))
            continue
        id = expect(block.get("tool_use_id"), str, f"{path}.tool_use_id")
        yield RequestTurn(
            "tool",
            _read_content(block.get("content") or "", f"{path}.content"),
            call_id=id,
            tool_name=names.get(id, ""),
            is_error=block.get("is_error") is True,
            extra=without(block, "type", "tool_use_id", "content", "is_error") | beside,
        )
    if others:
        yield RequestTurn("user", tuple(others), extra=extra)


def _read_content(content: Any, where: str) -> tuple[RequestPiece, ...]:
    if content is None:
        expect(content, list, where)
    return tuple(read_content(content, where, _read_block, ".{}"))


def _read_block(block: Any, where: str) -> RequestPiece:
    match expect(block, dict, where).get("type"):
        case "text":
            return TextPiece(expect(block.get("text"), str, f"{where}.text"), without(block, "type", "text"))
        case "thinking":
            return ThinkingPiece(
                optional(block, "thinking", str, "", f"{where}."),
                optional(block, "signature", str, "", f"{where}."),
                extra=without(block, "type", "thinking", "signature") if len(block) > 3 else {},
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
            if inner := without(source, "type", "data", "media_type", "url"):
                extra["source"] = inner
            if source.get("type") == "base64":
                data = expect(source.get("data"), str, f"{where}.source.data")
                kind = optional(source, "media_type", str, "image/png", f"{where}.source.")
                return ImagePiece(data=data, media_type=kind, extra=extra)
            if source.get("type") == "url":
                return read_image(expect(source.get("url"), str, f"{where}.source.url"), extra)
        case None:
            raise RequestError(f"{where}.type is missing", f"{where}.type")
    return OtherPiece(block)


# Writing.

_UNFIT = re.compile("[^a-zA-Z0-9_-]")
"""What this API allows in no id of a call."""


def write_request(request: Request, options: WriteOptions = PLAIN) -> dict[str, Any]:
    """The request for an upstream that speaks this dialect."""
    own = FIELDS.leave_out(request, NAME)
    request = request if own else clear_thinking(request)
    extra = request.extra if own else {}
    system, messages = _write_turns(request.turns, own, options)
    body = FIELDS.write(options.applied_to(request)) | {"messages": messages}
    # Anthropic counts thinking into the limit and refuses a budget that is not below it.
    limit = body.setdefault("max_tokens", MAX_TOKENS + (request.thinking.budget or 0))
    tools = [write_tool(tool, "input_schema") | (tool.extra if own else {}) for tool in request.tools]
    tools += request.other_tools if own else ()
    fields = {
        "system": system,
        "tools": tools,
        "tool_choice": (extra.get("tool_choice") or _write_tool_choice(request)) if tools else None,
        "thinking": _write_thinking(request, limit) | _write_binding(request, options),
        "context_management": request.thinking.sent.get("context_management") if own else None,
        "output_config": _write_config(request) | extra.get("output_config", {}),
        "metadata": ({"user_id": request.user} if request.user else {}) | extra.get("metadata", {}),
    }
    body |= {name: value for name, value in fields.items() if value}
    return body | {name: value for name, value in extra.items() if name not in body}


def _write_tool_choice(request: Request) -> dict[str, Any]:
    kind, _, name = request.tool_choice.partition(":")
    choice: dict[str, Any] = {"type": _OUR_CHOICES.get(kind, kind)} | ({"name": name} if name else {})
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
        # Both bounds are Anthropic's; a limit below the smallest budget is left to it to refuse.
        budget = min(thinking.budget, max_tokens - 1)
        return {"type": "enabled", "budget_tokens": max(budget, SMALLEST_BUDGET)}
    return {"type": "adaptive"} if thinking.think or thinking.effort else {}


def _write_binding(request: Request, options: WriteOptions) -> dict[str, Any]:
    if not options.drop_bound:
        return {}
    binding: dict[str, Any] = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    # A kind is wanted beside it; models whose thoughts are bound always think.
    return binding if _write_thinking(request, MAX_TOKENS) else {"type": "adaptive", **binding}


def _write_config(request: Request) -> dict[str, Any]:
    config: dict[str, Any] = {}
    effort = request.thinking.effort
    if effort is not None and effort != "none":
        config["effort"] = nearest_effort(effort, _EFFORTS) or effort
    format = request.response_format
    if format is not None and format.get("type") != "text":
        if format.get("type") != "json_schema":
            raise RequestError(f"{NAME} needs a schema: response_format must be json_schema", "response_format")
        config["format"] = {"type": "json_schema", "schema": format.get("json_schema", {}).get("schema", {})}
    return config


def _write_turns(turns: Iterable[RequestTurn], own: bool, options: WriteOptions) -> tuple[Any, list[dict[str, Any]]]:
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    answering = False
    """Whether the last message holds results of tools; what the user says next belongs to it."""
    for turn in turns:
        blocks = list(_write_pieces(turn, own, options))
        extra = turn.extra if own else {}
        # In `system` a later one would change what every thought before it is bound to.
        if turn.role in ("system", "developer") and not messages:
            system += blocks
            continue
        if turn.role == "tool":
            result = {"type": "tool_result", "tool_use_id": _fit(turn.call_id), "content": _shortest(blocks)}
            extra = dict(extra)
            beside = extra.pop("message", {})
            blocks, extra = [result | ({"is_error": True} if turn.is_error else {}) | extra], beside
        # All results of one turn must stand in the one message behind its calls, and the user's next text with them.
        role = turn.role if turn.role == "assistant" or (own and turn.role == "system") else "user"
        if answering and role == "user":
            messages[-1]["content"] += blocks
            messages[-1] |= extra
        else:
            messages.append({"role": role, "content": blocks, **extra})
        answering = turn.role == "tool" or (answering and turn.role in ("system", "developer"))
    return _shortest(system), [message | {"content": _shortest(message["content"])} for message in messages]


def _shortest(blocks: list[dict[str, Any]]) -> Any:
    """A lone text is written as a string."""
    if not blocks:
        return ""
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} else blocks


def _fit(id: str) -> str:
    # Applied to calls and results alike, so that they still find each other.
    return _UNFIT.sub("_", id)


def _write_pieces(turn: RequestTurn, own: bool, options: WriteOptions) -> Iterator[dict[str, Any]]:
    for piece in turn.pieces:
        match piece:
            # Anthropic refuses empty blocks.
            case TextPiece(text="") | ThinkingPiece(text="", signature="", details=(), proof=None):
                continue
            case TextPiece():
                yield {"type": "text", "text": piece.text, **(piece.extra if own else {})}
            case ThinkingPiece():
                if options.replay != "drop":
                    yield from _write_thought(piece, own, options)
            case CallPiece():
                call = {"type": "tool_use", "id": _fit(piece.id), "name": piece.name, "input": call_value(piece)}
                yield call | (piece.extra if own else {})
            case ImagePiece():
                extra = dict(piece.extra) if own else {}
                source = _write_source(with_data(piece)) | extra.pop("source", {})
                yield {"type": "image", "source": source, **extra}
            case OtherPiece(data=data):
                if not own:
                    raise no_counterpart(piece, NAME)
                yield data


def _write_thought(piece: ThinkingPiece, own: bool, options: WriteOptions) -> Iterator[dict[str, Any]]:
    if piece.proof is not None and piece.proof.dialect == NAME:
        yield piece.proof.data
        return
    redacted = [detail for detail in piece.details if detail.get("type") == "redacted_thinking"]
    yield from redacted
    if options.proved and not piece.signature:
        if piece.text and options.foreign_thoughts == "text":
            yield {"type": "text", "text": in_tags(piece.text)}
        return
    if piece.text or (piece.signature and not redacted):
        thought = {"type": "thinking", "thinking": piece.text, "signature": piece.signature or sign(piece.text)}
        yield thought | (piece.extra if own else {})


def _write_source(image: ImagePiece) -> dict[str, Any]:
    if image.data:
        return {"type": "base64", "media_type": image.media_type or "image/png", "data": image.data}
    return {"type": "url", "url": image.url}


def sign(thinking: str) -> str:
    """The signature of thinking that no other server has signed. It proves nothing; clients want one."""
    return OWN_SIGNATURE + hashlib.sha256(thinking.encode("utf-8", "surrogatepass")).hexdigest()[:32]
