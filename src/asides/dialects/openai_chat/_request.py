"""Requests for chat completions, read and written: OpenAI's fields, and those that other servers added to them.

The fields that a `Request` has too are rows of `FIELDS`, which both directions use. How to think is asked for under a
dozen names (`THINKING`); `read_thinking_options` makes one record of them, also for plain completions and Responses.
Thinking of earlier turns is read in every shape that clients send it back in (`_thinking_of`) and written where the
upstream looks for it (`replay_field`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from .._custom_tools import arguments_of
from .._fields import as_json, as_object, as_objects
from .._request import (
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
    WriteOptions,
    clear_thinking,
    in_tags,
    template_arguments,
)
from .._request_fields import (
    COMMON,
    Field,
    FieldRow,
    FieldTable,
    Refused,
    Shape,
    WrittenApart,
    expect,
    expect_object,
    image_url,
    no_counterpart,
    of,
    optional,
    positive,
    read_budget,
    read_content,
    read_image,
    replay_field,
    report_lost,
    shared_extra,
    stops,
    unknown_fields,
    without,
    write_nested_tool,
)
from .._tags import without_tags
from ._tools import ChatTools, write_choice

NAME = "openai_chat"

BUDGETS = ("thinking_token_budget", "reasoning_budget_tokens", "thinking_budget_tokens", "thinking_budget")
"""Those that bound its tokens: vLLM's, llama.cpp's two, Qwen's."""
THINKING = (
    "reasoning_effort",
    "reasoning",
    "include_reasoning",
    "reasoning_format",
    "thinking",
    "think",
    "enable_thinking",
    *BUDGETS,
)
"""Every field by which some server is asked to think."""
_ABOUT_THINKING = frozenset({*THINKING, "chat_template_kwargs"})
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
        "moderation",
        "plugins",
        "structured_outputs",
        "web_search_options",
    }
)
"""Fields of no other dialect that change what is asked."""
_REASONING: Shape = dict.fromkeys(("effort", "enabled", "exclude", "generate_summary", "max_tokens", "summary"))
_THINKING: Shape = dict.fromkeys(("budget_tokens", "type"))
"""What is understood of `reasoning` and `thinking`."""
FORMATS = ("text", "json_object", "json_schema")
"""The types of `response_format` that other dialects have too."""
_FORMAT: Shape = {"type": None, "json_schema": dict.fromkeys(("description", "name", "schema", "strict"))}
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


SHARED: tuple[FieldRow, ...] = (
    *COMMON,
    Field("n", "choices", positive),
    Field("max_tokens", "max_tokens", of(int)),
    Field("stop", "stop", stops, list),
    Field("chat_template_kwargs", "template_arguments", of(dict), None),
    Field("user", "user"),
)
"""The fields that plain completions have too."""
FIELDS = FieldTable(
    *SHARED,
    Field("max_completion_tokens", "max_tokens", of(int), None),
    Field("parallel_tool_calls", "parallel_calls", of(bool)),
    Field("response_format", "response_format", of(dict)),
    Field("logprobs", "logprobs", of(bool)),
    Field("top_logprobs", "top_logprobs", of(int)),
    *map(WrittenApart, ("turns", "tools", "other_tools", "tool_choice", "thinking", "include_usage", "names")),
    Refused("prompt", "prompt"),
    apart=("messages", "tools", "tool_choice", "stream_options", *THINKING),
)

_PLAIN = frozenset({"role", "content"})
"""The fields of most messages."""

# Reading.


def read_request(body: Any, path: str = "") -> Request:
    """Understand a request; `RequestError` names the field that cannot be."""
    body = expect_object(body)
    for name in ("functions", "function_call"):
        if body.get(name) is not None:
            raise RequestError(f"{name!r} is no longer supported; send `tools` and `tool_choice`", name)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestError("messages must be a list that holds at least one message", "messages")
    tools = ChatTools(optional(body, "tools", list, []))
    choice = tools.choose(body["tool_choice"]) if body.get("tool_choice") is not None else "auto"
    include_usage, stream_options = read_options(body)
    extra = FIELDS.rest(body)
    if stream_options:
        extra["stream_options"] = stream_options
    essential = sorted(ESSENTIAL & extra.keys())
    if "reasoning" in body or "thinking" in body:
        essential += unknown_options(body)
    if isinstance(format := body.get("response_format"), dict):
        essential += unknown_fields(format, _FORMAT, "response_format")
        if format.get("type") not in FORMATS:
            essential.append("response_format")
    if tools.strange:
        essential += tools.strange
        extra["tool_choice"] = body["tool_choice"]
    if extra.get("modalities") not in (None, [], ["text"]):
        essential.append("modalities")
    if tools.unknown:
        essential.append("tools")
    # OpenAI refuses the old name for its newer models, others do not know the new one: it goes out as it came in.
    long_name = body.get("max_completion_tokens") is not None
    return Request(
        dialect=NAME,
        turns=tuple([_read_turn(message, f"messages[{index}]", tools) for index, message in enumerate(messages)]),
        tools=tuple(tools.functions),
        other_tools=tuple(tools.others),
        tool_choice=choice,
        thinking=read_thinking_options(body),
        include_usage=include_usage,
        extra=extra,
        names={"max_tokens": "max_completion_tokens"} if long_name else {},
        essential=tuple(essential),
        **FIELDS.read(body),
    )


def read_options(body: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Whether the client asked what the reply costs, and its other options."""
    if "stream_options" not in body:
        return False, {}
    options = optional(body, "stream_options", dict, {})
    return bool(options.get("include_usage")), without(options, "include_usage") if len(options) > 1 else {}


def read_thinking_options(body: dict[str, Any]) -> ThinkingOptions:
    """How the caller wants thinking, by whichever of the fields that servers have for it."""
    if _ABOUT_THINKING.isdisjoint(body):  # most say nothing of it
        return ThinkingOptions()
    sent = {name: body[name] for name in THINKING if body.get(name) is not None}
    template = optional(body, "chat_template_kwargs", dict, {})
    reasoning = sent.get("reasoning", {})
    if not isinstance(reasoning, dict):
        raise RequestError('reasoning must be an object such as {"effort": "low"}', "reasoning")
    thinking = sent.get("thinking")
    fields = thinking if isinstance(thinking, dict) else {}
    switch = fields.get("type") if fields else thinking
    think = sent.get("think")
    # An object of its own is OpenRouter's and Ollama's way, where it wins over the single field.
    effort = _first(reasoning.get("effort"), sent.get("reasoning_effort"), template.get("reasoning_effort"))
    if isinstance(think, str):
        effort = effort or think
        think = True
    if effort is not None:
        expect(effort, str, "reasoning_effort")
    budget = read_budget(
        {
            "reasoning.max_tokens": reasoning.get("max_tokens"),
            "thinking.budget_tokens": fields.get("budget_tokens"),
            **{name: sent.get(name) for name in BUDGETS},
            "chat_template_kwargs.thinking_budget": template.get("thinking_budget"),
        }
    )
    switches = [
        think,
        sent.get("enable_thinking"),
        template.get("enable_thinking"),
        template.get("thinking"),
        reasoning.get("enabled"),
        {"enabled": True, "disabled": False}.get(switch) if isinstance(switch, str) else switch,
        None if effort is None else effort != "none",
        False if budget == 0 else None,
    ]
    refused = any(value is False for value in switches)
    # OpenRouter's `max_tokens` alone asks for thinking.
    wanted = any(value is True for value in switches) or budget is not None
    # Hidden is not refused: the model thinks, and the client does not see it.
    hidden = (
        reasoning.get("exclude") is True
        or sent.get("include_reasoning") is False
        or sent.get("reasoning_format") == "hidden"
    )
    return ThinkingOptions(
        think=False if refused else True if wanted else None,
        show=not (refused or hidden),
        effort=effort,
        budget=budget or None,
        sent=sent,
    )


def unknown_options(body: dict[str, Any], reasoning: Shape = _REASONING) -> list[str]:
    """Fields within those about thinking that no other dialect could honour, by their places."""
    return [
        *unknown_fields(body.get("reasoning"), reasoning, "reasoning"),
        *unknown_fields(body.get("thinking"), _THINKING, "thinking"),
    ]


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


# Messages.


def _read_turn(message: Any, param: str, tools: ChatTools) -> RequestTurn:
    message = expect(message, dict, param)
    role = ROLES.get(str(message.get("role")))
    if role is None:
        raise RequestError(f"{param}.role must be one of {', '.join(ROLES)}", f"{param}.role")
    pieces = read_content(message.get("content"), f"{param}.content", _read_part, "[{}]")
    if role == "assistant":
        known = ("role", "content", "tool_calls", "function_call", "reasoning_details", "thinking_blocks", *REASONING)
        return RequestTurn(
            role,
            (*_with_thinking(message, pieces), *_read_calls(message, param, tools)),
            extra=without(message, *known),
        )
    if role != "tool":
        extra = {} if message.keys() <= _PLAIN else without(message, *_PLAIN)
        return RequestTurn(role, tuple(pieces), extra=extra)
    call_id = optional(message, "tool_call_id", str, "", f"{param}.")
    tool_name = optional(message, "name", str, "", f"{param}.")
    return RequestTurn(
        role, tuple(pieces), call_id, tool_name, extra=without(message, "role", "content", "tool_call_id", "name")
    )


def _read_part(part: Any, param: str) -> RequestPiece:
    if isinstance(part, str):
        return TextPiece(part)
    kind = expect(part, dict, param).get("type")
    if kind in ("text", "input_text", "output_text"):
        return TextPiece(expect(part.get("text"), str, f"{param}.text"), without(part, "type", "text"))
    if kind == "image_url":
        image = part.get("image_url")
        image = {"url": image} if isinstance(image, str) else expect(image, dict, f"{param}.image_url")
        extra = without(image, "url")
        if len(part) > 2 and (beside := without(part, "type", "image_url")):
            extra["part"] = beside
        return read_image(expect(image.get("url"), str, f"{param}.image_url.url"), extra)
    if kind == "thinking":
        report_lost(NAME, unknown_fields(part, _THOUGHT))  # it is written anew, where the upstream looks for it
        return ThinkingPiece(thinking_text(part.get("thinking")), optional(part, "signature", str, "", f"{param}."))
    return OtherPiece(part)


_THOUGHT: Shape = {
    **dict.fromkeys(("closed", "data", "signature", "type")),
    "thinking": [{"type": None, "text": None}],
}
"""What is understood of a part of the content that is thinking: Mistral's, Anthropic's, LiteLLM's."""


def thinking_text(value: Any) -> str:
    """The text of a thinking part: a string, or a list of text parts."""
    if isinstance(value, list):
        return "".join(str(part.get("text") or "") for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""


def _with_thinking(message: dict[str, Any], pieces: list[RequestPiece]) -> list[RequestPiece]:
    """The thinking of an earlier turn, in whatever shape it came, and the content without it."""
    thoughts = _thinking_of(message)
    # Clients that know only the content keep thinking there in tags. It goes back where the upstream looks for it.
    found = list(without_tags(pieces))
    known = "".join(piece.text for piece in thoughts).strip()
    if known:  # a block repeated in the content counts once
        found = [piece for piece in found if not (isinstance(piece, ThinkingPiece) and piece.text.strip() == known)]
    return [*thoughts, *found]


def _thinking_of(message: dict[str, Any]) -> list[ThinkingPiece]:
    plain = next((message[name] for name in REASONING if message.get(name) and isinstance(message[name], str)), "")
    # A reply has the text of a thought once, in the field for it, and signatures beside it: the two are joined again.
    if blocks := _with_text(as_objects(message.get("thinking_blocks")), plain, _BLOCK_TEXT):
        pieces = [_read_block(block) for block in blocks]
        return pieces if not plain or any(piece.text for piece in pieces) else [ThinkingPiece(plain), *pieces]
    kept = tuple(_with_text(as_objects(message.get("reasoning_details")), plain, _DETAIL_TEXT))
    text = plain or "".join(detail_text(detail) for detail in kept)
    return [ThinkingPiece(text, details=kept)] if text or kept else []


_BLOCK_TEXT = {"thinking": "thinking"}
_DETAIL_TEXT = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""By the type of a block or a detail: where its text stands."""


def _with_text(entries: list[dict[str, Any]], text: str, names: dict[str, str]) -> list[dict[str, Any]]:
    """Blocks or details with the text that their message has elsewhere, where one of them alone lacks it."""
    fields = [names.get(str(entry.get("type")), "") for entry in entries]
    places = [place for place, field in enumerate(fields) if field]
    if text and len(places) == 1 and not entries[places[0]].get(fields[places[0]]):
        place = places[0]
        return [*entries[:place], {**entries[place], fields[place]: text}, *entries[place + 1 :]]
    return entries


def _read_block(block: dict[str, Any]) -> ThinkingPiece:
    report_lost(NAME, unknown_fields(block, _THOUGHT))
    text = thinking_text(block.get("thinking"))
    return ThinkingPiece(text, optional(block, "signature", str, ""), () if text else (block,))


def detail_text(detail: dict[str, Any]) -> str:
    """The text of one of `reasoning_details`."""
    text = detail.get("text") or detail.get("summary")
    return text if isinstance(text, str) else ""


def _read_calls(message: dict[str, Any], param: str, tools: ChatTools) -> list[RequestPiece]:
    pieces: list[RequestPiece] = []
    for index, call in enumerate(optional(message, "tool_calls", list, [], f"{param}.")):
        place = f"{param}.tool_calls[{index}]"
        other = expect(call, dict, place).get("type", "function") != "function" and not call.get("function")
        if other and call.get("type") == "custom":
            pieces.append(_read_custom_call(call, place, tools))
        else:
            pieces.append(OtherPiece(call) if other else _read_call(call, f"{place}.function"))
    if message.get("function_call") is not None:
        pieces.append(_read_call({"function": message["function_call"]}, f"{param}.function_call"))
    return pieces


def _read_call(call: dict[str, Any], param: str) -> CallPiece:
    function = expect(call.get("function"), dict, param)
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = "{}" if arguments is None else as_json(arguments)
    name = expect(function.get("name"), str, f"{param}.name")
    extra = without(call, "id", "type", "function", "index")
    if len(function) > 2 and (beside := without(function, "name", "arguments")):
        extra["function"] = beside
    return CallPiece(name, arguments, optional(call, "id", str, ""), extra)


def _read_custom_call(call: dict[str, Any], param: str, tools: ChatTools) -> CallPiece:
    """A call of a custom tool, under the name that the model knows; kept as it was, for the same dialect."""
    custom = expect(call.get("custom"), dict, f"{param}.custom")
    name = tools.custom_name(expect(custom.get("name"), str, f"{param}.custom.name"))
    text = optional(custom, "input", str, "", f"{param}.custom.")
    strange = dict.fromkeys(unknown_fields(call, _CUSTOM_CALL))
    return CallPiece(name, arguments_of(text), optional(call, "id", str, "", f"{param}."), {"call": call, **strange})


_CUSTOM_CALL: Shape = {**dict.fromkeys(("id", "index", "type")), "custom": dict.fromkeys(("input", "name"))}


# Writing.


def write_request(request: Request, options: WriteOptions = PLAIN) -> dict[str, Any]:
    """The request for an upstream that speaks chat completions."""
    shared = _shared_with_responses(request) if request.dialect == "openai_responses" else {}
    same = FIELDS.leave_out(request, NAME, {*shared, "text.verbosity"})
    if not same:
        # Within the dialect the order is the client's own business: it may know a template that takes it.
        # In this order: instructions that become text of the user end no turn of the assistant.
        request = clear_thinking(request)
        request = msgspec.structs.replace(request, turns=_system_first(request.turns))
    request = options.applied_to(request)
    extra = dict(request.extra) if same else shared
    body = FIELDS.write(request)
    body["messages"] = [_write_turn(request, index, options) for index in range(len(request.turns))]
    if request.tools or (same and request.other_tools):
        tools = [write_nested_tool(tool, same) for tool in request.tools if not (same and tool.origin)]
        body["tools"] = [*tools, *(request.other_tools if same else ())]
        if "tool_choice" in extra or request.tool_choice != "auto":
            body["tool_choice"] = extra.pop("tool_choice", None) or write_choice(request, same)
    else:
        extra.pop("tool_choice", None)
        body.pop("parallel_tool_calls", None)
    if "max_tokens" in request.names and "max_tokens" in body:
        body[request.names["max_tokens"]] = body.pop("max_tokens")
    return body | write_options(body, request, options, extra)


def write_options(
    body: dict[str, Any], request: Request, options: WriteOptions, extra: dict[str, Any], dialect: str = NAME
) -> dict[str, Any]:
    """What is added to a body of this kind of API: options of a stream, how to think, and its own fields."""
    same = request.dialect == dialect
    stream_options = extra.pop("stream_options", {})
    if request.include_usage or options.usage or not same:  # other dialects always say what a reply cost
        stream_options = {**stream_options, "include_usage": True}
    found = {"stream_options": stream_options} if stream_options and body.get("stream") else {}
    if options.special_tokens:
        extra.setdefault("skip_special_tokens", False)
    effort = write_thinking_options(found, request, options, same)
    return found | ({} if effort is None else {"reasoning_effort": effort}) | extra


def _shared_with_responses(request: Request) -> dict[str, Any]:
    text = request.extra.get("text")
    verbosity = text.get("verbosity") if isinstance(text, dict) else None
    return shared_extra(request) | without({"verbosity": verbosity})


def _system_first(turns: tuple[RequestTurn, ...]) -> tuple[RequestTurn, ...]:
    """The turns with instructions only at their beginning: many chat templates refuse them later.

    Later ones become text of the user, before that which they follow, so that the question stays last.
    """
    found: list[RequestTurn] = []
    for turn in turns:
        later = turn.role in ("system", "developer") and any(each.role not in ("system", "developer") for each in found)
        if later and found[-1].role == "user":
            found[-1] = msgspec.structs.replace(found[-1], pieces=(*turn.pieces, *found[-1].pieces))
        else:
            found.append(msgspec.structs.replace(turn, role="user") if later else turn)
    return tuple(found)


def write_thinking_options(body: dict[str, Any], request: Request, options: WriteOptions, same: bool) -> str | None:
    """Write how to think: with the caller's own fields in the same dialect, by the template's keywords, by a budget.

    Returns the effort that is left to write.
    """
    thinking = request.thinking
    # In the fields that the client chose: which of them a server knows, only the client can know.
    body |= thinking.sent if same else {}
    if template := template_arguments(request, options):
        body["chat_template_kwargs"] = template
    if thinking.budget is not None and options.budget and thinking.think is not False:
        outer, _, inner = options.budget.partition(".")
        # What the client put there itself wins.
        limit = {inner: thinking.budget, **as_object(body.get(outer))} if inner else body.get(outer, thinking.budget)
        body[outer] = limit
    if same:
        return None
    return thinking.effort or ("none" if thinking.think is False and not options.switch else None)


def _write_turn(request: Request, index: int, options: WriteOptions) -> dict[str, Any]:
    turn = request.turns[index]
    same = request.dialect == NAME
    if turn.role == "assistant":
        message = _write_assistant(request, index, options)
    else:
        role = "system" if turn.role == "developer" and not same else turn.role
        message = {"role": role, "content": _write_content(turn, same)}
    if turn.role == "tool":
        message |= {"tool_call_id": turn.call_id} | ({"name": turn.tool_name} if turn.tool_name else {})
    return message | (turn.extra if same else {})


def _write_content(turn: RequestTurn, same: bool) -> str | list[dict[str, Any]]:
    first = turn.pieces[0] if len(turn.pieces) == 1 else None
    if type(first) is TextPiece and not first.extra:  # most messages are one text
        return first.text
    texts = [piece for piece in turn.pieces if isinstance(piece, TextPiece)]
    plain = len(texts) == len(turn.pieces)
    # A plain string where it says the same: not every chat template takes a list of parts.
    if plain and (len(texts) < 2 or not same) and not (same and any(piece.extra for piece in texts)):
        return "\n\n".join(piece.text for piece in texts)
    return [_write_part(piece, same) for piece in turn.pieces]


def _write_part(piece: RequestPiece, same: bool) -> dict[str, Any]:
    if isinstance(piece, TextPiece):
        return {"type": "text", "text": piece.text, **(piece.extra if same else {})}
    if isinstance(piece, ImagePiece):
        extra = dict(piece.extra) if same else {}
        beside = extra.pop("part", {})
        return {"type": "image_url", "image_url": {"url": image_url(piece), **extra}, **beside}
    if isinstance(piece, OtherPiece) and same:
        return piece.data
    raise no_counterpart(piece, NAME)


def _write_assistant(request: Request, index: int, options: WriteOptions) -> dict[str, Any]:
    turn, same = request.turns[index], request.dialect == NAME
    field = replay_field(request, index, options)
    calls = [_write_call(piece, same) for piece in turn.pieces if isinstance(piece, CallPiece)]
    text = ""
    parts: list[dict[str, Any]] = []
    for piece in turn.pieces:
        if isinstance(piece, TextPiece):
            if same and piece.extra:
                parts.append(_write_part(piece, same))
            elif parts and piece.text:
                parts.append({"type": "text", "text": piece.text})
            else:
                text += piece.text
        elif isinstance(piece, ThinkingPiece) and field == "tags" and piece.text:
            text += in_tags(piece.within(("", "")))
        elif not isinstance(piece, ThinkingPiece | CallPiece):
            parts.append(_write_part(piece, same))
    # Beside calls a chat client's null stays; for others it is empty: every server takes that, not every one null.
    message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls and same else "")}
    if parts:
        message["content"] = [*([{"type": "text", "text": text}] if text else ()), *parts]
    if field not in ("", "tags"):
        message |= _write_thinking(turn, field, same and options.replay == "auto", options)
    if options.every_thought:
        message.setdefault(options.field if options.field in REASONING else REASONING[0], "")
    return message | ({"tool_calls": calls} if calls else {})


def _write_thinking(turn: RequestTurn, field: str, with_details: bool, options: WriteOptions) -> dict[str, Any]:
    """The thinking of an earlier turn, in the upstream's field."""
    thoughts = [piece for piece in turn.pieces if isinstance(piece, ThinkingPiece)]
    text = "\n\n".join(piece.within(options.framing) for piece in thoughts if piece.text)
    details = [detail for piece in thoughts for detail in piece.details]
    found: dict[str, Any] = {field: text} if text else {}
    if field == "reasoning_details":
        # OpenRouter wants its details back in order and untouched. Items of other APIs are kept beside them and mean
        # nothing there.
        own = [detail for detail in details if str(detail.get("type")).startswith("reasoning.")]
        made = [{"type": "reasoning.text", "text": text, "index": 0}] if text else []
        found = {field: own or made} if own or made else {}
    for piece in thoughts:
        if piece.proof is not None and piece.proof.dialect == NAME:
            found |= piece.proof.data
    return found | ({"reasoning_details": details} if details and with_details else {})


SKIPPED_SIGNATURE: dict[str, Any] = {
    "extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}
}
"""What Google takes in the place of a call's signature that nobody has."""


def _write_call(piece: CallPiece, same: bool) -> dict[str, Any]:
    if same and "call" in piece.extra:
        return dict(piece.extra["call"])
    call = {"id": piece.id, "type": "function", "function": {"name": piece.name, "arguments": piece.arguments}}
    if piece.proof is not None and piece.proof.dialect == NAME:
        call |= piece.proof.data
    if same and piece.extra:
        beside = dict(piece.extra)
        call["function"] = {"name": piece.name, "arguments": piece.arguments, **beside.pop("function", {})}
        return call | beside
    return call
