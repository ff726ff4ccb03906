"""Requests of the Responses API, read and written: its fields and its input items.

The conversation is a list of items: reasoning, messages, calls and their outputs. Those of the assistant that follow
each other become one turn; writing takes a turn apart again. Thinking that we sent as `encrypted_content` comes back
there (`seal`, `unseal`); what another server encrypted goes back to it untouched. How to think is read as chat
completions read it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from .._custom_tools import arguments_of
from .._framing import to_json
from .._request import (
    OWN_SEAL,
    PLAIN,
    CallPiece,
    ImagePiece,
    OtherPiece,
    Request,
    RequestError,
    RequestPiece,
    RequestTurn,
    Role,
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
    Moot,
    Refused,
    Shape,
    WrittenApart,
    expect,
    expect_object,
    image_url,
    no_counterpart,
    of,
    optional,
    read_content,
    read_image,
    replay_field,
    report_lost,
    shared_extra,
    stops,
    unknown_fields,
    without,
)
from .._request_fields import write_tool as write_function
from .._tags import without_tags
from ..openai_chat._request import FORMATS, THINKING, read_thinking_options, unknown_options, write_thinking_options
from ..openai_chat._request import NAME as CHAT
from ._tools import RequestTools, write_choice

NAME = "openai_responses"

ENCRYPTED = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"
"""What `include` can ask for that we can give."""
ESSENTIAL = frozenset({"context_management", "conversation", "moderation", "previous_response_id", "prompt"})
"""Fields of no other dialect that change what is asked."""
FIELDS = FieldTable(
    *COMMON,
    Field("max_output_tokens", "max_tokens", of(int)),
    Field("parallel_tool_calls", "parallel_calls", of(bool), None),
    Field("stop", "stop", stops, list),
    Field("top_logprobs", "top_logprobs", of(int)),
    Field("chat_template_kwargs", "template_arguments", of(dict), None),
    Field("user", "user"),
    *map(WrittenApart, ("turns", "tools", "other_tools", "tool_choice", "thinking", "response_format", "logprobs")),
    Refused("choices", "n"),
    Refused("prompt", "prompt"),
    Refused("stop", "stop", lambda request: request.stop and request.dialect != NAME),
    Moot("include_usage", "a reply always says what it cost"),
    Moot("names", "no field has a second name"),
    foreign_sampling=("temperature", "top_p"),  # servers add more to this API; OpenAI's own has these two
    apart=("background", "include", "input", "instructions", "text", "tool_choice", "tools", *THINKING),
)
ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user", "assistant": "assistant"}
TEXTS = ("input_text", "output_text", "text")
CONTEXTS: dict[str, Literal["all", "current_turn"] | None] = {
    "auto": None,
    "current_turn": "current_turn",
    "all_turns": "all",
}
"""Which earlier thinking the model sees, by this dialect's names and ours."""
_REASONING: Shape = dict.fromkeys(
    ("context", "effort", "enabled", "exclude", "generate_summary", "max_tokens", "mode", "summary")
)
_FORMAT: Shape = dict.fromkeys(("description", "name", "schema", "strict", "type"))
"""What is understood of `reasoning` and `text.format`."""
_CALL: Shape = dict.fromkeys(
    ("arguments", "call_id", "execution", "id", "input", "name", "namespace", "status", "type")
)
_SEARCHED: Shape = dict.fromkeys(("call_id", "execution", "id", "status", "tools", "type"))
"""What is understood of calls that are written anew for other dialects, and of what a search has found."""


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
        raise RequestError(
            "'background' is not supported: a reply is written while its request is open; leave it out", "background"
        )
    include = optional(body, "include", list, [])
    text = optional(body, "text", dict, {})
    tools = RequestTools(
        {f"tools[{index}]": tool for index, tool in enumerate(optional(body, "tools", list, []))}
        | _tools_of_items(body, "additional_tools"),
        _tools_of_items(body, "tool_search_output"),
    )
    choice = tools.choose(body.get("tool_choice"))
    others = {
        "tool_choice": body["tool_choice"] if choice is None or tools.strange else None,
        "include": [name for name in include if name not in (ENCRYPTED, LOGPROBS)] or None,
        "text": without(text, "format") or None,
    }
    extra = FIELDS.rest(body) | without(others)
    return Request(
        dialect=NAME,
        turns=(*_read_instructions(body.get("instructions")), *_read_input(body.get("input"), extra, tools)),
        tools=tuple(tools.functions),
        other_tools=tuple(tools.others.values()),
        hosted=tuple(tools.hosted),
        tool_choice=choice or "auto",
        thinking=_read_thinking_options(body, include),
        response_format=_read_format(text.get("format")),
        logprobs=LOGPROBS in include,
        extra=extra,
        essential=tuple(
            sorted(
                {
                    *_read_mode(body),
                    *_unknown(body, text, tools),
                    *(ESSENTIAL & extra.keys()),
                    *(("tool_choice",) if choice is None else ()),
                }
            )
        ),
        **FIELDS.read(body),
    )


def _unknown(body: dict[str, Any], text: dict[str, Any], tools: RequestTools) -> list[str]:
    """The places of what is asked for in fields that no other dialect could honour."""
    found = [*tools.strange, *unknown_options(body, _REASONING)]
    if (format := text.get("format")) is not None:
        found += unknown_fields(format, _FORMAT, "text.format")
        found += () if format.get("type") in FORMATS else ("text.format",)
    return found


def _tools_of_items(body: dict[str, Any], kind: str) -> dict[str, Any]:
    """The tools that stand in items of this type, by their places."""
    items = body.get("input")
    return {
        f"input[{index}].tools[{number}]": tool
        for index, item in enumerate(items if isinstance(items, list) else ())
        if isinstance(item, dict) and item.get("type") == kind
        for number, tool in enumerate(optional(item, "tools", list, [], f"input[{index}]."))
    }


def _read_format(value: Any) -> dict[str, Any] | None:
    format = {} if value is None else expect(value, dict, "text.format")
    if value is None or format.get("type") == "text":
        return None
    if format.get("type") != "json_schema":
        return format
    return {"type": "json_schema", "json_schema": {name: value for name, value in format.items() if name != "type"}}


def _read_thinking_options(body: dict[str, Any], include: list[Any]) -> ThinkingOptions:
    options = read_thinking_options(body)
    reasoning = options.sent.get("reasoning", {})
    summary = reasoning.get("summary") or reasoning.get("generate_summary")
    return msgspec.structs.replace(
        options,
        summary=summary if isinstance(summary, str) and summary != "none" else None,
        encrypted=ENCRYPTED in include,
        keep=_read_context(reasoning.get("context")),
    )


def _read_context(value: Any) -> Literal["all", "current_turn"] | None:
    """Which earlier thinking the model shall see, by this dialect's names."""
    if value not in (None, *CONTEXTS):
        raise RequestError(f"reasoning.context must be one of {', '.join(CONTEXTS)}", "reasoning.context")
    return CONTEXTS.get(value)


def _read_mode(body: dict[str, Any]) -> Iterator[str]:
    """`reasoning.mode`, where it asks for more than one ordinary reply: no other server has that."""
    if optional(optional(body, "reasoning", dict, {}), "mode", str, "standard", "reasoning.") != "standard":
        yield "reasoning.mode"


def _read_instructions(value: Any) -> Iterator[RequestTurn]:
    if value:
        yield RequestTurn("system", (TextPiece(expect(value, str, "instructions")),))


def _read_input(value: Any, extra: dict[str, Any], tools: RequestTools) -> list[RequestTurn]:
    """The conversation. Reasoning, messages and calls that follow each other are one turn of the assistant."""
    if isinstance(value, str):
        return [RequestTurn("user", (TextPiece(value),))]
    if not isinstance(value, list) or not value:
        # With one of these the conversation is at the server; for any other upstream the request is refused by that
        # field.
        if value in (None, []) and {"previous_response_id", "conversation", "prompt"} & extra.keys():
            return []
        raise RequestError("input must be a string or a list that holds at least one item", "input")
    turns: list[RequestTurn] = []
    pending: list[RequestPiece] = []
    names: dict[str, str] = {}
    after_message = False
    """Whether the assistant's last item is a message."""
    thought: str | None = None
    """Its thinking, if the last item is that."""

    def close() -> None:
        if pending:
            turns.append(RequestTurn("assistant", tuple(pending)))
            pending.clear()

    for index, item in enumerate(value):
        place = f"input[{index}]"
        pieces = _read_item(expect(item, dict, place), place, tools)
        is_message = _kind(item) == "message"
        if isinstance(pieces, RequestTurn):
            close()
            name = pieces.tool_name or names.get(pieces.call_id, "")
            turns.append(msgspec.structs.replace(pieces, tool_name=name))
        else:
            # Two messages with nothing between them are two turns; joined, the model would see one answer.
            if is_message and after_message:
                close()
            names |= {piece.id: piece.name for piece in pieces if isinstance(piece, CallPiece)}
            pending += [piece for piece in pieces if not (is_message and _repeats(piece, thought))]
            thought = pieces[-1].text if pieces and isinstance(pieces[-1], ThinkingPiece) else None
        after_message = is_message
    close()
    return turns


def _repeats(piece: RequestPiece, thought: str | None) -> bool:
    """Whether thinking between tags is that of an item of its own before."""
    return isinstance(piece, ThinkingPiece) and thought is not None and piece.text.strip() == thought.strip()


def _kind(item: dict[str, Any]) -> Any:
    return item.get("type") or ("message" if "role" in item else None)


def _read_item(item: dict[str, Any], place: str, tools: RequestTools) -> RequestTurn | list[RequestPiece]:
    """A turn of its own, or pieces of the assistant's."""
    match _kind(item):
        case "message":
            return _read_message(item, place)
        case "reasoning":
            return [_read_reasoning(item)]
        case "function_call" | "custom_tool_call":
            return [_read_call(item, place, tools)]
        case "function_call_output" | "custom_tool_call_output" as kind:
            return RequestTurn(
                "tool",
                tuple(read_content(item.get("output"), f"{place}.output", _read_part, "[{}]")),
                optional(item, "call_id", str, "", f"{place}."),
                optional(item, "name", str, "", f"{place}."),
                extra=without(item, "output", "call_id", *(("type",) if kind == "function_call_output" else ())),
            )
        case "additional_tools":
            report_lost(NAME, unknown_fields(without(item, "role"), _SEARCHED, place))
            return []  # among the tools already
        case "tool_search_call" if item.get("execution") == "client":
            return [_read_search(item, place, tools)]
        case "tool_search_output" if item.get("execution") == "client":
            # The tools themselves are offered like others, so here their names are enough.
            names = tools.names_of(optional(item, "tools", list, [], f"{place}."))
            id = optional(item, "call_id", str, "", f"{place}.")
            extra = {"item": item, **dict.fromkeys(unknown_fields(item, _SEARCHED))}
            return RequestTurn("tool", (TextPiece(to_json({"tools": names}).decode()),), id, extra=extra)
        case None:
            raise RequestError(f"{place}.type is missing", f"{place}.type")
    return [OtherPiece(item)]


def _read_call(item: dict[str, Any], place: str, tools: RequestTools) -> CallPiece:
    """A call of an earlier turn, under the name that the model knows."""
    custom = item["type"] == "custom_tool_call"
    called = expect(item.get("name"), str, f"{place}.name")
    name = tools.name_of(called, optional(item, "namespace", str, "", f"{place}."), "custom" if custom else "function")
    if custom:
        arguments = arguments_of(expect(item.get("input"), str, f"{place}.input"))
    else:
        arguments = optional(item, "arguments", str, "{}", f"{place}.")
    id = optional(item, "call_id", str, "", f"{place}.") or optional(item, "id", str, "", f"{place}.")
    # What became another call is kept as it was, for the same dialect.
    changed = custom or name != called
    extra = _as_it_was(item) if changed else without(item, "type", "name", "arguments", "call_id")
    return CallPiece(name, arguments, id, extra)


def _as_it_was(item: dict[str, Any]) -> dict[str, Any]:
    """A call for the same dialect; beside it the names of what no other dialect understands."""
    return {"item": item, **dict.fromkeys(unknown_fields(item, _CALL))}


def _read_search(item: dict[str, Any], place: str, tools: RequestTools) -> CallPiece:
    """A search for tools of an earlier turn, which the client carried out."""
    given = item.get("arguments") or {}
    arguments = given if isinstance(given, str) else to_json(given).decode()
    id = optional(item, "call_id", str, "", f"{place}.")
    return CallPiece(tools.name_of("tool_search", kind="tool_search"), arguments, id, _as_it_was(item))


def _read_message(item: dict[str, Any], place: str) -> RequestTurn | list[RequestPiece]:
    role = ROLES.get(str(item.get("role")))
    if role is None:
        raise RequestError(f"{place}.role must be one of {', '.join(ROLES)}", f"{place}.role")
    pieces = read_content(item.get("content"), f"{place}.content", _read_part, "[{}]")
    extra = without(item, "type", "role", "content")
    if role != "assistant":
        return RequestTurn(role, tuple(pieces), extra=extra)
    # The turn may hold several items, so each keeps its own fields with its text.
    return list(without_tags(pieces, {"message": extra} if extra else {}))


def _read_part(part: Any, place: str) -> RequestPiece:
    kind = expect(part, dict, place).get("type")
    if kind in TEXTS:
        return TextPiece(expect(part.get("text"), str, f"{place}.text"), without(part, "type", "text"))
    if kind == "refusal":
        return TextPiece(expect(part.get("refusal"), str, f"{place}.refusal"), without(part, "refusal"))
    url = part.get("image_url")
    if kind == "input_image" and url is not None:
        url = url.get("url") if isinstance(url, dict) else url
        return read_image(expect(url, str, f"{place}.image_url"), without(part, "type", "image_url"))
    return OtherPiece(part)


def _read_reasoning(item: dict[str, Any]) -> ThinkingPiece:
    """Thinking that comes back. Ours is whole in `encrypted_content`; what another server wrote there it wants back."""
    sealed = unseal(item.get("encrypted_content"))
    return ThinkingPiece(reasoning_text(item), details=(item,)) if sealed is None else ThinkingPiece(sealed)


def reasoning_text(item: dict[str, Any]) -> str:
    """The text of a reasoning item: what was thought, else its summary."""
    return _joined(item.get("content")) or _joined(item.get("summary"))


def _joined(parts: Any) -> str:
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


# Writing.


def write_request(request: Request, options: WriteOptions = PLAIN) -> dict[str, Any]:
    """The request for an upstream that speaks Responses."""
    shared = _shared_with_chat(request) if request.dialect == CHAT else {}
    same = FIELDS.leave_out(request, NAME, {*shared, *(("verbosity",) if "text" in shared else ())})
    request = request if same else clear_thinking(request)
    extra = dict(request.extra) if same else shared
    tools = [_write_tool(tool, same) for tool in request.tools if not (same and tool.origin)]
    tools += request.other_tools if same else ()
    instructions, items = _write_input(request, options)
    asked = ((ENCRYPTED, request.thinking.encrypted or options.stateless), (LOGPROBS, request.logprobs))
    fields: dict[str, Any] = {
        "instructions": instructions,
        "text": {**_write_format(request), **extra.pop("text", {})} or None,
        "include": [name for name, wanted in asked if wanted] + extra.pop("include", []) or None,
    }
    if tools:
        fields["tools"] = tools
        fields["tool_choice"] = extra.pop("tool_choice", None) or write_choice(request.tool_choice, request.tools)
        fields["parallel_tool_calls"] = request.parallel_calls
    body = FIELDS.write(options.applied_to(request), same)
    body |= {"input": items, **without(fields)}
    _write_thinking_options(body, request, options, same)
    return body | extra | ({"store": False} if options.stateless else {})


def _shared_with_chat(request: Request) -> dict[str, Any]:
    verbosity = request.extra.get("verbosity")
    return shared_extra(request) | ({} if verbosity is None else {"text": {"verbosity": verbosity}})


def _write_format(request: Request) -> dict[str, Any]:
    format = request.response_format
    if format is None or format.get("type") == "text":
        return {}
    if format.get("type") == "json_schema" and isinstance(format.get("json_schema"), dict):
        return {"format": {"type": "json_schema", "name": "response", **format["json_schema"]}}
    return {"format": format}


def write_tool(tool: Tool) -> dict[str, Any]:
    """A function that the model may call, with every field: some clients want each."""
    return {"type": "function", "description": None, **write_function(tool), "strict": bool(tool.strict)}


def _write_tool(tool: Tool, same: bool) -> dict[str, Any]:
    # Elsewhere a function is not strict unless it says so; here it is.
    strict = {} if same and tool.strict is None else {"strict": bool(tool.strict)}
    return {"type": "function", **write_function(tool), **strict, **(tool.extra if same else {})}


def _write_thinking_options(body: dict[str, Any], request: Request, options: WriteOptions, same: bool) -> None:
    thinking = request.thinking
    effort = write_thinking_options(body, request, options, same)
    if effort is not None:
        # Without a summary OpenAI sends no thinking at all, and nobody has refused it.
        summary = thinking.summary or ("auto" if thinking.show and effort != "none" else None)
        body["reasoning"] = without({"effort": effort, "summary": summary}) | body.get("reasoning", {})


def _write_input(request: Request, options: WriteOptions) -> tuple[str | None, list[dict[str, Any]]]:
    """The instructions, which are the first turn if that is the system's, and the items of the other turns."""
    turns = request.turns
    instructions = None
    if turns and turns[0].role == "system" and all(isinstance(piece, TextPiece) for piece in turns[0].pieces):
        instructions = "\n\n".join(piece.text for piece in turns[0].pieces if isinstance(piece, TextPiece))
    first = 0 if instructions is None else 1
    return instructions, [item for index in range(first, len(turns)) for item in _write_turn(request, index, options)]


def _write_turn(request: Request, index: int, options: WriteOptions) -> Iterator[dict[str, Any]]:
    turn = request.turns[index]
    same = request.dialect == NAME
    extra = turn.extra if same else {}
    if turn.role == "assistant":
        yield from _write_assistant(request, index, options)
        return
    content = _write_content(turn.pieces, "input_text", same)
    if "item" in extra:
        yield extra["item"]
    elif turn.role == "tool":
        yield {"type": "function_call_output", "call_id": turn.call_id, "output": content, **extra}
    else:
        yield {"type": "message", "role": turn.role, "content": content, **extra}


def _write_content(pieces: tuple[RequestPiece, ...], kind: str, same: bool) -> str | list[dict[str, Any]]:
    if not pieces:
        return ""
    if len(pieces) == 1 and isinstance(pieces[0], TextPiece) and not (same and pieces[0].extra):
        return pieces[0].text
    return [_write_part(piece, kind, same) for piece in pieces]


def _write_part(piece: RequestPiece, kind: str, same: bool) -> dict[str, Any]:
    if isinstance(piece, TextPiece):
        extra = without(piece.extra, "message") if same else {}
        if extra.get("type") == "refusal":
            return {"refusal": piece.text, **extra}
        return {"type": kind, "text": piece.text, **extra}
    if isinstance(piece, ImagePiece):
        found = {"type": "input_image", "image_url": image_url(piece), "detail": "auto"}
        return found | (piece.extra if same else {})
    if isinstance(piece, OtherPiece) and same:
        return piece.data
    raise no_counterpart(piece, NAME)


def _write_assistant(request: Request, index: int, options: WriteOptions) -> Iterator[dict[str, Any]]:
    same = request.dialect == NAME
    replay = replay_field(request, index, options)
    content_pieces: list[RequestPiece] = []
    tagged = ""
    """Thinking in tags, before the text that follows it."""

    def message() -> Iterator[dict[str, Any]]:
        nonlocal tagged
        if tagged:
            content_pieces.append(TextPiece(tagged))
            tagged = ""
        if content_pieces:
            first = content_pieces[0]
            extra = first.extra.get("message", {}) if same and isinstance(first, TextPiece) else {}
            content = _write_content(tuple(content_pieces), "output_text", same)
            yield {"type": "message", "role": "assistant", "content": content, **extra}
            content_pieces.clear()

    for piece in request.turns[index].pieces:
        if isinstance(piece, ThinkingPiece):
            if replay == "tags" and piece.text:
                tagged += in_tags(piece.text)
            elif replay and replay != "tags":
                items = list(_write_reasoning(piece, replay, options.proved))
                if items or not options.proved:
                    yield from message()
                    yield from items
                elif options.foreign_thoughts == "text" and piece.text:
                    tagged += in_tags(piece.text)
        elif isinstance(piece, CallPiece):
            yield from message()
            call = {"type": "function_call", "call_id": piece.id, "name": piece.name, "arguments": piece.arguments}
            yield piece.extra.get("item", call | piece.extra) if same else call
        elif isinstance(piece, OtherPiece) and same:
            yield from message()
            yield piece.data
        elif isinstance(piece, TextPiece) and tagged:
            content_pieces.append(TextPiece(tagged + piece.text, piece.extra))
            tagged = ""
        else:
            content_pieces.append(piece)
    yield from message()


def _write_reasoning(piece: ThinkingPiece, field: str, proved: bool) -> Iterator[dict[str, Any]]:
    if piece.proof is not None and piece.proof.dialect == NAME:
        yield piece.proof.data
        return
    items = [detail for detail in piece.details if detail.get("type") == "reasoning"]
    if proved:  # an id alone is refused by a server that has stored nothing
        items = [item for item in items if item.get("encrypted_content")]
    yield from items
    if items or not piece.text or proved:
        return
    digest = hashlib.sha256(piece.text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    item: dict[str, Any] = {"type": "reasoning", "id": f"rs_{digest}", "summary": []}
    if field == "encrypted_content":  # Ollama reads plain thinking from there, and from nowhere else
        yield item | {"summary": [{"type": "summary_text", "text": piece.text}], "encrypted_content": piece.text}
    else:
        yield item | {"content": [{"type": "reasoning_text", "text": piece.text}]}
