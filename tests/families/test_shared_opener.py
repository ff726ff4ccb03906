"""Formats that open calls with `<tool_call>` read the body of every family that does."""

from __future__ import annotations

import pytest

import asides
from asides.families._shared import OPENER

SHARING = [
    name for name in asides.formats() if any(OPENER in syntax.openers for syntax in asides.get_format(name).calls)
]
BODIES = {
    "JSON": '{"name": "f", "arguments": {"a": 1}}',
    "tags": "<function=f><parameter=a>1</parameter></function>",
    "keys": "f<arg_key>a</arg_key><arg_value>1</arg_value>",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("format", SHARING)
def test_the_body_decides(format: str, body: str) -> None:
    message = asides.parse(f"{OPENER}{body}</tool_call>", format=format, start="text")
    assert [(call.name, call.arguments, call.error) for call in message.tool_calls] == [("f", '{"a": 1}', None)]
    assert message.text == ""


@pytest.mark.parametrize("format", SHARING)
def test_own_syntaxes_come_first(format: str) -> None:
    siblings = [syntax.sibling for syntax in asides.get_format(format).calls]
    assert siblings == sorted(siblings)
