"""Requests of the Responses API, read and written. Knows its fields, its input items and nothing of replies."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from ..checks import expect, expect_object, optional
from ..openai_chat.request import NAME as CHAT
from ..openai_chat.request import SAMPLING
from ..request import (
    OWN_SEAL,
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
    log,
    template_arguments,
)
from ..shared_fields import shared_by_chat
from ..tags import untagged

NAME = "openai_responses"

ENCRYPTED = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"
"""What `include` can ask for that we can give."""
ESSENTIAL = frozenset({"conversation", "moderation", "previous_response_id", "prompt"})
"""Fields of no other dialect that change what is asked."""
THINKING = ("reasoning", "reasoning_effort", "include_reasoning", "thinking", "think")
"""Every field by which some server is told how to think."""
KNOWN = frozenset(
    {
        "background",
        "chat_template_kwargs",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "model",
        "parallel_tool_calls",
        "stop",
        "stream",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "user",
        *SAMPLING,
        *THINKING,
    }
)
ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user", "assistant": "assistant"}
TEXTS = ("input_text", "output_text", "text")


def seal(thinking: str) -> str:
    """Thinking as `encrypted_content`: encoded so that clients leave it alone, not secret."""
    return OWN_SEAL + base64.b64encode(thinking.encode("utf-8", "surrogatepass")).decode()


def unseal(content: Any) -> str | None:
    """The thinking that `seal` wrote; None for what another server wrote."""
    if not isinstance(content, str) or not content.startswith(OWN_SEAL):
        return None
    try:
        return base64.b64decode(content[len(OWN_SEAL) :], validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, UnicodeDecodeError):
        return None


# Reading.


def read_request(body: Any, path: str = "") -> Request:
    """Understand a request; `RequestError` names the field that cannot be."""
    body = expect_object(body)
    if body.get("background"):
        raise RequestError("'background' is not spoken: replies are not kept to be fetched later", "background")
    include = optional(body, "include", list, [])
    text = optional(body, "text", dict, {})
    template = optional(body, "chat_template_kwargs", dict, {})
    functions, hosted = _read_tools(optional(body, "tools", list, []))
    extra = {name: value for name, value in body.items() if name not in KNOWN and value is not None}
    extra |= hosted
    choice, allowed = _read_choice(body.get("tool_choice"))
    if allowed is not None:
        functions = tuple(tool for tool in functions if tool.name in allowed)
    if choice is None:
        choice, extra["tool_choice"] = "auto", body["tool_choice"]
    for field, rest in (
        ("include", [name for name in include if name not in (ENCRYPTED, LOGPROBS)]),
        ("text", _without(text, "format")),
    ):
        if rest:
            extra[field] = rest
    essential = {*(ESSENTIAL & extra.keys()), *hosted, *(("tool_choice",) if "tool_choice" in extra else ())}
    return Request(
        dialect=NAME,
        model=optional(body, "model", str, ""),
        turns=(*_read_instructions(body.get("instructions")), *_read_input(body.get("input"), extra)),
        tools=functions,
        tool_choice=choice,
        parallel_calls=_maybe(body, "parallel_tool_calls", bool),
        thinking=_read_thinking_options(body, template, include),
        stream=optional(body, "stream", bool, False),
        max_tokens=_maybe(body, "max_output_tokens", int),
        stop=_read_stop(body.get("stop")),
        sampling={ours: body[name] for name, ours in SAMPLING.items() if body.get(name) is not None},
        response_format=_read_format(text.get("format")),
        logprobs=LOGPROBS in include,
        top_logprobs=_maybe(body, "top_logprobs", int),
        template_arguments=template,
        user=_maybe(body, "user", str),
        extra=extra,
        essential=tuple(sorted(essential)),
    )


def _maybe(body: dict[str, Any], name: str, kind: type[Any]) -> Any:
    value = body.get(name)
    return None if value is None else expect(value, kind, name)


def _read_stop(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    return tuple(expect(each, str, "stop") for each in expect(value, list, "stop"))


def _read_tools(tools: list[Any]) -> tuple[tuple[Tool, ...], dict[str, Any]]:
    """The caller's functions, and the tools that only the server could run, each by a name that tells which it is."""
    functions: list[Tool] = []
    hosted: dict[str, Any] = {}
    for index, tool in enumerate(tools):
        place = f"tools[{index}]"
        kind = expect(tool, dict, place).get("type", "function")
        if kind != "function":
            hosted[f"{place}.{kind}"] = tool
            continue
        function = tool["function"] if isinstance(tool.get("function"), dict) else tool
        known = ("type", "name", "description", "parameters", "strict", "function")
        functions.append(
            Tool(
                expect(function.get("name"), str, f"{place}.name"),
                optional(function, "description", str, "", f"{place}."),
                optional(function, "parameters", dict, {}, f"{place}."),
                function.get("strict"),
                {name: value for name, value in tool.items() if name not in known and value is not None},
            )
        )
    return tuple(functions), hosted


def _read_choice(value: Any) -> tuple[str | None, set[str] | None]:
    """`auto`, `none`, `required` or `function:NAME`, None for a tool that is no function; and which are allowed."""
    if value is None:
        return "auto", None
    if value in ("auto", "none", "required"):
        return str(value), None
    if not isinstance(value, dict):
        raise RequestError("tool_choice must be auto, none, required, or name a tool", "tool_choice")
    if value.get("type") == "function":
        nested = value.get("function")
        name = nested.get("name") if isinstance(nested, dict) else value.get("name")
        return f"function:{expect(name, str, 'tool_choice.name')}", None
    tools = value.get("tools")
    if value.get("type") == "allowed_tools" and isinstance(tools, list):
        names = [tool.get("name") for tool in tools if isinstance(tool, dict) and tool.get("type") == "function"]
        if len(names) == len(tools):
            return "required" if value.get("mode") == "required" else "auto", {str(name) for name in names}
    return None, None


def _read_format(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    format = expect(value, dict, "text.format")
    if format.get("type") == "text":
        return None
    if format.get("type") != "json_schema":
        return format
    return {"type": "json_schema", "json_schema": {name: value for name, value in format.items() if name != "type"}}


def _read_thinking_options(body: dict[str, Any], template: dict[str, Any], include: list[Any]) -> ThinkingOptions:
    sent = {name: body[name] for name in THINKING if body.get(name) is not None}
    reasoning = optional(body, "reasoning", dict, {})
    thinking = sent.get("thinking")
    effort = reasoning.get("effort") or sent.get("reasoning_effort")
    if effort is not None:
        expect(effort, str, "reasoning.effort")
    budget = reasoning.get("max_tokens")
    summary = reasoning.get("summary") or reasoning.get("generate_summary")
    switches = [
        reasoning.get("enabled"),
        sent.get("think"),
        template.get("enable_thinking"),
        template.get("thinking"),
        {"disabled": False, "enabled": True}.get(str(thinking.get("type"))) if isinstance(thinking, dict) else None,
    ]
    refused = effort == "none" or any(switch is False for switch in switches)
    wanted = effort is not None or budget is not None or any(switch is True for switch in switches)
    hidden = reasoning.get("exclude") is True or sent.get("include_reasoning") is False
    return ThinkingOptions(
        think=False if refused else True if wanted else None,
        show=not (refused or hidden),
        effort=effort,
        budget=budget if isinstance(budget, int) else None,
        summary=summary if isinstance(summary, str) and summary != "none" else None,
        encrypted=ENCRYPTED in include,
        sent=sent,
    )


def _read_instructions(value: Any) -> Iterator[Turn]:
    if value:
        yield Turn("system", (TextPiece(expect(value, str, "instructions")),))


def _read_input(value: Any, extra: dict[str, Any]) -> list[Turn]:
    """The conversation. Reasoning, messages and calls that follow each other are one turn of the assistant."""
    if isinstance(value, str):
        return [Turn("user", (TextPiece(value),))]
    if not isinstance(value, list) or not value:
        if value in (None, []) and {"previous_response_id", "conversation", "prompt"} & extra.keys():
            return []
        raise RequestError("input must be a string or a list that holds at least one item", "input")
    turns: list[Turn] = []
    said: list[RequestPiece] = []
    names: dict[str, str] = {}
    spoke = False
    """Whether the assistant's last item is a message."""
    thought: str | None = None
    """Its thinking, if the last item is that."""

    def close() -> None:
        if said:
            turns.append(Turn("assistant", tuple(said)))
            said.clear()

    for index, item in enumerate(value):
        place = f"input[{index}]"
        pieces = _read_item(expect(item, dict, place), place)
        is_message = _kind(item) == "message"
        if isinstance(pieces, Turn):
            close()
            name = pieces.tool_name or names.get(pieces.call_id, "")
            turns.append(msgspec.structs.replace(pieces, tool_name=name))
        else:
            if is_message and spoke:
                close()
            names |= {piece.id: piece.name for piece in pieces if isinstance(piece, CallPiece)}
            said += [piece for piece in pieces if not (is_message and _repeats(piece, thought))]
            thought = pieces[-1].text if pieces and isinstance(pieces[-1], ThinkingPiece) else None
        spoke = is_message
    close()
    return turns


def _repeats(piece: RequestPiece, thought: str | None) -> bool:
    """Whether thinking between tags was told in an item of its own before."""
    return isinstance(piece, ThinkingPiece) and thought is not None and piece.text.strip() == thought.strip()


def _kind(item: dict[str, Any]) -> Any:
    return item.get("type") or ("message" if "role" in item else None)


def _read_item(item: dict[str, Any], place: str) -> Turn | list[RequestPiece]:
    """A turn of its own, or pieces of what the assistant said."""
    match _kind(item):
        case "message":
            return _read_message(item, place)
        case "reasoning":
            return [_read_reasoning(item, place)]
        case "function_call":
            extra = _without(item, "type", "name", "arguments", "call_id")
            return [
                CallPiece(
                    expect(item.get("name"), str, f"{place}.name"),
                    optional(item, "arguments", str, "{}", f"{place}."),
                    optional(item, "call_id", str, "", f"{place}.") or optional(item, "id", str, "", f"{place}."),
                    extra,
                )
            ]
        case "function_call_output":
            return Turn(
                "tool",
                _read_content(item.get("output"), f"{place}.output"),
                optional(item, "call_id", str, "", f"{place}."),
                optional(item, "name", str, "", f"{place}."),
                extra=_without(item, "type", "output", "call_id"),
            )
        case None:
            raise RequestError(f"{place}.type is missing", f"{place}.type")
    return [OtherPiece(item)]


def _read_message(item: dict[str, Any], place: str) -> Turn | list[RequestPiece]:
    role = ROLES.get(str(item.get("role")))
    if role is None:
        raise RequestError(f"{place}.role must be one of {', '.join(ROLES)}", f"{place}.role")
    pieces = _read_content(item.get("content"), f"{place}.content")
    extra = _without(item, "type", "role", "content")
    if role != "assistant":
        return Turn(role, pieces, extra=extra)
    said: list[RequestPiece] = []
    for piece in pieces:
        if isinstance(piece, TextPiece):
            # The turn may hold several items, so each keeps its own fields with its words.
            said += untagged(piece.text, {**piece.extra, "item": extra} if extra else piece.extra)
        else:
            said.append(piece)
    return said


def _read_content(content: Any, place: str) -> tuple[RequestPiece, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextPiece(content),) if content else ()
    if not isinstance(content, list):
        raise RequestError(f"{place} must be a string or a list of parts", place)
    return tuple(_read_part(part, f"{place}[{index}]") for index, part in enumerate(content))


def _read_part(part: Any, place: str) -> RequestPiece:
    kind = expect(part, dict, place).get("type")
    if kind in TEXTS:
        return TextPiece(expect(part.get("text"), str, f"{place}.text"), _without(part, "type", "text"))
    if kind == "refusal":
        return TextPiece(expect(part.get("refusal"), str, f"{place}.refusal"), {"type": "refusal"})
    url = part.get("image_url")
    if kind == "input_image" and url is not None:
        url = url.get("url") if isinstance(url, dict) else url
        return _read_image(expect(url, str, f"{place}.image_url"), _without(part, "type", "image_url"))
    return OtherPiece(part)


def _read_image(url: str, extra: dict[str, Any]) -> ImagePiece:
    head, _, data = url.partition(",")
    if head.startswith("data:") and head.endswith(";base64"):
        return ImagePiece(data=data, media_type=head[5:].partition(";")[0], extra=extra)
    return ImagePiece(url, extra=extra)


def _read_reasoning(item: dict[str, Any], place: str) -> ThinkingPiece:
    """Thinking that comes back. Ours is whole in `encrypted_content`; what another server wrote there it wants back."""
    sealed = unseal(item.get("encrypted_content"))
    if sealed is not None:
        return ThinkingPiece(sealed)
    return ThinkingPiece(reasoning_text(item), details=(item,))


def reasoning_text(item: dict[str, Any]) -> str:
    """The words of a reasoning item: what was thought, else its summary."""
    return _joined(item.get("content")) or _joined(item.get("summary"))


def _joined(parts: Any) -> str:
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def _without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names and value is not None}


# Writing.


def write_request(request: Request, options: WriteOptions = WriteOptions()) -> dict[str, Any]:  # noqa: B008
    """The request for an upstream that speaks Responses."""
    shared = shared_by_chat(request) if request.dialect == CHAT else {}
    leave_out(request, NAME, {*shared, *(("verbosity",) if "text" in shared else ())})
    same = request.dialect == NAME
    for name, asked in (("n", request.choices > 1), ("stop", request.stop and not same)):
        if asked:
            raise RequestError(f"{name!r} has no counterpart in {NAME}; leave it out", name)
    if request.prompt is not None and not request.turns:
        raise RequestError(f"a bare prompt has no counterpart in {NAME}; send messages", "prompt")
    extra = dict(request.extra) if same else shared
    tools = [_write_tool(tool, same) for tool in request.tools]
    tools += [extra.pop(name) for name in list(extra) if name.startswith("tools[")]
    instructions, items = _write_input(request, options)
    fields: dict[str, Any] = {
        "instructions": instructions,
        "stream": (request.stream if options.stream is None else options.stream) or None,
        "max_output_tokens": request.max_tokens,
        "stop": list(request.stop) or None,
        "text": {**_write_format(request), **extra.pop("text", {})} or None,
        "include": _write_include(request) + extra.pop("include", []) or None,
        "top_logprobs": request.top_logprobs,
        "user": request.user,
    }
    if tools:
        fields["tools"] = tools
        fields["tool_choice"] = extra.pop("tool_choice", None) or write_choice(request.tool_choice)
        fields["parallel_tool_calls"] = request.parallel_calls
    fields |= _write_sampling(request, same)
    body: dict[str, Any] = {"model": options.model or request.model, "input": items}
    body |= {name: value for name, value in fields.items() if value is not None}
    _write_thinking_options(body, request, options)
    return body | extra


def _write_sampling(request: Request, same: bool) -> dict[str, Any]:
    sampling = {name: request.sampling[ours] for name, ours in SAMPLING.items() if ours in request.sampling}
    lost = [name for name in sampling if name not in ("temperature", "top_p")]
    if same or not lost:
        return sampling
    log.info("left out, no counterpart in %s: %s", NAME, ", ".join(lost))
    return {name: value for name, value in sampling.items() if name not in lost}


def _write_include(request: Request) -> list[str]:
    asked = ((ENCRYPTED, request.thinking.encrypted), (LOGPROBS, request.logprobs))
    return [name for name, wanted in asked if wanted]


def _write_format(request: Request) -> dict[str, Any]:
    format = request.response_format
    if format is None or format.get("type") == "text":
        return {}
    if format.get("type") == "json_schema" and isinstance(format.get("json_schema"), dict):
        return {"format": {"type": "json_schema", "name": "response", **format["json_schema"]}}
    return {"format": format}


def write_choice(choice: str) -> str | dict[str, Any]:
    """A choice of tools, in this dialect's words."""
    kind, colon, name = choice.partition(":")
    return {"type": kind, "name": name} if colon else choice


def write_tool(tool: Tool) -> dict[str, Any]:
    """A function that the model may call."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description or None,
        "parameters": tool.parameters or {"type": "object", "properties": {}},
        "strict": bool(tool.strict),
    }


def _write_tool(tool: Tool, same: bool) -> dict[str, Any]:
    # Elsewhere a function is not strict unless it says so; here it is.
    strict = {} if same and tool.strict is None else {"strict": bool(tool.strict)}
    body = _without(write_tool(tool), "strict")
    return body | strict | (tool.extra if same else {})


def _write_thinking_options(body: dict[str, Any], request: Request, options: WriteOptions) -> None:
    thinking = request.thinking
    template = template_arguments(request, options)
    if template:
        body["chat_template_kwargs"] = template
    if request.dialect == NAME:
        body |= thinking.sent
        return
    effort = thinking.effort or ("none" if thinking.think is False and not options.switch else None)
    if effort is not None:
        # Without a summary OpenAI sends no thinking at all, and nobody has refused it.
        summary = thinking.summary or ("auto" if thinking.show and effort != "none" else None)
        body["reasoning"] = _without({"effort": effort, "summary": summary})
    if thinking.budget is not None and options.budget:
        outer, _, inner = options.budget.partition(".")
        if inner:
            body.setdefault(outer, {}).setdefault(inner, thinking.budget)
        else:
            body.setdefault(outer, thinking.budget)


def _write_input(request: Request, options: WriteOptions) -> tuple[str | None, list[dict[str, Any]]]:
    """The instructions, which are the first turn if that is the system's, and the items of the other turns."""
    turns = request.turns
    instructions = None
    first = 0
    if turns and turns[0].role == "system" and all(isinstance(piece, TextPiece) for piece in turns[0].pieces):
        instructions = "\n\n".join(piece.text for piece in turns[0].pieces if isinstance(piece, TextPiece))
        first = 1
    items: list[dict[str, Any]] = []
    for index in range(first, len(turns)):
        items += _write_turn(request, index, options)
    return instructions, items


def _write_turn(request: Request, index: int, options: WriteOptions) -> list[dict[str, Any]]:
    turn = request.turns[index]
    same = request.dialect == NAME
    extra = turn.extra if same else {}
    if turn.role == "assistant":
        return list(_write_assistant(request, index, options))
    content = _write_content(turn.pieces, "input_text", same)
    if turn.role == "tool":
        return [{"type": "function_call_output", "call_id": turn.call_id, "output": content, **extra}]
    return [{"type": "message", "role": turn.role, "content": content, **extra}]


def _write_content(pieces: tuple[RequestPiece, ...], kind: str, same: bool) -> str | list[dict[str, Any]]:
    if not pieces:
        return ""
    if len(pieces) == 1 and isinstance(pieces[0], TextPiece) and not (same and pieces[0].extra):
        return pieces[0].text
    return [_write_part(piece, kind, same) for piece in pieces]


def _write_part(piece: RequestPiece, kind: str, same: bool) -> dict[str, Any]:
    if isinstance(piece, TextPiece):
        extra = _without(piece.extra, "item") if same else {}
        if extra.get("type") == "refusal":
            return {"type": "refusal", "refusal": piece.text}
        return {"type": kind, "text": piece.text, **extra}
    if isinstance(piece, ImagePiece):
        url = piece.url or f"data:{piece.media_type or 'image/png'};base64,{piece.data}"
        return {"type": "input_image", "image_url": url, "detail": "auto", **(piece.extra if same else {})}
    if isinstance(piece, OtherPiece) and same:
        return piece.data
    kind = piece.data.get("type", "") if isinstance(piece, OtherPiece) else type(piece).__name__
    raise RequestError(f"a content part of type {kind!r} has no counterpart in {NAME}", "messages")


def _write_assistant(request: Request, index: int, options: WriteOptions) -> Iterator[dict[str, Any]]:
    same = request.dialect == NAME
    replay = _replay(request, index, options)
    words: list[RequestPiece] = []
    tagged = ""
    """Thinking in tags, before the words that follow it."""

    def message() -> Iterator[dict[str, Any]]:
        nonlocal tagged
        if tagged:
            words.append(TextPiece(tagged))
            tagged = ""
        if words:
            first = words[0]
            extra = first.extra.get("item", {}) if same and isinstance(first, TextPiece) else {}
            content = _write_content(tuple(words), "output_text", same)
            yield {"type": "message", "role": "assistant", "content": content, **extra}
            words.clear()

    for piece in request.turns[index].pieces:
        if isinstance(piece, ThinkingPiece):
            if replay == "tags" and piece.text:
                tagged += f"<think>{piece.text}</think>\n\n"
            elif replay and replay != "tags":
                yield from message()
                yield from _write_reasoning(piece, replay)
        elif isinstance(piece, CallPiece):
            yield from message()
            call = {"type": "function_call", "call_id": piece.id, "name": piece.name, "arguments": piece.arguments}
            yield call | (piece.extra if same else {})
        elif isinstance(piece, OtherPiece) and same:
            yield from message()
            yield piece.data
        elif isinstance(piece, TextPiece) and tagged:
            words.append(TextPiece(tagged + piece.text, piece.extra))
            tagged = ""
        else:
            words.append(piece)
    yield from message()


def _write_reasoning(piece: ThinkingPiece, field: str) -> Iterator[dict[str, Any]]:
    items = [detail for detail in piece.details if detail.get("type") == "reasoning"]
    if items:
        yield from items
    elif piece.text:
        digest = hashlib.sha256(piece.text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        item: dict[str, Any] = {"type": "reasoning", "id": f"rs_{digest}", "summary": []}
        if field == "encrypted_content":  # Ollama reads plain thinking from there, and from nowhere else
            yield item | {"summary": [{"type": "summary_text", "text": piece.text}], "encrypted_content": piece.text}
        else:
            yield item | {"content": [{"type": "reasoning_text", "text": piece.text}]}


def _replay(request: Request, index: int, options: WriteOptions) -> str:
    """How the thinking of this turn is sent back; empty where it is not."""
    if options.replay != "auto":
        return "" if options.replay == "drop" else options.replay
    if options.keep_thinking == "none":
        return ""
    later = request.turns[index + 1 :]
    called = any(isinstance(piece, CallPiece) for piece in request.turns[index].pieces)
    if options.keep_thinking == "tool_turns" and not called and any(turn.role == "user" for turn in later):
        return ""
    return options.field
