"""Requests for chat completions, read and written. Knows OpenAI's fields and those that other servers added to them."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..checks import expect, expect_object, optional
from ..fields import as_json
from ..request import (
    CallPiece,
    ImagePiece,
    OtherPiece,
    Request,
    RequestError,
    RequestPiece,
    Role,
    TextPiece,
    ThinkingOptions,
    ThinkingPiece,
    Tool,
    Turn,
    WriteOptions,
    leave_out,
    template_arguments,
)
from ..shared_fields import shared_by_responses
from ..tags import untagged

NAME = "openai_chat"

SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "repetition_penalty": "repeat_penalty",
}
"""This API's names of what tunes sampling, and ours."""
THINKING = (
    "reasoning_effort",
    "reasoning",
    "include_reasoning",
    "reasoning_format",
    "thinking",
    "think",
    "enable_thinking",
    "thinking_token_budget",
    "thinking_budget",
)
"""Every field by which some server is told how to think."""
ESSENTIAL = frozenset(
    {
        "add_generation_prompt",
        "audio",
        "chat_template",
        "continue_final_message",
        "documents",
        "grammar",
        "guided_choice",
        "guided_grammar",
        "guided_json",
        "guided_regex",
        "json_schema",
        "plugins",
        "structured_outputs",
        "web_search_options",
    }
)
"""Fields of no other dialect that change what is asked."""
KNOWN = frozenset(
    {
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "stream",
        "stream_options",
        "n",
        "max_tokens",
        "max_completion_tokens",
        "stop",
        "response_format",
        "logprobs",
        "top_logprobs",
        "chat_template_kwargs",
        "user",
        *SAMPLING,
        *THINKING,
    }
)
ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
REASONING = ("reasoning_content", "reasoning", "thinking")
"""The names under which servers send thinking, and clients send it back; the first that holds some counts."""

_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL)


def read_request(body: Any, path: str = "") -> Request:
    """Understand a request; `RequestError` names the field that cannot be."""
    body = expect_object(body)
    for name in ("functions", "function_call"):
        if body.get(name) is not None:
            raise RequestError(f"{name!r} is no longer spoken; send `tools` and `tool_choice`", name)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestError("messages must be a list that holds at least one message", "messages")
    template = optional(body, "chat_template_kwargs", dict, {})
    include_usage, stream_options = read_options(body)
    tools, other_tools = _read_tools(optional(body, "tools", list, []))
    extra = {name: value for name, value in body.items() if name not in KNOWN}
    essential = sorted(name for name in ESSENTIAL & extra.keys() if extra[name] is not None)
    if extra.get("modalities") not in (None, [], ["text"]):
        essential.append("modalities")
    if other_tools:
        extra["tools"] = other_tools
        essential.append("tools")
    if stream_options:
        extra["stream_options"] = stream_options
    choices = optional(body, "n", int, 1)
    if choices < 1:
        raise RequestError("n must be at least 1", "n")
    long_name = body.get("max_completion_tokens") is not None
    return Request(
        dialect=NAME,
        model=optional(body, "model", str, ""),
        turns=tuple(_read_turn(message, f"messages[{index}]") for index, message in enumerate(messages)),
        tools=tools,
        tool_choice=_read_choice(body.get("tool_choice")),
        parallel_calls=_maybe(body, "parallel_tool_calls", bool),
        thinking=read_thinking_options(body, template),
        stream=optional(body, "stream", bool, False),
        include_usage=include_usage,
        choices=choices,
        max_tokens=_maybe(body, "max_completion_tokens" if long_name else "max_tokens", int),
        stop=read_stop(body.get("stop")),
        sampling={ours: body[name] for name, ours in SAMPLING.items() if body.get(name) is not None},
        response_format=_maybe(body, "response_format", dict),
        logprobs=optional(body, "logprobs", bool, False),
        top_logprobs=_maybe(body, "top_logprobs", int),
        template_arguments=template,
        user=_maybe(body, "user", str),
        extra=extra,
        names={"max_tokens": "max_completion_tokens"} if long_name else {},
        essential=tuple(essential),
    )


def _maybe(body: dict[str, Any], name: str, kind: type[Any]) -> Any:
    value = body.get(name)
    return None if value is None else expect(value, kind, name)


def read_options(body: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Whether the client asked what the reply costs, and all its options where there are others."""
    options = optional(body, "stream_options", dict, {})
    return bool(options.get("include_usage")), options if options.keys() - {"include_usage"} else {}


def read_stop(value: Any) -> tuple[str, ...]:
    """The stop sequences."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    return tuple(expect(each, str, "stop") for each in expect(value, list, "stop"))


def _read_choice(value: Any) -> str:
    """`auto`, `none`, `required` or `function:NAME`."""
    if value is None:
        return "auto"
    if value in ("auto", "none", "required"):
        return str(value)
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        return f"function:{expect(value['function'].get('name'), str, 'tool_choice.function.name')}"
    raise RequestError("tool_choice must be auto, none, required, or name a function", "tool_choice")


def _read_tools(tools: list[Any]) -> tuple[tuple[Tool, ...], list[Any]]:
    """The functions, and tools of other kinds."""
    functions: list[Tool] = []
    others: list[Any] = []
    for index, tool in enumerate(tools):
        param = f"tools[{index}]"
        tool = expect(tool, dict, param)
        if tool.get("type", "function") != "function":
            others.append(tool)
            continue
        function = expect(tool.get("function"), dict, f"{param}.function")
        fields = {name: value for name, value in tool.items() if name not in ("type", "function")}
        known = ("name", "description", "parameters", "strict")
        unknown = {name: value for name, value in function.items() if name not in known}
        functions.append(
            Tool(
                expect(function.get("name"), str, f"{param}.function.name"),
                optional(function, "description", str, "", f"{param}.function."),
                optional(function, "parameters", dict, {}, f"{param}.function."),
                function.get("strict"),
                {**fields, **({"function": unknown} if unknown else {})},
            )
        )
    return tuple(functions), others


# How the caller wants thinking.


def read_thinking_options(body: dict[str, Any], template: dict[str, Any]) -> ThinkingOptions:
    """How the caller wants thinking, by whichever of the fields that servers have for it."""
    sent = {name: body[name] for name in THINKING if body.get(name) is not None}
    reasoning = sent.get("reasoning", {})
    if not isinstance(reasoning, dict):
        raise RequestError('reasoning must be an object such as {"effort": "low"}', "reasoning")
    thinking = sent.get("thinking")
    switch = thinking.get("type") if isinstance(thinking, dict) else thinking
    think = sent.get("think")
    effort = _first(reasoning.get("effort"), sent.get("reasoning_effort"), template.get("reasoning_effort"))
    if isinstance(think, str):
        effort = effort or think
        think = True
    if effort is not None:
        expect(effort, str, "reasoning_effort")
    budget = _first(
        reasoning.get("max_tokens"),
        thinking.get("budget_tokens") if isinstance(thinking, dict) else None,
        sent.get("thinking_token_budget"),
        sent.get("thinking_budget"),
        template.get("thinking_budget"),
    )
    switches = [
        think,
        sent.get("enable_thinking"),
        template.get("enable_thinking"),
        template.get("thinking"),
        reasoning.get("enabled"),
        {"enabled": True, "disabled": False}.get(switch) if isinstance(switch, str) else switch,
        None if effort is None else effort != "none",
    ]
    refused = any(value is False for value in switches)
    wanted = any(value is True for value in switches) or budget is not None
    hidden = (
        reasoning.get("exclude") is True
        or sent.get("include_reasoning") is False
        or sent.get("reasoning_format") == "hidden"
    )
    return ThinkingOptions(
        think=False if refused else True if wanted else None,
        show=not (refused or hidden),
        effort=effort,
        budget=budget if isinstance(budget, int) else None,
        sent=sent,
    )


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


# Messages.


def _read_turn(message: Any, param: str) -> Turn:
    message = expect(message, dict, param)
    role = ROLES.get(str(message.get("role")))
    if role is None:
        raise RequestError(f"{param}.role must be one of {', '.join(ROLES)}", f"{param}.role")
    known = {"role", "content"}
    pieces = _read_content(message.get("content"), f"{param}.content")
    call_id = tool_name = ""
    if role == "assistant":
        known |= {"tool_calls", "function_call", "reasoning_details", "thinking_blocks", *REASONING}
        pieces = _with_thinking(message, pieces) + _read_calls(message, param)
    elif role == "tool":
        known |= {"tool_call_id", "name"}
        call_id = optional(message, "tool_call_id", str, "", f"{param}.")
        tool_name = optional(message, "name", str, "", f"{param}.")
    extra = {name: value for name, value in message.items() if name not in known}
    return Turn(role, tuple(pieces), call_id, tool_name, extra=extra)


def _read_content(content: Any, param: str) -> list[RequestPiece]:
    if content is None:
        return []
    if isinstance(content, str):
        return [TextPiece(content)] if content else []
    if not isinstance(content, list):
        raise RequestError(f"{param} must be a string or a list of parts", param)
    return [_read_part(part, f"{param}[{index}]") for index, part in enumerate(content)]


def _read_part(part: Any, param: str) -> RequestPiece:
    if isinstance(part, str):
        return TextPiece(part)
    part = expect(part, dict, param)
    kind = part.get("type")
    if kind in ("text", "input_text", "output_text"):
        extra = {name: value for name, value in part.items() if name not in ("type", "text")}
        return TextPiece(expect(part.get("text"), str, f"{param}.text"), extra)
    if kind == "image_url":
        return _read_image(part.get("image_url"), f"{param}.image_url")
    if kind == "thinking":
        return ThinkingPiece(_thinking_text(part.get("thinking")), optional(part, "signature", str, "", f"{param}."))
    return OtherPiece(part)


def _read_image(image: Any, param: str) -> ImagePiece:
    image = {"url": image} if isinstance(image, str) else expect(image, dict, param)
    url = expect(image.get("url"), str, f"{param}.url")
    extra = {name: value for name, value in image.items() if name != "url"}
    match = _DATA_URL.fullmatch(url)
    if match is None:
        return ImagePiece(url, extra=extra)
    return ImagePiece("", match.group(2), match.group(1), extra)


def _thinking_text(value: Any) -> str:
    """The words of a thinking part: a string, or a list of text parts."""
    if isinstance(value, list):
        return "".join(str(part.get("text") or "") for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""


def _with_thinking(message: dict[str, Any], pieces: list[RequestPiece]) -> list[RequestPiece]:
    """The thinking of an earlier turn, in whatever shape it came, and the words without it."""
    thoughts = _fields_of_thinking(message)
    found: list[RequestPiece] = []
    for piece in pieces:
        found += untagged(piece.text, piece.extra) if isinstance(piece, TextPiece) else [piece]
    said = "".join(piece.text for piece in thoughts).strip()
    if said:  # a block repeated in the content counts once
        found = [piece for piece in found if not (isinstance(piece, ThinkingPiece) and piece.text.strip() == said)]
    return [*thoughts, *found]


def _fields_of_thinking(message: dict[str, Any]) -> list[ThinkingPiece]:
    blocks = message.get("thinking_blocks")
    if isinstance(blocks, list) and blocks:
        return [_read_block(block) for block in blocks if isinstance(block, dict)]
    plain = next((message[name] for name in REASONING if message.get(name) and isinstance(message[name], str)), "")
    details = message.get("reasoning_details")
    kept = tuple(detail for detail in details if isinstance(detail, dict)) if isinstance(details, list) else ()
    text = plain or "".join(detail_text(detail) for detail in kept)
    return [ThinkingPiece(text, details=kept)] if text or kept else []


def _read_block(block: dict[str, Any]) -> ThinkingPiece:
    text = _thinking_text(block.get("thinking"))
    return ThinkingPiece(text, optional(block, "signature", str, ""), () if text else (block,))


def detail_text(detail: dict[str, Any]) -> str:
    """The words of one of `reasoning_details`."""
    text = detail.get("text") or detail.get("summary")
    return text if isinstance(text, str) else ""


def _read_calls(message: dict[str, Any], param: str) -> list[RequestPiece]:
    pieces: list[RequestPiece] = []
    for index, call in enumerate(optional(message, "tool_calls", list, [], f"{param}.")):
        place = f"{param}.tool_calls[{index}]"
        call = expect(call, dict, place)
        if call.get("type", "function") != "function" and not call.get("function"):
            pieces.append(OtherPiece(call))
            continue
        pieces.append(_read_call(call, f"{place}.function"))
    if message.get("function_call") is not None:
        pieces.append(_read_call({"function": message["function_call"]}, f"{param}.function_call"))
    return pieces


def _read_call(call: dict[str, Any], param: str) -> CallPiece:
    function = expect(call.get("function"), dict, param)
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = "{}" if arguments is None else as_json(arguments)
    extra = {name: value for name, value in call.items() if name not in ("id", "type", "function", "index")}
    return CallPiece(
        expect(function.get("name"), str, f"{param}.name"), arguments, optional(call, "id", str, ""), extra
    )


# Writing.


def write_request(request: Request, options: WriteOptions = WriteOptions()) -> dict[str, Any]:  # noqa: B008
    """The request for an upstream that speaks chat completions."""
    if request.dialect != NAME:
        request = msgspec.structs.replace(request, turns=_system_first(request.turns))
    shared = shared_by_responses(request) if request.dialect == "openai_responses" else {}
    leave_out(request, NAME, {*shared, *(("text",) if "verbosity" in shared else ())})
    same = request.dialect == NAME
    if request.prompt is not None:
        raise RequestError("a bare prompt has no counterpart in chat completions", "prompt")
    extra = dict(request.extra) if same else shared
    body: dict[str, Any] = {"model": options.model or request.model}
    body["messages"] = [_write_turn(request, index, options) for index in range(len(request.turns))]
    _write_tools(body, request, [_write_tool(tool, same) for tool in request.tools] + list(extra.pop("tools", ())))
    stream_options = extra.pop("stream_options", {})
    if request.stream if options.stream is None else options.stream:
        body["stream"] = True
        # Other dialects always tell what a reply cost.
        if request.include_usage or options.usage or not same:
            stream_options = {**stream_options, "include_usage": True}
        if stream_options:
            body["stream_options"] = stream_options
    if request.choices > 1:
        body["n"] = request.choices
    if request.max_tokens is not None:
        body[request.names.get("max_tokens", "max_tokens")] = request.max_tokens
    if request.stop:
        body["stop"] = list(request.stop)
    body.update({name: request.sampling[ours] for name, ours in SAMPLING.items() if ours in request.sampling})
    if request.response_format is not None:
        body["response_format"] = request.response_format
    if request.logprobs:
        body["logprobs"] = True
    if request.top_logprobs is not None:
        body["top_logprobs"] = request.top_logprobs
    if request.user is not None:
        body["user"] = request.user
    write_thinking_options(body, request, options, same)
    if options.special_tokens:
        extra.setdefault("skip_special_tokens", False)
    body.update(extra)
    return body


def _system_first(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The turns with instructions only at their beginning: many chat templates refuse them later.

    Later ones become words of the user, before those that they follow, so that the question stays last.
    """
    found: list[Turn] = []
    for turn in turns:
        later = turn.role in ("system", "developer") and any(each.role not in ("system", "developer") for each in found)
        if later and found[-1].role == "user":
            found[-1] = msgspec.structs.replace(found[-1], pieces=(*turn.pieces, *found[-1].pieces))
        else:
            found.append(msgspec.structs.replace(turn, role="user") if later else turn)
    return tuple(found)


def _write_tools(body: dict[str, Any], request: Request, tools: list[dict[str, Any]]) -> None:
    if not tools:
        return
    body["tools"] = tools
    if request.tool_choice != "auto":
        body["tool_choice"] = _write_choice(request.tool_choice)
    if request.parallel_calls is not None:
        body["parallel_tool_calls"] = request.parallel_calls


def write_thinking_options(body: dict[str, Any], request: Request, options: WriteOptions, same: bool) -> None:
    """Tell the upstream how to think: in the caller's own words if it speaks the same dialect, else in its own."""
    thinking = request.thinking
    body.update(thinking.sent if same else {})
    template = template_arguments(request, options)
    if not same:
        if thinking.effort is not None:
            body["reasoning_effort"] = thinking.effort
        elif thinking.think is False and not options.switch:
            body["reasoning_effort"] = "none"
    if thinking.budget is not None and options.budget:
        outer, _, inner = options.budget.partition(".")
        if inner:
            body.setdefault(outer, {}).setdefault(inner, thinking.budget)
        else:
            body.setdefault(outer, thinking.budget)
    if template:
        body["chat_template_kwargs"] = template


def _write_choice(choice: str) -> str | dict[str, Any]:
    kind, colon, name = choice.partition(":")
    return {"type": kind, "function": {"name": name}} if colon else choice


def _write_tool(tool: Tool, same: bool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters or {"type": "object", "properties": {}}
    if tool.strict is not None:
        function["strict"] = tool.strict
    extra = dict(tool.extra) if same else {}
    function.update(extra.pop("function", {}))
    return {"type": "function", "function": function, **extra}


def _write_turn(request: Request, index: int, options: WriteOptions) -> dict[str, Any]:
    turn = request.turns[index]
    same = request.dialect == NAME
    if turn.role == "assistant":
        message = _write_assistant(request, index, options)
    else:
        role = "system" if turn.role == "developer" and not same else turn.role
        message = {"role": role, "content": _write_content(turn, same)}
    if turn.role == "tool":
        message["tool_call_id"] = turn.call_id
        if turn.tool_name:
            message["name"] = turn.tool_name
    if same:
        message.update(turn.extra)
    return message


def _write_content(turn: Turn, same: bool) -> str | list[dict[str, Any]]:
    texts = [piece for piece in turn.pieces if isinstance(piece, TextPiece)]
    plain = len(texts) == len(turn.pieces)
    if plain and (len(texts) < 2 or not same) and not (same and any(piece.extra for piece in texts)):
        return "\n\n".join(piece.text for piece in texts)
    return [_write_part(piece, same) for piece in turn.pieces]


def _write_part(piece: RequestPiece, same: bool) -> dict[str, Any]:
    if isinstance(piece, TextPiece):
        return {"type": "text", "text": piece.text, **(piece.extra if same else {})}
    if isinstance(piece, ImagePiece):
        url = piece.url or f"data:{piece.media_type or 'image/png'};base64,{piece.data}"
        return {"type": "image_url", "image_url": {"url": url, **(piece.extra if same else {})}}
    if isinstance(piece, OtherPiece) and same:
        return piece.data
    kind = piece.data.get("type", "") if isinstance(piece, OtherPiece) else type(piece).__name__
    raise RequestError(f"a content part of type {kind!r} has no counterpart in chat completions", "messages")


def _write_assistant(request: Request, index: int, options: WriteOptions) -> dict[str, Any]:
    turn = request.turns[index]
    field = _replay_field(request, index, options)
    thoughts = [piece for piece in turn.pieces if isinstance(piece, ThinkingPiece)] if field else []
    calls = [_write_call(piece) for piece in turn.pieces if isinstance(piece, CallPiece)]
    content: list[str] = []
    parts: list[dict[str, Any]] = []
    for piece in turn.pieces:
        if isinstance(piece, TextPiece):
            content.append(piece.text)
        elif isinstance(piece, ThinkingPiece) and field == "tags" and piece.text:
            content.append(f"<think>{piece.text}</think>\n\n")
        elif isinstance(piece, OtherPiece) and request.dialect == NAME and "custom" in piece.data:
            calls.append(piece.data)
        elif not isinstance(piece, ThinkingPiece | CallPiece):
            parts.append(_write_part(piece, request.dialect == NAME))
    text = "".join(content)
    # Beside calls a chat client's null stays; for others it is empty: every server takes that, not every one null.
    nothing = None if calls and request.dialect == NAME else ""
    message: dict[str, Any] = {"role": "assistant", "content": text or nothing}
    if parts:
        message["content"] = [*([{"type": "text", "text": text}] if text else ()), *parts]
    said = "\n\n".join(piece.text for piece in thoughts if piece.text)
    details = [detail for piece in thoughts for detail in piece.details]
    if thoughts and field == "reasoning_details":
        own = [detail for detail in details if str(detail.get("type")).startswith("reasoning.")]
        if own or said:
            message[field] = own or [{"type": "reasoning.text", "text": said, "index": 0}]
    elif said and field != "tags":
        message[field] = said
    if details and request.dialect == NAME and options.replay == "auto" and field != "tags":
        message["reasoning_details"] = details
    if calls:
        message["tool_calls"] = calls
    return message


def _replay_field(request: Request, index: int, options: WriteOptions) -> str:
    """Where the thinking of this turn is sent back; empty where it is not."""
    if options.replay != "auto":
        return "" if options.replay == "drop" else options.replay
    if options.keep_thinking == "none":
        return ""
    later = request.turns[index + 1 :]
    called = any(isinstance(piece, CallPiece) for piece in request.turns[index].pieces)
    if options.keep_thinking == "tool_turns" and not called and any(turn.role == "user" for turn in later):
        return ""
    return options.field


def _write_call(piece: CallPiece) -> dict[str, Any]:
    return {"id": piece.id, "type": "function", "function": {"name": piece.name, "arguments": piece.arguments}}
