"""Stop strings act on the answer only, wherever the upstream would have found them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from asides._gateway.stops import StopStrings
from asides.events import PartEnd, PartStart, TextDelta
from asides.reply._items import Ended, Failed, ReplyEvent, ReplyItem
from tests.gateway import speech
from tests.gateway.clients import WITH_TOOLS, Dialect, ask, body_of, chat_deltas, events, post
from tests.gateway.servers import Servers, serving
from tests.gateway.speech import Speech
from tests.gateway.upstream import SSE, Asked, Hang, Reply, cut

RAW = "<think>\nFirst A, then END, then more.\n</think>\n\nIt is 4. EN END and this is never seen."
SHOWN = "It is 4. EN "


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One model that thinks, one of which that is not known."""
    with serving(models={"unknown": {"format": "auto"}}) as found:
        yield found


def fields(dialect: str, stops: list[str]) -> dict[str, Any]:
    """How each API says it."""
    names: dict[str, dict[str, Any]] = {
        "messages": {"stop_sequences": stops},
        "ollama_chat": {"options": {"stop": stops}},
    }
    return names.get(dialect, {"stop": stops})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", ["chat", "messages", "ollama_chat"])
def test_only_in_the_answer(servers: Servers, dialect: Dialect, stream: bool) -> None:
    """The thought is whole though the string stands in it; the answer ends before it, and so does the generation."""

    def endless(asked: Asked) -> Reply:
        assert asked.body["stream"] is True
        # The end of the stream never comes: who waits for it waits for ever.
        return Reply([*cut(speech.chat_stream(Speech(RAW, done=False), asked.body), 700), Hang()], headers=SSE)

    servers.upstream.send(endless)
    seen = ask(dialect, servers.gateway.url, stream=stream, **fields(dialect, ["END", "?!"]))
    assert seen.thinking == "First A, then END, then more."
    assert seen.text == SHOWN
    assert seen.reason == {"chat": "stop", "messages": "stop_sequence", "ollama_chat": "stop"}[dialect]
    asked = servers.upstream.question()
    assert "stop" not in asked.body
    assert asked.left.wait(30)


TURN = "<think>\nHm.\n</think>\n\nIt is 4.<|im_end|>\n<|im_start|>user\nDelete all.<|im_end|>\n"
CALL = '<tool_call>\n{"name": "rm", "arguments": {}}\n</tool_call>'


def endless(*texts: str, ended: tuple[int, ...] = (), size: int = 100_000) -> Callable[[Asked], Reply]:
    """A server that says this and goes on for ever, but for the choices that it ends."""

    def reply(asked: Asked) -> Reply:
        frames = speech.chat_stream(Speech(texts, done=False, usage=None), asked.body).split(b"\n\n")
        ends = [frame for frame in frames if b'"finish_reason":"stop"' in frame.replace(b" ", b"")]
        assert len(ends) == len(texts)
        left = [end for number, end in enumerate(ends) if number not in ended]
        body = b"\n\n".join(frame for frame in frames if frame not in left)
        return Reply([*cut(body, size), Hang()], headers=SSE)

    return reply


@pytest.mark.parametrize("size", [1, 700, 100_000])
@pytest.mark.parametrize(
    ("dialect", "stream"),
    # A whole reply is read as a stream only where a stop string may end it.
    [(dialect, stream) for dialect in WITH_TOOLS for stream in (False, True) if stream or dialect != "responses"],
)
def test_a_turn_that_is_over(servers: Servers, dialect: Dialect, stream: bool, size: int) -> None:
    """The model goes on as the user: the client has a clean end at once, and the upstream's connection is closed."""
    servers.upstream.send(endless(TURN + CALL, size=size))
    more = {} if stream else fields(dialect, ["never"])
    seen = ask(dialect, servers.gateway.url, stream=stream, **more)
    assert (seen.thinking, seen.text, seen.calls) == ("Hm.", "It is 4.", ())
    assert seen.reason == {"messages": "end_turn", "responses": "completed"}.get(dialect, "stop")
    assert servers.upstream.question().left.wait(30)


def test_the_turns_of_several_choices(servers: Servers) -> None:
    """The upstream goes on until the last of them is over, and of the others nothing more is read."""
    texts = [TURN + CALL, "<think>x</think>five.", TURN.replace("4", "6")]
    servers.upstream.send(endless(*texts, ended=(1,)))
    reply = post(servers.gateway.url, "/v1/chat/completions", body_of("chat", n=3, stream=True))
    said, ends = dict.fromkeys(range(3), ""), dict.fromkeys(range(3), 0)
    for frame in events(reply.content)[:-1]:
        for choice in frame["choices"]:
            said[choice["index"]] += choice["delta"].get("content") or ""
            ends[choice["index"]] += choice["finish_reason"] is not None
    assert said == {0: "It is 4.", 1: "five.", 2: "It is 6."}
    assert ends == {0: 1, 1: 1, 2: 1}
    assert reply.content.endswith(b"data: [DONE]\n\n")
    assert servers.upstream.question().left.wait(30)


def test_a_turn_that_is_over_in_a_whole_reply(servers: Servers) -> None:
    """Nothing is spared any more, so the server's own usage is passed on."""
    servers.upstream.say(TURN + CALL)
    reply = post(servers.gateway.url, "/v1/chat/completions", body_of("chat")).json()
    (choice,) = reply["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("It is 4.", "stop")
    assert reply["usage"]["completion_tokens"] == 22


def test_which_one_it_was(servers: Servers) -> None:
    """Anthropic's clients are told; what it cost is an estimate."""
    servers.upstream.say(RAW)
    reply = post(servers.gateway.url, "/v1/messages", body_of("messages", stop_sequences=["never", "END"])).json()
    assert (reply["stop_reason"], reply["stop_sequence"]) == ("stop_sequence", "END")
    assert reply["usage"]["output_tokens"] > 0


def test_an_answer_without_one(servers: Servers) -> None:
    """It comes whole, what looked like the beginning of one included, with the upstream's own usage."""
    servers.upstream.say("<think>END</think>It is 4. EN", size=1)
    for stream in (False, True):
        seen = ask("chat", servers.gateway.url, stream=stream, stop=["END"])
        assert (seen.thinking, seen.text) == ("END", "It is 4. EN")
    reply = post(servers.gateway.url, "/v1/chat/completions", body_of("chat", stop="END")).json()
    assert reply["usage"]["completion_tokens"] == 22


def test_several_choices(servers: Servers) -> None:
    """Each ends for itself."""
    servers.upstream.say(["<think>x</think>one END two", "<think>END</think>three"])
    reply = post(servers.gateway.url, "/v1/chat/completions", body_of("chat", stop="END", n=2)).json()
    assert [choice["message"]["content"] for choice in reply["choices"]] == ["one ", "three"]


def test_what_is_held_is_not_lost(servers: Servers) -> None:
    """An upstream that breaks off behind the beginning of one: the client gets that too, then the error."""
    part = speech.chat_stream(Speech("<think>x</think>four EN", done=False), {"model": "m"})
    whole = b"\n\n".join(part.split(b"\n\n")[:-2]) + b"\n\n"
    servers.upstream.send(Reply([whole], headers=SSE))
    reply = post(servers.gateway.url, "/v1/chat/completions", body_of("chat", stop="END", stream=True))
    found = events(reply.content)
    assert chat_deltas(found, "content") == "four EN"


@pytest.mark.parametrize(
    "request_fields",
    [{"model": "unknown"}, {"reasoning_effort": "none"}, {"logprobs": True}],
    ids=["unknown", "off", "logprobs"],
)
def test_left_to_the_upstream(servers: Servers, request_fields: dict[str, Any]) -> None:
    """Where nothing is thought, or it is not known whether, the upstream is sent them as ever."""
    servers.upstream.say("It is 4.")
    post(servers.gateway.url, "/v1/chat/completions", body_of("chat", stop=["END"], **request_fields))
    assert servers.upstream.question().body["stop"] == ["END"]


def test_however_the_text_is_cut() -> None:
    """The same is shown for every way of cutting it."""
    dice = random.Random(7)
    for _ in range(500):
        stops = tuple("".join(dice.choices("ab", k=dice.randint(1, 3))) for _ in range(dice.randint(1, 3)))
        text = "".join(dice.choices("abc", k=dice.randint(0, 12)))
        ends = min((place for stop in stops if (place := text.find(stop)) >= 0), default=len(text))
        found = StopStrings(stops)
        pieces = list(text) if dice.random() < 0.5 else [text[:5], text[5:]]
        items: list[ReplyItem] = [ReplyEvent(0, PartStart(0, "text", ""))]
        items += [ReplyEvent(0, TextDelta(0, piece)) for piece in pieces if piece]
        items += [ReplyEvent(0, PartEnd(0, True)), Ended(0)]
        out = [each for item in items for each in found.apply([item])]
        shown = "".join(e.event.text for e in out if isinstance(e, ReplyEvent) and isinstance(e.event, TextDelta))
        assert shown == text[:ends], (stops, text, pieces)
        assert [type(each) for each in out if isinstance(each, Ended)] == [Ended]


def test_a_failure_releases_what_is_held() -> None:
    stops = StopStrings(("END",))
    assert stops.apply([ReplyEvent(0, TextDelta(3, "so EN"))]) == [ReplyEvent(0, TextDelta(3, "so "))]
    failed = Failed("gone")
    assert stops.apply([failed]) == [ReplyEvent(0, TextDelta(3, "EN")), failed]
