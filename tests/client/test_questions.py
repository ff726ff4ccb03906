"""What a client asks a server before the first reply: as the gateway does, once, and for no longer than a second."""

from __future__ import annotations

import threading

import pytest

from asides.client import _questions
from asides.client._client import Client
from tests.gateway.rendering import asked_prompts, render_prompts
from tests.gateway.upstream import JSON, Hang, Pause, Reply, Step, json_reply, upstream
from tests.waiting import PATIENCE, eventually

LONE = "hm so</think>Four."
MODEL = "new-9"


@pytest.mark.parametrize("owner", ["vllm", "sglang", "llamacpp"])
@pytest.mark.parametrize("ending", ["", "/v1"])
def test_the_first_reply_of_a_model_that_nobody_knows_is_read_right(owner: str, ending: str) -> None:
    """The server's word is what decides; each question is asked once, never with the person's words."""
    with upstream(owner=owner) as server:
        render_prompts(server)
        client = Client(server.url + ending)
        for think, said, wanted in ((None, LONE, ("hm so", "Four.")), (False, "It is 4.", ("", "It is 4."))):
            server.say(said)
            extra = {} if think is None else {"chat_template_kwargs": {"enable_thinking": think}}
            for _ in range(2):
                reply = client.ask("2+2?", model=MODEL, extra=extra)
                assert (reply.thinking, reply.text) == wanted
            assert client.reading is not None
            assert client.reading.evidence == "server"
        questions = asked_prompts(server)
        assert b"2+2?" not in b"".join(asked.raw for asked in questions)
        assert len([asked for asked in questions if asked.path != "/detokenize"]) == 2
        assert [asked.path for asked in server.asked].count("/v1/models") == 1


@pytest.mark.parametrize("owner", ["openai", "upstream"])
def test_an_engine_that_is_not_known_is_asked_nothing(owner: str) -> None:
    """Its list of models says what it is, once."""
    with upstream(owner=owner) as server:
        client = Client(server.url + "/v1")
        for _ in range(2):
            client.ask("2+2?", model=MODEL)
        assert [asked.path for asked in server.asked] == ["/v1/models", *["/v1/chat/completions"] * 2]


def test_nothing_is_asked_where_nothing_depends_on_it() -> None:
    """A start that was chosen, a format whose messages have headers, a server that separates thinking."""
    with upstream(owner="vllm") as server:
        render_prompts(server)
        client = Client(server.url + "/v1")
        client.ask("2+2?", model=MODEL, start="text")
        client.ask("2+2?", model="gpt-oss-20b")
        assert not asked_prompts(server)
        server.say("Four.", thought="2+2")
        for _ in range(2):
            assert client.ask("2+2?", model=MODEL).thinking == "2+2"
        assert len(asked_prompts(server)) == 1


def test_an_answer_alone_is_no_thought_before_a_server_was_seen() -> None:
    """The prompt opens the thought, but the server may have separated it, and hidden it."""
    with upstream(owner="vllm") as server:
        render_prompts(server)
        server.say("Four.")
        reply = Client(server.url + "/v1").ask("2+2?", model=MODEL)
        assert (reply.thinking, reply.text) == ("", "Four.")


@pytest.mark.parametrize("path", ["/v1/models", "/tokenize"])
@pytest.mark.parametrize("trickles", [False, True], ids=["silent", "trickles"])
def test_a_server_that_does_not_answer_is_not_waited_for(
    path: str, trickles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For longer than the bound, whether it is silent or sends a byte now and then; nor is it asked again."""
    monkeypatch.setattr(_questions, "MOST_SECONDS", 0.2)
    with upstream(owner="vllm") as server:
        render_prompts(server)
        slow: list[Step] = [step for _ in range(1000) for step in (b" ", Pause(0.02))] if trickles else [Hang()]
        server.send(Reply(slow, headers=JSON), path)
        server.say(LONE)
        client = Client(server.url + "/v1")
        for _ in range(2):
            assert client.ask("2+2?", model=MODEL).text == "Four."
        assert [asked.path for asked in server.asked].count(path) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_a_refusal_is_no_failure(status: int) -> None:
    """It is remembered, and the reply is read by other evidence."""
    with upstream(owner="vllm") as server:
        server.send(json_reply({"error": "no"}, status), "/tokenize")
        server.say(LONE)
        client = Client(server.url + "/v1")
        for _ in range(2):
            assert client.ask("2+2?", model=MODEL).text == "Four."
        assert len(asked_prompts(server)) == 1


def test_who_stops_while_the_server_is_asked_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reply is not asked for."""
    monkeypatch.setattr(_questions, "MOST_SECONDS", PATIENCE)
    with upstream(owner="vllm") as server:
        server.send(Reply([Hang()]), "/tokenize")
        client = Client(server.url + "/v1")
        items: list[object] = []
        thread = threading.Thread(target=lambda: items.extend(client.talk("2+2?", model=MODEL)))
        thread.start()
        eventually(lambda: asked_prompts(server), "it was not asked")
        eventually(client.stop, "nothing could be stopped")
        thread.join()
        assert not items
        assert not server.questions
