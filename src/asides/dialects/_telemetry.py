"""Requests and replies by OpenTelemetry's GenAI conventions: the one place that names its attributes and message parts.

The gateway's spans and `asides.plugins.otel` both write what stands here. Nothing of OpenTelemetry is imported: a name
is a string and a value is plain data, so that the tests of the plug-in compare them with the real packages' constants
and types. `gen_ai.*` are the conventions' own; what they have no name for is `asides.*`.

    span.set_attributes(present(reply_attributes([reply], reply.usage)))
    if captures_content():
        span.set_attribute(OUTPUT_MESSAGES, write_messages([output_message(reply)]))
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..parts import Text, Thinking, ToolCall
from ..reply._items import Usage
from ..reply._reply import Reply
from ._framing import to_json
from ._request import CallPiece, RequestTurn, TextPiece, ThinkingPiece
from ._whole_calls import to_object

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The conventions' own variable: whether the text of messages is recorded, and where."""
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"

Value = str | bool | int | float | Sequence[str]
"""What an attribute may hold, as far as it is needed here."""


def captures_content() -> bool:
    """Whether the conventions' own variable asks for the text of messages in spans."""
    # `true` is what instrumentations took before there were several places.
    return os.environ.get(CONTENT, "").strip().lower() in ("true", "span_only", "span_and_event")


def present(attributes: Mapping[str, Value | None]) -> dict[str, Value]:
    """The attributes that have a value."""
    return {name: value for name, value in attributes.items() if value is not None and value not in ("", ())}


def reply_attributes(replies: Sequence[Reply], usage: Usage | None) -> dict[str, Value | None]:
    """What a span says of the choices of a reply and of what they cost."""
    return {
        "gen_ai.response.model": next((reply.model for reply in replies), ""),
        "gen_ai.response.id": next((reply.id for reply in replies), ""),
        "gen_ai.response.finish_reasons": tuple(map(finish_reason, replies)),
        **usage_attributes(usage),
    }


def usage_attributes(usage: Usage | None) -> dict[str, Value | None]:
    """What a reply cost. Tokens of thinking are among those of the output."""
    if usage is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
        # The server counted no thinking, so its tokens were shared out by characters.
        "asides.reasoning_tokens_estimated": usage.estimated or None,
    }


def thinking_attributes(
    *, first_thought: float | None, first_answer: float | None, thinking: int, answer: int
) -> dict[str, Value | None]:
    """What the conventions have no names for: seconds to the first thought and answer, characters of each."""
    return {
        "asides.time_to_first_thought": first_thought,
        "asides.time_to_first_answer": first_answer,
        "asides.thinking_characters": thinking,
        "asides.answer_characters": answer,
    }


def proof_attributes(replies: Iterable[Reply], issuer: str) -> dict[str, Value | None]:
    """What a server wants back with its thoughts: who made it, how many there are, and their size. Never what it is."""
    proofs = [proof for reply in replies for proof in reply.proofs]
    if not proofs:
        return {}
    size = sum(len(to_json(proof.data)) for proof in proofs)
    return {"asides.proof.issuer": issuer, "asides.proof.count": len(proofs), "asides.proof.bytes": size}


def finish_reason(reply: Reply) -> str:
    """Why a reply ended, as the conventions name it. A call that may not be run is no reason."""
    if reply.reason == "stop" and any(call.error is None for call in reply.tool_calls):
        return "tool_call"
    return reply.reason or "error"


def write_messages(messages: Iterable[dict[str, Any]]) -> str:
    """Messages as the text of an attribute."""
    return to_json(list(messages)).decode()


def output_message(reply: Reply) -> dict[str, Any]:
    """A reply as a message of `gen_ai.output.messages`: thoughts, texts and calls as parts, in their order."""
    parts: list[dict[str, Any]] = []
    for part in reply.parts:
        match part:
            case Thinking():
                parts.append({"type": "reasoning", "content": part.text})
            case Text():
                parts.append({"type": "text", "content": part.text})
            case ToolCall():
                parts.append(_call_part(part))
    return {"role": "assistant", "parts": parts, "finish_reason": finish_reason(reply)}


def _call_part(call: ToolCall) -> dict[str, Any]:
    """A call; one that may not be run has its error and the model's own text, so that no reader takes it for one."""
    if call.error is None:
        return _call(call.id, call.name, call.arguments)
    return {
        "type": "tool_call",
        "id": call.id,
        "name": call.name,
        "arguments": call.raw or call.arguments,
        "error": call.error,
    }


def _call(id: str, name: str, arguments: str) -> dict[str, Any]:
    value = to_object(arguments)
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments if value is None else value}


def input_message(turn: RequestTurn) -> dict[str, Any]:
    """A turn of a request as a message of `gen_ai.input.messages`."""
    if turn.role == "tool":
        parts: Iterable[dict[str, Any]] = [{"type": "tool_call_response", "id": turn.call_id, "response": turn.text}]
    else:
        parts = [part for piece in turn.pieces if (part := _input_part(piece)) is not None]
    return {"role": turn.role, "parts": list(parts)}


def _input_part(piece: object) -> dict[str, Any] | None:
    match piece:
        case TextPiece(text):
            return {"type": "text", "content": text}
        case ThinkingPiece(text):
            return {"type": "reasoning", "content": text}
        case CallPiece():
            return _call(piece.id, piece.name, piece.arguments)
    return None  # images and the like: their bytes do not belong into a trace
