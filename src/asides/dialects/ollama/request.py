"""Requests for Ollama's `/api/chat` and `/api/generate`, read and written.

What tunes sampling stands in `options`; thinking is `think`, true, false or a level. Results of tools name the tool and
not the call, so calls without an id get one and results are matched to them by name and order (`_Waiting`). A request
for `/api/generate` becomes messages, or with `raw` a bare prompt.
"""

from __future__ import annotations

from typing import Any

from ..checks import expect, expect_object, optional
from ..framing import to_json
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
    log,
)
from ..tags import untagged
from ..whole_calls import to_object

NAME = "ollama"

_LEVELS = ("high", "medium", "low", "max")
_CHOICES = '"high", "medium", "low", "max", true, or false'
_EFFORTS = {"minimal": "low", "xhigh": "max", "ultra": "max"}
"""Efforts of other dialects, in this one's words."""
_OPTIONS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "repeat_penalty",
)
_READ = {
    *("model", "messages", "prompt", "system", "images", "tools", "stream", "think", "format", "options"),
    *("logprobs", "top_logprobs", "raw"),
}
_ESSENTIAL = ("context", "height", "images", "steps", "suffix", "template", "width")
"""Fields that change what is asked."""
_MEDIA_TYPES = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""How images of each kind begin in base64; this API does not name their kind."""
_PLAIN = WriteOptions()


# Reading.


def read_request(body: Any, path: str = "") -> Request:
    """A request for `/api/chat`, or for `/api/generate` if it has no messages or was posted there."""
    body = expect_object(body)
    if path.endswith("/generate"):
        body = {name: value for name, value in body.items() if name != "messages"}  # as Ollama does
    options = dict(optional(body, "options", dict, {}))
    extra = {name: value for name, value in body.items() if name not in _READ and value not in (None, "")}
    prompt: str | None = None
    if body.get("messages") is not None:
        turns = _read_messages(expect(body["messages"], list, "messages"))
    elif body.get("raw"):
        turns, prompt = [], optional(body, "prompt", str, "")
        if body.get("images"):
            extra["images"] = body["images"]
    else:
        turns = _read_prompt(body)
    stop = options.pop("stop", None) or []
    stop = [stop] if isinstance(stop, str) else stop
    limit = options.get("num_predict")
    if isinstance(limit, int) and limit > 0:
        del options["num_predict"]
    else:
        limit = None  # as long as it takes
    sampling = {name: options.pop(name) for name in _OPTIONS if options.get(name) is not None}
    if options := {name: value for name, value in options.items() if value is not None}:
        extra["options"] = options
    return Request(
        dialect=NAME,
        model=optional(body, "model", str, ""),
        turns=tuple(turns),
        prompt=prompt,
        tools=tuple(
            _read_tool(tool, f"tools[{number}]") for number, tool in enumerate(optional(body, "tools", list, []))
        ),
        thinking=_read_thinking_options(body.get("think")),
        stream=optional(body, "stream", bool, True),
        max_tokens=limit,
        stop=tuple(expect(each, str, "options.stop") for each in expect(stop, list, "options.stop")),
        sampling=sampling,
        response_format=_read_format(body.get("format")),
        logprobs=optional(body, "logprobs", bool, False),
        top_logprobs=optional(body, "top_logprobs", int, 0) or None,
        extra=extra,
        names={"turns": "prompt"} if body.get("messages") is None else {},
        essential=tuple(name for name in _ESSENTIAL if name in extra),
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


def _read_tool(tool: Any, where: str) -> Tool:
    function = expect(expect(tool, dict, where).get("function"), dict, f"{where}.function")
    others = {name: value for name, value in function.items() if name not in ("name", "description", "parameters")}
    extra = {name: value for name, value in tool.items() if name not in ("type", "function")}
    return Tool(
        expect(function.get("name"), str, f"{where}.function.name"),
        optional(function, "description", str, "", f"{where}.function."),
        optional(function, "parameters", dict, {}, f"{where}.function."),
        extra=extra | ({"function": others} if others else {}),
    )


def _read_prompt(body: dict[str, Any]) -> list[Turn]:
    """What `/api/generate` puts into the model's template."""
    turns: list[Turn] = []
    if system := optional(body, "system", str, ""):
        turns.append(Turn("system", (TextPiece(system),)))
    prompt = optional(body, "prompt", str, "")
    images = _read_images(body, "")
    if prompt or images:
        turns.append(Turn("user", (*((TextPiece(prompt),) if prompt else ()), *images)))
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
            if (id and call.id == id) or (not id and name in ("", call.name)):
                self._calls.remove(call)
                return call.id, call.name
        return id, name


def _read_messages(messages: list[Any]) -> list[Turn]:
    turns: list[Turn] = []
    waiting = _Waiting()
    for number, message in enumerate(messages):
        where = f"messages[{number}]."
        expect(message, dict, f"messages[{number}]")
        role = _ROLES.get(str(message.get("role")))
        if role is None:
            raise RequestError(f"{where}role must be one of {', '.join(_ROLES)}", f"{where}role")
        turns.append(_read_message(message, role, where, waiting))
    return turns


def _read_message(message: dict[str, Any], role: Role, where: str, waiting: _Waiting) -> Turn:
    extra = {name: value for name, value in message.items() if name not in _MESSAGE and value is not None}
    content = optional(message, "content", str, "", where)
    images = _read_images(message, where)
    if role == "assistant":
        pieces: list[RequestPiece] = []
        if thinking := optional(message, "thinking", str, "", where):
            pieces.append(ThinkingPiece(thinking))
        said = untagged(content) if content else []
        pieces += [piece for piece in said if piece != ThinkingPiece(thinking.strip())]
        calls = [
            _read_call(call, f"{where}tool_calls[{number}]", waiting)
            for number, call in enumerate(optional(message, "tool_calls", list, [], where))
        ]
        waiting.add(calls)
        return Turn(role, (*pieces, *images, *calls), extra=extra)
    words = (*((TextPiece(content),) if content else ()), *images)
    if role != "tool":
        return Turn(role, words, extra=extra)
    name = optional(message, "tool_name", str, "", where) or optional(message, "name", str, "", where)
    id, name = waiting.answer(optional(message, "tool_call_id", str, "", where), name)
    return Turn(role, words, id, name, extra=extra)


def _read_call(call: Any, where: str, waiting: _Waiting) -> CallPiece:
    function = expect(expect(call, dict, where).get("function"), dict, f"{where}.function")
    return CallPiece(
        expect(function.get("name"), str, f"{where}.function.name"),
        to_json(optional(function, "arguments", dict, {}, f"{where}.function.")).decode(),
        waiting.id(optional(call, "id", str, "", f"{where}.")),
    )


# Writing.


def upstream_path(request: Request) -> str:
    """Where the request belongs that `write_request` makes of this one."""
    return "/api/generate" if is_generate(request) else "/api/chat"


def is_generate(request: Request) -> bool:
    """Whether it is about a prompt, not about messages."""
    return request.prompt is not None or (request.dialect == NAME and request.names.get("turns") == "prompt")


def write_request(request: Request, options: WriteOptions = _PLAIN) -> dict[str, Any]:
    """The request for an Ollama upstream, at `upstream_path(request)`."""
    leave_out(request, NAME)
    _refuse(request)
    own = request.dialect == NAME
    extra = dict(request.extra) if own else {}
    body: dict[str, Any] = {"model": options.model or request.model}
    if request.prompt is not None:
        body |= {"prompt": request.prompt, "raw": True}
    elif is_generate(request):
        body |= _write_prompt(request.turns)
    else:
        body["messages"] = [_write_turn(request, index, options, own) for index in range(len(request.turns))]
    if request.tools and request.tool_choice != "none":
        body["tools"] = [_write_tool(tool, own) for tool in request.tools]
    body["stream"] = request.stream if options.stream is None else options.stream
    if (think := _write_think(request)) is not None:
        body["think"] = think
    if (format := _write_format(request.response_format)) is not None:
        body["format"] = format
    settings = dict(request.sampling)
    if request.max_tokens is not None:
        settings["num_predict"] = request.max_tokens
    if request.stop:
        settings["stop"] = list(request.stop)
    if settings := settings | extra.pop("options", {}):
        body["options"] = settings
    if request.logprobs:
        body["logprobs"] = True
    if request.top_logprobs is not None:
        body["top_logprobs"] = request.top_logprobs
    return body | extra


def _write_format(format: Any) -> Any:
    """`json`, a schema, or None."""
    if format is None:
        return None
    found = expect(format, dict, "response_format")
    if found.get("type") == "text":
        return None
    schema = optional(found, "json_schema", dict, {}, "response_format.").get("schema")
    return "json" if schema is None else schema


def _refuse(request: Request) -> None:
    if request.choices > 1:
        raise RequestError(f"{NAME} gives one reply to a request: n must be 1", "n")
    if request.tools and request.tool_choice not in ("auto", "none"):
        raise RequestError(f"{NAME} lets the model choose: tool_choice must be auto or none", "tool_choice")
    lost = [
        name
        for name, given in (
            ("parallel_tool_calls", request.parallel_calls is False),
            ("thinking budget", request.thinking.budget is not None),
            ("chat_template_kwargs", bool(request.template_arguments)),
            ("user", request.user is not None),
            ("is_error", any(turn.is_error for turn in request.turns)),
        )
        if given
    ]
    if lost:
        log.info("left out, no counterpart in %s: %s", NAME, ", ".join(lost))


def _write_think(request: Request) -> bool | str | None:
    thinking = request.thinking
    if request.dialect == NAME:
        think: bool | str | None = thinking.sent.get("think")
        return think
    if thinking.think is False or thinking.effort == "none":
        return False
    if thinking.effort:
        effort = _EFFORTS.get(thinking.effort, thinking.effort)
        return effort if effort in _LEVELS else True
    return thinking.think


def _write_tool(tool: Tool, own: bool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters or {"type": "object", "properties": {}}
    extra = dict(tool.extra) if own else {}
    function |= extra.pop("function", {})
    return {"type": "function", "function": function, **extra}


def _write_prompt(turns: tuple[Turn, ...]) -> dict[str, Any]:
    body: dict[str, Any] = {"prompt": "\n\n".join(turn.text for turn in turns if turn.role == "user")}
    if system := "\n\n".join(turn.text for turn in turns if turn.role == "system"):
        body["system"] = system
    if images := [_write_image(piece) for turn in turns for piece in turn.pieces if isinstance(piece, ImagePiece)]:
        body["images"] = images
    return body


def _write_turn(request: Request, index: int, options: WriteOptions, own: bool) -> dict[str, Any]:
    turn = request.turns[index]
    replay = _replay(request, index, options) if turn.role == "assistant" else ""
    words: list[str] = []
    thoughts: list[str] = []
    images: list[str] = []
    calls: list[dict[str, Any]] = []
    for piece in turn.pieces:
        match piece:
            case TextPiece(text=text):
                words.append(text)
            case ThinkingPiece(text=text):
                if text and replay == "tags":
                    words.append(f"<think>{text}</think>")
                elif text and replay:
                    thoughts.append(text)
            case ImagePiece():
                images.append(_write_image(piece))
            case CallPiece():
                calls.append(_write_call(piece))
            case OtherPiece(data=data):
                kind = str(data.get("type", "content"))
                raise RequestError(f"content of type {kind!r} has no counterpart in {NAME}", "messages")
    role = "system" if turn.role == "developer" else turn.role
    message: dict[str, Any] = {"role": role, "content": "\n\n".join(word for word in words if word)}
    for name, value in (
        ("thinking", "\n\n".join(thoughts)),
        ("images", images),
        ("tool_calls", calls),
        ("tool_name", turn.tool_name or _called(request.turns[:index], turn.call_id)),
        ("tool_call_id", turn.call_id),
    ):
        if value:
            message[name] = value
    return message | (turn.extra if own else {})


def _replay(request: Request, index: int, options: WriteOptions) -> str:
    """Where the thinking of this turn is sent back; empty where it is not."""
    if options.replay != "auto":
        return "" if options.replay == "drop" else options.replay
    called = any(isinstance(piece, CallPiece) for piece in request.turns[index].pieces)
    answered = any(turn.role == "user" for turn in request.turns[index + 1 :])
    if options.keep_thinking == "none" or (options.keep_thinking == "tool_turns" and answered and not called):
        return ""
    return options.field


def _called(turns: tuple[Turn, ...], id: str) -> str:
    """The name of the tool that this call asked for."""
    for turn in reversed(turns):
        for piece in turn.pieces:
            if isinstance(piece, CallPiece) and id and piece.id == id:
                return piece.name
    return ""


def _write_call(piece: CallPiece) -> dict[str, Any]:
    value = to_object(piece.arguments or "{}")
    if value is None:
        value = {"unparsed": piece.arguments}  # the result that answers it needs a call
    call: dict[str, Any] = {"function": {"name": piece.name, "arguments": value}}
    return {"id": piece.id, **call} if piece.id else call


def _write_image(piece: ImagePiece) -> str:
    if piece.data:
        return piece.data
    if piece.url.startswith("data:") and ";base64," in piece.url:
        return piece.url.partition(";base64,")[2]
    raise RequestError(f"{NAME} takes images as base64 only, and no address is fetched for a client", "image_url")
