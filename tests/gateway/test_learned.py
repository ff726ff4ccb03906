"""What the gateway learns from replies about where a model's output begins."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.clients import ask, get
from tests.gateway.running import gateway
from tests.gateway.servers import Servers, serving
from tests.gateway.upstream import upstream
from tests.waiting import eventually

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


def learned_of(servers: Servers, model: str) -> list[str]:
    """What the log says that was learned of a model."""
    lines = [str(record.get("message")) for record in servers.gateway.records]
    return [line for line in lines if f"learned from replies of {model!r}" in line]


def test_nothing_is_learned_that_a_name_says(servers: Servers) -> None:
    """An exact name counts more, so a reply that agrees with it changes nothing; one that asks for no thinking may."""
    said(servers, "Qwen/Qwen3-8B", "<think>a</think>b")
    assert said(servers, "Qwen/Qwen3.5-4B", LONE, reasoning_effort="none") != "Four."
    assert said(servers, "Qwen/Qwen3.5-4B", LONE, reasoning_effort="none") == "Four."
    eventually(lambda: bool(learned_of(servers, "Qwen/Qwen3.5-4B")), "nothing was learned")
    assert learned_of(servers, "Qwen/Qwen3-8B") == []


@pytest.mark.parametrize(
    ("model", "words", "fields", "why"),
    [
        ("new-7", LONE, {"headers": {"x-asides-start": "text"}}, "it was chosen"),
        ("Qwen/Qwen3-8B", LONE, {}, "Qwen 3"),
        ("MiniMaxAI/MiniMax-M2", "Plain words.", {}, "MiniMax"),
    ],
)
def test_what_is_not_overruled_is_contradicted_in_the_log(
    servers: Servers, model: str, words: str, fields: dict[str, Any], why: str
) -> None:
    """Once; a later reply is read as before."""
    first = said(servers, model, words, **fields)
    assert said(servers, model, words, **fields) == first
    assert said(servers, "last", "b") == "b"

    def told() -> list[str]:
        lines = [str(record.get("message")) for record in servers.gateway.records]
        return [line for line in lines if line.startswith(f"{model!r} at ") and "was read from" in line]

    eventually(lambda: bool(told()), "the log does not say it")
    (line,) = told()
    assert why in line


def test_markers_of_another_family_make_a_name_auto(servers: Servers) -> None:
    """Two replies of different conversations; their own markers are then read."""
    words = "<seed:think>hm</seed:think>Four."
    assert said(servers, "Qwen/Qwen3-14B", words, question="one") == words
    assert said(servers, "Qwen/Qwen3-14B", words, question="two") == words
    assert said(servers, "Qwen/Qwen3-14B", words, question="three") == "Four."


def test_every_worker_knows_it_and_a_reload_forgets_it() -> None:
    """One worker has seen the reply. After SIGHUP no worker knows anything of it."""
    nowhere = {"entries": 0}
    config = {"listen": {"workers": 2}, "responses": nowhere, "replay_cache": nowhere}
    with upstream() as server, gateway({**config, "upstreams": [{"url": server.url}]}) as running:
        servers = Servers(running, server)
        said(servers, "new-8", LONE)
        # The other worker is told in the background, and which of the two answers is chance.
        for _ in range(24):
            eventually(lambda: said(servers, "new-8", LONE) == "Four.", "a worker does not know it")
        running.signal(signal.SIGHUP)
        eventually(lambda: sum(line.get("event") == "reloaded" for line in running.records) == 2, "not both reloaded")
        assert said(servers, "new-8", LONE) != "Four."
