"""No field of a request is ignored: something unknown in any object reaches the upstream, is refused, or is logged.

The requests of `nested.NESTED` hold every object that a dialect understands. A field that nobody knows is put into each
of them, one after the other, and each is written for every dialect.
"""

from __future__ import annotations

import json
import logging
from types import ModuleType
from typing import Any

import pytest

from asides import dialects
from asides.dialects._request import RequestError
from asides.dialects._request_fields import unknown_fields
from tests.dialects.nested import ANEW, NESTED, WHOLE, Path, objects, with_field

NEW, VALUE = "x_new", "x_value"
ALL: dict[str, Any] = {dialect.NAME: dialect for dialect in dialects.ALL}
CASES = [(name, number) for name, bodies in NESTED.items() for number in range(len(bodies))]


def _targets(name: str, body: dict[str, Any]) -> list[Any]:
    """The dialects that a request can be written for."""
    found = []
    for dialect in ALL.values():
        try:
            dialect.write_request(ALL[name].read_request(body))
        except RequestError:
            continue
        found.append(dialect)
    return found


def _outcome(source: Any, target: Any, body: dict[str, Any], path: Path, caplog: pytest.LogCaptureFixture) -> str:
    caplog.clear()
    try:
        written = json.dumps(target.write_request(source.read_request(body)))
    except RequestError as error:
        return "refused" if NEW in str(error.param) else f"refused for {error.param}"
    if NEW in written and VALUE in written:
        return "reaches"
    lines = " ".join(record.getMessage() for record in caplog.records)
    if NEW in lines or any(step in WHOLE and str(step) in lines for step in path):
        return "logged"
    return "ignored"


@pytest.mark.parametrize(("name", "number"), CASES)
def test_no_object_hides_a_field(name: str, number: int, caplog: pytest.LogCaptureFixture) -> None:
    """At any depth; within its own dialect the field reaches the upstream."""
    caplog.set_level(logging.INFO, "asides")
    body = NESTED[name][number]
    targets = _targets(name, body)
    assert ALL[name] in targets
    assert len(targets) > 1
    wrong = []
    for path in objects(body):
        for target in targets:
            changed = with_field(body, path, NEW, VALUE)
            outcome = _outcome(ALL[name], target, changed, path, caplog)
            same = target is ALL[name] and path not in ANEW.get(name, ())
            if outcome != "reaches" if same else outcome not in ("reaches", "refused", "logged"):
                wrong.append(f"{'.'.join(map(str, path)) or 'the body'} -> {target.NAME}: {outcome}")
    assert not wrong


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("openai_chat", ("reasoning",)),
        ("openai_chat", ("thinking",)),
        ("openai_chat", ("tool_choice",)),
        ("openai_chat", ("tool_choice", "allowed_tools", "tools", 0)),
        ("openai_chat", ("response_format",)),
        ("openai_chat", ("response_format", "json_schema")),
        ("openai_responses", ("reasoning",)),
        ("openai_responses", ("text", "format")),
        ("openai_responses", ("tool_choice",)),
        ("anthropic", ("thinking",)),
        ("anthropic", ("output_config",)),
        ("anthropic", ("output_config", "format")),
        ("anthropic", ("tool_choice",)),
        ("anthropic", ("context_management",)),
        ("anthropic", ("context_management", "edits", 0)),
        ("anthropic", ("context_management", "edits", 0, "keep")),
    ],
)
def test_what_is_asked_for_is_refused_elsewhere(name: str, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where a field says how to think, to answer or to call, leaving something out would be another request."""
    body = NESTED[name][0]
    for target in _targets(name, body):
        if target is not ALL[name]:
            changed = with_field(body, path, NEW, VALUE)
            assert _outcome(ALL[name], target, changed, path, caplog) == "refused"


@pytest.mark.parametrize(
    ("name", "fields", "param"),
    [
        ("openai_responses", {"context_management": [{"type": "compaction"}]}, "context_management"),
        ("openai_responses", {"text": {"format": {"type": "grammar"}}}, "text.format"),
        ("openai_chat", {"response_format": {"type": "structural_tag"}}, "response_format"),
        ("openai_chat", {"response_format": {"type": "json_object", "schema": {}}}, "response_format.schema"),
        ("openai_chat", {"moderation": {}}, "moderation"),
        ("anthropic", {"thread": {"type": "create"}}, "thread"),
        ("anthropic", {"compaction": {}}, "compaction"),
        ("anthropic", {"output_config": {"task_budget": {"total": 9}}}, "output_config.task_budget"),
    ],
)
def test_known_fields_without_a_counterpart(name: str, fields: dict[str, Any], param: str) -> None:
    """They change what is asked, so other dialects refuse them by name; their own passes them on."""
    text = {"input": "Hi"} if name == "openai_responses" else {"messages": [{"role": "user", "content": "Hi"}]}
    request = ALL[name].read_request({"model": "m", "max_tokens": 9, **text, **fields})
    written = ALL[name].write_request(request)
    assert {field: written[field] for field in fields} == fields
    with pytest.raises(RequestError) as caught:
        ALL["ollama"].write_request(request)
    assert caught.value.param == param


def test_every_dialect_is_tried() -> None:
    """Each is a source and a target of some request, and the requests have objects at five levels and more."""
    assert {name for name, _ in CASES} == set(ALL)
    found: set[ModuleType] = {target for name, number in CASES for target in _targets(name, NESTED[name][number])}
    assert {target.NAME for target in found} == set(ALL)
    assert max(len(path) for bodies in NESTED.values() for body in bodies for path in objects(body)) >= 5


def test_places() -> None:
    """Null is a field that was not set; a value of another kind than expected is somebody else's to refuse."""
    shape = {"a": None, "b": {"c": None}, "d": [{"e": None}]}
    value = {"a": {"x": 1}, "b": {"c": 1, "x": 2, "y": None}, "d": [{"e": 1}, {"x": 3}, 7], "z": 1}
    assert list(unknown_fields(value, shape, "p")) == ["p.b.x", "p.d[1].x", "p.z"]
    assert list(unknown_fields({"b": 1, "d": {}}, shape)) == []
    assert list(unknown_fields(None, shape)) == []
