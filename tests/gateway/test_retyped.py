"""Replies that turn out to have begun in a thought, through the gateway: what each client gets, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from asides import _history as history
from asides import parse
from asides._config.schema import ReplayCacheSettings
from asides._gateway.replay_cache import ConversationHash, ReplayCache, ReplayEntry
from asides.dialects._request import Request, RequestTurn, TextPiece, ThinkingPiece
from asides.reply import Reply
from tests.gateway import upstream
from tests.gateway.clients import KEY, PATHS, WITH_TOOLS, Dialect, ask, body_of, events, post
from tests.gateway.servers import Servers, serving
from tests.gateway.sockets import connected
from tests.gateway.upstream import Close, Hang, Reset, Step, frame
from tests.waiting import eventually

THOUGHT = "Two and two, that is four."
RAW = f"{THOUGHT}\n</think>\n\nIt is 4."
SENT = f"{THOUGHT}\n\nIt is 4."
CALL = '<tool_call>\n{"name": "find", "arguments": {"query": "x"}}\n</tool_call>'
STREAMED: tuple[Dialect, ...] = ("chat", "messages", "ollama_chat")
"""The APIs in which words cannot be taken back."""
AS_CLIENT = {"authorization": f"Bearer {KEY}"}
"""As the SDKs ask here."""
_numbers = count()


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with serving() as found:
        yield found


@pytest.fixture
def model(servers: Servers) -> str:
    """A model of which nothing is known but its format: where its replies begin is learned."""
    servers.upstream.forget()
    return f"model-{next(_numbers)}"


def turns(*texts: Any) -> list[dict[str, Any]]:
    """A conversation, in the shape that all these APIs share."""
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]


def sent_on(servers: Servers, dialect: Dialect, model: str, messages: list[Any], **fields: Any) -> list[dict[str, Any]]:
    """The messages that the upstream gets when these are sent."""
    servers.upstream.say("Fine.")
    ask(dialect, servers.gateway.url, model=model, messages=messages, **fields)
    found: list[dict[str, Any]] = servers.upstream.question().body["messages"]
    return found


@pytest.mark.parametrize("dialect", STREAMED)
def test_it_comes_back_as_a_thought(servers: Servers, dialect: Dialect, model: str) -> None:
    """The client has it in its text and sends it back there. The model is not shown it as something that it said."""
    servers.upstream.say(RAW)
    seen = ask(dialect, servers.gateway.url, stream=True, model=model, question="2+2?")
    assert (seen.thinking, seen.text) == ("", SENT)
    found = sent_on(servers, dialect, model, turns("2+2?", seen.text, "Sure?"))
    assert [message["content"] for message in found] == ["2+2?", "It is 4.", "Sure?"]
    # Also where the client has changed its whitespace, and again with every later request.
    found = sent_on(servers, dialect, model, turns("2+2?", f" {seen.text.replace(' ', '  ')}\n", "Sure?", "Yes.", "?"))
    assert [message["content"] for message in found] == ["2+2?", "It  is  4.\n", "Sure?", "Yes.", "?"]


@pytest.mark.parametrize("dialect", STREAMED)
def test_before_a_call(servers: Servers, dialect: Dialect, model: str) -> None:
    """The thought is put back as that of the call, in front of it."""
    servers.upstream.say(f"{THOUGHT}\n</think>\n\nI look.\n{CALL}")
    seen = ask(dialect, servers.gateway.url, stream=True, model=model, question="2+2?", tools=True)
    assert (seen.thinking, seen.text.split()) == ("", f"{THOUGHT} I look.".split())
    assert [name for name, _ in seen.calls] == ["find"]
    servers.upstream.say("Fine.")
    function = {"name": "find", "arguments": '{"query": "x"}' if dialect == "chat" else {"query": "x"}}
    turn: dict[str, Any] = {
        "role": "assistant",
        "content": seen.text,
        "tool_calls": [{"id": "c", "function": function}],
    }
    result: dict[str, Any] = {"role": "tool", "tool_call_id": "c", "tool_name": "find", "content": "sunny"}
    if dialect == "chat":
        turn["tool_calls"][0]["type"] = "function"
        del result["tool_name"]
    elif dialect == "messages":
        use = {"type": "tool_use", "id": "c", "name": "find", "input": {"query": "x"}}
        turn = {"role": "assistant", "content": [{"type": "text", "text": seen.text}, use]}
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "sunny"}]}
    ask(dialect, servers.gateway.url, model=model, messages=[*turns("2+2?"), turn, result], tools=True)
    found = servers.upstream.question().body["messages"][1]
    assert (found["content"], found["reasoning_content"]) == ("I look.", THOUGHT)
    assert len(found["tool_calls"]) == 1


def test_what_was_not_sent_so_stays(servers: Servers, model: str) -> None:
    """A text that the client has changed, one of another conversation, model or client: nothing is taken from them."""
    servers.upstream.say(RAW)
    ask("chat", servers.gateway.url, stream=True, model=model, question="2+2?", key="sk-a")
    for text, fields in (
        (f"{SENT} And more.", {}),
        (SENT.replace("Two", "Three"), {}),
        ("It is 4.", {}),
        (THOUGHT, {}),
        (SENT, {"key": "sk-b"}),
        (SENT, {"model": f"{model}-b"}),
        (SENT, {"question": "2+3?"}),
    ):
        fields = {"model": model, "key": "sk-a", "question": "2+2?", **fields}
        question = fields.pop("question")
        found = sent_on(servers, "chat", messages=turns(question, text, "Sure?"), **fields)
        assert [message["content"] for message in found] == [question, text, "Sure?"]


def test_a_whole_reply_has_nothing_to_put_right(servers: Servers, model: str) -> None:
    """Its thought was never text. A text that says the same is the client's own."""
    servers.upstream.say(RAW)
    seen = ask("chat", servers.gateway.url, model=model, question="2+2?")
    assert (seen.thinking, seen.text) == (THOUGHT, "It is 4.")
    found = sent_on(servers, "chat", model, turns("2+2?", SENT, "Sure?"))
    assert found[1]["content"] == SENT


def test_each_of_several_choices(servers: Servers, model: str) -> None:
    """A client goes on from whichever it likes."""
    servers.upstream.say([RAW, RAW.replace("Two", "2").replace("is 4", "is four"), "<think>x</think>Four."])
    body = body_of("chat", model=model, n=3, stream=True)
    reply = post(servers.gateway.url, "/v1/chat/completions", body, headers=AS_CLIENT)
    texts = dict.fromkeys(range(3), "")
    retyped: dict[int, Any] = {}
    for found in events(reply.content)[:-1]:
        for choice in found["choices"]:
            texts[choice["index"]] += choice["delta"].get("content") or ""
            retyped[choice["index"]] = choice.get("retyped_characters", retyped.get(choice["index"]))
    assert texts == {0: SENT, 1: SENT.replace("Two", "2").replace("is 4", "is four"), 2: "Four."}
    assert retyped == {0: len(THOUGHT), 1: len(THOUGHT) - 2, 2: None}
    question = body_of("chat")["messages"][0]["content"]
    for number, said in enumerate(("It is 4.", "It is four.", "Four.")):
        found = sent_on(servers, "chat", model, turns(question, texts[number], "Sure?"))
        assert found[1]["content"] == said


def test_responses_hold_the_corrected_output(servers: Servers, model: str) -> None:
    """The last event has the thought as one, and so has what is sent back."""
    servers.upstream.say(RAW)
    body = {"model": model, "input": "2+2?", "stream": True}
    reply = events(post(servers.gateway.url, "/v1/responses", body).content)
    output = reply[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["reasoning", "message"]
    assert (output[0]["summary"][0]["text"], output[1]["content"][0]["text"]) == (THOUGHT, "It is 4.")
    servers.upstream.say("Fine.")
    again = [{"role": "user", "content": "2+2?"}, *output, {"role": "user", "content": "Sure?"}]
    post(servers.gateway.url, "/v1/responses", {"model": model, "input": again})
    assert [each["content"] for each in servers.upstream.question().body["messages"]] == ["2+2?", "It is 4.", "Sure?"]
    # A client that has put its turn together from the events of the stream.
    text = "".join(event["delta"] for event in reply if event["type"] == "response.output_text.delta")
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    again = [{"role": "user", "content": "2+2?"}, message, {"role": "user", "content": "Sure?"}]
    post(servers.gateway.url, "/v1/responses", {"model": model, "input": again})
    assert [each["content"] for each in servers.upstream.question().body["messages"]] == ["2+2?", "It is 4.", "Sure?"]


def test_who_wants_nothing_stored(servers: Servers, model: str) -> None:
    """Neither is this."""
    servers.upstream.say(RAW)
    body = {"model": model, "input": "2+2?", "stream": True, "store": False}
    post(servers.gateway.url, "/v1/responses", body, headers=AS_CLIENT)
    found = sent_on(servers, "chat", model, turns("2+2?", SENT, "Sure?"))
    assert json.dumps(SENT) in json.dumps(found)


def test_they_go_with_the_oldest() -> None:
    """They are bounded as all that the cache has, and a client that has none left pays nothing again."""
    cache = ReplayCache(ReplayCacheSettings(entries=2))
    asked = Request(dialect="openai_chat", model="m", turns=(RequestTurn("user", (TextPiece("?"),)),))
    here = ConversationHash("ann", asked, {}, asked.turns)
    reply = Reply.of(parse(RAW, "qwen3", start="text", retype=True))
    assert [notice.code for notice in reply.notices] == ["retyped"]
    cache.put_retyped(here, reply)
    again = Request(
        dialect="openai_chat", model="m", turns=(*asked.turns, RequestTurn("assistant", (TextPiece(SENT),)))
    )
    restored = cache.restore("ann", again, {})
    assert restored.hits == 1
    assert restored.request.turns[1].pieces == (ThinkingPiece(THOUGHT), TextPiece("It is 4."))
    for number in range(2):
        cache.add("ann", ReplayEntry("x", "", (), (b"%d" % number,)))
    assert cache.restore("ann", again, {}).request is again
    assert not cache._retyped


ENDS: dict[str, Step] = {"leaves": Hang(), "closed": Close(), "reset": Reset()}


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Servers, Path]]:
    """A gateway that keeps replies, and where."""
    store = tmp_path_factory.mktemp("kept") / "h.db"
    with serving(history={"save": True, "store": str(store)}) as found:
        yield found, store


@pytest.mark.parametrize("retyped", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("dialect", WITH_TOOLS)
def test_a_stream_that_ends_in_the_middle(
    keeping: tuple[Servers, Path], dialect: Dialect, end: str, retyped: bool
) -> None:
    """The client leaves, or the upstream is lost, after the words were retyped: what is kept has them as a thought.

    Before they were, they are the text that they were sent as. The client is told of the upstream's end either way.
    """
    servers, store = keeping
    model = f"{dialect}-{end}-{retyped}"
    pieces = [THOUGHT, "\n</thi", "nk>\n\n", "It is"] if retyped else [THOUGHT]
    servers.upstream.send(upstream.Reply([*(frame(piece, "chat") for piece in pieces), ENDS[end]]))
    with connected(servers.gateway.url) as client:
        client.post(PATHS[dialect], body_of(dialect, stream=True, model=model))
        if end == "leaves":
            client.read_until(b"It is" if retyped else b"four")
        else:
            seen = client.read_until(b"upstream")
            assert dialect == "responses" or seen.count(b"four") == 1, "nothing is sent twice"
    found: list[Reply] = []

    def look() -> bool:
        with history.open(str(store)) as opened:
            found[:] = [each.reply for each in opened.replies() if each.reply.model == model]
        return bool(found)

    eventually(look, "it was never kept")
    (cut,) = found
    assert cut.termination == "cut"
    assert (cut.thinking, cut.text) == ((THOUGHT, "It is") if retyped else ("", THOUGHT))
