"""`format_from`: the formats that templates become are held to the laws, on cases and on any text."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides import Format
from asides.hf import TemplateError, format_from, template_for
from tests.hf.support import readings
from tests.support import characters, check_chunking, check_kept, every_place, run

REFUSED = {
    "openers that act only where output begins": ["apriel", "apriel_1.6", "gemma4", "granite"],
    "headers that a pattern describes": ["muse", "muse_spark"],
    "tags in any case, with attributes": ["think_tag"],
    "calls without an opener": ["json", "llama4_pythonic", "pythonic", "xlam"],
}
"""Formats whose written template says more than a format can be made from, with the reason."""
NO = {name for names in REFUSED.values() for name in names}
NAMES = [name for name in asides.formats() if asides.get_format(name).settle is None]
OPTIONS: dict[str, Any] = {"start": "text"}


@cache
def _written(name: str) -> Format:
    return format_from(template_for(name).template)


@pytest.mark.parametrize("name", sorted(NO))
def test_what_cannot_be_a_format_names_its_key(name: str) -> None:
    """It is refused, not read in some other way."""
    with pytest.raises(TemplateError, match=r"fields\.\w+\.open_pattern"):
        _written(name)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NO])
def test_the_laws_hold_on_every_case(name: str) -> None:
    """However a case is cut the events are the same, and nothing of it is lost."""
    format = _written(name)
    for reading in readings([name]):
        options = {"prompt": reading.prefix, "tools": reading.tools} if reading.tools else {"prompt": reading.prefix}
        text = reading.text
        ways = [characters(text), *list(every_place(text))[:: 1 + len(text) // 8]]
        check_kept(format, text, check_chunking(format, text, ways, options), options)


@pytest.mark.parametrize("name", ["qwen3", "qwen3.5", "glm45", "deepseek_v31", "kimi_k2"])
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_the_laws_hold_on_any_text(name: str, data: st.DataObject) -> None:
    """Markers and words in any order."""
    format = _written(name)
    markers = [*(marker for state in format.states.values() for marker in state)]
    markers += [marker for syntax in format.calls for marker in (*syntax.openers, *syntax.closers)]
    pieces = data.draw(st.lists(st.sampled_from([*markers, '{"a": 1}', "f", " ", "\n", "<"]) | st.text(max_size=3)))
    text = "".join(pieces)
    check_kept(format, text, check_chunking(format, text, [pieces, characters(text)], OPTIONS), OPTIONS)


def test_calls_that_only_a_pattern_describes() -> None:
    """The name is captured by the opener, arguments are typed by the tools, and a broken call is a part."""
    format = _written("qwen3.5")
    text = (
        "<tool_call>\n<function=f>\n<parameter=n>\n3\n</parameter>\n</function>\n</tool_call> <tool_call>{}</tool_call>"
    )
    properties = {"n": {"type": "integer"}}
    tools = [
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": properties}}}
    ]
    message = run(format, [text], tools=tools).message
    assert message is not None
    call, *_ = message.tool_calls
    assert (call.name, call.arguments, call.error) == ("f", '{"n": 3}', None)
    assert [(each.raw, each.error) for each in message.tool_calls[1:]] == [("<tool_call>{}</tool_call>", "unreadable")]


def test_a_call_that_repeats_an_argument_may_not_be_run() -> None:
    """One value would hide the other."""
    pair = "<arg_key>a</arg_key><arg_value>{}</arg_value>"
    message = run(_written("glm45"), [f"<tool_call>f{pair.format(1)}{pair.format(2)}</tool_call>"]).message
    assert message is not None
    assert [call.error for call in message.tool_calls] == ["duplicate_argument"]


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"thinking": {"open": "<t>"}, "reasoning": {"open": "<r>"}}, "fields.reasoning"),
        ({"citations": {"open": "<c>"}}, "fields.citations"),
        ({"content": {"content": "json"}}, "fields.content.content"),
        ({"thinking": {"open_pattern": r"<t\d>"}}, "fields.thinking.open_pattern"),
        ({"content": {"close": " "}}, "fields.content.close"),
        ({"tool_calls": {"open": ",", "close": ")"}}, "fields.tool_calls.open_pattern"),
    ],
)
def test_what_is_no_part_of_a_message_is_refused(fields: dict[str, Any], key: str) -> None:
    """With the key at fault."""
    with pytest.raises(TemplateError) as caught:
        format_from({"start_anchor": "A", "fields": fields})
    assert caught.value.key == key
