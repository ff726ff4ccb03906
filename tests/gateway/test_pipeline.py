"""The way of a streamed reply when a piece of ours fails: what was read so far is written, and then the error."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asides import TextDelta
from asides._gateway.pipeline import ItemFilter, Pipeline, split_whole
from asides._gateway.record import RequestRecord
from asides.dialects import openai_chat
from asides.reply._items import Begin, Chunk, Ended, Failed, RawText, ReplyEvent, ReplyItem, Usage
from tests.gateway.test_whole import plan_of
from tests.gateway.upstream import frame

LOST = Failed("gone", 502, "upstream_error", "upstream_lost")


class Writer:
    """Writes the kinds of items, and fails at those that a test names."""

    delta = None
    written = None

    def __init__(self) -> None:
        self.fails: Callable[[ReplyItem], bool] = lambda item: False
        self.items: list[ReplyItem] = []

    def feed(self, item: ReplyItem) -> bytes:
        """Take an item."""
        if self.fails(item):
            raise ZeroDivisionError
        self.items.append(item)
        return b"."

    def finish(self) -> bytes:
        """The end."""
        return b"!"


class Running:
    """A pipeline that has read half a thought."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.writer = Writer()
        splitter = plan_of(openai_chat, "qwen3", {}).splitter(whole=False)
        self.record = RequestRecord("id", "POST", "/")
        self.filter = ItemFilter(splitter, self.record)
        self.pipeline = Pipeline(openai_chat.ReplyReader(), self.filter, self.writer, on_error=self.errors.append)
        self.pipeline.feed(frame("<think>Why"))

    @property
    def failures(self) -> list[Failed]:
        """The errors that were written."""
        return [item for item in self.writer.items if isinstance(item, Failed)]


@pytest.mark.parametrize(
    "go_on",
    [
        lambda pipeline: pipeline.feed(frame(" so")),
        lambda pipeline: pipeline.continue_with(openai_chat.ReplyReader(), "</think>"),
        lambda pipeline: pipeline.cut(Usage(output_tokens=1)),
        lambda pipeline: pipeline.lose(LOST),
    ],
    ids=["feed", "continue_with", "cut", "lose"],
)
def test_a_writer_that_fails_ends_the_reply(go_on: Callable[[Pipeline], bytes]) -> None:
    """Whatever is done when it fails: the reply ends with an error that says so, once, and nothing is raised."""
    running = Running()
    running.writer.fails = lambda item: not isinstance(item, Failed)
    out = go_on(running.pipeline)
    assert out.endswith(b"!")
    assert [type(error) for error in running.errors] == [ZeroDivisionError]
    assert len(running.failures) == 1
    assert running.failures[0] is not LOST
    assert running.pipeline.over
    written = list(running.writer.items)
    assert running.pipeline.lose(LOST) == b""
    assert running.writer.items == written


@pytest.mark.parametrize(
    ("raw", "filled"), [("<think>Why", ["Why"]), ("<think>Why</think>", []), ("", [])], ids=["open", "closed", "none"]
)
def test_only_an_open_thought_takes_the_place_of_an_answer(raw: str, filled: list[str]) -> None:
    """`empty_answer: thinking`: where the tokens ran out within it. Who has closed a thought said no more."""
    record = RequestRecord("id", "POST", "/")
    splitter = plan_of(openai_chat, "qwen3", {}).splitter(whole=True)
    record.begin_reply(splitter, collect=True, limit=1000)
    filter = ItemFilter(splitter, record, fill_empty=True)
    chunks: list[Chunk] = [Begin("1", "m", 1), RawText(0, raw), Ended(0, "length")]
    items = split_whole(chunks, filter, on_error=lambda error: None)
    events = [item.event for item in items if isinstance(item, ReplyEvent)]
    assert [event.text for event in events if isinstance(event, TextDelta)] == filled


def test_what_cannot_be_read_of_a_whole_reply_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of it is worth more than an error."""
    errors: list[Exception] = []
    filter = ItemFilter(plan_of(openai_chat, "qwen3", {}).splitter(whole=True), RequestRecord("id", "POST", "/"))
    apply = filter.apply

    def fail(items: list[ReplyItem]) -> list[ReplyItem]:
        if any(isinstance(item, Usage) for item in items):
            raise ZeroDivisionError
        return apply(items)

    monkeypatch.setattr(filter, "apply", fail)
    chunks: list[Chunk] = [Begin("1", "m", 1), Usage(1, 2), RawText(0, "<think>Why.</think>So."), Ended(0)]
    items = split_whole(chunks, filter, on_error=errors.append)
    assert [type(error) for error in errors] == [ZeroDivisionError]
    events = [item.event for item in items if isinstance(item, ReplyEvent)]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["So."]
    assert isinstance(items[-1], Ended)


def numbered(words: str, number: int, reason: str | None = None) -> bytes:
    """A frame of a choice that has this number."""
    return frame(words, reason=reason).replace(b'"index": 0', b'"index": %d' % number)


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (0, 1), (1, 1), (7, -1)])
def test_two_replies_of_one_choice(first: int, second: int) -> None:
    """A thought is ended and another reply goes on behind it: each may number the only choice as it likes."""
    writer = Writer()
    splitter = plan_of(openai_chat, "qwen3", {}).splitter(whole=False)
    record = RequestRecord("id", "POST", "/")
    record.begin_reply(splitter, collect=True, limit=1000)
    pipeline = Pipeline(openai_chat.ReplyReader(), ItemFilter(splitter, record), writer)
    for words in ("<think>", "Why", "?"):
        pipeline.feed(numbered(words, first))
    pipeline.continue_with(openai_chat.ReplyReader(), "</think>")
    for words in ("It", " is", " 4."):
        pipeline.feed(numbered(words, second))
    pipeline.cut(Usage(output_tokens=1))
    assert list(record.folds) == [0]
    assert (record.folds[0].reply.thinking, record.folds[0].reply.text) == ("Why?", "It is 4.")
    assert [item.choice for item in writer.items if isinstance(item, ReplyEvent | Ended)][-1] == 0
    assert splitter.surplus == 0
