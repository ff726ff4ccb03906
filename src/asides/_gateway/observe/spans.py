"""OpenTelemetry spans by the GenAI conventions: one for each request for a reply, thinking and answer apart.

Where spans go is for OpenTelemetry's own variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`, ...). A span
continues the client's trace (`traceparent`), and the upstream is sent the span's own, so that a server's spans stand
below it. The text of messages is in it only where `telemetry.content` or the conventions' own variable asks for it.

    spans = Spans(content=False)
    spans.begin(http)                  # before the request is planned
    spans.end(http.record)             # once it is over
    spans.close()                      # sends what waits
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

from ...dialects import openai_completions
from ...dialects.framing import to_json
from ...dialects.request import CallPiece, Request, TextPiece, ThinkingPiece, Turn
from ...parts import Text, Thinking, ToolCall
from ...reply.reply import Reply
from ..http_request import HttpRequest
from ..record import RequestRecord

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
OPERATIONS = {openai_completions.NAME: "text_completion"}
"""By the client's dialect: the conventions' name of what was asked, where it is not `chat`."""
REASONS = {"tool_calls": "tool_call", "": "error"}
"""Reasons for the end of a reply that the conventions name in another way."""


class Spans:
    """Makes and sends the spans of one gateway."""

    def __init__(self, *, content: bool) -> None:
        asked = os.environ.get(CONTENT, "").strip().lower()
        self.content = content or asked in ("true", "span_only", "span_and_event")
        """Whether spans hold the text of messages."""
        named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "asides"}
        self._provider = TracerProvider(resource=Resource.create(named))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("asides.gateway")

    def begin(self, http: HttpRequest) -> None:
        """Begin the span of a request; from here on its trace headers are those of the span."""
        above = propagate.extract(http.headers)
        span = self._tracer.start_span("chat", context=above, kind=SpanKind.CLIENT)
        carried: dict[str, str] = {}
        propagate.inject(carried, trace.set_span_in_context(span))
        http.headers = {**http.headers, **carried}
        http.record.span = span

    def add_content(self, record: RequestRecord, request: Request) -> None:
        """Add the text of a request and of its reply."""
        if record.span is not None and self.content:
            asked = [*request.turns, *([Turn("user", (TextPiece(request.prompt),))] if request.prompt else [])]
            record.span.set_attribute("gen_ai.input.messages", to_json(list(map(input_message, asked))).decode())
            replies = [output_message(fold.reply) for fold in record.folds.values()]
            record.span.set_attribute("gen_ai.output.messages", to_json(replies).decode())

    def end(self, record: RequestRecord) -> None:
        """End the span of a request that is over."""
        span = record.span
        if span is None:
            return
        found = attributes(record)
        span.update_name(f"{found['gen_ai.operation.name']} {record.model}".rstrip())
        span.set_attributes({name: value for name, value in found.items() if value not in (None, "", ())})
        if record.error or record.status >= 400:
            span.set_attribute("error.type", record.upstream_error or str(record.status))
            span.set_status(Status(StatusCode.ERROR, record.error))
        span.end()

    def close(self) -> None:
        """Send what waits. Blocks."""
        self._provider.shutdown()


def attributes(record: RequestRecord) -> Mapping[str, Any]:
    """What a span says of a request, as the conventions name it."""
    replies = [fold.reply for fold in record.folds.values()]
    usage = record.usage
    return {
        "gen_ai.operation.name": OPERATIONS.get(record.dialect, "chat"),
        "gen_ai.provider.name": record.upstream,
        "gen_ai.request.model": record.model,
        "gen_ai.response.model": next((reply.model for reply in replies), ""),
        "gen_ai.response.id": record.reply_id,
        "gen_ai.response.finish_reasons": tuple(finish_reason(reply) for reply in replies),
        "gen_ai.response.time_to_first_chunk": record.first_byte if record.stream else None,
        "gen_ai.usage.input_tokens": usage.input_tokens if usage is not None else None,
        "gen_ai.usage.output_tokens": usage.output_tokens if usage is not None else None,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens if usage is not None else None,
        "http.response.status_code": record.status or None,
        "asides.request_id": record.id,
        "asides.time_to_first_thought": record.first_thought,
        "asides.time_to_first_answer": record.first_answer,
        "asides.thinking_characters": record.thinking_characters,
        "asides.answer_characters": record.answer_characters,
    }


def finish_reason(reply: Reply) -> str:
    """Why a reply ended, as the conventions name it."""
    return "tool_call" if reply.tool_calls else REASONS.get(reply.reason, reply.reason)


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
                parts.append({"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.arguments})
    return {"role": "assistant", "parts": parts, "finish_reason": finish_reason(reply)}


def input_message(turn: Turn) -> dict[str, Any]:
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
            return {"type": "tool_call", "id": piece.id, "name": piece.name, "arguments": piece.arguments}
    return None  # images and the like: their bytes do not belong into a trace
