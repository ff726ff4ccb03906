"""Every dialect says what becomes of each field of a `Request`, and its writer does that.

A field that is new in `Request` fails here once for each dialect whose table has no row for it, and once because it has
no sample: `SAMPLES` holds a value for each field, and each row is compared with what is written for a request that has
that value and for the same request without it.
"""

from __future__ import annotations

import importlib
from typing import Any

import msgspec
import pytest

from asides import dialects
from asides.dialects._base import Dialect
from asides.dialects._request import Request, RequestError, RequestTurn, TextPiece, ThinkingOptions, Tool
from asides.dialects._request_fields import LEFT_OUT, FieldTable, LeftOut, Moot, Refused

SAMPLES: dict[str, tuple[Any, ...]] = {
    "dialect": (),  # each request here has one, and another
    "model": ("m",),
    "turns": (
        (RequestTurn("user", (TextPiece("And?"),)),),
        (RequestTurn("tool", (TextPiece("no"),), "call_1", is_error=True),),
    ),
    "prompt": ("Say",),
    "tools": ((Tool("g"),),),
    "other_tools": (({"type": "web_search"},),),
    "hosted": (("tools[0].web_search",),),
    "tool_choice": ("required", "none", "function:f"),
    "parallel_calls": (False,),
    "thinking": (ThinkingOptions(think=False, show=False), ThinkingOptions(think=True, budget=2048, effort="low")),
    "stream": (True,),
    "include_usage": (True,),
    "choices": (2,),
    "max_tokens": (7,),
    "stop": (("END",),),
    "sampling": ({"temperature": 0.5}, {"seed": 5}),
    "response_format": ({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},),
    "logprobs": (True,),
    "top_logprobs": (3,),
    "template_arguments": ({"mood": "kind"},),
    "user": ("someone",),
    "extra": ({"x_own": 1},),
    "names": ({"max_tokens": "max_completion_tokens"}, {"turns": "prompt"}),
    "essential": (("x_essential",),),
    "echo": ({"store": True},),
}
"""For each field, values that ask for something."""
BESIDE: dict[str, dict[str, Any]] = {
    "include_usage": {"stream": True},
    "names": {"max_tokens": 7},
    "top_logprobs": {"logprobs": True},
}
"""What a request must have besides, so that the field means something."""

OF_ITS_OWN = {
    "dialect": "what it changes is what the other fields are compared for",
    "include_usage": "requests from other dialects always ask for it",
    "names": "only the dialect that filled it has several names",
    "other_tools": "`hosted` or `essential` names them for other dialects",
}
"""Fields that mean something only within a dialect, and why."""


def _table(dialect: Dialect) -> FieldTable:
    table = importlib.import_module(f"{dialect.__name__}._request").FIELDS  # type: ignore[attr-defined]  # a module
    assert isinstance(table, FieldTable)
    return table


def _requests(dialect: Dialect, attribute: str) -> list[tuple[Request, Request]]:
    """Requests without the field and with it, from the same dialect and from another."""
    bare = dialect.NAME == "completions"
    asked = {"prompt": "Hi"} if bare else {"turns": (RequestTurn("user", (TextPiece("Hi"),)),), "tools": (Tool("f"),)}
    plain = [
        Request(dialect=name, **{**asked, **beside})
        for name in (dialect.NAME, "another")
        for beside in ({}, BESIDE.get(attribute, {}))
    ]
    return [
        (request, msgspec.structs.replace(request, **{attribute: value}))
        for request in plain
        for value in SAMPLES[attribute]
    ]


def _outcome(dialect: Dialect, before: Request, request: Request) -> set[str]:
    """What became of the field by which two requests differ."""
    without, lost_already = _write(dialect, before)
    if without is None:
        return {"refused already"}
    body, lost = _write(dialect, request)
    if body is None:
        return {"refused"}
    found = ({"written"} if body != without else set()) | ({"left out"} if lost != lost_already else set())
    return found or {"moot"}


def _write(dialect: Dialect, request: Request) -> tuple[dict[str, Any] | None, list[str]]:
    """The body, None where the request is refused; and what was reported as left out."""
    lost: list[str] = []
    token = LEFT_OUT.set(lost)
    try:
        return dialect.write_request(request), lost
    except RequestError:
        return None, lost
    finally:
        LEFT_OUT.reset(token)


def _claimed(table: FieldTable, attribute: str) -> set[str]:
    names = {Refused: "refused", LeftOut: "left out", Moot: "moot"}
    return {names.get(type(row), "written") for row in table.rows if row.attribute == attribute}


@pytest.mark.parametrize("dialect", dialects.ALL, ids=lambda dialect: dialect.NAME)
def test_the_table_names_every_field(dialect: Dialect) -> None:
    """And none that is not there."""
    named = {row.attribute for row in _table(dialect).rows}
    assert set(Request.__struct_fields__) - named == set(), "say in FIELDS what becomes of them"
    assert named - set(Request.__struct_fields__) == set()


def test_every_field_has_a_sample() -> None:
    """So that no row goes unchecked."""
    assert SAMPLES.keys() == set(Request.__struct_fields__)


@pytest.mark.parametrize("dialect", dialects.ALL, ids=lambda dialect: dialect.NAME)
def test_each_field_fares_as_its_row_says(dialect: Dialect) -> None:
    """It is written, refused or left out with a report for at least one value; where it is moot, for none."""
    table, wrong = _table(dialect), []
    for attribute in SAMPLES.keys() - {"dialect"}:
        seen = set().union(*(_outcome(dialect, *pair) for pair in _requests(dialect, attribute)))
        claimed = _claimed(table, attribute)
        if not claimed <= seen or seen - claimed - {"moot", "refused already"}:
            wrong.append(f"{attribute}: its rows say {sorted(claimed)}, its values were {sorted(seen)}")
    assert not wrong


@pytest.mark.parametrize("dialect", dialects.ALL, ids=lambda dialect: dialect.NAME)
def test_what_another_dialect_asks_never_vanishes(dialect: Dialect) -> None:
    """Whatever the value: a field that no row calls moot is written, refused or reported."""
    table, silent = _table(dialect), []
    for attribute in SAMPLES.keys() - OF_ITS_OWN.keys():
        for before, request in _requests(dialect, attribute):
            foreign = request.dialect != dialect.NAME and _has(request, BESIDE.get(attribute, {}))
            if foreign and _outcome(dialect, before, request) == {"moot"} != _claimed(table, attribute):
                silent.append(f"{attribute}={getattr(request, attribute)!r}")
    assert not silent


def _has(request: Request, fields: dict[str, Any]) -> bool:
    return all(getattr(request, name) == value for name, value in fields.items())


def test_a_moot_field_has_no_other_row() -> None:
    """One table cannot say both."""
    for dialect in dialects.ALL:
        for attribute in Request.__struct_fields__:
            claimed = _claimed(_table(dialect), attribute)
            assert "moot" not in claimed or len(claimed) == 1, (dialect.NAME, attribute)
