"""Structural tags against the real xgrammar, at full size: `make test-xgrammar`.

For each format that has a tag, strings are drawn by random walks through the masks of the compiled grammar, and each
must parse to calls that may be run and that their schema allows; and calls as the family writes them, ours rendered,
must each be accepted. Formats that have the same tag share their walks.

ASIDES_WALKS and ASIDES_WRITTEN say how many of each.
"""

from __future__ import annotations

import json
import os
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from tests.engine.constrained import SCHEMAS, TOOLS, faults, stop_of, tagged_formats, written_calls
from tests.engine.walks import Walker

jsonschema: Any = import_module("jsonschema")  # by name: it has no types of its own
WALKS = int(os.environ.get("ASIDES_WALKS", "10000"))
WRITTEN = int(os.environ.get("ASIDES_WRITTEN", "1000"))
FORMATS = tagged_formats()
ENDLESS = 0.05
"""The share of walks that may come to no end: they are cut, and say nothing."""


def _groups() -> dict[str, list[str]]:
    """The names of formats by the tag that they have."""
    groups: dict[str, list[str]] = {}
    for name, format in FORMATS.items():
        groups.setdefault(json.dumps(format.structural_tag(TOOLS)), []).append(name)
    return groups


GROUPS = _groups()
VALIDATORS = {name: jsonschema.Draft202012Validator(schema) for name, schema in SCHEMAS.items()}


def _validate(name: str, arguments: Any) -> str:
    error = next(VALIDATORS[name].iter_errors(arguments), None)
    return "" if error is None else error.message


@cache
def _walker(tag: str) -> Walker:
    return Walker([FORMATS[name] for name in GROUPS[tag]], json.loads(tag))


def check_walks(tag: str, walks: int) -> None:
    """Draw strings that a tag allows, and read them."""
    walker, formats = _walker(tag), [FORMATS[name] for name in GROUPS[tag]]
    calls = endless = 0
    for _ in range(walks):
        text = walker.walk()
        if text is None:
            endless += 1
            continue
        for format in formats:
            count, found = faults(format, text + stop_of(format), _validate)
            assert not found, (format.name, text, found)
        calls += count
    print(f"\n{'+'.join(GROUPS[tag])}: {walks - endless} strings, {calls} calls, {endless} walks without an end")
    assert endless <= 2 + walks * ENDLESS
    assert calls >= walks // 25, "the walks must meet calls"


def check_written(name: str, count: int) -> None:
    """Write calls as a family does, and see that they are accepted."""
    format = FORMATS[name]
    walker = _walker(json.dumps(format.structural_tag(TOOLS)))
    for text in written_calls(name, format, count):
        calls, found = faults(format, text + stop_of(format), _validate)
        assert (calls, found) == (1, []), text
        assert walker.accepts(text), text


@pytest.mark.parametrize("tag", GROUPS, ids=["+".join(names) for names in GROUPS.values()])
def test_what_the_grammar_allows_is_read(tag: str) -> None:
    check_walks(tag, WALKS)


@pytest.mark.parametrize("name", FORMATS)
def test_what_families_write_is_accepted(name: str) -> None:
    check_written(name, WRITTEN)


def test_a_grammar_refuses_what_no_tool_allows() -> None:
    """The control of the two above: neither an unknown tool nor a wrong type is accepted."""
    walker = _walker(next(tag for tag, names in GROUPS.items() if "qwen3" in names))
    call = '<tool_call>\n{"name": "%s", "arguments": {"city": %s}}\n</tool_call>'
    assert walker.accepts(call % ("get_weather", '"Bern"'))
    assert not walker.accepts(call % ("get_whether", '"Bern"'))
    assert not walker.accepts(call % ("get_weather", "7"))
    assert not walker.accepts("<think>" + call % ("get_weather", '"Bern"') + "</think>")
    assert not walker.accepts((call % ("get_weather", '"Bern"'))[:-12])
