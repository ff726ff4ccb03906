"""What is asked of an upstream besides replies, over a real socket: its kind, its template, its count of tokens."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeVar

import pytest

from asides._config import UpstreamSettings
from asides._config.schema import Limits, ModelSettings
from asides._gateway import model_profile
from asides._gateway.http_client import ConnectTimeout
from asides._gateway.model_profile import Profiles, make_profile
from asides._gateway.plan import Target, find_reading
from asides._gateway.questions import fetch_json
from asides._gateway.refusals import NotConnected
from asides._gateway.token_count import count, count_text
from asides._gateway.upstreams import HttpUpstream, UpstreamLost
from asides.detect._result import Detection
from asides.dialects._request import Request, RequestTurn, TextPiece, ThinkingOptions
from asides.dialects._servers import OPENAI
from asides.policies import Policies
from asides.reading import Reading
from tests.gateway.upstream import JSON, Close, Reply, Step, Upstream, cut, json_reply, upstream

T = TypeVar("T")
Kind = Literal["auto", "openai"]
GONE = "http://127.0.0.1:9"
ASKED = Request(dialect="openai_chat", model="m", turns=(RequestTurn("user", (TextPiece("12345678"),)),))


def using(server: Upstream | str, work: Callable[[HttpUpstream], Awaitable[T]], kind: Kind = "openai") -> T:
    """What is found out about a server by a client of it."""
    url = server if isinstance(server, str) else server.url

    async def run() -> T:
        found = HttpUpstream(UpstreamSettings(url=url, kind=kind), Limits())
        try:
            return await work(found)
        finally:
            await found.close()

    return asyncio.run(run())


def body_of(steps: list[Step], headers: Mapping[str, str]) -> bytes:
    """The body of an answer in these steps, as it is read whole."""

    async def read(found: HttpUpstream) -> bytes:
        async with found.ask("GET", "/x", None, {}) as answer:
            return await answer.read(1000)

    with upstream() as server:
        server.send(Reply(steps, headers=headers), "/x")
        return using(server, read)


def test_a_body_that_is_packed_as_it_is() -> None:
    """`identity` is no compression."""
    assert body_of([b"so"], {"content-encoding": "identity"}) == b"so"


TWO = gzip.compress(b"so, ") + gzip.compress(b"or so")


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("after", [b"", b"\0\0\0", gzip.compress(b"")], ids=["no more", "padding", "an empty member"])
def test_a_packed_body_of_several_members(size: int, after: bytes) -> None:
    """Is as whole as one of one; what pads it is nothing."""
    assert body_of(list(cut(TWO + after, size)), {"content-encoding": "gzip"}) == b"so, or so"


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_packed_body_without_a_byte(coding: str) -> None:
    """Is an empty one: some servers name a coding whatever they send."""
    assert body_of([], {"content-encoding": coding}) == b""


@pytest.mark.parametrize("packed", [TWO[:-1], TWO[:-20], TWO[:15]], ids=["by a byte", "the second", "the first"])
def test_a_packed_body_that_is_cut_short(packed: bytes) -> None:
    """Is not whole, though the response ended as it should."""
    with pytest.raises(UpstreamLost, match="breaks off"):
        body_of([packed], {"content-encoding": "gzip"})
    with pytest.raises(UpstreamLost, match="breaks off"):
        body_of([zlib.compress(b"so")[:-1]], {"content-encoding": "deflate"})


@pytest.mark.parametrize("steps", [[gzip.compress(b"so")[:12], Close()], [b"no gzip"]], ids=["lost", "broken"])
def test_a_packed_body_that_does_not_end_well(steps: list[Step]) -> None:
    """Is lost, whether the connection or the packing is broken."""
    with pytest.raises(UpstreamLost):
        body_of(steps, {"content-encoding": "gzip"})


def test_a_page_for_people_where_a_version_should_be() -> None:
    """Is of no Ollama."""
    with upstream() as server:
        server.send(Reply([b"<html>"], headers={"content-type": "text/html"}), "/api/version")
        assert using(server, HttpUpstream.find_kind, "auto") is OPENAI


def test_a_connection_that_takes_too_long_is_a_timeout() -> None:
    """By its status and code: clients try these again."""
    found = HttpUpstream(UpstreamSettings(url=GONE), Limits()).unreachable(ConnectTimeout("no connection"))
    assert isinstance(found, NotConnected)
    assert (found.status, found.code) == (504, "upstream_timeout")


def test_tokens_are_estimated_where_they_cannot_be_counted() -> None:
    """A server that is gone, or breaks off: a quarter of the bytes, and it is said that it is an estimate."""
    assert using(GONE, lambda found: count(found, ASKED, "m", "")) == (2, True)
    assert using(GONE, lambda found: count_text(found, "12345678", "m", "")) == 0
    with upstream() as server:
        server.send(Reply([b"{", Close()], headers=JSON), "/tokenize")
        assert using(server, lambda found: count(found, ASKED, "m", "")) == (2, True)
        assert using(server, lambda found: count_text(found, "12345678", "m", "")) == 0


def test_an_answer_that_is_no_json_says_nothing() -> None:
    """As little as one that is not there."""
    with upstream() as server:
        server.send(Reply([b"<html>"], headers=JSON), "/props")
        assert using(server, lambda found: fetch_json(found, "GET", "/props", None, "")) == {}


@pytest.mark.parametrize("template", [None, "{{ if .Thinking }}", "{% if %}"], ids=["gone", "go", "broken"])
def test_a_model_whose_server_shows_nothing_that_can_be_used(template: str | None) -> None:
    """Is read by its name."""

    def resolve(server: Upstream | str) -> Any:
        profiles = Profiles()
        return using(server, lambda found: profiles.resolve(found, "Qwen/Qwen3-8B", ModelSettings()))

    if template is None:
        profile = resolve(GONE)
    else:
        with upstream(owner="llamacpp") as server:
            server.send(json_reply({"chat_template": template}), "/props")
            profile = resolve(server)
    assert (profile.format.name, profile.format_source) == ("qwen3", "name")


def test_the_first_request_waits_for_the_template(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while another request for the same model has it fetched; only one of them asks the server."""
    monkeypatch.setattr(model_profile, "_detect", lambda template, model: template)
    monkeypatch.setattr(model_profile, "make_profile", lambda model, settings, template, *more, **options: template)

    async def both(found: HttpUpstream) -> list[Any]:
        profiles = Profiles()
        return await asyncio.gather(*(profiles.resolve(found, "m", ModelSettings()) for _ in range(2)))

    with upstream(owner="llamacpp") as server:
        server.send(json_reply({"chat_template": "shown"}), "/props")
        assert using(server, both) == ["shown", "shown"]
        assert len([asked for asked in server.asked if asked.path == "/props"]) == 1


def test_a_model_that_is_not_split_is_known_without_asking() -> None:
    """Also before the first request for it."""
    found = HttpUpstream(UpstreamSettings(url=GONE), Limits())
    assert Profiles().known(found, "m", ModelSettings(format="none")).format is None


def reading_of(model: str, template: Detection | None = None, think: bool | None = None) -> Reading:
    """How the gateway reads a reply of a model."""
    unused: Any = None
    target = Target(unused, unused, ModelSettings(), make_profile(model, ModelSettings(), template))
    request = Request(dialect="openai_chat", model=model, thinking=ThinkingOptions(think=think))
    return find_reading(target, request, Policies())


def test_a_name_that_says_where_output_begins() -> None:
    """Otherwise than its format does, or without any format."""
    assert reading_of("cogito").begins[:2] == ("text", True)
    found = reading_of("tiiuae/Falcon-H1R-7B")
    assert (found.begins.start, found.format.name, found.policies.start) == ("thinking", "auto", "thinking")


def test_a_template_that_opens_the_thought_on_request() -> None:
    """Counts where thinking is asked for."""
    shown = Detection(format="qwen3", thinks=True, start="text", start_on="thinking", confidence="known")
    for think, start in ((True, "thinking"), (None, "text")):
        assert reading_of("Qwen/Qwen3-8B", shown, think).begins[:2] == (start, True)
