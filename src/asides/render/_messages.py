"""Messages for a renderer, read from plain dictionaries and checked. Knows no family and no token.

A message is `{"role": ..., "content": a string or a list of parts, "tool_calls": [...], ...}`. Parts are
`{"type": "text", "text": ...}` and `{"type": "thinking", "thinking": ...}`. Thinking may also stand beside the content
as `reasoning_content`, `reasoning` or `thinking`, as servers write it. Calls are in OpenAI's shape or flat.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..errors import Error

MessageDict = Mapping[str, Any]
"""A message as callers write it."""
EarlierThinking = Literal["strip", "turn", "keep"]
"""What becomes of earlier thinking: all of it goes, only that of earlier turns goes, or none."""

_BESIDE = ("reasoning_content", "reasoning", "thinking")


class RendererError(Error, ValueError):
    """A message cannot be written as this family writes."""


class MessagePart(NamedTuple):
    """A thinking or text part of a message."""

    thinks: bool
    text: str


class MessageCall(NamedTuple):
    """A call that an assistant made."""

    name: str
    arguments: str
    id: str


class ChatMessage(NamedTuple):
    """One message: what `read_message` makes of every way to write it."""

    role: str
    parts: tuple[MessagePart, ...] = ()
    calls: tuple[MessageCall, ...] = ()
    name: str = ""
    call_id: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()

    @property
    def thinks(self) -> bool:
        """Whether it has thinking."""
        return any(part.thinks for part in self.parts)

    @property
    def text(self) -> str:
        """Its text alone."""
        return "".join(part.text for part in self.parts if not part.thinks)

    def without_thinking(self) -> ChatMessage:
        """The same message, its thinking left out."""
        return self._replace(parts=tuple(part for part in self.parts if not part.thinks))


def read_message(message: MessageDict) -> ChatMessage:
    """Read a message dictionary. A `RendererError` says what is wrong with it."""
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise RendererError("a message needs a role")
    beside = next((message[key] for key in _BESIDE if message.get(key)), None)
    parts = [MessagePart(True, str(beside))] if beside else []
    parts += _parts(message.get("content"), role)
    return ChatMessage(
        role,
        tuple(part for part in parts if part.text),
        tuple(map(_call, message.get("tool_calls") or ())),
        str(message.get("name") or ""),
        str(message.get("tool_call_id") or ""),
        tuple(map(function_of, message.get("tools") or ())),
    )


def _parts(content: object, role: str) -> list[MessagePart]:
    if content is None:
        return []
    if isinstance(content, str):
        return [MessagePart(False, content)]
    if not isinstance(content, Sequence):
        raise RendererError(f"the content of the {role} is neither text nor a list of parts")
    return [_part(part, role) for part in content]


def _part(part: object, role: str) -> MessagePart:
    if isinstance(part, str):
        return MessagePart(False, part)
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind not in ("text", "thinking"):
        raise RendererError(f"the {role} has a part that is neither text nor thinking: {kind!r}")
    assert isinstance(part, Mapping)
    return MessagePart(kind == "thinking", str(part.get(kind) or ""))


def _call(call: object) -> MessageCall:
    if not isinstance(call, Mapping):
        raise RendererError("a call is no dictionary")
    function = call.get("function", call)
    if not isinstance(function, Mapping) or not function.get("name"):
        raise RendererError("a call names no function")
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments if arguments is not None else {}, ensure_ascii=False)
    return MessageCall(str(function["name"]), arguments or "{}", str(call.get("id") or ""))


def function_of(tool: object) -> Mapping[str, Any]:
    """The function that a tool definition describes: OpenAI's shape, or the function alone."""
    function = tool.get("function", tool) if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or not function.get("name"):
        raise RendererError("a tool definition names no function")
    return function
