"""Clients that drop thinking between tool turns get it back, and no conversation ever sees another's thoughts."""

from __future__ import annotations

import cProfile
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from asides._config.schema import ReplayCacheSettings
from asides._gateway.replay_cache import ConversationHash, ReplayCache, ReplayEntry
from asides.dialects._request import CallPiece, Request, RequestTurn, TextPiece, ThinkingPiece
from asides.parts import Thinking, ToolCall
from asides.reply import Reply
from tests.gateway.clients import WITH_TOOLS, Dialect, ask, body_of, post
from tests.gateway.running import gateway
from tests.gateway.servers import Servers, serving
from tests.gateway.upstream import upstream

QUESTION = "What is the weather in Zürich?"
ARGUMENTS = {"query": "weather", "limit": 3}
CALL = '<tool_call>\n{"name": "find", "arguments": {"query": "weather", "limit": 3}}\n</tool_call>'
SECRET = "The user said that the vault's number is 4711."


def called(
    servers: Servers, secret: str = SECRET, *, key: str = "sk-a", question: str = QUESTION, **fields: Any
) -> str:
    """A first turn in which the model thinks and calls; the id of its call."""
    servers.upstream.say(f"<think>{secret}</think>\n\n{CALL}")
    seen = ask("chat", servers.gateway.url, question=question, tools=True, key=key, **fields)
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


def sent_back(servers: Servers, messages: list[dict[str, Any]], key: str = "sk-a", **fields: Any) -> list[Any]:
    """The messages that the upstream gets when these are sent."""
    servers.upstream.say("It is sunny.")
    ask("chat", servers.gateway.url, key=key, **{"messages": messages, **fields})
    found: list[Any] = servers.upstream.question().body["messages"]
    return found


def test_thoughts_come_back(servers: Servers) -> None:
    """A client that sends its call back without the thinking: the upstream gets it as if it had been sent."""
    messages = sent_back(servers, history(called(servers)))
    assert messages[1]["reasoning_content"] == SECRET
    assert messages[1]["tool_calls"][0]["function"]["name"] == "find"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "hiding",
    [{"headers": {"X-Asides-Reasoning": "drop"}}, {"reasoning_effort": "none"}],
    ids=["dropped", "refused"],
)
def test_after_streams_too(servers: Servers, stream: bool, hiding: dict[str, Any]) -> None:
    """Whether the first turn was streamed makes no difference, nor whether the client was shown the thinking."""
    secret = f"streamed {stream} {hiding}"
    servers.upstream.say(f"<think>{secret}</think>\n\n{CALL}")
    question = f"stream {stream} {hiding}?"
    seen = ask("chat", servers.gateway.url, stream=stream, question=question, tools=True, **hiding)
    assert not seen.thinking
    messages = sent_back(servers, history("x", question), key="sk-client")
    assert messages[1]["reasoning_content"] == secret


def test_without_tools_where_calls_are_always_read() -> None:
    """`calls: always`: what was thought before a call is kept, though the request names no tools."""
    with serving(defaults={"format": "qwen3", "calls": "always"}) as servers:
        servers.upstream.say(f"<think>{SECRET}</think>\n\n{CALL}")
        seen = ask("chat", servers.gateway.url, question=QUESTION, key="sk-a")
        id = seen.raw.choices[0].message.tool_calls[0].id
        assert sent_back(servers, history(id))[1]["reasoning_content"] == SECRET


def test_an_id_of_ours_is_enough(servers: Servers) -> None:
    """An id that the gateway made at random is known to its own conversation alone, whatever the client rewrote."""
    id = called(servers)
    assert sent_back(servers, history(id, "[summary of earlier turns]"))[1]["reasoning_content"] == SECRET


def test_another_id_does_not_matter(servers: Servers) -> None:
    """A client may send back another id, or none, and the arguments in another order."""
    called(servers)
    assert sent_back(servers, history("another"))[1]["reasoning_content"] == SECRET
    turned = history("another", arguments={"limit": 3, "query": "weather"})
    assert sent_back(servers, turned)[1]["reasoning_content"] == SECRET


def test_what_a_client_sends_wins(servers: Servers) -> None:
    """A client that sends thinking back is believed."""
    messages = history(called(servers))
    messages[1]["reasoning_content"] = "Mine."
    assert sent_back(servers, messages)[1]["reasoning_content"] == "Mine."


def test_in_every_dialect(servers: Servers) -> None:
    """Whichever dialect the client speaks, what it drops is put back."""
    servers.upstream.say(f"<think>{SECRET}</think>\n\n{CALL}")
    url = servers.gateway.url
    ask("messages", url, question="anthropic?", tools=True)
    ask("ollama_chat", url, question="ollama?", tools=True)
    ask("responses", url, question="responses?", tools=True)
    servers.upstream.say("Sunny.")
    tool_use = {"type": "tool_use", "id": "toolu_1", "name": "find", "input": ARGUMENTS}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}
    turns = [
        {"role": "user", "content": "anthropic?"},
        {"role": "assistant", "content": [tool_use]},
        {"role": "user", "content": [result]},
    ]
    ask("messages", url, messages=turns)
    assert servers.upstream.question().body["messages"][1]["reasoning_content"] == SECRET
    called = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "find", "arguments": ARGUMENTS}}],
    }
    turns = [{"role": "user", "content": "ollama?"}, called, {"role": "tool", "content": "sunny", "tool_name": "find"}]
    ask("ollama_chat", url, messages=turns)
    assert servers.upstream.question().body["messages"][1]["reasoning_content"] == SECRET
    items = [
        {"role": "user", "content": "responses?"},
        {"type": "function_call", "call_id": "c", "name": "find", "arguments": json.dumps(ARGUMENTS)},
        {"type": "function_call_output", "call_id": "c", "output": "sunny"},
    ]
    ask("responses", url, input=items)
    assert servers.upstream.question().body["messages"][1]["reasoning_content"] == SECRET


def test_nobody_sees_anothers_thoughts(servers: Servers) -> None:
    """The same calls from another client, model, user or conversation never bring a thought that is not theirs."""
    id = called(servers, key="sk-a")
    strangers: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
        (history(id), {"key": "sk-b"}),
        (history(id), {"key": "sk-a2"}),
        (history(id), {"key": "sk-"}),
        (history(id), {"model": "other"}),
        (history("another", "What is the weather in Bern?"), {}),
        (history("another", QUESTION + " "), {}),
        (history("another", arguments={"query": "weather"}), {}),
        (history("another", arguments={}), {}),
        (history("another", name="open"), {}),
        (history("another"), {"user": "somebody"}),
        (history("another"), {"prompt_cache_key": "session-2"}),
        (history("another"), {"metadata": {"user_id": "somebody"}}),
    ]
    for messages, fields in strangers:
        sent = sent_back(servers, messages, **fields)
        assert SECRET not in json.dumps(sent), (messages, fields)
    assert sent_back(servers, history(id))[1]["reasoning_content"] == SECRET


def test_credentials_by_any_header(servers: Servers) -> None:
    """A client is known by its key, whichever header it shows it in; without one it is nobody else."""
    called(servers, key="sk-a")
    body = body_of("chat", messages=history("x"))
    for headers, known in (
        ({"x-api-key": "sk-a"}, True),
        ({"api-key": "sk-a"}, True),
        ({"Authorization": "Bearer sk-a"}, True),
        ({"Authorization": "Bearer sk-b"}, False),
        ({"x-api-key": "sk-b"}, False),
        ({}, False),
    ):
        servers.upstream.say("Sunny.")
        assert post(servers.gateway.url, "/v1/chat/completions", body, headers=headers).status_code == 200
        assert (SECRET in servers.upstream.question().raw.decode()) is known, headers


def test_two_conversations_at_once(servers: Servers) -> None:
    """Two clients whose model makes the same call with the same id, each with a thought of its own."""
    called(servers, "Thought of A.", key="sk-a", question="Same?")
    called(servers, "Thought of B.", key="sk-b", question="Same?")
    assert sent_back(servers, history("call_1", "Same?"), key="sk-a")[1]["reasoning_content"] == "Thought of A."
    assert sent_back(servers, history("call_1", "Same?"), key="sk-b")[1]["reasoning_content"] == "Thought of B."


def test_the_same_words_in_another_conversation(servers: Servers) -> None:
    """One key may serve many people: what was said before, and the system's words, tell their conversations apart."""
    first = {"role": "system", "content": "You serve Alice, whose vault's number is 4711."}
    other = {"role": "system", "content": "You serve Bob."}
    earlier = [{"role": "user", "content": "I am Alice."}, {"role": "assistant", "content": "Hello."}]
    later = [{"role": "user", "content": "I am Bob."}, {"role": "assistant", "content": "Hello."}]
    question = {"role": "user", "content": "Go on."}
    called(servers, messages=[first, *earlier, question])
    turns = history("x", "Go on.")
    assert sent_back(servers, [first, *earlier, *turns])[4]["reasoning_content"] == SECRET
    for before in ([other, *later], [first, *later], [other, *earlier], earlier, []):
        assert SECRET not in json.dumps(sent_back(servers, [*before, *turns])), before


def test_a_turn_without_calls_is_not_kept(servers: Servers) -> None:
    """Only thoughts before calls are kept: no model wants the others back."""
    servers.upstream.say(f"<think>{SECRET}</think>\n\nHello.")
    ask("chat", servers.gateway.url, question="Hi?", key="sk-a")
    turns = [
        {"role": "user", "content": "Hi?"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Bye?"},
    ]
    assert SECRET not in json.dumps(sent_back(servers, turns))


def test_the_cache_is_bounded() -> None:
    """The oldest go first."""
    with upstream() as server:
        config = {"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}, "replay_cache": {"entries": 2}}
        with gateway(config) as running:
            servers = Servers(running, server)
            questions = [f"Question {number}?" for number in range(3)]
            for question in questions:
                called(servers, f"Thought of {question}", question=question)
            sent = [sent_back(servers, history("x", question))[1] for question in questions]
            assert [message.get("reasoning_content", "") for message in sent] == [
                "",
                "Thought of Question 1?",
                "Thought of Question 2?",
            ]


# Conversations that differ only in what a tool answered.

OUTPUTS = {
    "qwen3": "<think>THOUGHT</think>" + CALL,
    "kimi_k2": "<think>THOUGHT</think><|tool_calls_section_begin|><|tool_call_begin|>functions.find:0"
    '<|tool_call_argument_begin|>{"query": "weather", "limit": 3}<|tool_call_end|><|tool_calls_section_end|>',
    "cohere": "<|START_THINKING|>THOUGHT<|END_THINKING|><|START_ACTION|>["
    '{"tool_call_id": "0", "tool_name": "find", "parameters": {"query": "weather", "limit": 3}}]<|END_ACTION|>',
}
"""How each model thinks and calls; the last two write ids that are the same in every conversation."""


@pytest.fixture(scope="module")
def families() -> Iterator[Servers]:
    """A gateway with a model of each of these formats, named after it."""
    with serving(models={format: {"format": format} for format in OUTPUTS}) as found:
        yield found


def turn_of(dialect: Dialect, id: str, result: str) -> list[dict[str, Any]]:
    """A call and its result, as a client that drops thinking sends them back."""
    arguments = json.dumps(ARGUMENTS)
    match dialect:
        case "chat":
            call = {"id": id, "type": "function", "function": {"name": "find", "arguments": arguments}}
            return [
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": id, "content": result},
            ]
        case "messages":
            return [
                {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "find", "input": ARGUMENTS}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result}]},
            ]
        case "responses":
            return [
                {"type": "function_call", "call_id": id, "name": "find", "arguments": arguments},
                {"type": "function_call_output", "call_id": id, "output": result},
            ]
    return [
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "find", "arguments": ARGUMENTS}}]},
        {"role": "tool", "content": result, "tool_name": "find"},
    ]


def id_of(dialect: Dialect, reply: Any) -> str:
    """The id of the call that a client was shown; Ollama's are shown none."""
    found = reply.model_dump()
    match dialect:
        case "chat":
            return str(found["choices"][0]["message"]["tool_calls"][0]["id"])
        case "messages":
            return str(next(block["id"] for block in found["content"] if block["type"] == "tool_use"))
        case "responses":
            return str(next(item["call_id"] for item in found["output"] if item["type"] == "function_call"))
    return ""


class Person:
    """One of several who share a key and ask the same, turn after turn."""

    def __init__(self, name: str, mail: str, question: str) -> None:
        self.name = name
        self.mail = mail
        self.turns: list[dict[str, Any]] = [{"role": "user", "content": question}]
        self.count = 0

    def go_on(self, families: Servers, format: str, dialect: Dialect, keeps_ids: bool) -> str:
        """One more turn; what the upstream was sent."""
        thought = f"{self.name} thinks {self.count}."
        families.upstream.forget()
        families.upstream.say(OUTPUTS[format].replace("THOUGHT", thought))
        sent: dict[str, Any] = {"input" if dialect == "responses" else "messages": self.turns}
        seen = ask(dialect, families.gateway.url, model=format, tools=True, **sent)
        assert seen.thinking == thought
        id = id_of(dialect, seen.raw) if keeps_ids else "x"
        self.turns += turn_of(dialect, id, self.mail if self.count == 0 else "nothing new")
        self.count += 1
        return families.upstream.question().raw.decode()


@pytest.mark.parametrize("keeps_ids", [True, False], ids=["ids", "no ids"])
@pytest.mark.parametrize("dialect", WITH_TOOLS)
@pytest.mark.parametrize("format", OUTPUTS)
def test_interleaved_conversations(families: Servers, format: str, dialect: Dialect, keeps_ids: bool) -> None:
    """Two people share key, prompt and question; only what a tool answered differs. Each gets their own thoughts."""
    question = f"Read my mail. {format} {dialect} {keeps_ids}"
    alice = Person("Alice", "The vault is 4711.", question)
    bob = Person("Bob", "Lunch at noon.", question)
    for turn in range(4):
        for person, other in ((alice, bob), (bob, alice)):
            sent = person.go_on(families, format, dialect, keeps_ids)
            assert other.mail not in sent
            # What was thought before the first result stands behind the same words in both conversations. Without an
            # id of ours it is the same conversation up to there, so the later thought serves both.
            first = 0 if keeps_ids and format == "qwen3" and dialect != "ollama_chat" else 1
            for number in range(first, turn):
                assert f"{person.name} thinks {number}." in sent
            for number in range(first, turn + 1):
                assert f"{other.name} thinks {number}." not in sent


def test_misses_are_counted(families: Servers) -> None:
    """And nothing nearby is taken instead."""
    person = Person("Carol", "Mail.", "Counted?")
    person.go_on(families, "qwen3", "chat", keeps_ids=False)
    person.turns[0]["content"] = "Counted, and changed?"
    assert "Carol thinks" not in person.go_on(families, "qwen3", "chat", keeps_ids=False)
    figures = httpx.get(f"{families.gateway.url}/metrics").text
    found = re.search(r"^asides_replay_cache_misses_total (\S+)$", figures, re.M)
    assert found is not None
    assert float(found[1]) == 1.0


# What a lookup costs.


def _cached(turns: list[RequestTurn], reply: Reply) -> tuple[ReplayCache, ReplayEntry]:
    """A cache that has this reply to these turns."""
    cache = ReplayCache(ReplayCacheSettings())
    asked = Request(dialect="ollama", model="m", turns=tuple(turns))
    entry = cache.put(ConversationHash("", asked, {}, asked.turns), reply, 0)
    assert entry is not None
    return cache, entry


CALLED = (ToolCall("find", '{"q":1}'), ToolCall("find", '{"q":2}'), ToolCall("find", '{"q":3}'))
THOUGHT = Reply(parts=(Thinking("Three."), *CALLED), thinking="Three.")


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("apart", [True, False], ids=["with results between", "results last"])
def test_a_turn_that_was_split_is_put_together(sizes: tuple[int, ...], apart: bool) -> None:
    """Strands sends parallel calls over Ollama's API as a message for each: the thought of all of them is theirs."""
    question = RequestTurn("user", (TextPiece("Three?"),))
    cache, _ = _cached([question], THOUGHT)
    calls = [CallPiece("find", call.arguments) for call in CALLED]
    messages, results = [], []
    for size in sizes:
        taken, calls = calls[:size], calls[size:]
        here = [RequestTurn("tool", (TextPiece(call.arguments),)) for call in taken]
        messages += [RequestTurn("assistant", tuple(taken)), *(here if apart else ())]
        results += [] if apart else here
    asked = Request(dialect="ollama", model="m", turns=(question, *messages, *results))
    found = cache.restore("", asked, {})
    assert (found.hits, found.misses) == (1, 0)
    first, second, *rest = found.request.turns
    assert (first, [turn.role for turn in rest]) == (question, ["tool"] * 3)
    assert second.pieces == (ThinkingPiece("Three."), *(CallPiece("find", call.arguments) for call in CALLED))


def test_calls_that_only_begin_alike_are_not_put_together() -> None:
    """Another second call, words between them, or a new question: the thought was not about these."""
    question = RequestTurn("user", (TextPiece("Three?"),))
    cache, _ = _cached([question], THOUGHT)
    first, second, third = (CallPiece("find", call.arguments) for call in CALLED)
    for others in (
        [(first,), (second,)],
        [(first,), (second,), (CallPiece("find", '{"q":4}'),)],
        [(first,), (TextPiece("And"), second), (third,)],
    ):
        asked = Request(
            dialect="ollama", model="m", turns=(question, *(RequestTurn("assistant", pieces) for pieces in others))
        )
        found = cache.restore("", asked, {})
        assert (found.hits, found.request) == (0, asked)


def test_a_question_that_is_repeated_counts_once() -> None:
    """Semantic-kernel asks again with each request until there is an answer; an answered question may be asked anew."""
    question = RequestTurn("user", (TextPiece("Three?"),))
    called = RequestTurn("assistant", tuple(CallPiece("find", call.arguments) for call in CALLED))
    result = RequestTurn("tool", (TextPiece("3"),))
    cache, _ = _cached([question], THOUGHT)
    again = Request(dialect="ollama", model="m", turns=(question, question, called, result))
    assert cache.restore("", again, {}).hits == 1
    later, _ = _cached([question, called, result], THOUGHT)
    again = Request(dialect="ollama", model="m", turns=(question, called, result, question, called, result))
    assert later.restore("", again, {}).hits == 1
    answered = RequestTurn("assistant", (TextPiece("Yes."),))
    again = Request(dialect="ollama", model="m", turns=(question, answered, question, called, result))
    assert cache.restore("", again, {}).hits == 0


def test_looking_up_is_linear() -> None:
    """Twice the turns are twice the bytes hashed, and no more than so many are looked up."""
    cache = ReplayCache(ReplayCacheSettings())

    def work(count: int) -> int:
        pieces = (CallPiece("find", '{"a": 1}'),)
        turns = [RequestTurn("user", (TextPiece("Go."),))]
        turns += [
            turn
            for _ in range(count)
            for turn in (RequestTurn("assistant", pieces), RequestTurn("tool", (TextPiece("r"),)))
        ]
        profile = cProfile.Profile()
        profile.enable()
        restored = cache.restore("key", Request(dialect="openai_chat", turns=tuple(turns)), {})
        profile.disable()
        assert (restored.hits, restored.misses) == (0, count)
        return sum(entry.callcount for entry in profile.getstats())

    small, large = work(2_000), work(4_000)
    assert large < 2.2 * small


def test_many_messages_are_refused_by_name() -> None:
    """Past the limit, before anything is made of them."""
    with upstream() as server, gateway({"upstreams": [{"url": server.url}], "limits": {"messages": 3}}) as running:
        for path, field in (
            ("/v1/chat/completions", "messages"),
            ("/v1/responses", "input"),
            ("/api/chat", "messages"),
        ):
            body = {"model": "m", field: [{"role": "user", "content": "hi"}] * 4}
            reply = post(running.url, path, body)
            assert reply.status_code == 400
            assert f"{field} has 4 entries; this gateway takes 3 (limits.messages)" in reply.text
        assert server.questions == []


@pytest.mark.parametrize("limits", [ReplayCacheSettings(entries=10), ReplayCacheSettings(characters=100)])
def test_nobody_drives_out_who_has_less(limits: ReplayCacheSettings) -> None:
    """One key thinks as much as it likes: only its own thoughts go, the oldest first."""
    cache = ReplayCache(limits)
    for number in range(3):
        cache.add("bob", ReplayEntry("0123456789", "", (), (b"b%d" % number,)))
    for number in range(50):
        cache.add("ann", ReplayEntry("0123456789", "", (), (b"a%d" % number,)))
    assert sorted(cache._by_key) == [*(b"a%d" % number for number in range(43, 50)), b"b0", b"b1", b"b2"]
