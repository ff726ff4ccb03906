"""The fold: what comes of items and events, how it ended, and when things came."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from asides import Parser, parse
from asides.events import Notice, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from asides.families import get_format
from asides.parts import Text, Thinking, ToolCall
from asides.reply._fold import Budget, Fold
from asides.reply._items import Begin, CallChunk, Chunk, Ended, RawText, Reason, ReplyEvent, ThinkingChunk, Usage
from asides.reply._reply import Reply, Times
from asides.reply._splitter import Splitter

BROKEN = '<think>a</think>b<tool_call>{"name": "f", "arguments": [}</tool_call>c</think>d<|im_end|>'


def folded(*chunks: Chunk, choice: int = 0) -> Reply:
    """What the splitter makes of chunks, folded."""
    fold = Fold(choice=choice)
    splitter = Splitter(get_format("qwen3"), lambda format: Parser(format, seed=0, collect=False))
    for chunk in chunks:
        for item in splitter.feed(chunk):
            fold.add(item)
    for item in splitter.finish():
        fold.add(item)
    return fold.reply


def ticking() -> Iterator[float]:
    """A clock that goes on by one with each look."""
    return iter(map(float, range(100, 200)))


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "<think>a</think>b",
        "<think>a</think>b<think>c</think>d",
        "<think>a</think>b<|im_end|>",
        BROKEN,
        '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call><|im_end|>',
        '<tool_call>{"name": "f", "arguments": {"x"',
        '<think>a<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>',
        '```\n<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>',
        "<think>cut",
        "<think>",
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_reply_is_what_the_parser_makes_of_its_text(text: str, size: int) -> None:
    """Parts, spans, notices, raw text of broken calls and how it ended: the same record, whatever the server says."""
    reported: Reason
    chunks = [RawText(0, text[at : at + size]) for at in range(0, len(text), size)]
    for reported, reason in (("stop", "stop"), ("length", "length"), ("content_filter", "length")):
        expected = Reply.of(parse(text, "qwen3", start="text", seed=0, finish_reason=reason), reason=reported)
        assert folded(*chunks, Ended(0, reported)) == expected


def test_what_the_server_says_is_kept() -> None:
    """Id, model, usage and reason come from the server's items; other choices are left out."""
    usage = Usage(3, 4, 0)
    reply = folded(Begin("id", "m"), RawText(0, "a"), RawText(1, "other"), Ended(1, "length"), Ended(0), usage)
    assert (reply.id, reply.model, reply.usage, reply.reason) == ("id", "m", usage, "stop")
    assert reply.parts == (Text("a", (0, 1)),)
    assert folded(RawText(0, "a"), RawText(1, "other"), Ended(1), choice=1).text == "other"


@pytest.mark.parametrize(
    ("chunks", "shown"),
    [
        ((RawText(0, "a"), Ended(0)), "stop"),
        ((RawText(0, "a<|im_end|>"), Ended(0)), "stop"),
        ((RawText(0, "a<|im_end|>"), Ended(0, "length")), "stop"),
        ((RawText(0, "a"), Ended(0, "length")), "cut"),
        ((RawText(0, "a"), Ended(0, "content_filter")), "cut"),
        ((RawText(0, "a"), Ended(0, "stop", stop_sequence="b")), "stop"),
        ((RawText(0, "<think>a"), Ended(0)), "stop, open"),
        ((RawText(0, "a"),), "cut"),
        ((ThinkingChunk(0, "a"), Ended(0)), "stop"),
        ((ThinkingChunk(0, "a"), Ended(0, "length")), "cut"),
        ((ThinkingChunk(0, "a"), Ended(0, "content_filter")), "cut"),
        ((CallChunk(0, 0, "", "f", '{"a'), Ended(0)), "stop, open"),
        ((RawText(0, "<think>a"), CallChunk(0, 0, "", "f", "{}"), Ended(0)), "stop"),
    ],
)
def test_termination(chunks: tuple[Chunk, ...], shown: str) -> None:
    """What the server says counts, whatever is open; a stop marker counts more. A reply that it never ended is cut."""
    reply, termination = folded(*chunks), shown.partition(",")[0]
    assert reply.termination == reply.message.termination == termination
    assert reply.complete is (termination != "cut" and "open" not in shown)


def test_a_reply_can_be_had_at_any_time() -> None:
    """A part that has not ended is incomplete, a call without its end an error."""
    fold = Fold()
    fold.add(PartStart(0, "thinking"))
    fold.add(ThinkingDelta(0, "a"))
    assert list(fold.reply.parts) == [Thinking("a", False)]
    fold.add(PartEnd(0))
    fold.add(PartStart(1, "tool_call", "", "f", "call_1"))
    fold.add(ToolCallDelta(1, "{"))
    assert list(fold.reply.parts) == [Thinking("a"), ToolCall("f", "{", "call_1", False, "incomplete")]
    assert (fold.calls, fold.answered, fold.next_index) == (1, True, 2)


def test_parts_stand_in_the_order_of_their_indexes() -> None:
    """A server may open a call before it gives its name, and name a later one first."""
    later, first = CallChunk(0, 1, "b", "g", "{}"), CallChunk(0, 0, "a", "f", "{}")
    reply = folded(CallChunk(0, 0), later, first, Ended(0))
    assert [call.name for call in reply.tool_calls] == ["f", "g"]


def test_times_are_those_of_the_clock() -> None:
    """Seconds since the reply was asked for; each thought from its start to its end."""
    fold = Fold(clock=ticking().__next__)
    for thought in (PartStart(0, "thinking"), ThinkingDelta(0, "a"), ThinkingDelta(0, "b"), PartEnd(0)):
        fold.add(thought)
    for answer in (PartStart(1, "text"), TextDelta(1, "c"), TextDelta(1, "d"), PartEnd(1), Ended(0)):
        fold.add(answer)
    assert fold.reply.times == Times(2.0, 4.0, 5.0, (2.0,))
    assert (fold.first_thought, fold.first_answer) == (102.0, 104.0)
    given = Fold(clock=ticking().__next__, started=90.0)
    given.add(PartStart(0, "tool_call"))
    assert given.reply.times == Times(None, 10.0, 11.0)
    assert Fold().reply.times == Times()


def test_a_budget_bounds_what_is_held() -> None:
    """Several folds may share one. Counts and times go on."""
    budget = Budget(5)
    first, second = Fold(budget=budget), Fold(choice=1, budget=budget)
    for fold in (first, second):
        fold.add(ReplyEvent(fold.choice, PartStart(0, "text")))
        fold.add(ReplyEvent(fold.choice, TextDelta(0, "abc")))
    assert (first.reply.text, first.collect, second.reply.text, second.collect) == ("abc", True, "", False)
    assert (first.truncated, second.truncated) == (True, True)
    second.add(ReplyEvent(1, PartStart(1, "tool_call")))
    second.add(ReplyEvent(1, Notice("stray_close", "odd", 0)))
    assert (second.calls, second.notices, second.reply.notices) == (1, {"stray_close": 1}, ())


def test_without_collecting_there_are_counts_alone() -> None:
    """Nothing is held, and everything is counted."""
    fold = Fold(collect=False)
    for event in (PartStart(0, "text"), TextDelta(0, "abc"), PartEnd(0), Notice("limit", "odd", 3)):
        fold.add(event)
    assert (fold.reply.parts, fold.answered, fold.notices, fold.truncated) == ((), True, {"limit": 1}, False)


def test_notices_use_the_budget_up() -> None:
    """An endless stream of oddities does not grow without end."""
    fold = Fold(budget=Budget(10))
    for _ in range(5):
        fold.add(Notice("limit", "1234", 0))
    assert (len(fold.reply.notices), fold.notices["limit"], fold.truncated) == (2, 5, True)
