"""`make fuzz-gateway`, a little of it: the first exchanges of one seed, always the same; and that it can fail.

A longer search is a job of its own; what it finds becomes a case here or beside here.
"""

from __future__ import annotations

import json

import pytest

from tests.gateway.clients import DIALECTS, Dialect
from tests.load.fuzz import ANSWER, THOUGHT, Answer, Exchange, make_exchange, problems_of, run

EXCHANGES = 200


def test_some_exchanges() -> None:
    """Each is answered with what the model said, or with an honest error; the log has no traceback."""
    outcome = run(7, iter(range(EXCHANGES)), 600.0)
    assert outcome.problems == []
    assert outcome.exchanges == EXCHANGES
    assert {name.split()[0] for name in outcome.counts} >= {"plain", "odd", "mutated", "broken", "error", "spoilt"}


def test_an_exchange_is_always_the_same() -> None:
    """Or nobody could look at what was found."""
    assert [make_exchange(3, number, "host").sent for number in range(50)] == [
        make_exchange(3, number, "host").sent for number in range(50)
    ]


RIGHT = {"message": {"reasoning_content": THOUGHT, "content": ANSWER}, "finish_reason": "stop"}
WRONG: dict[str, tuple[int, object]] = {
    "an error with 200": (200, {"error": {"message": "no"}}),
    "no choice": (200, {"choices": []}),
    "a reply with an error's status": (502, {"choices": [RIGHT]}),
    "another answer": (200, {"choices": [{**RIGHT, "message": {"reasoning_content": THOUGHT, "content": "5"}}]}),
    "no thought": (200, {"choices": [{**RIGHT, "message": {"content": ANSWER}}]}),
    "no reason": (200, {"choices": [{**RIGHT, "finish_reason": None}]}),
    "a failure of ours": (500, {"error": {"message": "no"}}),
    "a refusal of an ordinary request": (400, {"error": {"message": "no"}}),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_seen(name: str) -> None:
    """Each of these is a problem, and the right answer is none."""
    exchange = Exchange(1, 1, "chat", clean=True, kind="plain")
    status, body = WRONG[name]
    assert list(problems_of(exchange, Answer(status, json.dumps(body).encode(), complete=True)))
    assert list(problems_of(exchange, Answer(200, json.dumps({"choices": [RIGHT]}).encode(), complete=True))) == []
    assert list(problems_of(exchange, Answer(200, json.dumps({"choices": [RIGHT]}).encode(), complete=False)))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_that_just_ends_is_seen(dialect: Dialect) -> None:
    """Neither an end nor an error."""
    frame = {"type": "x", "choices": []}
    data = json.dumps(frame) + "\n" if dialect.startswith("ollama") else f"data: {json.dumps(frame)}\n\n"
    exchange = Exchange(1, 1, dialect, stream=True, clean=False, kind="mutated")
    assert list(problems_of(exchange, Answer(200, data.encode(), complete=True)))
