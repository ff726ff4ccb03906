"""What every chat template wants of a request: results in order, one message of instructions, no billing line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.dialects import openai_chat
from asides.dialects._arrange import arrange, may_need_arranging
from asides.dialects._request import CallPiece, Request, RequestTurn, TextPiece

BILLING = "x-anthropic-billing-header: cc_version=2.1.197; cc_entrypoint=cli; cch=1f00a;"


def chat(*turns: RequestTurn) -> Request:
    """A request of these turns."""
    return Request(dialect="openai_chat", turns=turns)


def calls(*ids: str) -> RequestTurn:
    """A turn that calls."""
    return RequestTurn("assistant", tuple(CallPiece("f", "{}", id) for id in ids))


def result(id: str) -> RequestTurn:
    """The result of a call."""
    return RequestTurn("tool", (TextPiece(f"result of {id}"),), id)


def text(role: Any, *texts: str) -> RequestTurn:
    """A message."""
    return RequestTurn(role, tuple(map(TextPiece, texts)))


def ids(request: Request) -> list[str]:
    """The calls that its results answer, in order."""
    return [turn.call_id for turn in request.turns if turn.role == "tool"]


def test_a_request_that_is_in_order_is_the_same_object() -> None:
    """Nothing is copied, and nothing is reported."""
    request = chat(text("system", "S"), text("user", "q"), calls("a", "b"), result("a"), result("b"))
    found = arrange(request)
    assert found.request is request
    assert found.changes == ()


@given(st.permutations(["a", "b", "c", "d"]))
def test_results_come_in_the_order_of_their_calls(order: list[str]) -> None:
    """However they came; each is whole, and none is lost."""
    request = chat(text("user", "q"), calls("a", "b", "c", "d"), *map(result, order), text("user", "go on"))
    found = arrange(request)
    assert ids(found.request) == ["a", "b", "c", "d"]
    assert sorted(map(repr, found.request.turns)) == sorted(map(repr, request.turns))
    assert found.changes == (() if order == ["a", "b", "c", "d"] else ("results",))


def test_each_round_has_its_own_order() -> None:
    """An id that occurs in two rounds is looked for in its own."""
    turns = (calls("a", "b"), result("b"), result("a"), calls("b", "a"), result("a"), result("b"))
    assert ids(arrange(chat(*turns)).request) == ["a", "b", "b", "a"]


def test_calls_in_neighbouring_turns_are_one_round() -> None:
    """A client may write each call as a message of its own."""
    assert ids(arrange(chat(calls("a"), calls("b"), result("b"), result("a"))).request) == ["a", "b"]


def test_results_of_unknown_calls_stay() -> None:
    """Nobody knows where they belong."""
    turns = (calls("a", "b"), result("b"), result("x"), result("a"), result(""))
    assert ids(arrange(chat(*turns)).request) == ["a", "x", "b", ""]


def test_a_message_between_results_keeps_them_apart() -> None:
    """What a person said in between stays where it was."""
    turns = (calls("a", "b"), result("b"), text("user", "wait"), result("a"))
    assert arrange(chat(*turns)).changes == ()


@pytest.mark.parametrize(
    ("roles", "role"),
    [
        (("system", "system"), "system"),
        (("system", "developer"), "system"),
        (("developer", "system", "system"), "system"),
        (("developer", "developer"), "developer"),
    ],
)
def test_leading_instructions_become_one(roles: tuple[Any, ...], role: str) -> None:
    """In their order, with an empty line between them."""
    turns = [text(each, f"{number}") for number, each in enumerate(roles)]
    found = arrange(chat(*turns, text("user", "q"), text("system", "later")))
    joined = RequestTurn(role, (TextPiece("\n\n".join(map(str, range(len(roles))))),))  # type: ignore[arg-type]
    assert found.request.turns == (joined, text("user", "q"), text("system", "later"))
    assert found.changes == ("system",)


def test_pieces_with_fields_of_their_own_stay_apart() -> None:
    """Marks for a cache survive; the texts do not run into each other."""
    marked = TextPiece("A", {"cache_control": {"type": "ephemeral"}})
    first, second = (
        RequestTurn("system", (marked,), extra={"name": "x"}),
        RequestTurn("developer", (TextPiece("B"), TextPiece("C"))),
    )
    (found,) = arrange(chat(first, second)).request.turns
    assert found == RequestTurn("system", (marked, TextPiece("\n\nB"), TextPiece("C")), extra={"name": "x"})


@pytest.mark.parametrize(
    ("sent", "left"),
    [
        (("{}", "You are"), ("You are",)),
        (("{}\nYou are",), ("You are",)),
        (("{}\n\nYou are",), ("You are",)),
        (("{}\r\nYou are",), ("You are",)),
        (("{}You are",), ("You are",)),
        (("{} You are a=b",), ("You are a=b",)),
        (("x-anthropic-billing-header: cc_version=2; cch=0\nYou are",), ("You are",)),
        (("x-anthropic-billing-header:\nYou are",), ("You are",)),
    ],
)
def test_the_billing_line_is_dropped(sent: tuple[str, ...], left: tuple[str, ...]) -> None:
    """That line and nothing else, whether it is a block of its own or was joined to the next."""
    turns = (text("system", *(each.format(BILLING) for each in sent)), text("user", BILLING))
    found = arrange(chat(*turns))
    assert found.request.turns == (text("system", *left), text("user", BILLING))
    assert found.changes == ("billing",)


@pytest.mark.parametrize(
    "turns",
    [
        (text("system", f"You are\n{BILLING}"),),
        (text("system", "You are", BILLING),),
        (text("user", BILLING),),
        (text("system", "x-anthropic-billing-headers are lines"),),
        (text("system", f" {BILLING}"),),
    ],
)
def test_only_at_the_very_start(turns: tuple[RequestTurn, ...]) -> None:
    """Elsewhere it is somebody's text."""
    assert arrange(chat(*turns)).changes == ()


def test_instructions_of_the_line_alone_vanish() -> None:
    """An empty message is refused by some templates."""
    found = arrange(chat(text("system", BILLING), text("developer", "You are"), text("user", "q")))
    assert found.request.turns == (text("developer", "You are"), text("user", "q"))


def test_the_cheap_question_never_misses() -> None:
    """Whatever is changed was noticed in the bytes before."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answers = [{"role": "tool", "tool_call_id": id, "content": ""} for id in ("b", "a")]
    conversations: list[list[dict[str, Any]]] = [
        [{"role": "system", "content": BILLING}, {"role": "user", "content": "q"}],
        [{"role": "system", "content": "a"}, {"role": "developer", "content": "b"}],
        [{"role": "assistant", "tool_calls": [call, {**call, "id": "b"}]}, *answers],
    ]
    for messages in conversations:
        body = {"model": "m", "messages": messages}
        assert arrange(openai_chat.read_request(body)).changes
        assert may_need_arranging(json.dumps(body).encode())
        assert may_need_arranging(json.dumps(body, separators=(",", ":")).encode())
    assert not may_need_arranging(json.dumps({"messages": [{"role": "user", "content": "q"}]}).encode())
