"""Templates that are refused, each with the key that is at fault; and patterns taken apart."""

from __future__ import annotations

import re
from typing import Any

import pytest

import asides
from asides.hf import ResponseParser, TemplateError
from asides.hf._anchors import compile_pattern, pattern_anchor

GOOD: dict[str, Any] = {"start_anchor": "A", "fields": {"content": {}}}


def _with(**field: Any) -> dict[str, Any]:
    return {"start_anchor": "A", "fields": {"x": {"open": "<x>", **field}}}


@pytest.mark.parametrize(
    ("template", "key"),
    [
        ([], "response_template"),
        ({**GOOD, "version": 2}, "version"),
        ({**GOOD, "more": 1}, "more"),
        ({**GOOD, "defaults": []}, "defaults"),
        ({"start_anchor": "A", "fields": {}}, "fields"),
        ({"fields": {"content": {}}}, "start_anchor"),
        ({**GOOD, "start_anchor_pattern": "A"}, "start_anchor"),
        ({"start_anchor": "A", "fields": {"a": {}, "b": {}}}, "fields"),
        (_with(unknown=1), "fields.x.unknown"),
        (_with(open_pattern="<x>"), "fields.x.open"),
        (_with(open=""), "fields.x.open"),
        (_with(open=[]), "fields.x.open"),
        (_with(close_pattern="("), "fields.x.close_pattern"),
        (_with(close_pattern=1), "fields.x.close_pattern"),
        (_with(close_pattern=r"\w+>"), "fields.x.close_pattern"),
        (_with(content="yaml"), "fields.x.content"),
        (_with(content_args=1), "fields.x.content_args"),
        (_with(content="xml-inline"), "fields.x.content_args.tag_pattern"),
        (_with(content="xml-inline", content_args={"tag_pattern": "a"}), "fields.x.content_args.tag_pattern"),
        (_with(join=" "), "fields.x.join"),
        (_with(transform_each=True), "fields.x.transform_each"),
        (_with(transform={"a": "b {content}"}), "fields.x.transform.a"),
        (_with(close_pattern="</(?P<name>x)>"), "fields.x.transform"),
        ({"start_anchor": "A", "fields": {"x": 1}}, "fields.x"),
    ],
)
def test_what_is_refused_names_its_key(template: Any, key: str) -> None:
    """A `TemplateError` is one of ours and a ValueError, as the reference's are."""
    with pytest.raises(ValueError, match=re.escape(key)) as caught:
        ResponseParser(template, "")
    assert isinstance(caught.value, TemplateError)
    assert isinstance(caught.value, asides.Error)
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("pattern", "literals", "before", "skip"),
    [
        (r"</think>\s*", ("</think>",), 0, True),
        (r"\s*(?:<\|a\|>|<b>)", ("<|a|>", "<b>"), 1024, False),
        (r"\s{0,16}<a>\s*|$", ("<a>",), 16, True),
        (r"a\nb", ("a\nb",), 0, False),
    ],
)
def test_patterns_of_literals_are_literals(pattern: str, literals: tuple[str, ...], before: int, skip: bool) -> None:
    """They need no regular expression."""
    anchor = pattern_anchor(pattern, compile_pattern(pattern))
    assert (anchor.literals, anchor.before, anchor.skip, anchor.pattern) == (literals, before, skip, None)


@pytest.mark.parametrize(
    ("pattern", "literals", "at_start"),
    [
        (r"<t>\s*<f=(?P<name>[^>]+)>", ("<t><f=", "<t>"), False),
        (r"(?:<t>\s*)?<f=(?P<name>\w+)>", ("<t><f=", "<f=", "<t>"), False),
        (r"to=functions\.(?P<name>\S+?)<\|m\|>", ("to=functions.",), False),
        (r"(?:<\|a\|>\[|,\s*)(?P<name>\w+)\(", ("<|a|>[", ","), False),
        (r"(?i:<think>)", ("<",), False),
        (r"</x>\s*|(?=<y>)", ("</x>", "<y>"), False),
        (r"<c>|\A\s*thought", ("<c>",), True),
        (r"a+b", ("a",), False),
        (r"x{2}[a|b)]y", ("x",), False),
    ],
)
def test_other_patterns_begin_with_literals(pattern: str, literals: tuple[str, ...], at_start: bool) -> None:
    """They are tried only where one of these stands."""
    anchor = pattern_anchor(pattern, compile_pattern(pattern))
    assert (anchor.literals, anchor.at_start) == (literals, at_start)
    assert anchor.pattern is not None
