"""Where a reply begins is asked of servers that can say it: over real sockets, with honest and other servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from asides._config import UpstreamSettings
from asides._config.schema import Config, Limits
from asides._gateway import prompt_ends
from asides._gateway.engines import Engines
from asides._gateway.prompt_ends import PromptEnds
from asides._gateway.state import State
from asides._gateway.upstreams import HttpUpstream
from asides.dialects._rendered_prompts import WORD, PromptQuestion
from tests.gateway.clients import ask
from tests.gateway.rendering import TEMPLATE, asked_prompts, render_prompts
from tests.gateway.running import gateway
from tests.gateway.servers import Servers
from tests.gateway.upstream import JSON, Close, Gate, Hang, Reply, Reset, Upstream, json_reply, upstream

OWNERS = ("vllm", "sglang", "llamacpp")
LONE = "hm so</think>Four."
OPEN = "<|im_end|>\n<|im_start|>assistant\n<think>\n"
T = TypeVar("T")


@contextmanager
def serving(owner: str, template: str | None = TEMPLATE, **settings: Any) -> Iterator[Servers]:
    """A gateway that knows nothing of its models, before a server of this engine."""
    with upstream(owner=owner) as server:
        if template is not None:
            render_prompts(server, template)
        with gateway({"upstreams": [{"url": server.url, **settings}]}) as running:
            yield Servers(running, server)


def said(servers: Servers, words: str = LONE, *, model: str = "new-9", **fields: Any) -> tuple[str, str]:
    """Thought and answer of a streamed reply."""
    servers.upstream.say(words)
    seen = ask("chat", servers.gateway.url, model=model, stream=True, **fields)
    return seen.thinking, seen.text


@pytest.mark.parametrize("owner", OWNERS)
def test_the_first_stream_of_a_model_that_nobody_knows_is_read_right(owner: str) -> None:
    """With thinking unset it begins in a thought; where the client's keyword turns it off, in text. Each is asked once,
    however many requests are alike, streamed and whole."""
    off: Any = {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}
    with serving(owner) as servers:
        for _ in range(2):
            assert said(servers) == ("hm so", "Four.")
        assert ask("chat", servers.gateway.url, model="new-9").text == "Four."
        assert said(servers, "It is 4.", **off) == ("", "It is 4.")
        assert said(servers, tools=True) == ("hm so", "Four.")
        asked = asked_prompts(servers.upstream)
        assert [each.body.get("chat_template_kwargs") for each in asked] == [None, {"enable_thinking": False}, None]
        assert ["tools" in each.body for each in asked] == [False, False, True]
        assert "2+2?" not in json.dumps([each.body for each in asked])


@pytest.mark.parametrize("owner", ["openai", "upstream", "library"])
def test_an_engine_that_is_not_known_is_asked_nothing(owner: str) -> None:
    """A hosted provider sees its list of models asked for, and the client's request."""
    with serving(owner) as servers:
        said(servers)
        paths = [asked.path for asked in servers.upstream.asked]
    assert paths == ["/api/version", "/v1/models", "/v1/chat/completions"]


def test_a_server_that_is_said_to_be_another_is_asked_nothing() -> None:
    """`engine: other` is the operator's word."""
    with serving("vllm", engine="other") as servers:
        said(servers)
        assert [asked.path for asked in servers.upstream.asked] == ["/api/version", "/v1/chat/completions"]


def test_a_server_that_names_itself_in_a_header() -> None:
    """llama.cpp does so where a proxy or an operator has changed its list."""
    with upstream() as server:
        render_prompts(server)
        listed = {"object": "list", "data": [{"id": "m", "owned_by": "me"}]}
        server.send(json_reply(listed, Server="llama.cpp"), "/v1/models")
        server.send(json_reply({"prompt": f"{WORD}{OPEN}"}), "/apply-template")
        with gateway({"upstreams": [{"url": server.url}]}) as running:
            assert said(Servers(running, server)) == ("hm so", "Four.")
        assert "/props" in [asked.path for asked in server.asked]


@pytest.fixture(scope="module")
def sglang() -> Iterator[Servers]:
    """A server that answers every question."""
    with serving("sglang") as found:
        yield found


@pytest.mark.parametrize(
    "fields",
    [
        {"chat_template_kwargs": {"mood": "merry"}},
        {"chat_template_kwargs": {"enable_thinking": "please"}},
        {"reasoning_effort": "a secret of the client"},
        {"chat_template": "{{ messages }}"},
        {"continue_final_message": True, "add_generation_prompt": False},
    ],
    ids=str,
)
def test_what_is_not_asked_about(sglang: Servers, fields: dict[str, Any]) -> None:
    """Keywords and words of the client's own go to the server in its request alone."""
    said(sglang, extra_body=fields)
    assert asked_prompts(sglang.upstream) == []


def test_a_turn_that_the_client_began_is_not_asked_about(sglang: Servers) -> None:
    said(sglang, messages=[{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "It"}])
    assert asked_prompts(sglang.upstream) == []


BROKEN: dict[str, Reply] = {
    "absent": json_reply({"error": "no"}, 404),
    "refused": json_reply({"error": "no"}, 400),
    "failing": json_reply({"error": "no"}, 500),
    "no_json": Reply([b"<html>"], headers=JSON),
    "no_strings": json_reply({"count": 3, "tokens": [1, 2, 3]}),
    "other_types": json_reply({"token_strs": [1, None], "tokens": ["a"], "prompt": 4}),
    "lying": json_reply({"token_strs": ["<think>"], "tokens": [1], "prompt": "<think>"}),
    "huge": Reply([b'{"token_strs": ["', b"a" * 3_000_000, b'"]}'], headers=JSON),
    "endless": Reply([WORD.encode() * 100, Hang()], headers=JSON),
    "long": json_reply({"token_strs": [WORD, "a" * 10_000], "prompt": WORD + "a" * 10_000}),
    "cut": Reply([b'{"token_strs": ["', Close()], headers=JSON),
    "reset": Reply([Reset()], headers=JSON),
    "silent": Reply([], before=[Hang()]),
}


@pytest.fixture(scope="module", params=["vllm", "llamacpp"])
def untrusty(request: pytest.FixtureRequest) -> Iterator[Servers]:
    """A server that answers as a test tells it; each test has a model of its own."""
    with serving(request.param, None) as found:
        yield found


@pytest.mark.parametrize("kind", BROKEN)
def test_a_server_that_does_not_answer_well(untrusty: Servers, kind: str) -> None:
    """Requests are answered as if it had not been asked, and it is not asked again for each."""
    for path in ("/tokenize", "/apply-template"):
        untrusty.upstream.send(BROKEN[kind], path)
    assert said(untrusty, "<think>hm</think>Four.", model=kind) == ("hm", "Four.")
    assert said(untrusty, "<think>hm</think>Four.", model=kind) == ("hm", "Four.")
    assert len([asked for asked in asked_prompts(untrusty.upstream) if asked.body["model"] == kind]) == 1


def test_ids_that_cannot_be_decoded() -> None:
    """SGLang is asked twice; the second question may fail by itself."""
    with serving("sglang") as servers:
        servers.upstream.send(json_reply({"text": ["a"]}), "/detokenize")
        assert said(servers, "<think>hm</think>Four.") == ("hm", "Four.")


def using(server: Upstream, work: Callable[[HttpUpstream, PromptEnds, list[Any]], Awaitable[T]]) -> T:
    """Do something with the answers of a server whose engine is known; the list is of models that changed."""

    async def run() -> T:
        found = HttpUpstream(UpstreamSettings(url=server.url, name="one"), Limits())
        engines, changed = Engines(), list[Any]()
        await engines.find(found)
        ends = PromptEnds(engines, lambda upstream, model: changed.append((upstream, model)))
        try:
            return await work(found, ends, changed)
        finally:
            await ends.close()
            await found.close()

    return asyncio.run(run())


QUESTION = PromptQuestion(model="m")


async def until(ask: Callable[[], Awaitable[str | None]], wanted: str | None) -> None:
    """Ask until this is the answer, as requests do that come one after another."""
    async with asyncio.timeout(30):
        while await ask() != wanted:
            await asyncio.sleep(0.005)


def test_requests_wait_only_for_the_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not longer than a moment; what comes later is used from then on."""
    monkeypatch.setattr(prompt_ends, "MOST_SECONDS", 0.05)
    gate = Gate()

    async def work(found: HttpUpstream, ends: PromptEnds, changed: list[Any]) -> None:
        assert await ends.ask(found, QUESTION) is None
        gate.open()
        await until(lambda: ends.ask(found, QUESTION), OPEN)
        assert ends.get(found, QUESTION) == OPEN

    with upstream(owner="llamacpp") as server:
        body = json.dumps({"prompt": WORD + OPEN}).encode()
        server.send(Reply([body], headers=JSON, before=[gate]), "/apply-template")
        using(server, work)
        assert len(asked_prompts(server)) == 1


def test_requests_that_come_together_wait_for_one_answer() -> None:
    async def work(found: HttpUpstream, ends: PromptEnds, changed: list[Any]) -> list[str | None]:
        return list(await asyncio.gather(*(ends.ask(found, QUESTION) for _ in range(5))))

    with upstream(owner="vllm") as server:
        render_prompts(server)
        assert using(server, work) == [OPEN] * 5
        assert len(asked_prompts(server)) == 1


def test_an_answer_that_is_old_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without waiting; another one is told, so that what replies showed is forgotten."""
    monkeypatch.setattr(prompt_ends, "HOUR", 0.0)

    async def work(found: HttpUpstream, ends: PromptEnds, changed: list[Any]) -> None:
        assert await ends.ask(found, QUESTION) == OPEN
        await until(lambda: ends.ask(found, QUESTION), OPEN)
        assert changed == []
        render_prompts(server, TEMPLATE.replace("<think>\n{% endif %}", "{% endif %}"))
        await until(lambda: ends.ask(found, QUESTION), OPEN.removesuffix("<think>\n"))
        assert changed == [("one", "m")]

    with upstream(owner="vllm") as server:
        render_prompts(server)
        using(server, work)


def test_a_server_that_was_lost_is_asked_again() -> None:
    """And one that refused before."""

    async def work(found: HttpUpstream, ends: PromptEnds, changed: list[Any]) -> None:
        assert await ends.ask(found, QUESTION) is None
        assert await ends.ask(found, QUESTION) is None
        assert len(asked_prompts(server)) == 1
        render_prompts(server)
        server.send(Reply([], before=[Close()]), "/lost")
        with pytest.raises(Exception, match="broke off"):
            async with found.ask("GET", "/lost", None, {}):
                pass
        await until(lambda: ends.ask(found, QUESTION), OPEN)

    with upstream(owner="vllm") as server:
        using(server, work)


def test_a_key_that_is_not_let_in_is_no_refusal_for_others() -> None:
    def answer(asked: Any) -> Reply:
        good = asked.headers.get("authorization") == "Bearer good"
        return json_reply({"prompt": WORD + OPEN} if good else {}, 200 if good else 401)

    async def work(found: HttpUpstream, ends: PromptEnds, changed: list[Any]) -> None:
        assert await ends.ask(found, QUESTION, "bad") is None
        assert await ends.ask(found, QUESTION, "bad") is None
        assert len(asked_prompts(server)) == 1
        await until(lambda: ends.ask(found, QUESTION, "good"), OPEN)

    with upstream(owner="llamacpp") as server:
        server.send(answer, "/apply-template")
        using(server, work)


def test_there_are_only_so_many_questions_about_a_model() -> None:
    """Clients choose what they ask for; a model of which the server knows nothing is asked about once."""

    async def work(found: HttpUpstream, ends: PromptEnds, changed: list[Any]) -> list[str | None]:
        asked = [PromptQuestion(model="m", keywords=(("thinking", f"{number}"),)) for number in range(20)]
        return [await ends.ask(found, question) for question in asked]

    with upstream(owner="llamacpp") as server:
        render_prompts(server)
        assert using(server, work) == [OPEN] * 16 + [None] * 4
        server.asked.clear()
        server.send(json_reply({}, 404), "/apply-template")
        assert using(server, work) == [None] * 20
        assert len(asked_prompts(server)) == 1


@pytest.mark.parametrize(
    ("template", "end"), [(TEMPLATE, None), (TEMPLATE.split("{% if en")[0], OPEN.removesuffix("\n<think>\n"))]
)
def test_vllm_is_asked_with_and_without_the_switch_that_newer_ones_make_of_an_effort(
    template: str, end: str | None
) -> None:
    """Where the two differ, nothing is known: which of them a server does depends on its version."""
    question = PromptQuestion(model="m", effort="none")
    with upstream(owner="vllm") as server:
        render_prompts(server, template)
        assert using(server, lambda found, ends, changed: ends.ask(found, question)) == end
        keywords = [asked.body["chat_template_kwargs"] for asked in asked_prompts(server)]
    assert keywords == [{"reasoning_effort": "none"}, {"enable_thinking": False, "reasoning_effort": "none"}]


def test_a_model_of_a_known_line_is_asked_with_its_own_switch() -> None:
    """A version on no list, and thinking off: its line's keyword is in the request, and so in the question."""
    with serving("vllm") as servers:
        thought = said(servers, "Four.", model="Qwen/Qwen3.9-8B", reasoning_effort="none")
        assert thought == ("", "Four.")
        (asked,) = asked_prompts(servers.upstream)
        assert asked.body["chat_template_kwargs"]["enable_thinking"] is False


def test_a_configured_start_asks_nothing() -> None:
    with upstream(owner="vllm") as server:
        render_prompts(server)
        config = {"upstreams": [{"url": server.url}], "defaults": {"start": "text"}}
        with gateway(config) as running:
            said(Servers(running, server))
        assert asked_prompts(server) == []


def test_what_replies_showed_is_forgotten_with_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this model alone: the server is another one."""
    monkeypatch.setattr(prompt_ends, "HOUR", 0.0)

    async def run(server: Upstream) -> None:
        state = State(Config(upstreams=(UpstreamSettings(url=server.url, name="one"),)))
        state.open()
        (found,) = state.upstreams
        try:
            await state.engines.find(found)
            assert await state.prompt_ends.ask(found, QUESTION) == OPEN
            for model in ("m", "other"):
                state.learned.load("one", model, "off", "thinking", "")
            render_prompts(server, TEMPLATE.replace("<think>\n{% endif %}", "{% endif %}"))
            await until(lambda: state.prompt_ends.ask(found, QUESTION), OPEN.removesuffix("<think>\n"))
            assert state.learned.get("one", "m", False) is None
            assert state.learned.get("one", "other", False) is not None
        finally:
            await state.close()

    with upstream(owner="vllm") as server:
        render_prompts(server)
        asyncio.run(run(server))
