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
from collections.abc import Mapping

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

from ...dialects import _telemetry as telemetry
from ...dialects import openai_completions
from ...dialects._request import Request, RequestTurn, TextPiece
from ..http_request import HttpRequest
from ..record import RequestRecord

OPERATIONS = {openai_completions.NAME: "text_completion"}
"""By the client's dialect: the conventions' name of what was asked, where it is not `chat`."""


class Spans:
    """Makes and sends the spans of one gateway."""

    def __init__(self, *, content: bool) -> None:
        self.content = content or telemetry.captures_content()
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
            asked = [*request.turns, *([RequestTurn("user", (TextPiece(request.prompt),))] if request.prompt else [])]
            replies = (telemetry.output_message(fold.reply) for fold in record.folds.values())
            messages = map(telemetry.input_message, asked)
            record.span.set_attribute(telemetry.INPUT_MESSAGES, telemetry.write_messages(messages))
            record.span.set_attribute(telemetry.OUTPUT_MESSAGES, telemetry.write_messages(replies))

    def end(self, record: RequestRecord) -> None:
        """End the span of a request that is over."""
        span = record.span
        if span is None:
            return
        found = attributes(record)
        span.update_name(f"{found['gen_ai.operation.name']} {record.model}".rstrip())
        span.set_attributes(telemetry.present(found))
        if record.error or record.status >= 400:
            span.set_attribute("error.type", record.upstream_error or str(record.status))
            span.set_status(Status(StatusCode.ERROR, record.error))
        span.end()

    def close(self) -> None:
        """Send what waits. Blocks."""
        self._provider.shutdown()


def attributes(record: RequestRecord) -> Mapping[str, telemetry.Value | None]:
    """What a span says of a request, as the conventions name it."""
    replies = [fold.reply for fold in record.folds.values()]
    return {
        "gen_ai.operation.name": OPERATIONS.get(record.dialect, "chat"),
        "gen_ai.provider.name": record.upstream,
        "gen_ai.request.model": record.model,
        **telemetry.reply_attributes(replies, record.usage),
        "gen_ai.response.id": record.reply_id,
        telemetry.FIRST_CHUNK: record.first_byte if record.stream else None,
        "http.response.status_code": record.status or None,
        "asides.request_id": record.id,
        **telemetry.thinking_attributes(
            first_thought=record.first_thought,
            first_answer=record.first_answer,
            thinking=record.thinking_characters,
            answer=record.answer_characters,
        ),
        **telemetry.proof_attributes(replies, record.issuer),
    }
