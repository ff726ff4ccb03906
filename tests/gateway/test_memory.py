"""Clients that drop thinking between tool turns are healed, and no conversation ever sees another's thoughts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.gateway.clients import ask, body_of, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Upstream, upstream

QUESTION = "What is the weather in Zürich?"
ARGUMENTS = {"query": "weather", "limit": 3}
CALL = '<tool_call>\n{"name": "find", "arguments": {"query": "weather", "limit": 3}}\n</tool_call>'
SECRET = "The user said that the vault's number is 4711."


class House(NamedTuple):
    """A gateway before one upstream."""

    gateway: Gateway
    upstream: Upstream


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """One for all tests of this file."""
    with upstream() as server, gateway(None, "--upstream", server.url, "--format", "qwen3") as running:
        yield House(running, server)


@pytest.fixture(autouse=True)
def _forget(house: House) -> None:
    house.upstream.forget()


def called(house: House, secret: str = SECRET, *, key: str = "sk-a", question: str = QUESTION, **fields: Any) -> str:
    """A first turn in which the model thinks and calls; the id of its call."""
    house.upstream.say(f"<think>{secret}</think>\n\n{CALL}")
    seen = ask("chat", house.gateway.url, question=question, tools=True, key=key, **fields)
    assert seen.thinking == secret
    id: str = seen.raw.choices[0].message.tool_calls[0].id
    return id


def history(id: str, question: str = QUESTION, arguments: Any = None, name: str = "find") -> list[dict[str, Any]]:
    """The turns that a client sends back when it drops thinking."""
    function = {"name": name, "arguments": json.dumps(ARGUMENTS if arguments is None else arguments)}
    return [
        {"role": "user", "content": question},
        {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": id, "content": "sunny"},
    ]


def sent_back(house: House, messages: list[dict[str, Any]], key: str = "sk-a", **fields: Any) -> list[Any]:
    """The messages that the upstream gets when these are sent."""
    house.upstream.say("It is sunny.")
    ask("chat", house.gateway.url, key=key, **{"messages": messages, **fields})
    found: list[Any] = house.upstream.question().body["messages"]
    return found


def test_thoughts_come_back(house: House) -> None:
    """A client that sends its call back without the thinking: the upstream gets it as if it had been sent."""
    messages = sent_back(house, history(called(house)))
    assert messages[1]["reasoning_content"] == SECRET
    assert messages[1]["tool_calls"][0]["function"]["name"] == "find"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_after_streams_too(house: House, stream: bool) -> None:
    """Whether the first turn was streamed makes no difference, nor whether the client was shown the thinking."""
    secret = f"streamed {stream}"
    house.upstream.say(f"<think>{secret}</think>\n\n{CALL}")
    question = f"stream {stream}?"
    ask("chat", house.gateway.url, stream=stream, question=question, headers={"X-Asides-Reasoning": "drop"}, tools=True)
    messages = sent_back(house, history("x", question), key="sk-client")
    assert messages[1]["reasoning_content"] == secret


def test_ids_do_not_matter(house: House) -> None:
    """A client may send back another id, or none, and the arguments in another order."""
    called(house)
    assert sent_back(house, history("another"))[1]["reasoning_content"] == SECRET
    turned = history("another", arguments={"limit": 3, "query": "weather"})
    assert sent_back(house, turned)[1]["reasoning_content"] == SECRET


def test_what_a_client_sends_wins(house: House) -> None:
    """A client that sends thinking back is believed."""
    messages = history(called(house))
    messages[1]["reasoning_content"] = "Mine."
    assert sent_back(house, messages)[1]["reasoning_content"] == "Mine."


def test_in_every_dialect(house: House) -> None:
    """Whichever dialect the client speaks, what it drops is put back."""
    house.upstream.say(f"<think>{SECRET}</think>\n\n{CALL}")
    url = house.gateway.url
    ask("messages", url, question="anthropic?", tools=True)
    ask("ollama_chat", url, question="ollama?", tools=True)
    ask("responses", url, question="responses?", tools=True)
    house.upstream.say("Sunny.")
    tool_use = {"type": "tool_use", "id": "toolu_1", "name": "find", "input": ARGUMENTS}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}
    turns = [
        {"role": "user", "content": "anthropic?"},
        {"role": "assistant", "content": [tool_use]},
        {"role": "user", "content": [result]},
    ]
    ask("messages", url, messages=turns)
    assert house.upstream.question().body["messages"][1]["reasoning_content"] == SECRET
    called = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "find", "arguments": ARGUMENTS}}],
    }
    turns = [{"role": "user", "content": "ollama?"}, called, {"role": "tool", "content": "sunny", "tool_name": "find"}]
    ask("ollama_chat", url, messages=turns)
    assert house.upstream.question().body["messages"][1]["reasoning_content"] == SECRET
    items = [
        {"role": "user", "content": "responses?"},
        {"type": "function_call", "call_id": "c", "name": "find", "arguments": json.dumps(ARGUMENTS)},
        {"type": "function_call_output", "call_id": "c", "output": "sunny"},
    ]
    ask("responses", url, input=items)
    assert house.upstream.question().body["messages"][1]["reasoning_content"] == SECRET


def test_nobody_sees_anothers_thoughts(house: House) -> None:
    """The same calls and ids from another client, model or conversation never bring a thought that is not theirs."""
    id = called(house, key="sk-a")
    strangers = [
        (history(id), {"key": "sk-b"}),
        (history(id), {"key": "sk-a2"}),
        (history(id), {"key": "sk-"}),
        (history(id), {"model": "other"}),
        (history(id, "What is the weather in Bern?"), {}),
        (history(id, QUESTION + " "), {}),
        (history(id, arguments={"query": "weather"}), {}),
        (history(id, arguments={}), {}),
        (history(id, name="open"), {}),
    ]
    for messages, fields in strangers:
        sent = sent_back(house, messages, **fields)
        assert SECRET not in json.dumps(sent), (messages, fields)
    assert sent_back(house, history(id))[1]["reasoning_content"] == SECRET


def test_credentials_by_any_header(house: House) -> None:
    """A client is known by its key, whichever header it shows it in; without one it is nobody else."""
    called(house, key="sk-a")
    body = body_of("chat", messages=history("x"))
    for headers, known in (
        ({"x-api-key": "sk-a"}, True),
        ({"api-key": "sk-a"}, True),
        ({"Authorization": "Bearer sk-a"}, True),
        ({"Authorization": "Bearer sk-b"}, False),
        ({"x-api-key": "sk-b"}, False),
        ({}, False),
    ):
        house.upstream.say("Sunny.")
        assert post(house.gateway.url, "/v1/chat/completions", body, headers=headers).status_code == 200
        assert (SECRET in house.upstream.question().raw.decode()) is known, headers


def test_two_conversations_at_once(house: House) -> None:
    """Two clients whose model makes the same call with the same id, each with a thought of its own."""
    called(house, "Thought of A.", key="sk-a", question="Same?")
    called(house, "Thought of B.", key="sk-b", question="Same?")
    assert sent_back(house, history("call_1", "Same?"), key="sk-a")[1]["reasoning_content"] == "Thought of A."
    assert sent_back(house, history("call_1", "Same?"), key="sk-b")[1]["reasoning_content"] == "Thought of B."


def test_the_same_words_in_another_conversation(house: House) -> None:
    """One key may serve many people: what was said before, and the system's words, tell their conversations apart."""
    first = {"role": "system", "content": "You serve Alice, whose vault's number is 4711."}
    other = {"role": "system", "content": "You serve Bob."}
    earlier = [{"role": "user", "content": "I am Alice."}, {"role": "assistant", "content": "Hello."}]
    later = [{"role": "user", "content": "I am Bob."}, {"role": "assistant", "content": "Hello."}]
    question = {"role": "user", "content": "Go on."}
    called(house, messages=[first, *earlier, question])
    turns = history("x", "Go on.")
    assert sent_back(house, [first, *earlier, *turns])[4]["reasoning_content"] == SECRET
    for before in ([other, *later], [first, *later], [other, *earlier], earlier, []):
        assert SECRET not in json.dumps(sent_back(house, [*before, *turns])), before


def test_a_turn_without_calls_is_not_kept(house: House) -> None:
    """Only thoughts before calls are kept: no model wants the others back."""
    house.upstream.say(f"<think>{SECRET}</think>\n\nHello.")
    ask("chat", house.gateway.url, question="Hi?", key="sk-a")
    turns = [
        {"role": "user", "content": "Hi?"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Bye?"},
    ]
    assert SECRET not in json.dumps(sent_back(house, turns))


def test_the_memory_is_bounded() -> None:
    """The oldest go first."""
    with upstream() as server:
        config = {"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}, "cache": {"entries": 2}}
        with gateway(config) as running:
            house = House(running, server)
            questions = [f"Question {number}?" for number in range(3)]
            for question in questions:
                called(house, f"Thought of {question}", question=question)
            sent = [sent_back(house, history("x", question))[1] for question in questions]
            assert [message.get("reasoning_content", "") for message in sent] == [
                "",
                "Thought of Question 1?",
                "Thought of Question 2?",
            ]
