"""Replies that are read by the ids of their tokens: over real sockets, with a real tokenizer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest

from tests.gateway.clients import Dialect, ask, body_of, post
from tests.gateway.ids_server import CLOSE, OPEN, STOP, IdServer, tokenizer_file, vocabulary
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Asked, Reply, Upstream, json_reply, upstream
from tests.waiting import eventually

CHAT = "/v1/chat/completions"
APIS: tuple[Dialect, ...] = ("responses", "messages", "ollama_chat")
MODEL = "deepseek-ai/DeepSeek-R1"
THOUGHT = "I write\n</think>\nby hand, and 𓂀 你好."
"""The tag is spelled out with ordinary tokens, on a line of its own: as text it would end the thought."""
ANSWER = "It is <think> 4 🎉."


def written() -> list[int]:
    """A thought, its end, an answer, and the stop token."""
    known = vocabulary()
    return [*known.encode(THOUGHT), CLOSE, *known.encode(ANSWER), STOP]


def plain() -> list[int]:
    """A thought and an answer that show that the server does not separate them."""
    known = vocabulary()
    return [*known.encode("Hm."), CLOSE, *known.encode("Four."), STOP]


@contextmanager
def serving(server: Upstream, **settings: Any) -> Iterator[Gateway]:
    """A gateway that may ask for ids."""
    own = {"tokenizer": tokenizer_file(), **settings}
    with gateway({"upstreams": [{"url": server.url}], "defaults": own}) as running:
        yield running


def say(server: Upstream, *choices: list[int], **how: Any) -> IdServer:
    """From now on the server says this."""
    said = IdServer(vocabulary(), choices or (written(),), **how)
    server.send(said.answer)
    return said


def show_raw(server: Upstream, running: Gateway) -> None:
    """Let the gateway see that the server separates nothing."""
    said = say(server, plain())
    post(running.url, CHAT, body_of("chat", model=MODEL))
    assert said.asked == [False]


def told(running: Gateway, *, stream: bool, **fields: Any) -> tuple[list[tuple[str, str]], str]:
    """Thought and answer of each choice, and all bytes of the reply."""
    reply = post(running.url, CHAT, body_of("chat", model=MODEL, stream=stream, **fields))
    assert reply.status_code == 200, reply.text
    found: dict[int, tuple[str, str]] = {}
    lines = [line[6:] for line in reply.text.splitlines() if line.startswith("data: {")] if stream else [reply.text]
    for choice in (choice for line in lines for choice in json.loads(line)["choices"]):
        said = choice["delta" if stream else "message"]
        thought, text = found.get(choice["index"], ("", ""))
        found[choice["index"]] = thought + (said.get("reasoning_content") or ""), text + (said.get("content") or "")
    return [found[index] for index in sorted(found)], reply.text


def test_ids_say_what_is_a_marker() -> None:
    """A tag that is spelled out is no marker; characters may be cut between ids; the stop token says nothing. The
    server is asked once it was seen to separate nothing, and no client sees an id that has not asked for such."""
    with upstream() as server, serving(server) as running:
        show_raw(server, running)
        for size, stream in product((1, 3, 50), (True, False)):
            said = say(server, size=size)
            parts, raw = told(running, stream=stream)
            assert parts == [(THOUGHT, ANSWER)]
            assert "token_ids" not in raw
            assert said.asked == [True]
            said = say(server, written(), plain(), size=size)
            parts, raw = told(running, stream=stream, n=2)
            assert parts == [(THOUGHT, ANSWER), ("Hm.", "Four.")]
            assert "token_ids" not in raw
            assert said.asked == [True]
        assert "are read as text" not in running.log


def test_it_can_be_turned_off() -> None:
    """For a model whose tokenizer only counts."""
    with upstream() as server, serving(server, token_ids=False) as running:
        show_raw(server, running)
        said = say(server, plain())
        assert told(running, stream=True)[0] == [("Hm.", "Four.")]
        assert said.asked == [False]


def test_every_client_is_answered_by_ids() -> None:
    """Whatever API it speaks."""
    with upstream() as server, serving(server) as running:
        show_raw(server, running)
        said = say(server)
        for api in APIS:
            for stream in (True, False):
                seen = ask(api, running.url, model=MODEL, stream=stream)
                assert (seen.thinking, seen.text) == (THOUGHT, ANSWER)
        assert said.asked == [True] * 6


def test_markers_that_the_server_hides() -> None:
    """A server that leaves out all tokens of this kind: the text has no marker at all, the ids have it."""
    with upstream() as server, serving(server) as running:
        show_raw(server, running)
        say(server, [OPEN, *written()], hides=frozenset({STOP, OPEN, CLOSE}))
        for stream in (True, False):
            assert told(running, stream=stream)[0] == [(THOUGHT, ANSWER)]


def test_the_ids_of_the_prompt_say_where_the_reply_begins() -> None:
    """R1 begins in a thought, unless its prompt has closed it."""
    known = vocabulary()
    header = known.added["<｜Assistant｜>"]
    with upstream() as server, serving(server) as running:
        show_raw(server, running)
        for stream in (True, False):
            say(server, [*known.encode("Four."), STOP], prompt=[5, header, OPEN, CLOSE])
            assert told(running, stream=stream)[0] == [("", "Four.")]
            say(server, plain(), prompt=[5, header, OPEN])
            assert told(running, stream=stream)[0] == [("Hm.", "Four.")]


def test_a_server_that_ignores_the_field() -> None:
    """Its text is read as before, and it is not asked again."""
    with upstream() as server, serving(server) as running:
        show_raw(server, running)
        said = say(server, plain(), ignores=True)
        for stream in (True, True, False, False):
            assert told(running, stream=stream)[0] == [("Hm.", "Four.")]
        assert said.asked == [True, False, True, False]
        running.wait_for_record(lambda record: "the server sends none" in record.get("message", ""))


@pytest.mark.parametrize("shift_from", [0, 1, 2])
def test_ids_of_another_tokenizer(shift_from: int) -> None:
    """From the first id on, or from a later one, a marker perhaps: the text is read, nothing is lost, and the log says
    it once."""
    with upstream() as server, serving(server) as running:
        show_raw(server, running)
        said = say(server, plain(), shift=7, shift_from=shift_from)
        for stream in (True, True, False, False):
            assert told(running, stream=stream)[0] == [("Hm.", "Four.")]
        assert said.asked == [True, False, True, False]
        wanted = "not those of the tokenizer"
        eventually(lambda: running.log.count(wanted) >= 2, "it was not said for both")
        assert running.log.count(wanted) == 2, "once for streams and once for whole replies"


def test_a_server_that_refuses_the_field() -> None:
    """SGLang gives ids with whole replies alone: the stream is asked for again without."""
    with upstream(owner="sglang") as server, serving(server) as running:
        show_raw(server, running)
        said = IdServer(vocabulary(), (written(),))

        def answer(asked: Asked) -> Reply:
            if asked.body.get("stream") and asked.body.get("return_token_ids"):
                return json_reply({"message": "return_token_ids is not supported with stream=true"}, 400)
            return said.answer(asked)

        server.send(answer)
        for _ in range(2):
            assert "by hand" in told(running, stream=True)[0][0][1]
        assert told(running, stream=False)[0] == [(THOUGHT, ANSWER)]
        assert said.asked == [False, False, True]


def test_log_probabilities_stay_with_their_text() -> None:
    """Each token of the answer once, its characters whole; markers, thoughts and the stop token beside it."""
    with upstream() as server, serving(server) as running:
        show_raw(server, running)
        for stream in (True, False):
            said = say(server)
            reply = post(running.url, CHAT, body_of("chat", model=MODEL, stream=stream, logprobs=True)).text
            assert said.asked == [True]
            lines = [line[6:] for line in reply.splitlines() if line.startswith("data: {")] if stream else [reply]
            choices = [choice for line in lines for choice in json.loads(line)["choices"]]
            tokens = [each for choice in choices for each in ((choice.get("logprobs") or {}).get("content") or ())]
            assert bytes(byte for token in tokens for byte in token["bytes"]).decode() == ANSWER
            others = [
                each for choice in choices for each in (choice.get("reasoning_logprobs") or {}).get("content", ())
            ]
            assert "</think>" in [token["token"] for token in others]
            assert len(tokens) + len(others) == len(written())


def test_a_client_that_asks_for_ids_gets_them() -> None:
    """As the server sends them; one that is shown no thinking gets none, and nobody else does, whoever asked."""
    with upstream() as server, serving(server) as running:
        show_raw(server, running)
        said = say(server, plain())
        for stream in (True, False):
            raw = told(running, stream=stream, return_token_ids=True)[1]
            assert '"token_ids":' in raw
            assert '"prompt_token_ids":' in raw
            hidden = body_of("chat", model=MODEL, stream=stream, return_token_ids=True)
            dropped = post(running.url, CHAT, hidden, headers={"X-Asides-Reasoning": "drop"}).text
            assert "token_ids" not in dropped
        assert said.asked == [True] * 4
    with upstream() as server, serving(server, token_ids=False, extra_body={"return_token_ids": True}) as running:
        say(server, plain())
        for stream in (True, False):
            assert "token_ids" not in told(running, stream=stream)[1]


def test_calls_in_ids() -> None:
    """A call that the model writes is read by ids; one that the server has read is passed on, its ids left out."""
    known = vocabulary()
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    function = 'function<｜tool▁sep｜>f\n```json\n{"a": 1}\n```'
    call = f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{function}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ids = known.tokenizer.encode(call, add_special_tokens=False).ids
    with upstream() as server, serving(server) as running:
        show_raw(server, running)
        say(server, [*known.encode("Hm."), CLOSE, *ids, STOP])
        reply = post(running.url, CHAT, body_of("chat", model=MODEL, tools=tools)).json()["choices"][0]
        assert [each["function"]["name"] for each in reply["message"]["tool_calls"]] == ["f"]
        assert reply["finish_reason"] == "tool_calls"
        streamed = post(running.url, CHAT, body_of("chat", model=MODEL, tools=tools, stream=True)).text
        assert '"name":"f"' in streamed
        opener = ids[0]
        separated = {"index": 0, "id": "c", "type": "function", "function": {"name": "g", "arguments": "{}"}}
        frames = [
            {"index": 0, "delta": {"content": "Hm."}, "token_ids": known.encode("Hm.")},
            {"index": 0, "delta": {"content": "</think>"}, "token_ids": [CLOSE]},
            {"index": 0, "delta": {"content": ""}, "token_ids": [opener, *ids[1:]]},
            {"index": 0, "delta": {"tool_calls": [separated]}, "token_ids": []},
            {"index": 0, "delta": {}, "finish_reason": "tool_calls", "token_ids": [STOP]},
        ]
        lines = [b"data: " + json.dumps({"id": "1", "choices": [frame]}).encode() + b"\n\n" for frame in frames]
        server.send(Reply([*lines, b"data: [DONE]\n\n"]))
        streamed = post(running.url, CHAT, body_of("chat", model=MODEL, tools=tools, stream=True)).text
        assert '"name":"g"' in streamed
        assert '"name":"f"' not in streamed
        assert "token_ids" not in streamed
        running.wait_for_record(lambda record: "separates thoughts or calls" in record.get("message", ""))


def test_who_is_not_asked() -> None:
    """Where the server itself looks for stop strings its text is shorter than its ids; plain completions may repeat
    their prompt. Where the gateway looks for the strings, ids are asked for."""
    with upstream() as server, serving(server) as running:
        show_raw(server, running)
        said = say(server, plain())
        told(running, stream=False, stop=["zzz"], reasoning_effort="none")
        post(running.url, "/v1/completions", body_of("completions", model=MODEL))
        assert said.asked == [False, False]
        assert told(running, stream=True, stop=["ur"])[0] == [("Hm.", "Fo")]
        assert said.asked[2:] == [True]
