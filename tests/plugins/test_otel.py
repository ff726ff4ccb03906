"""OpenTelemetry: what the real SDK exports, and names and parts held against the real packages' constants and types."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.host import check_examples, check_tried, require_module

require_module("opentelemetry.sdk")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import asides
from asides import Event, Message, PartStart, Text, TextDelta, Thinking, ThinkingDelta
from asides.dialects import _telemetry as telemetry
from asides.plugins import otel
from asides.reply import Begin, Ended, Failed, Reply, ReplyEvent, Usage
from tests.plugins.protocols import (
    BROKEN,
    MIXED,
    SEED,
    check_cases,
    check_closes,
    check_fails,
    check_linear,
    check_refuses,
    collect,
    options,
    ways_to_cut,
)
from tests.support import characters, joined
from tests.test_cases import Case


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(telemetry.CONTENT, raising=False)


class Exported:
    """A tracer, and what it has exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = provider.get_tracer("tests")

    @property
    def span(self) -> ReadableSpan:
        [span] = self.exporter.get_finished_spans()
        return span

    @property
    def attributes(self) -> dict[str, Any]:
        return dict(self.span.attributes or {})

    @property
    def message(self) -> dict[str, Any]:
        [message] = json.loads(self.attributes["gen_ai.output.messages"])
        assert isinstance(message, dict)
        return message


def exported(chunks: Iterable[str], format: str = "qwen3", **keywords: Any) -> Exported:
    """What is exported of a stream, in the current span."""
    found = Exported()
    with found.tracer.start_as_current_span("chat m"):
        for _ in otel.split(chunks, format, **{"content": True, **keywords}):
            pass
    return found


MIXED_PARTS = [
    {"type": "reasoning", "content": "First\n\nthought."},
    {"type": "text", "content": "One."},
    {"type": "reasoning", "content": "Second."},
    {"type": "text", "content": "Two."},
    {"type": "tool_call", "name": "add", "arguments": {"a": 1, "b": [2, "</tool_call>"]}},
    {"type": "tool_call", "name": "add", "arguments": BROKEN, "error": "not_object"},
    {"type": "reasoning", "content": "Third, cut"},
]


def without_ids(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in part.items() if name != "id"} for part in parts]


def test_several_thoughts_texts_and_calls_in_order() -> None:
    for chunks in ways_to_cut(MIXED):
        found = exported(chunks)
        assert without_ids(found.message["parts"]) == MIXED_PARTS
        assert (found.message["role"], found.message["finish_reason"]) == ("assistant", "length")
        attributes = found.attributes
        assert attributes["gen_ai.response.finish_reasons"] == ("length",)
        assert attributes["asides.thinking_characters"] == len("First\n\nthought.Second.Third, cut")
        assert attributes["asides.notices"] == ("unreadable_call", "unclosed_thinking")
        assert found.span.status.status_code is StatusCode.UNSET


def test_recorded_cases_streamed_and_whole() -> None:
    """For every recorded case: what is exported of a stream is what a whole message gives, and what the parser read."""
    check_cases(_check_case)


def _check_case(case: Case, message: Message) -> None:
    writer = otel.OtelWriter(content=True)
    events = list(otel.split(characters("".join(case.chunks)), case.format, content=True, **options(case)))
    assert joined(events) == joined(asides.split(characters("".join(case.chunks)), case.format, **options(case)))
    for event in events:
        writer.feed(event)
    written = writer.finish()
    whole = otel.attributes(message, content=True)
    # The events of a parser have no raw text, and neither have notices their places in it.
    found, expected = (
        json.loads(str(written.pop(telemetry.OUTPUT_MESSAGES))),
        json.loads(str(whole.pop(telemetry.OUTPUT_MESSAGES))),
    )
    assert {name: value for name, value in written.items() if "time_to" not in name} == whole
    assert expected == [otel.from_message(message)]
    for part, own in zip(expected[0]["parts"], message.parts, strict=True):
        if isinstance(own, Thinking | Text):
            assert part == {"type": "reasoning" if isinstance(own, Thinking) else "text", "content": own.text}
        elif own.error is None:
            assert part["arguments"] in (own.arguments, json.loads(own.arguments))
        else:
            assert (part["arguments"], part["error"]) == (own.raw, own.error)
    for part in found[0]["parts"] + expected[0]["parts"]:
        if "error" in part:
            del part["arguments"]
    assert found == expected


def test_no_text_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default counts only; the conventions' variable or the caller asks for text, and the caller wins."""
    text = "<think>secret thought</think>secret answer"

    def texts(**keywords: Any) -> bool:
        return "secret" in exported([text], **keywords).span.to_json()

    assert not texts(content=None)
    for value, expected in {
        "SPAN_ONLY": True, "span_and_event": True, "true": True,
        "EVENT_ONLY": False, "NO_CONTENT": False, "": False, "nonsense": False,
    }.items():  # fmt: skip
        monkeypatch.setenv(telemetry.CONTENT, value)
        assert texts(content=None) is expected
        assert not texts(content=False)
        assert texts(content=True)
    assert otel.attributes(asides.parse(text))["asides.thinking_characters"] == len("secret thought")


def test_a_reply_of_a_server() -> None:
    """What a server says of it is in the span: model, id, cost, why it ended, and when things came."""
    found = Exported()
    with found.tracer.start_as_current_span("chat m") as span:
        writer = otel.OtelWriter(span)
        events: list[Event] = [
            PartStart(0, "thinking"),
            ThinkingDelta(0, "ab"),
            PartStart(1, "text"),
            TextDelta(1, "c"),
        ]
        writer.feed(Begin("reply_1", "my-model"))
        time.sleep(0.002)
        for event in events:
            writer.feed(ReplyEvent(0, event))
        writer.feed(Ended(0, "content_filter"))
        writer.feed(Usage(10, 20, 15, True, cached_tokens=4))
        writer.finish()
    attributes = found.attributes
    times = {name: attributes.pop(name) for name in list(attributes) if "time_to" in name}
    assert attributes == {
        "gen_ai.response.model": "my-model",
        "gen_ai.response.id": "reply_1",
        "gen_ai.response.finish_reasons": ("content_filter",),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.reasoning.output_tokens": 15,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "asides.reasoning_tokens_estimated": True,
        "asides.thinking_characters": 2,
        "asides.answer_characters": 1,
    }
    first, thought = times["gen_ai.response.time_to_first_chunk"], times["asides.time_to_first_thought"]
    assert 0 <= first < thought <= times["asides.time_to_first_answer"]
    assert thought >= 0.002
    assert otel.usage(Usage(1, 2)) == {"gen_ai.usage.input_tokens": 1, "gen_ai.usage.output_tokens": 2}


def test_a_failure_is_an_error_with_what_had_come() -> None:
    found = Exported()
    with found.tracer.start_as_current_span("chat m") as span:
        writer = otel.OtelWriter(span, content=True)
        for event in (PartStart(0, "thinking"), ThinkingDelta(0, "ab")):
            writer.feed(event)
        writer.feed(Failed("the server is gone", code="upstream_ended"))
        writer.finish()
    assert found.span.status.status_code is StatusCode.ERROR
    assert found.attributes["error.type"] == "upstream_ended"
    assert found.message["finish_reason"] == "error"
    assert found.message["parts"] == [{"type": "reasoning", "content": "ab"}]


def test_a_call_is_the_reason_only_if_it_may_be_run() -> None:
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    assert exported([call]).message["finish_reason"] == "tool_call"
    assert exported([BROKEN]).message["finish_reason"] == "stop"
    assert otel.from_message(asides.parse(call + "<tool_call>\n{", "qwen3"))["finish_reason"] == "length"
    deep = '{"a": ' + "[" * 150 + "]" * 150 + "}"
    [part] = otel.from_message(
        asides.parse(f'<tool_call>\n{{"name": "f", "arguments": {deep}}}\n</tool_call>', "qwen3")
    )["parts"]
    assert part["arguments"] == deep


def test_a_stream_that_is_given_up_is_written_and_closed() -> None:
    check_closes(otel.split, otel.asplit)
    found = Exported()
    with found.tracer.start_as_current_span("chat m"):
        stream: Iterator[Event] = otel.split(characters("<think>abc</think>d"), "qwen3", content=True)
        while not isinstance(next(stream), ThinkingDelta):
            pass
        stream.close()  # type: ignore[attr-defined]
    assert found.message["finish_reason"] == "error"
    assert found.message["parts"] == [{"type": "reasoning", "content": "a"}]


def test_a_stream_that_fails_is_written_as_far_as_it_came() -> None:
    check_fails(otel.split, otel.asplit)

    def chunks() -> Iterator[str]:
        yield "<think>Hm.</think>Yes <thi"
        raise ConnectionError("gone")

    found = Exported()
    with pytest.raises(ConnectionError), found.tracer.start_as_current_span("chat m"):
        list(otel.split(chunks(), "qwen3", content=True))
    assert found.span.status.status_code is StatusCode.ERROR
    assert found.message["finish_reason"] == "error"
    assert found.message["parts"] == [
        {"type": "reasoning", "content": "Hm."},
        {"type": "text", "content": "Yes <thi"},
    ]


def test_the_asynchronous_twin_gives_the_same() -> None:
    found = Exported()
    with found.tracer.start_as_current_span("chat m") as span:
        events = collect(otel.asplit, characters(MIXED), "qwen3", span=span, content=True, seed=SEED)
    assert events == list(otel.split(characters(MIXED), "qwen3", seed=SEED))
    assert found.message == exported([MIXED], seed=SEED).message


def test_text_alone_is_one_part_untouched() -> None:
    text = "  List<Thought> of\n\n`<think>` \t"
    assert exported(characters(text), "auto").message["parts"] == [{"type": "text", "content": text}]
    assert exported([]).message["parts"] == []


def test_a_message_and_its_reply_give_the_same() -> None:
    message = asides.parse(MIXED, "qwen3")
    assert otel.from_message(Reply.of(message, reason="length")) == otel.from_message(message)


def test_without_a_span_nothing_happens() -> None:
    """As everywhere in OpenTelemetry: who has set up nothing pays nothing and sees no error."""
    assert list(otel.split(["a"], "qwen3")) == list(asides.split(["a"], "qwen3"))


def test_what_cannot_be_honoured_is_refused() -> None:
    check_refuses(otel.split)


def test_the_work_grows_with_the_text() -> None:
    check_linear(lambda chunks: list(otel.split(chunks, "qwen3")))


def test_names_are_the_constants_of_the_conventions() -> None:
    """Every attribute that is not ours is a constant of the package of the conventions, or OpenTelemetry's own."""
    require_module("opentelemetry.util.genai")
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
    from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
    from opentelemetry.util.genai.environment_variables import OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT

    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    reply = Reply(usage=Usage(1, 2, 3, cached_tokens=4))
    written = {*telemetry.reply_attributes([reply], reply.usage), telemetry.INPUT_MESSAGES, telemetry.OUTPUT_MESSAGES}
    written |= {telemetry.FIRST_CHUNK}
    assert {name for name in written if not name.startswith("asides.")} <= known
    assert len(written) > 9
    assert ERROR_TYPE == "error.type"
    assert telemetry.CONTENT == OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT


def test_parts_are_those_of_the_conventions() -> None:
    """Built with the package's own types and encoder, a message is the same text."""
    require_module("opentelemetry.util.genai")
    from opentelemetry.util.genai import types
    from opentelemetry.util.genai.utils import gen_ai_json_dumps, get_content_capturing_mode

    message = otel.from_message(asides.parse(MIXED, "qwen3", seed=SEED))
    made = {"reasoning": types.ReasoningPart, "text": types.TextPart, "tool_call": types.ToolCallRequestPart}
    parts: list[Any] = []
    for part in message["parts"]:
        fields = {name: value for name, value in part.items() if name not in ("type", "error")}
        parts.append(made[part["type"]](**fields))
        assert asdict(parts[-1]) == {name: value for name, value in part.items() if name != "error"}
    theirs = types.OutputMessage(role="assistant", parts=parts, finish_reason=message["finish_reason"])
    for part in message["parts"]:
        part.pop("error", None)
    assert json.loads(gen_ai_json_dumps(theirs)) == {**message, "name": None}
    assert message["finish_reason"] in types.FinishReason.__args__  # type: ignore[attr-defined]
    assert get_content_capturing_mode() is types.ContentCapturingMode.NO_CONTENT
    assert not telemetry.captures_content()


@pytest.mark.parametrize("value", ["NO_CONTENT", "SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT", "span_only", ""])
def test_the_variable_is_read_as_the_conventions_read_it(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("opentelemetry.util.genai")
    from opentelemetry.util.genai.types import ContentCapturingMode
    from opentelemetry.util.genai.utils import get_content_capturing_mode

    monkeypatch.setenv(telemetry.CONTENT, value)
    in_spans = (ContentCapturingMode.SPAN_ONLY, ContentCapturingMode.SPAN_AND_EVENT)
    assert telemetry.captures_content() is (get_content_capturing_mode() in in_spans)


def test_the_page(tmp_path: Path) -> None:
    check_examples("otel", tmp_path)
    check_tried("otel", "opentelemetry-api")
