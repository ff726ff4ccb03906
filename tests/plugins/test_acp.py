"""Agent Client Protocol: every update through the protocol's own types, and over a real connection to a real agent."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.host import check_examples, check_tried, require_module

require_module("acp")

from acp import PROTOCOL_VERSION, session_notification, spawn_agent_process, text_block
from acp.contrib.session_state import SessionAccumulator, SessionSnapshot
from acp.schema import SessionNotification

import asides
from asides import Event, Message, Parser, PartStart, Text, TextDelta, Thinking, ThinkingDelta, ToolCallDelta
from asides.plugins import acp
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
    grouped,
    options,
    ways_to_cut,
)
from tests.support import characters
from tests.test_cases import Case


def sent(updates: Iterable[acp.Update]) -> list[SessionNotification]:
    """The updates as they go over the wire, read again with the protocol's own types."""
    found = []
    for update in updates:
        note = session_notification("s", update)
        data = json.loads(note.model_dump_json(by_alias=True, exclude_none=True))
        again = SessionNotification.model_validate(data)
        assert again == note
        assert type(again.update) is type(update)
        found.append(again)
    return found


class Session:
    """What a client has at the end: the package's own accumulation of calls, and texts by their ids."""

    def __init__(self, updates: Iterable[acp.Update]) -> None:
        notes = sent(updates)
        accumulator = SessionAccumulator()
        # Calls alone: it copies all that it has for each update, so texts in characters would take minutes.
        chunks: list[Any] = [note.update for note in notes if hasattr(note.update, "message_id")]
        for note in notes:
            if not hasattr(note.update, "message_id"):
                accumulator.apply(note)
        self.snapshot: SessionSnapshot | None = accumulator.snapshot() if len(notes) > len(chunks) else None
        self.texts: list[tuple[str, str]] = []
        """The kind and the text of each message."""
        for group in grouped(chunks, lambda chunk: chunk.message_id):
            assert len({chunk.session_update for chunk in group}) == 1
            self.texts.append((group[0].session_update, "".join(chunk.content.text for chunk in group)))
        ids = [group[0] for group in grouped([chunk.message_id for chunk in chunks], str)]
        assert len(set(ids)) == len(ids), "a message goes on behind another"
        self.order = [
            note.update.tool_call_id if hasattr(note.update, "tool_call_id") else note.update.message_id
            for note in notes
        ]

    @property
    def calls(self) -> list[Any]:
        return list(self.snapshot.tool_calls.values()) if self.snapshot is not None else []


def test_several_thoughts_texts_and_calls_in_order() -> None:
    for chunks in ways_to_cut(MIXED):
        session = Session(acp.split(chunks, "qwen3", seed=SEED))
        assert session.texts == [
            ("agent_thought_chunk", "First\n\nthought."),
            ("agent_message_chunk", "One."),
            ("agent_thought_chunk", "Second."),
            ("agent_message_chunk", "Two."),
            ("agent_thought_chunk", "Third, cut"),
        ]
        good, broken = session.calls
        assert (good.title, good.status, good.raw_input) == ("add", "pending", {"a": 1, "b": [2, "</tool_call>"]})
        assert (broken.title, broken.status, broken.raw_input) == ("add", "failed", None)
        assert broken.content[0].content.text == BROKEN
        last = session.order.index(broken.tool_call_id)
        assert session.order.index(good.tool_call_id) < last < len(session.order) - 1


def test_a_failed_call_has_its_error() -> None:
    [failed] = [update for update in acp.split([MIXED], "qwen3") if getattr(update, "status", None) == "failed"]
    expected = {"error": "not_object", "errorMessage": "the arguments are not a JSON object"}
    assert failed.model_dump(by_alias=True)["_meta"] == {"asides": expected}


def test_recorded_cases_streamed_and_whole() -> None:
    """For every recorded case, streamed by character and played back whole: the same messages and calls."""
    check_cases(_check_case)


def _check_case(case: Case, message: Message) -> None:
    chosen = options(case)
    session = Session(acp.split(characters("".join(case.chunks)), case.format, **chosen))
    again = Session(acp.from_message(message, seed=chosen["seed"]))
    assert session.texts == again.texts
    assert session.calls == again.calls
    parts = [part for part in message.parts if isinstance(part, Thinking | Text)]
    kinds = {Thinking: "agent_thought_chunk", Text: "agent_message_chunk"}
    assert [kind for kind, _ in session.texts] == [kinds[type(part)] for part in parts]
    # A text is the part's own, with nothing but a gap before it.
    for (_, written), part in zip(session.texts, parts, strict=True):
        assert written.endswith(part.text)
        assert not written.removesuffix(part.text).strip()
    assert [call.status == "failed" for call in session.calls] == [
        call.error is not None for call in message.tool_calls
    ]
    for view, call in zip(session.calls, message.tool_calls, strict=True):
        if call.error is None:
            deep = isinstance(view.raw_input, str)
            assert view.raw_input == (call.arguments if deep else json.loads(call.arguments))
        else:
            assert view.content[0].content.text == call.raw


def test_words_that_were_sent_as_the_other_kind() -> None:
    """A lone close sets the answer apart; a thought that was the answer is a message besides."""
    session = Session(acp.split(["hm so", "</think>Four."], "qwen3"))
    assert session.texts == [("agent_message_chunk", "hm so"), ("agent_message_chunk", "\n\nFour.")]
    writer = acp.AcpWriter()
    parser = Parser("qwen3", start="thinking", retype=True)
    events = parser.feed("It is 4.") + parser.finish()
    session = Session(update for event in events for update in writer.feed(event))
    assert session.texts == [("agent_thought_chunk", "It is 4."), ("agent_message_chunk", "It is 4.")]


def test_neighbours_of_a_kind_have_their_gap() -> None:
    """A client that does not look at ids joins them, and must not make one word of two."""
    thoughts = Session(acp.split(["<think>a</think><think>b</think>c"], "qwen3"))
    assert [text for _, text in thoughts.texts] == ["a", "\n\nb", "c"]
    texts = asides.parse("<think>a</think>Hello.</think> World", "qwen3")
    assert [text for _, text in Session(acp.from_message(texts)).texts][1:] == ["Hello.", " World"]
    apart = Session(acp.split(["<think>a</think>b<think>c</think>d"], "qwen3"))
    assert [text for _, text in apart.texts] == ["a", "b", "c", "d"]


def test_events_of_a_parser_are_enough() -> None:
    writer = acp.AcpWriter(seed=SEED)
    updates = [update for event in asides.split([MIXED], "qwen3", seed=SEED) for update in writer.feed(event)]
    assert not writer.finish()
    expected = Session(acp.split([MIXED], "qwen3", seed=SEED))
    found = Session(updates)
    assert found.texts == expected.texts
    assert [call.status for call in found.calls] == ["pending", "failed"]
    assert found.calls[0] == expected.calls[0]


def test_text_alone_is_one_message_untouched() -> None:
    text = "  List<Thought> of\n\n`<think>` \t"
    assert Session(acp.split(characters(text))).texts == [("agent_message_chunk", text)]
    assert not list(acp.split([]))
    assert acp.from_message(asides.parse("")) == []


def test_a_stream_that_is_given_up_is_closed() -> None:
    check_closes(acp.split, acp.asplit)
    writer = acp.AcpWriter()
    events: list[Event] = [
        PartStart(0, "thinking"), ThinkingDelta(0, "a"),
        PartStart(1, "tool_call", "", "add", "call_1"), ToolCallDelta(1, '{"a"'),
    ]  # fmt: skip
    updates = [update for event in events for update in writer.feed(event)]
    [call] = Session([*updates, *writer.finish()]).calls
    assert (call.status, call.content[0].content.text) == ("failed", '{"a"')
    assert not writer.finish()


def test_a_signature_makes_no_empty_text() -> None:
    writer = acp.AcpWriter()
    writer.feed(PartStart(0, "thinking"))
    assert not writer.feed(ReplyEvent(0, ThinkingDelta(0, ""), signature="s"))
    assert writer.feed(ReplyEvent(0, ThinkingDelta(0, "a")))


def test_what_is_held_back_goes_out_before_an_error() -> None:
    check_fails(acp.split, acp.asplit)


def test_the_asynchronous_twin_gives_the_same() -> None:
    expected = list(acp.split(characters(MIXED), "qwen3", seed=SEED))
    assert collect(acp.asplit, characters(MIXED), "qwen3", seed=SEED) == expected


def test_calls_with_one_id_stay_two() -> None:
    session = Session(acp.split(characters(ONE_ID_TWICE), "kimi_k2"))
    assert [(call.tool_call_id, call.raw_input) for call in session.calls] == [(IDS[0], {"a": 1}), (IDS[1], {"a": 2})]


def test_the_first_choice_is_written() -> None:
    writer = acp.AcpWriter()
    for choice in (0, 1):
        made = [
            *writer.feed(ReplyEvent(choice, PartStart(0, "text"))),
            *writer.feed(ReplyEvent(choice, TextDelta(0, "a"))),
        ]
        assert bool(made) is (choice == 0)


def test_ids_depend_on_the_seed() -> None:
    def ids(**keywords: Any) -> set[str]:
        return set(map(str, Session(acp.split([MIXED], "qwen3", **keywords)).order))

    assert ids(seed=0) == ids(seed=0) != ids(seed=1)
    assert not ids() & ids()


def test_notices_are_metadata_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Without a word of the model's."""
    writer = acp.AcpWriter()
    with caplog.at_level(logging.INFO, "asides.plugins.acp"):
        for event in asides.split(["<think>secret"], "qwen3"):
            writer.feed(event)
    assert writer.meta is not None
    assert [notice["code"] for notice in writer.meta["asides"]["notices"]] == ["unclosed_thinking"]
    assert "unclosed_thinking" in caplog.text
    assert "secret" not in caplog.text
    ordinary = acp.AcpWriter()
    ordinary.feed(TextDelta(0, "a"))
    assert ordinary.meta is None


def test_what_a_reply_cost() -> None:
    found = acp.usage(Usage(10, 20, 15, cached_tokens=4)).model_dump(by_alias=True, exclude_none=True)
    assert found == {
        "totalTokens": 30, "inputTokens": 10, "outputTokens": 20, "thoughtTokens": 15, "cachedReadTokens": 4,
    }  # fmt: skip
    assert acp.usage(Usage(1, 2)).thought_tokens is None
    message = asides.parse(MIXED, "qwen3")
    assert acp.from_message(Reply.of(message), seed=1) == acp.from_message(message, seed=1)


def test_what_cannot_be_honoured_is_refused() -> None:
    check_refuses(acp.split)
    with pytest.raises(TypeError, match="an event of asides is needed, not str"):
        acp.AcpWriter().feed("text")  # type: ignore[arg-type]


def test_the_work_grows_with_the_text() -> None:
    check_linear(lambda chunks: list(acp.split(chunks, "qwen3")))


AGENT = """
import asyncio, sys
from acp import PROTOCOL_VERSION, InitializeResponse, NewSessionResponse, PromptResponse, run_agent
sys.path[:0] = {path!r}
from asides.plugins import acp
from asides.reply import Usage

async def model(text):
    for character in text:
        await asyncio.sleep(0)
        yield character

class Agent:
    def on_connect(self, client):
        self.client = client
    async def initialize(self, protocol_version, **_):
        return InitializeResponse(protocol_version=PROTOCOL_VERSION)
    async def new_session(self, **_):
        return NewSessionResponse(session_id="s")
    async def prompt(self, prompt, session_id, **_):
        async for update in acp.asplit(model(prompt[0].text), "qwen3", seed={seed}):
            await self.client.session_update(session_id, update)
        return PromptResponse(stop_reason="end_turn", usage=acp.usage(Usage(20, 30, 25)))

asyncio.run(run_agent(Agent()))
"""


def test_over_a_real_connection(tmp_path: Path) -> None:
    """An agent in a process of its own, and the package's own client over its stdio."""
    program = tmp_path / "agent.py"
    # Its environment is not handed on to the agent, so the path is.
    program.write_text(AGENT.format(path=[path for path in sys.path if path], seed=SEED), encoding="utf-8")
    received: list[Any] = []

    class Editor:
        def on_connect(self, agent: Any) -> None:
            pass

        async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
            assert session_id == "s"
            received.append(update)

    async def talk() -> Any:
        editor: Any = Editor()
        async with spawn_agent_process(editor, sys.executable, str(program)) as (agent, _):
            await agent.initialize(PROTOCOL_VERSION)
            session = await agent.new_session(cwd="/", mcp_servers=[])
            return await agent.prompt(prompt=[text_block(MIXED)], session_id=session.session_id)

    response = asyncio.run(asyncio.wait_for(talk(), 60))
    assert (response.stop_reason, response.usage.thought_tokens) == ("end_turn", 25)
    assert received == list(acp.split(characters(MIXED), "qwen3", seed=SEED))


def test_the_page(tmp_path: Path) -> None:
    check_examples("acp", tmp_path)
    check_tried("acp", "agent-client-protocol")
