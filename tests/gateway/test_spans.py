"""OpenTelemetry spans: what a real exporter sends to a real collector's port, decoded from its own protobuf."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from asides._config import Config
from asides._config.schema import Telemetry
from asides._gateway.state import State
from tests.gateway.clients import DIALECTS, Dialect, ask, get
from tests.gateway.providers import Anthropic, provider
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Upstream, upstream
from tests.waiting import eventually

TRACE = "0af7651916cd43dd8448eb211c80319c"
ABOVE = f"00-{TRACE}-b7ad6b7169203331-01"


class Collector:
    """Takes spans as a collector does."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: set[str] = set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                message = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
                for resource in message.resource_spans:
                    collector.services.add(_plain(resource.resource.attributes)["service.name"])
                    for scope in resource.scope_spans:
                        collector.spans.extend(scope.spans)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def wait_for(self, count: int) -> list[Any]:
        """So many spans, as soon as they are here."""
        eventually(lambda: len(self.spans) >= count, "no span came")
        return self.spans


def _plain(attributes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for attribute in attributes:
        value = attribute.value
        kind = value.WhichOneof("value")
        found[attribute.key] = (
            [each.string_value for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)
        )
    return found


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.server.shutdown()
        collector.server.server_close()
        thread.join()


def _variables(collector: Collector, **more: str) -> dict[str, str]:
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "50", **more}


@pytest.fixture(scope="module")
def traced() -> Iterator[tuple[Collector, Upstream, Gateway]]:
    """A gateway that sends spans with content."""
    with collecting() as collector, upstream() as server:
        config = {
            "upstreams": [{"url": server.url, "name": "vllm"}],
            "defaults": {"format": "qwen3"},
            "telemetry": {"spans": True, "content": True},
        }
        with gateway(config, variables=_variables(collector)) as running:
            yield collector, server, running


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_span_has_thinking_and_answer_apart(traced: tuple[Collector, Upstream, Gateway], dialect: Dialect) -> None:
    """With content asked for, thought and answer are parts of their own, and counts and times are beside them."""
    collector, server, running = traced
    collector.spans.clear()
    server.forget()
    server.say("<think>It is\ntwo and two.</think>It is 4.")
    ask(dialect, running.url, stream=True, headers={"traceparent": ABOVE})
    [span] = collector.wait_for(1)
    found = _plain(span.attributes)
    assert collector.services == {"asides"}
    assert span.name == f"{'text_completion' if dialect == 'completions' else 'chat'} m"
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, "b7ad6b7169203331")
    assert found["gen_ai.provider.name"] == "vllm"
    assert found["gen_ai.request.model"] == "m"
    assert found["gen_ai.response.finish_reasons"] == ["stop"]
    assert found["asides.thinking_characters"] == len("It is\ntwo and two.")
    assert found["gen_ai.response.time_to_first_chunk"] > 0
    [message] = json.loads(found["gen_ai.output.messages"])
    assert [(part["type"], part["content"]) for part in message["parts"]] == [
        ("reasoning", "It is\ntwo and two."),
        ("text", "It is 4."),
    ]
    assert json.loads(found["gen_ai.input.messages"])[-1]["parts"] == [{"type": "text", "content": "2+2?"}]
    # The server's own spans stand below ours.
    assert server.question().headers["traceparent"] == f"00-{TRACE}-{span.span_id.hex()}-01"


def test_a_proof_is_counted_and_never_shown() -> None:
    """Of what a provider wants back with a thought a span has who made it and its size, whatever else it may hold."""
    with collecting() as collector, provider(Anthropic) as served:
        config = {"upstreams": [served.upstream], "telemetry": {"spans": True, "content": True}}
        with gateway(config, variables=_variables(collector)) as running:
            ask("messages", running.url, model=Anthropic.model, tools=True)
            [span] = collector.wait_for(1)
        found = _plain(span.attributes)
        assert found["asides.proof.issuer"] == f"anthropic {served.url} {Anthropic.model}"
        assert found["asides.proof.count"] == 2
        assert found["asides.proof.bytes"] > 100
        assert "sig_" not in str(found)


def test_no_text_unless_asked_for() -> None:
    """By default a span holds counts only; the conventions' own variable asks for text too."""
    for variables, expected in (({}, False), ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}, True)):
        with collecting() as collector, upstream() as server:
            config = {"upstreams": [{"url": server.url}], "telemetry": {"spans": True}}
            server.say("<think>secret thought</think>secret answer")
            with gateway(config, variables=_variables(collector, **variables)) as running:
                get(running.url, "/v1/models")  # no question to a model, so no span
                ask("chat", running.url)
                [span] = collector.wait_for(1)
            assert (b"secret" in span.SerializeToString()) is expected


def test_a_failure_is_an_error_and_nothing_waits_for_a_collector() -> None:
    """An upstream that is not there ends the span as an error; a collector that is not there costs nobody an answer."""
    with collecting() as collector:
        config = {"upstreams": [{"url": "http://127.0.0.1:9"}], "telemetry": {"spans": True}}
        with gateway(config, variables=_variables(collector)) as running:
            with pytest.raises(Exception, match="cannot be reached"):
                ask("chat", running.url)
            [span] = collector.wait_for(1)
        assert span.status.code == span.status.STATUS_CODE_ERROR
        assert _plain(span.attributes)["error.type"] == "connect"
    nowhere = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    with upstream() as server:
        config = {"upstreams": [{"url": server.url}], "telemetry": {"spans": True}}
        with gateway(config, variables=nowhere) as running:
            assert ask("chat", running.url).text == "It is 4."
            assert "Traceback" not in running.log


def test_spans_are_sent_at_the_end() -> None:
    """What waits to be sent when the gateway stops is sent."""
    with collecting() as collector, upstream() as server:
        config = {"upstreams": [{"url": server.url}], "telemetry": {"spans": True}}
        with gateway(config, variables=_variables(collector, OTEL_BSP_SCHEDULE_DELAY="600000")) as running:
            ask("chat", running.url)
            assert not collector.spans
            running.signal(signal.SIGTERM)
            assert running.wait() == 0
        assert len(collector.spans) == 1


def test_a_reload_with_other_settings_reports_by_them() -> None:
    """And with the same ones goes on as before: no span is lost between the two."""

    async def work() -> None:
        first = State(Config(telemetry=Telemetry(spans=True)))
        first.open()
        second = first.renewed(first.config)
        third = second.renewed(Config(telemetry=Telemetry(spans=True, content=True)))
        last = third.renewed(Config())
        assert first.spans is second.spans is not third.spans
        assert (third.spans is not None and third.spans.content, last.spans) == (True, None)
        for state in (first, second, third, last):
            await state.close()

    asyncio.run(work())
