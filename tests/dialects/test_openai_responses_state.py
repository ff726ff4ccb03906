"""What the Responses API says of kept replies: requests that refer to them, documents, and answers about them."""

from __future__ import annotations

from typing import Any

import pytest

from asides.dialects import openai_responses as responses
from asides.dialects._request import RequestError, ThinkingPiece
from asides.dialects.openai_responses import _state as state
from asides.dialects.openai_responses._ids import input_id

TOKEN = "0123456789abcdef" * 2
RESPONSE = f"resp_{TOKEN}"
THOUGHT = {
    "id": f"rs_{TOKEN}_0",
    "type": "reasoning",
    "content": [{"type": "reasoning_text", "text": " Hm.\n\nSo \ud800"}],
}
ANSWER = {
    "id": f"msg_{TOKEN}_1",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "4"}],
}


def document(own: Any = ({"role": "user", "content": "2+2?"},)) -> dict[str, Any]:
    """What is kept of a reply, written and read again."""
    data = state.write_document({"id": RESPONSE, "output": [THOUGHT, ANSWER]}, list(own))
    return state.read_document(data)


def test_what_a_request_says() -> None:
    """It is stored unless it says no; null is as good as nothing."""
    assert state.read_recall({"input": "x"}) == (True, "", ())
    nothing = {"store": None, "previous_response_id": None, "conversation": None, "input": None}
    assert state.read_recall(nothing) == (True, "", ())
    items: list[Any] = [{"type": "item_reference", "id": "rs_1"}, {"role": "user"}, 5, None]
    asked = {"store": False, "previous_response_id": "resp_1", "input": items}
    assert state.read_recall(asked) == (False, "resp_1", ("rs_1",))
    for body, param in (
        ({"conversation": {"id": "conv_1"}}, "conversation"),
        ({"store": 1}, "store"),
        ({"previous_response_id": ["resp_1"]}, "previous_response_id"),
        ({"input": [{"type": "item_reference", "id": None}]}, "input[0].id"),
    ):
        with pytest.raises(RequestError) as caught:
            state.read_recall(body)
        assert caught.value.param == param


def test_a_request_that_stands_alone() -> None:
    """It says `store: false` and nothing else of the kind; all other requests are left as they are."""
    body = {"input": "x", "store": False}
    assert state.stands_alone(body, b"")
    assert body == {"input": "x"}
    for other in (
        {"input": "x"},
        {"store": True},
        {"store": None},
        {"store": 0},
        {"store": False, "previous_response_id": "resp_1"},
        {"store": False, "conversation": "conv_1"},
    ):
        before = dict(other)
        assert not state.stands_alone(other, b"")
        assert other == before
    assert not state.stands_alone({"store": False}, b'{"input":[{"type":"item_reference","id":"rs_1"}]}')


def test_a_chain_stands_before_the_input() -> None:
    """In the order of writing, and read as what a client sends back: every character of a thought is there."""
    body = {"model": "m", "store": True, "previous_response_id": RESPONSE, "input": "Sure?"}
    expanded, own = state.expand(body, [document()], {})
    assert own == [{"role": "user", "content": "Sure?"}]
    assert expanded == {"model": "m", "input": [{"role": "user", "content": "2+2?"}, THOUGHT, ANSWER, *own]}
    request = responses.read_request(expanded)
    assert [turn.role for turn in request.turns] == ["user", "assistant", "user"]
    thought = request.turns[1].pieces[0]
    assert isinstance(thought, ThinkingPiece)
    assert thought.text == " Hm.\n\nSo \ud800"
    assert body["previous_response_id"] == RESPONSE
    # Without any input of its own it is the chain alone; a body that refers to nothing is as it came.
    assert state.expand({"previous_response_id": RESPONSE}, [document()], {})[1] == []
    assert state.expand({"store": False, "input": 5, "tools": []}, [], {}) == ({"tools": [], "input": 5}, [])


def test_references_become_items() -> None:
    """Wherever they stand; one that the chain has already is refused."""
    reference = {"type": "item_reference", "id": ANSWER["id"]}
    expanded, own = state.expand({"input": [reference, {"role": "user", "content": "x"}]}, [], {ANSWER["id"]: ANSWER})  # type: ignore[dict-item]
    assert expanded["input"] == own == [ANSWER, {"role": "user", "content": "x"}]
    for twice in (reference, ANSWER):
        with pytest.raises(RequestError, match="previous_response_id brings already") as caught:
            state.expand({"input": [twice]}, [document()], {ANSWER["id"]: ANSWER})  # type: ignore[dict-item]
        assert caught.value.param == "input[0].id"


def test_finding_an_item() -> None:
    """By the id that it has, or by the one that a list gives it; as it was sent."""
    sent = [{"role": "user", "content": "2+2?"}, {"type": "message", "id": "msg_own", "role": "user", "content": []}]
    kept = document(sent)
    assert state.find_item(kept, THOUGHT["id"]) == THOUGHT  # type: ignore[arg-type]
    assert state.find_item(kept, input_id(RESPONSE, "message", 0)) == sent[0]
    assert state.find_item(kept, "msg_own") == sent[1]
    for other in ("msg_other", input_id(RESPONSE, "message", 1), input_id(RESPONSE, "reasoning", 0), ""):
        assert state.find_item(kept, other) is None


def test_lists() -> None:
    """Every item has an id, a type and parts; the reply's own output is not among them."""
    sent = [
        {"role": "assistant", "content": "Hello."},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"type": "reasoning", "summary": []},
    ]
    listed = state.list_items([document(sent)], {"order": ["asc"]})
    ids = [
        input_id(RESPONSE, kind, place) for place, kind in enumerate(("message", "function_call_output", "reasoning"))
    ]
    assert [item["id"] for item in listed["data"]] == ids
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == (ids[0], ids[2], False)
    assert listed["data"][0]["content"] == [{"type": "output_text", "text": "Hello.", "annotations": []}]
    assert [item.get("status") for item in listed["data"]] == ["completed", "completed", None]
    none = state.list_items([document(())], {})
    assert none == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}
    assert [item["id"] for item in state.list_items([document(sent)] * 2, {"limit": ["1"]})["data"]] == ids[2:]


def test_fetching() -> None:
    """The reply as it was; what a query asks for beside that is refused by name."""
    found = state.write_response(document(), {"include[]": ["reasoning.encrypted_content"], "stream": ["false"]})
    assert found == {"id": RESPONSE, "output": [THOUGHT, ANSWER]}
    for query, param in (({"stream": ["true"]}, "stream"), ({"starting_after": ["3"]}, "starting_after")):
        with pytest.raises(RequestError) as caught:
            state.write_response(document(), query)
        assert caught.value.param == param
    assert state.write_deleted("resp_1") == {"id": "resp_1", "object": "response", "deleted": True}
