"""The cells of the table: what each column asserts of what a client showed and of what reached the model's server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.clients.driving import Shown
from tests.clients.model import (
    ANSWER,
    CALLS_THOUGHT,
    LAST_ANSWER,
    THOUGHT,
    VALUE,
    Call,
    found,
)

Bodies = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Observed:
    """All that is known of one client's run."""

    shown: Mapping[str, Sequence[Shown]]
    """By case, what the client showed."""
    asked: Mapping[str, Bodies]
    """By case, the requests that reached the model's server."""
    calls: Sequence[Call]
    """What the model called."""
    errors: tuple[str, str]
    messages: tuple[str, str]
    """The client's own errors, as in the catalogue."""


def _ran(shown: Sequence[Shown]) -> None:
    assert shown, "nothing was shown"
    for each in shown:
        assert not each.failed, each.failed


def thinking_seen(seen: Observed) -> None:
    """Every plain reply shows the thought, all of it and nothing else."""
    _ran(seen.shown["plain"])
    for shown in seen.shown["plain"]:
        assert shown.thinking.strip() == THOUGHT, f"thinking is {shown.thinking!r}"


def answer_clean(seen: Observed) -> None:
    """Every plain reply has the answer and nothing else."""
    _ran(seen.shown["plain"])
    for shown in seen.shown["plain"]:
        assert shown.text.strip() == ANSWER, f"the answer is {shown.text!r}"


def parallel_calls(seen: Observed) -> None:
    """Both calls are run, both results reach the model in the order of the calls, and its answer to them is clean."""
    _ran(seen.shown["calls"])
    (shown,) = seen.shown["calls"]
    assert [tuple(call) for call in shown.calls] == list(seen.calls), f"the calls are {shown.calls!r}"
    kept = [len(message.get("tool_calls") or ()) for message in _second(seen) if message["role"] == "assistant"]
    assert kept == [2], f"the calls of each turn that went back: {kept}"
    results = [json.dumps(message["content"]) for message in _second(seen) if message["role"] == "tool"]
    for result, city in zip(results, ("Rome", "Oslo"), strict=True):
        assert found(city) in result, f"the results are {results}"
    assert shown.text.strip() == LAST_ANSWER, f"the last answer is {shown.text!r}"


def second_turn_keeps_reasoning(seen: Observed) -> None:
    """The request with the results holds what the model thought before its calls."""
    (turn,) = [message for message in _second(seen) if message["role"] == "assistant"]
    assert (turn.get("reasoning_content") or "").strip() == CALLS_THOUGHT, f"the turn that went back is {turn}"


def _second(seen: Observed) -> list[dict[str, Any]]:
    """The messages of the request that has results."""
    turns = [body["messages"] for body in seen.asked["calls"]]
    with_results = [turn for turn in turns if any(message["role"] == "tool" for message in turn)]
    assert with_results, f"no request had results: {[shown.failed for shown in seen.shown['calls']]}"
    messages: list[dict[str, Any]] = with_results[0]
    return messages


def structured_output(seen: Observed) -> None:
    """The client's own parser gives the value, and the schema has reached the model's server."""
    _ran(seen.shown["structured"])
    (shown,) = seen.shown["structured"]
    assert shown.value == VALUE, f"the value is {shown.value!r}"
    schemas = [json.dumps([body.get("response_format"), body.get("tools")]) for body in seen.asked["structured"]]
    assert any('"people"' in schema for schema in schemas), "the schema did not reach the server"


def errors(seen: Observed) -> None:
    """A 429 and a 400 of the model's server arrive as the client's own errors, with the server's message."""
    for case, status, message, name in zip(("limited", "refused"), (429, 400), seen.messages, seen.errors, strict=True):
        (shown,) = seen.shown[case]
        assert not shown.failed, shown.failed
        assert not name or name in shown.errors, f"{status} arrived as {shown.errors}"
        assert shown.status in (None, status), f"{status} arrived as {shown.status}"
        assert message in shown.message, f"{status} arrived with the message {shown.message!r}"


COLUMNS: dict[str, Callable[[Observed], None]] = {
    "thinking seen": thinking_seen,
    "answer clean": answer_clean,
    "parallel calls": parallel_calls,
    "second turn keeps reasoning": second_turn_keeps_reasoning,
    "structured output": structured_output,
    "errors": errors,
}


def judge(seen: Observed) -> dict[str, str]:
    """By column, why its assertion failed; empty where it held."""
    reasons = {}
    for name, check in COLUMNS.items():
        try:
            check(seen)
            reasons[name] = ""
        except (AssertionError, ValueError) as error:
            reasons[name] = str(error).splitlines()[0] if str(error) else type(error).__name__
    return reasons
