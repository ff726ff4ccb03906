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

from ..events import Event, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from .checks import expect, optional
from .framing import Frame, SseReader, sse, to_json
from .reply import Begin, CallPiece, Ended, Failed, Foreign, Item, Piece, Reason, Said, Thought, Usage, Words
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
    leave_out,
    log,
)
from .request import CallPiece as EarlierCall
from .whole_calls import HeldCalls, WholeCall, to_object

NAME = "anthropic"

MAX_TOKENS = 8192
"""What is asked for when the caller names no limit: this API wants one."""
SMALLEST_BUDGET = 1024
"""Anthropic refuses a smaller budget for thinking."""
PING = sse(b'{"type":"ping"}', "ping")
PING_EVERY = 16
"""A call is held until it is whole; after every so many pieces of it the client hears that we are alive."""

# Requests, read.

_READ = frozenset(
    {
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "output_format",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    }
)
_ESSENTIAL = frozenset({"container", "hosted_tools", "mcp_servers"})
_SAMPLING = ("temperature", "top_p", "top_k")


def read_request(body: dict[str, Any]) -> Request:
    """A request for `/v1/messages`, or for counting its tokens."""
    extra = {name: value for name, value in body.items() if name not in _READ}
    tools: list[Tool] = []
    for number, tool in enumerate(optional(body, "tools", list, [])):
        expect(tool, dict, f"tools.{number}")
        if "input_schema" in tool or tool.get("type") in (None, "custom"):
            tools.append(_read_tool(tool, f"tools.{number}."))
        else:
            extra.setdefault("hosted_tools", []).append(tool)
    tool_choice, parallel = _read_tool_choice(optional(body, "tool_choice", dict, {}))
    config = optional(body, "output_config", dict, {})
    metadata = optional(body, "metadata", dict, {})
    extra |= _without({"output_config": _without(config, "effort", "format")}, *(() if len(config) else ("x",)))
    extra = {name: value for name, value in extra.items() if value not in ({}, None)}
    wish = _read_wish(optional(body, "thinking", dict, {}), config, extra)
    if rest := _without(metadata, "user_id"):
        extra["metadata"] = rest
    return Request(
        dialect=NAME,
        model=optional(body, "model", str, ""),
        turns=(*_read_system(body.get("system")), *_read_messages(optional(body, "messages", list, []))),
        tools=tuple(tools),
        tool_choice=tool_choice,
        parallel_calls=parallel,
        wish=wish,
        stream=optional(body, "stream", bool, False),
        max_tokens=optional(body, "max_tokens", int, 0) or None,
        stop=tuple(expect(stop, str, "stop_sequences") for stop in optional(body, "stop_sequences", list, [])),
        sampling={name: body[name] for name in _SAMPLING if body.get(name) is not None},
        response_format=_read_format(config.get("format") or body.get("output_format")),
        user=optional(metadata, "user_id", str, "", "metadata.") or None,
        extra=extra,
        essential=tuple(sorted(_ESSENTIAL & extra.keys())),
    )
