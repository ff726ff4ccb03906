"""AG-UI: every event through the protocol's own types and encoder, and messages as a client builds them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.host import check_examples, check_tried, require_module

require_module("ag_ui.core")

from ag_ui.core import BaseEvent, EventType
from ag_ui.core import Event as AguiEvent
from ag_ui.core import Message as AguiMessage
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter

import asides
from asides import Event, Message, Parser, PartStart, Text, TextDelta, Thinking, ThinkingDelta, ToolCallDelta
from asides.plugins import agui
from asides.reply import Reply, ReplyEvent, Usage
from tests.plugins.protocols import (
    BROKEN,
    IDS,
    MIXED,
    ONE_ID_TWICE,
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
from tests.support import characters
from tests.test_cases import Case

_EVENT: TypeAdapter[Any] = TypeAdapter(AguiEvent)
_MESSAGE: TypeAdapter[Any] = TypeAdapter(AguiMessage)
_ENCODER = EventEncoder()


def sent(events: Iterable[BaseEvent]) -> list[dict[str, Any]]:
    """The events as they go over the wire; each is read again with the protocol's own types."""
    found = []
    for event in events:
        text = _ENCODER.encode(event)
        assert text.startswith("data: ")
        assert text.endswith("\n\n")
        data = json.loads(text.removeprefix("data: "))
        assert _EVENT.validate_python(data) == event
        assert set(data) <= {name for field in type(event).model_fields.values() for name in (field.alias,)}
        found.append(data)
    return found


class Client:
    """Builds messages as a client of the protocol does, and holds the events to its rules of order."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.notices: list[dict[str, Any]] = []
        self.spans: list[str] = []
        self._span = self._message = self._call = ""

    def take(self, event: dict[str, Any]) -> None:
        getattr(self, event["type"].lower())(event)

    def _new(self, **message: Any) -> None:
        assert message["id"] not in {known["id"] for known in self.messages}
        self.messages.append(message)

    def _free(self) -> None:
        assert not self._message
        assert not self._call

    def reasoning_start(self, event: dict[str, Any]) -> None:
        self._free()
        assert not self._span
        self._span = event["messageId"]
        self.spans.append(self._span)

    def reasoning_message_start(self, event: dict[str, Any]) -> None:
        assert self._span
        assert event["role"] == "reasoning"
        self._message = event["messageId"]
        self._new(id=self._message, role="reasoning", content="")

    def text_message_start(self, event: dict[str, Any]) -> None:
        self._free()
        assert not self._span
        self._message = event["messageId"]
        self._new(id=self._message, role=event["role"], content="")

    def _content(self, event: dict[str, Any]) -> None:
        assert event["messageId"] == self._message
        assert event["delta"]
        self.messages[-1]["content"] += event["delta"]

    reasoning_message_content = text_message_content = _content

    def _end(self, event: dict[str, Any]) -> None:
        assert event["messageId"] == self._message
        self._message = ""
        if "metadata" in event:
            self.messages[-1]["metadata"] = event["metadata"]

    reasoning_message_end = text_message_end = _end

    def reasoning_end(self, event: dict[str, Any]) -> None:
        self._free()
        assert event["messageId"] == self._span
        self._span = ""

    def tool_call_start(self, event: dict[str, Any]) -> None:
        self._free()
        self._call = event["toolCallId"]
        if not self.messages or self.messages[-1]["id"] != event["parentMessageId"]:
            self._new(id=event["parentMessageId"], role="assistant")
        function = {"name": event["toolCallName"], "arguments": ""}
        calls = self.messages[-1].setdefault("toolCalls", [])
        calls.append({"id": self._call, "type": "function", "function": function})

    def tool_call_args(self, event: dict[str, Any]) -> None:
        assert event["toolCallId"] == self._call
        self.messages[-1]["toolCalls"][-1]["function"]["arguments"] += event["delta"]

    def tool_call_end(self, event: dict[str, Any]) -> None:
        assert event["toolCallId"] == self._call
        self._call = ""

    def activity_snapshot(self, event: dict[str, Any]) -> None:
        self._free()
        self._new(id=event["messageId"], role="activity", activityType=event["activityType"], content=event["content"])

    def custom(self, event: dict[str, Any]) -> None:
        assert event["name"] == agui.NOTICE
        self.notices.append(event["value"])

    def finish(self) -> Client:
        self._free()
        assert not self._span
        for message in self.messages:
            _MESSAGE.validate_python(message)
        return self


def built(events: Iterable[BaseEvent]) -> Client:
    """What a client has built from all of the events."""
    client = Client()
    for event in sent(events):
        client.take(event)
    return client.finish()


def kept(message: Message | Reply) -> list[dict[str, Any]]:
    return [each.model_dump(mode="json", by_alias=True) for each in agui.from_message(message, seed=SEED)]


def test_several_thoughts_texts_and_calls_in_order() -> None:
    """However the text is cut, a client has every part in its place, and the broken call where no client runs it."""
    for chunks in ways_to_cut(MIXED):
        client = built(agui.split(chunks, "qwen3", seed=SEED))
        assert [message["role"] for message in client.messages] == [
            "reasoning", "assistant", "reasoning", "assistant", "activity", "reasoning",
        ]  # fmt: skip
        first, one, second, two, broken, third = client.messages
        assert (first["content"], second["content"]) == ("First\n\nthought.", "Second.")
        assert third["content"] == "Third, cut"
        assert third["metadata"] == {"asides": {"complete": False}}
        assert "metadata" not in first
        assert (one["content"], "toolCalls" in one) == ("One.", False)
        [call] = two["toolCalls"]
        assert call["function"] == {"name": "add", "arguments": '{"a": 1, "b": [2, "</tool_call>"]}'}
        assert broken["activityType"] == agui.BROKEN_CALL
        assert broken["content"]["raw"] == BROKEN
        assert broken["content"]["error"] == "not_object"
        assert {notice["code"] for notice in client.notices} >= {"unclosed_thinking"}
        assert len(client.spans) == 3


def test_messages_to_keep_are_those_that_a_client_builds() -> None:
    """For every recorded case: streamed by character, and kept whole."""
    check_cases(_check_case)


def _check_case(case: Case, message: Message) -> None:
    client = built(agui.split(characters("".join(case.chunks)), case.format, **options(case)))
    seed = options(case)["seed"]
    whole = [each.model_dump(mode="json", by_alias=True) for each in agui.from_message(message, seed=seed)]
    assert client.messages == whole
    assert [notice["code"] for notice in client.notices] == [notice.code for notice in message.notices]
    runnable = [call for each in client.messages for call in each.get("toolCalls", ())]
    expected = [call.to_dict() for call in message.tool_calls if call.error is None]
    assert runnable == expected
    thoughts = [part.text for part in message.parts if isinstance(part, Thinking)]
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    assert [each["content"] for each in client.messages if each["role"] == "reasoning"] == thoughts
    assert [each["content"] for each in client.messages if each["role"] == "assistant" and "content" in each] == texts
    broken = [each["content"] for each in client.messages if each["role"] == "activity"]
    assert [each["raw"] for each in broken] == [call.raw for call in message.tool_calls if call.error is not None]


def test_words_that_were_sent_as_the_other_kind() -> None:
    """A lone close: the thought stays a message until a snapshot. An answer that was a thought is a message besides."""
    client = built(agui.split(["hm so", "</think>Four."], "qwen3"))
    assert [(each["role"], each["content"]) for each in client.messages] == [
        ("assistant", "hm so"),
        ("assistant", "Four."),
    ]
    assert [notice["code"] for notice in client.notices] == ["retyped"]
    writer = agui.AguiWriter()
    parser = Parser("qwen3", start="thinking", retype=True)
    events = parser.feed("It is 4.") + parser.finish()
    client = built(each for event in events for each in writer.feed(event))
    assert [(each["role"], each["content"]) for each in client.messages] == [
        ("reasoning", "It is 4."),
        ("assistant", "It is 4."),
    ]


def test_calls_with_one_id_stay_two() -> None:
    client = built(agui.split(characters(ONE_ID_TWICE), "kimi_k2", seed=SEED))
    [message] = client.messages
    assert [call["id"] for call in message["toolCalls"]] == IDS
    assert [call["function"]["arguments"] for call in message["toolCalls"]] == ['{"a": 1}', '{"a": 2}']
    assert client.messages == kept(asides.parse(ONE_ID_TWICE, "kimi_k2"))


def test_the_first_choice_is_written() -> None:
    writer = agui.AguiWriter()
    for choice in (0, 1):
        assert bool(writer.feed(ReplyEvent(choice, PartStart(0, "text")))) is (choice == 0)


def test_events_of_a_parser_are_enough() -> None:
    """Events from `asides.split` or `Parser.feed` give the same, but for the raw text of a broken call."""
    writer = agui.AguiWriter(seed=SEED)
    events = [
        written for event in asides.split(characters(MIXED), "qwen3", seed=SEED) for written in writer.feed(event)
    ]
    assert not writer.finish()
    client = built(events)
    expected = kept(asides.parse(MIXED, "qwen3", seed=SEED))
    assert expected[4]["content"].pop("raw") == BROKEN
    assert client.messages[4]["content"].pop("raw") == ""
    assert client.messages == expected
    assert client.messages[4]["content"]["name"] == "add"


def test_text_alone_is_one_message_untouched() -> None:
    text = "  List<Thought> of\n\n`<think>` \t"
    client = built(agui.split(characters(text)))
    assert [(each["role"], each["content"]) for each in client.messages] == [("assistant", text)]
    assert not client.notices
    assert not list(agui.split([]))
    assert agui.from_message(asides.parse("")) == []


def test_text_is_not_held_back() -> None:
    """Thoughts and texts go out as they come; a call goes out when it is whole."""
    writer = agui.AguiWriter()
    assert [event.type for event in writer.feed(PartStart(0, "thinking"))] == [
        EventType.REASONING_START, EventType.REASONING_MESSAGE_START,
    ]  # fmt: skip
    assert writer.feed(ThinkingDelta(0, "a"))[0].type is EventType.REASONING_MESSAGE_CONTENT
    assert not writer.feed(PartStart(1, "tool_call", "", "add", "call_1"))
    assert not writer.feed(ToolCallDelta(1, "{}"))


def test_a_stream_that_is_given_up_is_closed() -> None:
    """What is open is ended, a call is no call, and the stream that was read is closed."""
    check_closes(agui.split, agui.asplit)
    opened: list[tuple[list[Event], str]] = [
        ([PartStart(0, "thinking"), ThinkingDelta(0, "a")], "reasoning"),
        ([PartStart(0, "text"), TextDelta(0, "a")], "assistant"),
        ([PartStart(0, "tool_call", "", "add", "call_1"), ToolCallDelta(0, '{"a"')], "activity"),
    ]
    for events, role in opened:
        writer = agui.AguiWriter()
        client = built([*(each for event in events for each in writer.feed(event)), *writer.finish()])
        assert [message["role"] for message in client.messages] == [role]
        assert not writer.finish()


def test_a_signature_makes_no_empty_text() -> None:
    writer = agui.AguiWriter()
    writer.feed(PartStart(0, "thinking"))
    assert not writer.feed(ReplyEvent(0, ThinkingDelta(0, ""), signature="s"))
    assert writer.feed(ReplyEvent(0, ThinkingDelta(0, "a")))


def test_what_is_held_back_goes_out_before_an_error() -> None:
    check_fails(agui.split, agui.asplit)


def test_the_asynchronous_twin_gives_the_same() -> None:
    expected = list(agui.split(characters(MIXED), "qwen3", seed=SEED))
    assert collect(agui.asplit, characters(MIXED), "qwen3", seed=SEED) == expected


def test_ids_depend_on_the_seed_and_are_never_given_twice() -> None:
    """With a seed they are the same again; without one no two replies share any."""
    text = 'a<tool_call>{"name": "f", "arguments": {}}</tool_call>'

    def ids(**keywords: int) -> set[str]:
        client = built(agui.split([text], "qwen3", **keywords))  # type: ignore[arg-type]
        return {message["id"] for message in client.messages} | {
            call["id"] for message in client.messages for call in message.get("toolCalls", ())
        }

    assert ids(seed=0) == ids(seed=0) != ids(seed=1)
    assert not ids() & ids()
    message = asides.parse("a")
    assert agui.from_message(message)[0].id != agui.from_message(message)[0].id


def test_a_reply_of_a_server_is_kept_too() -> None:
    """A `Reply` and its message give the same; what it cost is the protocol's own record."""
    message = asides.parse(MIXED, "qwen3")
    assert kept(Reply.of(message)) == kept(message)
    found = agui.usage(Usage(10, 20, 15, cached_tokens=4), provider="vllm", model="m")
    assert found.model_dump(by_alias=True) == {
        "provider": "vllm", "model": "m", "inputTokens": 10, "outputTokens": 20, "totalTokens": 30,
        "reasoningTokens": 15, "cachedInputTokens": 4,
    }  # fmt: skip
    assert "reasoningTokens" not in agui.usage(Usage(1, 2)).model_dump(by_alias=True)


def test_what_cannot_be_honoured_is_refused() -> None:
    check_refuses(agui.split)
    with pytest.raises(TypeError, match="an event of asides is needed, not str"):
        agui.AguiWriter().feed("text")  # type: ignore[arg-type]


def test_the_work_grows_with_the_text() -> None:
    check_linear(lambda chunks: list(agui.split(chunks, "qwen3")))


def test_a_broken_call_is_never_a_call() -> None:
    """Whatever is wrong with it, no `TOOL_CALL_*` event is made of it."""
    for body in ('{"name": "f", "arguments": {"a": ', '{"arguments": {}}', "nonsense", '{"name": "f", "arguments": 5}'):
        client = built(agui.split(characters(f"<tool_call>\n{body}\n</tool_call>"), "qwen3"))
        assert not any("toolCalls" in message for message in client.messages)
        assert any(body in json.dumps(message) or body in str(message) for message in client.messages)


def test_the_page(tmp_path: Path) -> None:
    check_examples("agui", tmp_path)
    check_tried("agui", "ag-ui-protocol")
