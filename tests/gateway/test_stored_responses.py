"""Stored Responses over a socket, with OpenAI's own SDK: gone on from, fetched, listed, deleted, forgotten."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from asides import _history as history
from asides._config.schema import Limits, ResponsesSettings
from asides._gateway.headers import fingerprint_of
from asides._gateway.refusals import Refusal
from asides._gateway.stored_responses import StoredResponses
from asides._history.entries import StoredEntry
from asides.dialects import openai_responses
from tests.gateway.clients import FUNCTION, KEY, events, get, post
from tests.gateway.servers import Servers, serving
from tests.gateway.speech import Speech
from tests.gateway.upstream import Gate, Reply
from tests.history import servers as databases
from tests.waiting import PATIENCE, eventually

THOUGHT = "<think>\nTwo and two…\n\nmakes 4, naïvely.</think>\n\nIt is 4."
CALL = '<think>I must look.</think>\n\n<tool_call>\n{"name": "find", "arguments": {"query": "x"}}\n</tool_call>'
TOOLS: list[Any] = [{"type": "function", "strict": False, **FUNCTION}]


@contextmanager
def sdk(servers: Servers, key: str = KEY) -> Iterator[openai.OpenAI]:
    """OpenAI's SDK, in front of the gateway."""
    http = openai.DefaultHttpxClient(verify=False)
    url = f"{servers.gateway.url}/v1"
    with openai.OpenAI(base_url=url, api_key=key, max_retries=0, timeout=PATIENCE, http_client=http) as client:
        yield client


@pytest.fixture
def client(servers: Servers) -> Iterator[openai.OpenAI]:
    """A client of a gateway with its defaults."""
    with sdk(servers) as found:
        yield found


def sent(servers: Servers) -> list[dict[str, Any]]:
    """The messages that the model was last sent."""
    found: list[dict[str, Any]] = servers.upstream.question().body["messages"]
    return found


def stored(response: Any) -> Any:
    """What a reply says of itself; the SDK does not know the field, and keeps it."""
    return response.model_extra["store"]


def ask_streamed(client: openai.OpenAI, **fields: Any) -> Any:
    """Ask for a stream, and return the reply that its last event holds."""
    with client.responses.stream(**fields) as stream:
        for event in stream:
            if event.type == "response.created":
                created = event.response.id
        final = stream.get_final_response()
    assert final.id == created
    return final


CONVERSATION = [
    {"role": "user", "content": "2+2?"},
    {"role": "assistant", "content": "It is 4.", "reasoning_content": "Two and two…\n\nmakes 4, naïvely."},
    {"role": "user", "content": "Sure?"},
]


@pytest.mark.parametrize("stream", [False, True])
def test_going_on_from_a_reply(servers: Servers, client: openai.OpenAI, stream: bool) -> None:
    """The chain's input and output stand before the new input, thinking exactly; instructions are not carried over."""
    servers.upstream.say(THOUGHT)
    ask: Any = ask_streamed if stream else lambda client, **fields: client.responses.create(**fields)
    first = ask(client, model="m", input="2+2?", instructions="Be brief.")
    assert (stored(first), first.previous_response_id, first.instructions) == (True, None, "Be brief.")
    second = ask(client, model="m", input="Sure?", previous_response_id=first.id)
    assert (second.previous_response_id, second.instructions) == (first.id, None)
    assert sent(servers) == CONVERSATION
    servers.upstream.say("Yes.")
    third = ask(client, model="m", input=[{"role": "user", "content": "Why?"}], previous_response_id=second.id)
    assert sent(servers) == [*CONVERSATION, *CONVERSATION[1:2], {"role": "user", "content": "Why?"}]
    # A conversation may branch.
    ask(client, model="m", input="Sure?", previous_response_id=first.id)
    assert sent(servers) == CONVERSATION
    assert len({first.id, second.id, third.id}) == 3
    found = client.responses.retrieve(second.id)
    assert found.model_dump() == second.model_dump() if not stream else found.output_text == second.output_text


def test_a_tool_loop_with_ids_alone(servers: Servers, client: openai.OpenAI) -> None:
    """As LangChain and openai-agents do it: only the tool's result is sent, and the model sees call and thought."""
    servers.upstream.say(CALL)
    first = client.responses.create(model="m", input="Find x.", tools=TOOLS)
    call = first.output[-1]
    assert call.type == "function_call"
    servers.upstream.say("Found.")
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "at home"}
    client.responses.create(model="m", input=[result], tools=TOOLS, previous_response_id=first.id)
    user, assistant, tool = sent(servers)
    assert user == {"role": "user", "content": "Find x."}
    assert assistant["reasoning_content"] == "I must look."
    assert assistant["tool_calls"][0]["id"] == call.call_id
    assert tool == {"role": "tool", "tool_call_id": call.call_id, "name": "find", "content": "at home"}


def test_references_to_items(servers: Servers, client: openai.OpenAI) -> None:
    """As the AI SDK does it by default: items that it has an id of are sent as references to them."""
    servers.upstream.say(CALL.replace("\n\n<tool_call>", "\n\nI look.\n\n<tool_call>"))
    first = ask_streamed(client, model="m", input="Find x.", tools=TOOLS)
    thought, message, call = first.output
    assert [item.type for item in first.output] == ["reasoning", "message", "function_call"]
    whole = {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "at home"}
    references = [{"type": "item_reference", "id": item.id} for item in (thought, message)]
    question = {"role": "user", "content": [{"type": "input_text", "text": "Find x."}]}
    second = client.responses.create(model="m", input=[question, *references, whole, result], tools=TOOLS)  # type: ignore[list-item]
    _, assistant, tool = sent(servers)
    assert (assistant["reasoning_content"], assistant["content"]) == ("I must look.", "I look.")
    assert assistant["tool_calls"][0]["function"]["name"] == "find"
    assert tool["content"] == "at home"
    # What is kept of it are the items themselves: it does not depend on the first reply any more.
    client.responses.delete(first.id)
    client.responses.create(model="m", input="And?", previous_response_id=second.id)
    assert sent(servers)[1]["reasoning_content"] == "I must look."
    listed = list(client.responses.input_items.list(second.id, order="asc"))
    assert [item.id for item in listed[1:3]] == [thought.id, message.id]


def test_an_item_of_the_input_by_reference(servers: Servers, client: openai.OpenAI) -> None:
    """A list of input items gives an id to each, and that is one to refer to."""
    first = client.responses.create(model="m", input=[{"role": "user", "content": "Remember 7."}])
    (item,) = client.responses.input_items.list(first.id)
    client.responses.create(model="m", input=[{"type": "item_reference", "id": item.id or ""}])
    assert sent(servers) == [{"role": "user", "content": "Remember 7."}]


def test_listing_what_a_reply_was_given(servers: Servers, client: openai.OpenAI) -> None:
    """Of the whole chain, the newest first unless asked otherwise, page by page."""
    servers.upstream.say(THOUGHT)
    first = client.responses.create(model="m", input="2+2?")
    second = client.responses.create(model="m", input="Sure?", previous_response_id=first.id)
    items = client.responses.input_items
    up: Any = items.list(second.id, order="asc")
    assert [item.type for item in up.data] == ["message", "reasoning", "message", "message"]
    assert up.data[0].model_dump(exclude={"id"}, exclude_none=True) == {
        "type": "message",
        "role": "user",
        "status": "completed",
        "content": [{"type": "input_text", "text": "2+2?"}],
    }
    assert [item.id for item in up.data[1:3]] == [item.id for item in first.output]
    ids = [item.id for item in up.data]
    assert len(set(ids)) == 4
    down = items.list(second.id)
    assert [item.id for item in down.data] == ids[::-1]
    page: Any = items.list(second.id, limit=3)
    assert (len(page.data), page.has_more, page.first_id, page.last_id) == (3, True, ids[3], ids[1])
    assert [item.id for item in page] == ids[::-1]  # the SDK asks for the next page by itself
    rest = items.list(second.id, limit=3, after=page.last_id)
    assert ([item.id for item in rest.data], rest.has_more) == ([ids[0]], False)
    assert items.list(second.id, after=ids[0] or "").data == []


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("limit=%C2%B2", "limit"),
        ("order=up", "order"),
        ("after=msg_1", "after"),
        ("before=msg_1", "before"),
        ("include[]=file_search_call.results", "include"),
    ],
)
def test_a_list_that_cannot_be(servers: Servers, client: openai.OpenAI, query: str, param: str) -> None:
    """A query that is not understood is refused by name, not ignored."""
    id = client.responses.create(model="m", input="2+2?").id
    reply = get(servers.gateway.url, f"/v1/responses/{id}/input_items?{query}", authorization=f"Bearer {KEY}")
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


def test_fetching_and_deleting(servers: Servers, client: openai.OpenAI) -> None:
    """As it was sent; deleted, it is gone for every use, and what went on from it can only be fetched."""
    servers.upstream.say(THOUGHT)
    first = client.responses.create(model="m", input="2+2?")
    second = client.responses.create(model="m", input="Sure?", previous_response_id=first.id)
    assert client.responses.retrieve(first.id).model_dump() == first.model_dump()
    assert client.responses.retrieve(first.id, include=["reasoning.encrypted_content"]).id == first.id
    with pytest.raises(openai.BadRequestError, match="stream"):
        client.responses.retrieve(first.id, stream=True)
    url, headers = f"{servers.gateway.url}/v1/responses/{first.id}", {"authorization": f"Bearer {KEY}"}
    assert httpx.head(url, headers=headers).status_code == 200
    deleted = httpx.delete(url, headers=headers)
    assert deleted.json() == {"id": first.id, "object": "response", "deleted": True}
    for attempt in (client.responses.retrieve, client.responses.delete, client.responses.input_items.list):
        with pytest.raises(openai.NotFoundError) as caught:
            attempt(first.id)
        assert caught.value.code == "not_found"
    assert client.responses.retrieve(second.id).id == second.id
    for previous in (first.id, second.id):
        with pytest.raises(openai.NotFoundError, match=first.id) as gone:
            client.responses.create(model="m", input="Why?", previous_response_id=previous)
        assert (gone.value.code, gone.value.param) == ("previous_response_not_found", "previous_response_id")
    with pytest.raises(openai.NotFoundError) as missing:
        client.responses.create(model="m", input=[{"type": "item_reference", "id": first.output[0].id or ""}])
    assert missing.value.param == "input"


def test_another_credential_finds_nothing(servers: Servers, client: openai.OpenAI) -> None:
    """Not forbidden, not found: it learns not even that the id exists. And it may have none of it deleted."""
    mine = client.responses.create(model="m", input="2+2?")
    with sdk(servers, "sk-other") as other:
        attempts: list[Any] = [
            lambda: other.responses.retrieve(mine.id),
            lambda: other.responses.delete(mine.id),
            lambda: other.responses.input_items.list(mine.id),
            lambda: other.responses.create(model="m", input="x", previous_response_id=mine.id),
            lambda: other.responses.create(
                model="m", input=[{"type": "item_reference", "id": mine.output[0].id or ""}]
            ),
        ]
        unknown = f"resp_{0:032x}"
        for attempt in attempts:
            with pytest.raises(openai.NotFoundError) as caught:
                attempt()
            assert caught.value.status_code == 404
        with pytest.raises(openai.NotFoundError) as never:
            other.responses.retrieve(unknown)
        with pytest.raises(openai.NotFoundError) as theirs:
            other.responses.retrieve(mine.id)
        assert never.value.message.replace(unknown, "") == theirs.value.message.replace(mine.id, "")
    assert client.responses.retrieve(mine.id).id == mine.id


def test_refused_by_name(servers: Servers, client: openai.OpenAI) -> None:
    """What is not spoken is a 400 that names the field; what is brought twice is, too."""
    first = client.responses.create(model="m", input="2+2?")
    refused: list[tuple[dict[str, Any], str]] = [
        ({"conversation": "conv_1"}, "conversation"),
        ({"background": True}, "background"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"store": "yes"}, "store"),
        ({"previous_response_id": 5}, "previous_response_id"),
        ({"input": [{"type": "item_reference"}]}, "input[0].id"),
        (
            {"previous_response_id": first.id, "input": [{"type": "item_reference", "id": first.output[0].id}]},
            "input[0].id",
        ),
    ]
    for fields, param in refused:
        body = {"model": "m", "input": "x", **fields}
        reply = post(servers.gateway.url, "/v1/responses", body, headers={"authorization": f"Bearer {KEY}"})
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text


@pytest.mark.parametrize("path", ["/cancel", "/x", "/input_items/x"])
def test_what_is_not_there(servers: Servers, path: str) -> None:
    """Other paths below a reply, and the list of all replies, are not answered."""
    assert get(servers.gateway.url, f"/v1/responses/resp_1{path}").status_code == 404
    assert httpx.delete(f"{servers.gateway.url}/v1/responses/resp_1{path}").status_code == 404
    reply = get(servers.gateway.url, "/v1/responses")
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


def test_a_stream_that_failed_or_was_left_is_not_kept(servers: Servers) -> None:
    """What was finished is kept, whoever has read it; what broke off is not."""
    body = {"model": "m", "input": "2+2?", "stream": True}
    headers = {"authorization": f"Bearer {KEY}"}
    gate = Gate()
    begun = b'data: {"id":"chatcmpl-1","model":"m","choices":[{"index":0,"delta":{"content":"It "}}]}\n\n'
    servers.upstream.send(Reply([begun, gate]))
    with httpx.stream("POST", f"{servers.gateway.url}/v1/responses", json=body, headers=headers) as reply:
        seen = next(chunk for chunk in reply.iter_bytes() if b"output_text.delta" in chunk)
    id = re.findall(rb'"id":"(resp_\w+)"', seen)[0].decode()
    assert servers.upstream.question().left.wait(PATIENCE)
    gate.open()
    assert get(servers.gateway.url, f"/v1/responses/{id}", **headers).status_code == 404
    servers.upstream.send(Reply([begun]))  # and then nothing
    failed = events(post(servers.gateway.url, "/v1/responses", body, headers=headers).content)[-1]
    assert failed["type"] == "response.failed"
    assert get(servers.gateway.url, f"/v1/responses/{failed['response']['id']}", **headers).status_code == 404


def test_an_upstream_that_does_not_stream(servers: Servers, client: openai.OpenAI) -> None:
    """The id of such a stream is as good."""
    whole = {"id": "chatcmpl-1", "model": "m", "choices": [{"message": {"content": "4"}, "finish_reason": "stop"}]}
    servers.upstream.send(Reply([json.dumps(whole).encode()], 200, {"Content-Type": "application/json"}))
    first = ask_streamed(client, model="m", input="2+2?")
    assert client.responses.retrieve(first.id).output_text == "4"


SECRETS = ("asked-in-secret", "thought-in-secret", "said-in-secret", "called-in-secret")
SECRET = (
    f"<think>{SECRETS[1]}</think>\n\n{SECRETS[2]}\n\n"
    f'<tool_call>\n{{"name": "find", "arguments": {{"query": "{SECRETS[3]}"}}}}\n</tool_call>'
)


def test_what_shall_not_be_stored_is_not_in_the_file(tmp_path: Path) -> None:
    """`store: false`: not fetched, not gone on from, not put back by the replay cache, and nowhere in the file.

    Not as history either, where the gateway keeps it.
    """
    history = {"store": str(tmp_path / "history.db"), "save": True}
    with serving(responses={"store": "history"}, history=history) as servers, sdk(servers) as client:
        servers.upstream.say(SECRET)
        fields: dict[str, Any] = {"model": "m", "input": SECRETS[0], "tools": TOOLS, "store": False}
        for made in (ask_streamed(client, **fields), client.responses.create(**fields)):
            assert stored(made) is False
            with pytest.raises(openai.NotFoundError):
                client.responses.retrieve(made.id)
            with pytest.raises(openai.NotFoundError):
                client.responses.create(model="m", input="x", previous_response_id=made.id, store=False)
            call = made.output[-1].model_dump(include={"type", "call_id", "name", "arguments"})
            result = {"type": "function_call_output", "call_id": call["call_id"], "output": "x"}
            again: list[Any] = [{"role": "user", "content": SECRETS[0]}, call, result]
            client.responses.create(model="m", input=again, tools=TOOLS, store=False)
            assert SECRETS[1] not in str(sent(servers))
        servers.upstream.say("Public.")
        kept = client.responses.create(model="m", input="kept-in-public")
        assert client.responses.retrieve(kept.id)
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"kept-in-public" in written
    assert not [secret for secret in SECRETS if secret.encode() in written]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store that several gateways may share."""
    if request.param == "sqlite":
        yield str(tmp_path / "history.db")
        return
    folder = databases.binaries()
    if folder is None:
        pytest.skip(databases.HOW)
    pytest.importorskip("psycopg", reason="psycopg is not here: pip install 'asides[postgres]'")
    with databases.server(folder) as address:
        yield address


def test_a_restart_keeps_what_is_in_the_store(place: str) -> None:
    """And two gateways of one store find each other's replies; what is deleted is deleted in it."""
    config = {"responses": {"store": "history"}, "history": {"store": place}}
    with serving(**config) as servers, sdk(servers) as client:
        servers.upstream.say(THOUGHT)
        first = ask_streamed(client, model="m", input="2+2?")
        with serving(**config) as others, sdk(others) as other:
            others.upstream.say("Yes.")
            second = other.responses.create(model="m", input="Sure?", previous_response_id=first.id)
            assert sent(others) == CONVERSATION
        assert client.responses.retrieve(second.id).output_text == "Yes."
    with serving(**config) as servers, sdk(servers) as client:
        client.responses.create(model="m", input="Why?", previous_response_id=second.id)
        assert sent(servers)[:3] == CONVERSATION
        with sdk(servers, "sk-other") as other, pytest.raises(openai.NotFoundError):
            other.responses.retrieve(first.id)
        client.responses.delete(first.id)
        with history.open(place, create=False) as store:
            rows = store._rows("SELECT id FROM entries")
        assert (first.id,) not in rows
        assert (second.id,) in rows


@pytest.mark.parametrize("store", ["memory", "history"])
def test_the_oldest_go_first(tmp_path: Path, store: str) -> None:
    """By number and by bytes. What is gone is a 404 that says so; what is too large is not kept, the log says that."""
    config = {"responses": {"store": store, "entries": 3, "size": 20_000}, "history": {"store": str(tmp_path / "h.db")}}
    with serving(**config) as servers, sdk(servers) as client:
        made = [client.responses.create(model="m", input=str(number)) for number in range(5)]
        for lost in made[:2]:
            with pytest.raises(openai.NotFoundError) as caught:
                client.responses.create(model="m", input="x", previous_response_id=lost.id)
            assert caught.value.code == "previous_response_not_found"
            with pytest.raises(openai.NotFoundError):
                client.responses.retrieve(lost.id)
        for kept in made[2:]:
            assert client.responses.retrieve(kept.id).id == kept.id
        large = [client.responses.create(model="m", input="x" * size) for size in (15_000, 15_001, 30_000)]
        assert large[2].output_text == "It is 4."
        for lost in (made[4], large[0], large[2]):
            with pytest.raises(openai.NotFoundError):
                client.responses.retrieve(lost.id)
        assert client.responses.retrieve(large[1].id)
        eventually(lambda: any("responses.size" in line for line in servers.gateway.lines), "no line in the log")


def test_nothing_is_kept_where_it_is_off() -> None:
    """`entries: 0`: the reply says that it is not stored, and its id is not known."""
    with serving(responses={"entries": 0}) as servers, sdk(servers) as client:
        made = client.responses.create(model="m", input="2+2?")
        assert stored(made) is False
        with pytest.raises(openai.NotFoundError):
            client.responses.create(model="m", input="x", previous_response_id=made.id)


def test_a_store_that_fails_costs_no_reply(tmp_path: Path) -> None:
    """It comes and waits, the log says so; what the store alone knows is a 503; past the bound none is stored."""
    path = tmp_path / "no.db"
    path.write_bytes(b"this is no database, and is longer than a header of one would be" * 9)
    settings = {"responses": {"store": "history", "entries": 2}, "history": {"store": str(path)}}
    with serving(**settings) as servers, sdk(servers) as client:
        made = client.responses.create(model="m", input="2+2?")
        assert (made.output_text, stored(made)) == ("It is 4.", True)
        eventually(lambda: "wait in memory" in servers.gateway.log, "no line")
        assert client.responses.retrieve(made.id).output_text == "It is 4."
        with pytest.raises(openai.InternalServerError) as caught:
            client.responses.retrieve("resp_elsewhere")
        assert (caught.value.status_code, caught.value.code) == (503, "store_unavailable")
        assert str(tmp_path) not in str(caught.value)
        second = client.responses.create(model="m", input="2+2?", previous_response_id=made.id)
        assert stored(second) is True
        third = client.responses.create(model="m", input="2+2?", previous_response_id=second.id)
        assert (third.output_text, stored(third)) == ("It is 4.", False)
        eventually(lambda: "as many wait for the store as may" in servers.gateway.log, "no line")
        servers.gateway.signal(signal.SIGKILL)  # else it would try for some seconds more


def test_a_database_that_is_away_for_a_while() -> None:
    """What was answered meanwhile is gone on from, fetched and deleted at once, and is in the database afterwards."""
    pytest.importorskip("psycopg")
    folder = databases.binaries()
    if folder is None:
        pytest.skip(databases.HOW)
    with databases.restartable(folder) as (address, stop, start):
        settings = {"responses": {"store": "history"}, "history": {"store": address}}
        with serving(**settings) as servers, sdk(servers) as client:
            before = client.responses.create(model="m", input="one")
            stop()
            made = [client.responses.create(model="m", input="two")]
            for _ in range(4):
                made.append(client.responses.create(model="m", input="more", previous_response_id=made[-1].id))
            assert [stored(each) for each in made] == [True] * 5
            assert client.responses.retrieve(made[2].id).id == made[2].id
            deleted = client.responses.create(model="m", input="gone")
            client.responses.delete(deleted.id)
            with pytest.raises(openai.InternalServerError):
                client.responses.retrieve(before.id)
            assert "asides_responses_waiting 5.0" in get(servers.gateway.url, "/metrics").text
            start()
            eventually(lambda: "that waited are in it" in servers.gateway.log, "they are not written")
            assert client.responses.create(model="m", input="x", previous_response_id=made[-1].id).output_text
        with history.open(address) as store:
            found = store.entries("response").find(fingerprint_of(KEY), [each.id for each in [before, *made]], 0)
            assert len(found) == 6
            assert not store.entries("response").find(fingerprint_of(KEY), [deleted.id], 0)


def test_a_conversation_has_its_bounds() -> None:
    """A chain may bring no more messages than a request may hold."""
    with serving(limits={"messages": 6}) as servers, sdk(servers) as client:
        servers.upstream.by_message["x"] = Speech("4")
        ids = [client.responses.create(model="m", input="x").id]
        for _ in range(2):
            ids.append(client.responses.create(model="m", input="x", previous_response_id=ids[-1]).id)
        assert len(sent(servers)) == 5
        with pytest.raises(openai.BadRequestError, match=r"limits\.messages"):
            client.responses.create(model="m", input="x", previous_response_id=ids[-1])


@pytest.mark.parametrize("store", ["memory", "history"])
def test_metrics(tmp_path: Path, store: str) -> None:
    """What was found, by a reply's id or an item's; what was not; what had to go; what there is."""
    config = {"responses": {"store": store, "entries": 2}, "history": {"store": str(tmp_path / "h.db")}}
    with serving(**config) as servers, sdk(servers) as client:
        made = [client.responses.create(model="m", input="2+2?") for _ in range(3)]
        item: Any = {"type": "item_reference", "id": made[1].output[0].id}
        client.responses.create(model="m", input=[item], store=False, previous_response_id=made[2].id)
        client.responses.input_items.list(made[2].id)
        with pytest.raises(openai.NotFoundError):
            client.responses.create(model="m", input="x", previous_response_id=made[0].id)
        for missing in (made[0].id, "resp_never"):
            with pytest.raises(openai.NotFoundError):
                client.responses.retrieve(missing)
        client.responses.delete(made[2].id)
        page = get(servers.gateway.url, "/metrics").text
        found = dict(re.findall(r"^asides_responses_(\w+) (\S+)$", page, re.MULTILINE))
        counted = {"hits_total": "4.0", "misses_total": "3.0", "evictions_total": "1.0", "entries": "1.0"}
        assert found == counted | {"waiting": "0.0"}


@pytest.mark.parametrize(
    "limits", [Limits(messages=1), Limits(body=30), Limits(values=5)], ids=["messages", "body", "values"]
)
def test_a_conversation_that_has_become_too_long(limits: Limits) -> None:
    """Each reply was within the limits; what they are together is not, and is refused before it is read."""
    api = openai_responses.KEPT

    async def work() -> None:
        kept = StoredResponses(ResponsesSettings(), "", limits)
        for number in range(2):
            previous = f"resp_{number - 1}" if number else ""
            await kept.entries.put(
                StoredEntry(id=f"resp_{number}", client="ann", data=b"[1,2,3,4]" * 2, previous=previous)
            )
        with pytest.raises(Refusal, match="longer than this gateway takes"):
            await kept.list_input(api, "ann", "resp_1", {})

    asyncio.run(work())


def test_items_that_are_too_much_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The replies that hold them are not read."""
    api = openai_responses.KEPT
    monkeypatch.setattr(api, "response_of", lambda id: id)

    async def work() -> None:
        kept = StoredResponses(ResponsesSettings(), "", Limits(body=30))
        for number in range(2):
            await kept.entries.put(StoredEntry(id=f"resp_{number}", client="ann", data=b"x" * 20))
        with pytest.raises(Refusal, match="longer than this gateway takes"):
            await kept._find_items(api, "ann", ["resp_0", "resp_1"])

    asyncio.run(work())
