"""Replies in one piece: what the shortcut reads is byte for byte what a parser makes of it, in every dialect.

A whole reply of the ordinary shape (a thought, a text) is taken apart without a parser. Here every case of
`tests/cases` is sent by an upstream of one dialect and written to a client of another, with the shortcut and without.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn
from uuid import UUID

import msgspec
import pytest

import asides
from asides import Message, PartEnd, PartStart, TextDelta, ThinkingDelta, dialects
from asides._config.schema import ModelSettings
from asides._engine.parser import Parser
from asides._engine.shortcut import parse_ordinary
from asides._gateway.exchange import read_whole
from asides._gateway.model_profile import ModelProfile
from asides._gateway.pipeline import ItemFilter, split_whole
from asides._gateway.plan import RequestPlan, Target
from asides._gateway.record import RequestRecord
from asides.dialects._base import Dialect
from asides.dialects._framing import to_json
from asides.dialects._request import Request
from asides.policies import DEFAULTS
from asides.reading import Reading
from asides.reading import _reading as planning
from asides.reply._items import Begin, Chunk, Ended, Foreign, RawText, ReplyEvent, ReplyItem, ThinkingChunk, Usage
from tests.support import joined
from tests.test_cases import ALL

BEGIN = Begin("reply_1", "m", 1_700_000_000)
every_dialect = pytest.mark.parametrize("client", dialects.ALL, ids=lambda dialect: dialect.NAME)


def plan_of(client: Dialect, format: str, options: dict[str, Any], choices: int = 1) -> RequestPlan:
    """The plan of a request, as the gateway makes it where these policies are configured, but for a seed of its own."""
    profile = ModelProfile(format=asides.get_format(format), format_source="configuration")
    unused: Any = None
    return RequestPlan(
        request=Request(dialect=client.NAME, model="m", choices=choices, include_usage=True),
        target=Target(unused, unused, ModelSettings(), profile),
        upstream_dialect=unused,
        body=b"",
        reading=Reading.of(format=format, policies=DEFAULTS.but(seed=0).but(**options)),
        seed=0,
        owner=unused,
        reasoning="",
        conversation=unused,
    )


def split(plan: RequestPlan, chunks: list[Chunk]) -> list[ReplyItem]:
    """The items of a whole reply."""
    failures: list[Exception] = []
    filter = ItemFilter(plan.splitter(whole=True), RequestRecord("id", "POST", "/"))
    items = split_whole(chunks, filter, on_error=failures.append)
    assert all(isinstance(failure, asides.StrictError) for failure in failures), failures
    return items


def body_of(upstream: Dialect, text: str) -> bytes:
    """A whole reply with this content, as an upstream writes it."""
    events = (PartStart(0, "text"), TextDelta(0, text), PartEnd(0)) if text else ()
    items = [BEGIN, *(ReplyEvent(0, event) for event in events), Ended(0), Usage(5, 7)]
    return to_json(upstream.write_reply(items, Request(dialect=upstream.NAME, model="m", include_usage=True)))


def answer(client: Dialect, upstream: Dialect, format: str, text: str, options: dict[str, Any]) -> bytes:
    """What the client gets."""
    plan = plan_of(client, format, options)
    return to_json(client.write_reply(split(plan, read_whole(upstream, body_of(upstream, text))), plan.request))


def same(items: list[ReplyItem]) -> list[ReplyItem]:
    """Items of one choice with neighbouring deltas joined: a stream may be cut anywhere."""
    events = joined([item.event for item in items if isinstance(item, ReplyEvent)])
    return [*(ReplyEvent(0, event) for event in events), *(each for each in items if not isinstance(each, ReplyEvent))]


@contextmanager
def shortcut(monkeypatch: pytest.MonkeyPatch, replacement: Any) -> Iterator[None]:
    """Read whole replies with another shortcut."""
    with monkeypatch.context() as patch:
        patch.setattr(planning, "parse_ordinary", replacement)
        yield


@pytest.fixture(autouse=True)
def no_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids and times that a writer makes up are the same each time."""
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * size)
    monkeypatch.setattr("uuid.uuid4", lambda: UUID(int=0))
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.0)


def never(text: str, format: Any, policies: Any) -> None:
    """A shortcut that takes nothing."""


@every_dialect
def test_the_shortcut_changes_no_byte(client: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every case, the upstreams' dialects in turn. Where it takes nothing, both ways are one and the same."""
    taken: list[Message] = []

    def counted(text: str, format: Any, policies: Any) -> Message | None:
        if (found := parse_ordinary(text, format, policies)) is not None:
            taken.append(found)
        return found

    for number, case in enumerate(ALL):
        upstream = dialects.ALL[number % len(dialects.ALL)]
        text, options = "".join(case.chunks), dict(case.said.get("options", {}))
        before = len(taken)
        with shortcut(monkeypatch, counted):
            short = answer(client, upstream, case.format, text, options)
        if len(taken) > before:
            with shortcut(monkeypatch, never):
                assert short == answer(client, upstream, case.format, text, options), (upstream.NAME, case.format, text)
    assert len(taken) > 300, "few of the cases are of the ordinary shape, so that the comparison says little"


def test_the_shortcut_gives_the_same_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a client that streams from an upstream that does not, and for the record: spans and termination too."""
    for case in ALL:
        plan = plan_of(dialects.openai_chat, case.format, dict(case.said.get("options", {})))
        for ended in (Ended(0), Ended(0, "length")):
            chunks: list[Chunk] = [BEGIN, RawText(0, "".join(case.chunks)), ended, Usage(5, 7)]
            short = split(plan, chunks)
            with shortcut(monkeypatch, never):
                assert same(short) == same(split(plan, chunks)), case


@every_dialect
def test_a_wrong_shortcut_would_be_seen(client: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each dialect reads through the shortcut, so that a character more in it reaches the client."""

    def wrong(text: str, format: Any, policies: Any) -> Message | None:
        found = parse_ordinary(text, format, policies)
        assert found is not None
        parts = tuple(msgspec.structs.replace(part, text=f"{getattr(part, 'text', '')}!") for part in found.parts)
        return msgspec.structs.replace(found, parts=parts)

    for upstream in dialects.ALL:
        right = answer(client, upstream, "qwen3", "<think>2+2</think>It is 4.", {})
        with shortcut(monkeypatch, wrong):
            found = answer(client, upstream, "qwen3", "<think>2+2</think>It is 4.", {})
        assert b"It is 4.!" not in right
        assert b"It is 4.!" in found, upstream.NAME


def test_no_parser_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the ordinary shape; any other has one, and only for its own choice."""

    def refuse(*_: Any) -> NoReturn:
        raise AssertionError("a parser was made")

    plan = plan_of(dialects.openai_chat, "qwen3", {}, choices=2)
    chunks: list[Chunk] = [RawText(0, "<think>a</think>b"), Ended(0), RawText(1, "c</think>d"), Ended(1)]
    with monkeypatch.context() as patch:
        patch.setattr(planning, "Parser", refuse)
        events = [item.event for item in split(plan, chunks) if isinstance(item, ReplyEvent)]
        assert [event.text for event in events if isinstance(event, TextDelta | ThinkingDelta)] == ["a", "b", "c", "d"]
    made: list[Any] = []

    def count(*arguments: Any) -> Parser:
        made.append(arguments)
        return Parser(*arguments)

    monkeypatch.setattr(planning, "Parser", count)
    split(plan, [RawText(0, "a<think>b</think>c"), Ended(0), *chunks[2:]])
    assert len(made) == 1


@pytest.mark.parametrize(
    "chunks",
    [
        [RawText(0, "<think>a</think>b"), RawText(0, "<think>c</think>d"), Ended(0)],
        [ThinkingChunk(0, "a"), RawText(0, "<think>a</think>b"), Ended(0)],
        [RawText(0, "a"), Foreign("anthropic", "block", {}), Ended(0)],
        [RawText(0, "<think>a</think>b", ({"token": "<think>a</think>b"},)), Ended(0)],
        [RawText(0, "a"), RawText(1, "b"), Ended(0), Ended(1)],
        [RawText(7, "a"), Ended(7)],
        [RawText(-1, "a"), Ended(-1)],
        [RawText(0, ""), Ended(0)],
        [RawText(0, " \n"), Ended(0)],
        [RawText(0, "a"), Ended(0), RawText(0, "b"), Ended(0)],
        [RawText(0, "<think>a</think>b<|im_end|>"), Ended(0, "length")],
        [RawText(0, "a")],
        [],
    ],
    ids=str,
)
def test_other_sequences_of_chunks(chunks: list[Chunk], monkeypatch: pytest.MonkeyPatch) -> None:
    """More than one text, something beside it, a choice that nobody asked for, no end: the items are the same."""
    plan = plan_of(dialects.openai_chat, "qwen3", {}, choices=2)
    short = split(plan, chunks)
    with shortcut(monkeypatch, never):
        assert short == split(plan, chunks)
