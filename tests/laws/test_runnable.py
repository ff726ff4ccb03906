"""Law 7 over generated texts, for every registered format: a call that may be run is whole, whatever was chosen."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides import Message, PartEnd, ToolCall
from tests.laws.calls import samples
from tests.laws.effort import examples
from tests.laws.texts import policies, texts
from tests.support import characters, fail, markers, run, stop_markers, without_end

JSON_TYPES = {"integer": int, "number": (int, float), "string": str, "object": dict, "array": list}


def schema(**types: str) -> list[dict[str, Any]]:
    """A tool `f` whose arguments have these types."""
    properties = {name: {"type": type} for name, type in types.items()}
    parameters = {"type": "object", "properties": properties}
    return [{"type": "function", "function": {"name": "f", "parameters": parameters}}]


@st.composite
def choices(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """Any policies, `repair` and types among them more often than not."""
    chosen = dict(draw(policies(name)))
    chosen["repair"] = draw(st.booleans())
    if draw(st.booleans()):
        types = st.sampled_from(sorted(JSON_TYPES))
        chosen["tools"] = schema(a=draw(types), b=draw(types), c=draw(types))
    if draw(st.booleans()):
        chosen["limit"] = draw(st.integers(1, 300))
    return chosen


@st.composite
def calls(draw: st.DrawFn, name: str) -> str:
    """Texts that are mostly calls: some keys made equal, a marker put into them, the end cut off."""
    format = asides.get_format(name)
    text = "".join(draw(st.lists(st.sampled_from(samples(format) or [""]), min_size=1, max_size=3)))
    for key in ('"b"', "b=", "b:"):
        text = text.replace(key, draw(st.sampled_from((key, key.replace("b", "a"), key.replace("b", "\\u0061")))))
    place = draw(st.integers(0, len(text)))
    marker = draw(st.sampled_from(("", "", *stop_markers(format), *markers(format)[:20])))
    end = draw(st.integers(place, len(text) + 40))
    return (text[:place] + marker + text[place:])[:end]


@pytest.mark.parametrize("name", asides.formats())
def test_what_may_be_run(name: str) -> None:
    @settings(max_examples=examples(40))
    @given(calls(name) | texts(name), choices(name))
    def law(text: str, chosen: dict[str, Any]) -> None:
        for chunks in ((text,), characters(text)):
            outcome = run(name, chunks, **chosen)
            message = outcome.message
            assert message is not None
            invalid = any(notice.code == "invalid_argument" for notice in message.notices)
            for call in message.tool_calls:
                problem = _problem(call)
                if problem:
                    fail(f"law 7: {problem}", name, text, chosen, repr(call))
            if chosen.get("finish_reason") == "length":
                _check_cut(name, text, chosen, message)
            if isinstance(chosen.get("tools"), list) and not invalid and _typed(name):  # a schema of our own
                _check_types(name, text, chosen, message.tool_calls)

    law()


def _check_cut(name: str, text: str, chosen: dict[str, Any], message: Message) -> None:
    """What a cut ends in the middle is not run: only calls that were told before, or that lack nothing but a close."""
    parser = asides.Parser(name, **without_end(chosen))
    told = sum(isinstance(event, PartEnd) and event.error is None for event in parser.feed(text))
    codes = [notice.code for notice in message.notices]
    may_run = codes.count("missing_close") + codes.count("repaired")
    runnable = [call for call in message.tool_calls if call.error is None]
    if message.termination == "cut" and len(runnable) > told + may_run and "limit" not in codes:
        fail("law 7: a cut made a call of what was held", name, text, chosen, repr(runnable))


def _problem(call: ToolCall) -> str:
    """What is wrong with a call that may be run; nothing for any other."""
    if call.error is not None:
        return ""
    if not (call.name and call.complete):
        return "it is not named, or not complete"
    try:
        pairs = json.loads(call.arguments, object_pairs_hook=Pairs, parse_constant=_refuse)
    except ValueError:
        return "its arguments are not JSON"
    if not isinstance(pairs, Pairs):
        return "its arguments are no object"
    keys = [key for key, _ in pairs]
    return "" if len(set(keys)) == len(keys) else "a key of its arguments comes twice"


class Pairs(list[tuple[str, Any]]):
    """An object as the list of its members."""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _typed(name: str) -> bool:
    """Whether no call of the format is written as JSON, so that the encoding is ours."""
    grammars = {type(syntax).__name__ for syntax in asides.get_format(name).calls}
    return bool(grammars) and grammars <= {"KeyedCalls", "PythonCalls", "BraceCalls", "NestedCalls"}


def _check_types(name: str, text: str, chosen: dict[str, Any], found: tuple[ToolCall, ...]) -> None:
    properties = chosen["tools"][0]["function"]["parameters"]["properties"]
    for call in found:
        if call.error is not None or call.name != "f":
            continue
        for key, value in json.loads(call.arguments).items():
            wanted = JSON_TYPES[properties[key]["type"]] if key in properties else object
            if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not object):  # type: ignore[arg-type]
                fail(f"law 7: {key!r} does not have its type, and no notice says so", name, text, chosen, repr(call))
