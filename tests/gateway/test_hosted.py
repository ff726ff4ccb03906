"""Providers of hosted models as upstreams: no conversation dies of a thought, whatever the client keeps of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from typing import Any, NamedTuple

import anthropic
import httpx
import openai
import pytest

from asides._config.schema import Limits, UpstreamSettings
from asides._gateway import upstreams
from asides._gateway.proofs import place_proofs
from asides._gateway.upstreams import HttpUpstream
from asides.dialects._providers import PROVIDERS as CARDS
from asides.dialects._providers import is_near, provider_of
from asides.dialects._request import CallPiece, RequestTurn, TextPiece, ThinkingPiece
from asides.dialects._servers import ANTHROPIC, KINDS, OPENAI, RESPONSES, ServerKind
from asides.dialects.openai_chat._reader import join_detail
from asides.reply._items import PlacedProof
from tests.gateway import clients, conversations, providers
from tests.gateway.conversations import WAYS, Way
from tests.gateway.providers import KEY, TEXTS, Provider, Served
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import upstream


class Hosted(NamedTuple):
    """A gateway in front of every provider."""

    gateway: Gateway
    providers: dict[str, Served]


@pytest.fixture(scope="module")
def hosted() -> Iterator[Hosted]:
    with ExitStack() as stack:
        served = {kind.name: stack.enter_context(providers.provider(kind)) for kind in providers.PROVIDERS}
        found = [{**each.upstream, "models": [each.provider.model]} for each in served.values()]
        settings = {"upstreams": found, "continuity": {"keys": ["k" * 40]}}
        yield Hosted(stack.enter_context(gateway(settings)), served)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("kind", providers.PROVIDERS, ids=lambda kind: kind.name)
def test_a_conversation_goes_on(hosted: Hosted, kind: type[Provider], way: Way) -> None:
    """Four requests with calls among them, streamed and whole in turn: the provider refuses none of them.

    Each begins with what the one before it sent.
    """
    served = hosted.providers[kind.name].provider
    served.refused.clear()
    served.requests.clear()
    stream = (providers.PROVIDERS.index(kind) + WAYS.index(way)) % 2 == 0
    answers = list(way(lambda: hosted.gateway.url, kind.model, stream))
    assert answers == list(TEXTS)
    assert served.refused == []
    providers.check_append_only(served.requests)


KEEPING = (conversations.chat_keeps, conversations.messages_keep, conversations.responses_items)
"""Ways of clients that carry what they are given."""


@pytest.mark.parametrize("kind", providers.PROVIDERS, ids=lambda kind: kind.name)
def test_a_conversation_survives_a_restart(kind: type[Provider]) -> None:
    """What the client carries is enough: another process, with the same key and no store, goes on with it."""
    way = KEEPING[providers.PROVIDERS.index(kind) % len(KEEPING)]
    with providers.provider(kind) as served:
        settings = {"upstreams": [served.upstream], "continuity": {"keys": ["k" * 40]}}
        url = ""
        talk = way(lambda: url, kind.model, True)
        with gateway(settings) as running:
            url = running.url
            answers = [next(talk)]
        settings["continuity"] = {"keys": ["n" * 40, "k" * 40]}  # the key was changed, and the old one still opens
        with gateway(settings) as running:
            url = running.url
            answers += talk
        assert answers == list(TEXTS)
        assert served.provider.refused == []


def test_hidden_thoughts_go_on() -> None:
    """`reasoning: drop` shows the client nothing; what it carries is enough for another process."""
    with providers.provider(providers.Anthropic) as served:
        hidden = {"upstreams": [served.upstream], "continuity": {"keys": ["k" * 40]}, "defaults": {"reasoning": "drop"}}
        url = ""
        talk = conversations.messages_keep(lambda: url, served.provider.model, False)
        answers = []
        for _ in TEXTS:
            with gateway(hidden) as running:
                url = running.url
                answers.append(next(talk))
        assert answers == list(TEXTS)
        assert served.provider.refused == []


def _first_turn(url: str, model: str) -> dict[str, Any]:
    """A question and its reply with calls, in Messages' shape, and the request that answers the calls."""
    tool = {"name": "find", "input_schema": clients.FUNCTION["parameters"]}
    body = {"model": model, "max_tokens": 99, "tools": [tool], "messages": [{"role": "user", "content": "2+2?"}]}
    reply = httpx.post(f"{url}/v1/messages", json=body).json()
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "4"}
        for block in reply["content"]
        if block["type"] == "tool_use"
    ]
    turn = {"role": "assistant", "content": reply["content"]}
    body["messages"] += [turn, {"role": "user", "content": results}]  # type: ignore[operator]  # a list
    return body


def test_a_refused_thought_is_left_out_once_and_for_all() -> None:
    """A signature that the provider refuses: it is asked again without, and from then on for this conversation."""
    with ExitStack() as stack:
        served = stack.enter_context(providers.provider(providers.Anthropic))
        with gateway({"upstreams": [served.upstream]}) as running:
            body = _first_turn(running.url, served.provider.model)
        body["messages"][1]["content"][0]["signature"] = "sig_of_another"
        # Another one, because the first knows what the provider has signed, and puts it right.
        running = stack.enter_context(gateway({"upstreams": [served.upstream]}))
        answer = httpx.post(f"{running.url}/v1/messages", json=body)
        assert (answer.status_code, answer.json()["content"][-1]["text"]) == (200, TEXTS[1])
        assert answer.headers["x-asides-thoughts"].endswith("reason=refused")
        assert len(served.provider.requests) == 3
        again = httpx.post(f"{running.url}/v1/messages", json=body)
        assert again.status_code == 200
        assert len(served.provider.requests) == 4
        # Any other refusal is the client's to hear of, and not repeated.
        wrong = httpx.post(f"{running.url}/v1/messages", json={**body, "max_tokens": "x"})
        assert wrong.status_code == 400


RULES = (
    providers.DeepSeek,
    providers.Groq,
    providers.Gemini,
    providers.Anthropic,
    providers.AnthropicBound,
    providers.ResponsesPairedById,
)
"""Those that have a way for a conversation without its thoughts. The scripts of OpenRouter and Responses have none:
they refuse a call whose details, or whose item, are missing, which is stricter than what is written of either."""


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.name)
def test_where_nothing_is_known_the_conversation_goes_on(kind: type[Provider]) -> None:
    """The client carries nothing and the gateway has forgotten all: what is refused is put right by the card."""
    way = (conversations.chat_drops, conversations.messages_drop)[RULES.index(kind) % 2]
    with providers.provider(kind) as served:
        settings = {"upstreams": [served.upstream], "continuity": {"keys": ["k" * 40]}}
        url = ""
        talk = way(lambda: url, kind.model, False)
        with gateway(settings) as running:
            url = running.url
            answers = [next(talk)]
        with gateway(settings) as running:
            url = running.url
            answers += talk
        assert answers == list(TEXTS)
        assert len(served.provider.requests) == len(TEXTS) + len(served.provider.refused)
        assert len(served.provider.refused) <= 1  # remembered


def test_a_history_that_the_client_rewrote_goes_on() -> None:
    """A thought that is bound to what stood before it: the provider is told to leave it out, and says so."""
    with providers.provider(providers.AnthropicBound) as served, gateway({"upstreams": [served.upstream]}) as running:
        body = _first_turn(running.url, served.provider.model)
        body["messages"][0]["content"] = "3+3?"
        answer = httpx.post(f"{running.url}/v1/messages", json=body)
        assert (answer.status_code, answer.json()["content"][-1]["text"]) == (200, TEXTS[1])
        assert "input_transformations" not in answer.json()
        sent = served.provider.requests[-1]
        assert sent["thinking"] == {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        assert sent["messages"] == served.provider.requests[-2]["messages"]
        # A client that decides itself hears of it.
        strict = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}
        beta = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
        body["messages"][0]["content"] = "4+4?"
        refused = httpx.post(f"{running.url}/v1/messages", json={**body, "thinking": strict}, headers=beta)
        assert refused.status_code == 400
        strict["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
        told = httpx.post(f"{running.url}/v1/messages", json={**body, "thinking": strict}, headers=beta)
        assert [each["path"] for each in told.json()["input_transformations"]] == ["messages.1.content.0"]


def test_after_a_recovery_the_next_thoughts_go_back() -> None:
    """Only the turns so far lose their thoughts, and what is sent begins the same from then on."""
    with providers.provider(providers.Anthropic) as served:
        settings = {"upstreams": [served.upstream], "continuity": {"keys": ["k" * 40]}}
        url = ""
        talk = conversations.messages_drop(lambda: url, served.provider.model, False)
        with gateway(settings) as running:
            url = running.url
            next(talk)
        with gateway(settings) as running:
            url = running.url
            assert [*talk] == list(TEXTS[1:])
        recovered = [body for body in served.provider.requests[2:]]
        turns = [body["messages"] for body in recovered]
        assert all(after[: len(before)] == before for before, after in pairwise(turns))
        assert [block["type"] for block in turns[-1][-2]["content"]] == ["thinking", "text"]
        assert len(served.provider.refused) == 1


def test_a_prompt_that_was_rewritten_is_told_and_acts_where_thoughts_are_bound() -> None:
    """What a client carries says where it stood: elsewhere it still opens, and a header says that it was moved."""
    bound, free = providers.AnthropicBound, providers.Anthropic
    tool = {"type": "function", "function": clients.FUNCTION}
    with ExitStack() as stack:
        served = {kind: stack.enter_context(providers.provider(kind)) for kind in (bound, free)}
        found = [{**each.upstream, "models": [each.provider.model]} for each in served.values()]
        settings = {"upstreams": found, "continuity": {"keys": ["k" * 40]}, "replay_cache": {"entries": 0}}
        running = stack.enter_context(gateway(settings))
        for kind, each in served.items():
            body: dict[str, Any] = {
                "model": kind.model,
                "tools": [tool],
                "messages": [{"role": "user", "content": "a"}],
            }
            message = _ask_chat(running.url, body).json()["choices"][0]["message"]
            results = [{"role": "tool", "tool_call_id": call["id"], "content": "4"} for call in message["tool_calls"]]
            body["messages"] += [message, *results]
            same = _ask_chat(running.url, body)
            assert same.headers["x-asides-thoughts"].startswith("restored=")
            assert "moved" not in same.headers["x-asides-thoughts"]
            body["messages"][0]["content"] = "b"
            moved = _ask_chat(running.url, body)
            assert moved.status_code == 200
            assert moved.headers["x-asides-thoughts"].endswith("; reason=moved")
            assert ("thinking" in each.provider.requests[-1]) is (kind is bound)
            assert each.provider.refused == []


def _ask_chat(url: str, body: dict[str, Any], key: str = "sk-client") -> httpx.Response:
    return httpx.post(f"{url}/v1/chat/completions", json=body, headers={"authorization": f"Bearer {key}"})


def test_what_one_client_carries_is_of_no_use_to_another() -> None:
    """Under another credential, in another session, changed or cut short it counts as unknown, and fails nothing."""
    tool = {"type": "function", "function": clients.FUNCTION}
    with providers.provider(providers.Anthropic) as served:
        settings = {"upstreams": [served.upstream], "continuity": {"keys": ["k" * 40]}, "replay_cache": {"entries": 0}}
        with gateway(settings) as running:
            model = served.provider.model
            body: dict[str, Any] = {"model": model, "tools": [tool], "messages": [{"role": "user", "content": "a"}]}
            message = _ask_chat(running.url, body).json()["choices"][0]["message"]
            details = message["reasoning_details"]
            answer = {"role": "assistant", "content": message["content"], "reasoning_details": details}
            body["messages"] += [answer, {"role": "user", "content": "Sure?"}]
            own = _ask_chat(running.url, body).headers["x-asides-thoughts"]
            assert own == f"restored={len(details)}, dropped=0"
            told = f"restored=0, dropped={len(details)}; reason=unopened"
            before = len(served.provider.requests)
            others = [
                _ask_chat(running.url, body, "sk-other"),
                _ask_chat(running.url, {**body, "user": "somebody"}),
                _ask_chat(running.url, {**body, "prompt_cache_key": "another"}),
            ]
            for left, right in ((-1, ""), (40, ""), (40, "A" * 200)):
                changed = [{**detail, "data": detail["data"][:left] + right} for detail in details]
                turns = [body["messages"][0], {**answer, "reasoning_details": changed}, body["messages"][2]]
                others.append(_ask_chat(running.url, {**body, "messages": turns}))
            assert [(each.status_code, each.headers["x-asides-thoughts"]) for each in others] == [(200, told)] * 6
        sent = json.dumps(served.provider.requests[before:])
        assert "asides2." not in sent
        assert providers.prove("redacted") not in sent
        assert "sig_" not in sent


@pytest.mark.parametrize("foreign", ["text", "drop"])
def test_what_does_not_open_is_unknown_and_no_error(foreign: str) -> None:
    """A capsule of another key: the text goes as configured, the client is told, and nothing fails."""
    with providers.provider(providers.Responses) as served:
        first = {"upstreams": [served.upstream], "continuity": {"keys": ["a" * 40]}}
        second = {"upstreams": [served.upstream], "continuity": {"keys": ["b" * 40], "foreign_thoughts": foreign}}
        with gateway(first) as running:
            body = _first_turn(running.url, served.provider.model)
        body["messages"] = [body["messages"][0], {"role": "assistant", "content": body["messages"][1]["content"][:2]}]
        body["messages"].append({"role": "user", "content": "And?"})
        with gateway(second) as running:
            answer = httpx.post(f"{running.url}/v1/messages", json=body)
        assert answer.status_code == 200
        assert answer.headers["x-asides-thoughts"] == "restored=0, dropped=1; reason=unopened"
        sent = json.dumps(served.provider.requests[-1]["input"])
        assert (providers.THOUGHTS[0].split("\n")[0] in sent) is (foreign == "text")
        assert "asides2." not in sent


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses", "ollama_chat"])
@pytest.mark.parametrize("name", ["anthropic", "responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_parts_and_usage(hosted: Hosted, name: str, dialect: clients.Dialect, stream: bool) -> None:
    """Each client is shown the thought, the text and the calls, in its own API."""
    model = hosted.providers[name].provider.model
    seen = clients.ask(dialect, hosted.gateway.url, model=model, tools=True, stream=stream)
    assert (seen.thinking.strip(), seen.text) == (providers.THOUGHTS[0], TEXTS[0])
    assert seen.calls == tuple((name, arguments) for _, name, arguments in providers.CALLS)


@pytest.mark.parametrize("name", ["anthropic", "responses"])
def test_tokens_are_counted_as_the_provider_counts_them(hosted: Hosted, name: str) -> None:
    """Cached tokens and those of thinking too, whether the provider counts them within the input or beside it."""
    model = hosted.providers[name].provider.model
    with openai.OpenAI(base_url=f"{hosted.gateway.url}/v1", api_key="k", max_retries=0) as sdk:
        usage = sdk.chat.completions.create(model=model, messages=[{"role": "user", "content": "2+2?"}]).usage
    assert usage is not None
    assert usage.completion_tokens_details is not None
    assert usage.prompt_tokens_details is not None
    assert (usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens) == (17, 5)
    assert (usage.completion_tokens, usage.completion_tokens_details.reasoning_tokens) == (20, 8)


def test_headers_of_a_provider(hosted: Hosted) -> None:
    """It is sent its own key as it wants it, and never the client's; its limits reach a client of another API."""
    served = hosted.providers["anthropic"].provider
    body = {"model": served.model, "messages": [{"role": "user", "content": "2+2?"}]}
    headers = {"authorization": "Bearer sk-client"}
    answer = httpx.post(f"{hosted.gateway.url}/v1/chat/completions", json=body, headers=headers)
    assert answer.headers["anthropic-ratelimit-requests-remaining"] == "7"
    assert served.headers[-1]["x-api-key"] == KEY
    assert "authorization" not in served.headers[-1]
    assert "sk-client" not in str(served.headers[-1])


def test_errors_of_a_provider_have_the_clients_shape() -> None:
    """A wrong key: the client of each API gets an error that its SDK knows."""
    with providers.provider(providers.Anthropic) as served:
        wrong = {**served.upstream, "key": "sk-wrong"}
        with gateway({"upstreams": [wrong]}) as running:
            with pytest.raises(openai.AuthenticationError, match="invalid x-api-key"):
                next(conversations.chat_keeps(lambda: running.url, served.provider.model, False))
            with pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"):
                next(conversations.messages_keep(lambda: running.url, served.provider.model, True))


def test_models_are_listed(hosted: Hosted) -> None:
    """Those of every kind of upstream."""
    listed = httpx.get(f"{hosted.gateway.url}/v1/models").json()["data"]
    assert {served.provider.model for served in hosted.providers.values()} <= {model["id"] for model in listed}


def test_text_that_looks_like_a_marker_is_text(hosted: Hosted) -> None:
    """An API with a place for thoughts has none in its text."""
    with providers.provider(Tagged) as served, gateway({"upstreams": [served.upstream]}) as running:
        seen = clients.ask("chat", running.url, model=served.provider.model)
    assert seen.text == "<think>is a tag</think> of HTML?"


class Tagged(providers.Anthropic):
    """Writes about tags."""

    name = "tagged"

    def blocks(self, body: dict[str, Any], step: int) -> list[dict[str, Any]]:
        return [{"type": "text", "text": "<think>is a tag</think> of HTML?"}]


def test_stop_strings_work_where_the_api_has_none(hosted: Hosted) -> None:
    """Responses takes none, so the gateway ends the answer there."""
    model = hosted.providers["responses"].provider.model
    seen = clients.ask("chat", hosted.gateway.url, model=model, stop=["look"])
    assert seen.text == "Let me "


def test_a_bare_prompt_is_refused(hosted: Hosted) -> None:
    """No provider of messages continues one, and the client is told so."""
    model = hosted.providers["anthropic"].provider.model
    answer = httpx.post(f"{hosted.gateway.url}/v1/completions", json={"model": model, "prompt": "2+2="})
    assert answer.status_code == 400
    assert "prompt" in answer.json()["error"]["message"]


# Kinds and cards.


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://api.anthropic.com", ANTHROPIC),
        ("https://API.Anthropic.com/v1", ANTHROPIC),
        ("https://eu.api.anthropic.com.", ANTHROPIC),
        ("https://api.openai.com/v1", OPENAI),
        ("https://openrouter.ai/api/v1", OPENAI),
        ("https://api.anthropic.com.example.org", None),
        ("https://notapi.anthropic.com.example", None),
        ("http://127.0.0.1:8000", None),
    ],
)
def test_a_provider_is_known_by_its_host(url: str, kind: ServerKind | None) -> None:
    """Only by the whole name, and it is then not asked what it is."""

    async def made() -> HttpUpstream:
        return HttpUpstream(UpstreamSettings(url=url), Limits())

    assert asyncio.run(made()).kind is kind


def test_what_is_configured_wins_over_the_host() -> None:
    async def made() -> HttpUpstream:
        return HttpUpstream(UpstreamSettings(url="https://api.openai.com", kind="responses"), Limits())

    assert asyncio.run(made()).kind is RESPONSES


def test_cards_name_hosts_once() -> None:
    hosts = [host for card in CARDS for host in card.hosts]
    assert len(hosts) == len(set(hosts))
    assert all(card.kind in KINDS and provider_of(host) is card for card in CARDS for host in card.hosts)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "10.1.2.3", "192.168.0.9", "fd00::1", "localhost", "gpu-box"])
def test_near(host: str) -> None:
    assert is_near(host)


@pytest.mark.parametrize("host", ["8.8.8.8", "2001:4860:4860::8888", "api.example.com", "local.example", "169.com"])
def test_far(host: str) -> None:
    assert not is_near(host)


@pytest.mark.parametrize("near", [True, False])
def test_a_far_server_is_asked_for_its_kind_without_the_key(monkeypatch: pytest.MonkeyPatch, near: bool) -> None:
    """Its own headers may be secrets too."""
    monkeypatch.setattr(upstreams, "is_near", lambda host: near)
    with upstream() as server:

        async def find() -> None:
            settings = UpstreamSettings(url=server.url, key="sk-secret", headers={"x-team": "secret"})
            found = HttpUpstream(settings, Limits())
            await found.find_kind()
            await found.close()

        asyncio.run(find())
        sent = {name.lower(): value for name, value in server.asked[0].headers.items()}
    assert ("sk-secret" in sent.get("authorization", "")) is near
    assert ("x-team" in sent) is near


# Proofs in their places.


def _proof(name: str, texts: int, calls: int, *, call: bool = False) -> PlacedProof:
    return PlacedProof(texts, calls, "anthropic", {"is": name}, call)


def _shape(turn: RequestTurn) -> list[str]:
    names = []
    for piece in turn.pieces:
        if isinstance(piece, ThinkingPiece):
            names.append(piece.proof.data["is"] if piece.proof is not None else "thought")
        elif isinstance(piece, CallPiece):
            names.append(piece.name + (f"+{piece.proof.data['is']}" if piece.proof is not None else ""))
        elif isinstance(piece, TextPiece):
            names.append(piece.text)
    return names


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        # The client kept the order, and its thoughts.
        (
            (ThinkingPiece("x"), TextPiece("t"), ThinkingPiece("y"), CallPiece("f", "{}"), CallPiece("g", "{}")),
            ["A", "t", "B", "f", "C", "g"],
        ),
        # It has joined texts, or has none, and dropped the thoughts.
        ((TextPiece("t"), CallPiece("f", "{}"), CallPiece("g", "{}")), ["A", "t", "B", "f", "C", "g"]),
        ((CallPiece("f", "{}"), CallPiece("g", "{}")), ["A", "B", "f", "C", "g"]),
        # It has lost a call: what stood before it is not lost with it.
        ((TextPiece("t"), CallPiece("f", "{}")), ["A", "t", "B", "f", "C"]),
        ((), ["A", "B", "C"]),
    ],
)
def test_proofs_go_back_to_their_places(pieces: tuple[Any, ...], expected: list[str]) -> None:
    proofs = (_proof("A", 0, 0), _proof("B", 1, 0), _proof("C", 1, 1))
    assert _shape(place_proofs(RequestTurn("assistant", pieces), proofs)) == expected


def test_the_proof_of_a_call_goes_with_it_and_thoughts_stay() -> None:
    turn = RequestTurn("assistant", (ThinkingPiece("x"), CallPiece("f", "{}"), CallPiece("g", "{}")))
    assert _shape(place_proofs(turn, (_proof("A", 0, 0, call=True),))) == ["thought", "f+A", "g"]


def test_details_of_a_stream_are_put_together() -> None:
    """Pieces of one detail have its type and index; another id, type or index is another."""
    found: list[dict[str, Any]] = []
    for detail in (
        {"type": "reasoning.text", "text": "a", "index": 0, "signature": None},
        {"type": "reasoning.text", "text": "b", "index": 0},
        {"type": "reasoning.text", "index": 0, "signature": "s"},
        {"type": "reasoning.encrypted", "data": "x", "id": "1", "index": 0},
        {"type": "reasoning.encrypted", "data": "y", "id": "2", "index": 0},
        {"type": "reasoning.text", "text": "c", "index": 1},
    ):
        join_detail(found, detail)
    assert found == [
        {"type": "reasoning.text", "text": "ab", "index": 0, "signature": "s"},
        {"type": "reasoning.encrypted", "data": "x", "id": "1", "index": 0},
        {"type": "reasoning.encrypted", "data": "y", "id": "2", "index": 0},
        {"type": "reasoning.text", "text": "c", "index": 1},
    ]
