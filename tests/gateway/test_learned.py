"""What the gateway learns from replies about where a model's output begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.clients import ask, get
from tests.gateway.servers import Servers, serving

LONE = "hm so</think>Four."


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """A gateway that knows nothing of its models."""
    with serving(defaults={}) as found:
        yield found


def said(servers: Servers, model: str, words: str, question: str = "2+2?", **fields: Any) -> str:
    """The answer of a streamed reply."""
    servers.upstream.say(words)
    return ask("chat", servers.gateway.url, model=model, stream=True, question=question, **fields).text


def test_the_first_lone_close_is_believed(servers: Servers) -> None:
    """The first stream of a model that nobody knows shows its thought; the second does not."""
    said(servers, "new-1", LONE)
    assert said(servers, "new-1", LONE) == "Four."
    servers.gateway.wait_for_record(lambda record: "learned from replies of 'new-1'" in str(record.get("message")))
    assert 'asides_learned_starts_total{start="thinking"}' in get(servers.gateway.url, "/metrics").text


def test_thinking_asked_for_is_learned_apart(servers: Servers) -> None:
    said(servers, "new-2", LONE)
    assert said(servers, "new-2", "It is 4.", reasoning_effort="none") == "It is 4."


def test_one_client_cannot_turn_what_was_seen(servers: Servers) -> None:
    """Against what was seen only two replies in a row count, of different conversations."""
    assert said(servers, "new-3", "<think>a</think>b") == "b"
    for _ in range(3):
        said(servers, "new-3", LONE)
    assert said(servers, "new-3", "Plain words.") == "Plain words."
    said(servers, "new-3", LONE, question="one")
    said(servers, "new-3", LONE, question="two")
    assert said(servers, "new-3", LONE, question="three") == "Four."


def test_a_model_that_turns_out_not_to_think(servers: Servers) -> None:
    """Read from inside a thought, and ended without closing it, twice: then it begins in text."""
    for question in ("one", "two"):
        said(servers, "MiniMax-M2.8", "Plain words.", question=question)
    assert said(servers, "MiniMax-M2.8", "Plain words.", question="three") == "Plain words."


@pytest.mark.parametrize(
    "fields", [{"response_format": {"type": "json_object"}}, {"extra_body": {"guided_regex": ".*"}}]
)
def test_a_reply_in_a_form_shows_nothing(servers: Servers, fields: dict[str, Any]) -> None:
    model = f"new-4-{next(iter(fields))}"
    said(servers, model, LONE, **fields)
    assert said(servers, model, "It is 4.") == "It is 4."


def test_a_cut_reply_shows_nothing(servers: Servers) -> None:
    servers.upstream.say(LONE, reason="length")
    ask("chat", servers.gateway.url, model="new-5", stream=True)
    assert said(servers, "new-5", "It is 4.") == "It is 4."


def test_a_chosen_start_is_never_overruled(servers: Servers) -> None:
    said(servers, "new-6", LONE)
    text = said(servers, "new-6", "It is 4.", headers={"x-asides-start": "text"})
    assert text == "It is 4."
