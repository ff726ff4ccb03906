"""Requests for Ollama's `/api/chat` and `/api/generate`, read and written.

What tunes sampling stands in `options`; thinking is `think`, true, false or a level. Results of tools name the tool and
not the call, so calls without an id get one and results are matched to them by name and order (`_Waiting`). A request
for `/api/generate` becomes messages, or with `raw` a bare prompt.
"""

from __future__ import annotations

from typing import Any

from ...families._family import nearest_effort
from .._framing import to_json
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
)
from .._request_fields import (
    COMMON,
    SAMPLING,
    Field,
    FieldTable,
    LeftOut,
    Moot,
    Refused,
    WrittenApart,
    call_value,
    expect,
    expect_object,
    no_counterpart,
    of,
    optional,
    read_nested_tool,
    replay_field,
    stops,
    with_data,
    without,
    write_nested_tool,
)
from .._tags import without_tags

NAME = "ollama"

_LEVELS = ("high", "medium", "low", "max")
_CHOICES = '"high", "medium", "low", "max", true, or false'
_FREE = ("auto", "none")
"""The choices of tools that do not force a call."""
FIELDS = FieldTable(
    *COMMON,
    Field("logprobs", "logprobs", of(bool)),
    Field("top_logprobs", "top_logprobs", lambda value, param: expect(value, int, param) or None),
    *map(WrittenApart, ("turns", "prompt", "tools", "tool_choice", "thinking", "response_format", "names")),
    *map(WrittenApart, ("max_tokens", "stop", "sampling")),  # in `options`
    Refused("choices", "n"),
    # Ollama cannot be made to call, and a client that asked for it relies on it.
    Refused("tool_choice", "tool_choice", lambda request: request.tools and request.tool_choice not in _FREE),
    LeftOut("parallel_calls", "parallel_tool_calls", lambda request: request.parallel_calls is False),
    LeftOut("thinking", "thinking budget", lambda request: request.thinking.budget is not None),
    LeftOut("template_arguments", "chat_template_kwargs"),
    LeftOut("user", "user"),
    LeftOut("turns", "is_error", lambda request: any(turn.is_error for turn in request.turns)),
    Moot("other_tools", "all tools are functions"),
    Moot("include_usage", "a reply always says what it cost"),
    sampling={},
    apart=("messages", "prompt", "system", "images", "tools", "think", "format", "options", "raw"),
)
_OPTIONS = FieldTable(
    Field("num_predict", "max_tokens", of(int)),
    Field("stop", "stop", stops, list),
    sampling={ours: ours for ours in SAMPLING.values()},
    within="options.",
)
"""What stands in `options`."""
_ESSENTIAL = ("context", "height", "images", "steps", "suffix", "template", "width")
"""Fields that change what is asked."""
_MEDIA_TYPES = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""How images of each kind begin in base64; this API does not name their kind."""


# Reading.


def read_request(body: Any, path: str = "") -> Request:
    """A request for `/api/chat`, or for `/api/generate` if it has no messages or was posted there."""
    body = expect_object(body)
    if path.endswith("/generate"):
        body = {name: value for name, value in body.items() if name != "messages"}  # as Ollama does
    elif path.endswith("/chat") and body.get("messages") is None:
        body = {**body, "messages": []}  # the reply to it is a message, too: Ollama loads the model
    options = without(optional(body, "options", dict, {}))
    limit = options.get("num_predict")
    # Any other number than a positive one means: as long as it takes.
    unlimited = {} if type(limit) is int and limit > 0 else without({"num_predict": options.pop("num_predict", None)})
    extra = {name: value for name, value in FIELDS.rest(body).items() if value != ""}
    if rest := _OPTIONS.rest(options) | unlimited:
        extra["options"] = rest
    prompt: str | None = None
    turns: list[RequestTurn] = []
    if body.get("messages") is not None:
        turns = _read_messages(expect(body["messages"], list, "messages"))
    elif body.get("raw"):
        prompt = optional(body, "prompt", str, "")
        extra |= {"images": body["images"]} if body.get("images") else {}
    else:
        turns = _read_prompt(body)
    tools = optional(body, "tools", list, [])
    return Request(
        dialect=NAME,
        turns=tuple(turns),
        prompt=prompt,
        tools=tuple(read_nested_tool(tool, f"tools[{number}]") for number, tool in enumerate(tools)),
        thinking=_read_thinking_options(body.get("think")),
        response_format=_read_format(body.get("format")),
        extra=extra,
        names={"turns": "prompt"} if body.get("messages") is None else {},
        essential=tuple(name for name in _ESSENTIAL if name in extra),
        **{"stream": True, **FIELDS.read(body), **_OPTIONS.read(options)},
    )


def _read_thinking_options(think: Any) -> ThinkingOptions:
    """Absent means on."""
    if think is None:
        return ThinkingOptions(think=True)
    if isinstance(think, bool):
        return ThinkingOptions(think=think, show=think, sent={"think": think})
    if not isinstance(think, str):
        raise RequestError(f"think must be a boolean or string ({_CHOICES})", "think")
    if think not in _LEVELS:
        raise RequestError(f'invalid think value: "{think}" (must be {_CHOICES})', "think")
    return ThinkingOptions(think=True, effort=think, sent={"think": think})


def _read_format(format: Any) -> dict[str, Any] | None:
    if not format:
        return None
    if format == "json":
        return {"type": "json_object"}
    if not isinstance(format, dict):
        raise RequestError('format must be "json" or a JSON schema', "format")
    return {"type": "json_schema", "json_schema": {"name": "response", "schema": format}}


def _read_prompt(body: dict[str, Any]) -> list[RequestTurn]:
    """What `/api/generate` puts into the model's template."""
    turns: list[RequestTurn] = []
    if system := optional(body, "system", str, ""):
        turns.append(RequestTurn("system", (TextPiece(system),)))
    prompt = optional(body, "prompt", str, "")
    images = _read_images(body, "")
    if prompt or images:
        turns.append(RequestTurn("user", (*((TextPiece(prompt),) if prompt else ()), *images)))
    return turns


def _read_images(body: dict[str, Any], where: str) -> list[ImagePiece]:
    found: list[ImagePiece] = []
    for image in optional(body, "images", list, [], where):
        data = expect(image, str, f"{where}images")
        kind = next((kind for start, kind in _MEDIA_TYPES.items() if data.startswith(start)), "image/png")
        found.append(ImagePiece(data=data, media_type=kind))
    return found


_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_MESSAGE = ("role", "content", "thinking", "images", "tool_calls", "tool_name", "name", "tool_call_id")


class _Waiting:
    """Calls that have no result yet. Results that name only a tool are matched to them by name and order."""

    def __init__(self) -> None:
        self._calls: list[CallPiece] = []
        self._count = 0

    def id(self, id: str) -> str:
        """The id of the next call: its own, or one that no other call of the conversation has."""
        self._count += 1
        return id or f"call_{self._count}"

    def add(self, calls: list[CallPiece]) -> None:
        """The latest calls are looked at first."""
        self._calls = calls + self._calls

    def answer(self, id: str, name: str) -> tuple[str, str]:
        """The id and the name of the call that this result answers."""
        for call in self._calls:
            # By name where no id came, the earliest of the latest calls first: clients send results in the order of the
            # calls.
            if (id and call.id == id) or (not id and name in ("", call.name)):
                self._calls.remove(call)
                return call.id, call.name
        return id, name


def _read_messages(messages: list[Any]) -> list[RequestTurn]:
    turns: list[RequestTurn] = []
    waiting = _Waiting()
    for number, message in enumerate(messages):
        where = f"messages[{number}]."
        expect(message, dict, f"messages[{number}]")
        role = _ROLES.get(str(message.get("role")))
        if role is None:
            raise RequestError(f"{where}role must be one of {', '.join(_ROLES)}", f"{where}role")
        turns.append(_read_message(message, role, where, waiting))
    return turns


def _read_message(message: dict[str, Any], role: Role, where: str, waiting: _Waiting) -> RequestTurn:
    extra = without(message, *_MESSAGE)
    content = optional(message, "content", str, "", where)
    pieces: list[RequestPiece] = [TextPiece(content)] if content else []
    images = _read_images(message, where)
    if role == "assistant":
        thinking = optional(message, "thinking", str, "", where)
        found = [piece for piece in without_tags(pieces) if piece != ThinkingPiece(thinking.strip())]
        calls = [
            _read_call(call, f"{where}tool_calls[{number}]", waiting)
            for number, call in enumerate(optional(message, "tool_calls", list, [], where))
        ]
        waiting.add(calls)
        return RequestTurn(
            role, (*([ThinkingPiece(thinking)] if thinking else []), *found, *images, *calls), extra=extra
        )
    if role != "tool":
        return RequestTurn(role, (*pieces, *images), extra=extra)
    name = optional(message, "tool_name", str, "", where) or optional(message, "name", str, "", where)
    id, name = waiting.answer(optional(message, "tool_call_id", str, "", where), name)
    return RequestTurn(role, (*pieces, *images), id, name, extra=extra)


def _read_call(call: Any, where: str, waiting: _Waiting) -> CallPiece:
    function = expect(expect(call, dict, where).get("function"), dict, f"{where}.function")
    extra = without(call, "id", "function")
    if len(function) > 2 and (beside := without(function, "name", "arguments")):
        extra["function"] = beside
    return CallPiece(
        expect(function.get("name"), str, f"{where}.function.name"),
        to_json(optional(function, "arguments", dict, {}, f"{where}.function.")).decode(),
        waiting.id(optional(call, "id", str, "", f"{where}.")),
        extra,
    )


# Writing.


def upstream_path(request: Request) -> str:
    """Where the request belongs that `write_request` makes of this one."""
    return "/api/generate" if is_generate(request) else "/api/chat"


def is_generate(request: Request) -> bool:
    """Whether it is about a prompt, not about messages."""
    return request.prompt is not None or (request.dialect == NAME and request.names.get("turns") == "prompt")


def write_request(request: Request, options: WriteOptions = PLAIN) -> dict[str, Any]:
    """The request for an Ollama upstream, at `upstream_path(request)`."""
    own = FIELDS.leave_out(request, NAME)
    request = request if own else clear_thinking(request)
    extra = dict(request.extra) if own else {}
    # Written even where it is the default of others: here the default is to stream.
    body = {"stream": False, **FIELDS.write(options.applied_to(request))}
    if request.prompt is not None:
        body |= {"prompt": request.prompt, "raw": True}
    elif is_generate(request):
        body |= _write_prompt(request.turns)
    else:
        body["messages"] = [_write_turn(request, index, options, own) for index in range(len(request.turns))]
    if request.tools and request.tool_choice != "none":
        body["tools"] = [write_nested_tool(tool, own) for tool in request.tools]
    fields = {
        "think": _write_think(request),
        "format": _write_format(request.response_format),
        "options": _OPTIONS.write(request) | extra.pop("options", {}) or None,
    }
    return body | without(fields) | extra


def _write_format(format: Any) -> Any:
    """`json`, a schema, or None."""
    if format is None:
        return None
    found = expect(format, dict, "response_format")
    if found.get("type") == "text":
        return None
    schema = optional(found, "json_schema", dict, {}, "response_format.").get("schema")
    return "json" if schema is None else schema


def _write_think(request: Request) -> bool | str | None:
    thinking = request.thinking
    if request.dialect == NAME:
        think: bool | str | None = thinking.sent.get("think")
        return think
    if thinking.think is False or thinking.effort == "none":
        return False
    if thinking.effort:
        # Ollama answers 400 to a level that it does not know.
        return nearest_effort(thinking.effort, _LEVELS) or True
    return thinking.think


def _write_prompt(turns: tuple[RequestTurn, ...]) -> dict[str, Any]:
    body: dict[str, Any] = {"prompt": "\n\n".join(turn.text for turn in turns if turn.role == "user")}
    if system := "\n\n".join(turn.text for turn in turns if turn.role == "system"):
        body["system"] = system
    if images := [_write_image(piece) for turn in turns for piece in turn.pieces if isinstance(piece, ImagePiece)]:
        body["images"] = images
    return body


def _write_turn(request: Request, index: int, options: WriteOptions, own: bool) -> dict[str, Any]:
    turn = request.turns[index]
    replay = replay_field(request, index, options) if turn.role == "assistant" else ""
    texts: list[str] = []
    thoughts: list[str] = []
    images: list[str] = []
    calls: list[dict[str, Any]] = []
    for piece in turn.pieces:
        match piece:
            case TextPiece(text=text):
                texts.append(text)
            case ThinkingPiece(text=text):
                if text and replay == "tags":
                    texts.append(f"<think>{piece.within(('', ''))}</think>")
                elif text and replay:
                    thoughts.append(piece.within(options.framing))
            case ImagePiece():
                images.append(_write_image(piece))
            case CallPiece():
                extra = dict(piece.extra) if own else {}
                function = {"name": piece.name, "arguments": call_value(piece), **extra.pop("function", {})}
                calls.append({**({"id": piece.id} if piece.id else {}), "function": function, **extra})
            case OtherPiece():
                raise no_counterpart(piece, NAME)
    role = "system" if turn.role == "developer" else turn.role
    fields = {
        "thinking": "\n\n".join(thoughts),
        "images": images,
        "tool_calls": calls,
        # Ollama's templates name the tool of a result; clients of other APIs give the call's id alone.
        "tool_name": turn.tool_name or _called(request.turns[:index], turn.call_id),
        "tool_call_id": turn.call_id,
    }
    message = {"role": role, "content": "\n\n".join(text for text in texts if text)}
    return message | {name: value for name, value in fields.items() if value} | (turn.extra if own else {})


def _called(turns: tuple[RequestTurn, ...], id: str) -> str:
    """The name of the tool that this call asked for."""
    for turn in reversed(turns):
        for piece in turn.pieces:
            if isinstance(piece, CallPiece) and id and piece.id == id:
                return piece.name
    return ""


def _write_image(piece: ImagePiece) -> str:
    data = with_data(piece).data
    if not data:
        raise RequestError(f"{NAME} takes images as base64 only, and no address is fetched for a client", "image_url")
    return data
